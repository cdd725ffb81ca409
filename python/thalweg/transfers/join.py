"""Joins transfers with the samples of their connections and hosts: one row of sums for each transfer.

- A connection belongs to a transfer if the reporter is one of its hosts, addresses and known ports agree, and it has samples during the
  transfer. If some of these connections belong to the application's processes, only they count. Connections that move less than 1 % of
  the bytes of the largest one during the transfer are left out: control connections are idle.
- Connections are matched in parts of `CONNECTIONS_BUCKET_US`, so that one that uses the same ports hours later is another one. The bytes
  of a part count in proportion to the time that it shares with the transfer.
- A sample belongs to a transfer if the middle of its interval lies within it, by the clock of the sample's host.
- Counters of a process appear in each of its connections, and so does the interval: their ratio of sums is the part of the time of
  the process, or the mean of the processes.

Joins by time are joins by buckets of time with a check of the exact time: each engine joins equal keys fast. Only counts and sums leave
the engine. Cost: each sample is read once and compared with the transfers of its host in its bucket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ibis
import ibis.expr.types as ir

from ..dataset import Dataset
from .clocks import Clocks
from .datasets import Stored
from .entries import looked_up

SAMPLES_BUCKET_US = 60_000_000
"""Of host samples: most transfers that matter last from seconds to minutes."""

CONNECTIONS_BUCKET_US = 600_000_000
"""Of the parts of connections."""

SIDES = {"send": "sender", "receive": "receiver"}
"""Names of the sides in `direction`, and the columns with their hosts."""

_SSH = ("ssh", "sshd", "sshd-session", "sftp-server", "sftp", "scp")
PROCESSES: Mapping[str, tuple[str, ...]] = {
    "gridftp": ("globus-gridftp-server", "globus-gridftp", "globus-url-copy", "gfal-copy"),
    "xrootd": ("xrootd", "xrdcp", "xrdcopy"),
    "rsync": ("rsync", *_SSH),
    "sftp": _SSH,
    "scp": _SSH,
    "vsftpd": ("vsftpd", "ftp", "lftp", "curl", "wget"),
    "proftpd": ("proftpd", "ftp", "lftp", "curl", "wget"),
    "nginx": ("nginx", "curl", "wget", "aria2c"),
    "rclone": ("rclone",),
    "iperf3": ("iperf3",),
}
"""Processes of each application. The kernel cuts names after 15 characters."""

CONNECTION_SUMS = (
    *("samples", "observed_us", "connections", "connection_us", "busy_us", "receive_window_limited_us", "send_buffer_limited_us"),
    *("starved_us", "buffer_full_us", "receive_queue_full_us", "receive_buffer_us"),
    *("acked_bytes", "received_bytes", "sent_segments", "retransmitted_segments", "lossy_samples"),
    *("rtt_sum_us", "rtt_samples", "min_rtt_us", "mss_bytes", "send_buffer_bytes", "receive_buffer_bytes"),
    *("send_buffer_min_bytes", "receive_buffer_min_bytes"),
    *("process_cpu_us", "process_wait_us", "process_throttled_us", "process_blocked_us"),
)
"""Sums over the samples of one side's connections: columns `send_...` and `receive_...` of `joined`.

`samples` are rows, `observed_us` the time from the first to the last, `connection_us` the time of all connections together.
`connections` is their mean number at once. `starved_us`: the application had not written enough, and the send queue held less than
half of the buffer. `buffer_full_us`: the same with a fuller queue, so that the buffer limits. `receive_queue_full_us`: the receive queue
held a quarter of its buffer or more, of `receive_buffer_us`.
`lossy_samples`: those with retransmissions. Minima are the smallest value, the segment size and sizes of buffers the
largest one, all others sums. A buffer whose minimum is its size did not change: the kernel did not size it."""

HOST_SUMS = ("host_us", "cpu_busiest_us", "disk_busy_us", "interface_in_bytes", "interface_out_bytes")
"""Sums over the samples of one side's host: columns `send_...` and `receive_...` of `joined`."""

