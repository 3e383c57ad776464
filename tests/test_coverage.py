"""Whether a bound holds: judged as it is stated, kept in a file, said in words and drawn."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from bench_robot import made_profile

from edgeguard.bench.calibration.coverage import (
    TURN,
    CellCoverage,
    Coverage,
    check_bounds,
    read_coverage,
    take_turns,
    write_coverage,
)
from edgeguard.bench.calibration.profile_store import write_profile
from edgeguard.budget import RequestTimes
from edgeguard.cli.main import main
from edgeguard.clock import NS_PER_MS
from edgeguard.errors import ProfileError
from edgeguard.report.coverage_plot import draw_coverage, save_coverage


def requests(turns: int, *, slower: float = 1.0, seed: int = 1) -> list[RequestTimes]:
    """By turns of calibration and check; those of the check take ``slower`` times as long. Half of the price of each
    dearest answer is not spent."""
    draw = random.Random(seed)
    return [
        RequestTimes(
            latency_ns=round(1e8 * draw.gauss(1, 0.05) * (slower if turn % 2 else 1)),
            price_ns=10**8,
            dearest_ns=2 * 10**8,
            drafted=draw.random() < 0.5,
        )
        for turn in range(2 * turns)
        for _ in range(TURN)
    ]


def coverage_of(measured: Sequence[RequestTimes]) -> Coverage:
    return Coverage(
        created="2026-01-01T00:00:00Z",
        fingerprint={"machine": "a board", "model": "fake"},
        period_ns=200 * NS_PER_MS,
        blocks=len(measured) // 10,
        disturbed=3,
        busy=1.04,
        cells=check_bounds(measured, wanted=0.99, confidence=0.95),
    )


def test_the_first_turn_calibrates_the_second_checks_and_so_on() -> None:
    measured = requests(3)
    calibration, check = take_turns(measured)
    assert calibration == measured[:100] + measured[200:300] + measured[400:500]
    assert check == [measured[100:200], measured[300:400], measured[500:]]


@pytest.mark.parametrize(("slower", "holds"), [(1.0, True), (1.2, False)])
def test_a_bound_holds_unless_the_accepted_share_lies_below_the_interval(slower: float, holds: bool) -> None:
    for cell in check_bounds(requests(20, slower=slower), wanted=0.99, confidence=0.95):
        assert cell.bound.n + cell.n > 1_900
        assert cell.accepted == pytest.approx(0.01)
        low, high = cell.interval
        assert low <= cell.rate <= high
        assert (low <= cell.accepted) is cell.holds is holds
        assert cell.over_observed == pytest.approx(1 / slower, rel=0.05)


def test_in_service_a_bound_is_of_the_dearest_answer_and_so_less_is_beyond_it() -> None:
    for cell in check_bounds(requests(20, slower=1.2), wanted=0.99, confidence=0.95):
        assert cell.beyond_in_service == 0 < cell.beyond
        assert cell.stated_over_observed == pytest.approx(2 * cell.over_observed, rel=1e-3)


@pytest.fixture(scope="module")
def cell() -> CellCoverage:
    return check_bounds(requests(20), wanted=0.99, confidence=0.95)[0]


def checked(cell: CellCoverage, beyond_by_turn: Sequence[int]) -> CellCoverage:
    """Turns of 100 checked requests, of which so many were beyond."""
    slow, fast = cell.bound.score + 1, cell.bound.score
    turns = tuple((slow,) * beyond + (fast,) * (TURN - beyond) for beyond in beyond_by_turn)
    return replace(cell, checked=turns)


def test_the_interval_is_wider_where_violations_come_in_turns(cell: CellCoverage) -> None:
    low, high = checked(cell, [1] * 20).interval
    assert (low, high) == pytest.approx((0.0061, 0.0154), abs=1e-4), "the exact one, of 20 in 2,000"
    low, high = checked(cell, [20, *[0] * 19]).interval
    assert low == 0.0
    assert high >= 0.03


def test_no_request_beyond_does_not_mean_that_there_never_is_one(cell: CellCoverage) -> None:
    assert checked(cell, [0] * 20).interval == pytest.approx((0.0, 0.0018), abs=1e-4)


def test_the_interval_covers_the_true_share_as_often_as_it_says(cell: CellCoverage) -> None:
    """Of a bound that a hundredth exceeds, in runs of five: the interval of 20 turns, a little too narrow as it is."""
    draw = random.Random(2)
    covered = 0
    for _ in range(60):
        beyond = [sum(5 for _ in range(20) if draw.random() < 0.01) for _ in range(20)]
        low, high = checked(cell, beyond).interval
        covered += low <= 0.01 <= high
    assert covered >= 0.85 * 60


def test_the_file_has_everything_and_nothing_else_is_taken_for_one(tmp_path: Path) -> None:
    file, coverage = tmp_path / "coverage.json", coverage_of(requests(4))
    write_coverage(coverage, file)
    assert read_coverage(file) == coverage
    for content in ("{}", "[]", "no JSON", '{"format": "edgeguard.coverage/1", "coverage": {}}'):
        file.write_text(content)
        with pytest.raises(ProfileError, match=r"coverage\.json: is not what calibration/coverage\.py has written"):
            read_coverage(file)
    with pytest.raises(ProfileError, match="cannot be written"):
        write_coverage(coverage, tmp_path / "no" / "coverage.json")


def test_the_words_say_what_was_beyond_and_whether_it_holds() -> None:
    (name, words), *_, (_, machine) = coverage_of(requests(20, slower=1.2)).rows()
    assert name == "nominal board"
    assert words.startswith("DOES NOT HOLD: of ")
    assert machine == "×1.04; a calibration would have dropped 3 of 400 blocks of requests"


def test_it_is_drawn_for_a_page_and_into_a_file(tmp_path: Path) -> None:
    coverage = coverage_of(requests(4))
    plot = draw_coverage(coverage)
    assert plot.svg.startswith("<svg ")
    assert "checked" in plot.alt
    save_coverage(coverage, tmp_path / "coverage.png")
    assert (tmp_path / "coverage.png").stat().st_size > 10_000


def test_the_report_shows_it_and_refuses_one_of_something_else(tmp_path: Path, capsys) -> None:
    profile, file, out = tmp_path / "robot.profile.json", tmp_path / "coverage.json", tmp_path / "robot.html"
    write_profile(made_profile(), profile)
    write_coverage(coverage_of(requests(4)), file)
    asked = ["report", str(profile), "--coverage", str(file)]
    assert main([*asked, "-o", str(out)]) == 0
    assert "Does it hold?" in out.read_text()
    assert main(asked) == 0
    assert "does it hold?" in capsys.readouterr().out
    assert main([*asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["coverage"]["holds"] is True
    write_coverage(replace(coverage_of(requests(4)), fingerprint={"machine": "another"}, period_ns=NS_PER_MS), file)
    assert main(asked) == 7
    said = capsys.readouterr().err
    assert "machine: a board -> another" in said
    assert "period: 200 ms -> 1 ms" in said
