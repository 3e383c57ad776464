"""A loaded model that answers observations: everything the worker needs, put together once from the configuration.

Each rung of a ladder of plans is one, with an engine of its own. They share the weights and the cut head (whose rows
are those that any of them can choose); not the cache: a rung change then costs nothing, because the prefix of each is
still there, and the price is memory (2·L·(KV heads × head size)·n·b bytes for each rung).

The cache is as large as the longest prompt with the longest answer, so the memory is known at the start. Loading takes
seconds and says how far it is. Lengths are in tokens. Knows nothing of processes, deadlines and messages.

Raises ``ModelError`` and its kin, ``ProviderError``, ``ConfigError``, ``MissingExtraError``, all before the first pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from edgeguard.answer import Automaton, Field, PathPrices, compile_answer, read_schema
from edgeguard.answer.draft import POLICY
from edgeguard.budget import PassTimes
from edgeguard.clock import Clock
from edgeguard.config import Config
from edgeguard.config.sections import Rung
from edgeguard.engine.chat import render_chat
from edgeguard.engine.compiled import NOT_COMPILED, CompiledUse, check_compiled, compiled_use, facts
from edgeguard.engine.decoder import Decoder
from edgeguard.engine.engine import Engine
from edgeguard.engine.folder import ModelFolder, read_model_folder
from edgeguard.engine.head import Head, cut_head, whole_head
from edgeguard.engine.identity import identity
from edgeguard.engine.prompt import Prompt, chat_roles
from edgeguard.engine.provider import Provider
from edgeguard.engine.providers import provider_of
from edgeguard.engine.session import allowed_threads, import_runtime, open_session
from edgeguard.engine.shapes import FixedShapes, same_bits
from edgeguard.engine.tokens import Tokens
from edgeguard.errors import PromptError
from edgeguard.places import compiled_directory

_CACHE_STEP = 64


class Progress(Protocol):
    """Told how far the start has come."""

    def __call__(self, phase: str, done: int, total: int) -> None: ...


class LanguageModel:
    """One rung. ``answer_passes`` and ``answer_tokens`` are the most that an answer takes, ``pass_sizes`` are warmed
    up."""

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
        self.answer_passes, self.answer_tokens = longest_answer(automaton)
        longest_draft = self.answer_tokens if engine.every_position else automaton.forced_length(automaton.start)
        smallest_pass = provider.smallest_pass
        longest_first = prompt.longest - len(prompt.prefix) + longest_draft
        first = _spaced(smallest_pass, longest_first, most=provider.warm_sizes)
        self.fixed_sizes = fixed is not None
        self.pass_sizes = (
            sorted({*first, *(max(size, smallest_pass) for size in automaton.pass_sizes)})
            if fixed is None
            else list(fixed.sizes)
        )

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RungParts:
    """What one rung asks and may be answered; ``needed`` is how many tokens its cache must hold."""

    name: str
    fields: tuple[Field, ...]
    prompt: Prompt
    automaton: Automaton
    needed: int

    @property
    def longest_first(self) -> int:
        """The most tokens of a first pass: what is not the prompt's prefix, and the answer's first forced run."""
        return self.prompt.longest - len(self.prompt.prefix) + self.automaton.forced_length(self.automaton.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelParts:
    """What is known of a model and its answers before it is opened. ``rungs`` are at least one, the best first; the
    properties are that one's.
    """

    folder: ModelFolder
    rungs: tuple[RungParts, ...]
    head: Head
    identity: dict[str, str]

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.rungs[0].fields

    @property
    def prompt(self) -> Prompt:
        return self.rungs[0].prompt

    @property
    def automaton(self) -> Automaton:
        return self.rungs[0].automaton


def read_model_parts(*, config: Config, folder: Path, full_head: bool = False) -> ModelParts:
    """Read the model in ``folder`` and what ``config`` asks of it, within a second: no weights are loaded.

    The head is cut to the answer's alphabet unless ``full_head``, for comparisons.
    """
    provider = provider_of(config)
    runtime = import_runtime(provider)
    model = read_model_folder(folder)
    tokens = Tokens.from_file(model.tokenizer, vocabulary=model.vocabulary, end_tokens=model.end_tokens)
    rungs = tuple(_read_rung(rung, config=config, model=model, tokens=tokens) for rung in config.rungs)
    alphabet = {token for rung in rungs for token in rung.automaton.alphabet}
    head = whole_head(model, why="as asked") if full_head else cut_head(model, alphabet=alphabet)
    return ModelParts(
        folder=model,
        rungs=rungs,
        head=head,
        identity=identity(
            config,
            model,
            runtime_version=runtime.__version__,
            threads=allowed_threads(config.model.threads),
            head=head.summary,
            drafts=_draft_policy(head, provider, model),
        ),
    )


def _read_rung(rung: Rung, *, config: Config, model: ModelFolder, tokens: Tokens) -> RungParts:
    named = f"plan {rung.name!r}: " if rung.name else ""
    fields = read_schema(rung.schema)
    pieces = render_chat(model.chat_template, roles=chat_roles(rung.prompt), special=model.special)
    automaton = compile_answer(fields, vocabulary=tokens, context=tokens.behind_control(pieces[-1]))
    prompt = Prompt(section=rung.prompt, fields=config.fields, pieces=pieces, tokens=tokens, automaton=automaton)
    _, answer_tokens = longest_answer(automaton)
    needed = prompt.longest + answer_tokens
    if needed > model.context:
        raise PromptError(
            f"{config.file}: {named}the longest prompt and answer are {needed} tokens, and {model.path.name} reads "
            f"{model.context}; shorten the prompt, or the fields' max_chars"
        )
    return RungParts(name=rung.name, fields=tuple(fields), prompt=prompt, automaton=automaton, needed=needed)


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
        dimensions=fixed.frozen(parts.folder) if fixed is not None and provider.shapes == "one" else {},
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
                capacity=_capacity(rung, parts.folder) if fixed is None else fixed.capacity,
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
    progress("loading", 3, 3)
    return ladder


def fixed_shapes(parts: ModelParts, provider: Provider) -> FixedShapes | None:
    """Those that every rung's passes have, or None where they may have any."""
    if provider.shapes == "any":
        return None
    FixedShapes.require_positions(parts.folder)
    return FixedShapes.powers(
        smallest=provider.smallest_pass,
        longest=max(rung.longest_first for rung in parts.rungs),
        prefixes=[len(rung.prompt.prefix) for rung in parts.rungs],
        capacity=max(_capacity(rung, parts.folder) for rung in parts.rungs),
        context=parts.folder.context,
        single=provider.shapes == "one",
    )


