"""The page of a calibration: what it says, that it needs nothing else, and that nothing it is given can break it."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from bench_robot import config, made_profile, write_config
from hypothesis import given
from hypothesis import strategies as st

from edgeguard.bench.calibration.journal import Journal, Measured
from edgeguard.bench.calibration.profile_store import write_profile
from edgeguard.bench.calibration.sample import Sample
from edgeguard.bench.calibration.sampling import Block
from edgeguard.bench.calibration.verdict import Overhead, judge
from edgeguard.bench.calibration.words import cell_name
from edgeguard.budget import Bound, PassTimes, Profile, RequestTimes, Schedule, Soak, parse_profile, profile_text
from edgeguard.budget.cost import OtherModel
from edgeguard.budget.roofline import Machine, Model
from edgeguard.cli.main import main
from edgeguard.clock import NS_PER_MS
from edgeguard.extras import install_command
from edgeguard.report.budget_bar import parts_of
from edgeguard.report.estimates import estimates_of
from edgeguard.report.page import Report, page
from edgeguard.report.samples import Samples, read_samples
from edgeguard.report.sketch import VARIABLES, thinned
from edgeguard.report.visits import visits_of
from edgeguard.types import Pass, ThermalLevel

PERIOD_NS = 200 * NS_PER_MS
NASTY = '</script><script>alert("1 & 2")</script>'


def hot_profile(**keys: Any) -> Profile:
    """Cool, then hot, then throttled, with drafts and rungs, temperature and clock."""
    lots, levels = random.Random(1), list(ThermalLevel)
    requests = tuple(
        RequestTimes(
            latency_ns=round(lots.uniform(40, 60) * (1 + level / 4) * NS_PER_MS),
            price_ns=45 * NS_PER_MS,
            dearest_ns=55 * NS_PER_MS,
            at_ns=(at + 10_000 * level) * PERIOD_NS,
            level=level,
            drafted=at % 2 == 1,
            first_tokens=20 + at % 5,
            ttft_ns=(20 + at % 5) * NS_PER_MS,
            temperature_c=45.0 + 15 * level + at % 3,
            clock_mhz=1_800.0 if level is ThermalLevel.THROTTLED else 2_400.0,
        )
        for level in levels
        for at in range(60)
    )
    bounds = tuple(
        replace(made_profile().bounds[0], level=level, drafted=drafted, n=30, effective_n=30, gpd_shape=0.1)
        for level in levels
        for drafted in (False, True)
    )
    return made_profile(
        **{
            "kind": "full",
            "requests": requests,
            "bounds": bounds,
            "thermal": "observed",
            "soak": Soak(
                elapsed_ns=10**12,
                heater="spare cores",
                latency_flat=True,
                temperature_flat=True,
                start_c=60.0,
                end_c=75.0,
            ),
            "schedule": Schedule(period_ns=PERIOD_NS, workers=3, beside="a planner"),
            "sweep": tuple(
                PassTimes(k=k, p=p, elapsed_ns=(k * 10**6, k * 10**6 + p)) for p in (50, 99, 100) for k in (2, 8)
            ),
            **keys,
        }
    )


def report_of(profile: Profile, *, deadline_ms: float | None = 200, samples: Samples | None = None) -> Report:
    overhead = Overhead(age_ns=5 * NS_PER_MS, wire_ns=2 * NS_PER_MS, reserve_ns=3 * NS_PER_MS)
    return Report(
        name="robot.profile.json",
        profile=profile,
        samples=samples or Samples(missing="nobody kept them"),
        estimates=estimates_of(profile),
        verdict=None
        if deadline_ms is None
        else judge(profile, config=config(period_ms=200, deadline_ms=deadline_ms), overhead=overhead),
        judged_by="robot.toml",
    )


class Seen(HTMLParser):
    """What a browser would find."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""
        self._inside: list[str] = []
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._inside and self._inside[-1] == "script":
            self.data += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture(scope="module")
def hot_page() -> str:
    return page(report_of(hot_profile()))


def test_the_page_has_every_plot_each_with_words_for_who_does_not_see_it(hot_page: str) -> None:
    plots = Seen(hot_page).all("svg")
    assert len(plots) == 7
    assert ">heated<" in hot_page
    for plot in plots:
        assert plot["role"] == "img"
        assert re.search(r"\d", plot["aria-label"] or ""), "figures, not only a name"
    assert hot_page.count("Bad: ") == len(plots)


