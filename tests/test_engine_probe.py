"""What a provider can do on this machine, whatever its library does when it is tried."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from edgeguard.engine.probe import Finding, survey
from edgeguard.engine.provider import Provider
from edgeguard.engine.provider_table import PROVIDERS
from edgeguard.engine.providers import find_provider
from edgeguard.engine.remedy import crash_remedy, driver_remedy, package_remedy, python_remedy
from edgeguard.extras import install_command
from tests.engine_setup import write_config
from tests.test_engine_session import OWN

PLUGIN = Provider(name="npu", ort_name="NpuExecutionProvider", package="acme-npu", extra="cpu", plugin="acme_npu")
COMPILER = shutil.which("gcc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no gcc to make a library with")


def library(folder: Path, body: str) -> str:
    """A shared library that runs ``body`` when it is loaded."""
    source, built = folder / "npu.c", folder / "libnpu.so"
    source.write_text(
        "#include <stdio.h>\n#include <unistd.h>\n#include <stdlib.h>\n"
        f"__attribute__((constructor)) static void loaded(void) {{ {body} }}\n"
    )
    subprocess.run([str(COMPILER), "-shared", "-fPIC", "-o", str(built), str(source)], check=True)
    return str(built)


def found(row: Provider, *, patience_s: float = 60) -> Finding:
    (finding,) = survey([row], patience_s=patience_s)
    return finding


def test_every_row_has_a_finding_and_the_cpu_is_usable() -> None:
    findings = survey(PROVIDERS)
    assert [one.name for one in findings] == [row.name for row in PROVIDERS]
    assert findings[0].usable
    for one in findings:
        assert one.usable or (one.reason and one.remedy), f"{one.name} says neither why nor what to do"


def test_a_provider_that_was_not_built_into_the_runtime_says_which_runtime_that_is() -> None:
    missing = replace(find_provider("cuda"), name="other", ort_name="OtherExecutionProvider")
    finding = found(missing)
    assert finding.reason.startswith("the installed onnxruntime")
    assert finding.remedy == f"python3 -m venv .venv-gpu && .venv-gpu/bin/{install_command('gpu')}"


def test_a_provider_that_no_package_has_says_what_to_build() -> None:
    finding = found(replace(find_provider("xnnpack"), ort_name="OtherExecutionProvider"))
    assert finding.reason.startswith("the installed onnxruntime")
    assert finding.remedy.startswith("./build.sh --config Release --build_wheel --use_xnnpack ")


def test_a_package_that_is_not_installed_is_named_with_the_extra() -> None:
    finding = found(replace(PLUGIN, extra="qnn"))
    assert (finding.reason, finding.remedy) == ("acme-npu is not installed", install_command("qnn"))


def test_a_python_too_old_for_the_wheel_comes_before_everything_else() -> None:
    finding = found(replace(PLUGIN, python=(9, 9)))
    assert finding.reason.startswith("its package needs Python 9.9, this is 3.")
    assert finding.remedy == f"python9.9 -m venv .venv-cpu && .venv-cpu/bin/{install_command('cpu')}"


def test_a_device_that_is_not_there_is_named_by_its_file() -> None:
    finding = found(replace(PROVIDERS[0], device_files=("/dev/no-such-npu*",), driver="sudo modprobe npu"))
    assert finding.reason == "no device: there is no /dev/no-such-npu*"
    assert finding.remedy == "sudo modprobe npu"


def test_a_library_that_is_none_says_what_the_loader_said(tmp_path: Path) -> None:
    (tmp_path / "libnpu.so").write_text("not a library")
    assert "libnpu.so cannot be loaded" in found(replace(PLUGIN, library=str(tmp_path / "libnpu.so"))).reason
    gone = found(replace(PLUGIN, library=str(tmp_path / "gone.so")))
    assert gone.reason.endswith("gone.so does not exist")


@needs_compiler
def test_a_library_without_the_entry_point_is_refused_and_may_print_what_it_likes(tmp_path: Path) -> None:
    finding = found(replace(PLUGIN, library=library(tmp_path, 'puts("hello from the driver"); fflush(stdout);')))
    assert not finding.usable
    assert "cannot be loaded" in finding.reason


@needs_compiler
def test_a_library_that_crashes_takes_nobody_with_it(tmp_path: Path) -> None:
    finding = found(replace(PLUGIN, library=library(tmp_path, "abort();")))
    assert finding.reason == "its library died of SIGABRT when it was tried"
    assert finding.remedy.startswith("sudo dmesg | tail ")


@needs_compiler
def test_a_library_that_hangs_is_given_up(tmp_path: Path) -> None:
    finding = found(replace(PLUGIN, library=library(tmp_path, "sleep(1000);")), patience_s=3)
    assert finding.reason == "its library gave no answer within 3 s"


@pytest.mark.parametrize("row", PROVIDERS, ids=lambda row: row.name)
@pytest.mark.parametrize(
    "said", ["", "libcuda.so.1: cannot open shared object file", "libcublas.so.13: no", "libnvinfer.so.10: no"]
)
def test_whatever_a_provider_lacks_there_is_a_command_that_mends_or_shows_it(row: Provider, said: str) -> None:
    command = re.compile(r"\b(pip|apt|sudo|venv|build\.sh|ldd|nvidia-smi|rocminfo)\b")
    for remedy in (
        package_remedy(row, beside=True),
        package_remedy(row, beside=False),
        python_remedy(row, "3.11"),
        driver_remedy(row, said),
        crash_remedy(row),
    ):
        assert command.search(remedy), remedy


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("libcuda.so.1: cannot open shared object file", "nvidia-smi shows"),
        ("libcublasLt.so.13: cannot open shared object file", "pip install .*onnxruntime-gpu.cuda,cudnn."),
        ("libcudnn.so.9: cannot open shared object file", "pip install .*onnxruntime-gpu.cuda,cudnn."),
        ("libnvinfer.so.10: cannot open shared object file", "pip install 'tensorrt-cu13==10"),
    ],
)
def test_a_library_that_is_a_package_of_its_own_is_not_the_drivers(said: str, remedy: str) -> None:
    assert re.match(remedy, driver_remedy(find_provider("tensorrt"), said))


@needs_compiler
def test_a_library_that_its_package_brings_under_another_name_is_found(tmp_path: Path) -> None:
    """As NVIDIA's plugin brings CUDA's runtime: the file has a longer name than the one that is looked for."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "part.c").write_text("int part(void) { return 7; }\n")
    (folder / "npu.c").write_text("int part(void);\nint whole(void) { return part(); }\n")
    part, npu = folder / "libpart.so.1.2.3", folder / "libnpu.so"
    make = [str(COMPILER), "-shared", "-fPIC"]
    subprocess.run([*make, "-Wl,-soname,libpart.so.1", "-o", str(part), str(folder / "part.c")], check=True)
    subprocess.run([*make, "-o", str(npu), str(folder / "npu.c"), str(part)], check=True)
    row = replace(PLUGIN, library=str(npu))
    assert "libpart.so.1: cannot open" in found(row).reason
    assert "libpart" not in found(replace(row, bundled=("libpart.so.*",))).reason


