"""The flight log: what is written comes back, and whatever happens to the file costs only what it touched."""

from __future__ import annotations

import dataclasses
import resource
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from flights import entries_of, record, robot_toml, script, steps_of
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeguard.config import load_config
from edgeguard.errors import ConfigError, FlightLogError
from edgeguard.guard.interface import Effects, Inputs, Promise, WorkerPhase, WorkerStatus
from edgeguard.guard.state import GuardState
from edgeguard.recorder.frame import MARK, Damage, Frame, FrameKind, FrameReader, encode_frame
from edgeguard.recorder.journal import BLOCK_STEPS, FlightJournal
from edgeguard.recorder.log import Flaw, FlightEncoder, FlightReader, FlightWriter, read_flight
from edgeguard.recorder.record import (
    FlightHeader,
    FlightStep,
    decode_header,
    decode_step,
    encode_header,
    encode_step,
    text_of,
)
from edgeguard.types import (
    Action,
    Answer,
    Cause,
    Echo,
    Event,
    Finish,
    LinkState,
    LinkStatus,
    MotorFlag,
    Observation,
    OperatorWord,
    Request,
    SetPoint,
)

HEADER = FlightHeader(
    created="2026-01-01T00:00:00Z",
    version="0",
    config_file="robot.toml",
    config_digest="0",
    config_text="",
    answer_schema="{}",
    reserve_ns=5,
    wire_ns=3,
)
QUIET = Inputs(worker=WorkerStatus(phase=WorkerPhase.READY), link=LinkStatus(state=LinkState.LOST, problem="unplugged"))

times_ns = st.integers(-(2**40), 2**63)
values = st.one_of(
    st.none(), st.booleans(), st.text(max_size=20), st.integers(), st.floats(), st.decimals(allow_nan=True)
)
axes = st.dictionaries(st.text(max_size=5), st.floats(width=32), max_size=3)
names = st.text(max_size=8).filter(lambda name: name != "$decimal")  # how a Decimal is marked
observations = st.builds(
    Observation,
    fields=st.dictionaries(names, values, max_size=4),
    captured_ns=times_ns,
    ages_ns=st.dictionaries(names, times_ns, max_size=2),
)
echoes = st.builds(
    Echo,
    session=st.integers(0, 2**32 - 1),
    sequence=st.integers(0, 2**16 - 1),
    flags=st.integers(0, 31).map(MotorFlag),
    life_ms=st.integers(0, 80),
    axes=axes,
    controller_ms=st.integers(0, 2**32 - 1),
)
answers = st.builds(
    Answer,
    request_id=st.integers(0, 9),
    epoch=st.integers(0, 9),
    finish=st.sampled_from(Finish),
    values=st.none() | st.dictionaries(names, values, max_size=3),
    detail=st.text(max_size=9),
)
inputs = st.builds(
    Inputs,
    worker=st.builds(
        WorkerStatus,
        phase=st.sampled_from(WorkerPhase),
        promise=st.none()
        | st.builds(
            Promise,
            bounds_ns=st.tuples(times_ns),
            alpha=st.floats(0.001, 0.1),
            lag=st.integers(1, 9),
            observed=st.booleans(),
        ),
    ),
    link=st.builds(LinkStatus, state=st.sampled_from(LinkState), echo=st.none() | echoes),
    observation=st.none() | observations,
    answers=st.lists(answers, max_size=2).map(tuple),
    operator=st.lists(st.sampled_from(OperatorWord), max_size=2).map(tuple),
    conditions=st.lists(st.tuples(st.sampled_from(Cause), st.text(max_size=9)), max_size=2).map(tuple),
    lateness_ns=times_ns,
)
effects = st.builds(
    Effects,
    send=st.none() | st.builds(SetPoint, axes=axes, action=st.sampled_from(Action), life_ms=st.integers(0, 80)),
    latch=st.none() | st.booleans(),
    request=st.none()
    | st.builds(
        Request, request_id=st.integers(0, 9), epoch=st.just(1), observation=observations, answer_by_ns=times_ns
    ),
    events=st.lists(st.builds(Event, at_ns=times_ns, name=st.text(max_size=9), detail=st.text(max_size=9))).map(tuple),
    wake_ns=times_ns,
)
states = st.builds(lambda now_ns, latched: GuardState.initial(now_ns=now_ns, latched=latched), times_ns, st.booleans())
steps = st.builds(
    FlightStep, number=st.integers(1, 9), now_ns=times_ns, inputs=inputs, effects=effects, before=st.none() | states
)


