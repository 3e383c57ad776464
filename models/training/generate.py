"""Makes operators' utterances with the right answers, from ``phrases.toml``, ``wider.toml`` and a seed.

    python models/training/generate.py --cases 32000 --seed 8 --without models/eval/commands.jsonl --out train.jsonl

One case a line; the same arguments give the same file. Each kind of utterance is one method of ``Speaker``; a share of
them is then worn down as speech and typing are. What ``--without`` names holds no phrase of the result, also after
normalisation (case, punctuation, spaces, spelled numbers). Decided here: of two steps the first is to be done; 0.3 m/s
unless said otherwise; who wants the rules broken is answered ``none``; ``stop`` and ``none`` have no speed.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from normalise import normalised

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOVES = ("forward", "left", "right", "back", "stop")
USUAL = 3
"""Tenths of a metre per second."""

NEAR_M, CLEAR_M = (0.2, 0.8), (1.0, 3.9)
"""What counts as blocked and as room ahead; in between nobody would be sure, so nothing there depends on it."""

LONGEST = 240
"""Characters that the demo's robot reads; longer texts it refuses."""

WEIGHTS: Mapping[str, int] = {
    "plain": 12,
    "hint": 14,
    "telling": 14,
    "polite": 8,
    "spoken_number": 5,
    "verb": 3,
    "misheard": 6,
    "garbled": 5,
    "negation": 11,
    "two_step": 11,
    "range": 6,
    "pace": 4,
    "chatter": 12,
    "override": 6,
    "remark": 22,
}
"""How often each kind of utterance is said; ``--weight`` changes it."""

WORDS = ("phrases.toml", "wider.toml")

