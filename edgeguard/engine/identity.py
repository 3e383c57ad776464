"""Who answers, as a flat table of texts: what must be the same for a calibration to hold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from edgeguard.config import Config
from edgeguard.config.sections import Rung
from edgeguard.engine.folder import ModelFolder
from edgeguard.plain import to_plain

_DIGITS = 16
_OWN = ("model", "head", "drafts", "tokenizer", "prompt")
"""What differs between the models of one ladder."""


def identity(
    config: Config,
    model: ModelFolder,
    *,
    runtime_version: str,
    threads: int,
    head: str,
    drafts: str,
    driver: Mapping[str, str],
) -> dict[str, str]:
    """The model, what it is asked and what runs it. Digests are SHA-256, shortened; ``driver`` is ``read_driver``'s, or
    empty for the processor.
    """
    return {
        "model": model.model_digest[:_DIGITS],
        "head": head,
        "drafts": drafts,
        "tokenizer": model.tokenizer_digest[:_DIGITS],
        "onnxruntime": runtime_version,
        **driver,
        **configured_identity(config, threads=threads),
    }


def configured_identity(config: Config, *, threads: int) -> dict[str, str]:
    """What of it the configuration alone decides, known before any model is looked at."""
    return {
        "prompt": _digest(
            {
                "prompt": config.prompt,
                "fields": config.fields,
                "schema": config.schema,
                **({"plans": [_asked(rung) for rung in config.plans]} if config.plans else {}),
            }
        ),
        "provider": config.model.provider,
        "provider_options": _listed(config.model.provider_options),
        "session_options": _listed(config.model.session_options),
        "threads": str(threads),
        **({"shapes": config.model.shapes} if config.model.shapes else {}),
        **({"custom_ops": _libraries(config)} if config.model.custom_ops else {}),
    }


def joint_identity(models: Iterable[tuple[str, Mapping[str, str]]]) -> dict[str, str]:
    """Of a ladder whose rungs ask several models: ``(rung, identity of its model)`` each, the best rung first. What a
    further model has of its own is named by the first rung that asks it.
    """
    (_, first), *others = models
    joint, seen = dict(first), [first]
    for rung, one in others:
        if one not in seen:
            seen.append(one)
            joint |= {f"{key} of plan {rung}": one[key] for key in _OWN}
    return joint


def _asked(rung: Rung) -> dict[str, object]:
    """Of a plan; which model it asks is in that one's own digest."""
    return {"name": rung.name, "prompt": rung.prompt, "schema": rung.schema}


def _digest(content: Mapping[str, object]) -> str:
    """Of the canonical JSON; the order of a schema's properties counts, for it is the answer's."""
    text = json.dumps(to_plain(content), ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _libraries(config: Config) -> str:
    return ", ".join(one.sha256[:_DIGITS] for one in config.model.custom_ops)


def _listed(options: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(options.items()))