@given(steps)
@settings(max_examples=150, deadline=None)
def test_a_step_comes_back_as_it_was_with_its_types(step):
    document = encode_step(step)
    back = decode_step(document)
    assert text_of(back) == text_of(step)
    assert encode_step(back) == document
    if step.inputs.observation is not None:
        was, now = step.inputs.observation.fields, back.inputs.observation.fields
        assert [type(value) for value in now.values()] == [type(value) for value in was.values()]


@pytest.mark.parametrize("refused", ["null", '{"cause":"shutdown","detail":"SIGTERM"}'])
def test_a_step_of_an_earlier_version_is_read(refused):
    document = encode_step(FlightStep(number=1, now_ns=1, inputs=QUIET, effects=Effects(wake_ns=2)))
    earlier = document.replace(b'"answers":', f'"refusal":{refused},"answers":'.encode())
    assert earlier != document
    inputs = decode_step(earlier).inputs
    assert inputs.conditions == (() if refused == "null" else ((Cause.SHUTDOWN, "SIGTERM"),))


def test_a_header_comes_back_with_all_that_the_settings_are_made_of(tmp_path):
    scenario = script(tmp_path)
    config = scenario.assembly.config
    header = FlightHeader.from_config(config, reserve_ns=5_000_000, wire_ns=2_000_000, created="then")
    config.file.unlink()
    back = decode_header(encode_header(header))
    assert back == header
    assert back.config() == config
    assert back.settings() == header.settings(config)


def test_a_header_holds_a_schema_that_the_configuration_only_names(tmp_path):
    text = robot_toml()
    begin, end = text.index("[answer]"), text.index("[[field]]")
    (tmp_path / "answer.json").write_text(
        '{"type":"object","properties":{"speed":{"type":"number","minimum":-0.2,"maximum":0.5,"multipleOf":0.1},'
        '"turn":{"enum":["left","straight","right"]},"grip":{"type":"boolean"}}}'
    )
    scenario = script(tmp_path, robot=text[:begin] + '[answer]\nschema_file = "answer.json"\n' + text[end:])
    header = FlightHeader.from_config(scenario.assembly.config, reserve_ns=1, wire_ns=1, created="then")
    (tmp_path / "answer.json").unlink()
    assert header.settings().answer_fields == scenario.assembly.fields


def test_a_header_is_refused_when_the_file_is_no_longer_what_was_read(tmp_path):
    file = tmp_path / "robot.toml"
    file.write_text(robot_toml())
    config = load_config(file)
    file.write_text(robot_toml(miss_limit="2"))
    with pytest.raises(ConfigError, match="has changed since it was read"):
        FlightHeader.from_config(config, reserve_ns=1, wire_ns=1, created="then")
    file.unlink()
    with pytest.raises(ConfigError, match="cannot be read"):
        FlightHeader.from_config(config, reserve_ns=1, wire_ns=1, created="then")


# The journal: the guard's side.


def noted(journal: FlightJournal, value: object = None) -> tuple[bytes | None, bool]:
    seen = dataclasses.replace(QUIET, observation=Observation(fields={"front_m": value}, captured_ns=1))
    return journal.note(GuardState.initial(now_ns=1), 1, seen, Effects(wake_ns=2))


