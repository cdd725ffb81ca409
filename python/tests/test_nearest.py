"""Suggestions for misspelt names: the cases of `crates/thalweg-wire/src/nearest.rs`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from thalweg.dimensions import DimensionError, dimensions
from thalweg.nearest import nearest

RUST = Path(__file__).parents[2] / "crates/thalweg-wire/src/nearest.rs"
CLOSE = re.compile(r'\("([^"]*)", &\[([^]]*)\](?:\[\.\.\])?, (?:Some\("([^"]*)"\)|None)\)')
DISTANT = re.compile(r'\("([^"]*)", &\[([^]]*)\](?:\[\.\.\])?\)')


def names(listed: str) -> list[str]:
    return re.findall(r'"([^"]*)"', listed)


def test_suggestions_are_those_of_the_live_views() -> None:
    text = RUST.read_text()
    close, distant = CLOSE.findall(text), DISTANT.findall(text)
    assert len(close) >= 10
    assert len(distant) >= 5
    for name, known, expected in close:
        assert nearest(name, names(known)) == (expected or None), name
    for name, known in distant:
        assert nearest(name, names(known)) is None, name
    assert nearest("x" * 65, ["x" * 65]) is None


def test_a_misspelt_dimension_gets_a_suggestion() -> None:
    with pytest.raises(DimensionError, match=r"invalid dimension 'src-contry': expected one of .*; did you mean 'src-country'\?"):
        dimensions(["src-contry"])
