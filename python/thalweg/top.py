"""Groups rows by dimensions and returns the largest groups."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence

import ibis
import ibis.expr.types as ir

from . import counts, saturation
from .dimensions import ORDERS, DimensionError, dimensions


def grouped(rows: ir.Table, by: Sequence[str]) -> tuple[ir.Table, tuple[str, ...]]:
    """Returns the keys, bytes, packets, flows and times of each row, and the names of the keys.

    A row appears once, or twice if a dimension concerns both ends and they differ.

    Raises:
        DimensionError: As `dimensions`, or if `rows` has no such column.
    """
    chosen = dimensions(by)
    for dimension in chosen:
        for column in (*dimension.columns, *dimension.either):
            if column not in rows.columns:
                raise DimensionError(f"by: the rows have no column {column}")
    keys = tuple(key for dimension in chosen for key in dimension.keys)
    first = _keyed(rows, keys, [column for dimension in chosen for column in dimension.columns])
    if not any(dimension.either for dimension in chosen):
        return first, keys
    columns = [column for dimension in chosen for column in dimension.either or dimension.columns]
    differs = functools.reduce(
        operator.or_,
        (rows[one] != rows[other] for dimension in chosen for one, other in zip(dimension.columns, dimension.either, strict=False)),
    )
    return first.union(_keyed(rows.filter(differs), keys, columns)), keys


def _keyed(rows: ir.Table, keys: Sequence[str], columns: Sequence[str]) -> ir.Table:
    return rows.select(
        **{key: rows[column] for key, column in zip(keys, columns, strict=True)},
        bytes=counts.byte_count(rows),
        packets=counts.packets(rows),
        flows=counts.flows(rows),
        flow_start_us=rows["flow_start_us"],
        flow_end_us=rows["flow_end_us"],
    )


def top(rows: ir.Table, by: Sequence[str] = ("src",), order: str = "bytes", limit: int | None = 10) -> ir.Table:
    """Returns the largest groups, the largest first; ties in order of their keys.

    Args:
        rows: Records, flows or flowsets. All rows count; of records, `once.counted_once` keeps those of one router per flow.
        by: Names of `dimensions.DIMENSIONS`.
        order: One of `dimensions.ORDERS`.
        limit: Number of groups; None: all.

    Returns:
        The keys, `bytes`, `packets`, `flows` (rows of records, which are parts of flows), `share` of all bytes, packets or
        flows as ordered, `flow_start_us` and `flow_end_us` (first packet and last).

    Raises:
        DimensionError: If a dimension or the order is invalid.
    """
    if order not in ORDERS:
        raise DimensionError(f"invalid order {order!r}: expected one of {', '.join(ORDERS)}")
    keyed, keys = grouped(rows, by)
    sums = keyed.group_by(list(keys)).aggregate(
        bytes=saturation.total(keyed["bytes"]),
        packets=saturation.total(keyed["packets"]),
        flows=keyed["flows"].sum().cast("int64"),
        flow_start_us=keyed["flow_start_us"].min(),
        flow_end_us=keyed["flow_end_us"].max(),
    )
    amount = {"bytes": counts.byte_count, "packets": counts.packets, "flows": counts.flows}[order]
    amounts = rows.select(amount=amount(rows))
    whole = amounts.aggregate(whole=saturation.total(amounts["amount"]))
    ordered = sums.order_by([ibis.desc(order), *keys])
    largest = ordered if limit is None else ordered.limit(limit)
    with_share = largest.cross_join(whole)
    share = with_share[order].cast("float64") / with_share["whole"].nullif(0).cast("float64")
    return (
        with_share.mutate(share=share).select(*keys, *ORDERS, "share", "flow_start_us", "flow_end_us").order_by([ibis.desc(order), *keys])
    )
