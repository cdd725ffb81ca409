"""Output for people and for programs.

In a table, sizes, rates and times have units and three digits. In JSON and CSV they are exact: bytes, bits per second,
microseconds; instants are RFC 3339 in UTC.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TextIO

from .. import units
from ..protocols import NAMES as PROTOCOLS

Format = Callable[[Any], str]

_FLAGS = list(zip(range(7, -1, -1), "CEUAPRSF", strict=True))
_FORMATS: dict[str, Format] = {
    "bytes": units.size,
    "packets": units.count,
    "flows": units.count,
    "records": units.count,
    "rate_bps": units.bit_rate,
    "aspiration_bps": lambda rate: units.bit_rate(rate) if rate else "-",
    "confidence": lambda number: f"{number:.2f}",
    "duration_ns": lambda ns: units.duration(None if ns is None else ns / 1e9),
    "share": units.share,
    "tcp_flags": lambda number: "".join(letter if number >> bit & 1 else "." for bit, letter in _FLAGS),
    "protocol": lambda number: PROTOCOLS.get(number, str(number)),
}
_HEADINGS = {"rate_bps": "rate", "aspiration_bps": "peers reach", "duration_ns": "duration", "observation_domain_id": "domain"}
RECORD_COLUMNS = [
    *("flow_start", "flow_end", "protocol", "src", "src_port", "dst", "dst_port"),
    *("tcp_flags", "packets", "bytes", "sampling_interval", "exporter"),
]
"""Columns of records in a table; all columns do not fit in a line."""


def are_records(columns: list[str]) -> bool:
    """Whether these are all columns of records."""
    if not set(columns).issuperset(RECORD_COLUMNS):
        return False
    from ..schema import RECORD_SCHEMA

    return bool(columns == RECORD_SCHEMA.names)


def as_table(rows: Iterable[Mapping[str, Any]], columns: list[str], out: TextIO) -> None:
    """Writes aligned columns, numbers to the right."""
    shown = [_row(row, columns) for row in rows]
    headings = [_HEADINGS.get(name, name).removesuffix("_us").replace("_", " ") for name in columns]
    is_number = [all(_is_number(cells[index]) for cells in shown) and bool(shown) for index in range(len(columns))]
    widths = [max(len(cells[index]) for cells in [headings, *shown]) for index in range(len(columns))]
    for cells in [headings, *shown]:
        aligned = (cell.rjust(width) if right else cell.ljust(width) for cell, width, right in zip(cells, widths, is_number, strict=True))
        print("  ".join(aligned).rstrip(), file=out)


def as_json(rows: Iterable[Mapping[str, Any]], out: TextIO) -> None:
    """Writes one JSON object per line."""
    for row in rows:
        print(json.dumps({name: _plain(value) for name, value in row.items()}, allow_nan=False), file=out)


def as_csv(rows: Iterable[Mapping[str, Any]], columns: list[str], out: TextIO) -> None:
    """Writes CSV with a header; fields without a value are empty."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_plain(row[name]) for name in columns])


def note(text: str) -> None:
    """Prints a note to standard error."""
    print(f"thalweg: {text}", file=sys.stderr)


def _row(row: Mapping[str, Any], columns: list[str]) -> list[str]:
    return [_cell(name, row[name]) for name in columns]


def _cell(name: str, value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    if value is None or value == "":
        return units.NONE
    return _FORMATS.get(name, str)(value)


def _is_number(cell: str) -> bool:
    return cell == units.NONE or (cell[:1].isdigit() and cell.count(".") < 2 and ":" not in cell)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "000Z")
    if isinstance(value, Decimal):  # DuckDB's sums, wider than int64
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
