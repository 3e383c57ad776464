"""The bound that is in force now, and whether requests keep to it: by the board's thermal level, and by what they take.

A level that calibration never reached has no bound: then the model is not trusted, unless the configuration stretches
the worst known one. When requests exceed their bound more often than it promises (``edgeguard.budget.drift``), it grows
by ``MARGIN`` first. When they exceed even that too often, the model is disarmed until requests, which go on as shadows,
have kept to it again.
"""

from __future__ import annotations

import math

from edgeguard.budget.drift import REPROOF, Drift
from edgeguard.clock import NS_PER_MS
from edgeguard.guard.events import EventName, event
from edgeguard.guard.interface import Promise
from edgeguard.guard.state import Cycle
from edgeguard.guard.turn import Turn
from edgeguard.types import Answer, BoardState, Cause, Finish, ThermalLevel

MARGIN = 1.5
"""What the bound in force is multiplied by while requests exceed the calibrated one too often."""

_CUT_OFF = (Finish.DEADLINE, Finish.ERROR)
"""What their requests would have taken will never be known."""


def level_asked(
    promise: Promise | None, board: BoardState | None, *, uncalibrated_factor: float | None
) -> ThermalLevel:
    """The level that a request names: the board's. The worker knows the factor too; where there is none, a request at
    a level without a bound is of the harshest that has one.
    """
    if promise is None:
        return ThermalLevel.NOMINAL
    return _known_level(promise, board) if uncalibrated_factor is None else _board_level(promise, board)


def bound_in_force_ns(
    promise: Promise | None, board: BoardState | None, *, doubt: Drift, uncalibrated_factor: float | None
) -> int | None:
    """What a request takes at most, as far as is known now; ``None`` without a calibration."""
    if promise is None:
        return None
    return math.ceil(_bound_ns(promise, board, uncalibrated_factor) * margin_in_force(doubt))


def margin_in_force(doubt: Drift) -> float:
    """How many times its bound a request is left now."""
    return MARGIN if doubt.alarmed else 1.0


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
    if _is_uncalibrated(promise, board) and turn.settings.uncalibrated_factor is None:
        detail = f"the board is {_board_level(promise, board).label}, and was measured up to {promise.reached.label}"
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
    ``bound_ns`` is what it was admitted with, if the worker says so: that of the rung that ran, at its level.

    A request that was not left its bound says nothing: it would be cut off too often in the best of health.
    """
    promise = turn.inputs.worker.promise
    if promise is None or cycle.forecast:
        return
    least_ns = _bound_ns(promise, turn.board, turn.settings.uncalibrated_factor) if bound_ns is None else bound_ns
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
    bound_ms = _bound_ns(promise, turn.board, turn.settings.uncalibrated_factor) / NS_PER_MS * margin
    return (
        f"{drift.exceeded} of the last {drift.known} requests took more than the bound of {bound_ms:.0f} ms, "
        f"and {promise.alpha * 100:g}% may; {REPROOF} in a row that do not will end this"
    )


def _board_level(promise: Promise, board: BoardState | None) -> ThermalLevel:
    return board.level if board is not None and promise.observed else ThermalLevel.NOMINAL


def _is_uncalibrated(promise: Promise, board: BoardState | None) -> bool:
    return _board_level(promise, board) >= len(promise.bounds_ns)


def _known_level(promise: Promise, board: BoardState | None) -> ThermalLevel:
    return min(_board_level(promise, board), promise.reached)


def _bound_ns(promise: Promise, board: BoardState | None, factor: float | None) -> float:
    """As calibrated; at a level that was never reached the worst known one times the factor, if there is one."""
    bound_ns = promise.bounds_ns[_known_level(promise, board)]
    return bound_ns * factor if factor is not None and _is_uncalibrated(promise, board) else bound_ns
