"""The prompt as token ids: a prefix that every request shares, and what the observation puts behind it.

    system, few-shot pairs, head of the user's turn │ observation, end of the turn, head of the assistant's turn
    ──────────────────── prefix ────────────────────┴─────────────────────── per request ───────────────────────

All text between two answers is encoded whole, as the tokenizer would, so no token depends on where we cut: the prefix
is what the encodings of different observations have in common. The few-shot answers are the automaton's own paths:
the model reads what it must write.

What fills the template can neither make nor hide a control token: a request whose control tokens are not exactly those
of the chat template is refused with ``PromptError``. Raises ``ConfigError`` for examples that do not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from edgeguard.answer import Automaton
from edgeguard.config.plant_sections import FieldSpec
from edgeguard.config.sections import Prompt as PromptSection
from edgeguard.engine.observation_text import ObservationText, first_texts, format_value, longest_text
from edgeguard.engine.tokens import Tokens, common_length
from edgeguard.errors import AnswerError, ConfigError, ObservationError, PromptError
from edgeguard.types import Value


def chat_roles(section: PromptSection) -> list[str]:
    """Who speaks, in order, before the assistant's turn that is to be written."""
    return [*(["system"] if section.system else []), *(["user", "assistant"] * len(section.examples)), "user"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretch:
    """Text between two answers; ``markup`` is the part of it that the chat template wrote."""

    text: str
    markup: str
    behind_answer: bool

    def plus(self, message: str, piece: str) -> _Stretch:
        return _Stretch(text=self.text + message + piece, markup=self.markup + piece, behind_answer=self.behind_answer)


class Prompt:
    """``prefix`` is the part that does not depend on the observation; ``longest`` is the longest prompt's tokens."""

    def __init__(
        self,
        *,
        section: PromptSection,
        fields: Sequence[FieldSpec],
        pieces: Sequence[str],
        tokens: Tokens,
        automaton: Automaton,
    ) -> None:
        """``pieces`` are the texts around the messages of ``chat_roles(section)``, as ``render_chat`` gives them."""
        self._tokens = tokens
        self._user = ObservationText(template=section.user, fields=fields)
        self._fixed: list[int] = []
        self._controls: dict[str, list[int]] = {}  # by the markup that they are in: a request's is always the same
        first, *following = pieces
        stretch = _Stretch(text=first, markup=first, behind_answer=False)
        if section.system:
            stretch = stretch.plus(section.system, following.pop(0))
        for index, example in enumerate(section.examples):
            where = f"prompt.example[{index}]"
            try:
                stretch = stretch.plus(self._user.fill(example.observation), following.pop(0))
                self._fixed += self._encode(stretch)
                self._fixed += automaton.encode(example.answer)
            except (AnswerError, ObservationError, PromptError) as error:
                raise ConfigError(f"{where}: {error}") from error
            piece = following.pop(0)
            stretch = _Stretch(text=piece, markup=piece, behind_answer=True)
        (self._end,) = following
        self._head = stretch
        self.prefix = self._common_prefix()
        self.longest = len(self._request({spec.name: longest_text(spec) for spec in self._user.places}))

    def request(self, values: Mapping[str, Value]) -> list[int]:
        """The whole prompt for one observation, prefix included; the answer's tokens follow it.

        Raises ``ObservationError`` for a value that its field does not allow, ``PromptError`` for a control token.
        """
        texts = {spec.name: format_value(spec, values.get(spec.name)) for spec in self._user.places}
        try:
            return self._request(texts)
        except PromptError as error:
            for name, text in texts.items():
                if self._tokens.control_in(self._tokens.encode_markup(text)):
                    raise PromptError(f"field {name!r} is {text[:80]!r}, which spells a control token") from error
            raise

    def situation(self, values: Mapping[str, Value]) -> tuple[str, ...]:
        """The observation's words and flags that the model reads, without its numbers: what the answer mostly hangs on,
        and what comes again. Raises as ``request`` does.
        """
        return tuple(format_value(spec, values.get(spec.name)) for spec in self.places if spec.kind != "number")

    @property
    def places(self) -> tuple[FieldSpec, ...]:
        """The fields that it names, in its order."""
        return self._user.places

    def length(self, texts: Mapping[str, str]) -> int:
        """How many tokens the prompt has whose places hold these texts."""
        return len(self._request(texts))

    def _request(self, texts: Mapping[str, str]) -> list[int]:
        return self._fixed + self._encode(self._head.plus(self._user.fill_texts(texts), self._end))

    def _encode(self, stretch: _Stretch) -> list[int]:
        control = self._controls.get(stretch.markup)
        if control is None:
            control = self._tokens.control_in(self._tokens.encode_markup(stretch.markup))
            self._controls[stretch.markup] = control
        return self._tokens.encode_markup(stretch.text, control=control, behind=stretch.behind_answer)

    def _common_prefix(self) -> tuple[int, ...]:
        """Of prompts that differ in their first field, in every way in which a text may begin; never a whole prompt."""
        prompts = list(map(self._request, self._variants()))
        return tuple(prompts[0][: min(common_length(prompts[0][:-1], other) for other in prompts)])

    def _variants(self) -> Iterable[dict[str, str]]:
        texts = {spec.name: format_value(spec, None) for spec in self._user.places}
        if not self._user.places:
            return [texts]
        first = self._user.places[0]
        return [{**texts, first.name: text} for text in first_texts(first)]
