"""``edgeguard model list`` and ``prune``: the models in the cache, and which of them nobody finds any more."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from edgeguard.cli.quantity import scaled

if TYPE_CHECKING:
    from edgeguard.model.cache import CachedModel

_PRUNE_HELP = """\
Lists what an earlier version of edgeguard built and what was never finished, with what execution providers have
compiled it to; --yes removes it. A folder that a CONFIG names stays, or one in /etc/edgeguard. Whatever is removed can
be built again from its recipe.
"""

_INSTALLED = Path("/etc/edgeguard")


def add_cache_parsers(own: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``list`` and ``prune``; each sets ``func(args) -> int``."""
    listing = own.add_parser("list", help="the models in the cache, their size and who finds them")
    prune = own.add_parser(
        "prune",
        help="take models off the disk that nobody finds any more",
        description=_PRUNE_HELP,
    )
    prune.add_argument("--yes", action="store_true", help="remove them; without it they are only listed")
    for command, func in ((listing, _list), (prune, _prune)):
        command.add_argument("configs", type=Path, nargs="*", metavar="CONFIG", help="what it names is in use")
        add_cache_option(command)
        command.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
        command.set_defaults(func=func)


def add_cache_option(parser: argparse.ArgumentParser) -> None:
    """``--cache DIR``."""
    parser.add_argument(
        "--cache",
        type=Path,
        metavar="DIR",
        help="where models are kept (default: $EDGEGUARD_CACHE, else edgeguard/ in the user's cache)",
    )


def _list(arguments: argparse.Namespace) -> int:
    _show(_models(arguments), as_json=arguments.json)
    return 0


def _prune(arguments: argparse.Namespace) -> int:
    from edgeguard.model.cache import remove

    models = [model for model in _models(arguments) if model.found_by is None]
    _show(models, as_json=arguments.json)
    if arguments.yes:
        remove(models)
    if not arguments.json:
        size = scaled(sum(model.size_bytes for model in models), "B")
        print(f"{size} removed" if arguments.yes else f"{size} would be removed: edgeguard model prune --yes")
    return 0


def _models(arguments: argparse.Namespace) -> list[CachedModel]:
    """A configuration that cannot be read ends it: who does not know what is named removes nothing."""
    from edgeguard.config import load_config
    from edgeguard.model.cache import cached_models
    from edgeguard.places import default_cache_dir

    files = [*arguments.configs, *sorted(_INSTALLED.glob("*.toml"))]
    named = {Path(one.model.folder).resolve(): str(file) for file in files for one in load_config(file).by_model}
    return cached_models(arguments.cache or default_cache_dir(), named=named)


def _show(models: Sequence[CachedModel], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"models": [asdict(model) for model in models]}, default=str))
        return
    from rich.table import Table

    from edgeguard.cli.console import Console

    console = Console()
    if models:
        console.print(f"in {models[0].folder.parent}:", soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    table.add_column("model", overflow="fold")
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("found by", overflow="fold")
    table.add_column("folder", no_wrap=True)
    for model in models:
        table.add_row(model.name, scaled(model.size_bytes, "B"), model.found_by or "nobody", model.folder.name)
    console.print(table)
