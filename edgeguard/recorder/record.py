"""What the black box keeps: one header per start of the guard, then one record per step of its core.

A header holds everything that the core's settings are made of, so that a log can be replayed without any file beside
it. A step holds what came in and what was decided; some hold the core's state before them too, and from any of those
a replay can start. Records are JSON documents. A ``Decimal`` is written as ``{"$decimal": "0.5"}``, because its
difference from a float may be a decision. Times are monotonic nanoseconds; ``created`` is a label.

Writing never fails: a value that no document can hold is written as its ``repr``, or the step is not recorded. Reading
raises ``ValueError``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from edgeguard import __version__
from edgeguard.answer import read_schema
from edgeguard.config import Config, parse_config
from edgeguard.errors import ConfigError
from edgeguard.guard.interface import Effects, Inputs
from edgeguard.guard.settings import Settings
from edgeguard.guard.state import GuardState
from edgeguard.plain import from_plain, to_plain

FORMAT = "edgeguard.flight/2"
"""Raised whenever the core's state or inputs change in a way that older logs cannot be read: 2 has the thermal level,
what the calibration promises, and the drift of requests."""

_DECIMAL = "$decimal"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightHeader:
    """One start of the guard: its configuration, and what the start itself found out."""

    created: str
    version: str
    config_file: str
    config_digest: str
    config_text: str
    answer_schema: str  # JSON, with exact decimals: the text may only name a file of it
    reserve_ns: int
    wire_ns: int
    plan_schemas: str = "{}"  # those of the plans, by name
    format: str = FORMAT

    @classmethod
    def from_config(cls, config: Config, *, reserve_ns: int, wire_ns: int, created: str) -> FlightHeader:
        """Reads the file once more; ``ConfigError`` when it is no longer the one that ``config`` was read from."""
        try:
            content = config.file.read_bytes()
        except OSError as error:
            raise ConfigError(f"{config.file}: cannot be read ({error.strerror})") from error
        if hashlib.sha256(content).hexdigest() != config.digest:
            raise ConfigError(f"{config.file}: has changed since it was read; start again")
        return cls(
            created=created,
            version=__version__,
            config_file=str(config.file),
            config_digest=config.digest,
            config_text=content.decode(),
            answer_schema=_dumps(config.schema),
            plan_schemas=_dumps({rung.name: rung.schema for rung in config.plans}),
            reserve_ns=reserve_ns,
            wire_ns=wire_ns,
        )

    def config(self) -> Config:
        """The configuration as it was; ``ConfigError`` when this version of edgeguard no longer reads it."""
        schemas = {"": load_document(self.answer_schema.encode()), **load_document(self.plan_schemas.encode())}
        return parse_config(self.config_text.encode(), file=Path(self.config_file), schemas=schemas)

    def settings(self, config: Config | None = None) -> Settings:
        """The core's settings for that configuration, or for another one on the same machine."""
        config = config or self.config()
        fields = read_schema(config.schema)
        return Settings.from_config(config, fields, reserve_ns=self.reserve_ns, wire_ns=self.wire_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightStep:
    """One step of the core. ``number`` counts the steps of one start without a gap."""

    number: int
    now_ns: int
    inputs: Inputs
    effects: Effects
    before: GuardState | None = None


def encode_header(header: FlightHeader) -> bytes:
    return _dumps(to_plain(header)).encode()


def decode_header(document: bytes) -> FlightHeader:
    plain = load_document(document)
    written = plain.get("format") if isinstance(plain, dict) else None
    if written != FORMAT:
        raise ValueError(f"format {written!r}; this version of edgeguard reads {FORMAT!r}")
    return from_plain(FlightHeader, plain)


def encode_step(step: FlightStep) -> bytes | None:
    """``None`` for the one thing that no document can hold: a whole number of thousands of digits."""
    try:
        return _dumps(to_plain(step)).encode()
    except ValueError:
        return None


def decode_step(document: bytes) -> FlightStep:
    """Also of an earlier version, which knew a refused observation; nothing but a guard's end has ever been one."""
    plain = load_document(document)
    if isinstance(plain, dict) and isinstance(inputs := plain.get("inputs"), dict):
        match inputs.pop("refusal", None), inputs.get("conditions"):
            case {"cause": cause, "detail": detail}, [*conditions]:
                inputs["conditions"] = [*conditions, [cause, detail]]
    return from_plain(FlightStep, plain)


def text_of(value: object) -> str:
    """``value`` as a text that is equal exactly when it is: in there, NaN equals NaN."""
    return _dumps(to_plain(value))


def _dumps(plain: object) -> str:
    return json.dumps(plain, separators=(",", ":"), default=_odd)


def load_document(document: bytes) -> Any:
    try:
        return json.loads(document, object_hook=_restore)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _odd(value: object) -> Any:
    return {_DECIMAL: str(value)} if isinstance(value, Decimal) else repr(value)


def _restore(plain: Mapping[str, Any]) -> Any:
    spelled = plain[_DECIMAL] if plain.keys() == {_DECIMAL} else None
    try:
        return Decimal(spelled) if isinstance(spelled, str) else plain
    except InvalidOperation:  # a field of that name: everything else is one
        return plain
