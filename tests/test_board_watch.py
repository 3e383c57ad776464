"""The board's watch as a process of its own: what it tells, and what its silence and its end mean."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from boards import GENERIC, make_tree
from patience import PATIENCE_S, wait_for

from edgeguard.board import Thermometer, find_board
from edgeguard.channel import Channel, decode, encode
from edgeguard.clock import NS_PER_MS, NS_PER_S, SystemClock
from edgeguard.messages import board_message, read_board
from edgeguard.runtime.board_watch import SILENT_NS, BoardWatch, back_off_ns, watch
from edgeguard.types import BoardState, ThermalLevel

STATE = BoardState(
    level=ThermalLevel.HOT, observed=True, critical=False, hottest_c=81.25, read_ns=5, detail="cpu-thermal 81.2 °C"
)


def test_a_look_arrives_as_it_was_sent() -> None:
    for state in (
        STATE,
        BoardState(level=ThermalLevel.NOMINAL, observed=False, critical=True, hottest_c=None, read_ns=0),
    ):
        message = decode(encode(board_message(state)))
        assert message is not None
        assert read_board(message) == state


@pytest.mark.parametrize(
    "wrong",
    [
        {"level": 3}, {"level": "hot"}, {"level": True}, {"level": None}, {"read_ns": 1.5}, {"read_ns": None},
        {"hottest_c": "81"}, {"hottest_c": []},
    ],
)  # fmt: skip
def test_a_message_of_another_shape_is_none(wrong: dict[str, object]) -> None:
    assert read_board({**board_message(STATE), **wrong}) is None


def test_it_tells_how_the_board_is_until_the_guards_end_closes(tmp_path: Path) -> None:
    ours, theirs = Channel.pair()
    board = find_board(make_tree(tmp_path, GENERIC))
    channel = Channel(theirs)
    thread = threading.Thread(
        target=watch,
        args=(channel, Thermometer(board, clock=SystemClock())),
        kwargs={"look_every_ns": NS_PER_MS},
    )
    thread.start()
    states: list[BoardState] = []
    while len(states) < 5:
        assert select.select([ours], [], [], PATIENCE_S)[0]
        states += [state for message in ours.receive() if (state := read_board(message)) is not None]
    ours.close()
    thread.join(timeout=PATIENCE_S)
    assert not thread.is_alive()
    channel.close()
    assert {state.hottest_c for state in states} == {48.5}
    assert states[0].read_ns < states[-1].read_ns


def _looker(board_watch: BoardWatch) -> int:
    """The process that looks: its keeper's only child."""
    [pid] = Path(f"/proc/{board_watch.pid}/task/{board_watch.pid}/children").read_text().split()
    return int(pid)


def _first_look(board_watch: BoardWatch) -> BoardState:
    return wait_for(lambda: board_watch.newest(0), "a first look")


def _is_gone(pid: int) -> bool:
    """A process that has ended, and that nobody has asked for, counts as gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_as_a_process_it_looks_at_this_machine_and_ends_with_the_guard() -> None:
    clock = SystemClock()
    board_watch = BoardWatch(now_ns=clock.now_ns(), soaked_c=71.5)
    state = _first_look(board_watch)
    assert state.read_ns <= clock.now_ns()
    looker = _looker(board_watch)
    board_watch.close()
    for pid in (board_watch.pid, looker):
        wait_for(lambda pid=pid: _is_gone(pid), "it ends with the guard")


def test_it_has_ordinary_priority_whoever_starts_it() -> None:
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        pytest.skip("real-time priority is not permitted here")
    try:
        board_watch = BoardWatch(now_ns=0)
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    _first_look(board_watch)
    assert os.sched_getscheduler(_looker(board_watch)) == os.SCHED_OTHER
    board_watch.close()


def test_when_it_is_dead_the_board_is_unobserved_which_is_said_once() -> None:
    board_watch = BoardWatch(now_ns=0)
    state = _first_look(board_watch)
    for pid in (board_watch.pid, _looker(board_watch)):
        with suppress(ProcessLookupError):  # the second dies with the first
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda pid=pid: _is_gone(pid), "it is dead")
    while (said := board_watch.newest(0)) is not None:  # before its death
        state = said
    late_ns = state.read_ns + SILENT_NS + 2 * NS_PER_S
    silence = board_watch.newest(late_ns)
    assert silence is not None
    assert (silence.observed, silence.level) == (False, state.level)
    assert "silent for" in silence.detail
    assert board_watch.newest(late_ns + NS_PER_S) is None
    board_watch.close()


def test_another_looks_when_the_one_that_did_is_killed() -> None:
    board_watch = BoardWatch(now_ns=0)
    _first_look(board_watch)
    killed = _looker(board_watch)
    os.kill(killed, signal.SIGKILL)
    killed_ns = SystemClock().now_ns()
    while _first_look(board_watch).read_ns <= killed_ns:
        pass
    assert _looker(board_watch) != killed
    board_watch.close()


@pytest.mark.parametrize(("deaths", "seconds"), [(1, 1), (2, 2), (3, 4), (5, 16), (6, 30), (1000, 30)])
def test_the_next_one_looks_later_after_each_death(deaths: int, seconds: int) -> None:
    assert back_off_ns(deaths) == seconds * NS_PER_S


def test_it_ends_when_the_guard_is_killed() -> None:
    guard = (
        "import time\nfrom edgeguard.runtime.board_watch import BoardWatch\n"
        "print(BoardWatch(now_ns=0).pid, flush=True)\ntime.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", guard], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.kill()
    wait_for(lambda: _is_gone(pid), "it ends")


def test_it_knows_neither_numpy_nor_the_model() -> None:
    code = (
        "import sys\nimport edgeguard.runtime.board_watch\n"
        "print({'numpy', 'onnxruntime', 'tokenizers', 'rich', 'psutil'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "set()"
