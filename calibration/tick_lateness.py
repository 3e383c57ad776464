"""How late the guard's tick is, beside `cyclictest` in the same run; idle and loaded, permitted real time and not.

    python calibration/tick_lateness.py [--seconds 30] [--tick-ms 20] [--json]

The guard is the real service with recorder and metrics on, driven at 5 Hz; its figures are those of its own `status`:
every wake-up by a timer in bins of 50 µs, from its start on. `cyclictest` (Debian: rt-tests) wakes at the same interval
with the same priority, and tunes nothing. Load is `stress-ng` on every core, or a busy loop of our own. "Without" takes
CAP_SYS_NICE and the limit away (setpriv, prlimit). The machine should do nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from guarded import guarded

from edgeguard.runtime.realtime import FIFO_PRIORITY

ORDINARY = ("setpriv", "--inh-caps=-sys_nice", "--bounding-set=-sys_nice", "prlimit", "--rtprio=0")
COLUMNS = ("p50_us", "p99_us", "max_us")


def measure(*, seconds: float, tick_ms: int, real_time: bool, loaded: bool) -> list[dict[str, Any]]:
    """One row for the guard, and one for cyclictest where there is one."""
    setting = {"load": loaded, "real_time": real_time}
    prefix = () if real_time else ORDINARY
    with guarded(period_ms=200, tick_ms=tick_ms, prefix=prefix) as guard, _load(loaded):
        time.sleep(0.5)  # until the load is there
        with _cyclictest(seconds=seconds, tick_ms=tick_ms, real_time=real_time) as read:
            guard.drive(seconds)
            status = guard.status()
            beside = read()
    rows = [
        {
            "who": "guard",
            **setting,
            "scheduling": status.scheduling,
            "cycles": status.cycles,
            "p50_us": status.lateness_p50_ns / 1e3,
            "p99_us": status.lateness_p99_ns / 1e3,
            "max_us": status.lateness_max_ns / 1e3,
            "overruns": status.counters["overruns"],
        }
    ]
    return rows if beside is None else [*rows, {"who": "cyclictest", **setting, **beside}]


def quantile_us(histogram: dict[str, int], fraction: float) -> int:
    """Of cyclictest's counts by whole microseconds."""
    target, seen = fraction * sum(histogram.values()), 0
    for us, count in sorted((int(us), count) for us, count in histogram.items()):
        seen += count
        if seen >= target:
            return us
    raise ValueError("an empty histogram")


@contextlib.contextmanager
def _cyclictest(*, seconds: float, tick_ms: int, real_time: bool) -> Iterator[Any]:
    """Runs beside; the function that it gives waits for the end and returns its figures."""
    if shutil.which("cyclictest") is None:
        yield lambda: None
        return
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "cyclictest.json"
        policy = [f"--priority={FIFO_PRIORITY}", "--policy=fifo"] if real_time else ["--policy=other"]
        process = subprocess.Popen(
            ["cyclictest", "--quiet", "--default-system", "--mlockall", *policy, f"--interval={tick_ms * 1_000}",
             f"--loops={max(1, int(seconds * 1_000 / tick_ms))}", "--histogram=1000000", f"--json={out}"],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip

        def read() -> dict[str, Any]:
            if process.wait(timeout=seconds + 30) != 0:
                raise SystemExit("cyclictest failed: see its message above")
            thread = json.loads(out.read_text())["thread"]["0"]
            histogram = thread["histogram"]
            return {
                "scheduling": f"FIFO {FIFO_PRIORITY}" if real_time else "normal priority",
                "wakes": thread["cycles"],
                "p50_us": quantile_us(histogram, 0.5),
                "p99_us": quantile_us(histogram, 0.99),
                "max_us": thread["max"],
            }

        try:
            yield read
        finally:
            process.kill()
            process.wait()


@contextlib.contextmanager
def _load(loaded: bool) -> Iterator[None]:
    """Every core busy."""
    cores = len(os.sched_getaffinity(0)) if loaded else 0
    if loaded and shutil.which("stress-ng") is not None:
        commands = [["stress-ng", "--quiet", "--cpu", str(cores), "--vm", "1", "--vm-bytes", "64M"]]
    else:
        commands = [[sys.executable, "-c", "while True: pass"]] * cores
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="per setting; there are four")
    parser.add_argument("--tick-ms", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if shutil.which("cyclictest") is None:
        print("no cyclictest here (apt-get install rt-tests): the guard's figures stand alone", file=sys.stderr)
    load = "stress-ng" if shutil.which("stress-ng") is not None else "a busy loop per core"
    rows = []
    for real_time in (True, False):
        for loaded in (False, True):
            rows += measure(seconds=arguments.seconds, tick_ms=arguments.tick_ms, real_time=real_time, loaded=loaded)
            print(f"{len(rows)} rows", file=sys.stderr, end="\r", flush=True)
    print(file=sys.stderr)
    if arguments.json:
        print(json.dumps({"seconds": arguments.seconds, "tick_ms": arguments.tick_ms, "load": load, "rows": rows}))
        return 0
    print(f"lateness of wake-ups every {arguments.tick_ms} ms, {arguments.seconds:g} s each; load: {load}")
    print(f"{'who':<11}{'load':<6}" + "".join(f"{name[:-3] + ' µs':>9}" for name in COLUMNS) + "  scheduling")
    for row in rows:
        figures = "".join(f"{row[name]:9.0f}" for name in COLUMNS)
        print(f"{row['who']:<11}{'yes' if row['load'] else 'no':<6}{figures}  {row['scheduling'].split(' (')[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
