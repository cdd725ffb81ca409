"""Quantities as people write and read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from thalweg import units
from thalweg.quantities import instant, size, span_us, whole_number

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-22", datetime(2026, 11, 22, tzinfo=UTC)),
        ("2026-11-22T13:30", datetime(2026, 11, 22, 13, 30, tzinfo=UTC)),
        ("2026-11-22T13:30:05+01:00", datetime(2026, 11, 22, 13, 30, 5, tzinfo=timezone(timedelta(hours=1)))),
        ("now", NOW),
        ("now-1h30m", NOW - timedelta(minutes=90)),
    ],
)
def test_times_are_utc_by_default(text: str, expected: datetime) -> None:
    assert instant(text, NOW) == expected


@pytest.mark.parametrize(("text", "us"), [("10s", 10_000_000), ("1h30m", 5_400_000_000), ("250ms", 250_000), ("1.5s", 1_500_000)])
def test_durations_are_sums_of_their_parts(text: str, us: int) -> None:
    assert span_us(text) == us


@pytest.mark.parametrize(
    ("text", "number"), [("1e9", 10**9), ("500MB", 5 * 10**8), ("2GiB", 2**31), ("64k", 64_000), ("7", 7), ("1.5TB", 15 * 10**11)]
)
def test_sizes_are_decimal_by_default(text: str, number: int) -> None:
    assert size(text) == number


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (span_us, "5"),
        (span_us, "5x"),
        (span_us, ""),
        (size, "iB"),
        (size, "5ib"),
        (size, "-1"),
        (whole_number, "0"),
        (whole_number, "-3"),
        (whole_number, "x"),
    ],
)
def test_invalid_quantities_are_rejected_with_their_text(read, text: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=f"invalid .*'{text}'"):
        read(text)


def test_invalid_times_are_rejected() -> None:
    with pytest.raises(ValueError, match="invalid time 'yesterday': use 2026-11-22"):
        instant("yesterday", NOW)


def test_quantities_are_shown_with_three_digits_and_units() -> None:
    shown = [units.size(number) for number in (0, 999, 1023, 1536, 2**40 * 26.5, None)]
    assert shown == ["0 B", "999 B", "1023 B", "1.5 KiB", "26.5 TiB", "-"]
    shown = [units.bit_rate(number) for number in (0.0, 999.9, 2.31e9, 9.7e9, 1e10, float("nan"))]
    assert shown == ["0 bit/s", "1 kbit/s", "2.31 Gbit/s", "9.7 Gbit/s", "10 Gbit/s", "-"]
    shown = [units.duration(seconds) for seconds in (0, 0.25, 60, 149.1, 7200, 33 * 3600, 5 * 86_400)]
    assert shown == ["0 ms", "250 ms", "60 s", "2.48 min", "2 h", "33 h", "5 d"]
    assert (units.share(0.1234), units.count(1_234_567), units.instant(0)) == ("12.3 %", "1,234,567", "1970-01-01 00:00:00")
