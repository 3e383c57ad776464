"""The machine under the guard: cores, real time, memory, clocks, heat, and whether somebody else computes on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

from edgeguard.board import UNKNOWN, FixedKernel, Kind, find_board, read_fingerprint
from edgeguard.clock import NS_PER_MS
from edgeguard.doctor.finding import Finding, fail, ok, warn
from edgeguard.doctor.patient import Patient
from edgeguard.runtime.realtime import FIFO_PRIORITY

BUSY_LIMIT = 1.5
BUSY_WINDOW_NS = 300 * NS_PER_MS

# A process of its own, so that the doctor's stays as it is.
_ASK_FOR_REAL_TIME = """
import json
from edgeguard.plain import to_plain
from edgeguard.runtime.realtime import request_real_time
print(json.dumps(to_plain(request_real_time())))
"""


def check_cores(patient: Patient) -> Iterator[Finding]:
    """Threads of the model against the cores that this process may use (affinity and cpuset together), and a quota."""
    allowed, present = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    wanted = patient.config.model.threads or allowed
    quota = read_fingerprint(root=patient.root)["cpu quota"]
    said = f"{allowed} of {present} cores may be used, the model takes {wanted} threads"
    if wanted > allowed:
        yield warn(said, f"set model.threads to at most {allowed}, or widen AllowedCPUs= or the affinity")
    else:
        yield ok(said)
    if quota != "none":
        yield warn(f"a quota of {quota} stops the model in the middle of a period", "take CPUQuota= off the service")


def check_real_time(patient: Patient) -> Iterator[Finding]:  # noqa: ARG001 (every check takes the patient)
    """What the guard would be granted, asked as the guard asks."""
    done = subprocess.run([sys.executable, "-c", _ASK_FOR_REAL_TIME], capture_output=True, text=True, check=False)
    if done.returncode:
        yield fail("could not be asked for", "this Python cannot run edgeguard: install it again")
        return
    granted = json.loads(done.stdout)
    if granted["fifo"]:
        yield ok(f"{granted['scheduling']} is granted")
    else:
        yield warn(
            f"not granted: {granted['scheduling']}",
            f"LimitRTPRIO={FIFO_PRIORITY} in the unit (edgeguard install), or an rtprio line in limits.conf",
        )
    if granted["memory"] == "locked":
        yield ok("memory can be locked")
    else:
        yield warn(f"memory is {granted['memory']}", "LimitMEMLOCK=infinity in the unit (edgeguard install)")


def check_clocks(patient: Patient) -> Iterator[Finding]:
    """The governor of the processor, and a cap on its clock."""
    governor = read_fingerprint(root=patient.root)["governor"]
    if governor == UNKNOWN:
        yield ok("no frequency scaling to be seen here (a virtual machine, or the firmware's own)")
    elif governor == "performance":
        yield ok("governor performance")
    else:
        yield warn(f"governor {governor}: clocks fall between two requests", "cpupower frequency-set -g performance")
    for policy in sorted((patient.root / "sys/devices/system/cpu/cpufreq").glob("policy*")):
        folder = policy.relative_to(patient.root)
        cap, most = (patient.text(f"{folder}/{name}") for name in ("scaling_max_freq", "cpuinfo_max_freq"))
        if cap and most and cap.isdecimal() and most.isdecimal() and int(cap) < int(most):
            yield warn(
                f"{policy.name} is capped at {int(cap) // 1000} of {int(most) // 1000} MHz",
                "cpupower frequency-set -u, or the board's power mode; then calibrate",
            )


def check_heat(patient: Patient) -> Iterator[Finding]:
    """Temperatures against the board's own trip points, and whether the silicon slows itself."""
    board = find_board(patient.root)
    board.read(patient.clock.now_ns())  # counters need two looks
    reading = board.read(patient.clock.now_ns())
    temperatures = reading.of(Kind.TEMPERATURE)
    if not temperatures:
        yield warn(
            "no temperature can be read: heat shows only as latency",
            "load the board's sensor driver (lm-sensors); without one, calibrate hot",
        )
    else:
        name, hottest = max(temperatures.items(), key=lambda one: one[1])
        said = f"{', '.join(board.names)}: {len(temperatures)} temperatures, the hottest {name} {hottest:.0f} °C"
        limits = [one.sensor for one in reading.values if one.value is not None and one.sensor.kind is Kind.TEMPERATURE]
        trip = next((one.passive_c or one.critical_c for one in limits if one.name == name), None)
        if trip is not None and hottest >= trip:
            yield warn(f"{said}, above its trip point of {trip:.0f} °C", "cool it: fan, heat sink, a lower power mode")
        else:
            yield ok(said)
    slowed = {**reading.of(Kind.COUNTER), **reading.of(Kind.FLAG)}
    for name, value in slowed.items():
        if value > 0:
            yield warn(f"{name}: the silicon slows itself now", "cool it, or mend its power supply")


def check_load(patient: Patient) -> Iterator[Finding]:
    """Known work, timed: how much of the cores somebody else has."""
    factor = FixedKernel(clock=patient.clock).busy_factor(for_ns=BUSY_WINDOW_NS)
    if factor > BUSY_LIMIT:
        yield warn(f"busy ×{factor:.1f}: somebody else computes here", "top says who; calibrate with it running")
    else:
        yield ok(f"free (busy ×{factor:.1f})")
