"""Flow reconstruction in cases small enough to be worked out in the head."""

from __future__ import annotations

from typing import Any

import pytest
from make_records import SECOND, START
from strategies import as_table

from thalweg import Dataset, Engine, connect, reconstruct
from thalweg.flows import reversed_records
from thalweg.flowsets import flowsets

GB = 1_000_000_000


@pytest.fixture(scope="module")
def engine() -> Any:
    with connect("duckdb") as engine:
        yield engine


def record(start_s: float, end_s: float, size: int = 1000, **more: Any) -> dict[str, Any]:
    return {
        "received": START,
        "exporter": "192.0.2.1",
        "sampling_interval": 1,
        "flow_start": START + round(start_s * SECOND),
        "flow_end": START + round(end_s * SECOND),
        "src": "10.0.0.1",
        "dst": "10.0.0.2",
        "src_port": 1,
        "dst_port": 2,
        "protocol": 6,
        "bytes": size,
        "packets": 1,
        **more,
    }


def records(engine: Engine, *rows: dict[str, Any]) -> Dataset:
    names = {name: 0 for row in rows for name in row}
    table = as_table([{**names, **row} for row in rows])
    for name in ("received", "flow_start", "flow_end"):
        index = table.schema.get_field_index(name)
        table = table.set_column(index, f"{name}_us", table[name].cast("int64"))
    return engine.from_arrow(table)


def flows(engine: Engine, *rows: dict[str, Any], **rules: Any) -> list[dict[str, Any]]:
    found = reconstruct(records(engine, *rows), **rules).to_pyarrow().to_pylist()
    return sorted(found, key=lambda flow: flow["flow_start_us"])


def test_records_merge_up_to_a_gap_of_60_s(engine: Engine) -> None:
    one = flows(engine, record(0, 60), record(120, 130))
    assert [(flow["records"], flow["bytes"]) for flow in one] == [(2, 2000)]
    two = flows(engine, record(0, 60), record(120.000001, 130))
    assert [flow["records"] for flow in two] == [1, 1]


def test_gaps_count_from_the_latest_end(engine: Engine) -> None:
    assert len(flows(engine, record(0, 100), record(10, 20), record(150, 160))) == 1


def test_records_with_equal_times_are_one_flow(engine: Engine) -> None:
    repeated = [record(120, 150, size, src_port=port) for port in range(50) for size in range(port % 7 + 2)]
    found = flows(engine, *(record(0, 1, src_port=port) for port in range(50)), *repeated)
    assert [(flow["flow_end_us"] - START, flow["records"]) for flow in found[:50]] == [(SECOND, 1)] * 50
    assert {flow["src_port"]: flow["records"] for flow in found[50:]} == {port: port % 7 + 2 for port in range(50)}


def test_the_point_with_the_longest_duration_counts_a_flow(engine: Engine) -> None:
    longest = record(0, 50, 10, sampling_interval=100, exporter="192.0.2.9")
    largest = record(0, 49, 5000, sampling_interval=1, exporter="192.0.2.1")
    (flow,) = flows(engine, longest, largest)
    assert (flow["bytes"], flow["sampling_interval"]) == (1000, 100)
    assert (flow["observation_points"], flow["records"]) == (2, 2)


def test_ties_of_points_prefer_the_smallest_sampling_interval(engine: Engine) -> None:
    seen = [("192.0.2.1", 10, 1), ("192.0.2.9", 5, 2), ("192.0.2.10", 5, 3)]
    rows = [record(0, 9, 1, exporter=e, sampling_interval=i, src_as=number) for e, i, number in seen]
    (flow,) = flows(engine, *rows)
    assert flow["src_as"] == 3


def test_reversed_times_are_swapped_and_counted(engine: Engine) -> None:
    (flow,) = flows(engine, record(20, 5))
    assert (flow["flow_start_us"], flow["flow_end_us"]) == (START + 5 * SECOND, START + 20 * SECOND)
    assert reversed_records(records(engine, record(20, 5), record(5, 20), record(5, 5))) == 1


def test_elephants_exceed_the_threshold_within_a_window(engine: Engine) -> None:
    assert [flow["elephant"] for flow in flows(engine, record(0, 60, GB))] == [False]
    assert [flow["elephant"] for flow in flows(engine, record(0, 60, GB + 1))] == [True]
    slow = [record(60 * n, 60 * n + 60, GB * 9 // 10) for n in range(10)]
    assert [flow["elephant"] for flow in flows(engine, *slow)] == [False]


def test_windows_take_their_share_of_records(engine: Engine) -> None:
    # 40 s at 12 MB/s, then 40 s at 24 MB/s: the best minute has 20 s of the first and all of the second, 1.2 GB.
    rows = [record(0, 40, 480_000_000), record(40, 80, 960_000_000)]
    assert [flow["elephant"] for flow in flows(engine, *rows, threshold=1_199_999_999)] == [True]
    assert [flow["elephant"] for flow in flows(engine, *rows, threshold=1_200_000_000)] == [False]


def test_bytes_of_instantaneous_records_count_at_once(engine: Engine) -> None:
    rows = [record(0, 0, GB), record(60, 60, 1)]
    assert [flow["elephant"] for flow in flows(engine, *rows)] == [True]
    rows = [record(0, 0, GB), record(60.000001, 60.000001, 1)]
    assert [flow["elephant"] for flow in flows(engine, *rows, gap=100)] == [False]


def test_elephants_only_matches_the_elephants_of_all_flows(engine: Engine) -> None:
    rows = [record(0, 60, 2 * GB), record(0, 60, 5, src_port=9), record(500, 600, 3 * GB), record(500, 9_000, 2 * GB, src_port=9)]
    every = [flow for flow in flows(engine, *rows) if flow["elephant"]]
    assert flows(engine, *rows, elephants_only=True) == every
    assert len(every) == 2


def test_parameters_out_of_range_are_rejected(engine: Engine) -> None:
    data = records(engine, record(0, 1))
    for wrong in ({"gap": -1}, {"window": 0}, {"threshold": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            reconstruct(data, **wrong)


def test_counts_saturate(engine: Engine) -> None:
    wild = [record(0, 10, 2**62, sampling_interval=1000, packets=2**62), record(20, 30, 2**63 - 1, packets=2**63 - 1)]
    (flow,) = flows(engine, *wild)
    assert (flow["bytes"], flow["packets"], flow["elephant"]) == (2**63 - 1, 2**63 - 1, True)
    assert flows(engine, *wild, elephants_only=True) == [flow]
    (found,) = flowsets(reconstruct(records(engine, *wild))).to_pyarrow().to_pylist()
    assert found["rate_bps"] == (2.0**63) * 1e6 / 30e6
