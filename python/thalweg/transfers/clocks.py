"""Differences between the clocks of transfer hosts, and the correction of their times.

Two sources:

1. Pairs: the sender and the receiver of a connection both report it each second until it ends. The differences between their first and
   between their last times are that of the clocks, give or take a sample. Both ends may also log a transfer, but a receiver that flushes
   a file to its disk ends minutes later, and a web server that has filled the send buffer ends earlier. So the smaller of the two
   differences of a pair counts, connections come before entries, and entries need `MIN_PAIRS`. The median over all pairs of two hosts
   is used.
2. Reception: the server's time minus the host's time of a sample is the delay of the sample minus the lead of the host's clock. The
   smallest one over all samples counts, since a spool delays them by hours. It cannot tell a slow clock from a delay of all samples, so
   that pairs come first, and only a difference of more than `CERTAIN_US` counts. Entries of logs do not count: a log may be read
   long after it was written, and one line in it may have any time.

Hosts that pairs connect, directly or over others, get one common time: that of the host with the most rows, corrected by the
median of what reception says about all of them.
"""

from __future__ import annotations

import statistics as medians
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import ibis
import ibis.expr.types as ir

from ..dataset import Dataset
from ..statistics import summary
from .datasets import Stored

SAMPLE_US = 2_000_000
"""Agents sample once a second, each at its own time: pairs agree within two samples."""

MIN_PAIRS = 3
"""Minimum number of transfers that two hosts both logged: the median of fewer is that of an accident. One connection is enough, since
both hosts report it each second."""

CERTAIN_US = 60_000_000
"""A delay that reception must exceed before it counts as a difference of clocks. Agents push within seconds, so that a minute is
more than a delay without an outage."""

REPORTED_US = 60_000_000
"""Clocks that differ by more than this are reported: certificates, logs and flow records of such a host are wrong as well."""


@dataclass(frozen=True)
class Clock:
    """The clock of a host.

    Attributes:
        reporter: The host.
        ahead_us: Its time minus the time that transfers are compared in; negative: it is slow.
        pairs: Connections, or else transfers, that both the host and another one reported.
        rows: Rows that the host reported.
    """

    reporter: str
    ahead_us: int
    pairs: int
    rows: int

    @property
    def is_wrong(self) -> bool:
        """Whether the difference is reported."""
        return abs(self.ahead_us) > REPORTED_US


class Clocks:
    """The clocks of all hosts."""

    def __init__(self, clocks: Mapping[str, Clock]) -> None:
        self.by_reporter = dict(clocks)
        self._ahead_us = {name: clock.ahead_us for name, clock in sorted(clocks.items()) if clock.ahead_us != 0}

    def wrong(self) -> list[Clock]:
        """Returns the clocks that differ by more than `REPORTED_US`, the largest difference first."""
        found = [clock for clock in self.by_reporter.values() if clock.is_wrong]
        return sorted(found, key=lambda clock: (-abs(clock.ahead_us), clock.reporter))

    def ahead_us(self, reporter: ir.StringColumn) -> ir.IntegerValue:
        """Returns how far the clock of each row's host is ahead."""
        branches = [(reporter == name, ibis.literal(ahead, "int64")) for name, ahead in self._ahead_us.items()]
        zero = ibis.literal(0, "int64")
        return ibis.cases(*branches, else_=zero) if branches else zero


def clocks(stored: Stored) -> Clocks:
    """Compares the clocks of all hosts of a store."""
    received = _by_reception(stored)
    differences = _by_pairs(stored)
    pairs: dict[str, int] = defaultdict(int)
    for (sender, receiver), (_, count) in differences.items():
        pairs[sender] += count
        pairs[receiver] += count
    found: dict[str, Clock] = {}
    for relative in _components(received, differences):
        shift = _shift(relative, received)
        for reporter, ahead_us in relative.items():
            rows = received[reporter][1] if reporter in received else 0
            found[reporter] = Clock(reporter, ahead_us + shift, pairs[reporter], rows)
    return Clocks(found)


def _by_reception(stored: Stored) -> dict[str, tuple[int, int]]:
    """Returns the lead of each host's clock by reception, and the number of its rows."""
    found: dict[str, tuple[int, int]] = {}
    for dataset in (stored.connections, stored.host_metrics):
        table = dataset.table
        delays = table.group_by("reporter").aggregate(delay_us=(table["received_us"] - table["time_us"]).min(), rows=table.count())
        for row in dataset.engine.to_pyarrow(delays).to_pylist():
            delay_us, rows = found.get(row["reporter"], (row["delay_us"], 0))
            found[row["reporter"]] = (min(delay_us, row["delay_us"]), rows + row["rows"])
    return {reporter: (-delay_us, rows) for reporter, (delay_us, rows) in found.items()}


