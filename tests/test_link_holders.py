"""Who holds a port: found on the real machine, and in trees that look like /proc and /run/lock."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edgeguard.errors import LinkError
from edgeguard.link import SerialPort
from edgeguard.link.holders import Holder, port_holders, suspects_running
from edgeguard.link.pty_port import PtyPort


def process(proc: Path, pid: int, name: str, *opens: str) -> None:
    folder = proc / str(pid) / "fd"
    folder.mkdir(parents=True)
    (proc / str(pid) / "comm").write_text(name + "\n")
    for number, target in enumerate(opens):
        (folder / str(number)).symlink_to(target)


def test_whoever_has_it_open_is_named_with_the_way_out(tmp_path: Path) -> None:
    port = tmp_path / "ttyACM0"
    port.touch()
    by_id = tmp_path / "by-id"
    by_id.symlink_to(port)
    proc = tmp_path / "proc"
    process(proc, 31, "ModemManager", "/dev/null", str(port))
    process(proc, 32, "minicom", str(port))
    process(proc, 33, "cat", str(tmp_path / "ttyACM1"))
    (proc / "self").mkdir()
    holders = port_holders(str(by_id), proc=proc, locks=())
    assert holders == (Holder(pid=31, name="ModemManager"), Holder(pid=32, name="minicom"))
    assert str(holders[0]).startswith("ModemManager (process 31): it probes new ports for modems; ")
    assert str(holders[1]) == "minicom (process 32)"
    assert suspects_running(proc=proc) == holders[:1]


def test_a_lock_file_names_its_process_while_that_lives(tmp_path: Path) -> None:
    proc, lock = tmp_path / "proc", tmp_path / "lock"
    process(proc, 41, "uucp")
    lock.mkdir()
    for content, found in (("        41\n", (Holder(pid=41, name="uucp"),)), ("42\n", ()), ("", ()), ("you\n", ())):
        (lock / "LCK..ttyS0").write_text(content)
        assert port_holders("/dev/ttyS0", proc=proc, locks=(lock, tmp_path / "none")) == found


def test_whoever_made_the_pseudo_terminal_is_the_motor_controller_and_no_rival(tmp_path: Path) -> None:
    port, proc = tmp_path / "3", tmp_path / "proc"
    process(proc, 51, "simulator", "/dev/ptmx", str(port))
    process(proc, 52, "minicom", str(port))
    assert port_holders(str(port), proc=proc, locks=()) == (Holder(pid=52, name="minicom"),)


def test_we_are_not_in_our_own_way(tmp_path: Path) -> None:
    peer = PtyPort(path=tmp_path / "port")
    port = SerialPort(path=str(peer.path), baud=115_200)
    assert os.getpid() not in [holder.pid for holder in port_holders(str(peer.path))]
    port.close()
    peer.close()


HOLD = """
import sys, time
from edgeguard.link import SerialPort
port = SerialPort(path=sys.argv[1], baud=115_200)
print("open", flush=True)
time.sleep(60)
"""


def test_a_busy_port_names_who_has_it_when_asked_to(tmp_path: Path) -> None:
    peer = PtyPort(path=tmp_path / "port")
    command = [sys.executable, "-c", HOLD, str(peer.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(LinkError, match=rf"in use by python[\d.]* \(process {other.pid}\)"):
            SerialPort(path=str(peer.path), baud=115_200, name_holder=True)
        with pytest.raises(LinkError, match=r"in use by another program; stop that first \(sudo fuser -v"):
            SerialPort(path=str(peer.path), baud=115_200)
        other.kill()
    peer.close()
