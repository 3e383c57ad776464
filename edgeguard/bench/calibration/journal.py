"""The raw samples of a calibration, in an append-only file beside its profile: what an interruption must not lose.

``robot.profile.json`` has ``robot.profile.samples.gz``: JSON lines, each compressed by itself and appended with one
write and one sync, so that after Ctrl-C, a kill or a power cut all but the line that was being written is there (any
gzip reads the whole). The first line says what is measured; a calibration goes on only if that is still so. Its time
goes on where it was left.

Lines: ``{"format": …, "begin": …}``, ``{"cost": …}`` when passes have been priced, ``{"soak": …}`` when the board has
been heated, ``{"block": …}`` for every ten requests. ``ProfileError`` for a file that is something else or another's.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgeguard.bench.calibration.sampling import Block
from edgeguard.budget import PassCost, PassTimes, Soak, differences
from edgeguard.budget.cost import OtherModel, cost_of
from edgeguard.clock import ms_from_ns
from edgeguard.errors import ProfileError
from edgeguard.plain import from_plain, to_plain

FORMAT = "edgeguard.samples/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a calibration is of; one of something else cannot go on where it stopped."""

    fingerprint: Mapping[str, str]
    kind: str
    period_ns: int

    def differences(self, now: Measured) -> list[str]:
        """What is not the same now, in words."""
        then, after = ({"kind": one.kind, "period": f"{ms_from_ns(one.period_ns):g} ms"} for one in (self, now))
        return differences({**then, **self.fingerprint}, {**after, **now.fingerprint})


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """What the first part of a calibration found: the measured passes, the cost that fits them, and what ran them; and
    the same of further models, where plans ask others.
    """

    sweep: tuple[PassTimes, ...]
    cost: PassCost
    placement: str = ""
    others: tuple[OtherModel, ...] = ()

    def cost_of(self, rung: str) -> PassCost:
        """As a profile's."""
        return cost_of(rung, first=self.cost, others=self.others)


@dataclass(slots=True, kw_only=True)
class Progressed:
    """How far a calibration has come. ``blocks`` are in their order, those before the soak first."""

    priced: Priced | None = None
    soak: Soak | None = None
    blocks: list[Block] = field(default_factory=list)

    @property
    def elapsed_ns(self) -> int:
        """When the last request of the run was released, counted from its start."""
        return max((sample.at_ns for block in self.blocks for sample in block.samples), default=0)


class Journal:
    """One file that grows. Made by ``begin`` or ``resume``."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @classmethod
    def beside(cls, profile: Path) -> Journal:
        """The samples that belong to this profile."""
        return cls(profile.with_name(f"{profile.name.removesuffix('.json')}.samples.gz"))

    def begin(self, what: Measured) -> None:
        """A new, empty file; what was there of an earlier calibration is gone."""
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.unlink(missing_ok=True)
        except OSError as error:
            raise ProfileError(f"{self.file}: samples cannot be kept: {error.strerror}; name another --out") from error
        self._append({"format": FORMAT, "begin": to_plain(what)})

    def resume(self, what: Measured) -> Progressed:
        """What an interrupted calibration of the same had come to."""
        lines = self._read()
        if not lines or lines[0].get("format") != FORMAT:
            raise ProfileError(f"{self.file}: no samples of a calibration; begin one without --resume")
        progressed = Progressed()
        try:
            changed = from_plain(Measured, lines[0].get("begin")).differences(what)
            for line in lines[1:]:
                _take(line, progressed)
        except ValueError as error:
            raise ProfileError(f"{self.file}: {error}; begin without --resume") from error
        if changed:
            raise ProfileError(
                f"{self.file}: measured on something else ({'; '.join(changed)}); begin without --resume"
            )
        return progressed

    def price(self, priced: Priced) -> None:
        self._append({"cost": to_plain(priced)})

    def soak(self, soak: Soak) -> None:
        self._append({"soak": to_plain(soak)})

    def add(self, block: Block) -> None:
        self._append({"block": to_plain(block)})

    def _append(self, line: Mapping[str, Any]) -> None:
        content = gzip.compress(json.dumps(line, separators=(",", ":")).encode() + b"\n", compresslevel=6, mtime=0)
        try:
            with self.file.open("ab", buffering=0) as stream:
                stream.write(content)
                os.fsync(stream.fileno())
        except OSError as error:
            raise ProfileError(f"{self.file}: samples cannot be kept: {error.strerror}; name another --out") from error

    def _read(self) -> list[dict[str, Any]]:
        """Every whole line; one that was cut off at the end is cut off for good."""
        try:
            rest = self.file.read_bytes()
        except OSError as error:
            raise ProfileError(f"{self.file}: cannot be read ({error.strerror}); begin without --resume") from error
        size, lines = len(rest), []
        while rest:
            member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
            try:
                content = member.decompress(rest)
                if not member.eof:
                    break
                lines.append(json.loads(content))
            except (zlib.error, ValueError):
                break
            rest = member.unused_data
        if rest:
            os.truncate(self.file, size - len(rest))
        return lines


def _take(line: Mapping[str, Any], progressed: Progressed) -> None:
    if "cost" in line:
        progressed.priced = from_plain(Priced, line["cost"])
    elif "soak" in line:
        progressed.soak = from_plain(Soak, line["soak"])
    elif "block" in line:
        progressed.blocks.append(from_plain(Block, line["block"]))
    else:
        raise ValueError(f"{sorted(line)} is no line of a calibration")
