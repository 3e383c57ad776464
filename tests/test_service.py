"""The guard as a service: a real process on a real pty, with clients, an operator, signals and a manager."""

from __future__ import annotations

import contextlib
import grp
import itertools
import json
import math
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from flights import steps_of
from patience import PATIENCE_S, wait_for
from robot import AHEAD, Robot, motors
from service_rig import EDGEGUARD, ServedRobot, served

from edgeguard.channel import PEER_LIMIT_BYTES, encode
from edgeguard.clock import NS_PER_MS, NS_PER_S
from edgeguard.guard.events import EventName
from edgeguard.recorder.log import read_flight
from edgeguard.service.entrance import CLIENT_LIMIT
from edgeguard.service.notify import Notifier
from edgeguard.service.sockets import CONTROL_SOCKET, MESSAGE_SCHEMA, NO_STAMP_NS, OBSERVE_SOCKET, received_observation
from edgeguard.types import Action, Cause, CycleRecord, Mode, SetPoint

NOW_NS = 7_000 * NS_PER_S

LATE_NS = 5 * NS_PER_S
"""More than any machine adds to a tick of 10 ms."""

LINK_TIMEOUT_NS = 80 * NS_PER_MS
"""The robot's: behind a longer silence its motor controller has stopped by itself."""


@pytest.fixture
def service(tmp_path) -> Iterator[ServedRobot]:
    with motors() as simulator, served(Robot(tmp_path, simulator)) as one:
        yield one


def raw(service: ServedRobot, name: str = OBSERVE_SOCKET) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.settimeout(PATIENCE_S)
    sock.connect(str(service.sockets / name))
    return sock


def reply(sock: socket.socket) -> dict:
    return json.loads(sock.recv(1 << 17))


# What it does.


def test_observations_go_in_by_the_socket_and_commands_come_out_on_the_wire(service):
    service.start()
    service.drive_until_armed()
    armed = service.say("status", "--wait-armed", "0")
    assert armed.returncode in (0, 10), armed.stderr  # nobody observes now: it may have intervened meanwhile
    status = json.loads(service.say("status", "--json").stdout)
    assert status["counters"]["model"] > 0
    assert status["guard_pid"] == service.process.pid
    assert (status["margin"], status["bound_ns"]) == (1.0, 20_000_000)
    assert status["board"].startswith(("nominal", "not "))


def test_it_is_ready_before_the_model_is_and_says_why_it_does_not_move(service):
    service.robot.behave(start="hang")
    service.start()
    assert "worker warming" in service.manager.wait_for("STATUS=inhibited")
    assert {receipt.action for receipt in service.robot.motors.report().received} <= {Action.STOP}


def test_a_port_that_is_missing_is_waited_for(service):
    service.robot.motors.cut()
    service.start()
    service.wait_for_cause(Cause.LINK_LOST)
    service.robot.motors.restore()
    service.drive_until_armed()


def test_the_operators_stop_latches_and_rearm_is_a_word_of_its_own(service):
    service.start()
    service.drive_until_armed()
    assert service.say("stop").returncode == 0
    service.drive_until(lambda: service.moves(0.0), "it stands")
    assert service.status().mode is Mode.LATCHED
    assert service.say("rearm").returncode == 0
    service.drive_until_armed()


def test_a_rearm_is_refused_while_its_cause_holds_and_says_so(service):
    service.start()
    service.robot.motors.estop()
    service.wait_for_cause(Cause.CONTROLLER_ESTOP)
    refused = service.say("rearm")
    assert refused.returncode == 1
    assert "controller e-stop" in refused.stderr


def test_rearm_is_not_taken_where_observations_are(service):
    service.start()
    with raw(service) as sock:
        sock.send(encode({"type": "stop"}))
        assert reply(sock) == {"type": "done"}
        sock.send(encode({"type": "rearm"}))
        assert reply(sock)["type"] == "refused"
        sock.send(encode({"type": "status"}))
        assert reply(sock)["status"]["mode"] == "latched"


def test_the_operators_word_in_a_superseded_observation_stops_too(service):
    service.start()
    with raw(service) as sock:
        service.halt()
        for said in ("stop", "go"):
            sock.send(encode({"type": "observation", "fields": {**AHEAD, "said": said}, "age_ms": 0}))
        service.signal(signal.SIGCONT)
        service.wait_for_cause(Cause.OPERATOR_STOP)


def test_who_asks_for_records_hears_every_decision_and_every_transition(service):
    service.start()
    with service.client() as listener, service.client() as feeder:
        heard = listener.records()
        records, events = [], []
        while len(records) < 5 or records[-1].observation is None:  # of a period without any there is a record too
            feeder.observe(AHEAD)
            one = next(heard)
            (records if isinstance(one, CycleRecord) else events).append(one)
        assert [one.cycle for one in records] == list(range(records[0].cycle, records[0].cycle + len(records)))
        assert records[-1].observation.fields["said"] == "go"
    service.drive_until_armed()


