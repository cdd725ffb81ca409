"""Differences between the clocks of transfer hosts, and the correction of their times.

Two sources:

1. Pairs: the sender and the receiver of a connection both report it each second until it ends, and both ends may log a transfer.
   The difference between their last times is that of the clocks, give or take a sample. The median over all pairs of two hosts is used.
2. Reception: the server's time minus the host's time of a row is the delay of the row minus the lead of the host's clock. The
   smallest one over all rows counts, since a spool delays rows by hours. It cannot tell a slow clock from a delay of all rows, so
   that pairs come first, and only a difference of more than `CERTAIN_US` counts.

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
        pairs: Connections and transfers that both the host and another one reported.
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
    for dataset, time in ((stored.transfers, "end_us"), (stored.connections, "time_us"), (stored.host_metrics, "time_us")):
        table = dataset.table
        delays = table.group_by("reporter").aggregate(delay_us=(table["received_us"] - table[time]).min(), rows=table.count())
        for row in dataset.engine.to_pyarrow(delays).to_pylist():
            delay_us, rows = found.get(row["reporter"], (row["delay_us"], 0))
            found[row["reporter"]] = (min(delay_us, row["delay_us"]), rows + row["rows"])
    return {reporter: (-delay_us, rows) for reporter, (delay_us, rows) in found.items()}


def _by_pairs(stored: Stored) -> dict[tuple[str, str], tuple[int, int]]:
    """Returns the sender's time minus the receiver's, and the number of pairs, for each pair of hosts."""
    differences = _of_connections(stored.connections).union(_of_entries(stored.transfers))
    frame = summary(stored.connections.derive(differences), "difference_us", ["sender", "receiver"])
    return {(row["sender"], row["receiver"]): (round(row["p50"]), int(row["count"])) for row in frame.to_dict("records")}


def _of_connections(connections: Dataset) -> ir.Table:
    key = ["src", "dst", "src_port", "dst_port"]
    rows = connections.table
    ends = rows.group_by([*key, "reporter", "direction"]).aggregate(last_us=rows["time_us"].max())
    return _differences(ends, key)


def _of_entries(transfers: Dataset) -> ir.Table:
    """Of transfers with addresses and a size that each end logged only once."""
    key = ["src", "dst", "bytes"]
    rows = transfers.table.filter((transfers.table["bytes"] > 0) & (transfers.table["src"] != "") & (transfers.table["dst"] != ""))
    # Every row of a transfer has the same identifier, even one that arrived twice.
    ends = rows.group_by([*key, "direction"]).aggregate(
        reporter=rows["reporter"].min(), last_us=rows["end_us"].max(), first=rows["transfer"].min(), last=rows["transfer"].max()
    )
    return _differences(ends.filter(ends["first"] == ends["last"]), key)


def _differences(ends: ir.Table, key: list[str]) -> ir.Table:
    sides = [
        ends.filter(ends["direction"] == direction).select(*key, **{side: "reporter", f"{side}_us": "last_us"})
        for direction, side in (("send", "sender"), ("receive", "receiver"))
    ]
    both = sides[0].inner_join(sides[1], key)
    both = both.filter(both["sender"] != both["receiver"])
    return both.select("sender", "receiver", difference_us=both["sender_us"] - both["receiver_us"])


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
