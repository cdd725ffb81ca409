"""An archive of records, planted so that every flow and flowset of it is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.schema import RECORD_SCHEMA

DAY = datetime(2026, 11, 22, tzinfo=UTC)
MINUTE = timedelta(minutes=1)

BLANK: dict[str, Any] = {field.name: "" if pa.types.is_string(field.type) else 0 for field in RECORD_SCHEMA if field.name != "received"}


@dataclass(frozen=True)
class Transfer:
    """Parallel flows of one size from one host to another."""

    source: str
    destination: str
    src_as: int
    dst_as: int
    start: datetime
    minutes: int
    flows: int
    bytes: int
    """Of all its flows."""


def record(**columns: Any) -> dict[str, Any]:
    """A record; what is not told is blank, and it is received when it ends."""
    row = {**BLANK, "exporter": "192.0.2.254", "format": "netflow9", "protocol": 6, "tcp_flags": 0x1B, **columns}
    row.setdefault("received", row["flow_end"])
    return row


def records_of(transfer: Transfer, exporters: Iterable[str] = ("192.0.2.254",)) -> list[dict[str, Any]]:
    """Its records: one a minute of each flow, from each exporter. Flows begin half a second after one another."""
    rows = []
    for flow in range(transfer.flows):
        for minute in range(transfer.minutes):
            start = transfer.start + timedelta(milliseconds=500 * flow) + minute * MINUTE
            size = transfer.bytes // transfer.flows // transfer.minutes
            for exporter in exporters:
                rows.append(
                    record(
                        exporter=exporter,
                        flow_start=start,
                        flow_end=start + MINUTE,
                        src=transfer.source,
                        dst=transfer.destination,
                        src_port=40_000 + flow,
                        dst_port=2811,
                        bytes=size,
                        packets=size // 1500,
                        src_as=transfer.src_as,
                        dst_as=transfer.dst_as,
                        ingress_interface=1,
                        egress_interface=2,
                    )
                )
    return rows


def write_archive(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """Writes records as a collector does: a file for each hour of reception."""
    hours: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        hours.setdefault(row["received"].strftime("flows/date=%Y-%m-%d/hour=%H"), []).append(row)
    for hour, of_hour in hours.items():
        path = folder / hour / "planted.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(of_hour, RECORD_SCHEMA), path, compression="zstd")
    return folder
