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
    Soak,
    differences,
    fingerprint_digest,
    load_profile,
    parse_profile,
    profile_text,
)
from edgeguard.budget.cost import OtherModel
from edgeguard.errors import ProfileError
from edgeguard.types import ThermalLevel

FILE = Path("robot.profile.json")
NANOSECONDS = st.integers(1, 10**12)
POSITIVE = st.floats(1e-3, 1e9)


LEVELS = st.sampled_from(ThermalLevel)
SOAKS = st.builds(
    Soak, elapsed_ns=NANOSECONDS, heater=st.text(), latency_flat=st.booleans(),
    temperature_flat=st.none() | st.booleans(), start_c=st.none() | st.floats(-40, 99), end_c=st.none() | POSITIVE,
)  # fmt: skip
REQUESTS = st.builds(
    RequestTimes, latency_ns=NANOSECONDS, price_ns=NANOSECONDS, dearest_ns=NANOSECONDS, at_ns=st.integers(0, 10**15),
    level=LEVELS, rung=st.text(), drafted=st.booleans(), first_tokens=st.integers(0, 99), ttft_ns=st.integers(0, 10**9),
    temperature_c=st.none() | st.floats(-40, 120), clock_mhz=st.none() | POSITIVE,
)  # fmt: skip


@st.composite
def bounds(draw: st.DrawFn) -> Bound:
    n = draw(st.integers(0, 10))
    effective_n = draw(st.integers(0, n))
    return Bound(
        bound_ns=draw(NANOSECONDS), score=draw(POSITIVE), rank=draw(st.integers(0, effective_n)),
        percentile=draw(st.floats(0, 1)), confidence=draw(st.floats(0, 1)), n=n, effective_n=effective_n,
        lag=draw(st.integers(1, max(1, n))), level=draw(LEVELS), rung=draw(st.text()), drafted=draw(st.booleans()),
        ljung_box_p=draw(st.none() | st.floats(0, 1)), gpd_shape=draw(st.none() | st.floats(-2, 2)),
    )  # fmt: skip


@st.composite
def costs(draw: st.DrawFn) -> PassCost:
    sizes = draw(st.lists(st.integers(1, 500), min_size=1, max_size=8, unique=True))
    prices = draw(st.lists(POSITIVE, min_size=len(sizes), max_size=len(sizes)))
    return PassCost(
        sizes=tuple(sorted(sizes)), prices_ns=tuple(sorted(prices)), p_reference=draw(st.integers(0, 9_999)),
        per_cached_ns=draw(st.floats(0, 1e6)), constant_ns=draw(st.integers(0, 10**9)),
        stepped=draw(st.booleans()),
    )  # fmt: skip


SAMPLES = st.lists(NANOSECONDS, max_size=4).map(tuple)
TIMES = st.builds(PassTimes, k=st.integers(1, 500), p=st.integers(0, 9_999), elapsed_ns=SAMPLES)
SWEEPS = st.lists(TIMES, max_size=3).map(tuple)
OTHERS = st.builds(OtherModel, rungs=st.lists(st.text(), max_size=3).map(tuple), cost=costs(), sweep=SWEEPS)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    return Profile(
        kind=draw(st.sampled_from(["provisional", "quick", "full"])),
        created=draw(st.text()),
        thermal=draw(st.sampled_from(["unobserved", "observed"])),
        margin=draw(st.floats(1, 2)),
        fingerprint=draw(st.dictionaries(st.text(), st.text(), min_size=1, max_size=4)),
        placement=draw(st.text()),
        schedule=Schedule(
            period_ns=draw(NANOSECONDS), skipped=draw(st.integers(0, 99)), dropped=draw(st.integers(0, 99)),
            busy=draw(POSITIVE), workers=draw(st.integers(1, 9)), beside=draw(st.text()),
        ),
        soak=draw(st.none() | SOAKS),
        bounds=tuple(
            draw(st.lists(bounds(), min_size=1, max_size=4, unique_by=lambda one: (one.level, one.rung, one.drafted)))
        ),
        cost=draw(costs()),
        sweep=draw(SWEEPS),
        others=tuple(draw(st.lists(OTHERS, max_size=2))),
        requests=tuple(draw(st.lists(REQUESTS, max_size=5))),
    )  # fmt: skip


