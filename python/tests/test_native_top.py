"""The largest groups by compiled code are those of DuckDB, to the last bit."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from planted import BLANK, DAY

from thalweg import Archive, Engine
from thalweg.cli import main
from thalweg.dataset import Computed, Dataset
from thalweg.dimensions import DIMENSIONS, ORDERS
from thalweg.schema import ADDED, RECORD_SCHEMA, unreported

EngineOf = Callable[[str], Engine]

HOSTS = ["10.0.0.1", "10.0.0.2", "10.0.0.10", "10.0.0.9", "192.0.2.255", "2001:db8::1", "2001:db8::a", "::", ""]
MANY = 2**62


def added(chance: random.Random, name: str) -> str | int:
    """A value of a column that version 3 added, or none."""
    if unreported(name) == 0:
        return chance.randrange(3)
    if name.endswith("_mac"):
        return chance.choice(["", "02:00:00:00:00:01", "02:00:00:00:00:0a"])
    if name == "bgp_next_hop":
        return chance.choice(HOSTS)
    return chance.choice(["", "16-0-1", "16-0-0 100-5-1"]) if name == "mpls_labels" else chance.choice(["", "DE", "xe-0/0/1", "\u00e9"])


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of few values, so that amounts are often equal, in several row groups; sums and products pass int64."""
    chance = random.Random(3)

    def record() -> dict[str, Any]:
        start = DAY + timedelta(microseconds=chance.randrange(100))
        small = {
            "src_port": 3,
            "dst_port": 3,
            "tos": 2,
            "ingress_interface": 3,
            "egress_interface": 3,
            "src_as": 4,
            "dst_as": 4,
            "vlan_id": 2,
            "tcp_flags": 3,
            "icmp_type_code": 3,
            "src_prefix_length": 3,
            "dst_prefix_length": 3,
            "flow_direction": 2,
            "flow_end_reason": 3,
            "observation_domain_id": 2,
        }
        return {
            **BLANK,
            **{name: chance.randrange(values) for name, values in small.items()},
            **{name: added(chance, name) for name in ADDED},
            **{name: chance.choice(HOSTS) for name in ("src", "dst", "next_hop", "exporter")},
            "format": chance.choice(["netflow5", "netflow9", "ipfix", "sflow5", "metered"]),
            "protocol": chance.choice([6, 17]),
            "received": DAY,
            "flow_start": start,
            "flow_end": start + timedelta(microseconds=chance.randrange(-5, 100)),
            "bytes": chance.choice([0, 1, 2, 100, MANY if chance.random() < 0.05 else 3]),
            "packets": chance.choice([0, 1, 2]),
            "sampling_interval": chance.choice([0, 1, 1000]),
        }

    path = tmp_path_factory.mktemp("top") / "records.parquet"
    pq.write_table(pa.Table.from_pylist([record() for _ in range(3_000)], RECORD_SCHEMA), path, compression="zstd", row_group_size=700)
    return path


def answers(engine_of: EngineOf, path: Path, **question: Any) -> tuple[Dataset, Dataset]:
    native, duckdb = (Archive(engine_of(name).open(path)).top(**question) for name in ("native", "duckdb"))
    assert isinstance(native, Computed)
    return native, duckdb


def same(native: Dataset, duckdb: Dataset) -> None:
    table, expected = native.to_pyarrow(), duckdb.to_pyarrow()
    assert table.schema.remove_metadata() == expected.cast(table.schema).schema
    assert table.schema.names == expected.schema.names
    assert table.to_pylist() == expected.to_pylist()
    assert list(native.rows()) == list(duckdb.rows())
    assert native.columns == duckdb.columns


def test_stacks_of_labels_are_grouped_by_duckdb(engine_of: EngineOf, path: Path) -> None:
    native, duckdb = (Archive(engine_of(name).open(path)).top("mpls-labels", order="flows") for name in ("native", "duckdb"))
    assert not isinstance(native, Computed)
    assert native.to_pyarrow().to_pylist() == duckdb.to_pyarrow().to_pylist()
    assert sorted(native.to_pyarrow()["mpls_labels"].to_pylist()) == ["", "16-0-0 100-5-1", "16-0-1"]


