"""What a row counts: bytes and packets, scaled by sampling where that is still to be done.

Products and sums stop at the greatest int64; see `saturation`.
"""

from __future__ import annotations

import ibis
import ibis.expr.types as ir

from .saturation import product


def byte_count(table: ir.Table) -> ir.IntegerValue:
    """Bytes of the IP layer that each row stands for."""
    return _scaled(table, "bytes")


def packets(table: ir.Table) -> ir.IntegerValue:
    """Packets that each row stands for."""
    return _scaled(table, "packets")


def flows(table: ir.Table) -> ir.IntegerValue:
    """Flows that each row stands for: those of a flowset, else one."""
    return table["flows"] if "flows" in table.columns else ibis.literal(1, "int64")


def _scaled(table: ir.Table, column: str) -> ir.IntegerValue:
    """Records hold what was counted, one packet in so many; flows and flowsets, which no one exporter told, are scaled."""
    if "exporter" not in table.columns:
        return table[column]
    return product(table[column], ibis.greatest(table["sampling_interval"], 1))
