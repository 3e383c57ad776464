"""The motor controller's core: what it obeys, when it stops by itself, what it reports. Bytes and time handed in."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import count, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeguard.clock import NS_PER_MS, NS_PER_S
from edgeguard.link import make_codec
from edgeguard.link.controller_core import ControllerCore
from edgeguard.link.controller_log import Stop, StopCause
from edgeguard.link.motor import COAST_SHARE, Motor, MotorAxis
from edgeguard.types.wire import Action, Command, Echo, Hello, MotorFlag, Welcome, WireMessage

ACCEL, DECEL = 1.0, 2.0
GRIP = 0.5
TIMEOUT_MS = 80
START_NS = 7 * NS_PER_S


class Bench:
    """A controller with one wheel and one gripper, and a guard's side to talk to it. Time is in ms since the start."""

    def __init__(self, *, latch: bool = False) -> None:
        names = ["wheel", "grip"]
        sessions = count(100)
        self.codec = make_codec("cobs", axes=names)
        self.core = ControllerCore(
            axes=[
                MotorAxis(name="wheel", accel=ACCEL, decel=DECEL),
                MotorAxis(name="grip", accel=GRIP, decel=GRIP, holds=True),
            ],
            codec=make_codec("cobs", axes=names),
            link_timeout_ms=TIMEOUT_MS,
            draw_session=lambda: next(sessions),
            latch=latch,
            start_ns=START_NS,
        )
        self.session = 0
        self.sequence = 0

    def at(self, ms: float) -> None:
        self.core.advance(START_NS + round(ms * NS_PER_MS))

    def say(self, message: WireMessage, *, ms: float) -> list[WireMessage]:
        reply = self.core.receive(self.codec.encode(message), now_ns=START_NS + round(ms * NS_PER_MS))
        return self.codec.feed(reply)

    def greet(self, *, nonce: int = 1, ms: float = 0) -> Welcome:
        (welcome,) = self.say(Hello(nonce=nonce, axis_count=2), ms=ms)
        assert isinstance(welcome, Welcome)
        self.session = welcome.session
        return welcome

    def send(
        self,
        *,
        ms: float,
        wheel: float = 0.5,
        grip: float = 0.0,
        action: Action = Action.MOVE,
        life_ms: int = TIMEOUT_MS,
        sequence: int | None = None,
        session: int | None = None,
    ) -> Echo | None:
        """One command, by default the next of the session; ``None`` when it was not accepted."""
        self.sequence = (self.sequence + 1) % 65_536
        command = Command(
            axes={"wheel": wheel, "grip": grip},
            action=action,
            session=self.session if session is None else session,
            sequence=self.sequence if sequence is None else sequence,
            life_ms=life_ms,
        )
        replies = self.say(command, ms=ms)
        assert len(replies) <= 1
        return next((one for one in replies if isinstance(one, Echo)), None)

    def drive(self, *, from_ms: int, to_ms: int, wheel: float = 0.5, tick_ms: int = 20) -> Echo:
        """Move commands at every tick up to and including ``to_ms``."""
        for ms in range(from_ms, to_ms + 1, tick_ms):
            echo = self.send(ms=ms, wheel=wheel)
        assert echo is not None
        return echo

    @property
    def stops(self) -> Sequence[Stop]:
        return tuple(self.core.log.stops)


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.greet()
    return bench


def ns(ms: float) -> int:
    return START_NS + round(ms * NS_PER_MS)


def test_a_hello_draws_a_session_and_the_same_hello_the_same_one() -> None:
    bench = Bench()
    first = bench.greet(nonce=5)
    assert first == Welcome(nonce=5, session=100, axis_count=2, link_timeout_ms=TIMEOUT_MS)
    assert bench.greet(nonce=5, ms=10) == first
    assert bench.greet(nonce=6, ms=20).session == 101


def test_a_guard_with_other_axes_is_refused() -> None:
    bench = Bench()
    (welcome,) = bench.say(Hello(nonce=5, axis_count=3), ms=0)
    assert welcome == Welcome(nonce=5, session=0, axis_count=2, link_timeout_ms=TIMEOUT_MS)
    assert bench.send(ms=1, session=0) is None


