"""``edgeguard bench``: llama-bench's table and rows of a model, the figures of an endpoint, and what is wrong use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from engine_setup import apart
from sse_server import Script, chat, serving
from tiny import tiny_model

from edgeguard.bench.speed.rates import Rate, Task
from edgeguard.budget.roofline import Machine, Model
from edgeguard.cli.bench_table import at_best_s, markdown, show
from edgeguard.cli.main import main

FIGURES = Model(parameters=134.5e6, weight_bytes=111.6e6, kv_bytes_per_token=46_080)
PROMPT = Rate(task=Task(n_prompt=512), samples_ns=(10**9, 12 * 10**8), steps_ns=())
STEPS = Rate(task=Task(n_gen=2), samples_ns=(20_000_000,), steps_ns=(9_000_000, 11_000_000))
DEEP = Rate(task=Task(n_gen=2, n_depth=1024), samples_ns=(24_000_000,), steps_ns=(11_000_000, 13_000_000))


def _row(rate: Rate) -> dict[str, object]:
    return {
        "model_type": "llama 135 M 6.6 bits", "model_size": 111_600_000, "model_n_params": 134_515_008,
        "backends": "CPU", "n_threads": 2, "avg_ts": rate.avg_ts, "stddev_ts": rate.stddev_ts,
    }  # fmt: skip


def test_rates_are_llama_benchs_statistics() -> None:
    assert PROMPT.samples_ts == pytest.approx((512, 512 / 1.2))
    assert PROMPT.avg_ts == pytest.approx((512 + 512 / 1.2) / 2)  # the mean of the rates, not the rate of the means
    assert PROMPT.stddev_ts == pytest.approx(abs(512 - 512 / 1.2) / 2**0.5)
    assert (STEPS.avg_ns, STEPS.stddev_ns) == (20_000_000, 0.0)


def test_the_table_is_markdown_in_llama_benchs_columns() -> None:
    lines = markdown([_row(one) for one in (PROMPT, DEEP)], [PROMPT, DEEP]).splitlines()
    assert [cell.strip() for cell in lines[0].split("|")[1:-1]] == [
        "model", "size", "params", "backend", "threads", "test", "t/s",
    ]  # fmt: skip
    assert "pp512" in lines[2]
    assert "469.33 ± 60.34" in lines[2]
    assert "tg2 @ d1024" in lines[3]
    assert len({len(line) for line in lines}) == 1
    assert len(lines[0]) <= 100


def test_beside_the_measured_stands_what_is_possible_and_what_would_help(capsys: pytest.CaptureFixture[str]) -> None:
    rates = [PROMPT, STEPS]
    show([_row(one) for one in rates], rates, FIGURES, Machine(flops=4e11, bandwidth=2e10))
    text = capsys.readouterr().out
    assert "the whole prompt" in text
    assert "one token" in text
    assert "400 GFLOP/s and 20 GB/s" in text
    assert "the bottleneck is prefill compute" in " ".join(text.split())
    assert text.index("a smaller model") < text.index("fewer output tokens")
    assert max(map(len, text.splitlines())) <= 100


def test_at_best_is_the_pass_of_the_test() -> None:
    machine = Machine(flops=4e11, bandwidth=2e10)
    assert at_best_s(FIGURES, machine, PROMPT.task) == pytest.approx(2 * 134.5e6 * 512 / 4e11)
    assert at_best_s(FIGURES, machine, DEEP.task) == pytest.approx((111.6e6 + 1025 * 46_080) / 2e10)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required"),
        (["a/model", "--url", "http://x/v1"], "not allowed"),
        (["a/model", "-p", "many"], "whole numbers"),
        (["a/model", "-p", "-3"], "not below 0"),
        (["a/model", "-p", "0", "-n", "0"], "nothing to measure"),
        (["a/model", "-r", "0"], "--repetitions 0"),
        (["a/model", "-t", "-1"], "--threads -1"),
        (["no-such-recipe"], "no recipe 'no-such-recipe'"),
        (["./no-such-folder"], "no such model folder"),
        (["--url", "localhost:8080"], "http://"),
        (["--url", "http://x/v1", "--tokens", "0"], "--tokens 0"),
        (["--url", "http://x/v1", "--warm-up", "-1"], "--warm-up -1"),
        (["--url", "http://x/v1", "--prompt", "@/no/such/file"], "--prompt /no/such/file"),
        (["--url", "http://x/v1", "--body", "/no/such/file"], "--body /no/such/file"),
        (["--url", "http://x/v1", "--key-env", "NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE"),
    ],
)
def test_wrong_use_is_said_without_a_traceback(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    try:
        code = main(["bench", *arguments])
    except SystemExit as end:  # argparse's way out
        code = int(end.code or 0)
    said = capsys.readouterr().err
    assert code in (2, 5)
    assert words in said
    assert "Traceback" not in said


def _bench(script: Script, *arguments: str) -> int:
    with serving(script) as url:
        return main(["bench", "--url", url, "--requests", "3", "--warm-up", "1", *arguments])


def test_an_endpoints_figures_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert _bench(Script(pause_s=0.002)) == 0
    text = capsys.readouterr().out
    assert "3 after 1 of warm-up, one at a time; the same prompt each time" in " ".join(text.split())
    assert "5 an answer, as the endpoint states" in text
    for name in ("time to first token", "time per output token", "whole request", "p50", "p95"):
        assert name in text
    assert max(map(len, text.splitlines())) <= 100


def test_fragments_instead_of_tokens_are_admitted(capsys: pytest.CaptureFixture[str]) -> None:
    assert _bench(Script([chat("a"), chat("b", finish="stop"), "[DONE]"]), "--cold") == 0
    text = capsys.readouterr().out
    assert "fragments were counted" in text
    assert "no prompt begins like another" in text


def test_an_endpoints_figures_for_machines(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    body, prompt = tmp_path / "body.json", tmp_path / "prompt.txt"
    body.write_text('{"response_format": {"type": "json_object"}}')
    prompt.write_text("from a file")
    script = Script()
    assert _bench(script, "--json", "--body", str(body), "--prompt", f"@{prompt}", "--model", "mine") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["requests"], found["model"], found["tokens_stated"], found["mean_tokens"]) == (3, "mine", True, 5.0)
    assert found["ms"]["time_to_first_token"].keys() == {"p50", "p95", "max"}
    assert len(found["samples"]) == 3
    assert script.asked[0]["response_format"] == {"type": "json_object"}
    assert script.asked[0]["messages"][0]["content"] == "from a file"


def test_an_endpoint_that_refuses_has_its_own_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert _bench(Script(status=500, body="boom")) == 16
    assert "status 500: boom" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["[]", "{"])
def test_a_body_that_is_no_object_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str) -> None:
    (tmp_path / "body.json").write_text(text)
    assert main(["bench", "--url", "http://x/v1", "--body", str(tmp_path / "body.json")]) == 2
    assert "JSON" in capsys.readouterr().err


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


def apart_main(*arguments: str) -> int:
    return apart(lambda: main(arguments))


def test_a_models_rows_can_be_joined_with_llama_benchs(capsys: pytest.CaptureFixture[str], tiny: Path) -> None:
    assert apart_main("bench", str(tiny), "-p", "8", "-n", "3", "-d", "0,4", "-r", "2", "--measure", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["n_prompt"], row["n_gen"], row["n_depth"]) for row in rows] == [
        (8, 0, 0),
        (0, 3, 0),
        (8, 0, 4),
        (0, 3, 4),
    ]
    for row in rows:
        assert len(row["samples_ns"]) == len(row["samples_ts"]) == 2
        assert row["avg_ts"] == pytest.approx(sum(row["samples_ts"]) / 2)
        assert row["n_threads"] > 0
        assert row["latency_at_best_ns"] > 0
    assert rows[1]["latency_of"] == "token"


def test_a_models_rates_in_words(capsys: pytest.CaptureFixture[str], tiny: Path) -> None:
    assert apart_main("bench", str(tiny), "-p", "300", "-n", "3", "-r", "1", "-t", "1") == 0
    text = capsys.readouterr().out
    assert text.startswith("| model ")
    assert "pp300" in text
    assert "tg3" in text
    assert "at best" not in text
    assert "the bottleneck is" in " ".join(text.split())


def test_a_prompt_that_the_model_cannot_read_is_refused(capsys: pytest.CaptureFixture[str], tiny: Path) -> None:
    assert apart_main("bench", str(tiny), "-p", "2000", "-n", "0") == 2
    assert "reads 512 tokens at most, and a test has 2000" in capsys.readouterr().err
