"""The contract of every codec of the table, each with what it says it carries; and the page of ``cobs``."""

from __future__ import annotations

import math
import struct
import subprocess
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import cobs_vectors
import pytest
from cobs import cobs
from hypothesis import given, settings
from hypothesis import strategies as st
from robot import CONFIG

from edgeguard.errors import ConfigError
from edgeguard.extras import install_command
from edgeguard.link import CODECS, Carries, Codec, expiry_of, feedback_of, guarantee, make_codec
from edgeguard.types.wire import (
    LONGEST_LIFE_MS,
    Action,
    Command,
    Echo,
    Feedback,
    Hello,
    MotorFlag,
    Welcome,
    WireMessage,
)

AXES = ("linear", "angular")
KEY = bytes(range(16))
TEXT = {"format": "v {linear:.9g} {angular:.9g}\n", "feedback": "o {linear} {angular}"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One codec of the table with one set of options."""

    codec: str
    options: Mapping[str, Any]
    key: bytes | None = None

    def make(self) -> Codec:
        return make_codec(self.codec, axes=AXES, options=self.options, key=self.key)


CASES = {
    "cobs": Case(codec="cobs", options={}),
    "cobs with a key": Case(codec="cobs", options={}, key=KEY),
    "text": Case(codec="text", options=TEXT),
    "text with a check sum": Case(codec="text", options={**TEXT, "checksum": "xor"}),
    "text with everything": Case(
        codec="text",
        options={"format": "{action},{linear:.9g},{angular:.9g},{life_ms}\r\n", "checksum": "crc32"},
    ),
    "odrive-ascii": Case(codec="odrive-ascii", options={"linear": {"motor": 0}, "angular": {"motor": 1}}),
    "mavlink": Case(codec="mavlink", options={"forward": "linear", "turn": "angular"}),
}

float32 = st.floats(width=32, min_value=-(2.0**100), max_value=2.0**100)
u16, u32 = st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFFFF)
commands = st.builds(
    Command,
    axes=st.fixed_dictionaries(dict.fromkeys(AXES, float32)),
    action=st.sampled_from(Action),
    session=u32,
    sequence=u16,
    life_ms=u16,
)
echoes = st.builds(
    Echo,
    session=u32,
    sequence=u16,
    flags=st.integers(0, 31).map(MotorFlag),
    life_ms=u16,
    axes=st.fixed_dictionaries(dict.fromkeys(AXES, float32)),
    controller_ms=u32,
)
handshakes = st.one_of(
    st.builds(Hello, nonce=u32, axis_count=st.integers(0, 255)),
    st.builds(Welcome, nonce=u32, session=u32, axis_count=st.integers(0, 255), link_timeout_ms=u16),
)


def messages(carries: Carries) -> st.SearchStrategy[WireMessage]:
    """What can be sent with such a codec."""
    kinds: list[st.SearchStrategy[WireMessage]] = [commands]
    if carries & (Carries.ECHO | Carries.MEASURED):
        kinds.append(echoes)
    if Carries.SESSION in carries:
        kinds.append(handshakes)
    return st.one_of(kinds)


def carried(message: WireMessage, carries: Carries) -> WireMessage:
    """What arrives of ``message``: what the codec says that it carries, and the rest as a receiver takes it to be."""
    if isinstance(message, Command):
        if Carries.HOLD not in carries:
            message = replace(message, action=Action.MOVE)
        if Carries.LIFE not in carries:
            message = replace(message, life_ms=LONGEST_LIFE_MS)
    elif isinstance(message, Echo) and Carries.ECHO not in carries:
        message = replace(message, flags=MotorFlag(0), life_ms=0, controller_ms=0)
    if isinstance(message, Command | Echo) and Carries.SESSION not in carries:
        message = replace(message, session=0, sequence=0)
    return message


def gist(message: WireMessage, carries: Carries) -> WireMessage:
    """What can be compared: as float32, and without what ODrive and MAVLink say of themselves beyond their promise."""
    if isinstance(message, Command | Echo):
        axes = {name: struct.unpack("f", struct.pack("f", value))[0] for name, value in message.axes.items()}
        message = replace(message, axes=axes)  # type: ignore[arg-type]
    return carried(message, carries)


COMMAND = Command(
    axes={"linear": 0.25, "angular": -1.5}, action=Action.MOVE, session=0x01020304, sequence=0xFFFF, life_ms=80
)
ECHO = Echo(
    session=0x01020304,
    sequence=0xFFFF,
    flags=MotorFlag.MOVING | MotorFlag.EXPIRED,
    life_ms=79,
    axes={"linear": 0.25, "angular": -0.5},
    controller_ms=1000,
)
HELLO = Hello(nonce=0xDEADBEEF, axis_count=2)
WELCOME = Welcome(nonce=0xDEADBEEF, session=0x01020304, axis_count=2, link_timeout_ms=80)
NEXT = replace(COMMAND, axes={"linear": -0.125, "angular": 2.0})

INFINITE = struct.pack("<I6f", 5, *(math.inf,) * 6)
"""The payload of a MAVLink message of six numbers."""

VECTORS = cobs_vectors.load()
KEYED = cobs_vectors.load("cobs-keyed.json")


@pytest.fixture(params=list(CASES))
def codec(request: pytest.FixtureRequest) -> Codec:
    return CASES[request.param].make()


def kinds(codec: Codec) -> list[WireMessage]:
    """One message of each kind that it has."""
    messages: list[WireMessage] = [COMMAND]
    if codec.carries & (Carries.ECHO | Carries.MEASURED):
        messages.append(ECHO)
    if Carries.SESSION in codec.carries:
        messages += [HELLO, WELCOME]
    return messages


def hear(codec: Codec, line: bytes) -> list[WireMessage]:
    return [gist(message, codec.carries) for message in codec.feed(line)]


def test_every_codec_of_the_table_is_under_this_contract() -> None:
    assert {case.codec for case in CASES.values()} == set(CODECS)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_what_is_encoded_is_decoded_as_far_as_it_is_carried(case: Case, data: st.DataObject) -> None:
    codec = case.make()
    message = data.draw(messages(codec.carries))
    assert hear(codec, codec.encode(message)) == [carried(message, codec.carries)]
    assert codec.corrupt == 0


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_chunks_of_any_size_give_the_same_messages(case: Case, data: st.DataObject) -> None:
    codec = case.make()
    sent = data.draw(st.lists(messages(codec.carries), max_size=5))
    line = b"".join(map(codec.encode, sent))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(line)), max_size=10)))
    received = [one for begin, end in pairwise([0, *cuts, len(line)]) for one in hear(codec, line[begin:end])]
    assert received == [carried(message, codec.carries) for message in sent]


def test_no_changed_byte_passes_where_it_says_so_and_the_next_but_one_frame_always_does(codec: Codec) -> None:
    """The next frame may be lost with its predecessor only where nothing but the damaged byte parted them."""
    good = carried(NEXT, codec.carries)
    resyncs_at_once = Carries.SESSION in codec.carries
    for message in kinds(codec):
        frame, following = codec.encode(message), codec.encode(NEXT)
        for place, right in enumerate(frame):
            for wrong in {right ^ 1, right ^ 0x80, right ^ 0xFF, 0, 10, 42, 0xFD} - {right}:
                codec.reset()
                heard = hear(codec, frame[:place] + bytes([wrong]) + frame[place + 1 :] + following + following)
                assert heard[-1] == good
                if Carries.CHECK in codec.carries:
                    assert set(map(repr, heard)) <= {repr(good), repr(carried(message, codec.carries))}
                if resyncs_at_once:
                    assert heard == [good, good]


def test_a_codec_without_a_check_sum_says_that_damage_passes() -> None:
    codec = CASES["text"].make()
    assert Carries.CHECK not in codec.carries
    assert hear(codec, b"v 9.25 -1.5\n") != [carried(COMMAND, codec.carries)]
    assert "a damaged digit is taken at its word" in guarantee(codec.carries, expiry="none", timeout_ms=80)


def test_a_lost_or_doubled_byte_costs_two_frames_at_most(codec: Codec) -> None:
    good = carried(NEXT, codec.carries)
    for message in kinds(codec):
        frame, following = codec.encode(message), codec.encode(NEXT)
        for place in range(1, len(frame) - 1):
            for torn in (frame[:place] + frame[place + 1 :], frame[:place] + frame[place : place + 1] + frame[place:]):
                codec.reset()
                assert hear(codec, torn + following + following)[-1] == good


def test_noise_or_a_torso_before_a_frame_costs_one_frame_at_most(codec: Codec) -> None:
    frame, good = codec.encode(NEXT), carried(NEXT, codec.carries)
    for length in range(len(frame) - 1):
        codec.reset()
        assert hear(codec, frame[:length] + frame + frame)[-1] == good
    for noise in (b"\xa5" * 37, bytes(range(1, 256)), b"\xff" * 10_000, b"\xfd" * 3_000):
        codec.reset()
        assert hear(codec, noise + frame + frame)[-1] == good


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@settings(max_examples=50, deadline=None)
@given(noise=st.binary(max_size=300))
def test_noise_is_no_message_and_no_error(case: Case, noise: bytes) -> None:
    codec = case.make()
    assert codec.feed(noise) == []
    assert hear(codec, codec.encode(NEXT) + codec.encode(NEXT))[-1] == carried(NEXT, codec.carries)


def test_what_is_dropped_is_counted_and_the_buffer_is_bounded(codec: Codec) -> None:
    frame = codec.encode(COMMAND)
    codec.feed(b"garbage" + frame[5:] + frame + frame)
    assert codec.corrupt > 0
    for _ in range(100):
        codec.feed(b"\xfd" * 1_000)
    assert sum(len(value) for value in vars(codec).values() if isinstance(value, bytes)) < 2_000


def test_after_a_reset_the_begun_frame_is_forgotten(codec: Codec) -> None:
    frame = codec.encode(COMMAND)
    codec.feed(frame[:-1])
    codec.reset()
    assert codec.feed(frame[-1:]) == []


def test_frames_are_no_longer_than_it_says(codec: Codec) -> None:
    longest = replace(COMMAND, axes=dict.fromkeys(AXES, -1.2345678e-05), action=Action.TORQUE_OFF, life_ms=65_535)
    for message in (COMMAND, longest):
        assert len(codec.encode(message)) <= codec.command_bytes
    if codec.carries & (Carries.ECHO | Carries.MEASURED):
        assert len(codec.encode(replace(ECHO, axes=longest.axes))) <= codec.echo_bytes
    else:
        assert codec.echo_bytes == 0


def test_a_handshake_is_only_where_there_are_sessions(codec: Codec) -> None:
    if Carries.SESSION not in codec.carries:
        for message in (HELLO, WELCOME):
            with pytest.raises(TypeError):
                codec.encode(message)


@pytest.mark.parametrize("life_ms", [0, 1, 80, 65_535])
def test_it_says_what_ends_a_command_and_carries_the_life_if_that_does(codec: Codec, life_ms: int) -> None:
    expiry = expiry_of(codec, watchdog=True)
    assert expiry == ("per_frame" if Carries.LIFE in codec.carries else "silence")
    assert expiry_of(codec, watchdog=False) == ("per_frame" if Carries.LIFE in codec.carries else "none")
    if expiry == "per_frame":
        (received,) = codec.feed(codec.encode(replace(COMMAND, life_ms=life_ms)))
        assert isinstance(received, Command)
        assert received.life_ms == life_ms


def test_the_guarantee_names_what_is_lacking(codec: Codec) -> None:
    said = guarantee(codec.carries, expiry=expiry_of(codec, watchdog=False), timeout_ms=80, note=codec.note)
    assert ("Best effort" in said) == (Carries.LIFE not in codec.carries)
    assert ("session and sequence" in said) == (Carries.SESSION not in codec.carries)
    assert ("whether it listens is not known" in said) == (feedback_of(codec) is Feedback.NONE)
    assert ("torque off" in said) == (Carries.TORQUE_OFF not in codec.carries)
    assert said.endswith(codec.note)
    silent = guarantee(codec.carries, expiry="silence", timeout_ms=500)
    assert "watchdog stops it 500 ms after the last command" in silent


def test_an_unknown_codec_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"'morse' is not a codec; known: cobs, text, odrive-ascii, mavlink"):
        make_codec("morse", axes=AXES)


@pytest.mark.parametrize(
    ("codec", "options", "says"),
    [
        ("cobs", {"speed": 1}, "link.cobs.speed: unknown key"),
        ("text", {}, "link.text.format: missing"),
        ("text", {"format": "v {linear}\n"}, r"link.text.format: \{angular\} is missing; every axis needs its place"),
        ("text", {"format": "v {linear} {angular}"}, "must end with a line end"),
        ("text", {"format": "v {linear}{angular}\n"}, "put something between them"),
        ("text", {"format": "v {linear} {angular} {speed}\n"}, r"\{speed\} is nothing that can be said there; known"),
        ("text", {"format": "v {linear:d} {angular}\n"}, "link.text.format: Unknown format code 'd'"),
        ("text", {"format": "v {linear:%} {angular}\n"}, "which is no plain number"),
        ("text", {"format": "v {linear} {angular\n"}, "link.text.format: "),
        ("text", {"format": "v {linear} {linear} {angular}\n"}, "a place is there twice"),
        ("text", {"format": "v é {linear} {angular}\n"}, "not plain ASCII"),
        ("text", {**TEXT, "feedback": "o {life_ms}"}, r"link.text.feedback: \{life_ms\} is nothing that can be said"),
        ("text", {**TEXT, "checksum": "md5"}, "link.text.checksum: 'md5' is not one of none, xor, crc32"),
        ("odrive-ascii", {"linear": {"motor": 0}}, "link.odrive-ascii.angular.motor: missing"),
        ("odrive-ascii", {"linear": {"motor": 0}, "angular": {"motor": 0}}, "two axes name the same motor"),
        (
            "odrive-ascii",
            {"linear": {"motor": 0, "turns_per_unit": 0}, "angular": {"motor": 1}},
            "link.odrive-ascii.linear.turns_per_unit: 0 turns nothing",
        ),
        ("mavlink", {"forward": "linear"}, "the axis 'angular' is neither forward nor turn"),
        ("mavlink", {"forward": "linear", "turn": "arm"}, "link.mavlink.turn: 'arm' is no"),
    ],
)
def test_options_that_cannot_be_used_are_named_with_the_way_out(codec: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make_codec(codec, axes=AXES, options=options)


def test_a_key_is_refused_where_it_would_do_nothing() -> None:
    with pytest.raises(ConfigError, match="the codec text cannot authenticate its frames; cobs can"):
        make_codec("text", axes=AXES, options=TEXT, key=KEY)


# ---- text ----


def test_a_line_is_written_and_read_as_the_format_says() -> None:
    codec = make_codec("text", axes=AXES, options={"format": "V,{linear:+.2f},{angular:6.1f},{life_ms}\r\n"})
    assert codec.encode(COMMAND) == b"V,+0.25,  -1.5,80\r\n"
    (received,) = codec.feed(b"V,+0.25,  -1.5,80\r\n")
    assert isinstance(received, Command)
    assert received.axes == {"linear": 0.25, "angular": -1.5}
    assert codec.feed(b"V,1e99,0,80\nV,0,0,65536\n\nV,0,0,80\n") != []
    assert codec.corrupt == 2


def test_feedback_may_lack_an_axis_and_say_what_is_of_no_interest() -> None:
    codec = make_codec("text", axes=AXES, options={**TEXT, "feedback": "odom {linear} bat {_}\n"})
    (echo,) = codec.feed(b"odom 0.5 bat 12.1V\r\n")
    assert isinstance(echo, Echo)
    assert echo.axes == {"linear": 0.5, "angular": None}
    (echo,) = codec.feed(b"odom nan bat -\n")
    assert isinstance(echo, Echo)
    assert echo.axes == {"linear": None, "angular": None}


@pytest.mark.parametrize(
    ("name", "line"),
    [("text", b"o 1e999 -1e999\n"), ("odrive-ascii", b"0 1e999*125\n0 -1e999*80\n0*48\n0*48\n")],
)
def test_a_number_beyond_every_float_is_no_reading(name: str, line: bytes) -> None:
    (echo,) = CASES[name].make().feed(line)
    assert isinstance(echo, Echo)
    assert echo.axes == {"linear": None, "angular": None}


def test_a_check_sum_is_that_of_nmea() -> None:
    codec = make_codec("text", axes=["x"], options={"format": "$GPGLL {x:.1f}\n", "checksum": "xor"})
    command = Command(axes={"x": 1.0}, action=Action.MOVE, session=0, sequence=0, life_ms=80)
    body = b"$GPGLL 1.0"
    total = 0
    for byte in body:
        total ^= byte
    assert codec.encode(command) == body + b"*%02X\n" % total


# ---- odrive-ascii ----


def test_odrive_hears_its_own_protocol() -> None:
    options = {"linear": {"motor": 1, "turns_per_unit": 2.0}, "angular": {"motor": 0}, "errors": "axis{}.error"}
    codec = make_codec("odrive-ascii", axes=AXES, options=options)
    lines = codec.encode(COMMAND).split(b"\n")
    assert [line.partition(b"*")[0] for line in lines] == [
        b"v 1 0.5 0",
        b"v 0 -1.5 0",
        b"f 1",
        b"f 0",
        b"r axis1.error",
        b"r axis0.error",
        b"",
    ]
    assert lines[2] == b"f 1*%d" % (ord("f") ^ ord(" ") ^ ord("1"))


def odrive(*lines: bytes) -> bytes:
    """ODrive's answers, with the check sums that it makes."""
    said = b""
    for line in lines:
        total = 0
        for byte in line:
            total ^= byte
        said += b"%s*%d\r\n" % (line, total)
    return said


def test_answers_of_odrive_make_an_echo_only_when_they_are_whole_and_in_order() -> None:
    codec = CASES["odrive-ascii"].make()
    (echo,) = codec.feed(odrive(b"1.25 0.5", b"-3.0 -0.25", b"0", b"0"))
    assert isinstance(echo, Echo)
    assert (echo.axes, echo.flags) == ({"linear": 0.5, "angular": -0.25}, MotorFlag(0))
    for torn in ([b"1 9", b"0", b"0"], [b"1 9", b"1 9", b"0"], [b"1 9", b"1 9", b"1 9", b"0", b"0"], [b"0"]):
        assert codec.feed(odrive(*torn)) == []
        codec.feed(odrive(b"1 0.5", b"1 0.5", b"0", b"0"))
    (echo,) = codec.feed(odrive(b"1.25 0.5", b"-3.0 -0.25", b"0", b"16"))
    assert isinstance(echo, Echo)
    assert echo.flags is MotorFlag.FAULT
    assert codec.feed(b"1.25 0.5\n" + odrive(b"unknown command")) == [], "no check sum; no answer of ours"


# ---- mavlink ----


def test_mavlink_says_what_ardupilots_page_asks_for() -> None:
    from pymavlink.dialects.v20 import common

    codec = CASES["mavlink"].make()
    first, second = codec.encode(COMMAND), codec.encode(COMMAND)
    assert len(second) == 65, "the heartbeat and the wishes do not go along every time"
    reader = common.MAVLink(None)
    frames = {frame.get_type(): frame for frame in reader.parse_buffer(first)}
    assert set(frames) == {"SET_POSITION_TARGET_LOCAL_NED", "HEARTBEAT", "COMMAND_LONG"}
    target = frames["SET_POSITION_TARGET_LOCAL_NED"]
    assert (target.coordinate_frame, target.type_mask, target.vx, target.vy) == (8, 0x5E7, 0.25, 0.0)
    assert target.yaw_rate == 1.5, "to the right is positive there"
    assert (frames["HEARTBEAT"].type, frames["HEARTBEAT"].autopilot) == (18, 8)
    assert (frames["COMMAND_LONG"].command, frames["COMMAND_LONG"].param2) == (511, 50_000)


def test_mavlink_measures_along_the_heading_and_hears_one_vehicle() -> None:
    from pymavlink.dialects.v20 import common

    codec = CASES["mavlink"].make()
    ours, other = (common.MAVLink(None, srcSystem=system, srcComponent=1) for system in (1, 2))
    attitude = common.MAVLink_attitude_message(5, 0.0, 0.0, math.pi / 2, 0.0, 0.0, 0.5)
    position = common.MAVLink_local_position_ned_message(7, 0.0, 0.0, 0.0, 9.0, 0.25, 0.0)
    alarm = common.MAVLink_heartbeat_message(10, 3, 0, 0, 5, 3)
    assert codec.feed(bytes(attitude.pack(other)) + bytes(position.pack(other))) == []
    assert codec.feed(bytes(position.pack(ours))) == [], "without an attitude nobody knows where forward is"
    (echo,) = codec.feed(b"".join(bytes(one.pack(ours)) for one in (alarm, attitude, position)))
    assert isinstance(echo, Echo)
    assert echo.axes == pytest.approx({"linear": 0.25, "angular": -0.5}, rel=1e-5)
    assert (echo.flags, echo.controller_ms) == (MotorFlag.FAULT, 7)


@settings(max_examples=60, deadline=None)
@given(frames=st.lists(st.tuples(st.sampled_from((0, 1, 30, 32, 84, 253)), st.binary(max_size=60)), max_size=8))
def test_whatever_a_vehicle_says_soundly_is_no_error(frames: list[tuple[int, bytes]]) -> None:
    from pymavlink.dialects.v20 import common

    codec, line = CASES["mavlink"].make(), b""
    for message_id, payload in [*frames, (30, INFINITE), (32, INFINITE)]:
        body = bytes((len(payload), 0, 0, 0, 1, 1, message_id, 0, 0)) + payload
        check = common.x25crc(body + bytes((common.mavlink_map[message_id].crc_extra,))).crc
        line += b"\xfd" + body + struct.pack("<H", check)
    said = [message for message in codec.feed(line) if isinstance(message, Echo)]
    assert said[-1].axes == {"linear": None, "angular": None}
    assert all(value is None or math.isfinite(value) for echo in said for value in echo.axes.values())


def test_mavlink_of_another_dialect_is_skipped_and_is_no_damage() -> None:
    from pymavlink.dialects.v20 import ardupilotmega, common

    codec = CASES["mavlink"].make()
    ours = ardupilotmega.MAVLink(None, srcSystem=1, srcComponent=1)
    signing = ardupilotmega.MAVLink(None, srcSystem=1, srcComponent=1)
    signing.signing.sign_outgoing, signing.signing.secret_key = True, bytes(32)
    strangers = [
        ardupilotmega.MAVLink_ahrs_message(*(0.1 * number for number in range(7))),
        ardupilotmega.MAVLink_ekf_status_report_message(831, 0.1, 0.2, 0.3, 0.4, 0.5),
        ardupilotmega.MAVLink_hwstatus_message(5000, 0),
        ardupilotmega.MAVLink_meminfo_message(0, 12_345),
    ]
    assert not {one.get_msgId() for one in strangers} & set(common.mavlink_map)
    echo = codec.encode(ECHO)
    line = b"".join(bytes(one.pack(by)) + echo for one in strangers for by in (ours, signing))
    assert [type(one) for byte in line for one in codec.feed(bytes((byte,)))] == [Echo] * 8
    assert codec.corrupt == 0
    for stranger in strangers:
        damaged = bytearray(stranger.pack(ours))
        damaged[12] ^= 0x40
        before = codec.corrupt
        assert len(codec.feed(bytes(damaged) + echo)) == 1, "the sound frame behind it is read"
        assert codec.corrupt == before + 1


# ---- cobs ----


@pytest.mark.parametrize("count", [1, 2, 6, 59, 60, 255])
@pytest.mark.parametrize("key", [None, KEY])
def test_no_command_of_cobs_is_longer_than_it_says(count: int, key: bytes | None) -> None:
    axes = [f"axis {number}" for number in range(count)]
    codec = make_codec("cobs", axes=axes, key=key)
    command = Command(axes=dict.fromkeys(axes, 1.1), action=Action.STOP, session=1, sequence=1, life_ms=1)
    assert len(codec.encode(command)) <= codec.command_bytes
    assert len(codec.encode(replace(ECHO, axes=dict.fromkeys(axes, 1.1)))) <= codec.echo_bytes
    assert [type(one) for one in codec.feed(codec.encode(command))] == [Command]


def test_no_reading_is_no_number() -> None:
    codec = CASES["cobs"].make()
    blind = replace(ECHO, axes={"linear": 0.25, "angular": None})
    assert codec.feed(codec.encode(blind)) == [blind]


def cobs_frame(body: bytes) -> bytes:
    """What firmware would write: a second, independent encoder of the same page."""
    return b"\0" + cobs.encode(body + struct.pack("<I", zlib.crc32(body))) + b"\0"


@pytest.mark.parametrize("vectors", [VECTORS, KEYED], ids=["plain", "keyed"])
def test_cobs_frames_are_the_published_ones(vectors: cobs_vectors.Vectors) -> None:
    codec = make_codec("cobs", axes=vectors.axes, key=vectors.key)
    for frame in vectors.frames:
        assert codec.encode(frame.message) == frame.line
        assert codec.feed(frame.line) == [frame.message]


def test_a_frame_written_from_the_page_is_read() -> None:
    body = struct.pack("<BBBBIHH2f", 1, 1, 2, 2, 7, 8, 80, 0.5, 0.0)
    assert make_codec("cobs", axes=AXES).feed(cobs_frame(body)) == [
        Command(axes={"linear": 0.5, "angular": 0.0}, action=Action.STOP, session=7, sequence=8, life_ms=80)
    ]


@pytest.mark.parametrize("vectors", [VECTORS, KEYED], ids=["plain", "keyed"])
def test_what_is_published_to_be_dropped_is_dropped(vectors: cobs_vectors.Vectors) -> None:
    for line in vectors.dropped.values():
        codec = make_codec("cobs", axes=vectors.axes, key=vectors.key)
        assert codec.feed(line) == []
        assert codec.corrupt == 1


def test_another_key_or_none_at_all_reads_nothing() -> None:
    make = partial(make_codec, "cobs", axes=AXES)
    keyed, other, plain = make(key=KEY), make(key=KEY[::-1]), make()
    for reader in (other, plain):
        assert reader.feed(keyed.encode(COMMAND)) == []
        assert reader.corrupt == 1
    assert keyed.feed(plain.encode(COMMAND)) == []
    assert keyed.command_bytes == plain.command_bytes + 4


def test_flags_of_later_firmware_are_ignored() -> None:
    body = struct.pack("<BBBBIHHI2f", 1, 2, 0xE1, 2, 7, 8, 80, 0, 0.5, math.inf)
    (echo,) = make_codec("cobs", axes=AXES).feed(cobs_frame(body))
    assert isinstance(echo, Echo)
    assert echo.flags == MotorFlag.MOVING
    assert echo.axes == {"linear": 0.5, "angular": None}


WITHOUT = """
import sys
sys.modules["pymavlink"] = None
from edgeguard.cli.main import main
sys.exit(main(["check", sys.argv[1]]))
"""


def test_without_pymavlink_the_extra_is_named_and_without_mavlink_it_is_not_imported(tmp_path: Path) -> None:
    file = tmp_path / "robot.toml"
    file.write_text(CONFIG + 'codec = "mavlink"\nwatchdog = true\n[link.mavlink]\nforward = "linear"\n')
    done = subprocess.run([sys.executable, "-c", WITHOUT, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 12
    assert f"the codec mavlink needs the package 'pymavlink': {install_command('mavlink')}" in done.stderr
    file.write_text(CONFIG)
    done = subprocess.run([sys.executable, "-c", WITHOUT, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
