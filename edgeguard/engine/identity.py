"""Who answers, as a flat table of texts: what must be the same for a calibration to hold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from edgeguard.config import Config
from edgeguard.engine.folder import ModelFolder
from edgeguard.plain import to_plain

_DIGITS = 16


def identity(
    config: Config, model: ModelFolder, *, runtime_version: str, threads: int, head: str, drafts: str
) -> dict[str, str]:
    """The model, what it is asked and what runs it. Digests are SHA-256, shortened."""
    return {
        "model": model.model_digest[:_DIGITS],
        "head": head,
        "drafts": drafts,
        "tokenizer": model.tokenizer_digest[:_DIGITS],
        "prompt": _digest(
            {
                "prompt": config.prompt,
                "fields": config.fields,
                "schema": config.schema,
                **({"plans": config.plans} if config.plans else {}),
            }
        ),
        "onnxruntime": runtime_version,
        "provider": config.model.provider,
        "provider_options": _listed(config.model.provider_options),
        "session_options": _listed(config.model.session_options),
        "threads": str(threads),
    }


def _digest(content: Mapping[str, object]) -> str:
    """Of the canonical JSON; the order of a schema's properties counts, for it is the answer's."""
    text = json.dumps(to_plain(content), ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _listed(options: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(options.items()))
