"""Flow records and the everyday questions about them: the way in for notebooks, and for the command line."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import pandas as pd
import sqlglot
import sqlglot.errors
from sqlglot import exp

from . import flowsets, series, top
from .dataset import Dataset
from .engines import Engine, connect
from .filter import compile_filter
from .flows import GAP_S, THRESHOLD_OCTETS, WINDOW_S, reconstruct
from .quantities import names, span_us

TABLES = ("records", "flows", "cheetahs", "flowsets")
"""What can be asked about."""

_SQL = re.compile(r"[\s(]*(select|with|from)\b", re.IGNORECASE)


class QueryError(ValueError):
    """A query that cannot be asked."""


@dataclass(frozen=True)
class Rules:
    """How records become flows, and flows flowsets: the parameters of `flows.reconstruct` and `flowsets.flowsets`.

    Attributes:
        gap: Seconds without the flow after which a record is another flow's.
        threshold: A cheetah flow sends more than so many octets ...
        window: ... within so many seconds.
        tau: Seconds within which the flows of a set start.
        rule: `span` or `chain`: what to do with chains of small gaps that span more than `tau`.
        all_flows: Whether flowsets are of all flows, not of cheetahs alone.
    """

    gap: float = GAP_S
    threshold: int = THRESHOLD_OCTETS
    window: float = WINDOW_S
    tau: float = flowsets.TAU_S
    rule: str = "span"
    all_flows: bool = False


def open(  # noqa: A001
    source: str | Path | Iterable[str | Path],
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    engine: str | Engine = "auto",
    rules: Rules = Rules(),
) -> Archive:
    """Flow records as a collector keeps them.

    Args:
        source: A directory, a pattern, a file, or several files.
        start: Only what was received from here on.
        end: Only what was received before.
        engine: One of `engines.NAMES`, or an engine (`engines.connect`) with its memory, threads and address.
        rules: How records become flows, and flows flowsets.

    Raises:
        SourceError: If there are no files.
        EngineError: If there is no such engine, or what it needs is not installed.
    """
    chosen = connect(engine) if isinstance(engine, str) else engine
    return Archive(chosen.open(source, start=start, end=end), rules)


@dataclass(frozen=True)
class Archive:
    """Flow records, and what they tell. Nothing is computed before it is asked for; flows and flowsets are computed once.

    Attributes:
        records: The records.
        rules: How records become flows, and flows flowsets.
    """

    records: Dataset
    rules: Rules = Rules()
    _computed: dict[str, Dataset] = field(default_factory=dict, repr=False, compare=False)

    def filter(self, text: str) -> Archive:
        """The records that match a filter in nfdump's language (`thalweg.filter`).

        Raises:
            FilterError: If it is none.
        """
        return Archive(self.matching(text), self.rules)

    def with_rules(self, **rules: float | str | bool) -> Archive:
        """The same records with other `Rules`, by their names."""
        return Archive(self.records, replace(self.rules, **rules))  # type: ignore[arg-type]

    def flows(self) -> Dataset:
        """Flows, with the columns of `flows.COLUMNS`."""
        return self._once("flows", lambda: self._reconstructed(cheetahs_only=False))

    def cheetahs(self) -> Dataset:
        """Cheetah flows alone: less work than all flows."""
        return self._once("cheetahs", lambda: self._reconstructed(cheetahs_only=True))

    def flowsets(self) -> Dataset:
        """Flowsets, with the columns of `flowsets.COLUMNS`."""
        return self._once("flowsets", self._assembled)

    def table(self, of: str) -> Dataset:
        """One of `TABLES`.

        Raises:
            QueryError: If there is no such table.
        """
        match of:
            case "records":
                return self.records
            case "flows":
                return self.flows()
            case "cheetahs":
                return self.cheetahs()
            case "flowsets":
                return self.flowsets()
        raise QueryError(f"of: there is no {of!r}; there are {', '.join(TABLES)}")

    def matching(self, text: str, of: str = "records") -> Dataset:
        """The records, flows or flowsets that match a filter.

        Raises:
            FilterError: If it is none, or asks for what these have not got.
        """
        rows = self.table(of)
        return rows if not text.strip() else rows.filter(compile_filter(text, rows.table))

    def top(
        self,
        by: str | Sequence[str] = "source",
        *,
        order: str = "octets",
        limit: int | None = 10,
        matching: str = "",
        of: str = "records",
    ) -> Dataset:
        """The largest groups (`top.top`); `by` has names of `top.DIMENSIONS`."""
        rows = self.matching(matching, of)
        return rows.derive(top.top(rows.table, _names(by), order, limit))

    def series(
        self,
        every: str | int = "5m",
        *,
        by: str | Sequence[str] = (),
        groups: int = 5,
        matching: str = "",
        of: str = "records",
    ) -> pd.DataFrame:
        """Traffic of every interval (`series.series`); `every` is a length of time as `5m`, or microseconds."""
        every_us = span_us(every) if isinstance(every, str) else every
        return series.series(self.matching(matching, of), every_us, by=_names(by), groups=groups)

    def query(self, text: str) -> Dataset:
        """The answer to SQL (DuckDB's dialect, about one of `TABLES`), or the records that match a filter.

        Raises:
            QueryError: If it is SQL that cannot be read, or about another table.
            FilterError: If it is neither.
        """
        if not _SQL.match(text):
            return self.matching(text)
        try:
            asked = sqlglot.parse_one(text, dialect="duckdb")
        except sqlglot.errors.ParseError as error:
            raise QueryError(f"query: {error}") from None
        own = {part.alias for part in asked.find_all(exp.CTE)}
        named = [table for table in asked.find_all(exp.Table) if table.name not in own]
        found = sorted({table.name for table in named})
        if len(found) != 1 or found[0] not in TABLES or not isinstance(asked, exp.Query):
            what = f"about {' and '.join(found)}" if found else "about no table"
            raise QueryError(f"query: a SELECT is about one of {', '.join(TABLES)}; this one is {what}")
        for table in named:
            table.replace(exp.to_table("rows", alias=table.alias or table.name))
        return self.table(found[0]).sql(asked.sql(dialect="duckdb"))

    def _reconstructed(self, *, cheetahs_only: bool) -> Dataset:
        rules = self.rules
        return reconstruct(
            self.records, gap=rules.gap, threshold=rules.threshold, window=rules.window, cheetahs_only=cheetahs_only
        )

    def _assembled(self) -> Dataset:
        is_all = self.rules.all_flows
        flows = self.flows() if is_all else self.cheetahs()
        return flowsets.flowsets(flows, tau=self.rules.tau, rule=self.rules.rule, cheetahs_only=not is_all)

    def _once(self, name: str, compute: Callable[[], Dataset]) -> Dataset:
        if name not in self._computed:
            self._computed[name] = compute().materialised()
        return self._computed[name]

    def _repr_html_(self) -> str:
        """For notebooks: what is here, without looking at a row."""
        records = self.records
        rules = ", ".join(f"{name} {value}" for name, value in vars(self.rules).items())
        of_files = f"{len(records.files):,} files" if records.files else "a query"
        about = {"records": f"{of_files}, {records.engine.name}", "rules": rules, "columns": ", ".join(records.table.columns)}
        rows = "".join(f"<tr><th>{name}</th><td>{html.escape(text)}</td></tr>" for name, text in about.items())
        return f"<table><caption>Flow records</caption>{rows}</table>"


def _names(by: str | Sequence[str]) -> list[str]:
    return names(by) if isinstance(by, str) else list(by)
