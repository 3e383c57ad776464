"""A systemd of its own that runs the service as ``edgeguard install`` writes it: in namespaces, on an overlay.

This machine stays untouched. Needs root and leave to mount. What differs from an installed service is written as a
drop-in: this machine's Python may lie in a home, the port is a pty, the worker is the tests' own. The checkout and its
environment are bound below /opt, where an installed service has them: a checkout in /tmp would be hidden from a service
with a /tmp of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from patience import wait_for
from robot import FAKE_WORKER, Robot

ROOT = Path(__file__).parent.parent
SYSTEMD = Path("/lib/systemd/systemd")
PYTHON = f"/opt/edgeguard/environment/bin/{Path(sys.executable).name}"

_BOOT = r"""
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs "$BASE"
mkdir "$BASE/upper" "$BASE/work" "$BASE/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$BASE/upper,workdir=$BASE/work" "$BASE/root"
cd "$BASE/root"
for folder in tmp run var/tmp; do mount -t tmpfs tmpfs "$folder"; done
mount -t proc proc proc
mount --rbind /dev dev
mount --rbind /sys sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mkdir -p opt/edgeguard/bin opt/edgeguard/source opt/edgeguard/environment
mkdir -p etc/edgeguard etc/systemd/system/edgeguard.service.d var/lib/edgeguard var/cache/edgeguard
mount --bind "$SOURCE" opt/edgeguard/source
mount --bind "$ENVIRONMENT" opt/edgeguard/environment
mkdir files
cp "$FILES"/robot.toml files/
cp "$FILES"/robot.fake_worker.json etc/edgeguard/
cp "$FILES"/robot.profile.json var/lib/edgeguard/
cp "$FILES"/edgeguard opt/edgeguard/bin/
cp "$FILES"/test.conf etc/systemd/system/edgeguard.service.d/
if [ -d root ]; then chmod o+x root; fi
chroot . env PYTHONPATH=/opt/edgeguard/source /opt/edgeguard/bin/edgeguard install /files/robot.toml \
  --executable /opt/edgeguard/bin/edgeguard --write
systemd-sysusers --root=. "$PWD"/etc/sysusers.d/edgeguard.conf
exec chroot . /bin/sh -c "exec $SYSTEMD --system --unit=edgeguard.service --show-status=no --log-target=null"
"""

_DROP_IN = """\
[Service]
ProtectHome=read-only
DeviceAllow=char-pts rw
Environment=PYTHONPATH=/opt/edgeguard/source
ExecStart=
ExecStart={start} --port {port} --worker "{python} {worker} {{fd}} /etc/edgeguard/robot.toml {profile}"
"""


class Machine:
    """One running systemd; ``OSError`` with the reason when this machine does not allow it."""

    def __init__(self, folder: Path, robot: Robot) -> None:
        self._log = folder / "boot.log"
        base, files = folder / "base", folder / "files"
        base.mkdir()
        files.mkdir()
        port = os.path.realpath(robot.motors.port)
        Path(port).chmod(0o666)
        for file in (robot.config, robot.profile, robot.config.with_suffix(".fake_worker.json")):
            shutil.copy(file, files)
        (files / "test.conf").write_text(self._drop_in(port))
        entry = files / "edgeguard"
        entry.write_text(f"#!{PYTHON}\nimport sys\nfrom edgeguard.cli.main import main\nsys.exit(main())\n")
        entry.chmod(0o755)
        environment = {
            "BASE": base,
            "FILES": files,
            "SOURCE": ROOT,
            "ENVIRONMENT": sys.prefix,
            "SYSTEMD": SYSTEMD,
            "container": "test",
        }
        namespaces = ("--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--cgroup")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ["unshare", *namespaces, "sh", "-c", _BOOT],
                env={"PATH": os.environ["PATH"], **{name: str(value) for name, value in environment.items()}},
                stdout=log,
                stderr=log,
            )
        try:
            self._init = self._await_boot()
        except BaseException:
            self.close()
            raise

    @property
    def sockets(self) -> Path:
        """The service's, as seen from here."""
        return Path(f"/proc/{self._init}/root/run/edgeguard")

    def run(self, *argv: str) -> str:
        """The output of a command on that machine."""
        inside = ["nsenter", "--target", str(self._init), "--all", "--root", "--wd", "--", *argv]
        return subprocess.run(inside, capture_output=True, text=True, check=False).stdout

    def doctor(self) -> dict[str, Any]:
        """What ``edgeguard doctor --as-service`` says there."""
        words = ("/opt/edgeguard/bin/edgeguard", "doctor", "--as-service", "--json")
        found: dict[str, Any] = json.loads(self.run("env", "PYTHONPATH=/opt/edgeguard/source", *words))
        return found

    def show(self, name: str) -> str:
        """A property of the service."""
        return self.run("systemctl", "show", "edgeguard", "--property", name, "--value").strip()

    def wait_until(self, name: str, wanted: str) -> None:
        """``wanted`` is part of the property by then."""
        wait_for(lambda: wanted in self.show(name), f"{name} is {wanted}", stands=lambda: self.show(name))

    def main_process(self) -> dict[str, str]:
        """The kernel's word on the guard's process."""
        lines = self.run("cat", f"/proc/{self.show('MainPID')}/status").splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _drop_in(self, port: str) -> str:
        unit = (ROOT / "systemd" / "edgeguard.service").read_text().splitlines()
        start = next(line for line in unit if line.startswith("ExecStart=")).removeprefix("ExecStart=")
        profile = "/var/lib/edgeguard/robot.profile.json"
        worker = f"/opt/edgeguard/source/tests/{FAKE_WORKER.name}"
        return _DROP_IN.format(start=start, port=port, python=PYTHON, worker=worker, profile=profile)

    def _await_boot(self) -> int:
        """The pid of the systemd, once it answers."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")

        def booted() -> bool:
            for child in children.read_text().split():
                self._init = int(child)
                if self.show("LoadState") == "loaded":
                    return True
            return self._process.poll() is not None

        wait_for(booted, "systemd has started", stands=self._log.read_text)
        if self._process.poll() is not None:
            raise OSError(f"no systemd of our own here: {self._log.read_text()[-300:]}")
        return self._init
