"""Writes the report's folder: `index.html`, `report.json`, and a CSV file per table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from .contents import Contents
from .page import page


def write(contents: Contents, folder: Path) -> list[Path]:
    """Writes everything into `folder`, which is created if missing; returns the files, the page first.

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
        "tables": {name: _rows(table) for name, table in contents.tables.items()},
        "rates": contents.rates,
        "traffic": _rows(contents.traffic),
    }


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
