"""Spark: a cluster, or worker processes of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import ibis
import ibis.expr.types as ir
import pyarrow as pa

from ..dataset import Dataset
from ..schema import RECORD_SCHEMA
from ..sources import TimeRange
from .engine import Engine, builtin, builtin_aggregate

LOCAL_CLUSTER = "local-cluster[2,1,1024]"
"""Two worker processes with one core and 1024 MiB each, plus the driver."""

_KINDS = {pa.string(): "string", pa.int32(): "int", pa.int64(): "bigint", pa.timestamp("us", "UTC"): "timestamp"}
_DDL = ", ".join(f"{field.name} {_KINDS[field.type]}" for field in RECORD_SCHEMA) + ", date date, hour int"
"""Columns of files and of their directories."""

_microseconds = builtin("unix_micros")
_bit_or = builtin_aggregate("bit_or")


class Spark(Engine):
    """Spark under any master: `spark://host:7077`, `yarn`, `k8s://...`, `local[2]`, `local-cluster[2,1,1024]`."""

    name: ClassVar[str] = "spark"

    def __init__(
        self,
        *,
        url: str | None = None,
        memory_bytes: int | None = None,
        threads: int | None = None,
        scratch: str | Path | None = None,
        settings: dict[str, str] | None = None,
    ) -> None:
        """
        Args:
            url: The master; None: `LOCAL_CLUSTER`.
            memory_bytes: Memory of the driver's Java heap, where this starts it; None: Spark's default (1 GiB).
            threads: How many parts shuffled rows are divided into; None: Spark's default (200; 4 with a local master).
            scratch: Directory that the driver and all workers see.
            settings: Spark's settings by name, over those made here.
        """
        from pyspark.sql import SparkSession

        master = url or LOCAL_CLUSTER
        chosen = _settings(master, memory_bytes, threads) | (settings or {})
        builder = SparkSession.builder.master(master).appName("thalweg")
        for name, value in chosen.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        super().__init__(ibis.pyspark.connect(session), scratch)
        self.session = session

    def _keep(self, table: ir.Table) -> ir.Table:
        # Files cut a plan off from what it came from. Spark's cache does not always: plans grow, and a lost worker's part
        # is computed anew.
        path = str(self.scratch / self._unused_name())
        self.session.sql(self.backend.compile(table)).write.parquet(path)
        return self._scan((path,))

    def open(
        self,
        source: str | Path | Iterable[str | Path],
        *,
        start: datetime | None = None,
        end: datetime | None = None,
        schema: pa.Schema | None = None,
    ) -> Dataset:
        """Opens the flow records of a collector; Spark itself lists a `source` with a scheme (`s3a://`, `hdfs://`, `file://`).

        Raises:
            SourceError: If no files are found.
            ValueError: If a time has no time zone, or the end is before the start.
        """
        if not (isinstance(source, str) and "://" in source):
            return super().open(source, start=start, end=end, schema=schema)
        within = TimeRange(start, end)
        files = self.session.read.schema(_DDL).parquet(source)
        for limit, compare in ((start, ">="), (end, "<=")):
            if limit is not None:
                # Skip the directories of other days.
                files = files.where(f"date {compare} '{limit.astimezone(UTC):%Y-%m-%d}'")
        rows = self._viewed(files.select(RECORD_SCHEMA.names))
        return Dataset(self, self._received(self._with_integers(rows), within))

    def to_pyarrow(self, table: ir.Table) -> pa.Table:
        """Computes a table and brings it to the driver."""
        return self.session.sql(self.backend.compile(table)).toArrow()

    def bit_or(self, column: ir.IntegerColumn) -> ir.IntegerScalar:
        """Returns the bitwise OR of all rows."""
        return _bit_or(column)

    def close(self) -> None:
        """Ends the session and its workers."""
        self.session.stop()
        super().close()

    def _microseconds(self, at: ir.TimestampColumn) -> ir.IntegerColumn:
        return _microseconds(at)

    def _scan(self, paths: Sequence[str]) -> ir.Table:
        # The columns of all files, because those of earlier versions lack some.
        reader = self.session.read.option("mergeSchema", str(len(paths) > 1).lower())
        return self._viewed(reader.parquet(*(str(Path(path).absolute()) for path in paths)))

    def _viewed(self, rows: Any) -> ir.Table:
        name = self._unused_name()
        rows.createOrReplaceTempView(name)
        return self.backend.table(name)


def _settings(master: str, memory_bytes: int | None, threads: int | None) -> dict[str, str]:
    settings = {"spark.sql.session.timeZone": "UTC", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    if memory_bytes is not None:
        settings["spark.driver.memory"] = f"{memory_bytes // (1 << 20)}m"
    if threads is not None:
        settings["spark.sql.shuffle.partitions"] = str(threads)
    if master.startswith("local"):
        # The driver's name may not resolve, and its workers are all here.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        settings.setdefault("spark.sql.shuffle.partitions", "4")
    return settings
