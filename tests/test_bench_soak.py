"""Heating until it gets no hotter: what counts as flat, what is said when it is not, and heating again."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from patience import wait_for

from edgeguard.bench.calibration.heater import heat, heater_command, spare_cores
from edgeguard.bench.calibration.sample import Look
from edgeguard.bench.calibration.soak import Soaker, Window, latency_flat, temperature_flat
from edgeguard.budget import Soak
from edgeguard.clock import NS_PER_MS, NS_PER_S, FakeClock
from edgeguard.errors import ConfigError
from edgeguard.model.progress import silent

MINUTE_NS = 60 * NS_PER_S


class Model:
    """A sampler whose requests take ``latency_ms(minutes since the start)``."""

    def __init__(self, clock: FakeClock, latency_ms: Callable[[float], float]) -> None:
        self._clock = clock
        self._latency_ms = latency_ms
        self._begun_ns = clock.now_ns()
        self.asked = 0

    @property
    def minutes(self) -> float:
        return (self._clock.now_ns() - self._begun_ns) / MINUTE_NS

    def heat(self) -> int:
        self.asked += 1
        elapsed_ns = round(self._latency_ms(self.minutes) * NS_PER_MS)
        self._clock.advance_ns(elapsed_ns)
        return elapsed_ns


class Bench:
    def __init__(
        self,
        *,
        latency_ms: Callable[[float], float] = lambda _: 500.0,
        celsius: Callable[[float], float | None] = lambda _: None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.clock = FakeClock(start_ns=NS_PER_S)
        self.model = Model(self.clock, latency_ms)
        self.soaker = Soaker(
            look=lambda: Look(temperature_c=celsius(self.model.minutes)),
            clock=self.clock,
            window_ns=MINUTE_NS,
            progress=silent,
            check=check,
        )

    def soak(self, minutes: int) -> Soak:
        return self.soaker.soak(self.model, limit_ns=minutes * MINUTE_NS)  # type: ignore[arg-type]


def test_it_ends_when_temperature_and_latency_have_been_flat_for_five_minutes() -> None:
    bench = Bench(celsius=lambda minutes: min(70.0, 40 + 3 * minutes), latency_ms=lambda minutes: 500 + 5 * minutes)
    soak = bench.soak(60)
    assert soak.reached
    assert (soak.start_c, soak.end_c) == (40.0, 70.0)
    assert 13 <= bench.model.minutes <= 16  # ten to get there, five of it flat, the first of them nearly


def test_a_latency_that_still_rises_keeps_it_going_when_the_sensor_has_stopped() -> None:
    bench = Bench(celsius=lambda _: 70.0, latency_ms=lambda minutes: 500 * (1.03 ** min(20, minutes)))
    soak = bench.soak(60)
    assert soak.reached
    assert bench.model.minutes > 20


@pytest.mark.parametrize(
    ("celsius", "latency_ms", "temperature", "latency"),
    [
        (lambda minutes: 40 + minutes, lambda _: 500.0, False, True),
        (lambda _: 70.0, lambda minutes: 500 * 1.03**minutes, True, False),
        (lambda _: None, lambda minutes: 500 * 1.03**minutes, None, False),
    ],
)
def test_when_the_time_is_up_it_says_what_was_not_flat(
    celsius: Callable[[float], float | None],
    latency_ms: Callable[[float], float],
    temperature: bool | None,
    latency: bool,
) -> None:
    bench = Bench(celsius=celsius, latency_ms=latency_ms)
    soak = bench.soak(12)
    assert not soak.reached
    assert (soak.temperature_flat, soak.latency_flat) == (temperature, latency)
    assert 12 <= bench.model.minutes < 13


def test_without_a_sensor_the_latency_alone_decides() -> None:
    bench = Bench()
    soak = bench.soak(30)
    assert soak.reached
    assert soak.temperature_flat is None
    assert bench.model.minutes == pytest.approx(5, abs=0.1)


def test_a_sensor_that_fails_every_second_time_is_still_one() -> None:
    reads = iter(range(10**6))
    bench = Bench(celsius=lambda _: 55.0 if next(reads) % 2 else None)
    assert bench.soak(30).temperature_flat is True


def test_flat_is_five_windows_within_a_degree_and_a_twentieth() -> None:
    def windows(*values: float) -> list[Window]:
        return [Window(latency_ns=value, temperature_c=value) for value in values]

    assert temperature_flat(windows(20, 70.0, 70.4, 70.9, 70.2, 70.1)) is True
    assert temperature_flat(windows(20, 70.0, 70.4, 71.1, 70.2, 70.1)) is False
    assert temperature_flat(windows(70, 70, 70, 70)) is False
    assert latency_flat(windows(500, 100, 104, 102, 101, 100))
    assert not latency_flat(windows(500, 100, 106, 102, 101, 100))


HEATED = Soak(elapsed_ns=1, heater="", latency_flat=True, end_c=70.0)


def test_what_has_cooled_is_heated_until_it_is_hot_again() -> None:
    bench = Bench(celsius=lambda minutes: 64.0 + 2 * minutes)
    bench.soaker.keep_hot(bench.model, HEATED)  # type: ignore[arg-type]
    assert bench.model.minutes == pytest.approx(1.75, abs=0.02)  # to 67.5 degrees, half of the margin of hot
    asked = bench.model.asked
    bench.soaker.keep_hot(bench.model, HEATED)  # type: ignore[arg-type]
    assert bench.model.asked == asked


def test_what_does_not_get_hot_again_is_not_waited_for_without_end() -> None:
    bench = Bench(celsius=lambda _: 50.0)
    bench.soaker.keep_hot(bench.model, HEATED)  # type: ignore[arg-type]
    assert bench.model.minutes == pytest.approx(5, abs=0.02)


def test_where_nobody_can_tell_it_is_heated_for_a_while_every_ten_blocks() -> None:
    bench = Bench()
    heated = []
    for _ in range(21):
        before = bench.model.asked
        bench.soaker.keep_hot(bench.model, replace(HEATED, end_c=None))  # type: ignore[arg-type]
        heated.append(bench.model.asked > before)
    assert [number for number, one in enumerate(heated) if one] == [0, 10, 20]


def test_the_end_of_the_robots_own_software_ends_it() -> None:
    def check() -> None:
        raise ConfigError("it has ended")

    with pytest.raises(ConfigError, match="it has ended"):
        Bench(check=check).soak(30)


def test_the_co_load_keeps_its_cores_busy_at_the_lowest_priority_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")  # our own, also where stress-ng is installed
    with heat(2) as name:
        assert name.endswith("on 2 cores")
        assert len(wait_for(lambda: len(found := _heaters()) == 2 and found, "both burn")) == 2
    assert _heaters() == []


def _heaters() -> list[int]:
    """Our children that burn, once they have settled."""
    found = []
    for pid in Path("/proc").glob("[0-9]*"):
        try:
            ours = f"edgeguard.bench.calibration.heater\0{os.getpid()}" in (pid / "cmdline").read_bytes().decode()
            nice = os.getpriority(os.PRIO_PROCESS, int(pid.name))
        except (OSError, UnicodeDecodeError):
            continue
        found += [int(pid.name)] if ours and nice == 19 else []
    return found


def test_stress_ng_is_used_where_it_is_found() -> None:
    name, ((*ours, tool, flag, cores, _),) = heater_command(3, found="/usr/bin/stress-ng")
    assert (name, tool, flag, cores) == ("stress-ng on 3 cores", "/usr/bin/stress-ng", "--cpu", "3")
    assert ours[1:3] == ["-m", "edgeguard.bench.calibration.heater"]
    assert len(heater_command(3)[1]) == 3
    assert spare_cores() >= 1
