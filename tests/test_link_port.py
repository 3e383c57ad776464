"""The serial port on real ptys: never blocking, newest wins, exclusive, and honest about an unplugged device."""

from __future__ import annotations

import array
import fcntl
import os
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from edgeguard.errors import LinkError
from edgeguard.link import SerialPort
from edgeguard.link.pty_port import PtyPort

NOBODY = 65_534
TCGETS2 = 0x802C542A  # <asm-generic/ioctls.h>
PATIENCE_S = 30.0


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[PtyPort]:
    peer = PtyPort(path=tmp_path / "port")
    yield peer
    if peer.path.exists():
        peer.close()


@pytest.fixture
def port(peer: PtyPort) -> Iterator[SerialPort]:
    port = SerialPort(path=str(peer.path), baud=115_200)
    yield port
    port.close()


def read_until(far: PtyPort | SerialPort, end: bytes, *, line: bytes = b"") -> bytes:
    """What arrives up to ``end``, behind ``line`` (a pty hands bytes over in a kernel thread, when that has a turn)."""
    while not line.endswith(end) and select.select([far], [], [], PATIENCE_S)[0]:
        line += far.read()
    return line


def fill(port: SerialPort, *, frame: bytes = b"x" * 26 + b"\n") -> int:
    """Offer frames until the driver takes no more; how many it took whole."""
    for _ in range(10_000):
        if not port.offer(frame):
            return port.written
    raise AssertionError("the pty never pushed back")


