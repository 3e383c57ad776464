"""The demo's figures and its exit code."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from demo_cycles import DEADLINE_MS, at_ns, cycle

from edgeguard.bench.calibration.sampling import BUSY_LIMIT
from edgeguard.demo.comparison import Comparison
from edgeguard.demo.operator import Wish
from edgeguard.demo.report import report
from edgeguard.demo.summary import Outcome, Summary, late, quantile, received_late, summarise
from edgeguard.demo.world import START
from edgeguard.link.controller_log import Receipt
from edgeguard.types import Action, Cause

FORWARD = {"move": "forward", "speed": 0.3}
BY_MODEL = cycle(values=FORWARD)
SAFE = cycle(causes=(Cause.MISS,), decided_ms=195, on_wire_ms=198)
STOPPED = Outcome(
    name="worker stopped",
    stopped_ms=800.0,
    distance_m=0.3,
    slowest_m_s=0.0,
    stopped_by="the guard",
    why="miss",
    recovered_s=6.0,
    fatal=False,
)


def receipt(after_ms: float) -> Receipt:
    return Receipt(received_ns=at_ns(after_ms), sequence=1, action=Action.MOVE, axes={}, life_ms=80)


def summary(quiet=(BY_MODEL,), troubled=(), *, faults=(), busy=1.0) -> Summary:
    return summarise(
        quiet=quiet,
        troubled=troubled,
        receipts=[receipt(71)],
        faults=faults,
        bound_ns=110_000_000,
        prefix_tokens=360,
        comparison=Comparison(merged_ms=70, token_by_token_ms=170, ratio=0.412),
        busy=busy,
        record="/tmp/record",
    )


@pytest.mark.parametrize(
    ("on_wire_ms", "is_late"), [(None, False), (73, False), (DEADLINE_MS + 2, False), (DEADLINE_MS + 2.001, True)]
)
def test_a_frame_is_late_two_milliseconds_behind_the_deadline(on_wire_ms: float | None, is_late: bool) -> None:
    assert late(cycle(values=FORWARD, on_wire_ms=on_wire_ms).record) is is_late


def test_without_an_observation_there_is_no_deadline() -> None:
    assert not late(cycle(causes=(Cause.NO_OBSERVATION,), observed=False, on_wire_ms=900).record)


@pytest.mark.parametrize(
    ("arrivals_ms", "is_late"),
    [([60, 71], False), ([60, 202], False), ([60, 203], True), ([60], True), ([], True)],
)
def test_the_second_witness_judges_the_first_frame_after_the_decision(arrivals_ms: list[float], is_late: bool) -> None:
    assert received_late(BY_MODEL.record, [at_ns(arrival_ms) for arrival_ms in arrivals_ms]) is is_late


def test_the_second_witness_expects_nothing_when_the_link_was_down() -> None:
    assert not received_late(cycle(values=FORWARD, on_wire_ms=None).record, [])


def test_the_figures_are_those_of_the_fault_free_cycles() -> None:
    times_ms = [60, 70, 80, 90]
    quiet = [
        cycle(values=FORWARD, decided_ms=ms, on_wire_ms=ms + 3, passes=(20,) * n) for n, ms in enumerate(times_ms, 1)
    ]
    one = summary([*quiet, SAFE], [cycle(causes=(Cause.MISS,), on_wire_ms=900)])
    assert (one.cycles, one.model, one.safe, one.late_frames) == (5, 4, 1, 1)
    assert (one.ttc_ms.p50, one.ttc_ms.p99, one.ttc_ms.max) == (73, 93, 93)
    assert (one.decide_ms.p50, one.decide_ms.p99, one.decide_ms.max) == (80, 195, 195)
    assert one.passes == {"p50": 2, "max": 4}
    assert one.causes == {"miss": 2}
    assert one.bound_ms == 110


def test_obedience_is_what_the_operator_meant() -> None:
    turned = cycle(values={"move": "left", "speed": 0.3})
    assert summary([BY_MODEL, BY_MODEL, BY_MODEL, turned]).obeyed == 0.75
    assert summary([cycle(values=FORWARD, wish=Wish.FAST)]).obeyed == 0
    assert summary([SAFE]).obeyed is None


@pytest.mark.parametrize(("share", "value"), [(0.5, 2), (0.51, 3), (0.99, 4), (1.0, 4), (0.01, 1)])
def test_a_quantile_is_a_value_that_was_measured(share: float, value: float) -> None:
    assert quantile([1, 2, 3, 4], share) == value


LATE = cycle(values=FORWARD, on_wire_ms=900)
NEVER_RECOVERED = replace(STOPPED, recovered_s=None)
KILLED = replace(STOPPED, name="guard killed", fatal=True, recovered_s=None)
NEVER_STOPPED = replace(KILLED, stopped_ms=None)


@pytest.mark.parametrize(
    ("quiet", "troubled", "faults", "busy", "exit_code"),
    [
        ([BY_MODEL], [], [], 1.0, 0),
        ([BY_MODEL], [], [], 5.0, 0),
        ([BY_MODEL, SAFE], [SAFE, SAFE], [STOPPED, KILLED], 1.0, 0),
        ([BY_MODEL, SAFE, SAFE], [], [], 1.0, 1),
        ([BY_MODEL, SAFE, SAFE], [], [], BUSY_LIMIT, 1),
        ([BY_MODEL, SAFE, SAFE], [], [], BUSY_LIMIT + 0.01, 3),
        ([LATE], [], [], 1.0, 1),
        ([BY_MODEL], [LATE], [], 1.0, 1),
        ([BY_MODEL], [LATE], [], 2.0, 3),
        ([BY_MODEL], [SAFE], [NEVER_RECOVERED], 1.0, 1),
        ([BY_MODEL], [SAFE], [STOPPED, NEVER_STOPPED], 1.0, 1),
    ],
)
def test_the_exit_code(quiet, troubled, faults, busy: float, exit_code: int) -> None:
    one = summary(quiet, troubled, faults=faults, busy=busy)
    assert one.exit_code == exit_code
    assert bool(one.complaints) is (exit_code != 0)


def test_the_document_is_json_with_the_promised_names() -> None:
    document = json.loads(json.dumps(summary(faults=[STOPPED]).document()))
    assert {
        *("cycles", "model", "safe", "late_frames", "causes", "decide_ms", "ttc_ms", "bound_ms", "prefix_tokens"),
        *("passes", "busy"),
    } <= document.keys()
    assert document["ttc_ms"].keys() >= {"p50", "p99"}
    assert document["decide_ms"].keys() == {"p50", "p99", "max"}
    assert document["passes"].keys() == {"p50", "max"}
    assert document["faults"][0]["stopped_by"] == "the guard"


@pytest.mark.parametrize(
    ("one", "verdict"),
    [
        (summary(), "✔ every command was on the wire in time"),
        (summary([SAFE], busy=4.7), "? the machine was too busy to judge (×4.7); try again when it is free"),
        (summary([LATE]), "✘ 1 frame was late"),
        (summary([SAFE, SAFE]), "✘ the model made 0 of 2 fault-free decisions, fewer than half"),
    ],
)
def test_the_report_ends_with_the_verdict(one: Summary, verdict: str) -> None:
    *_, last = report(one, path=[(0.8, 0.8)], pose=START)
    assert str(last) == verdict
