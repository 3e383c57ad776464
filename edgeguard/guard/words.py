"""The operator's words, as the guard compares them: what was said, without case and punctuation."""

from __future__ import annotations


def normalise(text: str) -> str:
    """``"  Stop!! "`` and ``"stop"`` are the same word; everything but letters, digits and single spaces goes."""
    kept = "".join(character if character.isalnum() else " " for character in text.casefold())
    return " ".join(kept.split())
