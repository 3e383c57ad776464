"""The configuration says everything that is wrong with it at once, and names file, key, value, bound and way out."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path

import pytest

from edgeguard.clock import NS_PER_MS
from edgeguard.config import load_config, parse_config
from edgeguard.config.condition import All, Compare, Equals, Not, OlderThan, leaves
from edgeguard.errors import ConfigError
from edgeguard.types import Action, Grade

GOOD = """
[timing]
deadline_ms = 150

[prompt]
user = "{said} {front_m}"

[[prompt.example]]
observation = { said = "go", front_m = 2.5 }
answer = { speed = 0.3 }

[answer.schema]
type = "object"
properties = { speed = { type = "number", minimum = 0, maximum = 0.6, multipleOf = 0.1 } }

[[field]]
name = "said"
kind = "text"
stop_words = ["Stop", "halt"]

[[field]]
name = "front_m"
min = 0
max = 10
max_age_ms = 120

[[axis]]
name = "linear"
source = { field = "speed" }
min = -0.5
max = 1.0
rate_up = 0.8
decel_emergency = 2

[[rule]]
name = "near"
when = { any = [{ field = "front_m", below = 0.4, until_above = 0.6 }, { not = { field = "said", equals = "go" } }] }
grade = "emergency"
always = true

[[rule]]
name = "stop"

