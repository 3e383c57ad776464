"""Long lines for people: broken between words at the terminal's width, and left whole in a pipe, for grep and scripts.

Knows nothing of what is said.
"""

from __future__ import annotations

import shutil
import textwrap
from typing import TextIO

NARROWEST = 40


def wrapped(text: str, *, stream: TextIO, hang: int = 2) -> str:
    """``text`` as it is to be written to ``stream``; what is broken goes on ``hang`` columns to the right."""
    if not stream.isatty():
        return text
    width = max(NARROWEST, shutil.get_terminal_size().columns)
    lines = [
        textwrap.fill(
            line,
            width,
            subsequent_indent=" " * hang,
            break_long_words=False,
            break_on_hyphens=False,
            replace_whitespace=False,
        )
        for line in text.splitlines()
    ]
    return "\n".join(lines)
