"""The observations to measure with: varied, within the fields' ranges, the same in every run."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, pairwise

from bench_robot import config

from edgeguard.bench.observations import draw_fields


def test_every_field_has_a_value_of_its_kind_and_range() -> None:
    for fields in islice(draw_fields(config()), 200):
        assert list(fields) == ["said", "front_m", "lamp", "tilt"]
        assert 0 <= fields["front_m"] <= 10
        assert fields["front_m"] == round(fields["front_m"], 1)
        assert isinstance(fields["lamp"], bool)
        assert -3 <= fields["tilt"] <= 5  # no range: between the examples' values
        assert fields["tilt"] == int(fields["tilt"])


def test_texts_are_the_examples_but_never_a_stop_word_for_the_model_never_sees_one() -> None:
    assert {fields["said"] for fields in islice(draw_fields(config()), 50)} == {"go ahead"}


def test_a_text_field_may_have_examples_of_its_own() -> None:
    robot = config()
    fields = [replace(spec, examples=("Stop", "go left")) if spec.kind == "text" else spec for spec in robot.fields]
    drawn = islice(draw_fields(replace(robot, fields=tuple(fields))), 50)
    assert {one["said"] for one in drawn} == {"go ahead", "go left"}, "a stop word is none of them"


def test_they_are_varied_and_the_same_in_every_run() -> None:
    first, again = (list(islice(draw_fields(config()), 100)) for _ in range(2))
    other = list(islice(draw_fields(config(), seed=2), 100))
    assert first == again
    assert first != other
    assert len({str(fields) for fields in first}) > 90


def test_within_a_scene_one_field_changes_at_a_time_and_scenes_end() -> None:
    drawn = list(islice(draw_fields(config(), scene=20), 400))
    changes = [sum(one[name] != after[name] for name in one) for one, after in pairwise(drawn)]
    assert sum(count <= 1 for count in changes) > 300
    assert 10 < sum(count > 1 for count in changes) < 80
    assert len({str(fields) for fields in drawn}) > 150
