"""The base of all engines: opens files, computes Ibis tables, keeps intermediate results."""

from __future__ import annotations

import abc
import itertools
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ..dataset import INSTANTS, Dataset, with_timestamps
from ..dimensions import Dimension
from ..sources import TimeRange, select

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa
    from ibis.backends.sql import SQLBackend


class Engine(abc.ABC):
    """Computes Ibis tables over Parquet files.

    Attributes:
        name: As `connect` knows it.
        scratch: Directory for interim files. All processes of the engine must see it under this path.
    """

    name: ClassVar[str]

    def __init__(self, backend: SQLBackend | Callable[[], SQLBackend], scratch: str | Path | None) -> None:
        """
        Args:
            backend: Ibis's backend, or a function that connects it on first use.
            scratch: Directory for interim files; None: the system's directory for temporary files.
        """
        self._given = backend
        self.scratch = Path(tempfile.mkdtemp(prefix="thalweg-", dir=scratch))
        # Also if nobody closes the engine, such as in a notebook: when nothing uses it, or at the end of Python.
        self._remove_scratch = weakref.finalize(self, shutil.rmtree, self.scratch, ignore_errors=True)
        self._numbers = itertools.count()

    @cached_property
    def backend(self) -> SQLBackend:
        """Returns Ibis's backend, for features beyond this class."""
        return self._given() if callable(self._given) else self._given

    def open(
        self,
        source: str | Path | Iterable[str | Path],
        *,
        start: datetime | None = None,
        end: datetime | None = None,
        schema: pa.Schema | None = None,
    ) -> Dataset:
        """Opens a dataset of a collector: flow records, unless a schema says otherwise.

        Args:
            source: A directory, a pattern, a file, or several files.
            start: Earliest time of reception, inclusive. Hours outside are not opened.
            end: Latest time of reception, exclusive.
            schema: Columns of the dataset, for a time range without files; None: those of flow records.

        Raises:
            SourceError: If no files are found.
            ValueError: If a time has no time zone, or the end is before the start.
        """
        within = TimeRange(start, end)
        selection = select(source, within)
        if not selection.files:
            from ..schema import RECORD_SCHEMA

            return self.empty(RECORD_SCHEMA if schema is None else schema)
        records = self.read_parquet(selection.files)
        return records if selection.exact else records.derive(self._received(records.table, within))

    def empty(self, schema: pa.Schema) -> Dataset:
        """Returns no rows, with the columns of files of this schema."""
        return self.from_arrow(_with_integers(schema.empty_table()))

    def read_parquet(self, files: Sequence[str | Path]) -> Dataset:
        """Returns the rows of Parquet files of one schema; timestamps named in `INSTANTS` become int64 microseconds."""
        paths = tuple(str(path) for path in files)
        return Dataset(self, self._with_integers(self._scan(paths)), paths)

    def from_arrow(self, rows: pa.Table) -> Dataset:
        """Loads these rows through a file in `scratch`."""
        import pyarrow.parquet as pq

        path = self.scratch / f"{self._unused_name()}.parquet"
        pq.write_table(rows, path)
        return Dataset(self, self._scan((str(path),)))

    def materialise(self, table: ir.Table) -> ir.Table:
        """Computes a table now and keeps it until the engine is closed, on disk if memory is short."""
        kept = self._keep(table)
        # Engines count with different integer types.
        return kept.cast(table.schema())

    def _keep(self, table: ir.Table) -> ir.Table:
        return self.backend.create_table(self._unused_name(), table, temp=True)

    def query(self, query: str, rows: ir.Table) -> ir.Table:
        """Returns the result of a query in DuckDB's dialect, with `rows` as the table of that name."""
        import sqlglot

        dialect = self.backend.dialect
        parsed = sqlglot.parse_one(query, dialect="duckdb")
        if not isinstance(parsed, sqlglot.exp.Query):
            raise ValueError(f"query: expected a SELECT, got {query!r}")
        parsed = parsed.with_("rows", as_=sqlglot.parse_one(self.backend.compile(rows), dialect=dialect))
        named = parsed.args["with_"].expressions
        named.insert(0, named.pop())  # the query's own tables may refer to it
        return self._view(parsed.sql(dialect=dialect))

    def _view(self, query: str) -> ir.Table:
        """Returns the result of a query in the engine's own dialect."""
        name = self._unused_name()
        self.backend.raw_sql(f"CREATE TEMPORARY VIEW {name} AS {query}")
        return self.backend.table(name)

    def to_pyarrow(self, table: ir.Table) -> pa.Table:
        """Computes a table."""
        return self.backend.to_pyarrow(table)

    def batches(self, table: ir.Table) -> Iterable[pa.RecordBatch]:
        """Computes a table in batches of rows."""
        batches: Iterable[pa.RecordBatch] = self.backend.to_pyarrow_batches(table)
        return batches

    def to_parquet(self, table: ir.Table, path: str | Path) -> None:
        """Writes a table to one Parquet file (zstd), instants as timestamps, a batch of rows at a time."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        batches = self.backend.to_pyarrow_batches(table)
        schema = with_timestamps(batches.schema.empty_table()).schema
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for batch in batches:
                writer.write_table(with_timestamps(pa.Table.from_batches([batch])).cast(schema))

    def bit_or(self, column: ir.IntegerColumn) -> ir.IntegerScalar:
        """Returns the bitwise OR of all rows."""
        return column.bit_or()

    def compiled(
        self, records: Dataset, wanted: Sequence[str], progress: Callable[..., object] | None, **rules: Any
    ) -> dict[str, Dataset] | None:
        """Returns `flows` and `flowsets`, as far as `wanted`, if the engine implements them itself; otherwise None."""
        return None

    def top(
        self,
        records: Dataset,
        by: Sequence[Dimension],
        order: str,
        limit: int | None,
        *,
        gap_us: int | None,
        progress: Callable[..., object] | None,
    ) -> Dataset | None:
        """Returns the result of `top.top` on records if the engine implements it itself; otherwise None.

        Each flow counts once (`once.counted_once` with this gap); None: all records count.
        """
        return None

    def percent_done(self) -> float | None:
        """Returns the progress of the current query, for calls from another thread; None if unknown."""
        return None

    def close(self) -> None:
        """Releases all resources, including intermediate results."""
        if self._is_connected():
            self.backend.disconnect()
        self._remove_scratch()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @abc.abstractmethod
    def _scan(self, paths: Sequence[str]) -> ir.Table:
        """Returns the rows of Parquet files, as the engine reads them."""

    @abc.abstractmethod
    def _microseconds(self, at: ir.TimestampColumn) -> ir.IntegerColumn:
        """Converts to int64 microseconds since 1970, with the engine's own function."""

    def _with_integers(self, table: ir.Table) -> ir.Table:
        columns: dict[str, Any] = {}
        for name in table.columns:
            if name in INSTANTS and table[name].type().is_timestamp():
                columns[f"{name}_us"] = self._microseconds(table[name])
            else:
                columns[name] = table[name]
        return _with_added(table.select(**columns))

    @staticmethod
    def _received(table: ir.Table, within: TimeRange) -> ir.Table:
        if within.start is not None:
            table = table.filter(table["received_us"] >= microseconds(within.start))
        if within.end is not None:
            table = table.filter(table["received_us"] < microseconds(within.end))
        return table

    def _is_connected(self) -> bool:
        return "backend" in vars(self) or not callable(self._given)

    def _unused_name(self) -> str:
        return f"thalweg_{self.scratch.name.removeprefix('thalweg-')}_{next(self._numbers)}"