@given(profile=profiles())
@settings(max_examples=80, deadline=None)
def test_what_was_written_is_read_back_exactly(profile: Profile) -> None:
    assert parse_profile(profile_text(profile), file=FILE) == profile


def test_a_graph_that_is_placed_otherwise_is_a_difference_where_both_placements_are_known() -> None:
    profile = made_profile(placement="npu, all of it")
    moved = profile.differences(profile.fingerprint, placement="npu, and 1 Gather on CPUExecutionProvider")
    assert moved == ["placement: npu, all of it -> npu, and 1 Gather on CPUExecutionProvider"]
    assert profile.differences(profile.fingerprint, placement="npu, all of it") == []
    assert profile.differences(profile.fingerprint) == []
    assert made_profile().differences(profile.fingerprint, placement="npu, all of it") == []


def test_the_file_is_for_people_too(tmp_path: Path) -> None:
    text = profile_text(made_profile())
    assert '  "format": "edgeguard.calibration/1"' in text.splitlines()[1]
    assert '    {"bound_ns": 15000000, "score": 1.5, ' in text
    tg = '    {"k": 2, "n_prompt": 0, "n_gen": 1, "n_depth": 100, "avg_ts": 512.821, "samples_ns": [1900000, 2000000]},'
    pp = '    {"k": 8, "n_prompt": 8, "n_gen": 0, "n_depth": 100, "avg_ts": 8000000000.0, "samples_ns": [1]}'
    assert tg in text
    assert pp in text
    assert json.loads(text)["cost"]["sizes"] == [2, 8]
    assert len(text.splitlines()) < 60  # a line a value, whatever the number of samples


def _cell(level: ThermalLevel, score: float, **keys: Any) -> Bound:
    return Bound(
        bound_ns=round(score * 100), score=score, rank=1, percentile=0.99, confidence=0.95, n=299, effective_n=299,
        lag=1, level=level, **keys,
    )  # fmt: skip


NOMINAL, HOT, THROTTLED = ThermalLevel


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        ({NOMINAL: 1.2}, (1.2, None, None)),
        ({NOMINAL: 1.2, HOT: 1.5, THROTTLED: 3.0}, (1.2, 1.5, 3.0)),
        ({NOMINAL: 1.5, HOT: 1.2}, (1.5, 1.5, None)),  # never below a milder one's
        ({HOT: 1.4}, (1.4, 1.4, None)),  # too few cool samples: the hot ones' holds
        ({NOMINAL: 1.2, THROTTLED: 2.0}, (1.2, 2.0, 2.0)),
    ],
)
def test_a_level_has_its_own_bound_or_a_harsher_ones_and_one_never_reached_has_none(
    measured: dict[ThermalLevel, float], expected: tuple[float | None, ...]
) -> None:
    bounds = tuple(_cell(level, score) for level, score in measured.items())
    profile = made_profile(bounds=bounds, thermal="observed")
    found = [profile.bound_for(level) for level in ThermalLevel]
    assert tuple(bound and bound.score for bound in found) == expected
    assert [bound.level for bound in found if bound] == [one for one in ThermalLevel if expected[one] is not None]
    assert profile.bound.score == max(measured.values())
    assert profile.reached == max(measured)


@given(scores=st.dictionaries(LEVELS, st.floats(1, 5), min_size=1))
def test_a_levels_bound_is_never_below_a_milder_ones(scores: dict[ThermalLevel, float]) -> None:
    profile = made_profile(bounds=tuple(_cell(level, score) for level, score in scores.items()), thermal="observed")
    found = [bound for level in ThermalLevel if (bound := profile.bound_for(level))]
    assert [bound.score for bound in found] == sorted(bound.score for bound in found)
    assert [bound.bound_ns for bound in found] == sorted(bound.bound_ns for bound in found)
    assert all(found[level].score >= score for level, score in scores.items())


