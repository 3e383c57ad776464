"""What is examined: one robot's files on one machine, and the guard that may be running for it.

``root`` is the machine's file system (``/``, or a made tree in tests) for everything that is read from files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from edgeguard.clock import Clock, SystemClock
from edgeguard.config import Config
from edgeguard.errors import ConfigError, GuardGoneError
from edgeguard.runtime.assembly import assemble
from edgeguard.runtime.latch import default_state_directory
from edgeguard.runtime.status import Status
from edgeguard.service.client import ServiceClient


@dataclass(frozen=True, kw_only=True)
class Patient:
    """``worker`` is another worker's command line. No model is loaded, no port opened, that is not to be."""

    config_file: Path
    profile: Path | None
    sockets: Path
    given_state_directory: Path | None = None
    given_port: str | None = None
    worker: Sequence[str] | None = None
    asks_model: bool = True
    opens_port: bool = True
    root: Path = Path("/")
    clock: Clock = field(default_factory=SystemClock)

    @cached_property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with the configuration."""
        try:
            assemble(self.config_file)
        except ConfigError as error:
            return error.problems
        return ()

    @cached_property
    def config(self) -> Config:
        """``ConfigError`` when it cannot be used; no check but the first is made then."""
        return assemble(self.config_file).config

    @cached_property
    def guard(self) -> Status | None:
        """How the guard that runs stands, if one does.

        ``EdgeguardError`` where we may not ask: a guard may run there, and nothing is to be opened beside it.
        """
        try:
            with ServiceClient.any(self.sockets) as client:
                return client.status()
        except GuardGoneError:
            return None

    @property
    def state_directory(self) -> Path:
        return (
            self.given_state_directory
            or self.config.state_directory
            or default_state_directory(self.config_file.absolute())
        )

    @property
    def port(self) -> str:
        return self.given_port or self.config.link.port

    def text(self, path: str) -> str | None:
        """A file below the root; ``None`` when there is nothing to read."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return None
