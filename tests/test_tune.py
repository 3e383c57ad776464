"""Tuning: the setting with the best tail is kept, only if it really is better, and only its keys change in the file."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from bench_robot import config_text, fake_command
from fake_worker import write_behaviour
from shared_clock import SharedClock

from edgeguard.bench.speed.setting import KNOBS, Setting, alternatives, configured, written
from edgeguard.bench.speed.tune import FINAL, Round, Tried, Tuning, better, tune
from edgeguard.cli.main import main
from edgeguard.cli.tune import report
from edgeguard.clock import NS_PER_MS
from edgeguard.config import Config, load_config
from edgeguard.errors import ConfigError, WorkerError
from tests.engine_setup import load, observation, write_config
from tests.tiny import tiny_model

MODEL = '\n[model]  # what answers\nfolder = "./model"\nthreads = 0  # all of them\n\n# the robot\'s own\n'
FASTER = {"session.dynamic_block_base": "2"}


def robot(folder: Path, *, period_ms: int = 10) -> Config:
    file = folder / "robot.toml"
    text = config_text(period_ms=period_ms).replace("[answer.schema]", "[answer.schema]  # finite")
    file.write_text(f"# my robot\n{MODEL}{text.lstrip()}")
    return load_config(file)


def worker(behaviour: Callable[[Setting], dict[str, object]], *, clock: Path) -> Callable[[Path], Sequence[str]]:
    """A fake one that behaves by its setting, and whose time is ``clock``'s."""

    def command(file: Path) -> Sequence[str]:
        keys = behaviour(configured(load_config(file)))
        write_behaviour(file, **{"passes": [1], "token_ms": 0.0, "overhead_ms": 0.0, "clock": str(clock), **keys})
        return fake_command(file, None)

    return command


def tuned(config: Config, behaviour: Callable[[Setting], dict[str, object]], *, cores: int = 2) -> Tuning:
    clock = config.file.with_name("clock")
    return tune(
        config,
        command=worker(behaviour, clock=clock),
        processors=range(cores),
        clock=SharedClock(clock),
        share=0.9,
        requests=12,
    )


def test_what_has_the_best_tail_is_found_and_proven_once_more(tmp_path: Path) -> None:
    def behaviour(setting: Setting) -> dict[str, object]:
        """Nothing but the block base helps."""
        if setting.session_options.get("session.dynamic_block_base") == "2":
            return {"base_ms": 5}
        return {"base_ms": 6 if setting == Setting(threads=0) else 7}

    tuning = tuned(robot(tmp_path), behaviour)
    assert tuning.before == Setting(threads=0)
    assert tuning.found == Setting(threads=0, session_options=FASTER)
    assert [held.knob for held in tuning.rounds] == [*KNOBS, FINAL]
    final = tuning.rounds[-1]
    assert [one.setting for one in final.tried] == [tuning.before, tuning.found]
    assert final.tried[1].tail_ns < final.tried[0].tail_ns
    assert final.tried[1].better >= 0.95
    left = {file.name for file in tmp_path.iterdir() if not file.name.endswith(".fake_worker.json")}
    assert left == {"robot.toml", "clock"}, "scratch files are gone"


def test_where_all_are_alike_the_configured_one_stays(tmp_path: Path) -> None:
    tuning = tuned(robot(tmp_path), lambda setting: {"base_ms": 3 if setting == Setting(threads=0) else 6})
    assert tuning.found == tuning.before
    assert [held.kept for held in tuning.rounds] == [0] * len(KNOBS), "and no final is held"


def test_a_worker_that_fails_ends_it_with_its_words(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="the worker ended a request as 'error'"):
        tuned(robot(tmp_path), lambda _: {"faults": {"7": "error"}})


def test_only_the_cpu_is_tuned(tmp_path: Path) -> None:
    config = robot(tmp_path)
    config.file.write_text(config.file.read_text().replace("threads = 0", 'provider = "cuda"\nthreads = 0'))
    with pytest.raises(ConfigError, match=r"model\.provider is 'cuda'"):
        tuned(load_config(config.file), lambda _: {})


@pytest.mark.parametrize(
    ("knob", "threads", "cores", "expected"),
    [
        ("threads", 0, 1, []),
        ("threads", 0, 2, ["1 thread"]),
        ("threads", 1, 4, ["2 threads", "3 threads", "4 threads"]),
        ("threads", 3, 8, ["1 thread", "4 threads", "7 threads", "8 threads"]),
        ("spinning", 2, 2, ["allow_spinning 0", "force_spinning_stop 0"]),
        ("affinity", 1, 2, []),
        ("affinity", 4, 2, []),
        ("affinity", 0, 2, ["affinities 2"]),
        ("affinity", 3, 4, ["affinities 2;3"]),
        ("block base", 1, 1, ["block_base 0", "block_base 2", "block_base 8"]),
    ],
)
def test_the_positions_of_a_knob(knob: str, threads: int, cores: int, expected: list[str]) -> None:
    found = alternatives(knob, Setting(threads=threads), processors=range(cores))
    assert len(found) == len(expected)
    for one, words in zip(found, expected, strict=True):
        assert words in str(one)


