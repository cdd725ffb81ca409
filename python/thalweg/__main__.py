"""`python -m thalweg flows ...`, which `thalweg flows ...` runs."""

import sys

from .cli import USAGE, main


def run() -> int:
    """Runs `flows`, the only command implemented in Python."""
    word, *arguments = sys.argv[1:] or [""]
    if word != "flows":
        print("usage: python -m thalweg flows COMMAND ...", file=sys.stderr)
        return USAGE
    return main(arguments)


if __name__ == "__main__":
    sys.exit(run())