def test_beyond_what_was_measured_the_worst_that_is_known_is_stretched_if_that_is_asked_for() -> None:
    profile = made_profile(bounds=(_cell(NOMINAL, 1.2), _cell(HOT, 1.1)), thermal="observed", margin=1.1)
    assert profile.bound_for(THROTTLED) is None
    beyond = profile.bound_for(THROTTLED, beyond=2.0)
    assert beyond is not None
    assert beyond.score == pytest.approx(1.2 * 1.1 * 2.0)
    assert profile.bound_for(HOT, beyond=2.0) == profile.bound_for(HOT)
    assert profile.bound_for(HOT, rung="short", beyond=2.0) is None


def test_where_no_sensor_tells_the_worst_that_was_measured_holds_at_any_time() -> None:
    profile = made_profile(bounds=(_cell(NOMINAL, 1.2), _cell(HOT, 1.6)), thermal="unobserved")
    scores = [bound and bound.score for bound in map(profile.bound_for, ThermalLevel)]
    assert scores == [1.6, 1.6, None]


def test_rungs_and_drafts_have_bounds_of_their_own() -> None:
    cells = (_cell(NOMINAL, 1.2), _cell(NOMINAL, 1.6, drafted=True), _cell(NOMINAL, 1.1, rung="short"))
    profile = made_profile(bounds=cells, margin=1.5)
    scores = [
        bound and round(bound.score, 9)
        for bound in (
            profile.bound_for(NOMINAL),
            profile.bound_for(NOMINAL, drafted=True),
            profile.bound_for(NOMINAL, rung="short"),
            profile.bound_for(NOMINAL, rung="none"),
        )
    ]
    assert scores == [1.8, 2.4, 1.65, None]  # with the margin
    assert profile.rungs == ("", "short")


def test_a_way_of_decoding_that_was_not_measured_has_the_score_of_the_other_one() -> None:
    """As on a machine where every request of a quick calibration happened to have a draft."""
    cells = (_cell(NOMINAL, 1.2), _cell(HOT, 1.6, drafted=True), _cell(HOT, 1.1, rung="short"))
    profile = made_profile(bounds=cells, thermal="observed")
    scores = {
        (level, drafted): bound and bound.score
        for level in (NOMINAL, HOT)
        for drafted in (False, True)
        for bound in [profile.bound_for(level, drafted=drafted)]
    }
    assert scores == {(NOMINAL, False): 1.2, (NOMINAL, True): 1.6, (HOT, False): 1.6, (HOT, True): 1.6}
    short = profile.bound_for(HOT, rung="short", drafted=True)
    assert short is not None
    assert short.score == 1.1


@pytest.mark.parametrize(("drafted", "in_service"), [(1.1, 1.2), (1.6, 1.6), (None, 1.2)])
def test_a_request_with_a_draft_is_priced_no_lower_than_one_without(drafted: float | None, in_service: float) -> None:
    """A draft that turns out wrong makes the passes of a request without, and few that were calibrated were wrong."""
    cells = (_cell(NOMINAL, 1.2), *([] if drafted is None else [_cell(NOMINAL, drafted, drafted=True)]))
    profile = made_profile(bounds=cells)
    assert profile.score_for(NOMINAL) == 1.2
    assert profile.score_for(NOMINAL, drafted=True) == in_service
    assert profile.score_for(NOMINAL, rung="none") is None