_PLACE = re.compile(r"\{(\w+)\}")
_KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One utterance; ``speed`` in tenths of a metre per second."""

    text: str
    move: str
    kind: str
    speed: int = USUAL
    front: tuple[float, float] = (0.2, 4.0)

    def case(self, *, front_m: float) -> dict[str, Any]:
        accepted: dict[str, list[str | float]] = {"move": [self.move]}
        if self.move not in ("stop", "none"):
            accepted["speed"] = [self.speed / 10]
        scope = "out-of-scope" if self.move == "none" else "in-scope"
        return {
            "observation": {"said": self.text, "front_m": front_m},
            "accepted": accepted,
            "tags": [scope, self.kind],
        }


class Speaker:
    """Speaks at random, out of ``phrases``."""

    def __init__(
        self,
        *,
        phrases: Mapping[str, Mapping[str, Sequence[str]]],
        draw: random.Random,
        weights: Mapping[str, int] = WEIGHTS,
    ) -> None:
        self._phrases = phrases
        self._draw = draw
        self._kinds: dict[Callable[[], Said], int] = {getattr(self, kind): weight for kind, weight in weights.items()}

    def said(self) -> Said:
        """Something of some kind, worn down perhaps."""
        (kind,) = self._draw.choices(list(self._kinds), weights=list(self._kinds.values()))
        said = kind()
        return replace(said, text=self._worn(said.text))

    def front_m(self, said: Said) -> float:
        return round(self._draw.uniform(*said.front), 1)

    def plain(self) -> Said:
        move = self._draw.choice(MOVES)
        text, speed = self._paced(self._order(move), move)
        return Said(text=text, move=move, speed=speed, kind="plain")

    def hint(self) -> Said:
        move = self._draw.choice(MOVES)
        text, speed = self._filled(self._one("hints", move)), USUAL
        if move != "stop" and len(text.split()) <= 3 and self._chance(0.5):
            text, speed = self._paced(text, move, at_front=False)
        return Said(text=self._framed(text, 0.4), move=move, speed=speed, kind="indirect")

    def telling(self) -> Said:
        """Something about the world, from which follows what to do."""
        move = self._draw.choice(MOVES)
        if move not in ("left", "right"):
            text = self._filled(self._one("hinted", move))
        else:
            other = "left" if move == "right" else "right"
            text = self._filled(self._one("hinted", "sideways"), side=move, other=other)
        return Said(text=self._framed(text, 0.25), move=move, kind="indirect")

    def polite(self) -> Said:
        move = self._draw.choice(MOVES)
        order, speed = self._paced(self._order(move), move)
        text = self._filled(self._one("lists", "asking"), order=order)
        return Said(text=self._framed(text, 0.5), move=move, speed=speed, kind="polite")

    def spoken_number(self) -> Said:
        move = self._draw.choice(MOVES[:-1])
        speed = self._draw.randint(1, 5)
        number = self._one("numbers", str(speed))
        if number[-1].isdigit() or number.startswith(("point", "zero", "nought")):
            number += self._one("lists", "units")
        with_number = self._filled(self._one("lists", "with_number"), number=number)
        order = self._order(move) if self._chance(0.7) else self._one("ways", move)
        if self._chance(0.15):
            order = f"{order} {self._one('lists', 'amounts')}"
        text = f"{order} {with_number}" if self._chance(0.75) else f"{with_number}, {order}"
        if self._chance(0.3):
            text = self._filled(self._one("lists", "asking"), order=text)
        return Said(text=self._framed(text, 0.25), move=move, speed=speed, kind="spoken-number")

    def negation(self) -> Said:
        good, bad = self._draw.sample(MOVES[:-1], 2)
        which = self._draw.random()
        if which < 0.4:
            order, speed = self._paced(self._order(good), good)
            text = self._filled(
                self._one("frames", "not_this"), bad=self._order(self._draw.choice([bad, bad, "stop"])), good=order
            )
            return Said(text=self._framed(text, 0.3), move=good, speed=speed, kind="negation")
        if which < 0.7:
            text = self._filled(
                self._one("frames", "not_that_way"), bad=self._one("ways", bad), good=self._one("ways", good)
            )
            if self._chance(0.3):
                text = f"{self._draw.choice(['go', 'turn', 'move', 'drive'])} {text}"
            return Said(text=self._framed(text, 0.3), move=good, kind="negation")
        kind = "not_moving" if which < 0.88 else "not_stopping"
        text = self._framed(self._filled(self._one("frames", kind)), 0.4)
        return Said(text=text, move="stop" if kind == "not_moving" else "forward", kind="negation")

    def two_step(self) -> Said:
        one, two = self._draw.sample(MOVES, 2)
        if self._chance(0.45):
            places = {"one": self._filled(self._one("steps", one)), "two": self._filled(self._one("steps", two))}
            text = self._filled(self._one("frames", "steps_of"), **places)
            return Said(text=self._framed(text, 0.3), move=one, kind="two-step")
        first, speed = self._paced(self._order(one), one, at_front=False)
        second, _ = self._paced(self._order(two), two, at_front=False)
        text = self._filled(self._one("frames", "steps"), one=first, two=second)
        return Said(text=self._framed(text, 0.3), move=one, speed=speed, kind="two-step")

    def range(self) -> Said:
        blocked = self._chance(0.5)
        front = NEAR_M if blocked else CLEAR_M
        order = self._order("forward") if self._chance(0.6) else self._one("ways", "forward")
        other = self._draw.choice(MOVES[1:])
        if self._chance(0.5):
            text, move = self._filled(self._one("frames", "if_room"), order=order), "stop" if blocked else "forward"
        else:
            way = self._one("ways", "forward")
            text = self._filled(self._one("frames", "if_blocked"), order=order, other=self._order(other), order_way=way)
            move = other if blocked else "forward"
        return Said(text=self._framed(text, 0.3), move=move, front=front, kind="range")

    def verb(self) -> Said:
        """How to move is in the verb."""
        move, speed = self._draw.choice(MOVES[:-1]), self._draw.choice((1, 2, 2, 4, 5, 5))
        text = f"{self._one('verbs', str(speed))} {self._filled(self._one('verb_ways', move))}"
        if self._chance(0.3):
            text = self._filled(self._one("lists", "asking"), order=text)
        return Said(text=self._framed(text, 0.25), move=move, speed=speed, kind="verb")

    def misheard(self) -> Said:
        move = self._draw.choice(MOVES)
        text, speed = self._filled(self._one("misheard", move)), USUAL
        if move != "stop" and self._chance(0.3):
            text, speed = self._paced(text, move, at_front=False)
        return Said(text=self._framed(text, 0.2), move=move, speed=speed, kind="typo")

    def garbled(self) -> Said:
        """Most of the words misspelt."""
        move = self._draw.choice(MOVES)
        short = [text for table in ("orders", "hints") for text in self._phrases[table][move] if len(text.split()) <= 5]
        words = self._filled(self._draw.choice(short)).split()
        text = " ".join(self._slip(word) if self._chance(0.7) else word for word in words)
        return Said(text=self._framed(text, 0.15), move=move, kind="typo")

    def remark(self) -> Said:
        """Anything, in words that nothing above uses."""
        key = self._draw.choice(("forward", "sideways", "sideways", "back", "stop", "none", "none", "override"))
        side, other = self._draw.sample(("left", "right"), 2)
        text = self._framed(self._filled(self._one("remarks", key), side=side, other=other), 0.25)
        move = {"sideways": side, "override": "none"}.get(key, key)
        kind = {"override": "override", "none": "chatter"}.get(key, "indirect")
        return Said(text=text, move=move, kind=kind)

    def pace(self) -> Said:
        faster = self._chance(0.5)
        text = self._one("lists", "faster" if faster else "slower")
        return Said(text=self._framed(text, 0.5), move="forward", speed=5 if faster else 2, kind="pace")

    def chatter(self) -> Said:
        text = self._talk()
        if self._chance(0.15):
            text = f"{text}, {self._talk()}"
        return Said(text=self._framed(text, 0.25), move="none", kind="chatter")

    def override(self) -> Said:
        text = self._filled(self._one("beside", "overrides"))
        return Said(text=self._framed(text, 0.25), move="none", kind="override")

    def _talk(self) -> str:
        return self._filled(self._one("beside", "chatter"), side=self._draw.choice(("left", "right")))

    def _order(self, move: str) -> str:
        return self._filled(self._one("orders", move))

    def _paced(self, order: str, move: str, *, at_front: bool = True) -> tuple[str, int]:
        """The order with how fast, or how far, it is to be done; most orders say nothing of it."""
        if move == "stop" or self._chance(0.55):
            return order, USUAL
        if self._chance(0.2):
            return f"{order} {self._one('lists', 'amounts')}", USUAL
        speed = self._draw.choices((1, 2, 3, 4, 5), weights=(3, 5, 2, 3, 5))[0]
        if at_front and self._chance(0.4):
            return f"{self._one('before', str(speed))} {order}", speed
        return f"{order} {self._one('adverbs', str(speed))}", speed

    def _framed(self, text: str, chance: float) -> str:
        if self._chance(chance):
            opening = self._filled(self._one("lists", "openings"))
            text = f"{opening}{self._draw.choice([' ', ', ']) if opening[-1].isalpha() else ' '}{text}"
        if self._chance(chance):
            text = f"{text}{self._draw.choice([' ', ', '])}{self._filled(self._one('lists', 'closings'))}"
        return text

    def _one(self, table: str, key: str) -> str:
        return self._draw.choice(self._phrases[table][key])

    def _filled(self, text: str, **places: str) -> str:
        """Every place filled: from ``places``, else from the table [fill]."""
        while match := _PLACE.search(text):
            word = places[match[1]] if match[1] in places else self._one("fill", match[1])
            text = text[: match.start()] + word + text[match.end() :]
        return text

    def _chance(self, share: float) -> bool:
        return self._draw.random() < share

    def _worn(self, text: str) -> str:
        """As it is typed or heard: slips, punctuation, case, repetition."""
        if text.startswith("{"):
            return text
        if self._chance(0.05):
            text = f"{text} {text}" if len(text) < 12 else f"{text}, {self._draw.choice(['i repeat', 'again'])}: {text}"
        if self._chance(0.4 if len(text) < 12 else 0.18):
            for _ in range(self._draw.choice((1, 1, 2, 3))):
                text = self._slip(text)
        if self._chance(0.2):
            text = re.sub(r"[,.;:?']", "", text)
        elif self._chance(0.35):
            text += self._draw.choice(
                (".", ".", "!", "!!", "...", "?" if text.startswith(("could", "can", "w")) else ".")
            )
        case = self._draw.random()
        return text.upper() if case < 0.06 else text[:1].upper() + text[1:] if case < 0.4 else text

    def _slip(self, text: str) -> str:
        letters = [at for at, letter in enumerate(text) if letter.isalpha()]
        if len(letters) < 4:
            return text
        at = self._draw.choice(letters[1:])
        match self._draw.randrange(5):
            case 0:
                return text[:at] + text[at + 1 :]
            case 1:
                return text[:at] + text[at] * self._draw.choice((2, 2, 4)) + text[at + 1 :]
            case 2 if at + 1 < len(text):
                return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
            case 3 if " " in text:
                spaces = [at for at, letter in enumerate(text) if letter == " "]
                at = self._draw.choice(spaces)
                return text[:at] + text[at + 1 :]
        return text[:at] + self._neighbour(text[at]) + text[at + 1 :]

    def _neighbour(self, letter: str) -> str:
        for row in _KEYBOARD:
            if (at := row.find(letter.lower())) >= 0:
                return self._draw.choice(row[max(0, at - 1) : at + 2].replace(letter.lower(), "") or letter)
        return letter


def words(*names: str) -> dict[str, dict[str, list[str]]]:
    """The lists of the files beside this one, one file's lines behind the other's.

    In [orders] and [hints] what is said for both ways ("sideways") is said for the left and for the right.
    """
    tables: dict[str, dict[str, list[str]]] = {}
    for name in names:
        for table, lists in tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8")).items():
            for key, lines in lists.items():
                tables.setdefault(table, {}).setdefault(key, []).extend(lines)
    for table in ("orders", "hints", "steps"):
        both = tables[table].pop("sideways")
        for side, other in (("left", "right"), ("right", "left")):
            tables[table][side] += [line.replace("{side}", side).replace("{other}", other) for line in both]
    return tables


def cases(*, seed: int, without: frozenset[str], weights: Mapping[str, int] = WEIGHTS) -> Iterator[dict[str, Any]]:
    """Endless; no utterance twice, none of ``without`` (normalised texts)."""
    speaker = Speaker(phrases=words(*WORDS), draw=random.Random(seed), weights=weights)
    seen: set[tuple[str, float | None]] = set()
    while True:
        said = speaker.said()
        front_m = speaker.front_m(said)
        # The same words are another case where the range in front decides.
        key = (normalised(said.text), front_m if said.kind == "range" else None)
        if key not in seen and key[0] not in without and len(said.text) <= LONGEST:
            seen.add(key)
            yield said.case(front_m=front_m)


def phrases_of(file: Path) -> frozenset[str]:
    lines = file.read_text(encoding="utf-8").splitlines()
    return frozenset(normalised(json.loads(line)["observation"]["said"]) for line in lines if line.strip())


def weight(text: str) -> tuple[str, int]:
    """``KIND=N`` of the command line."""
    kind, _, number = text.partition("=")
    if kind not in WEIGHTS or not number.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not KIND=N with one of {', '.join(WEIGHTS)}")
    return kind, int(number)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--without", type=Path, action="append", default=[], help="no phrase of this file")
    parser.add_argument("--weight", type=weight, action="append", default=[], metavar="KIND=N", help="say it as often")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    without = frozenset().union(*map(phrases_of, args.without))
    made = cases(seed=args.seed, without=without, weights={**WEIGHTS, **dict(args.weight)})
    with args.out.open("w", encoding="utf-8") as file:
        for _ in range(args.cases):
            file.write(json.dumps(next(made), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
