"""Where the time of a request goes: the parts are all there, and the numbers are those of a real worker."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from edgeguard.bench.observations import steady_fields
from edgeguard.bench.speed.breakdown import PARTS, STREAMS
from edgeguard.cli.main import main
from edgeguard.config import load_config
from tests.engine_setup import apart, write_config
from tests.tiny import tiny_model


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("robot")
    timing = "[timing]\nperiod_ms = 40\ndeadline_ms = 5_000\n[model]"
    return write_config(folder, ("[model]", timing), ("./model", str(tiny_model(folder))))


def test_steady_observations_change_in_their_numbers_only(config: Path) -> None:
    steady = list(islice(steady_fields(load_config(config), seed=1), 5))
    assert len({str(fields["front"]) for fields in steady}) == 5
    assert len({(fields["words"], fields["door"]) for fields in steady}) == 1


def test_every_part_of_a_request_has_its_time(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert apart(lambda: main(["bench", "--breakdown", str(config), "--requests", "12", "--json"])) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["streams"]) == set(STREAMS)
    for stream in found["streams"].values():
        assert set(stream["parts_ms"]) == set(PARTS)
        assert all(part_ms >= 0 for part_ms in stream["parts_ms"].values())
        assert stream["requests"] == 12
        assert stream["total_ms"] <= stream["total_p99_ms"]
        assert 1 <= stream["passes"] <= 3
        assert 0 <= stream["accepted"] <= 1
        assert stream["over_floor"] > 0
        assert stream["floor_unrested_ms"] > 0
        assert stream["beside_ms"] < stream["total_ms"]
    wake_ups = found["wake_ups"]
    assert wake_ups["rounds"] == 12
    assert 0 < wake_ups["p50_ms"] <= wake_ups["p99_ms"]
    limits = found["limits"]
    assert limits["small_tokens"] == 2 < limits["large_tokens"]
    both_ms = limits["per_pass_ms"] + limits["large_tokens"] * limits["per_token_ms"]
    assert both_ms == pytest.approx(limits["large_ms"])
    assert limits["of_bandwidth"] > 0 < limits["of_flops"]
    assert 0 < limits["small_products_ms"] < limits["large_products_ms"]
    assert set(found["passes_ms"]) == {str(size) for size in range(2, 65)}
    assert all(step["instead_ms"] < step["ms"] for step in found["steps"])
    assert found["carry"].keys() == {"2", str(limits["large_tokens"]), *map(str, pass_tokens(found))}
    assert found["adapter"] == {}, "the tiny model has none"
    memory = found["memory"]
    assert 0 < memory["own_bytes"] <= memory["resident_bytes"]
    assert memory["of_model"] == pytest.approx(memory["resident_bytes"] / memory["model_bytes"])


def pass_tokens(found: dict[str, Any]) -> list[int]:
    return [stream["pass_tokens"] for stream in found["streams"].values()]
