"""Plots: SVG in the page's colours, or files with their own colours."""

from __future__ import annotations

import html
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.dates as mdates
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from .. import units
from ..series import OTHER
from .boxes import Box

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Colours that colour-blind readers can distinguish (Okabe & Ito 2008)."""
REST = "#8a8a8a"
INK, GRID = "#222222", "#d8d8d8"

_VARIABLES = {INK: "var(--ink)", GRID: "var(--line)"}
_STYLE: Any = {
    "figure.dpi": 100,
    "font.size": 10,
    "font.family": "sans-serif",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GRID,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "thalweg",
}


def series_svg(series: pd.DataFrame, label: str) -> str:
    """Plots traffic over time, groups stacked; `label` describes the plot."""
    with _figure(9.6, 3.2) as figure:
        _draw_series(figure.subplots(), series)
        return _svg(figure, label)


def save_series(series: pd.DataFrame, path: Path) -> None:
    """Plots the same into a file, in the format of its suffix."""
    with _figure(9.6, 3.6) as figure:
        _draw_series(figure.subplots(), series)
        figure.savefig(path, facecolor="white", metadata={"Date": None} if path.suffix == ".svg" else None)


def rates_svg(paths: Mapping[str, Mapping[int, Box]], label: str) -> str:
    """Draws box plots of rates (bits per second) by number of component flows, a panel per path (Figure 2.1).

    The box reaches from the first quartile to the third, with the median in it; whiskers to the farthest rate within 1.5
    times that range; rates beyond are single points.
    """
    columns = min(2, len(paths))
    rows = math.ceil(len(paths) / columns)
    with _figure(9.6, 3.0 * rows + 0.2) as figure:
        panels = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
        for panel, (path, rates) in zip(panels, paths.items(), strict=False):
            _draw_boxes(panel, path, rates)
        for panel in panels[len(paths) :]:
            panel.set_visible(False)
        for panel in panels[::columns]:
            panel.set_ylabel("rate (bit/s)")
        figure.set_layout_engine("constrained", h_pad=0.12, w_pad=0.1)
        return _svg(figure, label)


def _draw_series(panel: Axes, series: pd.DataFrame) -> None:
    groups = list(dict.fromkeys(series["group"]))
    times = series.loc[series["group"] == groups[0], "time"].dt.tz_localize(None).to_numpy() if groups else np.array([])
    rates = [series.loc[series["group"] == group, "rate_bps"].to_numpy() for group in groups]
    colours = [REST if group == OTHER else COLOURS[index % len(COLOURS)] for index, group in enumerate(groups)]
    if len(times):
        step = times[1] - times[0] if len(times) > 1 else np.timedelta64(1, "s")
        edges = np.append(times, times[-1] + step)
        stacked = [np.append(values, values[-1]) for values in rates]
        panel.stackplot(edges, *stacked, step="post", colors=colours, labels=groups, linewidth=0)
        panel.set_xlim(edges[0], edges[-1])
    panel.set_ylim(bottom=0)
    panel.set_ylabel("rate")
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: units.bit_rate(value)))
    locator = mdates.AutoDateLocator(minticks=3, maxticks=9)  # type: ignore[no-untyped-call]
    panel.xaxis.set_major_locator(locator)
    panel.xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    if groups not in ([], [""]):
        panel.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))


def _draw_boxes(panel: Axes, path: str, rates: Mapping[int, Box]) -> None:
    numbers = sorted(rates)
    drawn = panel.bxp(
        [_drawn_box(rates[number]) for number in numbers],
        widths=0.55,
        patch_artist=True,
        boxprops={"facecolor": COLOURS[5], "edgecolor": COLOURS[0], "linewidth": 1.1},
        medianprops={"color": COLOURS[1], "linewidth": 2},
        whiskerprops={"color": COLOURS[0]},
        capprops={"color": COLOURS[0]},
        flierprops={"marker": "o", "markersize": 2.5, "markerfacecolor": REST, "markeredgecolor": "none"},
    )
    for box in drawn["boxes"]:
        box.set_alpha(0.55)
    panel.set_title(path, loc="left", fontsize=10.5, color=INK)
    panel.set_xticks(range(1, len(numbers) + 1), [f"{number}\nn={rates[number].count:,}" for number in numbers])
    panel.set_xlabel("component flows")
    panel.set_ylim(bottom=0)
    panel.grid(axis="x", visible=False)
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: units.bit_rate(value).removesuffix("bit/s").strip()))


def _drawn_box(box: Box) -> dict[str, Any]:
    whiskers = {"whislo": box.whisker_low, "whishi": box.whisker_high}
    return {"q1": box.p25, "med": box.p50, "q3": box.p75, **whiskers, "fliers": box.outliers}


@contextmanager
def _figure(width: float, height: float) -> Iterator[Figure]:
    with plt.rc_context(_STYLE):
        figure = plt.figure(figsize=(width, height), layout="constrained")
        try:
            yield figure
        finally:
            plt.close(figure)


def _svg(figure: Figure, label: str) -> str:
    """Returns the bare SVG for embedding in the page, in the page's text colour."""
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, variable)
    # The page has no use for what identifies parts, and the same names twice would be an error in it.
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', f'role="img" aria-label="{html.escape(label)}"', text, count=1)
    return text


def histogram_svg(groups: Mapping[str, Sequence[float]], label: str) -> str:
    """Draws histograms of rates (bits per second), one colour a group, over the same bins."""
    with _figure(9.6, 3.0) as figure:
        panel = figure.subplots()
        together = np.concatenate([np.asarray(values, dtype=float) for values in groups.values()]) if groups else np.array([0.0])
        edges = np.histogram_bin_edges(together, bins=30)
        for index, (name, values) in enumerate(groups.items()):
            panel.hist(values, bins=list(edges), color=COLOURS[index % len(COLOURS)], alpha=0.65, label=f"{name} (n={len(values):,})")
        panel.set_xlim(left=0)
        panel.set_xlabel("rate")
        panel.set_ylabel("transfers")
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: units.bit_rate(value)))
        panel.legend(loc="upper left", bbox_to_anchor=(0, -0.2))
        return _svg(figure, label)


def causes_svg(counts: Mapping[str, int], label: str) -> str:
    """Draws the number of transfers of each cause as bars, the most frequent first."""
    with _figure(9.6, 0.35 * len(counts) + 0.9) as figure:
        panel = figure.subplots()
        names = list(counts)[::-1]
        panel.barh(names, [counts[name] for name in names], color=COLOURS[0])
        panel.set_xlabel("transfers")
        panel.grid(axis="y", visible=False)
        return _svg(figure, label)