def _with_added(table: ir.Table) -> ir.Table:
    """Gives flow records the columns of later versions: files of earlier versions lack them, or give nulls among others."""
    import ibis

    from ..schema import ADDED, RECORD_SCHEMA, unreported

    if not {"exporter", "flow_start_us", "sampling_interval"} <= set(table.columns):
        return table
    filled = {}
    for name in ADDED:
        kind = "string" if unreported(name) == "" else str(RECORD_SCHEMA.field(name).type)
        none = ibis.literal(unreported(name), kind)
        filled[name] = table[name].fill_null(none) if name in table.columns else none
    return table.mutate(**filled)


def microseconds(at: datetime) -> int:
    """Microseconds since 1970 (UTC)."""
    seconds = int(at.replace(microsecond=0).timestamp())
    return seconds * 1_000_000 + at.microsecond


def builtin(name: str) -> Callable[[ir.TimestampColumn], ir.IntegerColumn]:
    """Declares an engine's own function from a timestamp to an int64."""

    import ibis

    def instant(at: Any) -> Any: ...

    return ibis.udf.scalar.builtin(instant, name=name, signature=(("timestamp",), "int64"))  # type: ignore[no-any-return]


def builtin_aggregate(name: str) -> Callable[[ir.IntegerColumn], ir.IntegerScalar]:
    """Declares an engine's own aggregate from integers to an int64."""

    import ibis

    def aggregate(each: Any) -> Any: ...

    return ibis.udf.agg.builtin(aggregate, name=name, signature=(("int64",), "int64"))  # type: ignore[no-any-return]


def _with_integers(rows: pa.Table) -> pa.Table:
    import pyarrow as pa

    for index, name in enumerate(rows.column_names):
        if name in INSTANTS:
            rows = rows.set_column(index, f"{name}_us", rows[name].cast(pa.int64()))
    return rows
