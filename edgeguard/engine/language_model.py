"""A loaded model that answers observations: everything the worker needs, put together once from the configuration.

Each rung of a ladder of plans is one, with an engine of its own. They share the weights and the cut head (whose rows
are those that any of them can choose); not the cache: a rung change then costs nothing, because the prefix of each is
still there, and the price is memory (2·L·(KV heads × head size)·n·b bytes for each rung).

The cache is as large as the longest prompt with the longest answer, so the memory is known at the start. Loading takes
seconds and says how far it is. Lengths are in tokens. Knows nothing of processes, deadlines and messages.

Raises ``ModelError`` and its kin, ``ProviderError``, ``ConfigError``, ``MissingExtraError``, all before the first pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from edgeguard.answer import parse_answer
from edgeguard.budget import PassTimes
from edgeguard.clock import Clock
from edgeguard.config import Config
from edgeguard.engine.compiled import NOT_COMPILED, CompiledUse, check_compiled, compiled_use
from edgeguard.engine.decoder import Decoder
from edgeguard.engine.engine import Engine
from edgeguard.engine.model_parts import (
    ModelParts,
    RungParts,
    cache_capacity,
    compiled_facts,
    fixed_shapes,
    longest_answer,
    read_model_parts,
)
from edgeguard.engine.provider import Provider
from edgeguard.engine.providers import provider_of
from edgeguard.engine.session import allowed_threads, import_runtime, open_session
from edgeguard.engine.shapes import FixedShapes
from edgeguard.engine.unread import give_back_unread
from edgeguard.places import compiled_directory
from edgeguard.types import Value

ANSWERS_KNOWN = 64
"""Parsing is 0.2 ms of cold code behind a pass, and a robot's answers are mostly those that it gave before."""


class Progress(Protocol):
    """Told how far the start has come."""

    def __call__(self, phase: str, done: int, total: int) -> None: ...


class LanguageModel:
    """One rung. ``answer_passes`` and ``answer_tokens`` are the most that an answer takes, ``pass_sizes`` are warmed
    up. ``values`` are what the tokens of an answer say, parsed and checked (``AnswerError``); of the latest answers
    that is known already."""

    def __init__(
        self,
        *,
        parts: RungParts,
        engine: Engine,
        identity: dict[str, str],
        placement: str,
        provider: Provider,
        fixed: FixedShapes | None = None,
    ) -> None:
        self.rung = parts.name
        self.fields = parts.fields
        self.prompt = prompt = parts.prompt
        self.automaton = automaton = parts.automaton
        self.engine = engine
        self.identity = identity
        self.placement = placement
        self.decoder = Decoder(engine=engine, automaton=automaton)
        self.values = lru_cache(ANSWERS_KNOWN)(self._read)
        self.answer_passes, self.answer_tokens = longest_answer(automaton)
        longest_draft = self.answer_tokens if engine.every_position else automaton.forced_length(automaton.start)
        smallest_pass, longest_pass = provider.smallest_pass, provider.longest_pass
        longest_first = prompt.longest - len(prompt.prefix) + longest_draft
        first = _spaced(smallest_pass, min(longest_first, longest_pass), most=provider.warm_sizes)
        self.fixed_sizes = fixed is not None
        self.pass_sizes = (
            sorted({*first, *(min(max(size, smallest_pass), longest_pass) for size in automaton.pass_sizes)})
            if fixed is None
            else list(fixed.sizes)
        )

    def _read(self, tokens: tuple[int, ...]) -> Mapping[str, Value]:
        return parse_answer(self.automaton.text(tokens), fields=self.fields)

    def fits(self, prompt: Sequence[int]) -> bool:
        """Whether the cache has room for this prompt and any answer to it."""
        return len(prompt) + self.answer_tokens <= self.engine.cache.capacity

    def warm_up(self, progress: Progress) -> None:
        """Fill the prefix and run every pass size once, so that no request pays for being the first of its kind."""
        progress("prefix", 0, 1)
        self.engine.prefill(self.prompt.prefix)
        progress("prefix", 1, 1)
        for done, size in enumerate(self.pass_sizes):
            progress("warming", done, len(self.pass_sizes))
            self.sweep([size], repeats=1)
        progress("warming", len(self.pass_sizes), len(self.pass_sizes))

    def sweep(self, sizes: Sequence[int], *, repeats: int, depths: Sequence[int] = ()) -> list[PassTimes]:
        """Time passes of these sizes behind so many tokens (the prefix); ``PromptError`` when one does not fit."""
        prefix = self.prompt.prefix
        swept = []
        for depth in depths or [len(prefix)]:
            cached = [prefix[at % len(prefix)] for at in range(depth)]
            for size in sizes:
                self.engine.prefill(cached)
                self.engine.begin()
                for _ in range(repeats):
                    self.engine.run([prefix[at % len(prefix)] for at in range(size)])
                    self.engine.cache.rewind(depth)
                first = self.engine.passes[0]
                swept.append(
                    PassTimes(k=first.k, p=first.p, elapsed_ns=tuple(one.elapsed_ns for one in self.engine.passes))
                )
        self.engine.prefill(prefix)
        return swept


