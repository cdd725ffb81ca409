"""All that can be typed: the commands, and the options that several of them have."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import datetime
from typing import Any

from ..engines import NAMES as ENGINES
from ..parameters import GAP_S, RULES, TAU_S, THRESHOLD_OCTETS, WINDOW_S
from ..quantities import instant, size, span_us, whole_number

ABOUT = """Analyse flow records: transfers, parallel flowsets, top talkers, time series.

DATA is what `thalweg collect` and `thalweg serve` write: a directory, a Parquet file, or a pattern
of such files. Octets and packets are scaled by the sampling interval. A FILTER is in nfdump's
language, and times are UTC."""

EXAMPLES = """
Who moved what between which networks, as a page with plots:
  thalweg flows report records --by asn --output report
Who sent most in the last hour:
  thalweg flows top records --by source --from now-1h
Traffic of a service over the day:
  thalweg flows series records --every 5m 'dst port 443'
Large records into a network:
  thalweg flows query records 'dst net 10.0.0.0/8 and bytes > 1g'
In SQL:
  thalweg flows query records 'SELECT exporter, count(*) FROM records GROUP BY ALL'
"""

EXIT_CODES = """
0  All went well.
1  It could not start, or could not go on; the message says why.
2  The command line is wrong; nothing was started.
"""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help of 100 columns, in which an option has its value once: `-n, --limit N`."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=24, width=100)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


class Command(argparse.ArgumentParser):
    """A command whose FILTER may stand behind options: argparse alone takes DATA and FILTER only side by side."""

    _intermixed = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._intermixed:
            return super().parse_known_args(args, namespace)
        self._intermixed = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._intermixed = False


def program() -> argparse.ArgumentParser:
    """`thalweg flows` without its commands."""
    return argparse.ArgumentParser("thalweg flows", **_lesson(ABOUT, EXAMPLES))


def command(commands: Any, name: str, about: str, examples: str, usage: str) -> argparse.ArgumentParser:
    """A command with help that teaches; the first line of `about` stands for it in the list of commands."""
    first = about.partition("\n")[0].rstrip(".")
    usage = f"thalweg flows {name} {usage}"
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
    """A reader whose complaint argparse shows as it is."""

    def value(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return value


def add_source(parser: argparse.ArgumentParser, now: datetime) -> None:
    """What is read, and what reads it."""
    parser.add_argument("data", metavar="DATA", help="directory, file or pattern of flow records")
    group = parser.add_argument_group("what is read")
    time = typed(lambda text: instant(text, now))
    group.add_argument(
        "--from", dest="start", type=time, metavar="TIME", help="only what was received from here on: 2026-11-22T13:30, now-90m"
    )
    group.add_argument("--to", dest="end", type=time, metavar="TIME", help="only what was received before")
    group = parser.add_argument_group("engine")
    group.add_argument(
        "--engine",
        choices=ENGINES,
        default="auto",
        metavar="NAME",
        help=f"what computes: {', '.join(ENGINES)} (auto: the fastest that is installed)",
    )
    group.add_argument("--url", metavar="URL", help="address of Spark's master or of a server")
    group.add_argument("--memory", type=typed(size), metavar="SIZE", help="memory to compute in, as 4GiB")
    group.add_argument("--threads", type=typed(whole_number), metavar="N", help="how many compute")


def add_of(parser: argparse.ArgumentParser, tables: tuple[str, ...]) -> None:
    """Records, or what they become."""
    parser.add_argument(
        "--of",
        choices=tables,
        default=tables[0],
        metavar="TABLE",
        help=f"what is counted: {', '.join(tables)} (of records, what several routers saw counts each time; of flows, once)",
    )


def add_answer(parser: argparse.ArgumentParser) -> None:
    """How the answer is written."""
    group = parser.add_argument_group("answer").add_mutually_exclusive_group()
    group.add_argument("--json", action="store_true", help="one JSON object a line, exact")
    group.add_argument("--csv", action="store_true", help="comma-separated values, exact")
    group.add_argument("--parquet", metavar="FILE", help="write a Parquet file")


def add_rules(parser: argparse.ArgumentParser, *, sets: bool) -> None:
    """How records become flows, and flows flowsets."""
    group = parser.add_argument_group("flows" + (" and flowsets" if sets else ""))
    length = typed(lambda text: span_us(text) / 1e6)
    group.add_argument(
        "--gap", type=length, default=GAP_S, metavar="TIME", help="a record begins another flow after so long without it (60s)"
    )
    group.add_argument(
        "--threshold", type=typed(size), default=THRESHOLD_OCTETS, metavar="SIZE", help="a cheetah flow sends more than this ... (1e9)"
    )
    group.add_argument("--window", type=length, default=WINDOW_S, metavar="TIME", help="... within this (60s)")
    if sets:
        group.add_argument("--tau", type=length, default=TAU_S, metavar="TIME", help="flows of a set start within this (10s)")
        group.add_argument(
            "--rule", choices=RULES, default=RULES[0], help="chains of small gaps: sets of at most tau (span), or whole (chain)"
        )
        group.add_argument("--all-flows", dest="cheetahs_only", action="store_false", help="sets of all flows, not of cheetahs alone")


def add_rows(parser: argparse.ArgumentParser) -> None:
    """How many rows a table shows."""
    parser.add_argument("-n", "--limit", type=typed(whole_number), default=100, metavar="N", help="rows of the table at most (100)")
