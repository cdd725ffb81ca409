"""Each flow counts once, although several routers exported it: against a plain loop, on every engine."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from planted import DAY, record
from strategies import GAP_S, many_worlds

from thalweg import Archive, Engine, Parameters
from thalweg.once import counted_once
from thalweg.schema import RECORD_SCHEMA

EngineOf = Callable[[str], Engine]
Row = dict[str, Any]

POINT = ("exporter", "observation_domain_id", "flow_direction")
KEY = ("src", "dst", "src_port", "dst_port", "protocol")
ENGINES = ("duckdb", "native", "clickhouse", "spark")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Row]]:
    """Random flows at several observation points, as a file and as rows with times in microseconds."""
    path = tmp_path_factory.mktemp("once") / "records.parquet"
    table = many_worlds(120)
    pq.write_table(table, path, compression="zstd", row_group_size=500)
    rows = table.to_pylist()
    for row in rows:
        times = [round((row[name] - DAY).total_seconds() * 1e6) for name in ("flow_start", "flow_end")]
        row["start"], row["end"] = sorted(times)
    return path, rows


def counted(rows: list[Row], *, per_router: bool) -> list[Row]:
    """The rows that count, by the words of the module."""
    by_key = defaultdict(list)
    for row in rows:
        by_key[tuple(row[name] for name in (*KEY, *(["exporter"] if per_router else [])))].append(row)
    kept = []
    for of_key in by_key.values():
        for flow in flows(sorted(of_key, key=lambda row: (row["start"], row["end"]))):
            at_point = defaultdict(list)
            for row in flow:
                at_point[tuple(row[name] for name in POINT)].append(row)
            kept += at_point[min(at_point, key=lambda point: preference(point, at_point[point]))]
    return kept


def flows(rows: list[Row]) -> Iterator[list[Row]]:
    flow: list[Row] = []
    for row in rows:
        if flow and row["start"] - max(before["end"] for before in flow) > GAP_S * 1e6:
            yield flow
            flow = []
        flow.append(row)
    yield flow


def preference(point: tuple[Any, ...], rows: list[Row]) -> tuple[Any, ...]:
    seen = max(row["end"] for row in rows) - min(row["start"] for row in rows)
    return (-seen, min(max(row["sampling_interval"], 1) for row in rows), point)


def sums(rows: list[Row], column: str) -> dict[Any, int]:
    total: Counter[Any] = Counter()
    for row in rows:
        total[row[column]] += row["bytes"] * max(row["sampling_interval"], 1)
    return dict(total)


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_counts_each_flow_once(name: str, engine_of: EngineOf, world: tuple[Path, list[Row]]) -> None:
    path, rows = world
    archive = Archive(engine_of(name).open(path), Parameters(gap=GAP_S))
    for by, column, per_router in (("src-port", "src_port", False), ("exporter", "exporter", True)):
        expected = counted(rows, per_router=per_router)
        found = archive.top(by, limit=None)
        table = found.to_pyarrow()
        assert dict(zip(table[column].to_pylist(), table["bytes"].to_pylist(), strict=True)) == sums(expected, column)
        assert sum(table["flows"].to_pylist()) == len(expected) < len(rows)
        assert f"{len(rows) - len(expected):,} records left out" in found.note
    every = archive.top("src-port", limit=None, every_router=True)
    assert sum(every.to_pyarrow()["flows"].to_pylist()) == len(rows)
    assert every.note == ""


@pytest.mark.parametrize("name", ["duckdb", "native"])
def test_sums_of_records_are_those_of_flows(name: str, engine_of: EngineOf, world: tuple[Path, list[Row]]) -> None:
    archive = Archive(engine_of(name).open(world[0]), Parameters(gap=GAP_S))
    by_table = [archive.top("pair,protocol", limit=None, of=of).to_pyarrow() for of in ("records", "flows")]
    columns = ["src", "dst", "protocol", "bytes", "packets", "share"]
    assert by_table[0].select(columns).to_pylist() == by_table[1].select(columns).to_pylist()


def test_the_records_of_one_router_all_count(engine_of: EngineOf, tmp_path: Path) -> None:
    rows = [record(flow_start=DAY, flow_end=DAY, src="10.0.0.1", dst="10.0.0.2", bytes=5, observation_domain_id=at) for at in (1, 2)]
    pq.write_table(pa.Table.from_pylist(rows[:1] * 3, RECORD_SCHEMA), tmp_path / "one.parquet")
    one = engine_of("duckdb").open(tmp_path / "one.parquet")
    assert counted_once(one, 60) is one
    pq.write_table(pa.Table.from_pylist(rows, RECORD_SCHEMA), tmp_path / "two.parquet")
    two = engine_of("duckdb").open(tmp_path / "two.parquet")
    assert counted_once(two, 60).count() == counted_once(two, 60, per_router=True).count() == 1
    with pytest.raises(ValueError, match="invalid gap -1 s"):
        counted_once(two, -1)
