"""The unit files, as systemd's own tools see them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from edgeguard.errors import AlreadyRunningError, ConfigError, MissingExtraError, ModelError, ProfileError

FOLDER = Path(__file__).parent.parent / "systemd"
UNITS = sorted(FOLDER.glob("*.service"))
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


def settings(unit: Path) -> list[str]:
    return [line for line in unit.read_text().splitlines() if line and not line.startswith("#")]


def test_the_template_is_the_service_with_an_instance_in_its_names():
    service = settings(FOLDER / "edgeguard.service")
    template = settings(FOLDER / "edgeguard@.service")
    different = [(one, other) for one, other in zip(service, template, strict=True) if one != other]
    assert [one.partition("=")[0] for one, _ in different] == [
        "Description",
        "AssertPathExists",
        "ExecStart",
        "StateDirectory",
        "RuntimeDirectory",
    ]
    for one, other in different[1:3]:
        assert other.replace("/%i.", "/robot.") == one


def test_a_worker_that_takes_all_memory_ends_alone():
    assert {"OOMPolicy=continue", "OOMScoreAdjust=-900"} <= set(settings(FOLDER / "edgeguard.service"))


def test_the_exit_codes_that_do_not_restart_are_mistakes_that_a_restart_does_not_mend():
    line = next(one for one in settings(FOLDER / "edgeguard.service") if one.startswith("RestartPreventExitStatus="))
    lasting = (ConfigError, ModelError, ProfileError, AlreadyRunningError, MissingExtraError)
    assert {int(code) for code in line.partition("=")[2].split()} == {kind.exit_code for kind in lasting}


@pytest.mark.skipif(shutil.which("systemd-sysusers") is None, reason="systemd-sysusers is not installed")
def test_the_user_and_the_groups_can_be_made(tmp_path):
    argv = ["systemd-sysusers", "--dry-run", f"--root={tmp_path}", str(FOLDER / "edgeguard.sysusers.conf")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("user 'edgeguard'", "group 'edgeguard'", "group 'edgeguard-operator'"):
        assert f"Creating {name}" in done.stdout + done.stderr
