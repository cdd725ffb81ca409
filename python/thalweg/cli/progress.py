"""Progress of an analysis on a terminal; nothing if standard error is not a terminal."""

from __future__ import annotations

import sys
import threading
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING

from ..engines import Engine

if TYPE_CHECKING:
    from rich.progress import Progress

_INTERVAL_S = 0.1


class Bar:
    """A progress bar, visible while its context is entered; it can be entered repeatedly.

    Compiled analyses report progress, DuckDB is polled; other engines only show activity.
    """

    def __init__(self, engine: Engine, doing: str) -> None:
        self._engine = engine
        self._doing = doing
        self._shown: Progress | None = None
        self._open = ExitStack()

    def at(self, done: float, in_all: float) -> None:
        """Shows the steps done, of all steps."""
        if self._shown is not None:
            self._shown.update(self._shown.task_ids[0], completed=done, total=in_all)

    def __enter__(self) -> None:
        if not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        shown = Progress(*columns, console=Console(stderr=True), transient=True)
        shown.add_task(self._doing, total=None)
        self._shown = self._open.enter_context(shown)
        done = threading.Event()
        asker = threading.Thread(target=self._ask, args=(done,), daemon=True)
        asker.start()
        self._open.callback(asker.join)
        self._open.callback(done.set)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.close()
        self._shown = None

    def _ask(self, done: threading.Event) -> None:
        while not done.wait(_INTERVAL_S):
            percent = self._engine.percent_done()
            if percent is not None:
                self.at(percent, 100)
