"""`thalweg flows`, one module per subcommand, and `thalweg transfers`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from ..errors import QuestionError
from . import flows, parser, query, report, series, top, transfers

COMMANDS = (report, top, series, query, flows)

COMPLETE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes, as those of the program `thalweg`."""

TRACEBACK = "THALWEG_TRACEBACK"
"""Environment variable that enables tracebacks."""


def build(now: datetime) -> argparse.ArgumentParser:
    """Builds the parser. Relative times refer to `now`."""
    root = parser.program()
    commands = root.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True, parser_class=parser.Command)
    for module in COMMANDS:
        module.add(commands, now)
    return root


PROGRAMS: Mapping[str, Callable[[datetime], argparse.ArgumentParser]] = {"flows": build, "transfers": transfers.build}
"""Command lines by their first word."""


def main(arguments: Sequence[str] | None = None, now: datetime | None = None, program: str = "flows") -> int:
    """Runs a command line and returns the exit code."""
    try:
        chosen = PROGRAMS[program](now or datetime.now(UTC)).parse_args(arguments)
        chosen.run(chosen)
        sys.stdout.flush()
    except SystemExit as end:  # help or a usage error
        return int(end.code or COMPLETE)
    except BrokenPipeError:
        # The reader closed the pipe. Discard what Python would still write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return INTERRUPTED
    except QuestionError as error:
        print(f"thalweg: {error}", file=sys.stderr)
        return USAGE
    except Exception as error:  # engines raise their own exceptions
        if TRACEBACK in os.environ:
            raise
        print(f"thalweg: {error}", file=sys.stderr)
        return FAILED
    return COMPLETE
