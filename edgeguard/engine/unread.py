"""Gives back memory that only loading a model needed, before the first pass: pages of files, and what was freed.

ONNX Runtime copies most weights into the order in which its kernels read them, and leaves those of the file mapped;
code that imports modules and optimises graphs runs once. Such pages stay resident, although each could be read from its
file again. Here all pages leave this process that are still as their file has them. What is read after all, the code of
a pass and rows of the embedding, comes back with the first read, from the page cache: in the warm-up if it belongs to a
pass, else within a microsecond or two, as it would have come the first time.

Linux; where the kernel does not say which pages those are, none is given back. Memory that is locked stays.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_MADV_DONTNEED = 4  # <linux/mman.h>
_HEADER = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \d+ *(.*)")  # of a mapping, proc(5)
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


@dataclass(slots=True, kw_only=True)
class _Mapping:
    """A range of addresses. ``own_kb`` was written, so that the file does not have it."""

    start: int
    length: int
    permissions: str
    file: str
    own_kb: int = 0
    locked: bool = False

    def as_in_file(self, weights: Collection[str]) -> bool:
        """Whether every page is, and nobody is going to write one."""
        private, writable = self.permissions[3] == "p", self.permissions[1] == "w"
        unwritten = self.own_kb == 0 and (not writable or self.file in weights)
        return self.file.startswith("/") and private and unwritten and not self.locked


def give_back_unread(weights: Collection[Path] = ()) -> None:
    """``weights`` are files that ONNX Runtime maps as if it wrote to them, and does not."""
    names = {str(file.resolve()) for file in weights}
    if hasattr(_LIBC, "malloc_trim"):  # glibc's; what loading has used and freed is in its hands still
        _LIBC.malloc_trim(0)
    with suppress(OSError):
        for one in _mappings():
            if one.as_in_file(names):
                _LIBC.madvise(one.start, one.length, _MADV_DONTNEED)


def _mappings() -> Iterator[_Mapping]:
    """Of this process, as ``/proc/self/smaps`` lists them now."""
    one = None
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace").splitlines():
        if header := _HEADER.fullmatch(line):
            start, end = int(header[1], 16), int(header[2], 16)
            one = _Mapping(start=start, length=end - start, permissions=header[3], file=header[4])
        elif one is not None and line.startswith(("Anonymous:", "Swap:")):
            one.own_kb += int(line.split()[1])
        elif one is not None and line.startswith("VmFlags:"):  # the last line of each
            one.locked = "lo" in line.split()
            yield one
