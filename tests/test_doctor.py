"""``edgeguard doctor``: a healthy robot has no complaint, and each planted fault is found, with its way out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from doctor_rig import Clinic
from robot import Robot, motors
from service_rig import served

from edgeguard.cli.main import main
from edgeguard.clock import NS_PER_MS, SystemClock
from edgeguard.doctor.as_service import doctors_command, service_settings
from edgeguard.doctor.finding import Level

SHIPPED = Path(__file__).parent.parent / "systemd"


@pytest.fixture
def clinic(tmp_path) -> Iterator[Clinic]:
    with motors() as simulator:
        folder = tmp_path / "robot"
        folder.mkdir()
        yield Clinic(tmp_path, Robot(folder, simulator))


class SlowClock(SystemClock):
    """Beside it everybody is twenty times as quick, whatever the machine does meanwhile."""

    def __init__(self, *, oversleeps_ms: int = 0) -> None:
        self._oversleeps_ns = oversleeps_ms * NS_PER_MS

    def now_ns(self) -> int:
        return super().now_ns() // 20

    def sleep_until_ns(self, when_ns: int) -> None:
        super().sleep_until_ns((when_ns + self._oversleeps_ns) * 20)


def test_a_healthy_robot_has_no_complaint(clinic):
    findings = clinic.examine()
    complaints = {name: finding for name, finding in findings if finding.level is not Level.OK}
    assert complaints.keys() <= {"round trip"}, "which a busy machine may make too long: see below"
    said = dict(findings)
    assert "one answer in" in said["answer"].text
    assert "quickest echo of a stop after" in said["round trip"].text
    assert "slack" in said["budget"].text


@pytest.mark.parametrize(("oversleeps_ms", "level"), [(0, Level.OK), (12, Level.WARN)])
def test_echoes_that_all_take_longer_than_a_tick_are_a_complaint(clinic, oversleeps_ms, level):
    clinic.becomes(clock=SlowClock(oversleeps_ms=oversleeps_ms))
    finding = dict(clinic.examine("round trip"))["round trip"]
    assert finding.level is level, finding
    assert ("more than a tick" in finding.text) is (level is Level.WARN)


def test_where_nothing_comes_back_nothing_is_waited_for(clinic):
    with clinic.robot.config.open("a") as file:
        file.write('codec = "text"\nwatchdog = true\n[link.text]\nformat = "v {linear:.3f}\\n"\n')
    finding = dict(clinic.examine("round trip"))["round trip"]
    assert (finding.level, finding.text) == (Level.OK, "not tried: by this protocol nothing comes back")


def remove_model(clinic: Clinic) -> None:
    clinic.edit("/model/", "/gone/")


def another_governor(clinic: Clinic) -> None:
    clinic.put("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave\n")


def bound_too_long(clinic: Clinic) -> None:
    clinic.edit("deadline_ms = 60", "deadline_ms = 30")


def hold_the_port(clinic: Clinic) -> None:
    clinic.put("proc/77/comm", "minicom\n")
    links = clinic.root / "proc/77/fd"
    links.mkdir()
    (links / "3").symlink_to(os.path.realpath(clinic.robot.motors.port))


def latch(clinic: Clinic) -> None:
    clinic.patient.state_directory.mkdir()
    (clinic.patient.state_directory / "latched").touch()


def gather_for_16_ms(clinic: Clinic) -> None:
    name = Path(os.path.realpath(clinic.robot.motors.port)).name
    clinic.put(f"sys/bus/usb-serial/devices/{name}/latency_timer", "16\n")


Plant = Callable[[Clinic], object]
FAULTS: dict[str, tuple[Plant, str, Level, str]] = {
    "a typo in the configuration": (lambda c: c.edit("tick_ms", "tik_ms"), "configuration", Level.FAIL, "tik_ms"),
    "no model": (remove_model, "model", Level.FAIL, "no such folder"),
    "no profile": (lambda c: c.robot.profile.unlink(), "profile", Level.FAIL, "edgeguard calibrate"),
    "a profile of another machine": (another_governor, "profile", Level.FAIL, "performance -> powersave"),
    "a worker that cannot start": (
        lambda c: c.becomes(worker=[sys.executable, "-c", "raise SystemExit(3)"]),
        "answer",
        Level.FAIL,
        "status 3",
    ),
    "another model than was measured": (
        lambda c: c.robot.behave(identity={"model": "another"}),
        "answer",
        Level.FAIL,
        "fake -> another",
    ),
    "a bound that does not fit": (bound_too_long, "budget", Level.FAIL, "observations at most"),
    "more threads than cores": (
        lambda c: c.edit("[model]", "[model]\nthreads = 999"),
        "cores",
        Level.WARN,
        "999 threads",
    ),
    "a governor that saves power": (another_governor, "clocks", Level.WARN, "governor powersave"),
    "a capped clock": (
        lambda c: c.put("sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq", "1200000\n"),
        "clocks",
        Level.WARN,
        "capped at 1200 of 2400 MHz",
    ),
    "a hot board": (
        lambda c: c.put("sys/class/thermal/thermal_zone0/temp", "91000\n"),
        "heat",
        Level.WARN,
        "above its trip point",
    ),
    "no sensor": (
        lambda c: (c.root / "sys/class/thermal/thermal_zone0/temp").unlink(),
        "heat",
        Level.WARN,
        "no temperature can be read",
    ),
    "no port": (lambda c: c.becomes(given_port="/dev/serial/by-id/gone"), "port", Level.FAIL, "does not exist"),
    "a port that is a file": (lambda c: c.becomes(given_port=str(c.robot.config)), "port", Level.FAIL, "no serial"),
    "a port that somebody holds": (hold_the_port, "port", Level.FAIL, "minicom (process 77)"),
    "ModemManager": (lambda c: c.put("proc/8/comm", "ModemManager\n"), "rivals", Level.WARN, "ModemManager runs"),
    "brltty": (lambda c: c.put("proc/9/comm", "brltty\n"), "rivals", Level.WARN, "brltty runs"),
    "a latency timer of 16 ms": (gather_for_16_ms, "latency timer", Level.WARN, "16 ms"),
    "a silent motor controller": (lambda c: c.robot.motors.freeze(), "round trip", Level.FAIL, "within 3 s"),
    "a state directory that is a file": (
        lambda c: c.becomes(given_state_directory=c.robot.config),
        "state",
        Level.FAIL,
        "cannot be written",
    ),
    "a latch": (latch, "state", Level.WARN, "edgeguard rearm"),
    "a log larger than the disk": (
        lambda c: c.robot.config.write_text("[record]\nfiles = 1000\nfile_mb = 1000\n" + c.robot.config.read_text()),
        "disk",
        Level.WARN,
        "keep fewer files",
    ),
    "a coarse clock source": (
        lambda c: c.put("sys/devices/system/clocksource/clocksource0/current_clocksource", "jiffies\n"),
        "clock",
        Level.WARN,
        "jiffies",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found_with_its_way_out(clinic, name):
    plant, check, level, said = FAULTS[name]
    plant(clinic)
    complaints = clinic.complaints(check)
    assert check in complaints, complaints
    finding = complaints[check]
    assert finding.level is level
    assert said in f"{finding.text} -> {finding.remedy}"


def test_a_running_guard_is_asked_and_not_disturbed(tmp_path):
    folder = tmp_path / "robot"
    folder.mkdir()
    with motors() as simulator, served(Robot(folder, simulator)) as service:
        clinic = Clinic(tmp_path, service.robot)
        service.robot.write_profile()
        service.start()
        service.drive_until_armed()
        service.drive_until(lambda: "on the disk" in service.status().recorder, "it is recorded")
        clinic.becomes(sockets=service.sockets, given_state_directory=service.robot.folder / "state")
        said = dict(clinic.examine("answer", "port", "round trip", "record", "budget"))
        assert "running guard's worker" in said["answer"].text
        assert "running guard has it" in said["round trip"].text
        assert "on the disk" in said["record"].text
        assert "recorded" in said["budget"].text
        assert service.process.poll() is None


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_beside_a_guard_that_may_not_be_asked_nothing_is_opened(clinic):
    clinic.patient.sockets.mkdir(mode=0o700)
    code = (
        "import os, sys; from pathlib import Path; from edgeguard.doctor.model import check_answer; "
        "from edgeguard.doctor.patient import Patient; from edgeguard.errors import EdgeguardError; "
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "try: list(check_answer(Patient(config_file=Path('none'), profile=None, sockets=Path(sys.argv[1]))))\n"
        "except EdgeguardError as error: print(error)"
    )
    argv = [sys.executable, "-c", code, str(clinic.patient.sockets)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert "not permitted; it is for the guard's user" in done.stdout


def test_real_time_is_asked_for_as_the_guard_asks(clinic):
    texts = [finding.text for _, finding in clinic.examine("real time")]
    assert any("granted" in text for text in texts)
    assert any("memory" in text for text in texts)


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_real_time_that_is_not_permitted_is_found_with_the_limit_that_grants_it():
    code = (
        "import os, resource, sys; resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0)); "
        "resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0)); os.setgroups([]); os.setgid(65534); os.setuid(65534); "
        "from edgeguard.doctor.system import check_real_time; print([f.remedy for f in check_real_time(None)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("this checkout is not readable by another user")
    assert "LimitRTPRIO=50" in done.stdout
    assert "LimitMEMLOCK=infinity" in done.stdout


def test_the_command_prints_one_line_each_and_its_exit_code_is_the_worst(clinic, capsys):
    robot = clinic.robot
    argv = ["doctor", str(robot.config), "--profile", str(robot.profile), "--port", robot.motors.port]
    argv += ["--state-directory", str(robot.folder / "state"), "--sockets", str(robot.folder), "--no-model"]
    code = main([*argv, "--json"])
    found = json.loads(capsys.readouterr().out)
    worst = max(Level[one["level"].upper()] for one in found["findings"])
    assert code == worst.value
    assert found["level"] == worst.name.lower()
    clinic.edit("tick_ms", "tik_ms")
    assert main(argv) == 2
    assert "FAIL  configuration" in capsys.readouterr().out


@pytest.mark.skipif(
    not Path.home().is_relative_to("/root") and not Path.home().is_relative_to("/home"), reason="no home"
)
def test_a_home_is_not_told(clinic):
    clinic.becomes(given_port=str(Path.home() / "port"))
    assert clinic.complaints("port")["port"].text == "~/port does not exist"


def test_a_units_settings_and_its_command_become_the_examinations(tmp_path):
    text = (SHIPPED / "edgeguard.service").read_text() + "\n# drop-in\n[Service]\nDeviceAllow=char-pts rw\n"
    settings = service_settings(text)
    assert settings.count(("DeviceAllow", "char-tty* rw")) == 1
    assert settings[-1] == ("DeviceAllow", "char-pts rw")
    assert ("Description", "Deadline guard of a robot with a language model on board") not in settings
    start = next(value for name, value in settings if name == "ExecStart")
    assert doctors_command(start, given=["--sockets", "/run/edgeguard"]) == [
        "/opt/edgeguard/bin/edgeguard",
        "doctor",
        "/etc/edgeguard/robot.toml",
        "--profile",
        "/var/lib/edgeguard/robot.profile.json",
        "--sockets",
        "/run/edgeguard",
    ]


def test_a_unit_that_is_not_installed_is_said(capsys):
    assert main(["doctor", "--as-service", "edgeguard-of-nobody.service"]) in (1, 2)
    assert "as-service" in (said := capsys.readouterr().err) or "edgeguard install" in said


def test_without_a_configuration_or_a_unit_it_says_what_it_needs(capsys):
    assert main(["doctor"]) == 2
    assert "--as-service" in capsys.readouterr().err
