"""``edgeguard model``: build, inspect, compile; what lies in the cache is ``model_cache``'s."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeguard.cli.model_cache import add_cache_option, add_cache_parsers
from edgeguard.cli.progress import progress_bars
from edgeguard.cli.quantity import scaled
from edgeguard.errors import ModelError

if TYPE_CHECKING:
    from edgeguard.model.inspect import ModelSummary

_BUILD_HELP = """\
Fetches the source that the recipe pins, checks its SHA-256, and writes a model folder that edgeguard and
onnxruntime-genai read. It is built once: a second call prints the folder at once. Nothing half-made is left behind
when it is interrupted.

recipes that come with edgeguard: {recipes}

A recipe of your own is a TOML file; its source is a wheel, a hub repository or a local GGUF file:

  name = "mine"
  summary = "a llama model of Q4_0, Q4_1, Q8_0, F16 or F32 tensors"
  licence = "Apache-2.0"
  [source]
  path = "mine.gguf"    # or: hub, revision, file, sha256
                        # or: wheel, version, file, sha256
  [build]
  accuracy_level = 4    # int8 activations, fast on a CPU; 0: float32

From one source come several variants, each in a folder of its own: NAME:q8 is NAME with --weights q8.
  q4-exact   the file's own 4-bit blocks (Q4_0, Q4_1), carried over exactly: no second rounding
  q8, q4     rounded to symmetric blocks of 32; what that loses, 'edgeguard compare' measures
  f16, f32   dense; f16 is stored in half the bytes of f32 and computed as f32 on a CPU, so there it is no faster
Without --weights every tensor is as the file has it. Head and embedding, the two tensors of the vocabulary's size, stay
as the file has them unless they are named or the weights are floats.

