"""From arguments to the archive, and from an answer to what is written."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from ..archive import Archive, Rules
from ..dataset import Dataset, with_timestamps
from ..engines import connect
from . import output
from .progress import progress

SHOWN_ROWS = 100
"""Rows of a table where nothing else is asked for."""


@contextmanager
def archive(chosen: argparse.Namespace) -> Iterator[Archive]:
    """The records that the arguments name, as long as they are asked."""
    rules = Rules(**{name: value for name, value in vars(chosen).items() if name in Rules.__dataclass_fields__})
    with connect(chosen.engine, memory_bytes=chosen.memory, threads=chosen.threads, url=chosen.url) as engine:
        yield Archive(engine.open(chosen.data, start=chosen.start, end=chosen.end), rules)


def answer(chosen: argparse.Namespace, rows: Dataset, limit: int | None = SHOWN_ROWS) -> None:
    """Computes rows and writes them as the arguments say; a table has `limit` at most, and says if there were more."""
    columns = output.columns_of(rows)
    if chosen.parquet is not None:
        with progress(rows.engine, chosen.command):
            rows.to_parquet(chosen.parquet)
    elif chosen.json:
        output.as_json(output.rows_of(rows), sys.stdout)
    elif chosen.csv:
        output.as_csv(output.rows_of(rows), columns, sys.stdout)
    else:
        with progress(rows.engine, chosen.command):
            more = None if limit is None else limit + 1
            found = list(itertools.islice(output.rows_of(rows), more))
        output.as_table(found[:limit], columns, sys.stdout)
        if limit is not None and len(found) > limit:
            output.note(f"the first {limit} rows; -n shows more, and --json, --csv and --parquet have all")


def write(chosen: argparse.Namespace, rows: pa.Table) -> bool:
    """Writes rows that are computed already as JSON, CSV or Parquet; whether one of these was asked for."""
    if chosen.parquet is not None:
        pq.write_table(with_timestamps(rows), chosen.parquet, compression="zstd")
    elif chosen.json:
        output.as_json(rows.to_pylist(), sys.stdout)
    elif chosen.csv:
        output.as_csv(rows.to_pylist(), rows.column_names, sys.stdout)
    else:
        return False
    return True
