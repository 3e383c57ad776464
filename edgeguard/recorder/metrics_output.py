"""Publishes a flight's metrics: a file for node_exporter's textfile collector, and HTTP on the loopback interface.

The file is replaced as a whole, readable by everybody, every few seconds. HTTP only when it is asked for. Belongs to
the recorder's process; ``prometheus_client`` (the extra ``metrics``) is imported there and nowhere else. What fails is
told in ``problem`` and never raised.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from edgeguard.clock import NS_PER_S, Clock
from edgeguard.config.sections import Metrics
from edgeguard.errors import MissingExtraError
from edgeguard.recorder.exposition import families
from edgeguard.recorder.metrics import FlightMetrics
from edgeguard.recorder.record import FlightHeader

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

PUBLISH_EVERY_NS = 2 * NS_PER_S
"""Scrapes come every 15 s or more; a file that is older than that is one of a guard that has ended."""

LOOPBACK = "127.0.0.1"


def check_metrics(metrics: Metrics) -> None:
    """``MissingExtraError`` when metrics are asked for and cannot be written; imports nothing."""
    if metrics.wanted and find_spec("prometheus_client") is None:
        raise MissingExtraError(package="prometheus_client", extra="metrics", purpose="[metrics] of the configuration")


class MetricsOutput:
    """The metrics of one flight, and where they go."""

    def __init__(self, metrics: Metrics, *, header: FlightHeader, clock: Clock) -> None:
        from prometheus_client import CollectorRegistry, start_http_server

        config = header.config()
        self._textfile = metrics.textfile
        self._clock = clock
        self._model = Path(config.model.folder).name
        self._info = {"version": header.version, "config_digest": header.config_digest[:12]}
        self._flight = FlightMetrics(deadline_ns=config.timing.deadline_ns)
        self._latest: tuple[Metric, ...] = ()
        self._next_ns = 0
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._http_problem: str | None = None
        self.problem: str | None = None
        if metrics.http_port is not None:
            try:
                start_http_server(metrics.http_port, addr=LOOPBACK, registry=self._registry)
            except OSError as error:
                self._http_problem = f"metrics: port {metrics.http_port} of {LOOPBACK}: {error.strerror}"

    def collect(self) -> Iterable[Metric]:
        """What was last published: for the registry, which another thread asks."""
        return self._latest

    def note(self, document: bytes) -> None:
        """One step."""
        self._flight.note(document)

    def publish(self, *, steps_written: int, steps_lost: int) -> None:
        """Make the metrics public, unless that was done just now."""
        if self._clock.now_ns() < self._next_ns:
            return
        self._next_ns = self._clock.now_ns() + PUBLISH_EVERY_NS
        steps = {"written": steps_written, "lost": steps_lost}
        self._latest = tuple(families(self._flight, info=self._info, model=self._model, steps=steps))
        self.problem = self._http_problem
        if self._textfile is not None:
            self._write(self._textfile)

    def _write(self, file: Path) -> None:
        from prometheus_client import generate_latest

        new = file.with_name(f".{file.name}.{os.getpid()}")  # node_exporter reads what ends in .prom
        try:
            new.write_bytes(generate_latest(self._registry))
            new.chmod(0o644)
            new.replace(file)
        except OSError as error:
            self.problem = f"metrics: {file}: {error.strerror}"
            with suppress(OSError):
                new.unlink()
