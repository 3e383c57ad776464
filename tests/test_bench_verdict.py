"""The verdict in the user's terms: does the bound fit, what deadline would, how often will the guard step in."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from bench_robot import config, made_profile
from hypothesis import given
from hypothesis import strategies as st

from edgeguard.bench.calibration.verdict import Overhead, Verdict, judge, overhead_of
from edgeguard.bench.calibration.words import duration, percentile_name
from edgeguard.budget import RequestTimes, Soak
from edgeguard.clock import NS_PER_MS, NS_PER_S
from edgeguard.errors import BoundError
from edgeguard.types import ThermalLevel

NOTHING = Overhead(age_ns=0, wire_ns=0, reserve_ns=0)


def _overhead(age_ms: float = 0, wire_ms: float = 0, reserve_ms: float = 0) -> Overhead:
    return Overhead(
        age_ns=round(age_ms * NS_PER_MS), wire_ns=round(wire_ms * NS_PER_MS), reserve_ns=round(reserve_ms * NS_PER_MS)
    )


def _judge(*, deadline_ms: float = 200, overhead: Overhead = NOTHING, max_miss_rate: float = 0.001, **keys) -> Verdict:
    settings = config(period_ms=200, deadline_ms=deadline_ms, max_miss_rate=max_miss_rate)
    return judge(made_profile(**keys), config=settings, overhead=overhead)


@pytest.mark.parametrize(
    ("bound_ms", "overhead", "fits", "slack_ms", "fitting_deadline_ms"),
    [
        (150, _overhead(), True, 50, 150),
        (200, _overhead(), True, 0, 200),
        (200.000001, _overhead(), False, -0.000001, 201),
        (188.2, _overhead(5, 1.9, 4.9), True, 0, 200),
        (188.3, _overhead(5, 1.9, 4.9), False, -0.1, 201),
        (310.4, _overhead(20, 2.5, 5), False, -137.9, 338),
    ],
)
def test_the_bound_fits_what_age_wire_and_reserve_leave_of_the_deadline(
    bound_ms: float, overhead: Overhead, fits: bool, slack_ms: float, fitting_deadline_ms: int
) -> None:
    verdict = _judge(bound_ms=bound_ms, overhead=overhead)
    assert verdict.fits is fits
    assert verdict.slack_ns == pytest.approx(slack_ms * NS_PER_MS, abs=1)
    assert verdict.fitting_deadline_ms == fitting_deadline_ms


@given(
    bound_ns=st.integers(1, 10**9), age_ns=st.integers(0, 10**8), wire_ns=st.integers(0, 10**7),
    reserve_ns=st.integers(0, 10**8),
)  # fmt: skip
def test_the_deadline_that_would_fit_does_and_one_millisecond_less_does_not(
    bound_ns: int, age_ns: int, wire_ns: int, reserve_ns: int
) -> None:
    overhead = Overhead(age_ns=age_ns, wire_ns=wire_ns, reserve_ns=reserve_ns)
    fitting_ns = _judge(bound_ms=bound_ns / NS_PER_MS, overhead=overhead).fitting_deadline_ms * NS_PER_MS
    assert fitting_ns >= bound_ns + overhead.total_ns > fitting_ns - NS_PER_MS


def test_a_bound_that_does_not_fit_is_an_error_that_names_the_deadline_that_would() -> None:
    verdict = _judge(bound_ms=212.4, overhead=_overhead(0, 1.6, 4))
    with pytest.raises(BoundError) as caught:
        verdict.require_fit()
    assert caught.value.exit_code == 4
    for words in ("leaves 194.4 ms", "the bound is 212.4 ms", "18.0 ms too long", "deadline_ms = 218 would fit"):
        assert words in str(caught.value)
    _judge(bound_ms=100).require_fit()


@pytest.mark.parametrize(
    ("late", "n", "miss_rate", "between"),
    [(0, 299, 0.00997, "20 s"), (0, 2_995, 0.001, "3 min"), (1, 299, 0.01577, "12 s"), (30, 30, 1.0, "0 s")],
)
def test_misses_become_a_rate_and_a_time_between_interventions(
    late: int, n: int, miss_rate: float, between: str
) -> None:
    verdict = _judge(latencies_ms=[250.0] * late + [100.0] * (n - late))
    assert (verdict.misses, verdict.judged) == (late, n)
    assert verdict.miss_rate == pytest.approx(miss_rate, rel=2e-3)
    words = dict(verdict.rows())["interventions"]
    assert f"at most one intervention in {between}, " in words
    assert words.endswith("at 95% confidence)")


@pytest.mark.parametrize(
    ("max_miss_rate", "latencies_ms", "words"),
    [
        (0.01, [100.0] * 299, "max_miss_rate = 0.01: shown"),
        (
            0.001,
            [100.0] * 299,
            "not shown by so few; it takes 2,995 independent requests behind each bound, 10 min or more",
        ),
        (0.001, [100.0] * 2_995, "max_miss_rate = 0.001: shown"),
        (0.01, [250.0] * 20 + [100.0] * 279, "not shown, too many of these requests were late"),
    ],
)
def test_what_the_user_accepts_is_shown_or_what_it_takes_to_show_it(
    max_miss_rate: float, latencies_ms: list[float], words: str
) -> None:
    verdict = _judge(max_miss_rate=max_miss_rate, latencies_ms=latencies_ms)
    assert words in dict(verdict.rows())["you accept"]
    assert verdict.rate_shown is words.endswith(": shown")


def test_a_way_of_decoding_without_a_bound_of_its_own_is_judged_with_the_other_and_said() -> None:
    plain = made_profile(latencies_ms=[100.0] * 299).requests
    slow = [dataclasses.replace(one, latency_ns=250 * NS_PER_MS, drafted=True) for one in plain[:3]]
    verdict = _judge(latencies_ms=[100.0] * 299, requests=(*plain, *slow))
    assert (verdict.misses, verdict.judged) == (3, 299)
    assert dict(verdict.rows())["warning"].startswith("3 requests support no bound of their own")
    assert "warning" not in dict(_judge().rows())


def test_dependent_requests_are_judged_by_those_that_count() -> None:
    profile = made_profile(latencies_ms=[100.0] * 300)
    thinned = dataclasses.replace(profile, bounds=(dataclasses.replace(profile.bound, lag=3, effective_n=100),))
    verdict = judge(thinned, config=config(period_ms=200, deadline_ms=200), overhead=NOTHING)
    assert verdict.judged == 100


def test_the_worst_cell_is_judged() -> None:
    cool = [RequestTimes(latency_ns=100 * NS_PER_MS, price_ns=1, dearest_ns=1)] * 400
    hot = [dataclasses.replace(one, latency_ns=250 * NS_PER_MS, level=ThermalLevel.HOT) for one in cool[:350]]
    bound = made_profile(latencies_ms=[1.0] * 350, bound_ms=150).bounds[0]
    bounds = (dataclasses.replace(bound, n=400, effective_n=400), dataclasses.replace(bound, level=ThermalLevel.HOT))
    verdict = _judge(bounds=bounds, requests=(*cool, *hot))
    assert (verdict.misses, verdict.judged, verdict.miss_rate) == (350, 350, 1.0)


def test_of_a_ladder_the_worst_cell_that_fits_is_judged_or_all_when_none_does() -> None:
    """What does not fit does not run, so it is late at no budget."""
    slow = [RequestTimes(latency_ns=250 * NS_PER_MS, price_ns=1, dearest_ns=1, rung="full")] * 300
    quick = [dataclasses.replace(one, latency_ns=100 * NS_PER_MS, rung="brief") for one in slow]
    full = dataclasses.replace(made_profile(bound_ms=260).bounds[0], rung="full")
    brief = dataclasses.replace(full, bound_ns=110 * NS_PER_MS, rung="brief")
    verdict = _judge(bounds=(full, brief), requests=(*slow, *quick))
    assert (verdict.fits, verdict.misses, verdict.slack_ns) == (True, 0, 90 * NS_PER_MS)
    none_fits = _judge(bounds=(full, dataclasses.replace(brief, bound_ns=201 * NS_PER_MS)), requests=(*slow, *quick))
    assert (none_fits.fits, none_fits.misses) == (False, 300)


def test_every_plan_of_a_ladder_has_a_row_that_says_whether_it_can_run() -> None:
    bound = made_profile(bound_ms=260).bounds[0]
    full, hot = dataclasses.replace(bound, rung="full"), ThermalLevel.HOT
    brief = dataclasses.replace(bound, bound_ns=110 * NS_PER_MS, rung="brief")
    verdict = _judge(bounds=(full, brief, dataclasses.replace(brief, level=hot, bound_ns=120 * NS_PER_MS)))
    assert [words for name, words in verdict.rows() if name == "plan"] == [
        "'full' does not fit, 60.0 ms too long; never measured on a hot board",
        "'brief' fits, with 80.0 ms to spare",
    ]
    assert dict(verdict.rows())["fits"].startswith("yes, with 80.0 ms to spare")
    assert [name for name, _ in _judge(bounds=(full,)).rows() if name == "plan"] == []


@pytest.mark.parametrize(
    ("soak", "thermal", "words"),
    [
        (None, "observed", "not heated; reached nominal, never hot or throttled"),
        ({"end_c": 71.6, "temperature_flat": True}, "observed",
         "heated for 12 min to 72 °C (built-in), temperature and latency flat; reached nominal, never hot or"),
        ({"end_c": 71.6, "temperature_flat": False}, "observed",
         "temperature still not flat: not the thermal limit; reached"),
        ({"latency_flat": False}, "unobserved",
         "unobserved, no sensor can be read here; heated for 12 min (built-in), latency still not flat"),
    ],
)  # fmt: skip
def test_what_was_reached_and_what_was_not_is_said(soak: dict[str, Any] | None, thermal: str, words: str) -> None:
    heated = None
    if soak is not None:
        heated = Soak(**{"elapsed_ns": 12 * 60 * NS_PER_S, "heater": "built-in", "latency_flat": True, **soak})
    assert words in dict(_judge(soak=heated, thermal=thermal).rows())["thermal"]


def test_a_margin_and_a_heavy_tail_are_said() -> None:
    bound = dataclasses.replace(made_profile(bound_ms=100).bounds[0], gpd_shape=0.6, rung="short", drafted=True)
    rows = dict(_judge(bounds=(bound,), margin=1.1).rows())
    assert rows["bound"].startswith("110.0 ms for 99%")
    assert "nominal board, plan 'short', with a draft" in rows["bound"]
    assert rows["margin"].startswith("x1.1, in the bounds above")
    assert rows["warning"].startswith("heavy tail (shape 0.60)")


def test_the_words_tell_how_it_was_measured() -> None:
    rows = dict(_judge(latencies_ms=[90.0, 110.0, 130.0], bound_ms=151.26).rows())
    assert rows["bound"] == (
        "151.3 ms for 99% of all requests, at 95% confidence: nominal board (3 requests, 3 independent)"
    )
    assert rows["fits"].startswith("yes, with 48.7 ms to spare")
    assert rows["a request took"] == "median 110.0 ms, longest 130.0 ms"
    assert rows["measured"] == "3 requests of one worker, one every 200.0 ms; measured alone, busy x1.05"
    assert rows["disturbed"] == "10 requests dropped, 1 releases skipped"
    assert rows["thermal"] == "unobserved, no sensor can be read here; not heated"


def test_the_overhead_is_the_configurations() -> None:
    overhead = overhead_of(config(), age_ns=7 * NS_PER_MS)
    assert (overhead.age_ns, overhead.reserve_ns) == (7 * NS_PER_MS, 2 * NS_PER_MS)
    assert 0 < overhead.wire_ns < 10 * NS_PER_MS


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "0 s"), (119.9, "119 s"), (120, "2 min"), (7_199, "119 min"), (7_200, "2 h"), (200_000, "2 days")],
)
def test_a_time_span_is_never_rounded_up(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(("percentile", "name"), [(0.99, "p99"), (0.999, "p99.9"), (0.9995, "p99.95"), (0.5, "p50")])
def test_a_percentile_is_named_as_people_do(percentile: float, name: str) -> None:
    assert percentile_name(percentile) == name
