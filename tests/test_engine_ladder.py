"""The ladder on the tiny model: the first rung whose bound fits runs, and says so; to change rungs costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from edgeguard.answer import read_schema
from edgeguard.bench.memory import memory_of
from edgeguard.budget import Bound, PassCost, Profile, Schedule, profile_text
from edgeguard.budget.cost import OtherModel
from edgeguard.clock import NS_PER_MS, NS_PER_S, FakeClock, SystemClock
from edgeguard.config import Config, load_config
from edgeguard.engine.attempt import Attempt, EndedError, Rung
from edgeguard.engine.identity import joint_identity
from edgeguard.engine.ladder import load_ladder, read_ladder, roomiest
from edgeguard.engine.language_model import LanguageModel
from edgeguard.engine.model_parts import read_model_parts
from edgeguard.engine.worker import planner_of
from edgeguard.errors import ConfigError
from edgeguard.guard.settings import Settings
from edgeguard.types import Answer, Finish, Observation, Request, ThermalLevel, Value
from tests import tiny
from tests.engine_setup import apart, load, observation, write_config
from tests.test_engine_worker import Worker
from tests.tiny import tiny_model

NAMES = ("full", "brief", "least")
LADDER = """
[[plan]]
name = "full"

[[plan]]
name = "brief"
examples = 0
user = "front {front} said: {words}"

[[plan]]
name = "least"
examples = 0
system = ""
user = "front {front}"
[plan.schema]
type = "object"
properties = { action = { enum = ["left", "stop"] }, speed = { const = 0.2 } }
"""
PRICE_NS = 100 * NS_PER_MS
"""Of each token of a pass: no two rungs cost the same, and no pause of the machine is as long as they differ."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = write_config(tmp_path_factory.mktemp("config"))
    file.write_text(file.read_text() + LADDER)
    return file


@pytest.fixture(scope="module")
def ladder(model: Path, config: Path) -> tuple[LanguageModel, ...]:
    read = load_config(config)
    return prefilled(read, [model])


def prefilled(config: Config, folders: Sequence[Path]) -> tuple[LanguageModel, ...]:
    loaded = apart(lambda: load_ladder(config=config, folders=folders, clock=SystemClock(), progress=lambda *_: None))
    for one in loaded:
        one.engine.prefill(one.prompt.prefix)
    return loaded


def profile_of(*rungs: str, score: float = 1.0, level: ThermalLevel = ThermalLevel.NOMINAL) -> Profile:
    """Passes cost ``PRICE_NS`` a token; these rungs have bounds."""
    bounds = [
        Bound(
            bound_ns=1, score=score, rank=1, percentile=0.99, confidence=0.95, n=299, effective_n=299, lag=1,
            rung=rung, level=level,
        )
        for rung in rungs
    ]  # fmt: skip
    return Profile(
        kind="quick",
        created="2026-01-01T00:00:00Z",
        fingerprint={"model": "tiny"},
        schedule=Schedule(period_ns=200 * NS_PER_MS),
        bounds=tuple(bounds),
        cost=PassCost(sizes=(2, 400), prices_ns=(2.0 * PRICE_NS, 400.0 * PRICE_NS), p_reference=100, per_cached_ns=0.0),
        sweep=(),
        requests=(),
        thermal="observed",
    )


def rungs_of(ladder: Sequence[LanguageModel], profile: Profile | None = None) -> list[Rung]:
    known = profile or profile_of(*NAMES)
    return [Rung(model=one, planner=planner_of(one, known)) for one in ladder]


def ask(
    rungs: Sequence[Rung],
    *,
    left_ns: int = 100 * NS_PER_S,
    clock: FakeClock | None = None,
    admit: bool = True,
    margin: float = 1.0,
    level: ThermalLevel = ThermalLevel.NOMINAL,
    **more: Value,
) -> Answer:
    """What is answered when so much time is left; the model takes none of it."""
    clock = clock or FakeClock(start_ns=NS_PER_S)
    for rung in rungs:
        rung.model.engine.begin()
    attempt = Attempt(
        rungs=rungs,
        clock=clock,
        request=Request(
            request_id=1,
            epoch=1,
            observation=Observation(fields=observation(**more), captured_ns=0),
            answer_by_ns=NS_PER_S + left_ns,
            margin=margin,
            level=level,
        ),
        admit=admit,
        token_by_token=False,
        may_draft=False,
    )
    try:
        values = attempt.answer()
    except EndedError as end:
        return attempt.reply(finish=end.finish, values=None, detail=str(end))
    return attempt.reply(finish=Finish.COMPLETE, values=values, detail="")


