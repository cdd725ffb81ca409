"""Transfers from the entries of logs: each counted once, with the hosts at both ends and times of one clock.

- An entry that arrived twice has the same identifier and counts once.
- An entry of the sender and one of the receiver are one transfer if addresses and known ports agree, start and end differ by at most
  `TOLERANCE_US`, sizes by at most 1 %, and each is the other's nearest. The transfer has the sender's identifier, times and
  size; unknown values are the receiver's.
- The host of an address is the reporter that claims it: in `hosts`, as the end that it logged, or as its end of a connection. An
  address that several claim (private networks) belongs to the reporter of the entry, or to none.
"""

from __future__ import annotations

from collections import defaultdict

import ibis
import ibis.expr.types as ir
import pyarrow as pa

from ..dataset import Dataset
from .clocks import Clocks
from .datasets import Stored

TOLERANCE_US = 30_000_000
"""Logs have whole seconds, and a receiver ends when its last byte is written, which a cache of a slow disk delays."""

_KEY = ["src", "dst", "bucket_us"]
_LOCAL = ("127.", "::1", "0.0.0.0", "::")

COLUMNS = (
    *("transfer", "paired_transfer", "received_us", "application", "user", "file", "src", "dst", "src_port", "dst_port"),
    *("start_us", "end_us", "duration_us", "bytes", "rate_bps", "streams", "send_buffer_bytes", "receive_buffer_bytes"),
    *("congestion_control", "error", "sender", "receiver"),
)
"""Columns of `entries`. `rate_bps` is 0 for a transfer without duration; `paired_transfer` is the receiver's identifier."""


def entries(stored: Stored, clocks: Clocks) -> Dataset:
    """Returns one row for each transfer, with the columns of `COLUMNS`; times are those of the common clock."""
    addresses = _addresses(stored)
    logged = _logged(stored.transfers, clocks)
    logged = _with_hosts(stored, logged, addresses).materialised()
    paired = _paired(logged).materialised()
    table = paired.table
    rate = (table["bytes"].cast("float64") * 8e6 / table["duration_us"].nullif(0).cast("float64")).floor().cast("int64")
    return paired.derive(table.mutate(rate_bps=rate.fill_null(0)).select(*COLUMNS)).materialised()


def _logged(transfers: Dataset, clocks: Clocks) -> Dataset:
    rows = transfers.table
    once = rows.group_by("transfer").aggregate(
        **{name: rows[name].min() for name in rows.columns if name not in ("transfer", "queue", "report")}
    )
    ahead = clocks.ahead_us(once["reporter"])
    begin, finish = ibis.least(once["start_us"], once["end_us"]), ibis.greatest(once["start_us"], once["end_us"])
    return transfers.derive(once.mutate(start_us=begin - ahead, end_us=finish - ahead, duration_us=finish - begin))


# --- Hosts by address


def _addresses(stored: Stored) -> dict[str, str]:
    """Returns the reporter of each address that only one claims."""
    claims: dict[str, set[str]] = defaultdict(set)
    for reporter, address in _configured(stored.hosts):
        claims[address].add(reporter)
    configured = {address: next(iter(reporters)) for address, reporters in claims.items() if len(reporters) == 1}
    ends: dict[str, set[str]] = defaultdict(set)
    for dataset in (stored.transfers, stored.connections):
        rows = dataset.table
        own = rows.select("reporter", address=ibis.ifelse(rows["direction"] == "send", rows["src"], rows["dst"])).distinct()
        for row in dataset.engine.to_pyarrow(own).to_pylist():
            ends[row["address"]].add(row["reporter"])
    used = {address: next(iter(reporters)) for address, reporters in ends.items() if len(reporters) == 1 and address not in claims}
    return {address: reporter for address, reporter in (configured | used).items() if address and not address.startswith(_LOCAL)}


def _configured(hosts: Dataset) -> list[tuple[str, str]]:
    rows = hosts.engine.to_pyarrow(hosts.table.select("reporter", "addresses").distinct()).to_pylist()
    return [(row["reporter"], address.strip()) for row in rows for address in row["addresses"].split(",")]


def _with_hosts(stored: Stored, logged: Dataset, addresses: dict[str, str]) -> Dataset:
    """Adds `sender` and `receiver`, and the address of the reporter where its log has none."""
    first = {reporter: address for address, reporter in sorted(addresses.items(), reverse=True)}
    names = _names(logged, sorted(addresses), [addresses[address] for address in sorted(addresses)])
    homes = _names(logged, sorted(first), [first[reporter] for reporter in sorted(first)])
    table = looked_up(logged.table, "reporter", homes, "home")
    sends = table["direction"] == "send"
    table = table.mutate(
        src=ibis.ifelse(sends & (table["src"] == ""), table["home"], table["src"]),
        dst=ibis.ifelse(~sends & (table["dst"] == ""), table["home"], table["dst"]),
    )
    table = looked_up(table, "src", names, "sender")
    table = looked_up(table, "dst", names, "receiver")
    sends = table["direction"] == "send"
    return logged.derive(
        table.drop("home").mutate(
            sender=ibis.ifelse(sends, table["reporter"], table["sender"]), receiver=ibis.ifelse(sends, table["receiver"], table["reporter"])
        )
    )


