"""The contract of every codec of the table, and the pages of ``cobs`` that firmware is written from."""

from __future__ import annotations

import math
import struct
import zlib
from dataclasses import replace
from itertools import pairwise

import cobs_vectors
import pytest
from cobs import cobs
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeguard.errors import ConfigError
from edgeguard.link import CODECS, Codec, make_codec
from edgeguard.link.cobs_codec import WireMessage
from edgeguard.types.wire import Action, Command, Echo, Hello, MotorFlag, Welcome

AXES = ("linear", "angular")

float32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
u16, u32 = st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFFFF)
messages: st.SearchStrategy[WireMessage] = st.one_of(
    st.builds(
        Command,
        axes=st.fixed_dictionaries(dict.fromkeys(AXES, float32)),
        action=st.sampled_from(Action),
        session=u32,
        sequence=u16,
        life_ms=u16,
    ),
    st.builds(
        Echo,
        session=u32,
        sequence=u16,
        flags=st.integers(0, 31).map(MotorFlag),
        life_ms=u16,
        axes=st.fixed_dictionaries({name: st.none() | float32 for name in AXES}),
        controller_ms=u32,
    ),
    st.builds(Hello, nonce=u32, axis_count=st.integers(0, 255)),
    st.builds(Welcome, nonce=u32, session=u32, axis_count=st.integers(0, 255), link_timeout_ms=u16),
)

COMMAND = Command(
    axes={"linear": 0.25, "angular": -1.5}, action=Action.MOVE, session=0x01020304, sequence=0xFFFF, life_ms=80
)
ECHO = Echo(
    session=0x01020304,
    sequence=0xFFFF,
    flags=MotorFlag.MOVING | MotorFlag.EXPIRED,
    life_ms=79,
    axes={"linear": 0.25, "angular": None},
    controller_ms=1000,
)
HELLO = Hello(nonce=0xDEADBEEF, axis_count=2)
WELCOME = Welcome(nonce=0xDEADBEEF, session=0x01020304, axis_count=2, link_timeout_ms=80)

NEXT = Hello(nonce=1, axis_count=2)
KINDS = pytest.mark.parametrize("message", [COMMAND, ECHO, HELLO, WELCOME], ids=lambda one: type(one).__name__)

VECTORS = cobs_vectors.load()


@pytest.fixture(params=list(CODECS))
def codec(request: pytest.FixtureRequest) -> Codec:
    return make_codec(request.param, axes=AXES)


@pytest.mark.parametrize("name", list(CODECS))
@settings(max_examples=200)
@given(message=messages)
def test_what_is_encoded_is_decoded(name: str, message: WireMessage) -> None:
    codec = make_codec(name, axes=AXES)
    assert codec.feed(codec.encode(message)) == [message]
    assert codec.corrupt == 0


@pytest.mark.parametrize("name", list(CODECS))
@settings(max_examples=100)
@given(sent=st.lists(messages, max_size=5), data=st.data())
def test_chunks_of_any_size_give_the_same_messages(name: str, sent: list[WireMessage], data: st.DataObject) -> None:
    codec = make_codec(name, axes=AXES)
    line = b"".join(map(codec.encode, sent))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(line)), max_size=10)))
    received = [one for begin, end in pairwise([0, *cuts, len(line)]) for one in codec.feed(line[begin:end])]
    assert received == sent


@KINDS
def test_no_single_changed_byte_passes_and_the_next_frame_does(codec: Codec, message: WireMessage) -> None:
    frame, following = codec.encode(message), codec.encode(NEXT)
    for place, right in enumerate(frame):
        for wrong in set(range(256)) - {right}:
            assert codec.feed(frame[:place] + bytes([wrong]) + frame[place + 1 :] + following) == [NEXT]


@KINDS
def test_a_lost_or_doubled_byte_costs_that_frame_only(codec: Codec, message: WireMessage) -> None:
    frame, following = codec.encode(message), codec.encode(NEXT)
    for place in range(1, len(frame) - 1):
        assert codec.feed(frame[:place] + frame[place + 1 :] + following) == [NEXT]
        assert codec.feed(frame[:place] + frame[place : place + 1] + frame[place:] + following) == [NEXT]


