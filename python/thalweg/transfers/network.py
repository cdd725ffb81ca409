"""The network's view of a transfer: flow records of its connections, and discards at the interfaces that they name.

A flow record names its router and the interface that it left by. The counters of these interfaces during the transfer show which link
of the path discarded packets. Without flow records of the connections, or without counters, the columns are 0.

`flow_rate_bps` is the rate that flow records alone would give: their bytes over the time from the first to the last. For one transfer on
a connection of its own that is about its throughput. For a persistent session it is not: think times count as transfer time, and
records of a minute join several transfers (the dissertation, section 5.2). So it is shown beside the log's rate and decides nothing.
"""

from __future__ import annotations

import ibis
import ibis.expr.types as ir

from ..counts import byte_count
from ..dataset import Dataset
from ..interfaces import interface_rates
from .clocks import Clocks
from .datasets import Stored
from .join import bucketed, connections_of, with_columns

COLUMNS = ("flow_records", "flow_bytes", "flow_rate_bps", "path_discards")
"""Columns that `with_network` adds."""

_TUPLE = ["src", "dst", "src_port", "dst_port"]
_TCP = 6
_BUCKET_US = 600_000_000
_MARGIN_US = 60_000_000
"""Time after a transfer within which counters still cover it: routers are polled every minute or more often."""


def with_network(stored: Stored, joined: Dataset, clocks: Clocks) -> Dataset:
    """Adds `COLUMNS` to transfers."""
    table = joined.table
    if stored.flow_records is None:
        zero = {name: ibis.literal(0, "int64") for name in COLUMNS}
        return joined.derive(table.mutate(**zero))
    records = joined.derive(_records(stored, joined, clocks)).materialised()
    table = with_columns(table, joined.derive(_flows(records.table)).materialised().table, {name: name for name in COLUMNS[:3]})
    if stored.interface_counters is None:
        return joined.derive(table.mutate(path_discards=ibis.literal(0, "int64"))).materialised()
    discards = joined.derive(_discards(records.table, interface_rates(stored.interface_counters).table)).materialised()
    return joined.derive(with_columns(table, discards.table, {"path_discards": "path_discards"})).materialised()


def _records(stored: Stored, joined: Dataset, clocks: Clocks) -> ir.Table:
    """Returns the flow records of each transfer's connections."""
    assert stored.flow_records is not None
    times = joined.table.select(key="transfer", begin_us="start_us", finish_us="end_us")
    of_sides = [connections_of(stored, joined, clocks, side).table.select("transfer", *_TUPLE) for side in ("send", "receive")]
    connections = of_sides[0].union(of_sides[1]).distinct()
    known = connections.inner_join(times, [("transfer", "key")]).drop("key")
    rows = stored.flow_records.table
    rows = rows.filter(rows["protocol"] == _TCP)
    flows = rows.select(
        *_TUPLE,
        *("exporter", "observation_domain_id", "flow_direction", "egress_interface"),
        counted_bytes=byte_count(rows),
        flow_first_us=ibis.least(rows["flow_start_us"], rows["flow_end_us"]),
        flow_last_us=ibis.greatest(rows["flow_start_us"], rows["flow_end_us"]),
    )
    of_flows = bucketed(flows, "flow_first_us", "flow_last_us", _BUCKET_US).rename(flow_bucket_us="first_bucket_us")
    both = bucketed(known, "begin_us", "finish_us", _BUCKET_US).inner_join(of_flows, [*_TUPLE, "bucket_us"])
    common = both["bucket_us"] == ibis.greatest(both["first_bucket_us"], both["flow_bucket_us"])
    return both.filter(common & (both["flow_first_us"] <= both["finish_us"]) & (both["flow_last_us"] >= both["begin_us"]))


def _flows(records: ir.Table) -> ir.Table:
    """Returns the flow records of each transfer, by the observation point with the most bytes."""
    point = ["exporter", "observation_domain_id", "flow_direction"]
    points = records.group_by(["transfer", *point]).aggregate(
        records=records.count(),
        bytes=records["counted_bytes"].sum().cast("int64"),
        first_us=records["flow_first_us"].min(),
        last_us=records["flow_last_us"].max(),
    )
    order = [points["bytes"].desc(), *(points[name] for name in point)]
    ranked = points.mutate(rank=ibis.row_number().over(ibis.window(group_by="transfer", order_by=order)))
    best = ranked.filter(ranked["rank"] == 0)
    rate = best["bytes"].cast("float64") * 8e6 / ibis.greatest(best["last_us"] - best["first_us"], 1).cast("float64")
    return best.select("transfer", flow_records="records", flow_bytes="bytes", flow_rate_bps=rate.floor().cast("int64"))


def _discards(records: ir.Table, rates: ir.Table) -> ir.Table:
    """Returns the packets that the interfaces of each transfer's flow records discarded during it."""
    interfaces = records.select("transfer", "begin_us", "finish_us", "exporter", interface="egress_interface").distinct()
    interfaces = bucketed(interfaces.mutate(until_us=interfaces["finish_us"] + _MARGIN_US), "begin_us", "until_us", _BUCKET_US)
    readings = rates.select(
        "exporter", "interface", "received_us", "out_discards", bucket_us=rates["received_us"] - rates["received_us"] % _BUCKET_US
    )
    both = interfaces.inner_join(readings, ["exporter", "interface", "bucket_us"])
    both = both.filter((both["received_us"] >= both["begin_us"]) & (both["received_us"] <= both["until_us"]))
    return both.group_by("transfer").aggregate(path_discards=both["out_discards"].sum().cast("int64"))
