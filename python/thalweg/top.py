"""Who moves most: rows grouped by what tells them apart, and the largest groups."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass

import ibis
import ibis.expr.types as ir

from . import counts

ORDERS = ("octets", "packets", "flows")
"""What groups can be ordered by."""


@dataclass(frozen=True)
class Dimension:
    """What rows are grouped by.

    Attributes:
        columns: The columns whose values make a group.
        either: If not empty, the second end: a row belongs to the group of `columns`, and to that of these.
        meaning: For the help.
    """

    columns: tuple[str, ...]
    meaning: str
    either: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns in the answer."""
        return tuple(name.removeprefix("source_") for name in self.columns) if self.either else self.columns


def _ends(column: str, meaning: str) -> Dimension:
    return Dimension((f"source_{column}",), meaning, (f"destination_{column}",))


DIMENSIONS = {
    "source": Dimension(("source_address",), "source address"),
    "destination": Dimension(("destination_address",), "destination address"),
    "address": _ends("address", "address, at either end"),
    "pair": Dimension(("source_address", "destination_address"), "source and destination address"),
    "source-port": Dimension(("source_port",), "source port"),
    "destination-port": Dimension(("destination_port",), "destination port"),
    "port": _ends("port", "port, at either end"),
    "protocol": Dimension(("protocol",), "IP protocol"),
    "source-as": Dimension(("source_as",), "source autonomous system"),
    "destination-as": Dimension(("destination_as",), "destination autonomous system"),
    "as": _ends("as", "autonomous system, at either end"),
    "as-pair": Dimension(("source_as", "destination_as"), "source and destination autonomous system"),
    "exporter": Dimension(("exporter",), "who sent the records"),
    "ingress-interface": Dimension(("exporter", "ingress_interface"), "exporter and its input interface"),
    "egress-interface": Dimension(("exporter", "egress_interface"), "exporter and its output interface"),
    "next-hop": Dimension(("next_hop",), "next hop"),
    "class-of-service": Dimension(("class_of_service",), "DSCP and ECN, as one number"),
    "vlan": Dimension(("vlan_id",), "VLAN"),
    "format": Dimension(("format",), "what the record came in"),
}
"""By name; several can be joined."""


class DimensionError(ValueError):
    """What rows cannot be grouped by."""


def dimensions(names: Sequence[str]) -> list[Dimension]:
    """The dimensions of these names.

    Raises:
        DimensionError: If there is no such dimension, one stands twice, or two of them take either end.
    """
    for name in names:
        if name not in DIMENSIONS:
            raise DimensionError(f"by: there is no {name!r}; there are {', '.join(DIMENSIONS)}")
    found = [DIMENSIONS[name] for name in names]
    if sum(bool(dimension.either) for dimension in found) > 1:
        raise DimensionError("by: one of address, port and as at most; source-port, destination-as and so on can be joined")
    keys = [key for dimension in found for key in dimension.columns]
    if len(set(keys)) < len(keys):
        raise DimensionError(f"by: {','.join(names)} names a column twice")
    return found


def grouped(rows: ir.Table, by: Sequence[str]) -> tuple[ir.Table, tuple[str, ...]]:
    """The keys, octets, packets, flows and instants of each row, and the names of the keys.

    A row is there once, or twice where a dimension takes either end and these differ.

    Raises:
        DimensionError: As `dimensions`, or if `rows` has no such column.
    """
    chosen = dimensions(by)
    for dimension in chosen:
        for column in (*dimension.columns, *dimension.either):
            if column not in rows.columns:
                raise DimensionError(f"by: these rows have no column {column}")
    keys = tuple(key for dimension in chosen for key in dimension.keys)
    first = _keyed(rows, keys, [column for dimension in chosen for column in dimension.columns])
    if not any(dimension.either for dimension in chosen):
        return first, keys
    columns = [column for dimension in chosen for column in dimension.either or dimension.columns]
    differs = functools.reduce(
        operator.or_,
        (rows[one] != rows[other] for dimension in chosen for one, other in zip(dimension.columns, dimension.either, strict=False)),
    )
    return first.union(_keyed(rows.filter(differs), keys, columns)), keys


def _keyed(rows: ir.Table, keys: Sequence[str], columns: Sequence[str]) -> ir.Table:
    return rows.select(
        **{key: rows[column] for key, column in zip(keys, columns, strict=True)},
        octets=counts.octets(rows),
        packets=counts.packets(rows),
        flows=counts.flows(rows),
        flow_start_us=rows["flow_start_us"],
        flow_end_us=rows["flow_end_us"],
    )


def top(rows: ir.Table, by: Sequence[str] = ("source",), order: str = "octets", limit: int | None = 10) -> ir.Table:
    """The largest groups, the largest first; equals in the order of their keys.

    Args:
        rows: Records, flows or flowsets. Of records, what several routers saw counts as often as it was seen; of flows, once.
        by: Names of `DIMENSIONS`.
        order: One of `ORDERS`.
        limit: How many groups; None: all.

    Returns:
        The keys, `octets`, `packets`, `flows` (rows of records, which are parts of flows), `share` of all octets, packets or
        flows as ordered, `flow_start_us` and `flow_end_us` (first packet and last).

    Raises:
        DimensionError: If rows cannot be grouped so.
    """
    if order not in ORDERS:
        raise DimensionError(f"order: there is no {order!r}; there are {', '.join(ORDERS)}")
    keyed, keys = grouped(rows, by)
    sums = keyed.group_by(list(keys)).aggregate(
        octets=keyed["octets"].sum().cast("int64"),
        packets=keyed["packets"].sum().cast("int64"),
        flows=keyed["flows"].sum().cast("int64"),
        flow_start_us=keyed["flow_start_us"].min(),
        flow_end_us=keyed["flow_end_us"].max(),
    )
    amount = {"octets": counts.octets, "packets": counts.packets, "flows": counts.flows}[order]
    amounts = rows.select(amount=amount(rows))
    whole = amounts.aggregate(whole=amounts["amount"].sum())
    ordered = sums.order_by([ibis.desc(order), *keys])
    largest = ordered if limit is None else ordered.limit(limit)
    with_share = largest.cross_join(whole)
    share = with_share[order].cast("float64") / with_share["whole"].nullif(0).cast("float64")
    return (
        with_share.mutate(share=share).select(*keys, *ORDERS, "share", "flow_start_us", "flow_end_us").order_by([ibis.desc(order), *keys])
    )
