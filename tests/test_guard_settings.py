"""From the configuration to the core's settings, from an answer to axes, and the table of causes."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from plant import PLANT, plant, settings

from edgeguard.answer import read_schema
from edgeguard.errors import ConfigError
from edgeguard.guard.causes import TABLE, Clear
from edgeguard.guard.mapping import as_float32, source_of, value_key
from edgeguard.guard.settings import Settings
from edgeguard.types import Action, Cause, Grade


class TestCauses:
    def test_every_cause_has_its_row_and_a_way_out(self):
        assert TABLE.keys() == set(Cause)
        assert all(row.remedy and row.grade > Grade.NONE for row in TABLE.values())

    def test_what_latches_is_what_only_an_operator_clears(self):
        assert {cause for cause, row in TABLE.items() if row.latches} == {
            Cause.CONTROLLER_FAULT,
            Cause.CONTROLLER_ESTOP,
            Cause.CLOCK_JUMP,
            Cause.OPERATOR_STOP,
            Cause.LATCH_FILE,
        }

    def test_what_drains_the_accumulator_ends_with_the_next_on_time_answer(self):
        assert {row.clear for row in TABLE.values() if row.drains} == {Clear.ON_TIME}


class TestSettings:
    def test_numbers_are_float32_as_on_the_wire(self):
        linear, angular, gripper = settings().axes
        assert (linear.low, linear.high, linear.safe) == (as_float32(-0.2), 0.5, 0.0)
        assert gripper.high == as_float32(0.1)
        assert gripper.safe is None
        assert angular.decel == (4.0, 4.0, 4.0, 4.0)

    def test_grades_have_their_limits_and_a_terminal_stop_those_of_an_emergency(self):
        linear = settings().axes[0]
        assert linear.decel == (1.0, 1.0, 2.0, 2.0)
        assert linear.jerk == (10.0, 10.0, 20.0, 20.0)

    def test_an_emergency_is_never_gentler_than_a_comfortable_stop(self):
        linear = settings(PLANT.replace("jerk_emergency = 20.0", "jerk_emergency = 5.0")).axes[0]
        assert linear.jerk[Grade.EMERGENCY] == 10.0

    def test_the_plant_names_the_action_of_each_grade(self):
        plain = settings()
        assert plain.actions == (Action.STOP,) * 4
        named = settings(PLANT + '[guard.actions]\nemergency = "hold"\nterminal = "torque_off"\n')
        assert named.actions == (Action.STOP, Action.STOP, Action.HOLD, Action.TORQUE_OFF)

    def test_conditions_with_a_band_are_found_wherever_they_are(self):
        nested = PLANT.replace(
            'when = { field = "front_m", below = 0.3, until_above = 0.5 }',
            'when = { any = [{ all = [{ field = "front_m", below = 0.3, until_above = 0.5 }, '
            '{ field = "linear", above = 0.1 }] }, { not = { field = "linear", above = 0.4, until_below = 0.2 } }] }',
        )
        assert [(band.field, band.until) for band in settings(nested).bands] == [("front_m", 0.5), ("linear", 0.2)]

    def test_an_interlock_may_have_one_too(self):
        banded = PLANT.replace(
            'name = "docked"\nwhen = { field = "docked", equals = true }',
            'name = "docked"\nwhen = { field = "front_m", below = 1.0, until_above = 1.5 }',
        )
        assert [band.until for band in settings(banded).bands] == [0.5, 1.5]

    def test_a_range_beyond_float32_is_refused(self):
        with pytest.raises(ConfigError, match="angular"):
            settings(PLANT.replace("min = -1.0\nmax = 1.0", "min = -1e39\nmax = 1.0"))

    def test_an_interlock_reaches_to_the_safe_value_and_no_further(self):
        def rail(bounds):
            (one,) = settings(PLANT.replace('axis = "linear"\nmax = 0.0', f'axis = "linear"\n{bounds}')).guardrails
            return one.low, one.high

        assert rail("max = 0.3") == (-math.inf, as_float32(0.3))
        assert rail("max = -0.1") == (-math.inf, 0.0)
        assert rail("min = -0.1") == (as_float32(-0.1), math.inf)
        assert rail("min = 0.1") == (0.0, math.inf)

    @pytest.mark.parametrize(("bound", "fits"), [("3.4028234663852886e38", True), ("3.4028236e38", False)])
    def test_the_largest_float32_is_the_largest_limit(self, bound, fits):
        text = PLANT.replace("min = -1.0\nmax = 1.0", f"min = -{bound}\nmax = {bound}")
        if fits:
            assert settings(text).axes[1].high == float(bound)
        else:
            with pytest.raises(ConfigError, match="float32"):
                settings(text)

    def test_the_link_timeout_is_said_in_the_milliseconds_of_a_frame(self):
        assert settings().link_timeout_ms == 80


class TestMapping:
    config = plant()
    fields = read_schema(config.schema)

    def axes_of(self, **values):
        return [
            axis.source.read({"speed": Decimal("0.1"), "turn": "left", "grip": True, **values})
            for axis in settings().axes
        ]

    def test_numbers_are_taken_as_they_are_and_words_by_their_table(self):
        assert self.axes_of() == [as_float32(0.1), 1.0, as_float32(0.1)]
        assert self.axes_of(turn="right", grip=False, speed=0) == [0.0, -1.0, 0.0]

    def test_numbers_may_be_named_too(self):
        text = PLANT.replace(
            '{ field = "speed" }',
            '{ field = "speed", values = { "-0.2" = -0.2, "-0.1" = -0.1, "0.0" = 0, '
            '"0.1" = 0.05, "0.2" = 0.1, "0.3" = 0.2, "0.4" = 0.3, "0.5" = 0.5 } }',
        )
        source = settings(text).axes[0].source
        assert source.read({"speed": Decimal("0.10")}) == as_float32(0.05)

    def test_two_fields_of_the_answer_may_make_one_axis(self):
        text = PLANT.replace(
            '{ field = "speed" }',
            '{ field = "speed", times = { field = "turn", values = { left = 0.5, straight = 1.0, right = 0.5 } } }',
        )
        source = settings(text).axes[0].source
        assert source.read({"speed": Decimal("0.4"), "turn": "left"}) == as_float32(0.2)
        assert source.read({"speed": Decimal("0.4"), "turn": "straight"}) == as_float32(0.4)

    def test_a_value_is_written_as_a_key_like_json_but_a_text_as_it_is(self):
        assert [value_key(value) for value in ("left", True, None, 3, Decimal("0.50"))] == [
            "left", "true", "null", "3", "0.50",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("old", "new", "problem"),
        [
            ('field = "speed"', 'field = "sped"', "no field 'sped'"),
            ("left = 1.0, ", "", "no number for 'left'"),
            ('{ field = "speed" }', '{ field = "speed", values = { "0.1" = 0.1 } }', "no number for '-0.2'"),
            (", values = { left = 1.0, straight = 0.0, right = -1.0 }", "", "'left' is no number"),
            (", values = { true = 0.1, false = 0.0 }", "", "'false' is no number"),
        ],
    )
    def test_an_answer_that_would_leave_an_axis_without_a_number_is_refused(self, old, new, problem):
        config = plant(PLANT.replace(old, new))
        with pytest.raises(ConfigError, match=problem):
            Settings.from_config(config, self.fields, reserve_ns=0, wire_ns=0)

    def test_no_table_is_needed_for_an_enum_of_numbers(self):
        fields = read_schema({"type": "object", "properties": {"speed": {"enum": [0, 1]}}})
        source = source_of(self.config.axes[0], fields)
        assert source.read({"speed": 1}) == 1.0

    def test_what_is_too_large_for_float32_becomes_infinite(self):
        assert as_float32(1e39) == math.inf
        assert as_float32(-1e39) == -math.inf
        assert math.isnan(as_float32(math.nan))
