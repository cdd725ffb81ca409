"""Parses times, durations and sizes."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_SPAN = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|m|h|d)")
_SPANS_US = {"us": 1, "ms": 1000, "s": 10**6, "m": 60 * 10**6, "h": 3600 * 10**6, "d": 86_400 * 10**6}
_SIZE = re.compile(r"(\d+(?:\.\d+)?(?:e\d+)?)([kmgt]?)(i?)b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def instant(text: str, now: datetime) -> datetime:
    """Parses a time: `2026-11-22`, `2026-11-22T13:30`, `2026-11-22T13:30:00+01:00`, `now`, `now-90m`; UTC by default.

    Raises:
        ValueError: If the text is invalid.
    """
    if text == "now":
        return now
    if text.startswith("now-"):
        return now - timedelta(microseconds=span_us(text.removeprefix("now-")))
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"invalid time {text!r}: use 2026-11-22, 2026-11-22T13:30, 2026-11-22T13:30:00+01:00 (UTC unless it names a "
            "zone), now, or now-90m"
        ) from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def span_us(text: str) -> int:
    """Parses a duration into microseconds: `10s`, `1h30m`, `250ms`.

    Raises:
        ValueError: If the text is invalid.
    """
    matches = list(_SPAN.finditer(text))
    if not matches or "".join(match[0] for match in matches) != text:
        raise ValueError(f"invalid duration {text!r}: use 10s, 5m, 1h30m or 250ms")
    return round(sum(float(match[1]) * _SPANS_US[match[2]] for match in matches))


def size(text: str) -> int:
    """Parses a size into bytes: `1e9`, `500MB`, `2GiB`.

    Raises:
        ValueError: If the text is invalid.
    """
    match = _SIZE.fullmatch(text)
    if match is None or (match[3] and not match[2]):
        raise ValueError(f"invalid size {text!r}: use 1e9, 500MB or 2GiB")
    base = 1024 if match[3] else 1000
    return round(float(match[1]) * float(base ** _POWERS[match[2].lower()]))


def whole_number(text: str) -> int:
    """Parses a whole number above zero.

    Raises:
        ValueError: If the text is invalid.
    """
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"invalid number {text!r}: expected a whole number above 0")
    return int(text)


def names(text: str) -> list[str]:
    """Parses names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
