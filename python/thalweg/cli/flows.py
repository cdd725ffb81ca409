"""`thalweg flows flows` and `thalweg flows flowsets`."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from ..keys import KEY
from . import answering, parser

ORDERS = {"start": "flow_start_us", "bytes": "bytes", "duration": "duration_ns", "rate": "rate_bps"}
"""Orders and their columns: the earliest first, or the largest."""

IDENTITY = ("flow_start_us", *KEY)
"""Unique columns of flows and flowsets, which order ties."""

FLOWS = """Flows, reconstructed from records.

Records of one flow split by active timeouts are merged. Flows seen by several routers count once,
from the router that saw them longest. An elephant flow sends more than a threshold within a
window of time."""

FLOWS_EXAMPLES = """
All flows of a day, written to a file:
  thalweg flows flows records --from 2026-11-22 --to 2026-11-23 --parquet flows.parquet
The largest elephants:
  thalweg flows flows records --elephants --order bytes -n 20
"""

FLOWSETS = """Parallel flowsets: flows between two hosts that start together.

File transfers often use several parallel connections; their size and rate are those of the flowset.
Flowsets contain elephant flows only, unless --all-flows is given."""

FLOWSETS_EXAMPLES = """
The fastest transfers:
  thalweg flows flowsets records --order rate -n 20
Transfers of eight connections or more, as JSON:
  thalweg flows flowsets records 'flows >= 8' --json
"""


def add(commands: Any, now: datetime) -> None:
    """Adds both commands."""
    for name, about, examples, orders in (
        ("flows", FLOWS, FLOWS_EXAMPLES, ("start", "bytes")),
        ("flowsets", FLOWSETS, FLOWSETS_EXAMPLES, tuple(ORDERS)),
    ):
        this = parser.command(commands, name, about, examples, "DATA [FILTER] [options]")
        parser.add_source(this, now)
        parser.add_databases(this)
        this.add_argument("filter", metavar="FILTER", nargs="?", default="", help="filter in nfdump syntax")
        if name == "flows":
            this.add_argument("--elephants", action="store_true", help="only elephant flows (faster)")
        this.add_argument("--order", choices=orders, default="start", help="sort order: earliest (start) or largest first")
        parser.add_rows(this)
        parser.add_rules(this, sets=name == "flowsets")
        parser.add_answer(this)
        this.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    """Runs the command."""
    import ibis

    with answering.work(chosen) as work:
        of = "elephants" if chosen.command == "flows" and chosen.elephants else chosen.command
        with work.bar:
            rows = work.archive.matching(chosen.filter, of)
        first = ORDERS[chosen.order]
        then = [name for name in rows.table.columns if name in IDENTITY and name != first]
        key = first if first == "flow_start_us" else ibis.desc(first)
        ordered = rows.derive(rows.table.order_by([key, *then]))
        work.write(ordered, chosen.limit)
