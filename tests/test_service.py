"""The guard as a service: a real process on a real pty, with clients, an operator, signals and a manager."""

from __future__ import annotations

import contextlib
import grp
import itertools
import json
import math
import os
import select
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
from robot import AHEAD, Robot, motors
from service_rig import EDGEGUARD, ServedRobot, served

from edgeguard.channel import PEER_LIMIT_BYTES, encode
from edgeguard.clock import NS_PER_S
from edgeguard.service.entrance import CLIENT_LIMIT
from edgeguard.service.sockets import CONTROL_SOCKET, MESSAGE_SCHEMA, NO_STAMP_NS, OBSERVE_SOCKET, received_observation
from edgeguard.types import Action, Cause, CycleRecord, Mode

NOW_NS = 7_000 * NS_PER_S


@pytest.fixture
def service(tmp_path) -> Iterator[ServedRobot]:
    with motors() as simulator, served(Robot(tmp_path, simulator)) as one:
        yield one


def raw(service: ServedRobot, name: str = OBSERVE_SOCKET) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.settimeout(5)
    sock.connect(str(service.sockets / name))
    return sock


def reply(sock: socket.socket) -> dict:
    return json.loads(sock.recv(1 << 17))


# What it does.


def test_observations_go_in_by_the_socket_and_commands_come_out_on_the_wire(service):
    service.start()
    service.drive_until_armed()
    assert service.robot.motors.where().axes["linear"] == pytest.approx(0.4, abs=0.05)
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
    assert Cause.LINK_LOST in service.status().causes
    service.robot.motors.restore()
    service.drive_until_armed()


def test_the_operators_stop_latches_and_rearm_is_a_word_of_its_own(service):
    service.start()
    service.drive_until_armed()
    assert service.say("stop").returncode == 0
    service.drive(0.3)
    assert service.status().mode is Mode.LATCHED
    assert service.robot.motors.where().axes["linear"] == 0.0
    assert service.say("rearm").returncode == 0
    service.drive_until_armed()


def test_a_rearm_is_refused_while_its_cause_holds_and_says_so(service):
    service.start()
    service.robot.motors.estop()
    time.sleep(0.3)
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
        service.signal(signal.SIGSTOP)
        for said in ("stop", "go"):
            sock.send(encode({"type": "observation", "fields": {**AHEAD, "said": said}, "age_ms": 0}))
        service.signal(signal.SIGCONT)
        time.sleep(0.2)
    assert Cause.OPERATOR_STOP in service.status().causes


def test_who_asks_for_records_hears_every_decision_and_every_transition(service):
    service.start()
    with service.client() as listener, service.client() as feeder:
        heard = listener.records()
        records, events = [], []
        while len(records) < 5:
            feeder.observe(AHEAD)
            one = next(heard)
            (records if isinstance(one, CycleRecord) else events).append(one)
        assert [one.cycle for one in records] == list(range(records[0].cycle, records[0].cycle + 5))
        assert records[-1].observation.fields["said"] == "go"
    service.drive_until_armed()


def test_a_listener_that_does_not_read_loses_records_and_delays_nothing(service):
    service.start()
    with raw(service) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        deaf.send(encode({"type": "records"}))
        service.drive_until_armed()
        give_up = time.monotonic() + 20
        while service.status().counters["records_unheard"] == 0:
            assert time.monotonic() < give_up
            service.drive(0.5)
    service.drive_until_armed()


