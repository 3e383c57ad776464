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

from edgeguard.bench.calibration.heater import heat
from edgeguard.bench.calibration.sample import Look
from edgeguard.bench.calibration.sampling import Sampler
from edgeguard.board.level import HOT_MARGIN_C
from edgeguard.budget import Soak
from edgeguard.budget.cost import median
from edgeguard.clock import NS_PER_S, Clock
from edgeguard.model.progress import Progress

FLAT_WINDOWS = 5
FLAT_C = 1.0
FLAT_SHARE = 0.05
REHEAT_NS = 20 * NS_PER_S
REHEAT_MOST_NS = 300 * NS_PER_S
BLIND_BLOCKS = 10
"""Where nobody can tell, as long heating (``REHEAT_NS``) as measuring, at 5 Hz."""

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
        self._blocks = 0

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
        """Asked before each block: heat again what has left the hot level, or every ``BLIND_BLOCKS`` blocks a while if
        nobody can tell.
        """
        hot_c = None if soak.end_c is None else soak.end_c - HOT_MARGIN_C / 2
        self._blocks += 1
        if self._is_hot(hot_c) or (hot_c is None and self._blocks % BLIND_BLOCKS != 1):
            return
        limit_ns = min(REHEAT_NS, self._window_ns) if hot_c is None else REHEAT_MOST_NS
        until_ns = self._clock.now_ns() + limit_ns
        with heat():
            while self._clock.now_ns() < until_ns and not self._is_hot(hot_c):
                self._check()
                sampler.heat()

    def _is_hot(self, hot_c: float | None) -> bool:
        """Not when nobody can tell."""
        temperature_c = self._look().temperature_c
        return hot_c is not None and temperature_c is not None and temperature_c >= hot_c

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
