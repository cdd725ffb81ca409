"""Query engines: DuckDB (embedded, the default), the native analyses, Spark, ClickHouse, or any server that Ibis supports.

All engines run the same Ibis expressions and give identical results; the conformance suite checks this.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from .duckdb import DuckDB
from .engine import Engine

NAMES = ("auto", "native", "duckdb", "spark", "clickhouse", "server")
"""Names for `connect`."""

__all__ = ["NAMES", "DuckDB", "Engine", "EngineError", "connect", "has_native"]


class EngineError(RuntimeError):
    """An unknown engine, or one that is not installed."""


def has_native() -> bool:
    """Whether the compiled analyses are installed."""
    return importlib.util.find_spec("thalweg._native") is not None


def connect(
    name: str = "auto",
    *,
    memory_bytes: int | None = None,
    threads: int | None = None,
    scratch: str | Path | None = None,
    url: str | None = None,
) -> Engine:
    """Returns an engine by name.

    Args:
        name: `native` (DuckDB, with flows, flowsets and the largest groups of whole files computed by compiled code), `duckdb`, `spark`,
            `clickhouse`, `server`; `auto`: `native` where it is built, else `duckdb`.
        memory_bytes: Memory limit; None: the engine's default.
        threads: Number of threads (Spark: partitions of shuffled rows); None: the engine's default.
        scratch: Directory for interim results; a cluster's workers must see it under the same path.
        url: Spark's master; a server's address (`clickhouse://user:password@host:8123/database`, `trino://...`).

    Raises:
        EngineError: If the engine is unknown or not installed.
    """
    match name:
        case "auto":
            name = "native" if has_native() else "duckdb"
        case "clickhouse" if url is not None:
            name = "server"
        case "server" if url is None:
            raise EngineError("engine server: missing url; use for example clickhouse://user:password@host:8123/database")
        case _ if name not in NAMES:
            raise EngineError(f"unknown engine {name}: expected one of {', '.join(NAMES)}")
    try:
        return _connected(name, memory_bytes, threads, scratch, url)
    except ImportError as missing:
        raise EngineError(f"engine {name}: {missing.name or missing} is not installed; {_remedy(name)}") from missing


def _connected(name: str, memory_bytes: int | None, threads: int | None, scratch: str | Path | None, url: str | None) -> Engine:
    match name:
        case "spark":
            from .spark import Spark

            return Spark(url=url, memory_bytes=memory_bytes, threads=threads, scratch=scratch)
        case "clickhouse":
            from .clickhouse import ClickHouse

            return ClickHouse(memory_bytes=memory_bytes, threads=threads, scratch=scratch)
        case "server":
            from .server import Server

            return Server(str(url), scratch=scratch)
        case "native":
            from .native import Native

            return Native(memory_bytes=memory_bytes, threads=threads, scratch=scratch)
        case _:
            return DuckDB(memory_bytes=memory_bytes, threads=threads, scratch=scratch)


def _remedy(name: str) -> str:
    if name == "native":
        return "build the package with maturin, or take duckdb"
    return f"pip install 'thalweg[{name}]'"