def test_of_several_models_the_page_has_the_passes_of_each() -> None:
    requests = tuple(replace(one, rung=("large", "small")[at % 2]) for at, one in enumerate(hot_profile().requests))
    bounds = tuple(replace(one, rung=rung) for one in hot_profile().bounds for rung in ("large", "small"))
    quick = OtherModel(
        rungs=("small",), cost=replace(made_profile().cost, prices_ns=(1e6, 2e6)), sweep=made_profile().sweep
    )
    profile = hot_profile(requests=requests, bounds=bounds, others=(quick,))
    large, small = profile.by_model
    assert (large.cost, small.cost) == (profile.cost, quick.cost)
    assert {one.rung for one in (*large.bounds, *large.requests)} == {"large"}
    report = report_of(profile)
    content = page(report)
    for words in ("measured and priced (plan large)", "A step and its context (plan small)", "&#39;small&#39;"):
        assert words in content
    assert report.headline.count("plan '") == 1
    names = re.findall(r'\bid="([^"]+)"', content)
    assert len(names) == len(set(names))


def test_the_page_needs_nothing_else_and_runs_nothing(hot_page: str) -> None:
    seen = Seen(hot_page)
    assert not {"link", "iframe", "img", "object"} & {tag for tag, _ in seen.tags}
    assert [attrs["type"] for attrs in seen.all("script")] == ["application/json"]
    references = [
        value for _, attrs in seen.tags for name, value in attrs.items() if name in ("src", "href", "xlink:href")
    ]
    assert references
    assert all(value is not None and value.startswith("#") for value in references)
    assert not re.search(r"url\((?!#)|@import", hot_page)


def test_every_name_is_given_once_and_every_reference_finds_its_name(hot_page: str) -> None:
    names = [attrs["id"] for _, attrs in Seen(hot_page).tags if "id" in attrs]
    assert len(names) == len(set(names))
    assert set(re.findall(r'(?:url\(|href=")#([^)"]+)', hot_page)) <= set(names)


def test_every_colour_of_a_plot_is_the_pages_own_in_light_and_in_dark(hot_page: str) -> None:
    style = hot_page[: hot_page.index("</style>")]
    dark = style[style.index("prefers-color-scheme: dark") :]
    assert set(re.findall(r"var\(--([\w-]+)\)", hot_page)) <= set(re.findall(r"--([\w-]+):", style))
    assert set(VARIABLES.values()) <= set(re.findall(r"--([\w-]+):", dark))
    assert not re.search(r"#[0-9a-f]{6}\b", "".join(re.findall(r"<svg.*?</svg>", hot_page, re.DOTALL)))


def test_the_profile_is_inside_and_is_read_back(hot_page: str) -> None:
    assert parse_profile(Seen(hot_page).data, file=Path("page")) == hot_profile()


def test_the_same_calibration_makes_the_same_page(hot_page: str) -> None:
    assert page(report_of(hot_profile())) == hot_page


def test_what_a_file_says_is_text_and_never_part_of_the_page() -> None:
    profile = hot_profile(
        fingerprint={"machine": NASTY, NASTY: "x"},
        schedule=Schedule(period_ns=PERIOD_NS, beside=NASTY),
        created=NASTY,
        bounds=tuple(replace(bound, rung=f"$x^2$ {NASTY}") for bound in hot_profile().bounds),
        requests=tuple(replace(one, rung=f"$x^2$ {NASTY}") for one in hot_profile().requests),
    )
    content = page(replace(report_of(profile), name=NASTY, judged_by=NASTY, samples=Samples(missing=NASTY)))
    seen = Seen(content)
    assert len(seen.all("script")) == 1
    assert "<script>alert" not in content
    assert parse_profile(seen.data, file=Path("page")) == profile
    assert "$x^2$" in content, "not read as a formula"


@pytest.mark.parametrize(
    ("deadline_ms", "class_", "words"), [(200, "fits", "175.0 ms to spare"), (20, "fails", "5.0 ms too long")]
)
def test_the_verdict_is_in_the_headline(deadline_ms: float, class_: str, words: str) -> None:
    report = report_of(made_profile(bound_ms=15), deadline_ms=deadline_ms)
    assert words in report.headline
    assert f'class="headline {class_}"' in page(report)


def test_without_a_configuration_nothing_is_judged_and_the_page_says_how_it_would_be() -> None:
    report = report_of(made_profile(bound_ms=15.2), deadline_ms=None)
    assert report.headline == "99% of all requests take at most 15.2 ms, at 95% confidence"
    assert "--config" in dict(report.verdict_rows)["not judged"]
    assert "at least 21 ms" in dict(report.verdict_rows)["deadline"]
    assert "Pin up the page of a full one" in page(report), "it is a quick one"


