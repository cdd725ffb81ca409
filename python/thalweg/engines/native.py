"""Compiled analyses, with DuckDB for everything else."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..dataset import Computed, Dataset
from ..dimensions import Dimension
from ..observation import is_per_router, note
from .duckdb import DuckDB

if TYPE_CHECKING:
    import pyarrow as pa

MEMORY_BYTES = 2 << 30
"""Default memory limit of the compiled analyses."""

_SQL_ONLY = frozenset(("mpls_labels",))
"""Columns that compiled code does not group by."""

SET_RULES: dict[str, Any] = {"tau_us": 10_000_000, "rule": "span", "elephants_only": True}
"""Flowset parameters where only flows are wanted."""


class Native(DuckDB):
    """DuckDB, with compiled code for flows, flowsets and the largest groups of whole files."""

    name: ClassVar[str] = "native"

    def __init__(self, *, memory_bytes: int | None = None, threads: int | None = None, scratch: str | Path | None = None) -> None:
        """
        Args:
            memory_bytes: For compiled code and for DuckDB, each in its turn; None: `MEMORY_BYTES` for the former.
            threads: How many compute; None: one a core.
            scratch: Directory for results and for what does not fit into memory.

        Raises:
            ImportError: If the package was installed without compiled code.
        """
        from thalweg import _native

        super().__init__(memory_bytes=memory_bytes, threads=threads, scratch=scratch)
        self._native = _native
        self._memory_bytes = memory_bytes or MEMORY_BYTES
        self._threads = threads or os.cpu_count() or 1

    def read_parquet(self, files: Sequence[str | Path]) -> Dataset:
        """Returns the rows of Parquet files of one schema, which DuckDB opens on first use."""
        paths = tuple(str(path) for path in files)
        return Dataset(self, lambda: super(Native, self).read_parquet(paths).table, paths)

    def compiled(
        self, records: Dataset, wanted: Sequence[str], progress: Callable[..., object] | None, **rules: Any
    ) -> dict[str, Dataset] | None:
        """Computes flows and flowsets with compiled code; None if the records are not whole files."""
        if not records.files:
            return None
        files = {name: str(self.scratch / f"{self._unused_name()}.parquet") for name in wanted}
        self._native.analyse(
            list(records.files),
            flows=files.get("flows"),
            flowsets=files.get("flowsets"),
            **SET_RULES | rules,
            memory_bytes=self._memory_bytes,
            threads=self._threads,
            progress=progress,
        )
        return {name: self.read_parquet([path]) for name, path in files.items()}

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
        """Computes the largest groups with compiled code; None if the records are not whole files, or the groups exceed memory."""
        if not records.files or not _SQL_ONLY.isdisjoint(column for dimension in by for column in dimension.columns):
            return None
        columns = [(one, either) for dimension in by for one, either in zip_longest(dimension.columns, dimension.either)]
        try:
            found = self._native.top(
                list(records.files),
                key=columns,
                order=order,
                limit=limit,
                once_gap_us=gap_us,
                per_router=is_per_router(by),
                memory_bytes=self._memory_bytes,
                threads=self._threads,
                progress=progress,
            )
        except MemoryError:
            # DuckDB can spill to disk.
            return None
        keys = [key for dimension in by for key in dimension.keys]
        values: dict[str, Any] = dict(found)
        about = note(values.pop("observation_points"), values.pop("records_left_out"))
        named = dict(zip(keys, values.pop("key"), strict=True)) | values
        return Computed(self, named, lambda: _top_schema(keys, [one for one, _ in columns]), about)


def _top_schema(keys: Sequence[str], columns: Sequence[str]) -> pa.Schema:
    """Of the largest groups, by keys that are made of these columns of records."""
    import pyarrow as pa

    from ..schema import RECORD_SCHEMA

    sums = ("bytes", "packets", "flows", "share", "flow_start_us", "flow_end_us")
    types = {key: RECORD_SCHEMA.field(column).type for key, column in zip(keys, columns, strict=True)}
    return pa.schema(types | {name: pa.float64() if name == "share" else pa.int64() for name in sums})
