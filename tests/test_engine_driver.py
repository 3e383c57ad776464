"""Another driver, device or version of a provider is not what was measured: all are part of who answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeguard.budget.profile import differences
from edgeguard.config import load_config
from edgeguard.engine.driver import read_driver
from edgeguard.engine.model_parts import read_model_parts
from edgeguard.engine.providers import find_provider
from tests.boards import make_tree
from tests.engine_setup import write_config
from tests.tiny import tiny_model

NVIDIA = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Release Build\nGCC version: 12\n"
OWN = """
provider = "npu"

[[provider]]
name = "npu"
execution_provider = "NpuExecutionProvider"
library = "libnpu.so"
"""


def driver_under(root: Path, files: dict[str, str | bytes]) -> str:
    return read_driver(find_provider("cuda"), root=make_tree(root, files))["driver"]


@pytest.mark.parametrize(
    ("files", "driver"),
    [
        ({}, "none"),
        (
            {"proc/driver/nvidia/version": NVIDIA.format("550.54")},
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54  Release Build",
        ),
        ({"sys/module/amdgpu/version": "6.7.0\n", "sys/module/xe/srcversion": "AB12\n"}, "6.7.0; AB12"),
        ({"sys/module/amdgpu/version": b"\xff6.7\n"}, "\N{REPLACEMENT CHARACTER}6.7"),
    ],
)
def test_the_driver_is_what_the_kernel_says(files: dict[str, str | bytes], driver: str, tmp_path: Path) -> None:
    assert driver_under(tmp_path, files) == driver


@pytest.mark.parametrize(
    ("files", "device"),
    [
        ({}, "none"),
        (
            {
                "proc/driver/nvidia/gpus/0000:02:00.0/information": "Model: \t NVIDIA L4\nIRQ: 44\n",
                "proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: \t NVIDIA RTX A2000\nIRQ: 43\n",
                "sys/class/drm/renderD128/device/vendor": "0x10de\n",
            },
            "NVIDIA RTX A2000, NVIDIA L4",
        ),
        (
            {
                "sys/class/drm/renderD128/device/vendor": "0x8086\n",
                "sys/class/drm/renderD128/device/device": "0x46a6\n",
                "sys/class/drm/renderD129/device/uevent": "DRIVER=panfrost\n",
            },
            "0x8086:0x46a6",
        ),
    ],
)
def test_the_device_is_what_the_driver_or_the_bus_calls_it(
    files: dict[str, str | bytes], device: str, tmp_path: Path
) -> None:
    assert read_driver(find_provider("cuda"), root=make_tree(tmp_path, files))["device"] == device


def test_another_library_of_a_provider_makes_a_profile_stale_and_the_processor_has_none(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path)
    on_cpu = load_config(write_config(tmp_path))
    assert not {"driver", "package", "device"} & read_model_parts(config=on_cpu, folder=folder).identity.keys()
    config = load_config(write_config(tmp_path, ('folder = "./model"', 'folder = "./model"' + OWN)))
    measured = read_model_parts(config=config, folder=folder).identity
    assert (measured["package"], measured["driver"]) == ("libnpu.so not there", read_driver_here())
    (tmp_path / "libnpu.so").write_text("another version")
    (difference,) = differences(measured, read_model_parts(config=config, folder=folder).identity)
    assert difference.startswith("package: libnpu.so not there -> libnpu.so ")


def read_driver_here() -> str:
    return read_driver(find_provider("cuda"))["driver"]
