"""Dimensions to group rows by, and orders of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .errors import QuestionError
from .nearest import suggestion

ORDERS = ("bytes", "packets", "flows")
"""Orders of groups."""


@dataclass(frozen=True)
class Dimension:
    """A dimension to group rows by.

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
        """Returns the names of the columns in the result."""
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
    "exporter": Dimension(("exporter",), "router that sent the records"),
    "ingress-interface": Dimension(("exporter", "ingress_interface"), "exporter and its input interface"),
    "egress-interface": Dimension(("exporter", "egress_interface"), "exporter and its output interface"),
    "next-hop": Dimension(("next_hop",), "next hop"),
    "tos": Dimension(("tos",), "DSCP and ECN, as one number"),
    "vlan": Dimension(("vlan_id",), "VLAN"),
    "post-vlan": Dimension(("post_vlan_id",), "VLAN of outgoing packets"),
    "customer-vlan": Dimension(("customer_vlan_id",), "inner of two VLAN tags"),
    "src-mac": Dimension(("src_mac",), "source MAC address"),
    "dst-mac": Dimension(("dst_mac",), "destination MAC address"),
    "mac": Dimension(("src_mac",), "MAC address, at either end", ("dst_mac",), "mac"),
    "post-src-mac": Dimension(("post_src_mac",), "source MAC address of outgoing packets"),
    "post-dst-mac": Dimension(("post_dst_mac",), "destination MAC address of outgoing packets"),
    "forwarding-status": Dimension(("forwarding_status",), "forwarding status (RFC 7270)"),
    "ingress-vrf": Dimension(("ingress_vrf_id", "ingress_vrf_name"), "VRF of incoming packets"),
    "egress-vrf": Dimension(("egress_vrf_id", "egress_vrf_name"), "VRF of outgoing packets"),
    "bgp-next-hop": Dimension(("bgp_next_hop",), "next hop in BGP"),
    "next-as": Dimension(("next_as",), "next autonomous system towards the destination"),
    "previous-as": Dimension(("previous_as",), "previous autonomous system, towards the source"),
    "exporter-name": Dimension(("exporter_name",), "name of the router that sent the records"),
    "ingress-interface-name": Dimension(("exporter", "ingress_interface_name"), "exporter and the name of its input interface"),
    "egress-interface-name": Dimension(("exporter", "egress_interface_name"), "exporter and the name of its output interface"),
    "src-country": Dimension(("src_country",), "country of the source"),
    "dst-country": Dimension(("dst_country",), "country of the destination"),
    "country": Dimension(("src_country",), "country, at either end", ("dst_country",), "country"),
    "tcp-flags": Dimension(("tcp_flags",), "TCP flags of the record, as a number"),
    "icmp-type-code": Dimension(("icmp_type_code",), "ICMP type times 256 plus code"),
    "src-prefix-length": Dimension(("src_prefix_length",), "prefix length of the route to the source"),
    "dst-prefix-length": Dimension(("dst_prefix_length",), "prefix length of the route to the destination"),
    "post-tos": Dimension(("post_tos",), "DSCP and ECN of outgoing packets, as one number"),
    "min-ttl": Dimension(("min_ttl",), "smallest TTL or hop limit"),
    "max-ttl": Dimension(("max_ttl",), "largest TTL or hop limit"),
    "flow-direction": Dimension(("flow_direction",), "direction observed: 0 ingress, 1 egress, 255 unknown"),
    "flow-end-reason": Dimension(("flow_end_reason",), "why the record ended"),
    "observation-domain": Dimension(("exporter", "observation_domain_id"), "exporter and its observation domain"),
    "observation-point": Dimension(("exporter", "observation_point_id"), "exporter and its observation point"),
    "mpls-labels": Dimension(("mpls_labels",), "stack of MPLS labels, top first"),
    "format": Dimension(("format",), "protocol that carried the record: NetFlow, IPFIX or sFlow"),
}
"""Dimensions by name; several can be combined."""


class DimensionError(QuestionError):
    """An invalid dimension or order."""


def dimensions(names: Sequence[str]) -> list[Dimension]:
    """Returns the dimensions with these names.

    Raises:
        DimensionError: If a dimension is unknown, duplicate, or counts both ends like another.
    """
    for name in names:
        if name not in DIMENSIONS:
            raise DimensionError(f"invalid dimension {name!r}: expected one of {', '.join(DIMENSIONS)}{suggestion(name, DIMENSIONS)}")
    found = [DIMENSIONS[name] for name in names]
    if sum(bool(dimension.either) for dimension in found) > 1:
        raise DimensionError("by: only one of address, port, as, mac and country is allowed; combine src-port, dst-as and so on instead")
    keys = [key for dimension in found for key in dimension.columns]
    if len(set(keys)) < len(keys):
        raise DimensionError(f"by: {','.join(names)} has a duplicate column")
    return found
