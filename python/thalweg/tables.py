"""The dissertation's tables of flowsets, for any grouping of hosts, by direction: to a group, from a group.

A flowset with both ends in one group counts in both directions.
"""

from __future__ import annotations

import ibis
import ibis.expr.types as ir
import pandas as pd

from .dataset import Dataset
from .groups import Grouping
from .saturation import total
from .statistics import SUMMARY, summary

COMPONENTS = (2, 4, 8, 16)
"""Numbers of component flows in Table 2.2."""

_SIDE = ["group", "direction"]
_QUANTITIES = {"size": ("bytes", 1.0), "rate": ("rate_bps", 1.0), "duration": ("duration_ns", 1e9)}


def group_totals(flowsets: Dataset, grouping: Grouping) -> pd.DataFrame:
    """All transfers of each group, parallel and single: `group`, `direction`, `bytes`, `flowsets` and `flows` (component flows)."""
    sides = grouping.sides(flowsets).table
    totals = sides.group_by(_SIDE).aggregate(bytes=total(sides.bytes), flowsets=sides.count(), flows=sides.flows.sum())
    return _in_order(flowsets, totals)


def component_counts(flowsets: Dataset, grouping: Grouping) -> pd.DataFrame:
    """Table 2.2: the number of parallel flowsets (N > 1) by number of component flows.

    Returns:
        `group`, `direction`, `flowsets_2`, `_4`, `_8`, `_16`, `flowsets_other`, `flowsets` (all of them), `dst_hosts` and
        `src_hosts` (number of distinct hosts at each end), in the order of group and direction. The table's last row is the
        destination hosts to the group and the source hosts from it.
    """
    sides = _parallel(grouping.sides(flowsets)).table
    counts = {f"flowsets_{n}": sides.count(where=sides.flows == n) for n in COMPONENTS}
    counted = sides.group_by(_SIDE).aggregate(
        **counts,
        flowsets_other=sides.count(where=sides.flows.notin(COMPONENTS)),
        flowsets=sides.count(),
        dst_hosts=sides.dst.nunique(),
        src_hosts=sides.src.nunique(),
    )
    return _in_order(flowsets, counted)


def characteristics(flowsets: Dataset, grouping: Grouping, *, single: bool = False) -> pd.DataFrame:
    """Table 2.3: size, rate and duration of parallel flowsets, or of single flows.

    Args:
        flowsets: The result of `flowsets`.
        grouping: How hosts are grouped.
        single: Single flows (N = 1) instead of parallel flowsets.

    Returns:
        `group`, `direction`, `quantity` ("size" in bytes, "rate" in bit/s, "duration" in seconds) and the columns of
        `statistics.SUMMARY`. Rates exclude flows without duration.
    """
    sides = grouping.sides(flowsets)
    sides = (_single(sides) if single else _parallel(sides)).materialised()
    found = []
    for quantity, (column, per_unit) in _QUANTITIES.items():
        row = summary(sides, column, _SIDE)
        row.insert(2, "quantity", quantity)
        values = [name for name in SUMMARY if name != "count"]
        row[values] = row[values] / per_unit
        found.append(row)
    whole = pd.concat(found, ignore_index=True)
    order = whole["quantity"].map(list(_QUANTITIES).index)
    return whole.assign(order=order).sort_values([*_SIDE, "order"], ignore_index=True).drop(columns="order")


def single_flows(flowsets: Dataset, grouping: Grouping) -> pd.DataFrame:
    """Table 2.4: the number of single flows (flowsets with N = 1): `group`, `direction`, `flows`."""
    sides = _single(grouping.sides(flowsets)).table
    return _in_order(flowsets, sides.group_by(_SIDE).aggregate(flows=sides.count()))


def top_transfers(flowsets: Dataset, limit: int = 10) -> pd.DataFrame:
    """Returns the `limit` largest flowsets, the largest first; ties in order of addresses and time."""
    table = flowsets.table
    order = [table.bytes.desc(), table.src, table.dst, table.flow_start_us]
    return flowsets.derive(table.order_by(order).limit(limit)).to_pandas()


def _parallel(sides: Dataset) -> Dataset:
    return sides.filter(lambda sets: sets.flows > 1)


def _single(sides: Dataset) -> Dataset:
    return sides.filter(lambda sets: sets.flows == 1)


def _in_order(flowsets: Dataset, counted: ir.Table) -> pd.DataFrame:
    counts = {name: "int64" for name in counted.columns if name not in _SIDE}
    frame = flowsets.derive(counted.order_by([ibis._[name] for name in _SIDE])).to_pandas()
    return frame.astype(counts)
