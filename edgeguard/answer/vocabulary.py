"""What the automaton asks of a tokenizer; nothing here imports one.

Around ``tokenizers.Tokenizer`` an adapter is two lines::

    def encode_batch(self, texts):
        return [one.ids for one in self._tokenizer.encode_batch(texts, add_special_tokens=False)]

    def decode_batch(self, paths):
        return self._tokenizer.decode_batch(paths, skip_special_tokens=False)

and the guard against control tokens that it owes its callers anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Vocabulary(Protocol):
    """Text to token ids and back, many at a time."""

    def encode_batch(self, texts: Sequence[str]) -> Sequence[Sequence[int]]:
        """The tokenizer's own encoding of each text, with nothing added at either end (no BOS, no EOS).

        A text that spells a control token must not become that token: encode it as the characters it is, or refuse it.
        """

    def decode_batch(self, paths: Sequence[Sequence[int]]) -> Sequence[str]:
        """The text of each path, token by token: nothing skipped, no spaces cleaned up.

        The first token of a path may lose its word-start mark, as sentencepiece's does. Apart from that a path's text
        must be the texts of its parts put together; parts of one character may lie in different tokens.
        """
