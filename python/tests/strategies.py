"""Flow records that hypothesis makes: few keys, few points, and times that collide, touch, and just miss."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from make_records import SECOND, START, table

GAP_S, WINDOW_S, TAU_S = 20.0, 30.0, 10.0
THRESHOLD = 5_000
"""Rules that fit the times and sizes below: gaps and windows of exactly these lengths come up, and those a microsecond longer."""

Row = dict[str, Any]

_grid = st.integers(0, 24).map(lambda n: n * 5 * SECOND)
_instants = st.builds(lambda at, off: START + at + off, _grid, st.sampled_from([0, 0, 0, 1, -1]))
_lengths = st.one_of(st.sampled_from([0, 10 * SECOND, 30 * SECOND, 30 * SECOND + 1]), st.integers(-2, 40_000_000))
_exporters = st.sampled_from(["192.0.2.1", "192.0.2.10", "192.0.2.2"])


def _record(start: int, length: int, destination: int, port: int, point: tuple[str, int, int, int], **more: int) -> Row:
    exporter, domain, direction, interval = point
    return {
        "received": START,
        "exporter": exporter,
        "observation_domain_id": domain,
        "flow_direction": direction,
        "sampling_interval": interval,
        "flow_start": start,
        "flow_end": start + length,
        "src": "10.0.0.1",
        "dst": f"10.0.1.{destination}",
        "src_port": port,
        "dst_port": 443,
        "protocol": 6,
        **more,
    }


records = st.builds(
    _record,
    start=_instants,
    length=_lengths,
    destination=st.integers(1, 2),
    port=st.integers(1, 3),
    point=st.tuples(_exporters, st.integers(0, 1), st.sampled_from([0, 255]), st.sampled_from([0, 1, 2])),
    bytes=st.one_of(st.integers(0, 3000), st.just(THRESHOLD), st.just(THRESHOLD + 1)),
    packets=st.integers(0, 5),
    src_as=st.integers(0, 3),
    dst_as=st.integers(0, 3),
    tcp_flags=st.integers(0, 63),
)
"""One record."""

worlds = st.lists(records, min_size=1, max_size=25)
"""Records that have to do with each other."""


def as_table(rows: list[Row]) -> pa.Table:
    """Records as a table with the columns of files."""
    return table({name: pa.array([row[name] for row in rows]) for name in rows[0]}, len(rows))


def as_rows(records: pa.Table) -> list[Row]:
    """Records as the oracle reads them: times are integers."""
    for name in ("received", "flow_start", "flow_end"):
        index = records.schema.get_field_index(name)
        records = records.set_column(index, f"{name}_us", records[name].cast(pa.int64()))
    return list(records.to_pylist())


def many_worlds(count: int) -> pa.Table:
    """So many worlds in one table, each with addresses of its own: one run of an engine tries all of them."""
    rows: list[Row] = []

    @settings(max_examples=count, derandomize=True, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(worlds)
    def gather(world: list[Row]) -> None:
        number = len(rows)
        for row in world:
            rows.append({**row, "src": f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"})

    gather()
    return as_table(rows)