@KINDS
def test_noise_or_a_torso_before_a_frame_does_not_cost_it(codec: Codec, message: WireMessage) -> None:
    frame = codec.encode(message)
    for length in range(len(frame) - 1):
        assert codec.feed(frame[:length] + frame) == [message]
    for noise in (b"\xa5" * 37, bytes(range(1, 256)), b"\xff" * 100_000):
        assert codec.feed(noise + frame) == [message]


@given(noise=st.binary(max_size=300))
def test_noise_is_no_message_and_no_error(noise: bytes) -> None:
    for name in CODECS:
        codec = make_codec(name, axes=AXES)
        assert codec.feed(noise) == []
        assert codec.feed(codec.encode(NEXT)) == [NEXT]


def test_what_is_dropped_is_counted(codec: Codec) -> None:
    frame = codec.encode(COMMAND)
    codec.feed(frame[:5] + frame + frame[5:])
    assert codec.corrupt == 2


def test_after_a_reset_the_begun_frame_is_forgotten(codec: Codec) -> None:
    frame = codec.encode(COMMAND)
    assert codec.feed(frame[:-1]) == []
    codec.reset()
    assert codec.feed(b"\0") == []


def test_frames_are_as_long_as_it_says(codec: Codec) -> None:
    assert len(codec.encode(COMMAND)) == codec.command_bytes
    assert len(codec.encode(ECHO)) == codec.echo_bytes


@pytest.mark.parametrize("life_ms", [0, 1, 80, 65_535])
def test_it_says_what_ends_a_command_and_carries_the_life_if_that_does(codec: Codec, life_ms: int) -> None:
    assert codec.guarantee
    if codec.expiry == "per_frame":
        (received,) = codec.feed(codec.encode(replace(COMMAND, life_ms=life_ms)))
        assert isinstance(received, Command)
        assert received.life_ms == life_ms


@pytest.mark.parametrize("count", [1, 2, 6, 59, 60, 255])
def test_no_command_is_longer_than_it_says(count: int) -> None:
    axes = [f"axis {number}" for number in range(count)]
    for name in CODECS:
        codec = make_codec(name, axes=axes)
        command = Command(axes=dict.fromkeys(axes, 1.1), action=Action.STOP, session=1, sequence=1, life_ms=1)
        assert len(codec.encode(command)) <= codec.command_bytes
        assert len(codec.encode(replace(ECHO, axes=dict.fromkeys(axes, 1.1)))) <= codec.echo_bytes
        assert [type(one) for one in codec.feed(codec.encode(command))] == [Command]


def test_an_unknown_codec_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"'morse' is not a codec; known: cobs"):
        make_codec("morse", axes=AXES)


def cobs_frame(body: bytes) -> bytes:
    """What firmware would write: a second, independent encoder of the same page."""
    return b"\0" + cobs.encode(body + struct.pack("<I", zlib.crc32(body))) + b"\0"


@pytest.mark.parametrize("frame", VECTORS.frames, ids=lambda frame: type(frame.message).__name__)
def test_cobs_frames_are_the_published_ones(frame: cobs_vectors.Frame) -> None:
    codec = make_codec("cobs", axes=VECTORS.axes)
    assert codec.encode(frame.message) == frame.line
    assert codec.feed(frame.line) == [frame.message]


def test_a_frame_written_from_the_page_is_read() -> None:
    body = struct.pack("<BBBBIHH2f", 1, 1, 2, 2, 7, 8, 80, 0.5, 0.0)
    assert make_codec("cobs", axes=AXES).feed(cobs_frame(body)) == [
        Command(axes={"linear": 0.5, "angular": 0.0}, action=Action.STOP, session=7, sequence=8, life_ms=80)
    ]


@pytest.mark.parametrize("why", VECTORS.dropped)
def test_what_is_published_to_be_dropped_is_dropped(why: str) -> None:
    codec = make_codec("cobs", axes=VECTORS.axes)
    assert codec.feed(VECTORS.dropped[why]) == []
    assert codec.corrupt == 1


def test_flags_of_later_firmware_are_ignored() -> None:
    body = struct.pack("<BBBBIHHI2f", 1, 2, 0xE1, 2, 7, 8, 80, 0, 0.5, math.inf)
    (echo,) = make_codec("cobs", axes=AXES).feed(cobs_frame(body))
    assert isinstance(echo, Echo)
    assert echo.flags == MotorFlag.MOVING
    assert echo.axes == {"linear": 0.5, "angular": None}