def _names(dataset: Dataset, keys: list[str], values: list[str]) -> ir.Table:
    return dataset.engine.from_arrow(pa.table({"looked_up": pa.array(keys, pa.string()), "value": pa.array(values, pa.string())})).table


def looked_up(table: ir.Table, key: str, values: ir.Table, name: str) -> ir.Table:
    """Adds a column with the `value` whose `looked_up` is that of `key`, or an empty text."""
    joined = table.left_join(values, [(key, "looked_up")])
    return joined.select(*table.columns, **{name: joined["value"].fill_null("")})


# --- Transfers that both ends logged


def _paired(logged: Dataset) -> Dataset:
    table = logged.table
    sent, arrived = (table.filter(table["direction"] == direction) for direction in ("send", "receive"))
    pairs = logged.derive(_nearest(sent, arrived)).materialised().table
    joined = sent.left_join(pairs, [("transfer", "sent")]).select(*sent.columns, paired_transfer="arrived")
    joined = joined.mutate(paired_transfer=joined["paired_transfer"].fill_null(""))
    texts, numbers = ("application", "user", "file", "congestion_control", "error"), ("streams", "src_port", "dst_port")
    buffers = ("send_buffer_bytes", "receive_buffer_bytes")
    others = arrived.select(other="transfer", **{f"other_{name}": name for name in (*texts, *numbers, *buffers)})
    both = joined.left_join(others, [("paired_transfer", "other")])
    filled = {name: ibis.ifelse(both[name] == "", both[f"other_{name}"].fill_null(""), both[name]) for name in texts}
    filled |= {
        name: ibis.ifelse(both[name] == 0, both[f"other_{name}"].fill_null(0), both[name]) for name in (*numbers, "send_buffer_bytes")
    }
    received = both["other_receive_buffer_bytes"].fill_null(0)
    filled["receive_buffer_bytes"] = ibis.ifelse(received == 0, both["receive_buffer_bytes"], received)
    columns = [*table.columns, "paired_transfer"]
    first = both.select(*(name for name in columns if name not in filled), **filled).select(*columns)
    alone = arrived.anti_join(pairs, [("transfer", "arrived")]).mutate(paired_transfer=ibis.literal(""))
    return logged.derive(first.cast(alone.select(*columns).schema()).union(alone.select(*columns)))


def _nearest(sent: ir.Table, arrived: ir.Table) -> ir.Table:
    """Returns the pairs of entries (`sent`, `arrived`) that are each other's nearest."""
    width = 2 * TOLERANCE_US
    columns = ["src", "dst", "transfer", "start_us", "end_us", "bytes", "src_port", "dst_port"]
    left = sent.select(*columns, bucket_us=sent["start_us"] - sent["start_us"] % width)
    begun = arrived["start_us"] - arrived["start_us"] % width
    right = arrived.select("src", "dst", **{f"other_{name}": name for name in columns[2:]}, bucket_us=begun)
    near = right.union(right.mutate(bucket_us=right["bucket_us"] - width)).union(right.mutate(bucket_us=right["bucket_us"] + width))
    both = left.inner_join(near, _KEY)
    apart = {name: (both[f"{name}_us"] - both[f"other_{name}_us"]).abs() for name in ("start", "end")}
    size = ibis.greatest(both["bytes"], both["other_bytes"])
    same = ((both["bytes"] - both["other_bytes"]).abs() <= size / 100) & (apart["start"] <= TOLERANCE_US) & (apart["end"] <= TOLERANCE_US)
    for port in ("src_port", "dst_port"):
        same &= (both[port] == 0) | (both[f"other_{port}"] == 0) | (both[port] == both[f"other_{port}"])
    found = both.filter(same).select(sent="transfer", arrived="other_transfer", apart_us=apart["start"] + apart["end"])
    ranked = found.mutate(
        of_sent=ibis.row_number().over(ibis.window(group_by="sent", order_by=["apart_us", "arrived"])),
        of_arrived=ibis.row_number().over(ibis.window(group_by="arrived", order_by=["apart_us", "sent"])),
    )
    return ranked.filter((ranked["of_sent"] == 0) & (ranked["of_arrived"] == 0)).select("sent", "arrived")
