"""A flight as MCAP, for Foxglove and everything else that reads it.

Three topics with JSON schemas: ``/edgeguard/decision``, one message per cycle; ``/edgeguard/event``; and
``/edgeguard/motion``, the commanded and the measured axes of every step. The configuration is an attachment. MCAP's
times are wall time: the guard's start by the machine's clock, and the monotonic time that has passed since. (MCAP is
no format to record in: a killed writer loses what is in its chunk.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeguard.clock import NS_PER_MS, ns_from_iso
from edgeguard.errors import MissingExtraError
from edgeguard.guard.rules import number
from edgeguard.plain import from_plain
from edgeguard.recorder.flight import Cycle, Flight, Glance
from edgeguard.recorder.record import FlightHeader, load_document
from edgeguard.recorder.table import Column, columns
from edgeguard.types import CycleRecord

if TYPE_CHECKING:
    from mcap.writer import Writer

_TYPES = {"number": "number", "integer": "integer", "text": "string", "flag": "boolean"}
_TEXT, _NUMBER = {"type": "string"}, {"type": "number"}


def export_mcap(flight: Flight, from_ns: int, to_ns: int | None, file: Path) -> int:
    """Write the stretch of ``flight`` into ``file``; how many decisions are in it."""
    try:
        from mcap.writer import Writer
    except ImportError as error:
        raise MissingExtraError(package="mcap", extra="log", purpose="an MCAP file") from error
    with file.open("wb") as stream:
        writer = Writer(stream)
        writer.start(profile="", library="edgeguard")
        count = _Topics(writer, flight.header).write(flight, from_ns, to_ns)
        header = flight.header
        writer.add_metadata("edgeguard", {"version": header.version, "config_digest": header.config_digest})
        writer.add_attachment(
            create_time=ns_from_iso(header.created),
            log_time=ns_from_iso(header.created),
            name=Path(header.config_file).name,
            media_type="application/toml",
            data=header.config_text.encode(),
        )
        writer.finish()  # type: ignore[no-untyped-call]
    return count


class _Topics:
    def __init__(self, writer: Writer, header: FlightHeader) -> None:
        self._writer = writer
        self._columns = columns(header)
        self._start_ns = ns_from_iso(header.created)
        axes = _object(dict.fromkeys((axis.name for axis in header.config().axes), _NUMBER))
        self._decision = self._channel("decision", _row_schema(self._columns))
        self._event = self._channel("event", _object({"name": _TEXT, "detail": _TEXT}))
        self._motion = self._channel("motion", _object({"commanded": axes, "measured": axes, "lateness_ms": _NUMBER}))

    def write(self, flight: Flight, from_ns: int, to_ns: int | None) -> int:
        count, origin_ns = 0, None
        for step in flight.glances():
            if not isinstance(step, Glance):
                continue
            origin_ns = step.now_ns if origin_ns is None else origin_ns
            at_ns = step.now_ns - origin_ns
            if at_ns < from_ns:
                continue
            if to_ns is not None and at_ns > to_ns:
                break
            count += self._step(step, at_ns)
        return count

    def _step(self, step: Glance, at_ns: int) -> bool:
        plain = load_document(step.document)
        inputs, effects = plain["inputs"], plain["effects"]
        echo, send = inputs["link"]["echo"], effects["send"]
        motion = {"lateness_ms": inputs["lateness_ns"] / NS_PER_MS}
        if send is not None:
            motion["commanded"] = send["axes"]
        if echo is not None:
            measured = {name: number(value) for name, value in echo["axes"].items()}
            motion["measured"] = {name: value for name, value in measured.items() if value is not None}
        self._add(self._motion, motion, at_ns, step.number)
        for event in effects["events"]:
            self._add(self._event, {"name": event["name"], "detail": event["detail"]}, at_ns, step.number)
        if effects["record"] is None:
            return False
        record = from_plain(CycleRecord, effects["record"])
        cycle = Cycle(number=step.number, at_ns=at_ns, record=record, events=())
        row = {one.name: value for one in self._columns if (value := one.value(cycle)) is not None}
        self._add(self._decision, _nested(row), at_ns, step.number)
        return True

    def _channel(self, name: str, schema: Mapping[str, Any]) -> int:
        schema_id = self._writer.register_schema(
            name=f"edgeguard.{name}", encoding="jsonschema", data=json.dumps(schema).encode()
        )
        return self._writer.register_channel(topic=f"/edgeguard/{name}", message_encoding="json", schema_id=schema_id)

    def _add(self, channel: int, message: Mapping[str, Any], at_ns: int, number: int) -> None:
        wall_ns = self._start_ns + at_ns
        data = json.dumps(message, default=str).encode()
        self._writer.add_message(
            channel_id=channel, log_time=wall_ns, publish_time=wall_ns, sequence=number % (1 << 32), data=data
        )


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties)}


def _row_schema(header: Sequence[Column]) -> dict[str, Any]:
    """``observation.front_m`` is a property of the object ``observation``, which is what viewers can name."""
    groups = _nested({one.name: {"type": _TYPES[one.kind], "description": one.about} for one in header})
    return _object({name: one if "type" in one else _object(one) for name, one in groups.items()})


def _nested(row: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for name, value in row.items():
        group, dot, rest = name.partition(".")
        if dot:
            nested.setdefault(group, {})[rest] = value
        else:
            nested[group] = value
    return nested
