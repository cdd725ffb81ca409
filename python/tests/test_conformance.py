"""Every engine gives the same answer, row for row and bit for bit, and it is what the definitions say (`oracle.py`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import oracle
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from make_records import records, write
from strategies import GAP_S, TAU_S, THRESHOLD, WINDOW_S, as_rows, as_table, many_worlds, worlds

from thalweg import ByAs, ByPrefix, Dataset, Engine, Parameters, Sites, analyse, connect, reconstruct
from thalweg import flows as flow_columns
from thalweg.flowsets import COLUMNS as SET_COLUMNS
from thalweg.flowsets import flowsets
from thalweg.statistics import summary, variability
from thalweg.tables import characteristics, component_counts, single_flows, top_transfers
from thalweg.top import top

ENGINES = ("duckdb", "native", "clickhouse", "spark")
RULES = Parameters(gap=GAP_S, threshold=THRESHOLD, window=WINDOW_S, tau=TAU_S)
SITES = Sites([("10.0.0.0/8", "ten"), ("10.0.1.0/24", "one"), ("2001:db8::/64", "documentation")])

FLOW_COLUMNS = tuple(flow_columns.COLUMNS)
Rows = list[tuple[Any, ...]]
EngineOf = Callable[[str], Engine]


def rows_of(found: Dataset, columns: tuple[str, ...]) -> Rows:
    """All rows in order, nulls first."""
    table: pa.Table = found.to_pyarrow()
    assert tuple(table.column_names) == columns
    return ordered(zip(*(table[name].to_pylist() for name in columns), strict=True))


def expected(found: list[oracle.Row], columns: tuple[str, ...]) -> Rows:
    return ordered(tuple(row[name] for name in columns) for row in found)


def ordered(rows: Any) -> Rows:
    return sorted(rows, key=lambda row: tuple((value is not None, value) for value in row))


def flows_by_hand(table: pa.Table, rules: Parameters) -> list[oracle.Row]:
    return oracle.flows(as_rows(table), round(rules.gap * 1e6), rules.threshold, round(rules.window * 1e6))


@pytest.fixture(scope="session")
def made_worlds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pa.Table]:
    """Many small worlds that hypothesis made, as a file and as a table."""
    path = tmp_path_factory.mktemp("worlds") / "records.parquet"
    table = many_worlds(300)
    pq.write_table(table, path, compression="zstd")
    return path, table


@pytest.fixture(scope="session")
def larger(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pa.Table]:
    """Three hours with a midnight within, as a collector keeps them."""
    directory = tmp_path_factory.mktemp("larger")
    table = records(15_000, seed=7)
    write(table, directory)
    return directory, table


@pytest.fixture(scope="session")
def answers_by_hand(larger: tuple[Path, pa.Table]) -> tuple[Rows, Rows]:
    flows = flows_by_hand(larger[1], Parameters())
    sets = oracle.flowsets(flows, 10_000_000, "span", elephants_only=True)
    return expected(flows, FLOW_COLUMNS), expected(sets, tuple(SET_COLUMNS))


@pytest.mark.parametrize("name", ENGINES)
def test_random_flows_and_flowsets_match_the_oracle(name: str, engine_of: EngineOf, made_worlds: tuple[Path, pa.Table]) -> None:
    path, table = made_worlds
    by_hand = flows_by_hand(table, RULES)
    assert sum(row["elephant"] for row in by_hand) > 100
    found = reconstruct(engine_of(name).open(path), gap=GAP_S, threshold=THRESHOLD, window=WINDOW_S).materialised()
    assert rows_of(found, FLOW_COLUMNS) == expected(by_hand, FLOW_COLUMNS)
    # On Spark each pass costs seconds, and the larger data have sets of elephants alone.
    cases = (("span", False), ("chain", False), ("span", True))[: 2 if name == "spark" else 3]
    for rule, elephants_only in cases:
        sets = oracle.flowsets(by_hand, round(TAU_S * 1e6), rule, elephants_only)
        answer = flowsets(found, tau=TAU_S, rule=rule, elephants_only=elephants_only)
        assert rows_of(answer, tuple(SET_COLUMNS)) == expected(sets, tuple(SET_COLUMNS)), rule


@pytest.mark.parametrize("name", ENGINES)
def test_larger_flows_and_flowsets_match_the_oracle(
    name: str, engine_of: EngineOf, larger: tuple[Path, pa.Table], answers_by_hand: tuple[Rows, Rows]
) -> None:
    found = analyse(engine_of(name).open(larger[0]))
    assert rows_of(found.flows, FLOW_COLUMNS) == answers_by_hand[0]
    assert rows_of(found.flowsets, tuple(SET_COLUMNS)) == answers_by_hand[1]


@pytest.mark.parametrize("name", ("native",))
def test_native_flowsets_follow_each_rule(name: str, engine_of: EngineOf, made_worlds: tuple[Path, pa.Table]) -> None:
    path, table = made_worlds
    by_hand = flows_by_hand(table, RULES)
    for rule, elephants_only in (("span", False), ("chain", False), ("span", True)):
        rules = Parameters(GAP_S, THRESHOLD, WINDOW_S, TAU_S, rule, elephants_only)
        sets = oracle.flowsets(by_hand, round(TAU_S * 1e6), rule, elephants_only)
        found = analyse(engine_of(name).open(path), rules).flowsets
        assert rows_of(found, tuple(SET_COLUMNS)) == expected(sets, tuple(SET_COLUMNS)), rule


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(world=worlds)
def test_one_random_example_matches_the_oracle(world: list[oracle.Row]) -> None:
    # DuckDB alone, and a world at a time, so that what fails is made small.
    table = as_table(world)
    with connect("duckdb", threads=1) as engine:
        path = engine.scratch / "world.parquet"
        pq.write_table(table, path, compression="zstd")
        found = analyse(engine.open(path), RULES)
        by_hand = flows_by_hand(table, RULES)
        assert rows_of(found.flows, FLOW_COLUMNS) == expected(by_hand, FLOW_COLUMNS)
        sets = oracle.flowsets(by_hand, round(TAU_S * 1e6), "span", elephants_only=True)
        assert rows_of(found.flowsets, tuple(SET_COLUMNS)) == expected(sets, tuple(SET_COLUMNS))


def everything_else(engine: Engine, directory: Path) -> dict[str, pd.DataFrame]:
    """Every other analysis."""
    data = engine.open(directory)
    elephants = reconstruct(data, elephants_only=True).materialised()
    sets = flowsets(elephants).materialised()
    return {
        "elephants": elephants.derive(elephants.table.order_by(list(FLOW_COLUMNS))).to_pandas(),
        "top": data.derive(top(data.table)).to_pandas(),
        "counts by AS": component_counts(sets, ByAs({64_512: "first"})),
        "single flows by prefix": single_flows(sets, ByPrefix(16, 48)),
        "characteristics by site": characteristics(sets, SITES),
        "variability": variability(sets, ["flows"]),
        "largest": top_transfers(sets),
    }


@pytest.fixture(scope="session")
def reference(engine_of: EngineOf, larger: tuple[Path, pa.Table]) -> dict[str, pd.DataFrame]:
    return everything_else(engine_of("duckdb"), larger[0])


@pytest.mark.parametrize("name", ENGINES[1:])
def test_all_engines_give_the_same_frames(
    name: str, engine_of: EngineOf, larger: tuple[Path, pa.Table], reference: dict[str, pd.DataFrame]
) -> None:
    for analysis, frame in everything_else(engine_of(name), larger[0]).items():
        assert len(frame) > 0, analysis
        pd.testing.assert_frame_equal(frame, reference[analysis], check_exact=True, check_dtype=False, obj=analysis)


def test_summaries_have_the_quantiles_of_type_7(engine_of: EngineOf) -> None:
    values = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]
    table = pa.table({"group": ["a"] * 11 + ["b"] * 2, "value": [*values, 10, None]})
    found = summary(engine_of("duckdb").from_arrow(table), "value", ["group"])
    by_pandas = pd.Series(values).quantile([0, 0.25, 0.5, 0.75, 0.95, 0.99, 1]).tolist()
    first = found.iloc[0]
    quantiles = ["min", "p25", "p50", "p75", "p95", "p99", "max"]
    assert first[quantiles].tolist() == pytest.approx(by_pandas, rel=1e-15)
    assert (first["count"], first["mean"]) == (11, 4.0)
    assert found.iloc[1][["count", *quantiles, "mean"]].tolist() == [1] + [10.0] * 8
