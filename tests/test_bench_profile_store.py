"""Profiles are written whole or not at all, and found again by what they belong to."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from bench_robot import made_profile

from edgeguard.bench.calibration.profile_store import cached_file, write_profile
from edgeguard.budget import load_profile
from edgeguard.clock import NS_PER_MS
from edgeguard.errors import ProfileError

WRITE_FOR_EVER = """
    import dataclasses, sys
    from pathlib import Path
    sys.path.insert(0, {tests!r})
    from bench_robot import made_profile
    from edgeguard.bench.calibration.profile_store import write_profile
    profiles = [made_profile(latencies_ms=[10.0] * n) for n in (3_000, 6_000)]
    print("writing", flush=True)
    while True:
        for profile in profiles:
            write_profile(profile, Path({file!r}))
"""


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "robot.profile.json"
    write_profile(made_profile(), file)
    assert load_profile(file) == made_profile()
    assert list(file.parent.iterdir()) == [file]


def test_a_writer_killed_at_any_moment_leaves_a_whole_profile(tmp_path: Path) -> None:
    file = tmp_path / "robot.profile.json"
    write_profile(made_profile(), file)
    script = textwrap.dedent(WRITE_FOR_EVER.format(tests=str(Path(__file__).parent), file=str(file)))
    for wait_s in (0.0, 0.01, 0.02, 0.04):
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"writing\n"
            time.sleep(wait_s)
            writer.send_signal(signal.SIGKILL)
        assert len(load_profile(file).requests) in (300, 3_000, 6_000)


def test_a_profile_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "robot.profile.json"
    write_profile(made_profile(), file)
    broken = made_profile(created="\ud800")  # half a character: no UTF-8 has it
    with pytest.raises(UnicodeEncodeError):
        write_profile(broken, file)
    assert load_profile(file) == made_profile()
    assert list(tmp_path.iterdir()) == [file]


def test_a_place_that_takes_no_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file, no folder")
    with pytest.raises(ProfileError, match=r"taken/robot\.json: the profile cannot be written: .*name another --out"):
        write_profile(made_profile(), tmp_path / "taken" / "robot.json")


def test_the_cache_has_a_file_for_every_fingerprint_and_period(tmp_path: Path) -> None:
    def file(model: str, period_ms: int) -> Path:
        return cached_file({"model": model}, period_ns=period_ms * NS_PER_MS, cache_dir=tmp_path)

    assert file("a", 200) == file("a", 200)
    assert len({file("a", 200), file("b", 200), file("a", 100)}) == 3
    assert file("a", 200).is_relative_to(tmp_path)