def test_what_is_promised_in_service_is_the_cheapest_rungs_longest_bound_without_a_draft() -> None:
    """A draft is run only where its own bound fits too, and a rung where no better one does."""
    full = (_cell(NOMINAL, 1.2), _cell(HOT, 1.5), _cell(HOT, 1.9, drafted=True))
    short = (_cell(NOMINAL, 1.1, rung="short"), _cell(HOT, 1.4, rung="short"))
    assert made_profile(bounds=full).bound.score == 1.5
    assert made_profile(bounds=full + short, margin=2.0).bound.score == pytest.approx(2.8)
    assert made_profile(bounds=full + short[:1]).bound.score == 1.5  # nothing is known of the short one when it is hot


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
        (("bounds", 0, "bound_ns"), 0, "bounds[0].bound_ns: 0 is out of bounds"),
        (("bounds", 0, "bound_ns"), 1.5, "bounds[0].bound_ns: Decimal('1.5') is not a whole number"),
        (("bounds", 0, "score"), 0, "bounds[0].score: 0 is out of bounds"),
        (("bounds", 0, "rank"), 301, "bounds[0].rank: 301 is out of bounds: it must be between 0 and 300"),
        (("bounds", 0, "effective_n"), 301, "bounds[0].effective_n: 301 is out of bounds"),
        (("bounds", 0, "percentile"), 99, "bounds[0].percentile: 99 is out of bounds"),
        (("bounds", 0, "lag"), 0, "bounds[0].lag: 0 is out of bounds"),
        (("bounds", 0, "level"), "warm", "bounds[0].level: 'warm' is not one of nominal, hot, throttled"),
        (("bounds", 0, "tail"), 1, "bounds[0].tail: unknown key"),
        (("bounds",), [], "bounds: there must be at least one"),
        (("thermal",), "cool", "thermal: 'cool' is not one of unobserved, observed"),
        (("margin",), 0.9, "margin: 0.9 is out of bounds"),
        (("soak",), {"elapsed_ns": 1, "heater": "", "latency_flat": "yes"}, "soak.latency_flat: 'yes' is not true"),
        (("cost", "sizes"), [8, 2], "cost.sizes: [8, 2] must be at least one size, and rise"),
        (("cost", "sizes"), [], "cost.sizes: [] must be at least one size"),
        (("cost", "sizes"), [2, True], "cost.sizes: True does not belong into a list of whole numbers of at least 1"),
        (("cost", "prices_ns"), [2e6, 1e6], "cost.prices_ns: [2000000.0, 1000000.0] must be positive"),
        (("cost", "prices_ns"), [2e6], "cost.prices_ns: 1 prices for 2 sizes"),
        (("cost", "prices_ns"), ["2", "3"], "cost.prices_ns: [2, 3] must be positive numbers"),
        (("cost", "per_cached_ns"), -0.1, "cost.per_cached_ns: -0.1 is out of bounds"),
        (("cost", "constant_ns"), -1, "cost.constant_ns: -1 is out of bounds"),
        (("sweep",), [{"k": 0, "n_depth": 0, "samples_ns": []}], "sweep[0].k: 0 is out of bounds"),
        (("sweep",), [{"k": 2, "n_depth": 0, "samples_ns": [-5]}], "sweep[0].samples_ns: -5 does not belong"),
        (("sweep",), [3], "sweep: [3] is not a list of tables"),
        (("requests", "price_ns"), [1], "requests.latency_ns: the columns must be equally long"),
        (("requests", "dearest_ns"), "x", "requests.dearest_ns: 'x' is not a list of whole numbers"),
        (("requests", "level"), ["warm"], "requests.level: 'warm' does not belong into a list of thermal levels"),
        (("requests", "drafted"), [0], "requests.drafted: 0 does not belong into a list of true and false"),
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


@pytest.mark.parametrize(
    "key", ["kind", "created", "thermal", "margin", "fingerprint", "schedule", "bounds", "cost", "requests"]
)
def test_a_missing_part_is_named(key: str) -> None:
    document = json.loads(profile_text(made_profile()))
    del document[key]
    with pytest.raises(ProfileError, match=rf"{FILE}: {key}.*(missing|none|at least one)"):
        parse_profile(json.dumps(document), file=FILE)


def test_of_a_profile_that_another_version_wrote_a_few_differences_are_shown() -> None:
    document = {**json.loads(profile_text(made_profile())), "requests": {}}
    with pytest.raises(ProfileError, match=r"and \d+ more: written by another version\?") as caught:
        parse_profile(json.dumps(document), file=FILE)
    assert len(str(caught.value).splitlines()) == 6


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
