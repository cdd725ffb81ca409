"""Traffic over time: bytes, packets and flows of each interval.

The bytes of a row are spread evenly from its first packet to its last: a record of a long flow can last half an hour, and
counted at its start or end it would show a peak that did not exist. For a row that lasts from s to e, an interval entirely
within it gets floor(bytes * every / (e - s)), the first interval floor(bytes * (its end - s) / (e - s)), and the last one the
rest, so the sum over all intervals is exactly that of the rows. Packets are spread in the same way; a flow counts at its start.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import ibis
import ibis.expr.types as ir
import numpy as np
import pandas as pd

from .dataset import Dataset
from .dimensions import DimensionError, dimensions
from .errors import QuestionError
from .top import grouped, top

MAX_INTERVALS = 100_000
"""Maximum number of intervals in a series."""

OTHER = "other"
"""Name of all groups except the largest."""

_AMOUNTS = ("bytes", "packets", "flows")


class SeriesError(QuestionError):
    """An invalid series."""


def series(
    rows: Dataset,
    every_us: int,
    *,
    by: Sequence[str] = (),
    groups: int = 5,
    start_us: int | None = None,
    end_us: int | None = None,
) -> pd.DataFrame:
    """Computes the traffic of every interval, including empty ones.

    Args:
        rows: Records, flows or flowsets.
        every_us: Length of an interval, microseconds; intervals begin at its multiples since 1970 (UTC).
        by: Names of `dimensions.DIMENSIONS` that concern one end or none; empty: all traffic together.
        groups: Number of groups, the largest by bytes; the others together are `OTHER`.
        start_us: A time in the first interval, in microseconds since 1970; None: the first packet's.
        end_us: The end, exclusive, in microseconds since 1970; None: after the last packet.

    Returns:
        `time` (start of the interval, UTC), `group` (keys joined by blanks; empty without `by`), `bytes`, `packets`, `flows`,
        `rate_bps` (mean over the interval, bits per second); by group, the largest first, and time.

    Raises:
        SeriesError: If there would be more than `MAX_INTERVALS` intervals, or `every_us` is not above zero.
        DimensionError: If a dimension or the order is invalid.
    """
    if every_us <= 0:
        raise SeriesError("every: expected an interval longer than 0")
    if any(dimension.either for dimension in dimensions(by)):
        raise DimensionError(f"by: {','.join(by)} counts each row for both ends, so parts do not add up; use src or dst")
    names, label = _groups(rows, by, groups)
    pieces = rows.derive(_pieces(rows.table, by, label, every_us)).to_pyarrow().to_pandas()
    times = _intervals(pieces, every_us, start_us, end_us)
    parts = [_spread(pieces[pieces["group"] == name], times, every_us).assign(group=name) for name in names]
    return _finished(parts, every_us)


def _groups(rows: Dataset, by: Sequence[str], limit: int) -> tuple[list[str], Any]:
    """Returns the names of the groups, the largest first, and the function that returns a row's group."""
    if not by:
        return [""], lambda _: ibis.literal("")
    keys = [key for dimension in dimensions(by) for key in dimension.keys]
    largest = rows.derive(top(rows.table, by, limit=limit + 1)).to_pyarrow().select(keys).to_pylist()
    chosen = {" ".join(str(value) for value in row.values()): row for row in largest[:limit]}

    def label(table: ir.Table) -> ir.StringValue:
        branches = [
            (functools.reduce(operator.and_, (table[key] == value for key, value in row.items())), name) for name, row in chosen.items()
        ]
        return ibis.cases(*branches, else_=OTHER) if branches else ibis.literal(OTHER)

    return [*chosen, *([OTHER] if len(largest) > limit else [])], label


