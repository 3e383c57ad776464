"""The recorder's process: what it acknowledged survives any kill, its files are bounded, no disk reaches the guard."""

from __future__ import annotations

import itertools
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import black_box
import pytest
from black_box import BlackBox
from flights import steps_of

from edgeguard.config.recording import DEFAULT_FILE_MB, DEFAULT_FILES
from edgeguard.recorder.frame import FRAME_LIMIT_BYTES
from edgeguard.recorder.log import Flaw, read_flight
from edgeguard.recorder.record import FlightHeader
from edgeguard.recorder.rotation import flight_files, rotate

LANES = 5
"""Robots side by side: one kill is mostly waiting for the next start."""


def numbers(log: Path) -> list[int]:
    return [step.number for step in steps_of(read_flight(log))]


def kill_recorders(file: Path, times: int, *, seed: int) -> None:
    """The recorder of one guard killed at random: each time it is replaced, and nothing acknowledged is missing."""
    box, draw, killed = BlackBox(file), random.Random(seed), set()
    for _ in range(times):
        box.note_until(lambda: box.pid is not None and box.pid not in killed)
        until = time.monotonic() + draw.uniform(0, 0.05)
        box.note_until(lambda end=until: time.monotonic() > end)
        os.kill(box.pid, signal.SIGKILL)
        killed.add(box.pid)
    box.note_until(lambda: len(box.acknowledged) > times)
    box.close()
    assert box.acknowledged <= set(numbers(file))


def flights_in(log: Path) -> list[set[int]]:
    """The numbers of the steps of each flight."""
    flights: list[set[int]] = []
    for entry in read_flight(log):
        if isinstance(entry, FlightHeader):
            flights.append(set())
        flights[-1] |= {step.number for step in steps_of([entry])}
    return flights


