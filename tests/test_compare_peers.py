"""The comparison with peers: everybody is asked the same, answers are read strictly, ratios are of what was run."""

from __future__ import annotations

import itertools
import json
import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from peers.contest import CHANGED, UNCHANGED, Sample, hold, needed
from peers.figures import figures
from peers.llama_cpp import LlamaServer
from peers.ours import Edgeguard
from peers.prices import write_prices
from peers.system import AbsentError, ChildSystem, System, Timed, Weights
from peers.task import ROBOT, Question, Task, robot_on, walk

from edgeguard.bench.observations import draw_fields
from edgeguard.config import Config, load_config
from edgeguard.engine.model_parts import read_model_parts
from edgeguard.errors import BusyError
from edgeguard.model.progress import silent
from edgeguard.types import Value
from tests.engine_setup import write_config
from tests.tiny import tiny_model

SERVER = Path(__file__).with_name("llama_server.py")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    return load_config(write_config(tmp_path_factory.mktemp("config")))


@pytest.fixture(scope="module")
def task(config: Config, folder: Path) -> Task:
    return Task(read_model_parts(config=config, folder=folder))


@pytest.fixture(scope="module")
def question(task: Task, config: Config) -> Question:
    return task.question(next(draw_fields(config)))


def test_the_grammar_allows_every_answer_and_nothing_else(task: Task, question: Question) -> None:
    assert question.text.endswith('{"action":"'), "what never changes is in the prompt"
    answers = [
        f'{action}","speed":{tenths / 10:.1f}}}'
        for action, tenths in itertools.product(("forward", "left", "right", "stop"), range(11))
    ]
    for rest in answers:
        assert re.fullmatch(task.regex, rest)
        assert task.parse(rest) is not None
    for rest in ('up","speed":0.1}', 'stop","speed":1.1}', 'stop", "speed":0.1}', ""):
        assert not re.fullmatch(task.regex, rest)
    assert task.parse('up","speed":0.1}') is None
    words = [json.loads(word) for word in re.findall(r'"(?:[^"\\]|\\.)*"', task.gbnf)]
    speeds = [f"{tenths / 10:.1f}" for tenths in range(11)]
    assert words == ['forward"', 'left"', 'right"', 'stop"', ",", '"speed":', *speeds, "}"]


@pytest.mark.parametrize("changing", [False, True])
def test_a_third_of_the_observation_changes_and_the_command_as_it_should(config: Config, changing: bool) -> None:
    def answer(fields: Mapping[str, Value]) -> object:
        return fields["door"], fields["words"]

    found = walk(config, count=20, changing=changing, answer=answer)
    assert found == walk(config, count=20, changing=changing, answer=answer), "seeded"
    for before, behind in itertools.pairwise(found):
        assert sum(before[name] != behind[name] for name in before) == round(len(before) / 3)
        assert (answer(before) != answer(behind)) == changing


def test_where_no_command_ever_changes_it_says_so(config: Config) -> None:
    with pytest.raises(SystemExit, match="whose command changes"):
        walk(config, count=1, changing=True, answer=lambda _: "stop")


def test_the_robot_has_the_sizes_that_are_stated() -> None:
    assert len(load_config(ROBOT).fields) == 6


def test_the_robot_runs_on_the_provider_that_is_asked_for(tmp_path: Path) -> None:
    config = robot_on("cuda", tmp_path)
    assert load_config(config.file).model.provider == "cuda"
    assert robot_on("cpu", tmp_path).schema == config.schema == load_config(ROBOT).schema


def test_a_llama_server_is_started_asked_and_stopped(task: Task, question: Question, tmp_path: Path) -> None:
    answers = json.dumps(['left","speed":0.4', 'up","speed":0.4'])
    command = [sys.executable, str(SERVER), answers]
    with LlamaServer(command=command, gguf=tmp_path, task=task, example=question) as server:
        assert "b0-fake" in server.settings
        server.pause()
        server.resume()
        timed = [server.ask(question) for _ in range(2)]  # behind three that warm it up
    assert {str(one.values) for one in timed} == {"None", "{'action': 'left', 'speed': Decimal('0.4')}"}
    assert all(one.first_ns == 12_500_000 and one.elapsed_ns > 0 for one in timed)


def test_who_is_not_here_says_what_to_install(task: Task, question: Question, tmp_path: Path) -> None:
    with pytest.raises(AbsentError, match="cannot be run"):
        LlamaServer(command=[str(tmp_path / "none")], gguf=tmp_path, task=task, example=question)
    with pytest.raises(AbsentError, match="did not start"):
        LlamaServer(command=[sys.executable, "-c", "1"], gguf=tmp_path, task=task, example=question)
    with pytest.raises(AbsentError, match="pip install no-such-peer"):
        child(task, package="no-such-peer")
    with pytest.raises(AbsentError, match=r"ended with status 1: KeyError: 'folder'"):
        child(task, package="json")


def child(task: Task, *, package: str, **load: object) -> System:
    return ChildSystem(
        name="genai",
        module="genai_child",
        package=package,
        python=sys.executable,
        load=load,
        task=task,
        weights=Weights.GRAPH,
    )


