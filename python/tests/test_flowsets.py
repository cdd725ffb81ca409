"""Flowsets in cases small enough to be worked out in the head, and the chains for which equation 2.2 has no answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import oracle
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from make_records import SECOND, START, write
from strategies import as_table
from test_flows import record

from thalweg import Engine, analyse, connect
from thalweg.flowsets import flowsets

DAY_S = 86_400
TO_MIDNIGHT_S = DAY_S - START // SECOND % DAY_S


@pytest.fixture(scope="module")
def engine() -> Any:
    with connect("duckdb") as engine:
        yield engine


def flow(start_s: float, length_s: float = 100, size: int = 2_000_000_000, port: int = 1, **more: Any) -> dict[str, Any]:
    start_us = START + round(start_s * SECOND)
    return {
        "src": "10.0.0.1",
        "dst": "10.0.0.2",
        "src_port": port,
        "dst_port": 2,
        "protocol": 6,
        "flow_start_us": start_us,
        "flow_end_us": start_us + round(length_s * SECOND),
        "bytes": size,
        "packets": 10,
        "src_as": 1,
        "dst_as": 2,
        "elephant": True,
        **more,
    }


def sets(engine: Engine, flows: Sequence[dict[str, Any]], **rules: Any) -> list[dict[str, Any]]:
    data = engine.from_arrow(pa.Table.from_pylist(list(flows)))
    found: list[dict[str, Any]] = flowsets(data, **rules).to_pyarrow().to_pylist()
    return sorted(found, key=lambda row: (row["src"], row["flow_start_us"]))


def sizes(engine: Engine, starts_s: Sequence[float], **rules: Any) -> list[int]:
    return [row["flows"] for row in sets(engine, [flow(at, port=n) for n, at in enumerate(starts_s)], **rules)]


def test_flows_within_tau_are_one_flowset(engine: Engine) -> None:
    for rule in ("span", "chain"):
        assert sizes(engine, [0, 4, 10], rule=rule) == [3]
        assert sizes(engine, [0, 10.000001, 12], rule=rule) == [1, 2]


def test_a_chain_beyond_tau_is_split_by_span_only(engine: Engine) -> None:
    chain = [0, 6, 12, 18, 24, 30, 36]
    assert sizes(engine, chain) == [2, 2, 2, 1]
    assert sizes(engine, chain, rule="chain") == [7]


def test_a_long_chain_matches_a_simple_split(engine: Engine) -> None:
    starts = [at * 0.7 for at in range(1000)]
    by_hand = oracle.flowsets([flow(at, port=n) for n, at in enumerate(starts)], 10 * SECOND, "span", elephants_only=True)
    assert sizes(engine, starts) == [row["flows"] for row in by_hand]
    assert sum(sizes(engine, starts)) == 1000


def test_tau_0_groups_equal_starts(engine: Engine) -> None:
    for rule in ("span", "chain"):
        assert sizes(engine, [0, 0, 1, 2, 2, 2], tau=0, rule=rule) == [2, 1, 3]


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(starts=st.lists(st.integers(0, 80).map(lambda n: n * 2.5), min_size=1, max_size=80), tau=st.sampled_from([0.0, 2.5, 7.0, 10.0]))
def test_any_starts_match_a_simple_split(engine: Engine, starts: list[float], tau: float) -> None:
    flows = [flow(at, port=n, src=f"10.0.0.{n % 2}") for n, at in enumerate(starts)]
    by_hand = oracle.flowsets(flows, round(tau * SECOND), "span", elephants_only=True)
    by_hand.sort(key=lambda row: (row["src"], row["flow_start_us"]))
    assert sets(engine, flows, tau=tau) == by_hand


def test_a_flowset_sums_sizes_until_its_latest_end(engine: Engine) -> None:
    (found,) = sets(engine, [flow(0, 200, 3_000_000_000), flow(5, 50, 2_000_000_000, port=2)])
    assert (found["flows"], found["bytes"], found["duration_ns"]) == (2, 5_000_000_000, 200 * SECOND * 1000)
    assert found["rate_bps"] == 2e8


def test_a_flowset_without_duration_has_no_rate(engine: Engine) -> None:
    (found,) = sets(engine, [flow(0, 0)])
    assert (found["duration_ns"], found["rate_bps"]) == (0, None)


def test_flowsets_are_of_elephants_unless_all_flows_are_requested(engine: Engine) -> None:
    flows = [flow(0), flow(1, port=2, elephant=False)]
    assert [row["flows"] for row in sets(engine, flows)] == [1]
    assert [row["flows"] for row in sets(engine, flows, elephants_only=False)] == [2]


def test_flows_and_flowsets_span_midnight(engine: Engine, tmp_path: Path) -> None:
    before, after = TO_MIDNIGHT_S - 30, TO_MIDNIGHT_S + 30
    ports = [{"src_port": port, "bytes": 2_000_000_000} for port in (1, 2)]
    rows = [record(before - 20, before + 10, **port) for port in ports] + [record(before + 20, after + 20, **port) for port in ports]
    for row in rows:
        row["received"] = row["flow_end"]
    write(as_table(rows), tmp_path)
    assert len(list((tmp_path / "flows").iterdir())) == 2
    found = analyse(engine.open(tmp_path))
    assert [row["records"] for row in found.flows.to_pyarrow().to_pylist()] == [2, 2]
    (one,) = found.flowsets.to_pyarrow().to_pylist()
    assert (one["flows"], one["bytes"]) == (2, 8_000_000_000)


def test_unknown_rules_and_negative_tau_are_rejected(engine: Engine) -> None:
    for wrong in ({"rule": "widest"}, {"tau": -1.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            sets(engine, [flow(0)], **wrong)