def _pieces(rows: ir.Table, by: Sequence[str], label: Any, every_us: int) -> ir.Table:
    """For each group, first and last interval: the amounts in the first, in the last, and in each between them."""
    keyed, _ = grouped(rows, by)
    start = ibis.least(keyed["flow_start_us"], keyed["flow_end_us"])
    end = ibis.greatest(keyed["flow_start_us"], keyed["flow_end_us"])
    timed = keyed.mutate(group=label(keyed), first_us=start - start % every_us, last_us=end - end % every_us, start_us=start, end_us=end)
    is_within_one = timed["first_us"] == timed["last_us"]
    length_us = ibis.greatest(timed["end_us"] - timed["start_us"], 1)
    between = ((timed["last_us"] - timed["first_us"]) / every_us).cast("int64") - 1
    columns: dict[str, ir.IntegerValue] = {}
    for name in ("bytes", "packets"):
        whole = timed[name]
        head = ibis.ifelse(is_within_one, whole, _share(whole, timed["first_us"] + every_us - timed["start_us"], length_us))
        full = ibis.ifelse(is_within_one, 0, _share(whole, every_us, length_us))
        tail = ibis.ifelse(is_within_one, 0, whole - head - full * between)
        columns |= {f"{name}_head": head, f"{name}_full": full, f"{name}_tail": tail}
    parts = timed.select("group", "first_us", "last_us", flows_head=timed["flows"], **columns)
    return parts.group_by("group", "first_us", "last_us").aggregate(
        **{name: parts[name].sum().cast("int64") for name in parts.columns if name not in ("group", "first_us", "last_us")}
    )


def _share(whole: ir.IntegerValue, overlap_us: ir.IntegerValue | int, length_us: ir.IntegerValue) -> ir.IntegerValue:
    overlap = overlap_us if isinstance(overlap_us, int) else overlap_us.cast("float64")
    return (whole.cast("float64") * overlap / length_us.cast("float64")).floor().cast("int64")


def _intervals(pieces: pd.DataFrame, every_us: int, start_us: int | None, end_us: int | None) -> np.ndarray:
    """Returns the starts of the intervals, in microseconds since 1970."""
    if pieces.empty and (start_us is None or end_us is None):
        return np.empty(0, dtype=np.int64)
    first = int(pieces["first_us"].min()) if start_us is None else start_us - start_us % every_us
    end = int(pieces["last_us"].max()) + 1 if end_us is None else end_us
    if (end - first) / every_us > MAX_INTERVALS:
        raise SeriesError(f"series: more than {MAX_INTERVALS:,} intervals of {every_us / 1e6:g} s; use longer intervals or a time range")
    return np.arange(first, end, every_us, dtype=np.int64)


def _spread(pieces: pd.DataFrame, times: np.ndarray, every_us: int) -> pd.DataFrame:
    """Computes the traffic of each interval."""
    columns = {"time_us": times}
    for name in _AMOUNTS:
        columns[name] = np.zeros(len(times), dtype=np.int64)
    if len(times):
        first = ((pieces["first_us"].to_numpy() - times[0]) // every_us).astype(np.int64)
        last = ((pieces["last_us"].to_numpy() - times[0]) // every_us).astype(np.int64)
        _add(columns["flows"], first, pieces["flows_head"])
        for name in ("bytes", "packets"):
            _add(columns[name], first, pieces[f"{name}_head"])
            _add(columns[name], last, pieces[f"{name}_tail"])
            # A value for a range of intervals is added at its first and subtracted after its last.
            change = np.zeros(len(times), dtype=np.int64)
            _add(change, np.maximum(first + 1, 0), pieces[f"{name}_full"])
            _add(change, np.maximum(last, 0), -pieces[f"{name}_full"])
            columns[name] += np.cumsum(change)
    return pd.DataFrame(columns)


def _add(to: np.ndarray, places: np.ndarray, amounts: pd.Series) -> None:
    """Adds each amount at its index, unless it is out of range."""
    is_inside = (places >= 0) & (places < len(to))
    np.add.at(to, places[is_inside], amounts.to_numpy(dtype=np.int64)[is_inside])


def _finished(parts: list[pd.DataFrame], every_us: int) -> pd.DataFrame:
    joined = pd.concat(parts, ignore_index=True)
    joined.insert(0, "time", pd.to_datetime(joined.pop("time_us"), unit="us", utc=True))
    joined.insert(1, "group", joined.pop("group"))
    joined["rate_bps"] = joined["bytes"] * 8 * 1e6 / every_us
    return joined
