"""What the guard, the worker, the board's watch and the caller say to each other: messages of ``edgeguard.channel``.

==========  ========================================  ===================================================
direction   message                                   meaning
==========  ========================================  ===================================================
to worker   ``request``                               answer this observation by ``answer_by_ns``
to worker   ``cancel`` request_id                     nobody waits for this one any more
to worker   ``sweep`` sizes, repeats, depths, rung    time passes of that rung's model (calibration only)
from worker ``warming`` phase, done, total            how far the start has come
from worker ``ready`` identity, prefix_tokens, …      warmed up; ``bound_ns`` of the typical request if known
from worker ``failed`` error, exit_code               it will not become ready, and why
from worker ``answer``                                the reply to one request
from worker ``swept`` rows                            [{k, p, elapsed_ns: […]}]
from board  ``board``                                 one look at the board
to caller   ``failed`` kind, error, problems          what kept the guard from starting
==========  ========================================  ===================================================

Reading is total: a message of the wrong shape yields ``None``, because the worker is not trusted with the guard's life.
It looks up and compares types where it can: these lines run after each pass, which has taken the interpreter's own code
out of the caches, so that a cache line more costs more than a hundred instructions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, TypeGuard

from edgeguard import errors
from edgeguard.channel import Message
from edgeguard.errors import ConfigError, EdgeguardError
from edgeguard.types import Answer, BoardState, Finish, Observation, Pass, Request, ThermalLevel, Value

DETAIL_CHARS = 500
"""Of what anybody says in words: it goes into every record while its cause holds."""

_LEVELS = {level.value: level for level in ThermalLevel}
_FINISHES = {finish.value: finish for finish in Finish}
_SCALARS = frozenset({str, int, float, bool, Decimal, type(None)})


def request_message(request: Request, *, admit: bool = True) -> Message:
    """``admit`` false: answer whatever the bound says (calibration measures what admission would refuse)."""
    return {
        "type": "request",
        "request_id": request.request_id,
        "epoch": request.epoch,
        "answer_by_ns": request.answer_by_ns,
        "shadow": request.shadow,
        "level": request.level,
        "margin": request.margin,
        "admit": admit,
        **observation_message(request.observation),
    }


def read_request(message: Mapping[str, Any]) -> tuple[Request, bool] | None:
    """The request and whether the bound decides about it."""
    observation = read_observation(message)
    numbers = _integers(message, ("request_id", "epoch", "answer_by_ns"))
    if observation is None or numbers is None:
        return None
    request_id, epoch, answer_by_ns = numbers
    level, margin = message.get("level", 0), message.get("margin", 1)
    if not _is_integer(level) or level not in _LEVELS or not _is_factor(margin):
        return None
    request = Request(
        request_id=request_id,
        epoch=epoch,
        observation=observation,
        answer_by_ns=answer_by_ns,
        shadow=message.get("shadow") is True,
        level=_LEVELS[level],
        margin=float(margin),
    )
    return request, message.get("admit") is not False


def failure_message(error: EdgeguardError) -> Message:
    problems = list(error.problems) if isinstance(error, ConfigError) else []
    return {"type": "failed", "kind": type(error).__name__, "error": str(error), "problems": problems}


def read_failure(message: Mapping[str, Any]) -> EdgeguardError:
    """The error, as the class it was."""
    kind = getattr(errors, str(message.get("kind")), EdgeguardError)
    if issubclass(kind, ConfigError):
        return kind(message.get("problems") or str(message.get("error")))
    return kind(str(message.get("error"))) if issubclass(kind, EdgeguardError) else EdgeguardError(str(message))


def observation_message(observation: Observation) -> Message:
    return {
        "captured_ns": observation.captured_ns,
        "fields": dict(observation.fields),
        "ages_ns": dict(observation.ages_ns),
    }


def read_observation(message: Mapping[str, Any]) -> Observation | None:
    fields, captured_ns, ages_ns = message.get("fields"), message.get("captured_ns"), message.get("ages_ns", {})
    if not _is_flat(fields) or not _is_integer(captured_ns) or not isinstance(ages_ns, dict):
        return None
    if not all(_is_integer(age_ns) for age_ns in ages_ns.values()):
        return None
    return Observation(fields=fields, captured_ns=captured_ns, ages_ns=ages_ns)


def answer_message(answer: Answer) -> Message:
    return {
        "type": "answer",
        "request_id": answer.request_id,
        "epoch": answer.epoch,
        "finish": answer.finish,
        "values": None if answer.values is None else dict(answer.values),
        "detail": answer.detail[:DETAIL_CHARS],
        "rung": answer.rung,
        "bound_ns": answer.bound_ns,
        "times_ns": [answer.started_ns, answer.finished_ns, answer.tokenise_ns, answer.parse_ns],
        "passes": [[one.k, one.p, one.elapsed_ns] for one in answer.passes],
        "confidence": answer.confidence,
        "draft": [answer.drafted_tokens, answer.accepted_tokens],
    }


def read_answer(message: Mapping[str, Any]) -> Answer | None:
    """An answer as the worker states it; its values are not yet checked against the schema."""
    numbers, times_ns = _integers(message, ("request_id", "epoch")), message.get("times_ns")
    values, bound_ns, passes = message.get("values"), message.get("bound_ns"), message.get("passes")
    confidence, draft, finish = message.get("confidence"), message.get("draft", [0, 0]), message.get("finish")
    if numbers is None or not isinstance(finish, str) or finish not in _FINISHES:
        return None
    if not (values is None or _is_flat(values)):
        return None
    if not _is_integers(times_ns, length=4) or not (bound_ns is None or _is_integer(bound_ns)):
        return None
    if not isinstance(passes, list) or not all(_is_integers(one, length=3) for one in passes):
        return None
    if not (confidence is None or _is_share(confidence)) or not _is_integers(draft, length=2):
        return None
    return Answer(
        request_id=numbers[0],
        epoch=numbers[1],
        finish=_FINISHES[finish],
        values=values,
        detail=str(message.get("detail", ""))[:DETAIL_CHARS],
        rung=str(message.get("rung", ""))[:DETAIL_CHARS],
        bound_ns=bound_ns,
        started_ns=times_ns[0],
        finished_ns=times_ns[1],
        tokenise_ns=times_ns[2],
        parse_ns=times_ns[3],
        passes=tuple(Pass(k=k, p=p, elapsed_ns=elapsed_ns) for k, p, elapsed_ns in passes),
        confidence=None if confidence is None else float(confidence),
        drafted_tokens=draft[0],
        accepted_tokens=draft[1],
    )


def board_message(state: BoardState) -> Message:
    return {
        "type": "board",
        "level": state.level,
        "observed": state.observed,
        "critical": state.critical,
        "hottest_c": state.hottest_c,
        "read_ns": state.read_ns,
        "detail": state.detail[:DETAIL_CHARS],
    }


def read_board(message: Mapping[str, Any]) -> BoardState | None:
    """One look at the board, as whoever watches it states it."""
    level, hottest_c, read_ns = message.get("level"), message.get("hottest_c"), message.get("read_ns")
    if not _is_integer(level) or level not in _LEVELS or not _is_integer(read_ns):
        return None
    if not (hottest_c is None or _is_integer(hottest_c) or isinstance(hottest_c, (float, Decimal))):
        return None
    return BoardState(
        level=_LEVELS[level],
        observed=message.get("observed") is True,
        critical=message.get("critical") is True,
        hottest_c=None if hottest_c is None else float(hottest_c),
        read_ns=read_ns,
        detail=str(message.get("detail", "")),
    )


def _is_flat(value: object) -> TypeGuard[dict[str, Value]]:
    return isinstance(value, dict) and _SCALARS.issuperset(map(type, value.values()))


def _is_integer(value: object) -> TypeGuard[int]:
    """Of 64 bits: times and counts are, and arithmetic with floats fails on what is beyond every float."""
    return type(value) is int and -(1 << 63) <= value < 1 << 63


def _is_factor(value: object) -> TypeGuard[int | float | Decimal]:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) and 1 <= value < math.inf


def _is_share(value: object) -> bool:
    """From 0 to 1; the channel reads what is no whole number as a decimal."""
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) and 0 <= value <= 1


def _is_integers(value: object, *, length: int) -> TypeGuard[list[int]]:
    return isinstance(value, list) and len(value) == length and all(map(_is_integer, value))


def _integers(message: Mapping[str, Any], names: tuple[str, ...]) -> list[int] | None:
    values = [message.get(name) for name in names]
    return values if _is_integers(values, length=len(names)) else None
