"""What of files was read only to load is given back, and nothing else: no written page, and no locked one."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from edgeguard.engine.unread import give_back_unread
from tests.engine_setup import load, observation, write_config
from tests.tiny import tiny_model

LENGTH = 64 * mmap.PAGESIZE
READ, WRITE = mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE


def resident_kb(file: Path) -> int:
    """Of the one mapping of ``file`` in this process."""
    (_, mapped) = Path("/proc/self/smaps").read_text().split(f" {file}\n")
    return next(int(line.split()[1]) for line in mapped.splitlines() if line.startswith("Rss:"))


@contextmanager
def mapped(folder: Path, *, flags: int = mmap.MAP_PRIVATE, protection: int = READ) -> Iterator[tuple[Path, mmap.mmap]]:
    """A file of ones, mapped, and every page of it read."""
    file = folder / "weights.data"
    file.write_bytes(b"\1" * LENGTH)
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), LENGTH, flags=flags, prot=protection) as memory:
        assert sum(memory[:: mmap.PAGESIZE]) == LENGTH // mmap.PAGESIZE
        assert resident_kb(file) == LENGTH // 1024
        yield file, memory


@pytest.mark.parametrize(
    ("flags", "protection", "named", "left_kb"),
    [
        (mmap.MAP_PRIVATE, READ, False, 0),
        (mmap.MAP_PRIVATE, WRITE, True, 0),
        (mmap.MAP_PRIVATE, WRITE, False, LENGTH // 1024),
        (mmap.MAP_SHARED, READ, True, LENGTH // 1024),
    ],
    ids=["read only", "a model's weights", "anybody's to write", "shared"],
)
def test_pages_that_nobody_writes_leave_the_process_and_come_back_as_they_were(
    flags: int, protection: int, named: bool, left_kb: int, tmp_path: Path
) -> None:
    with mapped(tmp_path, flags=flags, protection=protection) as (file, memory):
        give_back_unread([file] if named else [])
        assert resident_kb(file) == left_kb
        assert memory[:] == b"\1" * LENGTH


def test_what_was_written_stays(tmp_path: Path) -> None:
    with mapped(tmp_path, protection=WRITE) as (file, memory):
        memory[mmap.PAGESIZE] = 2
        give_back_unread([file])
        assert resident_kb(file) == LENGTH // 1024
        assert memory[mmap.PAGESIZE] == 2


def test_what_is_locked_stays(tmp_path: Path) -> None:
    with mapped(tmp_path, protection=WRITE) as (file, memory):
        libc = ctypes.CDLL(None, use_errno=True)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        if libc.mlock(ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE)) != 0:
            pytest.skip("no memory may be locked here")
        try:
            give_back_unread([file])
            assert memory[0] == 1
        finally:
            libc.munlock(ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE))


def test_a_model_gives_the_same_bits_behind_it(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path)
    model = load(write_config(tmp_path), folder)
    model.warm_up(lambda *_: None)
    prompt = model.prompt.request(observation())
    before = np.array(model.engine.run(prompt[len(model.prompt.prefix) :]))
    give_back_unread([folder / "model.onnx.data"])
    model.engine.cache.rewind(0)
    model.engine.prefill(model.prompt.prefix)
    assert np.array_equal(model.engine.run(prompt[len(model.prompt.prefix) :]), before)
