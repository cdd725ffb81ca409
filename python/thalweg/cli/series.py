"""`thalweg flows series`."""

from __future__ import annotations

import argparse
import shutil
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..archive import TABLES
from ..engines.engine import microseconds
from ..quantities import names, span_us, whole_number
from . import answering, parser

if TYPE_CHECKING:
    import pandas as pd

ABOUT = """Traffic over time.

Each row's bytes are spread evenly from its first packet to its last; a flow counts in
the interval of its start. Intervals start at multiples of their length since 1970 (UTC).
A flow that several routers exported counts once, as in thalweg flows top."""

EXAMPLES = """
The last hour:
  thalweg flows series records --every 1m --from now-1h
A day by protocol, as a plot:
  thalweg flows series records --every 5m --by protocol --plot day.svg
Traffic of one service, as CSV:
  thalweg flows series records --every 1h 'dst port 443' --csv
"""

PLOTS = (".png", ".svg", ".pdf")


def add(commands: Any, now: datetime) -> None:
    """Adds the command."""
    this = parser.command(commands, "series", ABOUT, EXAMPLES, "DATA [FILTER] [--every TIME] [--by DIMENSION,...] [options]")
    parser.add_source(this, now)
    parser.add_databases(this)
    this.add_argument("filter", metavar="FILTER", nargs="?", default="", help="filter in nfdump syntax")
    this.add_argument("--every", type=parser.typed(span_us), default=300_000_000, metavar="TIME", help="interval length (5m)")
    this.add_argument("--by", type=names, default=[], metavar="DIMENSION,...", help="dimensions to group by, as in thalweg flows top")
    this.add_argument(
        "-n", "--groups", type=parser.typed(whole_number), default=5, metavar="N", help="number of groups; all others are one group (5)"
    )
    parser.add_of(this, TABLES)
    this.add_argument("--plot", type=parser.typed(plot_file), metavar="FILE", help=f"write a plot: {', '.join(PLOTS)}")
    parser.add_rules(this, sets=True)
    parser.add_answer(this)
    this.set_defaults(run=run)


def plot_file(text: str) -> Path:
    """Parses a plot file name, whose suffix selects the format."""
    path = Path(text)
    if path.suffix not in PLOTS:
        raise ValueError(f"invalid plot file {text!r}: expected a name ending in one of {', '.join(PLOTS)}")
    return path


def run(chosen: argparse.Namespace) -> None:
    """Runs the command."""
    from ..series import series

    start_us, end_us = (None if at is None else microseconds(at) for at in (chosen.start, chosen.end))
    with answering.work(chosen) as work:
        with work.bar:
            rows = work.archive.counted(chosen.filter, chosen.of, chosen.by, every_router=chosen.every_router)
            found = series(rows, chosen.every, by=chosen.by, groups=chosen.groups, start_us=start_us, end_us=end_us)
        _show(work, found)
        work.note(rows)


def _show(work: answering.Work, found: pd.DataFrame) -> None:
    import pyarrow as pa

    from . import chart

    chosen = work.chosen
    if chosen.plot is not None:
        from ..report.plots import save_series

        save_series(found, chosen.plot)
    elif not work.write_exact(pa.Table.from_pandas(found, preserve_index=False)):
        width = shutil.get_terminal_size((100, 24)).columns
        print(chart.chart(found, width))
