"""The guard's end of the wire against a motor controller on a real pty: handshake, sessions, loss and return."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from patience import wait_for

from edgeguard.clock import NS_PER_MS, NS_PER_S
from edgeguard.errors import LinkError
from edgeguard.link import Codec, Link, SerialPort, make_codec
from edgeguard.link.controller_core import ControllerCore
from edgeguard.link.motor import MotorAxis
from edgeguard.link.opening import Opening
from edgeguard.link.port import READ_LIMIT_BYTES
from edgeguard.link.pty_port import PtyPort
from edgeguard.types import Action, SetPoint
from edgeguard.types.wire import Command, Echo, Feedback, Hello, LinkState, LinkStatus, MotorFlag, Sent, Welcome

AXES = ("linear", "angular")
ECHO_TIMEOUT_MS = 300
PATIENCE_S = 30.0
"""A pty hands bytes over in a kernel thread, when that has a turn."""
MOVE = SetPoint(axes={"linear": 0.5, "angular": 0.0}, action=Action.MOVE, life_ms=80)


class Bench:
    """A link and a motor controller, with one clock that only ``tick`` moves."""

    def __init__(self, path: Path, *, latch: bool = False) -> None:
        self._path = path
        self.now_ns = NS_PER_S
        sessions = count(100)
        self.core = ControllerCore(
            axes=[MotorAxis(name=name, accel=1.0, decel=2.0) for name in AXES],
            codec=make_codec("cobs", axes=AXES),
            link_timeout_ms=80,
            draw_session=lambda: next(sessions),
            latch=latch,
            start_ns=self.now_ns,
        )
        self.peer = PtyPort(path=path)
        self.codec = make_codec("cobs", axes=AXES)  # to look at and forge what is on the line
        nonces = count(1)
        self.link = Link(
            open_port=partial(SerialPort, path=str(path), baud=115_200),
            codec=make_codec("cobs", axes=AXES),
            axis_count=len(AXES),
            echo_timeout_ns=ECHO_TIMEOUT_MS * NS_PER_MS,
            draw_nonce=lambda: next(nonces),
        )

    def tick(self, ms: int = 20) -> None:
        """Let ``ms`` pass, poll, and have the motor controller answer what it was sent."""
        self.now_ns += ms * NS_PER_MS
        self.link.poll(now_ns=self.now_ns)

    def serve(self) -> None:
        """The motor controller reads what is on the line and replies."""
        assert select.select([self.peer], [], [], PATIENCE_S)[0], "nothing was sent"
        self.peer.write(self.core.receive(self.peer.read(), now_ns=self.now_ns))

    def serve_if_any(self) -> None:
        """The same, if there is anything."""
        if select.select([self.peer], [], [], 0.02)[0]:
            self.serve()

    def hear(self) -> None:
        """The link takes in what is on the line."""
        fd = self.link.fileno()
        assert fd is not None
        assert select.select([fd], [], [], PATIENCE_S)[0], "nothing was said"
        self.link.poll(now_ns=self.now_ns)

    def hear_if_any(self) -> None:
        """The same, if there is anything."""
        if select.select([self.link.fileno() or self.peer], [], [], 0.02)[0]:
            self.link.poll(now_ns=self.now_ns)

    def send(self, set_point: SetPoint = MOVE) -> Sent | None:
        return self.link.send(set_point, now_ns=self.now_ns)

    def shake_hands(self) -> None:
        self.tick()
        self.serve()
        self.hear()
        assert self.link.status.up

    def said(self, count: int) -> list[object]:
        """What the link has sent, so many or more, without the motor controller seeing it."""
        messages: list[object] = []
        while select.select([self.peer], [], [], PATIENCE_S if len(messages) < count else 0.05)[0]:
            messages += self.codec.feed(self.peer.read())
        return messages

    def unplug(self) -> None:
        self.peer.close()

    def plug_in(self) -> None:
        self.peer = PtyPort(path=self._path)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path / "port")
    yield bench
    bench.link.close()
    if bench.peer.path.exists():
        bench.peer.close()


def test_a_handshake_gives_a_session_and_commands_are_echoed(bench: Bench) -> None:
    assert bench.link.status.state is LinkState.LOST
    bench.shake_hands()
    status = bench.link.status
    assert (status.state, status.session, status.generation, status.problem) == (LinkState.UP, 100, 1, None)
    assert status.controller_timeout_ms == 80

    for sequence in (0, 1, 2):
        sent = bench.send()
        assert sent is not None
        assert sent.written
        assert sent.command == Command(axes=MOVE.axes, action=Action.MOVE, session=100, sequence=sequence, life_ms=80)
        bench.serve()
        bench.hear()
        bench.tick()
    echo = bench.link.status.echo
    assert echo is not None
    assert (echo.sequence, echo.flags) == (2, MotorFlag.MOVING)
    assert bench.link.status.echo_received_ns == bench.now_ns - 20 * NS_PER_MS, "when the command was sent"
    assert bench.link.status.written == 4, "a hello and three commands"
    assert len(bench.core.log.received) == 3


def test_before_the_handshake_no_command_is_sent_or_kept(bench: Bench) -> None:
    bench.tick()
    assert bench.link.status.problem == "the motor controller has not answered yet"
    assert bench.send() is None
    assert bench.link.status.unsent == 1
    bench.serve()
    bench.hear()
    assert bench.link.status.up
    assert bench.said(0) == []


def test_an_unanswered_hello_is_repeated_with_a_growing_pause(bench: Bench) -> None:
    for _ in range(100):
        bench.tick(10)
    assert bench.said(8) == [Hello(nonce=1, axis_count=2)] * 8  # after 0, 20, 60, 140, 300, 500, 700, 900 ms


def test_a_session_drawn_twice_for_a_repeated_hello_is_one_session(bench: Bench) -> None:
    bench.tick()
    bench.tick(50)
    bench.serve()  # answers both hellos
    bench.hear()
    assert bench.link.status.generation == 1
    assert bench.link.status.session == 100
    assert bench.link.status.foreign == 0


def test_a_controller_with_other_axes_is_named(bench: Bench) -> None:
    bench.tick()
    bench.peer.write(bench.codec.encode(Welcome(nonce=1, session=0, axis_count=3, link_timeout_ms=80)))
    bench.hear()
    status = bench.link.status
    assert status.state is LinkState.HANDSHAKING
    assert status.problem == ("the motor controller has 3 axes, the configuration 2; make [[axis]] match its firmware")


def test_messages_of_another_session_or_nonce_and_our_own_voice_are_ignored(bench: Bench) -> None:
    bench.tick()
    bench.peer.write(bench.codec.encode(Welcome(nonce=99, session=7, axis_count=2, link_timeout_ms=80)))
    bench.hear()
    assert bench.link.status.state is LinkState.HANDSHAKING
    bench.serve()
    bench.hear()
    echo = Echo(
        session=7, sequence=0, flags=MotorFlag(0), life_ms=0, axes={"linear": 0.0, "angular": 0.0}, controller_ms=0
    )
    command = Command(axes=echo.axes, action=Action.MOVE, session=100, sequence=9, life_ms=80)  # type: ignore[arg-type]
    for message in (echo, command):
        bench.peer.write(bench.codec.encode(message))
        bench.hear()
    assert bench.link.status.session == 100
    assert bench.link.status.echo is None
    assert bench.link.status.foreign == 3


def test_damage_on_the_line_is_counted_and_survived(bench: Bench) -> None:
    bench.shake_hands()
    bench.peer.write(b"\0noise\0")
    bench.hear()
    assert bench.link.status.corrupt == 1
    bench.send()
    bench.serve()
    bench.hear()
    assert bench.link.status.echo is not None


def test_silence_after_a_command_asks_for_a_new_session(bench: Bench) -> None:
    bench.shake_hands()
    for _ in range(ECHO_TIMEOUT_MS // 20):
        bench.send()
        bench.tick()
    assert bench.link.status.up
    bench.tick()
    status = bench.link.status
    assert (status.state, status.session, status.echo) == (LinkState.HANDSHAKING, None, None)
    assert status.problem == "no echo for 300 ms"
    assert bench.send() is None
    while bench.link.status.session is None:  # it wakes up: reads all that has come meanwhile, and answers the hello
        bench.serve_if_any()
        bench.hear_if_any()
    assert bench.core.values == {"linear": 0.0, "angular": 0.0}, "it obeys nothing that is old"
    assert (bench.link.status.session, bench.link.status.generation) == (101, 2)


def test_silence_without_a_command_is_no_fault(bench: Bench) -> None:
    bench.shake_hands()
    for _ in range(200):
        bench.tick()
    assert bench.link.status.up


def test_a_lost_port_is_noticed_at_the_next_poll_and_reopened(bench: Bench) -> None:
    bench.shake_hands()
    bench.send()
    bench.unplug()
    bench.tick()
    status = bench.link.status
    assert status.state is LinkState.LOST
    assert status.problem in ("Input/output error", "hung up")
    assert (status.session, status.echo, bench.link.fileno()) == (None, None, None)
    assert bench.send() is None

    for _ in range(50):
        bench.tick()
    problem = bench.link.status.problem
    assert problem is not None
    assert "does not exist; plug the motor controller in" in problem

    bench.plug_in()
    bench.peer.write(b"old bytes \0 of another life")
    for _ in range(25):  # half a second: the longest pause
        bench.tick()
    assert bench.link.status.state is LinkState.HANDSHAKING
    bench.serve()
    bench.hear()
    status = bench.link.status
    assert (status.session, status.generation) == (101, 2)
    sent = bench.send()
    assert sent is not None
    assert sent.command.sequence == 0
    assert status.written >= 3, "the counters survive the port"


def test_attempts_to_reopen_are_spaced_out(tmp_path: Path) -> None:
    attempts = []

    def refuse() -> SerialPort:
        attempts.append(now_ns)
        raise LinkError("port: does not exist")

    link = Link(open_port=refuse, codec=make_codec("cobs", axes=AXES), axis_count=2, echo_timeout_ns=NS_PER_S)
    for now_ns in range(0, 5 * NS_PER_S, 10 * NS_PER_MS):
        assert link.poll(now_ns=now_ns).problem == "port: does not exist"
    assert [attempt // NS_PER_MS for attempt in attempts[:6]] == [0, 50, 150, 350, 750, 1250]
    assert len(attempts) == 6 + 7


def test_a_port_that_is_missing_at_the_start_is_an_error(tmp_path: Path) -> None:
    open_port: Callable[[], SerialPort] = partial(SerialPort, path=str(tmp_path / "none"), baud=115_200)
    link = Link(open_port=open_port, codec=make_codec("cobs", axes=AXES), axis_count=2, echo_timeout_ns=NS_PER_S)
    with pytest.raises(LinkError, match="none: does not exist"):
        link.connect(now_ns=0)


def test_a_closed_link_has_no_port(bench: Bench) -> None:
    bench.shake_hands()
    bench.link.close()
    assert bench.link.fileno() is None
    assert bench.link.status.state is LinkState.LOST
    bench.link.close()


def test_sequence_numbers_wrap_and_are_obeyed_all_the_way(bench: Bench) -> None:
    bench.shake_hands()
    for number in range(65_540):
        sent = bench.send()
        assert sent is not None
        if number % 100 == 99 or number > 65_530:  # often enough for a number to be newer than the one before
            while not bench.core.log.received or bench.core.log.received[-1].sequence != sent.command.sequence:
                bench.serve()
    assert [receipt.sequence for receipt in bench.core.log.received][-6:] == [65_534, 65_535, 0, 1, 2, 3]


def echo(*, session: int = 100, sequence: int = 0, controller_ms: int = 1) -> Echo:
    at_rest: dict[str, float | None] = {"linear": 0.0, "angular": 0.0}
    return Echo(
        session=session, sequence=sequence, flags=MotorFlag(0), life_ms=0, axes=at_rest, controller_ms=controller_ms
    )


def test_a_motor_controller_that_has_latched_is_asked_for_a_new_session(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "port", latch=True)
    bench.shake_hands()
    bench.send()
    bench.serve()
    bench.hear()
    bench.tick(500)  # no command for so long: it stops by itself, and latches
    bench.send()
    bench.serve()
    bench.hear()
    assert bench.link.status.state is LinkState.HANDSHAKING
    assert bench.link.status.problem == "the motor controller has stopped by itself and waits for a new session"
    bench.tick()
    bench.serve()
    bench.hear()
    assert (bench.link.status.session, bench.link.status.generation) == (101, 2)
    bench.send()
    bench.serve()
    bench.hear()
    assert bench.link.status.up
    bench.link.close()
    bench.peer.close()


def test_one_that_always_says_so_is_asked_at_a_bounded_rate(bench: Bench) -> None:
    bench.shake_hands()
    for _ in range(100):  # two seconds
        bench.tick()
        for message in bench.codec.feed(bench.peer.read()):
            if isinstance(message, Hello):
                bench.peer.write(
                    bench.codec.encode(Welcome(nonce=message.nonce, session=7, axis_count=2, link_timeout_ms=80))
                )
            elif isinstance(message, Command):
                latched = Echo(
                    session=7,
                    sequence=message.sequence,
                    flags=MotorFlag.LATCHED,
                    life_ms=0,
                    axes={"linear": 0.0, "angular": 0.0},
                    controller_ms=0,
                )
                bench.peer.write(bench.codec.encode(latched))
        bench.hear_if_any()
        bench.send()
    assert 5 <= bench.link.status.generation <= 11, "one every 200 ms at most"


def test_an_estop_is_no_reason_to_ask_for_a_session(bench: Bench) -> None:
    bench.shake_hands()
    bench.send()
    tripped = Echo(
        session=100,
        sequence=0,
        flags=MotorFlag.LATCHED | MotorFlag.ESTOP,
        life_ms=0,
        axes={"linear": 0.0, "angular": 0.0},
        controller_ms=1,
    )
    bench.peer.write(bench.codec.encode(tripped))
    bench.hear()
    assert bench.link.status.up


def test_a_motor_controller_that_answers_in_another_session_is_asked_for_ours(bench: Bench) -> None:
    bench.shake_hands()
    for number in range(3):
        assert bench.link.status.up
        bench.send()
        bench.peer.write(bench.codec.encode(echo(session=7, sequence=number)))
        bench.hear()
    assert bench.link.status.state is LinkState.HANDSHAKING
    assert bench.link.status.problem == "the motor controller answers in another session"


@pytest.mark.parametrize(
    ("sequence", "controller_ms", "believed"),
    [(1, 21, True), (2, 40, True), (1, 20, False), (0, 10, False), (1, 19, False), (3, 60, False)],
)
def test_an_echo_that_is_played_again_or_of_no_command_is_not_believed(
    bench: Bench, sequence: int, controller_ms: int, believed: bool
) -> None:
    bench.shake_hands()
    for _ in range(3):  # numbers 0 to 2
        bench.send()
    bench.peer.write(bench.codec.encode(echo(sequence=1, controller_ms=20)))
    bench.hear()
    heard = bench.link.status.echo
    bench.tick()
    bench.peer.write(bench.codec.encode(echo(sequence=sequence, controller_ms=controller_ms)))
    bench.hear()
    assert (bench.link.status.echo != heard) is believed
    assert bench.link.status.foreign == (not believed)


def test_an_echo_counts_from_the_command_that_it_answers_however_long_it_was_on_its_way(bench: Bench) -> None:
    bench.shake_hands()
    sent_ns = []
    for _ in range(11):
        sent_ns.append(bench.now_ns)
        bench.send()
        bench.tick()
    for number in (0, 3):
        bench.peer.write(bench.codec.encode(echo(sequence=number, controller_ms=20 * number)))
        bench.hear()
        assert bench.link.status.echo_received_ns == sent_ns[number]
    bench.peer.write(bench.codec.encode(echo(sequence=3, controller_ms=65)))
    bench.hear()
    assert bench.link.status.echo_received_ns == sent_ns[3] + 5 * NS_PER_MS, "it says the same once more, later"


def test_echoes_that_all_come_too_late_are_silence(bench: Bench) -> None:
    bench.shake_hands()
    late = ECHO_TIMEOUT_MS // 20 + 2
    for number in range(40):
        bench.send()
        if number >= late and bench.link.status.up:
            bench.peer.write(bench.codec.encode(echo(sequence=number - late, controller_ms=number)))
            bench.hear_if_any()
        bench.tick()
    assert bench.link.status.problem == "no echo for 300 ms"


def test_old_echoes_of_our_own_session_do_not_cost_it(bench: Bench) -> None:
    bench.shake_hands()
    bench.send()
    for _ in range(6):  # a line that says everything twice and more
        bench.peer.write(bench.codec.encode(echo(sequence=0)))
        bench.hear()
    assert (bench.link.status.up, bench.link.status.foreign) == (True, 5)


class Waterfall:
    """A port with a peer that never stops talking, and says so much between two reads."""

    def __init__(self, n_bytes: int = READ_LIMIT_BYTES) -> None:
        self.lost: str | None = None
        self.written = self.superseded = self.reads = 0
        self.n_bytes = n_bytes

    def fileno(self) -> int:
        return -1

    def offer(self, frame: bytes) -> bool:
        return self.flush_some()

    def flush_some(self) -> bool:
        return True

    def read(self) -> bytes:
        self.reads += 1
        return b"\0" * self.n_bytes

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("n_bytes", "most_reads"), [(READ_LIMIT_BYTES, 3), (1, 12)])
def test_however_often_it_is_polled_it_takes_in_so_much_per_tick(n_bytes: int, most_reads: int) -> None:
    port = Waterfall(n_bytes)
    link = Link(open_port=lambda: port, codec=make_codec("cobs", axes=AXES), axis_count=2, echo_timeout_ns=NS_PER_S)
    for tick in range(1, 4):
        for poll in range(1_000):
            link.poll(now_ns=20 * NS_PER_MS * tick + poll)
        assert port.reads == tick * most_reads


def test_a_port_that_hangs_while_it_is_opened_holds_nobody_up(tmp_path: Path) -> None:
    fifo, opened = tmp_path / "fifo", list[Waterfall]()
    os.mkfifo(fifo)

    def open_port() -> Waterfall:
        with fifo.open("rb") as hung:  # until somebody writes
            if hung.read() != b"well":
                raise LinkError("fifo: cannot be opened (Input/output error)")
        opened.append(Waterfall())
        return opened[-1]

    codec = make_codec("cobs", axes=AXES)
    link = Link(open_port=Opening(open_port), codec=codec, axis_count=2, echo_timeout_ns=NS_PER_S)
    ticks = count(1)

    def tick() -> LinkStatus:
        return link.poll(now_ns=next(ticks) * 20 * NS_PER_MS)

    assert {tick().state for _ in range(500)} == {LinkState.LOST}
    fifo.write_bytes(b"ill")
    wait_for(lambda: tick().problem == "fifo: cannot be opened (Input/output error)", "it gives up")
    assert {tick().state for _ in range(500)} == {LinkState.LOST}, "it is tried again"
    fifo.write_bytes(b"well")
    wait_for(lambda: tick().state is LinkState.HANDSHAKING, "it opens")
    assert len(opened) == 1


def test_answers_that_cannot_be_read_are_named_while_hands_are_shaken(bench: Bench) -> None:
    bench.tick()
    for _ in range(3):
        bench.peer.write(b"\0baud\0")
        bench.hear()
        bench.tick(100)
    problem = bench.link.status.problem
    assert problem is not None
    assert problem.startswith("3 pieces of an answer that cannot be read: has the motor controller another link.baud")


class TextBench(Bench):
    """The same without a handshake: lines of text."""

    def __init__(self, path: Path, options: dict[str, str]) -> None:
        super().__init__(path)
        make: Callable[[], Codec] = partial(make_codec, "text", axes=AXES, options=options)
        nonces = count(7)
        self.link = Link(
            open_port=partial(SerialPort, path=str(path), baud=115_200),
            codec=make(),
            axis_count=len(AXES),
            echo_timeout_ns=ECHO_TIMEOUT_MS * NS_PER_MS,
            draw_nonce=lambda: next(nonces),
        )
        self.codec = make()
        self.core = ControllerCore(
            axes=[MotorAxis(name=name, accel=1.0, decel=2.0) for name in AXES],
            codec=make(),
            link_timeout_ms=80,
            draw_session=lambda: 0,
            start_ns=self.now_ns,
        )


def test_without_a_handshake_the_link_is_up_with_the_port_and_a_session_of_our_own(tmp_path: Path) -> None:
    bench = TextBench(tmp_path / "port", {"format": "{linear:.2f} {angular:.2f}\n"})
    bench.tick()
    status = bench.link.status
    assert (status.state, status.session, status.generation) == (LinkState.UP, 7, 1)
    assert (status.feedback, status.controller_timeout_ms) == (Feedback.NONE, None)
    for _ in range(100):  # two seconds without an answer are no fault
        assert bench.send() is not None
        bench.serve()
        bench.tick()
    assert bench.link.status.up
    assert bench.core.log.received[-1].axes == MOVE.axes
    bench.unplug()
    bench.tick()
    assert bench.link.status.state is LinkState.LOST
    bench.plug_in()
    bench.tick(600)
    assert (bench.link.status.session, bench.link.status.generation) == (8, 2)
    bench.link.close()
    bench.peer.close()


def test_what_it_measures_is_an_echo_of_the_session(tmp_path: Path) -> None:
    options = {"format": "{linear:.2f} {angular:.2f}\n", "feedback": "is {linear} {angular}"}
    bench = TextBench(tmp_path / "port", options)
    bench.tick()
    bench.send()
    bench.serve()
    bench.hear()
    status = bench.link.status
    assert status.feedback is Feedback.MEASURED
    assert status.echo is not None
    assert (status.echo.session, status.echo.axes) == (7, {"linear": 0.0, "angular": 0.0})
    bench.link.close()
    bench.peer.close()
