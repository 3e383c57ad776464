"""From readings to a level: each rule, its hysteresis, and what lost sensors do to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from boards import BOARDS, GENERIC, ORIN, PI4, make_tree, zone

from edgeguard.board import FixedKernel, LevelWatch, Thermometer, find_board
from edgeguard.clock import NS_PER_MS, NS_PER_S, FakeClock
from edgeguard.types import BoardState, ThermalLevel

NOMINAL, HOT, THROTTLED = ThermalLevel

CPU_TEMP = "sys/class/thermal/thermal_zone0/temp"
CAP = "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq"


class Bench:
    """A board of files, looked at once a second with a kernel whose work takes as long as it is told."""

    def __init__(self, root: Path, *, soaked_c: float | None = None) -> None:
        self.root = root
        self.clock = FakeClock()
        self.piece_ms = 0.4
        kernel = FixedKernel(
            clock=self.clock, cores=1, work=lambda: self.clock.advance_ns(round(self.piece_ms * NS_PER_MS))
        )
        self.thermometer = Thermometer(find_board(root), clock=self.clock, soaked_c=soaked_c, kernel=kernel)

    def look(self, **files: str) -> BoardState:
        self.clock.advance_ns(NS_PER_S)
        for file, text in files.items():
            (self.root / {"temp": CPU_TEMP, "cap": CAP}.get(file, file)).write_text(text)
        return self.thermometer.look()


@pytest.mark.parametrize("name", BOARDS)
def test_every_board_is_nominal_at_rest_and_observed(tmp_path: Path, name: str) -> None:
    bench = Bench(make_tree(tmp_path, BOARDS[name]))
    bench.look()
    state = bench.look()
    assert (state.level, state.observed, state.critical) == (NOMINAL, True, False)
    assert state.hottest_c is not None
    assert state.read_ns <= bench.clock.now_ns()


def test_a_board_without_sensors_is_unobserved(tmp_path: Path) -> None:
    state = Bench(tmp_path).look()
    assert (state.level, state.observed, state.critical, state.hottest_c) == (NOMINAL, False, False, None)
    assert state.detail == "no sensor is known here"


def test_hot_is_five_degrees_below_the_passive_trip_point_with_hysteresis(tmp_path: Path) -> None:
    bench = Bench(make_tree(tmp_path, GENERIC))  # passive at 85
    levels = [bench.look(temp=str(milli)).level for milli in (79_900, 80_000, 78_000, 77_100, 76_900, 79_900)]
    assert levels == [NOMINAL, HOT, HOT, HOT, NOMINAL, NOMINAL]


def test_what_the_board_was_soaked_to_counts_instead_where_it_is_known(tmp_path: Path) -> None:
    bench = Bench(make_tree(tmp_path, GENERIC), soaked_c=64.0)
    assert [bench.look(temp=str(milli)).level for milli in (58_900, 59_000)] == [NOMINAL, HOT]


def test_a_trip_point_that_only_alerts_makes_nothing_hot(tmp_path: Path) -> None:
    bench = Bench(make_tree(tmp_path, ORIN))  # an alert at 70, passive at 99
    assert [bench.look(temp=str(milli)).level for milli in (75_000, 94_000)] == [NOMINAL, HOT]


def test_critical_is_the_critical_trip_point_with_hysteresis(tmp_path: Path) -> None:
    bench = Bench(make_tree(tmp_path, GENERIC))  # critical at 105
    assert [bench.look(temp=str(milli)).critical for milli in (104_900, 105_000, 102_100, 101_900)] == [
        False, True, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "file", "text", "words"),
    [
        (
            "Intel",
            "sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count",
            "9",
            "cpu1 core_throttle_count +2",
        ),
        ("Jetson Orin", "sys/class/hwmon/hwmon0/oc3_event_cnt", "5", "soctherm_oc oc3_event_cnt +1"),
        ("Jetson Orin", "sys/class/thermal/cooling_device2/cur_state", "1", "cpu-throttle-alert at 1"),
        ("Raspberry Pi 4", "sys/devices/platform/soc/soc:firmware/get_throttled", "40000", "has occurred +1"),
        ("Raspberry Pi 4", "sys/class/hwmon/hwmon1/in0_lcrit_alarm", "1", "under-voltage at 1"),
        ("RK3588", "sys/class/thermal/cooling_device0/cur_state", "2", "thermal-devfreq-0 at 2"),
    ],
)
def test_counters_and_states_mean_throttled(tmp_path: Path, name: str, file: str, text: str, words: str) -> None:
    bench = Bench(make_tree(tmp_path, BOARDS[name]))
    assert bench.look().level is NOMINAL
    state = bench.look(**{file: text})
    assert state.level is THROTTLED
    assert words in state.detail


@pytest.mark.parametrize(
    "file", ["sys/class/thermal/cooling_device0/cur_state", "sys/class/thermal/cooling_device1/cur_state"]
)
def test_a_fan_and_an_alert_are_no_throttling(tmp_path: Path, file: str) -> None:
    bench = Bench(make_tree(tmp_path, ORIN))
    bench.look()
    assert bench.look(**{file: "3"}).level is NOMINAL


def test_throttled_holds_for_ten_seconds_after_the_last_sign_and_then_it_is_as_hot_as_it_is(tmp_path: Path) -> None:
    bench = Bench(make_tree(tmp_path, GENERIC))
    state = "sys/class/thermal/cooling_device0/cur_state"
    bench.look(**{state: "2"}, temp="84000")
    levels = [bench.look(**{state: "0"}).level for _ in range(11)]
    assert levels == [THROTTLED] * 10 + [HOT]


def test_a_lower_cap_is_throttling_only_when_the_kernel_is_slower_too(tmp_path: Path) -> None:
    bench = Bench(make_tree(tmp_path, GENERIC))
    assert bench.look().level is NOMINAL
    assert bench.look(cap="1200000").level is NOMINAL  # a file that lies
    bench.piece_ms = 0.6
    state = bench.look()
    assert state.level is THROTTLED
    assert "policy0 1200 of 1800 MHz" in state.detail


def test_a_slow_kernel_at_full_clocks_is_a_busy_machine(tmp_path: Path) -> None:
    bench = Bench(make_tree(tmp_path, GENERIC))
    bench.look()
    bench.piece_ms = 0.8
    assert bench.look().level is NOMINAL


def test_the_kernel_runs_only_while_a_clock_is_capped(tmp_path: Path) -> None:
    bench = Bench(make_tree(tmp_path, GENERIC))
    before_ns = bench.clock.now_ns()
    bench.look()
    assert bench.clock.now_ns() == before_ns + NS_PER_S
    bench.look(cap="1200000")
    assert bench.clock.now_ns() > before_ns + 2 * NS_PER_S


def test_a_sensor_that_fails_every_second_look_changes_nothing(tmp_path: Path) -> None:
    bench = Bench(make_tree(tmp_path, zone(0, "cpu-thermal", "50000", t0=("passive", "85000"))))
    states = [bench.look(temp="50000" if second % 2 else "") for second in range(1, 20)]
    assert all(state.observed and state.hottest_c == 50.0 for state in states)
    hot = [bench.look(temp="83000" if second % 2 else "-256") for second in range(1, 20)]
    assert {state.level for state in hot} == {HOT}


def test_when_every_sensor_is_lost_the_last_level_stays_and_the_board_is_unobserved(tmp_path: Path) -> None:
    bench = Bench(make_tree(tmp_path, zone(0, "cpu-thermal", "83000", t0=("passive", "85000"))))
    assert bench.look().level is HOT
    states = [bench.look(temp="garbage") for _ in range(8)]
    assert [state.observed for state in states] == [True] * 5 + [False] * 3
    assert {state.level for state in states} == {HOT}
    assert states[-1].hottest_c is None
    assert states[-1].detail == "cpu-thermal: not a number: 'garbage'"


def test_a_level_is_pure(tmp_path: Path) -> None:
    board = find_board(make_tree(tmp_path, PI4))
    readings = [board.read(second * NS_PER_S) for second in range(3)]
    one, other = LevelWatch(), LevelWatch()
    assert [one.see(reading) for reading in readings] == [other.see(reading) for reading in readings]
