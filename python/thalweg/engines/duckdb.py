"""DuckDB: embedded, the default. Data beyond the memory limit spills to disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..dataset import INSTANTS
from .engine import Engine, builtin

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa
    from ibis.backends.sql import SQLBackend

_BATCH_ROWS = 100_000


class DuckDB(Engine):
    """DuckDB in this process, connected on first use."""

    name: ClassVar[str] = "duckdb"

    def __init__(self, *, memory_bytes: int | None = None, threads: int | None = None, scratch: str | Path | None = None) -> None:
        """
        Args:
            memory_bytes: Memory for DuckDB's tables and operators (its `memory_limit`); None: four fifths of the machine's memory.
                Other buffers (Parquet decoding, results) are extra: allow a quarter more.
            threads: Number of threads; None: one per core.
            scratch: Directory for data that does not fit into memory; None: the system's directory for temporary files.
        """
        super().__init__(self._connected, scratch)
        settings: dict[str, Any] = {"temp_directory": str(self.scratch), "preserve_insertion_order": False, "TimeZone": "UTC"}
        # Report progress without printing it.
        settings |= {"enable_progress_bar": True, "enable_progress_bar_print": False, "progress_bar_time": 0}
        if memory_bytes is not None:
            settings["memory_limit"] = f"{memory_bytes}B"
        if threads is not None:
            settings["threads"] = threads
        self._settings = settings

    def _connected(self) -> SQLBackend:
        import ibis

        backend: SQLBackend = ibis.duckdb.connect()
        for setting, value in self._settings.items():
            backend.raw_sql(f"SET {setting} = {value!r}")
        return backend

    def percent_done(self) -> float | None:
        """Returns the progress of a query."""
        percent = self.backend.con.query_progress() if self._is_connected() else -1.0
        return percent if percent >= 0 else None

    def _microseconds(self, at: ir.TimestampColumn) -> ir.IntegerColumn:
        return builtin("epoch_us")(at)

    def _scan(self, paths: Sequence[str]) -> ir.Table:
        # By name, because files of earlier versions lack columns.
        several = len(paths) > 1
        return self.backend.read_parquet(paths, table_name=self._unused_name(), hive_partitioning=False, union_by_name=several)

    def batches(self, table: ir.Table) -> Iterable[pa.RecordBatch]:
        """Computes a table in batches of rows."""
        return self.backend.con.sql(self.backend.compile(table)).to_arrow_reader(_BATCH_ROWS)  # type: ignore[no-any-return]

    def to_parquet(self, table: ir.Table, path: str | Path) -> None:
        """Writes a table to one Parquet file (zstd), instants as timestamps, without holding it in memory."""
        target = str(path).replace("'", "''")
        query = f"SELECT {', '.join(map(_as_in_files, table.columns))} FROM ({self.backend.compile(table)})"
        self.backend.raw_sql(f"COPY ({query}) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")


def _as_in_files(column: str) -> str:
    instant = column.removesuffix("_us")
    if instant in INSTANTS and instant != column:
        return f'make_timestamp("{column}")::TIMESTAMPTZ AS "{instant}"'
    return f'"{column}"'