def test_a_command_is_echoed_with_what_is_measured(bench: Bench) -> None:
    first = bench.send(ms=0, wheel=0.5, grip=0.25, life_ms=60)
    second = bench.send(ms=20, wheel=0.5, grip=0.25)
    assert first is not None
    assert second is not None
    assert (first.session, first.sequence, first.life_ms) == (100, 1, 60)
    assert second.flags == MotorFlag.MOVING
    assert second.axes == pytest.approx({"wheel": 0.02 * ACCEL, "grip": 0.02 * GRIP})
    assert second.controller_ms - first.controller_ms == 20


def test_motion_ramps_to_the_command_and_stays_there(bench: Bench) -> None:
    bench.drive(from_ms=0, to_ms=1000, wheel=0.5)
    assert bench.core.values["wheel"] == pytest.approx(0.5)
    assert bench.core.positions["wheel"] == pytest.approx(0.5 * 1.0 - 0.5**2 / (2 * ACCEL))
    bench.drive(from_ms=1020, to_ms=2000, wheel=-0.5)
    assert bench.core.values["wheel"] == pytest.approx(-0.5)
    assert bench.core.travel["wheel"] > abs(bench.core.positions["wheel"])


def test_without_a_further_command_it_stops_by_itself_at_the_link_timeout(bench: Bench) -> None:
    bench.drive(from_ms=0, to_ms=1000)
    bench.at(5000)
    (stop,) = bench.stops
    assert stop.cause is StopCause.LINK_TIMEOUT
    assert stop.began_ns == ns(1000 + TIMEOUT_MS)
    assert stop.values["wheel"] == pytest.approx(0.5)
    assert stop.rest_ns == pytest.approx(ns(1080 + 250), abs=NS_PER_MS)
    assert stop.distance is not None
    assert stop.distance["wheel"] == pytest.approx(0.5**2 / (2 * DECEL), rel=0.02)
    assert bench.core.rest_since_ns == stop.rest_ns
    assert bench.core.flags == MotorFlag.EXPIRED


def test_a_life_shorter_than_the_link_timeout_ends_first(bench: Bench) -> None:
    bench.drive(from_ms=0, to_ms=980)
    bench.send(ms=1000, life_ms=30)
    bench.at(2000)
    (stop,) = bench.stops
    assert (stop.cause, stop.began_ns) == (StopCause.LIFE, ns(1030))


def test_a_life_longer_than_the_link_timeout_does_not_outlast_it(bench: Bench) -> None:
    echo = bench.send(ms=0, life_ms=60_000)
    assert echo is not None
    assert echo.life_ms == TIMEOUT_MS
    bench.at(2000)
    (stop,) = bench.stops
    assert (stop.cause, stop.began_ns) == (StopCause.LINK_TIMEOUT, ns(TIMEOUT_MS))


def test_resending_a_command_does_not_lengthen_its_life(bench: Bench) -> None:
    for ms in (0, 20, 40):
        bench.send(ms=ms, life_ms=70 - ms)
    bench.at(2000)
    (stop,) = bench.stops
    assert (stop.cause, stop.began_ns) == (StopCause.LIFE, ns(70))


def test_a_command_without_any_life_left_is_let_go_at_once(bench: Bench) -> None:
    bench.send(ms=0, life_ms=0)
    bench.at(1)
    assert bench.core.travel["wheel"] == 0
    assert [stop.cause for stop in bench.stops] == [StopCause.LIFE]


def test_a_life_ends_on_its_own_nanosecond_however_late_we_look(bench: Bench) -> None:
    often, once = bench, Bench()
    once.greet()
    for each in (often, once):
        each.drive(from_ms=0, to_ms=500)
    for ms in range(501, 2000):
        often.at(ms)
    once.at(1999)
    assert often.stops == once.stops
    assert often.core.positions == pytest.approx(once.core.positions)


def test_only_newer_sequence_numbers_are_obeyed_across_the_wrap(bench: Bench) -> None:
    accepted = [
        bench.send(ms=ms, sequence=sequence) is not None
        for ms, sequence in enumerate([65_533, 65_534, 65_534, 65_530, 0, 65_535, 1, 0, 32_769, 2])
    ]
    assert accepted == [True, True, False, False, True, False, True, False, False, True]
    assert [receipt.sequence for receipt in bench.core.log.received] == [65_533, 65_534, 0, 1, 2]


@settings(max_examples=50)
@given(sequences=st.lists(st.integers(0, 65_535), min_size=1, max_size=30))
def test_the_accepted_numbers_always_move_forward(sequences: list[int]) -> None:
    bench = Bench()
    bench.greet()
    for sequence in sequences:
        bench.send(ms=0, sequence=sequence)
    accepted = [receipt.sequence for receipt in bench.core.log.received]
    assert accepted[0] == sequences[0]
    assert all(0 < (after - before) % 65_536 < 32_768 for before, after in pairwise(accepted))