def test_status_watch_prints_each_change_until_the_guard_ends(service):
    service.start()
    argv = [*EDGEGUARD, "status", "--watch", "--sockets", str(service.sockets)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watch:
        first = watch.stdout.readline()
        assert first.startswith("inhibited")
        service.drive_until_armed()
        with service.client() as client:
            client.stop()
        service.drive(1.0)
        service.signal(signal.SIGTERM)
        rest = watch.stdout.read().splitlines()
        assert watch.wait(timeout=10) == 14
    assert any(line.startswith("latched: operator stop") for line in rest)
    assert all(before != after for before, after in itertools.pairwise([first.rstrip(), *rest]))


def test_status_says_what_the_codec_guarantees_and_what_becomes_of_the_record(service):
    service.start()
    service.drive(1.5)
    status = service.status()
    assert "motor controller" in status.guarantee
    assert "is on the disk" in status.recorder
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
            time.sleep(0.03)  # within the number of messages that are heard
    assert service.status().counters["messages_unusable"] == len(GARBAGE)
    service.drive_until_armed()


def test_a_client_that_floods_is_cut_off_and_delays_no_frame(service):
    service.start()
    service.drive_until_armed()
    before_ns = time.monotonic_ns()
    packet = encode({"type": "observation", "fields": AHEAD, "age_ms": 0})
    cut_off = 0
    for _ in range(20):
        with raw(service) as sock:
            try:
                for _ in range(1_000):
                    sock.send(packet)
            except (BrokenPipeError, ConnectionResetError):
                cut_off += 1
    received = [one.received_ns for one in service.robot.motors.report(since_ns=before_ns).received]
    assert cut_off > 10
    assert service.status().counters["clients_cut_off"] >= cut_off
    assert max(after - before for before, after in itertools.pairwise(received)) < NS_PER_S // 5


def test_clients_that_flood_with_long_messages_are_cut_off_too(service):
    service.start()
    service.drive_until_armed()
    before_ns = time.monotonic_ns()
    numbers = {f"{number:03x}": 1.5 for number in range(1_600)}
    packet = encode({"type": "observation", "fields": numbers, "age_ms": 0})
    assert PEER_LIMIT_BYTES - 1_000 < len(packet) < PEER_LIMIT_BYTES
    for _ in range(20):
        with raw(service) as sock, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(100):
                sock.send(packet)
    received = [one.received_ns for one in service.robot.motors.report(since_ns=before_ns).received]
    assert service.status().counters["clients_cut_off"] >= 10
    assert max(after - before for before, after in itertools.pairwise(received)) < NS_PER_S // 5


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
sock.settimeout(5)
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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_it_slows_the_robot_down_and_ends_at_standstill(service, number):
    service.start()
    service.drive_until_armed()
    told_ns = time.monotonic_ns()
    service.signal(number)
    assert service.wait() == 0
    service.manager.listen(0.2)
    assert "STOPPING=1" in service.manager.told
    report = service.robot.motors.report(since_ns=told_ns)
    speeds = [receipt.axes["linear"] for receipt in report.received if receipt.action is Action.STOP]
    assert speeds == sorted(speeds, reverse=True)
    assert len({speed for speed in speeds if 0 < speed < 0.4}) >= 5  # a ramp, not a step
    assert speeds[-1] == 0.0
    assert service.robot.motors.where().axes["linear"] == 0.0
    assert not list(service.sockets.iterdir())


def test_interrupted_while_it_starts_it_ends_at_once_and_without_a_word(service):
    with service.log.open("ab") as log:
        environment = {**os.environ, **service.manager.environment}
        service.process = subprocess.Popen(service.run_command, stderr=log, env=environment)
    service.manager.wait_for("STATUS=starting")
    service.signal(signal.SIGINT)
    assert service.wait() == -signal.SIGINT
    assert "Traceback" not in service.log.read_text()


def test_a_reload_with_a_wrong_file_keeps_the_old_one_and_goes_on(service):
    service.start()
    service.drive_until_armed()
    good = service.robot.config.read_text()
    service.robot.config.write_text(good.replace("tick_ms", "tik_ms"))
    with service.client() as client:
        service.signal(signal.SIGHUP)
        give_up = time.monotonic() + 10
        while "tik_ms" not in service.log.read_text():
            assert time.monotonic() < give_up
            client.observe(AHEAD)
            time.sleep(0.05)
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
    service.drive_until_armed()
    assert service.status().guard_pid == service.process.pid
    assert service.robot.motors.where().axes["linear"] == pytest.approx(0.2, abs=0.05)


# The manager.


def test_the_watchdog_is_fed_by_the_tick_and_by_nothing_else(service):
    service.start()
    assert service.manager.listen(0.5).count("WATCHDOG=1") >= 3
    service.signal(signal.SIGSTOP)
    service.manager.listen(0.1)  # what was on its way
    with raw(service) as sock:
        sock.send(encode({"type": "status"}))
        assert service.manager.listen(0.6) == []
        service.signal(signal.SIGCONT)
        assert select.select([sock], [], [], 5)[0]
    assert "WATCHDOG=1" in service.manager.listen(0.5)


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
