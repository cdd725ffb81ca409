"""Rows that an engine can compute: records, flows, flowsets, or what was made of them.

Instants inside are int64 microseconds since 1970 (UTC), in columns whose names end in `_us`, so that every engine computes
with the same integers. Files and data frames hold them as timestamps, under the name without the ending.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import ibis.expr.types as ir
import pandas as pd
import pyarrow as pa

if TYPE_CHECKING:
    from .engines import Engine

INSTANTS = ("received", "flow_start", "flow_end")
"""Columns of files that are timestamps; inside, each has `_us` at the end of its name."""


@dataclass(frozen=True)
class Dataset:
    """An Ibis table and the engine that computes it.

    Attributes:
        engine: What computes it.
        table: The Ibis table; instants are int64 microseconds since 1970 (UTC).
        files: The Parquet files whose rows are exactly these, if there are any such; the native analyses read those.
    """

    engine: Engine
    table: ir.Table
    files: tuple[str, ...] = ()

    def derive(self, table: ir.Table) -> Dataset:
        """Another table of the same engine."""
        return Dataset(self.engine, table)

    def filter(self, condition: ir.BooleanValue | Callable[[ir.Table], ir.BooleanValue]) -> Dataset:
        """The rows for which `condition` holds."""
        return self.derive(self.table.filter(condition))

    def sql(self, query: str) -> Dataset:
        """The answer to a query in DuckDB's dialect (translated for other engines) in which these rows are the table `rows`.

        Raises:
            sqlglot.errors.ParseError: If the query is not SQL.
        """
        return self.derive(self.engine.query(query, self.table))

    def materialised(self) -> Dataset:
        """The same rows, computed once and kept by the engine."""
        return Dataset(self.engine, self.engine.materialise(self.table), self.files)

    def count(self) -> int:
        """How many rows there are."""
        return int(self.engine.to_pyarrow(self.table.aggregate(rows=self.table.count()))["rows"][0].as_py())

    def to_pyarrow(self) -> pa.Table:
        """All rows, as an Arrow table; instants stay int64 microseconds."""
        return self.engine.to_pyarrow(self.table)

    def to_pandas(self) -> pd.DataFrame:
        """All rows, as a data frame; instants are UTC timestamps."""
        return with_timestamps(self.to_pyarrow()).to_pandas()

    def to_parquet(self, path: str | Path) -> None:
        """Writes all rows to one Parquet file (zstd); instants are UTC timestamps of microseconds."""
        self.engine.to_parquet(self.table, path)


def with_timestamps(rows: pa.Table) -> pa.Table:
    """Instants as UTC timestamps under their names in files, the other columns as they are."""
    for index, name in enumerate(rows.column_names):
        if name.removesuffix("_us") in INSTANTS and name.endswith("_us"):
            column = rows[name].cast(pa.int64()).cast(pa.timestamp("us", "UTC"))
            rows = rows.set_column(index, name.removesuffix("_us"), column)
    return rows
