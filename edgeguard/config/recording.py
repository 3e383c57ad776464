"""``[record]`` and ``[metrics]``: what the recorder's process writes, and where."""

from __future__ import annotations

from pathlib import Path

from edgeguard.config.reader import Table
from edgeguard.config.sections import Metrics, Recording

DEFAULT_FILES = 8
DEFAULT_FILE_MB = 60
"""480 MB hold a day: at 5 Hz and a tick of 20 ms it takes 440 MB; ``edgeguard log stats`` says how fast yours grows."""


def read_recording(table: Table) -> Recording:
    recording = Recording(
        files=table.integer("files", default=DEFAULT_FILES, low=2, high=1_000),
        file_bytes=table.integer("file_mb", default=DEFAULT_FILE_MB, low=1, high=1_000) * 1_000_000,
    )
    table.close()
    return recording


def read_metrics(table: Table, *, folder: Path) -> Metrics:
    textfile = table.text("textfile", default="")
    if textfile and not textfile.endswith(".prom"):
        table.refuse("textfile", f"{textfile!r} must end in .prom, or node_exporter does not read it")
    port = table.integer("http_port", default=0, low=0, high=65_535)
    table.close()
    return Metrics(textfile=folder / textfile if textfile else None, http_port=port or None)
