"""Where an axis gets its value: two fields of the answer may make one number, as "forward" and "fast" do."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeguard.answer import read_schema
from edgeguard.config import parse_config
from edgeguard.errors import ConfigError
from edgeguard.guard.mapping import as_float32, source_of
from edgeguard.runtime.assembly import assemble

ROBOT = """
[prompt]
user = "{{said}}"

[answer.schema]
type = "object"
[answer.schema.properties]
move = {{ enum = ["forward", "back", "stop"] }}
speed = {{ enum = ["slow", "fast"] }}
gain = {{ type = "integer", minimum = 0, maximum = 3 }}

[[field]]
name = "said"
kind = "text"

[[axis]]
name = "linear"
source = {{ field = "move", values = {{ forward = 0.5, back = -0.3, stop = 0 }}, times = {times} }}
min = -0.5
max = 0.5
rate_up = 1

[[rule]]
name = "stop"
"""
FAST = '{ field = "speed", values = { slow = 0.4, fast = 1 } }'


@pytest.mark.parametrize(
    ("move", "speed", "value"),
    [("forward", "fast", 0.5), ("forward", "slow", 0.2), ("back", "slow", -0.12), ("stop", "fast", 0.0)],
)
def test_one_field_is_multiplied_by_another(move, speed, value):
    config = parse_config(ROBOT.format(times=FAST).encode(), file=Path("robot.toml"))
    source = source_of(config.axes[0], read_schema(config.schema))
    assert source.read({"move": move, "speed": speed, "gain": 1}) == pytest.approx(as_float32(value), rel=1e-6)


@pytest.mark.parametrize(
    ("times", "complaint"),
    [
        ('{ field = "pace" }', "axis 'linear'.source.times.field: the answer has no field 'pace'"),
        ('{ field = "speed" }', "axis 'linear'.source.times: the answer's field 'speed' may say 'slow'"),
        ('{ field = "speed", values = { slow = 1 } }', "axis 'linear'.source.times.values: no number for 'fast'"),
        ('{ field = "gain" }', "forward and gain 3 gives 1.5, out of the axis' range -0.5 to 0.5"),
        ('{ field = "speed", value = 1 }', "axis[0].source.times.value: unknown key"),
    ],
)
def test_a_factor_that_cannot_be_used_is_named(tmp_path, times, complaint):
    file = tmp_path / "robot.toml"
    file.write_text(ROBOT.format(times=times))
    with pytest.raises(ConfigError) as refused:
        assemble(file)
    assert any(complaint in problem for problem in refused.value.problems)


def test_a_factor_that_keeps_the_range_is_accepted(tmp_path):
    file = tmp_path / "robot.toml"
    file.write_text(ROBOT.format(times=FAST))
    assert assemble(file).config.axes[0].source.times is not None
