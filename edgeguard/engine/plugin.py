"""Execution providers as libraries: those beside ONNX Runtime are registered by hand, then asked for their devices.

A library is registered under the provider's own name, because some call themselves by the name they are registered
under (onnxruntime-qnn 2.7). Raises ``MissingExtraError`` without the package, and ``ProviderError`` when its library
cannot be loaded or finds no device.
"""

from __future__ import annotations

import ctypes
import importlib
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from edgeguard.engine.provider import Provider
from edgeguard.engine.remedy import driver_remedy
from edgeguard.errors import MissingExtraError, ProviderError


def plugin_library(provider: Provider) -> Path:
    """The file of the provider's library: the one given by hand, or the one that its package names."""
    if provider.library is not None:
        if not Path(provider.library).is_file():
            raise ProviderError(f"{provider.name}: its library {provider.library} does not exist")
        return Path(provider.library)
    assert provider.plugin is not None
    try:
        module = importlib.import_module(provider.plugin)
    except ImportError as error:
        raise MissingExtraError(
            package=provider.package, extra=provider.extra, purpose=f"the provider {provider.name}"
        ) from error
    return Path(module.get_library_path())


def plugin_devices(runtime: ModuleType, provider: Provider, *, errors: tuple[type[Exception], ...]) -> list[Any]:
    """The devices that the provider's library offers here (``onnxruntime.OrtEpDevice``), at least one.

    ``errors`` are what ONNX Runtime raises. Registering again what is registered is no error.
    """
    if not hasattr(runtime, "register_execution_provider_library"):
        raise ProviderError(
            f"onnxruntime {runtime.__version__} takes no provider libraries, and {provider.name} is one; install 1.23 "
            "or newer"
        )
    devices = _devices(runtime, provider)
    if not devices:
        library = plugin_library(provider)
        _load_bundled(library, provider)
        try:
            runtime.register_execution_provider_library(provider.ort_name, str(library))
        except errors as error:
            reason = _reason(error)
            raise ProviderError(
                f"{provider.name}: {library.name} cannot be loaded: {reason}; {driver_remedy(provider, reason)}"
            ) from error
        devices = _devices(runtime, provider)
    if not devices:
        raise ProviderError(
            f"{provider.name}: its library finds no device on this machine; 'edgeguard providers' says what is missing"
        )
    return devices


def _load_bundled(library: Path, provider: Provider) -> None:
    """By its own name a library is found by those that need it, wherever it lies, once it is in the process."""
    for pattern in provider.bundled:
        for file in sorted(library.parent.glob(pattern)):
            with suppress(OSError):  # then the provider's own library says what it lacks
                ctypes.CDLL(str(file), mode=ctypes.RTLD_GLOBAL)


def missing_library(runtime: ModuleType, provider: Provider) -> str:
    """What the loader says of the library of a built-in provider, which ONNX Runtime only logs; empty if it loads."""
    short = provider.ort_name.removesuffix("ExecutionProvider").lower()
    library = Path(str(runtime.__file__)).parent / "capi" / f"libonnxruntime_providers_{short}.so"
    try:
        if library.is_file():
            ctypes.CDLL(str(library))
    except OSError as error:
        return str(error)
    return ""


def missing_device(provider: Provider) -> str:
    """Why the provider's hardware cannot be here; empty where one of its device files is, or none is known.

    A library may offer to simulate its device on any CPU (onnxruntime-qnn does): that is none.
    """
    patterns = [pattern.lstrip("/") for pattern in provider.device_files]
    if not patterns or any(any(Path("/").glob(pattern)) for pattern in patterns):
        return ""
    return f"no device: there is no {' or '.join(provider.device_files)}"


def _devices(runtime: ModuleType, provider: Provider) -> list[Any]:
    return [device for device in runtime.get_ep_devices() if device.ep_name == provider.ort_name]


def _reason(error: Exception) -> str:
    """The end of ONNX Runtime's message: what the loader said."""
    text = str(error).strip().partition("\n")[0]
    return text.rpartition("with error: ")[2] or text