@contextmanager
def without_privileges() -> Iterator[None]:
    """Root may open everything; nobody may not."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if user == 0:
            os.seteuid(user)


def test_a_frame_crosses_the_wire_both_ways(port: SerialPort, peer: PtyPort) -> None:
    every_byte = bytes(range(256))
    assert port.offer(every_byte)
    assert read_until(peer, every_byte) == every_byte
    peer.write(every_byte[::-1])
    assert read_until(port, every_byte[::-1]) == every_byte[::-1]
    assert port.read() == b""
    assert port.lost is None


def test_a_peer_that_never_reads_never_blocks_us(port: SerialPort) -> None:
    for _ in range(20_000):  # a blocking write would never return
        port.offer(b"x" * 27)
        port.flush_some()
    assert port.lost is None
    assert port.superseded > 19_000


def test_the_newest_frame_wins_behind_the_one_that_was_begun(port: SerialPort, peer: PtyPort) -> None:
    taken = fill(port)
    for number in range(10):
        assert not port.offer(b"frame %d\n" % number)
    line = b""
    while not port.flush_some():
        line += peer.read()
    line = read_until(peer, b"frame 9\n", line=line)
    *old, newest = line.split(b"\n")[:-1]
    assert newest == b"frame 9"
    assert set(old) == {b"x" * 26}, "a begun frame was torn, or a stale one sent"
    assert len(old) in (taken, taken + 1)
    assert port.written == len(old) + 1
    assert port.superseded >= 9


def test_the_port_is_ours_alone(port: SerialPort, peer: PtyPort) -> None:
    with pytest.raises(
        LinkError, match=r"port: in use by another program; stop that first \(sudo fuser -v .*port names it\)"
    ):
        SerialPort(path=str(peer.path), baud=115_200)


def test_a_program_that_knows_no_locks_is_kept_out_too(port: SerialPort, peer: PtyPort) -> None:
    near_end = peer.path.readlink()
    near_end.chmod(0o666)
    with without_privileges(), pytest.raises(OSError, match="busy"):
        os.close(os.open(near_end, os.O_RDWR | os.O_NOCTTY))


def test_a_closed_port_can_be_opened_again_at_once(port: SerialPort, peer: PtyPort) -> None:
    for _ in range(20):
        port.close()
        port = SerialPort(path=str(peer.path), baud=115_200)
    port.close()
    port.close()


def test_closing_does_not_wait_for_bytes_that_cannot_leave(port: SerialPort) -> None:
    fill(port)
    began = time.monotonic()
    port.close()
    assert time.monotonic() - began < 20.0, "a serial driver's own patience is 30 s"
    assert port.lost == "closed"
    assert not port.offer(b"frame")
    assert port.read() == b""


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("missing", r"missing: does not exist; plug the motor controller in, or set link.port"),
        ("file", r"file: is not a serial port; set link.port to one"),
        ("folder", r"folder: is not a serial port; set link.port to one"),
    ],
)
def test_what_cannot_be_opened_is_named_with_the_way_out(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "file").write_text("not a tty")
    (tmp_path / "folder").mkdir()
    with pytest.raises(LinkError, match=says):
        SerialPort(path=str(tmp_path / name), baud=115_200)


def test_a_port_without_permission_names_the_group(peer: PtyPort) -> None:
    near_end = peer.path.readlink()
    near_end.chmod(0)
    with (
        without_privileges(),
        pytest.raises(LinkError, match=r"no permission; join the port's group \(ls -lL /dev/pts"),
    ):
        SerialPort(path=str(near_end), baud=115_200)


def test_an_impossible_speed_is_named(peer: PtyPort) -> None:
    with pytest.raises(LinkError, match=r"cannot be set to -1 baud .*; set link.baud"):
        SerialPort(path=str(peer.path), baud=-1)


@pytest.mark.parametrize("noticed_by", ["read", "offer"])
def test_an_unplugged_port_is_lost_and_says_why(port: SerialPort, peer: PtyPort, noticed_by: str) -> None:
    peer.close()
    if noticed_by == "read":
        assert port.read() == b""
    else:
        assert not port.offer(b"frame")
    assert port.lost in ("Input/output error", "hung up")
    assert port.read() == b""
    assert not port.offer(b"frame")


def test_where_no_thread_can_be_made_the_port_is_closed_all_the_same(peer: PtyPort) -> None:
    code = (
        "import os, resource, sys; from edgeguard.link import SerialPort;"
        "port = SerialPort(path=sys.argv[1], baud=115_200); fd = port.fileno();"
        "pages = int(open('/proc/self/statm').read().split()[0]) + 256;"  # a thread's stack takes 8 MB
        "resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize(),) * 2);"
        "port.close(); print(os.path.exists(f'/proc/self/fd/{fd}'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(peer.path)], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_opening_throws_away_what_arrived_before(peer: PtyPort) -> None:
    with_old = SerialPort(path=str(peer.path), baud=115_200)
    peer.write(b"old bytes")
    assert select.select([with_old], [], [], PATIENCE_S)[0]
    with_old.close()
    fresh = SerialPort(path=str(peer.path), baud=115_200)
    assert fresh.read() == b""
    fresh.close()


@pytest.mark.parametrize("baud", [115_200, 250_000])
def test_whatever_the_terminal_was_set_to_every_byte_arrives_as_it_is(peer: PtyPort, baud: int) -> None:
    near = os.open(peer.path, os.O_RDWR | os.O_NOCTTY)
    attributes = termios.tcgetattr(near)
    attributes[0] |= termios.BRKINT | termios.PARMRK | termios.ISTRIP | termios.ICRNL | termios.IXON | termios.IXANY
    attributes[1] |= termios.OPOST | termios.ONLCR
    attributes[2] |= termios.CSTOPB | termios.PARENB | termios.CRTSCTS
    attributes[3] |= termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN
    termios.tcsetattr(near, termios.TCSANOW, attributes)
    os.close(near)
    port = SerialPort(path=str(peer.path), baud=baud)
    every_byte = bytes(range(256))
    peer.write(every_byte)
    assert read_until(port, every_byte) == every_byte
    port.offer(every_byte)
    assert read_until(peer, every_byte) == every_byte
    read, _, control, local, *_ = termios.tcgetattr(port.fileno())
    assert not read & (termios.BRKINT | termios.IXON | termios.IXOFF | termios.ICRNL)
    assert read & termios.IGNBRK, "a break must not throw away what is on its way"
    assert not control & (termios.CSTOPB | termios.PARENB | termios.CRTSCTS)
    assert not local & (termios.ECHO | termios.ISIG | termios.ICANON)
    speed = array.array("i", [0] * 16)  # struct termios2: its last number is the speed
    fcntl.ioctl(port.fileno(), TCGETS2, speed)
    assert speed[10] == baud
    port.close()


def test_wildcards_name_one_port_whatever_it_is_called_now(tmp_path: Path) -> None:
    pattern = str(tmp_path / "usb-motor-*")
    with pytest.raises(LinkError, match="no port is named so; plug the motor controller in"):
        SerialPort(path=pattern, baud=115_200)
    peer = PtyPort(path=tmp_path / "usb-motor-A")
    port = SerialPort(path=pattern, baud=115_200)
    assert port.path == str(peer.path)
    port.close()
    other = PtyPort(path=tmp_path / "usb-motor-B")
    with pytest.raises(LinkError, match=r"2 ports are named so \(.*-A, .*-B\); make link.port name one of them"):
        SerialPort(path=pattern, baud=115_200)
    peer.close()
    other.close()


def test_a_driver_without_a_low_latency_flag_is_said_and_no_error(port: SerialPort) -> None:
    assert port.latency == "its driver has no low-latency flag"
