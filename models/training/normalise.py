"""What makes two utterances the same phrase: lower case, no punctuation, single spaces, numbers as digits."""

from __future__ import annotations

import re
import unicodedata

_TO_TWENTY = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty"""
_NUMBERS = {word: str(number) for number, word in enumerate(_TO_TWENTY.split())}
_NUMBERS |= {"nought": "0", "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70"}
_NUMBERS |= {"eighty": "80", "ninety": "90"}


def normalised(text: str) -> str:
    """The phrase of ``text``; equal phrases are the same words."""
    plain = unicodedata.normalize("NFKD", text).casefold().replace("'", "").replace("’", "")
    words = re.sub(r"[^\w]+", " ", plain).split()
    return " ".join(_NUMBERS.get(word, word) for word in words)