_QUARTER, _HALF = 4, 2
_TUPLE = ["reporter", "direction", "src", "dst", "src_port", "dst_port", "process"]


def joined(stored: Stored, entries: Dataset, clocks: Clocks) -> Dataset:
    """Returns the transfers of `entries` with the sums of both sides; 0 without samples."""
    table = entries.table
    windows = {side: entries.derive(_windows(table, clocks, side)).materialised() for side in SIDES}
    # One pass for both sides: there are more samples of hosts than of anything else.
    hosts = (
        stored.transfers.derive(_hosts(stored.host_metrics, {side: found.table for side, found in windows.items()})).materialised().table
    )
    for side, host in SIDES.items():
        connections = entries.derive(_connections(stored.connections, windows[side], side)).materialised().table
        table = with_columns(table, connections, {name: f"{side}_{name}" for name in CONNECTION_SUMS})
        of_side = _named(hosts.filter(hosts["side"] == side), windows[side].table)
        table = with_columns(table, of_side, {name: f"{side}_{name}" for name in HOST_SUMS})
        table = looked_up(table, host, _algorithms(stored.connections, side), f"{side}_congestion_control")
    return entries.derive(table).materialised()


def connections_of(stored: Stored, entries: Dataset, clocks: Clocks, side: str) -> Dataset:
    """Returns the connections of each transfer that the host on one side reported."""
    windows = entries.derive(_windows(entries.table, clocks, side)).materialised()
    _, matches = _matched(stored.connections, windows, side)
    return matches


def with_columns(table: ir.Table, other: ir.Table, names: Mapping[str, str], key: str = "transfer") -> ir.Table:
    """Adds columns of `other`, at most one row of which has each `key`, under new names; 0 where no row has it."""
    renamed = other.select(other_key=key, **{new: old for old, new in names.items()})
    both = table.left_join(renamed, [(key, "other_key")])
    return both.select(*table.columns, **{new: both[new].fill_null(0) for new in names.values()})


def bucketed(table: ir.Table, first_us: str, last_us: str, width_us: int) -> ir.Table:
    """Returns a row for each bucket of time that overlaps a row's time, with its start as `bucket_us` and the row's first one as
    `first_bucket_us`."""
    first, last = (table[name] - table[name] % width_us for name in (first_us, last_us))
    count = ((last - first) / width_us).cast("int64") + 1
    each = table.mutate(first_bucket_us=first, index=ibis.range(ibis.literal(0, "int64"), count).unnest())
    return each.mutate(bucket_us=each["first_bucket_us"] + each["index"].cast("int64") * width_us).drop("index")


def _windows(entries: ir.Table, clocks: Clocks, side: str) -> ir.Table:
    """Returns the time of each transfer by the clock of its host on one side."""
    host = entries[SIDES[side]]
    ahead = clocks.ahead_us(host)
    windows = entries.select(
        *("transfer", "application", "src", "dst", "src_port", "dst_port"),
        # Whole numbers identify transfers in joins of many rows: texts cost three times as much.
        number=ibis.row_number().over(ibis.window(order_by="transfer")),
        reporter=host,
        start_us=entries["start_us"] + ahead,
        end_us=entries["end_us"] + ahead,
    )
    return windows.filter(windows["reporter"] != "")


# --- Connections


def _connections(connections: Dataset, windows: Dataset, side: str) -> ir.Table:
    rows, matches = _matched(connections, windows, side)
    return _named(_sums(rows, matches.table), windows.table)


def _named(sums: ir.Table, windows: ir.Table) -> ir.Table:
    """Replaces the numbers of transfers by their identifiers."""
    names = windows.select("transfer", of_number="number")
    return sums.inner_join(names, [("number", "of_number")]).drop("number", "of_number")


