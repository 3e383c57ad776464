"""The evaluation file: what is read, what is judged, and what is said about a line that is wrong."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from engine_setup import write_config

from edgeguard.bench.comparison.evaluation import Case, draw_cases, read_evaluation
from edgeguard.config import load_config
from edgeguard.errors import ConfigError

GOOD = {"observation": {"front": 1.5, "words": "go left"}, "accepted": {"action": ["left"]}}


def read(folder: Path, *cases: dict[str, Any] | str) -> tuple[Case, ...]:
    path = folder / "eval.jsonl"
    path.write_text("\n".join(case if isinstance(case, str) else json.dumps(case) for case in cases))
    return read_evaluation(path, config=load_config(write_config(folder)))


def test_a_case_has_its_line_its_id_and_its_tags(tmp_path: Path) -> None:
    first, second = read(tmp_path, GOOD, "", {**GOOD, "id": "b", "tags": ["in-scope", "terse"]})
    assert (first.id, first.line, first.tags) == ("line 1", 1, ())
    assert (second.id, second.line, second.tags) == ("b", 3, ("in-scope", "terse"))
    assert second.observation == {"front": 1.5, "words": "go left"}


ACCEPTED: list[tuple[dict[str, Any], dict[str, Any] | None, dict[str, bool]]] = [
    ({"action": ["left", "stop"]}, {"action": "stop", "speed": 0.3}, {"action": True}),
    ({"action": ["left"]}, {"action": "stop", "speed": 0.3}, {"action": False}),
    ({"action": ["left"], "speed": [0.3]}, {"action": "left", "speed": 0.3}, {"action": True, "speed": True}),
    ({"speed": [0.3]}, {"speed": Decimal("0.30")}, {"speed": True}),
    ({"speed": {"min": 0.2, "max": 0.3}}, {"speed": 0.3}, {"speed": True}),
    ({"speed": {"min": 0.2, "max": 0.3}}, {"speed": 0.4}, {"speed": False}),
    ({"speed": [1.0]}, {"speed": True}, {"speed": False}),
    ({"speed": [1.0]}, {"action": "left"}, {"speed": False}),
    ({"speed": [1.0]}, None, {"speed": False}),
]


@pytest.mark.parametrize(("accepted", "values", "judged"), ACCEPTED)
def test_an_answer_is_judged_by_value_field_by_field(
    tmp_path: Path, accepted: dict[str, Any], values: dict[str, Any] | None, judged: dict[str, bool]
) -> None:
    (case,) = read(tmp_path, {**GOOD, "accepted": accepted})
    assert case.judge(values) == judged


WRONG: list[tuple[dict[str, Any] | str, str]] = [
    ("{", "is not JSON"),
    ("[]", "is not a JSON object"),
    ('{"accepted": {"speed": {"min": NaN, "max": 1}}}', "is not JSON: NaN is no number"),
    ({**GOOD, "expected": {}}, "'expected' is no key of a case; there are id, observation, accepted, tags"),
    ({**GOOD, "id": 3}, "id: 3 is not a text"),
    ({**GOOD, "tags": "terse"}, "tags: 'terse' is not a list of words"),
    ({"accepted": {"action": ["left"]}}, "observation: is missing"),
    ({**GOOD, "observation": {"said": "go"}}, r"observation: 'said' is no \[\[field\]\] of the configuration; there"),
    ({**GOOD, "observation": {"front": "near"}}, "observation: field 'front' is 'near', which is no number"),
    ({**GOOD, "observation": {"front": 12.0}}, "observation: field 'front' is 12.0, above its 10, which is no reading"),
    ({**GOOD, "observation": {"words": "x" * 41}}, "observation: field 'words' has 41 characters; at most 40"),
    ({"observation": {}}, "accepted: is missing"),
    ({**GOOD, "accepted": {"move": ["left"]}}, "accepted: 'move' is no field of the answer; there are action, speed"),
    ({**GOOD, "accepted": {"action": ["fly"]}}, 'accepted.action: "fly" is not one of the schema\'s values'),
    ({**GOOD, "accepted": {"action": "left"}}, 'accepted.action: "left" is neither a list of values nor'),
    ({**GOOD, "accepted": {"action": []}}, "accepted.action: .* is neither a list of values nor"),
    ({**GOOD, "accepted": {"speed": {"min": 2, "max": 3}}}, "accepted.speed: nothing from 2 to 3 is in 0.0 to 1.0"),
]


@pytest.mark.parametrize(("case", "said"), WRONG)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path: Path, case: dict[str, Any] | str, said: str) -> None:
    with pytest.raises(ConfigError, match=rf"eval\.jsonl:2: {said}"):
        read(tmp_path, GOOD, case)


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, "{", {**GOOD, "id": "a"}, {**GOOD, "id": "a", "accepted": {}})
    assert len(refused.value.problems) == 3
    assert "eval.jsonl:3: id: 'a' is line 2's already" in refused.value.problems[1]


def test_of_a_file_of_another_kind_a_screenful_is_shown(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, *["# a page of text"] * 25)
    assert len(caught.value.problems) == 21
    assert caught.value.problems[-1].endswith("eval.jsonl: and 5 more")


def test_a_file_without_cases_or_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"eval\.jsonl: has no cases"):
        read(tmp_path, "")
    with pytest.raises(ConfigError, match=r"none\.jsonl: cannot be read"):
        read_evaluation(tmp_path / "none.jsonl", config=load_config(write_config(tmp_path)))


def test_the_order_and_the_subset_are_seeded(tmp_path: Path) -> None:
    cases = read(tmp_path, *([GOOD] * 20))
    drawn = draw_cases(cases, limit=5, seed=1)
    assert drawn == draw_cases(cases, limit=5, seed=1)
    assert drawn != draw_cases(cases, limit=5, seed=2)
    assert len(drawn) == 5
    assert sorted(case.line for case in draw_cases(cases, limit=None, seed=1)) == list(range(1, 21))
