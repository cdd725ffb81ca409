"""The cases that both implementations of the filter language pass: `crates/thalweg-measure/tests/filter-cases.toml`."""

from __future__ import annotations

import contextlib
import tomllib
from pathlib import Path
from typing import Any

import nfdump_oracle
import pytest
from nfdump_oracle import Nfdump
from test_filter import BASE_US, found, row, table

from thalweg.filter import FilterSyntaxError, parse
from thalweg.filter.parser import MAX_DEPTH, TERMS
from thalweg.filter.tokens import MAX_LENGTH

CASES = tomllib.loads((Path(__file__).parents[2] / "crates/thalweg-measure/tests/filter-cases.toml").read_text())
NAMES = list(CASES["flows"])

COLUMNS = {"duration_us": "length_us"}
"""Names of columns in `row`, where they differ from those of the cases."""


def records() -> list[dict[str, Any]]:
    """The flows of the cases. The start of each flow, in milliseconds, is its number."""
    flows = [CASES["default"] | differences for differences in CASES["flows"].values()]
    return [row(number, **{COLUMNS.get(name, name): value for name, value in flow.items()}) for number, flow in enumerate(flows)]


def named(starts_ms: set[int]) -> list[str]:
    return [NAMES[start_ms - BASE_US // 1000] for start_ms in sorted(starts_ms)]


def test_every_case_selects_its_flows() -> None:
    rows = table(records())
    for case in CASES["selects"]:
        assert named(found(case["filter"], rows)) == case["flows"], case["filter"]


def test_nfdump_selects_the_flows_of_every_case(tmp_path: Path) -> None:
    if not nfdump_oracle.is_there():
        pytest.skip("nfdump is not installed")
    (tmp_path / "nfdump").mkdir()
    theirs = Nfdump(records(), tmp_path / "nfdump")
    for case in CASES["selects"]:
        if case.get("nfdump", True):
            assert named(theirs.matching(case["filter"])) == case["flows"], case["filter"]


def test_nfdump_differs_in_the_cases_marked_so(tmp_path: Path) -> None:
    if not nfdump_oracle.is_there():
        pytest.skip("nfdump is not installed")
    (tmp_path / "nfdump").mkdir()
    theirs = Nfdump(records(), tmp_path / "nfdump")
    for case in CASES["selects"]:
        if not case.get("nfdump", True):
            with contextlib.suppress(ValueError):
                assert named(theirs.matching(case["filter"])) != case["flows"], case["filter"]


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: case["filter"][:40])
def test_errors_have_a_position_and_a_message(case: dict[str, Any]) -> None:
    with pytest.raises(FilterSyntaxError) as rejected:
        parse(case["filter"])
    error = rejected.value
    assert (error.line, error.column, error.kind) == (case.get("line", 1), case["column"], case["kind"])
    assert error.message == case["message"]


def test_depth_and_length_are_limited() -> None:
    parse("(" * MAX_DEPTH + "any" + ")" * MAX_DEPTH)
    parse("any" + " " * (MAX_LENGTH - 3))
    with pytest.raises(FilterSyntaxError, match="column 1: the filter is longer than 65536 characters"):
        parse("any" + " " * (MAX_LENGTH - 2))


def test_a_thousand_terms_compile() -> None:
    rows = table(records())
    text = " or ".join(f"port {port}" for port in range(100, 1100))
    assert named(found(text, rows)) == ["web", "syn", "all_flags", "empty", "big", "v6"]


def test_every_listed_term_parses() -> None:
    values = {"host": "10.0.0.1", "net": "10.0.0.0/8", "next ip": "10.0.0.1", "router ip": "10.0.0.1", "flags": "S", "proto": "tcp"}
    values |= {"bgpnext ip": "10.0.0.1", "mac": "02:00:00:00:00:01", "geo": "DE"}
    alone = ("any", "ipv4", "ipv6")
    for term in TERMS:
        parse(term if term in alone else f"{term} {values.get(term, '1')}")
