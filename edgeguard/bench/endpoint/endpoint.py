"""An OpenAI-compatible streaming endpoint, asked and timed: on this board or elsewhere.

``url`` is its base (``http://127.0.0.1:8080/v1``), or the whole address of its ``…/completions``. HTTP and server-sent
events are httpx's and httpx-sse's, the extra ``endpoint``. Every failure is an ``EndpointError`` that says what to
look at. Nanoseconds; what is timed includes the way there and back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from edgeguard.bench.endpoint.completion import Completion, CompletionReader, error_words
from edgeguard.clock import Clock
from edgeguard.errors import EndpointError, MissingExtraError

if TYPE_CHECKING:
    import httpx

_CHAT = "/chat/completions"
_OPTIONS = "stream_options"


class Endpoint:
    """Asks one endpoint, over one connection. ``key`` is sent as a bearer token; ``model`` is asked for by name."""

    def __init__(
        self, url: str, *, clock: Clock, model: str | None = None, key: str | None = None, timeout_s: float = 60.0
    ) -> None:
        httpx, self._sse = _import()
        self._httpx = httpx
        self._clock = clock
        self.url = url if url.rstrip("/").endswith("/completions") else url.rstrip("/") + _CHAT
        self._base = self.url.removesuffix("/completions").removesuffix("/chat")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(headers=headers, timeout=timeout_s)
        self._states_usage = True
        try:
            self.model = model or self._first_model()
        except BaseException:  # Ctrl-C too: nobody else has it to close
            self._client.close()
            raise

    def ask(self, prompt: str, *, max_tokens: int, extra: Mapping[str, Any]) -> Completion:
        """One completion of ``prompt``; ``extra`` are fields of the request that add to and win over ours."""
        asked = {"messages": [{"role": "user", "content": prompt}]} if self.url.endswith(_CHAT) else {"prompt": prompt}
        body = {**asked, "model": self.model, "max_tokens": max_tokens, "temperature": 0, **extra, "stream": True}
        if self._states_usage:
            body = {_OPTIONS: {"include_usage": True}, **body}
        try:
            return self._stream(body)
        except _UnknownOptionError:  # an older server; it is asked again without, and tokens are counted as fragments
            self._states_usage = False
            return self._stream({key: value for key, value in body.items() if key != _OPTIONS})

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _stream(self, body: Mapping[str, Any]) -> Completion:
        reader = CompletionReader(sent_ns=self._clock.now_ns())
        try:
            with self._sse.connect_sse(self._client, "POST", self.url, json=body) as source:
                self._check(source.response, body)
                for event in source.iter_sse():
                    reader.take(event.data, now_ns=self._clock.now_ns())
                    if reader.done:
                        break
        except self._sse.SSEError as error:
            raise EndpointError(f"{self.url}: does not stream server-sent events ({error})") from error
        except self._httpx.HTTPError as error:
            raise self._unreachable(error) from error
        return reader.close()

    def _first_model(self) -> str:
        """The model that is served, where none is named: the first of the endpoint's list."""
        try:
            answer = self._client.get(f"{self._base}/models")
        except self._httpx.HTTPError as error:
            raise self._unreachable(error) from error
        try:
            return str(answer.raise_for_status().json()["data"][0]["id"])
        except (self._httpx.HTTPStatusError, ValueError, LookupError, TypeError) as error:
            raise EndpointError(
                f"{self._base}/models: names no model (status {answer.status_code}); name it with --model"
            ) from error

    def _check(self, response: httpx.Response, body: Mapping[str, Any]) -> None:
        if response.status_code < 400:
            return
        text = response.read().decode(errors="replace")
        try:
            words = error_words(json.loads(text))
        except ValueError:
            words = error_words(text.strip() or response.reason_phrase)
        if response.status_code in (400, 422) and _OPTIONS in body and _OPTIONS in text:
            raise _UnknownOptionError(words)
        hint = {
            401: "; the key is read from the variable that --key-env names",
            403: "; the key is read from the variable that --key-env names",
            404: "; the address ends with /v1 at most endpoints, and --model must name a model that is served",
        }.get(response.status_code, "")
        raise EndpointError(f"{self.url}: status {response.status_code}: {words}{hint}")

    def _unreachable(self, error: Exception) -> EndpointError:
        if isinstance(error, self._httpx.TimeoutException):
            return EndpointError(f"{self.url}: no answer within the time-out; --timeout gives it longer")
        return EndpointError(f"{self.url}: cannot be asked: {error or type(error).__name__}")


class _UnknownOptionError(EndpointError):
    """The endpoint refuses to be asked for its usage."""


def _import() -> tuple[Any, Any]:
    try:
        import httpx
        import httpx_sse
    except ImportError as error:
        raise MissingExtraError(package="httpx-sse", extra="endpoint", purpose="measuring an endpoint") from error
    return httpx, httpx_sse
