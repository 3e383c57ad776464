"""onnxruntime-genai on our own folder, whose layout it reads, and on a folder of its own builder."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from edgeguard.engine.session import allowed_threads
from edgeguard.model.build import build
from edgeguard.model.options import Logits
from edgeguard.model.recipe import Recipe
from peers.system import AbsentError, ChildSystem, System, Weights
from peers.task import Question, Task

PACKAGE = "onnxruntime-genai"
PROVIDERS = {"cpu": "cpu", "cuda": "cuda", "nv_tensorrt_rtx": "NvTensorRtRtx", "webgpu": "WebGPU"}
"""As onnxruntime-genai calls those that run the graph with a shared cache, which is the one that it takes from us."""

CAPACITY = 512
WARM_UP = 3


def rows(
    *, task: Task, recipe: Recipe, provider: str, own: Path | None, example: Question
) -> Mapping[str, Callable[[], System]]:
    """Each way to run it, by name. Our folder has logits of the last token only, which is what ``prune_lm_head`` makes;
    to verify a draft its n-gram decoding needs all of them, so that row has a folder built with those.
    """
    every = replace(recipe, build=replace(recipe.build, logits=Logits.ALL))

    def opened(name: str, folder: Callable[[], Path], *, fast_forward: bool, ngram: bool, weights: Weights) -> System:
        if provider not in PROVIDERS:
            raise AbsentError(f"onnxruntime-genai does not run on {provider}")
        load = {
            "folder": str(folder()),
            "provider": PROVIDERS[provider],
            "threads": allowed_threads(0),
            "capacity": CAPACITY,
            "fast_forward": fast_forward,
            "ngram": ngram,
            "warm_up": WARM_UP,
            "example": example.text,
        }
        return ChildSystem(
            name=name,
            module="genai_child",
            package=PACKAGE,
            python=sys.executable,
            load=load,
            task=task,
            weights=weights,
        )

    ours, with_every = partial(build, recipe), partial(build, every)
    found = {
        "genai": (ours, False, False, Weights.GRAPH),
        "genai, fast-forward": (ours, True, False, Weights.GRAPH),
        "genai, fast-forward, n-gram": (with_every, True, True, Weights.GRAPH),
    }
    if own is not None:
        found["genai, its builder's folder"] = (lambda: own, True, False, Weights.OTHER)
    return {
        name: partial(opened, name, folder, fast_forward=fast_forward, ngram=ngram, weights=weights)
        for name, (folder, fast_forward, ngram, weights) in found.items()
    }
