"""A fake llama-server: started like the real one, speaks the same HTTP, answers what it was told to in ``ANSWERS``.

    python llama_server.py ANSWERS --model FILE --host HOST --port PORT …

It checks what a real one would use: that the prompt begins as the last one did, that a grammar came with it, and that
the closing brace is a stop word, which it leaves out. ``ANSWERS`` is a JSON list; each is given once, over and over.
"""

from __future__ import annotations

import argparse
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import cycle
from typing import Any


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answers = cycle([""])

    def do_GET(self) -> None:
        self._reply({"status": "ok", "build_info": "b0-fake"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.path == "/completion"
        assert body["grammar"].startswith("root ::= ")
        assert body["cache_prompt"] is True
        assert body["stop"] == ["}"]
        assert body["prompt"].endswith('"')
        self._reply({"content": next(self.answers), "timings": {"prompt_ms": 12.5}})

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def _reply(self, content: dict[str, Any]) -> None:
        text = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("answers")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    arguments, _ = parser.parse_known_args()
    Handler.answers = cycle(json.loads(arguments.answers))
    HTTPServer((arguments.host, arguments.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