def test_everybody_is_asked_by_turns(config: Config, folder: Path, task: Task) -> None:
    """The real worker and the real onnxruntime-genai, on a tiny model of random weights."""
    pytest.importorskip("onnxruntime_genai")
    with (
        Edgeguard(config=config, folder=folder, task=task) as ours,
        Edgeguard(config=config, folder=folder, task=task) as floor,
    ):
        streams = {
            stream: [
                task.question(one)
                for one in walk(config, count=needed(4), changing=stream == CHANGED, answer=ours.answer)
            ]
            for stream in (UNCHANGED, CHANGED)
        }
        load = {
            "folder": str(folder),
            "provider": "cpu",
            "threads": 1,
            "capacity": 512,
            "fast_forward": True,
            "ngram": False,
        }
        example = streams[UNCHANGED][0].text
        with child(task, package="onnxruntime-genai", **load, warm_up=1, example=example) as genai:
            held = hold([ours, genai], floor, streams, progress=silent, busy_limit=math.inf)
            with pytest.raises(BusyError, match="8 of 8 questions"):
                hold([ours, genai], floor, streams, progress=silent, busy_limit=0.0)
            found = figures(held.samples, held.floors, [ours, genai])
    samples = held.samples
    assert (len(samples), len(held.floors), held.dropped) == (16, 4, 0)
    assert all(sample.values is not None for sample in samples), "the grammar lets nothing else out"
    unchanged = [one for one in samples if one.stream == UNCHANGED and one.system == ours.name]
    assert all(len(one.passes) == 1 for one in unchanged), "the draft was right"
    assert all(0 < one.first_ms <= one.elapsed_ms for one in samples)
    assert found.over_floor > 0
    assert found.rows[1].rss_mb > 10


def test_its_drafts_go_by_the_prices_of_this_machine(folder: Path, tmp_path: Path) -> None:
    quick = "[timing]\nperiod_ms = 40\ndeadline_ms = 40\ntick_ms = 10\nmax_age_ms = 10\n\n[model]"
    config = load_config(write_config(tmp_path, ("[model]", quick), ("./model", str(folder))))
    prices = write_prices(config, tmp_path / "prices.json", progress=silent, busy_limit=math.inf)
    task = Task(read_model_parts(config=config, folder=folder))
    asked = task.question(next(draw_fields(config)))
    with Edgeguard(config=config, folder=folder, task=task, prices=prices) as ours:
        first, *others = [ours.ask(asked) for _ in range(20)]
    assert {str(one.values) for one in others} == {str(first.values)}
    assert len(others[-1].passes) <= len(first.passes)


class Stated(System):
    """One that is never asked."""

    settings, start_s = "as it is", 1.0

    def __init__(self, name: str, weights: Weights = Weights.GRAPH) -> None:
        self.name, self.weights = name, weights

    def ask(self, question: Question) -> Timed:
        raise NotImplementedError

    def close(self) -> None:
        pass

    def peak_mb(self) -> int:
        return 100


def sample(system: str, stream: str, at: int, elapsed_ms: float, said: str = "left") -> Sample:
    return Sample(
        system=system,
        stream=stream,
        at=at,
        elapsed_ms=elapsed_ms,
        first_ms=1.0,
        tokens=20,
        passes=(),
        values={"do": said},
    )


def test_the_ratio_is_to_the_best_peer_of_each_stream() -> None:
    prices = {
        ("edgeguard", UNCHANGED): 50.0,
        ("fast", UNCHANGED): 100.0,
        ("slow", UNCHANGED): 200.0,
        ("other", UNCHANGED): 10.0,
        ("edgeguard", CHANGED): 100.0,
        ("fast", CHANGED): 180.0,
        ("slow", CHANGED): 150.0,
        ("other", CHANGED): 10.0,
    }
    samples = [
        sample(system, stream, at, price + at % 5, said="right" if system == "slow" and at < 10 else "left")
        for (system, stream), price in prices.items()
        for at in range(40)
    ]
    systems = [Stated("edgeguard"), Stated("fast"), Stated("slow", Weights.FILE), Stated("other", Weights.OTHER)]
    found = figures(samples, [48.0] * 40, systems)
    assert (found.ratios[UNCHANGED].peer, found.ratios[CHANGED].peer) == ("fast", "slow")
    for ratio, expected in ((found.ratios[UNCHANGED], 102 / 52), (found.ratios[CHANGED], 152 / 102)):
        low, high = ratio.interval
        assert low <= ratio.value <= high
        assert ratio.value == pytest.approx(expected)
        assert high - low < 0.1
    assert found.over_floor == pytest.approx(52 / 48)
    content = found.as_json()
    assert set(content) == {"systems", "ratio_best_peer", "floor_ms", "over_floor", "same_answers"}
    assert set(content["systems"]["fast"]) == {"ttc_ms", "ttft_ms", "tokens_per_s", "rss_mb", "start_s", "settings"}
    assert content["systems"]["fast"]["ttc_ms"] == {"p50": 102.0, "p99": 104.0}
    assert content["ratio_best_peer"].keys() == {UNCHANGED, CHANGED}
    assert content["same_answers"] == {"fast": 1.0, "slow": 0.75, "other": 1.0}


def test_without_peers_there_is_no_ratio() -> None:
    samples = [sample("edgeguard", stream, at, 50.0) for stream in (UNCHANGED, CHANGED) for at in range(4)]
    assert figures(samples, [50.0], [Stated("edgeguard")]).ratios == {}
