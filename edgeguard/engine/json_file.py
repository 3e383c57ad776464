"""A JSON object and the file it came from, read strictly: what is wrong is said with the file and the key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeguard.errors import ModelError

BUILD_AGAIN = "build the model again"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonFile:
    """Keys are dotted paths. Raises ``ModelError``."""

    file: Path
    content: Mapping[str, Any]

    @classmethod
    def read(cls, file: Path) -> JsonFile:
        """The object in ``file``."""
        try:
            content = json.loads(file.read_bytes())
        except OSError as error:
            raise ModelError(f"{file}: cannot be read ({error.strerror}); {BUILD_AGAIN}") from error
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{file}: is not JSON ({error}); {BUILD_AGAIN}") from error
        if not isinstance(content, dict):
            raise ModelError(f"{file}: is not a JSON object; {BUILD_AGAIN}")
        return cls(file=file, content=content)

    def get(self, key: str, kind: type) -> Any:
        """The value at ``key``, which must be of ``kind``."""
        value = self._at(key)
        if not isinstance(value, kind):
            raise ModelError(f"{self.file}: {key} is {value!r}, not of type {kind.__name__}; {BUILD_AGAIN}")
        return value

    def size(self, key: str, *, default: int | None = None) -> int:
        """A whole number above zero; ``default`` if the key is absent."""
        value = self._at(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ModelError(f"{self.file}: {key} is {value!r}, not a size; {BUILD_AGAIN}")
        return value

    def tokens(self, key: str) -> tuple[int, ...]:
        """One token id or several."""
        value = self._at(key)
        ids = value if isinstance(value, list) else [value]
        if not ids or not all(isinstance(one, int) and not isinstance(one, bool) for one in ids):
            raise ModelError(f"{self.file}: {key} is {value!r}, not a token or a list; {BUILD_AGAIN}")
        return tuple(ids)

    def _at(self, key: str) -> Any:
        value: Any = self.content
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value
