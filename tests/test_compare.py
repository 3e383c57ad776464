"""Comparing models: what the counts say, in numbers and words, and the whole command on two tiny models."""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from engine_setup import apart, write_config
from hypothesis import given
from hypothesis import strategies as st

from edgeguard.bench.comparison.compare import Row, compare
from edgeguard.bench.comparison.contest import Contender, Outcome, Run, find_contender, run_contest
from edgeguard.bench.comparison.evaluation import Case
from edgeguard.bench.comparison.likeness import Paths, mean_divergence
from edgeguard.bench.comparison.plot import draw
from edgeguard.bench.comparison.proportion import Paired, Share
from edgeguard.bench.comparison.reliability import reliability
from edgeguard.cli.busy import say
from edgeguard.cli.compare import add_parser
from edgeguard.clock import NS_PER_MS, SystemClock
from edgeguard.config import load_config
from edgeguard.errors import ConfigError, WorkerError
from tests.bench_robot import fake_command
from tests.bench_robot import write_config as write_bench_config
from tests.tiny import tiny_model

# ---- counts ---------------------------------------------------------------------------------------------------------


def test_a_share_has_wilsons_interval() -> None:
    low, high = Share(hits=8, n=10).interval  # Wilson 1927; as in Brown, Cai and DasGupta 2001
    assert (round(low, 3), round(high, 3)) == (0.490, 0.943)
    assert Share(hits=0, n=20).interval[0] == pytest.approx(0, abs=1e-12)
    assert Share(hits=20, n=20).interval[1] == pytest.approx(1)


@given(n=st.integers(1, 300), hits=st.integers(0, 300))
def test_an_interval_holds_its_share_and_stays_inside(n: int, hits: int) -> None:
    share = Share(hits=min(hits, n), n=n)
    low, high = share.interval
    assert 0 <= low <= share.value + 1e-12
    assert share.value - 1e-12 <= high <= 1


def test_wilsons_interval_covers_nineteen_times_of_twenty() -> None:
    draw, covered = random.Random(1), 0
    for _ in range(2_000):
        low, high = Share.of(draw.random() < 0.9 for _ in range(100)).interval
        covered += low <= 0.9 <= high
    assert covered / 2_000 == pytest.approx(0.95, abs=0.02)


def test_pairs_are_judged_by_the_cases_on_which_they_differ() -> None:
    paired = Paired.of([True, True, False, False, True], [True, False, True, True, True])
    assert (paired.gained, paired.lost, paired.n) == (1, 2, 5)
    assert paired.difference == pytest.approx(-0.2)
    assert Paired(gained=5, lost=15, n=100).p_value == pytest.approx(0.0414, abs=1e-4)  # 2 P(Bin(20, ½) ≤ 5)
    assert Paired(gained=0, lost=0, n=100).p_value == 1.0
    assert Paired(gained=0, lost=0, n=100).half_width > 0.01, "nothing seen is not certainty"


def test_the_interval_of_a_difference_covers_it() -> None:
    """Two models of 90 and 80 %, whose mistakes are partly the same."""
    draw, covered = random.Random(2), 0
    for _ in range(1_000):
        luck = [draw.random() for _ in range(200)]
        ours = [one < 0.75 or draw.random() < 0.6 for one in luck]
        theirs = [one < 0.75 or draw.random() < 0.2 for one in luck]
        paired = Paired.of(ours, theirs)
        covered += abs(paired.difference - 0.1) <= paired.half_width
    assert covered / 1_000 == pytest.approx(0.95, abs=0.025)


# ---- confidence -----------------------------------------------------------------------------------------------------


def outcome(*, right: bool, confidence: float | None = None, ms: float = 10.0, said: str = "a") -> Outcome:
    return Outcome(
        case=Case(id="x", line=1, observation={}, accepted={}, tags=("in-scope",)),
        values={"action": said},
        judged={"action": right},
        confidence=confidence,
        elapsed_ns=round(ms * NS_PER_MS),
    )


def test_a_model_that_knows_how_sure_it_is_has_no_gap() -> None:
    draw = random.Random(3)
    stated = [draw.random() for _ in range(2_000)]
    honest = reliability([outcome(right=draw.random() < one, confidence=one) for one in stated])
    boastful = reliability([outcome(right=draw.random() < 0.5, confidence=0.99) for _ in stated])
    assert honest is not None
    assert boastful is not None
    assert honest.gap < 0.05
    assert boastful.gap == pytest.approx(0.49, abs=0.05)
    kept = next(one for one in honest.thresholds if one.confidence == 0.9)
    assert kept.kept.value == pytest.approx(0.1, abs=0.03)
    assert kept.right.value == pytest.approx(0.95, abs=0.05)


def test_without_stated_confidences_there_is_nothing_to_believe() -> None:
    assert reliability([outcome(right=True)]) is None


# ---- probabilities --------------------------------------------------------------------------------------------------


def paths(*choices: dict[int, float]) -> Paths:
    return Paths(choices=(list(choices),), head_rows=32)