def test_commands_of_another_session_or_of_none_are_ignored() -> None:
    bench = Bench()
    assert bench.send(ms=0, session=1) is None
    bench.greet(ms=10)
    assert bench.send(ms=20, session=bench.session + 1) is None
    assert bench.send(ms=30) is not None
    assert len(bench.core.log.received) == 1


def test_an_ignored_command_feeds_no_watchdog(bench: Bench) -> None:
    bench.send(ms=0)
    for ms in (20, 40, 60):
        bench.send(ms=ms, session=999)
        bench.send(ms=ms + 1, sequence=1)
    bench.at(200)
    assert [stop.began_ns for stop in bench.stops] == [ns(TIMEOUT_MS)]


def test_a_new_session_ends_the_standing_command_and_takes_any_first_number(bench: Bench) -> None:
    bench.drive(from_ms=0, to_ms=1000)
    bench.greet(nonce=2, ms=1010)
    assert [stop.cause for stop in bench.stops] == [StopCause.SESSION]
    assert bench.send(ms=1020, session=100) is None
    assert bench.send(ms=1020, sequence=0) is not None


def test_a_stop_follows_the_frames_on_the_way_down_and_is_recorded_once(bench: Bench) -> None:
    bench.drive(from_ms=0, to_ms=1000)
    for tick in range(1, 61):
        bench.send(ms=1000 + 20 * tick, wheel=max(0.0, 0.5 - 0.01 * tick), action=Action.STOP)
    (stop,) = bench.stops
    assert (stop.cause, stop.began_ns) == (StopCause.COMMAND, ns(1020))
    assert stop.rest_ns == pytest.approx(ns(2000), abs=10 * NS_PER_MS)
    assert stop.distance is not None
    assert stop.distance["wheel"] == pytest.approx(0.5 * 1.0 / 2, rel=0.05)


@pytest.mark.parametrize(("action", "decel"), [(Action.HOLD, DECEL), (Action.TORQUE_OFF, COAST_SHARE * DECEL)])
def test_hold_brakes_and_torque_off_coasts_whatever_the_axes_say(bench: Bench, action: Action, decel: float) -> None:
    bench.drive(from_ms=0, to_ms=1000)
    bench.send(ms=1000, wheel=9.0, action=action)
    bench.at(3000)
    command, _expiry = bench.stops
    assert command.cause is StopCause.COMMAND
    assert command.rest_ns == pytest.approx(ns(1000 + 500 / decel), abs=2 * NS_PER_MS)


def test_an_axis_that_holds_stops_where_it_is(bench: Bench) -> None:
    for ms in range(0, 101, 20):
        bench.send(ms=ms, wheel=0.0, grip=1.0)
    bench.at(5000)
    assert bench.core.values["grip"] == pytest.approx(GRIP * 0.18)
    assert bench.core.travel["grip"] == pytest.approx(bench.core.positions["grip"])
    assert bench.core.rest_since_ns == ns(180)


def test_after_an_expiry_the_next_command_moves_again(bench: Bench) -> None:
    bench.drive(from_ms=0, to_ms=200)
    bench.at(290)
    assert MotorFlag.EXPIRED in bench.core.flags
    assert bench.drive(from_ms=300, to_ms=1000).flags == MotorFlag.MOVING
    assert [stop.rest_ns for stop in bench.stops] == [None], "the move cut the stop short"


def test_a_latching_controller_waits_for_a_new_session() -> None:
    bench = Bench(latch=True)
    bench.greet()
    bench.drive(from_ms=0, to_ms=200)
    bench.at(1000)
    assert bench.drive(from_ms=1000, to_ms=1200).flags == MotorFlag.EXPIRED | MotorFlag.LATCHED
    assert bench.core.values["wheel"] == 0
    bench.greet(nonce=2, ms=1300)
    assert bench.drive(from_ms=1300, to_ms=1400).flags == MotorFlag.MOVING


