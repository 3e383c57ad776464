"""A scenario and what came of it: the run, and whether it kept to what is expected and to what always holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from edgeguard.clock import ms_from_ns
from edgeguard.plain import to_plain
from edgeguard.simulation.invariants import judge_invariants
from edgeguard.simulation.judgement import Judgement, judge
from edgeguard.simulation.scenario import Scenario
from edgeguard.simulation.story import tell
from edgeguard.simulation.timeline import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One run of one scenario."""

    scenario: Scenario
    timeline: Timeline
    expectations: Sequence[Judgement]
    invariants: Sequence[Judgement]

    @classmethod
    def of(cls, scenario: Scenario, timeline: Timeline) -> Outcome:
        config = scenario.assembly.config
        return cls(
            scenario=scenario,
            timeline=timeline,
            expectations=judge(scenario.expectation, timeline, config),
            invariants=judge_invariants(timeline, config.axes),
        )

    @property
    def good(self) -> bool:
        return not self.complaints

    @property
    def complaints(self) -> list[str]:
        """What was not met, in words; the invariants first."""
        broken = [f"never to happen  {one.words}" for one in self.invariants if not one.met]
        return broken + [f"not as expected  {one.words}" for one in self.expectations if not one.met]

    def document(self) -> dict[str, Any]:
        """For programs."""
        scenario, timeline = self.scenario, self.timeline
        return {
            "scenario": scenario.name,
            "about": scenario.about,
            "config": str(scenario.assembly.config.file),
            "digest": scenario.assembly.config.digest,
            "duration_ms": ms_from_ns(timeline.duration_ns),
            "steps": timeline.steps,
            "counters": to_plain(timeline.counters),
            "modes": [
                {"from_ms": ms_from_ns(span.begin_ns), "to_ms": ms_from_ns(span.end_ns), "mode": span.mode.value}
                for span in timeline.modes
            ],
            "causes": [
                {
                    "from_ms": ms_from_ns(span.begin_ns),
                    "to_ms": ms_from_ns(span.end_ns),
                    "cause": span.cause.value,
                    "grade": span.grade.name.lower(),
                }
                for span in timeline.causes
            ],
            "story": [
                {"at_ms": ms_from_ns(line.at_ns), "scripted": line.scripted, "words": line.words}
                for line in tell(timeline)
            ],
            "expectations": [{"words": one.words, "met": one.met} for one in self.expectations],
            "invariants": [{"words": one.words, "met": one.met} for one in self.invariants],
            "as_expected": all(one.met for one in self.expectations),
        }
