"""What a flight adds up to, for monitoring: counters, levels and histograms, from the steps as they are recorded.

Pure, in seconds, and of no library: ``edgeguard.recorder.exposition`` gives it Prometheus' names. Reads the plain
documents, because building every step's dataclasses fifty times a second would cost more than writing them.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from edgeguard.clock import NS_PER_S
from edgeguard.types import Finish, LinkState, Mode, ThermalLevel

DEADLINE_FRACTIONS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.25, 1.5, 2.0)
"""Of the deadline: narrow where a miss is decided, so that ``le`` = the deadline is an edge."""

LATENESS_BOUNDS_S = (50e-6, 0.1e-3, 0.2e-3, 0.5e-3, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3, 100e-3)

# The bucket boundaries of OpenTelemetry's semantic conventions for generative AI, metrics of a model server.
FIRST_TOKEN_BOUNDS_S = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
OUTPUT_TOKEN_BOUNDS_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)


class Histogram:
    """Counts by upper edge, and the sum."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def note(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def cumulative(self) -> list[tuple[float, int]]:
        """Each upper edge with the number of values up to it; the last edge is infinite."""
        seen, rows = 0, []
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            seen += count
            rows.append((bound, seen))
        return rows


class FlightMetrics:
    """One start of the guard."""

    def __init__(self, *, deadline_ns: int) -> None:
        self.deadline_s = deadline_ns / NS_PER_S
        self.decisions: Counter[tuple[str, str]] = Counter()  # by source and mode
        self.causes: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.plans: Counter[str] = Counter()  # answers by the plan of the ladder
        self.frames: Mapping[str, int] = {}
        self.mode = Mode.INHIBITED.value
        self.link_up = False
        self.level = ThermalLevel.NOMINAL.label
        self.hottest_c: float | None = None
        self.command = Histogram([self.deadline_s * fraction for fraction in DEADLINE_FRACTIONS])
        self.lateness = Histogram(LATENESS_BOUNDS_S)
        self.first_token = Histogram(FIRST_TOKEN_BOUNDS_S)
        self.output_token = Histogram(OUTPUT_TOKEN_BOUNDS_S)

    def note(self, document: bytes) -> None:
        """One step, as ``edgeguard.recorder.record`` encodes it."""
        step = json.loads(document)
        inputs, effects = step["inputs"], step["effects"]
        if inputs["lateness_ns"]:
            self.lateness.note(inputs["lateness_ns"] / NS_PER_S)
        if step.get("before"):
            self.mode = step["before"]["mode"]
        self._note_link(inputs["link"])
        board = inputs.get("board")
        if board is not None:
            self.level, self.hottest_c = ThermalLevel(board["level"]).label, board["hottest_c"]
        for answer in inputs["answers"]:
            self._note_answer(answer)
        self.events.update(event["name"] for event in effects["events"])
        if effects["record"] is not None:
            self._note_decision(effects["record"])

    def _note_link(self, link: Mapping[str, Any]) -> None:
        self.link_up = link["state"] == LinkState.UP.value
        self.frames = {name: link[name] for name in ("written", "superseded", "received", "corrupt", "foreign")}

    def _note_answer(self, answer: Mapping[str, Any]) -> None:
        passes = answer["passes"]
        if answer["finish"] != Finish.COMPLETE.value:
            return
        if answer["rung"]:
            self.plans[answer["rung"]] += 1
        if not passes:
            return
        self.first_token.note((answer["tokenise_ns"] + passes[0]["elapsed_ns"]) / NS_PER_S)
        tokens = sum(one["k"] for one in passes[1:])
        if tokens:
            self.output_token.note(sum(one["elapsed_ns"] for one in passes[1:]) / tokens / NS_PER_S)

    def _note_decision(self, record: Mapping[str, Any]) -> None:
        decision = record["decision"]
        self.mode = decision["mode"]
        self.decisions[decision["source"], decision["mode"]] += 1
        self.causes.update(decision["causes"])
        if record["observation"] is not None and record["on_wire_ns"] is not None:
            self.command.note((record["on_wire_ns"] - record["observation"]["captured_ns"]) / NS_PER_S)
