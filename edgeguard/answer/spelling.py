"""How a tokenizer writes every answer: per field the tokens of each value, and the fixed tokens between them.

**The construction.** Encode one answer, the base, behind the context; then, for each field, the base with every value
of that field in its place. What these encodings share at the front and at the back is fixed; what lies between is the
value's segment, with whatever the tokenizer merged into it (a quote, a comma, a brace). A path is fixed tokens and
segments in turn::

    base          {"   turn   ":"   left    ","   speed   ":   0   .   4     }
    turn = right  {"   turn   ":"   right   ","   speed   ":   0   .   4     }
    speed = 0.5   {"   turn   ":"   left    ","   speed   ":   0   .   5     }
                  ~~~~ fixed ~~~~  segment  ~~~~~~ fixed ~~~~~~~~~  segment  ~~~

**Why it is right.** Decoding puts token texts together (``Vocabulary``). Base and variant decode exactly (checked here,
for every value) and share the fixed tokens, so a segment is worth exactly the text that it replaces; hence every
combination of segments, not only those encoded, decodes to exactly its answer. Where merging is local, as between the
words of a pre-tokenizer, every combination is also the tokenizer's own encoding.

**A value that begins another** (1 and 10). Segments grow to the right, into the fixed tokens, until none begins
another: they then hold the first token behind the value, which is a candidate like any other. It always ends, because
a JSON value and what follows it (``,`` or ``}``) never begin another value of the same field.

**Where tokens do not let go.** If a tokenizer merges what stands between two values so that their segments overlap,
the answer is cut in two behind the comma, and each part is encoded in its own context. If it merges a part's first
character with the context, or marks it as the start of a word, the part is encoded behind a character that merges with
nothing. Such a path still decodes exactly, but it is not the tokenizer's natural one: few-shot answers must be encoded
by the automaton, so that the model reads what it must write. A text that does not come back exactly even so is refused
with ``TokenizerError``.

Work and memory grow with (values of all fields) x (length of context and answer): ten thousand values take half a
second on one core, nearly all of it the tokenizer's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from edgeguard.answer.field import Field, spell
from edgeguard.answer.text import around_values
from edgeguard.answer.vocabulary import Vocabulary
from edgeguard.errors import TokenizerError

Tokens: TypeAlias = tuple[int, ...]

# Of the private use area: no text that a tokenizer is trained on holds it, so no token joins it to what follows.
_NEIGHBOUR = "\ue000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """One field's part of every path: ``before``, the segment of the value (by its JSON text), ``behind``."""

    before: Tokens
    segments: Mapping[str, Tokens]
    behind: Tokens = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slot:
    """One field's part of the text."""

    before: str
    texts: tuple[str, ...]
    behind: str

    def sentence(self, text: str) -> str:
        return self.before + text + self.behind


def write_stretches(fields: Sequence[Field], *, vocabulary: Vocabulary, context: str) -> list[Stretch]:
    """One stretch per field; their tokens, in order, are the paths of all answers.

    ``context`` is the text before the answer, back to the last control token (nothing merges across one).
    Raises ``TokenizerError`` when a path does not decode to exactly its text.
    """
    slots = [
        _Slot(before=before, texts=tuple(map(spell, field)), behind=behind)
        for field, (before, behind) in zip(fields, around_values(fields), strict=True)
    ]
    return _write(slots, vocabulary=vocabulary, context=context)


def _write(slots: Sequence[_Slot], *, vocabulary: Vocabulary, context: str) -> list[Stretch]:
    base = [slot.sentence(min(slot.texts, key=len)) for slot in slots]
    sentences = ["".join(base)]
    for at, slot in enumerate(slots):
        front, back = "".join(base[:at]), "".join(base[at + 1 :])
        sentences += [front + slot.sentence(text) + back for text in slot.texts]
    base_path, *paths = _encode(sentences, vocabulary=vocabulary, context=context)

    stretches: list[Stretch] = []
    end = 0  # of the last segment, in the base
    for at, slot in enumerate(slots):
        variants, paths = paths[: len(slot.texts)], paths[len(slot.texts) :]
        left, right = _shared(variants) if len(variants) > 1 else (end, len(base_path) - end)
        if left < end:
            return [
                *_write(slots[:at], vocabulary=vocabulary, context=context),
                *_write(slots[at:], vocabulary=vocabulary, context=context + "".join(base[:at])),
            ]
        segments = {text: path[left : len(path) - right] for text, path in zip(slot.texts, variants, strict=True)}
        stretches.append(Stretch(before=base_path[end:left], segments=segments))
        end = len(base_path) - right
    stretches[-1] = replace(stretches[-1], behind=base_path[end:])
    return stretches


def _encode(sentences: Sequence[str], *, vocabulary: Vocabulary, context: str) -> list[Tokens]:
    """The tokens of each sentence as it follows ``context``; where that has no boundary there, a neighbour."""
    read = [""] * len(sentences)
    for lead in (context, _NEIGHBOUR):
        lead_path, *whole = map(tuple, vocabulary.encode_batch([lead, *(lead + sentence for sentence in sentences)]))
        if any(path[: len(lead_path)] != lead_path for path in whole):
            continue  # a token straddles the end of the lead
        paths = [path[len(lead_path) :] for path in whole]
        # Behind another token, because the first one may lose its word-start mark and look right.
        first = paths[0][-1:]
        first_text, *texts = vocabulary.decode_batch([first, *(first + path for path in paths)])
        read = [text[len(first_text) :] if text.startswith(first_text) else text for text in texts]
        if read == sentences:
            return paths
    wrong, text = next((one, other) for one, other in zip(sentences, read, strict=True) if one != other)
    raise TokenizerError(
        f"the tokenizer cannot write the answer {wrong!r}: it reads back as {text!r}; use names and values of the "
        "answer's schema that it can write"
    )


def _shared(paths: Sequence[Tokens]) -> tuple[int, int]:
    """How many tokens all paths share at the front, and at the back so that no segment between begins another."""
    left = _common(min(paths), max(paths))  # the extremes of the order differ first
    backwards = [path[left:][::-1] for path in paths]
    right = _common(min(backwards), max(backwards))
    while not _prefix_free([path[left : len(path) - right] for path in paths]):
        right -= 1
    return left, right


def _common(one: Tokens, other: Tokens) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _prefix_free(segments: Sequence[Tokens]) -> bool:
    return all(long[: len(short)] != short for short, long in pairwise(sorted(segments)))