def _matched(connections: Dataset, windows: Dataset, side: str) -> tuple[ir.Table, Dataset]:
    """Returns the samples of one side, and the parts of connections of each transfer among them."""
    rows = connections.table.filter(connections.table["direction"] == side)
    middle = rows["time_us"] - (rows["interval_us"] - rows["interval_us"] % _HALF) / _HALF
    rows = rows.mutate(middle_us=middle.cast("int64"))
    rows = rows.mutate(bucket_us=rows["middle_us"] - rows["middle_us"] % CONNECTIONS_BUCKET_US)
    parts = rows.group_by([*_TUPLE, "bucket_us"]).aggregate(
        first_us=(rows["time_us"] - rows["interval_us"]).min(),
        last_us=rows["time_us"].max(),
        moved_bytes=(rows["acked_bytes"] + rows["received_bytes"]).sum().cast("int64"),
    )
    return rows, connections.derive(_matches(windows.table, parts)).materialised()


def _matches(windows: ir.Table, parts: ir.Table) -> ir.Table:
    """Returns the parts of the connections of each transfer, with the transfer's time."""
    of_windows = bucketed(windows, "start_us", "end_us", CONNECTIONS_BUCKET_US).drop("first_bucket_us")
    parts = parts.rename(known_src_port="src_port", known_dst_port="dst_port")
    both = of_windows.inner_join(parts, ["reporter", "src", "dst", "bucket_us"])
    overlaps = (both["first_us"] < both["end_us"]) & (both["last_us"] > both["start_us"])
    for port in ("src_port", "dst_port"):
        overlaps &= (both[port] == 0) | (both[port] == both[f"known_{port}"])
    both = both.filter(overlaps)
    both = both.mutate(own=_is_own(both["application"], both["process"]), within_bytes=_within(both))
    window = ibis.window(group_by="number")
    ranked = both.mutate(best=both["own"].max().over(window))
    ranked = ranked.filter(ranked["own"] == ranked["best"])
    connection = ibis.window(group_by=["number", "known_src_port", "known_dst_port", "process"])
    ranked = ranked.mutate(connection_bytes=ranked["within_bytes"].sum().over(connection))
    ranked = ranked.mutate(largest_bytes=ranked["connection_bytes"].max().over(window))
    kept = ranked.filter(ranked["connection_bytes"] * 100 >= ranked["largest_bytes"])
    return kept.select(
        *("transfer", "number", "start_us", "end_us", "bucket_us", "reporter", "direction", "src", "dst", "process", "first_us", "last_us"),
        src_port="known_src_port",
        dst_port="known_dst_port",
    )


def _within(both: ir.Table) -> ir.IntegerValue:
    """Returns the bytes that a part of a connection moved during a transfer."""
    overlap = ibis.least(both["last_us"], both["end_us"]) - ibis.greatest(both["first_us"], both["start_us"])
    length = ibis.greatest(both["last_us"] - both["first_us"], 1)
    moved = both["moved_bytes"].cast("float64") * overlap.cast("float64") / length.cast("float64")
    return moved.floor().cast("int64")


def _is_own(application: ir.StringColumn, process: ir.StringColumn) -> ir.IntegerValue:
    branches = [((application == name) & process.isin(sorted({each[:15] for each in names})), 1) for name, names in PROCESSES.items()]
    return ibis.cases(*branches, else_=0)


