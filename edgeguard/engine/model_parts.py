"""What is known of a model and its answers before it is opened: prompts, automata, the cut head, what it must hold.

Within a second, because no weights are loaded: for whoever calibrates, compiles or checks, and for the worker's load.
Lengths are in tokens. Raises ``ModelError`` and its kin, ``ProviderError``, ``ConfigError``, ``MissingExtraError``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edgeguard.answer import Automaton, Field, PathPrices, compile_answer, read_schema
from edgeguard.answer.draft import POLICY
from edgeguard.config import Config
from edgeguard.config.sections import Rung
from edgeguard.engine.chat import render_chat
from edgeguard.engine.compiled import facts
from edgeguard.engine.custom_ops import checked_libraries
from edgeguard.engine.driver import read_driver
from edgeguard.engine.folder import ModelFolder, read_model_folder
from edgeguard.engine.head import Head, cut_head, whole_head
from edgeguard.engine.identity import identity
from edgeguard.engine.prompt import Prompt, chat_roles
from edgeguard.engine.provider import Provider
from edgeguard.engine.providers import provider_of
from edgeguard.engine.session import allowed_threads, import_runtime
from edgeguard.engine.shapes import FixedShapes, same_bits
from edgeguard.engine.tokens import Tokens
from edgeguard.errors import PromptError

_CACHE_STEP = 64


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
    custom_ops: tuple[Path, ...]
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
    custom_ops = checked_libraries(config.model.custom_ops, model)
    tokens = Tokens.from_file(model.tokenizer, vocabulary=model.vocabulary, end_tokens=model.end_tokens)
    rungs = tuple(_read_rung(rung, config=config, model=model, tokens=tokens) for rung in config.rungs)
    alphabet = {token for rung in rungs for token in rung.automaton.alphabet}
    head = whole_head(model, why="as asked") if full_head else cut_head(model, alphabet=alphabet)
    return ModelParts(
        folder=model,
        custom_ops=custom_ops,
        rungs=rungs,
        head=head,
        identity=identity(
            config,
            model,
            runtime_version=runtime.__version__,
            threads=allowed_threads(config.model.threads),
            head=head.summary,
            drafts=_draft_policy(head, provider, model),
            driver={} if provider.ort_name == "CPUExecutionProvider" else read_driver(provider),
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


def fixed_shapes(parts: ModelParts, provider: Provider) -> FixedShapes | None:
    """Those that every rung's passes have, or None where they may have any."""
    if provider.shapes == "any":
        return None
    FixedShapes.require_positions(parts.folder)
    return FixedShapes.powers(
        smallest=provider.smallest_pass,
        longest=max(rung.longest_first for rung in parts.rungs),
        prefixes=[len(rung.prompt.prefix) for rung in parts.rungs],
        capacity=max(cache_capacity(rung, parts.folder) for rung in parts.rungs),
        context=parts.folder.context,
        single=provider.shapes == "one",
    )


def cache_capacity(rung: RungParts, folder: ModelFolder) -> int:
    """How many tokens the cache of a rung is made for."""
    return min(folder.context, -(-rung.needed // _CACHE_STEP) * _CACHE_STEP)


def _draft_policy(head: Head, provider: Provider, model: ModelFolder) -> str:
    """What drafts are made of, or why there are none."""
    if not head.every_position:
        return "none: the model has logits of its last position only" if head.tokens else "none: the head is whole"
    return POLICY if same_bits(provider, model) else f"none: passes of {provider.name} are not bit-identical"


def compiled_facts(parts: ModelParts, provider: Provider) -> dict[str, str]:
    """What a compiled model of these parts belongs to."""
    return facts(parts.identity, provider, shapes=str(fixed_shapes(parts, provider) or "any"))


def longest_answer(automaton: Automaton) -> tuple[int, int]:
    """The most passes, and the most tokens run in passes, that an answer takes."""

    def most(price: Callable[[int, int], int]) -> float:
        paths = PathPrices(automaton=automaton, price=price)
        return paths.dearest(state=automaton.start, pending=1, cached=0).price

    return round(most(lambda _, __: 1)), round(most(lambda k, _: k))
