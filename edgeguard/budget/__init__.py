"""Time as a budget: what a pass costs, what a request may take at most, and what fits. Pure logic, without numpy.

(``edgeguard.budget.effective`` is the exception: the bench's, with numpy, and not imported here.)
"""

from edgeguard.budget.cost import PassCost, PassTimes
from edgeguard.budget.planner import Plan, Planner
from edgeguard.budget.profile import Bound, Profile, RequestTimes, Schedule, Soak, differences, fingerprint_digest
from edgeguard.budget.profile_json import load_profile, parse_profile, profile_text

__all__ = [
    "Bound",
    "PassCost",
    "PassTimes",
    "Plan",
    "Planner",
    "Profile",
    "RequestTimes",
    "Schedule",
    "Soak",
    "differences",
    "fingerprint_digest",
    "load_profile",
    "parse_profile",
    "profile_text",
]
