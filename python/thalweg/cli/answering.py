"""Opens the archive that the arguments name, and writes results."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..archive import Archive
from ..dataset import Dataset
from ..engines import connect
from ..errors import QuestionError
from ..parameters import Parameters
from ..places import Places
from ..sources import SourceError
from . import output
from .progress import Bar

if TYPE_CHECKING:
    import pyarrow as pa


class UsageError(QuestionError):
    """Contradictory arguments."""


@dataclass(frozen=True)
class Work:
    """The archive and options of a command.

    Attributes:
        chosen: The arguments.
        archive: The records.
        bar: Shows how far the work within it is.
    """

    chosen: argparse.Namespace
    archive: Archive
    bar: Bar

    def write(self, rows: Dataset, limit: int | None) -> None:
        """Computes rows and writes them in the requested format. A table has at most `limit` rows and says if it is truncated."""
        if self.chosen.parquet is not None:
            with self.bar:
                rows.to_parquet(self.chosen.parquet)
        elif self.chosen.json:
            output.as_json(rows.rows(), sys.stdout)
        elif self.chosen.csv:
            output.as_csv(rows.rows(), rows.columns, sys.stdout)
        else:
            self._table(rows, limit)
        self.note(rows)

    @staticmethod
    def note(rows: Dataset) -> None:
        """Prints what readers must know about rows to standard error."""
        if rows.note:
            output.note(rows.note)

    def write_exact(self, rows: pa.Table) -> bool:
        """Writes computed rows as JSON, CSV or Parquet, and returns whether one of these was requested."""
        if self.chosen.parquet is not None:
            import pyarrow.parquet as pq

            pq.write_table(rows, self.chosen.parquet, compression="zstd")
        elif self.chosen.json:
            output.as_json(rows.to_pylist(), sys.stdout)
        elif self.chosen.csv:
            output.as_csv(rows.to_pylist(), rows.column_names, sys.stdout)
        else:
            return False
        return True

    def _table(self, rows: Dataset, limit: int | None) -> None:
        with self.bar:
            found = list(itertools.islice(rows.rows(), None if limit is None else limit + 1))
        shown = output.RECORD_COLUMNS if output.are_records(rows.columns) else rows.columns
        output.as_table(found[:limit], shown, sys.stdout)
        if not found:
            output.note("no rows match")
        elif limit is not None and len(found) > limit:
            output.note(f"the first {limit} rows; -n shows more, and --json, --csv and --parquet have all")


@contextmanager
def work(chosen: argparse.Namespace) -> Iterator[Work]:
    """Opens the archive that the arguments name, and closes it afterwards."""
    options = vars(chosen)
    if chosen.mmdb_replace_as and not chosen.mmdb:
        raise UsageError("--mmdb-replace-as: needs --mmdb")
    places = Places(chosen.mmdb, replace_as=chosen.mmdb_replace_as) if chosen.mmdb else None
    with connect(chosen.engine, memory_bytes=chosen.memory, threads=chosen.threads, url=chosen.url) as engine:
        try:
            parameters = Parameters(**{name: options[name] for name in Parameters.__dataclass_fields__ if name in options})
            records = engine.open(chosen.data, start=chosen.start, end=chosen.end)
        except SourceError:
            raise
        except ValueError as error:
            raise UsageError(str(error)) from None
        bar = Bar(engine, chosen.command)
        yield Work(chosen, Archive(records, parameters, bar.at, places=places), bar)
