"""A healthy robot on a made machine, to plant faults in: files below a root, a pty, a fake worker."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from fake_worker import write_behaviour
from robot import Robot

from edgeguard.bench.calibration.profile_store import write_profile
from edgeguard.board import read_fingerprint
from edgeguard.budget.profile_json import load_profile
from edgeguard.doctor.examine import CHECKS, examine
from edgeguard.doctor.finding import Finding, Level
from edgeguard.doctor.patient import Patient

HEALTHY = {
    "proc/1/comm": "systemd\n",
    "proc/cpuinfo": "model name : a processor\n",
    "proc/meminfo": "MemTotal: 8000000 kB\n",
    "sys/class/thermal/thermal_zone0/type": "cpu-thermal\n",
    "sys/class/thermal/thermal_zone0/temp": "45000\n",
    "sys/class/thermal/thermal_zone0/trip_point_0_type": "passive\n",
    "sys/class/thermal/thermal_zone0/trip_point_0_temp": "80000\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq": "2400000\n",
    "sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq": "2400000\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
}


class Clinic:
    """One robot, healthy until something is planted."""

    def __init__(self, folder: Path, robot: Robot) -> None:
        self.robot = robot
        self.root = folder / "machine"
        for path, text in HEALTHY.items():
            self.put(path, text)
        write_behaviour(robot.config, passes=[20, 3], base_ms=1, token_ms=0.1, bound_ms=20, values=[{"go": "forward"}])
        text = robot.config.read_text()
        model = folder / "model"
        model.mkdir()
        (model / "genai_config.json").write_text("{}")
        robot.config.write_text(f'[model]\nfolder = "{model}/"\n{text}')
        self.edit("max_age_ms = 40", "max_age_ms = 20")
        self.measure()
        self.patient = Patient(
            config_file=robot.config,
            profile=robot.profile,
            sockets=folder / "run",
            given_state_directory=folder / "state",
            given_port=robot.motors.port,
            worker=robot.worker,
            root=self.root,
        )

    def put(self, path: str, text: str) -> None:
        """A file of the machine."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def measure(self) -> None:
        """A profile of the machine as it is now."""
        self.robot.write_profile()
        profile = load_profile(self.robot.profile)
        worker = {"model": profile.fingerprint["model"]}
        fingerprint = {**read_fingerprint(root=self.root), **worker}
        write_profile(dataclasses.replace(profile, fingerprint=fingerprint), self.robot.profile)

    def becomes(self, **changes) -> None:
        """Another way to examine it."""
        self.patient = dataclasses.replace(self.patient, **changes)

    def edit(self, old: str, new: str) -> None:
        """Change the configuration."""
        text = self.robot.config.read_text()
        assert old in text
        self.robot.config.write_text(text.replace(old, new))

    def examine(self, *names: str) -> list[tuple[str, Finding]]:
        """Only these checks, or all but the two that depend on this machine's own mood."""
        moods = ("load", "real time")
        checks = [one for one in CHECKS if (one[0] in names if names else one[0] not in moods)]
        return list(examine(self.patient, checks=(CHECKS[0], *(one for one in checks if one != CHECKS[0]))))

    def complaints(self, *names: str) -> dict[str, Finding]:
        """The findings that are not ok, by their checks."""
        return {name: finding for name, finding in self.examine(*names) if finding.level is not Level.OK}
