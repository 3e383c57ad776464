"""Sampling on the robot's schedule: latency from the scheduled release, skipped releases, and the busy rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import pytest

from edgeguard.bench.calibration.effort import BUSY_LIMIT
from edgeguard.bench.calibration.sample import Look
from edgeguard.bench.calibration.sampling import BLOCK_RELEASES, Sampler, Tally, wait_until_quiet
from edgeguard.bench.worker_client import Reply
from edgeguard.board import FixedKernel
from edgeguard.clock import NS_PER_MS, NS_PER_S, FakeClock
from edgeguard.errors import BusyError, WorkerError
from edgeguard.types import Answer, Finish, Pass, Request, ThermalLevel

PERIOD_NS = 200 * NS_PER_MS
START_NS = NS_PER_S


class Model:
    """A worker with a scripted latency: ``latency_ms(n)`` of the n-th request, counted from 1."""

    def __init__(self, clock: FakeClock, latency_ms: Callable[[int], float], **answer: Any) -> None:
        self._clock = clock
        self._latency_ms = latency_ms
        self._answer = {"finish": Finish.COMPLETE, "passes": (Pass(k=2, p=9, elapsed_ns=1),), **answer}
        self.asked: list[tuple[int, int]] = []  # when, and the time of capture
        self.may_draft: list[bool] = []
        self.rungs: list[str] = []

    def ask(
        self, request: Request, *, admit: bool, limit_ns: int, may_draft: bool, token_by_token: bool, rung: str
    ) -> Reply:
        assert not admit
        assert not token_by_token
        self.may_draft.append(may_draft)
        self.rungs.append(rung)
        assert request.answer_by_ns - request.observation.captured_ns >= NS_PER_S
        self.asked.append((self._clock.now_ns(), request.observation.captured_ns))
        self._clock.advance_ns(round(self._latency_ms(len(self.asked)) * NS_PER_MS))
        answer = Answer(request_id=request.request_id, epoch=request.epoch, **self._answer)
        return Reply(answer=answer, received_ns=self._clock.now_ns())


class Bench:
    """A sampler over a fake clock; the kernel's pieces take ``piece_ms(now_ns)``, 1 ms on a free machine."""

    def __init__(
        self,
        latency_ms: Callable[[int], float],
        *,
        piece_ms: Callable[[int], float] = lambda _: 1.0,
        look: Callable[[], Look] = Look,
        rungs: Sequence[str] = ("",),
        **answer,
    ):
        self.clock = clock = FakeClock(start_ns=START_NS)
        self.model = Model(clock, latency_ms, **answer)
        self.kernel_at: list[int] = []

        def work() -> None:
            self.kernel_at.append(clock.now_ns())
            clock.advance_ns(round(piece_ms(clock.now_ns()) * NS_PER_MS))

        self.kernel = FixedKernel(clock=clock, cores=1, work=work)
        self.looked_at: list[int] = []

        def seen() -> Look:
            self.looked_at.append(clock.now_ns())
            return look()

        self.tally = Tally()
        self.sampler = Sampler(
            client=self.model,
            fields=repeat({"said": "go"}),
            period_ns=PERIOD_NS,
            kernel=self.kernel,
            clock=clock,
            begun_ns=START_NS,
            look=seen,
            rungs=rungs,
        )

    def run(self, count: int) -> list[float]:
        """The latencies in milliseconds."""
        while len(self.tally.kept) < count:
            self.tally.add(self.sampler.block())
        return [sample.latency_ns / NS_PER_MS for sample in self.tally.kept]


def test_requests_are_released_at_fixed_times_however_long_they_take() -> None:
    bench = Bench(lambda n: 20 + n)
    assert bench.run(10) == [20 + n for n in range(1, 11)]
    assert bench.model.asked == [(START_NS + n * PERIOD_NS, START_NS + n * PERIOD_NS) for n in range(1, 11)]
    assert bench.tally.skipped == 0


