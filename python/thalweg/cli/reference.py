"""`docs/reference/flows-command-line.md` and `transfers-command-line.md`, from the definition of the command lines."""

from __future__ import annotations

import argparse
import textwrap
from datetime import UTC, datetime

WIDTH = 120

INTRODUCTIONS = {
    "flows": """\
# Command line of the analyses

<!-- Generated: THALWEG_REFRESH_GOLDEN=1 .venv/bin/pytest python/tests/test_cli.py -->

Commands of `thalweg flows`, as in `thalweg flows COMMAND --help`. See also the [exit codes](exit-codes.md) and the
[guide](../guides/flow-analysis.md).
""",
    "transfers": """\
# Command line of transfer analyses

<!-- Generated: THALWEG_REFRESH_GOLDEN=1 .venv/bin/pytest python/tests/test_transfer_reports.py -->

Commands of `thalweg transfers` that analyse, as in `thalweg transfers COMMAND --help`. See also the [exit codes](exit-codes.md).
""",
}
"""Introductions of the pages by program."""


def command_line(program: str = "flows") -> str:
    """Returns the page of a program."""
    from . import PROGRAMS

    root = PROGRAMS[program](datetime(2026, 1, 1, tzinfo=UTC))
    parts = [INTRODUCTIONS[program]]
    for name, command in subcommands(root).items():
        parts.append(_command(program, name, command))
    return "\n".join(parts)


def subcommands(root: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Returns the parsers of all subcommands by name."""
    return next(dict(action.choices) for action in root._actions if isinstance(action, argparse._SubParsersAction))


def _command(program: str, name: str, command: argparse.ArgumentParser) -> str:
    usage = str(command.usage)
    about = str(command.description)
    lines = [f"## thalweg {program} {name}", "", *_about(about), "", f"    {usage}"]
    for group in command._action_groups:
        shown = [action for action in group._group_actions if action.dest != "help"]
        title = {"positional arguments": "", "options": ""}.get(str(group.title), str(group.title))
        if shown and title:
            lines += ["", f"### {title[0].upper()}{title[1:]}"]
        if shown:
            lines += ["", *(line for action in shown for line in _option(action))]
    examples = str(command.epilog).partition("\n\nexit codes:")[0].removeprefix("examples:\n")
    lines += ["", "### Examples", "", "```sh", *_example(textwrap.dedent(examples)), "```", ""]
    return "\n".join(lines)


def _about(text: str) -> list[str]:
    """Wraps paragraphs; keeps indented lines."""
    lines = []
    for paragraph in text.split("\n\n"):
        flowing = [line for line in paragraph.splitlines() if not line.startswith(" ")]
        fixed = [f"    {line.strip()}" for line in paragraph.splitlines() if line.startswith(" ")]
        lines += [*textwrap.wrap(" ".join(flowing), WIDTH, break_on_hyphens=False), *([""] if fixed else []), *fixed, ""]
    return lines[:-1]


def _option(action: argparse.Action) -> list[str]:
    value = action.metavar or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices else "")
    takes_value = action.nargs != 0
    typed = ", ".join(action.option_strings)
    typed = f"{typed} {value}" if typed and takes_value else typed or str(value)
    return textwrap.wrap(f"- `{typed}`: {action.help}.", WIDTH, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)


def _example(text: str) -> list[str]:
    return [line.strip() if line.startswith(" ") else f"# {line.rstrip(':')}" for line in text.splitlines()]
