"""Opens an ONNX Runtime session as a robot needs it: one provider and no other, bounded threads, nothing sent home.

ONNX Runtime takes unknown provider names, options and session keys in silence and goes on without them, and puts what
a provider does not run on the CPU; all are errors here. Raises ``MissingExtraError``, ``ProviderError``,
``ModelError``, ``ConfigError``, each with the way out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from edgeguard.engine.compiled import NOT_COMPILED, CompiledUse
from edgeguard.engine.folder import ModelFolder
from edgeguard.engine.head import Head
from edgeguard.engine.placement import RECORD_ASSIGNMENT, audit, profiled, recorded, records_assignment
from edgeguard.engine.plugin import missing_device, missing_library, plugin_devices
from edgeguard.engine.provider import Provider
from edgeguard.engine.remedy import driver_remedy, package_remedy
from edgeguard.engine.session_options import SESSION_DEFAULTS, check_options, chosen_options, refuse_unknown_keys
from edgeguard.engine.shapes import FixedShapes
from edgeguard.errors import MissingExtraError, ModelError, ProviderError

_PLACE = re.compile(r"^/\S+:\d+ [^(]*\([^)]*\) ")
_EXTERNAL_DATA_FOLDER = "session.model_external_initializers_file_folder_path"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An ``onnxruntime.InferenceSession``, and in words where its nodes are."""

    session: Any
    placement: str


def import_runtime(provider: Provider) -> ModuleType:
    """The module ``onnxruntime``, with its telemetry off: it is read once, at the import (on by default from 1.29)."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtraError(package=provider.package, extra=provider.extra, purpose="running a model") from error
    if provider.plugin is None and provider.library is None:
        _require_built_in(onnxruntime, provider)
    if provider.cuda:
        with redirect_stdout(StringIO()):  # it prints what it does not find, which the session then says
            onnxruntime.preload_dlls()
    onnxruntime.set_default_logger_severity(4)  # it logs what is raised, or asked for
    return onnxruntime  # type: ignore[no-any-return]


def _require_built_in(runtime: ModuleType, provider: Provider) -> None:
    if provider.ort_name not in runtime.get_available_providers():
        raise ProviderError(
            f"{provider.name}: onnxruntime {runtime.__version__} has no {provider.ort_name}; "
            f"{package_remedy(provider, beside=True)}; 'edgeguard providers' says what is usable here"
        )


def runtime_errors() -> tuple[type[Exception], ...]:
    """What ONNX Runtime raises: its own exceptions have no common root, and some paths raise Python's."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    own = [kind for kind in vars(state).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    return (*own, RuntimeError, ValueError)


def allowed_threads(configured: int) -> int:
    """The threads of a pass: what is configured, or (0) every core this process may use."""
    return configured or len(os.sched_getaffinity(0))


def open_session(
    *,
    folder: ModelFolder,
    head: Head,
    provider: Provider,
    threads: int,
    provider_options: Mapping[str, str],
    session_options: Mapping[str, str],
    compiled: CompiledUse = NOT_COMPILED,
    fixed: FixedShapes | None = None,
    custom_ops: Sequence[Path] = (),
) -> Opened:
    """A session that runs on ``provider`` and nowhere else, with the inputs and outputs that the folder names.

    Its graph is the folder's, or the one that ``head`` has made of it, or what the provider has compiled that to.
    ``provider_options`` and ``session_options`` add to and win over the defaults of the row and of every session;
    ``fixed`` are the shapes of its passes, where not any will do; ``custom_ops`` are libraries that have been checked.
    """
    runtime = import_runtime(provider)
    refuse_unknown_keys(session_options)
    frozen = fixed.frozen(folder) if fixed is not None and provider.shapes == "one" else {}
    ranges = fixed.range_options(folder, provider) if fixed is not None and not frozen else {}
    configured = chosen_options(provider, {**ranges, **provider_options}, threads=threads)
    chosen = {**configured, **compiled.provider_options}
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = runtime.ExecutionMode.ORT_SEQUENTIAL
    options.enable_mem_pattern = False  # it plans memory for one shape, and ours vary
    options.log_severity_level = 4  # an error is raised as well, and its warnings are about what is checked below
    for key, value in {**SESSION_DEFAULTS, **session_options, **compiled.session_options}.items():
        options.add_session_config_entry(key, value)
    for library in custom_ops:
        _register(options, library)
    for name, size in frozen.items():
        options.add_free_dimension_override_by_name(name, size)
    if head.model is not None and compiled.graph is None:
        options.add_session_config_entry(_EXTERNAL_DATA_FOLDER, str(folder.path))
    with ExitStack() as until_audited:
        if records_assignment(runtime):
            options.add_session_config_entry(RECORD_ASSIGNMENT, "1")
        else:
            options.enable_profiling = True
            options.profile_file_prefix = f"{until_audited.enter_context(TemporaryDirectory())}/pass"
        graph = str(compiled.graph) if compiled.graph is not None else head.model or str(folder.graph.path)
        session = _opened(runtime, options, graph, folder=folder, provider=provider, chosen=chosen)
        check_options(session, provider, chosen)
        _check_signature(session, folder, head, provider)
        placed = recorded(session) if records_assignment(runtime) else profiled(session, folder, fixed=fixed)
    return Opened(session=session, placement=audit(placed, provider))


