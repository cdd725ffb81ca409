"""Order statistics and means of a column, by group.

A quantile of probability p over n sorted values x_1 ... x_n is Hyndman and Fan's type 7 (the default of R and numpy): with
h = (n - 1) p, linear interpolation between x_(floor(h)+1) and the next value, by the fraction of h.

The engine counts and finds the values at these ranks by integer arithmetic; the interpolation is done here. So every engine
gives identical quantiles, and only a few rows per group are transferred. A mean is a sum of integers (values are rounded down
first: rates to whole bit/s) divided by a count. Nulls (the rate of a flow without duration) are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import ibis
import ibis.expr.types as ir
import pandas as pd
import pyarrow as pa

from .dataset import Dataset

QUANTILES = {
    "min": 0,
    "p25": 250,
    "p50": 500,
    "p75": 750,
    "p95": 950,
    "p99": 990,
    "max": 1000,
}
"""Quantile columns of a summary, with their probability in thousandths."""

SUMMARY = ("count", "min", "p25", "p50", "mean", "p75", "p95", "p99", "max")
"""Columns of a summary."""


def summary(dataset: Dataset, column: str, by: Sequence[str] = ()) -> pd.DataFrame:
    """Computes count, extremes, quartiles, mean, 95 % and 99 % quantiles of a column.

    Args:
        dataset: Any rows.
        column: A column of numbers.
        by: Columns that identify groups; without any, all rows are one group.

    Returns:
        `by` and the columns of `SUMMARY` (float64, except `count`), in the order of `by`. Groups without a value are left out.
    """
    values = _ranked(dataset.table, column, by)
    totals = _rows(dataset, _totals(values, by))
    ordered = _rows(dataset, _at_ranks(values, by))
    at_rank = {(*(row[name] for name in by), row["rank"]): row["value"] for row in ordered}
    found = [_summarised({name: row[name] for name in by}, row, at_rank) for row in totals]
    frame = pd.DataFrame(found, columns=[*by, *SUMMARY])
    return frame.sort_values(list(by), ignore_index=True) if by else frame


def variability(flowsets: Dataset, by: Sequence[str] = ("src_as", "dst_as", "flows")) -> pd.DataFrame:
    """Computes the variability of rates per path, by the number of component flows (the dissertation, section 2.3.3 and Figure 2.1).

    Returns:
        The summary of `rate_bps` (bit/s) by `by`, and `iqr_over_median`: (third quartile - first quartile) / median, without unit;
        null if the median is 0, and if there is only one rate, which has no variability.
    """
    rates = summary(flowsets, "rate_bps", by)
    spread = (rates["p75"] - rates["p25"]).where(rates["count"] > 1)
    return rates.assign(iqr_over_median=spread / rates["p50"].where(rates["p50"] != 0))


def _ranked(table: ir.Table, column: str, by: Sequence[str]) -> ir.Table:
    """Adds the `rank` of each value, from 0, and the number of values in its group."""
    values = table.filter(table[column].notnull()).select(*by, value=table[column])
    return values.mutate(
        rank=ibis.row_number().over(ibis.window(group_by=list(by), order_by="value")),
        members=values.count().over(ibis.window(group_by=list(by))),
    )


def _totals(values: ir.Table, by: Sequence[str]) -> ir.Table:
    whole = values.value.floor() if values.value.type().is_floating() else values.value
    # A sum of int64 can overflow int64.
    total = whole.cast("int64").cast("decimal(38, 0)").sum().cast("string")
    return values.group_by(*by).aggregate(members=values.count(), total=total)


def _at_ranks(values: ir.Table, by: Sequence[str]) -> ir.Table:
    """Returns the values on both sides of each quantile."""
    wanted = [_rank(values.members, thousandths, after) for thousandths in QUANTILES.values() for after in (0, 1)]
    return values.filter(ibis.or_(*(values["rank"] == rank for rank in wanted))).select(*by, "rank", "value")


def _rank(members: ir.IntegerColumn, thousandths: int, after: int) -> ir.IntegerColumn:
    position = (members - 1) * thousandths
    return ((position - position % 1000) / 1000).cast("int64") + after


def _summarised(group: dict[str, Any], row: dict[str, Any], at_rank: dict[tuple[Any, ...], Any]) -> dict[str, Any]:
    count = int(row["members"])
    found: dict[str, Any] = {**group, "count": count, "mean": float(Decimal(row["total"]) / count)}
    for name, thousandths in QUANTILES.items():
        rank, past = divmod((count - 1) * thousandths, 1000)
        low = float(at_rank[(*group.values(), rank)])
        high = float(at_rank[(*group.values(), min(rank + 1, count - 1))])
        found[name] = low + (high - low) * (past / 1000)
    return found


def _rows(dataset: Dataset, table: ir.Table) -> list[dict[str, Any]]:
    rows: pa.Table = dataset.engine.to_pyarrow(table)
    return list(rows.to_pylist())
