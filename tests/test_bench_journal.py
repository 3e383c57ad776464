"""The samples of a calibration: appended at once, whole up to the last line, refused when they are another's."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edgeguard.bench.calibration.journal import Journal, Measured, Priced
from edgeguard.bench.calibration.sample import Look, Sample
from edgeguard.bench.calibration.sampling import Block
from edgeguard.budget import PassCost, PassTimes, Soak
from edgeguard.errors import ProfileError
from edgeguard.types import Pass, ThermalLevel

WHAT = Measured(fingerprint={"machine": "a board"}, kind="full", period_ns=200_000_000)
PRICED = Priced(
    sweep=(PassTimes(k=2, p=100, elapsed_ns=(5, 6)),),
    cost=PassCost(sizes=(2, 8), prices_ns=(2.5, 4.0), p_reference=100, per_cached_ns=0.5, constant_ns=3),
)
SOAK = Soak(elapsed_ns=9, heater="built-in", latency_flat=True, temperature_flat=None, end_c=70.5)


def block(at_ns: int) -> Block:
    sample = Sample(
        at_ns=at_ns,
        latency_ns=7,
        passes=(Pass(k=9, p=100, elapsed_ns=4), Pass(k=2, p=109, elapsed_ns=2)),
        ttft_ns=5,
        dearest_ns=11,
        rung="short",
        drafted=True,
        look=Look(temperature_c=51.5, clock_mhz=None, level=ThermalLevel.HOT),
    )
    return Block(samples=(sample,) * 10, skipped=1, factor=1.25)


def journal_of(folder: Path, blocks: int) -> Journal:
    journal = Journal.beside(folder / "robot.profile.json")
    journal.begin(WHAT)
    journal.price(PRICED)
    for number in range(blocks):
        journal.add(block(number))
    journal.soak(SOAK)
    return journal


def test_what_was_kept_is_read_back(tmp_path: Path) -> None:
    journal = journal_of(tmp_path, 3)
    assert journal.file.name == "robot.profile.samples.gz"
    found = journal.resume(WHAT)
    assert (found.priced, found.soak) == (PRICED, SOAK)
    assert found.blocks == [block(0), block(1), block(2)]
    assert found.elapsed_ns == 2


def test_any_gzip_reads_it(tmp_path: Path) -> None:
    lines = gzip.decompress(journal_of(tmp_path, 2).file.read_bytes()).splitlines()
    assert [next(iter(json.loads(line))) for line in lines] == ["format", "cost", "block", "block", "soak"]


def test_a_power_cut_at_any_byte_costs_the_line_that_was_being_written(tmp_path: Path) -> None:
    journal, ends = journal_of(tmp_path, 0), []
    begun = journal.file.stat().st_size
    for number in range(3):
        journal.add(block(number))
        ends.append(journal.file.stat().st_size)
    whole = journal.file.read_bytes()
    for size in (*range(begun, len(whole), 11), *ends, *(end - 1 for end in ends)):
        journal.file.write_bytes(whole[:size])
        kept = [block(number) for number, end in enumerate(ends) if end <= size]
        assert journal.resume(WHAT).blocks == kept
        journal.add(block(99))  # it goes on behind the last whole line
        assert journal.resume(WHAT).blocks == [*kept, block(99)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "quick"}, "kind: full -> quick"),
        ({"period_ns": 100_000_000}, "period: 200 ms -> 100 ms"),
        ({"fingerprint": {"machine": "another"}}, "machine: a board -> another"),
    ],
)
def test_samples_of_something_else_are_refused_with_the_difference(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    journal = journal_of(tmp_path, 1)
    with pytest.raises(ProfileError, match=words) as caught:
        journal.resume(replace(WHAT, **change))
    assert "begin without --resume" in str(caught.value)


@pytest.mark.parametrize("line", ['{"weather": 1}', '{"block": {"samples": 3}}', '{"cost": {}}'])
def test_a_line_that_is_none_of_ours_is_refused(tmp_path: Path, line: str) -> None:
    journal = journal_of(tmp_path, 1)
    with journal.file.open("ab") as stream:
        stream.write(gzip.compress(line.encode()))
    with pytest.raises(ProfileError, match="begin without --resume"):
        journal.resume(WHAT)


def test_a_new_calibration_begins_with_an_empty_file(tmp_path: Path) -> None:
    journal = journal_of(tmp_path, 3)
    journal.begin(WHAT)
    assert journal.resume(WHAT).blocks == []


def test_a_place_that_takes_no_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file, no folder")
    with pytest.raises(ProfileError, match=r"samples cannot be kept: .*name another --out"):
        Journal.beside(tmp_path / "taken" / "robot.json").begin(WHAT)
