"""Counts a flow once, although several routers exported records of it.

The flows are those of `flows`: records of one key with gaps of at most `gap`. Of each flow, the records of one observation
point are kept: of the point that saw the flow longest, among equals of the one with the smallest sampling interval, then of the
first (rule 3 of `flows`). So sums of bytes and packets by a column of the key equal those of the reconstructed flows.

Records are kept whole, with all their columns: interfaces and next hops are those of the kept point.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence

import ibis
import ibis.expr.types as ir

from .dataset import Dataset
from .flows import numbered
from .keys import KEY, POINT
from .observation import identity, note
from .parameters import in_microseconds


def counted_once(records: Dataset, gap: float, *, per_router: bool = False, columns: Sequence[str] = ()) -> Dataset:
    """Returns the records that count: of each flow, those of one observation point. The dataset's note says what was left out.

    Args:
        records: Flow records, as `Engine.open` reads them.
        gap: Seconds of silence after which a record belongs to a new flow; not negative.
        per_router: Keeps one observation point of each router that saw the flow, instead of one of all.
        columns: The columns that are needed; empty: all.

    Raises:
        ValueError: If `gap` is negative.
    """
    gap_us = in_microseconds("gap", gap, 0)
    rows = records.table
    wanted = list(columns or rows.columns)
    points = _points(records)
    key, point = identity(per_router)
    if len(points) < 2 or (per_router and len({exporter for exporter, *_ in points}) == len(points)):
        return records
    rows = rows.select(list(dict.fromkeys([*wanted, *KEY, *POINT, "sampling_interval", "flow_start_us", "flow_end_us"])))
    by_key = rows.group_by(key)
    several = by_key.aggregate(several=functools.reduce(operator.or_, (rows[name].min() != rows[name].max() for name in point)))
    several = several.filter(several.several)
    # Kept by the engine: the rows are read twice, and several results may be made of them.
    of_flows = records.derive(_numbered(rows.semi_join(several, key), gap_us, key)).materialised()
    chosen = _chosen(of_flows.table, key, point)
    kept = of_flows.derive(of_flows.table.semi_join(chosen, [*key, "flow", *point]).select(wanted)).materialised()
    alone = rows.anti_join(several, key).select(wanted)
    return Dataset(records.engine, alone.union(kept.table), note=note(len(points), of_flows.count() - kept.count()))


def _points(records: Dataset) -> list[tuple[object, ...]]:
    found = records.engine.to_pyarrow(records.table.select(*POINT).distinct())
    return list(zip(*(found[name].to_pylist() for name in POINT), strict=True))


def _numbered(rows: ir.Table, gap_us: int, key: Sequence[str]) -> ir.Table:
    """Adds the number `flow` of each record's flow within its key, and the record's times in order."""
    timed = rows.mutate(
        begin_us=ibis.least(rows["flow_start_us"], rows["flow_end_us"]),
        finish_us=ibis.greatest(rows["flow_start_us"], rows["flow_end_us"]),
    )
    return numbered(timed, gap_us, key, "begin_us", "finish_us")


def _chosen(rows: ir.Table, key: Sequence[str], point: Sequence[str]) -> ir.Table:
    """Returns the observation point that counts of each flow."""
    points = rows.group_by([*key, "flow", *point]).aggregate(
        seen_us=rows["finish_us"].max() - rows["begin_us"].min(),
        interval=ibis.greatest(rows["sampling_interval"], 1).min(),
    )
    order = [points["seen_us"].desc(), points["interval"], *(points[name] for name in point)]
    ranked = points.mutate(rank=ibis.row_number().over(ibis.window(group_by=[*key, "flow"], order_by=order)))
    return ranked.filter(ranked["rank"] == 0)
