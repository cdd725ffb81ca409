"""Compiled analyses, with DuckDB for all else."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ..dataset import Dataset
from .duckdb import DuckDB

MEMORY_BYTES = 2 << 30
"""Memory for the compiled analyses where none is told."""

SET_RULES: dict[str, Any] = {"tau_us": 10_000_000, "rule": "span", "cheetahs_only": True}
"""What is said of flowsets where only flows are wanted."""


class Native(DuckDB):
    """DuckDB, but flows and flowsets of whole files come from compiled code."""

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

    def compiled(
        self, records: Dataset, wanted: Sequence[str], progress: Callable[..., object] | None, **rules: Any
    ) -> dict[str, Dataset] | None:
        """Flows and flowsets by compiled code; None if the records are not those of whole files."""
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
