"""Messages arrive whole or not at all, nothing ever blocks, and garbage is nobody's death."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeguard.channel import DRAIN_LIMIT, MESSAGE_LIMIT_BYTES, Channel, MessageTooLargeError, decode, encode
from edgeguard.messages import (
    answer_message,
    observation_message,
    read_answer,
    read_observation,
    read_request,
    request_message,
)
from edgeguard.types import Answer, Finish, Observation, Pass, Request

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    ours, socket = Channel.pair()
    theirs = Channel(socket)
    yield ours, theirs
    ours.close()
    theirs.close()


def test_a_message_arrives_as_it_was_sent_with_exact_decimals(ends):
    ours, theirs = ends
    assert ours.send({"type": "answer", "values": {"speed": Decimal("0.3"), "turn": "left"}, "n": 7})
    assert theirs.receive() == [{"type": "answer", "values": {"speed": Decimal("0.3"), "turn": "left"}, "n": 7}]
    assert theirs.receive() == []


def test_a_peer_that_never_reads_costs_the_newest_message_and_no_time(ends):
    ours, _theirs = ends
    sent = [ours.send({"type": "record", "padding": "x" * 10_000}) for _ in range(500)]
    assert sent[0]
    assert not sent[-1]
    assert not ours.closed


def test_a_talkative_peer_cannot_hold_the_tick(ends):
    ours, theirs = ends
    for number in range(DRAIN_LIMIT + 5):
        assert ours.send({"type": "n", "number": number})
    assert len(theirs.receive()) == DRAIN_LIMIT
    assert [message["number"] for message in theirs.receive()] == list(range(DRAIN_LIMIT, DRAIN_LIMIT + 5))


def test_a_dead_peer_is_seen_and_is_no_exception(ends):
    ours, theirs = ends
    theirs.close()
    assert ours.receive() == []
    assert ours.closed
    assert not ours.send({"type": "late"})


def test_descriptors_travel_with_a_message(ends):
    ours, theirs = ends
    read_end, write_end = os.pipe()
    assert ours.send({"type": "spawn"}, fds=[write_end])
    ((message, fds),) = theirs.receive_with_fds()
    assert message == {"type": "spawn"}
    os.write(fds[0], b"through")
    assert os.read(read_end, 7) == b"through"
    for fd in (read_end, write_end, *fds):
        os.close(fd)


def test_a_message_too_large_to_be_sent_whole_is_a_defect_of_the_sender():
    with pytest.raises(MessageTooLargeError, match=str(MESSAGE_LIMIT_BYTES)):
        encode({"type": "x", "padding": "x" * MESSAGE_LIMIT_BYTES})


@given(st.binary(max_size=200))
def test_garbage_is_dropped(packet):
    message = decode(packet)
    assert message is None or isinstance(message["type"], str)


def test_nesting_without_end_is_dropped():
    assert decode(b'{"type":"x","a":' + b"[" * 50_000) is None


OBSERVATION = Observation(fields={"said": "go", "front_m": 2.5}, captured_ns=5, ages_ns={"front_m": 3})
REQUEST = Request(request_id=7, epoch=2, observation=OBSERVATION, answer_by_ns=190, shadow=True)
ANSWER = Answer(
    request_id=7,
    epoch=2,
    finish=Finish.COMPLETE,
    values={"speed": Decimal("0.3")},
    bound_ns=120,
    started_ns=1,
    finished_ns=2,
    tokenise_ns=3,
    parse_ns=4,
    passes=(Pass(k=16, p=149, elapsed_ns=50),),
)


def carried(message):
    return decode(encode(message))


def test_requests_and_answers_survive_the_trip():
    assert read_request(carried(request_message(REQUEST, admit=False))) == (REQUEST, False)
    assert read_answer(carried(answer_message(ANSWER))) == ANSWER


def test_a_request_says_how_many_times_its_bound_it_is_left_and_never_below_what_was_measured():
    with_margin = replace(REQUEST, margin=2.25)
    assert read_request(carried(request_message(with_margin))) == (with_margin, True)
    for wrong in (0.5, 0, -1, True, "2", None):
        assert read_request(carried({**request_message(REQUEST), "margin": wrong})) is None


@given(st.sampled_from([request_message(REQUEST), answer_message(ANSWER)]), st.data())
def test_a_message_of_the_wrong_shape_is_none_and_never_an_exception(message, data):
    key = data.draw(st.sampled_from(sorted(message)))
    message = {**message, key: data.draw(JSON)}
    for read in (read_request, read_answer, read_observation):
        read(message)
    del message[key]
    for read in (read_request, read_answer, read_observation):
        read(message)


def test_a_field_that_is_no_scalar_makes_the_message_garbage():
    nested = {**observation_message(OBSERVATION), "fields": {"said": {"deeper": 1}}}
    assert read_observation(nested) is None
    assert read_answer({**answer_message(ANSWER), "values": {"speed": [1]}}) is None
