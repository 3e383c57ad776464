"""A real HTTP server that streams like an OpenAI-compatible endpoint, and misbehaves like one when it is told to."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def chat(text: str | None = None, *, finish: str | None = None, **more: Any) -> str:
    """One event of a chat completion."""
    delta = {} if text is None else {"content": text}
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more})


ROLE = json.dumps({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]})
USAGE = json.dumps({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}})
GOOD = (ROLE, chat("{"), chat('"a"'), chat(": 1}"), chat(finish="stop"), USAGE, "[DONE]")


class Script:
    """How the server answers: ``events`` with ``pause_s`` before each, or a ``status`` with a ``body``."""

    def __init__(
        self,
        events: Sequence[str] = GOOD,
        *,
        pause_s: float = 0.0,
        raw: bytes | None = None,
        status: int = 200,
        body: str = "",
        content_type: str = "text/event-stream",
        models: Sequence[str] = ("tiny",),
        refuses: str | None = None,
    ) -> None:
        self.events = events
        self.pause_s = pause_s
        self.raw = raw
        self.status = status
        self.body = body
        self.content_type = content_type
        self.models = models
        self.refuses = refuses
        self.asked: list[Mapping[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []


class _Handler(BaseHTTPRequestHandler):
    script: Script

    def do_GET(self) -> None:
        body = json.dumps({"data": [{"id": name} for name in self.script.models]}).encode()
        self._begin(200, "application/json")
        self.wfile.write(body)

    def do_POST(self) -> None:
        script = self.script
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        script.asked.append(asked)
        script.headers.append(dict(self.headers))
        if script.refuses is not None and script.refuses in asked:
            self._begin(400, "application/json")
            self.wfile.write(json.dumps({"error": {"message": f"Unknown field {script.refuses}"}}).encode())
            return
        if script.status != 200:
            self._begin(script.status, "application/json")
            self.wfile.write(script.body.encode())
            return
        self._begin(200, script.content_type)
        self._stream(script)

    def _stream(self, script: Script) -> None:
        if script.raw is not None:
            self.wfile.write(script.raw)
            return
        for event in script.events:
            time.sleep(script.pause_s)
            self.wfile.write(f"data: {event}\n\n".encode())
            self.wfile.flush()

    def _begin(self, status: int, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        """A test's output is not the place."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has given up is no news."""


@contextmanager
def serving(script: Script) -> Iterator[str]:
    """Its address, ending in /v1."""
    handler = type("Handler", (_Handler,), {"script": script})
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
