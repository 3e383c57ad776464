"""What the demo says around the timeline: a line per phase, a line before and one after each fault. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from edgeguard.bench.calibration.cached import Calibration
from edgeguard.bench.calibration.words import percentile_name
from edgeguard.clock import ms_from_ns
from edgeguard.demo.comparison import Comparison
from edgeguard.demo.faults import Fault
from edgeguard.demo.summary import Outcome
from edgeguard.runtime.status import Status

if TYPE_CHECKING:
    from rich.text import Text

_TOPIC_WIDTH = 13


def phase(topic: str, text: str) -> Text:
    """One phase of the demo and what came of it."""
    from rich.text import Text

    return Text.assemble((f"{topic:<{_TOPIC_WIDTH}}", "bold"), text)


def built(folder: Path, *, took_s: float) -> Text:
    return phase("model", f"{folder.name}, ready in {took_s:.1f} s")


def calibrated(calibration: Calibration, *, took_s: float) -> Text:
    """The bound, in the words of its statistics."""
    bound = calibration.verdict.profile.bound
    how = f"measured in {took_s:.0f} s" if calibration.fresh else "measured before"
    return phase(
        "calibration",
        f"{percentile_name(bound.percentile)} of all answers within {ms_from_ns(bound.bound_ns):.0f} ms, at "
        f"{bound.confidence:.0%} confidence ({how})",
    )


def compared(comparison: Comparison) -> Text:
    return phase(
        "comparison",
        f"an answer takes {comparison.merged_ms:.0f} ms here, token by token {comparison.token_by_token_ms:.0f} ms "
        f"(×{comparison.ratio:.2f})",
    )


def armed(status: Status, *, deadline_ns: int, after_s: float) -> Iterator[Text]:
    """That the model may drive, and where the time of its decisions goes."""
    yield phase(
        "guard",
        f"armed after {after_s:.1f} s: process {status.guard_pid}, {status.scheduling.partition(' (')[0]}; worker "
        f"{status.worker_pid}, {status.prefix_tokens} tokens of prompt cached",
    )
    if status.bound_ns is not None:
        parts = (status.bound_ns, status.wire_ns, status.reserve_ns)
        bound_ms, wire_ms, reserve_ms = map(ms_from_ns, parts)
        left_ms = ms_from_ns(deadline_ns - sum(parts))
        yield phase(
            "budget",
            f"{ms_from_ns(deadline_ns):.0f} ms from the sensor to the wire = model {bound_ms:.0f} + wire {wire_ms:.1f} "
            f"+ reserve {reserve_ms:.1f} + slack {left_ms:.0f}",
        )


def begins(fault: Fault) -> Text:
    from rich.text import Text

    return Text.assemble(("▼ ", "bold red"), (fault.announcement, "bold"))


def ended(outcome: Outcome) -> Text:
    """Time to stop, distance, who stopped it, and how it went on."""
    from rich.text import Text

    style = "bold green" if outcome.ended_well else "bold red"
    return Text.assemble(("▲ ", style), " ".join(filter(None, (_course(outcome), _sequel(outcome)))))


def _course(outcome: Outcome) -> str:
    """Nothing, if nobody intervened: where the robot stood then, the model had let it."""
    if not outcome.why and not outcome.fatal:
        return ""
    why = f" ({outcome.why})" if outcome.why else ""
    if outcome.stopped_ms is not None:
        seconds = outcome.stopped_ms / 1000
        return f"stopped after {seconds:.2f} s and {outcome.distance_m:.2f} m, by {outcome.stopped_by}{why}."
    return "" if outcome.fatal else f"slowed down to {outcome.slowest_m_s:.2f} m/s, by {outcome.stopped_by}{why}."


def _sequel(outcome: Outcome) -> str:
    if outcome.fatal:
        return "Nobody is left to start it again." if outcome.ended_well else "It never stopped."
    if outcome.recovered_s is None:
        return "The model never drove again."
    if not outcome.why:
        return "The answers were on time all the same."
    return f"The model drives again after {outcome.recovered_s:.1f} s."
