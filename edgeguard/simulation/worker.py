"""The model's process in a simulation: answers as the script says, dies, hangs, starts again with a back-off.

It works on one request at a time and cannot be stopped in it (one long pass); of those that wait, the newest wins. So
an answer may be late, and then the guard has to throw it away. What the supervisor does about an exit is done as
``edgeguard.runtime.supervisor`` does it.
"""

from __future__ import annotations

from collections.abc import Callable

from edgeguard.clock import NS_PER_MS
from edgeguard.guard.interface import WorkerPhase, WorkerStatus
from edgeguard.runtime.supervisor import BACK_OFF_FIRST_NS, BACK_OFF_LIMIT_NS
from edgeguard.simulation.agenda import Agenda
from edgeguard.simulation.plans import Ladder
from edgeguard.types import Answer, Finish, Request

_EXIT_NOTICED_NS = 20 * NS_PER_MS
"""From a kill to the spawner's word that the process has gone. Plausible, not measured."""

_REFUSED_NS = NS_PER_MS
"""For tokenising a request and looking at its plans, when none of them fits. Plausible, not measured."""


class SimulatedWorker:
    """``on_news``: an answer or another phase waits to be taken. The script sets the public attributes, and the scripts
    of the ``ladder`` of plans."""

    def __init__(
        self,
        agenda: Agenda,
        *,
        clock: Callable[[], int],
        start_ns: int,
        failures_allowed: int,
        on_news: Callable[[], None],
        ladder: Ladder | None = None,
    ) -> None:
        self.ladder = ladder or Ladder()
        self.finish = Finish.COMPLETE
        self.confidence = 1.0
        self.broken = False  # every start fails
        self.starts = 0
        self._agenda = agenda
        self._clock = clock
        self._start_ns = start_ns
        self._failures_allowed = failures_allowed
        self._on_news = on_news
        self._phase, self._detail = WorkerPhase.GONE, "not started"
        self._life = 0  # what was begun in an earlier one comes to nothing
        self._hung = False
        self._failures = 0
        self._running: Request | None = None
        self._waiting: Request | None = None
        self._answers: list[Answer] = []
        self.start()

    @property
    def status(self) -> WorkerStatus:
        return WorkerStatus(phase=self._phase, promise=self.ladder.promise, detail=self._detail)

    def take_answers(self) -> tuple[Answer, ...]:
        answers, self._answers = tuple(self._answers), []
        return answers

    def ask(self, request: Request) -> None:
        if self._phase is WorkerPhase.READY:
            self._waiting = request
            self._work()

    def cancel(self, request_id: int) -> None:
        if self._waiting is not None and self._waiting.request_id == request_id:
            self._waiting = None

    def restart(self, reason: str) -> None:
        """The guard's word."""
        self._end(WorkerPhase.GONE, reason)
        self._later(_EXIT_NOTICED_NS, lambda: self._exited(reason))

    def retry(self) -> None:
        """The operator's word: forget the failures and try again."""
        if self._phase is WorkerPhase.UNAVAILABLE:
            self._failures = 0
            self.start()

    def start(self) -> None:
        self._end(WorkerPhase.WARMING, "starting")
        self.starts += 1
        if self.broken:
            self._later(self._start_ns, lambda: self._exited("exited with status 1"))
        else:
            self._later(self._start_ns, self._become_ready)

    def die(self) -> None:
        """It is killed, as by the kernel when memory is short."""
        self._exited("exited with status -9")

    def hang(self) -> None:
        """It is alive and does nothing more."""
        self._hung = True

    def _become_ready(self) -> None:
        if not self._hung:
            self._phase, self._detail = WorkerPhase.READY, "ready"

    def _exited(self, detail: str) -> None:
        self._failures += 1
        if self._failures >= self._failures_allowed:
            self._end(WorkerPhase.UNAVAILABLE, f"{self._failures} failures in a row, the last: {detail}")
            return
        self._end(WorkerPhase.GONE, detail)
        self._later(min(BACK_OFF_LIMIT_NS, BACK_OFF_FIRST_NS << (self._failures - 1)), self.start)

    def _end(self, phase: WorkerPhase, detail: str) -> None:
        """Whatever it was doing is over."""
        self._phase, self._detail = phase, detail
        self._life += 1
        self._hung = False
        self._running = self._waiting = None
        self._on_news()

    def _work(self) -> None:
        if self._running is not None or self._waiting is None or self._hung:
            return
        request, self._running, self._waiting = self._waiting, self._waiting, None
        started_ns = self._clock()
        chosen = self.ladder.choose(request, left_ns=request.answer_by_ns - started_ns)
        if chosen is None:
            self._later(_REFUSED_NS, lambda: self._refuse(request, started_ns))
        else:
            name, bound_ns = chosen
            took_ns = next(self.ladder.scripts[name].latencies_ns)
            self._later(took_ns, lambda: self._answer(request, started_ns, name, bound_ns))

    def _refuse(self, request: Request, started_ns: int) -> None:
        self._running = None
        self._answers.append(
            Answer(
                request_id=request.request_id,
                epoch=request.epoch,
                finish=Finish.INFEASIBLE,
                detail="no plan's bound fits",
                started_ns=started_ns,
                finished_ns=self._clock(),
            )
        )
        self._work()

    def _answer(self, request: Request, started_ns: int, rung: str, bound_ns: int | None) -> None:
        self._running = None
        if self._hung:
            return
        complete = self.finish is Finish.COMPLETE
        answer = Answer(
            request_id=request.request_id,
            epoch=request.epoch,
            finish=self.finish,
            values=self.ladder.scripts[rung].values if complete else None,
            detail="" if complete else "as scripted",
            rung=rung,
            bound_ns=bound_ns,
            confidence=self.confidence if complete else None,
            started_ns=started_ns,
            finished_ns=self._clock(),
        )
        self._answers.append(answer)
        if complete:
            self._failures = 0
        self._work()

    def _later(self, delay_ns: int, action: Callable[[], None]) -> None:
        """After ``delay_ns``, if this life still lasts then."""
        life = self._life

        def act() -> None:
            if self._life == life:
                action()
                self._on_news()

        self._agenda.after(delay_ns, act)
