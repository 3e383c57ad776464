"""One cycle, from the release of an observation to its decision: ask, judge the answer, or give up in time.

A decision exists by the deadline, always: when the answer comes on time, when the worker says that there will be none,
or at ``answer_by_ns``, whichever is first. An answer at ``answer_by_ns`` sharp is on time. What is not the answer to
the open request of this epoch is thrown away, counted, and changes nothing.
"""

from __future__ import annotations

from dataclasses import replace

from edgeguard.answer import check_values
from edgeguard.clock import ms_from_ns
from edgeguard.errors import AnswerError, IncompleteAnswerError
from edgeguard.guard.causes import TABLE
from edgeguard.guard.envelope import Verdict, admit
from edgeguard.guard.events import EventName, event
from edgeguard.guard.forecast import bound_in_force_ns, level_asked, margin_in_force, note_answer, note_cut_off
from edgeguard.guard.rules import engaged_rails, truth
from edgeguard.guard.sensing import stamped
from edgeguard.guard.state import Cycle, Engagement
from edgeguard.guard.turn import Turn
from edgeguard.types import Answer, Budget, Cause, Finish, Mode, Observation, Request, Source

_FINISHES = {
    Finish.DEADLINE: Cause.INCOMPLETE_ANSWER,
    Finish.INFEASIBLE: Cause.INFEASIBLE,
    Finish.INVALID: Cause.INVALID_ANSWER,
    Finish.ERROR: Cause.INCOMPLETE_ANSWER,
}

_SAID = (Cause.OUT_OF_ENVELOPE, Cause.LOW_CONFIDENCE)
"""In a shadow these cost no credit: what it says goes nowhere, and a rule may go on moving. That it is late does."""


def hear_answers(turn: Turn) -> None:
    """Judge the answer to the open request; throw everything else away."""
    for answer in turn.inputs.answers:
        cycle = turn.cycle
        request = None if cycle is None else cycle.request
        awaited = request is not None and (answer.request_id, answer.epoch) == (request.request_id, request.epoch)
        if cycle is not None and request is not None and awaited and turn.now_ns <= request.answer_by_ns:
            turn.cycle = None
            turn.answered_id = answer.request_id
            _conclude(turn, cycle, answer)
        elif answer.finish is not Finish.DEADLINE:  # that the worker has given up, too, is a sign of life and no more
            _discard(turn, answer, late=awaited)


def watch_deadline(turn: Turn) -> None:
    """At ``answer_by_ns`` there is a decision, with or without an answer."""
    cycle = turn.cycle
    if cycle is None or cycle.request is None or turn.now_ns < cycle.request.answer_by_ns:
        return
    turn.cycle = None
    note_cut_off(turn, cycle)
    turn.silence_ns += turn.now_ns - cycle.released_ns
    late_ns = turn.now_ns - cycle.request.answer_by_ns
    _fail(
        turn,
        cycle,
        Cause.MISS,
        f"no answer {ms_from_ns(cycle.request.answer_by_ns - cycle.released_ns):.1f} ms "
        f"after the release (noticed {ms_from_ns(late_ns):.2f} ms later)",
    )
    turn.close(cycle, turn.ruling(Source.SAFE))


