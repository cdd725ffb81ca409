"""Opens the datasets about transfers in the directory of a store."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path

import ibis
import ibis.expr.types as ir
import pyarrow as pa

from ..dataset import Dataset
from ..engines import Engine
from ..engines.engine import microseconds
from ..interfaces import FOLDER as INTERFACE_COUNTERS
from ..sources import SourceError, TimeRange
from . import columns

BEFORE = timedelta(hours=6)
"""Samples are read from this time before the range of reception: a transfer in the range can have started before it."""

AFTER = timedelta(days=1)
"""Samples are read until this time after the range: an agent that could not reach the server sends them later."""


PAIRING = timedelta(hours=6)
"""Log entries are read from this time before the range until this time after it: of a transfer at an edge of the range, the two ends
report on both sides of the edge, seconds apart, or hours apart after an outage."""


@dataclass(frozen=True)
class Stored:
    """The datasets about transfers in a store. Missing ones are empty, except `transfers`.

    Attributes:
        engine: The engine that computes.
        directory: The directory of the store.
        within: Times of reception of the log entries whose transfers are analysed.
    """

    engine: Engine
    directory: Path
    within: TimeRange = field(default_factory=TimeRange)

    @cached_property
    def transfers(self) -> Dataset:
        """Entries of transfer logs, with those around the range that can be the other end of one within.

        Raises:
            SourceError: If the store has no transfers.
        """
        if not self.has("transfers"):
            missing = (
                "no such directory" if not self.directory.is_dir() else "no transfers stored; run thalweg transfers agent on the hosts"
            )
            raise SourceError(f"{self.directory}: {missing}")
        return self._open("transfers", columns.TRANSFERS, self._around(PAIRING, PAIRING))

    def covers(self, received_us: ir.IntegerColumn) -> ir.BooleanValue:
        """Returns whether a time of reception is within the range."""
        condition: ir.BooleanValue = ibis.literal(True)
        if self.within.start is not None:
            condition &= received_us >= microseconds(self.within.start)
        if self.within.end is not None:
            condition &= received_us < microseconds(self.within.end)
        return condition

    @cached_property
    def host_metrics(self) -> Dataset:
        """The load of hosts."""
        return self._open("host-metrics", columns.HOST_METRICS, self._around())

    @cached_property
    def connections(self) -> Dataset:
        """TCP connections."""
        return self._open("connections", columns.CONNECTIONS, self._around())

    @cached_property
    def hosts(self) -> Dataset:
        """Static parameters of hosts, of all times: an agent that runs for long sends them once a day."""
        return self._open("hosts", columns.HOSTS, TimeRange())

    @cached_property
    def flow_records(self) -> Dataset | None:
        """Flow records; None if none are stored."""
        around = self._around()
        return self.engine.open(self.directory / "flows", start=around.start, end=around.end) if self.has("flows") else None

    @cached_property
    def interface_counters(self) -> Dataset | None:
        """Interface counters; None if none are stored."""
        if not self.has(INTERFACE_COUNTERS):
            return None
        from ..interfaces import interface_counters

        around = self._around()
        return interface_counters(self.engine, self.directory, start=around.start, end=around.end)

    def has(self, name: str) -> bool:
        """Whether the store has files of a dataset."""
        return next((self.directory / name).rglob("*.parquet"), None) is not None

    def _around(self, before: timedelta = BEFORE, after: timedelta = AFTER) -> TimeRange:
        def shifted(at: datetime | None, by: timedelta) -> datetime | None:
            return None if at is None else at + by

        return TimeRange(shifted(self.within.start, -before), shifted(self.within.end, after))

    def _open(self, name: str, schema: pa.Schema, within: TimeRange) -> Dataset:
        if not self.has(name):
            return self.engine.empty(schema)
        found = self.engine.open(self.directory / name, start=within.start, end=within.end, schema=schema)
        # Engines read columns without nulls as such, and outer joins need one type of a column.
        return found.derive(found.table.select([name if name not in _TIMES else f"{name}_us" for name in schema.names]))


_TIMES = ("received", "start", "end", "time")
