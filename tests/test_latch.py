"""The latch is the existence of a file; a directory that cannot be relied on counts as latched. One guard each."""

from __future__ import annotations

import subprocess
import sys

import pytest

from edgeguard.errors import AlreadyRunningError, ConfigError
from edgeguard.runtime.latch import LATCH_FILE, Latch
from edgeguard.runtime.lock import lock_state_directory
from edgeguard.runtime.parts import WORKER_LOG, open_worker_log


def test_an_empty_or_missing_directory_is_not_latched(tmp_path):
    assert not Latch(tmp_path / "new" / "state").latched


def test_the_latch_outlives_its_process_and_is_removed_by_the_operator(tmp_path):
    latch = Latch(tmp_path)
    latch.set(True)
    latch.close()
    assert (tmp_path / LATCH_FILE).exists()
    again = Latch(tmp_path)
    assert again.latched
    again.set(False)
    again.close()
    assert not Latch(tmp_path).latched


def test_a_directory_that_cannot_be_used_counts_as_latched_and_names_the_remedy(tmp_path):
    (tmp_path / "file").write_text("")
    latch = Latch(tmp_path / "file")
    assert latch.latched
    assert "state_directory" in (latch.problem or "")


def test_a_directory_that_vanishes_later_is_noticed_without_an_exception(tmp_path):
    directory = tmp_path / "state"
    latch = Latch(directory)
    directory.rmdir()
    latch.set(True)
    latch.close()
    assert "state_directory" in (latch.problem or "")


def test_on_a_full_disk_the_lock_is_taken_all_the_same(tmp_path):
    code = (
        "import pathlib, resource, sys; from edgeguard.runtime.lock import lock_state_directory as lock;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); folder = pathlib.Path(sys.argv[1]); held = lock(folder)\n"
        "try: lock(folder)\n"
        "except Exception as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "another guard (process unknown)" in done.stdout


def test_a_second_guard_is_refused_and_told_who_holds_the_directory(tmp_path):
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, pathlib; from edgeguard.runtime.lock import lock_state_directory as lock;"
            f"held = lock(pathlib.Path({str(tmp_path)!r})); print('held', flush=True); sys.stdin.read()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(AlreadyRunningError, match=f"process {holder.pid}"):
            lock_state_directory(tmp_path)
        holder.kill()  # the lock ends with its process, however that ends
        holder.wait()
    lock_state_directory(tmp_path).close()


def test_a_state_directory_that_is_a_file_is_a_mistake_of_the_configuration(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="state_directory"):
        lock_state_directory(tmp_path / "file")


def test_the_workers_log_goes_on_with_the_next_start(tmp_path):
    for words in (b"first\n", b"second\n"):
        with open_worker_log(tmp_path) as log:
            log.write(words)
    assert (tmp_path / WORKER_LOG).read_bytes() == b"first\nsecond\n"


def test_a_log_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / WORKER_LOG).mkdir()
    with pytest.raises(ConfigError, match=r"worker\.log: cannot be written"):
        open_worker_log(tmp_path)
