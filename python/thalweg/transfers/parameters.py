"""The static parameters of transfers, and their combinations (the dissertation, section 5.3).

Static: application, number of streams, buffers, congestion control, the two hosts, disk and interface rates. A buffer is what the log
says; otherwise the limit of the host for automatic buffers, since the automatic size itself depends on the transfer.

Applications of `AUTOMATIC` log a size even if nobody chose it: that of the socket at this moment, which differs between equal transfers.
It counts only if the samples of all connections show exactly this size all the time. Without samples, it counts only where the limit of
the host is unknown.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import ibis
import ibis.expr.types as ir
import pyarrow as pa

from ..dataset import Dataset
from .datasets import Stored
from .join import SIDES

FOREVER_US = 1 << 62
"""End of the validity of a host's latest parameters."""

AUTOMATIC = ("gridftp",)
"""Applications whose logs do not tell a buffer that the kernel sizes from one that a client requested (GridFTP's `BUFFER`)."""

_OF_HOSTS = {
    "interface_rate_bps": ("send_interface_bps", "receive_interface_bps"),
    "tcp_send_buffer_max_bytes": ("send_limit_bytes", None),
    "tcp_receive_buffer_max_bytes": (None, "receive_limit_bytes"),
    "disk_read_bps": ("send_disk_bps", None),
    "disk_write_bps": (None, "receive_disk_bps"),
    "cpus": ("send_host_cpus", "receive_host_cpus"),
}
"""Columns of `hosts`, and their names for the sender and for the receiver."""

STATIC = {
    "application": "application",
    "streams": "streams",
    "send_window_bytes": "send buffer",
    "receive_window_bytes": "receive buffer",
    "congestion_control": "congestion control",
    "sender": "sender",
    "receiver": "receiver",
    "send_disk_bps": "sender's disk rate",
    "receive_disk_bps": "receiver's disk rate",
    "send_interface_bps": "sender's interface rate",
    "receive_interface_bps": "receiver's interface rate",
}
"""Columns of a combination, with the words for them."""

SEPARATOR = "|"
"""Separates the values in the column `combination`, in the order of `STATIC`. The column only identifies a combination."""


def with_parameters(stored: Stored, joined: Dataset) -> Dataset:
    """Adds the static parameters to transfers that have the columns of `join.joined`, and the column `combination`."""
    table = joined.table
    histories = _histories(stored.hosts)
    for index, side in enumerate(SIDES):
        names = {old: new[index] for old, new in _OF_HOSTS.items() if new[index] is not None}
        table = _at_the_time(joined, table, SIDES[side], histories, names, default=f"{side}_default")
    # Under names of their own: Spark takes a column for the alias of the same name.
    table = table.rename(logged_streams="streams", logged_congestion_control="congestion_control")
    connections = ibis.greatest(table["send_connections"], table["receive_connections"])
    algorithms = [table[name] for name in ("logged_congestion_control", "send_congestion_control", "send_default")]
    table = table.mutate(
        streams=ibis.ifelse(table["logged_streams"] > 0, table["logged_streams"].cast("int64"), connections.cast("int64")),
        congestion_control=_first(algorithms),
        **{f"{side}_window_bytes": _window(table, side) for side in SIDES},
    )
    parts: list[ir.StringValue] = [table[name].cast("string") for name in STATIC]
    combination = parts[0]
    for part in parts[1:]:
        combination = combination.concat(SEPARATOR, part)
    table = table.drop("send_default", "receive_default", "logged_streams", "logged_congestion_control")
    return joined.derive(table.mutate(combination=combination))


def _window(table: ir.Table, side: str) -> ir.IntegerValue:
    """Returns the buffer of one side that somebody chose, or else the limit of its host."""
    logged, limit = table[f"{side}_buffer_bytes"], table[f"{side}_limit_bytes"]
    smallest, largest = table[f"{side}_{side}_buffer_min_bytes"], table[f"{side}_{side}_buffer_bytes"]
    is_chosen = ~table["application"].isin(list(AUTOMATIC)) | ((smallest == logged) & (largest == logged))
    return ibis.ifelse((logged > 0) & (is_chosen | (limit == 0)), logged, limit)


def _first(texts: list[ir.StringColumn]) -> ir.StringValue:
    *others, found = texts
    for text in reversed(others):
        found = ibis.ifelse(text != "", text, found)
    return found


def _histories(hosts: Dataset) -> list[dict[str, Any]]:
    """Returns the parameters of each host with the time from which they hold, without repetitions."""
    table = hosts.table.select("reporter", "time_us", "congestion_control", *_OF_HOSTS).distinct()
    rows = sorted(hosts.engine.to_pyarrow(table).to_pylist(), key=lambda row: (row["reporter"], row["time_us"]))
    found: list[dict[str, Any]] = []
    for reporter, times in groupby(rows, key=lambda row: str(row["reporter"])):
        changes: list[dict[str, Any]] = []
        for row in times:
            values = {name: row[name] for name in ("congestion_control", *_OF_HOSTS)}
            if not changes or any(changes[-1][name] != value for name, value in values.items()):
                # The first parameters hold before, too: an agent starts after the transfers that it reads from old logs.
                changes.append({"reporter": reporter, "from_us": row["time_us"] if changes else -FOREVER_US, **values})
        ends = [change["from_us"] for change in changes[1:]] + [FOREVER_US]
        found += [{**change, "until_us": end} for change, end in zip(changes, ends, strict=True)]
    return found


def _at_the_time(
    joined: Dataset, table: ir.Table, host: str, histories: list[dict[str, Any]], names: dict[str, Any], *, default: str
) -> ir.Table:
    known = {row["reporter"] for row in histories}
    hosts = {row[host] for row in joined.engine.to_pyarrow(table.select(host).distinct()).to_pylist()}
    blank = {"congestion_control": "", **dict.fromkeys(_OF_HOSTS, 0), "from_us": -FOREVER_US, "until_us": FOREVER_US}
    rows = [row for row in histories if row["reporter"] in hosts] + [{**blank, "reporter": name} for name in sorted(hosts - known)]
    columns = {
        "at_host": pa.array([row["reporter"] for row in rows], pa.string()),
        default: pa.array([row["congestion_control"] for row in rows], pa.string()),
        **{name: pa.array([row[name] for row in rows], pa.int64()) for name in ("from_us", "until_us")},
        **{new: pa.array([row[old] for row in rows], pa.int64()) for old, new in names.items()},
    }
    parameters = joined.engine.from_arrow(pa.table(columns)).table
    both = table.inner_join(parameters, [(host, "at_host")])
    # Each host has exactly one row for each time.
    both = both.filter((both["start_us"] >= both["from_us"]) & (both["start_us"] < both["until_us"]))
    return both.select(*table.columns, default, *names.values())
