"""Turns what a caller knows into an ``Observation`` with a monotonic time of capture; refuses other clocks' stamps."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from numbers import Integral, Real

from edgeguard.channel import PEER_LIMIT_BYTES, encode
from edgeguard.clock import NS_PER_MS, NS_PER_S, ms_from_ns, ns_from_ms
from edgeguard.errors import ObservationError
from edgeguard.messages import observation_message
from edgeguard.types import Observation, Value

FUTURE_TOLERANCE_NS = NS_PER_MS
FOREIGN_AGE_NS = 3_600 * NS_PER_S
"""Older than an hour is no stale observation but another clock's stamp."""

_CONVERSION = (
    "give age_ms instead, or convert on the machine that stamped it: "
    "captured_ns = time.monotonic_ns() - (time.time_ns() - stamp_ns)"
)


def observe(
    fields: Mapping[str, Value],
    *,
    now_ns: int,
    age_ms: float | None = None,
    captured_ns: int | None = None,
    field_ages_ms: Mapping[str, float] | None = None,
) -> Observation:
    """An observation of ``fields``, captured ``age_ms`` ago, or at ``captured_ns``, or now."""
    if age_ms is not None and captured_ns is not None:
        raise ObservationError("age_ms and captured_ns are both given; an observation has one time of capture")
    if captured_ns is None:
        captured_ns = now_ns - _age_ns("age_ms", 0.0 if age_ms is None else age_ms)
    elif isinstance(captured_ns, bool) or not isinstance(captured_ns, int):
        raise ObservationError(f"captured_ns = {captured_ns!r} is not an integer of nanoseconds; {_CONVERSION}")
    if captured_ns <= 0:
        raise ObservationError(f"captured_ns = {captured_ns}: a missing stamp is never taken for now; {_CONVERSION}")
    if captured_ns > now_ns + FUTURE_TOLERANCE_NS:
        raise ObservationError(
            f"captured_ns = {captured_ns} lies {ms_from_ns(captured_ns - now_ns):,.0f} ms in the future of this "
            f"machine's monotonic clock ({now_ns}): it is another clock's stamp; {_CONVERSION}"
        )
    if captured_ns < now_ns - FOREIGN_AGE_NS:
        raise ObservationError(
            f"captured_ns = {captured_ns} is more than an hour old by this machine's monotonic clock ({now_ns}): it is "
            f"another clock's stamp; {_CONVERSION}"
        )
    ages_ns = {name: _field_age_ns(name, age) for name, age in (field_ages_ms or {}).items()}
    values = {name: plain_value(name, value) for name, value in fields.items()}
    observation = Observation(fields=values, captured_ns=min(captured_ns, now_ns), ages_ns=ages_ns)
    n_bytes = len(encode({"type": "observation", **observation_message(observation)}))
    if n_bytes > PEER_LIMIT_BYTES:
        longest = max(values, key=lambda name: len(str(values[name])))
        raise ObservationError(
            f"an observation of {n_bytes} bytes; at most {PEER_LIMIT_BYTES} are taken, and {longest} is its longest "
            "field: shorten it"
        )
    return observation


def plain_value(name: str, value: object) -> Value:
    """As the types that travel; numpy's numbers, which are registered as what they are, become Python's."""
    if value is None or isinstance(value, (str, bool, int, float, Decimal)):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    raise ObservationError(f"{name} is a {kind}; a field is a text, a number, True or False, or None for no reading")


def _age_ns(name: str, age_ms: float) -> int:
    if not 0 <= age_ms < ms_from_ns(FOREIGN_AGE_NS):  # written so that NaN fails too
        raise ObservationError(f"{name} = {age_ms!r} is not an age in milliseconds (0 up to an hour)")
    return ns_from_ms(age_ms)


def _field_age_ns(name: str, age_ms: float) -> int:
    """An order may be a day old, which is no other clock's stamp; no field's ``max_age_ms`` is more than an hour."""
    return FOREIGN_AGE_NS + 1 if age_ms > ms_from_ns(FOREIGN_AGE_NS) else _age_ns(f"field_ages_ms[{name!r}]", age_ms)
