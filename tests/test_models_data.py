"""The evaluation set and the training data of the shipped adapter: valid, apart from one another, reproducible."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from edgeguard.bench.comparison.evaluation import Case, read_evaluation
from edgeguard.config import load_config
from edgeguard.demo.operator import PHRASES
from edgeguard.demo.story import demo_config

MODELS = Path(__file__).parent.parent / "models"
EVALUATION = MODELS / "eval" / "commands.jsonl"
DEV = MODELS / "training" / "dev.jsonl"
STAGES = (
    ("--cases", "32000", "--seed", "8"),
    ("--cases", "4000", "--seed", "9", "--weight", "range=30"),
    ("--cases", "2000", "--seed", "10", "--weight", "range=12", "--weight", "chatter=30", "--weight", "override=24"),
)
"""What the shipped adapter has been trained on, one after the other; see its card."""

sys.path.append(str(MODELS / "training"))
import generate  # noqa: E402
from normalise import normalised  # noqa: E402


@pytest.fixture(scope="module")
def evaluation() -> tuple[Case, ...]:
    return read_evaluation(EVALUATION, config=load_config(demo_config()))


@pytest.fixture(scope="module", params=STAGES, ids=("first stage", "second stage", "third stage"))
def trained_on(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generated(tmp_path_factory.mktemp("data") / "train.jsonl", *request.param)


def generated(file: Path, *options: str) -> Path:
    script = Path(str(generate.__file__))
    without = ["--without", str(EVALUATION), "--without", str(DEV)]
    subprocess.run([sys.executable, str(script), *options, *without, "--out", str(file)], check=True, timeout=60)
    return file


def said(cases: tuple[Case, ...]) -> set[str]:
    return {normalised(str(case.observation["said"])) for case in cases}


def test_there_are_at_least_400_cases_with_every_range(evaluation: tuple[Case, ...]) -> None:
    assert len(evaluation) >= 400
    assert all({"said", "front_m", "left_m", "right_m"} == case.observation.keys() for case in evaluation)
    assert len({case.id for case in evaluation}) == len(evaluation)


def test_every_case_says_its_scope_and_its_kind(evaluation: tuple[Case, ...]) -> None:
    counts = Counter(tag for case in evaluation for tag in case.tags)
    assert counts["in-scope"] + counts["out-of-scope"] == len(evaluation)
    assert counts["out-of-scope"] >= 100
    kinds = ("indirect", "polite", "terse", "typo", "spoken-number", "two-step", "negation", "range")
    assert all(counts[kind] >= 20 for kind in kinds)
    assert counts["chatter"] + counts["override"] == counts["out-of-scope"]


def test_out_of_scope_is_what_is_answered_none(evaluation: tuple[Case, ...]) -> None:
    for case in evaluation:
        assert (case.accepted["move"] == ("none",)) == ("out-of-scope" in case.tags), case.id


def test_the_moves_are_balanced(evaluation: tuple[Case, ...]) -> None:
    moves = Counter(move for case in evaluation for move in case.accepted["move"])  # type: ignore[union-attr]
    assert min(moves.values()) > 0.5 * max(moves[move] for move in ("forward", "left", "right", "back", "stop"))


def test_an_utterance_is_said_once_or_depends_on_the_range(evaluation: tuple[Case, ...]) -> None:
    once = [normalised(str(case.observation["said"])) for case in evaluation if "range" not in case.tags]
    assert len(set(once)) == len(once)
    asked_twice = Counter(str(case.observation["said"]) for case in evaluation if "range" in case.tags)
    assert set(asked_twice.values()) == {2}


def test_no_training_phrase_is_in_the_evaluation_set(evaluation: tuple[Case, ...], trained_on: Path) -> None:
    assert not said(evaluation) & generate.phrases_of(trained_on)


def test_what_runs_are_compared_on_is_in_neither(evaluation: tuple[Case, ...], trained_on: Path) -> None:
    dev = said(read_evaluation(DEV, config=load_config(demo_config())))
    assert not dev & said(evaluation)
    assert not dev & generate.phrases_of(trained_on)


def test_the_training_data_are_valid_and_balanced(trained_on: Path) -> None:
    cases = read_evaluation(trained_on, config=load_config(demo_config()))
    moves = Counter(move for case in cases for move in case.accepted["move"])  # type: ignore[union-attr]
    assert min(moves.values()) > 0.1 * len(cases)


def test_the_same_seed_makes_the_same_data(tmp_path: Path) -> None:
    first, again, other = (
        generated(tmp_path / f"{at}.jsonl", "--cases", "300", "--seed", seed) for at, seed in enumerate("889")
    )
    assert first.read_bytes() == again.read_bytes()
    assert not set(first.read_text().splitlines()) >= set(other.read_text().splitlines())


def test_no_phrase_is_trained_on_twice_except_with_another_range(trained_on: Path) -> None:
    lines = [json.loads(line) for line in trained_on.read_text(encoding="utf-8").splitlines()]
    once = Counter(normalised(one["observation"]["said"]) for one in lines if "range" not in one["tags"])
    assert max(once.values()) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Turn LEFT!", "turn left"),
        ("don't  go", "dont go"),
        ("at zero point two", "at 0 point 2"),
        ("at 0.2", "at 0 2"),
        ("thirty degrees", "30 degrees"),
        ("ｌｅｆｔ", "left"),
    ],
)
def test_the_same_words_are_the_same_phrase(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


def test_the_demo_says_nothing_that_its_model_was_trained_on(trained_on: Path) -> None:
    spoken = {normalised(phrase) for phrases in PHRASES.values() for phrase in phrases}
    assert not spoken & generate.phrases_of(trained_on)