def test_divergence_adds_up_over_the_choices_of_an_answer() -> None:
    even = paths({1: 0.5, 2: 0.5}, {3: 0.5, 4: 0.5})
    assert mean_divergence(even, even) == 0.0
    assert mean_divergence(even, paths({1: 0.9, 2: 0.1}, {3: 0.9, 4: 0.1})) == pytest.approx(2 * 0.5108, abs=1e-4)
    assert mean_divergence(paths({1: 1.0, 2: 0.0}), paths({1: 0.5, 2: 0.5})) == pytest.approx(0.6931, abs=1e-4)
    assert mean_divergence(even, paths({1: 1.0, 9: 0.0}, {3: 0.5, 4: 0.5})) is None


# ---- words ----------------------------------------------------------------------------------------------------------


def rows_of(*runs: list[Outcome]) -> tuple[Row, ...]:
    made = [
        Run(
            contender=Contender(name=f"m{at}", folder=Path("m"), config=None),  # type: ignore[arg-type]
            outcomes=tuple(outcomes),
            resident_bytes=1,
            prefix_tokens=20,
        )
        for at, outcomes in enumerate(runs)
    ]
    return compare(made, [paths() for _ in made], bytes_per_pass=[1] * len(made), confidence=0.95)


def answers(*, right: int, n: int = 400, ms: float) -> list[Outcome]:
    """The first ``right`` are right."""
    return [outcome(right=at < right, ms=ms, said="a" if at < right else "b") for at in range(n)]


REFERENCE = {"right": 300, "ms": 100.0}
WORDS: list[tuple[dict[str, Any], str]] = [
    ({"right": 256, "ms": 52.6}, "1.9× faster and 11 ± 3 points worse: not a good trade"),
    ({"right": 300, "ms": 58.8}, "1.7× faster at no loss: take it"),
    ({"right": 300, "ms": 100.0}, "as fast at no loss"),
    ({"right": 300, "ms": 108.0}, "8% slower at no loss: no reason to take it"),
    ({"right": 340, "ms": 101.0}, "as fast and 10 ± 3 points better: take it"),
    ({"right": 340, "ms": 150.0}, "1.5× slower and 10 ± 3 points better: better costs time"),
    ({"right": 260, "ms": 150.0}, "1.5× slower and 10 ± 3 points worse: no reason to take it"),
]


@pytest.mark.parametrize(("made", "words"), WORDS, ids=[words for _, words in WORDS])
def test_the_verdict_says_whether_it_is_a_good_trade(made: dict[str, Any], words: str) -> None:
    first, second = rows_of(answers(**REFERENCE), answers(**made))
    assert first.verdict == "the reference"
    assert second.verdict == words


def test_a_time_that_differs_by_chance_alone_is_no_reason() -> None:
    reference = answers(right=21, n=21, ms=100)
    times_ms = [50, 200] * 10 + [50]
    _, second = rows_of(reference, [outcome(right=True, ms=ms, said="a") for ms in times_ms])
    assert second.verdict.startswith("perhaps 2.0× faster, no loss shown")
    _, second = rows_of(reference * 20, [outcome(right=True, ms=ms, said="a") for ms in times_ms] * 20)
    assert second.verdict == "perhaps 2.0× faster at no loss"


def test_few_cases_are_not_called_no_loss() -> None:
    _, second = rows_of(answers(right=15, n=20, ms=100), answers(right=14, n=20, ms=50))
    assert second.verdict == ("2.0× faster, no loss shown in 20 cases, but up to 17 points are possible: ask more")


def test_a_row_counts_by_field_and_by_tag_and_bounds_the_time() -> None:
    (row,) = rows_of(answers(right=300, ms=100))
    assert (row.exact.hits, row.fields["action"].n, row.tags[0].tag) == (300, 400, "in-scope")
    assert row.bound is not None
    assert (row.bound.percentile, row.bound.effective_n, row.bound.bound_ns) == (0.99, 400, 100 * NS_PER_MS)
    (few,) = rows_of(answers(right=1, n=4, ms=100))
    assert few.bound is None


