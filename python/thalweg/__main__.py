"""`python -m thalweg flows ...`: what `thalweg flows ...` runs."""

import sys

from .cli import USAGE, main


def run() -> int:
    """The only word that the Python side knows is `flows`; others are the program's."""
    word, *arguments = sys.argv[1:] or [""]
    if word != "flows":
        print("usage: python -m thalweg flows COMMAND ...", file=sys.stderr)
        return USAGE
    return main(arguments)


if __name__ == "__main__":
    sys.exit(run())