def load_language_model(
    *,
    config: Config,
    folder: Path,
    clock: Clock,
    progress: Progress,
    full_head: bool = False,
    compile_to: Path | None = None,
) -> LanguageModel:
    """The best rung of ``load_rungs``, for whoever asks for no other."""
    return load_rungs(
        config=config, folder=folder, clock=clock, progress=progress, full_head=full_head, compile_to=compile_to
    )[0]


def load_rungs(
    *,
    config: Config,
    folder: Path,
    clock: Clock,
    progress: Progress,
    full_head: bool = False,
    compile_to: Path | None = None,
) -> tuple[LanguageModel, ...]:
    """Load the model in ``folder`` and put every rung of ``config`` together, the best first: all of them ask this
    model (``Config.by_model``). ``warm_up`` of each is still to come.

    What the provider has compiled it to is used if it is there (``edgeguard.places``), and must fit; with
    ``compile_to`` it is written there instead.
    """
    progress("loading", 0, 3)
    provider = provider_of(config)
    runtime = import_runtime(provider)
    progress("loading", 1, 3)
    parts = read_model_parts(config=config, folder=folder, full_head=full_head)
    progress("loading", 2, 3)
    fixed = fixed_shapes(parts, provider)
    opened = open_session(
        folder=parts.folder,
        head=parts.head,
        provider=provider,
        threads=allowed_threads(config.model.threads),
        provider_options=config.model.provider_options,
        session_options=config.model.session_options,
        compiled=_compiled(parts, provider, compile_to=compile_to),
        fixed=fixed,
        custom_ops=parts.custom_ops,
    )
    ladder = tuple(
        LanguageModel(
            parts=rung,
            engine=Engine(
                runtime=runtime,
                session=opened.session,
                folder=parts.folder,
                head=parts.head,
                provider=provider,
                capacity=cache_capacity(rung, parts.folder) if fixed is None else fixed.capacity,
                clock=clock,
                fixed=fixed,
            ),
            identity=parts.identity,
            placement=opened.placement,
            provider=provider,
            fixed=fixed,
        )
        for rung in parts.rungs
    )
    give_back_unread(weights=[parts.folder.path / name for name in parts.folder.graph.external])
    progress("loading", 3, 3)
    return ladder


def _compiled(parts: ModelParts, provider: Provider, *, compile_to: Path | None) -> CompiledUse:
    if compile_to is not None:
        return compiled_use(provider, compile_to, writing=True)
    directory = compiled_directory(parts.folder.path, provider.name)
    if provider.compiled is None or not directory.exists():
        return NOT_COMPILED
    check_compiled(directory, facts=compiled_facts(parts, provider))
    return compiled_use(provider, directory)


def _spaced(low: int, high: int, *, most: int) -> list[int]:
    """At most so many whole numbers from ``low`` to ``high``, both included."""
    count = min(most, high - low + 1)
    return [low + (high - low) * at // max(1, count - 1) for at in range(count)]
