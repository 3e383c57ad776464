"""What every system is asked: one prompt around the observation, one finite answer, two streams of observations.

The head of the answer that never changes (``{"move":"``) is part of the prompt for everybody, so nobody has to choose
it; the grammar is of what is left, and allows exactly the answers of the schema in their compact form. Raises
``SystemExit`` for a prompt that cannot be cut into a prefix and a rest without changing its tokens.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from edgeguard.answer import Field, parse_answer
from edgeguard.answer.text import around_values
from edgeguard.bench.observations import draw_fields
from edgeguard.config import Config, load_config
from edgeguard.engine.model_parts import ModelParts
from edgeguard.errors import AnswerError
from edgeguard.types import Value

ROBOT = Path(__file__).with_name("robot.toml")
SEED = 1
TRIES = 200
CHANGING_SHARE = 1 / 3
"""Of the observation's fields, from one observation to the next."""


def robot_on(provider: str, scratch: Path) -> Config:
    """The robot's configuration with this execution provider, in a file of its own, which is what a worker reads."""
    file = scratch / ROBOT.name
    file.write_text(ROBOT.read_text().replace('provider = "cpu"', f'provider = "{provider}"'))
    return load_config(file)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An observation: its fields, and the text that stands between the cached prefix and the answer's first choice."""

    fields: Mapping[str, Value]
    text: str
    tokens: int


class Task:
    """``prefix`` is the cached text, ``regex`` and ``gbnf`` are the grammar of what follows the answer's head."""

    def __init__(self, parts: ModelParts) -> None:
        self._parts = parts
        self._tokenizer = Tokenizer.from_file(str(parts.folder.tokenizer))
        self.prefix = self._tokenizer.decode(list(parts.prompt.prefix), skip_special_tokens=False)
        self.prefix_tokens = len(parts.prompt.prefix)
        self._head, pieces = _pieces(parts.fields)
        self.regex = "".join(f"({'|'.join(map(re.escape, choices))})" for choices in pieces)
        self.gbnf = "root ::= " + " ".join(f"({' | '.join(map(json.dumps, choices))})" for choices in pieces)

    def question(self, fields: Mapping[str, Value]) -> Question:
        ids = self._parts.prompt.request(fields)[self.prefix_tokens :]
        text = self._tokenizer.decode(ids, skip_special_tokens=False)
        if self._tokenizer.encode(text, add_special_tokens=False).ids != ids:
            raise SystemExit(f"the tokens of {text!r} are others when it does not follow the prefix")
        return Question(fields=fields, text=text + self._head, tokens=len(ids))

    def parse(self, rest: str) -> Mapping[str, Value] | None:
        """The values of an answer whose head is left out; None if it is none."""
        try:
            return parse_answer(self._head + rest, fields=self._parts.fields)
        except AnswerError:
            return None

    def answer_tokens(self, rest: str) -> int:
        """How many tokens an answer has whose head is left out, its head included."""
        return len(self._tokenizer.encode(self._head + rest, add_special_tokens=False).ids)

    def tokens_of(self, values: Mapping[str, Value]) -> int:
        """How many tokens the answer with these values has."""
        return len(self._parts.automaton.encode(values))


def _pieces(fields: Sequence[Field]) -> tuple[str, list[list[str]]]:
    """The answer's head, and what follows it: the choices of every piece, one where the text is fixed."""
    pieces: list[list[str]] = []
    for field, (before, behind) in zip(fields, around_values(fields), strict=True):
        pieces += [[before], [field.text(value) for value in field], [behind]]
    (head,), first, *others = pieces
    if all(text.startswith('"') for text in first):
        head, first = head + '"', [text[1:] for text in first]
    return head, [first, *others]


def walk(
    config: Config, *, count: int, changing: bool, answer: Callable[[Mapping[str, Value]], object]
) -> list[Mapping[str, Value]]:
    """Observations of which each differs from the one before in a third of its fields, drawn anew each time.

    ``changing``: the command differs from the one before, too; else it stays. ``answer`` is the command that the model
    gives. Seeded.
    """
    draw = random.Random(SEED + changing)
    source = draw_fields(config, seed=SEED + changing)
    here = next(source)
    said, found = answer(here), list[Mapping[str, Value]]()
    for _ in range(TRIES * count):
        if len(found) == count:
            return found
        there = next(_steps(here, source, draw=draw))
        if ((next_said := answer(there)) != said) == changing:
            here, said = there, next_said
            found.append(here)
    raise SystemExit(f"no observations whose command {'changes' if changing else 'stays'} are to be found")


def _steps(
    here: Mapping[str, Value], source: Iterator[Mapping[str, Value]], *, draw: random.Random
) -> Iterator[dict[str, Value]]:
    names = draw.sample(sorted(here), max(1, round(CHANGING_SHARE * len(here))))
    for fresh in source:
        if all(fresh[name] != here[name] for name in names):
            yield {**here, **{name: fresh[name] for name in names}}
