"""A store of transfers whose causes are known, made from limits and not from what verdicts look at.

Each transfer has limits: the sender's application (disk or processor), the two buffers, the receiver's application, and the network
(capacity, congestion control with its losses). Its rate is the smallest limit with noise. The time is divided among the limits in
proportion to (rate / limit)^`SHARP`, so that a limit that is nearly reached takes time as well. From these shares follow what TCP and the
kernel would report each second, with their noise: sampled flags and queues, smoothed times, processes that wait, missing samples.

In the tests, because nothing but tests needs it, as `make_records.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.transfers import columns

SECOND = 1_000_000
START = int(datetime(2026, 11, 22, tzinfo=UTC).timestamp()) * SECOND
SHARP = 8
NOISE = 0.15
"""Standard deviation of the share of each limit from second to second."""
LOST = 0.1
"""Part of the samples that are missing."""
MSS = 1448
PATHS = 3
"""Paths of each seed, each with rates and times of its own."""
OF_CAUSE, OF_NONE = 5, 30
"""Transfers of each cause, and of none, on each path."""

CAUSES = (
    *("streams", "sender_window", "receiver_window", "sender_disk", "receiver_disk", "sender_cpu", "receiver_cpu"),
    *("path_loss", "path_congestion"),
)
Random = np.random.Generator


@dataclass(frozen=True)
class NetworkPath:
    """A path between two sites."""

    number: int
    capacity_bps: float
    rtt_us: float
    interface_bps: int
    single: float
    """Part of the capacity that one connection reaches with the path's usual losses."""
    senders: tuple[str, ...]
    receivers: tuple[str, ...]


@dataclass(frozen=True)
class Limits:
    """What limits a transfer, in bit/s, and what its hosts and its path look like."""

    network: float
    per_stream: float = np.inf
    send_disk: float = np.inf
    send_cpu: float = np.inf
    receive_disk: float = np.inf
    receive_cpu: float = np.inf
    send_buffer: float = 64e6
    receive_buffer: float = 64e6
    streams: int = 4
    loss: float = 0.0
    inflation: float = 0.0
    is_quota: bool = True
    busy: frozenset[str] = field(default_factory=frozenset)
    """Busy but harmless: `send_cpu`, `send_disk`, `receive_cpu`, `receive_disk`."""


