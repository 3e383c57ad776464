"""Runs a built graph in plain onnxruntime, for tests that judge the model and not the engine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read when onnxruntime is imported


def run_graph(folder: Path, *passes: list[int], capacity: int = 128) -> NDArray[np.float32]:
    """Logits of the last of several passes over one cache, shared or growing: (positions, vocabulary)."""
    import onnxruntime

    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    caches = [value for value in session.get_inputs() if value.name.startswith("past_key_values")]
    kinds = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
    if caches[0].shape[2] == "past":
        return _run_growing(session, caches, passes, kind=kinds[caches[0].type])
    binding = session.io_binding()
    binding.bind_output("logits")
    for value in caches:
        shape = [1, value.shape[1], capacity, value.shape[3]]
        cache = onnxruntime.OrtValue.ortvalue_from_shape_and_type(shape, kinds[value.type], "cpu", 0)
        binding.bind_ortvalue_input(value.name, cache)
        binding.bind_ortvalue_output(value.name.replace("past_key_values", "present"), cache)
    length = 0
    for tokens in passes:
        length += len(tokens)
        binding.bind_cpu_input("input_ids", np.array([tokens]))
        binding.bind_cpu_input("attention_mask", np.ones((1, length), np.int64))
        binding.bind_output("logits")
        session.run_with_iobinding(binding)
    logits: NDArray[np.float32] = binding.get_outputs()[0].numpy()[0].astype(np.float32)
    return logits


def _run_growing(session: Any, caches: list[Any], passes: tuple[list[int], ...], *, kind: type) -> NDArray[np.float32]:
    past = {value.name: np.zeros((1, value.shape[1], 0, value.shape[3]), kind) for value in caches}
    names = [output.name for output in session.get_outputs()]
    length, said = 0, {}
    for tokens in passes:
        length += len(tokens)
        fixed = {"input_ids": np.array([tokens]), "attention_mask": np.ones((1, length), np.int64)}
        said = dict(zip(names, session.run(None, {**fixed, **past}), strict=True))
        past = {name: said[name.replace("past_key_values", "present")] for name in past}
    logits: NDArray[np.float32] = said["logits"][0].astype(np.float32)
    return logits
