"""The largest groups and time series, against sums that are made by hand or by a plain loop."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from planted import DAY, record

from thalweg.dataset import Dataset
from thalweg.engines import Engine, connect
from thalweg.filter import compile_filter
from thalweg.schema import RECORD_SCHEMA
from thalweg.series import MAX_INTERVALS, OTHER, SeriesError, series
from thalweg.top import DimensionError, top

MINUTE_US = 60_000_000


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with connect("duckdb") as engine:
        yield engine


def records(engine: Engine, rows: list[dict[str, Any]]) -> Dataset:
    table = pa.Table.from_pylist(rows, RECORD_SCHEMA)
    for index, name in enumerate(table.column_names):
        if pa.types.is_timestamp(table[name].type):
            table = table.set_column(index, f"{name}_us", table[name].cast(pa.int64()))
    return engine.from_arrow(table)


def answer(rows: Dataset, table: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in rows.derive(table).to_pyarrow().to_pylist()]


def between(source: str, destination: str, size: int, **columns: Any) -> dict[str, Any]:
    columns = {"flow_start": DAY, "flow_end": DAY + timedelta(seconds=1), **columns}
    return record(src=source, dst=destination, bytes=size, packets=size // 100, **columns)


def test_groups_are_ordered_by_size_then_by_key_and_sampling_is_scaled(engine: Engine) -> None:
    rows = records(
        engine,
        [
            between("10.0.0.1", "10.0.0.9", 500),
            between("10.0.0.3", "10.0.0.9", 7, sampling_interval=100),
            between("10.0.0.2", "10.0.0.9", 300),
            between("10.0.0.2", "10.0.0.9", 200),
        ],
    )
    found = answer(rows, top(rows.table, ["src"]).select("src", "bytes", "flows", "share"))
    assert found == [("10.0.0.3", 700, 1, 700 / 1700), ("10.0.0.1", 500, 1, 500 / 1700), ("10.0.0.2", 500, 2, 500 / 1700)]
    by_flows = top(rows.table, ["src"], order="flows", limit=1)
    assert answer(rows, by_flows.select("src", "share")) == [("10.0.0.2", 0.5)]


def test_a_row_counts_once_if_both_ends_are_equal(engine: Engine) -> None:
    rows = records(engine, [between("10.0.0.1", "10.0.0.2", 100), between("10.0.0.2", "10.0.0.2", 10)])
    found = answer(rows, top(rows.table, ["address"]).select("address", "bytes", "share"))
    assert found == [("10.0.0.2", 110, 1.0), ("10.0.0.1", 100, 100 / 110)]


def test_dimensions_are_joined(engine: Engine) -> None:
    rows = records(engine, [between("a", "b", 5, protocol=17, dst_port=53), between("a", "b", 9, dst_port=53)])
    found = answer(rows, top(rows.table, ["protocol", "dst-port"]).select("protocol", "dst_port", "bytes"))
    assert found == [(6, 53, 9), (17, 53, 5)]


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (["sauce"], "invalid dimension 'sauce': expected one of src, dst, address"),
        (["address", "port"], "only one of address, port, as, mac and country"),
        (["src", "pair"], "has a duplicate column"),
    ],
)
def test_invalid_dimensions_are_rejected(engine: Engine, by: list[str], message: str) -> None:
    rows = records(engine, [between("a", "b", 5)])
    with pytest.raises(DimensionError, match=message):
        top(rows.table, by)


def test_flows_have_no_exporter_dimension(engine: Engine) -> None:
    rows = engine.from_arrow(pa.table({"src": ["a"], "bytes": [1], "packets": [1]}))
    with pytest.raises(DimensionError, match="the rows have no column exporter"):
        top(rows.table, ["exporter"])


def test_bytes_are_spread_over_the_intervals_of_a_record(engine: Engine) -> None:
    start = DAY + timedelta(seconds=30)
    rows = records(engine, [between("a", "b", 1200, flow_start=start, flow_end=start + timedelta(minutes=2))])
    found = series(rows, MINUTE_US)
    assert found["bytes"].tolist() == [300, 600, 300]
    assert found["flows"].tolist() == [1, 0, 0]
    assert found["rate_bps"].tolist() == [40.0, 80.0, 40.0]
    assert found["time"].iloc[0] == DAY


def test_a_series_matches_a_simple_loop(engine: Engine) -> None:
    chance = random.Random(5)
    rows = []
    for _ in range(300):
        start = DAY + timedelta(microseconds=chance.randrange(0, 3_600_000_000))
        length = timedelta(microseconds=chance.choice([0, 1, 999, 30_000_000, chance.randrange(1, 1_800_000_000)]))
        # Some end before they start: clocks that were set back.
        times = {"flow_start": start, "flow_end": start + length if chance.random() < 0.9 else start - length}
        rows.append(between(f"10.0.0.{chance.randrange(9)}", "b", chance.randrange(10**7), received=DAY, **times))
    expected: Counter[int] = Counter()
    for row in rows:
        spread(row, expected)
    dataset = records(engine, rows)
    found = series(dataset, MINUTE_US)
    told = dict(zip((found["time"].astype("datetime64[us, UTC]").astype("int64")).tolist(), found["bytes"].tolist(), strict=True))
    assert told == {time: expected[time] for time in told}
    assert sum(told.values()) == sum(row["bytes"] for row in rows)
    grouped = series(dataset, MINUTE_US, by=["src"], groups=3)
    assert grouped.groupby("time")["bytes"].sum().tolist() == found["bytes"].tolist()
    assert list(dict.fromkeys(grouped["group"]))[-1] == OTHER


def spread(row: dict[str, Any], into: Counter[int]) -> None:
    """What the module says, by the letter."""
    start, end = sorted(round(row[name].timestamp() * 1e6) for name in ("flow_start", "flow_end"))
    first, last = start - start % MINUTE_US, end - end % MINUTE_US
    left = row["bytes"]
    for interval in range(first, last, MINUTE_US):
        overlap = MINUTE_US - (start - first if interval == first else 0)
        part = int(float(row["bytes"]) * overlap / (end - start))
        into[interval] += part
        left -= part
    into[last] += left


def test_a_series_has_the_requested_intervals(engine: Engine) -> None:
    start = DAY + timedelta(seconds=30)
    rows = records(engine, [between("a", "b", 2400, flow_start=start, flow_end=start + timedelta(minutes=4))])
    day_us = round(DAY.timestamp() * 1e6)
    found = series(rows, MINUTE_US, start_us=day_us + MINUTE_US + 5, end_us=day_us + 3 * MINUTE_US)
    assert found["bytes"].tolist() == [600, 600]
    assert found["flows"].tolist() == [0, 0]
    late = series(rows, MINUTE_US, start_us=day_us + 4 * MINUTE_US, end_us=day_us + 7 * MINUTE_US)
    assert late["bytes"].tolist() == [300, 0, 0]


def test_series_with_too_many_intervals_are_rejected(engine: Engine) -> None:
    rows = records(engine, [between("a", "b", 1), between("a", "b", 1, flow_start=DAY - timedelta(days=9000), received=DAY)])
    with pytest.raises(SeriesError, match=f"more than {MAX_INTERVALS:,} intervals of 60 s"):
        series(rows, MINUTE_US)
    with pytest.raises(DimensionError, match="counts each row for both ends"):
        series(rows, MINUTE_US, by=["address"])


@pytest.mark.parametrize("name", ["clickhouse", "spark"])
def test_all_engines_give_the_same_results(engine: Engine, engine_of: Any, name: str) -> None:
    chance = random.Random(11)
    sources = ["10.0.0.1", "10.1.2.3", "2001:db8::1", "2001:db8:8000::5", "::1"]
    rows = [
        between(
            chance.choice(sources),
            "10.9.9.9",
            chance.randrange(10**6),
            protocol=chance.choice([6, 17]),
            sampling_interval=100,
            tcp_flags=27,
        )
        for _ in range(200)
    ]
    filters = [
        "src net 10.1.0.0/18 or net 2001:db8::/33",
        "flags SA and not ip ::1 and bps > 1m",
        "bpp < 101 and src as 0 and duration 1000",
    ]
    answers = []
    for each in (engine, engine_of(name)):
        dataset = records(each, rows)
        kept = [dataset.filter(compile_filter(text, dataset.table)).count() for text in filters]
        found = answer(dataset, top(dataset.table, ["address", "protocol"]))
        told = series(dataset, 250_000, by=["protocol"], groups=1).astype({"time": "int64"}).to_numpy().tolist()
        answers.append((kept, found, told))
    assert answers[0] == answers[1]
    assert all(0 < number < len(rows) for number in answers[0][0])