def test_a_configurations_own_row_is_tried_first(tmp_path: Path) -> None:
    (tmp_path / "libnpu.so").write_text("no library")
    config = write_config(tmp_path, ('folder = "./model"', 'folder = "./model"' + OWN))
    argv = [sys.executable, "-m", "edgeguard", "providers", "--config", str(config)]
    own = json.loads(subprocess.run([*argv, "--json"], capture_output=True, text=True, check=True).stdout)[0]
    assert (own["name"], own["usable"]) == ("npu", False)
    assert own["remedy"].startswith(f"ldd {tmp_path}/libnpu.so ")
    shown = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    assert shown[0].split() == ["npu", "no", "[[provider]]", "of", "robot.toml", "(your", "own", "row)"]
    assert shown[1].startswith("    libnpu.so cannot be loaded")
    assert shown[2].startswith("    → ldd ")


def test_the_command_lists_what_a_machine_wants_to_know() -> None:
    argv = [sys.executable, "-m", "edgeguard", "providers", "--json"]
    listed = json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    assert [set(one) for one in listed] == [{"name", "usable", "reason", "remedy", "devices"}] * len(PROVIDERS)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cpu", "bit-identical however they are split, so there are drafts; cut short inside when they are late"),
        ("cuda", "without drafts; cut short inside when they are late"),
        ("tensorrt", "without drafts; run to their end when they are late"),
        ("qnn", "without drafts; run to their end when they are late"),
    ],
)
def test_a_row_says_whether_passes_may_be_split_and_cut_short(name: str, words: str) -> None:
    assert find_provider(name).passes == words
