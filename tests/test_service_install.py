"""``edgeguard install``: what it shows is what it writes, twice is once, and nothing is done behind anybody's back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from edgeguard.cli.main import main
from edgeguard.service.installation import PLACES, SHIPPED_EXECUTABLE, next_steps, planned

SHIPPED = Path(__file__).parent.parent / "systemd"
CONFIG = Path(__file__).parent / "scenarios" / "robot.toml"
EXECUTABLE = shutil.which("true") or "/bin/true"


def install(root: Path, *more: str) -> int:
    return main(["install", str(CONFIG), "--root", str(root), "--executable", EXECUTABLE, *more])


def files_below(root: Path) -> set[str]:
    return {str(file.relative_to(root)) for file in root.rglob("*") if file.is_file()}


def test_every_shipped_file_has_a_place():
    assert {file.name for file in SHIPPED.iterdir() if file.suffix != ".md"} == set(PLACES)


def test_it_writes_nothing_unless_told_to(tmp_path, capsys):
    assert install(tmp_path) == 0
    shown = capsys.readouterr().out
    assert files_below(tmp_path) == set()
    assert "nothing was written" in shown
    assert f"+ {tmp_path}/etc/systemd/system/edgeguard.service (new)" in shown
    assert "systemctl enable --now edgeguard" in shown


def test_what_it_writes_is_complete_and_names_this_edgeguard(tmp_path):
    assert install(tmp_path, "--write") == 0
    assert files_below(tmp_path) == {
        "etc/edgeguard/robot.toml",
        "etc/modules-load.d/edgeguard.conf",
        "etc/sysusers.d/edgeguard.conf",
        "etc/systemd/system/edgeguard-calibrate.service",
        "etc/systemd/system/edgeguard.service",
        "etc/systemd/system/edgeguard@.service",
        "etc/udev/rules.d/60-edgeguard.rules",
    }
    for unit in (tmp_path / "etc/systemd/system").iterdir():
        assert f"ExecStart={EXECUTABLE} " in unit.read_text()
        assert SHIPPED_EXECUTABLE not in unit.read_text()
        assert unit.stat().st_mode & 0o777 == 0o644


def test_a_second_time_changes_nothing_and_a_difference_is_shown_line_by_line(tmp_path, capsys):
    install(tmp_path, "--write")
    unit = tmp_path / "etc/systemd/system/edgeguard.service"
    unit.write_text(unit.read_text().replace("WatchdogSec=2s", "WatchdogSec=9s"))
    capsys.readouterr()
    install(tmp_path, "--json")
    states = {Path(one["file"]).name: one for one in json.loads(capsys.readouterr().out)["files"]}
    assert states.pop("edgeguard.service")["diff"] == ["-WatchdogSec=9s", "+WatchdogSec=2s"]
    assert {one["state"] for one in states.values()} == {"same"}


def test_a_machine_that_calls_the_ports_group_otherwise_gets_it_so(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/group").write_text("root:x:0:\nuucp:x:14:\n")
    users = next(
        one for one in planned(root=tmp_path, executable=Path("/bin/true"), config=None) if "sysusers" in str(one.place)
    )
    assert "m edgeguard uucp" in users.content


@pytest.mark.parametrize(
    "hidden", ["/home/me/venv/bin/edgeguard", "/root/venv/bin/edgeguard", "/tmp/venv/bin/edgeguard"]
)
def test_an_edgeguard_that_no_service_can_see_is_refused_with_the_way_out(tmp_path, capsys, hidden):
    assert main(["install", "--root", str(tmp_path), "--executable", hidden, "--write"]) == 2
    assert "/opt/edgeguard" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd's tools are not installed")
def test_a_unit_that_systemd_does_not_accept_is_not_written(tmp_path, capsys):
    nowhere = ["--executable", "/opt/nowhere/edgeguard"]
    assert main(["install", "--root", str(tmp_path), *nowhere, "--write"]) == 2
    assert "/opt/nowhere/edgeguard is not executable" in capsys.readouterr().err
    assert files_below(tmp_path) == set()


def test_an_image_is_made_on_a_machine_that_has_no_edgeguard(tmp_path):
    there = tmp_path / "opt/nowhere/edgeguard"
    there.parent.mkdir(parents=True)
    there.touch(mode=0o755)
    assert main(["install", "--root", str(tmp_path), "--executable", "/opt/nowhere/edgeguard", "--write"]) == 0


def test_a_wrong_configuration_is_not_installed(tmp_path, capsys):
    wrong = tmp_path / "robot.toml"
    wrong.write_text("[timing]\ntik_ms = 3\n")
    assert main(["install", str(wrong), "--root", str(tmp_path / "root"), "--executable", EXECUTABLE]) == 2
    assert "tik_ms" in capsys.readouterr().err


def test_the_steps_leave_no_question_open():
    steps = [
        command for command, _ in next_steps(executable=Path("/opt/eg"), builds=["model build it"], configured=False)
    ]
    order = [
        "systemd-sysusers",
        "daemon-reload",
        "robot.toml",
        "model build it",
        "calibrate",
        "doctor",
        "enable",
    ]
    found = [next(index for index, step in enumerate(steps) if word in step) for word in order]
    assert found == sorted(found)
    assert not any("model build" in step for step, _ in next_steps(executable=Path("/e"), builds=[], configured=True))


def test_the_model_that_is_built_is_the_configurations_own_with_its_adapter(tmp_path, capsys):
    config = tmp_path / "robot.toml"
    assert main(["init", str(config)]) == 0
    capsys.readouterr()
    assert main(["install", str(config), "--root", str(tmp_path / "root"), "--executable", EXECUTABLE]) == 0
    assert f"{EXECUTABLE} model build smollm2-135m --adapter smollm2-135m-operator\n" in capsys.readouterr().out
