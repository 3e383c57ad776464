"""``edgeguard estimate``: every reference figure is printed from given figures; what is missing is said at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edgeguard.cli.main import main
from edgeguard.model.inspect import inspect
from tests.tiny import HEADS, HIDDEN, KV_HEADS, LAYERS, tiny_model

SEVEN_B = ["--parameters", "7e9", "--bits", "16", "--flops", "1e14", "--utilisation", "0.4", "--bandwidth", "1e12"]


def _json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["estimate", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def _text(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["estimate", *arguments]) == 0
    return capsys.readouterr().out


def _row(text: str, name: str) -> list[str]:
    (line,) = (line for line in text.splitlines() if line.startswith(name))
    return line.removeprefix(name).split()


def test_seven_billion_in_sixteen_bits(capsys: pytest.CaptureFixture[str]) -> None:
    text = _text(capsys, *SEVEN_B, "--prompt", "1000")
    assert _row(text, "first token")[:2] == ["350", "ms"]
    assert _row(text, "B*")[0] == "40"


def test_the_rates_by_bits_and_by_batch(capsys: pytest.CaptureFixture[str]) -> None:
    text = _text(capsys, *SEVEN_B)
    assert _row(text, "16 bits") == ["71", "571", "2,286", "2,857"]
    assert _row(text, "8 bits")[0] == "143"
    assert _row(text, "4 bits")[0] == "286"


def test_a_batch_of_eight_with_half_a_gigabyte_of_cache_each(capsys: pytest.CaptureFixture[str]) -> None:
    text = _text(capsys, *SEVEN_B, "--batch", "8", "--cache-bytes", "0.5e9")
    assert _row(text, "tokens/s")[0] == "444"
    assert _row(text, "KV cache")[:2] == ["4", "GB"]


def test_thirteen_billion_in_eight_bits(capsys: pytest.CaptureFixture[str]) -> None:
    found = _json(capsys, "--parameters", "13e9", "--bits", "8", "--flops", "1e15", "--bandwidth", "2e12")
    assert found["step_s"] == pytest.approx(6.5e-3)
    assert round(found["tokens_per_s"]) == 154


def test_two_thousand_tokens_at_half_a_tera_useful(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--parameters", "7e9", "--flops", "5e13", "--utilisation", "1", "--bandwidth", "1e12"]
    assert _json(capsys, *arguments, "--prompt", "2000")["first_token_s"] == pytest.approx(0.56)


@pytest.mark.parametrize(
    "cache", [["--kv-bytes", "0.52e6"], ["--layers", "32", "--kv-heads", "32", "--head-size", "128"]]
)
def test_the_cache_of_eight_requests(capsys: pytest.CaptureFixture[str], cache: list[str]) -> None:
    text = _text(capsys, *SEVEN_B, *cache, "--prompt", "4096", "--batch", "8")
    assert _row(text, "KV cache")[1] == "GB"
    assert round(float(_row(text, "KV cache")[0])) == 17


@pytest.mark.parametrize(("load", "times"), [("0.9", 10), ("0.5", 2)])
def test_the_queue_of_a_shared_endpoint(capsys: pytest.CaptureFixture[str], load: str, times: float) -> None:
    found = _json(capsys, *SEVEN_B, "--load", load)
    assert found["total_s"] == pytest.approx(times * found["service_s"])
    assert found["bottleneck"] == ("queueing" if times > 2 else found["bottleneck"])


def test_it_names_the_bottleneck_and_the_remedies_best_first(capsys: pytest.CaptureFixture[str]) -> None:
    text = _text(capsys, *SEVEN_B, "--prompt", "8000", "--output", "4")
    shares = text[text.index("where it goes") :].splitlines()
    assert shares[1].startswith("prefill compute")
    remedies = text[text.index("what helps") :].splitlines()
    assert remedies[1].startswith("a smaller model")
    assert remedies[2].startswith("a shorter prompt")


def test_every_line_fits_a_hundred_columns(capsys: pytest.CaptureFixture[str]) -> None:
    text = _text(
        capsys,
        *SEVEN_B,
        "--prompt",
        "100000",
        "--cached",
        "1234",
        "--batch",
        "512",
        "--load",
        "0.9",
        "--kv-bytes",
        "5e5",
    )
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["MODEL or --parameters", "--flops and --bandwidth, or --measure"]),
        (["smollm2-135m", *SEVEN_B], ["one of the two"]),
        ([*SEVEN_B, "--measure"], ["name them or let them be measured"]),
        ([*SEVEN_B, "--load", "1"], ["--load 1"]),
        ([*SEVEN_B, "--prompt", "0"], ["--prompt 0"]),
        ([*SEVEN_B, "--bits", "nan"], ["--bits nan"]),
        ([*SEVEN_B, "--utilisation", "1.5"], ["--utilisation 1.5"]),
        ([*SEVEN_B, "--cached", "-1", "--layers", "3"], ["--cached -1", "belong together"]),
    ],
)
def test_everything_that_is_wrong_is_said(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: list[str]
) -> None:
    assert main(["estimate", *arguments]) == 2
    said = capsys.readouterr().err
    for word in words:
        assert word in said
    assert "Traceback" not in said


def test_a_models_figures_are_those_of_its_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tiny_model(tmp_path)
    found = _json(capsys, str(folder), "--flops", "1e11", "--bandwidth", "1e10", "--prompt", "20", "--cached", "100")
    summary = inspect(folder)
    assert found["model"]["parameters"] == summary.parameters
    assert found["model"]["weight_bytes"] == summary.bytes_per_pass
    assert found["model"]["kv_bytes_per_token"] == 2 * LAYERS * KV_HEADS * (HIDDEN // HEADS) * 4
    assert found["cache_bytes"] == found["model"]["kv_bytes_per_token"] * (100 + 20)
    assert found["step_s"] >= found["model"]["weight_bytes"] / 1e10


def test_measured_figures_are_this_machines(capsys: pytest.CaptureFixture[str]) -> None:
    found = _json(capsys, "--parameters", "1e8", "--measure")
    assert found["machine"]["utilisation"] == 1.0
    assert found["machine"]["flops"] > 1e8
    assert found["machine"]["bandwidth"] > 1e8
