"""What an execution provider has compiled a model to, kept so that a start does not compile again.

    DIRECTORY/manifest.json, and beside it what the provider wrote; mode 0700

It belongs to one model, head, onnxruntime, provider, options, driver, device and processor: anything else is refused
with what differs, because a provider that reads a stale one may compile anew in silence, for minutes. It is written
into a scratch folder and renamed when all of it has reached the disk; the one before goes just before that, so that a
power cut leaves one, whole, or none. Two compilations of one model wait for each other; what a killed one left, the
next one removes. Without one the provider compiles while the worker warms up.

Raises ``ProviderError``.
"""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from edgeguard.disk import locked, sync
from edgeguard.engine.driver import read_driver
from edgeguard.engine.json_file import JsonFile
from edgeguard.engine.provider import Provider
from edgeguard.errors import ModelError, ProviderError

FORMAT = "edgeguard.compiled/1"
CONTEXT = "context.onnx"
"""The graph of compiled nodes, of a provider that is told by the session's EPContext keys."""

_MANIFEST = "manifest.json"
_BELONGS = ("model", "head", "onnxruntime", "provider", "provider_options", "session_options", "threads")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledUse:
    """Options that make a session use a compiled model, and the graph that is opened instead of the model's own."""

    provider_options: Mapping[str, str] = field(default_factory=dict)
    session_options: Mapping[str, str] = field(default_factory=dict)
    graph: Path | None = None


NOT_COMPILED = CompiledUse()


def facts(identity: Mapping[str, str], provider: Provider, *, shapes: str = "any") -> dict[str, str]:
    """What a compiled model depends on: of the worker's identity, the ``shapes`` of its passes, and of the machine that
    runs it.
    """
    return {
        **{key: identity[key] for key in _BELONGS},
        "shapes": shapes,
        **read_driver(provider),
        "kernel": platform.release(),
        "processor": _processor(),
    }


def write_compiled(
    directory: Path, *, provider: Provider, facts: Mapping[str, str], compile_into: Callable[[Path], None]
) -> None:
    """Let ``compile_into`` fill a scratch folder, and put it in the place of ``directory`` when it is whole."""
    if provider.compiled is None:
        raise ProviderError(f"{provider.name} compiles nothing that could be kept")
    scratch = directory.with_name(f".{directory.name}")
    with ExitStack() as held:
        with _writing(directory):
            directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            held.enter_context(locked(directory.with_name(f".{directory.name}.lock")))
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir(mode=0o700)
        held.callback(shutil.rmtree, scratch, ignore_errors=True)
        compile_into(scratch)
        files = sorted(str(file.relative_to(scratch)) for file in scratch.rglob("*") if file.is_file())
        if not files:
            raise ProviderError(
                f"{provider.name} wrote no {provider.compiled.what}; it may need another option for that"
            )
        content = {"format": FORMAT, "what": provider.compiled.what, "facts": dict(facts), "files": files}
        with _writing(directory):
            (scratch / _MANIFEST).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
            for path in (*scratch.rglob("*"), scratch):
                sync(path)
            shutil.rmtree(directory, ignore_errors=True)
            scratch.rename(directory)
            sync(directory.parent)


@contextmanager
def _writing(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ProviderError(
            f"{directory}: cannot be written ({error.strerror}); set EDGEGUARD_CACHE to a folder that can"
        ) from error


def check_compiled(directory: Path, *, facts: Mapping[str, str]) -> None:
    """``ProviderError`` when it is another model's, another machine's, or not what was written."""
    again = "'edgeguard model compile CONFIG' makes it again"
    try:
        manifest = JsonFile.read(directory / _MANIFEST)
        was, files = manifest.get("facts", dict), manifest.get("files", list)
    except ModelError as error:
        raise ProviderError(f"{directory}: is no compiled model, for its {_MANIFEST} says nothing; {again}") from error
    differing = [f"{key}: {was.get(key, 'not known')} -> {now}" for key, now in facts.items() if was.get(key) != now]
    if differing:
        raise ProviderError(f"{directory}: was compiled for something else ({'; '.join(differing)}); {again}")
    for name in files:  # not their hashes: OpenVINO writes a blob anew whenever it has read it
        file = directory / name
        if not file.is_file() or not file.stat().st_size:
            raise ProviderError(f"{file}: is missing or empty; {again}")


def compiled_use(provider: Provider, directory: Path, *, writing: bool = False) -> CompiledUse:
    """What makes the provider write to ``directory``, or read from it."""
    compiled = provider.compiled
    if compiled is None:
        return NOT_COMPILED
    if compiled.directory_option is not None:
        return CompiledUse(provider_options={compiled.directory_option: str(directory), **compiled.switches})
    if not writing:
        return CompiledUse(provider_options=compiled.switches, graph=directory / CONTEXT)
    keys = {
        "ep.context_enable": "1",
        "ep.context_file_path": str(directory / CONTEXT),
        "ep.context_embed_mode": "0",
    }
    return CompiledUse(provider_options=compiled.switches, session_options=keys)


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    names = [line.partition(": ")[2] for line in lines if line.startswith(("model name", "Model"))]
    return names[0] if names else platform.machine()
