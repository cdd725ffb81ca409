"""The Performance and Root Cause Analysis (PRCA) report of a user, a host, or all transfers (the dissertation, section 5.2)."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ibis
import ibis.expr.types as ir
import pandas as pd

from .. import units
from ..dataset import Dataset
from ..statistics import summary
from . import model as models
from .clusters import TABLE
from .explanation import WORDS
from .parameters import STATIC
from .peers import PATH
from .verdict import CAUSES

if TYPE_CHECKING:
    from .analysis import Transfers

SLOWEST = 50
"""Number of listed slow transfers: those that lost most time."""

HISTOGRAM = 5000
"""Maximum number of rates in a histogram."""

MODELS = 5
"""Maximum number of paths with a model in a report: those with most transfers."""

OFTEN, OFTEN_MIN = 0.5, 5
"""A host is often in slow transfers if at least this part of its transfers is slow, and it had at least this many."""

CLUSTERS, ALL_CLUSTERS, HOSTS = 60, 2000, 2000
"""Maximum number of clusters in the page, and of clusters and hosts in the JSON file: those of the paths with most slow transfers, and the
hosts with most. `totals` has all numbers."""


@dataclass(frozen=True)
class Report:
    """A report.

    Attributes:
        kind: `user`, `host` or `all`.
        name: The user or host; empty for all.
        made: Time of the analysis.
        about: Facts about data and method.
        totals: `transfers`, `slow`, `without_verdict`, `bytes`, `first_us`, `last_us`.
        causes: Each cause with its transfers, slow transfers, bytes and quartiles of rates.
        slowest: The slow transfers that lost most time, with verdict and advice.
        clusters: Combinations of static parameters on the subject's paths, as Table 5.1; `own` marks the subject's.
        rates: Rates by `combination` on the path with most slow transfers: the subject's most frequent combination and the best one.
        hosts: Hosts with their slow transfers; `often` marks those often in slow transfers.
        models: Throughput models of paths on which dynamic parameters dominate, or why there is none.
        clocks: Clocks that differ from the others.
    """

    kind: str
    name: str
    made: datetime
    about: dict[str, Any]
    totals: dict[str, Any]
    causes: list[dict[str, Any]]
    slowest: list[dict[str, Any]]
    clusters: list[dict[str, Any]]
    rates: dict[str, list[int]]
    hosts: list[dict[str, Any]]
    models: list[dict[str, Any]]
    clocks: list[dict[str, Any]]


def report(transfers: Transfers, kind: str, name: str) -> Report:
    """Computes the report of a subject, which has transfers."""
    verdicts = transfers.verdicts
    if kind != "all":
        verdicts = transfers.list(user=name if kind == "user" else "", host=name if kind == "host" else "").materialised()
    paths = verdicts.derive(
        verdicts.table.group_by(PATH).aggregate(transfers=verdicts.table.count(), slow=verdicts.table["slow"].sum().cast("int64"))
    )
    of_paths = sorted(paths.to_pyarrow().to_pylist(), key=lambda row: (-row["slow"], -row["transfers"], row["src_group"], row["dst_group"]))
    found = _clusters(transfers, verdicts, of_paths)
    within = transfers.stored.within
    about = {
        "data": str(transfers.stored.directory),
        "paths": transfers.paths.name,
        "from": None if within.start is None else within.start.isoformat(),
        "to": None if within.end is None else within.end.isoformat(),
        "engine": transfers.stored.engine.name,
    }
    return Report(
        kind=kind,
        name=name,
        made=transfers.made,
        about=about,
        totals=_totals(verdicts),
        causes=_causes(verdicts),
        slowest=_slowest(verdicts),
        clusters=found,
        rates=_rates(transfers, found, of_paths),
        hosts=_hosts(verdicts),
        models=_models(transfers, of_paths),
        clocks=[asdict(clock) for clock in transfers.evidence.clocks.wrong()],
    )


def write(found: Report, folder: Path) -> list[Path]:
    """Writes `index.html` and `report.json` into a folder, which is created if missing, and returns them.

    Raises:
        OSError: If a file cannot be written.
    """
    from .page import page

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "index.html", folder / "report.json"]
    replace_file(paths[0], page(found))
    replace_file(paths[1], as_json(found))
    return paths


def replace_file(path: Path, text: str) -> None:
    """Writes a file under another name and renames it, so that nobody reads half of it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def as_json(found: Report) -> str:
    """Returns the report as JSON: times are RFC 3339 or microseconds, sizes bytes, rates bit/s."""
    return json.dumps(vars(found) | {"made": found.made.astimezone(UTC).isoformat()}, indent=1, allow_nan=False) + "\n"


