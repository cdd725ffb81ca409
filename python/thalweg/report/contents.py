"""The contents of the report: every table with exact values, before rounding for display."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ibis
import pandas as pd

from .. import tables
from ..archive import Archive
from ..dataset import Dataset
from ..flows import reversed_records
from ..groups import Grouping
from ..series import series
from ..statistics import variability
from .boxes import Box

PATHS = 4
"""Maximum number of paths in the rate plot."""
LARGEST = 10
"""Number of listed transfers per order."""
MIN_FLOWSETS = 5
"""Minimum number of flowsets for a box in the plot."""

_INTERVALS_US = [seconds * 1_000_000 for seconds in (1, 5, 10, 30, 60, 300, 900, 1800, 3600, 21_600, 86_400)]
_POINTS = 400
_PATH = ["src_group", "dst_group"]


@dataclass(frozen=True)
class Contents:
    """Results of the report.

    Attributes:
        about: Facts about the data and the method, by name.
        totals: Totals, by name.
        tables: Every table, by the name of its file.
        groups: All groups, the group with the most bytes in both directions first.
        rates: Box plots of the rates (bit/s) of parallel flowsets by path and number of component flows (Figure 2.1), the busiest path
            first.
        traffic: Traffic of the transfers over time, as returned by `series`.
        every_us: Length of the intervals of `traffic`, in microseconds.
    """

    about: dict[str, Any]
    totals: dict[str, Any]
    tables: dict[str, pd.DataFrame]
    groups: list[str]
    rates: dict[str, dict[int, Box]]
    traffic: pd.DataFrame
    every_us: int


def collect(archive: Archive, grouping: Grouping, about: dict[str, Any]) -> Contents:
    """Computes the contents of the report.

    Args:
        archive: The records.
        grouping: How hosts are grouped.
        about: Further facts about the data; parameters are added.
    """
    flowsets = archive.flowsets()
    paths = grouping.paths(flowsets).materialised()
    parallel = paths.filter(lambda sets: sets.flows > 1)
    rates = variability(parallel, [*_PATH, "flows"])
    totals = _totals(archive, flowsets)
    every_us = _interval(totals)
    found = {
        "group-totals": tables.group_totals(flowsets, grouping),
        "component-counts": tables.component_counts(flowsets, grouping),
        "flowset-characteristics": tables.characteristics(flowsets, grouping),
        "single-flow-counts": tables.single_flows(flowsets, grouping),
        "single-flow-characteristics": tables.characteristics(flowsets, grouping, single=True),
        "rate-variability": rates,
        "largest-transfers": _first(paths, "bytes"),
        "fastest-transfers": _first(parallel, "rate_bps"),
        "longest-transfers": _first(paths, "duration_ns"),
    }
    return Contents(
        about={**about, **vars(archive.parameters), "engine": archive.records.engine.name},
        totals=totals,
        tables=found,
        groups=_by_size(found["group-totals"]),
        rates=_rates(parallel, rates),
        traffic=series(flowsets, every_us),
        every_us=every_us,
    )


def _totals(archive: Archive, flowsets: Dataset) -> dict[str, Any]:
    sets = flowsets.table
    found = flowsets.derive(
        sets.aggregate(
            parallel_flowsets=sets.count(where=sets.flows > 1),
            single_flows=sets.count(where=sets.flows == 1),
            component_flows=sets.flows.sum().cast("int64"),
            bytes=sets.bytes.sum().cast("int64"),
            parallel_bytes=sets.bytes.sum(where=sets.flows > 1).cast("int64"),
            first_us=sets.flow_start_us.min(),
            last_us=sets.flow_end_us.max(),
        )
    )
    row: dict[str, Any] = found.to_pyarrow().to_pylist()[0]
    of_records = {"records": archive.records.count(), "reversed_records": reversed_records(archive.records)}
    return {**of_records, **{name: value or 0 for name, value in row.items()}}


def _interval(totals: dict[str, Any]) -> int:
    """Returns the shortest common interval that gives few enough intervals."""
    length_us = totals["last_us"] - totals["first_us"]
    return next((every for every in _INTERVALS_US if length_us <= every * _POINTS), _INTERVALS_US[-1])


def _first(paths: Dataset, column: str) -> pd.DataFrame:
    order = [ibis.desc(column), "src", "dst", "flow_start_us"]
    shown = paths.table.filter(paths.table[column].notnull()).order_by(order).limit(LARGEST)
    return paths.derive(shown).to_pandas()


def _by_size(totals: pd.DataFrame) -> list[str]:
    sums = totals.astype({"bytes": float}).groupby("group", as_index=False)["bytes"].sum()
    ordered: list[str] = sums.sort_values(["bytes", "group"], ascending=[False, True])["group"].tolist()
    return ordered


def _rates(parallel: Dataset, variability: pd.DataFrame) -> dict[str, dict[int, Box]]:
    """Returns the rates of the paths with most flowsets, for the most frequent numbers of flows."""
    common = variability[variability["count"] >= MIN_FLOWSETS]
    sizes = common.groupby(_PATH, as_index=False)["count"].sum()
    busiest = sizes.sort_values(["count", *_PATH], ascending=[False, True, True]).head(PATHS)
    found: dict[str, dict[int, Box]] = {}
    for source, destination in busiest[_PATH].itertuples(index=False):
        sets = parallel.table
        is_path = (sets.src_group == source) & (sets.dst_group == destination) & sets.rate_bps.notnull()
        frame = parallel.derive(sets.filter(is_path).select("flows", "rate_bps")).to_pandas()
        numbers = common.loc[(common["src_group"] == source) & (common["dst_group"] == destination), "flows"]
        found[f"{source} → {destination}"] = {
            int(number): Box.of(frame.loc[frame["flows"] == number, "rate_bps"].to_numpy(dtype=float)) for number in numbers
        }
    return found