def test_a_listener_that_does_not_read_loses_records_and_delays_nothing(service):
    service.start()
    with raw(service) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        deaf.send(encode({"type": "records"}))
        service.drive_until_armed()
        service.drive_until(lambda: service.status().counters["records_unheard"], "it has lost some")
    service.drive_until_armed()


def test_status_watch_prints_each_change_until_the_guard_ends(service):
    service.start()
    argv = [*EDGEGUARD, "status", "--watch", "--sockets", str(service.sockets)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watch:
        printed = [watch.stdout.readline()]
        assert printed[0].startswith("inhibited")
        service.drive_until_armed()
        with service.client() as client:
            client.stop()
        while printed[-1] and not printed[-1].startswith("latched: operator stop"):
            printed.append(watch.stdout.readline())
        assert printed[-1], printed
        service.signal(signal.SIGTERM)
        printed += watch.stdout
        assert watch.wait(timeout=PATIENCE_S) == 14
    assert all(before != after for before, after in itertools.pairwise(printed))


def test_status_says_what_the_codec_guarantees_and_what_becomes_of_the_record(service):
    service.start()
    service.drive_until(lambda: "is on the disk" in service.status().recorder, "it is recorded")
    status = service.status()
    assert "motor controller" in status.guarantee
    assert status.guarantee in " ".join(service.say("status").stdout.split())


# What it is told, rightly and wrongly.

GARBAGE = {
    "no JSON": b"\xff\xfe{",
    "no object": b"[]",
    "no type": b"{}",
    "an empty kind": encode({"type": ""}),
    "fields that are none": encode({"type": "observation", "fields": [], "age_ms": 0}),
    "nested fields": encode({"type": "observation", "fields": {"said": {"a": 1}}, "age_ms": 0}),
    "ages that are none": encode({"type": "observation", "fields": AHEAD, "age_ms": 0, "ages_ns": {"said": "x"}}),
    "deeper than any parser": b"[" * 10_000,
    "an exponent beyond every decimal": b'{"type": "observation", "fields": {}, "age_ms": 1E+9999999999999999999}',
    "an age beyond every float": encode(
        {"type": "observation", "fields": AHEAD, "age_ms": 0, "ages_ns": {"said": 10**400}}
    ),
    "oversized": encode({"type": "observation", "fields": {"said": "x" * PEER_LIMIT_BYTES}, "age_ms": 0}),
}


def test_garbage_is_refused_and_counted_and_harms_nobody(service):
    service.start()
    with raw(service) as sock:
        for name, packet in GARBAGE.items():
            sock.send(packet)
            assert reply(sock)["type"] == "refused", name
            time.sleep(0.03)  # so that the next is of a window of its own
    assert service.status().counters["messages_unusable"] == len(GARBAGE)
    service.drive_until_armed()


def flood(service: ServedRobot, packet: bytes, *, times: int) -> int:
    """Clients that never stop talking, until 100 frames have reached the motor controller all the same: none of them
    came late by anything that a machine does. How many were cut off.
    """
    service.drive_until_armed()
    motors, before_ns, cut_off = service.robot.motors, time.monotonic_ns(), 0
    while len(received := motors.report(since_ns=before_ns).received) < 100 or cut_off < 10:
        with raw(service) as sock:
            try:
                for _ in range(times):
                    sock.send(packet)
            except (BrokenPipeError, ConnectionResetError):
                cut_off += 1
    arrived_ns = [one.received_ns for one in received]
    assert max(after - before for before, after in itertools.pairwise(arrived_ns)) < LATE_NS
    return cut_off


def test_a_client_that_floods_is_cut_off_and_delays_no_frame(service):
    service.start()
    cut_off = flood(service, encode({"type": "observation", "fields": AHEAD, "age_ms": 0}), times=1_000)
    assert service.status().counters["clients_cut_off"] >= cut_off


def test_clients_that_flood_with_long_messages_are_cut_off_too(service):
    service.start()
    packet = encode({"type": "observation", "fields": {f"{number:03x}": 1.5 for number in range(1_600)}, "age_ms": 0})
    assert PEER_LIMIT_BYTES - 1_000 < len(packet) < PEER_LIMIT_BYTES
    assert flood(service, packet, times=100) <= service.status().counters["clients_cut_off"]


def test_more_clients_than_it_has_places_for_are_turned_away(service):
    service.start()
    socks = [raw(service) for _ in range(CLIENT_LIMIT)]
    with raw(service) as another:
        assert "clients are connected already" in reply(another)["error"]
    for sock in socks:
        sock.close()
    service.drive_until_armed()


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_another_user_is_kept_out_by_the_kernel_and_by_the_guard(service):
    with tempfile.TemporaryDirectory() as folder:  # a test's own is closed to others anyway
        service.sockets = Path(folder)
        service.sockets.chmod(0o755)
        service.start()
        assert "PermissionError" in said_by_another_user(service).stderr
        (service.sockets / OBSERVE_SOCKET).chmod(0o666)
        assert "refused" in said_by_another_user(service).stdout
        assert service.status().mode is not Mode.LATCHED


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_a_member_of_the_group_may_enter(service):
    with tempfile.TemporaryDirectory() as folder:
        service.sockets = Path(folder)
        service.sockets.chmod(0o755)
        service.start("--group", grp.getgrgid(NOBODY).gr_name)
        assert "done" in said_by_another_user(service).stdout
        assert "PermissionError" in said_by_another_user(service, CONTROL_SOCKET).stderr


NOBODY = 65534


_ANOTHER_USERS_STOP = """
import contextlib, os, socket, sys
os.setgroups([int(sys.argv[2])]); os.setgid(1); os.setuid(int(sys.argv[2]))
sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
sock.settimeout(60)
sock.connect(sys.argv[1])
with contextlib.suppress(BrokenPipeError):  # turned away already
    sock.send(b'{"type": "stop"}')
for _ in range(2):
    with contextlib.suppress(ConnectionResetError):  # turned away since
        print(sock.recv(4096).decode())
        break
"""


def said_by_another_user(service: ServedRobot, name: str = OBSERVE_SOCKET) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", _ANOTHER_USERS_STOP, str(service.sockets / name), str(NOBODY)]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


STAMPS = {
    "an age": ({"age_ms": 30}, NOW_NS - 30_000_000),
    "an age with a fraction": ({"age_ms": 0.25}, NOW_NS - 250_000),
    "a stamp": ({"captured_ns": NOW_NS - 5}, NOW_NS - 5),
    "neither": ({}, NO_STAMP_NS),
    "both": ({"captured_ns": NOW_NS, "age_ms": 1}, NO_STAMP_NS),
    "a negative age": ({"age_ms": -1}, NO_STAMP_NS),
    "an age that is none": ({"age_ms": math.nan}, NO_STAMP_NS),
    "an age in words": ({"age_ms": "0"}, NO_STAMP_NS),
    "an age that is true": ({"age_ms": True}, NO_STAMP_NS),
}


@pytest.mark.parametrize("name", STAMPS)
def test_an_observation_is_dated_by_its_stamp_or_by_its_age_and_never_by_nothing(name):
    dated, captured_ns = STAMPS[name]
    observation = received_observation({"type": "observation", "fields": AHEAD, **dated}, now_ns=NOW_NS)
    assert observation is not None
    assert observation.captured_ns == captured_ns
    schema = json.loads(MESSAGE_SCHEMA.read_text())
    valid = jsonschema.Draft202012Validator(schema).is_valid({"type": "observation", "fields": AHEAD, **dated})
    assert valid is (captured_ns != NO_STAMP_NS) or name == "an age that is none"  # JSON has no NaN


def test_the_schema_is_printed_and_knows_every_kind_of_message(service):
    schema = json.loads(service.say("run", "--schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert [kind["properties"]["type"]["const"] for kind in schema["oneOf"]] == [
        "observation",
        "stop",
        "rearm",
        "status",
        "records",
    ]
    assert str(PEER_LIMIT_BYTES) in schema["description"]


# Signals.


def sent_around(log: Path, cause: Cause) -> list[tuple[int, SetPoint]]:
    """From the last set-point before the cause was raised on, each with the guard's own time."""
    sent, raised = [], False
    for step in steps_of(read_flight(log)):
        events = step.effects.events
        raised = raised or any(one.name == EventName.RAISED and one.detail.startswith(cause.value) for one in events)
        if step.effects.send is not None:
            sent = [*sent, (step.now_ns, step.effects.send)] if raised else [(step.now_ns, step.effects.send)]
    return sent


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_it_slows_the_robot_down_and_ends_at_standstill(service, number):
    service.start()
    service.drive_until_armed()
    service.signal(number)
    assert service.wait() == 0
    service.manager.wait_for("STOPPING=1")
    wait_for(lambda: service.moves(0.0), "it stands")
    assert not list(service.sockets.iterdir())
    _, *stops = sent = sent_around(service.robot.folder / "state" / "flight.log", Cause.SHUTDOWN)
    assert {set_point.action for _, set_point in stops} == {Action.STOP}
    assert stops[-1][1].axes["linear"] == 0.0
    for (earlier_ns, before), (now_ns, after) in itertools.pairwise(sent):  # a ramp, as steep as for an obstacle
        slower, by_ns = before.axes["linear"] - after.axes["linear"], now_ns - earlier_ns
        assert 0 <= slower <= 4 * by_ns / NS_PER_S + 1e-6 or by_ns > LINK_TIMEOUT_NS, "else it has stopped by itself"


def test_interrupted_while_it_starts_it_ends_at_once_and_without_a_word(service):
    with service.log.open("ab") as log:
        environment = {**os.environ, **service.manager.environment}
        service.process = subprocess.Popen(service.run_command, stderr=log, env=environment)
    service.manager.wait_for("STATUS=starting")
    service.signal(signal.SIGINT)
    assert service.wait() in (-signal.SIGINT, 0)  # 0: it had started already, and left in order
    assert "Traceback" not in service.log.read_text()


def test_a_reload_with_a_wrong_file_keeps_the_old_one_and_goes_on(service):
    service.start()
    service.drive_until_armed()
    good = service.robot.config.read_text()
    service.robot.config.write_text(good.replace("tick_ms", "tik_ms"))
    service.signal(signal.SIGHUP)
    service.drive_until(lambda: "tik_ms" in service.log.read_text(), "the mistake is named")
    service.manager.wait_for("reload refused, exit code 2")
    assert service.process.poll() is None
    service.robot.config.write_text(good)  # the worker of the test reads it too
    service.drive_until_armed()
    assert Cause.CONFIGURATION_RELOAD not in service.status().causes


def test_a_reload_with_a_good_file_comes_to_rest_and_begins_anew_in_the_same_process(service):
    service.start()
    service.drive_until_armed()
    service.robot.config.write_text(service.robot.config.read_text().replace("forward = 0.4", "forward = 0.2"))
    service.signal(signal.SIGHUP)
    service.manager.wait_for("RELOADING=1")
    service.manager.wait_for("READY=1")
    service.drive_until_armed(speed=0.2)
    assert service.status().guard_pid == service.process.pid


# The manager.


def test_the_watchdog_is_fed_by_the_tick_and_by_nothing_else(service):
    service.start()
    for _ in range(3):
        service.manager.wait_for("WATCHDOG=1")
    service.halt()
    service.manager.take()  # what was on its way
    with raw(service) as sock:
        sock.send(encode({"type": "status"}))
        time.sleep(0.5)
        assert service.manager.take() == []
        service.signal(signal.SIGCONT)
        assert reply(sock)["type"] == "status"
    service.manager.wait_for("WATCHDOG=1")


def fill(address: str, packet: bytes) -> None:
    """Until not even a new socket's first packet finds room there: each may have only so many on their way."""
    sent = 1
    while sent:
        sent = 0
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as others, contextlib.suppress(BlockingIOError):
            others.setblocking(False)
            while True:
                sent += others.sendto(packet, address)


def test_what_the_managers_full_socket_does_not_take_is_said_again(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        fill(str(tmp_path / "notify"), b"FDSTORE=1")
        manager.setblocking(False)
        notifier = Notifier(str(tmp_path / "notify"))
        notifier.say("READY=1", "STATUS=inhibited")
        with contextlib.suppress(BlockingIOError):
            while manager.recv(4096) == b"FDSTORE=1":
                pass
        for _ in range(2):
            notifier.say("WATCHDOG=1", "STATUS=armed")
        notifier.close()
        assert manager.recv(4096) == b"WATCHDOG=1\nSTATUS=armed\nREADY=1"
        assert manager.recv(4096) == b"WATCHDOG=1\nSTATUS=armed"


def test_a_second_instance_is_refused_with_an_exit_code_that_does_not_restart(service):
    service.start()
    for sockets in (service.sockets, service.robot.folder / "other"):  # the same sockets; the same state directory
        again = service.say(*service.run_command[3:], "--sockets", str(sockets))
        assert again.returncode == 9, again.stderr
        assert "another guard" in again.stderr
    assert service.status().guard_pid == service.process.pid


def test_sockets_that_a_killed_guard_has_left_are_taken_over(service):
    service.start()
    service.signal(signal.SIGKILL)
    service.wait()
    assert (service.sockets / CONTROL_SOCKET).exists()
    gone = service.say("status")
    assert gone.returncode == 14
    assert "no guard listens" in gone.stderr
    service.start()
    assert service.status().guard_pid == service.process.pid


MISTAKES = {
    "a wrong configuration": (2, "tik_ms", lambda robot: robot.config.write_text("[timing]\ntik_ms = 3\n")),
    "no profile": (7, "edgeguard calibrate", lambda robot: robot.profile.unlink()),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_a_restart_would_not_mend_has_its_own_exit_code(service, name):
    code, said, spoil = MISTAKES[name]
    spoil(service.robot)
    for more in ((), ("--check",)):
        done = service.say(*service.run_command[3:], *more)
        assert done.returncode == code
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_an_unknown_group_is_named(service):
    done = service.say(*service.run_command[3:], "--check", "--operators", "nobody-has-it")
    assert done.returncode == 2
    assert "groupadd" in done.stderr
