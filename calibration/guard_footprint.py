"""What the guard's own process costs: CPU time to import and build, and peak memory, without model or wire.

    python calibration/guard_footprint.py [CONFIG] [--runs 10] [--json]

Each run is a fresh interpreter, with the modules compiled as an installed package has them; its own bare start is shown
apart. Milliseconds of CPU time, because the wall clock of a shared machine tells of its neighbours.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path

_BUILD = """
import json, re, sys, time
bare_ms = time.process_time() * 1e3
from edgeguard.guard.settings import Settings
from edgeguard.guard.state import GuardState
import edgeguard.runtime.process
imported_ms = time.process_time() * 1e3
from edgeguard.runtime.assembly import assemble
from edgeguard.runtime.serial_wire import command_wire_ns
assembly = assemble(sys.argv[1])
Settings.from_config(assembly.config, assembly.fields, reserve_ns=1, wire_ns=command_wire_ns(assembly.config))
GuardState.initial(now_ns=0)
built_ms = time.process_time() * 1e3
memory = open("/proc/self/status").read()
print(json.dumps({
    "interpreter_ms": bare_ms, "import_ms": imported_ms - bare_ms, "build_ms": built_ms - imported_ms,
    "peak_mb": int(re.search(r"VmHWM:\\s+(\\d+)", memory)[1]) / 1024,
    "heavy": sorted({"numpy", "onnxruntime", "tokenizers"} & set(sys.modules)),
}))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = resources.files("edgeguard.demo").joinpath("demo.toml")
    parser.add_argument("config", nargs="?", type=Path, default=default, help="default: the demo's")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    argv = [sys.executable, "-c", _BUILD, str(arguments.config)]
    with tempfile.TemporaryDirectory() as compiled:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        runs = [
            json.loads(subprocess.run(argv, capture_output=True, check=True, env=environment).stdout)
            for _ in range(arguments.runs + 1)
        ][1:]  # the first run compiles
    figures = {
        name: {
            "median": round(statistics.median(run[name] for run in runs), 1),
            "max": round(max(run[name] for run in runs), 1),
        }
        for name in ("interpreter_ms", "import_ms", "build_ms", "peak_mb")
    }
    heavy = sorted({name for run in runs for name in run["heavy"]})
    if arguments.json:
        print(json.dumps({**figures, "runs": arguments.runs, "heavy": heavy}))
    else:
        for name, figure in figures.items():
            print(f"{name:>16}  median {figure['median']:6.1f}  max {figure['max']:6.1f}")
        print(f"{'heavy imports':>16}  {', '.join(heavy) or 'none'}")
    return 1 if heavy else 0


if __name__ == "__main__":
    sys.exit(main())
