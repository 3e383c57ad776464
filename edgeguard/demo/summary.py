"""The demo's figures and its verdict, from the records of its cycles. Pure arithmetic; milliseconds out.

A frame is *late* when the return of its write plus its bytes' time on the line (bytes × 10 / baud) lies more than 2 ms
behind the deadline. The motor controller's own list of receipts is the second witness: the first frame that it took at
or after a decision. Figures are those of the fault-free cycles, except late frames and causes, which are of all.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from edgeguard.bench.calibration.effort import BUSY_LIMIT
from edgeguard.clock import NS_PER_MS, ms_from_ns
from edgeguard.demo.comparison import Comparison
from edgeguard.demo.robot import Cycle
from edgeguard.errors import BusyError
from edgeguard.link.controller_log import Receipt
from edgeguard.types import CycleRecord, Source

GRACE_NS = 2 * NS_PER_MS
MODEL_SHARE = 0.5
"""So much of the fault-free cycles the model has to decide for the demo to have shown anything."""

DONE, FAILED, TOO_BUSY = 0, 1, BusyError.exit_code


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one fault went. ``recovered_s``: from its beginning until the model's commands went out again."""

    name: str
    stopped_ms: float | None
    distance_m: float
    slowest_m_s: float
    stopped_by: str
    why: str
    recovered_s: float | None
    fatal: bool

    @property
    def ended_well(self) -> bool:
        """It recovered; or, with nobody left to recover, the motor controller stopped the robot."""
        return self.stopped_ms is not None if self.fatal else self.recovered_s is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Percentiles of a latency; ``None`` when there was nothing to measure."""

    p50: float | None
    p99: float | None
    max: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Everything that the demo says at its end. ``received_late`` is the second witness's count."""

    cycles: int
    model: int
    safe: int
    late_frames: int
    received_late: int
    causes: Mapping[str, int]
    decide_ms: Spread
    ttc_ms: Spread
    bound_ms: float | None
    prefix_tokens: int | None
    passes: Mapping[str, int | None]
    token_by_token: Comparison | None
    obeyed: float | None
    busy: float
    faults: tuple[Outcome, ...]
    record: str

    @property
    def complaints(self) -> tuple[str, ...]:
        """What the demo should have shown and did not."""
        found = []
        if self.late_frames:
            found.append(f"{self.late_frames} {'frame was' if self.late_frames == 1 else 'frames were'} late")
        if self.model < MODEL_SHARE * self.cycles:
            found.append(f"the model made {self.model} of {self.cycles} fault-free decisions, fewer than half")
        found += [f"{fault.name}: did not end well" for fault in self.faults if not fault.ended_well]
        return tuple(found)

    @property
    def exit_code(self) -> int:
        """0 without complaints; with some, 3 on a busy machine, else 1."""
        if not self.complaints:
            return DONE
        return TOO_BUSY if self.busy > BUSY_LIMIT else FAILED

    def document(self) -> dict[str, Any]:
        """As one JSON object."""
        return asdict(self)


def summarise(
    *,
    quiet: Sequence[Cycle],
    troubled: Sequence[Cycle],
    receipts: Sequence[Receipt],
    faults: Sequence[Outcome],
    bound_ns: int | None,
    prefix_tokens: int | None,
    comparison: Comparison | None,
    busy: float,
    record: str,
) -> Summary:
    """The figures of the fault-free cycles (``quiet``), and what is to be said of those with faults."""
    records = [cycle.record for cycle in quiet]
    everything = [cycle.record for cycle in (*quiet, *troubled)]
    by_model = [one for one in records if one.decision.source is Source.MODEL]
    arrivals_ns = sorted(receipt.received_ns for receipt in receipts)
    causes = Counter(cause.value for one in everything for cause in one.decision.causes)
    passes = sorted(len(one.answer.passes) for one in by_model if one.answer is not None)
    return Summary(
        cycles=len(records),
        model=len(by_model),
        safe=len(records) - len(by_model),
        late_frames=sum(map(late, everything)),
        received_late=sum(received_late(one, arrivals_ns) for one in everything),
        causes=dict(causes.most_common()),
        decide_ms=_spread([decide_ms for one in records if (decide_ms := _decide_ms(one)) is not None]),
        ttc_ms=_spread([ttc_ms for one in by_model if (ttc_ms := _ttc_ms(one)) is not None]),
        bound_ms=None if bound_ns is None else round(ms_from_ns(bound_ns), 1),
        prefix_tokens=prefix_tokens,
        passes={"p50": passes[(len(passes) - 1) // 2] if passes else None, "max": passes[-1] if passes else None},
        token_by_token=comparison,
        obeyed=_obeyed(quiet),
        busy=round(busy, 2),
        faults=tuple(faults),
        record=record,
    )


def late(record: CycleRecord) -> bool:
    """Whether the command's last byte was on the wire too late; what could not be sent at all is not late."""
    latest_ns = _latest_ns(record)
    return latest_ns is not None and record.on_wire_ns is not None and record.on_wire_ns > latest_ns


def received_late(record: CycleRecord, arrivals_ns: Sequence[int]) -> bool:
    """Whether the motor controller got its first frame after the decision too late; ``arrivals_ns`` are sorted."""
    latest_ns = _latest_ns(record)
    if latest_ns is None or record.on_wire_ns is None:
        return False
    index = bisect_left(arrivals_ns, record.decision.decided_ns)
    return index == len(arrivals_ns) or arrivals_ns[index] > latest_ns


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` of the sorted values do not exceed (nearest rank)."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _latest_ns(record: CycleRecord) -> int | None:
    if record.observation is None or record.budget is None:
        return None
    return record.observation.captured_ns + record.budget.deadline_ns + GRACE_NS


def _decide_ms(record: CycleRecord) -> float | None:
    """From the observation's capture to the decision."""
    if record.observation is None:
        return None
    return ms_from_ns(record.decision.decided_ns - record.observation.captured_ns)


def _ttc_ms(record: CycleRecord) -> float | None:
    """Time to command: from the observation's capture to the last byte of the model's command."""
    if record.observation is None or record.on_wire_ns is None:
        return None
    return ms_from_ns(record.on_wire_ns - record.observation.captured_ns)


def _obeyed(cycles: Sequence[Cycle]) -> float | None:
    """The share of the model's answers that are what the operator meant."""
    met = [
        cycle.utterance.wish.met_by(cycle.record.answer.values)
        for cycle in cycles
        if cycle.record.answer is not None and cycle.record.answer.values is not None
    ]
    return round(sum(met) / len(met), 3) if met else None


def _spread(values: Sequence[float]) -> Spread:
    if not values:
        return Spread(p50=None, p99=None, max=None)
    ordered = sorted(values)
    p50, p99 = (round(quantile(ordered, share), 1) for share in (0.5, 0.99))
    return Spread(p50=p50, p99=p99, max=round(ordered[-1], 1))
