"""What the worker's questions cost: may this request start, and is it worth another pass?

    python calibration/admission_cost.py [CONFIG] [--json]

The planner of CONFIG (default: the demo's) with its real answer automaton and a made price list is asked what the
worker asks: ``admission`` for requests of every length, alone and as the last of a ladder of three such plans of which
the others do not fit, and ``before a pass`` in every state on the way through an answer; each with the last answer as a
draft and without. Microseconds of single calls in one thread: the median, and the 99th percentile. The aim is 20 for
each plan that is looked at. Tokenising is not in it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path

from edgeguard.answer import Memory, PathPrices
from edgeguard.answer.draft import undrafted
from edgeguard.bench.subject import model_folder
from edgeguard.budget import PassCost, Planner
from edgeguard.config import load_config
from edgeguard.engine.model_parts import ModelParts, read_model_parts
from edgeguard.types import ThermalLevel

COST = PassCost(
    sizes=(2, 4, 8, 16, 32, 64), prices_ns=(11.5e6, 16e6, 28e6, 50e6, 93e6, 190e6), p_reference=149,
    per_cached_ns=4_000.0, constant_ns=2_000_000,
)  # fmt: skip
AMPLE_NS = 10**12
CALLS = 4_000


def questions(parts: ModelParts, *, drafted: bool) -> Mapping[str, Sequence[Callable[[], object]]]:
    """Everything that one kind of question can be about, ready to be called."""
    automaton, prefix = parts.automaton, len(parts.prompt.prefix)
    planner = Planner(
        cost=COST,
        scores={(level, draft): 1.3 for level in ThermalLevel for draft in (False, True)},
        paths=PathPrices(automaton=automaton, price=COST.price_ns),
    )
    lengths = range(1, parts.prompt.longest - prefix + 1)
    planner.prepare(state=automaton.start, request_tokens=lengths, cached=prefix)
    choices, state = [], automaton.start
    while not automaton.finished(state):
        before = automaton.after_forced(state)
        token = automaton.allowed(before)[0]
        choices.append((state, before, token))
        state = automaton.step(before, token)
    memory = Memory(automaton=automaton)
    memory.note([(before, token) for _, before, token in choices])

    def reaches(at: int) -> Sequence[object]:
        return (memory.draft(at) if drafted else undrafted(automaton, at)).reaches

    def admission(tokens: int, *, plans: int = 1) -> Callable[[], object]:
        def ask(left_ns: int) -> object:
            found = reaches(automaton.start)
            return planner.plan(found, pending=tokens, cached=prefix, left_ns=left_ns, level=ThermalLevel.NOMINAL)

        return lambda: [ask(left_ns) for left_ns in (*[0] * (plans - 1), AMPLE_NS)]

    def before_a_pass(at: int, tokens: int) -> Callable[[], object]:
        def ask() -> object:
            found = reaches(at)
            reach = planner.reach(found, pending=tokens, cached=prefix, left_of_promise_ns=AMPLE_NS)
            return planner.more_likely_late(found, reach, state=at, pending=tokens, cached=prefix, left_ns=AMPLE_NS)

        return ask

    return {
        "admission": [admission(tokens) for tokens in lengths],
        "admission, 3 plans": [admission(tokens, plans=3) for tokens in lengths],
        "before a pass": [before_a_pass(at, 1) for at, _, _ in choices[1:]] or [before_a_pass(automaton.start, 1)],
    }


def time_us(asked: Sequence[Callable[[], object]]) -> dict[str, float]:
    """The first call of each fills what later ones look up, as the worker's start does; then they are timed in turn."""
    for question in asked:
        question()
    spent = []
    for number in range(CALLS):
        question = asked[number % len(asked)]
        began = time.perf_counter_ns()
        question()
        spent.append((time.perf_counter_ns() - began) / 1e3)
    spent.sort()
    return {"median_us": round(spent[CALLS // 2], 2), "p99_us": round(spent[CALLS * 99 // 100], 2)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = resources.files("edgeguard.demo").joinpath("demo.toml")
    parser.add_argument("config", nargs="?", type=Path, default=default, help="default: the demo's")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    config = load_config(arguments.config)
    parts = read_model_parts(config=config, folder=model_folder(config))
    figures = {
        f"{name}, {'with a draft' if drafted else 'without a draft'}": time_us(asked)
        for drafted in (False, True)
        for name, asked in questions(parts, drafted=drafted).items()
    }
    if arguments.json:
        print(json.dumps(figures))
    else:
        for name, figure in figures.items():
            print(f"{name:36}  median {figure['median_us']:7.2f} us   p99 {figure['p99_us']:7.2f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
