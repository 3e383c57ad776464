"""The serial port: opened and configured by pyserial, then written and read by us, so that no call ever blocks.

It keeps one slot, not a queue: a newer frame replaces one that has not been begun, and a frame once begun is finished
first, so that the line never carries half a frame (a pty takes 16 kB before it pushes back: a queue of stale commands
would be executed when the peer wakes). Where the driver tells how much it still holds (``TIOCOUTQ``; a pty says 0), a
frame waits in the slot while more than one frame's worth is unsent there.

Exclusive twice over: ``flock`` keeps cooperating programs out, ``TIOCEXCL`` everybody but root. The driver is asked not
to hold bytes back (``ASYNC_LOW_LATENCY``; an FTDI adapter else waits 16 ms); one that cannot says so in ``latency``. A
name with wildcards is looked up at every opening, as is where a link such as /dev/serial/by-id leads. What DTR does to
a board is in ``firmware/README.md``.

Knows nothing of what the bytes mean and does not reopen itself. Fails with ``LinkError`` on opening; later, whichever
of its errors the system chooses for an unplugged port, ``lost`` says why and the port takes and gives no more bytes.
"""

from __future__ import annotations

import errno
import fcntl
import glob
import os
import struct
import termios
from _thread import start_new_thread
from contextlib import suppress

import serial

from edgeguard.errors import LinkError
from edgeguard.link.holders import port_holders, suspects_running

READ_LIMIT_BYTES = 1024
"""What one read takes at most. At 1 Mbaud a 20 ms tick brings 2,000 bytes."""