@pytest.fixture(scope="module")
def bounds_ns(ladder: tuple[LanguageModel, ...]) -> list[int]:
    """Of each rung for the usual observation, from best to cheapest."""
    found = [ask([rung]).bound_ns for rung in rungs_of(ladder)]
    assert all(found)
    return [bound_ns or 0 for bound_ns in found]


def test_a_cheaper_rung_asks_less_and_may_answer_less(ladder: tuple[LanguageModel, ...], bounds_ns: list[int]) -> None:
    assert [one.rung for one in ladder] == list(NAMES)
    full, brief, least = ladder
    assert len(full.prompt.prefix) > len(brief.prompt.prefix) > len(least.prompt.prefix)
    assert full.fields == brief.fields
    assert [len(field) for field in least.fields] == [2, 1]
    assert bounds_ns == sorted(bounds_ns, reverse=True)
    assert len(set(bounds_ns)) == len(NAMES)


@pytest.mark.parametrize(
    ("of", "offset_ns", "rung"),
    [
        (0, 1, "full"), (0, 0, "full"), (0, -1, "brief"),
        (1, 1, "brief"), (1, 0, "brief"), (1, -1, "least"),
        (2, 1, "least"), (2, 0, "least"), (2, -1, ""),
    ],
)  # fmt: skip
def test_the_first_rung_whose_bound_fits_what_is_left_runs(
    ladder: tuple[LanguageModel, ...], bounds_ns: list[int], of: int, offset_ns: int, rung: str
) -> None:
    answer = ask(rungs_of(ladder), left_ns=bounds_ns[of] + offset_ns)
    if rung:
        assert (answer.finish, answer.rung) == (Finish.COMPLETE, rung), answer.detail
        assert answer.bound_ns == bounds_ns[NAMES.index(rung)]
    else:
        assert (answer.finish, answer.rung, answer.passes) == (Finish.INFEASIBLE, "least", ())
        assert answer.bound_ns == bounds_ns[-1]
        assert answer.detail.count("does not fit") == len(NAMES), "each of them is named"
        assert answer.detail.startswith("full: the bound of")


@pytest.mark.parametrize(
    ("of", "offset_ns", "rung"),
    [(0, 0, "full"), (0, -1, "brief"), (1, 0, "brief"), (1, -1, "least"), (2, 0, "least"), (2, -1, "")],
)
def test_a_margin_on_the_bounds_makes_a_cheaper_rung_run_and_the_last_one_prove(
    ladder: tuple[LanguageModel, ...], bounds_ns: list[int], of: int, offset_ns: int, rung: str
) -> None:
    """Where no bound fits with its margin the guard has foreseen a miss; then an answer on time is the proof."""
    answer = ask(rungs_of(ladder), left_ns=(1 if of == 2 else 2) * bounds_ns[of] + offset_ns, margin=2.0)
    assert (answer.rung if answer.finish is Finish.COMPLETE else "") == rung


class Hesitant(FakeClock):
    """Each reading takes time."""

    def now_ns(self) -> int:
        self.advance_ns(1_000)
        return super().now_ns()


def test_what_it_takes_to_look_at_a_rung_is_taken_from_those_below_it(
    ladder: tuple[LanguageModel, ...], bounds_ns: list[int]
) -> None:
    """Two readings for each rung: when it is tokenised, and before the next."""
    for left_ns, rung in ((bounds_ns[1] + 1_000, "least"), (bounds_ns[1] + 4_000, "brief")):
        answer = ask(rungs_of(ladder), left_ns=left_ns, clock=Hesitant(start_ns=NS_PER_S))
        assert (answer.finish, answer.rung) == (Finish.COMPLETE, rung)


def test_a_rung_change_finds_its_prefix_cached(ladder: tuple[LanguageModel, ...], bounds_ns: list[int]) -> None:
    """Each rung has a cache of its own, so the first pass has what is new of the prompt and no more; and the bound is
    the same whatever ran before."""
    rungs = rungs_of(ladder)
    for at in (0, 1, 0, 2, 1, 2, 0):
        answer = ask(rungs, left_ns=bounds_ns[at])
        assert (answer.rung, answer.bound_ns) == (NAMES[at], bounds_ns[at])
        prefix = len(ladder[at].prompt.prefix)
        assert answer.passes[0].p >= prefix - 8, "but for the tokens that are run again for their bits"
        ask([rungs[at]], front=3.5, words="something else")


