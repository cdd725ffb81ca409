"""`thalweg transfers`: the commands that analyse."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..archive import Archive
from ..dataset import Dataset
from ..engines import connect
from ..quantities import whole_number
from ..sources import SourceError, TimeRange
from . import answering, output, parser
from .progress import Bar
from .report import PREFIX

if TYPE_CHECKING:
    from ..transfers import Paths, Transfers

PROGRAM = "thalweg transfers"

ABOUT = """Explain why data transfers were slow.

DATA is the directory of a store, into which `thalweg serve` writes what agents on transfer hosts
report. Peers are transfers over the same path. Times are UTC and select by reception."""

EXAMPLES = """
Slow transfers of the last day:
  thalweg transfers list records --slow --from now-1d
Why one of them was slow:
  thalweg transfers why records 8f3c0a9d
Report of a user, with plots:
  thalweg transfers report records --user 5d41402a --output report
"""

LIST = """Transfers with their verdicts.

The latest transfer is first. Peers reach: the rate of the best cluster of parameters on the path,
or of nine in ten transfers without limits in the hosts."""

LIST_EXAMPLES = """
Transfers that the receiver's disk limited, as JSON:
  thalweg transfers list records --cause receiver_disk --json
Transfers of one host:
  thalweg transfers list records --host dtn1.example.org -n 20
"""

WHY = """Why a transfer was slow: verdict, evidence, peers and advice.

TRANSFER is an identifier of thalweg transfers list, or its first characters."""

WHY_EXAMPLES = """
One transfer:
  thalweg transfers why records 8f3c0a9d
With peers by site, from lines such as "192.0.2.0/24,Lab 1":
  thalweg transfers why records 8f3c0a9d --by sites=sites.csv
"""

PEERS = """Paths, with the pairs of hosts that transfer over each.

Transfers over one path can be compared: the network is the same for all of them."""

PEERS_EXAMPLES = """
By autonomous system, from flow records of the same store:
  thalweg transfers peers records --by asn
By traceroutes, from lines such as "192.0.2.1,198.51.100.7,192.0.2.254,203.0.113.9":
  thalweg transfers peers records --by traceroutes=routes.csv
"""

REPORT = """Report on performance and root causes, as a page with plots and JSON.

Of all transfers, or those of a user or a host. With --store, verdicts, flowsets and the reports of
all users and hosts with slow transfers are written into DATA, from where thalweg serve serves them;
the period is whole hours, by default yesterday."""

REPORT_EXAMPLES = """
All transfers of November:
  thalweg transfers report records --from 2026-11-01 --to 2026-12-01 --output november
Of one host:
  thalweg transfers report records --host dtn1.example.org --output dtn1
Each night, from a timer:
  thalweg transfers report records --store
