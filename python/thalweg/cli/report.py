"""`thalweg flows report`."""

from __future__ import annotations

import argparse
import re
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import answering, parser

if TYPE_CHECKING:
    from ..groups import Grouping

ABOUT = """Report on transfers: a page with tables and plots.

For each group of hosts: tables of parallel transfers (flowsets) by number of flows, size, rate and
duration; tables of single flows; rates on the busiest paths, and their variability; the largest,
fastest and longest transfers; traffic over time; the method with its parameters. All tables are
also written as CSV and JSON with exact values."""

EXAMPLES = """
By autonomous system:
  thalweg flows report records --by asn --output report
By network, for November:
  thalweg flows report records --by prefix/24 --from 2026-11-01 --to 2026-12-01 --output november
By site, from lines such as "192.0.2.0/24,Lab 1":
  thalweg flows report records --by sites=sites.csv --output report
Where no flow moves 1 GB in a minute:
  thalweg flows report records --by asn --threshold 10MB --output report
"""

PREFIX = re.compile(r"prefix/(\d{1,3})(?:,(\d{1,3}))?")


def add(commands: Any, now: datetime) -> None:
    """Adds the command."""
    this = parser.command(commands, "report", ABOUT, EXAMPLES, "DATA --by GROUPS --output DIR [options]")
    parser.add_source(this, now)
    parser.add_databases(this)
    this.add_argument(
        "--by",
        type=parser.typed(grouping),
        required=True,
        metavar="GROUPS",
        help="asn; prefix/LEN or prefix/LEN,LEN, lengths for IPv4 and IPv6 (default 48 for IPv6); sites=FILE, CSV of prefix,name",
    )
    this.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="output directory for the page, CSV and JSON")
    parser.add_rules(this, sets=True)
    this.set_defaults(run=run)


def grouping(text: str) -> tuple[str, Grouping]:
    """Parses a grouping of hosts."""
    from ..groups import ByAs, ByPrefix, Sites

    if text == "asn":
        return "autonomous system", ByAs()
    if match := PREFIX.fullmatch(text):
        v4, v6 = int(match[1]), int(match[2] or 48)
        if v4 <= 32 and v6 <= 128:
            return f"prefix of {v4} bits (IPv6: {v6})", ByPrefix(v4, v6)
    if text.startswith("sites="):
        path = text.removeprefix("sites=")
        try:
            return f"the sites of {path}", Sites.read(path)
        except OSError as error:
            raise ValueError(f"{path}: {error.strerror}") from None
    raise ValueError(f"invalid group {text!r}: expected asn, prefix/LEN, prefix/LEN,LEN (at most 32 and 128) or sites=FILE")


def run(chosen: argparse.Namespace) -> None:
    """Runs the command."""
    from ..report import collect, write  # drawing takes a second to import

    words, groups = chosen.by
    about = {"data": chosen.data, "by": words, "from": _told(chosen.start), "to": _told(chosen.end)}
    with answering.work(chosen) as work, work.bar:
        contents = collect(work.archive, groups, about)
    for path in write(contents, chosen.output)[:1]:
        print(path)


def _told(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
