"""How far a query is, on a terminal; nothing where standard error is none."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..engines import Engine

_INTERVAL_S = 0.1


@contextmanager
def progress(engine: Engine, doing: str) -> Iterator[None]:
    """Shows a bar while what is within runs: of DuckDB as far as it is, of other engines that they are at it."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    connection = _duckdb_connection(engine)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    done = threading.Event()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None)

        def poll() -> None:
            while not done.wait(_INTERVAL_S):
                percent = connection.query_progress() if connection is not None else -1
                if percent >= 0:
                    bar.update(task, total=100, completed=percent)

        watcher = threading.Thread(target=poll, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


def _duckdb_connection(engine: Engine):  # type: ignore[no-untyped-def]
    if engine.name not in ("duckdb", "native"):
        return None
    for setting in ("enable_progress_bar = true", "enable_progress_bar_print = false", "progress_bar_time = 0"):
        engine.backend.raw_sql(f"SET {setting}")
    return engine.backend.con