def _register(options: Any, library: Path) -> None:
    try:
        options.register_custom_ops_library(str(library.absolute()))  # a name alone is looked for elsewhere
    except runtime_errors() as error:
        raise ModelError(f"model.custom_ops: {library}: cannot be loaded: {first_line(error)}") from error


def _opened(
    runtime: ModuleType,
    options: Any,
    model: str | bytes,
    *,
    folder: ModelFolder,
    provider: Provider,
    chosen: Mapping[str, str],
) -> Any:
    errors = runtime_errors()
    built_in = provider.plugin is None and provider.library is None
    devices = [] if built_in else plugin_devices(runtime, provider, errors=errors)
    if devices and (missing := missing_device(provider)):
        remedy = driver_remedy(provider, missing)
        raise ProviderError(f"{provider.name}: {missing}; what its library offers runs on the CPU; {remedy}")
    try:
        if devices:
            options.add_provider_for_devices(devices, dict(chosen))
        session = runtime.InferenceSession(
            model,
            options,
            providers=[(provider.ort_name, dict(chosen))] if built_in else None,
            enable_fallback=0,
        )
    except errors as error:
        if built_in:
            _require_library(runtime, provider)
        graph = folder.graph
        raise ModelError(
            f"{graph.path} (IR version {graph.ir_version}, opset {graph.opset}) cannot be opened by onnxruntime "
            f"{runtime.__version__} on {provider.name}: {first_line(error)}; build the model again, or take a "
            f"newer {provider.package or 'onnxruntime'} (pip install --upgrade)"
        ) from error
    if session.get_providers()[0] != provider.ort_name:
        _require_library(runtime, provider)
        raise ProviderError(
            f"{provider.name}: onnxruntime chose {session.get_providers()[0]} instead; "
            "'edgeguard providers' says what this machine lacks for it"
        )
    return session


def _require_library(runtime: ModuleType, provider: Provider) -> None:
    if lacking := missing_library(runtime, provider):
        raise ProviderError(f"{provider.name}: {lacking}; {driver_remedy(provider, lacking)}")


def _check_signature(session: Any, folder: ModelFolder, head: Head, provider: Provider) -> None:
    names, graph = folder.names, folder.graph.path
    cache = names.cache(layers=folder.layers)
    inputs, outputs = ({node.name: node for node in nodes} for nodes in (session.get_inputs(), session.get_outputs()))
    wanted = {*names.inputs, *(past for past, _ in cache)}
    if inputs.keys() != wanted:
        differing = ", ".join(sorted(inputs.keys() ^ wanted))
        raise ModelError(f"{graph}: its inputs are not those of its folder's configuration; they differ in {differing}")
    missing = {names.logits, *(present for _, present in cache)} - outputs.keys()
    if missing:
        raise ModelError(
            f"{graph}: lacks the outputs {', '.join(sorted(missing))} that its folder's configuration names"
        )
    for past, _ in cache:
        node = inputs[past]
        if node.type not in provider.kv_types:
            raise ProviderError(
                f"{graph}: its cache is {node.type}, and the attention of {provider.name} takes only "
                f"{', '.join(provider.kv_types)}; build the model for {provider.name}"
            )
        sizes = zip((node.shape[1], node.shape[3]), (folder.kv_heads, folder.head_size), strict=True)
        if any(isinstance(size, int) and size != expected for size, expected in sizes):
            raise ModelError(
                f"{graph}: {past} is {node.shape}, not what its folder's configuration says of heads and their size"
            )
    if outputs[names.logits].shape[-1] != head.rows:
        raise ModelError(
            f"{graph}: {outputs[names.logits].shape[-1]} logits for a vocabulary of {head.rows} tokens in "
            "its folder's configuration; the two files are of different models"
        )


def first_line(error: Exception) -> str:
    """What ONNX Runtime says, without the place in its source that it begins with."""
    return _PLACE.sub("", str(error).strip().partition("\n")[0])