def test_a_journal_numbers_the_steps_and_holds_a_state_every_so_often():
    journal = FlightJournal()
    notes = [noted(journal) for _ in range(2 * BLOCK_STEPS + 1)]
    assert [index for index, (_, begins) in enumerate(notes) if begins] == [0, BLOCK_STEPS, 2 * BLOCK_STEPS]
    read = [decode_step(document) for document, _ in notes]
    assert [step.number for step in read] == list(range(1, len(notes) + 1))
    assert [step.before is not None for step in read] == [begins for _, begins in notes]


def test_after_a_step_that_was_lost_the_journal_begins_again_with_a_state():
    journal = FlightJournal()
    assert [noted(journal)[1] for _ in range(3)] == [True, False, False]
    journal.lost()
    assert [noted(journal)[1] for _ in range(2)] == [True, False]


def test_a_step_that_no_document_can_hold_is_left_out_and_the_next_begins_a_block():
    journal = FlightJournal()
    noted(journal)
    assert noted(journal, 10**5_000) == (None, False)
    assert noted(journal, {1, 2}) != (None, False), "an odd value is written as its repr"
    assert noted(journal)[1] is False


# Frames and the log as bytes.


def log_of(n_steps: int, *, block: int = 4) -> list[bytes]:
    """The frames of a small log, one step each."""
    frames = [encode_frame(FrameKind.HEADER, encode_header(HEADER))]
    state = GuardState.initial(now_ns=1)
    encoder = FlightEncoder()
    for number in range(1, n_steps + 1):
        begins = (number - 1) % block == 0
        step = FlightStep(
            number=number,
            now_ns=number * 20,
            inputs=dataclasses.replace(QUIET, lateness_ns=number),
            effects=Effects(wake_ns=number * 20 + 20),
            before=state if begins else None,
        )
        frames.append(encoder.steps([encode_step(step)], begins_block=begins))
    return frames


@given(st.lists(st.integers(0, 400), max_size=8), st.binary(max_size=20))
@settings(max_examples=60, deadline=None)
def test_in_whatever_chunks_it_comes_the_log_reads_the_same(cuts, noise):
    data = noise + b"".join(log_of(6))
    whole = entries_of(data)
    reader, read, at = FlightReader(), [], 0
    for cut in sorted(cuts):
        read += reader.feed(data[at : max(at, cut)])
        at = max(at, cut)
    read += [*reader.feed(data[at:]), *reader.finish()]
    assert read == whole
    assert len(steps_of(read)) == 6


def test_a_tail_torn_at_any_byte_costs_the_record_that_was_being_written():
    frames = log_of(9)
    data = b"".join(frames)
    ends = [sum(map(len, frames[: count + 1])) for count in range(len(frames))]
    for cut in range(len(data)):
        entries = entries_of(data[:cut])
        whole = sum(end <= cut for end in ends)
        assert len([entry for entry in entries if not isinstance(entry, Flaw)]) == whole
        torn = cut - ends[whole - 1] if whole else cut
        flaws = [entry.detail for entry in entries if isinstance(entry, Flaw)]
        assert flaws == ([f"{torn} bytes dropped: the last record was never finished"] if torn else [])


def test_a_start_behind_a_torn_tail_is_read():
    torn = b"".join(log_of(5))[:-3]
    again = b"".join(log_of(5))
    entries = entries_of(torn + again)
    assert [step.number for step in steps_of(entries)] == [1, 2, 3, 4, 1, 2, 3, 4, 5]
    assert sum(isinstance(entry, Flaw) for entry in entries) == 1


def test_a_flipped_bit_anywhere_is_noticed_and_costs_no_other_block():
    frames = log_of(12)
    data = b"".join(frames)
    original = steps_of(entries_of(data))
    ends = [sum(map(len, frames[: count + 1])) for count in range(len(frames))]
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1 << (at * 5 % 8)
        entries = entries_of(bytes(damaged))
        assert any(isinstance(entry, Flaw) for entry in entries)
        hit = sum(end <= at for end in ends)  # 0: the header, else the step of this number
        block_end = hit + (4 - (hit - 1) % 4) if hit else 0
        lost = range(hit, block_end) if hit else ()
        assert steps_of(entries) == [step for step in original if step.number not in lost]


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_no_bytes_make_the_reader_fail(data):
    for noise in (data, MARK + data, encode_frame(FrameKind.STEP, data), encode_frame(FrameKind.BLOCK, data)):
        assert all(isinstance(entry, Flaw) for entry in entries_of(noise))


