"""One start of the guard in a flight log, found without reading what it holds, and its cycles.

A day's log unpacks to ten gigabytes, of which what people ask for is a small part: steps without a decision or an event
are passed over by their bytes. Times are monotonic nanoseconds, or nanoseconds since the start's first step
(``at_ns``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeguard.errors import FlightLogError
from edgeguard.plain import from_plain
from edgeguard.recorder.frame import Frame, FrameKind, FrameReader
from edgeguard.recorder.log import DocumentReader, Flaw, FlightEntry, S, read_documents
from edgeguard.recorder.record import FlightHeader, decode_header, decode_step, load_document
from edgeguard.recorder.rotation import flight_files
from edgeguard.types import CycleRecord, Event

_CHUNK_BYTES = 1 << 20
_BEGINNING = re.compile(rb'\{"number":(\d+),"now_ns":(-?\d+),')


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """A step that has not been read beyond its beginning."""

    number: int
    now_ns: int
    document: bytes

    @property
    def eventful(self) -> bool:
        """Whether there may be a decision or an event in it: inside a text the quotes would be escaped."""
        return b'"record":{' in self.document or b'"events":[{' in self.document

    def plain(self) -> dict[str, Any]:
        """All of it, as plain values."""
        step = json.loads(self.document)
        if not isinstance(step, dict):
            raise ValueError("a step that is no object")
        return step


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """One decision, with the events since the one before it. ``number`` is the step's."""

    number: int
    at_ns: int
    record: CycleRecord
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Events that no decision came after. ``origin_ns`` is the time of the flight's first step."""

    origin_ns: int
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flight:
    """One start: its header, and the files that it is in, from the offset of a header on."""

    header: FlightHeader
    parts: tuple[tuple[Path, int], ...]

    def entries(self) -> Iterator[FlightEntry]:
        """The header, and everything in full."""
        yield self.header
        yield from self._read(decode_step)

    def glances(self) -> Iterator[Glance | Flaw]:
        """Every step, and what is missing."""
        return self._read(glance)

    def _read(self, decode: Callable[[bytes], S]) -> Iterator[S | Flaw]:
        """Also from one file to the next, and behind a recorder that was replaced: it writes the header again."""
        last, behind_header = None, True
        for file, offset in self.parts:
            for entry in read_documents(file, DocumentReader(decode), offset=offset):
                if isinstance(entry, FlightHeader):
                    if entry != self.header:
                        break
                    behind_header = True
                elif isinstance(entry, Flaw):
                    yield entry
                else:
                    if behind_header and last is not None and entry.number != last + 1:
                        missing = f"steps {last + 1} to {entry.number - 1} are missing"
                        yield Flaw(offset=0, detail=missing, file=file.name)
                    last, behind_header = entry.number, False
                    yield entry

    def cycles(self, *, from_ns: int = 0, to_ns: int | None = None) -> Iterator[Cycle]:
        """The decisions between two times since the first step."""
        return (one for one in self.stretch(from_ns=from_ns, to_ns=to_ns) if isinstance(one, Cycle))

    def stretch(self, *, from_ns: int = 0, to_ns: int | None = None) -> Iterator[Cycle | Rest]:
        """The decisions between two times since the first step, and what happened behind the last of them."""
        origin_ns: int | None = None
        events: list[Event] = []
        for step in self.glances():
            if isinstance(step, Flaw):
                continue
            origin_ns = step.now_ns if origin_ns is None else origin_ns
            at_ns = step.now_ns - origin_ns
            if to_ns is not None and at_ns > to_ns:
                break
            if at_ns < from_ns or not step.eventful:
                continue
            effects = load_document(step.document)["effects"]
            events += [from_plain(Event, one) for one in effects["events"]]
            if effects["record"] is not None:
                record = from_plain(CycleRecord, effects["record"])
                yield Cycle(number=step.number, at_ns=at_ns, record=record, events=tuple(events))
                events.clear()
        if origin_ns is not None and events:
            yield Rest(origin_ns=origin_ns, events=tuple(events))


def glance(document: bytes) -> Glance:
    """``ValueError`` for what is no step."""
    begins = _BEGINNING.match(document)
    if begins is None:
        raise ValueError("no step begins so")
    return Glance(number=int(begins[1]), now_ns=int(begins[2]), document=document)


def find_flights(*logs: Path) -> list[Flight]:
    """Every start in flight logs, or in a folder's, oldest first; ``FlightLogError`` when there is none."""
    flights: list[Flight] = []
    files = flight_files(*logs)
    for file in files:
        for offset, header in _headers(file):
            goes_on = bool(flights) and flights[-1].header == header
            if not goes_on:
                flights.append(Flight(header=header, parts=((file, offset),)))
            elif flights[-1].parts[-1][0] != file:
                earlier = flights.pop()
                flights.append(Flight(header=header, parts=(*earlier.parts, (file, offset))))
    if not flights:
        list(read_documents(files[0], DocumentReader(glance)))  # says what it is instead
    return flights


def read_flights(*logs: Path) -> Iterator[FlightEntry]:
    """Everything in the logs, one start after the other; ``FlightLogError`` when there is none."""
    for flight in find_flights(*logs):
        yield from flight.entries()


def last_flight(log: Path, *, back: int = 0) -> Flight:
    """The last start in the log, or the one so many before it."""
    flights = find_flights(log)
    if not 0 <= back < len(flights):
        raise FlightLogError(f"{log}: holds {len(flights)} starts, and there is none {back} before the last")
    return flights[-1 - back]


def _headers(file: Path) -> Iterator[tuple[int, FlightHeader]]:
    reader = FrameReader()
    try:
        with file.open("rb") as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                for frame in reader.feed(chunk):
                    if isinstance(frame, Frame) and frame.kind is FrameKind.HEADER:
                        header = _header(frame)
                        if header is not None:
                            yield frame.offset, header
    except OSError as error:
        raise FlightLogError(f"{file}: cannot be read ({error.strerror}); name a flight log") from error


def _header(frame: Frame) -> FlightHeader | None:
    try:
        return decode_header(frame.payload)
    except ValueError:  # of another version; reading it says so
        return None