@given(
    bound_ms=st.floats(1, 400), margin=st.sampled_from([1.0, 1.1]), score=st.floats(0.5, 4),
    latency_ms=st.floats(1, 400), ttft_ms=st.floats(0, 400),
)  # fmt: skip
def test_the_parts_of_the_budget_add_up_to_the_deadline_or_to_what_is_too_long(
    bound_ms: float, margin: float, score: float, latency_ms: float, ttft_ms: float
) -> None:
    made = made_profile(bound_ms=bound_ms, latencies_ms=[latency_ms] * 10, margin=margin)
    profile = replace(
        made,
        bounds=(replace(made.bounds[0], score=score),),
        requests=tuple(replace(one, ttft_ns=round(ttft_ms * NS_PER_MS)) for one in made.requests),
    )
    report = report_of(profile)
    assert report.verdict is not None
    parts = parts_of(profile, report.verdict)
    assert all(part.span_ns > 0 for part in parts)
    total_ns = sum(part.span_ns for part in parts)
    assert total_ns == pytest.approx(report.verdict.deadline_ns - min(0, report.verdict.slack_ns), abs=2)
    assert sum(part.span_ns for part in parts_of(profile, None)) == pytest.approx(profile.bound.bound_ns, abs=2)


def test_what_was_visited_and_what_was_not_is_said() -> None:
    quick, full = visits_of(made_profile()), visits_of(hot_profile())
    assert dict(quick.visited)["temperature"] == "no sensor could be read"
    assert {"level hot", "the thermal limit", "the robot's own load", "a restart", "beyond p99"} <= set(
        dict(quick.missed)
    )
    assert dict(full.visited)["thermal levels"] == "nominal: 60, hot: 60, throttled: 60"
    assert dict(full.visited)["temperature"] == "45 to 77 °C"
    assert dict(full.visited)["load"] == "beside 'a planner'"
    assert (
        dict(full.visited)["heating"]
        == "heated for 16 min from 60 to 75 °C (spare cores), temperature and latency flat"
    )
    assert dict(quick.visited)["heating"] == "not heated"
    assert set(dict(full.missed)) == {"beyond p99", "other machines"}
    tepid = replace(hot_profile(), soak=Soak(elapsed_ns=1, heater="", latency_flat=False))
    assert "not become as hot as it gets" in dict(visits_of(tepid).missed)["the thermal limit"]


def test_a_level_that_was_never_reached_is_named_with_what_the_guard_then_does() -> None:
    bounds = tuple(bound for bound in hot_profile().bounds if bound.level is ThermalLevel.NOMINAL)
    observed = dict(visits_of(hot_profile(bounds=bounds)).missed)
    assert "the guard acts at once" in observed["level hot"]
    assert "the worst that was measured holds" in dict(visits_of(made_profile()).missed)["level throttled"]


def test_a_cell_is_named_by_what_sets_it_apart() -> None:
    bound: Bound = made_profile().bounds[0]
    hot = replace(bound, level=ThermalLevel.HOT, rung="brief", drafted=True)
    assert cell_name(bound) == "nominal board"
    assert cell_name(hot) == "hot board, plan 'brief', with a draft"


def test_passes_stand_beside_their_estimate_where_model_and_machine_are_known() -> None:
    profile = made_profile()
    alone = estimates_of(profile)
    assert [one.best_ms for one in alone.passes] == [None] * len(alone.passes)
    assert alone.request is None
    beside = estimates_of(
        profile, model=Model(parameters=1e6, weight_bytes=1e6), machine=Machine(flops=1e9, bandwidth=1e9)
    )
    assert [(one.tokens, one.best_ms) for one in beside.passes] == [(1, 2.0), (2, 4.0), (8, 16.0)]
    assert beside.passes[-1].price_ms == pytest.approx(4.5)
    assert beside.passes[-1].per_s == pytest.approx(8 / 4.5e-3)
    assert beside.request is not None
    content = page(replace(report_of(profile), estimates=beside))
    assert "at best: roofline" in content
    assert f"<strong>{beside.request.bottleneck.value}</strong>" in content


def test_the_slowest_requests_are_never_thinned_away() -> None:
    values = [float(at % 97) for at in range(10_000)]
    values[1_234] = 1e6
    kept = thinned(values, most=500)
    assert 1_234 in kept
    assert len(kept) <= 560
    assert kept == sorted(set(kept))
    assert thinned(values[:500], most=500) == list(range(500))


def block(at: int, *, worker: int = 1) -> Block:
    passes = (Pass(k=8, p=100, elapsed_ns=5 * NS_PER_MS), Pass(k=2, p=108, elapsed_ns=2 * NS_PER_MS))
    sample = Sample(
        at_ns=at * PERIOD_NS,
        latency_ns=8 * NS_PER_MS,
        passes=passes,
        ttft_ns=5 * NS_PER_MS,
        dearest_ns=1,
        worker=worker,
    )
    return Block(samples=(sample,), skipped=0, factor=1.0 + at / 10)


