"""Sums and products that stop at the greatest int64, as compiled code's do: one exporter's nonsense must not end an analysis.

Which ones pass it is told by doubles, so a result within 1024 below the greatest (9.2 exabytes) may be taken for the greatest. Spark still
refuses sums beyond it, and says so.
"""

from __future__ import annotations

import ibis
import ibis.expr.types as ir

GREATEST = 2**63 - 1
_LIMIT = 2.0**63


def product(counted: ir.IntegerColumn, factor: ir.IntegerColumn | int) -> ir.IntegerColumn:
    """`counted` times `factor`; neither is negative."""
    times = ibis.literal(factor, "int64") if isinstance(factor, int) else factor
    passes = counted.cast("float64") * times.cast("float64") >= _LIMIT
    # Where it passes, it must not be worked out either: DuckDB and Spark refuse.
    return passes.ifelse(ibis.literal(GREATEST, "int64"), counted * passes.ifelse(0, times))


def total(column: ir.IntegerColumn) -> ir.IntegerScalar:
    """Sum of a column without negative values."""
    passes = column.cast("float64").sum() >= _LIMIT
    return passes.ifelse(ibis.literal(GREATEST, "int64"), column.sum().cast("int64"))
