"""A server or cluster that Ibis connects to by URL: ClickHouse, Trino and others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import ClassVar

import ibis
import ibis.expr.types as ir
import pyarrow as pa

from ..dataset import Dataset
from ..sources import TimeRange
from .engine import Engine

CLICKHOUSE_SETTINGS = {"join_use_nulls": 1, "use_variant_as_common_type": 0}
"""Settings for standard SQL semantics in ClickHouse: outer joins give nulls, and unions have equal types."""


class Server(Engine):
    """The records are a table on the server, with the columns of the files; intermediate results become tables next to it.

    These are dropped when the engine is closed.
    """

    name: ClassVar[str] = "server"

    def __init__(self, url: str, *, scratch: str | Path | None = None) -> None:
        """
        Args:
            url: As `ibis.connect` takes it, such as `clickhouse://user:password@host:8123/database`.
            scratch: Directory for small files here.
        """
        options = {"settings": CLICKHOUSE_SETTINGS} if url.startswith("clickhouse") else {}
        super().__init__(ibis.connect(url, **options), scratch)
        self._tables: list[str] = []

    def open(
        self,
        source: str | Path | Iterable[str | Path],
        *,
        start: datetime | None = None,
        end: datetime | None = None,
        schema: pa.Schema | None = None,
    ) -> Dataset:
        """Returns the flow records of the table named by `source` (`table` or `database.table`), by time of reception."""
        database, _, table = str(source).rpartition(".")
        rows = self._with_integers(_nullable(self.backend.table(table, database=database or None)))
        return Dataset(self, self._received(rows, TimeRange(start, end)))

    def from_arrow(self, rows: pa.Table) -> Dataset:
        """Loads these rows into a table on the server."""
        return Dataset(self, self._created(rows))

    def _keep(self, table: ir.Table) -> ir.Table:
        return self._created(table)

    def close(self) -> None:
        """Drops the tables created here, and disconnects."""
        for name in self._tables:
            self.backend.raw_sql(f"DROP TABLE IF EXISTS {name}")
        super().close()

    def _view(self, query: str) -> ir.Table:
        return self.backend.sql(query)

    def _created(self, rows: ir.Table | pa.Table) -> ir.Table:
        name = self._unused_name()
        self._tables.append(name)
        return _nullable(self.backend.create_table(name, rows))

    def _microseconds(self, at: ir.TimestampColumn) -> ir.IntegerColumn:
        # In what every backend of Ibis has. Some round to the nearest second, so that the fraction goes first.
        return at.truncate("s").epoch_seconds().cast("int64") * 1_000_000 + at.microsecond().cast("int64")

    def _scan(self, paths: Sequence[str]) -> ir.Table:
        raise ValueError(f"{self.backend.name}: a server only reads its own tables; load {paths[0]} into a table")


def _nullable(table: ir.Table) -> ir.Table:
    """Makes all columns nullable: Ibis only unites columns of equal types, and nullability is part of the type."""
    return table.cast({name: kind.copy(nullable=True) for name, kind in table.schema().items()})
