"""Interface counters: of sFlow agents (`thalweg collect`), and of polled routers and hosts (`[[poll]]` of `thalweg serve`).

counters = interface_counters(engine, "/var/lib/thalweg")
interface_rates(counters).to_pandas()
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import ibis

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from .dataset import Dataset
    from .engines import Engine

FOLDER = "interface-counters"
"""Directory of the dataset within that of a collector."""

_WRAP = 1 << 32
_COUNTERS = ("in_bytes", "out_bytes")
_NARROW = (
    "in_unicast_packets",
    "in_discards",
    "in_errors",
    "out_unicast_packets",
    "out_discards",
    "out_errors",
)


def interface_counters(engine: Engine, source: str | Path, *, start: datetime | None = None, end: datetime | None = None) -> Dataset:
    """Opens the interface counters of a collector: one row per interface and reading, see docs/reference/flow-records.md.

    Args:
        engine: The engine that computes.
        source: The directory of a collector, or its `interface-counters`, or files.
        start: Earliest time of reception, inclusive.
        end: Latest time of reception, exclusive.

    Raises:
        SourceError: If no files are found.
    """
    folder = Path(source) / FOLDER
    return engine.open(folder if folder.is_dir() else source, start=start, end=end)


def interface_rates(counters: Dataset) -> Dataset:
    """Returns the differences of successive readings of each interface.

    Counters of 32 bits are counted through a wrap. A lower counter of bytes is a reset: the row is left out.

    Returns:
        `received` (of the later reading), `exporter`, `interface`, `seconds`, `in_bps`, `out_bps`, and the increase of each packet
        counter under its name.
    """
    table = counters.table
    window = ibis.window(group_by=["exporter", "observation_domain_id", "interface"], order_by="received_us")

    def before(name: str) -> ir.Value:
        return table[name].cast("int64").lag().over(window)

    increase = {name: table[name].cast("int64") - before(name) for name in ("received_us", *_COUNTERS, *_NARROW)}
    rows = table.select(
        "received_us",
        "exporter",
        "interface",
        elapsed_us=increase.pop("received_us"),
        **{f"more_{name}": value for name, value in increase.items()},
    )
    rows = rows.filter((rows.elapsed_us > 0) & (rows.more_in_bytes >= 0) & (rows.more_out_bytes >= 0))
    seconds = rows.elapsed_us / 1e6

    def wrapped(name: str) -> ir.Value:
        more = rows[f"more_{name}"]
        return ibis.ifelse(more < 0, more + _WRAP, more)

    return counters.derive(
        rows.select(
            "received_us",
            "exporter",
            "interface",
            seconds=seconds,
            in_bps=rows.more_in_bytes * 8 / seconds,
            out_bps=rows.more_out_bytes * 8 / seconds,
            **{name: wrapped(name) for name in _NARROW},
        )
    )