def test_frames_and_the_damage_between_them_keep_their_places():
    one, other = encode_frame(FrameKind.HEADER, b"one"), encode_frame(FrameKind.HEADER, b"other")
    reader = FrameReader()
    assert reader.feed(one + b"noise" + other + MARK) == [
        Frame(kind=FrameKind.HEADER, payload=b"one", offset=0),
        Damage(offset=len(one), n_bytes=5, tail=False),
        Frame(kind=FrameKind.HEADER, payload=b"other", offset=len(one) + 5),
    ]
    assert reader.finish() == [Damage(offset=len(one + other) + 5, n_bytes=2, tail=True)]


def test_missing_steps_are_told_by_their_numbers():
    frames = log_of(9)
    del frames[6:8]  # steps 6 and 7, of the second block, with what they compressed
    entries = entries_of(b"".join(frames))
    assert any(
        "cannot be read" in entry.detail or "missing" in entry.detail for entry in entries if isinstance(entry, Flaw)
    )
    frames = log_of(9)
    del frames[5:9]  # the whole second block
    flaws = [entry.detail for entry in entries_of(b"".join(frames)) if isinstance(entry, Flaw)]
    assert flaws == ["steps 5 to 8 are missing"]


def test_a_record_that_unpacks_to_too_much_is_a_flaw():
    bomb = FlightEncoder().steps([b" " * (9 << 20)], begins_block=True)
    (flaw,) = entries_of(bomb)
    assert "unpacks to more than" in flaw.detail


def test_a_deeply_nested_document_is_a_flaw():
    (flaw,) = entries_of(FlightEncoder().steps([b"[" * 200_000], begins_block=True))
    assert "cannot be read" in flaw.detail


# The file.


def note_all(writer: FlightWriter, journal: FlightJournal, count: int) -> list[bool]:
    results = []
    for _ in range(count):
        document, begins_block = noted(journal)
        results.append(writer.append(document, begins_block=begins_block))
        if not results[-1]:
            journal.lost()
    return results


def test_a_writer_appends_and_what_it_wrote_is_there_at_once(tmp_path):
    file, journal = tmp_path / "flight.log", FlightJournal()
    writer = FlightWriter(file, header=HEADER)
    for count in range(1, 4):
        note_all(writer, journal, 1)
        entries = list(read_flight(file))
        assert entries[0] == HEADER
        assert [step.number for step in steps_of(entries)] == list(range(1, count + 1))
    writer.close()
    again = FlightWriter(file, header=HEADER)
    note_all(again, FlightJournal(), 2)
    again.close()
    assert [step.number for step in steps_of(read_flight(file))] == [1, 2, 3, 1, 2]


def test_several_steps_in_one_record_are_written_and_read_as_several(tmp_path):
    file, journal = tmp_path / "flight.log", FlightJournal()
    writer = FlightWriter(file, header=HEADER)
    documents = [noted(journal)[0] for _ in range(5)]
    assert writer.append(*documents, begins_block=True)
    writer.close()
    assert writer.written == 5
    assert [step.number for step in steps_of(read_flight(file))] == [1, 2, 3, 4, 5]


def test_a_full_disk_is_counted_and_never_raised():
    writer = FlightWriter(Path("/dev/full"), header=HEADER)
    assert note_all(writer, FlightJournal(), 3) == [False, False, False]
    assert (writer.written, writer.lost) == (0, 3)
    assert writer.problem == "/dev/full: No space left on device"
    writer.sync()
    writer.close()


