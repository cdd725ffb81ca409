"""`python -m thalweg flows ...` and `transfers ...`, which `thalweg flows ...` and `thalweg transfers ...` run."""

import sys

from .cli import PROGRAMS, USAGE, main


def run() -> int:
    """Runs a command that is implemented in Python."""
    word, *arguments = sys.argv[1:] or [""]
    if word not in PROGRAMS:
        print(f"usage: python -m thalweg {'|'.join(PROGRAMS)} COMMAND ...", file=sys.stderr)
        return USAGE
    return main(arguments, program=word)


if __name__ == "__main__":
    sys.exit(run())
