"""Cases of an evaluation file as token sequences to train on, exactly as the robot's runtime will write them.

The prompt and the answer come from the runtime's own ``Prompt`` and ``Automaton``, so a token is never one that the
running model would not see. What is learned are the *choices* only: everything else in an answer is forced and never
asked of the model. Of several accepted values the first is learned, of a range the middle; a field without any is not
learned, nor is what follows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeguard.answer import Automaton, Field, Scalar, compile_answer, read_schema
from edgeguard.bench.comparison.evaluation import Case, Span, read_evaluation
from edgeguard.config import Config
from edgeguard.engine.chat import render_chat
from edgeguard.engine.folder import read_model_folder
from edgeguard.engine.prompt import Prompt, chat_roles
from edgeguard.engine.tokens import Tokens, common_length


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The model is asked behind ``tokens[: at]`` which of ``allowed`` follows: ``right``, or one of ``accepted``."""

    at: int
    allowed: tuple[int, ...]
    right: int
    accepted: frozenset[int]


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
        wanted = {field.name: self._wanted(case, field) for field in self.fields if field.name in case.accepted}
        first, last = ({field.name: tuple(field)[at] for field in self.fields} for at in (0, -1))
        path = self.automaton.encode(first | {name: values[0] for name, values in wanted.items()})
        other = self.automaton.encode(last | {name: values[0] for name, values in wanted.items()})
        accepted = self._alternatives(path, first, wanted)
        choices, state = [], self.automaton.start
        for at, token in enumerate(path[: common_length(path, other)]):  # behind that it is not said what is right
            allowed = self.automaton.allowed(state)
            if len(allowed) > 1:
                fine = frozenset({token, *accepted.get(at, ())})
                choices.append(Choice(at=len(asked) + at, allowed=allowed, right=token, accepted=fine))
            state = self.automaton.step(state, token)
        return Example(tokens=(asked + path)[: choices[-1].at], choices=tuple(choices))

    def _alternatives(
        self, path: Sequence[int], first: Mapping[str, Scalar], wanted: Mapping[str, Sequence[Scalar]]
    ) -> dict[int, set[int]]:
        """By place in ``path``, the tokens with which other accepted values part from it."""
        found: dict[int, set[int]] = {}
        values = first | {name: accepted[0] for name, accepted in wanted.items()}
        for name, accepted in wanted.items():
            for value in accepted[1:]:
                other = self.automaton.encode(values | {name: value})
                at = common_length(path, other)
                found.setdefault(at, set()).add(other[at])
        return found

    def _wanted(self, case: Case, field: Field) -> list[Scalar]:
        """The accepted values of ``field``, the one to learn first."""
        accepted = case.accepted[field.name]
        if not isinstance(accepted, Span):
            return list(accepted)
        inside = [value for value in field if case.judge({field.name: value})[field.name]]
        return [inside.pop(len(inside) // 2), *inside]
