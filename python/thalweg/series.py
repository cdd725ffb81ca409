"""Traffic over time: octets, packets and flows of each interval.

A row's octets are spread evenly from its first packet to its last, for a record of a long flow tells of half an hour, and
to count it where it began or ended would show peaks that never were. Of a row that lasts from s to e, an interval that lies
in it whole holds floor(octets * every / (e - s)), the first floor(octets * (its end - s) / (e - s)), and the last what is
left, so that the sum over all intervals is exactly that of the rows. Packets alike; a flow counts where it begins.
"""

from __future__ import annotations

from collections.abc import Sequence

import ibis
import ibis.expr.types as ir
import pandas as pd

from . import counts
from .dataset import Dataset
from .top import grouped, top

MAX_INTERVALS = 100_000
"""Intervals of a series at most."""

OTHER = "other"
"""What all groups but the largest are together."""

_AMOUNTS = ("octets", "packets")


class SeriesError(ValueError):
    """A series that cannot be made."""


def series(
    rows: Dataset,
    every_us: int,
    *,
    by: Sequence[str] = (),
    groups: int = 5,
    start_us: int | None = None,
    end_us: int | None = None,
) -> pd.DataFrame:
    """Traffic of every interval, those without any included, in the order of time and size of the groups.

    Args:
        rows: Records, flows or flowsets.
        every_us: Length of an interval, microseconds; intervals begin at its multiples since 1970 (UTC).
        by: Names of `top.DIMENSIONS`; none: all together.
        groups: How many groups, the largest by octets; the rest is `OTHER`.
        start_us: The interval of this instant is the first, microseconds since 1970; None: that of the first packet.
        end_us: No interval begins at this instant or later; None: the last is that of the last packet.

    Returns:
        `time` (start of the interval, UTC), `group` where there are groups (keys joined by blanks), `octets`, `packets`,
        `flows`, `rate_bps` (mean over the interval, bits per second).

    Raises:
        SeriesError: If the intervals were more than `MAX_INTERVALS`, or `every_us` is not above zero.
        DimensionError: If rows cannot be grouped so.
    """
    if every_us <= 0:
        raise SeriesError("every: an interval is longer than 0")
    keyed, keys = grouped(rows.table, by)
    # A row whose ends are both looked at is there twice in `keyed`, and once in all traffic.
    frame = _spread(rows.derive(_pieces(grouped(rows.table, ())[0], (), every_us)), every_us)
    intervals = _intervals(frame, every_us, start_us, end_us)
    whole = _filled(frame, intervals)
    if not keys:
        return _finished(whole, every_us)
    largest = rows.derive(top(rows.table, by, limit=groups)).to_pandas()[list(keys)]
    found = _spread(rows.derive(_pieces(_only(keyed, largest), keys, every_us)), every_us, keys)
    parts = []
    for values in largest.itertuples(index=False, name=None):
        part = found[(found[list(keys)] == list(values)).all(axis=1)]
        parts.append(_filled(part, intervals).assign(group=" ".join(str(value) for value in values)))
    if not any("address" == key or "port" == key or "as" == key for key in keys):
        rest = whole.copy()
        for part in parts:
            rest[["octets", "packets", "flows"]] -= part[["octets", "packets", "flows"]]
        if (rest[["octets", "packets", "flows"]] != 0).to_numpy().any():
            parts.append(rest.assign(group=OTHER))
    joined = pd.concat(parts or [whole.head(0).assign(group="")], keys=range(len(parts) or 1), names=["rank"])
    joined = joined.reset_index("rank").sort_values(["time_us", "rank"], kind="stable").drop(columns="rank")
    return _finished(joined, every_us)