def test_a_rung_that_was_never_measured_does_not_run(ladder: tuple[LanguageModel, ...], bounds_ns: list[int]) -> None:
    rungs = rungs_of(ladder, profile_of("full", "least"))
    assert ask(rungs, left_ns=bounds_ns[0]).rung == "full"
    assert ask(rungs, left_ns=bounds_ns[0] - 1).rung == "least"
    rungs = rungs_of(ladder, profile_of("full", "brief"))
    assert ask(rungs, left_ns=bounds_ns[1], margin=2.0).rung == "brief", "the last that has a bound proves itself"
    none = ask(rungs_of(ladder, profile_of("of another ladder")))
    assert none.finish is Finish.INFEASIBLE
    assert none.detail.count("never measured") == len(NAMES)


@pytest.mark.parametrize(
    ("level", "times"), [(ThermalLevel.NOMINAL, (1, 1)), (ThermalLevel.HOT, (2, 1)), (ThermalLevel.THROTTLED, (2, 2))]
)
def test_beyond_what_a_rung_has_seen_its_bound_is_stretched_by_the_factor_once(
    ladder: tuple[LanguageModel, ...], bounds_ns: list[int], level: ThermalLevel, times: tuple[int, int]
) -> None:
    """The better rung was measured on a nominal board only, the cheapest on a hot one too."""
    seen = profile_of("full", "least")
    hot = profile_of("least", level=ThermalLevel.HOT)
    profile = replace(seen, bounds=(*seen.bounds, *hot.bounds))
    full, _, least = (Rung(model=one, planner=planner_of(one, profile, 2.0)) for one in ladder)
    assert [ask([rung], level=level).bound_ns for rung in (full, least)] == [
        times[0] * bounds_ns[0],
        times[1] * bounds_ns[2],
    ]
    assert ask([full, least], level=level, margin=1.5, left_ns=3 * times[0] * bounds_ns[0] // 2).rung == "full"
    assert ask([full, least], level=level, margin=1.5, left_ns=3 * times[0] * bounds_ns[0] // 2 - 1).rung == "least"


def test_without_a_profile_or_admission_the_best_rung_runs(ladder: tuple[LanguageModel, ...]) -> None:
    unpriced = [Rung(model=one, planner=None) for one in ladder]
    assert ask(unpriced, left_ns=1).rung == "full"
    assert ask(rungs_of(ladder), left_ns=10**9, admit=False).rung == "full"


def test_each_cache_is_as_large_as_its_own_rung_needs(
    model: Path, config: Path, ladder: tuple[LanguageModel, ...]
) -> None:
    parts = read_model_parts(config=load_config(config), folder=model)
    for rung, loaded in zip(parts.rungs, ladder, strict=True):
        assert rung.name == loaded.rung
        assert rung.needed <= loaded.engine.cache.capacity < rung.needed + 64
    assert (parts.prompt, parts.fields, parts.automaton) == (
        parts.rungs[0].prompt,
        parts.rungs[0].fields,
        parts.rungs[0].automaton,
    )


def test_every_rungs_answer_is_one_that_the_guard_accepts_of_it(
    ladder: tuple[LanguageModel, ...], bounds_ns: list[int], config: Path
) -> None:
    read = load_config(config)
    known = Settings.from_config(read, read_schema(read.schema), reserve_ns=1, wire_ns=1).rung_fields
    for front in (0.25, 1.0, 2.5, 9.75):
        for at, name in enumerate(NAMES):
            answer = ask([rungs_of(ladder)[at]], front=front)
            assert answer.rung == name
            assert answer.values is not None
            for field in known[name]:
                assert field.accepts(answer.values[field.name])


def test_the_ladder_belongs_to_the_identity_and_one_rung_alone_changes_nothing(model: Path, tmp_path: Path) -> None:
    plain = load(write_config(tmp_path), model)
    file = write_config(tmp_path)
    for rungs in (LADDER, LADDER.replace("examples = 0", "examples = 1", 1)):
        file.write_text(write_config(tmp_path).read_text() + rungs)
        assert read_model_parts(config=load_config(file), folder=model).identity["prompt"] != plain.identity["prompt"]
    assert plain.rung == ""


def test_the_worker_runs_the_rung_that_fits_and_the_one_that_it_is_told(
    model: Path, config: Path, ladder: tuple[LanguageModel, ...], bounds_ns: list[int], tmp_path: Path
) -> None:
    profile = tmp_path / "profile.json"
    profile.write_text(profile_text(profile_of(*NAMES)))
    with Worker(config, model, profile=profile) as worker:
        ready = worker.next("ready")
        assert ready["capacity_tokens"] == max(one.engine.cache.capacity for one in ladder)
        for number, name in enumerate(NAMES):
            dearer_ns = bounds_ns[number - 1] if number else 2 * bounds_ns[0]
            worker.ask(number, observation(), by_s=(bounds_ns[number] + dearer_ns) / 2 / NS_PER_S, draft=False)
            answer = worker.answer()
            assert (answer.finish, answer.rung) == (Finish.COMPLETE, name), answer.detail
        for number, name in enumerate(NAMES):
            worker.ask(10 + number, observation(), by_s=2 * bounds_ns[0] / NS_PER_S, rung=name)
            assert worker.answer().rung == name
        worker.ask(20, observation(), by_s=0.001)
        answer = worker.answer()
        assert (answer.finish, answer.rung) == (Finish.INFEASIBLE, "least")


@pytest.fixture(scope="module")
def two_models(model: Path, config: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Config, list[Path]]:
    """The middle rung asks a model of its own."""
    folder = tmp_path_factory.mktemp("two")
    other = tiny_model(folder, seed=3)
    file = folder / "robot.toml"
    text = config.read_text().replace('folder = "./model"', f'folder = "{model}"')
    file.write_text(text.replace('name = "brief"', f'name = "brief"\nfolder = "{other}"'))
    return load_config(file), [model, other]


def test_a_rung_of_another_model_has_its_own_session_cache_and_price(
    two_models: tuple[Config, list[Path]], bounds_ns: list[int]
) -> None:
    read, folders = two_models
    rungs = prefilled(read, folders)
    assert [one.rung for one in rungs] == list(NAMES), "in the order of the ladder, not of the models"
    assert [one.rung for one in roomiest(rungs)] == ["full", "brief"]
    assert all(one.placement.startswith("cpu") for one in rungs), "each session is audited"
    known = profile_of(*NAMES)
    half = replace(known.cost, prices_ns=tuple(price / 2 for price in known.cost.prices_ns))
    profile = replace(known, others=(OtherModel(rungs=("brief",), cost=half, sweep=()),))
    ladder = [Rung(model=one, planner=planner_of(one, profile)) for one in rungs]
    brief_ns = ask([ladder[1]]).bound_ns
    assert brief_ns is not None
    assert brief_ns < 0.6 * bounds_ns[1]
    assert ask(ladder, left_ns=bounds_ns[0]).rung == "full"
    assert ask(ladder, left_ns=max(brief_ns, bounds_ns[2])).rung == "brief"
    for at in (0, 1, 2, 1, 0):
        answer = ask([ladder[at]])
        assert answer.passes[0].p >= len(rungs[at].prompt.prefix) - 8, "its prefix is there, whatever ran before"


def test_the_identity_of_a_ladder_names_every_model(two_models: tuple[Config, list[Path]], model: Path) -> None:
    read, folders = two_models
    first, other = read_ladder(config=read, folders=folders)
    assert [rung.name for rung in first.rungs] == ["full", "least"]
    identity = joint_identity([("full", first.identity), ("brief", other.identity), ("least", first.identity)])
    assert identity["model"] == first.identity["model"]
    assert identity["model of plan brief"] == other.identity["model"] != identity["model"]
    changed = sorted(identity.keys() - first.identity.keys())
    assert changed == [f"{key} of plan brief" for key in ("drafts", "head", "model", "prompt", "tokenizer")]
    with pytest.raises(ConfigError, match="its plans ask 2 models, and 1 are given, in folders"):
        read_ladder(config=read, folders=[model])


def test_what_every_model_and_every_cache_takes_of_the_memory_is_known(two_models: tuple[Config, list[Path]]) -> None:
    read, folders = two_models
    first, other = memory_of(read)
    assert (list(first.cache_bytes), list(other.cache_bytes)) == (["full", "least"], ["brief"])
    assert first.weight_bytes > 100_000 < other.weight_bytes
    token_bytes = 2 * tiny.LAYERS * tiny.KV_HEADS * (tiny.HIDDEN // tiny.HEADS) * 4
    for rung in prefilled(read, folders):
        known = other if rung.rung == "brief" else first
        assert known.cache_bytes[rung.rung] == token_bytes * rung.engine.cache.capacity


def test_the_worker_sweeps_each_model_and_answers_of_each(
    two_models: tuple[Config, list[Path]], bounds_ns: list[int]
) -> None:
    read, folders = two_models
    with Worker(read.file, *folders) as worker:
        ready = worker.next("ready")
        assert ready["rung"] == "full"
        [other] = ready["others"]
        assert other["rung"] == "brief"
        assert other["prefix_tokens"] < ready["prefix_tokens"]
        for rung in ("full", "brief"):
            worker.channel.send({"type": "sweep", "sizes": [4], "repeats": 1, "depths": [], "rung": rung})
            assert worker.next("swept")["rows"][0]["p"] > 0
        for number, name in enumerate(NAMES):
            worker.ask(number, observation(), rung=name)
            answer = worker.answer()
            assert (answer.finish, answer.rung) == (Finish.COMPLETE, name)
