"""Counts of rows: bytes and packets, scaled by sampling where they are unscaled.

Products and sums saturate at the maximum int64; see `saturation`.
"""

from __future__ import annotations

import ibis
import ibis.expr.types as ir

from .saturation import product


def byte_count(table: ir.Table) -> ir.IntegerValue:
    """Returns the bytes of the IP layer that each row stands for."""
    return _scaled(table, "bytes")


def packets(table: ir.Table) -> ir.IntegerValue:
    """Returns the packets that each row stands for."""
    return _scaled(table, "packets")


def flows(table: ir.Table) -> ir.IntegerValue:
    """Returns the flows that each row stands for: those of a flowset, otherwise one."""
    return table["flows"] if "flows" in table.columns else ibis.literal(1, "int64")


def _scaled(table: ir.Table, column: str) -> ir.IntegerValue:
    """Whether rows are unscaled: records are; flows and flowsets, which have no exporter, are scaled."""
    if "exporter" not in table.columns:
        return table[column]
    return product(table[column], ibis.greatest(table["sampling_interval"], 1))
