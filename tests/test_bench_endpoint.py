"""An endpoint is asked and timed over real HTTP: what counts as a token, and every way in which it can go wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sse_server import GOOD, ROLE, USAGE, Script, chat, serving

from edgeguard.bench.endpoint.completion import Completion, CompletionReader
from edgeguard.bench.endpoint.endpoint import Endpoint
from edgeguard.bench.endpoint.rates import EndpointRates, measure_endpoint
from edgeguard.bench.percentile import percentile
from edgeguard.clock import NS_PER_MS, SystemClock
from edgeguard.errors import EndpointError


def _read(*events: str, every_ns: int = 10) -> Completion:
    """The events, the first at 10 ns, of a request sent at 0."""
    reader = CompletionReader(sent_ns=0)
    for number, event in enumerate(events, start=1):
        reader.take(event, now_ns=number * every_ns)
    return reader.close()


def test_the_first_token_is_the_first_fragment_that_is_not_empty() -> None:
    read = _read(ROLE, chat(""), chat("go"), chat(" on"), chat(finish="stop"), "[DONE]")
    assert (read.first_token_ns, read.total_ns, read.text) == (30, 40, "go on")


def test_tokens_are_those_that_the_endpoint_states_not_the_fragments() -> None:
    read = _read(*GOOD)
    assert (read.tokens, read.stated) == (5, True)
    assert read.per_token_ns == pytest.approx((40 - 20) / 4)


@pytest.mark.parametrize(
    ("last", "tokens", "stated"),
    [
        ({"timings": {"predicted_n": 7}}, 7, True),  # llama.cpp
        ({"usage": None}, 2, False),
        ({"usage": {"completion_tokens": 0}}, 2, False),
        ({"usage": {"completion_tokens": "many"}}, 2, False),
        ({}, 2, False),
    ],
)
def test_without_a_usage_fragments_are_counted_and_that_is_said(
    last: dict[str, Any], tokens: int, stated: bool
) -> None:
    read = _read(ROLE, chat("a"), chat("b"), chat(finish="stop", **last), "[DONE]")
    assert (read.tokens, read.stated) == (tokens, stated)


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_content": "hm"},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]},
        {"content": "a", "reasoning_content": None, "tool_calls": None},
    ],
)
def test_whatever_was_generated_was_waited_for(delta: dict[str, Any]) -> None:
    event = json.dumps({"choices": [{"delta": delta, "finish_reason": None}]})
    assert _read(ROLE, event, "[DONE]").first_token_ns == 20


def test_the_older_completions_have_text_instead_of_a_delta() -> None:
    events = [json.dumps({"choices": [{"text": text, "finish_reason": None}]}) for text in ("a", "b")]
    assert _read(*events, "[DONE]").text == "ab"


def test_one_token_has_no_time_per_output_token() -> None:
    assert _read(chat("a"), "[DONE]").per_token_ns is None


@pytest.mark.parametrize(
    "event", ["{", "[]", "null", '{"choices": 3}', '{"choices": [4]}', '{"choices": [{"delta": 5}]}', "{}"]
)
def test_an_event_of_another_shape_is_an_error_or_no_text(event: str) -> None:
    with pytest.raises(EndpointError):
        _read(event, "[DONE]")


def test_an_error_in_mid_stream_is_one() -> None:
    with pytest.raises(EndpointError, match="out of memory"):
        _read(chat("a"), json.dumps({"error": {"message": "out of memory"}}), "[DONE]")


def test_a_stream_that_breaks_off_is_no_answer() -> None:
    with pytest.raises(EndpointError, match="broke off after 1 fragments"):
        _read(ROLE, chat("a"))


def test_a_finish_reason_ends_a_stream_without_done() -> None:
    assert _read(chat("a"), chat(finish="length")).text == "a"


def _ask(script: Script, **more: Any) -> Completion:
    with serving(script) as url, Endpoint(url, clock=SystemClock(), **more) as endpoint:
        return endpoint.ask("hello", max_tokens=5, extra={})


def test_it_asks_a_chat_for_a_stream_with_usage_by_the_name_of_the_first_model() -> None:
    script = Script(models=("first", "second"))
    assert _ask(script).tokens == 5
    (asked,) = script.asked
    assert asked["model"] == "first"
    assert asked["stream"] is True
    assert asked["stream_options"] == {"include_usage": True}
    assert asked["messages"] == [{"role": "user", "content": "hello"}]


def test_the_key_and_the_model_that_are_given_are_sent() -> None:
    script = Script()
    _ask(script, key="secret", model="mine")
    assert script.headers[0]["Authorization"] == "Bearer secret"
    assert script.asked[0]["model"] == "mine"


def test_a_whole_address_of_completions_is_taken_as_it_is() -> None:
    script = Script([json.dumps({"choices": [{"text": "a", "finish_reason": "stop"}]}), "[DONE]"])
    with serving(script) as url, Endpoint(f"{url}/completions", clock=SystemClock()) as endpoint:
        endpoint.ask("hello", max_tokens=5, extra={"temperature": 0.5})
    assert script.asked[0]["prompt"] == "hello"
    assert script.asked[0]["temperature"] == 0.5


def test_a_server_that_does_not_know_stream_options_is_asked_without() -> None:
    script = Script([ROLE, chat("a"), chat("b", finish="stop"), "[DONE]"], refuses="stream_options")
    with serving(script) as url, Endpoint(url, clock=SystemClock()) as endpoint:
        for _ in range(2):
            assert not endpoint.ask("hello", max_tokens=5, extra={}).stated
    assert ["stream_options" in asked for asked in script.asked] == [True, False, False]


@pytest.mark.parametrize(
    "raw",
    [
        b": hello\n\n" + "".join(f"data: {event}\n\n" for event in GOOD).encode(),  # a comment, as a heartbeat
        "".join(f"data: {event}\r\n\r\n" for event in GOOD).encode(),
        "".join(f"event: message\nid: 3\nretry: 10\ndata:{event}\n\n" for event in GOOD).encode(),
        'data: {"choices": [{"delta":\ndata: {"content": "a\u2028\u0085b"}}]}\n\ndata: [DONE]\n\n'.encode(),
    ],
)
def test_every_shape_of_an_event_stream_is_read(raw: bytes) -> None:
    assert _ask(Script(raw=raw)).text in ('{"a": 1}', "a\u2028\u0085b")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (Script(status=401, body='{"error": {"message": "no key"}}'), ["status 401: no key", "--key-env"]),
        (Script(status=404, body='{"detail": "Not Found"}'), ["status 404: Not Found", "/v1"]),
        (Script(status=500, body="boom"), ["status 500: boom"]),
        (Script(status=503, body=""), ["status 503"]),
        (Script(status=422, body='{"error": "max_tokens too large"}'), ["max_tokens too large"]),
        (Script(content_type="application/json", raw=b'{"choices": []}'), ["does not stream"]),
        (Script(raw=b"data: {\n\n"), ["no JSON object"]),
        (Script([ROLE, chat("a")]), ["broke off"]),
        (Script([ROLE, USAGE, "[DONE]"]), ["without any text"]),
        (Script(models=()), ["names no model", "--model"]),
    ],
)
def test_what_goes_wrong_is_said_with_the_way_out(script: Script, words: list[str]) -> None:
    with pytest.raises(EndpointError) as caught:
        _ask(script)
    for word in words:
        assert word in str(caught.value)


def test_nobody_there_is_said() -> None:
    with serving(Script()) as url:
        pass
    with pytest.raises(EndpointError, match="cannot be asked"):
        Endpoint(url, clock=SystemClock())


def test_a_silent_endpoint_is_given_up() -> None:
    with pytest.raises(EndpointError, match="--timeout"):
        _ask(Script(pause_s=3.0), timeout_s=0.1)


def test_fragments_are_timed_as_they_come_not_when_the_answer_is_whole() -> None:
    events = [ROLE, *(chat(str(number)) for number in range(6)), chat(finish="stop"), "[DONE]"]
    read = _ask(Script(events, pause_s=0.2))
    assert read.first_token_ns >= 390 * NS_PER_MS  # after the role and its pause
    assert read.last_ns - read.first_ns >= 200 * NS_PER_MS  # five pauses, while the first may be read late


def test_warm_up_does_not_count_and_cold_prompts_begin_otherwise() -> None:
    script = Script()
    with serving(script) as url, Endpoint(url, clock=SystemClock()) as endpoint:
        rates = measure_endpoint(endpoint, prompt="hello", max_tokens=5, requests=3, warm_up=2, cold=True)
    assert len(rates.completions) == 3
    prompts = [asked["messages"][0]["content"] for asked in script.asked]
    assert len({prompt[:3] for prompt in prompts}) == 5


def _completion(first_ms: int, per_token_ms: int, tokens: int, *, stated: bool = True) -> Completion:
    first_ns = first_ms * NS_PER_MS
    last_ns = first_ns + per_token_ms * (tokens - 1) * NS_PER_MS
    return Completion(sent_ns=0, first_ns=first_ns, last_ns=last_ns, tokens=tokens, stated=stated, text="")


def test_the_figures_of_many_requests() -> None:
    rates = EndpointRates(completions=tuple(_completion(100 + number, 10, 21) for number in range(20)))
    figures = rates.figures_ns()
    assert figures["time to first token"] == {"p50": 109e6, "p95": 118e6, "max": 119e6}
    assert figures["time per output token"]["p95"] == pytest.approx(10e6)
    assert figures["whole request"]["max"] == 319e6
    assert rates.tokens_per_s == pytest.approx(100)
    assert rates.mean_tokens == 21
    assert rates.stated


def test_answers_of_one_token_have_no_rate() -> None:
    rates = EndpointRates(completions=(_completion(5, 0, 1, stated=False),))
    assert "time per output token" not in rates.figures_ns()
    assert rates.tokens_per_s == 0
    assert not rates.stated


@pytest.mark.parametrize(("share", "value"), [(0.5, 2), (0.25, 1), (0.26, 2), (0.95, 4), (1.0, 4)])
def test_a_percentile_is_a_value_that_was_measured(share: float, value: float) -> None:
    assert percentile([4, 1, 3, 2], share) == value
