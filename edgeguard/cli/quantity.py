"""Figures as people write them: three digits and the prefix that fits."""

from __future__ import annotations

_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def scaled(value: float, unit: str) -> str:
    """14e9 bytes: "14 GB". Decimal prefixes."""
    factor, prefix = next(((factor, prefix) for factor, prefix in _PREFIXES if abs(value) >= factor), (1.0, ""))
    return f"{digits(value / factor)} {prefix}{unit}"


def seconds(value_s: float) -> str:
    """0.0065 seconds: "6.5 ms"."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(value_s) >= factor:
            return f"{digits(value_s / factor)} {unit}"
    return f"{digits(value_s / 1e-9)} ns"


def digits(value: float) -> str:
    """Three digits that mean something, and no exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def counted(n: int, what: str) -> str:
    """1 and "file": "1 file"; 2,000: "2,000 files"."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"
