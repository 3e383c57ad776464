"""The calibration profile: what it says of differences, and that its file is read back or refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench_robot import made_profile
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeguard.budget import (
    Bound,
    PassCost,
    PassTimes,
    Profile,
    RequestTimes,
    Schedule,
    differences,
    fingerprint_digest,
    load_profile,
    parse_profile,
    profile_text,
)
from edgeguard.errors import ProfileError

FILE = Path("robot.profile.json")
NANOSECONDS = st.integers(1, 10**12)
POSITIVE = st.floats(1e-3, 1e9)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    n = draw(st.integers(0, 10))
    effective_n = draw(st.integers(0, n))
    sizes = draw(st.lists(st.integers(1, 500), min_size=1, max_size=8, unique=True))
    prices = draw(st.lists(POSITIVE, min_size=len(sizes), max_size=len(sizes)))
    samples = st.lists(NANOSECONDS, max_size=4).map(tuple)
    times = st.builds(PassTimes, k=st.integers(1, 500), p=st.integers(0, 9_999), elapsed_ns=samples)
    requests = st.builds(RequestTimes, latency_ns=NANOSECONDS, price_ns=NANOSECONDS, dearest_ns=NANOSECONDS)
    return Profile(
        kind=draw(st.sampled_from(["provisional", "quick", "full"])),
        created=draw(st.text()),
        fingerprint=draw(st.dictionaries(st.text(), st.text(), min_size=1, max_size=4)),
        schedule=Schedule(
            period_ns=draw(NANOSECONDS), skipped=draw(st.integers(0, 99)), dropped=draw(st.integers(0, 99)),
            busy=draw(POSITIVE),
        ),
        bound=Bound(
            bound_ns=draw(NANOSECONDS), score=draw(POSITIVE), rank=draw(st.integers(0, effective_n)),
            percentile=draw(st.floats(0, 1)), confidence=draw(st.floats(0, 1)), n=n, effective_n=effective_n,
            lag=draw(st.integers(1, max(1, n))),
        ),
        cost=PassCost(
            sizes=tuple(sorted(sizes)), prices_ns=tuple(sorted(prices)), p_reference=draw(st.integers(0, 9_999)),
            per_cached_ns=draw(st.floats(0, 1e6)), constant_ns=draw(st.integers(0, 10**9)),
        ),
        sweep=tuple(draw(st.lists(times, max_size=3))),
        requests=tuple(draw(st.lists(requests, min_size=n, max_size=n))),
    )  # fmt: skip


@given(profile=profiles())
@settings(max_examples=80, deadline=None)
def test_what_was_written_is_read_back_exactly(profile: Profile) -> None:
    assert parse_profile(profile_text(profile), file=FILE) == profile


def test_the_file_is_for_people_too(tmp_path: Path) -> None:
    text = profile_text(made_profile())
    assert '  "format": "edgeguard.calibration/1"' in text.splitlines()[1]
    assert '    "bound_ns": 15000000,' in text
    assert '    {"n_prompt": 2, "n_depth": 100, "samples_ns": [1900000, 2000000]},' in text
    assert json.loads(text)["cost"]["sizes"] == [2, 8]
    assert len(text.splitlines()) < 60  # a line a value, whatever the number of samples


def test_a_score_is_the_latency_over_the_price() -> None:
    assert RequestTimes(latency_ns=12, price_ns=8, dearest_ns=9).score == 1.5


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("format",), "edgeguard.calibration/2", "format: 'edgeguard.calibration/2' is not 'edgeguard.calibration/1'"),
        (("kind",), "thorough", "kind: 'thorough' is not one of provisional, quick, full"),
        (("created",), None, "created: None is not a text"),
        (("fingerprint",), {}, "fingerprint.(keys): none"),
        (("fingerprint", "model"), 7, "fingerprint.model: 7 is not a text"),
        (("schedule", "period_ns"), 0, "schedule.period_ns: 0 is out of bounds"),
        (("schedule", "busy"), -1, "schedule.busy: -1 is out of bounds"),
        (("bound", "bound_ns"), 0, "bound.bound_ns: 0 is out of bounds"),
        (("bound", "bound_ns"), 1.5, "bound.bound_ns: Decimal('1.5') is not a whole number"),
        (("bound", "score"), 0, "bound.score: 0 is out of bounds"),
        (("bound", "rank"), 301, "bound.rank: 301 is out of bounds: it must be between 0 and 300"),
        (("bound", "effective_n"), 301, "bound.effective_n: 301 is out of bounds"),
        (("bound", "percentile"), 99, "bound.percentile: 99 is out of bounds"),
        (("bound", "lag"), 0, "bound.lag: 0 is out of bounds"),
        (("bound", "level"), "hot", "bound.level: unknown key"),
        (("cost", "sizes"), [8, 2], "cost.sizes: [8, 2] must be at least one size, and rise"),
        (("cost", "sizes"), [], "cost.sizes: [] must be at least one size"),
        (("cost", "sizes"), [2, True], "cost.sizes: True is not a whole number of at least 1"),
        (("cost", "prices_ns"), [2e6, 1e6], "cost.prices_ns: [2000000.0, 1000000.0] must be positive"),
        (("cost", "prices_ns"), [2e6], "cost.prices_ns: 1 prices for 2 sizes"),
        (("cost", "prices_ns"), ["2", "3"], "cost.prices_ns: [2, 3] must be positive numbers"),
        (("cost", "per_cached_ns"), -0.1, "cost.per_cached_ns: -0.1 is out of bounds"),
        (("cost", "constant_ns"), -1, "cost.constant_ns: -1 is out of bounds"),
        (("sweep",), [{"n_prompt": 0, "n_depth": 0, "samples_ns": []}], "sweep[0].n_prompt: 0 is out of bounds"),
        (("sweep",), [{"n_prompt": 2, "n_depth": 0, "samples_ns": [-5]}], "sweep[0].samples_ns: -5 is not"),
        (("sweep",), [3], "sweep: [3] is not a list of tables"),
        (("requests", "price_ns"), [1], "requests.latency_ns: the columns must be equally long"),
        (("requests", "dearest_ns"), "x", "requests.dearest_ns: 'x' is not a list of whole numbers"),
        (("temperature",), 60, "temperature: unknown key"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_file_key_value_and_remedy(
    path: tuple[str, ...], value: Any, problem: str
) -> None:
    document = json.loads(profile_text(made_profile()))
    place = document
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    with pytest.raises(ProfileError) as caught:
        parse_profile(json.dumps(document), file=FILE)
    assert f"{FILE}: {problem}" in str(caught.value)
    assert "edgeguard calibrate" in str(caught.value)
    assert caught.value.exit_code == 7


@pytest.mark.parametrize("key", ["kind", "created", "fingerprint", "schedule", "bound", "cost", "requests"])
def test_a_missing_part_is_named(key: str) -> None:
    document = json.loads(profile_text(made_profile()))
    del document[key]
    with pytest.raises(ProfileError, match=rf"{FILE}: {key}.*(missing|none)"):
        parse_profile(json.dumps(document), file=FILE)


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"format": 1}', "[" * 100_000, "\0"])
def test_what_is_no_profile_at_all_is_refused(text: str) -> None:
    with pytest.raises(ProfileError, match=str(FILE)):
        parse_profile(text, file=FILE)


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="cannot be read"):
        load_profile(tmp_path / "none.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ProfileError, match="cannot be read"):
        load_profile(tmp_path / "binary.json")


def test_differences_say_what_was_and_what_is() -> None:
    then = {"power mode": "15W", "cpu model": "A", "threads": "2", "camera": "old"}
    now = {"threads": "4", "cpu model": "A", "power mode": "MAXN", "provider": "cpu"}
    assert differences(then, now) == [
        "power mode: 15W -> MAXN",
        "threads: 2 -> 4",
        "camera: old -> not known",
        "provider: not known -> cpu",
    ]
    assert made_profile().differences(made_profile().fingerprint) == []


def test_a_fingerprint_has_one_name_whatever_its_order() -> None:
    assert fingerprint_digest({"a": "1", "b": "2"}) == fingerprint_digest({"b": "2", "a": "1"})
    assert fingerprint_digest({"a": "1", "b": "2"}) != fingerprint_digest({"a": "12", "b": ""})
