"""Peers: transfers over the same network path (the dissertation, equation 5.1), and the rates that they reach.

    P = {(H_i^x, H_j^y), (H_k^x, H_l^y), ...}, |P| <= m n

The hosts of a site x send to those of a site y over one path. Sites are groups of addresses: prefixes, a list of sites, or AS numbers of
flow records; a list of traceroutes names the paths of pairs of hosts itself. A host outside all groups is a group of its own.

The references of a path come from *free* transfers: those that TCP's accounting of the sender shows to be limited by neither host for
`FREE_PERMILLE` of the time. Only the network and the number of streams limit them, so their best rates are what the path gives. A peer
with a slow disk says nothing about the path; neither does one that failed, that has too few samples, or whose hosts are unknown.
"""

from __future__ import annotations

import abc
import csv
import ipaddress
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.types as ir
import pandas as pd
import pyarrow as pa

from ..dataset import Dataset
from ..groups import OTHER, ByPrefix, Sites
from ..sources import SourceError
from ..statistics import summary
from .datasets import Stored
from .entries import FASTEST_BPS
from .verdict import MIN_DURATION_US, MIN_SAMPLES, MOSTLY_LOSSY, events

PATH = ["src_group", "dst_group"]
"""Columns that identify a path."""

FREE_PERMILLE = 300
"""Part of the time of its connections that a free transfer is limited by a host, at most."""

MIN_PEERS = 5
"""Minimum number of free transfers for a reference: the largest of fewer is an accident."""

MIN_STREAMS_PEERS = 3
"""Minimum number of free transfers with one number of streams."""

Name = Callable[[str, str], tuple[str, str]]


class TracerouteError(ValueError):
    """An invalid list of traceroutes, with file and line."""


class Paths(abc.ABC):
    """How the path of a transfer is found."""

    name: str

    @abc.abstractmethod
    def pairs(self, stored: Stored, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, str]]:
        """Returns the groups of both ends of pairs of addresses."""

    def grouped(self, stored: Stored, transfers: Dataset) -> Dataset:
        """Adds the columns of `PATH`."""
        rows = transfers.engine.to_pyarrow(transfers.table.select("src", "dst").distinct()).to_pylist()
        pairs = sorted((row["src"], row["dst"]) for row in rows)
        groups = self.pairs(stored, pairs)
        columns = {
            "of_src": [src for src, _ in pairs],
            "of_dst": [dst for _, dst in pairs],
            "src_group": [groups[pair][0] or pair[0] for pair in pairs],
            "dst_group": [groups[pair][1] or pair[1] for pair in pairs],
        }
        names = transfers.engine.from_arrow(pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})).table
        table = transfers.table
        both = table.inner_join(names, [("src", "of_src"), ("dst", "of_dst")])
        return transfers.derive(both.select(*table.columns, *PATH))


@dataclass(frozen=True)
class BySite(Paths):
    """Paths between groups of addresses.

    Attributes:
        groups: Prefixes of one length, or a list of sites.
        name: Words for the grouping.
    """

    groups: ByPrefix | Sites = field(default_factory=ByPrefix)
    name: str = "prefix of 24 bits (IPv6: 48)"

    def pairs(self, stored: Stored, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, str]]:
        """Returns the groups of both ends of pairs of addresses."""
        known = list(pairs)
        names = {address: self._of(address) for address in {address for pair in known for address in pair}}
        return {(src, dst): (names[src], names[dst]) for src, dst in known}

    def _of(self, address: str) -> str:
        try:
            return self.groups.name_of(address)
        except ValueError:  # a log with a host name
            return OTHER


@dataclass(frozen=True)
class ByAsOfFlows(Paths):
    """Paths between autonomous systems, by the AS numbers that routers export with flow records of the hosts."""

    name: str = "autonomous system"

    def pairs(self, stored: Stored, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, str]]:
        """Returns the groups of both ends of pairs of addresses.

        Raises:
            SourceError: If the store has no flow records.
        """
        if stored.flow_records is None:
            raise SourceError(f"{stored.directory}: AS numbers come from flow records, and none are stored; use prefix/LEN or sites=FILE")
        rows = stored.flow_records.table
        ends = [rows.select(address=rows[end], number=rows[f"{end}_as"]).filter(rows[f"{end}_as"] > 0) for end in ("src", "dst")]
        both = ends[0].union(ends[1])
        found = stored.engine.to_pyarrow(both.group_by("address").aggregate(number=both["number"].max())).to_pylist()
        names = {row["address"]: f"AS{row['number']}" for row in found}
        return {(src, dst): (names.get(src, OTHER), names.get(dst, OTHER)) for src, dst in pairs}


