"""Countries and AS numbers, looked up when records are queried."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import thalweg
from thalweg import cli
from thalweg.archive import Archive
from thalweg.engines import Engine
from thalweg.places import PlaceError
from thalweg.schema import RECORD_SCHEMA, unreported

pytest.importorskip("thalweg._native", reason="the compiled part is not installed")

DATABASES = Path(__file__).parents[2] / "crates/thalweg-records/tests/data"
"""Made by `make_mmdb.py` there."""
MMDB = [DATABASES / "country.mmdb", DATABASES / "asn.mmdb"]
START = datetime(2026, 11, 22, 13, tzinfo=UTC)


def record(number: int, **values: Any) -> dict[str, Any]:
    times = dict.fromkeys(("received", "flow_start", "flow_end"), START + timedelta(seconds=number))
    rest = {field.name: "" if pa.types.is_string(field.type) else 0 for field in RECORD_SCHEMA}
    assert unreported("src_country") == ""
    return {**rest, **times, "format": "ipfix", "exporter": "192.0.2.254", "bytes": 10**number, "packets": 1, **values}


RECORDS = [
    record(1, src="198.51.100.7", dst="192.0.2.1"),
    record(2, src="198.51.100.8", dst="203.0.113.200", src_as=65000, src_country="AT"),
    record(3, src="2001:db8:1::1", dst="2001:db8:2::1"),
    record(4, src="10.0.0.1", dst="198.51.100.7"),
    record(5, src="", dst=""),
]
"""Bytes are 10 to the power of the number."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("places")
    # Two files, so that the lookup does not depend on one.
    for name, rows in (("a", RECORDS[:2]), ("b", RECORDS[2:])):
        pq.write_table(pa.Table.from_pylist(rows, RECORD_SCHEMA), folder / f"{name}.parquet", compression="zstd")
    return folder


@pytest.mark.parametrize("name", ["duckdb", "native", "clickhouse"])
def test_the_own_value_of_a_record_wins(name: str, source: Path, engine_of: Callable[[str], Engine]) -> None:
    from thalweg.places import Places

    engine = engine_of(name)
    archive = Archive(engine.open(source), places=Places(MMDB))
    rows = archive.query("any").to_pyarrow().to_pylist()
    assert [(row["src_country"], row["src_as"]) for row in rows] == [("DE", 64496), ("AT", 65000), ("JP", 64497), ("", 0), ("", 0)]
    assert [(row["dst_country"], row["dst_as"]) for row in rows] == [("", 0), ("FR", 0), ("", 0), ("DE", 64496), ("", 0)]
    replaced = Archive(engine.open(source), places=Places(MMDB, replace_as=True)).query("any").to_pyarrow()
    assert replaced["src_as"].to_pylist() == [64496, 64496, 64497, 0, 0]
    assert archive.query("any").columns == Archive(engine.open(source)).query("any").columns


def test_filters_dimensions_and_sql_use_what_was_looked_up(source: Path) -> None:
    with_places = thalweg.open(source, mmdb=MMDB)
    assert with_places.matching("geo DE").count() == 2
    assert with_places.matching("src geo AT and src as 65000").count() == 1
    assert with_places.matching("as 64496").count() == 2
    assert thalweg.open(source).matching("geo DE or as 64496").count() == 0
    top = with_places.top("country", every_router=True).to_pyarrow().to_pydict()
    assert dict(zip(top["country"], top["bytes"], strict=True)) == {"DE": 10010, "AT": 100, "FR": 100, "JP": 1000, "": 111_010}
    assert with_places.top("dst-as", matching="src ip 10.0.0.1").to_pyarrow()["dst_as"].to_pylist() == [64496]
    counted = with_places.query("SELECT dst_country, count(*) AS n FROM records GROUP BY ALL ORDER BY ALL").to_pyarrow().to_pylist()
    assert counted == [{"dst_country": "", "n": 3}, {"dst_country": "DE", "n": 1}, {"dst_country": "FR", "n": 1}]
    assert with_places.filter("bytes > 50").top("src-as", limit=1, every_router=True).count() == 1
    series = with_places.series("1h", by="src-country").to_pyarrow()
    assert "JP" in series["group"].to_pylist()


def test_flows_and_flowsets_have_countries_too(source: Path) -> None:
    archive = thalweg.open(source, mmdb=MMDB)
    assert archive.matching("geo DE", "flows").count() == 3
    flows = archive.flows()
    assert flows is archive.flows(), "they are looked up once"
    of_one = {row["bytes"]: (row["src_country"], row["src_as"]) for row in flows.to_pyarrow().to_pylist()}
    # Reconstructed flows have the AS number of their records, but no country.
    assert of_one[100] == ("DE", 65000)
    everything = thalweg.Parameters(elephants_only=False)
    sets = thalweg.open(source, mmdb=MMDB, parameters=everything).flowsets()
    assert sorted(sets.to_pyarrow()["dst_country"].to_pylist()) == ["", "", "", "DE", "FR"]


def test_addresses_are_not_looked_up_for_what_does_not_need_them(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = thalweg.open(source, mmdb=MMDB)
    monkeypatch.setattr("thalweg.places.Places._filled", lambda *_: pytest.fail("looked up"))
    assert archive.top("src", matching="bytes > 50", every_router=True).count() == 4
    archive.series("1h", matching="src ip 10.0.0.1")


def test_the_command_line_has_the_options_of_collect(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [part for path in MMDB for part in ("--mmdb", str(path))]
    assert cli.main(["top", str(source), "--by", "src-country", "src geo DE", *options, "--json"]) == cli.COMPLETE
    assert [json.loads(line)["src_country"] for line in capsys.readouterr().out.splitlines()] == ["DE"]
    for command in (["query", str(source), "geo FR"], ["flows", str(source), "geo FR"], ["series", str(source), "geo FR"]):
        assert cli.main([*command, *options, "--csv"]) == cli.COMPLETE
        assert len(capsys.readouterr().out.splitlines()) == 2, command
    arguments = ["flowsets", str(source), "src as 64496", *options, "--all-flows", "--mmdb-replace-as", "--json"]
    assert cli.main(arguments) == cli.COMPLETE
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--mmdb", "/nonexistent.mmdb"], "--mmdb: /nonexistent.mmdb: No such file or directory"),
        (["--mmdb", __file__], "test_places.py: expected a database in MMDB format (GeoLite2, DB-IP, IPinfo)"),
        (["--mmdb-replace-as"], "--mmdb-replace-as: needs --mmdb"),
    ],
)
def test_invalid_databases_are_named(options: list[str], message: str, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["top", str(source), *options]) != cli.COMPLETE
    assert message in capsys.readouterr().err


def test_a_file_that_is_no_database_raises(source: Path) -> None:
    with pytest.raises(PlaceError, match="expected a database"):
        thalweg.open(source, mmdb=[__file__])


def test_one_database_needs_no_list(source: Path) -> None:
    assert thalweg.open(source, mmdb=str(MMDB[0])).matching("geo DE").count() == 2


def test_no_dimension_is_refused(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["top", str(source), "--by", ""]) == cli.USAGE
    assert "by: expected one or more of src, dst" in capsys.readouterr().err
