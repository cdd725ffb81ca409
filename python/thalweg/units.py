"""Formats numbers with units for display: at least three digits."""

from __future__ import annotations

import math
from datetime import UTC, datetime

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")
NONE = "-"
"""Placeholder for a missing number."""


def size(number: float | None) -> str:
    """`1.5 GiB`: multiples of 1024."""
    return _scaled(number, 1024, _BINARY)


def bit_rate(bits_per_second: float | None) -> str:
    """`2.31 Gbit/s`: multiples of 1000."""
    return _scaled(bits_per_second, 1000, tuple(f"{prefix}bit/s" for prefix in _DECIMAL))


def count(number: float | None) -> str:
    """`1,234,567`."""
    return NONE if _is_none(number) else f"{number:,.0f}"


def share(fraction: float | None) -> str:
    """`12.3 %`."""
    return NONE if _is_none(fraction) else f"{fraction:.1%}".replace("%", " %")


def duration(seconds: float | None) -> str:
    """`250 ms`, `12.5 s`, `3.4 min`, `5.6 h`, `2.1 d`."""
    if seconds is None or _is_none(seconds):
        return NONE
    for limit, length, unit in ((1, 1e-3, "ms"), (120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if abs(seconds) < limit:
            return f"{_digits(seconds / length)} {unit}"
    return f"{_digits(seconds / 86_400)} d"


def instant(microseconds: int | None) -> str:
    """Formats microseconds since 1970 as `2026-11-22 13:45:10` (UTC)."""
    if microseconds is None:
        return NONE
    return datetime.fromtimestamp(microseconds // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _scaled(number: float | None, base: int, units: tuple[str, ...]) -> str:
    if number is None or _is_none(number):
        return NONE
    index = 0
    while abs(number) >= 0.9995 * base and index < len(units) - 1:
        number /= base
        index += 1
    return f"{_digits(number)} {units[index]}"


def _digits(number: float) -> str:
    """Formats at least three digits, without trailing zeros: `0`, `1.5`, `12.3`, `1023`."""
    if number == 0 or not math.isfinite(number):
        return f"{number:g}"
    decimals = max(0, 2 - math.floor(math.log10(abs(number))))
    text = f"{number:.{min(decimals, 3)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _is_none(number: float | None) -> bool:
    return number is None or math.isnan(number)