def release(turn: Turn) -> None:
    """Start the cycle of the newest observation, once per period and not before the one under way has ended.

    The period is kept on the average, with half a period of tolerance for a source that jitters (the generic cell rate
    algorithm, ITU-T I.371). An observation that comes earlier than that waits, and the next period opens sooner by as
    long, up to a fifth: else every later one of a punctual source would wait too, and age.
    """
    settings, arrival = turn.settings, turn.arrival
    if arrival is None or turn.cycle is not None or turn.closing is not None:
        return
    if turn.now_ns < turn.due_ns - settings.period_ns // 2:
        return
    turn.arrival = None
    waited_ns = turn.now_ns - arrival.arrived_ns
    turn.due_ns = max(turn.now_ns, turn.due_ns) + settings.period_ns - min(waited_ns, settings.period_ns // 5)
    cycle, observation = _begin(turn, arrival.observation), arrival.observation
    if not arrival.good or cycle.budget is None or not turn.worker_can_answer:
        turn.close(cycle, turn.ruling(Source.SAFE))
    else:
        _ask(turn, cycle, observation, cycle.budget, waited_ns=waited_ns)


def note_absence(turn: Turn) -> None:
    """One record for each period in which no observation came although one was needed."""
    if Cause.NO_OBSERVATION not in turn.ledger or turn.cycle is not None or turn.closing is not None:
        return
    if turn.now_ns >= turn.absent_due_ns:
        turn.absent_due_ns = turn.now_ns + turn.settings.period_ns
        turn.close(_begin(turn, None), turn.ruling(Source.SAFE))


def _begin(turn: Turn, observation: Observation | None) -> Cycle:
    turn.counters = replace(turn.counters, cycles=turn.counters.cycles + 1)
    settings, budget = turn.settings, None
    if observation is not None and stamped(observation, turn.now_ns):
        budget = Budget(
            deadline_ns=settings.deadline_ns,
            age_ns=observation.age_ns(turn.now_ns),
            wire_ns=settings.wire_ns,
            reserve_ns=settings.reserve_ns,
            bound_ns=bound_in_force_ns(
                turn.inputs.worker.promise,
                turn.board,
                doubt=turn.doubt,
                uncalibrated_factor=settings.uncalibrated_factor,
            ),
        )
    return Cycle(number=turn.counters.cycles, observation=observation, released_ns=turn.now_ns, budget=budget)


def _ask(turn: Turn, cycle: Cycle, observation: Observation, budget: Budget, *, waited_ns: int) -> None:
    left_ns, bound_ns = budget.available_ns, budget.bound_ns
    forecast = left_ns <= 0 or (bound_ns is not None and left_ns < bound_ns)
    if forecast:
        left = f"{ms_from_ns(left_ns):.1f} ms are left of the deadline"
        bound = "" if bound_ns is None else f", the bound is {ms_from_ns(bound_ns):.1f} ms"
        turn.ledger.note_failure()
        turn.ledger.strike(Cause.PREDICTED_MISS, f"{left}{bound}{_waited(turn, waited_ns)}")
        turn.settle()
        if left_ns <= 0:
            turn.close(cycle, turn.ruling(Source.SAFE))
            return
        turn.foretold, turn.urgent = turn.ruling(Source.SAFE), True
    engages = turn.mode in (Mode.ARMED, Mode.INTERVENING) and turn.ledger.ends_on_time
    turn.request = Request(
        request_id=turn.next_request_id,
        epoch=turn.epoch,
        observation=observation,
        answer_by_ns=turn.now_ns + left_ns,
        shadow=not engages,
        level=level_asked(
            turn.inputs.worker.promise, turn.board, uncalibrated_factor=turn.settings.uncalibrated_factor
        ),
        margin=margin_in_force(turn.doubt),
    )
    turn.next_request_id += 1
    turn.cycle = replace(cycle, request=turn.request, forecast=forecast)


def _waited(turn: Turn, waited_ns: int) -> str:
    """Whoever observes as soon as he has a decision has all of them wait, and the deadline runs meanwhile."""
    if waited_ns < turn.settings.period_ns // 4:
        return ""
    return f"; {ms_from_ns(waited_ns):.1f} ms it waited for its period to open: observe when it does (Guard.periods)"


def _conclude(turn: Turn, cycle: Cycle, answer: Answer) -> None:
    """The answer has come on time. It proves; and a real one, when nothing else speaks against it, is applied."""
    note_answer(turn, cycle, answer)
    judged = _judge(turn, answer)
    if not isinstance(judged, Verdict):
        if judged is not None:
            _fail(turn, cycle, *judged)
        turn.close(cycle, turn.ruling(Source.SAFE), answer=answer)
        return
    ruling, settings = turn.ruling(Source.SAFE), turn.settings
    turn.credit = min(settings.miss_limit, turn.credit + settings.refill_per_on_time)
    turn.ledger.note_on_time(fitted=not cycle.forecast, needed=settings.on_time_to_arm, dwell_ns=settings.dwell_ns)
    turn.settle()
    request, observation = cycle.request, cycle.observation
    if request is not None and observation is not None and not request.shadow and turn.mode is Mode.ARMED:
        turn.engagement = Engagement(targets=judged.targets, expires_ns=observation.captured_ns + settings.life_ns)
        turn.verdict = judged
        ruling = turn.ruling(Source.MODEL)
    turn.close(cycle, ruling, answer=answer)


def _judge(turn: Turn, answer: Answer) -> Verdict | tuple[Cause, str] | None:
    """What the envelope admits of the answer, or why it cannot be used. A shadow, too, proves only what could be sent.

    ``None``: only an interlock that nobody can judge now refuses it. That is not the model's fault, and proves nothing.
    """
    if answer.finish is not Finish.COMPLETE:
        return _FINISHES[answer.finish], answer.detail or answer.finish.value
    settings = turn.settings
    fields = settings.rung_fields.get(answer.rung)
    if fields is None:
        return Cause.INVALID_ANSWER, f"there is no plan {answer.rung!r}"
    try:
        values = check_values(answer.values or {}, fields=fields)
    except IncompleteAnswerError as error:
        return Cause.INCOMPLETE_ANSWER, str(error)
    except AnswerError as error:
        return Cause.INVALID_ANSWER, str(error)
    least = settings.min_confidence
    if least is not None and (answer.confidence is None or answer.confidence < least):
        return Cause.LOW_CONFIDENCE, f"{_sureness(answer)}, and min_confidence is {least:g}"
    targets = tuple(axis.source.read(values) for axis in settings.axes)
    rails = engaged_rails(settings.guardrails, turn.view)
    verdict = admit(settings.axes, targets, rails)
    if not verdict.refusal:
        return verdict
    known = admit(settings.axes, targets, [rail for rail in rails if truth(rail.when, turn.view)])
    return (Cause.OUT_OF_ENVELOPE, known.refusal) if known.refusal else None


def _sureness(answer: Answer) -> str:
    return "it does not say how sure it is" if answer.confidence is None else f"it is {answer.confidence:.1%} sure"


def _fail(turn: Turn, cycle: Cycle, cause: Cause, detail: str) -> None:
    """No usable answer on time. A forecast had said so: then nothing new has happened."""
    turn.ledger.note_failure()
    if cycle.forecast:
        return
    turn.ledger.strike(cause, detail)
    harmless = cause in _SAID and cycle.request is not None and cycle.request.shadow
    if TABLE[cause].drains and not harmless:
        turn.counters = replace(turn.counters, misses=turn.counters.misses + 1)
        turn.credit = max(0.0, turn.credit - 1)
        if turn.credit <= 0:
            limit = turn.settings.miss_limit
            turn.ledger.strike(Cause.MISSES_ACCUMULATED, f"{limit:g} more than on-time answers have made good")
    turn.settle()


def _discard(turn: Turn, answer: Answer, *, late: bool) -> None:
    counters = turn.counters
    if answer.request_id == turn.answered_id:
        why, counters = "repeated", replace(counters, repeated=counters.repeated + 1)
    elif late or answer.request_id == turn.given_up_id:
        why, counters = "late", replace(counters, late=counters.late + 1)
    elif answer.epoch != turn.epoch:
        why, counters = "foreign epoch", replace(counters, foreign=counters.foreign + 1)
    else:
        why, counters = "unknown request", replace(counters, unknown=counters.unknown + 1)
    turn.counters = counters
    detail = f"{why}: request {answer.request_id} of epoch {answer.epoch} (now {turn.epoch})"
    turn.events.append(event(turn.now_ns, EventName.DISCARDED, detail))
