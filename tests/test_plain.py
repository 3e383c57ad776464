"""Records survive the trip through JSON, and what does not fit is named with its place."""

from __future__ import annotations

import dataclasses
import json
from decimal import Decimal

import pytest

from edgeguard.config.condition import Compare
from edgeguard.guard.state import GuardState, Sight
from edgeguard.plain import from_plain, to_plain
from edgeguard.types import (
    Action,
    Answer,
    Budget,
    Cause,
    CycleRecord,
    Decision,
    Finish,
    Grade,
    Mode,
    Observation,
    Pass,
    SetPoint,
    Source,
)

RECORD = CycleRecord(
    cycle=3,
    epoch=1,
    mode=Mode.INTERVENING,
    observation=Observation(
        fields={"said": "go", "front_m": None, "n": 3, "dark": True, "grid": Decimal("0.3")}, captured_ns=1
    ),
    released_ns=2,
    budget=Budget(deadline_ns=200, age_ns=1, wire_ns=4, reserve_ns=2, bound_ns=None),
    answer=Answer(request_id=1, epoch=1, finish=Finish.DEADLINE, passes=(Pass(k=1, p=2, elapsed_ns=3),)),
    decision=Decision(
        source=Source.SAFE,
        mode=Mode.INTERVENING,
        grade=Grade.EMERGENCY,
        causes=(Cause.MISS, Cause.RULE),
        detail="too late",
        rule="stop",
        set_point=SetPoint(axes={"linear": 0.1}, action=Action.STOP, life_ms=80),
        decided_ns=9,
    ),
    shadow=False,
    on_wire_ns=11,
)


def through_json(plain):
    return json.loads(json.dumps(plain, default=float), parse_float=Decimal)


def test_a_record_survives_the_trip_through_json():
    assert from_plain(CycleRecord, through_json(to_plain(RECORD))) == RECORD


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("cycle",), "three", r"CycleRecord\.cycle: 'three' is not int"),
        (("cycle",), True, r"CycleRecord\.cycle: True is not int"),
        (("decision", "mode"), "asleep", "'asleep' is not a valid Mode"),
        (("decision", "set_point", "axes"), [1], r"CycleRecord\.decision\.set_point\.axes: \[1\] is not an object"),
        (("decision", "causes"), "miss", r"CycleRecord\.decision\.causes: 'miss' is not a list"),
        (("surprise",), 1, "CycleRecord: unknown surprise"),
        (("budget",), [], r"CycleRecord\.budget: \[\] is none of Budget, NoneType"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(place, value, said):
    plain = to_plain(RECORD)
    inner = plain
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(ValueError, match=said):
        from_plain(CycleRecord, plain)


def test_a_missing_part_is_named():
    plain = to_plain(RECORD)
    del plain["decision"]["rule"]
    with pytest.raises(ValueError, match="rule"):
        from_plain(CycleRecord, plain)


def test_the_cores_state_survives_it_too():
    """Its books are kept by cause, and what is engaged or unusable is a set."""
    band = Compare(field="front_m", below=0.3, until=0.5)
    state = dataclasses.replace(
        GuardState.initial(now_ns=7),
        engaged_bands=frozenset({band, Compare(field="front_m", above=9.0)}),
        sight=Sight(
            observation=Observation(fields={}, captured_ns=1), arrived_ns=2, unusable=frozenset({"front_m", "said"})
        ),
    )
    back = from_plain(GuardState, through_json(to_plain(state)))
    assert back == state
    assert Cause.UNPROVEN in back.ledger


def test_a_set_is_written_in_one_order():
    names = [f"field {number}" for number in range(9)]
    assert to_plain(frozenset(names)) == to_plain(frozenset(reversed(names))) == names
    with pytest.raises(ValueError, match=r"unusable: 'front_m' is not a list"):
        from_plain(Sight, {"observation": to_plain(RECORD.observation), "arrived_ns": 2, "unusable": "front_m"})