class ByTraceroute(Paths):
    """Paths with the same hops. Pairs of hosts without a traceroute are paths of their own."""

    name = "traceroute"

    def __init__(self, routes: Mapping[tuple[str, str], tuple[str, ...]]) -> None:
        """
        Args:
            routes: Addresses of the routers from source to destination, by the two hosts.
        """
        self._routes = dict(routes)

    @classmethod
    def read(cls, path: str | Path) -> ByTraceroute:
        """Reads routes from a CSV file: source, destination, then the routers in order. Empty lines and lines that start with `#`
        are skipped.

        Raises:
            TracerouteError: If a line has no two addresses and at least one router.
            OSError: If the file cannot be read.
        """
        routes: dict[tuple[str, str], tuple[str, ...]] = {}
        with open(path, newline="", encoding="utf-8") as file:
            rows = csv.reader(file, skipinitialspace=True)
            for row in rows:
                cells = [cell.strip() for cell in row]
                if not any(cells) or cells[0].startswith("#"):
                    continue
                try:
                    src, dst, *hops = (cell if cell == "*" else str(ipaddress.ip_address(cell)) for cell in cells)
                    if not hops:
                        raise ValueError("no router")
                except ValueError as wrong:
                    expected = "expected source,destination,router,..."
                    raise TracerouteError(f"{path}: line {rows.line_num}: {expected}: {wrong}") from wrong
                routes[src, dst] = tuple(hop for hop in hops if hop != "*")
        return cls(routes)

    def pairs(self, stored: Stored, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, str]]:
        """Returns the first and the last router of each route, with a digest of what is between them."""
        found: dict[tuple[str, str], tuple[str, str]] = {}
        for pair in pairs:
            hops = self._routes.get(pair, ())
            found[pair] = (hops[0], " ".join(hops[1:]) or hops[0]) if hops else (OTHER, OTHER)
        return found


@dataclass(frozen=True)
class References:
    """What the peers of each transfer reach.

    Attributes:
        transfers: The transfers, with the columns `path_rate_bps` (0: unknown), `path_loss_ppb` and `path_free` (number of free
            transfers), `pair_min_rtt_us`, `more_streams` and `more_streams_bps` (the fastest larger number of streams; 0: none).
        paths: `PATH`, `rate_bps`, `loss_ppb` and `free`.
        streams: `PATH`, `streams` and the summary of the rates of free transfers.
    """

    transfers: Dataset
    paths: pd.DataFrame
    streams: pd.DataFrame


def references(transfers: Dataset) -> References:
    """Computes the references of every path from transfers with the columns of `join.joined` and of `PATH`."""
    # Tables of all columns are wide: only narrow ones are kept.
    rated = transfers.derive(_with_limits(transfers.table))
    carried = rated.table["send_acked_bytes"].cast("float64") * 8e6 / ibis.greatest(rated.table["duration_us"], 1).cast("float64")
    carried = ibis.least(carried, FASTEST_BPS).floor()
    narrow = rated.table.select(
        *(*PATH, "src", "dst", "transfer", "streams", "limited_permille", "loss_ppb", "send_min_rtt_us"),
        # Transfers that share their connections share the rate of the path.
        rate_bps=ibis.greatest(rated.table["rate_bps"], carried.cast("int64")),
    )
    known = rated.derive(narrow).materialised()
    free = known.filter((known.table["limited_permille"] >= 0) & (known.table["limited_permille"] < FREE_PERMILLE))
    free = free.filter(free.table["rate_bps"] > 0).materialised()
    rates = _p90(free)
    losses = summary(free, "loss_ppb", PATH)[[*PATH, "p50"]].rename(columns={"p50": "loss_ppb"})
    paths = rates.merge(losses, on=PATH, how="left")
    by_streams = summary(free, "rate_bps", [*PATH, "streams"])
    table = _joined(rated, rated.table, _of_paths(paths), PATH)
    table = _joined(rated, table, _more_streams(by_streams), [*PATH, "streams"])
    seen = known.table.filter(known.table["send_min_rtt_us"] > 0)
    shortest = seen.group_by(["src", "dst"]).aggregate(pair_min_rtt_us=seen["send_min_rtt_us"].min())
    table = _with_numbers(table, rated.derive(shortest).materialised().table, ["src", "dst"])
    return References(rated.derive(table), paths, by_streams)


def pairs(transfers: Dataset) -> Dataset:
    """Returns each path with its pairs of hosts: `PATH`, `pairs`, `senders`, `receivers`, `transfers`, `bytes`, by bytes."""
    table = transfers.table
    hosts = table.mutate(pair=table["src"].concat(" ", table["dst"]))
    found = hosts.group_by(PATH).aggregate(
        pairs=hosts["pair"].nunique(),
        senders=hosts["src"].nunique(),
        receivers=hosts["dst"].nunique(),
        transfers=hosts.count(),
        bytes=hosts["bytes"].sum().cast("int64"),
    )
    return transfers.derive(found.order_by([ibis.desc("bytes"), *PATH]))


