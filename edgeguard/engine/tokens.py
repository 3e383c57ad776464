"""The model's tokenizer, with the line between markup and plain text that it does not draw itself.

``tokenizers`` turns the *text* of an added token (``<|im_end|>``) into the control token wherever it stands. Here
``encode_plain`` refuses text that would, and ``encode_markup`` is told which control tokens must come out, and refuses
any other: so nothing that is filled into a template can open, close or forge a turn. Every added token counts,
whether its tokenizer calls it special or not.

Implements ``edgeguard.answer.Vocabulary``. Raises ``TokenizerError`` for a tokenizer that is damaged or of another
model, and ``PromptError`` for a control token where none belongs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

from edgeguard.errors import PromptError, TokenizerError

_NEIGHBOUR = "\ue000"
"""Of the private use area: no text to train a tokenizer on holds it, so no token joins it to what follows."""


class Tokens:
    """Text to token ids and back. ``control`` are the ids that no plain text may produce."""

    def __init__(self, *, tokenizer: Tokenizer) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self.control = frozenset(tokenizer.get_added_tokens_decoder())
        self._neighbour: list[int] = tokenizer.encode(_NEIGHBOUR, add_special_tokens=False).ids

    @classmethod
    def from_file(cls, file: Path, *, vocabulary: int, end_tokens: Sequence[int]) -> Tokens:
        """Read ``tokenizer.json`` and check that it can be that of a model with this vocabulary."""
        try:
            tokenizer = Tokenizer.from_file(str(file))
        except Exception as error:  # the package raises Exception itself
            raise TokenizerError(f"{file}: cannot be read ({error}); build the model again") from error
        tokens = cls(tokenizer=tokenizer)
        highest = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
        if highest >= vocabulary:
            raise TokenizerError(
                f"{file}: is another model's tokenizer: it has a token {highest}, the model {vocabulary} tokens"
            )
        for token in end_tokens:
            if token not in tokens.control:
                raise TokenizerError(
                    f"{file}: is another model's tokenizer: the model's end token {token} is no control token of it"
                )
        return tokens

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of plain texts; ``PromptError`` names the one that spells a control token."""
        encoded = [one.ids for one in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]
        for text, ids in zip(texts, encoded, strict=True):
            for token in self.control_in(ids):
                raise PromptError(f"{text[:80]!r} spells the control token {self._tokenizer.id_to_token(token)!r}")
        return encoded

    def decode_batch(self, paths: Sequence[Sequence[int]]) -> list[str]:
        """The text of each path, control tokens included."""
        return self._tokenizer.decode_batch([list(path) for path in paths], skip_special_tokens=False)

    def encode_markup(self, text: str, *, control: Sequence[int] | None = None, behind: bool = False) -> list[int]:
        """The ids of text in which control tokens may stand; exactly these, in this order, if ``control`` is given.

        ``behind``: as it is written behind other text, where sentencepiece puts no word-start mark before it.
        Raises ``PromptError`` when other control tokens come out.
        """
        head = self._neighbour if behind else []
        ids = self._tokenizer.encode((_NEIGHBOUR if behind else "") + text, add_special_tokens=False).ids
        if ids[: len(head)] != head:
            raise TokenizerError(f"the tokenizer joins {text[:20]!r} to the character before it, whatever that is")
        ids = ids[len(head) :]
        if control is not None and self.control_in(ids) != list(control):
            raise PromptError("text from outside forms or hides a control token")
        return ids

    def behind_control(self, text: str) -> str:
        """What follows the last control token of ``text``; all of it if there is none."""
        encoded = self._tokenizer.encode(text, add_special_tokens=False)
        ends = [end for token, (_, end) in zip(encoded.ids, encoded.offsets, strict=True) if token in self.control]
        return text[ends[-1] :] if ends else text

    def control_in(self, ids: Sequence[int]) -> list[int]:
        """The control tokens among ``ids``, in order."""
        return [token for token in ids if token in self.control]


def common_length(left: Sequence[int], right: Sequence[int]) -> int:
    """How many tokens two sequences share at the front."""
    shorter = min(len(left), len(right))
    return next((at for at in range(shorter) if left[at] != right[at]), shorter)