def test_a_request_behind_a_slow_one_counts_from_its_scheduled_release() -> None:
    """No coordinated omission: 260 ms of work keep the next request, due after 200 ms, waiting for 60 ms."""
    latencies = Bench(lambda n: 260 if n == 3 else 100).run(10)
    assert latencies == [100, 100, 260, 160, 100, 100, 100, 100, 100, 100]


def test_releases_that_passed_are_skipped_and_counted_because_the_newest_observation_wins() -> None:
    bench = Bench(lambda n: 730 if n == 3 else 100)
    assert bench.run(10)[2:5] == [730, 230, 130]
    assert bench.tally.skipped == 2
    assert bench.model.asked[3][1] == START_NS + 6 * PERIOD_NS  # the third was due at 3, the next at 6


def test_a_model_slower_than_the_period_is_measured_and_no_latency_grows_without_end() -> None:
    bench = Bench(lambda _: 500)
    assert max(bench.run(50)) < 700
    assert bench.tally.skipped > 50


def test_the_kernel_runs_in_gaps_only_and_never_delays_a_release() -> None:
    bench = Bench(lambda n: 190 if n % 2 else 60)
    bench.run(20)
    for at_ns in bench.kernel_at:
        into_period_ns = (at_ns - START_NS) % PERIOD_NS
        assert 60 * NS_PER_MS <= into_period_ns < PERIOD_NS - 10 * NS_PER_MS
    assert all(asked_ns == captured_ns for asked_ns, captured_ns in bench.model.asked)


def test_requests_in_a_block_that_the_kernel_finds_busy_are_dropped_whatever_their_latency() -> None:
    block_ns = BLOCK_RELEASES * PERIOD_NS
    disturbed = range(START_NS + block_ns, START_NS + 2 * block_ns)
    bench = Bench(lambda _: 50, piece_ms=lambda now_ns: 3.0 if now_ns in disturbed else 1.0)
    assert len(bench.run(30)) == 30
    samples = bench.tally
    assert (samples.dropped, samples.blocks_dropped, samples.blocks) == (BLOCK_RELEASES, 1, 4)
    assert samples.busy == pytest.approx(1.0, rel=0.1)


def test_a_slow_request_on_a_free_machine_is_never_dropped() -> None:
    assert 1_900 in Bench(lambda n: 1_900 if n == 15 else 50).run(40)


def test_a_machine_busy_in_most_blocks_is_too_busy_to_measure() -> None:
    bench = Bench(lambda _: 50, piece_ms=lambda now_ns: 1.0 if now_ns < START_NS + 2 * NS_PER_S else 4.7)
    with pytest.raises(BusyError, match=r"1\.5 times what it needs in 9 of 10 blocks .* 4\.7 times") as caught:
        bench.run(1_000)
    assert caught.value.exit_code == 3


def test_what_was_dropped_before_an_interruption_does_not_count_as_too_busy_now() -> None:
    bench = Bench(lambda _: 50, piece_ms=lambda now_ns: 1.0 if now_ns < START_NS + 2 * NS_PER_S else 4.7)
    blocks = [bench.sampler.block() for _ in range(12)]
    again = Tally()
    for block in blocks:
        again.take(block)
    assert again.dropped == 10 * 11
    assert len(again.kept) == 10
    again.add(blocks[0])


def test_samples_count_from_the_start_of_the_run_and_say_what_the_request_did() -> None:
    bench = Bench(lambda _: 50, bound_ns=7, rung="short", drafted_tokens=3)
    bench.run(10)
    first, *_, last = bench.tally.kept
    assert (first.at_ns, last.at_ns) == (PERIOD_NS, 10 * PERIOD_NS)
    assert (first.dearest_ns, first.rung, first.drafted, first.passes[0].k) == (7, "short", True, 2)


def test_half_of_the_requests_may_use_a_draft_by_lot() -> None:
    bench = Bench(lambda _: 50)
    bench.run(400)
    assert 150 < sum(bench.model.may_draft) < 250
    other = Bench(lambda _: 50)
    other.run(400)
    assert other.model.may_draft == bench.model.may_draft  # the same in every run