class Rows:
    """Rows of a dataset, collected as columns."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._parts: list[pa.Table] = []

    def add(self, rows: int, lost: Any = None, **given: Any) -> None:
        """Adds rows, without those marked as lost; what is not given is unknown."""
        found = []
        for each in self.schema:
            value = given.get(each.name, "" if pa.types.is_string(each.type) else 0)
            values = np.broadcast_to(np.asarray(value), (rows,))
            if pa.types.is_string(each.type):
                found.append(pa.array(values.tolist(), pa.string()))
            else:
                found.append(pa.array(np.round(values).astype(np.int64)).cast(each.type))
        table = pa.Table.from_arrays(found, schema=self.schema)
        self._parts.append(table if lost is None else table.filter(pa.array(~lost)))

    def table(self) -> pa.Table:
        return pa.concat_tables(self._parts) if self._parts else self.schema.empty_table()


@dataclass
class Store:
    """The four datasets, and the cause of each transfer."""

    transfers: Rows = field(default_factory=lambda: Rows(columns.TRANSFERS))
    connections: Rows = field(default_factory=lambda: Rows(columns.CONNECTIONS))
    host_metrics: Rows = field(default_factory=lambda: Rows(columns.HOST_METRICS))
    hosts: Rows = field(default_factory=lambda: Rows(columns.HOSTS))
    causes: dict[str, str] = field(default_factory=dict)

    def write(self, directory: Path) -> None:
        """Writes the datasets as the server does: a directory for each hour of reception."""
        for name, rows in (
            ("transfers", self.transfers),
            ("connections", self.connections),
            ("host-metrics", self.host_metrics),
            ("hosts", self.hosts),
        ):
            write(rows.table(), directory / name)


def write(table: pa.Table, folder: Path) -> None:
    """Writes rows into a file for each hour of reception."""
    hours = table["received"].cast(pa.int64()).to_numpy() // (3600 * SECOND)
    for hour in np.unique(hours):
        at = datetime.fromtimestamp(int(hour) * 3600, UTC)
        path = folder / f"{at:date=%Y-%m-%d}" / f"{at:hour=%H}"
        path.mkdir(parents=True, exist_ok=True)
        pq.write_table(table.filter(pa.array(hours == hour)), path / "serve-1.parquet", compression="zstd")


def make(seeds: Iterable[int]) -> Store:
    """Makes transfers of all causes, on paths of their own for each seed."""
    store = Store()
    for seed in seeds:
        random = np.random.default_rng(seed)
        for number in range(PATHS):
            path = _path(random, seed, number)
            _hosts(store, path)
            labels = [cause for cause in CAUSES for _ in range(OF_CAUSE)] + ["none"] * OF_NONE
            for index, label in enumerate(random.permutation(np.array(labels))):
                limits = _limits(random, str(label), path)
                transfer = f"{seed:04x}{number:02x}{index:04x}"
                add(store, random, path, limits, transfer, start_us=START + index * 120 * SECOND, lossy=True)
                store.causes[transfer] = str(label)
    return store


def _path(random: Random, seed: int, number: int) -> NetworkPath:
    capacity = float(10 ** random.uniform(8, 9.9))
    near, far = (f"10.{seed % 250}.{2 * number + side}" for side in (0, 1))
    interface = 10**10 if random.random() < 0.7 else 0
    hosts = [tuple(f"{site}.{host}" for host in (1, 2)) for site in (near, far)]
    return NetworkPath(
        number, capacity, float(random.uniform(8_000, 150_000)), interface, float(random.uniform(0.4, 0.7)), hosts[0], hosts[1]
    )


def _hosts(store: Store, path: NetworkPath) -> None:
    for address in (*path.senders, *path.receivers):
        store.hosts.add(
            1,
            received=START,
            reporter=f"dtn-{address}",
            time=START,
            addresses=address,
            cpus=8,
            interface="eth0",
            interface_rate_bps=path.interface_bps,
            tcp_receive_buffer_max_bytes=2**28,
            tcp_send_buffer_max_bytes=2**28,
            congestion_control="cubic",
        )


def _limits(random: Random, label: str, path: NetworkPath) -> Limits:
    capacity = path.capacity_bps
    part = float(random.uniform(0.2, 0.75))
    window = 8 * path.capacity_bps * path.rtt_us / 8e6  # bytes: eight BDP
    usual = Limits(
        network=capacity,
        streams=int(random.choice([4, 8])),
        send_buffer=window,
        receive_buffer=window,
        per_stream=path.single * capacity,
        loss=_loss_for(path.single * capacity, path.rtt_us),
        inflation=float(random.uniform(0, 0.5)),
        send_disk=capacity * float(random.uniform(1.2, 4)),
        receive_disk=capacity * float(random.uniform(1.2, 4)),
        send_cpu=capacity * float(random.uniform(1.2, 4)),
        receive_cpu=capacity * float(random.uniform(1.2, 4)),
        is_quota=bool(random.random() < 0.5),
    )
    # Linux uses about half of a buffer for payload.
    small = 2 * part * capacity * path.rtt_us / 8e6 / usual.streams
    match label:
        case "streams":
            return replace(usual, streams=1, inflation=float(random.uniform(0, 0.1)))
        case "sender_window":
            return replace(usual, send_buffer=small)
        case "receiver_window":
            return replace(usual, receive_buffer=small)
        case "sender_disk":
            return replace(usual, send_disk=part * capacity)
        case "receiver_disk":
            return replace(usual, receive_disk=part * capacity)
        case "sender_cpu":
            return replace(usual, send_cpu=part * capacity)
        case "receiver_cpu":
            return replace(usual, receive_cpu=part * capacity)
        case "path_loss":
            part = float(random.uniform(0.1, 0.5))
            loss = _loss_for(part * capacity / usual.streams, path.rtt_us)
            return replace(usual, per_stream=part * capacity / usual.streams, loss=loss, inflation=float(random.uniform(0, 0.1)))
        case "path_congestion":
            return replace(
                usual, network=part * capacity, loss=float(10 ** random.uniform(-4.5, -2.5)), inflation=float(random.uniform(0.5, 2.5))
            )
    kinds = np.array(["send_cpu", "send_disk", "receive_cpu", "receive_disk"])
    busy = frozenset(str(kind) for kind in kinds[random.random(4) < 0.25])
    return replace(usual, busy=busy)


def _loss_for(rate_bps: float, rtt_us: float) -> float:
    """The random loss with which CUBIC or Reno, whichever is faster, has a rate."""
    rtt_s = rtt_us / 1e6
    segments = rate_bps * rtt_s / 8 / MSS
    reno = (1.2247 / segments) ** 2
    cubic = rtt_s / (segments / 1.054) ** (4 / 3)
    return float(min(max(reno, cubic), 0.05))


def add(
    store: Store, random: Random, path: NetworkPath, limits: Limits, transfer: str, *, start_us: int, seconds: int = 0, lossy: bool = False
) -> None:
    """Adds a transfer with its samples at both ends."""
    seconds = seconds or int(random.integers(20, 60))
    source, destination = str(random.choice(path.senders)), str(random.choice(path.receivers))
    reporters = {"send": f"dtn-{source}", "receive": f"dtn-{destination}"}
    rtt_s = path.rtt_us / 1e6
    of = {
        "send_disk": limits.send_disk,
        "send_cpu": limits.send_cpu,
        "send_buffer": limits.streams * limits.send_buffer * 0.5 * 8 / rtt_s,
        "receive_buffer": limits.streams * limits.receive_buffer * 0.5 * 8 / rtt_s,
        "receive_disk": limits.receive_disk,
        "receive_cpu": limits.receive_cpu,
        "network": min(limits.network, limits.streams * limits.per_stream),
    }
    rate = min(of.values()) * float(np.clip(random.normal(0.97, 0.03), 0.85, 1.02))
    weights = np.array([(rate / value) ** SHARP for value in of.values()])
    mean = dict(zip(of, weights / weights.sum(), strict=True))
    # Every second differs.
    shares = {name: np.clip(random.normal(value, NOISE * (value > 0.01), seconds), 0, 1) for name, value in mean.items()}
    total = sum(shares.values())
    shares = {name: value / total for name, value in shares.items()}
    rates = rate * np.clip(random.normal(1, 0.15, seconds), 0.3, 1.7)
    ends = start_us + np.arange(1, seconds + 1) * SECOND + int(random.integers(0, 200_000))
    port = int(random.integers(20_000, 60_000))
    streams = 0 if random.random() < 0.3 else limits.streams
    store.transfers.add(
        1,
        received=start_us + (seconds + 3) * SECOND,
        reporter=reporters["send"],
        transfer=transfer,
        application="gridftp",
        direction="send",
        user=f"user-{int(random.integers(0, 5))}",
        file="f",
        src=source,
        dst=destination,
        start=start_us,
        end=start_us + seconds * SECOND,
        bytes=rate * seconds / 8,
        streams=streams,
        congestion_control="cubic",
    )
    lost = {side: random.random(seconds) < (LOST if seconds > 10 and lossy else 0) for side in ("send", "receive")}
    for side in ("send", "receive"):
        process = _process(random, limits, of, shares, rate=rate, side=side)
        for stream in range(limits.streams):
            common = {
                "received": ends + 2 * SECOND,
                "reporter": reporters[side],
                "time": ends,
                "interval_us": SECOND,
                "src": source,
                "dst": destination,
                "src_port": port + stream,
                "dst_port": 50_000,
                "direction": side,
                "pid": 1000,
                "process": "globus-gridftp-",
                "congestion_control": "cubic",
                "mss_bytes": MSS,
                **{f"process_{name}_us": value * SECOND for name, value in process.items()},
            }
            store.connections.add(seconds, lost=lost[side], **common, **_tcp(random, path, limits, shares, rates=rates, side=side))
        store.host_metrics.add(seconds, **_host(random, limits, of, process, rate=rate, side=side, reporter=reporters[side], ends=ends))


def _process(random: Random, limits: Limits, of: dict[str, float], shares: dict[str, Any], *, rate: float, side: str) -> dict[str, Any]:
    """Parts of the time that the process runs, waits, is throttled and is blocked."""
    seconds = len(shares["network"])
    busy = {name: min(rate / of[f"{side}_{name}"], 1.0) for name in ("cpu", "disk")}
    short = shares[f"{side}_cpu"]
    # A processor that the process shares: what it cannot use, it waits for, or its quota denies.
    own = 0.35 if of[f"{side}_cpu"] == min(of.values()) else 0.9
    running = np.clip(random.normal(busy["cpu"] * own, 0.05, seconds), 0, 1)
    denied = np.clip(short * (1 - own) + random.normal(0.02, 0.02, seconds), 0, 1)
    blocked = np.clip(busy["disk"] * 0.9 * random.normal(1, 0.1, seconds), 0, 1) * (1 - np.clip(running + denied, 0, 1) * 0.5)
    if f"{side}_cpu" in limits.busy:
        denied = denied + random.uniform(0, 0.1, seconds)
    return {
        "cpu": running,
        "wait": denied * (0.1 if limits.is_quota else 1.0),
        "throttled": denied * (0.9 if limits.is_quota else 0.0),
        "blocked": blocked,
    }


def _tcp(random: Random, path: NetworkPath, limits: Limits, shares: dict[str, Any], *, rates: Any, side: str) -> dict[str, Any]:
    """What TCP reports of one connection."""
    seconds = len(rates)
    moved = rates / limits.streams / 8
    starved = shares["send_disk"] + shares["send_cpu"]
    reading = shares["receive_disk"] + shares["receive_cpu"]
    if side == "receive":
        caught = random.random(seconds) < reading * random.uniform(0.85, 1.0)
        queue = np.where(caught, random.uniform(0.3, 0.5, seconds), random.uniform(0, 0.12, seconds))
        return {
            "received_bytes": moved,
            "receive_queue_bytes": queue * limits.receive_buffer,
            "receive_buffer_bytes": limits.receive_buffer,
        }
    filled = shares["send_buffer"]
    flagged = random.random(seconds)
    is_starved = flagged < starved
    is_full = (flagged >= starved) & (flagged < starved + 0.8 * filled)
    inflation = limits.inflation * (shares["network"] if limits.inflation < 0.5 else 1.0)
    rtt = path.rtt_us * (1 + inflation) * np.clip(random.normal(1, 0.03, seconds), 0.95, 1.3)
    sent = moved / MSS
    flight = moved * path.rtt_us / 1e6
    return {
        "rtt_us": rtt,
        "min_rtt_us": path.rtt_us * random.uniform(1.0, 1.03),
        "cwnd_segments": np.maximum(flight / MSS * random.uniform(1.0, 1.5), 10),
        "sent_bytes": moved,
        "acked_bytes": moved,
        "sent_segments": sent,
        "retransmitted_segments": random.poisson(np.maximum(sent * limits.loss, 0)),
        "busy_us": SECOND * (1 - starved * random.uniform(0, 0.3)),
        "receive_window_limited_us": SECOND * np.clip((shares["receive_buffer"] + reading) * random.normal(1, 0.05, seconds), 0, 1),
        "send_buffer_limited_us": SECOND * filled * random.uniform(0.6, 1.0),
        "application_limited": is_starved | is_full,
        "send_queue_bytes": np.where(is_starved, 0.1, np.where(is_full, 0.7, 0.9)) * limits.send_buffer,
        "send_buffer_bytes": limits.send_buffer,
    }


def _host(
    random: Random, limits: Limits, of: dict[str, float], process: dict[str, Any], *, rate: float, side: str, reporter: str, ends: Any
) -> dict[str, Any]:
    seconds = len(ends)
    is_full = {kind: f"{side}_{kind}" in limits.busy for kind in ("cpu", "disk")}
    disk = np.clip(random.normal(min(rate / of[f"{side}_disk"], 1.0), 0.04, seconds), 0, 1)
    busiest = np.clip(process["cpu"] + process["wait"] + random.normal(0.05, 0.03, seconds), 0, 1)
    moved = "interface_out_bytes" if side == "send" else "interface_in_bytes"
    return {
        "received": ends + 2 * SECOND,
        "reporter": reporter,
        "time": ends,
        "interval_us": SECOND,
        "cpus": 8,
        "cpu_busy_us": SECOND * (busiest + 0.2) * (4 if is_full["cpu"] else 1),
        "cpu_busiest_us": SECOND * np.where(is_full["cpu"], 1.0, busiest),
        "disk": "sda",
        "disk_busy_us": SECOND * np.where(is_full["disk"], 1.0, disk),
        moved: rate / 8 * 1.05,
    }
