"""Follows a flight log that is being written, as ``tail -f`` does: across rotation, and whatever the disk does to it.

It begins near the end of the file, at the first whole block: nothing before that is needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from edgeguard.errors import FlightLogError
from edgeguard.plain import from_plain
from edgeguard.recorder.flight import Glance, glance
from edgeguard.recorder.log import DocumentReader
from edgeguard.recorder.record import load_document
from edgeguard.types import CycleRecord, Event

TAIL_BYTES = 1 << 20
"""About two hundred seconds at 5 Hz."""

_CHUNK_BYTES = 1 << 16


class FlightFollower:
    """``read`` gives what has come since the last time; it never waits."""

    def __init__(self, file: Path) -> None:
        """``FlightLogError`` when there is no such file."""
        self._file = file
        try:
            self._stream = file.open("rb")
        except OSError as error:
            raise FlightLogError(f"{file}: cannot be read ({error.strerror}); name a flight log") from error
        self._reader = DocumentReader(glance)
        self._stream.seek(max(0, self._size(self._stream) - TAIL_BYTES))

    def read(self) -> Iterator[CycleRecord | Event]:
        """Decisions and events, in their order."""
        yield from self._read_on()
        if self._was_rotated():
            yield from self._read_on()  # what came between our last look and the rotation
            self._stream.close()
            self._stream = self._file.open("rb")
            self._reader = DocumentReader(glance)
            yield from self._read_on()

    def close(self) -> None:
        self._stream.close()

    def _read_on(self) -> Iterator[CycleRecord | Event]:
        while chunk := self._stream.read(_CHUNK_BYTES):
            for entry in self._reader.feed(chunk):
                if isinstance(entry, Glance) and entry.eventful:
                    effects = load_document(entry.document)["effects"]
                    yield from (from_plain(Event, one) for one in effects["events"])
                    if effects["record"] is not None:
                        yield from_plain(CycleRecord, effects["record"])

    def _was_rotated(self) -> bool:
        try:
            return self._file.stat().st_ino != os.fstat(self._stream.fileno()).st_ino
        except OSError:  # between two files
            return False

    @staticmethod
    def _size(stream: BinaryIO) -> int:
        return os.fstat(stream.fileno()).st_size
