"""From readings to one thermal level: nominal, hot, throttled. Pure: readings in, a ``BoardState`` out.

The rules, the worst wins:

- **throttled**: a throttle counter has risen since the last look, or a throttling state is above 0, or a clock's cap is
  below the highest seen *and* the fixed kernel takes ``SLOW_FACTOR`` of its best (either alone proves nothing: clock
  files lie, and a slow kernel may be a busy machine). It holds for ``THROTTLED_HOLD_NS`` after the last sign.
- **hot**: the hottest sensor is within ``HOT_MARGIN_C`` of what the board was soaked to; where that is not known, any
  sensor is so near to its own passive trip point. It ends ``HYSTERESIS_C`` below.
- **critical**, beside the level: a sensor is at its critical trip point, until it is ``HYSTERESIS_C`` below.

A temperature counts for ``FRESH_NS``, so that a sensor that fails now and then changes nothing. When none is left and
nothing tells of throttling either, the board is unobserved, and its level is the last that was seen.
"""

from __future__ import annotations

from edgeguard.board.reading import Kind, Reading, Sensor
from edgeguard.clock import NS_PER_S
from edgeguard.types import BoardState, ThermalLevel

HOT_MARGIN_C = 5.0
HYSTERESIS_C = 3.0
SLOW_FACTOR = 1.1
FRESH_NS = 5 * NS_PER_S
THROTTLED_HOLD_NS = 10 * NS_PER_S

_OBSERVING = (Kind.TEMPERATURE, Kind.COUNTER, Kind.FLAG)


class LevelWatch:
    """What successive readings of one board mean. ``soaked_c``: the hottest sensor, soaked, as calibration saw it."""

    def __init__(self, *, soaked_c: float | None = None) -> None:
        self._soaked_c = soaked_c
        self._caps: dict[str, float] = {}
        self._seen: dict[Sensor, tuple[float, int]] = {}
        self._observed_ns: int | None = None
        self._throttled_ns: int | None = None
        self._signs: tuple[str, ...] = ()
        self._hot = False
        self._critical = False

    def capped(self, reading: Reading) -> tuple[str, ...]:
        """The clocks whose cap is lower than it has been, in words: then the fixed kernel's word is wanted."""
        lowered = []
        for name, megahertz in reading.of(Kind.CAP).items():
            highest = self._caps[name] = max(megahertz, self._caps.get(name, megahertz))
            if megahertz < highest:
                lowered.append(f"{name} {megahertz:g} of {highest:g} MHz")
        return tuple(lowered)

    def see(self, reading: Reading, *, slowness: float | None = None) -> BoardState:
        """The board's state after one more reading. ``slowness``: the fixed kernel's time now over its best."""
        now_ns = reading.read_ns
        temperatures = self._take(reading)
        signs = (*_signs(reading), *(self.capped(reading) if (slowness or 0) >= SLOW_FACTOR else ()))
        if signs:
            self._throttled_ns, self._signs = now_ns, signs
        if temperatures:
            self._hot = self._is_hot(temperatures)
            self._critical = any(_reaches(value, one.critical_c, self._critical) for one, value in temperatures.items())
        observed = self._observed_ns is not None and now_ns - self._observed_ns <= FRESH_NS
        level = ThermalLevel.HOT if self._hot else ThermalLevel.NOMINAL
        if self._throttled_ns is not None and now_ns - self._throttled_ns <= THROTTLED_HOLD_NS:
            level = ThermalLevel.THROTTLED
        return BoardState(
            level=level,
            observed=observed,
            critical=self._critical,
            hottest_c=max(temperatures.values(), default=None),
            read_ns=now_ns,
            detail=self._detail(level, temperatures) if observed else _unobserved(reading),
        )

    def _take(self, reading: Reading) -> dict[Sensor, float]:
        """The temperatures that count now."""
        for one in reading.values:
            if one.value is not None and one.sensor.kind in _OBSERVING:
                self._observed_ns = reading.read_ns
                if one.sensor.kind is Kind.TEMPERATURE:
                    self._seen[one.sensor] = one.value, reading.read_ns
        return {sensor: value for sensor, (value, at_ns) in self._seen.items() if reading.read_ns - at_ns <= FRESH_NS}

    def _is_hot(self, temperatures: dict[Sensor, float]) -> bool:
        if self._soaked_c is not None:
            return _reaches(max(temperatures.values()), self._soaked_c - HOT_MARGIN_C, self._hot)
        return any(
            one.passive_c is not None and _reaches(value, one.passive_c - HOT_MARGIN_C, self._hot)
            for one, value in temperatures.items()
        )

    def _detail(self, level: ThermalLevel, temperatures: dict[Sensor, float]) -> str:
        parts = list(self._signs) if level is ThermalLevel.THROTTLED else []
        if temperatures:
            hottest = max(temperatures, key=lambda sensor: temperatures[sensor])
            parts.append(f"{hottest.name} {temperatures[hottest]:.1f} °C")
        return ", ".join(parts)


def _reaches(value_c: float, limit_c: float | None, already: bool) -> bool:
    return limit_c is not None and value_c >= limit_c - (HYSTERESIS_C if already else 0.0)


def _signs(reading: Reading) -> tuple[str, ...]:
    """What says in so many words that the silicon slows itself."""
    counted = [f"{name} +{count:g}" for name, count in reading.of(Kind.COUNTER).items() if count > 0]
    return (*counted, *(f"{name} at {state:g}" for name, state in reading.of(Kind.FLAG).items() if state > 0))


def _unobserved(reading: Reading) -> str:
    reasons = [f"{one.sensor.name}: {one.reason}" for one in reading.missing if one.sensor.kind in _OBSERVING]
    return "; ".join(reasons[:3]) or "no sensor is known here"
