"""Whether the calibration profile is this worker's, on this board, as it is now: the exact difference, or nothing.

The profile is read once, at the start; the comparison is made when a worker says what it is, and kept until another
worker does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgeguard.board import read_fingerprint
from edgeguard.budget.profile import Profile, differences
from edgeguard.budget.profile_json import load_profile
from edgeguard.clock import ms_from_ns
from edgeguard.errors import ProfileError
from edgeguard.guard.interface import Promise
from edgeguard.types import Cause, ThermalLevel

LEAST_ALPHA = 1e-6
"""Nothing that was measured promises more."""


def promise_of(profile: Profile) -> Promise:
    """What the profile promises, in the guard's words: of each level the bound of the rung that promises most, for a
    miss is foreseen only where no rung fits. What holds of every rung holds whichever one runs.
    """
    of_levels = [
        [bound for rung in profile.rungs if (bound := profile.bound_for(level, rung=rung)) is not None]
        for level in ThermalLevel
    ]
    measured = [bounds for bounds in of_levels if bounds]
    known = [bound for bounds in measured for bound in bounds]
    return Promise(
        bounds_ns=tuple(min(bound.bound_ns for bound in bounds) for bounds in measured),
        alpha=max(LEAST_ALPHA, 1 - min(bound.percentile for bound in known)),
        lag=max(bound.lag for bound in known),
        observed=profile.thermal == "observed",
    )


class ProfileCheck:
    """One profile against whatever worker is there. ``soaked_c``: the hottest sensor at the end of the soak."""

    def __init__(self, file: Path, *, period_ns: int) -> None:
        """``ProfileError`` when it can be no worker's: measured at another period, or not a finished calibration."""
        self.file = file
        profile = load_profile(file)
        if profile.kind == "provisional":
            raise ProfileError(f"{file}: kind: 'provisional' bounds nothing; measure with: edgeguard calibrate")
        if profile.schedule.period_ns != period_ns:
            raise ProfileError(
                f"{file}: measured at a period of {ms_from_ns(profile.schedule.period_ns):g} ms, and the configuration "
                f"has {ms_from_ns(period_ns):g} ms; measure again with: edgeguard calibrate"
            )
        self.promise = promise_of(profile)
        self.soaked_c = None if profile.soak is None else profile.soak.end_c
        self._profile = replace(profile, sweep=(), requests=())  # a night's samples are nothing to carry in the guard
        self._board = read_fingerprint()
        self._checked: Mapping[str, Any] = {}
        self._conditions: tuple[tuple[Cause, str], ...] = ()

    @property
    def warning(self) -> str:
        """What to know before relying on it; empty when there is nothing."""
        if self._profile.kind != "quick":
            return ""
        return (
            f"{self.file}: a quick calibration, with a margin of x{self._profile.margin:g} on its bounds: the thermal "
            "limit was not measured; do that with: edgeguard calibrate, without --quick"
        )

    def require_board(self) -> None:
        """``ProfileError`` with the differences when this is another board than the one measured, or another mode."""
        then = {key: value for key, value in self._profile.fingerprint.items() if key in self._board}
        if changed := differences(then, self._board):
            raise ProfileError(
                f"{self.file}: measured on another board, or in another mode ({'; '.join(changed)}); measure here "
                "with: edgeguard calibrate"
            )

    def require_configuration(self, configured: Mapping[str, str]) -> None:
        """``ProfileError`` with the differences when what the configuration decides is not as it was measured; the rest
        is known when a worker says what it is (``conditions``).
        """
        then = {key: value for key, value in self._profile.fingerprint.items() if key in configured}
        now = {key: value for key, value in configured.items() if key in then}
        if changed := differences(then, now):
            raise ProfileError(
                f"{self.file}: measured with another configuration ({'; '.join(changed)}); measure again with: "
                "edgeguard calibrate"
            )

    def conditions(self, ready: Mapping[str, Any]) -> tuple[tuple[Cause, str], ...]:
        """The cause ``profile stale`` with the differences, for the worker whose ``ready`` message this is."""
        if ready is not self._checked:
            self._checked = ready
            self._conditions = self._compare(ready) if ready else ()
        return self._conditions

    def _compare(self, ready: Mapping[str, Any]) -> tuple[tuple[Cause, str], ...]:
        identity = ready.get("identity")
        fingerprint = {**self._board, **(identity if isinstance(identity, dict) else {})}
        differences = self._profile.differences(fingerprint, placement=str(ready.get("placement", "")))
        return ((Cause.PROFILE_STALE, "; ".join(differences)),) if differences else ()
