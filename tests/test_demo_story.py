"""The demo end to end on the real model: a short drive and two faults."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from edgeguard.clock import SystemClock
from edgeguard.demo.faults import FAULTS
from edgeguard.demo.story import Story
from edgeguard.demo.summary import DONE, TOO_BUSY
from edgeguard.demo.timeline import WIDTH
from edgeguard.errors import BoundError, BusyError
from edgeguard.model.progress import Progress, silent

CYCLES = 15


@contextlib.contextmanager
def no_bars() -> Iterator[Progress]:
    yield silent


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(900)
def test_the_demo_ends_well_or_says_that_the_machine_is_too_busy() -> None:
    console = Console(file=io.StringIO(), width=WIDTH, color_system=None)
    story = Story(console=console, bars=no_bars, clock=SystemClock())
    faults = [fault for fault in FAULTS if fault.name in ("late answer", "guard killed")]
    try:
        summary = story.tell(cycles=CYCLES, faults=faults)
    except (BusyError, BoundError) as error:
        pytest.skip(f"somebody else computes here: {error}")
    if summary.exit_code == TOO_BUSY:
        pytest.skip(f"somebody else computes here: busy x{summary.busy}")
    assert summary.complaints == ()
    assert summary.exit_code == DONE
    assert summary.cycles == CYCLES
    assert [outcome.name for outcome in summary.faults] == ["late answer", "guard killed"]
    assert "the late answer was thrown away" in summary.faults[0].why
    told = console.file.getvalue()
    assert told.count("model  forward") > CYCLES / 3
    assert "▼ one answer is held back until its deadline has passed" in told
    record = Path(summary.record)
    assert json.loads((record / "summary.json").read_text())["cycles"] == CYCLES
    assert len((record / "cycles.jsonl").read_text().splitlines()) > CYCLES
