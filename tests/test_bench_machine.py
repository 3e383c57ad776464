"""What this machine can do at best, and a model's figures for the roofline."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny import HIDDEN, KV_HEADS, LAYERS, tiny_model

from edgeguard.bench.speed.machine import measure_machine
from edgeguard.bench.speed.model_figures import find_model, model_figures
from edgeguard.clock import NS_PER_MS, SystemClock
from edgeguard.errors import ConfigError


def test_more_products_can_only_find_more() -> None:
    phases = []
    machine = measure_machine(
        clock=SystemClock(), accuracy_level=4, try_for_ns=20 * NS_PER_MS, progress=lambda *step: phases.append(step)
    )
    assert machine.useful_flops == machine.flops > 1e8
    assert machine.bandwidth > 1e8
    assert phases[-1] == ("measuring this machine", 5, 5)


def test_a_models_figures_are_those_of_its_graph(tmp_path: Path) -> None:
    summary, figures = model_figures(tiny_model(tmp_path))
    assert figures.parameters == summary.parameters  # tied: the embedding is the head, and multiplied
    assert 4 < figures.bits < 32
    assert figures.kv_bytes_per_token == 2 * LAYERS * KV_HEADS * (HIDDEN // 4) * 4


def test_a_model_is_a_folder_or_a_recipe() -> None:
    assert find_model("./some/folder") == Path("some/folder")
    with pytest.raises(ConfigError, match="no recipe"):
        find_model("no-such-recipe")
