"""The lines of the timeline, character by character."""

from __future__ import annotations

import pytest
from demo_cycles import cycle

from edgeguard.demo.timeline import decisive, header, line, speed_bar
from edgeguard.types import Cause, Grade, Mode

FORWARD = {"move": "forward", "speed": 0.3}


def shown(one, *, heard_before: str | None = "drive ahead", narrow: bool = False) -> str:
    return line(one, heard_before=heard_before, narrow=narrow).plain.rstrip()


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (
            cycle(number=44, values=FORWARD),
            "   44  0.3      40      2      73    +87     │████▊       armed       model  forward 0.3",
        ),
        (
            cycle(number=45, values=FORWARD, linear=0.0, angular=0.6),
            "   45  0.3      40      2      73    +87     │         ↺  armed       model  forward 0.3",
        ),
        (
            cycle(values=FORWARD, linear=0.25, adjusted=("linear: 0.5 -> 0.25 (near a wall)",)),
            "    1  0.3      40      2      73    +87     │████        armed       model  forward 0.3 clamped",
        ),
        (
            cycle(causes=(Cause.MISS,), mode=Mode.INTERVENING, grade=Grade.COMFORTABLE, on_wire_ms=199, linear=0.1),
            "    1  0.3       ·      ·     199    +87     │█▋          intervening safe   miss",
        ),
        (
            cycle(causes=(Cause.LINK_LOST,), mode=Mode.INTERVENING, on_wire_ms=None, linear=0.0),
            "    1  0.3       ·      ·       ·    +87     │            intervening safe   link lost",
        ),
        (
            cycle(causes=(Cause.NO_OBSERVATION,), mode=Mode.INHIBITED, observed=False, linear=0.0),
            "    1    ·       ·      ·       ·      ·     │            inhibited   safe   no observation",
        ),
        (
            cycle(causes=(Cause.RULE,), rule="obstacle too near", mode=Mode.INTERVENING, linear=-0.15, angular=-0.5),
            "    1  0.3       ·      ·      73    +87  ▐██│         ↻  intervening safe   obstacle too near",
        ),
        (
            cycle(mode=Mode.INHIBITED, linear=0.0),
            "    1  0.3       ·      ·      73    +87     │            inhibited   safe   shadow request",
        ),
    ],
)
def test_a_line_reads(one, text: str) -> None:
    assert shown(one) == text


def test_what_was_said_is_shown_when_it_is_new_and_not_for_ever() -> None:
    assert shown(cycle(values=FORWARD), heard_before="take a left").endswith("“drive ahead”")
    assert "“" not in shown(cycle(values=FORWARD))
    assert shown(cycle(values=FORWARD, said="go to 41.7283 9.1174 then 41.7283 9.1174")).endswith("…”")


@pytest.mark.parametrize("narrow", [False, True])
def test_names_stand_over_their_columns(narrow: bool) -> None:
    names = header(narrow=narrow).plain
    text = shown(cycle(number=44, values=FORWARD), narrow=narrow)
    for name, value in (("mode", "armed"), ("decided by", "model")):
        assert names.index(name) == text.index(value)
    assert names.index("command") + len("command") == text.index("73") + len("73")


def test_what_is_said_stands_under_its_name() -> None:
    text = shown(cycle(values=FORWARD), heard_before=None)
    assert header().plain.index("the operator says") == text.index("“drive")


def test_a_narrow_terminal_keeps_what_matters() -> None:
    text = shown(cycle(number=44, values=FORWARD), narrow=True)
    assert text == "   44      40      73     │████▊       armed       model  forward 0.3"
    assert len(header(narrow=True).plain.rstrip()) <= len(text) <= 80
    heard = shown(cycle(number=44, values=FORWARD), heard_before="take a left", narrow=True)
    assert heard.splitlines() == ["       “drive ahead”", text]


@pytest.mark.parametrize(
    ("speed", "bar"),
    [
        (0.0, "   │        "),
        (0.5, "   │████████"),
        (0.0625, "   │█       "),
        (0.03125, "   │▌       "),
        (5.0, "   │████████"),
        (-0.0625, "  █│        "),
        (-0.09, " ▐█│        "),
        (-0.3, "███│        "),
    ],
)
def test_the_bar_has_its_length(speed: float, bar: str) -> None:
    assert speed_bar(speed) == bar


@pytest.mark.parametrize(
    ("causes", "cause"),
    [
        ((), None),
        ((Cause.MISS,), Cause.MISS),
        ((Cause.MISSES_ACCUMULATED, Cause.MISS, Cause.WORKER_DEAD), Cause.WORKER_DEAD),
        ((Cause.UNPROVEN, Cause.LINK_LOST), Cause.LINK_LOST),
    ],
)
def test_what_it_all_follows_from_is_shown(causes: tuple[Cause, ...], cause: Cause | None) -> None:
    assert decisive(cycle(causes=causes).record.decision) is cause
