"""From arguments to the archive, and from an answer to what is written."""

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
from ..sources import SourceError
from . import output
from .progress import Bar

if TYPE_CHECKING:
    import pyarrow as pa


class UsageError(QuestionError):
    """Arguments that are not right together."""


@dataclass(frozen=True)
class Work:
    """What the arguments name.

    Attributes:
        chosen: The arguments.
        archive: The records.
        bar: Shows how far the work within it is.
    """

    chosen: argparse.Namespace
    archive: Archive
    bar: Bar

    def answer(self, rows: Dataset, limit: int | None) -> None:
        """Computes rows and writes them as was asked; a table has `limit` at most, and says if there were more."""
        if self.chosen.parquet is not None:
            with self.bar:
                rows.to_parquet(self.chosen.parquet)
        elif self.chosen.json:
            output.as_json(rows.rows(), sys.stdout)
        elif self.chosen.csv:
            output.as_csv(rows.rows(), rows.columns, sys.stdout)
        else:
            self._table(rows, limit)

    def answer_exactly(self, rows: pa.Table) -> bool:
        """Writes rows that are computed already as JSON, CSV or Parquet; whether one of these was asked for."""
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
            output.note("nothing matches")
        elif limit is not None and len(found) > limit:
            output.note(f"the first {limit} rows; -n shows more, and --json, --csv and --parquet have all")


@contextmanager
def work(chosen: argparse.Namespace) -> Iterator[Work]:
    """The archive that the arguments name, as long as it is asked."""
    told = vars(chosen)
    with connect(chosen.engine, memory_bytes=chosen.memory, threads=chosen.threads, url=chosen.url) as engine:
        try:
            parameters = Parameters(**{name: told[name] for name in Parameters.__dataclass_fields__ if name in told})
            records = engine.open(chosen.data, start=chosen.start, end=chosen.end)
        except SourceError:
            raise
        except ValueError as error:
            raise UsageError(str(error)) from None
        bar = Bar(engine, chosen.command)
        yield Work(chosen, Archive(records, parameters, bar.at), bar)
