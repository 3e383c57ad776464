"""``edgeguard_motor.h``: compiled, fed the published vectors, compared with the simulator's core, and met on a pty."""

from __future__ import annotations

import os
import random
import select
import shutil
import signal
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import count
from pathlib import Path

import cobs_vectors
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from patience import wait_for
from robot import Robot, drive_until

from edgeguard.clock import NS_PER_MS, NS_PER_S, SystemClock
from edgeguard.link import Link, SerialPort, make_codec
from edgeguard.link.controller_core import ControllerCore
from edgeguard.link.controller_log import StopCause
from edgeguard.link.motor import MotorAxis
from edgeguard.link.pty_port import PtyPort
from edgeguard.types import Action, SetPoint
from edgeguard.types.wire import Command, Echo, Hello, LinkState, MotorFlag, Welcome, WireMessage

ROOT = Path(__file__).parent.parent
INCLUDE = ROOT / "edgeguard" / "link" / "firmware"
HOST = ROOT / "tests" / "firmware" / "host.c"
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wconversion", "-Wshadow")
SANITIZERS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
COMPILER, CXX = (shutil.which(one) or shutil.which(other) for one, other in (("gcc", "cc"), ("g++", "c++")))

AXES = ("linear", "angular")
TIMEOUT_MS = 80
FIRST_SESSION = 100
VECTORS, KEYED = cobs_vectors.load(), cobs_vectors.load("cobs-keyed.json")

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler (gcc or cc) is installed")

Line = tuple[int, MotorFlag, bytes]
"""What happens at a millisecond: the machine's own status from now on, and bytes on the wire."""


@cache
def sanitizers() -> tuple[str, ...]:
    """Every program here watches its own memory and arithmetic, where the compiler has what that needs."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(COMPILER), "-xc", *SANITIZERS, "-", "-o", f"{folder}/none"]
        done = subprocess.run(
            command, input="int main(void) { return 0; }", text=True, capture_output=True, check=False
        )
    return SANITIZERS if done.returncode == 0 else ()


def build(into: Path, *, axis_count: int, keyed: bool = False) -> Path:
    assert COMPILER is not None
    defined = [f"-DEG_AXES={axis_count}", *(["-DEG_KEYED"] if keyed else [])]
    command = [COMPILER, "-std=c99", *STRICT, *sanitizers(), *defined, f"-I{INCLUDE}", str(HOST), "-o", str(into)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return into


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("firmware") / "host", axis_count=len(AXES))


@pytest.fixture(scope="module")
def keyed_host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("firmware") / "keyed", axis_count=len(AXES), keyed=True)


@pytest.fixture(params=["plain", "keyed"])
def published(request: pytest.FixtureRequest, host: Path, keyed_host: Path) -> tuple[Path, cobs_vectors.Vectors]:
    """The firmware with and without a key, each with its vectors."""
    return (host, VECTORS) if request.param == "plain" else (keyed_host, KEYED)


def play(
    host: Path,
    script: Iterable[Line],
    *,
    link_timeout_ms: int = TIMEOUT_MS,
    latch: bool = False,
    session: int = FIRST_SESSION,
) -> list[list[str]]:
    """What the firmware did, each as ``[ms, "reply", hex]`` or ``[ms, action, axes...]``."""
    lines = "".join(f"{ms} {int(status)} {data.hex() or '-'}\n" for ms, status, data in script)
    command = [str(host), str(link_timeout_ms), str(int(latch)), str(session)]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines()]


def replies(events: list[list[str]]) -> list[bytes]:
    return [bytes.fromhex(event[2]) for event in events if event[1] == "reply"]


def applied(events: list[list[str]]) -> list[str]:
    return [" ".join(event) for event in events if event[1] != "reply"]


class Guard:
    """The guard's side of a script: frames with the right session and the next number."""

    def __init__(self) -> None:
        self.codec = make_codec("cobs", axes=AXES)
        self.sequence = 0

    def hello(self, *, nonce: int = 1) -> bytes:
        return self.codec.encode(Hello(nonce=nonce, axis_count=len(AXES)))

    def command(
        self,
        *,
        action: Action = Action.MOVE,
        linear: float = 0.5,
        life_ms: int = TIMEOUT_MS,
        session: int = FIRST_SESSION,
        sequence: int | None = None,
    ) -> bytes:
        self.sequence += 1
        return self.codec.encode(
            Command(
                axes={"linear": linear, "angular": 0.0},
                action=action,
                session=session,
                sequence=self.sequence if sequence is None else sequence,
                life_ms=life_ms,
            )
        )