def kill_guards(file: Path, times: int, *, seed: int) -> None:
    """So many guards killed at random, one after the other, with one log."""
    draw, last_words = random.Random(seed), []
    for _ in range(times):
        argv = [sys.executable, black_box.__file__, str(file)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as guard:
            first = guard.stdout.readline()
            time.sleep(draw.uniform(0, 0.05))
            guard.kill()
            last_words.append({int(one) for one in [first, *guard.stdout.read().split()]})
    for kept, acknowledged in zip(flights_in(file), last_words, strict=True):
        assert acknowledged <= kept


def side_by_side(kill: Callable[..., None], folder: Path, times: int, *, seed: int) -> None:
    """So many kills in all, by several robots at once, each with a log of its own."""
    with ThreadPoolExecutor(LANES) as robots:
        lanes = [robots.submit(kill, folder / f"{lane}.log", times // LANES, seed=seed + lane) for lane in range(LANES)]
        for lane in lanes:
            lane.result()


def test_a_recorder_that_is_killed_is_replaced_and_what_it_acknowledged_is_there(tmp_path):
    kill_recorders(tmp_path / "flight.log", 5, seed=1)


def test_a_killed_guard_leaves_what_was_acknowledged_to_it(tmp_path):
    kill_guards(tmp_path / "flight.log", 2, seed=2)


def test_the_recorder_of_a_guard_that_has_gone_writes_what_it_has_before_the_next_one_begins(tmp_path):
    """Its process is set aside while there is work left for it, its guard is gone, and another guard starts."""
    log = tmp_path / "flight.log"
    gone, successor = BlackBox(log), BlackBox(log)
    gone.note_until_kept()
    os.kill(gone.pid, signal.SIGSTOP)
    for _ in range(20):
        gone.note()
    gone.recorder._socket.close()
    for _ in range(20):
        successor.note()
        time.sleep(0.02)
    assert successor.recorder.standing == "starting"
    os.kill(gone.pid, signal.SIGCONT)
    gone.recorder.close()
    successor.close()
    assert [max(flight) for flight in flights_in(log)] == [gone.number, successor.number]
    assert not [one for one in read_flight(log) if isinstance(one, Flaw)]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_hundred_killed_recorders_lose_nothing_that_they_acknowledged(tmp_path):
    side_by_side(kill_recorders, tmp_path, 200, seed=300)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_hundred_killed_guards_leave_everything_that_was_acknowledged(tmp_path):
    side_by_side(kill_guards, tmp_path, 200, seed=400)


def test_the_files_are_bounded_in_number_and_a_full_one_is_put_aside(tmp_path):
    log = tmp_path / "flight.log"
    for start in range(5):
        log.write_bytes(b"x" * 100 + bytes([start]))
        assert rotate(log, limit_bytes=101, files=3) is None
        assert not log.exists()
    log.write_bytes(b"now")
    assert rotate(log, limit_bytes=101, files=3) is None
    assert [one.name for one in flight_files(tmp_path)] == ["flight.log.2", "flight.log.1", "flight.log"]
    assert [one.read_bytes()[-1:] for one in flight_files(tmp_path)] == [b"\3", b"\4", b"w"]


def test_fewer_files_than_before_are_kept_when_the_configuration_says_so(tmp_path):
    log = tmp_path / "flight.log"
    for name in ("flight.log", *(f"flight.log.{number}" for number in range(1, 12))):
        (tmp_path / name).write_bytes(b"x")
    assert rotate(log, limit_bytes=1, files=3) is None
    assert [one.name for one in flight_files(tmp_path)] == ["flight.log.2", "flight.log.1"]


def test_what_cannot_be_put_aside_costs_no_other_file(tmp_path):
    """Not even when it is tried again and again: a folder is where the third one is to go."""
    log, folder = tmp_path / "flight.log", tmp_path / "flight.log.3"
    (folder / "of somebody").mkdir(parents=True)
    for name in ("flight.log", "flight.log.1", "flight.log.2", "flight.log.4"):
        (tmp_path / name).write_text(name)
    for _ in range(9):
        assert f"Is a directory: {folder}" in rotate(log, limit_bytes=1, files=4)
    assert [log.read_text(), (tmp_path / "flight.log.2").read_text()] == ["flight.log", "flight.log.2"]
    (folder / "of somebody").rmdir()
    folder.rmdir()
    assert rotate(log, limit_bytes=1, files=4) is None
    assert [one.read_text() for one in flight_files(tmp_path)] == ["flight.log.2", "flight.log.1", "flight.log"]


def test_a_log_that_cannot_be_put_aside_goes_on_and_says_so(tmp_path):
    file, aside = tmp_path / "flight.log", tmp_path / "flight.log.1"
    limit_bytes = DEFAULT_FILE_MB * 1_000_000
    file.touch()
    os.truncate(file, limit_bytes)
    for number in range(1, DEFAULT_FILES - 1):
        (tmp_path / f"flight.log.{number}").touch()
    in_the_way = tmp_path / f"flight.log.{DEFAULT_FILES - 1}"
    in_the_way.mkdir()
    box = BlackBox(file)
    box.note_until(lambda: "cannot be put aside" in box.recorder.standing)
    said = box.number
    box.note_until(lambda: max(box.acknowledged, default=0) > said)
    assert file.stat().st_size > limit_bytes
    in_the_way.rmdir()
    box.note_until(lambda: "on the disk" in box.recorder.standing)
    assert aside.stat().st_size > limit_bytes
    box.close()
    assert max(box.acknowledged) in numbers(file)


def test_all_files_of_a_flight_log_take_less_than_half_a_gigabyte():
    assert DEFAULT_FILES * DEFAULT_FILE_MB * 1_000_000 + DEFAULT_FILES * FRAME_LIMIT_BYTES < 500e6


DISKS = {
    "not there": ("gone/flight.log", "No such file"),
    "full": ("/dev/full", "No space left"),
    "a folder in its place": ("", "Is a directory"),
}


@pytest.mark.parametrize("name", DISKS)
def test_a_disk_that_fails_is_counted_and_said(tmp_path, name):
    place, said = DISKS[name]
    box = BlackBox(tmp_path / place)
    box.note_until(lambda: said in box.recorder.standing)
    assert box.recorder.lost > 0
    box.recorder.close()


def test_a_disk_that_is_full_for_a_while_costs_what_came_meanwhile(tmp_path):
    file, unlimited = tmp_path / "flight.log", resource.RLIM_INFINITY
    box = BlackBox(file)
    box.note_until(lambda: bool(box.acknowledged))
    resource.prlimit(box.pid, resource.RLIMIT_FSIZE, (file.stat().st_size, unlimited))
    box.note_until(lambda: box.recorder.lost > 10 and "File too large" in box.recorder.standing)
    resource.prlimit(box.pid, resource.RLIMIT_FSIZE, (unlimited, unlimited))
    mended = box.number
    box.note_until(lambda: max(box.acknowledged) > mended + 100)
    assert "on the disk" in box.recorder.standing
    box.recorder.close()
    gaps = sum(after - before - 1 for before, after in itertools.pairwise([0, *numbers(file), box.number + 1]))
    assert gaps == box.recorder.lost


@pytest.mark.parametrize("away", [lambda file: file.unlink(), lambda file: file.rename(file.with_name("moved"))])
def test_a_log_that_somebody_takes_away_is_begun_anew(tmp_path, away):
    file = tmp_path / "flight.log"
    box = BlackBox(file)
    box.note_until(lambda: bool(box.acknowledged))
    away(file)
    box.note_until(file.exists)
    anew = box.number
    box.note_until(lambda: max(box.acknowledged) > anew)
    box.recorder.close()
    assert max(box.acknowledged) in numbers(file)


def test_a_recorder_that_is_stopped_is_waited_for_by_nobody(tmp_path):
    box = BlackBox(tmp_path / "flight.log")
    box.note_until(lambda: bool(box.acknowledged))
    os.kill(box.pid, signal.SIGSTOP)
    box.note_until(lambda: box.recorder.lost > 10, pause_s=0)
    os.kill(box.pid, signal.SIGCONT)
    box.recorder.close()