def _totals(verdicts: Dataset) -> dict[str, Any]:
    table = verdicts.table
    unknown = table["cause"] == "not_enough_data"
    found = table.aggregate(
        transfers=table.count(),
        slow=table["slow"].sum().cast("int64"),
        without_verdict=unknown.ifelse(1, 0).sum().cast("int64"),
        bytes=table["bytes"].sum().cast("int64"),
        first_us=table["start_us"].min(),
        last_us=table["end_us"].max(),
    )
    row: dict[str, Any] = verdicts.engine.to_pyarrow(found).to_pylist()[0]
    return {name: int(value or 0) for name, value in row.items()}


def _causes(verdicts: Dataset) -> list[dict[str, Any]]:
    table = verdicts.table
    grouped = table.group_by("cause").aggregate(
        transfers=table.count(), slow=table["slow"].sum().cast("int64"), bytes=table["bytes"].sum().cast("int64")
    )
    counts = {row["cause"]: row for row in verdicts.engine.to_pyarrow(grouped).to_pylist()}
    rates = {row["cause"]: row for row in summary(verdicts, "rate_bps", ["cause"]).to_dict("records")}
    order = sorted(counts, key=lambda cause: (-int(counts[cause]["transfers"]), CAUSES.index(cause)))
    return [
        {name: int(counts[cause][name]) for name in ("transfers", "slow", "bytes")}
        | {"cause": cause, "words": WORDS[cause]}
        | {f"rate_{name}_bps": float(rates[cause][name]) for name in ("p25", "p50", "p75")}
        for cause in order
    ]


def _slowest(verdicts: Dataset) -> list[dict[str, Any]]:
    table = verdicts.table.filter(verdicts.table["slow"] == 1)
    duration = (table["end_us"] - table["start_us"]).cast("float64")
    lost = (
        duration * (table["aspiration_bps"] - table["rate_bps"]).cast("float64") / ibis.greatest(table["aspiration_bps"], 1).cast("float64")
    )
    table = table.mutate(lost_us=lost.floor().cast("int64")).order_by([ibis.desc("lost_us"), "transfer"]).limit(SLOWEST)
    columns = (
        *("transfer", "application", "user", "sender", "receiver", "src", "dst", *PATH, "start_us", "end_us", "bytes", "streams"),
        *("rate_bps", "aspiration_bps", "lost_us", "cause", "confidence", "second_cause", "advised_streams", "advised_buffer_bytes"),
    )
    rows: list[dict[str, Any]] = verdicts.engine.to_pyarrow(table.select(list(columns))).to_pylist()
    return rows