def test_a_folder_that_comes_later_is_used_from_then_on(tmp_path):
    file, journal = tmp_path / "later" / "flight.log", FlightJournal()
    writer = FlightWriter(file, header=HEADER)
    assert note_all(writer, journal, 2) == [False, False]
    assert writer.problem == f"{file}: No such file or directory"
    file.parent.mkdir()
    assert note_all(writer, journal, 2) == [True, True]
    writer.close()
    assert [step.number for step in steps_of(read_flight(file))] == [3, 4]


def test_a_record_cut_short_by_the_disk_costs_only_itself(tmp_path):
    file, journal = tmp_path / "flight.log", FlightJournal()
    writer = FlightWriter(file, header=HEADER)
    note_all(writer, journal, 3)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 10, hard))
        assert note_all(writer, journal, 2) == [False, False]
        assert writer.problem is not None
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert note_all(writer, journal, 2) == [True, True]
    writer.close()
    entries = list(read_flight(file))
    assert [step.number for step in steps_of(entries)] == [1, 2, 3, 6, 7]
    assert [entry.detail for entry in entries if isinstance(entry, Flaw)] == [
        "10 bytes dropped: damaged",
        "steps 4 to 5 are missing",
    ]


@pytest.mark.parametrize(
    "content", [b"", b"not a log at all\n", encode_frame(FrameKind.HEADER, b'{"format":"edgeguard.flight/2"}')]
)
def test_a_file_that_is_no_flight_log_is_said_to_be_none(tmp_path, content):
    file = tmp_path / "flight.log"
    file.write_bytes(content)
    with pytest.raises(FlightLogError, match="holds no header of a flight log"):
        list(read_flight(file))


def test_a_log_of_another_format_says_so():
    newer = dataclasses.replace(HEADER, format="edgeguard.flight/3")
    (flaw,) = entries_of(encode_frame(FrameKind.HEADER, encode_header(newer)))
    assert "'edgeguard.flight/3'; this version of edgeguard reads 'edgeguard.flight/2'" in flaw.detail


def test_a_file_of_another_format_alone_is_refused_with_both(tmp_path):
    file = tmp_path / "flight.log"
    file.write_bytes(encode_frame(FrameKind.HEADER, b'{"format":"edgeguard.flight/1","more":1}'))
    with pytest.raises(FlightLogError, match=r"'edgeguard\.flight/1'; this version of edgeguard reads 'edgeguard\.fl"):
        list(read_flight(file))


def test_a_file_that_is_not_there_is_an_error_that_names_it(tmp_path):
    with pytest.raises(FlightLogError, match=r"gone\.log: cannot be read \(No such file or directory\)"):
        list(read_flight(tmp_path / "gone.log"))


def test_a_day_at_five_decisions_a_second_fits_into_half_a_gigabyte(tmp_path):
    """Records of four steps, as a recorder writes them that wakes up every 40 ms."""
    scenario = script(tmp_path, duration_ms=20_000)
    steps_in = steps_of(read_flight(record(scenario, tmp_path / "one.log")))
    file = tmp_path / "four.log"
    writer = FlightWriter(file, header=HEADER)
    for first in range(0, len(steps_in), 4):
        group = steps_in[first : first + 4]
        writer.append(*map(encode_step, group), begins_block=group[0].before is not None)
    writer.close()
    per_day = file.stat().st_size / 20 * 86_400
    assert per_day < 500e6, f"{per_day / 1e6:.0f} MB"


def test_the_log_is_light_to_import():
    code = "import sys, edgeguard.recorder.log as _; print({'numpy', 'rich', 'subprocess'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "set()"


def test_a_decimal_is_not_a_float_on_its_way_through_the_log():
    seen = Observation(fields={"a": Decimal("1E+400"), "b": Decimal("0.10"), "c": 0.1}, captured_ns=1)
    step = FlightStep(number=1, now_ns=1, inputs=dataclasses.replace(QUIET, observation=seen), effects=Effects())
    back = decode_step(encode_step(step)).inputs.observation
    assert back == seen
    assert str(back.fields["b"]) == "0.10"
