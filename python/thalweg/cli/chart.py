"""A time series on a terminal: one bar per interval, or one line of blocks for many intervals or several groups."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from .. import units

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = " ▁▂▃▄▅▆▇█"
_BARS = 60
"""Maximum number of intervals shown one per line."""
_ROWS = 8
"""Height of the chart of all intervals."""


def chart(series: pd.DataFrame, width: int) -> str:
    """Draws the result of `series.series` in `width` columns."""
    if series.empty:
        return "no traffic"
    groups = list(dict.fromkeys(series["group"]))
    if groups != [""]:
        return _lines(series, groups, width)
    return _bars(series, width) if len(series) <= _BARS else _picture(series, width)


def _bars(series: pd.DataFrame, width: int) -> str:
    """Draws a line per interval."""
    cells = [(_time(row.time), units.bit_rate(row.rate_bps), units.size(row.bytes), units.count(row.flows)) for row in series.itertuples()]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    room = max(10, width - sum(widths) - 2 * 4 - len(" flows"))
    largest = max(float(series["rate_bps"].max()), 1.0)
    lines = []
    for (time, rate, size, flows), value in zip(cells, series["rate_bps"], strict=True):
        bar = _bar(float(value) / largest, room)
        lines.append(f"{time}  {bar:<{room}}  {rate:>{widths[1]}}  {size:>{widths[2]}}  {flows:>{widths[3]}} flows")
    return "\n".join(lines)


def _bar(fraction: float, room: int) -> str:
    eighths = round(fraction * room * 8)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def _picture(series: pd.DataFrame, width: int) -> str:
    """Draws all intervals in one chart, several per column."""
    room = width - 16
    rates = _resampled(series["rate_bps"].to_numpy(), room)
    largest = max(float(rates.max()), 1.0)
    heights = np.round(rates / largest * _ROWS * 8).astype(int)
    lines = []
    for row in range(_ROWS - 1, -1, -1):
        blocks = "".join(_HEIGHTS[min(max(height - 8 * row, 0), 8)] for height in heights)
        label = units.bit_rate(largest * (row + 1) / _ROWS) if row in (_ROWS - 1, _ROWS // 2 - 1) else ""
        lines.append(f"{label:>14} {blocks}".rstrip())
    return "\n".join([*lines, _axis(series, 15, len(heights))])


def _lines(series: pd.DataFrame, groups: list[str], width: int) -> str:
    """Draws a line per group, all on one scale."""
    label = max(map(len, groups))
    numbers = "  mean 999.9 Gbit/s  max 999.9 Gbit/s"
    room = max(10, width - label - 2 - len(numbers))
    rates = {group: _resampled(series.loc[series["group"] == group, "rate_bps"].to_numpy(), room) for group in groups}
    largest = max(1.0, *(float(values.max()) for values in rates.values()))
    lines = []
    for group, values in rates.items():
        blocks = "".join(_HEIGHTS[round(float(value) / largest * 8)] for value in values)
        of_group = series.loc[series["group"] == group, "rate_bps"]
        lines.append(f"{group:<{label}}  {blocks}  mean {units.bit_rate(of_group.mean())}, max {units.bit_rate(of_group.max())}")
    return "\n".join([*lines, _axis(series, label + 2, len(next(iter(rates.values()))))])


def _resampled(values: np.ndarray, columns: int) -> np.ndarray:
    """Averages neighbours to fit into the given number of columns."""
    if len(values) <= columns:
        return values
    edges = np.linspace(0, len(values), columns + 1).astype(int)
    return np.array([values[begin:end].mean() for begin, end in itertools.pairwise(edges)])


def _axis(series: pd.DataFrame, indent: int, length: int) -> str:
    first, last = _time(series["time"].iloc[0]), _time(series["time"].iloc[-1])
    between = max(2, length - len(first) - len(last))
    return " " * indent + first + " " * between + last


def _time(at: pd.Timestamp) -> str:
    return f"{at:%m-%d %H:%M:%S}"
