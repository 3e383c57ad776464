"""One streamed completion, read event by event: when its first and its last text came, and how many tokens it had.

Sans I/O: the data of server-sent events and the times of their arrival go in. The first *non-empty* fragment is the
first token: servers open with an empty one that only names the role. Fragments are not tokens, one may hold several:
the number of tokens is what the server states (``usage``, or llama.cpp's ``timings``), else the fragments are counted
and ``stated`` is false. Raises ``EndpointError`` for an event that is none, and for a stream that ends too early.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from edgeguard.errors import EndpointError

_DONE = "[DONE]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A whole one. Times are monotonic nanoseconds. ``stated``: the endpoint has said how many tokens there were."""

    sent_ns: int
    first_ns: int
    last_ns: int
    tokens: int
    stated: bool
    text: str

    @property
    def first_token_ns(self) -> int:
        return self.first_ns - self.sent_ns

    @property
    def per_token_ns(self) -> float | None:
        """Of the tokens after the first; ``None`` when there was one only."""
        return (self.last_ns - self.first_ns) / (self.tokens - 1) if self.tokens > 1 else None

    @property
    def total_ns(self) -> int:
        return self.last_ns - self.sent_ns


class CompletionReader:
    """Reads the events of one request that was sent at ``sent_ns``."""

    def __init__(self, *, sent_ns: int) -> None:
        self._sent_ns = sent_ns
        self._first_ns: int | None = None
        self._last_ns = sent_ns
        self._fragments: list[str] = []
        self._tokens: int | None = None
        self._finished = False
        self.done = False

    def take(self, data: str, *, now_ns: int) -> None:
        """One event's data. ``done`` is true after the last one."""
        if data.strip() == _DONE:
            self._finished = self.done = True
            return
        event = _object(data)
        if event.get("error"):
            raise EndpointError(f"the endpoint reports in mid-stream: {error_words(event)}")
        self._tokens = _stated_tokens(event) or self._tokens
        for choice in _choices(event):
            self._finished = self._finished or choice.get("finish_reason") is not None
            if text := "".join(_texts(choice)):
                self._fragments.append(text)
                self._first_ns = now_ns if self._first_ns is None else self._first_ns
                self._last_ns = now_ns

    def close(self) -> Completion:
        """The completion, when the stream has ended."""
        if not self._finished:
            raise EndpointError(
                f"the stream broke off after {len(self._fragments)} fragments, without a finish_reason or {_DONE}"
            )
        if self._first_ns is None:
            raise EndpointError("the stream ended without any text: there is no first token to time")
        return Completion(
            sent_ns=self._sent_ns,
            first_ns=self._first_ns,
            last_ns=self._last_ns,
            tokens=self._tokens or len(self._fragments),
            stated=self._tokens is not None,
            text="".join(self._fragments),
        )


def error_words(body: object) -> str:
    """What an endpoint says is wrong: {"error": {"message": …}}, {"error": …}, {"detail": …}, or whatever it is."""
    if isinstance(body, Mapping):
        inner = body.get("error") or body.get("detail") or body.get("message") or body
        body = inner.get("message", inner) if isinstance(inner, Mapping) else inner
    return str(body)[:300]


def _object(data: str) -> Mapping[str, Any]:
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        raise EndpointError(f"an event of the stream is no JSON object: {data[:80]!r}")
    return event


def _choices(event: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    choices = event.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict):
            yield choice


def _texts(choice: Mapping[str, Any]) -> Iterator[str]:
    """Text, reasoning and arguments of tool calls are all tokens that were waited for."""
    delta = choice.get("delta")
    delta = delta if isinstance(delta, dict) else {}
    calls = delta.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    arguments = [function.get("arguments") for function in functions if isinstance(function, dict)]
    for text in (choice.get("text"), delta.get("content"), delta.get("reasoning_content"), *arguments):
        if isinstance(text, str):
            yield text


def _stated_tokens(event: Mapping[str, Any]) -> int | None:
    for part, name in (("usage", "completion_tokens"), ("timings", "predicted_n")):
        stated = event.get(part)
        count = stated.get(name) if isinstance(stated, dict) else None
        if isinstance(count, int) and count > 0:
            return count
    return None
