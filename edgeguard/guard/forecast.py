"""The bound that is in force now, and whether requests keep to it: by the board's thermal level, and by what they take.

A level that calibration never reached has no bound: then the model is not trusted, unless the configuration stretches
the worst known one. When requests exceed their bound more often than it promises (``edgeguard.budget.drift``), it grows
by ``MARGIN`` first. When they exceed even that too often, the model is disarmed until requests, which go on as shadows,
have kept to it again.
"""

from __future__ import annotations

import math

from edgeguard.budget.drift import REPROOF, Drift
from edgeguard.clock import ms_from_ns
from edgeguard.guard.events import EventName, event
from edgeguard.guard.interface import Promise
from edgeguard.guard.state import Cycle
from edgeguard.guard.turn import Turn
from edgeguard.types import Answer, Cause, Finish, ThermalLevel

MARGIN = 1.5
"""What the bound in force is multiplied by while requests exceed the calibrated one too often."""

_CUT_OFF = (Finish.DEADLINE, Finish.ERROR)
"""What their requests would have taken will never be known."""


def level_of(turn: Turn) -> ThermalLevel:
    """The level whose bound is asked for: the board's, but none harsher than the harshest that has a bound."""
    promise = turn.inputs.worker.promise
    return ThermalLevel.NOMINAL if promise is None else min(_board_level(turn, promise), promise.reached)


def bound_in_force_ns(turn: Turn) -> int | None:
    """What a request takes at most, as far as is known now; ``None`` without a calibration."""
    promise = turn.inputs.worker.promise
    if promise is None:
        return None
    return math.ceil(promise.bounds_ns[level_of(turn)] * stretch_in_force(turn))


def stretch_in_force(turn: Turn) -> float:
    """How many times as long as calibrated the bound is now."""
    promise = turn.inputs.worker.promise
    stretch = 1.0 if promise is None else _stretch(turn, promise)
    return stretch * MARGIN if turn.doubt.alarmed else stretch


def watch_forecast(turn: Turn) -> None:
    """Heat, and a bound that no longer holds, as causes."""
    board, promise = turn.board, turn.inputs.worker.promise
    if board is not None and board is not turn.before.board:
        known = turn.before.board
        if board.level is not (ThermalLevel.NOMINAL if known is None else known.level):
            turn.events.append(event(turn.now_ns, EventName.LEVEL, f"{board.level.label}: {board.detail}"))
    if board is not None and board.critical:
        turn.ledger.hold(Cause.TEMPERATURE_CRITICAL, board.detail)
    if promise is None:
        return
    if _is_uncalibrated(turn, promise) and turn.settings.uncalibrated_factor is None:
        detail = f"the board is {_board_level(turn, promise).label}, and was measured up to {promise.reached.label}"
        turn.ledger.hold(Cause.LEVEL_UNCALIBRATED, detail)
    if turn.drift.alarmed:
        turn.ledger.hold(Cause.DRIFT_ALARM, _words(turn, turn.drift, promise, margin=MARGIN))


def note_answer(turn: Turn, cycle: Cycle, answer: Answer) -> None:
    """The answer has come before it was too late. One that was not admitted has taken no time that would tell."""
    if answer.finish in _CUT_OFF:
        _note(turn, cycle, took_ns=None, bound_ns=None)
    elif answer.finish is not Finish.INFEASIBLE:
        _note(turn, cycle, took_ns=turn.now_ns - cycle.released_ns, bound_ns=answer.bound_ns)


def note_cut_off(turn: Turn, cycle: Cycle) -> None:
    """No answer came. Of several in a row the first counts: a worker that says nothing hangs, a cause of its own."""
    if turn.silence_ns == 0:
        _note(turn, cycle, took_ns=None, bound_ns=None)


def _note(turn: Turn, cycle: Cycle, *, took_ns: int | None, bound_ns: int | None) -> None:
    """Feed the detectors. ``took_ns`` is ``None`` for a request that was cut off before its time was known: a miss.

    A request that was not left its bound says nothing: it would be cut off too often in the best of health.
    """
    promise = turn.inputs.worker.promise
    if promise is None or cycle.forecast:
        return
    bound_ns = promise.bounds_ns[level_of(turn)] if bound_ns is None else bound_ns
    least_ns = bound_ns * _stretch(turn, promise)
    doubted = turn.doubt.alarmed
    turn.doubt = _after(turn, turn.doubt, promise, exceeded=took_ns is None or took_ns > least_ns)
    turn.drift = _after(turn, turn.drift, promise, exceeded=took_ns is None or took_ns > least_ns * MARGIN)
    if turn.doubt.alarmed is not doubted:
        words = _words(turn, turn.doubt, promise) if turn.doubt.alarmed else "as calibrated again"
        turn.events.append(event(turn.now_ns, EventName.MARGIN, words))
    if turn.drift.alarmed and Cause.DRIFT_ALARM not in turn.ledger:
        turn.ledger.strike(Cause.DRIFT_ALARM, _words(turn, turn.drift, promise, margin=MARGIN))
        turn.settle()


def _after(turn: Turn, drift: Drift, promise: Promise, *, exceeded: bool) -> Drift:
    alarm_at = turn.settings.alarm_at
    return drift.after(exceeded=exceeded, alpha=promise.alpha, lag=promise.lag, alarm_at=alarm_at)


def _words(turn: Turn, drift: Drift, promise: Promise, *, margin: float = 1.0) -> str:
    bound_ms = ms_from_ns(promise.bounds_ns[level_of(turn)]) * _stretch(turn, promise) * margin
    return (
        f"{drift.exceeded} of the last {drift.known} requests took more than the bound of {bound_ms:.0f} ms, "
        f"and {promise.alpha * 100:g}% may; {REPROOF} in a row that do not will end this"
    )


def _board_level(turn: Turn, promise: Promise) -> ThermalLevel:
    return turn.board.level if turn.board is not None and promise.observed else ThermalLevel.NOMINAL


def _is_uncalibrated(turn: Turn, promise: Promise) -> bool:
    return _board_level(turn, promise) >= len(promise.bounds_ns)


def _stretch(turn: Turn, promise: Promise) -> float:
    factor = turn.settings.uncalibrated_factor
    return factor if factor is not None and _is_uncalibrated(turn, promise) else 1.0