class SerialPort:
    """An open serial port. ``lost`` turns from ``None`` to the reason once the device is gone."""

    def __init__(self, *, path: str, baud: int, name_holder: bool = False) -> None:
        """Open ``path`` and take it for ourselves. Raising DTR resets some boards: shake hands afterwards.

        ``name_holder``: look for whoever is in the way, which takes longer than a tick.
        """
        self.path = find_port(path, name_holder=name_holder)
        self._fd, self.latency = _open(self.path, baud=baud, name_holder=name_holder)
        self._rest = b""  # of the frame that has been begun
        self._slot = b""
        self.lost: str | None = None
        self.written = 0
        self.superseded = 0

    def fileno(self) -> int:
        return self._fd

    def offer(self, frame: bytes) -> bool:
        """Send ``frame`` now or keep it in the slot, where a newer one replaces it; true when the driver has it all."""
        if self._slot:
            self.superseded += 1
        self._slot = frame
        return self.flush_some()

    def flush_some(self) -> bool:
        """Go on with what could not be written; true when nothing is left."""
        while self._rest or self._begin():
            self._rest = self._rest[self._write(self._rest) :]
            if self._rest:
                return False
            self.written += 1
        return not self._slot

    def read(self) -> bytes:
        """What has arrived, at most ``READ_LIMIT_BYTES``; empty when nothing has, or the port is lost."""
        if self.lost is not None:
            return b""
        try:
            data = os.read(self._fd, READ_LIMIT_BYTES)
        except (BlockingIOError, InterruptedError):
            return b""
        except OSError as error:
            self.lost = _reason(error)
            return b""
        if not data:  # VMIN is 1, so that "nothing yet" is EAGAIN and an empty read is a hang-up
            self.lost = "hung up"
        return data

    def close(self) -> None:
        """Let the port go at once: unlock it here, and let a thread wait for the driver to drain and close.

        ``close(2)`` of a UART may wait 30 s for bytes that cannot leave.
        """
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        self.lost = self.lost or "closed"
        with suppress(OSError):  # the device may be gone, and its locks with it
            fcntl.flock(fd, fcntl.LOCK_UN)
            fcntl.ioctl(fd, termios.TIOCNXCL)
        # Not threading.Thread: its start waits until the new thread has run, which on a busy machine is a tick.
        try:
            start_new_thread(_close, (fd,))
        except RuntimeError:  # none may be made (LimitMEMLOCK, TasksMax): to wait is better than to end
            _close(fd)

    def _begin(self) -> bool:
        """Take the frame out of the slot, unless the driver still holds more than one like it."""
        if self.lost is None and self._slot and self._unsent_bytes() <= len(self._slot):
            self._rest, self._slot = self._slot, b""
        return bool(self._rest)

    def _write(self, data: bytes) -> int:
        """How many bytes the driver takes now."""
        if self.lost is not None:
            return 0
        try:
            return os.write(self._fd, data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self.lost = _reason(error)
            return 0

    def _unsent_bytes(self) -> int:
        try:
            answer: bytes = fcntl.ioctl(self._fd, termios.TIOCOUTQ, bytes(4))
        except OSError:
            return 0  # the driver does not tell, or is gone; then the write says so
        return int(struct.unpack("i", answer)[0])


def find_port(path: str, *, name_holder: bool = False) -> str:
    """The name of the port that is there: of one with wildcards, what it stands for. Waits for no device."""
    if not glob.has_magic(path):
        try:
            os.stat(path)  # noqa: PTH116 (as the guard asks at every tick)
        except OSError as error:
            raise LinkError(f"{path}: {_explain(path, error, name_holder=name_holder)}") from error
        return path
    found = sorted(glob.glob(path))  # noqa: PTH207 (relative names too)
    if len(found) == 1:
        return found[0]
    if not found:
        raise LinkError(
            f"{path}: no port is named so; plug the motor controller in (ls /dev/serial/by-id lists the ports)"
        )
    raise LinkError(f"{path}: {len(found)} ports are named so ({', '.join(found)}); make link.port name one of them")


def _open(path: str, *, baud: int, name_holder: bool) -> tuple[int, str]:
    """A non-blocking descriptor of the port: raw, 8N1, flushed, locked; and whether its driver holds bytes back."""
    try:
        # inter_byte_timeout=0 makes pyserial set VMIN to 1 (see ``read``); with its default an empty read is ambiguous.
        opened = serial.Serial(port=path, baudrate=baud, exclusive=True, timeout=0, inter_byte_timeout=0)
    except ValueError as error:
        raise LinkError(f"{path}: cannot be set to {baud} baud ({error}); set link.baud to one it supports") from error
    except (OSError, termios.error) as error:  # SerialException is an OSError
        raise LinkError(f"{path}: {_explain(path, error, name_holder=name_holder)}") from error
    try:
        fcntl.ioctl(opened.fd, termios.TIOCEXCL)
        _ignore_breaks(opened.fd)
        # A duplicate shares the lock and the settings; pyserial's own descriptor and its four pipe ends go.
        return os.dup(opened.fd), _ask_for_low_latency(opened)
    except (OSError, termios.error) as error:
        raise LinkError(f"{path}: {_explain(path, error, name_holder=name_holder)}") from error
    finally:
        opened.close()


def _ignore_breaks(fd: int) -> None:
    """pyserial leaves BRKINT as it is (``stty sane`` sets it), and then a break throws away what is on its way."""
    attributes = termios.tcgetattr(fd)
    attributes[0] = attributes[0] & ~termios.BRKINT | termios.IGNBRK
    termios.tcsetattr(fd, termios.TCSANOW, attributes)


def _close(fd: int) -> None:
    with suppress(OSError):  # of an unplugged device; it is closed all the same
        os.close(fd)


def _ask_for_low_latency(opened: serial.Serial) -> str:
    try:
        opened.set_low_latency_mode(True)
    except ValueError:  # what pyserial makes of a driver that has no such flag
        return "its driver has no low-latency flag"
    return "low latency"


def _explain(path: str, error: OSError | termios.error, *, name_holder: bool) -> str:
    """What is wrong with the port, and the way out."""
    number = error.errno if isinstance(error, OSError) else error.args[0]
    if number == errno.ENOENT:
        taken = [str(one) for one in suspects_running() if one.name == "brltty"] if name_holder else []
        brltty = f"; it may be taken by {taken[0]}" if taken else ""
        plug = "does not exist; plug the motor controller in, or set link.port (ls /dev/serial/by-id lists the ports)"
        return plug + brltty
    if number in (errno.EACCES, errno.EPERM):
        return f"no permission; join the port's group (ls -lL {path} names it) and log in again"
    if number in (errno.EBUSY, errno.EAGAIN):
        holders = [str(one) for one in port_holders(path)] if name_holder else []
        if holders:
            return f"in use by {', '.join(holders)}; stop that first"
        return f"in use by another program; stop that first (sudo fuser -v {path} names it)"
    if number in (errno.EISDIR, errno.ENOTTY, None):  # pyserial swallows the number when the file is no tty
        return "is not a serial port; set link.port to one (ls /dev/serial/by-id lists them)"
    return f"cannot be opened ({error}); unplug it and plug it in again"


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
