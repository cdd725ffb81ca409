"""Finds the known name closest to a misspelt one, by the rules of `crates/thalweg-wire/src/nearest.rs`."""

from __future__ import annotations

from collections.abc import Iterable

_MAX_LENGTH = 64
"""Longer names are not compared."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the known name closest to `name`, ignoring case and hyphens; None if no name is close.

    A name is close if it differs by at most one edit per three characters, by the order of its words, or if `name` is its
    beginning. Of equally close names it returns the first.
    """
    if len(name.encode()) > _MAX_LENGTH:
        return None
    found = [(distance, word) for word in known if (distance := _distance(_normalised(name), _normalised(word))) is not None]
    return min(found, key=lambda pair: pair[0])[1] if found else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """Returns the end of a message, such as `; did you mean 'src'?`; empty if no name is close."""
    found = nearest(name, known)
    return "" if found is None else f"; did you mean '{found}'?"


def _normalised(name: str) -> str:
    return name.lower().replace("-", "_")


def _distance(name: str, known: str) -> tuple[int, bool] | None:
    """Returns the edits from `name` to `known`, and whether they do more than complete it; None if too many for a typo."""
    most = max(len(name), 3) // 3
    edits = _edits(name, known)
    is_abbreviation = len(name) > 2 and known.startswith(name)
    if is_abbreviation or sorted(name.split("_")) == sorted(known.split("_")):
        return min(edits, most), not is_abbreviation
    return (edits, True) if edits <= most and edits < len(name) else None


def _edits(one: str, other: str) -> int:
    """Counts insertions, deletions, replacements and swaps of neighbours (optimal string alignment)."""
    rows = [list(range(len(other) + 1))]
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            best = min(rows[-1][j] + 1, row[j - 1] + 1, rows[-1][j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]
