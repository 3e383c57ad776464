"""The flight log: a file that is only ever appended to, one ``write`` per record, and readable whatever happened to it.

Steps are compressed in blocks: a block is one raw deflate stream that is flushed after each record, begins with a step
that holds the core's state, and needs nothing before it. So a torn tail costs the record that was being written, and
damage costs its block, of which no replay could have gone on anyway. A record holds one step, or several as lines.

The writer belongs to a recorder of normal priority, and the file to one writer at a time: the recorder of a guard that
was killed may still have steps to write when the next one starts, which waits for it. A disk that is full or gone is
counted and told in ``problem``, and never raised; writing goes on with the next block that begins. Reading reports
missing steps and damage as ``Flaw``; only a file that is no flight log is a ``FlightLogError``.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, Protocol, TypeAlias, TypeVar

from edgeguard.errors import FlightLogError
from edgeguard.recorder.frame import Damage, Frame, FrameKind, FrameReader, encode_frame
from edgeguard.recorder.record import FORMAT, FlightHeader, FlightStep, decode_header, decode_step, encode_header

RECORD_LIMIT_BYTES = 8 << 20
"""What one record may unpack to."""

_CHUNK_BYTES = 1 << 16
_RAW_DEFLATE = -zlib.MAX_WBITS
_FLUSHED = b"\x00\x00\xff\xff"
"""The end of every flushed piece of a deflate stream; left out of the file and put back (as in RFC 7692, 7.2.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """Something that is missing or cannot be read. No replay goes on across it. ``file``: the name of its file."""

    offset: int
    detail: str
    file: str = ""

    def __str__(self) -> str:
        return f"{self.file}, at byte {self.offset}: {self.detail}"


FlightEntry: TypeAlias = FlightHeader | FlightStep | Flaw


class FlightEncoder:
    """Steps in, frames out. ``break_off`` after a frame that did not reach the disk."""

    def __init__(self) -> None:
        self._deflate: zlib._Compress | None = None

    def steps(self, documents: Sequence[bytes], *, begins_block: bool) -> bytes | None:
        """The frame of these encoded steps; ``None`` when they go on with a block that has been broken off."""
        if begins_block:
            self._deflate = zlib.compressobj(level=zlib.Z_BEST_COMPRESSION, wbits=_RAW_DEFLATE)
        if self._deflate is None:
            return None
        lines = b"\n".join((*documents, b""))
        packed = self._deflate.compress(lines) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return encode_frame(FrameKind.BLOCK if begins_block else FrameKind.STEP, packed.removesuffix(_FLUSHED))

    def break_off(self) -> None:
        self._deflate = None


def _open_alone(file: Path) -> int:
    """For appending, as soon as no other writer has the file; one that was put aside meanwhile is not it any more."""
    while True:
        fd = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
        except OSError:  # a disk that knows no locks
            return fd
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(fd), file.stat()):
                return fd
        os.close(fd)


class FlightWriter:
    """Appends to ``file``, made if need be. ``written`` and ``lost`` count steps; ``problem``: why the last is lost."""

    def __init__(self, file: Path, *, header: FlightHeader) -> None:
        self._file = file
        self._header = header
        self._encoder = FlightEncoder()
        self._fd: int | None = None
        self.written = 0
        self.lost = 0
        self.problem: str | None = None

    def append(self, *documents: bytes | None, begins_block: bool) -> bool:
        """Write one step (``flight_record.encode_step``), or several in a row as one record; false when they are lost.

        ``begins_block``: the first of them holds the state before it.
        """
        whole = [document for document in documents if document is not None]
        frame = self._encoder.steps(whole, begins_block=begins_block) if len(whole) == len(documents) else None
        if frame is not None and self._opened() and self._write(frame):
            self.written += len(documents)
            self.problem = None
            return True
        self._encoder.break_off()
        self.lost += len(documents)
        return False

    @property
    def astray(self) -> bool:
        """Whether the open file is no longer the one of that name: it was put aside, or somebody has removed it."""
        if self._fd is None:
            return False
        try:
            return not os.path.samestat(os.fstat(self._fd), self._file.stat())
        except FileNotFoundError:
            return True
        except OSError:
            return False

    def sync(self) -> bool:
        """Down to the disk; this may take its time. Whether all that was written is there."""
        if self._fd is None:
            return False
        try:
            os.fsync(self._fd)
        except OSError as error:
            self._note(error)
            return False
        return True

    def close(self) -> None:
        if self._fd is not None:
            self.sync()
            os.close(self._fd)
            self._fd = None

    def _opened(self) -> bool:
        if self._fd is not None:
            return True
        try:
            fd = _open_alone(self._file)
        except OSError as error:
            self._note(error)
            return False
        self._fd = fd
        if self._write(encode_frame(FrameKind.HEADER, encode_header(self._header))):
            return True
        os.close(fd)
        self._fd = None
        return False

    def _write(self, frame: bytes) -> bool:
        """Whether all of it is in the file; the reader finds its way past a part."""
        assert self._fd is not None
        try:
            if os.write(self._fd, frame) == len(frame):
                return True
            self.problem = f"{self._file}: no space left for a whole record"
        except OSError as error:
            self._note(error)
        return False

    def _note(self, error: OSError) -> None:
        self.problem = f"{self._file}: {error.strerror}"