An adapter is a LoRA as PEFT saves it (adapter_config.json, adapter_model.safetensors), trained on the same model. It is
a term beside the file's exact weights, or added into dense ones.
"""

_INSPECT_HELP = """\
Prints architecture, parameters, precision per kind of tensor, the bytes that every pass reads and the bytes that the
KV cache takes per token. The last two, with the memory's bandwidth, say how fast a pass can be at best. The files
of a folder with a manifest are hashed, so a damaged one is named. MODEL is a folder (with a /), or the name of what
'edgeguard model build' has built.
"""


_COMPILE_HELP = """\
Loads and warms the model up as a worker does, and keeps what the provider has compiled (TensorRT engines, OpenVINO
blobs, QNN contexts). It belongs to this model, answer schema, onnxruntime, driver, device and processor: after a change
of any of them a start is refused until it has been made again.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``model`` and its own commands; each sets ``func(args) -> int``."""
    from edgeguard.model.options import Weights
    from edgeguard.model.recipe import known

    parser = commands.add_parser("model", help="build a model folder from a recipe, or look inside one")
    own = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    build = own.add_parser(
        "build",
        help="fetch and build a model, once",
        description=_BUILD_HELP.format(recipes=", ".join(known())),
    )
    build.add_argument("recipe", metavar="NAME", help="the name of a recipe, or a recipe file (*.toml)")
    add_cache_option(build)
    kinds = [kind.value for kind in Weights]
    for part, what in (("weights", "the layers' matrices"), ("head", "the head"), ("embedding", "the embedding")):
        build.add_argument(f"--{part}", choices=kinds, help=f"how to store {what} (default: as in the file)")
    build.add_argument("--adapter", metavar="ADAPTER", help="a LoRA to build in: a name, or a folder (with a /)")
    build.add_argument(
        "--for",
        dest="provider",
        default="cpu",
        metavar="PROVIDER",
        help="the execution provider that is to run it: a graph is not portable between them (default: cpu)",
    )
    build.add_argument("--json", action="store_true", help="print one JSON object instead of the folder's path")
    build.set_defaults(func=_build)
    inspect = own.add_parser(
        "inspect",
        help="what is inside a model folder",
        description=_INSPECT_HELP,
    )
    inspect.add_argument("model", metavar="MODEL", help="a model folder (with a /), or a name as of build")
    add_cache_option(inspect)
    inspect.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    inspect.set_defaults(func=_inspect)
    compiling = own.add_parser(
        "compile",
        help="let the execution provider compile a configuration's model, once, so that later starts are quick",
        description=_COMPILE_HELP,
    )
    compiling.add_argument("config", type=Path, metavar="CONFIG", help="the robot's configuration")
    compiling.set_defaults(func=_compile)
    add_cache_parsers(own)


def _build(arguments: argparse.Namespace) -> int:
    from edgeguard.engine.providers import find_provider
    from edgeguard.model.build import build
    from edgeguard.model.options import Weights
    from edgeguard.model.variant import find_variant
    from edgeguard.runtime.model_choice import for_provider

    recipe = find_variant(arguments.recipe, adapter=arguments.adapter)
    named = {part: getattr(arguments, part) for part in ("weights", "head", "embedding")}
    chosen: dict[str, Any] = {part: Weights(value) for part, value in named.items() if value is not None}
    recipe = replace(recipe, build=replace(recipe.build, **chosen))
    recipe = for_provider(recipe, find_provider(arguments.provider))
    with progress_bars() as progress:
        folder = build(recipe, cache_dir=arguments.cache, progress=progress)
    print(json.dumps({"recipe": recipe.name, "folder": str(folder)}) if arguments.json else folder)
    return 0


def _compile(arguments: argparse.Namespace) -> int:
    from edgeguard.bench.compile import compile_models
    from edgeguard.config import load_config

    with progress_bars() as progress:
        directories = compile_models(load_config(arguments.config), progress=progress)
    print(*directories, sep="\n")
    return 0


def _inspect(arguments: argparse.Namespace) -> int:
    from edgeguard.model.inspect import inspect

    summary = inspect(_find(arguments.model, cache_dir=arguments.cache))
    if arguments.json:
        print(json.dumps(asdict(summary), default=str))
    else:
        _print_tables(summary)
    return 0


def _find(name: str, *, cache_dir: Path | None) -> Path:
    """The folder that is named, or the one that was built; nothing is built for a look."""
    from edgeguard.model.build import find_built
    from edgeguard.model.variant import find_variant, names_folder

    if names_folder(name):
        return Path(name)
    folder = find_built(find_variant(name), cache_dir=cache_dir)
    if folder is None:
        there = f"--cache {cache_dir} " if cache_dir is not None else ""
        raise ModelError(f"{name!r} has not been built: edgeguard model build {there}{name}")
    return folder


def _print_tables(summary: ModelSummary) -> None:
    from rich.table import Table

    from edgeguard.cli.console import Console

    facts = Table(show_header=False, box=None)
    facts.add_row("architecture", f"{summary.architecture}, {summary.layers} layers")
    facts.add_row("licence", summary.licence or "not stated")
    facts.add_row("parameters", f"{summary.parameters:,}")
    if summary.adapter is not None:
        facts.add_row("adapter", summary.adapter)
    facts.add_row("vocabulary", f"{summary.vocabulary} tokens")
    facts.add_row("context", f"{summary.context} tokens" if summary.context else "not stated")
    facts.add_row("weights", scaled(summary.stored_bytes, "B"))
    facts.add_row("bytes per pass", scaled(summary.bytes_per_pass, "B"))
    facts.add_row("KV cache per token", f"{summary.kv_bytes_per_token:,} bytes")
    facts.add_row("accuracy level", "not quantised" if summary.accuracy_level is None else str(summary.accuracy_level))
    facts.add_row("logits", f"{summary.logits} position{'s' if summary.logits == 'all' else ''}")
    facts.add_row("files", "as built (hashes checked)" if summary.verified else "no manifest to check them against")
    kinds = Table("tensors", "precision", title_justify="left", box=None)
    for heading in ("count", "parameters", "size"):
        kinds.add_column(heading, justify="right")
    for kind in summary.tensors:
        kinds.add_row(
            kind.purpose, kind.precision, str(kind.tensors), f"{kind.parameters:,}", scaled(kind.stored_bytes, "B")
        )
    console = Console()
    console.print_headed(summary.name, str(summary.folder), style="bold")
    console.print(facts)
    console.print()
    console.print(kinds)