def _by_pairs(stored: Stored) -> dict[tuple[str, str], tuple[int, int]]:
    """Returns the sender's time minus the receiver's, and the number of pairs, for each pair of hosts."""
    of_connections = _medians(stored.connections.derive(_of_connections(stored.connections)).materialised())
    of_entries = _medians(stored.transfers.derive(_of_entries(stored.transfers)).materialised())
    known = {frozenset(pair) for pair in of_connections}
    enough = {pair: found for pair, found in of_entries.items() if found[1] >= MIN_PAIRS and frozenset(pair) not in known}
    return of_connections | enough


def _medians(differences: Dataset) -> dict[tuple[str, str], tuple[int, int]]:
    frame = summary(differences, "difference_us", ["sender", "receiver"])
    return {(row["sender"], row["receiver"]): (round(row["p50"]), int(row["count"])) for row in frame.to_dict("records")}


def _of_connections(connections: Dataset) -> ir.Table:
    key = ["src", "dst", "src_port", "dst_port"]
    rows = connections.table
    ends = rows.group_by([*key, "reporter", "direction"]).aggregate(
        first_us=(rows["time_us"] - rows["interval_us"]).min(), last_us=rows["time_us"].max()
    )
    return _differences(ends, key)


def _of_entries(transfers: Dataset) -> ir.Table:
    """Of transfers with addresses and a size that each end logged only once."""
    key = ["src", "dst", "bytes"]
    rows = transfers.table.filter((transfers.table["bytes"] > 0) & (transfers.table["src"] != "") & (transfers.table["dst"] != ""))
    # Every row of a transfer has the same identifier, even one that arrived twice.
    ends = rows.group_by([*key, "direction"]).aggregate(
        reporter=rows["reporter"].min(),
        first_us=rows["start_us"].min(),
        last_us=rows["end_us"].max(),
        first=rows["transfer"].min(),
        last=rows["transfer"].max(),
    )
    return _differences(ends.filter(ends["first"] == ends["last"]), key)


def _differences(ends: ir.Table, key: list[str]) -> ir.Table:
    """Returns the smaller one of the differences between first and between last times of each pair."""
    sides = [
        ends.filter(ends["direction"] == direction).select(
            *key, **{side: "reporter", f"{side}_first_us": "first_us", f"{side}_last_us": "last_us"}
        )
        for direction, side in (("send", "sender"), ("receive", "receiver"))
    ]
    both = sides[0].inner_join(sides[1], key)
    both = both.filter(both["sender"] != both["receiver"])
    first, last = (both[f"sender_{time}_us"] - both[f"receiver_{time}_us"] for time in ("first", "last"))
    return both.select("sender", "receiver", difference_us=ibis.ifelse(last.abs() < first.abs(), last, first))


def _components(received: Mapping[str, tuple[int, int]], differences: Mapping[tuple[str, str], tuple[int, int]]) -> list[dict[str, int]]:
    """Returns groups of hosts that pairs connect, with the lead of each clock over that of the group's host with the most rows."""
    neighbours: dict[str, dict[str, int]] = defaultdict(dict)
    counts: dict[frozenset[str], int] = {}
    for (sender, receiver), (difference_us, count) in sorted(differences.items()):
        if count <= counts.get(frozenset((sender, receiver)), 0):
            continue  # the other direction has more pairs
        counts[frozenset((sender, receiver))] = count
        exact = 0 if abs(difference_us) <= SAMPLE_US else difference_us
        neighbours[sender][receiver] = -exact
        neighbours[receiver][sender] = exact
    found: list[dict[str, int]] = []
    left = sorted({*received, *neighbours}, key=lambda reporter: (-received.get(reporter, (0, 0))[1], reporter))
    seen: set[str] = set()
    for first in left:
        if first in seen:
            continue
        relative = {first: 0}
        waiting = [first]
        for reporter in waiting:
            for other, difference_us in sorted(neighbours[reporter].items()):
                if other not in relative:
                    relative[other] = relative[reporter] + difference_us
                    waiting.append(other)
        seen |= relative.keys()
        found.append(relative)
    return found


def _shift(relative: Mapping[str, int], received: Mapping[str, tuple[int, int]]) -> int:
    leads = [received[reporter][0] - ahead_us for reporter, ahead_us in relative.items() if reporter in received]
    shift = round(medians.median(leads)) if leads else 0
    return 0 if abs(shift) <= CERTAIN_US else shift
