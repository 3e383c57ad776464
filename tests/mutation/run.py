"""Mutation test of the guard: does some test fail for every small fault in ``edgeguard/guard``?

    python tests/mutation/run.py [--sample 300] [--seed 0] [--only FILE[:LINE] ...] [--json]

A copy of package and tests is mutated, one fault at a time; the guard's pure tests run on it, the most relevant file
first, until one fails. Without ``--sample`` every mutant is tried. Survivors are printed as they are found; those of
``SURVIVORS.md`` change nothing that can be observed, and the score leaves them out. Exit status 1 below 95 %.

Why not a ready-made tool: mutmut (3.8) mutates neither properties nor what stands in a module (the table of causes),
but every message text, and runs Hypothesis' tests again and again in one process, which Hypothesis refuses; cosmic-ray
(8.7) mutates in place, and knows no sample.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from mutants import Mutant, mutants

ROOT = Path(__file__).parents[2]
GUARD = Path("edgeguard/guard")
TESTS = (
    "causes",
    "modes",
    "cycle",
    "rules",
    "moving",
    "sensing",
    "envelope",
    "ramp",
    "settings",
    "stopping",
    "standstill",
    "forecast",
    "rungs",
    "machine",
)
KNOWN = Path(__file__).parent / "SURVIVORS.md"
LIMIT_S = 240
WANTED = 0.95


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, help="so many mutants, drawn by lot; default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", metavar="FILE[:LINE]", help="of this file, or this line: ramp.py:80")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for part in ("edgeguard", "tests", "models"):
            shutil.copytree(ROOT / part, part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", ".")
        sys.path.insert(0, folder)
        _warm_up()
        if not _passes(LIMIT_S * 2, tests=_tests_for("")):
            raise SystemExit("the tests fail on the guard as it is")
        sys.dont_write_bytecode = True  # what the run above has compiled is used again; no mutant is kept
        report = _try_all(_draw(arguments.only, sample=arguments.sample, seed=arguments.seed))
    if arguments.json:
        print(json.dumps(report))
    else:
        print(" ".join(f"{name}: {value}" for name, value in report.items() if name != "survivors"))
    return 0 if report["score"] >= WANTED else 1


def _draw(places: Sequence[str] | None, *, sample: int | None, seed: int) -> list[tuple[Path, Mutant]]:
    every = [(path, mutant) for path in sorted(GUARD.glob("*.py")) for mutant in mutants(path.read_text())]
    if places is not None:
        every = [one for one in every if {one[0].name, f"{one[0].name}:{one[1].line}"} & set(places)]
    if sample is None:
        return every
    return random.Random(seed).sample(every, k=min(sample, len(every)))


def _try_all(drawn: Sequence[tuple[Path, Mutant]]) -> dict[str, object]:
    rows = re.findall(r"^\| (\w+\.py) \| `(.+?)` \|", KNOWN.read_text(), re.MULTILINE)
    known = {(name, statement.replace("\\|", "|")) for name, statement in rows}
    killed, equivalent, survivors = 0, 0, []
    for path, mutant in drawn:
        if (path.name, mutant.after) in known:
            equivalent += 1
        elif _survives(path, mutant):
            survivors.append(f"{path.name}:{mutant.line}: {mutant.before} → {mutant.after}")
            print(f"survived: {survivors[-1]}", file=sys.stderr, flush=True)
        else:
            killed += 1
    tried = killed + len(survivors)
    return {
        "mutants": len(drawn),
        "equivalent": equivalent,
        "killed": killed,
        "survived": len(survivors),
        "score": round(killed / tried, 4) if tried else 1.0,
        "survivors": survivors,
    }


def _survives(path: Path, mutant: Mutant) -> bool:
    original, times = path.read_text(), path.stat()
    path.write_text(mutant.source)
    try:
        return _passes(LIMIT_S, tests=_tests_for(path.stem))
    finally:
        path.write_text(original)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # as its compiled form knows it


def _tests_for(stem: str) -> list[str]:
    """The guard's pure tests, those named after the file first; the long random ones last."""
    return [f"tests/test_guard_{name}.py" for name in sorted(TESTS, key=lambda name: name != stem)]


def _passes(limit_s: float, *, tests: list[str]) -> bool:
    """Whether the tests pass, in a process of their own; to hang is to fail."""
    child = multiprocessing.get_context("fork").Process(target=_test, args=(tests,))
    child.start()
    child.join(limit_s)
    if child.is_alive():
        child.kill()
        child.join()
    return child.exitcode == 0


def _test(tests: list[str]) -> None:
    import pytest

    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    os._exit(
        int(pytest.main(["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--assert=plain", "--tb=no", *tests]))
    )


def _warm_up() -> None:
    """What every child would import again, but nothing of the guard; Hypothesis is to find, not to explain."""
    import hypothesis
    import pytest  # noqa: F401

    import edgeguard.answer
    import edgeguard.config  # noqa: F401

    assert not any(name.startswith("edgeguard.guard") for name in sys.modules)
    phases = [phase for phase in hypothesis.Phase if phase.name in ("explicit", "generate")]
    hypothesis.settings.register_profile("mutation", phases=phases, database=None, derandomize=True, deadline=None)
    hypothesis.settings.load_profile("mutation")


if __name__ == "__main__":
    began = time.monotonic()
    status = main()
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    sys.exit(status)
