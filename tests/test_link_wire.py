"""What crosses the wire, as data: bounds, sequence numbers, time on the line."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeguard.types.wire import FLOAT32_MAX, Action, Command, Hello, is_newer, wire_time_ns

SOUND: dict[str, object] = {
    "axes": {"linear": 0.5},
    "action": Action.MOVE,
    "session": 1,
    "sequence": 2,
    "life_ms": 80,
}


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("axes", {"linear": math.nan}, "axis 'linear': nan is not a finite float32"),
        ("axes", {"linear": -math.inf}, "axis 'linear': -inf"),
        ("axes", {"linear": 2 * FLOAT32_MAX}, "axis 'linear': 6.8"),
        ("session", -1, "session = -1 does not fit 32 bits"),
        ("session", 1 << 32, "session = 4294967296"),
        ("sequence", 1 << 16, "sequence = 65536 does not fit 16 bits"),
        ("life_ms", 65_536, "life_ms = 65536"),
        ("life_ms", -1, "life_ms = -1"),
    ],
)
def test_a_command_that_no_frame_could_carry_is_refused(key: str, value: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Command(**{**SOUND, key: value})  # type: ignore[arg-type]


def test_a_hello_is_bounded_too() -> None:
    with pytest.raises(ValueError, match="axis_count = 256"):
        Hello(nonce=0, axis_count=256)


@pytest.mark.parametrize(
    ("sequence", "than", "newer"),
    [
        (1, 0, True),
        (0, 0, False),
        (0, 1, False),
        (0, 65_535, True),
        (65_535, 0, False),
        (32_767, 0, True),
        (32_768, 0, False),  # RFC 1982 leaves exactly half undefined; we refuse it
        (0, 32_768, False),
        (10, 65_530, True),
    ],
)
def test_sequence_numbers_wrap(sequence: int, than: int, newer: bool) -> None:
    assert is_newer(sequence, than) is newer


@given(st.integers(0, 65_535), st.integers(1, 32_767))
def test_of_two_numbers_less_than_half_apart_exactly_one_is_newer(than: int, ahead: int) -> None:
    sequence = (than + ahead) % 65_536
    assert is_newer(sequence, than)
    assert not is_newer(than, sequence)


@pytest.mark.parametrize(
    ("n_bytes", "baud", "expected_ns"),
    [(27, 115_200, 2_343_750), (27, 9_600, 28_125_000), (1, 1_000_000, 10_000), (0, 115_200, 0), (1, 115_200, 86_806)],
)
def test_a_byte_is_ten_bits_on_the_line(n_bytes: int, baud: int, expected_ns: int) -> None:
    assert wire_time_ns(n_bytes, baud=baud) == expected_ns