def _capacity(rung: RungParts, folder: ModelFolder) -> int:
    return min(folder.context, -(-rung.needed // _CACHE_STEP) * _CACHE_STEP)


def _draft_policy(head: Head, provider: Provider, model: ModelFolder) -> str:
    """What drafts are made of, or why there are none."""
    if not head.every_position:
        return "none: the model has logits of its last position only" if head.tokens else "none: the head is whole"
    return POLICY if same_bits(provider, model) else f"none: passes of {provider.name} are not bit-identical"


def compiled_facts(parts: ModelParts, provider: Provider) -> dict[str, str]:
    """What a compiled model of these parts belongs to."""
    return facts(parts.identity, provider, shapes=str(fixed_shapes(parts, provider) or "any"))


def _compiled(parts: ModelParts, provider: Provider, *, compile_to: Path | None) -> CompiledUse:
    if compile_to is not None:
        return compiled_use(provider, compile_to, writing=True)
    directory = compiled_directory(parts.folder.path, provider.name)
    if provider.compiled is None or not directory.exists():
        return NOT_COMPILED
    check_compiled(directory, facts=compiled_facts(parts, provider))
    return compiled_use(provider, directory)


def longest_answer(automaton: Automaton) -> tuple[int, int]:
    """The most passes, and the most tokens run in passes, that an answer takes."""

    def most(price: Callable[[int, int], int]) -> float:
        paths = PathPrices(automaton=automaton, price=price)
        return paths.dearest(state=automaton.start, pending=1, cached=0).price

    return round(most(lambda _, __: 1)), round(most(lambda k, _: k))


def _spaced(low: int, high: int, *, most: int) -> list[int]:
    """At most so many whole numbers from ``low`` to ``high``, both included."""
    count = min(most, high - low + 1)
    return [low + (high - low) * at // max(1, count - 1) for at in range(count)]