def test_the_picture_is_drawn_or_its_file_is_named(tmp_path: Path) -> None:
    rows = rows_of(
        [outcome(right=at % 3 > 0, confidence=at / 100, ms=10 + at) for at in range(100)],
        answers(right=80, n=100, ms=50),
    )
    draw(rows, title="100 cases", file=tmp_path / "trade.png")
    assert (tmp_path / "trade.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ConfigError, match=r"trade\.xyz: cannot be drawn"):
        draw(rows, title="", file=tmp_path / "trade.xyz")


# ---- real processes -------------------------------------------------------------------------------------------------


def fake(contender: Contender) -> list[str]:
    return fake_command(contender.config.file, None)


def bench_contender(folder: Path, name: str, **behaviour: Any) -> Contender:
    own = folder / name
    own.mkdir()
    return Contender(name=name, folder=own, config=write_bench_config(own, behaviour=behaviour))


def bench_cases(count: int) -> list[Case]:
    return [Case(id=str(at), line=at, observation={"said": "go"}, accepted={"go": ("forward",)}) for at in range(count)]


def test_every_model_is_asked_everything_in_its_own_process(tmp_path: Path) -> None:
    quick = bench_contender(tmp_path, "quick", passes=[2], values=[{"go": "forward"}])
    slow = bench_contender(tmp_path, "slow", passes=[2], base_ms=15, values=[{"go": "stop"}, {"go": "forward"}])
    heard: list[tuple[str, int, int]] = []
    runs = run_contest(
        [quick, slow], bench_cases(8), seed=1, clock=SystemClock(), command=fake,
        progress=lambda phase, done, total: heard.append((phase, done, total)),
    )  # fmt: skip
    assert [run.contender.name for run in runs] == ["quick", "slow"]
    assert [len(run.outcomes) for run in runs] == [8, 8]
    assert [sum(one.exact for one in run.outcomes) for run in runs] == [8, 4]
    assert all(run.resident_bytes > 1 << 20 and run.prefix_tokens == 100 for run in runs)
    assert min(runs[1].times_ns) > 14 * NS_PER_MS
    assert ("asking", 13, 13) in heard


def test_a_model_that_fails_at_a_case_is_named_with_it(tmp_path: Path) -> None:
    broken = bench_contender(tmp_path, "broken", passes=[2], faults={"7": "error"})
    with pytest.raises(WorkerError, match="broken: case '1': the fake was told so"):
        run_contest([broken], bench_cases(8), seed=1, clock=SystemClock(), command=fake)


CASES: list[dict[str, Any]] = [
    {
        "observation": {"front": 1.5, "words": words},
        "accepted": {"action": ["left"], "speed": {"min": 0, "max": 0.4}},
        "tags": [tag],
    }
    for words, tag in (("go left", "plain"), ("left please", "polite"), ("to the left", "plain"), ("leftward", "odd"))
]


@pytest.fixture
def robot(tmp_path: Path) -> Path:
    """A configuration, an evaluation file beside it, and a model in ``tmp_path / "model"``."""
    tiny_model(tmp_path).rename(tmp_path / "model")
    (tmp_path / "eval.jsonl").write_text("\n".join(map(json.dumps, CASES)))
    return write_config(tmp_path)


def run(*words: str) -> int:
    parser = argparse.ArgumentParser(prog="edgeguard")
    add_parser(parser.add_subparsers())
    arguments = parser.parse_args(["compare", *words])
    return apart(lambda: int(arguments.func(arguments)))


def test_the_command_compares_real_models(robot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = robot.parent
    shorter = folder / "shorter.toml"
    text = robot.read_text()
    begin, end = text.index("[[prompt.example]]"), text.index("[answer.schema]")
    shorter.write_text(text[:begin] + text[end:])
    words = (f"{folder}/model", f"{folder}/model@{shorter}", "--eval", f"{folder}/eval.jsonl", "--config", str(robot))
    assert run(*words, "--json", "--plot", str(folder / "trade.svg")) == 0
    document = json.loads(capsys.readouterr().out)
    first, second = document["models"]
    assert document["busy"] >= 1
    assert (folder / "trade.svg").stat().st_size > 1_000
    assert first["exact"]["n"] == 4
    assert first["tags"]["plain"]["fields"]["action"]["n"] == 2
    assert first["against_reference"] is None
    assert second["prefix_tokens"] < first["prefix_tokens"]
    assert second["against_reference"]["divergence_nats"] > 0
    assert first["confidence"]["groups"]
    assert first["bytes_per_pass"] > 0
    assert run(*words, "--tag", "plain", "--limit", "1") == 0
    said = capsys.readouterr().out
    for line in ("1 cases of eval.jsonl", "exactly right", "divergence from 1, nats", "the reference"):
        assert line in said


def test_a_busy_machine_is_said_and_a_free_one_is_not_worth_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    say(1.1)
    assert capsys.readouterr().out == ""
    say(1.6)
    assert "machine busy x1.6: something else computes here" in capsys.readouterr().out


MISTAKES = [
    (("{folder}/model", "--tag", "rude"), r"no case has the tag 'rude'; there are odd, plain, polite"),
    (("{folder}/model", "--limit", "0"), r"--limit 0: at least one case is needed"),
    (("{folder}/model+{folder}/mine",), "an adapter is built into a recipe's model, not into a finished folder"),
    (("smollm3",), "no recipe 'smollm3'"),
    (("{folder}/model", "{folder}/model@{folder}/other.toml"), r"other\.toml: its answer schema is not that of"),
]


@pytest.mark.parametrize(("words", "said"), MISTAKES)
def test_a_mistake_is_said_before_anything_is_started(robot: Path, words: Sequence[str], said: str) -> None:
    folder = robot.parent
    (folder / "other.toml").write_text(robot.read_text().replace('"right", ', ""))
    with pytest.raises(ConfigError, match=said):
        run(*(word.format(folder=folder) for word in words), "--eval", f"{folder}/eval.jsonl", "--config", str(robot))


def test_a_recipe_file_with_a_path_is_no_folder(tmp_path: Path) -> None:
    config = load_config(write_config(tmp_path))
    with pytest.raises(ConfigError, match=r"mine\.toml: cannot be read"):
        find_contender(f"{tmp_path}/mine.toml:q8", name="mine", config=config)
