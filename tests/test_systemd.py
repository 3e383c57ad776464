"""The unit files, as systemd's own tools see them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNITS = sorted((Path(__file__).parent.parent / "systemd").glob("*.service"))
EXPOSURE_LIMIT = 1.5
"""0 is a box without openings, 10 an open field; a unit that computes and writes two folders needs little."""

pytestmark = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd's tools are not installed")


def analyze(*arguments: str) -> str:
    done = subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_accepts_the_unit(unit, tmp_path):
    installed = tmp_path / unit.name
    command = f"ExecStart={sys.executable} "  # any command that is there: verify looks whether it is executable
    installed.write_text(re.sub(r"^ExecStart=\S+ ", command, unit.read_text(), flags=re.MULTILINE))
    analyze("verify", str(installed))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_the_unit_is_closed_to_what_it_does_not_need(unit):
    report = analyze("security", "--offline=true", str(unit))
    found = re.search(r"Overall exposure level for .*: ([\d.]+)", report)
    assert found is not None
    assert float(found[1]) <= EXPOSURE_LIMIT, report
