"""Writes the report's folder: `index.html`, `report.json`, and a CSV file per table."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from .contents import Contents
from .page import page

MAX_GROUPS = 200
"""Maximum number of groups in the JSON file: the largest. The CSV files have all."""
MAX_ROWS = 2_000
"""Maximum number of rows of a table in the JSON file."""


def write(contents: Contents, folder: Path) -> list[Path]:
    """Writes everything into `folder`, which is created if missing; returns the files, the page first.

    The CSV files have all rows. The tables of `report.json` have those of the `MAX_GROUPS` largest groups, at most `MAX_ROWS`
    each; `groups` and `rows` there say how many there are in all.

    Times are RFC 3339 in UTC, sizes are in bytes, rates in bits per second. Existing files with these names are replaced.

    Raises:
        OSError: If a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "index.html", folder / "report.json"]
    written[0].write_text(page(contents), encoding="utf-8")
    written[1].write_text(json.dumps(_exact(contents), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    for name, table in (*contents.tables.items(), ("traffic", contents.traffic)):
        path = folder / f"{name}.csv"
        _plain(table).to_csv(path, index=False, lineterminator="\n")
        written.append(path)
    return written


def _exact(contents: Contents) -> dict[str, Any]:
    return {
        "about": contents.about,
        "totals": contents.totals,
        "groups": len(contents.groups),
        "rows": {name: len(table) for name, table in contents.tables.items()},
        "tables": {name: _rows(_largest(table, contents.groups)) for name, table in contents.tables.items()},
        "rates": {path: {number: asdict(box) for number, box in boxes.items()} for path, boxes in contents.rates.items()},
        "traffic": _rows(contents.traffic),
    }


def _largest(table: pd.DataFrame, groups: list[str]) -> pd.DataFrame:
    """Returns the rows of the largest groups and of the paths between the most flowsets."""
    if "group" in table.columns:
        table = table[table["group"].isin(groups[:MAX_GROUPS])]
    if "src_group" in table.columns and "count" in table.columns:
        sizes = table.groupby(["src_group", "dst_group"])["count"].transform("sum")
        largest = sizes.sort_values(ascending=False, kind="stable").index[:MAX_ROWS]
        table = table.loc[table.index.isin(largest)]
    return table.head(MAX_ROWS)


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    plain = _plain(table).astype(object)
    rows: list[dict[str, Any]] = plain.where(plain.notna(), None).to_dict("records")
    return rows


def _plain(table: pd.DataFrame) -> pd.DataFrame:
    """Formats instants as text."""
    plain = table.copy()
    for name in plain.columns:
        if isinstance(plain[name].dtype, pd.DatetimeTZDtype):
            plain[name] = plain[name].dt.strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
    return plain
