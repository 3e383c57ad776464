"""The file form of a calibration profile: ``edgeguard.calibration/1``, JSON, validated on reading.

Durations are nanoseconds. The rows of the sweep have ``llama-bench``'s names (``n_prompt`` new tokens at ``n_depth``
cached ones, ``samples_ns``), so that rows can be joined. A file that cannot be used is a ``ProfileError`` that names
file, key, value and remedy. Writes no file: ``edgeguard.bench.profile_store`` does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from edgeguard.budget.cost import PassCost, PassTimes
from edgeguard.budget.profile import KINDS, Bound, Profile, RequestTimes, Schedule
from edgeguard.config.reader import Problems, Table
from edgeguard.errors import ProfileError

FORMAT = "edgeguard.calibration/1"

_REMEDY = "measure again with: edgeguard calibrate CONFIG"
_MOST = 2**63 - 1


def load_profile(path: Path) -> Profile:
    """The profile in a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(f"{path}: cannot be read ({error}); {_REMEDY}") from error
    return parse_profile(text, file=path)


def parse_profile(text: str, *, file: Path) -> Profile:
    """The profile in ``text``; ``file`` is for the messages."""
    try:
        document = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise ProfileError(f"{file}: not JSON ({error}); {_REMEDY}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        found = document.get("format") if isinstance(document, dict) else type(document).__name__
        raise ProfileError(f"{file}: format: {found!r} is not {FORMAT!r}; {_REMEDY}")
    problems = Problems(str(file))
    root = Table(document, path="", problems=problems)
    root.text("format")
    profile = Profile(
        kind=root.text("kind", among=KINDS),
        created=root.text("created"),
        fingerprint=_read_fingerprint(root.table("fingerprint")),
        schedule=_read_schedule(root.table("schedule")),
        bound=_read_bound(root.table("bound")),
        cost=_read_cost(root.table("cost")),
        sweep=tuple(_read_pass_times(table) for table in root.tables("sweep")),
        requests=_read_requests(root.table("requests")),
    )
    root.close()
    if problems.found:
        raise ProfileError("\n".join((*problems.found, f"{file}: {_REMEDY}")))
    return profile


def profile_text(profile: Profile) -> str:
    """The file's content: one line a value, so that people can read it and ``diff`` can compare it."""
    requests = profile.requests
    return _lines(
        {
            "format": FORMAT,
            "kind": profile.kind,
            "created": profile.created,
            "fingerprint": dict(profile.fingerprint),
            "schedule": _columns(profile.schedule),
            "bound": _columns(profile.bound),
            "cost": _columns(profile.cost),
            "sweep": [
                {"n_prompt": row.k, "n_depth": row.p, "samples_ns": list(row.elapsed_ns)} for row in profile.sweep
            ],
            "requests": {name: [getattr(one, name) for one in requests] for name in RequestTimes.__dataclass_fields__},
        }
    )


def _read_fingerprint(table: Table) -> dict[str, str]:
    if not table.names():
        table.refuse("(keys)", "none; a profile without a fingerprint belongs to no machine")
    return {name: table.text(name) for name in table.names()}


def _read_schedule(table: Table) -> Schedule:
    schedule = Schedule(
        period_ns=table.integer("period_ns", low=1, high=_MOST),
        skipped=table.integer("skipped", low=0, high=_MOST),
        dropped=table.integer("dropped", low=0, high=_MOST),
        busy=table.number("busy", low=0),
    )
    table.close()
    return schedule


def _read_bound(table: Table) -> Bound:
    n = table.integer("n", low=0, high=_MOST)
    effective_n = table.integer("effective_n", low=0, high=n)
    bound = Bound(
        bound_ns=table.integer("bound_ns", low=1, high=_MOST),
        score=table.number("score", low=1e-6),
        rank=table.integer("rank", low=0, high=effective_n),
        percentile=table.number("percentile", low=0, high=1),
        confidence=table.number("confidence", low=0, high=1),
        n=n,
        effective_n=effective_n,
        lag=table.integer("lag", low=1, high=max(1, n)),
    )
    table.close()
    return bound


def _read_cost(table: Table) -> PassCost:
    sizes = _read_integers(table, "sizes", low=1)
    prices = table.raw("prices_ns", kind=list, name="a list of numbers")
    prices_ns = tuple(float(price) for price in prices if _is_number(price))
    if len(prices_ns) != len(prices) or any(price <= 0 for price in prices_ns) or list(prices_ns) != sorted(prices_ns):
        table.refuse("prices_ns", f"{_short(prices)} must be positive numbers that never fall")
    if not sizes or list(sizes) != sorted(set(sizes)):
        table.refuse("sizes", f"{_short(sizes)} must be at least one size, and rise")
    if len(sizes) != len(prices):
        table.refuse("prices_ns", f"{len(prices)} prices for {len(sizes)} sizes")
    cost = PassCost(
        sizes=sizes,
        prices_ns=prices_ns,
        p_reference=table.integer("p_reference", low=0, high=_MOST),
        per_cached_ns=table.number("per_cached_ns", low=0),
        constant_ns=table.integer("constant_ns", low=0, high=_MOST),
    )
    table.close()
    return cost


def _read_pass_times(table: Table) -> PassTimes:
    times = PassTimes(
        k=table.integer("n_prompt", low=1, high=_MOST),
        p=table.integer("n_depth", low=0, high=_MOST),
        elapsed_ns=_read_integers(table, "samples_ns", low=1),
    )
    table.close()
    return times


def _read_requests(table: Table) -> tuple[RequestTimes, ...]:
    columns = {name: _read_integers(table, name, low=1) for name in RequestTimes.__dataclass_fields__}
    table.close()
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        table.refuse("latency_ns", f"the columns must be equally long, not {lengths}")
        return ()
    return tuple(RequestTimes(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True))


def _read_integers(table: Table, key: str, *, low: int) -> tuple[int, ...]:
    values = table.raw(key, kind=list, name="a list of whole numbers")
    wrong = [value for value in values if not _is_whole(value, low=low)]
    if wrong:
        table.refuse(key, f"{wrong[0]!r} is not a whole number of at least {low}")
    return () if wrong else tuple(values)


def _is_whole(value: object, *, low: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= low


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) and -_MOST < value < _MOST


def _short(values: Sequence[object]) -> str:
    text = ", ".join(map(str, values[:8]))
    return f"[{text}, …]" if len(values) > 8 else f"[{text}]"


def _columns(data: Any) -> dict[str, Any]:
    """A flat dataclass as its names and values."""
    return {name: getattr(data, name) for name in data.__dataclass_fields__}


def _lines(document: Mapping[str, Any]) -> str:
    def entry(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    def block(value: Any) -> str:
        if isinstance(value, dict):
            return "{\n" + ",\n".join(f"    {entry(name)}: {entry(one)}" for name, one in value.items()) + "\n  }"
        if isinstance(value, list):
            return "[\n" + ",\n".join(f"    {entry(one)}" for one in value) + "\n  ]"
        return entry(value)

    return "{\n" + ",\n".join(f"  {entry(name)}: {block(value)}" for name, value in document.items()) + "\n}\n"