"""

_SHOWN = (
    *("start_us", "transfer", "application", "sender", "receiver", "bytes", "streams", "rate_bps", "aspiration_bps", "cause", "confidence"),
)


def build(now: datetime) -> argparse.ArgumentParser:
    """Builds the parser. Relative times refer to `now`."""
    root = parser.program(PROGRAM, ABOUT, EXAMPLES)
    commands = root.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True, parser_class=parser.Command)
    this = _command(commands, now, "list", (LIST, LIST_EXAMPLES), "DATA [options]")
    this.add_argument("--user", default="", metavar="USER", help="only transfers of this user")
    this.add_argument("--host", default="", metavar="HOST", help="only transfers from or to this host: its name or address")
    this.add_argument("--cause", default="", metavar="CAUSE", help="only transfers with this cause, such as receiver_disk")
    this.add_argument("--slow", action="store_true", help="only transfers that peers outperform")
    parser.add_rows(this)
    parser.add_answer(this)
    this.set_defaults(run=run_list)
    this = _command(commands, now, "why", (WHY, WHY_EXAMPLES), "DATA TRANSFER [options]")
    this.add_argument("transfer", metavar="TRANSFER", help="identifier, or its first characters")
    this.add_argument("--json", action="store_true", help="print JSON with exact values")
    this.set_defaults(run=run_why)
    this = _command(commands, now, "peers", (PEERS, PEERS_EXAMPLES), "DATA [options]")
    parser.add_rows(this)
    parser.add_answer(this)
    this.set_defaults(run=run_peers)
    this = _command(commands, now, "report", (REPORT, REPORT_EXAMPLES), "DATA [--user USER|--host HOST] (--output DIR|--json|--store)")
    subject = this.add_mutually_exclusive_group()
    subject.add_argument("--user", default="", metavar="USER", help="only transfers of this user")
    subject.add_argument("--host", default="", metavar="HOST", help="only transfers from or to this host")
    target = this.add_mutually_exclusive_group(required=True)
    target.add_argument("-o", "--output", type=Path, metavar="DIR", help="output directory for the page and JSON")
    target.add_argument("--json", action="store_true", help="print JSON with exact values")
    target.add_argument("--store", action="store_true", help="write verdicts, flowsets and all reports into DATA")
    this.add_argument(
        "--reports",
        type=parser.typed(whole_number),
        default=100,
        metavar="N",
        help="with --store, maximum number of users and of hosts (100)",
    )
    this.set_defaults(run=run_report)
    return root


def paths(text: str) -> Paths:
    """Parses how peers are found."""
    from ..groups import ByPrefix, Sites
    from ..transfers import ByAsOfFlows, BySite, ByTraceroute

    if text == "asn":
        return ByAsOfFlows()
    if match := PREFIX.fullmatch(text):
        v4, v6 = int(match[1]), int(match[2] or 48)
        if v4 <= 32 and v6 <= 128:
            return BySite(ByPrefix(v4, v6), f"prefix of {v4} bits (IPv6: {v6})")
    kind, _, path = text.partition("=")
    try:
        if kind == "sites" and path:
            return BySite(Sites.read(path), f"the sites of {path}")
        if kind == "traceroutes" and path:
            return ByTraceroute.read(path)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    raise ValueError(
        f"invalid group {text!r}: expected asn, prefix/LEN, prefix/LEN,LEN (at most 32 and 128), sites=FILE or traceroutes=FILE"
    )


def run_list(chosen: argparse.Namespace) -> None:
    """Runs `list`."""
    with _work(chosen) as (work, transfers):
        with work.bar:
            found = transfers.list(user=chosen.user, host=chosen.host, cause=chosen.cause, slow=chosen.slow)
        is_exact = chosen.json or chosen.csv or chosen.parquet is not None
        work.write(found if is_exact else found.derive(found.table.select(list(_SHOWN))), chosen.limit)
        _note_clocks(transfers)


def run_why(chosen: argparse.Namespace) -> None:
    """Runs `why`."""
    with _work(chosen) as (work, transfers):
        with work.bar:
            found = transfers.why(chosen.transfer)
        print(json.dumps(found.as_dict(), indent=1, allow_nan=False) if chosen.json else found.text())
        _note_clocks(transfers)


def run_peers(chosen: argparse.Namespace) -> None:
    """Runs `peers`."""
    with _work(chosen) as (work, transfers):
        with work.bar:
            found = transfers.peers()
        work.write(found, chosen.limit)


def run_report(chosen: argparse.Namespace) -> None:
    """Runs `report`."""
    from ..transfers.prca import as_json
    from ..transfers.store import write, yesterday

    if chosen.store:
        if chosen.user or chosen.host:
            raise answering.UsageError("--store writes the reports of all users and hosts: leave out --user and --host")
        if chosen.start is None and chosen.end is None:
            chosen.start, chosen.end = yesterday(chosen.now)
    with _work(chosen) as (work, transfers):
        if chosen.store:
            with work.bar:
                written = write(transfers, reports=chosen.reports)
            print(written.index)
            if written.left_out:
                output.note(f"{written.left_out} users and hosts with fewer slow transfers got no report; --reports N allows more")
        else:
            with work.bar:
                found = transfers.report(chosen.output, user=chosen.user, host=chosen.host)
            print(as_json(found) if chosen.json else chosen.output / "index.html", end="" if chosen.json else "\n")
        _note_clocks(transfers)


def _command(commands: Any, now: datetime, name: str, lesson: tuple[str, str], usage: str) -> argparse.ArgumentParser:
    this = parser.command(commands, name, *lesson, usage, program=PROGRAM)
    parser.add_source(this, now, "directory of a store")
    this.add_argument(
        "--by",
        type=parser.typed(paths),
        default=None,
        metavar="GROUPS",
        help="sites whose transfers are peers: prefix/LEN or prefix/LEN,LEN (prefix/24,48); asn; sites=FILE, CSV of prefix,name; "
        "or traceroutes=FILE, CSV of source, destination and the routers in order",
    )
    this.set_defaults(now=now)
    return this


@contextmanager
def _work(chosen: argparse.Namespace) -> Iterator[tuple[answering.Work, Transfers]]:
    with connect(chosen.engine, memory_bytes=chosen.memory, threads=chosen.threads, url=chosen.url) as engine:
        try:
            within = TimeRange(chosen.start, chosen.end)
        except ValueError as error:
            raise answering.UsageError(str(error)) from None
        if not Path(chosen.data).is_dir():
            raise SourceError(f"{chosen.data}: no such directory")
        from ..schema import RECORD_SCHEMA

        records = Dataset(engine, lambda: engine.empty(RECORD_SCHEMA).table)
        bar = Bar(engine, chosen.command)
        archive = Archive(records, directory=Path(chosen.data), within=within)
        transfers = archive.transfers if chosen.by is None else archive.transfers.by(chosen.by)
        yield answering.Work(chosen, archive, bar), transfers


def _note_clocks(transfers: Transfers) -> None:
    from .. import units

    sys.stdout.flush()
    for clock in transfers.evidence.clocks.wrong():
        direction = "ahead" if clock.ahead_us > 0 else "behind"
        output.note(f"{clock.reporter}: its clock is {units.duration(abs(clock.ahead_us) / 1e6)} {direction}; times are corrected by that")
