"""The file form of a calibration profile: ``edgeguard.calibration/1``, JSON, validated on reading.

Durations are nanoseconds. Sweep and prices are ``profile_prices``; requests are columns, one line each. A file that
cannot be used is a ``ProfileError`` that names file, key, value and remedy. Writes no file:
``bench.calibration.profile_store`` does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from edgeguard.budget.profile import KINDS, THERMAL, Bound, Profile, Schedule, Soak
from edgeguard.budget.profile_columns import LEVELS, MOST, level_of, named_values, read_requests, request_columns
from edgeguard.budget.profile_prices import other_model, read_cost, read_other, read_pass_times, sweep_row
from edgeguard.config.reader import Problems, Table
from edgeguard.errors import ProfileError

FORMAT = "edgeguard.calibration/1"

_REMEDY = "measure again with: edgeguard calibrate CONFIG"

MOST_SHOWN = 5
"""Problems that are listed: nobody mends a profile by hand."""


def load_profile(path: Path) -> Profile:
    """The profile in a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ProfileError(
            f"{path}: cannot be read ({error.strerror}); measure with: edgeguard calibrate CONFIG --out {path}"
        ) from error
    except UnicodeDecodeError as error:
        raise ProfileError(f"{path}: cannot be read (it is no text); {_REMEDY}") from error
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
        thermal=root.text("thermal", among=THERMAL),
        margin=root.number("margin", low=1, high=10),
        fingerprint=_read_fingerprint(root.table("fingerprint")),
        placement=root.text("placement", default=""),
        schedule=_read_schedule(root.table("schedule")),
        soak=_read_soak(root.table("soak")) if "soak" in root else None,
        bounds=tuple(_read_bound(table) for table in root.tables("bounds")),
        cost=read_cost(root.table("cost")),
        sweep=tuple(read_pass_times(table) for table in root.tables("sweep")),
        others=tuple(read_other(table) for table in root.tables("others")),
        requests=read_requests(root.table("requests")),
    )
    cells = [(bound.level, bound.rung, bound.drafted) for bound in profile.bounds]
    if not cells or len(set(cells)) < len(cells):
        root.refuse("bounds", "there must be at least one, and one only for each level, rung and way of decoding")
    root.close()
    if problems.found:
        more = len(problems.found) - MOST_SHOWN
        rest = f"and {more} more: written by another version? " if more > 0 else ""
        raise ProfileError("\n".join((*problems.found[:MOST_SHOWN], f"{file}: {rest}{_REMEDY}")))
    return profile


def profile_text(profile: Profile) -> str:
    """The file's content: one line a value, so that people can read it and ``diff`` can compare it."""
    return _lines(
        {
            "format": FORMAT,
            "kind": profile.kind,
            "created": profile.created,
            "thermal": profile.thermal,
            "margin": profile.margin,
            "fingerprint": dict(profile.fingerprint),
            **({"placement": profile.placement} if profile.placement else {}),
            "schedule": named_values(profile.schedule),
            **({} if profile.soak is None else {"soak": named_values(profile.soak)}),
            "bounds": [{**named_values(bound), "level": bound.level.label} for bound in profile.bounds],
            "cost": named_values(profile.cost),
            "sweep": [sweep_row(row) for row in profile.sweep],
            **({"others": [other_model(one) for one in profile.others]} if profile.others else {}),
            "requests": request_columns(profile.requests),
        }
    )


def _read_fingerprint(table: Table) -> dict[str, str]:
    if not table.names():
        table.refuse("(keys)", "none; a profile without a fingerprint belongs to no machine")
    return {name: table.text(name) for name in table.names()}


def _read_schedule(table: Table) -> Schedule:
    schedule = Schedule(
        period_ns=table.integer("period_ns", low=1, high=MOST),
        skipped=table.integer("skipped", low=0, high=MOST),
        dropped=table.integer("dropped", low=0, high=MOST),
        busy=table.number("busy", low=0),
        workers=table.integer("workers", low=1, high=MOST),
        beside=table.text("beside"),
    )
    table.close()
    return schedule


def _read_soak(table: Table) -> Soak:
    soak = Soak(
        elapsed_ns=table.integer("elapsed_ns", low=0, high=MOST),
        heater=table.text("heater"),
        latency_flat=table.flag("latency_flat"),
        temperature_flat=table.flag("temperature_flat") if "temperature_flat" in table else None,
        start_c=table.optional_number("start_c"),
        end_c=table.optional_number("end_c"),
    )
    table.close()
    return soak


def _read_bound(table: Table) -> Bound:
    n = table.integer("n", low=0, high=MOST)
    effective_n = table.integer("effective_n", low=0, high=n)
    bound = Bound(
        level=level_of(table.text("level", among=LEVELS)),
        rung=table.text("rung"),
        drafted=table.flag("drafted"),
        bound_ns=table.integer("bound_ns", low=1, high=MOST),
        score=table.number("score", low=1e-6),
        rank=table.integer("rank", low=0, high=effective_n),
        percentile=table.number("percentile", low=0, high=1),
        confidence=table.number("confidence", low=0, high=1),
        n=n,
        effective_n=effective_n,
        lag=table.integer("lag", low=1, high=max(1, n)),
        ljung_box_p=table.optional_number("ljung_box_p"),
        gpd_shape=table.optional_number("gpd_shape"),
    )
    table.close()
    return bound


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