class Numbered(Protocol):
    """What a step's document is read as."""

    @property
    def number(self) -> int: ...


S = TypeVar("S", bound=Numbered)


class DocumentReader(Generic[S]):
    """Bytes in, in any chunks; headers, steps as ``decode`` reads them, and flaws out, in their order."""

    def __init__(self, decode: Callable[[bytes], S]) -> None:
        self._decode = decode
        self._frames = FrameReader()
        self._inflate: zlib._Decompress | None = None
        self._next_number: int | None = None

    def feed(self, data: bytes) -> Iterator[FlightHeader | S | Flaw]:
        return self._read_all(self._frames.feed(data))

    def finish(self) -> Iterator[FlightHeader | S | Flaw]:
        yield from self._read_all(self._frames.finish())

    def _read_all(self, found: list[Frame | Damage]) -> Iterator[FlightHeader | S | Flaw]:
        for one in found:
            if isinstance(one, Damage):
                what = "the last record was never finished" if one.tail else "damaged"
                yield self._break(one.offset, f"{one.n_bytes} bytes dropped: {what}")
                continue
            try:
                yield from self._read(one)
            except (ValueError, zlib.error) as error:
                yield self._break(one.offset, f"a record of {len(one.payload)} bytes cannot be read: {error}")

    def _read(self, frame: Frame) -> Iterator[FlightHeader | S | Flaw]:
        if frame.kind is FrameKind.HEADER:
            self._inflate, self._next_number = None, None
            yield decode_header(frame.payload)
            return
        if frame.kind is FrameKind.BLOCK:
            self._inflate = zlib.decompressobj(wbits=_RAW_DEFLATE)
        if self._inflate is None:
            return  # what begins its block was lost; the missing numbers will tell how many
        lines = self._inflate.decompress(frame.payload + _FLUSHED, RECORD_LIMIT_BYTES)
        if self._inflate.unconsumed_tail:
            raise ValueError(f"it unpacks to more than {RECORD_LIMIT_BYTES} bytes")
        for document in lines.splitlines():
            step = self._decode(document)
            if self._next_number is not None and step.number != self._next_number:
                first, last = self._next_number, step.number - 1
                yield Flaw(offset=frame.offset, detail=f"steps {first} to {last} are missing")
            self._next_number = step.number + 1
            yield step

    def _break(self, offset: int, detail: str) -> Flaw:
        self._inflate = None
        return Flaw(offset=offset, detail=detail)


class FlightReader(DocumentReader[FlightStep]):
    """Every step in full."""

    def __init__(self) -> None:
        super().__init__(decode_step)


def read_flight(file: Path) -> Iterator[FlightEntry]:
    """Everything in the log, oldest first, a piece at a time; ``FlightLogError`` when it is none."""
    return read_documents(file, FlightReader())


def read_documents(file: Path, reader: DocumentReader[S], *, offset: int = 0) -> Iterator[FlightHeader | S | Flaw]:
    """Like ``read_flight``, with another reader, or from a header's ``offset``."""
    begun, why = False, ""
    try:
        with file.open("rb") as stream:
            stream.seek(offset)
            while chunk := stream.read(_CHUNK_BYTES):
                for entry in reader.feed(chunk):
                    begun = begun or isinstance(entry, FlightHeader)
                    why = f": {entry.detail}" if isinstance(entry, Flaw) and not why else why
                    yield _placed(entry, file)
    except OSError as error:
        raise FlightLogError(f"{file}: cannot be read ({error.strerror}); name a flight log") from error
    for entry in reader.finish():
        yield _placed(entry, file)
    if not begun:
        raise FlightLogError(
            f"{file}: holds no header of a flight log ({FORMAT}){why}; name one that this version recorded"
        )


def _placed(entry: FlightHeader | S | Flaw, file: Path) -> FlightHeader | S | Flaw:
    return replace(entry, file=file.name) if isinstance(entry, Flaw) else entry
