"""What mends a provider that cannot be used here, as commands: its package, the libraries it loads, its driver.

What the loader misses is known by the library's name; else the row says what its hardware asks for. Commands of a
distribution are Debian's and Ubuntu's. Runs nothing and looks at nothing.
"""

from __future__ import annotations

import re

from edgeguard.engine.provider import Provider
from edgeguard.extras import install_command

_REINSTALL = "pip install --upgrade --force-reinstall"
_CUDA = f"{_REINSTALL} 'onnxruntime-gpu[cuda,cudnn]' brings them, and so does a CUDA toolkit of that number"
_TENSORRT = (
    "pip install 'tensorrt-cu13=={number}.*' (or -cu12, as that CUDA is), and before edgeguard: export "
    "LD_LIBRARY_PATH=$(python -c 'import tensorrt_libs as libs; print(*libs.__path__)')"
)

_MISSING = (
    (re.compile(r"lib(cudart|cublas\w*|cufft|curand|cudnn|nvrtc)\.so\.(?P<number>\d+)"), _CUDA),
    (re.compile(r"lib(nvinfer\w*|nvonnxparser)\.so\.(?P<number>\d+)"), _TENSORRT),
)
"""Libraries that are packages of their own, beside the driver."""


def package_remedy(row: Provider, *, beside: bool) -> str:
    """For a package that is not installed; ``beside`` says whether another onnxruntime is, which it must not touch."""
    if row.build_flag:
        return f"./build.sh --config Release --build_wheel {row.build_flag} in ONNX Runtime's source: no package has it"
    command = install_command(row.extra)
    return command if row.plugin or not beside else _apart(f".venv-{row.extra}", command)


def python_remedy(row: Provider, wanted: str) -> str:
    """For a Python that the package is not made for."""
    return _apart(f".venv-{row.extra}", install_command(row.extra), python=f"python{wanted}")


def driver_remedy(row: Provider, reason: str) -> str:
    """For a library that is not found or does not load, and for a device that is not there."""
    for library, remedy in _MISSING:
        if found := library.search(reason):
            return remedy.format(number=found["number"])
    if row.library is not None:
        return f"ldd {row.library} names what it lacks; 'library' of [[provider]] says where it is"
    return row.driver or f"{_REINSTALL} {row.package}"


def crash_remedy(row: Provider) -> str:
    """For a library that takes its process with it, or never answers."""
    return f"sudo dmesg | tail says what the driver had; {driver_remedy(row, '')}"


def _apart(folder: str, command: str, *, python: str = "python3") -> str:
    return f"{python} -m venv {folder} && {folder}/bin/{command}"