def _sums(rows: ir.Table, matches: ir.Table) -> ir.Table:
    """Returns the sums over the samples of each transfer's connections."""
    keys = [name for name in _TUPLE if name != "direction"]
    both = rows.inner_join(matches.select("number", "start_us", "end_us", "bucket_us", *keys), [*keys, "bucket_us"])
    both = both.filter((both["middle_us"] >= both["start_us"]) & (both["middle_us"] <= both["end_us"]))
    interval = both["interval_us"]
    is_limited = both["application_limited"] == 1
    is_full = both["send_queue_bytes"] * _HALF >= ibis.greatest(both["send_buffer_bytes"], 1)
    is_standing = both["receive_queue_bytes"] * _QUARTER >= ibis.greatest(both["receive_buffer_bytes"], 1)
    sums = {
        "connection_us": interval,
        "starved_us": ibis.ifelse(is_limited & ~is_full, interval, 0),
        "buffer_full_us": ibis.ifelse(is_limited & is_full, interval, 0),
        "receive_queue_full_us": ibis.ifelse(is_standing, interval, 0),
        "receive_buffer_us": ibis.ifelse(both["receive_buffer_bytes"] > 0, interval, 0),
        "rtt_sum_us": both["rtt_us"],
        "lossy_samples": ibis.ifelse(both["retransmitted_segments"] > 0, 1, 0),
        "rtt_samples": ibis.ifelse(both["rtt_us"] > 0, 1, 0),
    }
    extremes = ("mss_bytes", "send_buffer_bytes", "receive_buffer_bytes")
    plain = [name for name in CONNECTION_SUMS if name in both.columns and name not in (*extremes, "min_rtt_us")]
    found = both.group_by("number").aggregate(
        samples=both.count(),
        observed_us=both["time_us"].max() - (both["time_us"] - interval).min(),
        min_rtt_us=both["min_rtt_us"].nullif(0).min(),
        send_buffer_min_bytes=both["send_buffer_bytes"].nullif(0).min(),
        receive_buffer_min_bytes=both["receive_buffer_bytes"].nullif(0).min(),
        **{name: value.sum() for name, value in sums.items()},
        **{name: both[name].sum() for name in plain},
        **{name: both[name].max() for name in extremes},
    )
    counted = _concurrency(matches).rename(of_number="number")
    found = found.inner_join(counted, [("number", "of_number")])
    return _as_integers(found, CONNECTION_SUMS)


def _concurrency(matches: ir.Table) -> ir.Table:
    """Returns the mean number of connections that a transfer had at once, rounded, while it had any."""
    begin, end = ibis.greatest(matches["first_us"], matches["start_us"]), ibis.least(matches["last_us"], matches["end_us"])
    times = matches.select("number", begin_us=begin, finish_us=ibis.greatest(begin, end))
    found = times.group_by("number").aggregate(
        total_us=(times["finish_us"] - times["begin_us"]).sum().cast("int64"), span_us=times["finish_us"].max() - times["begin_us"].min()
    )
    mean = found["total_us"].cast("float64") / ibis.greatest(found["span_us"], 1).cast("float64")
    return found.select("number", connections=ibis.greatest((mean + 0.5).floor().cast("int64"), 1))


def _algorithms(connections: Dataset, side: str) -> ir.Table:
    """Returns the congestion control of each host's connections."""
    rows = connections.table
    rows = rows.filter((rows["direction"] == side) & (rows["congestion_control"] != ""))
    return rows.group_by(looked_up=rows["reporter"]).aggregate(value=rows["congestion_control"].max())


# --- Hosts


def _hosts(metrics: Dataset, windows: Mapping[str, ir.Table]) -> ir.Table:
    """Returns the sums of each transfer's hosts: a row for each `transfer` and `side`."""
    parts = [table.select("number", "reporter", "start_us", "end_us", side=ibis.literal(side)) for side, table in windows.items()]
    of_windows = bucketed(ibis.union(*parts), "start_us", "end_us", SAMPLES_BUCKET_US).drop("first_bucket_us")
    rows = metrics.table
    middle = rows["time_us"] - (rows["interval_us"] - rows["interval_us"] % _HALF) / _HALF
    rows = rows.select("reporter", "interval_us", *(name for name in HOST_SUMS if name != "host_us"), middle_us=middle.cast("int64"))
    rows = rows.mutate(bucket_us=rows["middle_us"] - rows["middle_us"] % SAMPLES_BUCKET_US)
    both = rows.inner_join(of_windows, ["reporter", "bucket_us"])
    both = both.filter((both["middle_us"] >= both["start_us"]) & (both["middle_us"] <= both["end_us"]))
    keys = ["number", "side"]
    found = both.group_by(keys).aggregate(
        host_us=both["interval_us"].sum(), **{name: both[name].sum() for name in HOST_SUMS if name != "host_us"}
    )
    return _as_integers(found, HOST_SUMS, keys)


def _as_integers(found: ir.Table, names: Sequence[str], keys: Sequence[str] = ("number",)) -> ir.Table:
    return found.select(*keys, **{name: found[name].fill_null(0).cast("int64") for name in names})
