"""Engines for tests, each started once, and a summary line per skipped test."""

from __future__ import annotations

import gc
import importlib.util
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from thalweg.engines import Engine, connect

# Expressions of Ibis are many small objects that soon die: a collector that runs seldom takes a tenth off the tests.
gc.set_threshold(100_000, 50, 1000)

_NEEDS = {"native": "thalweg._native", "spark": "pyspark", "clickhouse": "chdb"}


def missing(name: str) -> str | None:
    """Returns why an engine is unavailable, or None."""
    module = _NEEDS.get(name)
    if module is not None and importlib.util.find_spec(module) is None:
        return f"{module} is not installed"
    if name == "spark" and shutil.which("java") is None:
        return "java is not installed"
    return None


def _started(name: str) -> Engine:
    if name != "spark":
        return connect(name, memory_bytes=1 << 30, threads=2)
    from thalweg.engines.spark import Spark

    # Worker processes as on a cluster. Optimisations for large data (adaptive plans, generated code) take
    # longer than processing these few rows.
    settings = {"spark.sql.adaptive.enabled": "false", "spark.sql.codegen.wholeStage": "false"}
    return Spark(threads=1, settings={**settings, "spark.sql.codegen.factoryMode": "NO_CODEGEN"})


@pytest.fixture(scope="session")
def engine_of() -> Iterator[Callable[[str], Engine]]:
    """Engines by name."""
    started: dict[str, Engine] = {}

    def find(name: str) -> Engine:
        reason = missing(name)
        if reason is not None:
            pytest.skip(f"{name}: {reason}")
        if name not in started:
            started[name] = _started(name)
        return started[name]

    yield find
    for engine in started.values():
        engine.close()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints skipped tests and totals in the format of the Rust tests, which count skipped tests as passed."""
    counts = {outcome: len(terminalreporter.stats.get(outcome, [])) for outcome in ("passed", "failed", "error", "skipped")}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else str(report.longrepr)
        terminalreporter.write_line(f"skipped: {report.nodeid}: {reason}")
    passed, failed = counts["passed"] + counts["skipped"], counts["failed"] + counts["error"]
    terminalreporter.write_line(f"test result: {'FAILED' if failed else 'ok'}. {passed} passed; {failed} failed; 0 ignored")
