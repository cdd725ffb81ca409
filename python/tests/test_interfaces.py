"""Interface counters: files of the store, and rates."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from thalweg.engines import Engine
from thalweg.interfaces import interface_counters, interface_rates
from thalweg.sources import SourceError

START = datetime(2026, 11, 26, 10, tzinfo=UTC)
PACKETS = ("in_unicast_packets", "in_discards", "in_errors", "out_unicast_packets", "out_discards", "out_errors")


def _write(folder: Path, rows: list[tuple[int, int, int, int]]) -> None:
    """Writes readings of (interface, seconds, bytes, discards)."""
    path = folder / "interface-counters" / "date=2026-11-26" / "hour=10"
    path.mkdir(parents=True)
    columns: dict[str, pa.Array] = {
        "received": pa.array([START + timedelta(seconds=row[1]) for row in rows], pa.timestamp("us", "UTC")),
        "exporter": pa.array(["192.0.2.1"] * len(rows)),
        "observation_domain_id": pa.array([0] * len(rows), pa.int64()),
        "interface": pa.array([row[0] for row in rows], pa.int64()),
    }
    for name in ("in_bytes", "out_bytes"):
        columns[name] = pa.array([row[2] for row in rows], pa.int64())
    for name in PACKETS:
        columns[name] = pa.array([row[3] for row in rows], pa.int64())
    pq.write_table(pa.table(columns), path / "serve-1.parquet")


def test_rates_follow_wraps_and_leave_out_resets(tmp_path: Path, engine_of: Callable[[str], Engine]) -> None:
    wrapped = [(1, 0, 1_000, (1 << 32) - 3), (1, 10, 2_250, 4)]
    reset = [(2, 0, 9_000, 9), (2, 10, 100, 1), (2, 20, 350, 6)]
    _write(tmp_path, wrapped + reset)
    counters = interface_counters(engine_of("duckdb"), tmp_path)
    assert counters.count() == 5
    rates = sorted(interface_rates(counters).rows(), key=lambda row: (row["interface"], row["received"]))
    assert [(row["interface"], row["seconds"], row["out_bps"], row["out_discards"]) for row in rates] == [
        (1, 10.0, 1_000.0, 7),
        (2, 10.0, 200.0, 5),
    ]
    later = interface_counters(engine_of("duckdb"), tmp_path, start=START + timedelta(seconds=5))
    assert later.count() == 3


def test_a_folder_without_counters_is_an_error(tmp_path: Path, engine_of: Callable[[str], Engine]) -> None:
    with pytest.raises(SourceError):
        interface_counters(engine_of("duckdb"), tmp_path)
