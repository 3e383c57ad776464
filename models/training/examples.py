"""Cases of an evaluation file as token sequences to train on, exactly as the robot's runtime will write them.

The prompt and the answer come from the runtime's own ``Prompt`` and ``Automaton``, so a token is never one that the
running model would not see. What is learned are the *choices* only: everything else in an answer is forced and never
asked of the model. Of several accepted values the first is learned; a field without any is not learned, nor is what
follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeguard.answer import Automaton, Field, compile_answer, read_schema
from edgeguard.bench.evaluation import Accepted, Case, Span, read_evaluation
from edgeguard.config import Config
from edgeguard.engine.chat import render_chat
from edgeguard.engine.folder import read_model_folder
from edgeguard.engine.prompt import Prompt, chat_roles
from edgeguard.engine.tokens import Tokens, common_length
from edgeguard.types import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The model is asked behind ``tokens[: at]`` which of ``allowed`` follows; ``right`` does."""

    at: int
    allowed: tuple[int, ...]
    right: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """``tokens`` follow the shared prefix and end where the last choice is made."""

    tokens: tuple[int, ...]
    choices: tuple[Choice, ...]


class Examples:
    """``prefix`` is shared by all; ``alphabet`` are the tokens of which logits are needed, ascending."""

    def __init__(self, *, config: Config, folder: Path) -> None:
        model = read_model_folder(folder)
        tokens = Tokens.from_file(model.tokenizer, vocabulary=model.vocabulary, end_tokens=model.end_tokens)
        pieces = render_chat(model.chat_template, roles=chat_roles(config.prompt), special=model.special)
        self.fields: tuple[Field, ...] = tuple(read_schema(config.schema))
        self.automaton: Automaton = compile_answer(
            self.fields, vocabulary=tokens, context=tokens.behind_control(pieces[-1])
        )
        self._prompt = Prompt(
            section=config.prompt, fields=config.fields, pieces=pieces, tokens=tokens, automaton=self.automaton
        )
        self._config = config
        self.prefix = self._prompt.prefix
        self.alphabet = tuple(sorted(self.automaton.alphabet))

    def read(self, file: Path) -> list[Example]:
        """Every case of ``file``."""
        return [self.example(case) for case in read_evaluation(file, config=self._config)]

    def request(self, case: Case) -> tuple[int, ...]:
        """What follows the prefix up to the answer's first token."""
        return tuple(self._prompt.request(case.observation)[len(self.prefix) :])

    def example(self, case: Case) -> Example:
        asked = self.request(case)
        path, known = self._answer(case)
        choices, state = [], self.automaton.start
        for at, token in enumerate(path[:known]):
            allowed = self.automaton.allowed(state)
            if len(allowed) > 1:
                choices.append(Choice(at=len(asked) + at, allowed=allowed, right=token))
            state = self.automaton.step(state, token)
        return Example(tokens=(asked + path)[: choices[-1].at], choices=tuple(choices))

    def _answer(self, case: Case) -> tuple[Sequence[int], int]:
        """A path with the accepted answer, and how many of its tokens do not depend on what is not accepted."""
        first, last = ({field.name: _end(field, at) for field in self.fields} for at in (0, -1))
        wanted = {name: _wanted(accepted) for name, accepted in case.accepted.items()}
        one, other = (self.automaton.encode(values | wanted) for values in (first, last))
        return one, common_length(one, other)


def _wanted(accepted: Accepted) -> Value:
    return accepted.low if isinstance(accepted, Span) else accepted[0]


def _end(field: Field, at: int) -> object:
    return tuple(field)[at]
