"""The notebook's way in, and the example that shows it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from planted import DAY, Transfer, records_of, write_archive

import thalweg
from thalweg.archive import QueryError

EXAMPLE = Path(__file__).parents[2] / "examples/flow-analysis/everyday.py"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    transfers = [
        Transfer("192.0.2.1", "198.51.100.1", 64500, 64501, DAY + timedelta(hours=1), minutes=2, flows=4, bytes=12 * 10**9),
        Transfer("192.0.2.2", "198.51.100.2", 64500, 64501, DAY + timedelta(hours=2), minutes=1, flows=1, bytes=2 * 10**9),
    ]
    rows = [row for transfer in transfers for row in records_of(transfer)]
    return write_archive(tmp_path_factory.mktemp("archive"), rows)


def test_an_archive_returns_datasets_and_data_frames(source: Path) -> None:
    archive = thalweg.open(source, engine="duckdb")
    assert archive.records.count() == 9
    assert archive.flows().count() == 5
    assert archive.flowsets() is archive.flowsets(), "they are computed once"
    assert archive.top("src", limit=1).to_pandas()["src"].tolist() == ["192.0.2.1"]
    assert archive.series("1h").to_pandas()["bytes"].tolist() == [12 * 10**9, 2 * 10**9]
    assert archive.series(3_600_000_000, by=["src-as"], of="flowsets").to_pandas()["bytes"].sum() == 14 * 10**9
    assert archive.query("SELECT count(*) AS n FROM elephants").to_pyarrow().to_pylist() == [{"n": 5}]
    assert archive.filter("dst ip 198.51.100.2").flowsets().count() == 1
    with pytest.raises(QueryError, match="invalid table 'packets'"):
        archive.table("packets")


def test_parameters_and_times_are_as_given(source: Path) -> None:
    slow = thalweg.open(source, engine="duckdb", parameters=thalweg.Parameters(threshold=10**10))
    assert slow.flowsets().count() == 0
    late = thalweg.open(source, engine="duckdb", start=datetime(2026, 11, 22, 2, tzinfo=UTC))
    assert late.records.count() == 1


def test_times_may_be_text_as_on_the_command_line(source: Path) -> None:
    late = thalweg.open(source, engine="duckdb", start="2026-11-22T02:00", end="now")
    assert late.count() == 1
    with pytest.raises(ValueError, match="invalid time 'yesterday'"):
        thalweg.open(source, engine="duckdb", start="yesterday")
    with pytest.raises(ValueError, match="has no time zone"):
        thalweg.open(source, engine="duckdb", start=datetime(2026, 11, 22))


def test_results_are_read_by_other_libraries(source: Path) -> None:
    flows = thalweg.open(source, engine="duckdb").flows()
    table = pa.table(flows)
    assert table.num_rows == flows.count()
    assert table.schema.field("flow_start").type == pa.timestamp("us", "UTC")


def test_results_are_polars_data_frames(source: Path) -> None:
    polars = pytest.importorskip("polars")
    flows = thalweg.open(source, engine="duckdb").flows()
    assert flows.to_polars().equals(polars.DataFrame(flows))


def test_representations_name_source_columns_and_engine(source: Path) -> None:
    archive = thalweg.open(source, engine="duckdb")
    assert repr(archive) == "<thalweg.Archive of 2 files, engine duckdb>"
    assert repr(archive.top("src")).startswith("<thalweg.Dataset of src, bytes, packets, flows, share")
    workspace = tomllib.loads((Path(__file__).parents[2] / "Cargo.toml").read_text())
    assert thalweg.__version__ == workspace["workspace"]["package"]["version"]


def test_a_notebook_shows_an_archive_without_reading_rows(source: Path) -> None:
    shown = thalweg.open(source, engine="duckdb")._repr_html_()
    assert "<td>2 files, duckdb</td>" in shown
    assert "tau 10.0" in shown


def test_the_example_runs(source: Path) -> None:
    run = subprocess.run([sys.executable, "-W", "ignore", EXAMPLE, source], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "1 of 2 transfers used several connections at once" in run.stdout
    assert "64500" in run.stdout
