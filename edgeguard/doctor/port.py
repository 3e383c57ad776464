"""The serial port: is it there, whose is it, who else wants it, how fast does it answer."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from edgeguard.clock import NS_PER_MS, NS_PER_S, ms_from_ns
from edgeguard.doctor.finding import Finding, fail, ok, warn
from edgeguard.doctor.patient import Patient
from edgeguard.link import feedback_of
from edgeguard.link.holders import port_holders, suspects_running
from edgeguard.runtime.serial_wire import SerialWire, wire_codec
from edgeguard.types import Action, SetPoint
from edgeguard.types.wire import Feedback

BY_ID = Path("/dev/serial/by-id")
RULES = ("etc/udev/rules.d/60-edgeguard.rules", "usr/lib/udev/rules.d/60-edgeguard.rules")
ANSWER_WITHIN_NS = 3 * NS_PER_S
ECHOES = 5
_WORDS = {Feedback.ECHO: "echo of a stop", Feedback.MEASURED: "measurement"}


def check_port(patient: Patient) -> Iterator[Finding]:
    """There, a serial port, ours to open, and nobody else's."""
    port = patient.port
    if not port:
        yield fail("link.port is not set", "ls -l /dev/serial/by-id lists the ports; put one into the configuration")
        return
    path = Path(port)
    if not path.exists():
        yield fail(f"{port} does not exist", "plug the motor controller in; ls /dev/serial/by-id lists what is there")
        return
    if not stat.S_ISCHR(path.stat().st_mode):
        yield fail(f"{port} is no serial port", "ls /dev/serial/by-id lists them")
        return
    if not os.access(path, os.R_OK | os.W_OK):
        group = path.stat().st_gid
        yield fail(f"{port}: no permission", f"join its group ({group}): sudo usermod -aG {group} USER; log in again")
        return
    ours = None if patient.guard is None else patient.guard.guard_pid
    locks = (patient.root / "run/lock", patient.root / "var/lock")
    holders = [one for one in port_holders(port, proc=patient.root / "proc", locks=locks) if one.pid != ours]
    if holders:
        names = ", ".join(f"{one.name} (process {one.pid})" for one in holders)
        yield fail(f"{port} is held by {names}", "stop that: two programs on one line destroy each other's frames")
        return
    if BY_ID not in path.parents and _name_by_id(path) is not None:
        yield warn(f"{port} may be another port after a restart", f"set link.port = {str(_name_by_id(path))!r}")
        return
    yield ok(f"{port} is there, and nobody else's")


def check_rivals(patient: Patient) -> Iterator[Finding]:
    """Programs that open every new port to see what is behind it."""
    running = {one.name for one in suspects_running(proc=patient.root / "proc")}
    ruled = any((patient.root / rule).is_file() for rule in RULES)
    if "ModemManager" in running and not ruled:
        yield warn(
            "ModemManager runs, and probes new ports for modems",
            "sudo edgeguard install --write brings the udev rule; or: systemctl mask --now ModemManager",
        )
    if "brltty" in running:
        yield warn("brltty runs, and takes some USB adapters", "sudo systemctl mask --now brltty brltty-udev")
    if not running or (ruled and "brltty" not in running):
        yield ok("nobody probes it: neither ModemManager nor brltty is in the way")


def check_latency_timer(patient: Patient) -> Iterator[Finding]:
    """Of FTDI adapters: how long they gather what they read."""
    name = os.path.basename(os.path.realpath(patient.port)) if patient.port else ""  # noqa: PTH119 (a port's last name)
    timer = patient.text(f"sys/bus/usb-serial/devices/{name}/latency_timer")
    if timer is None:
        yield ok("the driver has none")
    elif timer.isdecimal() and int(timer) > 1:
        yield warn(
            f"{timer} ms: every echo is so much later",
            "sudo edgeguard install --write brings the udev rule; unplug the adapter and plug it in again",
        )
    else:
        yield ok(f"{timer} ms")


def check_round_trip(patient: Patient) -> Iterator[Finding]:
    """A handshake, a stop, and its echo: opens the port, which resets some motor controllers. ``LinkError``.

    An echo that is late once may be the fault of whoever else computes here: the quickest of several is the port's.
    """
    if patient.guard is not None:
        yield ok(f"the running guard has it: {patient.guard.link}")
        return
    if not patient.opens_port:
        yield ok("not tried (--no-port)")
        return
    config, clock = patient.config, patient.clock
    feedback = feedback_of(wire_codec(config))
    if feedback is Feedback.NONE:
        yield ok("not tried: by this protocol nothing comes back")
        return
    wire = SerialWire(config, port=patient.port or None)
    stop = SetPoint(axes={axis.name: axis.safe or 0.0 for axis in config.axes}, action=Action.STOP, life_ms=80)
    try:
        wire.connect(now_ns=clock.now_ns())
        give_up_ns = clock.now_ns() + ANSWER_WITHIN_NS
        greeted, sent_ns, took_ns = False, None, list[int]()
        while (now_ns := clock.now_ns()) < give_up_ns and len(took_ns) < ECHOES:
            status = wire.poll(now_ns=now_ns)
            if sent_ns is not None and (status.echo_received_ns or 0) >= sent_ns:
                took_ns.append(clock.now_ns() - sent_ns)
                sent_ns = None
                if took_ns[-1] <= config.timing.tick_ns:
                    break
            if sent_ns is None and status.up:
                wire.transmit(stop, now_ns=now_ns)
                greeted, sent_ns = True, now_ns
            clock.sleep_until_ns(now_ns + NS_PER_MS)
    finally:
        wire.close()
    if not took_ns:
        yield fail(
            f"{f'no {_WORDS[feedback]}' if greeted else 'no handshake'} within {ANSWER_WITHIN_NS // NS_PER_S} s",
            "is its firmware this codec's, its baud rate the configuration's, are TX and RX crossed?",
        )
        return
    said = f"the quickest {_WORDS[feedback]} after {ms_from_ns(min(took_ns)):.1f} ms"
    if min(took_ns) > config.timing.tick_ns:
        yield warn(f"{said}: more than a tick", "look at the latency timer, the baud rate, the loop")
    else:
        yield ok(said)


def _name_by_id(path: Path) -> Path | None:
    if not BY_ID.is_dir():
        return None
    return next((one for one in BY_ID.iterdir() if one.resolve() == path.resolve()), None)
