"""Flow records and their analyses: the entry point for notebooks and the command line."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from .dataset import Dataset
from .dimensions import DIMENSIONS, ORDERS, Dimension, DimensionError, dimensions
from .engines import Engine, connect
from .errors import QuestionError
from .filter import compile_filter, parse
from .filter.terms import columns_of
from .keys import KEY, POINT
from .nearest import suggestion
from .observation import is_per_router
from .parameters import Parameters
from .places import PLACE_COLUMNS, Places
from .quantities import names as listed
from .quantities import span_us
from .sources import SourceError, TimeRange, moment

if TYPE_CHECKING:
    from .transfers import Transfers

TABLES = ("records", "flows", "elephants", "flowsets")
"""Tables that can be queried."""

ORDER = ("flow_start_us", "flow_end_us", *KEY, *POINT, "received_us", "bytes")
"""Order of records."""

COUNTED = ("bytes", "packets", "sampling_interval", "flow_start_us", "flow_end_us", "exporter")
"""Columns of records that counts and times need. `exporter` marks records, whose counts are not scaled yet."""

_SQL = re.compile(r"[\s(]*(select|with|from)\b", re.IGNORECASE)


class QueryError(QuestionError):
    """A query that cannot be parsed."""


def open_archive(
    source: str | Path | Iterable[str | Path],
    *,
    start: datetime | str | None = None,
    end: datetime | str | None = None,
    engine: str | Engine = "auto",
    parameters: Parameters = Parameters(),
    mmdb: str | Path | Sequence[str | Path] = (),
    mmdb_replace_as: bool = False,
) -> Archive:
    """Opens the flow records of a collector.

    Args:
        source: A directory, a pattern, a file, or several files.
        start: Earliest time of reception, inclusive: a datetime with a time zone, or text such as `2026-11-22T13:30` or
            `now-90m` (UTC).
        end: Latest time of reception, exclusive.
        engine: One of `engines.NAMES`, or an engine (`engines.connect`) with memory, threads and URL.
        parameters: Definitions of flows, elephants and flowsets.
        mmdb: Databases of countries and AS numbers in MMDB format, for rows without these.
        mmdb_replace_as: AS numbers of the databases replace those of records.

    Raises:
        SourceError: If no files are found.
        PlaceError: If a file of `mmdb` is no database.
        EngineError: If the engine is unknown or not installed.
        ValueError: If a time is invalid or has no time zone, or the end is before the start.
    """
    chosen = connect(engine) if isinstance(engine, str) else engine
    within = TimeRange(moment(start), moment(end))
    records = chosen.open(source, start=within.start, end=within.end)
    directory = Path(source) if isinstance(source, str | Path) else None
    if isinstance(mmdb, str | Path):
        mmdb = [mmdb]
    places = Places(mmdb, replace_as=mmdb_replace_as) if mmdb else None
    return Archive(records, parameters, directory=directory, within=within, places=places)


@dataclass(frozen=True)
class Archive:
    """Flow records and their analyses. Results are computed on demand; flows and flowsets only once.

    Attributes:
        records: The records.
        parameters: Definitions of flows, elephants and flowsets.
        progress: Called by compiled analyses with the steps done and the total steps.
        directory: The source, if it is one path. The directory of a store also has transfers.
        within: Times of reception.
        places: Databases of countries and AS numbers, which fill columns of all tables.
    """

    records: Dataset
    parameters: Parameters = field(default_factory=Parameters)
    progress: Callable[[int, int], object] | None = None
    directory: Path | None = None
    within: TimeRange = field(default_factory=TimeRange)
    places: Places | None = None
    _computed: dict[str, Dataset] = field(default_factory=dict, repr=False, compare=False)

    def count(self) -> int:
        """Returns the number of records."""
        return self.records.count()

    def filter(self, text: str) -> Archive:
        """Returns the records that match a filter in nfdump's language (`thalweg.filter`).

        Raises:
            FilterError: If the filter is invalid.
        """
        return Archive(self.matching(text), self.parameters, self.progress, self.directory, self.within, self.places)

    @cached_property
    def transfers(self) -> Transfers:
        """The transfers that hosts reported to the server, and the reasons why they were slow.

        Raises:
            SourceError: If the source is not the directory of a store, or has no transfers.
        """
        from .transfers import Stored, Transfers

        if self.directory is None or not self.directory.is_dir():
            raise SourceError(f"{self.directory or 'several files'}: expected the directory of a store for transfers")
        return Transfers(Stored(self.records.engine, self.directory, self.within))

    def flows(self) -> Dataset:
        """Returns flows, with the columns of `flows.COLUMNS`; with databases also countries."""
        return self._annotated("flows", self._flows())

    def _flows(self) -> Dataset:
        if "flows" not in self._computed:
            if self._is_compiled():
                self._analyse()
            else:
                self._computed["flows"] = self._reconstructed(elephants_only=False)
        return self._computed["flows"]

    def elephants(self) -> Dataset:
        """Returns only elephant flows: on SQL engines, less work than all flows."""
        return self._annotated("elephants", self._elephants())

    def _elephants(self) -> Dataset:
        if self._is_compiled() or "flows" in self._computed:
            return self._flows().filter(lambda flows: flows.elephant)
        if "elephants" not in self._computed:
            self._computed["elephants"] = self._reconstructed(elephants_only=True)
        return self._computed["elephants"]

    def flowsets(self) -> Dataset:
        """Returns flowsets, with the columns of `flowsets.COLUMNS`; with databases also countries."""
        return self._annotated("flowsets", self._flowsets())

    def _flowsets(self) -> Dataset:
        chosen = self.parameters
        if "flowsets" not in self._computed:
            if self._is_compiled():
                self._analyse()
            else:
                members = self._elephants() if chosen.elephants_only else self._flows()
                from .flowsets import flowsets

                sets = flowsets(members, tau=chosen.tau, rule=chosen.rule, elephants_only=chosen.elephants_only)
                self._computed["flowsets"] = sets.materialised()
        return self._computed["flowsets"]

    def table(self, of: str) -> Dataset:
        """Returns one of `TABLES`.

        Raises:
            QueryError: If the table is unknown.
        """
        match of:
            case "records":
                return self._annotated("records", self.records)
            case "flows":
                return self.flows()
            case "elephants":
                return self.elephants()
            case "flowsets":
                return self.flowsets()
        raise QueryError(f"invalid table {of!r}: expected one of {', '.join(TABLES)}{suggestion(of, TABLES)}")

    def matching(self, text: str, of: str = "records") -> Dataset:
        """Returns the records, flows or flowsets that match a filter.

        Raises:
            FilterError: If the filter is invalid or needs missing columns.
        """
        rows = self.table(of)
        return rows if not text.strip() else rows.filter(compile_filter(text, rows.table))

    def _needed(self, text: str, of: str, columns: Iterable[str]) -> Dataset:
        """Returns the rows that match a filter, for these columns of theirs: addresses are only looked up if that matters."""
        if of != "records" or not {*columns, *columns_of(parse(text))}.isdisjoint(PLACE_COLUMNS):
            return self.matching(text, of)
        rows = self.records
        return rows if not text.strip() else rows.filter(compile_filter(text, rows.table))

    def _annotated(self, name: str, rows: Dataset) -> Dataset:
        if self.places is None:
            return rows
        key = f"{name} with places"
        if key not in self._computed:
            self._computed[key] = self.places.annotated(rows)
        return self._computed[key]

    def top(
        self,
        by: str | Sequence[str] = "src",
        *,
        order: str = "bytes",
        limit: int | None = 10,
        matching: str = "",
        of: str = "records",
        every_router: bool = False,
    ) -> Dataset:
        """Returns the largest groups (`top.top`); `by` has names of `dimensions.DIMENSIONS`.

        A flow of which several routers exported records counts once (`once.counted_once`), or once at each router if `by` has a
        dimension with the exporter. The dataset's `note` says how many records that left out. `every_router`: all records count.

        Raises:
            DimensionError: If a dimension or the order is invalid.
            FilterError: If `matching` is invalid.
        """
        if order not in ORDERS:
            raise DimensionError(f"invalid order {order!r}: expected one of {', '.join(ORDERS)}{suggestion(order, ORDERS)}")
        chosen = dimensions(_names(by))
        if not chosen:
            raise DimensionError(f"by: expected one or more of {', '.join(DIMENSIONS)}")
        rows = self._needed(matching, of, _keys(chosen))
        if rows is self.records:
            gap_us = None if every_router else int(self.parameters.rules()["gap_us"])
            found = rows.engine.top(rows, chosen, order, limit, gap_us=gap_us, progress=self.progress)
            if found is not None:
                return found
        from .top import top

        rows = self._counted(rows, of, chosen, every_router)
        return rows.derive(top(rows.table, _names(by), order, limit))

    def counted(self, matching: str = "", of: str = "records", by: Sequence[str] = (), *, every_router: bool = False) -> Dataset:
        """Returns the rows that match a filter and count if grouped `by` dimensions: as `top`, each flow of records once.

        Raises:
            DimensionError: If a dimension is invalid.
            FilterError: If the filter is invalid.
        """
        chosen = dimensions(by)
        return self._counted(self._needed(matching, of, _keys(chosen)), of, chosen, every_router)

    def _counted(self, rows: Dataset, of: str, by: Sequence[Dimension], every_router: bool) -> Dataset:
        if of != "records" or every_router:
            return rows
        from .once import counted_once

        return counted_once(rows, self.parameters.gap, per_router=is_per_router(by), columns=list(dict.fromkeys([*_keys(by), *COUNTED])))

    def series(
        self,
        every: str | int = "5m",
        *,
        by: str | Sequence[str] = (),
        groups: int = 5,
        matching: str = "",
        of: str = "records",
        every_router: bool = False,
    ) -> Dataset:
        """Returns the traffic per interval (`series.series`); `every` is a duration such as `5m`, or microseconds.

        Each flow counts once, as in `top`. `every_router`: all records count.
        """
        import pyarrow as pa

        from .series import series

        every_us = span_us(every) if isinstance(every, str) else every
        rows = self.counted(matching, of, _names(by), every_router=every_router)
        found = rows.engine.from_arrow(pa.Table.from_pandas(series(rows, every_us, by=_names(by), groups=groups), preserve_index=False))
        return Dataset(found.engine, found.table, note=rows.note)

    def query(self, text: str) -> Dataset:
        """Returns the result of SQL (DuckDB's dialect, from one of `TABLES`), or the records that match a filter, by start.

        Raises:
            QueryError: If the SQL is invalid or names another table.
            FilterError: If it is neither SQL nor a valid filter.
        """
        if not _SQL.match(text):
            matching = self.matching(text)
            return matching.derive(matching.table.order_by(list(ORDER)))
        import sqlglot
        import sqlglot.errors
        from sqlglot import exp

        try:
            parsed = sqlglot.parse_one(text, dialect="duckdb")
        except sqlglot.errors.ParseError as error:
            raise QueryError(f"query: {error}") from None
        own = {part.alias for part in parsed.find_all(exp.CTE)}
        named = [table for table in parsed.find_all(exp.Table) if table.name not in own]
        found = sorted({table.name for table in named})
        if len(found) != 1 or found[0] not in TABLES or not isinstance(parsed, exp.Query):
            names = " and ".join(found) or "no table"
            raise QueryError(f"query: expected a SELECT from one of {', '.join(TABLES)}, got {names}")
        for table in named:
            table.replace(exp.to_table("rows", alias=table.alias or table.name))
        rows = self.table(found[0])
        try:
            return rows.sql(parsed.sql(dialect="duckdb"))
        except Exception as error:  # engines raise their own exceptions for missing columns
            raise QueryError(f"query: {error}") from error

    def _is_compiled(self) -> bool:
        return self.records.engine.name == "native" and bool(self.records.files)

    def _analyse(self) -> None:
        """Computes flows and flowsets in one pass."""
        from .analysis import analyse

        found = analyse(self.records, self.parameters, self.progress)
        self._computed.update(flows=found.flows, flowsets=found.flowsets)

    def _reconstructed(self, *, elephants_only: bool) -> Dataset:
        from .flows import reconstruct

        chosen = self.parameters
        return reconstruct(
            self.records, gap=chosen.gap, threshold=chosen.threshold, window=chosen.window, elephants_only=elephants_only
        ).materialised()

    def __repr__(self) -> str:
        """Names source and engine, without reading rows."""
        of_files = f"{len(self.records.files):,} files" if self.records.files else "a query"
        return f"<thalweg.Archive of {of_files}, engine {self.records.engine.name}>"

    def _repr_html_(self) -> str:
        """Shows the archive in notebooks, without reading rows."""
        records = self.records
        parameters = ", ".join(f"{name} {value}" for name, value in vars(self.parameters).items())
        of_files = f"{len(records.files):,} files" if records.files else "a query"
        about = {"records": f"{of_files}, {records.engine.name}", "parameters": parameters, "columns": ", ".join(records.table.columns)}
        rows = "".join(f"<tr><th>{name}</th><td>{html.escape(text)}</td></tr>" for name, text in about.items())
        return f"<table><caption>Flow records</caption>{rows}</table>"


def _keys(by: Iterable[Dimension]) -> list[str]:
    """Returns the columns that dimensions need."""
    return [column for dimension in by for column in (*dimension.columns, *dimension.either)]


def _names(by: str | Sequence[str]) -> list[str]:
    return listed(by) if isinstance(by, str) else list(by)
