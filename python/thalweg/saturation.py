"""Sums and products that saturate at the maximum int64, as in compiled code, so that invalid records cannot stop an analysis.

Overflow is detected with doubles, so a result within 1024 of the maximum (9.2 exabytes) may saturate early. Spark still
refuses sums beyond it, and says so.
"""

from __future__ import annotations

import ibis
import ibis.expr.types as ir

MAX_COUNT = 2**63 - 1
_LIMIT = 2.0**63


def product(counted: ir.IntegerColumn, factor: ir.IntegerColumn | int) -> ir.IntegerColumn:
    """Multiplies `counted` by `factor`; neither is negative."""
    times = ibis.literal(factor, "int64") if isinstance(factor, int) else factor
    passes = counted.cast("float64") * times.cast("float64") >= _LIMIT
    # The product must not be computed on overflow: DuckDB and Spark would fail.
    return passes.ifelse(ibis.literal(MAX_COUNT, "int64"), counted * passes.ifelse(0, times))


def total(column: ir.IntegerColumn) -> ir.IntegerScalar:
    """Sums a column without negative values."""
    passes = column.cast("float64").sum() >= _LIMIT
    return passes.ifelse(ibis.literal(MAX_COUNT, "int64"), column.sum().cast("int64"))
