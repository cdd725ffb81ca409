"""Rows that an engine can compute: records, flows, flowsets, or results of them.

Instants inside are int64 microseconds since 1970 (UTC), in columns whose names end in `_us`, so that every engine computes
with the same integers. Files and data frames hold them as timestamps, under the name without the ending.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from .engines import Engine

INSTANTS = ("received", "flow_start", "flow_end", "start", "end", "time", "made")
"""Timestamp columns of files; in tables, their names end in `_us`."""


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Dataset:
    """An Ibis table and the engine that computes it.

    Attributes:
        engine: The engine that computes it.
        files: The Parquet files whose rows are exactly these, if any; the native analyses read those.
        note: What readers must know about the rows, such as records that were left out; empty: nothing.
    """

    def __init__(self, engine: Engine, table: ir.Table | Callable[[], ir.Table], files: tuple[str, ...] = (), note: str = "") -> None:
        """
        Args:
            engine: The engine that computes it.
            table: The Ibis table, or a function that returns it.
            files: The Parquet files whose rows are exactly these.
            note: What readers must know about the rows.
        """
        self.engine = engine
        self.files = files
        self.note = note
        self._given = table

    @cached_property
    def table(self) -> ir.Table:
        """The Ibis table; instants are int64 microseconds since 1970 (UTC)."""
        return self._given() if callable(self._given) else self._given

    @property
    def columns(self) -> list[str]:
        """Returns the names of the columns in files."""
        return [_in_files(name) for name in self.table.columns]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Computes all rows and yields them one by one; instants are datetimes under their names in files."""
        import pyarrow as pa

        for batch in self.engine.batches(self.table):
            yield from with_timestamps(pa.Table.from_batches([batch])).to_pylist()

    def derive(self, table: ir.Table) -> Dataset:
        """Returns a dataset of another table of the same engine, made from these rows."""
        return Dataset(self.engine, table, note=self.note)

    def filter(self, condition: ir.BooleanValue | Callable[[ir.Table], ir.BooleanValue]) -> Dataset:
        """Returns the rows that satisfy `condition`."""
        return self.derive(self.table.filter(condition))

    def sql(self, query: str) -> Dataset:
        """Returns the result of a query in DuckDB's dialect (translated for other engines), with these rows as the table `rows`.

        Raises:
            sqlglot.errors.ParseError: If the query is not SQL.
        """
        return self.derive(self.engine.query(query, self.table))

    def materialised(self) -> Dataset:
        """Returns the same rows, computed once and kept by the engine."""
        return Dataset(self.engine, self.engine.materialise(self.table), self.files, self.note)

    def count(self) -> int:
        """Returns the number of rows."""
        return int(self.engine.to_pyarrow(self.table.aggregate(rows=self.table.count()))["rows"][0].as_py())

    def to_pyarrow(self) -> pa.Table:
        """Returns all rows as an Arrow table; instants stay int64 microseconds."""
        return self.engine.to_pyarrow(self.table)

    def to_pandas(self) -> pd.DataFrame:
        """Returns all rows as a data frame; instants are UTC timestamps."""
        return with_timestamps(self.to_pyarrow()).to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Returns all rows as a Polars data frame; instants are UTC timestamps. Needs the package polars.

        Raises:
            ModuleNotFoundError: If polars is not installed.
        """
        import polars

        return polars.DataFrame(with_timestamps(self.to_pyarrow()))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Exports all rows by the Arrow PyCapsule interface, so that `polars.DataFrame(rows)`, DuckDB and others read them;
        instants are UTC timestamps."""
        return with_timestamps(self.to_pyarrow()).__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        """Names columns and engine, without computing rows."""
        return f"<thalweg.{type(self).__name__} of {', '.join(self.columns)}; engine {self.engine.name}>"

    def to_parquet(self, path: str | Path) -> None:
        """Writes all rows to one Parquet file (zstd); instants are UTC timestamps of microseconds."""
        self.engine.to_parquet(self.table, path)


class Computed(Dataset):
    """Rows that are already computed."""

    def __init__(self, engine: Engine, values: Mapping[str, Sequence[Any]], schema: Callable[[], pa.Schema], note: str = "") -> None:
        """
        Args:
            engine: The engine for further computations.
            values: Columns by name; instants are int64 microseconds since 1970 (UTC).
            schema: Returns their types on demand.
            note: What readers must know about the rows.
        """
        super().__init__(engine, lambda: engine.from_arrow(self.to_pyarrow()).table, note=note)
        self._values = values
        self._schema = schema

    @property
    def columns(self) -> list[str]:
        """Returns the names of the columns in files."""
        return [_in_files(name) for name in self._values]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yields all rows one by one; instants are datetimes under their names in files."""
        read = [_instant if _in_files(name) != name else _itself for name in self._values]
        names = self.columns
        for row in zip(*self._values.values(), strict=True):
            yield {name: of(value) for name, of, value in zip(names, read, row, strict=True)}

    def to_pyarrow(self) -> pa.Table:
        """Returns all rows as an Arrow table; instants stay int64 microseconds."""
        import pyarrow as pa

        return pa.table(dict(self._values), self._schema())


def _in_files(name: str) -> str:
    instant = name.removesuffix("_us")
    return instant if instant in INSTANTS else name


def _instant(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def _itself(value: Any) -> Any:
    return value


def with_timestamps(rows: pa.Table) -> pa.Table:
    """Converts instants to UTC timestamps under their names in files; keeps the other columns."""
    import pyarrow as pa

    for index, name in enumerate(rows.column_names):
        if name.removesuffix("_us") in INSTANTS and name.endswith("_us"):
            column = rows[name].cast(pa.int64()).cast(pa.timestamp("us", "UTC"))
            rows = rows.set_column(index, name.removesuffix("_us"), column)
    return rows
