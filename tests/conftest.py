"""Tests side by side (``pytest -n 2``), but for those that must have the machine to themselves; none spoils the floats.

A test marked ``alone`` measures, or computes on every core: it waits until no other runs, and the others wait for it.
The locks are on this file and its folder, so that nothing is left behind; a test's own time-out begins with its turn.
The files with a ``slow`` test begin; those with one that is ``alone`` come last.

A slice: ``pytest -m "not slow and not model" tests/test_guard_*.py`` (35 s), or any one file. ``model`` tests build
the real 135M model once, into the cache. No test may count on being scheduled in time: what comes by itself is waited
for (``patience.wait_for``), and who must be on time has a clock of his own. What stands in for the real thing, working:

    fake_worker.py     the model's process, its latency and faults scripted; with ``shared_clock.py`` in no time at all
    tiny.py            a real model of a few hundred kB; ``engine_setup.py`` loads it, ``real.py`` the 135M one
    robot.py           a guard with that worker and a motor controller on a pty; ``service_rig.py`` as a service
    guard_rig.py       the guard's core alone, in virtual time; ``plant.py`` is what it moves
    bench_robot.py     what the tests of the bench measure; ``doctor_rig.py`` what doctor looks at
    systemd_machine.py a real systemd in namespaces; ``cpu_quota.py`` a real quota; ``fake_ros`` what we use of ROS
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile(
    "shared machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("shared machine")  # an example may take as long as whoever else computes here lets it

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a job in the background of a shell: so would be whom we start
    signal.signal(signal.SIGINT, signal.default_int_handler)

QUEUE, ROOM = Path(__file__), Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    config.option.loadscopereorder = False  # ours is the order: pytest-xdist begins with the file of the most tests


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take long come first, so that nobody works on one when all others have ended; those in which a
    test waits for an empty room come last."""
    slow, alone = ({item.path for item in items if item.get_closest_marker(name)} for name in ("slow", "alone"))
    items.sort(key=lambda item: (item.path in alone, item.path not in slow))


@contextlib.contextmanager
def locked(path: Path, how: int) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # a child that was forked meanwhile may still have it open
        os.close(descriptor)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if not hasattr(item.config, "workerinput"):  # nobody is beside us
        return (yield)
    with contextlib.ExitStack() as turn:
        with locked(QUEUE, fcntl.LOCK_EX):  # whoever waits for an empty room lets nobody in before
            turn.enter_context(locked(ROOM, fcntl.LOCK_EX if item.get_closest_marker("alone") else fcntl.LOCK_SH))
        return (yield)


@pytest.fixture(autouse=True)
def subnormal_floats() -> Iterator[None]:
    """A session that is opened in the tests' own thread takes them away from all tests behind it."""
    yield
    assert sys.float_info.min / 2 > 0, "no subnormal floats from here on: open the session as engine_setup.apart does"
