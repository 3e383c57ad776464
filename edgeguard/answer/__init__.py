"""What the model may say: a JSON Schema becomes a few finite fields, and these an automaton over tokens.

Pure logic: no clock, no file, no tokenizer of its own (``Vocabulary`` is handed in), no numpy. The guard's process
uses the fields alone, to check what a worker claims; the worker's also the automaton, to make every answer valid
by construction and to know its dearest path before the first token. So the automaton is imported when first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from edgeguard.answer.field import Choice, Field, Grid, Scalar
from edgeguard.answer.schema import read_schema
from edgeguard.answer.text import check_values, parse_answer, write_answer
from edgeguard.answer.vocabulary import Vocabulary

if TYPE_CHECKING:
    from edgeguard.answer.automaton import Automaton, compile_answer
    from edgeguard.answer.draft import Draft, Memory, Reach
    from edgeguard.answer.passes import PassPath, PathPrices

__all__ = [
    "Automaton",
    "Choice",
    "Draft",
    "Field",
    "Grid",
    "Memory",
    "PassPath",
    "PathPrices",
    "Reach",
    "Scalar",
    "Vocabulary",
    "check_values",
    "compile_answer",
    "parse_answer",
    "read_schema",
    "write_answer",
]

_HOMES = {
    "Automaton": "automaton",
    "compile_answer": "automaton",
    "Draft": "draft",
    "Memory": "draft",
    "Reach": "draft",
    "PassPath": "passes",
    "PathPrices": "passes",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
