"""The command line of `thalweg flows`: parsers and shared options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from ..engines import NAMES as ENGINES
from ..parameters import GAP_S, RULES, TAU_S, THRESHOLD_BYTES, WINDOW_S
from ..quantities import instant, size, span_us, whole_number

ABOUT = """Analyse flow records: top talkers, parallel transfers (flowsets), time series.

DATA is a directory written by `thalweg collect`, `serve` or `watch --records`, a Parquet file, or a
glob pattern. Byte and packet counts are scaled by the sampling interval. FILTER uses nfdump syntax.
Times are UTC."""

EXAMPLES = """
Report transfers between networks, with plots:
  thalweg flows report records --by asn --output report
Top senders of the last hour:
  thalweg flows top records --by src --from now-1h
Traffic of a service over time:
  thalweg flows series records --every 5m 'dst port 443'
Large records into a network:
  thalweg flows query records 'dst net 10.0.0.0/8 and bytes > 1g'
Query with SQL:
  thalweg flows query records 'SELECT exporter, count(*) FROM records GROUP BY ALL'
"""

EXIT_CODES = """
0  Success.
1  Failure; the message names the reason.
2  Invalid command line; nothing was started.
"""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help of 100 columns that shows the value of an option once: `-n, --limit N`."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=24, width=100)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


class Command(argparse.ArgumentParser):
    """A command whose FILTER may follow options: argparse alone takes DATA and FILTER only side by side."""

    _intermixed = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._intermixed:
            return super().parse_known_args(args, namespace)
        self._intermixed = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._intermixed = False


def program(name: str = "thalweg flows", about: str = ABOUT, examples: str = EXAMPLES) -> argparse.ArgumentParser:
    """Returns the parser of a command line without its commands."""
    return argparse.ArgumentParser(name, **_lesson(about, examples))


def command(commands: Any, name: str, about: str, examples: str, usage: str, *, program: str = "thalweg flows") -> argparse.ArgumentParser:
    """Adds a command with description and examples; the first line of `about` is its summary in the list of commands."""
    first = about.partition("\n")[0].rstrip(".")
    usage = f"{program} {name} {usage}"
    parser: argparse.ArgumentParser = commands.add_parser(name, help=first[0].lower() + first[1:], usage=usage, **_lesson(about, examples))
    return parser


def _lesson(about: str, examples: str) -> dict[str, Any]:
    indented = [text.strip().replace("\n", "\n  ") for text in (examples, EXIT_CODES)]
    return {
        "description": about,
        "epilog": f"examples:\n  {indented[0]}\n\nexit codes:\n  {indented[1]}",
        "formatter_class": Formatter,
        "allow_abbrev": False,
    }


def typed(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Wraps a parser of values so that argparse shows its error message."""

    def value(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return value


def add_source(parser: argparse.ArgumentParser, now: datetime, data: str = "directory, file or pattern of flow records") -> None:
    """Adds the options that select data and engine."""
    parser.add_argument("data", metavar="DATA", help=data)
    group = parser.add_argument_group("data")
    time = typed(lambda text: instant(text, now))
    group.add_argument("--from", dest="start", type=time, metavar="TIME", help="start of the time range: 2026-11-22T13:30, now-90m")
    group.add_argument("--to", dest="end", type=time, metavar="TIME", help="end of the time range")
    group = parser.add_argument_group("engine")
    group.add_argument(
        "--engine",
        choices=ENGINES,
        default="auto",
        metavar="NAME",
        help=f"query engine: {', '.join(ENGINES)} (auto: the fastest that is installed)",
    )
    group.add_argument("--url", metavar="URL", help="address of the Spark master or database server")
    group.add_argument("--memory", type=typed(size), metavar="SIZE", help="memory limit, such as 4GiB")
    group.add_argument("--threads", type=typed(whole_number), metavar="N", help="number of threads")


def add_databases(parser: argparse.ArgumentParser) -> None:
    """Adds the options of databases of countries and AS numbers."""
    group = parser.add_argument_group("countries and AS numbers")
    group.add_argument(
        "--mmdb",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="database in MMDB format (GeoLite2, DB-IP, IPinfo) that fills countries and AS numbers where records have none; "
        "the first that knows an address applies",
    )
    group.add_argument("--mmdb-replace-as", action="store_true", help="replace AS numbers of records by those of the databases")


def add_of(parser: argparse.ArgumentParser, tables: tuple[str, ...]) -> None:
    """Adds the option that selects records or flows."""
    parser.add_argument(
        "--of",
        choices=tables,
        default=tables[0],
        metavar="TABLE",
        help=f"table: {', '.join(tables)}",
    )
    parser.add_argument(
        "--every-router",
        action="store_true",
        help="of records, count a flow once for each router that exported it; by default it counts once, by the records "
        "of the router that saw it longest",
    )


def add_answer(parser: argparse.ArgumentParser) -> None:
    """Adds the output formats."""
    group = parser.add_argument_group("output").add_mutually_exclusive_group()
    group.add_argument("--json", action="store_true", help="print JSON lines with exact values")
    group.add_argument("--csv", action="store_true", help="print CSV with exact values")
    group.add_argument("--parquet", metavar="FILE", help="write a Parquet file")


def add_rules(parser: argparse.ArgumentParser, *, sets: bool) -> None:
    """Adds the parameters of flow reconstruction."""
    group = parser.add_argument_group("flows" + (" and flowsets" if sets else ""))
    length = typed(lambda text: span_us(text) / 1e6)
    group.add_argument("--gap", type=length, default=GAP_S, metavar="TIME", help="maximum gap between records of one flow (60s)")
    group.add_argument(
        "--threshold", type=typed(size), default=THRESHOLD_BYTES, metavar="SIZE", help="an elephant flow sends more than this ... (1e9)"
    )
    group.add_argument("--window", type=length, default=WINDOW_S, metavar="TIME", help="... within this time (60s)")
    if sets:
        group.add_argument("--tau", type=length, default=TAU_S, metavar="TIME", help="maximum time between flow starts in a flowset (10s)")
        group.add_argument(
            "--rule",
            choices=RULES,
            default=RULES[0],
            help="what may lie at most tau apart in a flowset: its first and last start (span), or consecutive starts (chain)",
        )
        group.add_argument("--all-flows", dest="elephants_only", action="store_false", help="flowsets of all flows, not only elephants")


def add_rows(parser: argparse.ArgumentParser) -> None:
    """Adds the row limit of tables."""
    parser.add_argument("-n", "--limit", type=typed(whole_number), default=100, metavar="N", help="maximum number of rows (100)")
