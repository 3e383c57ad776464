"""Calibrates everything in a plan, one after the other, and goes on where a power cut or Ctrl-C left it.

    python calibration/overnight.py calibration/plan.toml

Each ``[[run]]`` of the plan is one ``edgeguard calibrate``. A run whose profile is there already is skipped; one that
has samples but no profile goes on with ``--resume``. What each printed is beside its profile (``.log``). The exit code
is the worst of all runs: 0 when every bound fits its deadline.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

from edgeguard.bench.calibration.journal import Journal

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OPTIONS = {"soak_minutes": "--soak", "limit_minutes": "--limit", "with": "--with", "age_ms": "--age-ms"}


def command_of(run: dict[str, Any], *, folder: Path) -> tuple[Path, list[str]]:
    """The profile that a run of the plan makes, and the command line that makes it."""
    unknown = run.keys() - OPTIONS.keys() - {"config", "out", "quick"}
    if unknown or not {"config", "out"} <= run.keys():
        raise SystemExit(
            f"a [[run]] has config and out, and may have quick, {', '.join(OPTIONS)}; not {sorted(unknown)}"
        )
    out = folder / run["out"]
    argv = [sys.executable, "-m", "edgeguard", "calibrate", str(folder / run["config"]), "--out", str(out)]
    for key, option in OPTIONS.items():
        argv += [option, str(run[key])] if key in run else []
    argv += ["--quick"] if run.get("quick") else []
    return out, [*argv, "--resume"] if Journal.beside(out).file.exists() else argv


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path, nargs="?", default=Path(__file__).with_name("plan.toml"))
    plan: Path = parser.parse_args().plan
    worst = 0
    runs = [command_of(run, folder=plan.parent) for run in tomllib.loads(plan.read_text(encoding="utf-8"))["run"]]
    for out, argv in runs:
        if out.exists():
            print(f"{out}: is there, and is left as it is")
            continue
        print(f"{out}: {' '.join(argv[3:])}", flush=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)
        print(done.stdout)
        out.with_suffix(".log").write_text(done.stdout, encoding="utf-8")
        worst = max(worst, done.returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main())