def _clusters(transfers: Transfers, verdicts: Dataset, of_paths: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the clusters of the subject's paths, the path with most slow transfers first."""
    keys = [*PATH, "combination"]
    table = verdicts.table
    own = verdicts.engine.to_pyarrow(table.group_by(keys).aggregate(own=table.count())).to_pylist()
    counts = {tuple(row[name] for name in keys): int(row["own"]) for row in own}
    order = {(row["src_group"], row["dst_group"]): index for index, row in enumerate(of_paths)}
    clusters = transfers.evidence.clusters
    places = [order.get(path, -1) for path in zip(clusters["src_group"], clusters["dst_group"], strict=True)]
    chosen = clusters.assign(place=places)
    chosen = chosen[chosen["place"] >= 0].sort_values(["place", "p50", "combination"], ascending=[True, False, True]).head(ALL_CLUSTERS)
    found = []
    for row in chosen.drop(columns="place").to_dict("records"):
        numbers = {name: _number(row[name]) for name in (*TABLE, "overlap")}
        plain = {str(name): value for name, value in row.items() if name not in numbers}
        plain |= {name: int(plain[name]) for name in ("count", *_NUMBERS)} | {name: bool(plain[name]) for name in ("best", "narrow")}
        found.append(plain | numbers | {"own": counts.get(tuple(row[name] for name in keys), 0)})
    return found


_NUMBERS = [name for name in STATIC if name not in ("application", "congestion_control", "sender", "receiver")]


def _number(value: Any) -> float | None:
    return None if pd.isna(value) else float(value)


def _rates(transfers: Transfers, found: list[dict[str, Any]], of_paths: list[dict[str, Any]]) -> dict[str, list[int]]:
    if not of_paths:
        return {}
    of_path = [row for row in found if all(row[name] == of_paths[0][name] for name in PATH)]
    best = next((row for row in of_path if row["best"]), None)
    own = max((row for row in of_path if row["own"] and row is not best), key=lambda row: (row["own"], row["combination"]), default=None)
    return {str(row["combination"]): _of_cluster(transfers, row) for row in (own, best) if row is not None}


def labels(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Returns a short name of each combination: application, connections, hosts, and the other parameters in which combinations of the
    same path differ."""
    rows = list(rows)
    values: dict[tuple[str, ...], set[Any]] = defaultdict(set)
    for row in rows:
        for name in _OTHERS:
            values[row[PATH[0]], row[PATH[1]], name].add(row[name])
    found = []
    for row in rows:
        of_path = {name: values[row[PATH[0]], row[PATH[1]], name] for name in _OTHERS}
        streams = f"{row['streams']} {'connection' if row['streams'] == 1 else 'connections'}"
        parts = [row["application"] or "unknown", streams, f"{row['sender'] or '?'} to {row['receiver'] or '?'}"]
        parts += [_parameter(name, row[name], known) for name, known in of_path.items() if len(known) > 1]
        found.append(", ".join(parts))
    return found


_OTHERS = [name for name in STATIC if name not in ("application", "streams", "sender", "receiver")]
"""Parameters that names of combinations have only where they differ."""


def _parameter(name: str, value: Any, known: set[Any]) -> str:
    if not value:
        return f"{STATIC[name]} unknown"
    if name == "congestion_control":
        return str(value)
    rounded, unit = (units.bit_rate, "bit/s") if name.endswith("_bps") else (units.size, "bytes")
    is_distinct = len({rounded(each) for each in known}) == len(known)
    return f"{STATIC[name]} {rounded(value) if is_distinct else f'{value:,} {unit}'}"


def _of_cluster(transfers: Transfers, row: dict[str, Any]) -> list[int]:
    table = transfers.evidence.transfers.table
    condition: ir.BooleanValue = (table["rate_bps"] > 0) & (table["error"] == "")
    for name in (*PATH, "combination"):
        condition &= table[name] == row[name]
    chosen = table.filter(condition).select("transfer", "rate_bps").order_by("transfer").limit(HISTOGRAM)
    return [int(value) for value in transfers.stored.engine.to_pyarrow(chosen)["rate_bps"].to_pylist()]


def _hosts(verdicts: Dataset) -> list[dict[str, Any]]:
    table = verdicts.table
    ends = [table.select("slow", "cause", host=table[side], end=ibis.literal(side)) for side in ("sender", "receiver")]
    both = ends[0].union(ends[1])
    both = both.filter(both["host"] != "")
    counted = both.group_by(["host", "cause"]).aggregate(transfers=both.count(), slow=both["slow"].sum().cast("int64"))
    by_host: dict[str, dict[str, Any]] = {}
    for row in sorted(verdicts.engine.to_pyarrow(counted).to_pylist(), key=lambda row: (row["host"], -row["slow"], row["cause"])):
        host = by_host.setdefault(
            row["host"], {"host": row["host"], "transfers": 0, "slow": 0, "cause": row["cause"] if row["slow"] else ""}
        )
        host["transfers"] += int(row["transfers"])
        host["slow"] += int(row["slow"])
    for host in by_host.values():
        host["slow_share"] = host["slow"] / host["transfers"]
        host["often"] = host["transfers"] >= OFTEN_MIN and host["slow_share"] >= OFTEN
    return sorted(by_host.values(), key=lambda host: (not host["often"], -host["slow"], host["host"]))[:HOSTS]


def _models(transfers: Transfers, of_paths: list[dict[str, Any]]) -> list[dict[str, Any]]:
    wide = [row for row in of_paths if (row["src_group"], row["dst_group"]) in transfers.evidence.wide]
    found: list[dict[str, Any]] = []
    for row in sorted(wide, key=lambda row: -row["transfers"])[:MODELS]:
        path = (row["src_group"], row["dst_group"])
        about: dict[str, Any] = dict(zip(PATH, path, strict=True))
        try:
            fitted = transfers.model(path)
        except (models.TooFewError, ModuleNotFoundError) as error:
            found.append(about | {"reason": str(error)})
            continue
        coefficients = [
            {"name": name, "value": value, "lower": low, "upper": high} for name, (value, low, high) in fitted.coefficients().items()
        ]
        found.append(about | {"transfers": fitted.transfers, "r_squared": fitted.r_squared, "coefficients": coefficients})
    return found