WELL = MotorFlag(0)


@pytest.mark.parametrize("axis_count", [1, 60, 255])
def test_it_compiles_without_a_warning_for_any_number_of_axes(axis_count: int, tmp_path: Path) -> None:
    build(tmp_path / "host", axis_count=axis_count, keyed=axis_count == 60)


@pytest.mark.skipif(CXX is None, reason="no C++ compiler is installed")
@pytest.mark.parametrize("keyed", ["", "#define EG_KEYED\n"], ids=["plain", "keyed"])
def test_an_arduino_sketch_can_include_it(keyed: str, tmp_path: Path) -> None:
    sketch = tmp_path / "sketch.cpp"
    sketch.write_text("#define EG_AXES 2\n" + keyed + '#include "edgeguard_motor.h"\n' + "eg_motor eg;\n")
    subprocess.run([str(CXX), "-std=c++11", *STRICT, f"-I{INCLUDE}", "-fsyntax-only", str(sketch)], check=True)


BOARD = """
static uint32_t my_random(void *user) { (void)user; return 4; }
static void my_apply(void *user, eg_action action, const float *axes) { (void)user; (void)action; (void)axes; }
float wheel_speed(void);
bool is_moving(void);
bool button_is_pressed(void);
uint32_t millis(void);
bool uart_has_byte(void);
uint8_t uart_read(void);
void uart_write(const uint8_t *bytes, uint16_t length);
"""


def test_the_example_in_its_comment_is_a_program(tmp_path: Path) -> None:
    page = (INCLUDE / "edgeguard_motor.h").read_text().split("*/")[0]
    code = "\n".join(line.removeprefix(" *     ") for line in page.splitlines() if line.startswith(" *     "))
    include = '#include "edgeguard_motor.h"\n'
    source = tmp_path / "main.c"
    source.write_text(code.replace(include, include + BOARD))
    subprocess.run([str(COMPILER), "-std=c99", *STRICT, f"-I{INCLUDE}", "-fsyntax-only", str(source)], check=True)


