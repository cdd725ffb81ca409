"""`thalweg flows query`."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from . import answering, parser

ABOUT = """Records that match a filter, or the result of an SQL query.

Filters use nfdump's language; matching records are ordered by start. SQL is a SELECT in DuckDB's
dialect from one of the tables records, flows (reconstructed), elephants and flowsets; it is
translated for other engines. Instants are microseconds since 1970, in columns that end in _us."""

EXAMPLES = """
Large records into a network:
  thalweg flows query records 'dst net 10.0.0.0/8 and bytes > 1g'
Scans: only SYN, without a response, as CSV:
  thalweg flows query records 'proto tcp and flags S and not flags ARPUF' --csv
Records of each exporter:
  thalweg flows query records 'SELECT exporter, count(*) AS n FROM records GROUP BY ALL'
Bytes of flowsets with eight flows:
  thalweg flows query records 'SELECT sum(bytes) AS bytes FROM flowsets WHERE flows = 8'
"""


def add(commands: Any, now: datetime) -> None:
    """Adds the command."""
    this = parser.command(commands, "query", ABOUT, EXAMPLES, "DATA QUERY [options]")
    parser.add_source(this, now)
    parser.add_databases(this)
    this.add_argument("query", metavar="QUERY", help="filter in nfdump syntax, or SQL")
    parser.add_rows(this)
    parser.add_rules(this, sets=True)
    parser.add_answer(this)
    this.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    """Runs the command."""
    with answering.work(chosen) as work:
        with work.bar:
            rows = work.archive.query(chosen.query)
        work.write(rows, chosen.limit)
