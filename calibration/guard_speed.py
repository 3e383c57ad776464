"""How many updates per second the guard's core makes in one thread; with ``--against``, beside another revision's core.

    python calibration/guard_speed.py [CONFIG] [--rounds 7] [--against REVISION] [--json]

A drive is recorded once: observations at the robot's period, an answer to each, an echo of the motor controller after
every command. Then the same steps are played again. ``ticks`` is the dearest mix: every step is a tick that moves the
set-point, and observations and answers come with one. ``all`` is what the guard's process sees: ticks, and between them
steps for what has arrived. CPU time, because the wall clock of a shared machine tells of its neighbours, and collected
as in that process: not at all. Each round is a fresh interpreter; the revisions take turns.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib import resources
from io import BytesIO
from pathlib import Path

PERIODS = 300
RESERVE_NS = 5_000_000
PLAYED = 3
LATENCY_NS = 110_000_000
BOUND_NS = 150_000_000
ECHO_NS = 2_000_000
MIXES = ("ticks", "all")


def play(config_file: Path) -> dict[str, float]:
    """Updates per second of both mixes, by the ``edgeguard`` that is imported: the best of a few times."""
    from edgeguard.guard.core import step
    from edgeguard.guard.settings import Settings
    from edgeguard.guard.state import GuardState
    from edgeguard.runtime.assembly import assemble
    from edgeguard.runtime.serial_wire import command_wire_ns

    assembly = assemble(config_file)
    settings = Settings.from_config(
        assembly.config, assembly.fields, reserve_ns=RESERVE_NS, wire_ns=command_wire_ns(assembly.config)
    )
    speeds = {}
    for mix in MIXES:
        drive = list(_drive(settings, only_ticks=mix == "ticks"))
        gc.collect()
        gc.disable()
        spent = []
        for _ in range(PLAYED):
            began = time.process_time()
            state = GuardState.initial(now_ns=drive[0][0])
            for now_ns, inputs in drive:
                state, _ = step(settings, state, now_ns, inputs)
            spent.append(time.process_time() - began)
            if state.counters.model < PERIODS * 0.9:
                raise SystemExit(f"the drive is not the model's: {state.counters}, {state.detail}")
        gc.enable()
        speeds[mix] = len(drive) / min(spent)
    return speeds


def _drive(settings, *, only_ticks: bool) -> Iterator[tuple[int, object]]:
    """The inputs of every step, with their times; the plant does what it is told."""
    from edgeguard.guard.core import step
    from edgeguard.guard.interface import Inputs, Promise, WorkerPhase, WorkerStatus
    from edgeguard.guard.state import GuardState
    from edgeguard.types import Answer, Echo, Finish, LinkStatus, Observation
    from edgeguard.types.wire import LinkState, MotorFlag

    measured = {axis.name: 0.0 for axis in settings.axes}
    now_ns = next_tick_ns = next_observation_ns = 1_000_000_000
    end_ns = now_ns + PERIODS * settings.period_ns
    state, request, answer_ns, echo_ns = GuardState.initial(now_ns=now_ns), None, end_ns, end_ns
    inputs = Inputs(
        worker=WorkerStatus(
            phase=WorkerPhase.READY, promise=Promise(bounds_ns=(BOUND_NS,), alpha=0.01, lag=1, observed=True)
        ),
        link=LinkStatus(state=LinkState.UP),
    )
    turns = 0
    while now_ns < end_ns:
        observation, answers = None, ()
        if now_ns >= next_observation_ns:
            fields = {spec.name: _reading(spec) for spec in settings.fields}
            fields |= {axis.measured: measured[axis.name] for axis in settings.axes if axis.measured is not None}
            observation = Observation(fields=fields, captured_ns=now_ns - 1_000_000)
            next_observation_ns += settings.period_ns
        if request is not None and now_ns >= answer_ns:
            turns += 1
            values = {field.name: list(field)[turns // 5 % 2] for field in settings.answer_fields}
            answers = (
                Answer(request_id=request.request_id, epoch=request.epoch, finish=Finish.COMPLETE, values=values),
            )
            request = None
        if only_ticks or now_ns >= echo_ns or inputs.link.echo is None:
            flags = MotorFlag.MOVING if any(measured.values()) else MotorFlag(0)
            echo = Echo(session=1, sequence=0, flags=flags, life_ms=80, axes=dict(measured), controller_ms=0)
            link = LinkStatus(state=LinkState.UP, generation=1, session=1, echo=echo, echo_received_ns=now_ns)
            inputs, echo_ns = replace(inputs, link=link), end_ns
        inputs = replace(inputs, observation=observation, answers=answers)
        yield now_ns, inputs
        state, effects = step(settings, state, now_ns, inputs)
        if effects.request is not None:
            request, answer_ns = effects.request, now_ns + LATENCY_NS
        if effects.send is not None:
            measured, echo_ns = dict(effects.send.axes), now_ns + ECHO_NS
            next_tick_ns = now_ns + settings.tick_ns
        coming = [next_tick_ns, next_observation_ns, echo_ns, answer_ns if request is not None else end_ns]
        now_ns = now_ns + settings.tick_ns if only_ticks else max(now_ns + 1, min(coming))


def _reading(spec) -> object:
    if spec.kind == "text":
        return "go on"
    return False if spec.kind == "flag" else (spec.high or 0.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = resources.files("edgeguard.demo").joinpath("demo.toml")
    parser.add_argument("config", nargs="?", type=Path, default=default, help="default: the demo's")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--against", metavar="REVISION", help="a revision of this repository to compare with")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.once:
        print(json.dumps(play(arguments.config)))
        return 0
    with tempfile.TemporaryDirectory() as other:
        sides = {"here": Path(__file__).parents[1]}
        if arguments.against is not None:
            _export(arguments.against, Path(other))
            sides[arguments.against] = Path(other)
        runs: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
        for _ in range(arguments.rounds):
            for side, folder in sides.items():
                runs[side].append(_run(arguments.config, folder))
    medians = {side: {mix: statistics.median(run[mix] for run in runs[side]) for mix in MIXES} for side in sides}
    figures: dict[str, object] = {
        side: {mix: round(speed) for mix, speed in speeds.items()} for side, speeds in medians.items()
    }
    if arguments.against is not None:
        figures["ratio"] = {mix: round(medians["here"][mix] / medians[arguments.against][mix], 2) for mix in MIXES}
    if arguments.json:
        print(json.dumps({**figures, "rounds": arguments.rounds}))
    else:
        print(f"{'updates/s':>16}  " + "  ".join(f"{mix:>8}" for mix in MIXES))
        for side, speeds in figures.items():
            print(f"{side:>16}  " + "  ".join(f"{speeds[mix]:8}" for mix in MIXES))
    return 0


def _run(config: Path, folder: Path) -> dict[str, float]:
    argv = [sys.executable, __file__, str(config), "--once"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return json.loads(subprocess.run(argv, stdout=subprocess.PIPE, check=True, env=environment).stdout)


def _export(revision: str, folder: Path) -> None:
    argv = ["git", "archive", "--format=tar", revision, "edgeguard"]
    archive = subprocess.run(argv, capture_output=True, check=True, cwd=Path(__file__).parents[1]).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")


if __name__ == "__main__":
    sys.exit(main())
