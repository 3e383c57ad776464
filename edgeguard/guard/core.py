"""One step of the guard, pure: state, time and inputs in; the next state and what is to be done out.

Read ``step`` from top to bottom: it is the story of one tick. Look at everything and note the causes that hold; hear
the operator; let the mode follow; judge the answer, or give up in time; release the newest observation; move. The order
is the policy: whatever speaks against the model is seen before the model's answer is.

Called at ``Effects.wake_ns`` at the latest and whenever something arrives, in virtual time as in real time. It never
fails: there is a set-point for every state, and a decision for every released observation by its deadline.
"""

from __future__ import annotations

from dataclasses import replace

from edgeguard.guard.cycle import hear_answers, note_absence, release, watch_deadline
from edgeguard.guard.events import EventName, event
from edgeguard.guard.forecast import watch_forecast
from edgeguard.guard.interface import Effects, Inputs
from edgeguard.guard.moving import Intent, intend, move, rate_limited
from edgeguard.guard.settings import Settings
from edgeguard.guard.state import GuardState
from edgeguard.guard.turn import Closing, Ruling, Turn
from edgeguard.guard.watch import watch_clock, watch_link, watch_observations, watch_rules, watch_worker
from edgeguard.types import Cause, CycleRecord, Decision, Grade, Mode, OperatorWord, SetPoint, Source


def step(settings: Settings, state: GuardState, now_ns: int, inputs: Inputs) -> tuple[GuardState, Effects]:
    """The next state and the effects of ``inputs`` at ``now_ns`` (monotonic)."""
    back_ns = state.now_ns - now_ns
    turn = Turn(settings, state if back_ns <= 0 else state.with_clock_set_back(now_ns), now_ns, inputs)
    watch_clock(turn, back_ns=back_ns)
    watch_link(turn)
    watch_worker(turn)
    watch_forecast(turn)
    watch_observations(turn)
    watch_rules(turn)
    for cause, detail in inputs.conditions:
        turn.ledger.hold(cause, detail)
    turn.ledger.reconcile()
    hear_operator(turn)
    turn.settle()
    hear_answers(turn)
    watch_deadline(turn)
    release(turn)
    note_absence(turn)
    return _finish(turn)


def hear_operator(turn: Turn) -> None:
    """*Stop* takes effect in this step and beats a re-arm beside it. *Re-arm* is an edge and moves nothing itself."""
    words, ledger = turn.inputs.operator, turn.ledger
    if OperatorWord.STOP in words:
        ledger.strike(Cause.OPERATOR_STOP, "said by the operator")
    if OperatorWord.REARM not in words:
        return
    if turn.mode is not Mode.LATCHED:
        again = Cause.WORKER_UNAVAILABLE in ledger  # whoever carries this out tries it again
        name, detail = (
            (EventName.REARMED, "the worker is tried again") if again else (EventName.REARM_REFUSED, "not latched")
        )
        turn.events.append(event(turn.now_ns, name, detail))
        return
    still = ledger.rearm()
    if still:
        detail = "still holds: " + ", ".join(cause.value for cause in still)
        turn.events.append(event(turn.now_ns, EventName.REARM_REFUSED, detail))
        return
    ledger.strike(Cause.UNPROVEN, "re-armed")
    turn.renew, turn.latch = True, False
    turn.events.append(event(turn.now_ns, EventName.REARMED, "to be proven anew"))


def _finish(turn: Turn) -> tuple[GuardState, Effects]:
    """Send what is due and write the record."""
    send, record, cycle = None, None, turn.cycle
    if turn.urgent or turn.now_ns >= turn.next_tick_ns:
        turn.next_tick_ns = turn.now_ns + turn.settings.tick_ns
        intent = intend(turn)
        set_point = move(turn, intent)
        send = set_point if turn.inputs.link.up else None
        if turn.foretold is not None and cycle is not None:
            cycle = replace(cycle, decided=_decision(turn, turn.foretold, intent, set_point))
        if turn.closing is not None:
            record = _record(turn, turn.closing, intent, set_point)
    wake_ns = turn.next_tick_ns
    if cycle is not None and cycle.request is not None:
        wake_ns = min(wake_ns, cycle.request.answer_by_ns)
    effects = Effects(
        send=send,
        latch=turn.latch,
        request=turn.request,
        cancel=turn.cancel,
        restart_worker=turn.restart_worker,
        record=record,
        events=tuple(turn.events),
        wake_ns=wake_ns,
    )
    state = GuardState(
        now_ns=turn.now_ns,
        mode=turn.mode,
        epoch=turn.epoch,
        ledger=turn.ledger.standing,
        credit=turn.credit,
        cycle=cycle,
        arrival=turn.arrival,
        sight=turn.sight,
        engaged_bands=turn.engaged_bands,
        engagement=turn.engagement,
        motion=turn.motion,
        rule=turn.rule,
        stop_said=turn.stop_said,
        due_ns=turn.due_ns,
        last_arrival_ns=turn.last_arrival_ns,
        absent_due_ns=turn.absent_due_ns,
        next_request_id=turn.next_request_id,
        answered_id=turn.answered_id,
        given_up_id=turn.given_up_id,
        silence_ns=turn.silence_ns,
        warming_ns=turn.warming_ns,
        worker_phase=turn.inputs.worker.phase,
        session=turn.session,
        session_since_ns=turn.session_since_ns,
        at_rest=turn.at_rest,
        board=turn.board,
        doubt=turn.doubt,
        drift=turn.drift,
        boottime_offset_ns=turn.inputs.boottime_offset_ns,
        wake_ns=wake_ns,
        next_tick_ns=turn.next_tick_ns,
        counters=turn.counters,
    )
    return state, effects


def _decision(turn: Turn, ruling: Ruling, intent: Intent, set_point: SetPoint) -> Decision:
    by_model = ruling.source is Source.MODEL
    return Decision(
        source=ruling.source,
        mode=ruling.mode,
        grade=Grade.NONE if by_model else max(ruling.grade, intent.grade),
        causes=ruling.causes,
        detail=ruling.detail,
        rule=turn.rule,
        set_point=set_point,
        decided_ns=turn.now_ns,
        adjusted=intent.adjusted + rate_limited(turn, intent, set_point),
    )


def _record(turn: Turn, closing: Closing, intent: Intent, set_point: SetPoint) -> CycleRecord:
    cycle = closing.cycle
    decision = cycle.decided or _decision(turn, closing.ruling, intent, set_point)
    counters = turn.counters
    if decision.source is Source.MODEL:
        turn.counters = replace(counters, model=counters.model + 1)
    else:
        turn.counters = replace(counters, safe=counters.safe + 1)
    return CycleRecord(
        cycle=cycle.number,
        epoch=closing.epoch,
        mode=decision.mode,
        observation=cycle.observation,
        released_ns=cycle.released_ns,
        budget=cycle.budget,
        answer=closing.answer,
        decision=decision,
        shadow=cycle.request is not None and cycle.request.shadow,
    )
