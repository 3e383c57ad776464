"""Conditions in the file: every rule set is total, so a comparison that could never be true is refused at load."""

from __future__ import annotations

import pytest
from plant import PLANT, plant

from edgeguard.config.condition import All, AnyOf, Compare, Equals, Not, OlderThan, leaves
from edgeguard.errors import ConfigError

WHEN = 'when = { field = "front_m", below = 0.3, until_above = 0.5 }'


@pytest.mark.parametrize(
    ("when", "problem"),
    [
        ('{ field = "said", below = 1 }', "'said' is a text: compare it with equals"),
        ('{ field = "docked", above = 1 }', "'docked' is a flag: compare it with equals"),
        ('{ field = "said", equals = true }', "'said' is a text, and never equals True"),
        ('{ field = "docked", equals = 1 }', "'docked' is a flag, and never equals 1"),
        ('{ field = "front_m", equals = "near" }', "'front_m' is a number, and never equals 'near'"),
        ('{ not = { all = [{ any = [{ field = "rear_m", below = 1 }] }] } }', "no [[field]] is named 'rear_m'"),
    ],
)
def test_what_could_never_be_true_is_refused(when, problem):
    with pytest.raises(ConfigError) as raised:
        plant(PLANT.replace(WHEN, f"when = {when}"))
    assert f"rule 'obstacle': {problem}" in str(raised.value)


@pytest.mark.parametrize(
    "when",
    [
        '{ field = "said", equals = "wait" }',
        '{ field = "docked", equals = false }',
        '{ field = "front_m", equals = 0.5 }',
        '{ field = "said", older_than_ms = 50 }',
    ],
)
def test_what_can_be_true_is_taken(when):
    assert plant(PLANT.replace(WHEN, f"when = {when}")).rules[0].when is not None


def test_the_leaves_of_a_condition_are_its_comparisons_in_order():
    compare, equals, older = Compare(field="a", below=1), Equals(field="b", value=1), OlderThan(field="c", age_ns=1)
    condition = All(parts=(Not(part=compare), AnyOf(parts=(equals, older))))
    assert list(leaves(condition)) == [compare, equals, older]
