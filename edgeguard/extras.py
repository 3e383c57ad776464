"""How an optional package comes to this installation of edgeguard: pip is told the place that edgeguard came from.

edgeguard is installed from a folder more often than from an index; what pip recorded of that (``direct_url.json``, the
packaging user guide's *recording the direct URL origin*) says which folder, and whether it is editable.
"""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

_CHECKOUT = Path(__file__).parent.parent


def install_command(extra: str) -> str:
    """The command line that brings ``extra``: ``pip install -e '.[plots]'`` in the folder that edgeguard runs from."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin = distribution("edgeguard").read_text("direct_url.json")
    except PackageNotFoundError:  # found on the module path, as in a checkout that nobody has installed
        return f"pip install -e '{_shown(_CHECKOUT)}[{extra}]'"
    return command_from(origin, extra)


def command_from(origin: str | None, extra: str) -> str:
    """The same from the text of ``direct_url.json``; without one edgeguard came from an index."""
    known = json.loads(origin) if origin else {}
    place = Path(unquote(urlsplit(known.get("url", "")).path))
    if not known.get("url", "").startswith("file:") or not place.exists():
        return f"pip install 'edgeguard[{extra}]'"
    editable = "-e " if known.get("dir_info", {}).get("editable") else ""
    return f"pip install {editable}'{_shown(place)}[{extra}]'"


def _shown(place: Path) -> str:
    return "." if place.resolve() == Path.cwd() else str(place)
