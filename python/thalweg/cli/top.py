"""`thalweg flows top`."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from ..archive import TABLES
from ..dimensions import DIMENSIONS, ORDERS
from ..quantities import names, whole_number
from . import answering, parser

ABOUT = """Top talkers: the largest groups.

A flow that several routers exported counts once: by the records of the observation point (router,
domain, direction) that saw it longest. By exporter or interface, it counts once at each router.
--every-router counts all records.

Rows are grouped by dimensions; combine several with commas:
""" + "\n".join(f"  {name:<18} {dimension.meaning}" for name, dimension in DIMENSIONS.items())

EXAMPLES = """
Top talkers:
  thalweg flows top records
Services of one network by packets:
  thalweg flows top records --by protocol,dst-port --order packets 'src net 192.0.2.0/24'
The largest transfers:
  thalweg flows top records --of flowsets --by pair -n 20
Traffic of each router, in which a flow counts at every router:
  thalweg flows top records --by exporter
"""


def add(commands: Any, now: datetime) -> None:
    """Adds the command."""
    this = parser.command(commands, "top", ABOUT, EXAMPLES, "DATA [FILTER] [--by DIMENSION,...] [options]")
    parser.add_source(this, now)
    parser.add_databases(this)
    this.add_argument("filter", metavar="FILTER", nargs="?", default="", help="filter in nfdump syntax")
    this.add_argument("--by", type=names, default=["src"], metavar="DIMENSION,...", help="dimensions to group by (src)")
    this.add_argument("--order", choices=ORDERS, default=ORDERS[0], help="sort order (bytes)")
    this.add_argument("-n", "--limit", type=parser.typed(whole_number), default=10, metavar="N", help="maximum number of groups (10)")
    parser.add_of(this, TABLES)
    parser.add_rules(this, sets=True)
    parser.add_answer(this)
    this.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    """Runs the command."""
    with answering.work(chosen) as work:
        with work.bar:
            rows = work.archive.top(
                chosen.by,
                order=chosen.order,
                limit=chosen.limit,
                matching=chosen.filter,
                of=chosen.of,
                every_router=chosen.every_router,
            )
        work.write(rows, limit=None)
