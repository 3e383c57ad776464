"""A robot does not phone home: neither guard nor worker opens a socket but local ones or leaves anything at home.

A library of ours stands between each of their processes and the C library and writes down every address of the
internet's that it connects, sends or listens to, and every name that it looks up; native code (ONNX Runtime's telemetry
is some) goes through it too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine_setup import observation, write_config
from tests.test_engine_worker import Worker
from tests.tiny import tiny_model

COMPILER = shutil.which("gcc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no gcc to make the witness with")

WITNESS = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static void write_down(const char *text) {
    FILE *file = fopen(getenv("WITNESS_FILE"), "a");
    if (file != NULL) { fprintf(file, "%s\n", text); fclose(file); }
}
static void note(const struct sockaddr *address) {
    char text[INET6_ADDRSTRLEN] = "";
    if (address == NULL) return;
    if (address->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, text, sizeof text);
    else if (address->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)address)->sin6_addr, text, sizeof text);
    else
        return;
    write_down(text);
}
int bind(int fd, const struct sockaddr *address, socklen_t length) {
    note(address);
    return ((int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "bind"))(fd, address, length);
}
int connect(int fd, const struct sockaddr *address, socklen_t length) {
    note(address);
    return ((int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect"))(fd, address, length);
}
ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *address, socklen_t length) {
    note(address);
    return ((ssize_t (*)(int, const void *, size_t, int, const struct sockaddr *, socklen_t))dlsym(
        RTLD_NEXT, "sendto"))(fd, data, size, flags, address, length);
}
ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    note(message->msg_name);
    return ((ssize_t (*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg"))(fd, message, flags);
}
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    if (node != NULL) write_down(node);
    return ((int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))dlsym(
        RTLD_NEXT, "getaddrinfo"))(node, service, hints, found);
}
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Of a process that is watched, with a home of its own and no word about telemetry."""
    source, library = tmp_path / "witness.c", tmp_path / "witness.so"
    source.write_text(WITNESS)
    subprocess.run([str(COMPILER), "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    home = tmp_path / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ORT_", "XDG_", "EDGEGUARD_"))}
    watched = {"HOME": str(home), "LD_PRELOAD": str(library), "WITNESS_FILE": str(tmp_path / "seen")}
    return {**kept, **watched}


def test_the_witness_sees_what_leaves_the_machine(environment: dict[str, str], tmp_path: Path) -> None:
    """Else the test below could not fail. 192.0.2.1 is nobody's (RFC 5737)."""
    script = (
        "import socket\n"
        "s = socket.socket(); s.setblocking(False); s.connect_ex(('192.0.2.1', 9))\n"
        "try: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.2', 9))\n"
        "except OSError: pass\n"
        "try: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendmsg([b'x'], [], 0, ('192.0.2.3', 9))\n"
        "except OSError: pass\n"
        "socket.socket().bind(('0.0.0.0', 0))\n"
        "socket.getaddrinfo('192.0.2.4', 9, flags=socket.AI_NUMERICHOST)\n"
    )
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
    assert (tmp_path / "seen").read_text().split() == ["192.0.2.1", "192.0.2.2", "192.0.2.3", "0.0.0.0", "192.0.2.4"]


def test_a_worker_opens_no_connection_and_leaves_nothing_at_home(environment: dict[str, str], tmp_path: Path) -> None:
    model = tiny_model(tmp_path)
    with Worker(write_config(tmp_path), model, environment=environment) as worker:
        worker.next("ready")
        for number in range(20):
            worker.ask(number, observation())
            worker.answer()
    assert not (tmp_path / "seen").exists(), (tmp_path / "seen").read_text()
    assert not list((tmp_path / "home").rglob("*"))


GUARDED = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from robot import Robot, drive, motors
folder = Path({folder!r})
with motors() as simulator, Robot(folder, simulator).guarded() as guard:
    while not (folder / "state" / "flight.log").exists():
        drive(guard, 10)
"""


def test_nor_does_anything_else_of_a_run(environment: dict[str, str], tmp_path: Path) -> None:
    """The guard, its recorder, the spawner, whoever looks at the board, and the robot's own handle."""
    folder = tmp_path / "robot"
    folder.mkdir()
    script = GUARDED.format(tests=str(Path(__file__).parent), folder=str(folder))
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
    assert (folder / "state" / "flight.log").stat().st_size > 0, "it did run"
    assert not (tmp_path / "seen").exists(), (tmp_path / "seen").read_text()
    assert not list((tmp_path / "home").rglob("*"))
