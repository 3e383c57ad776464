"""What the sensors of seven boards say, and what comes of those that say nothing, or nonsense."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from boards import AMD, BOARDS, GENERIC, INTEL, ORIN, PI4, PI5, RK3588, hwmon, make_tree, policy, zone
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeguard.board import Board, Kind, Reading, find_board
from edgeguard.board.table import ROWS


def _second_look(root: Path) -> Reading:
    board = find_board(root)
    board.read(0)
    return board.read(1_000_000_000)


@pytest.mark.parametrize(
    ("files", "kind", "values"),
    [
        (GENERIC, Kind.TEMPERATURE, {"cpu-thermal": 48.5}),
        (GENERIC, Kind.FLAG, {"thermal-cpufreq-0": 0}),
        (GENERIC, Kind.CLOCK, {"policy0": 1200, "ff9a0000.gpu": 400}),
        (GENERIC, Kind.CAP, {"policy0": 1800, "ff9a0000.gpu": 800}),
        (INTEL, Kind.TEMPERATURE, {"acpitz": 27.8, "x86_pkg_temp": 61, "Package id 0": 61}),
        (INTEL, Kind.FLAG, {"Processor": 0}),  # intel_powerclamp's -1 is no state
        (INTEL, Kind.COUNTER, {f"cpu{core} {part}_throttle_{what}": 0 for core in (0, 1)
                               for part in ("core", "package") for what in ("count", "total_time_ms")}),
        (PI4, Kind.TEMPERATURE, {"cpu-thermal": 55.504}),
        (PI4, Kind.FLAG, {"get_throttled: now": 0, "under-voltage": 0}),
        (PI4, Kind.COUNTER, {"get_throttled: has occurred": 0}),
        (PI5, Kind.FLAG, {"get_throttled: now": 0}),
        (ORIN, Kind.TEMPERATURE, {"cpu-thermal": 52.468, "gpu-thermal": 50.25}),
        (ORIN, Kind.FLAG, {"cpu-throttle-alert": 0, "cpufreq-cpu0": 0, "devfreq-17000000.gpu": 0}),
        (ORIN, Kind.COUNTER, {f"soctherm_oc oc{number}_event_cnt": 0 for number in (1, 2, 3)}),
        (ORIN, Kind.POWER, {"VDD_IN": 9.0, "VDD_CPU_GPU_CV": 3.2}),
        (ORIN, Kind.CLOCK, {"gpu": 306, "policy0": 1510.4, "policy4": 1510.4}),
        (RK3588, Kind.TEMPERATURE, {"soc-thermal": 43.461, "npu-thermal": 42.538}),
        (RK3588, Kind.CLOCK, {"npu": 1000, "dmc": 2112, "policy0": 1800, "policy4": 2400}),
        (AMD, Kind.TEMPERATURE, {"Tctl": 44.375}),
    ],
)  # fmt: skip
def test_what_each_board_says(
    tmp_path: Path, files: Mapping[str, str], kind: Kind, values: Mapping[str, float]
) -> None:
    assert _second_look(make_tree(tmp_path, files)).of(kind) == pytest.approx(values)


def test_every_row_of_the_table_finds_something_on_one_of_the_boards(tmp_path: Path) -> None:
    roots = [make_tree(tmp_path / name, files) for name, files in BOARDS.items()]
    for row in ROWS:
        assert any(list(row.find(root)) for root in roots), row


@pytest.mark.parametrize(
    ("files", "name", "passive_c", "critical_c"),
    [
        (GENERIC, "cpu-thermal", 85, 105),
        (INTEL, "x86_pkg_temp", None, None),  # 0 and -274 °C are no trip points
        (INTEL, "Package id 0", 100, 100),
        (ORIN, "cpu-thermal", 99, 104.5),  # the one at 70 °C only alerts somebody
        (RK3588, "soc-thermal", 75, 115),
        (AMD, "Tctl", None, 95),
    ],
)
def test_the_trip_points(
    tmp_path: Path, files: Mapping[str, str], name: str, passive_c: float | None, critical_c: float | None
) -> None:
    (sensor,) = (one for one in find_board(make_tree(tmp_path, files)).sensors if one.name == name)
    assert (sensor.passive_c, sensor.critical_c) == (passive_c, critical_c)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not a number: ''"),
        ("hot\n", "not a number: 'hot'"),
        ("4.5e1\n", "not a number: '4.5e1'"),
        ("-274000\n", "cannot be: -274 °C"),
        ("-127000\n", "cannot be: -127 °C"),
        ("-1\n", "cannot be: -0.001 °C"),
        ("-256\n", "cannot be: -0.256 °C"),
        ("0\n", "cannot be: 0 °C"),
        ("999999\n", "cannot be: 999.999 °C"),
        ("9" * 400, "not a number: '" + "9" * 40 + "'"),
        (b"\xff\xfe\x01", "not a number: '\ufffd\ufffd\\x01'"),
    ],
)
def test_a_temperature_that_is_none_has_its_reason(tmp_path: Path, text: str | bytes, reason: str) -> None:
    root = make_tree(tmp_path, zone(0, "cpu-thermal", "50000"))
    (root / "sys/class/thermal/thermal_zone0/temp").write_bytes(text.encode() if isinstance(text, str) else text)
    (missing,) = _second_look(root).missing
    assert missing.reason == reason


def test_frost_is_a_temperature(tmp_path: Path) -> None:
    assert _second_look(make_tree(tmp_path, zone(0, "cpu-thermal", "-12500"))).of(Kind.TEMPERATURE) == {
        "cpu-thermal": -12.5
    }


def test_a_sensor_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    root = make_tree(tmp_path, PI4)
    board = find_board(root)
    throttled = root / "sys/devices/platform/soc/soc:firmware/get_throttled"
    throttled.unlink()
    throttled.mkdir()  # nobody can read it, not even root
    (root / "sys/class/thermal/thermal_zone0/temp").unlink()
    reasons = {one.sensor.name: one.reason for one in board.read(0).missing}
    assert reasons["get_throttled: now"] == "Is a directory"
    assert reasons["cpu-thermal"] == "No such file or directory"
    assert "under-voltage" not in reasons


def _write(root: Path, file: str, text: str) -> None:
    (root / file).write_text(text)


def test_counters_are_counted_since_the_last_look_that_succeeded(tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "7\n"})
    board = find_board(root)
    seen = []
    for text in ("7", "7", "9", "oops", "12", "3", "4"):
        _write(root, "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", text)
        (value,) = board.read(0).values
        seen.append(value.value if value.value is not None else value.reason)
    assert seen == ["first look", 0, 2, "not a number: 'oops'", 3, "went back from 12 to 3", 1]


@pytest.mark.parametrize(
    ("words", "now", "since"),
    [
        (("0", "0"), 0, 0),
        (("0", "50005"), 5, 2),  # under-voltage and throttled, now and since
        (("50005", "50000"), 0, 0),  # over, and nothing new
        (("0", "80000"), 0, 1),  # between two looks
        (("0", "e0000"), 0, 3),
    ],
)
def test_a_raspberry_pis_word_is_hexadecimal_without_a_prefix(
    tmp_path: Path, words: tuple[str, str], now: float, since: float
) -> None:
    root = make_tree(tmp_path, PI4)
    board = find_board(root)
    for word in words:
        _write(root, "sys/devices/platform/soc/soc:firmware/get_throttled", f"{word}\n")
        reading = board.read(0)
    assert reading.of(Kind.FLAG)["get_throttled: now"] == now
    assert reading.of(Kind.COUNTER)["get_throttled: has occurred"] == since


def test_two_of_the_same_name_are_told_apart_and_ten_comes_after_two(tmp_path: Path) -> None:
    files = {**zone(10, "acpitz", "41000"), **zone(2, "acpitz", "40000"), **policy(0, "1", "1", "1")}
    assert _second_look(make_tree(tmp_path, files)).of(Kind.TEMPERATURE) == {"acpitz": 40, "acpitz 2": 41}


def test_a_hwmon_device_is_known_by_its_name_not_its_number(tmp_path: Path) -> None:
    files = {**hwmon(5, "soctherm_oc", oc1_event_cnt="1"), **hwmon(0, "pwmfan", oc1_event_cnt="1")}
    (sensor,) = find_board(make_tree(tmp_path, files)).sensors
    assert sensor.name == "soctherm_oc oc1_event_cnt"


def test_a_machine_without_sensors_has_none(tmp_path: Path) -> None:
    board = find_board(tmp_path)
    assert (board.names, board.sensors, board.read(3)) == ((), (), Reading(read_ns=3, values=()))


def test_this_machine_can_be_read_whatever_it_has() -> None:
    reading = find_board().read(1)
    assert all(one.value is not None or one.reason for one in reading.values)


_GARBAGE = st.one_of(
    st.binary(max_size=20), st.integers(-(10**12), 10**12).map(lambda number: str(number).encode()), st.just(b"")
)


@pytest.mark.parametrize("name", BOARDS)
def test_no_garbage_makes_a_look_raise(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = make_tree(tmp_path_factory.mktemp("board"), BOARDS[name])
    board = find_board(root)
    files = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())

    @settings(max_examples=20, deadline=None)
    @given(st.data())
    def ruin(data: st.DataObject) -> None:
        for file in random.Random(data.draw(st.integers(0, 99))).sample(files, k=min(6, len(files))):
            file.write_bytes(data.draw(_GARBAGE))
        for look in (board, find_board(root)):
            _check(look)

    ruin()


def _check(board: Board) -> None:
    for one in board.read(0).values:
        assert (one.value is None) == bool(one.reason)
