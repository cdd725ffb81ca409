"""`thalweg flows flows` and `thalweg flows flowsets`: what records become."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from ..keys import KEY
from . import answering, parser

ORDERS = {"start": "flow_start_us", "bytes": "bytes", "duration": "duration_us", "rate": "rate_bps"}
"""Names of orders, and their columns: the earliest first, or the largest."""

IDENTITY = ("flow_start_us", *KEY)
"""What no two flows or flowsets share: it orders those that are equal otherwise."""

FLOWS = """Flows, put together from records.

Records of one flow that active timeouts cut are joined; what several routers saw is counted once,
as the one that saw it longest counted it. A cheetah flow sends more than a threshold within a
window of time."""

FLOWS_EXAMPLES = """
All of a day, into a file:
  thalweg flows flows records --from 2026-11-22 --to 2026-11-23 --parquet flows.parquet
The largest cheetahs:
  thalweg flows flows records --cheetahs --order bytes -n 20
"""

FLOWSETS = """Parallel flowsets: flows between two hosts that begin together.

File transfers run over several connections at once; their size and rate are those of the set. Sets
are of cheetah flows, unless --all-flows is given."""

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
        this.add_argument("filter", metavar="FILTER", nargs="?", default="", help="filter in nfdump syntax")
        if name == "flows":
            this.add_argument("--cheetahs", action="store_true", help="only elephant flows (faster)")
        this.add_argument("--order", choices=orders, default="start", help="sort order: earliest (start) or largest first")
        parser.add_rows(this)
        parser.add_rules(this, sets=name == "flowsets")
        parser.add_answer(this)
        this.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    """Answers."""
    import ibis

    with answering.work(chosen) as work:
        of = "cheetahs" if chosen.command == "flows" and chosen.cheetahs else chosen.command
        with work.bar:
            rows = work.archive.matching(chosen.filter, of)
        first = ORDERS[chosen.order]
        then = [name for name in rows.table.columns if name in IDENTITY and name != first]
        key = first if first == "flow_start_us" else ibis.desc(first)
        ordered = rows.derive(rows.table.order_by([key, *then]))
        work.answer(ordered, chosen.limit)