[link]
port = "/dev/ttyUSB0"
"""


def parsed(text: str):
    return parse_config(text.encode(), file=Path("robot.toml"))


def test_a_good_file_is_read_with_its_units_converted_and_its_defaults_filled_in():
    config = parsed(GOOD)
    assert config.timing.deadline_ns == 150 * NS_PER_MS
    assert config.timing.life_ns == (200 + 150 + 20) * NS_PER_MS
    assert config.timing.reserve_ns is None
    axis = config.axes[0]
    assert (axis.rate_down, axis.safe) == (0.8, 0.0)
    assert axis.decel == {Grade.COMFORTABLE: 0.8, Grade.EMERGENCY: 2.0}
    assert axis.jerk[Grade.EMERGENCY] == math.inf
    assert config.guarding.actions[Grade.TERMINAL] is Action.STOP
    assert config.field("said").stop_words == ("stop", "halt")


def test_numbers_of_the_schema_stay_exact_decimals():
    assert parsed(GOOD).schema["properties"]["speed"]["multipleOf"] == Decimal("0.1")


def test_conditions_become_data_that_names_its_fields():
    when = parsed(GOOD).rules[0].when
    assert when is not None
    assert {leaf.field for leaf in leaves(when)} == {"front_m", "said"}
    assert when.parts[0] == Compare(field="front_m", below=0.4, until=0.6)
    assert when.parts[1] == Not(part=Equals(field="said", value="go"))


WRONG = [
    # what is replaced, by what, and what the message must say
    ("deadline_ms = 150", "deadline_sm = 150", ["timing.deadline_sm", "unknown key", "deadline_ms"]),
    ("deadline_ms = 150", "deadline_ms = 5", ["timing.deadline_ms", "5", "between 10 and 60000"]),
    ("deadline_ms = 150", 'deadline_ms = "fast"', ["timing.deadline_ms", "'fast'", "not a number"]),
    ("deadline_ms = 150", "deadline_ms = nan", ["timing.deadline_ms", "out of bounds"]),
    ("deadline_ms = 150", f"deadline_ms = 1{'0' * 400}", ["timing.deadline_ms", "out of bounds"]),
    ("deadline_ms = 150", "life_ms = 300", ["timing.life_ms", "300", "420 ms", "period + deadline + tick"]),
    ("deadline_ms = 150", "tick_ms = 150", ["timing.tick_ms", "half of period_ms"]),
    ('user = "{said} {front_m}"', "", ["prompt.user", "missing"]),
    ("min = -0.5", "min = 2", ["axis[0].min", "above max"]),
    ("rate_up = 0.8", "rate_up = 0", ["axis[0].rate_up", "0 is out of bounds: it must be more than 0"]),
    ("decel_emergency = 2", "decel_emergency = 0.5", ["axis[0].decel_emergency", "at least 0.8"]),
    ("decel_emergency = 2", 'safe = "away"', ["axis[0].safe", "'away'", "hold"]),
    ("decel_emergency = 2", 'measured = "odometer"', ["axis 'linear'", "odometer"]),
    ("below = 0.4, until_above = 0.6", "below = 0.4, until_above = 0.2", ["until_above", "must not be less"]),
    ('field = "front_m", below', 'field = "front", below', ["rule 'near'", "'front'", "front_m"]),
    ('{ field = "said", equals = "go" }', "{ said = 1 }", ["not a condition", "one of"]),
    ('{ field = "said", equals = "go" }', '{ field = "said" }', ["compared with nothing"]),
    ('grade = "emergency"', 'grade = "panic"', ["rule[0].grade", "'panic'", "comfortable, emergency"]),
    ('name = "stop"', 'name = "stop"\naxes = { linear = 0.1 }', ["rule", "last [[rule]] must be a stop"]),
    ('name = "stop"', 'name = "near"', ["rule", "'near' is there twice"]),
    ('port = "/dev/ttyUSB0"', "timeout_ms = 40", ["link.timeout_ms", "between 60 and"]),
    ('name = "said"', 'name = "said"\nkidn = "text"', ["field[0].kidn", "did you mean 'kind'"]),
    ('equals = "go"', 'equal = "go"', ["when.any[1].not.equal", "did you mean 'equals'"]),
    ("[link]", "[[link]]", ["link", "not a table"]),
    ('[[field]]\nname = "said"', '[field]\nname = "said"', ["not valid TOML"]),
]


@pytest.mark.parametrize(
    ("old", "new", "said"), WRONG, ids=[new.splitlines()[-1][:40] if new else "gone" for _, new, _ in WRONG]
)
def test_a_mistake_is_named_with_its_key_its_value_and_the_way_out(old, new, said):
    assert old in GOOD
    with pytest.raises(ConfigError) as caught:
        parsed(GOOD.replace(old, new, 1))
    message = str(caught.value)
    assert message.startswith("robot.toml: ")
    for part in said:
        assert part in message


def test_everything_that_is_wrong_is_said_at_once():
    text = (
        GOOD.replace("deadline_ms = 150", "deadline_ms = 5")
        .replace("rate_up", "rate_pu")
        .replace("max = 10", 'max = "x"')
    )
    with pytest.raises(ConfigError) as caught:
        parsed(text)
    keys = {problem.split(": ")[1] for problem in caught.value.problems}
    assert {"timing.deadline_ms", "axis[0].rate_pu", "axis[0].rate_up", "field[1].max"} <= keys


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "decel_emergency = 2",
            'jerk_comfortable = "soft"',
            "axis[0].jerk_comfortable: 'soft' is not a number; it has neither quotes nor a unit",
        ),
        ('kind = "text"', 'kind = "string"', "field[0].kind: 'string' is not one of number, text, flag"),
        (
            'kind = "text"',
            'kind = "txt"',
            "field[0].kind: 'txt' is not one of number, text, flag; did you mean 'text'?",
        ),
    ],
)
def test_one_mistake_is_one_message(old, new, said):
    assert old in GOOD
    with pytest.raises(ConfigError) as caught:
        parsed(GOOD.replace(old, new, 1))
    assert [problem for problem in caught.value.problems if "rule 'near'" not in problem] == [f"robot.toml: {said}"]


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.toml: cannot be read \(No such file or directory\)"):
        load_config(tmp_path / "nowhere.toml")


@pytest.mark.parametrize(
    ("text", "place", "shown", "way_out"),
    [
        ("[timing]\r\ntick_ms = 20 ms\r\n", "line 2, column 14", "tick_ms = 20 ms\n                 ^", "no unit"),
        ("port = /dev/ttyUSB0", "line 1, column 8", "port = /dev/ttyUSB0\n           ^", '"quotes"'),
        ("a = 1\na = 2", "line 2, column 6", "a = 2\n         ^", "is there twice"),
        ("[a]\n[a]", "line 2, column 3", "[a]\n      ^", "as [[name]]"),
        ("b = [1,\n\n", "line 1, column 8", "b = [1,\n           ^", "is closed"),
        (r'a = "C:\dev"', "line 1", "a = ", "'single quotes'"),
        ("a : 1", "line 1, column 3", "a : 1\n      ^", "key = value"),
        ("é" * 100 + " = x", "line 1", "é" * 20, ""),
    ],
)
def test_what_is_no_toml_is_shown_with_its_line_and_the_way_out(text, place, shown, way_out):
    with pytest.raises(ConfigError) as caught:
        parse_config(text.encode(), file=Path("robot.toml"))
    (message,) = caught.value.problems
    head, line, caret = message.split("\n")
    assert head.startswith(f"robot.toml: {place}")
    assert f"    {shown}" in f"{line}\n{caret}"
    assert way_out in head
    assert len(line) <= 60
    assert caret.strip() == "^"


def test_a_byte_order_mark_is_left_out_and_another_encoding_is_named():
    assert parsed("\ufeff" + GOOD).timing == parsed(GOOD).timing
    with pytest.raises(ConfigError, match=r"line 2: is no text in UTF-8 \(byte 0xe9\); save it as UTF-8"):
        parse_config("[timing]\n# é".encode("latin-1"), file=Path("robot.toml"))


def test_the_schema_may_be_a_file_of_its_own(tmp_path):
    inline = GOOD[GOOD.index("[answer.schema]") : GOOD.index("[[field]]")]
    (tmp_path / "robot.toml").write_text(GOOD.replace(inline, '[answer]\nschema_file = "answer.json"\n'))
    with pytest.raises(ConfigError, match=r"answer\.schema_file: .*answer\.json cannot be read"):
        load_config(tmp_path / "robot.toml")
    (tmp_path / "answer.json").write_text('{"properties": {"speed": {"multipleOf": 0.1}}}')
    assert load_config(tmp_path / "robot.toml").schema["properties"]["speed"]["multipleOf"] == Decimal("0.1")
    (tmp_path / "answer.json").write_text("{")
    with pytest.raises(ConfigError, match="is not JSON"):
        load_config(tmp_path / "robot.toml")


def test_ages_and_groups_of_conditions_are_read():
    old = (
        '{ any = [{ field = "front_m", below = 0.4, until_above = 0.6 }, { not = { field = "said", equals = "go" } }] }'
    )
    when = parsed(GOOD.replace(old, '{ all = [{ field = "front_m", older_than_ms = 90 }] }')).rules[0].when
    assert when == All(parts=(OlderThan(field="front_m", age_ns=90 * NS_PER_MS),))
