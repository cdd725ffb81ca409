"""Elephant flows: more than `threshold` bytes within some window of length W.

A record counts as spread evenly from its start to its end; a record without duration counts at its time. A window [t, t+W]
then holds

    sum over records [s, e] with o bytes:  o                                            if s >= t and e <= t+W
                                            floor(o * (min(e, t+W) - max(s, t)) / (e-s))  otherwise, in doubles

As a function of t, the sum (before rounding) is piecewise linear. Its slope changes where the window starts or ends at the
start or end of a record, and it can turn from rising to falling only where the window starts at the start of a record or ends
at the end of a record. So the maximum is at one of these windows, and only these are examined.

Cost: the records of a flow are sorted into cells. A cell is as long as W or the longest record of the flow, whichever is
longer. So a record or a window overlaps at most two cells, and a window is compared only with the records of its cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import ibis
import ibis.expr.types as ir

from .keys import KEY, POINT
from .saturation import total

if TYPE_CHECKING:
    from .engines import Engine


def elephants(engine: Engine, rows: ir.Table, flows: ir.Table, threshold: int, window_us: int) -> ir.Table:
    """Returns the key and start of each elephant flow, and `is_elephant`, which is true.

    Args:
        engine: The query engine.
        rows: Records, scaled, times in order.
        flows: Flows of more than `threshold` bytes in total; only they can be elephants.
        threshold: Bytes.
        window_us: Length of the window in microseconds.
    """
    suspects = engine.materialise(flows.mutate(suspect=ibis.row_number().over(order_by=[*KEY, "flow_start_us"])))
    pieces = engine.materialise(_of_suspects(rows, suspects))
    longest = pieces.group_by("suspect").aggregate(longest_us=(pieces.flow_end_us - pieces.flow_start_us).max())
    width = longest.select("suspect", width_us=ibis.greatest(longest.longest_us, window_us))
    records, windows = _records_in_cells(pieces, width), _windows_in_cells(pieces, width, window_us)
    met = records.inner_join(windows, ["suspect", "cell"])
    # Both may touch two cells: they meet in the first that both touch.
    met = met.filter(
        met.cell == ibis.greatest(met.first_cell, met.first_cell_of_window),
        met.flow_start_us <= met.begin_us + window_us,
        met.flow_end_us >= met.begin_us,
    )
    within = met.select("suspect", "begin_us", bytes=_bytes_within(met, window_us))
    filled = within.group_by("suspect", "begin_us").aggregate(bytes=total(within.bytes))
    found = filled.filter(filled.bytes > threshold).select("suspect").distinct()
    return suspects.semi_join(found, "suspect").select(*KEY, "flow_start_us", is_elephant=ibis.literal(True))


def _of_suspects(rows: ir.Table, suspects: ir.Table) -> ir.Table:
    """Returns the records of each suspect's chosen point. Flows of a key do not overlap, so a record's start identifies its flow."""
    named = suspects.select("suspect", *KEY, *POINT, begin_us=suspects.flow_start_us, end_us=suspects.flow_end_us)
    joined = rows.inner_join(named, [*KEY, *POINT])
    return joined.filter(joined.flow_start_us.between(joined.begin_us, joined.end_us)).select(
        "suspect", "flow_start_us", "flow_end_us", "bytes"
    )


def _records_in_cells(pieces: ir.Table, width: ir.Table) -> ir.Table:
    sized = pieces.inner_join(width, "suspect")
    return _in_cells(
        sized.select(
            "suspect",
            "flow_start_us",
            "flow_end_us",
            "bytes",
            first_cell=_cell(sized.flow_start_us, sized.width_us),
            last_cell=_cell(sized.flow_end_us, sized.width_us),
        )
    ).drop("last_cell")


def _windows_in_cells(pieces: ir.Table, width: ir.Table, window_us: int) -> ir.Table:
    starting = pieces.select("suspect", begin_us=pieces.flow_start_us)
    ending = pieces.select("suspect", begin_us=pieces.flow_end_us - window_us)
    sized = starting.union(ending, distinct=True).inner_join(width, "suspect")
    windows = sized.select(
        "suspect",
        "begin_us",
        first_cell=_cell(sized.begin_us, sized.width_us),
        last_cell=_cell(sized.begin_us + window_us, sized.width_us),
    )
    return _in_cells(windows).select("suspect", "begin_us", "cell", first_cell_of_window="first_cell")


def _cell(at_us: ir.IntegerColumn, width_us: ir.IntegerColumn) -> ir.IntegerColumn:
    """Returns the cell number of an instant. The double may be slightly off, but never out of order."""
    return (at_us.cast("float64") / width_us.cast("float64")).floor().cast("int64")


def _in_cells(spans: ir.Table) -> ir.Table:
    """Returns a row for each of the one or two cells of a span."""
    first = spans.mutate(cell=spans.first_cell)
    last = spans.filter(spans.last_cell > spans.first_cell).mutate(cell=spans.last_cell)
    return first.union(last)


def _bytes_within(met: ir.Table, window_us: int) -> ir.IntegerColumn:
    """Returns the share of a record within a window."""
    until_us = met.begin_us + window_us
    whole = (met.flow_start_us >= met.begin_us) & (met.flow_end_us <= until_us)
    overlap_us = ibis.least(met.flow_end_us, until_us) - ibis.greatest(met.flow_start_us, met.begin_us)
    length_us = (met.flow_end_us - met.flow_start_us).nullif(0)
    part = met.bytes.cast("float64") * overlap_us.cast("float64") / length_us.cast("float64")
    return whole.ifelse(met.bytes, part.floor().cast("int64"))
