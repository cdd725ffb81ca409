"""Flow reconstruction: merges records that were split by active timeouts or exported by several routers into flows, and finds
elephant flows.

Source: the dissertation, section 2.2, and Liu et al., whose method for single flows it extends. All arithmetic uses int64
microseconds and int64 bytes, so all engines give identical results. One difference from the source: a flow that several
routers saw is recognised and counted once (below); the source analyses each router separately.

The key of a flow is (src, dst, src_port, dst_port, protocol). An observation point is
(exporter, observation_domain_id, flow_direction).

1. The records of a key, from all points, are sorted by start. A record starts a new flow if it starts more than `gap` after the
   latest end so far. If a record ends before it starts, its times are swapped first.
2. For each point, the counts of a flow are summed and scaled: each count times max(1, sampling_interval).
3. The size of the flow is the sum of *one* point: the one that saw the flow longest; among equals the one with the smallest
   sampling interval; among these the first in the order of (exporter, observation_domain_id, flow_direction), exporters in
   the order of their text. It is chosen by time and not by size, because the largest of several sampled sizes is biased
   upwards. Limit: if the packets of a flow take several routers (per-packet balancing, a path change), only the part that
   the chosen point saw counts.
4. It is an elephant flow if some window of length `window` holds more than `threshold` bytes of the records of the chosen
   point; see `elephants`.

Products and sums saturate at the maximum int64; see `saturation`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ibis
import ibis.expr.types as ir

from .dataset import Dataset
from .elephants import elephants
from .keys import KEY, POINT
from .parameters import GAP_S, THRESHOLD_BYTES, WINDOW_S, checked_flow_rules
from .saturation import product, total

COLUMNS = {
    "src": "string",
    "dst": "string",
    "src_port": "int32",
    "dst_port": "int32",
    "protocol": "int32",
    "flow_start_us": "int64",
    "flow_end_us": "int64",
    "bytes": "int64",
    "packets": "int64",
    "records": "int64",
    "observation_points": "int64",
    "sampling_interval": "int64",
    "src_as": "int64",
    "dst_as": "int64",
    "tcp_flags": "int32",
    "elephant": "boolean",
}
"""Columns of flows. From the chosen point: `bytes` and `packets` (scaled), `sampling_interval`, the AS numbers (the maximum over
its records) and `tcp_flags` (all flags it saw). From all points: `records` and the times."""


BitOr = Callable[[ir.IntegerColumn], ir.IntegerScalar]
"""An engine's bitwise OR aggregate."""


def reconstruct(
    records: Dataset,
    *,
    gap: float = GAP_S,
    threshold: int = THRESHOLD_BYTES,
    window: float = WINDOW_S,
    elephants_only: bool = False,
) -> Dataset:
    """Reconstructs flows from records, with the columns of `COLUMNS`, in any order.

    Args:
        records: Flow records, as `Engine.open` reads them.
        gap: Seconds of silence after which a record belongs to a new flow; not negative.
        threshold: Bytes that an elephant flow exceeds within `window`.
        window: Seconds; more than zero.
        elephants_only: Returns only elephant flows, which saves most of the work.

    Raises:
        ValueError: If a parameter is out of its range.
    """
    rules = checked_flow_rules(gap, threshold, window)
    engine, gap_us, window_us = records.engine, int(rules["gap_us"]), int(rules["window_us"])
    compiled = engine.compiled(records, ("flows",), None, **rules)
    if compiled is not None:
        found = compiled["flows"]
        return found.filter(found.table.elephant) if elephants_only else found
    rows = _scaled(records.table)
    if elephants_only:
        reconstructed = _joined(_of_heavy_keys(rows, threshold), gap_us, engine.bit_or)
    else:
        reconstructed = _flows(rows, gap_us, engine.bit_or)
    whole = engine.materialise(reconstructed)
    fast = elephants(engine, rows, whole.filter(whole.bytes > threshold), threshold, window_us)
    flows = whole.left_join(fast, [*KEY, "flow_start_us"]).select(
        *(whole[name] for name in whole.columns), elephant=fast.is_elephant.notnull()
    )
    if elephants_only:
        flows = flows.filter(flows.elephant)
    return records.derive(flows.select(*COLUMNS).cast(COLUMNS))


def reversed_records(records: Dataset) -> int:
    """Counts the records that end before they start; their times are swapped."""
    return records.filter(lambda rows: rows.flow_end_us < rows.flow_start_us).count()


