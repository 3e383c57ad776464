"""The head of a model, cut to the tokens that an answer can choose: tens of its rows instead of the whole vocabulary.

A pass then reads and multiplies a few thousand weights where it read a quarter of the model, and the whole head is
never unpacked. The rows that stay are the very bytes they were, and so are their logits: the row count is filled up
to whole tiles of the kernels, because the odd columns behind the last tile may be summed in another order.

It is done in memory, at every load, in milliseconds: the graph is rewritten with the cut weights inside, and all other
weights stay in the files beside it. So there is nothing to store, to invalidate or to leave half-written.

A head that cannot be cut (``head_cut``) stays whole, and ``Head.summary`` says why. Knows nothing of sessions and
automata.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from edgeguard.engine.folder import ModelFolder
from edgeguard.engine.head_cut import Cut, UncutError
from edgeguard.engine.positions import at_every_position

TILE = 32
"""Rows are kept by the multiple of this; a multiple of the tiles of every CPU kernel (4 to 32 columns)."""

LARGEST_GRAPH_BYTES = 64 << 20
"""A larger file has its weights inside, and they would be in memory twice: ONNX Runtime keeps the bytes it is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """``rows`` logits come out of a pass: those of ``tokens``, in this order, or of all (None).

    ``model`` is the rewritten graph, for a session to open instead of the file. ``summary`` is part of the identity.
    ``every_position``: they come out for each new token of a pass; else perhaps for the last one only.
    """

    rows: int
    tokens: tuple[int, ...] | None
    model: bytes | None
    every_position: bool
    summary: str


def whole_head(folder: ModelFolder, *, why: str) -> Head:
    """The head as it is."""
    return Head(rows=folder.vocabulary, tokens=None, model=None, every_position=False, summary=f"full: {why}")


def cut_head(folder: ModelFolder, *, alphabet: Iterable[int]) -> Head:
    """The head of the tokens in ``alphabet``, ascending; the full one, with the reason, where it cannot be cut."""
    tokens = tuple(sorted(alphabet))
    if not tokens:
        return whole_head(folder, why="the answer has no choice")
    rows = -(-len(tokens) // TILE) * TILE
    if rows >= folder.vocabulary:
        return whole_head(folder, why=f"{len(tokens)} of {folder.vocabulary} tokens can be chosen")
    try:
        size = folder.graph.path.stat().st_size
        if size > LARGEST_GRAPH_BYTES:
            raise UncutError(f"the graph's file has {size / 1e6:.0f} MB, so that its weights are inside")
        kept = np.array([*tokens, *[tokens[-1]] * (rows - len(tokens))])
        cut = Cut(folder=folder, kept=kept).model()
        model = at_every_position(cut, logits=folder.names.logits, folder=folder.path)
    except UncutError as reason:
        return whole_head(folder, why=str(reason))
    except (ValueError, IndexError, KeyError, OSError) as error:
        return whole_head(folder, why=f"its graph or weights cannot be read here ({error})")
    return Head(
        rows=rows,
        tokens=tokens,
        model=model or cut,
        every_position=model is not None,
        summary=f"cut to {len(tokens)} of {folder.vocabulary} rows",
    )
