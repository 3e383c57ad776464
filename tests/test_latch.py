"""The latch is the existence of a file; a directory that cannot be relied on counts as latched. One guard each."""

from __future__ import annotations

import subprocess
import sys

import pytest

from edgeguard.errors import AlreadyRunningError, ConfigError
from edgeguard.runtime.latch import LATCH_FILE, Latch
from edgeguard.runtime.lock import lock_state_directory


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
