"""Finds the Parquet files with the requested records.

A collector writes `DIR/flows/date=2026-11-22/hour=13/NAME.parquet`, one directory per hour (UTC) of *reception*, so a time
range needs only the files of its hours.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from .quantities import instant

_PARTITION = re.compile(r"date=(\d{4}-\d\d-\d\d)/hour=(\d\d?)(?:/|$)")
_HOUR = timedelta(hours=1)

FLOWS = "flows"
"""Directory of the flow records within that of a collector."""

OTHER_DATASETS = ("interface-counters", "transfers", "host-metrics", "connections", "hosts", "verdicts", "flowsets")
"""Directories of the other datasets. A directory with one of them and without `flows` is a store without flow records."""


class SourceError(ValueError):
    """No readable files at the source."""


def moment(at: datetime | str | None) -> datetime | None:
    """Returns a time that may be given as text, as on the command line: `2026-11-22`, `2026-11-22T13:30`, `now-90m` (UTC).

    Raises:
        ValueError: If the text is not a time.
    """
    return instant(at, datetime.now(UTC)) if isinstance(at, str) else at


@dataclass(frozen=True)
class TimeRange:
    """A range of reception times: includes `start`, excludes `end`; None means no limit.

    Raises:
        ValueError: If one of them has no time zone, or the end is before the start.
    """

    start: datetime | None = None
    end: datetime | None = None

    def __post_init__(self) -> None:
        for at in (self.start, self.end):
            if at is not None and at.tzinfo is None:
                raise ValueError(f"time range: {at} has no time zone; use datetime(..., tzinfo=UTC)")
        if self.start is not None and self.end is not None and self.end < self.start:
            raise ValueError(f"time range: ends at {self.end}, before its start at {self.start}")

    def overlaps(self, hour: datetime) -> bool:
        """Whether the range overlaps the hour that starts at `hour`."""
        return (self.start is None or hour + _HOUR > self.start) and (self.end is None or hour < self.end)

    def covers(self, hour: datetime) -> bool:
        """Whether the range includes the whole hour that starts at `hour`."""
        return (self.start is None or hour >= self.start) and (self.end is None or hour + _HOUR <= self.end)


@dataclass(frozen=True)
class Selection:
    """Files that contain all records of a time range.

    Attributes:
        files: Their paths, in order.
        exact: Whether they contain no other records, so that rows need no check.
    """

    files: tuple[str, ...]
    exact: bool


def hour_of(path: str) -> datetime | None:
    """Returns the hour of reception in a file's directory name, or None."""
    found = _PARTITION.search(Path(path).as_posix())
    if found is None:
        return None
    return datetime.fromisoformat(f"{found[1]}T{int(found[2]):02}:00:00").replace(tzinfo=UTC)


def select(source: str | Path | Iterable[str | Path], within: TimeRange = TimeRange()) -> Selection:
    """Returns the Parquet files of `source` that may contain records of a time range.

    Args:
        source: A directory (a collector's, its `flows`, or any that holds Parquet files at some depth), a pattern
            (`*`, `?`, `[...]`, `**`), a file, or several files. A store without flow records has no files.
        within: Times of reception.

    Raises:
        SourceError: If no files are found.
    """
    files = _all_files(source)
    if not files and not _is_store(source):
        is_missing = isinstance(source, str | Path) and not glob.has_magic(str(source)) and not Path(source).exists()
        raise SourceError(f"{source}: {'no such file or directory' if is_missing else 'no Parquet files found'}")
    hours = {path: hour_of(path) for path in files}
    kept = tuple(path for path in files if (hour := hours[path]) is None or within.overlaps(hour))
    everything = within == TimeRange()
    exact = everything or all((hour := hours[path]) is not None and within.covers(hour) for path in kept)
    return Selection(kept, exact)


def _all_files(source: str | Path | Iterable[str | Path]) -> list[str]:
    if not isinstance(source, str | Path):
        return [str(path) for path in source]
    path = Path(source)
    if path.is_dir():
        flows = path / FLOWS
        if not flows.is_dir() and _is_store(path):
            return []
        return sorted(str(file) for file in (flows if flows.is_dir() else path).rglob("*.parquet"))
    if path.is_file():
        return [str(path)]
    return sorted(glob.glob(str(source), recursive=True))


def _is_store(source: str | Path | Iterable[str | Path]) -> bool:
    """Whether this is the directory of a store with other datasets than flow records."""
    return isinstance(source, str | Path) and any((Path(source) / name).is_dir() for name in OTHER_DATASETS)
