"""ClickHouse, embedded (chdb): a substitute for a server."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import ibis.expr.types as ir

from ..sources import SourceError
from .engine import Engine, builtin

_UNPATTERNED = re.compile(r"[^'\\\\*?{},]+")

_microseconds = builtin("toUnixTimestamp64Micro")


class ClickHouse(Engine):
    """ClickHouse in this process."""

    name: ClassVar[str] = "clickhouse"

    def __init__(self, *, memory_bytes: int | None = None, threads: int | None = None, scratch: str | Path | None = None) -> None:
        """
        Args:
            memory_bytes: Memory for a query; sorts and groups that need more than half of it go to disk. None: no limit.
            threads: Number of threads; None: one per core.
            scratch: Directory for tables and for data that does not fit into memory.
        """
        from .chdb import Backend

        backend = Backend()
        super().__init__(backend, scratch)
        backend.do_connect(str(self.scratch / "clickhouse"))
        if memory_bytes is not None:
            half = memory_bytes // 2
            backend.raw_sql(f"SET max_memory_usage = {memory_bytes}")
            backend.raw_sql(f"SET max_bytes_before_external_sort = {half}")
            backend.raw_sql(f"SET max_bytes_before_external_group_by = {half}")
        if threads is not None:
            backend.raw_sql(f"SET max_threads = {threads}")

    def _microseconds(self, at: ir.TimestampColumn) -> ir.IntegerColumn:
        return _microseconds(at)

    def _scan(self, paths: Sequence[str]) -> ir.Table:
        absolute = [str(Path(path).absolute()) for path in paths]
        for path in absolute:
            if not _UNPATTERNED.fullmatch(path):
                raise SourceError(f"{path}: ClickHouse would read this path as a pattern; rename it")
        alternatives = ",".join(path.removeprefix("/") for path in absolute)
        pattern = absolute[0] if len(absolute) == 1 else f"/{{{alternatives}}}"
        # The columns of all files, because those of earlier versions lack some.
        union = "" if len(absolute) == 1 else " SETTINGS schema_inference_mode = 'union'"
        return self._view(f"SELECT * FROM file('{pattern}', Parquet){union}")

    def _view(self, query: str) -> ir.Table:
        name = self._unused_name()
        self.backend.raw_sql(f"CREATE VIEW {name} AS {query}")
        return self.backend.table(name)
