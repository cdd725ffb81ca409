"""What engines are asked to do beside the analyses."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from make_records import records, write
from test_conformance import FLOW_COLUMNS, EngineOf, rows_of

from thalweg import Archive, EngineError, SourceError, analyse, connect, reconstruct
from thalweg.schema import ADDED, RECORD_SCHEMA, unreported


def test_unknown_engines_and_missing_urls_are_named() -> None:
    with pytest.raises(EngineError, match="unknown engine flink: expected one of auto"):
        connect("flink")
    with pytest.raises(EngineError, match="missing url"):
        connect("server")


def test_data_beyond_memory_spills_to_disk(tmp_path: Path) -> None:
    write(records(60_000, seed=5), tmp_path)
    with connect("duckdb", threads=1) as engine, connect("duckdb", threads=1, memory_bytes=24 << 20) as small:
        for each in (engine, small):
            each.backend.raw_sql("SET allocator_background_threads = false")
        found, in_little = (reconstruct(each.open(tmp_path)) for each in (engine, small))
        assert rows_of(in_little, FLOW_COLUMNS) == rows_of(found, FLOW_COLUMNS)


def test_closing_an_engine_removes_temporary_files() -> None:
    with connect("duckdb") as engine:
        engine.from_arrow(pa.table({"a": [1]}))
        scratch = engine.scratch
        assert list(scratch.iterdir())
    assert not scratch.exists()


def test_interim_files_go_with_an_engine_that_nobody_closed() -> None:
    engine = connect("duckdb")
    engine.from_arrow(pa.table({"a": [1]}))
    scratch = engine.scratch
    assert list(scratch.iterdir())
    del engine
    gc.collect()
    assert not scratch.exists()


def test_a_server_reads_its_table_without_leftovers(tmp_path: Path) -> None:
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


def test_clickhouse_rejects_paths_with_pattern_characters(engine_of: EngineOf, tmp_path: Path) -> None:
    odd = tmp_path / "a{b}"
    write(records(300, seed=1), odd)
    with pytest.raises(SourceError, match="rename it"):
        engine_of("clickhouse").open(odd)


@pytest.mark.parametrize("name", ("duckdb", "clickhouse", "spark"))
def test_a_query_can_name_the_rows(name: str, engine_of: EngineOf, tmp_path: Path) -> None:
    write(records(300, seed=1), tmp_path)
    data = engine_of(name).open(tmp_path)
    found: Any = data.sql("WITH told AS (SELECT protocol FROM rows) SELECT count(*) AS n, min(protocol) AS least FROM told")
    assert found.to_pandas().astype(int).to_dict("records") == [{"n": data.count(), "least": 6}]


def test_spark_lists_urls_itself(engine_of: EngineOf, tmp_path: Path) -> None:
    table = records(600, seed=1)
    write(table, tmp_path)
    spark = engine_of("spark")
    found = spark.open(f"file://{tmp_path}/flows")
    assert found.count() == table.num_rows
    assert found.table.columns == spark.open(tmp_path).table.columns


OLD = Path(__file__).parents[2] / "crates/thalweg-records/tests/data/version-2.parquet"
"""600 records, as the version before 3 of the columns wrote them."""


def test_files_of_an_earlier_version_have_no_values_in_new_columns(engine_of: EngineOf, tmp_path: Path) -> None:
    new = pq.read_table(OLD).slice(0, 2).to_pylist()
    added = {name: unreported(name) for name in ADDED} | {"src_mac": "02:00:00:00:00:01", "mpls_labels": "16-0-0 100-5-1"}
    pq.write_table(pa.Table.from_pylist([{**record, **added} for record in new], RECORD_SCHEMA), tmp_path / "b.parquet", compression="zstd")
    (tmp_path / "a.parquet").write_bytes(OLD.read_bytes())
    for name in ("duckdb", "native", "clickhouse"):
        old, both = (Archive(engine_of(name).open(source)) for source in (OLD, tmp_path))
        assert [each for each in old.records.columns if each in RECORD_SCHEMA.names] == RECORD_SCHEMA.names
        assert old.matching("in src mac 00:00:00:00:00:00 and if name '' and mpls label1 0").count() == 600
        assert both.matching("mpls label2 100 and in src mac 2:0:0:0:0:1").count() == 2
        assert both.matching("mpls any 100").count() == both.matching("mpls any 16").count() == 2
        assert both.matching("mpls any 10 or mpls any 5 or mpls any 0").count() == 0
        assert both.top("mpls-labels", limit=1, order="flows").to_pyarrow()["mpls_labels"].to_pylist() == [""]
        assert both.matching("not mpls eos 100 and ttl < 5").count() == 600
        groups = both.top("src-mac", every_router=True).to_pyarrow().to_pydict()
        assert dict(zip(groups["src_mac"], groups["flows"], strict=True)) == {"": 600, "02:00:00:00:00:01": 2}