@pytest.mark.parametrize("knob", KNOBS)
def test_onnxruntime_takes_every_position(knob: str, tmp_path: Path, tiny: Path) -> None:
    """Its answer has the same bits in all of them."""
    config = load_config(write_config(tmp_path))
    before = configured(config)
    said = []
    for setting in [before, *alternatives(knob, before, processors=sorted(os.sched_getaffinity(0)))]:
        config.file.write_text(written(config.file.read_text(), setting, before=configured(load_config(config.file))))
        model = load(config.file, tiny)
        model.engine.begin()
        answer = model.decoder.decode(model.prompt.request(observation()))
        assert answer is not None
        said.append((answer.tokens, answer.confidence))
    assert len(set(said)) == 1


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


def test_other_threads_are_not_pinned_as_these_were() -> None:
    pinned = Setting(threads=2, session_options={"session.intra_op_thread_affinities": "2", **FASTER})
    (single,) = alternatives("threads", pinned, processors=range(2))
    assert single == Setting(threads=1, session_options=FASTER)


NEW = Setting(threads=1, session_options={"session.dynamic_block_base": "8", "session.intra_op.allow_spinning": "0"})


@pytest.mark.parametrize(
    "text",
    [
        "[model]\nthreads = 0  # all\n\n# ---- next ----\n\n[timing]\nperiod_ms = 200\n",
        "[model]\nthreads = 0\n\n[model.provider_options]\na = \"b\"\n\n[timing]\nperiod_ms = 200\n",
        "[model]\nfolder = \"./m\"\n[model.session_options]\n\"session.dynamic_block_base\" = \"2\"  # mine\n",
        "[model]\nsession_options = { \"session.dynamic_block_base\" = \"2\" }  # mine\nthreads = 0\n",
        "model.threads = 0\n[timing]\nperiod_ms = 200\n",
        "# nothing yet\n",
        "",
    ],
)  # fmt: skip
def test_a_setting_is_written_and_nothing_else_changes(text: str) -> None:
    before = Setting(threads=0, session_options=FASTER if "base" in text else {})
    new = written(text, NEW, before=before)
    read = model_of(new)
    assert (read["threads"], dict(read["session_options"])) == (1, dict(NEW.session_options))
    kept = [line for line in text.splitlines() if "threads" not in line and "base" not in line]
    assert [line for line in new.splitlines() if line in kept and line] == [line for line in kept if line]
    assert all(comment in new for comment in ("# all", "# mine", "# ---- next", "# nothing") if comment in text)
    back = model_of(written(new, before, before=NEW))
    assert (back["threads"], dict(back["session_options"])) == (0, dict(before.session_options))
    assert written(text, before, before=before) == text


def model_of(text: str) -> dict[str, object]:
    import tomlkit

    return tomlkit.parse(text).unwrap()["model"]


def test_the_share_of_resamplings_says_how_sure_it_is() -> None:
    draw = random.Random(1)
    slow = [100 + draw.randrange(10) for _ in range(60)]
    assert better([one - 20 for one in slow], slow, share=0.95, draw=draw) == 1.0
    assert better(slow, slow, share=0.95, draw=draw) == 0.0, "a tie is not better"
    rare = [50] * 57 + [500] * 3
    assert better(rare, slow, share=0.95, draw=draw) < 0.95, "a better median with a worse tail is none"


def made(before: Setting, found: Setting) -> Tuning:
    def tried(setting: Setting, ms: float) -> Tried:
        return Tried(setting=setting, median_ns=ms * 0.9 * NS_PER_MS, tail_ns=ms * NS_PER_MS, better=0.99)

    final = Round(knob=FINAL, tried=(tried(before, 50.0), tried(found, 40.0)), kept=1)
    return Tuning(share=0.95, requests=100, before=before, found=found, rounds=(final,))


def test_without_write_the_file_is_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = robot(tmp_path)
    text = config.file.read_text()
    report(made(configured(config), NEW), file=config.file, write=False, as_json=False)
    assert config.file.read_text() == text
    said = capsys.readouterr().out
    said = " ".join(said.split())
    assert "p95 40.00 ms instead of 50.00 ms" in said
    assert "--write puts it in" in said


def test_with_write_its_comments_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = robot(tmp_path)
    config.file.chmod(0o640)
    report(made(configured(config), NEW), file=config.file, write=True, as_json=True)
    text = config.file.read_text()
    assert configured(load_config(config.file)) == NEW
    for comment in ("# my robot", "# what answers", "# all of them", "# finite"):
        assert comment in text
    assert config.file.stat().st_mode & 0o777 == 0o640
    said = json.loads(capsys.readouterr().out)
    assert (said["written"], said["better"], said["percentile"]) == (True, True, 95.0)
    assert said["found"] == {"threads": 1, "session_options": dict(NEW.session_options)}
    assert [one["kept"] for one in said["rounds"][0]["tried"]] == [False, True]


def test_nothing_found_is_nothing_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = robot(tmp_path)
    stamp = config.file.stat().st_mtime_ns
    report(made(configured(config), configured(config)), file=config.file, write=True, as_json=False)
    assert config.file.stat().st_mtime_ns == stamp
    assert "nothing really is better" in capsys.readouterr().out


def test_its_options_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(robot(tmp_path).file)
    assert main(["tune", file, "--percentile", "40"]) == 2
    assert main(["tune", file, "--requests", "0"]) == 2
    assert main(["tune", file, "--requests", "99", "--percentile", "99"]) == 2
    assert "the 99th percentile needs 100" in capsys.readouterr().err
    assert main(["tune", file, "--percentile", "100"]) == 2
    assert "at least 50 and below 100" in capsys.readouterr().err
