"""The command lines of `thalweg flows` and `thalweg transfers` as data, for shell completions and man pages of the program `thalweg`.

python -m thalweg.cli.description flows > crates/thalweg/src/cli/flows.json
python -m thalweg.cli.description transfers > crates/thalweg/src/cli/transfers.json
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from typing import Any

from . import PROGRAMS
from .reference import subcommands


def description(program: str) -> str:
    """Returns all subcommands of a program with their arguments, as JSON."""
    commands = subcommands(PROGRAMS[program](datetime.fromtimestamp(0, UTC)))
    return json.dumps([{"name": name, **_command(parser)} for name, parser in commands.items()], indent=1) + "\n"


def _command(parser: argparse.ArgumentParser) -> dict[str, Any]:
    arguments = [_argument(action) for action in parser._actions if action.dest != "help"]
    return {"about": parser.description, "arguments": arguments}


def _argument(action: argparse.Action) -> dict[str, Any]:
    return {
        "name": action.dest,
        "flags": list(action.option_strings),
        "value": None if action.nargs == 0 else action.metavar or action.dest.upper(),
        "choices": [str(choice) for choice in action.choices or ()],
        "required": action.required,
        "help": action.help,
    }


if __name__ == "__main__":
    print(description(sys.argv[1]), end="")
