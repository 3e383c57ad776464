"""What an execution provider can do on this machine, found out in a process of its own: a driver's library may crash.

``python -m edgeguard.engine.probe ROW`` (a row of the table as JSON) prints a ``Finding`` as JSON. The questions come
in the order in which they cost: Python, package, library, device, and at last one product of two matrices on the
provider itself, with its place audited. ``survey`` asks for every row at once and survives whatever happens there.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeguard.engine.placement import RECORD_ASSIGNMENT, audit, recorded, records_assignment
from edgeguard.engine.plugin import missing_device, missing_library, plugin_devices
from edgeguard.engine.protobuf import Message
from edgeguard.engine.provider import Provider
from edgeguard.engine.remedy import crash_remedy, driver_remedy, package_remedy, python_remedy
from edgeguard.engine.session import first_line, import_runtime, runtime_errors
from edgeguard.errors import EdgeguardError, MissingExtraError, ProviderError
from edgeguard.plain import from_plain, to_plain

PATIENCE_S = 60
"""For one provider; the first use of some compiles for seconds."""

_BURIAL_S = 5

_RUNTIME_PACKAGES = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino", "onnxruntime-migraphx")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """``reason`` and ``remedy`` are empty where it is ``usable``; ``devices`` are what was found for it."""

    name: str
    usable: bool
    reason: str = ""
    remedy: str = ""
    devices: tuple[str, ...] = ()


class UnusableError(EdgeguardError):
    """Why a provider cannot be used, and the command that would mend it."""

    def __init__(self, reason: str, remedy: str) -> None:
        self.remedy = remedy
        super().__init__(reason)


def survey(rows: Iterable[Provider], *, patience_s: float = PATIENCE_S) -> list[Finding]:
    """A finding for each row, in their order; all are asked at the same time."""
    asked = [(row, _start(row)) for row in rows]
    return [_answer(row, process, patience_s) for row, process in asked]


def _start(row: Provider) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "edgeguard.engine.probe", json.dumps(to_plain(row))]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def _answer(row: Provider, process: subprocess.Popen[str], patience_s: float) -> Finding:
    try:
        said, _ = process.communicate(timeout=patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        with suppress(subprocess.TimeoutExpired):  # one that a driver holds in the kernel does not even die
            process.communicate(timeout=_BURIAL_S)
        return Finding(
            name=row.name,
            usable=False,
            reason=f"its library gave no answer within {patience_s:g} s",
            remedy=crash_remedy(row),
        )
    if process.returncode == 0:
        return from_plain(Finding, json.loads(said))
    died = f"died of {signal.Signals(-process.returncode).name}" if process.returncode < 0 else "failed"
    return Finding(
        name=row.name, usable=False, reason=f"its library {died} when it was tried", remedy=crash_remedy(row)
    )


def probe(row: Provider) -> Finding:
    """Try the provider here, in this process."""
    devices = tuple(sorted(file for pattern in row.device_files for file in map(str, _glob(pattern))))
    try:
        devices = _try(row) or devices
    except UnusableError as error:
        return Finding(name=row.name, usable=False, reason=str(error), remedy=error.remedy, devices=devices)
    return Finding(name=row.name, usable=True, devices=devices)


def _try(row: Provider) -> tuple[str, ...]:
    """The devices by name, where the provider says them; ``UnusableError`` otherwise."""
    if sys.version_info < row.python:
        wanted = ".".join(map(str, row.python))
        running = ".".join(map(str, sys.version_info[:2]))
        raise UnusableError(f"its package needs Python {wanted}, this is {running}", python_remedy(row, wanted))
    try:
        runtime = import_runtime(row)
    except MissingExtraError as error:
        raise UnusableError(f"{row.package} is not installed", _install(row)) from error
    except ProviderError as error:
        installed = ", ".join(_installed_runtimes())
        raise UnusableError(f"the installed {installed} was built without it", _install(row)) from error
    if row.plugin or row.library:
        try:
            devices = plugin_devices(runtime, row, errors=runtime_errors())
        except MissingExtraError as error:
            raise UnusableError(f"{row.package} is not installed", _install(row)) from error
        except ProviderError as error:
            reason = str(error).partition(": ")[2].partition("; ")[0]
            raise UnusableError(reason, driver_remedy(row, reason)) from error
        _require_device(row)
        _multiply(runtime, row, devices)
        return tuple(f"{device.device.vendor} {device.device.type.name}" for device in devices)
    _require_device(row)
    _multiply(runtime, row, [])
    return ()


def _require_device(row: Provider) -> None:
    if missing := missing_device(row):
        raise UnusableError(missing, driver_remedy(row, missing))


def _multiply(runtime: Any, row: Provider, devices: list[Any]) -> None:
    """One product on the provider itself; that it would have run elsewhere is a failure like any other."""
    errors: tuple[type[Exception], ...] = (*runtime_errors(), ProviderError)
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    if records_assignment(runtime):
        options.add_session_config_entry(RECORD_ASSIGNMENT, "1")
    if devices:
        options.add_provider_for_devices(devices, dict(row.options))
    built_in = None if devices else [(row.ort_name, dict(row.options))]
    try:
        session = runtime.InferenceSession(_product(), options, providers=built_in, enable_fallback=0)
        if session.get_providers()[0] != row.ort_name:
            raise ProviderError(f"onnxruntime {runtime.__version__} goes on without it")
        if records_assignment(runtime):
            audit(recorded(session), row)
        import numpy as np

        session.run(None, {"x": np.ones((2, 2), np.float32)})
    except errors as error:
        reason = missing_library(runtime, row) or first_line(error)[:300]
        raise UnusableError(reason, driver_remedy(row, reason)) from error


def _product() -> bytes:
    """An ONNX model (onnx.proto, IR 8, opset 13) of one ``MatMul``: ``y = x @ w``, (2, 2) float32."""

    def message(*fields: tuple[int, int | str | bytes]) -> bytes:
        whole = Message([])
        for number, value in fields:
            single = Message([])
            single.put(number, value)
            whole.fields += single.fields
        return whole.encode()

    def value_info(name: str) -> bytes:
        size = message((1, 2))
        tensor = message((1, 1), (2, message((1, size), (1, size))))
        return message((1, name), (2, message((1, tensor))))

    identity = b"".join(one.to_bytes(4, "little") for one in (0x3F800000, 0, 0, 0x3F800000))
    weight = message((1, 2), (1, 2), (2, 1), (8, "w"), (9, identity))
    node = message((1, "x"), (1, "w"), (2, "y"), (3, "product"), (4, "MatMul"))
    graph = message((1, node), (2, "g"), (5, weight), (11, value_info("x")), (12, value_info("y")))
    return message((1, 8), (7, graph), (8, message((2, 13))))


def _installed_runtimes() -> list[str]:
    found = []
    for package in _RUNTIME_PACKAGES:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _install(row: Provider) -> str:
    return package_remedy(row, beside=bool(_installed_runtimes()))


def _glob(pattern: str) -> list[Path]:
    return sorted(Path("/").glob(pattern.lstrip("/")))


def main() -> None:
    """Probe the row that is handed over."""
    row = from_plain(Provider, json.loads(sys.argv[1]))
    parent = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # some libraries print when they are loaded
    json.dump(to_plain(probe(row)), parent)
    parent.close()


if __name__ == "__main__":
    main()
