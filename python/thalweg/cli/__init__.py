"""`thalweg flows`: what can be typed, what it teaches, and where it leads.

One module for each analysis: its arguments, and what they are turned into.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from ..errors import QuestionError
from . import flows, parser, query, report, series, top

COMMANDS = (report, top, series, query, flows)

COMPLETE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes, as those of the program `thalweg`."""

TRACEBACK = "THALWEG_TRACEBACK"
"""The environment variable with which an error is shown with where it came from."""


def build(now: datetime) -> argparse.ArgumentParser:
    """Everything that can be typed; `now` is what relative times are told from."""
    root = parser.program()
    commands = root.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True, parser_class=parser.Command)
    for module in COMMANDS:
        module.add(commands, now)
    return root


def main(arguments: Sequence[str] | None = None, now: datetime | None = None) -> int:
    """Does what `arguments` say; returns the exit code."""
    try:
        chosen = build(now or datetime.now(UTC)).parse_args(arguments)
        chosen.run(chosen)
        sys.stdout.flush()
    except SystemExit as end:  # help, or what argparse has complained about
        return int(end.code or COMPLETE)
    except BrokenPipeError:
        # The reader has had enough; what Python would still write goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return INTERRUPTED
    except QuestionError as error:
        print(f"thalweg: {error}", file=sys.stderr)
        return USAGE
    except Exception as error:  # each engine has exceptions of its own for files that it cannot read
        if TRACEBACK in os.environ:
            raise
        print(f"thalweg: {error}", file=sys.stderr)
        return FAILED
    return COMPLETE
