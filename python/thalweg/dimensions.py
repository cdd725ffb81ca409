"""What rows can be grouped by, and what groups are ordered by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .errors import QuestionError

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
        raise DimensionError("by: one of address, port and as at most; source-port, destination-as and so on can be joined")
    keys = [key for dimension in found for key in dimension.columns]
    if len(set(keys)) < len(keys):
        raise DimensionError(f"by: {','.join(names)} names a column twice")
    return found
