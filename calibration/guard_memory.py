"""Whether the memory of the guard's process stays flat: its resident size over many cycles, with the slope's noise.

    python calibration/guard_memory.py [--cycles 20000] [--json]

The process is the real service, with recorder, metrics and sockets on, at the fastest period that a configuration may
have (10 ms, ticks of 5 ms), so that 20,000 cycles take 200 s and not over an hour; what a cycle allocates does not
depend on how long it lasts. Each cycle is a whole one: an observation over the socket, an answer of the scripted
worker, a decision, a record, frames and echoes. Only the guard's own process is looked at (VmRSS of /proc, in kB; its
memory is locked where that is permitted, so that nothing of it is swapped out). Python takes memory in arenas of 1 MiB:
20,000 cycles show a leak of 50 bytes per cycle, and none that is smaller.

The first tenth is left out: caches fill. The slope is the least-squares one of ten block means, with its 95 % interval
(Student, 8 degrees of freedom); *flat* is an interval that contains 0, or less than a page per thousand cycles.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from guarded import guarded

PERIOD_MS = 10
TICK_MS = 5
LOOK_S = 0.5
BLOCKS = 10
T_95 = 2.306
"""Student's t, two-sided 95 %, 8 degrees of freedom: ten blocks less the two of a line."""
PAGE_KB = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Kilobytes; the slope is per thousand cycles, ``noise_kb`` half the width of its 95 % interval."""

    cycles: int
    first_kb: float
    last_kb: float
    slope_kb: float
    noise_kb: float

    @property
    def flat(self) -> bool:
        return abs(self.slope_kb) <= max(self.noise_kb, PAGE_KB)


def trend(looks: Sequence[tuple[int, int]]) -> Trend:
    """Of looks (cycle, kB), oldest first, without their first tenth. At least twenty are needed for ten blocks."""
    kept = looks[len(looks) // 10 :]
    if len(kept) < 2 * BLOCKS:
        raise ValueError(f"{len(looks)} looks are too few for {BLOCKS} blocks")
    size = len(kept) // BLOCKS
    blocks = [kept[index * size : (index + 1) * size] for index in range(BLOCKS)]
    x = [statistics.fmean(cycle for cycle, _ in block) / 1_000 for block in blocks]
    y = [statistics.fmean(kb for _, kb in block) for block in blocks]
    slope, offset = statistics.linear_regression(x, y)
    left = sum((b - slope * a - offset) ** 2 for a, b in zip(x, y, strict=True))
    spread = sum((a - statistics.fmean(x)) ** 2 for a in x)
    noise = T_95 * math.sqrt(left / (BLOCKS - 2) / spread)
    return Trend(cycles=kept[-1][0] - kept[0][0], first_kb=y[0], last_kb=y[-1], slope_kb=slope, noise_kb=noise)


def watch(cycles: int) -> list[tuple[int, int]]:
    """Run a guard for so many cycles and look twice a second."""
    looks = []
    with guarded(period_ms=PERIOD_MS, tick_ms=TICK_MS) as guard:
        begun = guard.status().cycles
        while not looks or looks[-1][0] < cycles:
            guard.drive(LOOK_S)
            status = guard.status()
            looks.append((status.cycles - begun, resident_kb(status.guard_pid)))
            print(f"{looks[-1][0]:7} of {cycles} cycles, {looks[-1][1]} kB", file=sys.stderr, end="\r", flush=True)
    print(file=sys.stderr)
    return looks


def resident_kb(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    if found is None:
        raise ValueError(f"process {pid} has no resident size")
    return int(found[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=20_000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    seen = trend(watch(arguments.cycles))
    if arguments.json:
        print(json.dumps({**asdict(seen), "flat": seen.flat}))
    else:
        print(f"{seen.cycles} cycles: {seen.first_kb:.0f} kB at first, {seen.last_kb:.0f} kB at last")
        print(
            f"slope {seen.slope_kb:+.2f} ± {seen.noise_kb:.2f} kB per 1,000 cycles: {'flat' if seen.flat else 'GROWS'}"
        )
    return 0 if seen.flat else 1


if __name__ == "__main__":
    sys.exit(main())