def test_every_plan_of_a_ladder_is_asked_by_lot_and_a_lone_one_draws_none() -> None:
    bench = Bench(lambda _: 50, rungs=("full", "brief"))
    bench.run(400)
    assert 150 < bench.model.rungs.count("brief") < 250
    both = [draft for rung, draft in zip(bench.model.rungs, bench.model.may_draft, strict=True) if rung == "brief"]
    assert 0.35 < sum(both) / len(both) < 0.65, "with and without a draft"
    alone = Bench(lambda _: 50)
    alone.run(20)
    assert set(alone.model.rungs) == {""}


def test_the_board_is_looked_at_in_gaps_and_each_request_has_the_look_before_it() -> None:
    looks = [Look(temperature_c=40.0 + n, clock_mhz=1_800.0) for n in range(100)]
    bench = Bench(lambda n: 190 if n == 4 else 60, look=lambda: looks.pop(0))
    bench.run(10)
    assert [sample.look.temperature_c for sample in bench.tally.kept] == [40, 41, 42, 43, 43, 44, 45, 46, 47, 48]
    for at_ns in bench.looked_at[1:]:
        assert (at_ns - START_NS) % PERIOD_NS < PERIOD_NS - 20 * NS_PER_MS


def test_a_kernel_that_is_slow_because_the_silicon_is_drops_nothing() -> None:
    hot = Look(temperature_c=95.0, level=ThermalLevel.THROTTLED)
    slow = {"piece_ms": lambda now_ns: 1.0 if now_ns < START_NS + 2 * NS_PER_S else 3.0}
    bench = Bench(lambda _: 50, look=lambda: hot, **slow)
    bench.run(100)
    assert bench.tally.dropped == 0
    assert all(sample.level(soaked_c=70.0, observed=True) is ThermalLevel.THROTTLED for sample in bench.tally.kept)


@pytest.mark.parametrize(
    ("temperature_c", "soaked", "soaked_c", "observed", "level"),
    [
        (40.0, False, 72.0, True, "nominal"),
        (66.0, True, 72.0, True, "nominal"),  # it has cooled
        (67.0, True, 72.0, True, "hot"),
        (75.0, False, 72.0, True, "hot"),
        (75.0, False, None, True, "nominal"),  # never soaked: what the board itself said
        (None, False, None, False, "nominal"),
        (None, True, None, False, "hot"),  # nobody can tell, so what came after the heating is hot
        (None, True, 72.0, True, "nominal"),
    ],
)
def test_a_request_counts_for_the_level_that_the_guard_would_see(
    temperature_c: float | None, soaked: bool, soaked_c: float | None, observed: bool, level: str
) -> None:
    bench = Bench(lambda _: 50, look=lambda: Look(temperature_c=temperature_c))
    sample = bench.sampler.block(soaked=soaked).samples[0]
    assert sample.level(soaked_c=soaked_c, observed=observed).label == level


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"finish": Finish.ERROR, "detail": "out of memory"}, "'error': out of memory"),
        ({"finish": Finish.DEADLINE}, "'deadline': no pass was made"),
        ({"passes": ()}, "'complete': no pass was made"),
    ],
)
def test_a_worker_that_does_not_answer_cannot_be_calibrated(answer: dict[str, Any], words: str) -> None:
    with pytest.raises(WorkerError, match=words):
        Bench(lambda _: 50, **answer).run(10)


def test_a_quiet_machine_is_waited_for() -> None:
    bench = Bench(lambda _: 50, piece_ms=lambda now_ns: 1.0 if now_ns % (3 * NS_PER_S) < NS_PER_S else 2.0)
    assert wait_until_quiet(bench.kernel) <= BUSY_LIMIT
    pieces = [1.0] * 1_000
    busy = Bench(lambda _: 50, piece_ms=lambda _: pieces.pop() if pieces else 4.7)
    wait_until_quiet(busy.kernel)  # it was free when its best was measured
    with pytest.raises(BusyError, match=r"for ten seconds .* 4\.7 times what it needs.*, and try again$"):
        wait_until_quiet(busy.kernel)
