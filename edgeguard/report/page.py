"""The page: one file that needs nothing else, to be opened anywhere or pinned to a wall.

Everything that came from a file is escaped; the profile itself is inside, as JSON, for whoever wants to reckon further.
Nothing is loaded from anywhere and nothing is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources

from edgeguard.bench.calibration.coverage import Coverage
from edgeguard.bench.calibration.verdict import Verdict
from edgeguard.bench.calibration.words import cell_name, percentile_name, share_name
from edgeguard.budget import Profile, profile_text
from edgeguard.clock import NS_PER_MS, ms_from_ns
from edgeguard.report import sketch
from edgeguard.report.budget_bar import Part, draw_budget, parts_of
from edgeguard.report.cost_plot import draw_costs
from edgeguard.report.coverage_plot import draw_coverage
from edgeguard.report.estimates import Estimates, estimates_of
from edgeguard.report.run_plot import draw_run
from edgeguard.report.samples import Samples
from edgeguard.report.sketch import Plot
from edgeguard.report.tail_plot import draw_histogram, draw_tail
from edgeguard.report.visits import Visits, visits_of
from edgeguard.runtime.budget_line import RESERVE_ASSUMED_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What is on the page. ``verdict`` is ``None`` where no configuration says what is asked of the robot, and
    ``coverage`` where nobody has checked whether the bounds hold here."""

    name: str
    profile: Profile
    samples: Samples
    estimates: Estimates
    verdict: Verdict | None = None
    coverage: Coverage | None = None
    judged_by: str = ""

    @property
    def visits(self) -> Visits:
        return visits_of(self.profile)

    @property
    def parts(self) -> tuple[Part, ...]:
        return parts_of(self.profile, self.verdict)

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        bound = self.profile.bound
        promise = (f"plan {bound.rung!r}: " if bound.rung else "") + (
            f"{share_name(bound.percentile)} of all requests take at most {ms_from_ns(bound.bound_ns):.1f} ms, "
            f"at {bound.confidence:.0%} confidence"
        )
        if self.verdict is None:
            return promise
        slack_ms = ms_from_ns(self.verdict.slack_ns)
        fit = f"fits, with {slack_ms:.1f} ms to spare" if self.verdict.fits else f"is {-slack_ms:.1f} ms too long"
        return f"The bound {fit}: {promise}"

    @property
    def verdict_rows(self) -> list[tuple[str, str]]:
        """The verdict's own words, less what the page has elsewhere."""
        if self.verdict is not None:
            return [row for row in self.verdict.rows() if row[0] not in _ELSEWHERE]
        least_ms = -(-(self.profile.bound.bound_ns + RESERVE_ASSUMED_NS) // NS_PER_MS)
        return [
            ("not judged", "no configuration was named: --config says which deadline and which miss rate count"),
            ("deadline", f"at least {least_ms} ms, with the guard's reserve, for an observation that is quite new and "
                         "a frame that takes no time"),
        ]  # fmt: skip


_ELSEWHERE = ("bound", "margin", "measured", "disturbed", "thermal")


def page(report: Report) -> str:
    """The whole page, as HTML."""
    from jinja2 import Environment, StrictUndefined

    profile, samples, verdict = report.profile, report.samples, report.verdict
    available_ns = None if verdict is None else verdict.available_ns
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(
        resources.files("edgeguard.report").joinpath("page.html").read_text(encoding="utf-8")
    )
    return template.render(
        report=report,
        profile=profile,
        bounds=[(cell_name(bound), bound.times(profile.margin)) for bound in profile.bounds],
        budget=draw_budget(profile, verdict),
        coverage=None if report.coverage is None else draw_coverage(report.coverage),
        run=draw_run(profile, samples, available_ns=available_ns),
        plots=[
            draw_histogram(profile),
            draw_tail(profile, verdict),
            *_cost_plots(report),
        ],
        variables={name: colour for colour, name in sketch.VARIABLES.items()},
        cell_name=cell_name,
        percentile_name=percentile_name,
        data=_harmless(profile_text(profile)),
    )


def _cost_plots(report: Report) -> Iterator[Plot]:
    """Of each model, one after the other."""
    first, *others = report.profile.by_model
    if not others:
        yield from draw_costs(report.profile, report.samples, report.estimates)
        return
    for one in (first, *others):
        rungs = dict.fromkeys(request.rung for request in one.requests)
        if rungs:
            yield from draw_costs(one, report.samples.of(rungs), estimates_of(one), of=", ".join(rungs))


def _harmless(json_text: str) -> str:
    """JSON that no browser takes for the end of its script or the beginning of another."""
    return json_text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
