"""Looks over the core's shoulder: after every step, whatever came in, what issue and design promise must hold.

``Witness.saw`` is given each step of a ``Rig`` and fails with an ``AssertionError`` at the first broken promise.
"""

from __future__ import annotations

import math

from edgeguard.clock import NS_PER_MS, NS_PER_S
from edgeguard.guard.causes import TABLE, Clear
from edgeguard.guard.core import step
from edgeguard.guard.interface import Effects, Inputs
from edgeguard.guard.mapping import as_float32
from edgeguard.guard.rules import View, holds
from edgeguard.guard.settings import Settings
from edgeguard.guard.state import GuardState
from edgeguard.types import Action, Cause, Grade, Mode, Observation, OperatorWord, Request, SetPoint, Source

_ULP = 1e-6  # float32 at speeds around 1


class Witness:
    """One guard's history, as far as the promises need it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.asked: dict[int, Request] = {}
        self.applied: set[int] = set()
        self.overtaken: set[int] = set()  # requests that a cause has come between, which no on-time answer ends
        self.command: Observation | None = None  # the one that the model's command in force was made from
        self.last: SetPoint | None = None
        self.last_sent_ns = 0
        self.steps = 0
        self.records = 0
        self.recorded: set[int] = set()

    def saw(self, before: GuardState, now_ns: int, inputs: Inputs, after: GuardState, effects: Effects) -> None:
        self.steps += 1
        self._books(before, after, effects)
        self._mode(before, inputs, after)
        self._leaving(after, effects)
        self._decision(before, now_ns, after, effects)
        self._wire(before, now_ns, inputs, after, effects)
        self._stop(before, now_ns, inputs, after)
        self._rates(before, now_ns, after)
        self._interlocks(before, now_ns, inputs, after, effects)

    def _books(self, before: GuardState, after: GuardState, effects: Effects) -> None:
        assert after.epoch >= before.epoch
        assert after.next_request_id >= before.next_request_id
        assert effects.wake_ns > after.now_ns, "time stands still"
        assert all(TABLE[cause].grade <= one.grade or cause is Cause.RULE for cause, one in after.ledger.items())
        assert 0 <= (after.credit or 0) <= self.settings.miss_limit
        counters = after.counters
        opened = 1 if after.cycle is not None else 0
        assert counters.cycles == counters.model + counters.safe + opened

    def _mode(self, before: GuardState, inputs: Inputs, after: GuardState) -> None:
        assert after.mode is not Mode.ARMED or not after.ledger, "armed although a cause holds"
        latching = any(TABLE[cause].latches for cause in after.ledger)
        assert (after.mode is Mode.LATCHED) is latching
        if before.mode is Mode.LATCHED and OperatorWord.REARM not in inputs.operator:
            assert after.mode is Mode.LATCHED
        if before.mode is Mode.ARMED and after.mode is not Mode.ARMED:
            assert after.epoch > before.epoch, "a trip without a new epoch"
        if before.mode is Mode.LATCHED and after.mode is not Mode.LATCHED:
            assert after.mode is Mode.INHIBITED
            assert after.epoch > before.epoch
        if before.mode is Mode.INHIBITED:
            assert after.mode is not Mode.INTERVENING

    def _decision(self, before: GuardState, now_ns: int, after: GuardState, effects: Effects) -> None:
        if effects.request is not None:
            self.asked[effects.request.request_id] = effects.request
            assert effects.request.epoch == after.epoch
            assert effects.request.answer_by_ns > now_ns
        if after.cycle is not None:
            assert after.cycle.request is not None
            assert now_ns < after.cycle.request.answer_by_ns, "no decision at the deadline"
            if any(TABLE[cause].clear is not Clear.ON_TIME for cause in after.ledger):
                self.overtaken.add(after.cycle.request.request_id)
        record = effects.record
        if record is None:
            return
        assert record.cycle not in self.recorded
        self.recorded.add(record.cycle)
        decision = record.decision
        if record.observation is not None and record.budget is not None and effects.request is None:
            assert decision.decided_ns - record.released_ns <= self.settings.deadline_ns
        assert set(decision.set_point.axes) == {axis.name for axis in self.settings.axes}
        if decision.source is Source.SAFE:
            assert decision.grade > Grade.NONE
            return
        assert (record.mode, after.mode, decision.causes) == (Mode.ARMED, Mode.ARMED, ())
        assert not record.shadow
        answer = record.answer
        assert answer is not None
        assert answer.values is not None
        for field in self.settings.rung_fields[answer.rung]:
            assert field.accepts(answer.values[field.name]), "more was applied than its plan may say"
        request = self.asked[answer.request_id]
        assert answer.request_id not in self.applied, "applied twice"
        assert answer.request_id not in self.overtaken, "applied although something else has happened meanwhile"
        self.applied.add(answer.request_id)
        assert answer.epoch == request.epoch == record.epoch
        assert now_ns <= request.answer_by_ns, "a late answer was applied"
        assert not request.shadow
        assert before.cycle is not None
        self.command = request.observation

    def _wire(self, before: GuardState, now_ns: int, inputs: Inputs, after: GuardState, effects: Effects) -> None:
        sent = effects.send
        if not inputs.link.up:
            assert sent is None
            self.last_sent_ns = now_ns
            return
        if sent is None:
            assert now_ns - self.last_sent_ns <= self.settings.tick_ns or not self.last_sent_ns, "the wire fell silent"
            assert after.mode is before.mode, "a change of mode that did not leave at once"
            return
        self.last_sent_ns = now_ns
        for axis in self.settings.axes:
            value = sent.axes[axis.name]
            assert axis.low <= value <= axis.high
            assert value == as_float32(value)
        assert 1 <= sent.life_ms <= self.settings.link_timeout_ms
        if sent.action is not Action.MOVE:
            self.last = sent
            return
        self.last = sent
        ends_ns = now_ns + sent.life_ms * NS_PER_MS + self.settings.wire_ns
        if after.mode is Mode.ARMED:
            assert self.command is not None
            assert ends_ns <= self.command.captured_ns + self.settings.life_ns, "a command past its life"
            return
        assert after.mode is Mode.INTERVENING, "moves, and is neither armed nor intervening"
        sight = after.sight
        assert sight is not None
        assert ends_ns <= sight.observation.captured_ns + self.settings.life_ns
        view = View(
            now_ns=now_ns,
            sight=sight,
            timeout_ns=self.settings.observation_timeout_ns,
            engaged=after.engaged_bands,
        )
        rule = next(motive for motive in self.settings.motives if motive.name == after.rule)
        assert rule.targets is not None
        assert holds(rule, view) is True, "unknown moved"

    def _stop(self, before: GuardState, now_ns: int, inputs: Inputs, after: GuardState) -> None:
        """While a stop is in force the speed never rises, and deceleration and jerk keep within their limits."""
        if before.motion is None or after.motion is None or after.motion is before.motion:
            return
        silent_ns = now_ns - before.motion.at_ns + inputs.boottime_offset_ns - (before.boottime_offset_ns or 0)
        stood = silent_ns > self.settings.link_timeout_ns  # by then the motor controller has stopped by itself
        dt_s = min(max(0, now_ns - before.motion.at_ns), self.settings.tick_ns) / NS_PER_S
        for axis, old, new in zip(self.settings.axes, before.motion.axes, after.motion.axes, strict=True):
            if new.decel is None or axis.safe is None or old.value is None or new.value is None:
                continue
            if stood:
                assert new.value == axis.safe, "what had stopped by itself was set going again"
                continue
            was, left = abs(old.value - axis.safe), abs(new.value - axis.safe)
            assert left <= was + _ULP, "the speed rose during a stop"
            assert (new.value - axis.safe) * (old.value - axis.safe) >= 0, "a stop became a reverse"
            hardest, sharpest = axis.decel[Grade.EMERGENCY], axis.jerk[Grade.EMERGENCY]
            if not math.isinf(sharpest):
                change = new.decel - (old.decel or 0.0)
                assert change <= sharpest * dt_s + _ULP, "too sharp a jerk"
                assert left == 0 or -change <= sharpest * dt_s + _ULP, "let go too sharply"
            if old.decel is not None:  # else it starts from what is measured
                assert was - left <= hardest * dt_s + _ULP, "too hard a deceleration"

    def _rates(self, before: GuardState, now_ns: int, after: GuardState) -> None:
        """What follows a target, the model's or a rule's, goes away from the safe value within the axis' rate."""
        if before.motion is None or after.motion is None or after.motion is before.motion:
            return
        dt_s = min(max(0, now_ns - before.motion.at_ns), self.settings.tick_ns) / NS_PER_S
        for axis, old, new in zip(self.settings.axes, before.motion.axes, after.motion.axes, strict=True):
            if new.decel is None and axis.safe is not None and old.value is not None and new.value is not None:
                rise = abs(new.value - axis.safe) - abs(old.value - axis.safe)
                assert rise <= axis.rate_up * dt_s + _ULP, "the speed rose faster than it may"

    def _leaving(self, after: GuardState, effects: Effects) -> None:
        if any(TABLE[cause].clear is Clear.RESTART for cause in after.ledger):
            assert effects.send is None or effects.send.action is not Action.MOVE, "a guard that leaves only stops"

    def _interlocks(self, before: GuardState, now_ns: int, inputs: Inputs, after: GuardState, effects: Effects) -> None:
        """An interlock never delays a stop: without interlocks the same stop would have left."""
        if effects.send is None or effects.send.action is Action.MOVE or Mode.ARMED in (before.mode, after.mode):
            return
        free = _without_interlocks(self.settings)
        twin, twins = step(free, before, now_ns, inputs)
        if twin.mode is after.mode and twins.send is not None and twins.send.action is not Action.MOVE:
            assert twins.send.axes == effects.send.axes


def _without_interlocks(settings: Settings) -> Settings:
    import dataclasses

    return dataclasses.replace(settings, guardrails=())
