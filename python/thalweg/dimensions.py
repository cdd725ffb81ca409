"""What rows can be grouped by, and what groups are ordered by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .errors import QuestionError

ORDERS = ("bytes", "packets", "flows")
"""What groups can be ordered by."""


@dataclass(frozen=True)
class Dimension:
    """What rows are grouped by.

    Attributes:
        columns: The columns whose values make a group.
        meaning: For the help.
        either: Columns of the other end, if rows are grouped by both ends: a row then belongs to two groups.
        key: Name of the result's column, if rows are grouped by both ends.
    """

    columns: tuple[str, ...]
    meaning: str
    either: tuple[str, ...] = ()
    key: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns in the answer."""
        return (self.key,) if self.either else self.columns


DIMENSIONS = {
    "src": Dimension(("src",), "source address"),
    "dst": Dimension(("dst",), "destination address"),
    "address": Dimension(("src",), "address, at either end", ("dst",), "address"),
    "pair": Dimension(("src", "dst"), "source and destination address"),
    "src-port": Dimension(("src_port",), "source port"),
    "dst-port": Dimension(("dst_port",), "destination port"),
    "port": Dimension(("src_port",), "port, at either end", ("dst_port",), "port"),
    "protocol": Dimension(("protocol",), "IP protocol"),
    "src-as": Dimension(("src_as",), "source autonomous system"),
    "dst-as": Dimension(("dst_as",), "destination autonomous system"),
    "as": Dimension(("src_as",), "autonomous system, at either end", ("dst_as",), "as"),
    "as-pair": Dimension(("src_as", "dst_as"), "source and destination autonomous system"),
    "exporter": Dimension(("exporter",), "who sent the records"),
    "ingress-interface": Dimension(("exporter", "ingress_interface"), "exporter and its input interface"),
    "egress-interface": Dimension(("exporter", "egress_interface"), "exporter and its output interface"),
    "next-hop": Dimension(("next_hop",), "next hop"),
    "tos": Dimension(("tos",), "DSCP and ECN, as one number"),
    "vlan": Dimension(("vlan_id",), "VLAN"),
    "format": Dimension(("format",), "what the record came in"),
}
"""By name; several can be joined."""


class DimensionError(QuestionError):
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
        raise DimensionError("by: one of address, port and as at most; src-port, dst-as and so on can be joined")
    keys = [key for dimension in found for key in dimension.columns]
    if len(set(keys)) < len(keys):
        raise DimensionError(f"by: {','.join(names)} names a column twice")
    return found
