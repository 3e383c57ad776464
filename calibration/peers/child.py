"""The inside of a peer's process: JSON lines in, JSON lines out. Needs the standard library only.

The first line says what to load; ``{"settings": …}`` is said when the prefix is cached and everything is warm. Then
each line ``{"text": …}`` is answered by ``{"text": …, "first_ns": …}``: the rest of the answer, and the monotonic time
at which its first token was chosen. What a runtime prints goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

Answering = Callable[[str], dict[str, Any]]


def serve(load: Callable[[dict[str, Any]], tuple[str, Answering]]) -> None:
    """``load`` gives the settings in words and what answers a text."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    settings, answer = load(json.loads(sys.stdin.readline()))
    print(json.dumps({"settings": settings}), file=out)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line)["text"])), file=out)
