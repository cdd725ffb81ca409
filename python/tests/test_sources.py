"""Which files are read, and which rows of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from make_records import records, write

from thalweg import SourceError, connect
from thalweg.schema import RECORD_SCHEMA
from thalweg.sources import TimeRange, select

MIDNIGHT = datetime(2023, 11, 15, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pa.Table]:
    directory = tmp_path_factory.mktemp("archive")
    table = records(3_000, seed=3)
    write(table, directory)
    return directory, table


def test_a_range_opens_only_the_files_of_its_hours(archive: tuple[Path, pa.Table]) -> None:
    chosen = select(archive[0], TimeRange(MIDNIGHT - HOUR / 2, MIDNIGHT + HOUR))
    assert [Path(path).parent.name for path in chosen.files] == ["hour=23", "hour=00"]
    assert not chosen.exact
    whole = select(archive[0], TimeRange(MIDNIGHT - HOUR, MIDNIGHT))
    assert [Path(path).parent.name for path in whole.files] == ["hour=23"]
    assert whole.exact


def test_a_range_includes_its_start_and_excludes_its_end(archive: tuple[Path, pa.Table]) -> None:
    directory, table = archive
    received = sorted(table["received"].cast(pa.int64()).to_pylist())
    first, last = received[100], received[2_000]
    start, end = (datetime.fromtimestamp(0, UTC) + timedelta(microseconds=at) for at in (first, last))
    with connect("duckdb") as engine:
        found = engine.open(directory, start=start, end=end)
        assert found.files == ()
        assert found.count() == sum(first <= at < last for at in received)


def test_an_empty_range_has_no_rows_but_missing_files_are_an_error(archive: tuple[Path, pa.Table], tmp_path: Path) -> None:
    with connect("duckdb") as engine:
        empty = engine.open(archive[0], start=MIDNIGHT + 300 * HOUR)
        assert empty.count() == 0
        assert set(empty.table.columns) == {*engine.open(archive[0]).table.columns}
        with pytest.raises(SourceError, match="no Parquet files"):
            engine.open(tmp_path)


def test_a_directory_its_flows_a_pattern_and_a_list_of_files_are_the_same_records(archive: tuple[Path, pa.Table]) -> None:
    directory, table = archive
    files = sorted(directory.rglob("*.parquet"))
    with connect("duckdb") as engine:
        for source in (directory, directory / "flows", str(directory / "flows" / "*" / "*" / "*.parquet"), files):
            assert engine.open(source).count() == table.num_rows


def test_naive_times_and_reversed_ranges_are_rejected() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        TimeRange(datetime(2023, 11, 15))
    with pytest.raises(ValueError, match="before its start"):
        TimeRange(MIDNIGHT, MIDNIGHT - HOUR)


def test_written_rows_are_read_back(archive: tuple[Path, pa.Table], tmp_path: Path) -> None:
    directory, table = archive
    path = tmp_path / "all.parquet"
    with connect("duckdb") as engine:
        engine.open(directory).to_parquet(path)
        written = pq.read_table(path)
        assert written.schema.names == RECORD_SCHEMA.names
        assert written["flow_start"].type == pa.timestamp("us", "UTC")
        by = [(name, "ascending") for name in RECORD_SCHEMA.names]
        assert written.cast(table.schema).sort_by(by).equals(table.sort_by(by))
        assert engine.open(path).count() == table.num_rows
