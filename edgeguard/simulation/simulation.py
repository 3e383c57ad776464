"""Runs a scenario: the guard's core in a scripted world, called as its own process would call it.

The core is called at the time that it asked for and whenever something arrives, in virtual time, so that minutes of
events take milliseconds, and the same scenario gives the same run to the nanosecond.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

from edgeguard.clock import wall_time_iso
from edgeguard.config import Config
from edgeguard.guard.core import step
from edgeguard.guard.settings import Settings
from edgeguard.guard.state import GuardState
from edgeguard.recorder.journal import FlightJournal
from edgeguard.recorder.record import FlightHeader
from edgeguard.runtime.budget_line import RESERVE_ASSUMED_NS
from edgeguard.runtime.serial_wire import command_wire_ns
from edgeguard.simulation.happening import Happening
from edgeguard.simulation.scenario import Scenario
from edgeguard.simulation.timeline import Moment, Timeline
from edgeguard.simulation.world import START_NS, World


class Recorder(Protocol):
    """Takes what ``FlightJournal.note`` gives; ``FlightWriter.append`` is one."""

    def __call__(self, *documents: bytes | None, begins_block: bool) -> object: ...


def simulate(scenario: Scenario, *, recorder: Recorder | None = None) -> Timeline:
    """One run, from beginning to end; ``recorder`` gets every step of it."""
    return _Run(scenario, recorder).run()


def flight_header(config: Config) -> FlightHeader:
    """The header of a recording of a simulation on ``config``."""
    return FlightHeader.from_config(
        config, reserve_ns=_reserve_ns(config), wire_ns=command_wire_ns(config), created=wall_time_iso()
    )


class _Run:
    def __init__(self, scenario: Scenario, recorder: Recorder | None) -> None:
        config = scenario.assembly.config
        self._scenario = scenario
        self._recorder = recorder
        self._journal = FlightJournal()
        self._world = World(scenario)
        self._settings = Settings.from_config(
            config, scenario.assembly.fields, reserve_ns=_reserve_ns(config), wire_ns=command_wire_ns(config)
        )
        self._state = GuardState.initial(now_ns=START_NS)
        self._wake_ns = START_NS
        self._timeline = Timeline(duration_ns=scenario.duration_ns, ladder=tuple(rung.name for rung in config.plans))

    def run(self) -> Timeline:
        world, agenda = self._world, self._world.agenda
        self._scenario.start.happen(world)
        for happening in self._scenario.events:
            agenda.at(happening.at_ns, partial(self._happen, happening))
        self._watch()
        while True:
            wake_ns = max(world.world_ns(self._wake_ns), world.away_until_ns)
            next_ns = wake_ns if agenda.next_ns is None else min(wake_ns, agenda.next_ns)
            if next_ns >= self._scenario.duration_ns:
                break
            agenda.advance(next_ns)
            due = world.news or next_ns >= world.world_ns(self._wake_ns)
            if due and next_ns >= world.away_until_ns:
                self._step()
        self._timeline.worker_starts = world.worker.starts
        return self._timeline

    def _happen(self, happening: Happening) -> None:
        happening.happen(self._world)
        self._timeline.script.append((happening.at_ns, happening.label))

    def _watch(self) -> None:
        """Look at the robot, twice a tick."""
        world = self._world
        self._timeline.moments.append(Moment(at_ns=world.agenda.now_ns, measured=world.wire.measure()))
        world.agenda.after(self._settings.tick_ns // 2, self._watch)

    def _step(self) -> None:
        """What ``edgeguard.runtime.driver`` does on a wake-up."""
        world, before, now_ns = self._world, self._state, self._world.clock_ns()
        inputs = world.gather(lateness_ns=max(0, now_ns - self._wake_ns))
        self._state, effects = step(self._settings, before, now_ns, inputs)
        world.carry_out(effects, state=self._state, operator=inputs.operator)
        self._wake_ns = effects.wake_ns
        self._timeline.note_step(world.agenda.now_ns, self._state, effects)
        if self._recorder is not None:
            document, begins_block = self._journal.note(before, now_ns, inputs, effects)
            self._recorder(document, begins_block=begins_block)


def _reserve_ns(config: Config) -> int:
    return RESERVE_ASSUMED_NS if config.timing.reserve_ns is None else config.timing.reserve_ns
