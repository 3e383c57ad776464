"""The configuration that the demo runs on and that users copy."""

from __future__ import annotations

import pytest

from edgeguard.demo.operator import PHRASES
from edgeguard.demo.story import demo_config
from edgeguard.demo.world import RANGE_LIMIT_M
from edgeguard.guard.words import normalise
from edgeguard.model.adapter_files import known_adapters
from edgeguard.runtime.assembly import Assembly, assemble


@pytest.fixture(scope="module")
def assembly() -> Assembly:
    return assemble(demo_config())


def test_nothing_is_wrong_with_it(assembly: Assembly) -> None:
    assert [field.name for field in assembly.fields] == ["move", "speed"]


def test_it_is_measured_with_short_and_long_phrases_none_of_which_stops_the_guard(assembly: Assembly) -> None:
    field = assembly.config.field("said")
    assert field is not None
    assert min(map(len, field.examples)) < 6
    assert max(map(len, field.examples)) > 35
    assert not set(map(normalise, field.stop_words)) & set(map(normalise, field.examples))


def test_its_adapter_comes_with_edgeguard(assembly: Assembly) -> None:
    assert assembly.config.model.adapter in known_adapters()


def test_the_operator_does_not_stop_the_guard_by_accident(assembly: Assembly) -> None:
    field = assembly.config.field("said")
    assert field is not None
    stop_words = set(map(normalise, field.stop_words))
    assert stop_words
    phrases = [phrase for phrases in PHRASES.values() for phrase in phrases]
    assert not stop_words & set(map(normalise, phrases))
    assert max(map(len, phrases)) <= field.max_chars


def test_every_range_that_a_sensor_may_read_is_allowed(assembly: Assembly) -> None:
    for name in ("front_m", "left_m", "right_m"):
        spec = assembly.config.field(name)
        assert spec is not None
        assert (spec.low, spec.high) == (0, RANGE_LIMIT_M)


def test_it_has_one_of_everything_that_there_is_to_show(assembly: Assembly) -> None:
    config = assembly.config
    assert any(rule.always and rule.axes for rule in config.rules)
    assert config.rules[-1].when is None
    assert config.interlocks
    assert any(axis.clamp for axis in config.axes)
    assert all(axis.name in config.link.controller_decel for axis in config.axes)
