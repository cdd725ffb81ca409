"""What engines are asked to do beside the analyses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from make_records import records, write
from test_conformance import FLOW_COLUMNS, EngineOf, rows_of

from thalweg import EngineError, SourceError, analyse, connect, reconstruct
from thalweg.schema import RECORD_SCHEMA


def test_an_engine_that_is_not_known_and_one_that_lacks_its_address_are_told_by_name() -> None:
    with pytest.raises(EngineError, match="flink: not known; there are auto"):
        connect("flink")
    with pytest.raises(EngineError, match="wants a url"):
        connect("server")


def test_what_does_not_fit_into_memory_goes_to_disk(tmp_path: Path) -> None:
    write(records(60_000, seed=5), tmp_path)
    with connect("duckdb", threads=1) as engine, connect("duckdb", threads=1, memory_bytes=24 << 20) as small:
        for each in (engine, small):
            each.backend.raw_sql("SET allocator_background_threads = false")
        found, in_little = (reconstruct(each.open(tmp_path)) for each in (engine, small))
        assert rows_of(in_little, FLOW_COLUMNS) == rows_of(found, FLOW_COLUMNS)


def test_interim_files_are_gone_when_an_engine_is_closed() -> None:
    with connect("duckdb") as engine:
        engine.from_arrow(pa.table({"a": [1]}))
        scratch = engine.scratch
        assert list(scratch.iterdir())
    assert not scratch.exists()


def test_a_server_reads_its_own_table_and_leaves_nothing_behind(tmp_path: Path) -> None:
    # DuckDB by address stands in for a server: the same way, through Ibis alone.
    directory, database = tmp_path / "data", tmp_path / "server.db"
    write(records(2_000, seed=4), directory)
    with duckdb.connect(str(database)) as there:
        there.execute(f"CREATE TABLE records AS FROM read_parquet('{directory}/**/*.parquet', hive_partitioning = false)")
        for name in RECORD_SCHEMA.names:
            there.execute(f"ALTER TABLE records ALTER {name} SET NOT NULL")
    with connect("server", url=f"duckdb://{database}") as server, connect("duckdb") as here:
        found, expected = analyse(server.open("records")), analyse(here.open(directory))
        assert rows_of(found.flows, FLOW_COLUMNS) == rows_of(expected.flows, FLOW_COLUMNS)
        assert found.flowsets.count() == expected.flowsets.count()
    with duckdb.connect(str(database)) as there:
        assert there.execute("SHOW TABLES").fetchall() == [("records",)]


def test_clickhouse_refuses_paths_that_it_would_take_for_patterns(engine_of: EngineOf, tmp_path: Path) -> None:
    odd = tmp_path / "a{b}"
    write(records(300, seed=1), odd)
    with pytest.raises(SourceError, match="rename it"):
        engine_of("clickhouse").open(odd)


@pytest.mark.parametrize("name", ("duckdb", "clickhouse", "spark"))
def test_a_query_sees_the_rows_under_that_name(name: str, engine_of: EngineOf, tmp_path: Path) -> None:
    write(records(300, seed=1), tmp_path)
    data = engine_of(name).open(tmp_path)
    found: Any = data.sql("WITH told AS (SELECT protocol FROM rows) SELECT count(*) AS n, min(protocol) AS least FROM told")
    assert found.to_pandas().astype(int).to_dict("records") == [{"n": data.count(), "least": 6}]


def test_spark_lists_a_source_that_has_a_scheme_itself(engine_of: EngineOf, tmp_path: Path) -> None:
    table = records(600, seed=1)
    write(table, tmp_path)
    spark = engine_of("spark")
    found = spark.open(f"file://{tmp_path}/flows")
    assert found.count() == table.num_rows
    assert found.table.columns == spark.open(tmp_path).table.columns