def _with_limits(table: ir.Table) -> ir.Table:
    """Adds the part of the time that a host limited the connections (-1: unknown), and the loss in parts per billion."""
    observed = table["send_connection_us"]
    # As `verdict.measured`.
    idle = ibis.ifelse(table["send_busy_us"] > 0, observed - table["send_busy_us"], 0)
    limited = table["send_receive_window_limited_us"] + ibis.greatest(table["send_send_buffer_limited_us"], table["send_buffer_full_us"])
    limited += ibis.greatest(table["send_starved_us"], idle)
    permille = (limited.cast("float64") * 1000 / observed.nullif(0).cast("float64")).floor().cast("int64")
    is_known = (
        (table["send_samples"] >= MIN_SAMPLES) & (table["send_observed_us"] >= MIN_DURATION_US) & (table["duration_us"] >= MIN_DURATION_US)
    )
    is_known &= (observed > 0) & (table["error"] == "") & (table["src"] != "") & (table["dst"] != "")
    sent = table["send_sent_segments"]
    # As `verdict.measured`: loss events.
    lost = table["send_retransmitted_segments"].cast("float64")
    samples = table["send_samples"].cast("float64")
    share = table["send_lossy_samples"].cast("float64") / samples.nullif(0)
    lost = ibis.ifelse(share < MOSTLY_LOSSY, ibis.least(samples * events(share), lost), lost)
    loss = (lost * 1e9 / sent.nullif(0).cast("float64")).floor().cast("int64")
    return table.mutate(limited_permille=ibis.ifelse(is_known, permille, -1).fill_null(-1), loss_ppb=loss.fill_null(0))


def _p90(free: Dataset) -> pd.DataFrame:
    """Returns the rate that nine in ten free transfers of each path stay below; a transfer above is an outlier or had a cache."""
    table = free.table
    window = ibis.window(group_by=PATH, order_by=["rate_bps", "transfer"])
    ranked = table.select(*PATH, "rate_bps", "transfer", rank=ibis.row_number().over(window))
    ranked = ranked.mutate(members=ranked.count().over(ibis.window(group_by=PATH)))
    # The rank of nine tenths, in whole numbers.
    at = ranked.filter(ranked["rank"] * 10 <= (ranked["members"] - 1) * 9)
    found = at.group_by(PATH).aggregate(rate_bps=at["rate_bps"].max(), free=at["members"].max())
    columns = [*PATH, "rate_bps", "free"]
    frame = free.derive(found).to_pyarrow().to_pandas()[columns].astype({"rate_bps": "int64", "free": "int64"})
    return frame.sort_values(PATH, ignore_index=True)


def _of_paths(paths: pd.DataFrame) -> pd.DataFrame:
    known = paths[paths["free"] >= MIN_PEERS]
    return known[PATH].assign(
        path_rate_bps=known["rate_bps"].astype("int64"),
        path_loss_ppb=known["loss_ppb"].astype(float).round().astype("int64"),
        path_free=known["free"].astype("int64"),
    )


def _more_streams(by_streams: pd.DataFrame) -> pd.DataFrame:
    """Returns for each number of streams on a path the fastest larger one."""
    rows: list[dict[str, Any]] = []
    for path, of_path in by_streams.groupby(PATH):
        known = of_path[of_path["count"] >= MIN_STREAMS_PEERS]
        for streams in of_path["streams"]:
            more = known[known["streams"] > streams]
            if len(more):
                best = more.loc[more["p50"].idxmax()]
                rows.append(
                    dict(zip(PATH, path, strict=True))
                    | {"streams": streams, "more_streams": best["streams"], "more_streams_bps": best["p50"]}
                )
    frame = pd.DataFrame(rows, columns=[*PATH, "streams", "more_streams", "more_streams_bps"])
    return frame.astype(dict.fromkeys(("streams", "more_streams", "more_streams_bps"), "int64"))


def _joined(dataset: Dataset, table: ir.Table, frame: pd.DataFrame, keys: list[str]) -> ir.Table:
    """Adds the numbers of a frame; 0 where it has no row."""
    types = {name: pa.string() if name in PATH else pa.int64() for name in frame.columns}
    loaded = dataset.engine.from_arrow(pa.table({name: pa.array(frame[name].tolist(), kind) for name, kind in types.items()})).table
    return _with_numbers(table, loaded, keys)


def _with_numbers(table: ir.Table, other: ir.Table, keys: list[str]) -> ir.Table:
    renamed = other.rename({f"key_{name}": name for name in keys})
    both = table.left_join(renamed, [(name, f"key_{name}") for name in keys])
    values = [name for name in other.columns if name not in keys]
    return both.select(*table.columns, **{name: both[name].fill_null(0) for name in values})
