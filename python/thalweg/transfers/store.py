"""Writes verdicts, flowsets and reports into the directory of a store, from where the daemon serves them.

    DIR/verdicts/date=2026-11-28/hour=13/analysis.parquet    verdicts on the transfers whose sender's entry arrived in that hour
    DIR/flowsets/date=2026-11-28/hour=13/analysis.parquet    flowsets that ended in it
    DIR/reports/transfers/20261128T00_20261129T00/user-8a1f….html, .json
    DIR/reports/index.json                                   all reports: user or host, period, files, time of the analysis

A transfer that the sender did not log belongs to the hour of the receiver's entry. Other entries than the sender's are read around the
period, so that a transfer at its edge belongs to one period only.

A run covers whole hours and replaces what it wrote for them before, so that two runs give the same files. Every file gets its name when it
is complete; the index is the last one. A run that is killed leaves old files or new ones, and at most unnamed temporary ones.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import ibis

from ..archive import Archive
from ..dataset import Dataset
from ..engines.engine import microseconds
from ..errors import QuestionError
from .analysis import Transfers
from .page import page
from .prca import as_json, replace_file, report

REPORTS = 100
"""Default maximum number of users, and of hosts, that get a report: those with the most slow transfers."""

FILE = "analysis.parquet"
INDEX = Path("reports") / "index.json"
FOLDER = Path("reports") / "transfers"
VERSION = 1
"""Version of the index."""

_HOUR = timedelta(hours=1)


class PeriodError(QuestionError):
    """A period that does not consist of whole hours."""


@dataclass(frozen=True)
class Written:
    """What a run wrote.

    Attributes:
        verdicts: Number of verdicts.
        flowsets: Number of flowsets; None: no flow records are stored.
        reports: Number of reports.
        left_out: Number of users and hosts with slow transfers that got no report.
        index: The index of all reports.
    """

    verdicts: int
    flowsets: int | None
    reports: int
    left_out: int
    index: Path


def yesterday(now: datetime) -> tuple[datetime, datetime]:
    """Returns the last whole day before a time (UTC)."""
    end = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return end - timedelta(days=1), end


def write(transfers: Transfers, *, reports: int = REPORTS) -> Written:
    """Writes verdicts, flowsets and reports of the period of `transfers`.

    Raises:
        PeriodError: If the period is open or does not consist of whole hours.
        OSError: If a file cannot be written.
    """
    directory, within = transfers.stored.directory, transfers.stored.within
    if within.start is None or within.end is None or any(at.astimezone(UTC).timestamp() % 3600 for at in (within.start, within.end)):
        raise PeriodError("invalid period: expected a start and an end at whole hours")
    start, end = within.start.astimezone(UTC), within.end.astimezone(UTC)
    verdicts = transfers.verdicts
    _hours(verdicts, verdicts.table["received_us"], directory / "verdicts", start, end)
    flowsets = _flowsets(transfers, start, end)
    written, left_out = _reports(transfers, start, end, reports)
    return Written(verdicts.count(), flowsets, written, left_out, directory / INDEX)


def _hours(rows: Dataset, time_us: Any, folder: Path, start: datetime, end: datetime) -> None:
    """Writes rows into a file for each hour of a time; hours of the period without rows lose their file."""
    table = rows.table.mutate(hour_us=time_us - time_us % 3_600_000_000)
    found = rows.engine.to_pyarrow(table.select("hour_us").distinct())["hour_us"].to_pylist()
    present = {datetime.fromtimestamp(int(hour_us) // 1_000_000, UTC) for hour_us in found}
    for hour in _each_hour(start, end):
        path = folder / f"{hour:date=%Y-%m-%d}" / f"{hour:hour=%H}" / FILE
        if hour not in present:
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{FILE}.{os.getpid()}.tmp")
        try:
            of_hour = table.filter(table["hour_us"] == microseconds(hour)).drop("hour_us")
            rows.engine.to_parquet(of_hour, temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def _each_hour(start: datetime, end: datetime) -> Iterator[datetime]:
    while start < end:
        yield start
        start += _HOUR


def _flowsets(transfers: Transfers, start: datetime, end: datetime) -> int | None:
    stored = transfers.stored
    if not stored.has("flows"):
        return None
    found = Archive(stored.engine.open(stored.directory / "flows", start=start, end=end)).flowsets()
    # Of flows that routers report late: into the hour of the period that is nearest.
    first, last = (ibis.literal(microseconds(at), "int64") for at in (start, end - timedelta(microseconds=1)))
    ended = ibis.greatest(ibis.least(found.table["flow_end_us"], last), first)
    _hours(found, ended, stored.directory / "flowsets", start, end)
    return found.count()


# --- Reports


def _reports(transfers: Transfers, start: datetime, end: datetime, limit: int) -> tuple[int, int]:
    directory = transfers.stored.directory
    period = f"{start:%Y%m%dT%H}_{end:%Y%m%dT%H}"
    folder = directory / FOLDER / period
    folder.mkdir(parents=True, exist_ok=True)
    subjects = [("all", "")]
    left_out = 0
    for kind, column in (("user", ["user"]), ("host", ["sender", "receiver"])):
        names = _slow(transfers.verdicts, column)
        subjects += [(kind, name) for name in names[:limit]]
        left_out += max(len(names) - limit, 0)
    entries = []
    for kind, name in subjects:
        found = report(transfers, kind, name)
        stem = kind if kind == "all" else f"{kind}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
        replace_file(folder / f"{stem}.html", page(found))
        replace_file(folder / f"{stem}.json", as_json(found))
        entries.append(
            {
                "subject": kind,
                "name": name,
                "start": _utc(start),
                "end": _utc(end),
                "made": _utc(found.made),
                "html": str(FOLDER.relative_to("reports") / period / f"{stem}.html"),
                "json": str(FOLDER.relative_to("reports") / period / f"{stem}.json"),
                "transfers": found.totals["transfers"],
                "slow": found.totals["slow"],
                "causes": {row["cause"]: row["slow"] for row in found.causes if row["slow"]},
            }
        )
    _index(directory, entries, start, end, made=transfers.made, left_out=left_out)
    kept = {Path(entry[kind]).name for entry in entries for kind in ("html", "json")}
    for path in folder.iterdir():
        if path.name not in kept and path.suffix in (".html", ".json"):
            path.unlink()
    return len(entries), left_out


def _utc(time: datetime) -> str:
    """Returns a time as the API of the daemon writes it (RFC 3339, UTC)."""
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def _slow(verdicts: Dataset, columns: list[str]) -> list[str]:
    """Returns the users or hosts with slow transfers, the one with the most first."""
    table = verdicts.table.filter(verdicts.table["slow"] == 1)
    parts = [table.select(name=table[column]) for column in columns]
    names = parts[0] if len(parts) == 1 else parts[0].union(parts[1])
    counted = names.filter(names["name"] != "").group_by("name").aggregate(slow=ibis._.count())
    rows = verdicts.engine.to_pyarrow(counted).to_pylist()
    return [str(row["name"]) for row in sorted(rows, key=lambda row: (-row["slow"], row["name"]))]


def _index(directory: Path, entries: list[dict[str, Any]], start: datetime, end: datetime, *, made: datetime, left_out: int) -> None:
    path = directory / INDEX
    try:
        known = json.loads(path.read_text(encoding="utf-8"))["reports"]
    except (OSError, ValueError, KeyError, TypeError):
        known = []  # none yet, or a file of something else: this run's reports are what there is
    period = (_utc(start), _utc(end))
    kept = [
        entry
        for entry in known
        if isinstance(entry, dict) and (entry.get("start"), entry.get("end")) != period and (path.parent / str(entry.get("html"))).is_file()
    ]
    reports = sorted([*kept, *entries], key=lambda entry: (entry["start"], entry["end"], entry["subject"], entry["name"]))
    index = {"version": VERSION, "made": _utc(made), "left_out": left_out, "reports": reports}
    replace_file(path, json.dumps(index, indent=1) + "\n")
