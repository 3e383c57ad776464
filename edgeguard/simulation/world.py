"""Everything around the guard's core in a simulation: its computer's clock, the observations, the worker, the wire.

The world has its own time, from 0. The guard's monotonic clock is behind it by what it has slept, and reads on from a
second, because 0 is no time stamp. While the guard is asleep or starved, messages wait for it as they do in a socket.
"""

from __future__ import annotations

from edgeguard.clock import NS_PER_S
from edgeguard.guard.interface import Effects, Inputs
from edgeguard.guard.state import GuardState
from edgeguard.simulation.agenda import Agenda
from edgeguard.simulation.plans import Ladder
from edgeguard.simulation.scenario import Scenario
from edgeguard.simulation.source import ObservationSource
from edgeguard.simulation.wire import SimulatedWire
from edgeguard.simulation.worker import SimulatedWorker
from edgeguard.types import BoardState, Cause, Observation, OperatorWord, ThermalLevel

START_NS = NS_PER_S


class World:
    """The world of one scenario. ``news``: something has arrived that the guard has not yet seen."""

    def __init__(self, scenario: Scenario) -> None:
        config = scenario.assembly.config
        self.agenda = Agenda()
        self.news = False
        self.away_until_ns = 0  # the guard is not run before
        self.conditions: dict[Cause, str] = {}
        self._behind_ns = 0
        self._suspended_ns = 0
        self._observation: Observation | None = None
        self._operator: list[OperatorWord] = []
        self._board: BoardState | None = None
        self.wire: SimulatedWire = SimulatedWire(config, self.agenda, on_arrival=self._tell)
        self.worker: SimulatedWorker = SimulatedWorker(
            self.agenda,
            clock=self.clock_ns,
            start_ns=scenario.worker_start_ns,
            failures_allowed=config.guarding.worker_failures,
            on_news=self._tell,
            ladder=Ladder(
                tuple(rung.name for rung in config.rungs), uncalibrated_factor=config.risk.uncalibrated_factor
            ),
        )
        self.source: ObservationSource = ObservationSource(
            config,
            self.agenda,
            wire=self.wire,
            clock=self.clock_ns,
            period_ns=scenario.observation_period_ns,
            shrinks=scenario.shrinks,
            deliver=self._deliver,
        )

    def clock_ns(self) -> int:
        """The guard's monotonic clock."""
        return START_NS + self.agenda.now_ns - self._behind_ns

    def world_ns(self, clock_ns: int) -> int:
        """When that clock will read so."""
        return clock_ns - START_NS + self._behind_ns

    def gather(self, *, lateness_ns: int) -> Inputs:
        """What has arrived for the guard since the last call."""
        self.news = False
        observation, self._observation = self._observation, None
        operator, self._operator = tuple(self._operator), []
        board, self._board = self._board, None
        return Inputs(
            worker=self.worker.status,
            link=self.wire.poll(now_ns=self.clock_ns()),
            observation=observation,
            answers=self.worker.take_answers(),
            operator=operator,
            conditions=tuple(self.conditions.items()),
            boottime_offset_ns=self._suspended_ns,
            lateness_ns=lateness_ns,
            board=board,
        )

    def carry_out(self, effects: Effects, *, state: GuardState, operator: tuple[OperatorWord, ...]) -> None:
        """What the guard, now in ``state``, wants done; a re-arm also tries a worker again that was given up."""
        if OperatorWord.REARM in operator:
            self.worker.retry()
        if effects.send is not None:
            self.wire.transmit(effects.send, now_ns=self.clock_ns())
        if effects.request is not None:
            self.worker.ask(effects.request)
        if effects.cancel is not None:
            self.worker.cancel(effects.cancel)
        if effects.restart_worker:
            self.worker.restart(state.ledger[Cause.WORKER_HUNG].detail)

    def say(self, word: OperatorWord) -> None:
        """The operator speaks."""
        self._operator.append(word)
        self._tell()

    def heat(self, name: str) -> None:
        """The board's watch tells of another level, by its label, or of a critical temperature."""
        levels = {level.label: level for level in ThermalLevel}
        self._board = BoardState(
            level=levels.get(name, ThermalLevel.HOT),
            observed=True,
            critical=name not in levels,
            hottest_c=None,
            read_ns=self.clock_ns(),
            detail=f"as scripted: {name}",
        )
        self._tell()

    def starve(self, for_ns: int) -> None:
        """The guard is not scheduled."""
        self.away_until_ns = self.agenda.now_ns + for_ns

    def suspend(self, for_ns: int) -> None:
        """The computer sleeps; the motor controller does not. On waking up, nothing on the computer has seen it."""
        self.starve(for_ns)
        running, self.source.running = self.source.running, False

        def wake_up() -> None:
            self._behind_ns += for_ns
            self._suspended_ns += for_ns
            self.source.running = running

        self.agenda.after(for_ns, wake_up)

    def set_clock_back(self, by_ns: int) -> None:
        """A broken clock."""
        self._behind_ns += by_ns

    def _deliver(self, observation: Observation) -> None:
        self._observation = observation
        self._tell()

    def _tell(self) -> None:
        self.news = True