@pytest.mark.parametrize(
    "by", [*(name for name in DIMENSIONS if name != "mpls-labels"), "pair,port,protocol", "exporter,address", "as,format,vlan,next-hop"]
)
def test_every_dimension_matches_duckdb(engine_of: EngineOf, path: Path, by: str) -> None:
    for order, limit in zip(ORDERS, (None, 3, 7), strict=True):
        native, duckdb = answers(engine_of, path, by=by, order=order, limit=limit)
        same(native, duckdb)
        assert native.to_pyarrow().num_rows > 1


def test_sums_saturate(engine_of: EngineOf, path: Path) -> None:
    native, _ = answers(engine_of, path, by="protocol")
    assert native.to_pyarrow()["bytes"].to_pylist() == [2**63 - 1] * 2


def test_no_records_have_no_groups(engine_of: EngineOf, tmp_path: Path) -> None:
    pq.write_table(RECORD_SCHEMA.empty_table(), tmp_path / "none.parquet", compression="zstd")
    native, duckdb = answers(engine_of, tmp_path, by="as-pair")
    same(native, duckdb)
    assert native.to_pyarrow().num_rows == 0


def test_results_can_be_queried_further(engine_of: EngineOf, path: Path) -> None:
    native, duckdb = answers(engine_of, path, by="src")
    kept = [found.filter(found.table["flows"] > 300).count() for found in (native, duckdb)]
    assert kept[0] == kept[1]
    assert native.sql("SELECT count(*) AS n FROM rows").to_pandas()["n"].tolist() == [len(HOSTS)]


def test_filters_and_large_results_fall_back_to_duckdb(engine_of: EngineOf, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = Archive(engine_of("native").open(path))
    filtered = archive.top("src", matching="proto tcp")
    assert not isinstance(filtered, Computed)
    monkeypatch.setattr(archive.records.engine, "_memory_bytes", 1 << 10)
    beyond = archive.top("pair")
    assert not isinstance(beyond, Computed)
    expected = Archive(engine_of("duckdb").open(path)).top("pair")
    assert beyond.to_pyarrow().to_pylist() == expected.to_pyarrow().to_pylist()


def test_invalid_values_are_reported_with_file_and_row(engine_of: EngineOf, tmp_path: Path) -> None:
    blank = {**BLANK, "received": DAY, "flow_start": DAY, "flow_end": DAY, "src": "10.0.0.01"}
    pq.write_table(pa.Table.from_pylist([blank], RECORD_SCHEMA), tmp_path / "wrong.parquet", compression="zstd")
    with pytest.raises(ValueError, match=r"wrong.parquet: column src, row 0: expected an address"):
        Archive(engine_of("native").open(tmp_path)).top("src")


def test_an_exception_in_progress_stops_the_analysis(engine_of: EngineOf, path: Path) -> None:
    def stop(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Archive(engine_of("native").open(path), progress=stop).top("src")


@pytest.mark.parametrize("written", ["--json", "--csv", "-n 5"])
def test_the_command_prints_the_same_with_both_engines(
    engine_of: EngineOf, path: Path, capsys: pytest.CaptureFixture[str], written: str
) -> None:
    engine_of("native")
    said = []
    for engine in ("native", "duckdb"):
        assert main(["top", str(path), "--by", "src,protocol", "--engine", engine, *written.split()]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert len(said[0].splitlines()) > 5


def test_the_command_only_imports_needed_modules(engine_of: EngineOf, path: Path) -> None:
    engine_of("native")
    script = f"""
import sys
from thalweg.cli import main
assert main(["top", {str(path)!r}]) == 0
print(sorted({{"ibis", "pandas", "pyarrow", "duckdb", "sqlglot", "numpy", "rich"}} & set(sys.modules)))
"""
    said = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert said.splitlines()[-1] == "[]"