@pytest.mark.parametrize(
    ("trip", "flag", "cause"),
    [
        (ControllerCore.press_estop, MotorFlag.ESTOP, StopCause.ESTOP),
        (ControllerCore.raise_fault, MotorFlag.FAULT, StopCause.FAULT),
    ],
)
def test_an_estop_or_a_fault_stops_and_only_a_clear_lets_it_move(
    bench: Bench, trip: object, flag: MotorFlag, cause: StopCause
) -> None:
    bench.drive(from_ms=0, to_ms=1000)
    assert callable(trip)
    trip(bench.core, now_ns=ns(1010))
    assert bench.drive(from_ms=1020, to_ms=1600).flags == flag
    assert bench.core.values["wheel"] == 0
    assert bench.stops[0].cause is cause
    stopped = bench.send(ms=1620, wheel=0.0, action=Action.STOP)
    assert stopped is not None
    assert stopped.flags == flag
    bench.core.clear()
    assert bench.drive(from_ms=1640, to_ms=1800).flags == MotorFlag.MOVING


def test_a_torque_that_is_off_is_not_restored_by_an_expiry(bench: Bench) -> None:
    bench.drive(from_ms=0, to_ms=1000)
    bench.send(ms=1000, action=Action.TORQUE_OFF)
    bench.at(1500)
    assert bench.core.values["wheel"] == pytest.approx(0.5 - 0.5 * COAST_SHARE * DECEL)


def test_nor_by_a_move_that_was_refused_or_by_another_session(bench: Bench) -> None:
    bench.drive(from_ms=0, to_ms=1000)
    bench.send(ms=1000, action=Action.TORQUE_OFF)
    bench.core.press_estop(now_ns=ns(1000))
    bench.send(ms=1010, life_ms=20)
    bench.greet(nonce=2, ms=1020)
    bench.at(1500)
    assert bench.core.values["wheel"] == pytest.approx(0.5 - 0.5 * COAST_SHARE * DECEL)


def test_what_arrived_is_kept_with_its_time(bench: Bench) -> None:
    bench.send(ms=3, wheel=0.5, life_ms=60)
    (receipt,) = bench.core.log.received
    assert (receipt.received_ns, receipt.sequence, receipt.life_ms) == (ns(3), 1, 60)
    assert receipt.action is Action.MOVE
    assert receipt.axes == {"wheel": 0.5, "grip": 0.0}


@pytest.mark.parametrize("rate", [0.0, -1.0, float("inf"), float("nan")])
def test_an_axis_needs_real_rates(rate: float) -> None:
    with pytest.raises(ValueError, match="axis 'wheel': accel"):
        MotorAxis(name="wheel", accel=rate, decel=1.0)


@given(goals=st.lists(st.floats(-2, 2), min_size=1, max_size=20))
def test_no_motor_is_faster_than_its_rates(goals: list[float]) -> None:
    motor = Motor(MotorAxis(name="wheel", accel=ACCEL, decel=DECEL))
    for goal in goals:
        motor.follow(goal)
        before = motor.value
        motor.advance(0.1)
        assert abs(motor.value - before) <= 0.1 * DECEL + 1e-12
        assert abs(motor.value) <= max(abs(before), abs(goal))


def test_a_stop_never_speeds_anything_up():
    motor = Motor(MotorAxis(name="linear", accel=2, decel=4))
    motor.follow(0.3)
    motor.advance(1)
    for goal in (0.5, 0.3, -0.2):
        motor.ease(goal)
        motor.advance(1)
        assert motor.value == (0.3 if goal > 0 else 0.0)


def test_an_axis_that_holds_goes_where_a_stop_says():
    motor = Motor(MotorAxis(name="gripper", accel=2, decel=4, holds=True))
    motor.ease(0.1)
    motor.advance(1)
    assert motor.value == 0.1


def test_one_that_reads_lines_and_has_no_watchdog_goes_on_for_ever() -> None:
    """What best effort means: nothing but another command ends the last one."""
    codec = partial(make_codec, "text", axes=["wheel"], options={"format": "{wheel:.3f}\n"})
    core = ControllerCore(
        axes=[MotorAxis(name="wheel", accel=ACCEL, decel=DECEL)],
        codec=codec(),
        link_timeout_ms=None,
        draw_session=lambda: 1,
        start_ns=START_NS,
    )
    command = Command(axes={"wheel": 0.5}, action=Action.MOVE, session=9, sequence=7, life_ms=80)
    assert core.receive(codec().encode(command), now_ns=START_NS) == b"", "it has nothing to say"
    core.advance(START_NS + 3_600 * NS_PER_S // 100)
    assert core.values == {"wheel": 0.5}
    assert not core.log.stops
    assert core.receive(codec().encode(command), now_ns=core.log.received[-1].received_ns + NS_PER_S) == b""
    assert len(core.log.received) == 2, "without numbers nothing is old"