def _scaled(records: ir.Table) -> ir.Table:
    """Selects the columns of records for the analysis: times in order, counts scaled."""
    interval = ibis.greatest(records.sampling_interval, 1)
    return records.select(
        *KEY,
        *POINT,
        flow_start_us=ibis.least(records.flow_start_us, records.flow_end_us),
        flow_end_us=ibis.greatest(records.flow_start_us, records.flow_end_us),
        bytes=product(records.bytes, interval),
        packets=product(records.packets, interval),
        sampling_interval=interval,
        src_as=records.src_as,
        dst_as=records.dst_as,
        tcp_flags=records.tcp_flags,
    )


def _of_heavy_keys(rows: ir.Table, threshold: int) -> ir.Table:
    """Selects records of keys with more than `threshold` bytes in total: only they can have an elephant."""
    totals = rows.group_by(*KEY).aggregate(total=total(rows.bytes))
    return rows.semi_join(totals.filter(totals.total > threshold), list(KEY))


def _flows(rows: ir.Table, gap_us: int, bit_or: BitOr) -> ir.Table:
    """Returns flows without `elephant`. A key with one record is one flow; only the others are sorted."""
    # Both plans read the records twice, at a tenth of the cost of sorting all of them.
    counted = rows.group_by(*KEY).aggregate(**{name: rows[name].max() for name in rows.columns if name not in KEY}, records=rows.count())
    alone = counted.filter(counted.records == 1).mutate(observation_points=counted.records)
    several = rows.group_by(*KEY).aggregate(records=rows.count()).filter(lambda keys: keys.records > 1)
    return _typed(alone).union(_joined(rows.semi_join(several, list(KEY)), gap_us, bit_or))


def _joined(rows: ir.Table, gap_us: int, bit_or: BitOr) -> ir.Table:
    """Returns flows without `elephant`, by sorting all records."""
    return _typed(_chosen(_by_point(numbered(rows, gap_us), bit_or)))


def _typed(flows: ir.Table) -> ir.Table:
    """Returns the columns of flows except `elephant`, and those of their chosen point."""
    kinds = {**COLUMNS, **{name: flows[name].type() for name in POINT}}
    del kinds["elephant"]
    return flows.select(*kinds).cast(kinds)


def numbered(rows: ir.Table, gap_us: int, key: Sequence[str] = KEY, start: str = "flow_start_us", end: str = "flow_end_us") -> ir.Table:
    """Adds the number `flow` of each record's flow within its `key`; no record ends before it starts."""
    earlier = ibis.window(group_by=list(key), order_by=[start, end], rows=(None, -1))
    before = rows.mutate(latest_us=rows[end].max().over(earlier))
    marked = before.mutate(begins=(before[start] - before.latest_us > gap_us).ifelse(1, 0))
    # Of records with the same times one may begin a flow, and engines are free to take these in another order the second time.
    up_to_now = ibis.window(group_by=list(key), order_by=[start, end, ibis.desc("begins")], rows=(None, 0))
    return marked.mutate(flow=marked.begins.sum().over(up_to_now))


def _by_point(rows: ir.Table, bit_or: BitOr) -> ir.Table:
    """Aggregates each flow at each observation point, with its smallest sampling interval."""
    return rows.group_by(*KEY, "flow", *POINT).aggregate(
        flow_start_us=rows.flow_start_us.min(),
        flow_end_us=rows.flow_end_us.max(),
        bytes=total(rows.bytes),
        packets=total(rows.packets),
        records=rows.count(),
        sampling_interval=rows.sampling_interval.min(),
        src_as=rows.src_as.max(),
        dst_as=rows.dst_as.max(),
        tcp_flags=bit_or(rows.tcp_flags),
    )


def _chosen(points: ir.Table) -> ir.Table:
    """Selects one point for each flow, with the times and the number of records of all its points."""
    of_flow = ibis.window(group_by=[*KEY, "flow"])
    seen_us = points.flow_end_us - points.flow_start_us
    ranked = points.mutate(
        rank=ibis.row_number().over(ibis.window(group_by=[*KEY, "flow"], order_by=[seen_us.desc(), points.sampling_interval, *POINT])),
        flow_start_us=points.flow_start_us.min().over(of_flow),
        flow_end_us=points.flow_end_us.max().over(of_flow),
        records=points.records.sum().over(of_flow),
        observation_points=points.count().over(of_flow),
    )
    return ranked.filter(ranked["rank"] == 0)