def test_the_number_of_axes_has_to_be_said(tmp_path: Path) -> None:
    source = tmp_path / "main.c"
    source.write_text('#include "edgeguard_motor.h"\n')
    command = [str(COMPILER), "-std=c99", f"-I{INCLUDE}", "-fsyntax-only", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "define EG_AXES, the number of axes" in done.stderr


def test_it_speaks_the_published_conversation(published: tuple[Path, cobs_vectors.Vectors]) -> None:
    host, vectors = published
    assert vectors.axes == AXES
    script = [(one.ms, one.status, one.hears.line) for one in vectors.conversation]
    events = play(host, script, link_timeout_ms=vectors.link_timeout_ms, session=vectors.session)
    assert replies(events) == [one.says.line for one in vectors.conversation]


def test_it_drops_what_is_published_to_be_dropped(published: tuple[Path, cobs_vectors.Vectors]) -> None:
    host, vectors = published
    greeting = vectors.conversation[0]
    for why, line in vectors.dropped.items():
        script = [(1, WELL, greeting.hears.line), (2, WELL, line), (3, WELL, greeting.hears.line)]
        events = play(host, script, session=vectors.session)
        assert [event[0] for event in events] == ["1", "3"], f"two welcomes, nothing applied: {why}"


@pytest.mark.parametrize("keyed", [False, True], ids=["plain", "keyed"])
@pytest.mark.parametrize("axis_count", [1, 2, 70])
def test_random_bytes_and_mangled_frames_neither_crash_nor_move_it(
    axis_count: int, keyed: bool, tmp_path: Path
) -> None:
    """Under the sanitizers: a read or a write out of bounds, or an overflow, ends the program with an error."""
    host = build(tmp_path / "host", axis_count=axis_count, keyed=keyed)
    axes = [f"axis {number}" for number in range(axis_count)]
    codec = make_codec("cobs", axes=axes, key=KEYED.key if keyed else None)
    dice = random.Random(axis_count)
    command = Command(
        axes=dict.fromkeys(axes, 0.5), action=Action.MOVE, session=FIRST_SESSION, sequence=1, life_ms=TIMEOUT_MS
    )
    hello, frame = codec.encode(Hello(nonce=1, axis_count=axis_count)), codec.encode(command)
    lines = [dice.randbytes(20_000), bytes(dice.choices((0, 1, 2, 0xFF), k=20_000)), b"\xff" * 5_000 + b"\0"]
    for _ in range(300):
        mangled = bytearray(frame)
        for _ in range(dice.randint(1, 4)):
            mangled[dice.randrange(1, len(mangled) - 1)] = dice.randrange(256)
        torn = bytes(mangled[: dice.randint(2, len(mangled))])
        lines.append(torn + b"\0" if frame != torn.rstrip(b"\0") + b"\0" else b"")
    events = play(host, [(1, WELL, hello), *((2, WELL, line) for line in lines), (2, WELL, hello)])
    assert applied(events) == []
    assert len(replies(events)) == 2, "two welcomes"


def test_no_single_changed_byte_is_obeyed_and_the_next_frame_is_read(host: Path) -> None:
    guard = Guard()
    hello, command = guard.hello(), guard.command()
    damaged = [
        command[:place] + bytes([wrong]) + command[place + 1 :]
        for place, right in enumerate(command)
        for wrong in set(range(256)) - {right}
    ]
    events = play(host, [(1, WELL, hello), *((1, WELL, one + hello) for one in damaged)])
    assert applied(events) == []
    assert replies(events) == [replies(events)[0]] * (1 + len(damaged))


def test_noise_and_torsos_cost_no_frame_but_their_own(host: Path) -> None:
    guard = Guard()
    torsos = [guard.command()[:length] for length in range(1, 27)]
    noise = [b"\xa5" * 37, bytes(range(1, 256)), b"\xff" * 10_000]
    script = [(1, WELL, one + guard.command()) for one in [*torsos, *noise]]
    assert len(replies(play(host, [(1, WELL, guard.hello()), *script]))) == 1 + len(script)


def test_a_life_that_ends_stops_and_so_does_the_link_timeout(host: Path) -> None:
    guard = Guard()
    script = [
        (1, WELL, guard.hello()),
        (10, WELL, guard.command(life_ms=30)),
        (200, WELL, guard.command(life_ms=60_000)),
        (400, WELL, b""),
    ]
    assert applied(play(host, script)) == ["10 move 0.5 0", "40 hold", "200 move 0.5 0", "280 hold"]


def test_a_resend_does_not_lengthen_a_life(host: Path) -> None:
    guard = Guard()
    script = [(1, WELL, guard.hello()), *((ms, WELL, guard.command(life_ms=70 - ms)) for ms in (10, 30, 50))]
    assert applied(play(host, [*script, (200, WELL, b"")]))[-1] == "70 hold"


def test_time_is_kept_while_the_clock_wraps(host: Path) -> None:
    guard = Guard()
    script = [((ms + (1 << 32) - 20) % (1 << 32), WELL, data) for ms, data in ((0, guard.hello()), (1, b""))]
    script += [((1 << 32) - 10, WELL, guard.command()), (200, WELL, b"")]
    assert applied(play(host, script)) == [f"{(1 << 32) - 10} move 0.5 0", "70 hold"]


def test_numbers_wrap_and_old_ones_feed_no_watchdog(host: Path) -> None:
    guard = Guard()
    numbers = [65_533, 65_534, 65_534, 65_530, 0, 65_535, 1, 0, 32_769, 2]
    script = [(1, WELL, guard.hello()), *((2, WELL, guard.command(sequence=number)) for number in numbers)]
    script += [(50, WELL, guard.command(sequence=2)), (60, WELL, guard.command(session=7)), (200, WELL, b"")]
    events = play(host, script)
    echoes = [echo for line in replies(events) for echo in guard.codec.feed(line) if isinstance(echo, Echo)]
    assert [echo.sequence for echo in echoes] == [65_533, 65_534, 0, 1, 2]
    assert applied(events)[-1] == "82 hold"


def test_commands_before_a_handshake_or_of_another_session_are_ignored(host: Path) -> None:
    guard = Guard()
    script = [
        (1, WELL, guard.command(session=0)),
        (2, WELL, guard.command()),
        (3, WELL, guard.hello()),
        (4, WELL, guard.command(session=FIRST_SESSION + 1)),
        (200, WELL, b""),
    ]
    events = play(host, script)
    assert (applied(events), len(replies(events))) == ([], 1)


def test_the_same_hello_gets_the_same_session_and_another_one_ends_what_stands(host: Path) -> None:
    guard = Guard()
    script = [
        (1, WELL, guard.hello()),
        (2, WELL, guard.hello()),
        (3, WELL, guard.command()),
        (4, WELL, guard.hello()),
        (5, WELL, guard.hello(nonce=2)),
        (6, WELL, guard.command()),
        (7, WELL, guard.command(session=FIRST_SESSION + 1, sequence=0)),
    ]
    events = play(host, script)
    answers = [one for line in replies(events) for one in guard.codec.feed(line)]
    assert [one.session for one in answers] == [100, 100, 100, 100, 101, 101]  # type: ignore[union-attr]
    assert applied(events) == ["3 move 0.5 0", "5 hold", "7 move 0.5 0"]


def test_a_draw_of_zero_is_no_session_number(host: Path) -> None:
    guard = Guard()
    (line,) = replies(play(host, [(1, WELL, guard.hello())], session=0))
    assert guard.codec.feed(line) == [Welcome(nonce=1, session=1, axis_count=2, link_timeout_ms=TIMEOUT_MS)]


@pytest.mark.parametrize("speed", [0.5, -0.5])
@pytest.mark.parametrize(("goal", "obeyed"), [(1.5, 1.0), (0.5, 0.5), (0.0, 0.0), (-0.5, 0.0)])
def test_a_stop_leads_towards_rest_only(host: Path, speed: float, goal: float, obeyed: float) -> None:
    guard = Guard()
    script = [
        (1, WELL, guard.hello()),
        (2, WELL, guard.command(linear=speed)),
        (3, WELL, guard.command(action=Action.STOP, linear=goal * speed)),
    ]
    _move, stop = (event for event in play(host, script) if event[1] != "reply")
    assert stop[1] == "stop"
    assert float(stop[2]) == obeyed * speed


def test_in_an_estop_a_stop_is_a_hold(host: Path) -> None:
    guard = Guard()
    script = [
        (1, WELL, guard.hello()),
        (2, WELL, guard.command()),
        (3, MotorFlag.ESTOP, b""),
        (4, MotorFlag.ESTOP, guard.command(action=Action.STOP, linear=0.4)),
    ]
    assert applied(play(host, script)) == ["2 move 0.5 0", "3 hold", "4 hold"]


def test_a_torque_that_is_off_stays_off_when_it_stops_by_itself(host: Path) -> None:
    guard = Guard()
    script = [
        (1, WELL, guard.hello()),
        (2, WELL, guard.command(action=Action.TORQUE_OFF)),
        (3, MotorFlag.ESTOP, guard.command()),
        (200, MotorFlag.ESTOP, guard.hello(nonce=2)),
    ]
    assert applied(play(host, script)) == ["2 torque_off"]


def test_seventy_axes_take_more_than_one_block_of_cobs(tmp_path: Path) -> None:
    axes = [f"axis {number}" for number in range(70)]
    codec = make_codec("cobs", axes=axes)
    sent = dict.fromkeys(axes, struct.unpack("<f", b"\x01\x02\x03\x3f")[0])  # no zero byte in any of them
    command = Command(axes=sent, action=Action.MOVE, session=FIRST_SESSION, sequence=1, life_ms=80)
    script = [(1, WELL, codec.encode(one)) for one in (Hello(nonce=1, axis_count=70), command)]
    _welcome, echo = (codec.feed(line)[0] for line in replies(play(build(tmp_path / "host", axis_count=70), script)))
    assert isinstance(echo, Echo)
    assert echo.axes == sent


# ---- the same streams in, the same behaviour out ----


@st.composite
def streams(draw: st.DrawFn) -> list[tuple[int, str, tuple[int, ...]]]:
    """``(ms since the last, what, numbers)``; most commands are sound, so that there is motion to be ended."""
    command = st.tuples(
        st.just("command"),
        st.tuples(
            st.integers(1, 4),  # action
            st.sampled_from([1, 1, 1, 1, 2, 0, -1, 32_767, 32_768]),  # ahead of the last number
            st.integers(1, 120),  # life
            st.sampled_from([0, 0, 0, 0, 1]),  # another session
            st.sampled_from([0, 0, 0, 0, 1, 2]),  # 1: a byte is wrong, 2: the end is missing
            st.integers(1, 25),  # which byte
        ),
    )
    hello = st.tuples(st.just("hello"), st.tuples(st.integers(1, 3), st.sampled_from([2, 2, 2, 3])))
    machine = st.tuples(st.sampled_from(["estop", "fault", "clear", "clear", "quiet"]), st.just(()))
    noise = st.tuples(st.just("noise"), st.lists(st.integers(0, 255), max_size=40).map(tuple))
    step = st.one_of(command, command, command, command, hello, machine, noise)
    return [(draw(st.integers(1, 60)), *draw(step)) for _ in range(draw(st.integers(1, 40)))]


class Witness:
    """Feeds the simulator's core, and writes the script and what the firmware is to do with it."""

    def __init__(self, *, latch: bool) -> None:
        sessions = count(FIRST_SESSION)
        self.codec = make_codec("cobs", axes=AXES)
        self.core = ControllerCore(
            axes=[MotorAxis(name=name, accel=1.0, decel=2.0) for name in AXES],
            codec=make_codec("cobs", axes=AXES),
            link_timeout_ms=TIMEOUT_MS,
            draw_session=lambda: next(sessions),
            latch=latch,
            start_ns=0,
        )
        self.session = self.sequence = self.ms = 0
        self.status = WELL
        self.torque_is_off = False
        self.script: list[Line] = []
        self.expected: list[tuple[object, ...]] = []

    def step(self, dt_ms: int, what: str, numbers: Sequence[int]) -> None:
        self.ms += dt_ms
        now_ns = self.ms * NS_PER_MS
        stops, received = len(self.core.log.stops), len(self.core.log.received)
        data = self._line(what, numbers)
        if what == "estop" and MotorFlag.ESTOP not in self.status:
            self.status |= MotorFlag.ESTOP
            self.core.press_estop(now_ns=now_ns)
        elif what == "fault" and MotorFlag.FAULT not in self.status:
            self.status |= MotorFlag.FAULT
            self.core.raise_fault(now_ns=now_ns)
        elif what == "clear":
            self.status = WELL
            self.core.clear()
        said = self.codec.feed(self.core.receive(data, now_ns=now_ns))
        for stop in list(self.core.log.stops)[stops:]:
            if stop.cause is not StopCause.COMMAND and not self.torque_is_off:
                self.expected.append((stop.began_ns // NS_PER_MS, "hold"))
        for receipt in list(self.core.log.received)[received:]:
            tripped = self.core.flags & (MotorFlag.ESTOP | MotorFlag.FAULT)
            if receipt.action is not Action.MOVE or not (tripped or MotorFlag.LATCHED in self.core.flags):
                self.torque_is_off = receipt.action is Action.TORQUE_OFF
                obeyed = Action.HOLD if receipt.action is Action.STOP and tripped else receipt.action
                self.expected.append((self.ms, obeyed.value))
        for message in said:
            self.expected.append((self.ms, *_gist(message)))
            if isinstance(message, Welcome) and message.session:
                self.session = message.session
        self.script.append((self.ms, self.status, data))

    def _line(self, what: str, numbers: Sequence[int]) -> bytes:
        if what == "noise":
            return bytes(numbers)
        if what == "hello":
            nonce, axis_count = numbers
            return self.codec.encode(Hello(nonce=nonce, axis_count=axis_count))
        if what != "command":
            return b""
        action, ahead, life_ms, foreign, damage, place = numbers
        self.sequence = (self.sequence + ahead) % 65_536
        command = Command(
            axes={"linear": 0.5, "angular": -0.25},
            action=tuple(Action)[action - 1],
            session=self.session + foreign,
            sequence=self.sequence,
            life_ms=life_ms,
        )
        line = self.codec.encode(command)
        if damage == 1:
            return line[:place] + bytes([line[place] ^ 0x10]) + line[place + 1 :]
        return line[:place] if damage else line


def _gist(message: WireMessage) -> tuple[object, ...]:
    """Without what depends on the motors: the firmware's in this test are ideal, the simulator's are not."""
    if isinstance(message, Echo):
        flags = message.flags & ~MotorFlag.MOVING
        return ("echo", message.session, message.sequence, flags, message.life_ms, message.controller_ms)
    assert isinstance(message, Welcome)
    return ("welcome", message.nonce, message.session, message.axis_count)


@pytest.mark.parametrize("latch", [False, True])
@settings(max_examples=60, deadline=None)
@given(stream=streams())
def test_it_behaves_as_the_simulated_motor_controller_does(
    host: Path, latch: bool, stream: list[tuple[int, str, tuple[int, ...]]]
) -> None:
    witness = Witness(latch=latch)
    for dt_ms, what, numbers in [(1, "hello", (1, 2)), *stream, (200, "quiet", ())]:
        witness.step(dt_ms, what, numbers)
    done: list[tuple[object, ...]] = []
    for ms, what, *rest in play(host, witness.script, latch=latch):
        if what == "reply":
            done += [(int(ms), *_gist(message)) for message in witness.codec.feed(bytes.fromhex(rest[0]))]
        else:
            done.append((int(ms), what))
    assert done == witness.expected


# ---- on a pty, in real time, with the guard's own link ----


@contextmanager
def board(host: Path, folder: Path, *, link_timeout_ms: int) -> Iterator[tuple[str, Path]]:
    """The firmware on a pty: the port to open, and the file in which it says what it does."""
    log = folder / "firmware.log"
    peer = PtyPort(path=folder / "port")
    command = [str(host), str(link_timeout_ms), "0", str(FIRST_SESSION), str(peer.fileno())]
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, pass_fds=[peer.fileno()]) as process:
        try:
            yield str(peer.path), log
        finally:
            process.kill()
            peer.close()


def actions(log: Path) -> list[list[str]]:
    """What was applied so far, each as ``[ms, action, axes...]``."""
    return [line.split() for line in log.read_text().splitlines() if "reply" not in line]


def fastest(log: Path) -> float:
    return max((float(axes[0]) for _ms, action, *axes in actions(log) if action == "move"), default=0.0)


class Desk:
    """The guard's link to a board, polled by hand."""

    def __init__(self, port: str, *, axes: Sequence[str] = AXES, key: bytes | None = None) -> None:
        self._clock = SystemClock()
        self.link = Link(
            open_port=partial(SerialPort, path=port, baud=115_200),
            codec=make_codec("cobs", axes=axes, key=key),
            axis_count=len(axes),
            echo_timeout_ns=60 * NS_PER_S,
        )

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.link.close()

    def wait(self, condition: Callable[[], bool]) -> None:
        """Poll the link as the guard does, until the condition holds."""

        def look() -> bool:
            self._poll()
            return condition()

        wait_for(look, "what the link is polled for", stands=lambda: self.link.status, pause_s=0.001)

    def connect(self) -> None:
        self.wait(lambda: self.link.status.up)

    def send(self, *, action: Action = Action.MOVE, linear: float = 0.5, life_ms: int = 60_000) -> Echo:
        """One command, and its echo."""
        set_point = SetPoint(axes={"linear": linear, "angular": 0.0}, action=action, life_ms=life_ms)
        sent = self.link.send(set_point, now_ns=self._clock.now_ns())
        assert sent is not None
        self.wait(lambda: self._echoed(sent.command.sequence) is not None)
        echo = self._echoed(sent.command.sequence)
        assert echo is not None
        return echo

    def _poll(self) -> None:
        fd = self.link.fileno()
        select.select([] if fd is None else [fd], [], [], 0.005)
        self.link.poll(now_ns=self._clock.now_ns())

    def _echoed(self, sequence: int) -> Echo | None:
        echo = self.link.status.echo
        return echo if echo is not None and echo.sequence == sequence else None


def test_the_guards_link_drives_it_over_a_pty(host: Path, tmp_path: Path) -> None:
    with board(host, tmp_path, link_timeout_ms=60_000) as (port, log), Desk(port) as desk:
        desk.connect()
        assert (desk.link.status.session, desk.link.status.controller_timeout_ms) == (FIRST_SESSION, 60_000)
        for linear in (0.25, 0.5, -0.125):
            echo = desk.send(linear=linear)
            assert echo.axes == {"linear": linear, "angular": 0.0}
            assert echo.flags == MotorFlag.MOVING
            assert echo.life_ms == 60_000
        assert desk.send(action=Action.HOLD).flags == MotorFlag(0)
        assert [action for _, action, *_ in actions(log)] == ["move", "move", "move", "hold"]


@pytest.mark.parametrize(("life_ms", "link_timeout_ms"), [(60, 5_000), (60_000, 60)])
def test_on_a_real_clock_it_stops_by_itself(host: Path, tmp_path: Path, life_ms: int, link_timeout_ms: int) -> None:
    with board(host, tmp_path, link_timeout_ms=link_timeout_ms) as (port, log), Desk(port) as desk:
        desk.connect()
        assert desk.send(life_ms=life_ms).life_ms == 60
        desk.wait(lambda: len(actions(log)) == 2)
        (began, *_), (ended, action) = actions(log)
        assert action == "hold"
        assert 60 <= int(ended) - int(began) < 30_000, "by its own clock; a busy machine wakes it late"


def test_a_guard_that_comes_back_starts_another_session(host: Path, tmp_path: Path) -> None:
    with board(host, tmp_path, link_timeout_ms=60_000) as (port, log), Desk(port) as desk:
        desk.connect()
        desk.send()
        desk.link.close()
        desk.connect()
        assert desk.link.status.session == FIRST_SESSION + 1
        desk.send(action=Action.STOP, linear=0.0)
        assert [action for _, action, *_ in actions(log)] == ["move", "hold", "stop"]


def test_with_the_same_key_on_both_sides_it_drives(keyed_host: Path, tmp_path: Path) -> None:
    with board(keyed_host, tmp_path, link_timeout_ms=60_000) as (port, _log), Desk(port, key=KEYED.key) as desk:
        desk.connect()
        assert desk.send(linear=0.25).axes == {"linear": 0.25, "angular": 0.0}
        assert desk.link.status.corrupt == 0


@pytest.mark.parametrize("key", [None, bytes(16)], ids=["no key", "another key"])
def test_without_the_key_nothing_moves(keyed_host: Path, tmp_path: Path, key: bytes | None) -> None:
    with board(keyed_host, tmp_path, link_timeout_ms=80) as (port, log), Desk(port, key=key) as desk:
        desk.wait(lambda: desk.link.status.written >= 3)
        assert desk.link.status.state is LinkState.HANDSHAKING
        assert log.read_text() == ""


def test_a_guard_with_other_axes_is_told_so(host: Path, tmp_path: Path) -> None:
    with board(host, tmp_path, link_timeout_ms=80) as (port, _log), Desk(port, axes=(*AXES, "gripper")) as desk:
        desk.wait(lambda: "has 2 axes, the configuration 3" in (desk.link.status.problem or ""))
        assert desk.link.status.state is LinkState.HANDSHAKING


def test_when_the_guard_is_killed_the_firmware_stops_the_robot(tmp_path: Path) -> None:
    host = build(tmp_path / "host", axis_count=1)
    robot = Robot(tmp_path, None)  # type: ignore[arg-type]  # its motor controller is the board
    with board(host, tmp_path, link_timeout_ms=80) as (port, log), robot.guarded(port=port) as guard:
        drive_until(guard, lambda _: fastest(log) == pytest.approx(0.4), "it drives as fast as the model says")
        os.kill(guard.pid, signal.SIGKILL)
        wait_for(lambda: actions(log)[-1][1] == "hold", "it holds")
        last_frame, stopped = actions(log)[-2:]
    assert last_frame[1] != "hold"
    assert 0 < int(stopped[0]) - int(last_frame[0]) < 30_000, "80 ms by the script above, here by its own clock"
