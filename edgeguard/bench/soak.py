"""Heating the board until it gets no hotter: the model asked without a pause, and a co-load on the cores left over.

Heat and latency are watched in windows (a minute each). The thermal limit is reached when over the last
``FLAT_WINDOWS`` windows both are flat:

- temperature: the means of the hottest sensor lie within ``FLAT_C`` of one another;
- latency: the medians lie within ``FLAT_SHARE`` of their own median (a board can throttle long after its sensor stopped
  rising, and where nothing can be read this alone tells).

Otherwise the soak ends after ``limit_ns``, and its result says which of the two was not flat. ``keep_hot`` heats again
what has cooled meanwhile. Nanoseconds, degrees Celsius.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from edgeguard.bench.heater import heat
from edgeguard.bench.sample import Look
from edgeguard.bench.sampling import Sampler
from edgeguard.board.level import HOT_MARGIN_C
from edgeguard.budget import Soak
from edgeguard.budget.cost import median
from edgeguard.clock import NS_PER_S, Clock
from edgeguard.model.progress import Progress

FLAT_WINDOWS = 5
FLAT_C = 1.0
FLAT_SHARE = 0.05
REHEAT_NS = 20 * NS_PER_S
LOOK_EVERY_NS = NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One window of a soak: the median latency, and the mean temperature if it could be read."""

    latency_ns: float
    temperature_c: float | None


def latency_flat(windows: list[Window]) -> bool:
    last = [window.latency_ns for window in windows[-FLAT_WINDOWS:]]
    return len(last) == FLAT_WINDOWS and max(last) - min(last) <= FLAT_SHARE * median(last)


def temperature_flat(windows: list[Window]) -> bool | None:
    """``None`` when no sensor says."""
    last = [window.temperature_c for window in windows[-FLAT_WINDOWS:] if window.temperature_c is not None]
    if not last:
        return None
    return len(last) == FLAT_WINDOWS and max(last) - min(last) <= FLAT_C


class Soaker:
    """Heats one board with one worker's ``sampler``; ``check`` is asked between requests and may raise."""

    def __init__(
        self,
        *,
        look: Callable[[], Look],
        clock: Clock,
        window_ns: int,
        progress: Progress,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._look = look
        self._clock = clock
        self._window_ns = window_ns
        self._progress = progress
        self._check = check

    def soak(self, sampler: Sampler, *, limit_ns: int) -> Soak:
        """Until both are flat, or for so long."""
        begun_ns, start_c = self._clock.now_ns(), self._look().temperature_c
        windows: list[Window] = []
        most = max(1, limit_ns // self._window_ns)
        with heat() as heater:
            for done in range(most):
                self._progress("heating", done, most)
                windows.append(self._window(sampler))
                if latency_flat(windows) and temperature_flat(windows) is not False:
                    break
        self._progress("heating", most, most)
        return Soak(
            elapsed_ns=self._clock.now_ns() - begun_ns,
            heater=heater,
            latency_flat=latency_flat(windows),
            temperature_flat=temperature_flat(windows),
            start_c=start_c,
            end_c=windows[-1].temperature_c,
        )

    def keep_hot(self, sampler: Sampler, soak: Soak) -> None:
        """Heat again for ``REHEAT_NS`` if the board has left the hot level, or if nobody can tell."""
        temperature_c = self._look().temperature_c
        if temperature_c is not None and soak.end_c is not None and temperature_c > soak.end_c - HOT_MARGIN_C / 2:
            return
        until_ns = self._clock.now_ns() + min(REHEAT_NS, self._window_ns)
        with heat():
            while self._clock.now_ns() < until_ns:
                self._check()
                sampler.heat()

    def _window(self, sampler: Sampler) -> Window:
        until_ns = self._clock.now_ns() + self._window_ns
        latencies_ns: list[float] = []
        temperatures_c: list[float] = []
        looked_ns = 0
        while not latencies_ns or self._clock.now_ns() < until_ns:
            self._check()
            latencies_ns.append(sampler.heat())
            if self._clock.now_ns() - looked_ns >= LOOK_EVERY_NS:
                looked_ns = self._clock.now_ns()
                temperature_c = self._look().temperature_c
                temperatures_c += [] if temperature_c is None else [temperature_c]
        mean_c = sum(temperatures_c) / len(temperatures_c) if temperatures_c else None
        return Window(latency_ns=median(latencies_ns), temperature_c=mean_c)
