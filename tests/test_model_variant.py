"""A model by what people call it, in a command and in a configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_setup import write_config

from edgeguard.config import load_config
from edgeguard.errors import ConfigError, ModelError
from edgeguard.model.options import Weights
from edgeguard.model.variant import find_variant, names_folder
from edgeguard.runtime.worker_command import find_model_folder
from tests.adapters import write_adapter

FOLDER = 'folder = "./model"'


def test_a_name_may_choose_weights_head_embedding_and_an_adapter(tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "drive")
    recipe = find_variant(f"smollm2-135m:q4-exact,head=f32,embedding=q8+{adapter}")
    build = recipe.build
    assert (build.weights, build.head, build.embedding) == (Weights.Q4_EXACT, Weights.F32, Weights.Q8)
    assert recipe.adapter == adapter
    assert find_variant("smollm2-135m").build.weights is None
    assert find_variant("smollm2-135m,head=q8").build.head is Weights.Q8


def test_there_can_be_one_adapter(tmp_path: Path) -> None:
    adapter = str(write_adapter(tmp_path / "drive"))
    assert find_variant("smollm2-135m", adapter=adapter) == find_variant(f"smollm2-135m+{adapter}")
    with pytest.raises(ConfigError, match="is a second one; there can be one"):
        find_variant(f"smollm2-135m+{adapter}", adapter=adapter)


@pytest.mark.parametrize(
    ("name", "folder"),
    [("./model", True), ("/m", True), ("tiny", False), ("tiny+./drive", False), ("./mine.toml:q8,head=q4+./a", False)],
)
def test_a_path_is_a_finished_folder_unless_it_is_a_recipe_file(name: str, folder: bool) -> None:
    assert names_folder(name) is folder


def test_a_configurations_adapter_is_found_from_its_own_folder(tmp_path: Path) -> None:
    named = load_config(write_config(tmp_path, (FOLDER, 'folder = "smollm2-135m:q8"\nadapter = "drive"')))
    assert named.model.adapter == "drive"
    beside = load_config(write_config(tmp_path, (FOLDER, 'folder = "smollm2-135m:q8"\nadapter = "./drive"')))
    assert beside.model.adapter == str(tmp_path / "drive")
    write_adapter(tmp_path / "drive")
    with pytest.raises(ModelError, match=r"edgeguard model build smollm2-135m:q8 --adapter .*/drive"):
        find_model_folder(beside)


def test_an_adapter_is_not_built_into_a_finished_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model\.adapter: 'drive' is built into a recipe's model, and folder"):
        load_config(write_config(tmp_path, (FOLDER, f'{FOLDER}\nadapter = "drive"')))