def kept_samples(profile: Profile, file: Path) -> Path:
    journal = Journal.beside(file)
    journal.begin(Measured(fingerprint=profile.fingerprint, kind=profile.kind, period_ns=profile.schedule.period_ns))
    for at in range(4):
        journal.add(block(at, worker=1 + at // 2))
    return journal.file


def test_the_samples_beside_the_profile_are_read_and_not_touched(tmp_path: Path) -> None:
    profile, file = made_profile(), tmp_path / "robot.profile.json"
    beside = kept_samples(profile, file)
    beside.write_bytes(beside.read_bytes()[:-3])  # a calibration is just writing
    before = beside.read_bytes()
    samples = read_samples(profile, file)
    assert [len(samples.requests), samples.missing] == [3, ""]
    assert beside.read_bytes() == before
    content = page(report_of(profile, samples=samples))
    assert "An upright dotted line is a new process" in content
    assert "passes of requests" in content


def test_samples_that_are_missing_or_of_something_else_are_done_without(tmp_path: Path) -> None:
    profile, file = made_profile(), tmp_path / "robot.profile.json"
    assert "not beside the profile" in read_samples(profile, file).missing
    kept_samples(profile, file)
    other = replace(profile, fingerprint={"machine": "another"})
    assert read_samples(other, file) == Samples(
        missing="robot.profile.samples.gz is of another calibration than the profile"
    )
    assert "is of another calibration" in page(report_of(other, samples=read_samples(other, file)))


@pytest.fixture
def robot(tmp_path: Path) -> tuple[Path, Path]:
    """A configuration, and a profile of its period."""
    file = tmp_path / "robot.profile.json"
    write_profile(made_profile(), file)
    return write_config(tmp_path, period_ms=200, deadline_ms=200).file, file


def test_the_command_writes_a_page_or_shows_a_summary(robot: tuple[Path, Path], tmp_path: Path, capsys) -> None:
    settings, file = robot
    out = tmp_path / "robot.html"
    assert main(["report", str(file), "--config", str(settings), "-o", str(out)]) == 0
    assert capsys.readouterr().out.startswith(f"{out}: written. The bound fits")
    assert Seen(out.read_text(encoding="utf-8")).all("svg")
    assert main(["report", str(file), "--config", str(settings)]) == 0
    shown = capsys.readouterr().out
    for words in (
        "The bound fits",
        "the bounds",
        "nominal",
        "the budget of one request",
        "what was visited",
        "what was not",
        "level hot",
    ):
        assert words in shown


def test_a_verdict_that_is_bad_is_no_failure_of_the_report(robot: tuple[Path, Path], tmp_path: Path, capsys) -> None:
    _, file = robot
    tight = tmp_path / "tight"
    tight.mkdir()
    settings = write_config(tight, period_ms=200, deadline_ms=10).file
    assert main(["report", str(file), "--config", str(settings), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["fits"] is False
    assert found["slack_ms"] < 0
    assert [bound["level"] for bound in found["bounds"]] == ["nominal"]
    assert "level hot" in found["missed"]


def test_a_profile_of_another_period_is_refused_with_the_difference(tmp_path: Path, capsys) -> None:
    file = tmp_path / "robot.profile.json"
    write_profile(made_profile(), file)
    settings = write_config(tmp_path, period_ms=100, deadline_ms=100).file
    assert main(["report", str(file), "--config", str(settings)]) == 7
    assert "200 ms -> 100 ms" in capsys.readouterr().err


@pytest.mark.usefixtures("robot")
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["none.json"], 7, "cannot be read"),
        (["empty.json"], 7, "has no requests"),
        (["robot.profile.json", "-o", "nowhere/page.html"], 2, "name another -o"),
        (["robot.profile.json", "--measure"], 2, "--measure needs --config"),
    ],
)
def test_a_mistake_is_one_message_with_the_way_out(
    tmp_path: Path, capsys, arguments: list[str], code: int, words: str
) -> None:
    (tmp_path / "empty.json").write_text(profile_text(replace(made_profile(), requests=())))
    places = [str(tmp_path / one) if one.endswith((".json", ".html")) else one for one in arguments]
    assert main(["report", *places]) == code
    assert words in capsys.readouterr().err


def test_without_matplotlib_there_is_a_summary_and_a_page_says_what_to_install(robot: tuple[Path, Path]) -> None:
    blocked = "import sys; sys.modules['matplotlib'] = None; from edgeguard.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", blocked, "report", str(robot[1])]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    done = subprocess.run([*command, "-o", "page.html"], check=False, capture_output=True, text=True)
    assert (done.returncode, install_command("plots") in done.stderr) == (12, True)
