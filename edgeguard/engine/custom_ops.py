"""Libraries with operators of their own: code that ONNX Runtime loads into the worker, so each is listed with its hash.

A model's folder may ask for one (``genai_config.json``), but only the configuration can allow it. Nothing of a library
is run before its SHA-256 is the listed one. Raises ``ModelError``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from edgeguard.config.sections import CustomOps
from edgeguard.engine.layout import Layout
from edgeguard.errors import ModelError


def checked_libraries(listed: Sequence[CustomOps], layout: Layout) -> tuple[Path, ...]:
    """The files of ``listed``, each what it was when it was listed, among them the one that the model asks for."""
    for one in listed:
        try:
            found = hashlib.sha256(one.library.read_bytes()).hexdigest()
        except OSError as error:
            raise ModelError(f"model.custom_ops: {one.library}: cannot be read ({error.strerror})") from error
        if found != one.sha256:
            raise ModelError(
                f"model.custom_ops: {one.library}: its SHA-256 is {found}, not the listed one; list this one if you "
                "know what has changed"
            )
    wanted = layout.custom_ops_library
    if wanted is not None and Path(wanted).name not in {one.library.name for one in listed}:
        raise ModelError(
            f"{layout.config}: session_options.custom_ops_library: code that comes with a model is not run, unless "
            f"model.custom_ops lists {Path(wanted).name} with its SHA-256"
        )
    return tuple(one.library for one in listed)
