"""Transfers from the entries of logs: each counted once, with the hosts at both ends and times of one clock.

- An entry that arrived twice has the same identifier and counts once.
- An entry of the sender and one of the receiver can be one transfer if addresses and known ports agree, their times differ by at most
  `TOLERANCE_US`, and sizes by at most 1 %. The receiver may end up to `FLUSH_US` later. Each entry has one partner at most: see
  `_pairs`. The transfer has the sender's identifier, times and size; unknown values are the receiver's.
- A transfer counts if its sender's entry was received within the range, or its only entry. Entries of the other end are read around the
  range.
- The host of an address is the reporter that claims it: in `hosts`, as the end that it logged, or as its end of a connection. An
  address that several claim (private networks) belongs to the reporter of the entry, or to none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import ibis
import ibis.expr.types as ir
import pyarrow as pa

from ..dataset import Dataset
from .clocks import Clocks
from .datasets import Stored

TOLERANCE_US = 30_000_000
"""Logs have whole seconds, and clocks that differ by less than a minute are not always corrected."""

FLUSH_US = 600_000_000
"""A receiver that flushes a file ends when the last byte is on its disk: 20 GB at 200 MB/s take 100 s longer than over a fast path."""

EARLIEST_US, LATEST_US = 0, 4_102_444_800_000_000
"""Times before 1970 and after 2100 are errors of a log; they become these."""

LONGEST_US = 366 * 24 * 3_600_000_000
"""A duration of more than a year is an error of a log. Such a transfer has no duration, hence no rate."""

MOST_BYTES = 1 << 53
"""A larger size, 9 PB, is an error of a log."""

FASTEST_BPS = 1e12
"""A higher rate is an error of a log."""

CLOSE_US, LEVELS = 2_000_000, 10
"""Differences of less than 2 s are equal: logs have whole seconds. Above, each level of difference reaches twice as far: 4 s, 8 s, up to
17 minutes, which is more than `FLUSH_US`."""

NEAR = 16
"""An entry is compared with those of the other end among the 16 to 32 before it and after it in time. This bounds the cost of thousands of
equal files a minute."""

PASSES, ROUNDS = 8, 16
"""Maximum number of comparisons of the entries that are left, and of rounds in which the compared ones choose each other. The first ones
pair nearly all."""

SIZE_CLASSES = 40
"""Classes of size for each factor of e. They are 2.5 % wide. So two sizes with a difference of 1 % have a class in common, or one of the
classes that are shifted by half a width."""

_KEYS = (
    ["src", "dst", "bytes", "file"],
    ["src", "dst", "bytes"],
    ["src", "dst", "size_class"],
    ["src", "dst", "shifted_class"],
)
"""What entries of both ends have in common, the surest first. Names of files are equal only if both hosts hash them with the same salt."""

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
    paired = _paired(logged)
    paired = paired.filter(stored.covers(paired.table["received_us"])).materialised()
    table = paired.table
    rate = (table["bytes"].cast("float64") * 8e6 / table["duration_us"].nullif(0).cast("float64")).fill_null(0.0)
    rate = ibis.least(rate, FASTEST_BPS).floor().cast("int64")
    return paired.derive(table.mutate(rate_bps=rate).select(*COLUMNS)).materialised()


def _logged(transfers: Dataset, clocks: Clocks) -> Dataset:
    rows = transfers.table
    once = rows.group_by("transfer").aggregate(
        **{name: rows[name].min() for name in rows.columns if name not in ("transfer", "queue", "report")}
    )
    ahead = clocks.ahead_us(once["reporter"])
    begin, finish = (value(once["start_us"], once["end_us"]) for value in (ibis.least, ibis.greatest))
    begin, finish = (time.clip(EARLIEST_US, LATEST_US) for time in (begin, finish))
    begin = ibis.ifelse(finish - begin > LONGEST_US, finish, begin)
    sane = once.mutate(start_us=begin - ahead, end_us=finish - ahead, duration_us=finish - begin)
    return transfers.derive(sane.mutate(bytes=ibis.least(sane["bytes"], MOST_BYTES)))


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
    pairs = _pairs(logged).table
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


def _pairs(logged: Dataset) -> Dataset:
    """Returns the entries of both ends that are one transfer: `sent` and `arrived`.

    For each of `_KEYS` in turn, bursts that both ends logged completely are paired in their order. The entries that are left choose among
    the candidates that agree in the key. Those that choose each other are a pair, and the others choose again. Every round pairs at least
    the two candidates that rank first.

    Cost: for each key, a sort of the entries whose key both ends have, and at most 3 `NEAR` comparisons of each one that is left.
    """
    rows = logged.table
    columns = ["transfer", "direction", "src", "dst", "src_port", "dst_port", "file", "bytes", "start_us", "end_us"]
    ends = logged.derive(_facing(rows.select(columns), ["src", "dst"]))
    size_class = ibis.greatest(ends.table["bytes"], 1).cast("float64").ln() * SIZE_CLASSES
    ends = ends.derive(
        ends.table.mutate(
            # Whole numbers identify entries: texts cost three times as much.
            number=ibis.row_number().over(ibis.window(order_by="transfer")),
            size_class=size_class.floor().cast("int64"),
            shifted_class=(size_class + 0.5).floor().cast("int64"),
        )
    ).materialised()
    found = list(_by_keys(ends)) if ends.count() else []
    if not found:
        nothing = pa.array([], pa.string())
        return logged.engine.from_arrow(pa.table({"sent": nothing, "arrived": nothing}))
    table = found[0] if len(found) == 1 else ibis.union(*found)
    for side in ("sent", "arrived"):
        names = ends.table.select(**{f"{side}_transfer": "transfer", f"{side}_number": "number"})
        table = table.inner_join(names, [(side, f"{side}_number")]).drop(f"{side}_number")
    return logged.derive(table.select(sent="sent_transfer", arrived="arrived_transfer")).materialised()


def _by_keys(ends: Dataset) -> Iterator[ir.Table]:
    """Yields pairs of the numbers of entries, each entry once."""
    for key in _KEYS:
        rows = ends.table.filter(ends.table["file"] != "") if "file" in key else ends.table
        pairs = list(_by_key(ends.derive(_facing(rows, key)).materialised(), key))
        yield from pairs
        if pairs:
            ends = ends.derive(_without(ends.table, pairs)).materialised()


def _by_key(rows: Dataset, key: list[str]) -> Iterator[ir.Table]:
    if rows.count() == 0:
        return
    pairs = rows.derive(_in_order(rows, key)).materialised().table
    yield pairs
    taken = [pairs]
    for _ in range(PASSES):
        rows = rows.derive(_facing(_without(rows.table, taken), key)).materialised()
        taken = list(_chosen(_candidates(rows, key))) if rows.count() else []
        if not taken:
            return
        yield from taken


def _chosen(candidates: Dataset) -> Iterator[ir.Table]:
    """Yields pairs of candidates that choose each other, a table for each round."""
    for _ in range(ROUNDS):
        if candidates.count() == 0:
            return
        pairs = candidates.derive(_mutual(candidates.table)).materialised().table
        yield pairs
        rest = candidates.table.anti_join(pairs.select("sent"), "sent").anti_join(pairs.select("arrived"), "arrived")
        candidates = candidates.derive(rest).materialised()


def _facing(rows: ir.Table, key: list[str]) -> ir.Table:
    """Returns the entries with a key that entries of both ends have."""
    groups = rows.group_by(key).aggregate(first=rows["direction"].min(), last=rows["direction"].max())
    return rows.semi_join(groups.filter(groups["first"] != groups["last"]), key)


def _without(rows: ir.Table, pairs: list[ir.Table]) -> ir.Table:
    """Returns the entries that are in no pair."""
    taken = ibis.union(*(each.select(number=side) for each in pairs for side in ("sent", "arrived")))
    return rows.anti_join(taken, "number")


def _in_order(rows: Dataset, key: list[str]) -> ir.Table:
    """Returns the pairs of bursts that both ends logged completely: the first entry of each with the first one, and so on.

    A burst begins after `CLOSE_US` without a start. All its pairs must start within this time: otherwise both ends miss entries.
    """
    table = rows.table
    of_key = {"group_by": key, "order_by": ["start_us", "number"]}
    table = table.mutate(before_us=table["start_us"].lag().over(ibis.window(**of_key)))
    begins = (table["start_us"] - table["before_us"] >= CLOSE_US).ifelse(1, 0)
    table = table.mutate(burst=begins.sum().over(ibis.window(rows=(None, 0), **of_key)).cast("int64"))
    burst = [*key, "burst"]
    nth = ibis.row_number().over(ibis.window(group_by=[*burst, "direction"], order_by=["start_us", "end_us", "number"]))
    placed = rows.derive(table.mutate(nth=nth)).materialised().table
    found = _compared(_of_end(placed, "send", [*burst, "nth"]), _of_end(placed, "receive", [*burst, "nth"]), [*burst, "nth"])
    found = found.filter(found["start_apart_us"] < CLOSE_US)
    members, pairs = placed.group_by(burst).aggregate(members=ibis._.count()), found.group_by(burst).aggregate(pairs=ibis._.count())
    both = members.inner_join(pairs, burst)
    return found.semi_join(both.filter(both["members"] == 2 * both["pairs"]), burst).select("sent", "arrived")


def _candidates(rows: Dataset, key: list[str]) -> Dataset:
    """Returns the entries of both ends that agree in a key and can be one transfer."""
    table = rows.table
    # Simultaneous entries of both ends alternate.
    simultaneous = ibis.window(group_by=[*key, "direction", "start_us"], order_by=["end_us", "number"])
    table = table.mutate(nth=ibis.row_number().over(simultaneous))
    in_time = ibis.window(group_by=key, order_by=["start_us", "nth", "direction"])
    placed = rows.derive(table.mutate(place=ibis.row_number().over(in_time))).materialised().table
    placed = placed.mutate(stretch=placed["place"] - placed["place"] % NEAR)
    keys = [*key, "stretch"]
    arrived = _of_end(placed, "receive", keys)
    near = ibis.union(arrived, *(arrived.mutate(stretch=arrived["stretch"] + by) for by in (-NEAR, NEAR)))
    found = _compared(_of_end(placed, "send", keys), near, keys)
    start, end = found["start_apart_us"], found["end_apart_us"]
    found = found.mutate(start_level=_level(start), end_level=_level(end), apart_us=start + end)
    return rows.derive(found.drop(*keys, "start_apart_us", "end_apart_us")).materialised()


_COMPARED = ("number", "start_us", "end_us", "bytes", "src_port", "dst_port")


def _of_end(rows: ir.Table, direction: str, keys: list[str]) -> ir.Table:
    return rows.filter(rows["direction"] == direction).select(*keys, **{f"{direction}_{name}": name for name in _COMPARED})


def _compared(sent: ir.Table, arrived: ir.Table, keys: list[str]) -> ir.Table:
    """Returns the entries of both ends with equal keys that can be one transfer, with the differences of their times."""
    both = sent.inner_join(arrived, keys)
    start_apart, later = (both["send_start_us"] - both["receive_start_us"]).abs(), both["receive_end_us"] - both["send_end_us"]
    size = ibis.greatest(both["send_bytes"], both["receive_bytes"])
    same = ((both["send_bytes"] - both["receive_bytes"]).abs() <= size / 100) & (start_apart <= TOLERANCE_US)
    same &= (later >= -TOLERANCE_US) & (later <= FLUSH_US)
    for port in ("src_port", "dst_port"):
        ends = both[f"send_{port}"], both[f"receive_{port}"]
        same &= (ends[0] == 0) | (ends[1] == 0) | (ends[0] == ends[1])
    times = [f"{direction}_{time}_us" for direction in ("send", "receive") for time in ("start", "end")]
    return both.filter(same).select(
        *keys, *times, sent="send_number", arrived="receive_number", start_apart_us=start_apart, end_apart_us=later.abs()
    )


def _level(apart_us: ir.IntegerColumn) -> ir.IntegerValue:
    levels = [(apart_us < CLOSE_US << level, ibis.literal(level, "int64")) for level in range(LEVELS)]
    return ibis.cases(*levels, else_=ibis.literal(LEVELS, "int64"))


def _mutual(candidates: ir.Table) -> ir.Table:
    """Returns the candidates that rank first for both their entries.

    Candidates with closer starts rank before others, then those with closer ends, since a receiver may flush. Among equal ones, the order
    in time decides: the third entry of the sender chooses the third one of the receiver, so that transfers which start at once find
    their partners in one round.
    """
    places = {
        "nth": ibis.window(group_by=["sent", "start_level"], order_by=["receive_start_us", "receive_end_us", "arrived"]),
        "other_nth": ibis.window(group_by=["arrived", "start_level"], order_by=["send_start_us", "send_end_us", "sent"]),
    }
    placed = candidates.mutate(**{name: ibis.row_number().over(window) for name, window in places.items()})
    placed = placed.mutate(shift=(placed["nth"] - placed["other_nth"]).abs())
    order = ["start_level", "end_level", "shift", "apart_us", "sent", "arrived"]
    ranked = placed.mutate(
        **{f"of_{side}": ibis.row_number().over(ibis.window(group_by=side, order_by=order)) for side in ("sent", "arrived")}
    )
    return ranked.filter((ranked["of_sent"] == 0) & (ranked["of_arrived"] == 0)).select("sent", "arrived")
