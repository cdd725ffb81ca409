"""Columns of flow records in files."""

from __future__ import annotations

import pyarrow as pa

TEXT, INT32, INT64, INSTANT = pa.string(), pa.int32(), pa.int64(), pa.timestamp("us", "UTC")

RECORD_SCHEMA = pa.schema(
    [
        pa.field(name, kind, nullable=False)
        for name, kind in (
            ("received", INSTANT),
            ("exporter", TEXT),
            ("observation_domain_id", INT64),
            ("format", TEXT),
            ("sampling_interval", INT64),
            ("flow_start", INSTANT),
            ("flow_end", INSTANT),
            ("src", TEXT),
            ("dst", TEXT),
            ("src_port", INT32),
            ("dst_port", INT32),
            ("protocol", INT32),
            ("tcp_flags", INT32),
            ("tos", INT32),
            ("icmp_type_code", INT32),
            ("bytes", INT64),
            ("packets", INT64),
            ("ingress_interface", INT64),
            ("egress_interface", INT64),
            ("src_as", INT64),
            ("dst_as", INT64),
            ("next_hop", TEXT),
            ("src_prefix_length", INT32),
            ("dst_prefix_length", INT32),
            ("vlan_id", INT32),
            ("flow_direction", INT32),
            ("flow_end_reason", INT32),
            ("biflow_direction", INT32),
            ("inner_src", TEXT),
            ("inner_dst", TEXT),
            ("inner_src_port", INT32),
            ("inner_dst_port", INT32),
            ("inner_protocol", INT32),
            ("inner_tcp_flags", INT32),
            ("inner_tos", INT32),
            ("inner_src_prefix_length", INT32),
            ("inner_dst_prefix_length", INT32),
            ("src_mac", TEXT),
            ("dst_mac", TEXT),
            ("post_src_mac", TEXT),
            ("post_dst_mac", TEXT),
            ("post_vlan_id", INT32),
            ("customer_vlan_id", INT32),
            ("min_ttl", INT32),
            ("max_ttl", INT32),
            ("forwarding_status", INT32),
            ("post_tos", INT32),
            ("mpls_labels", TEXT),
            ("ingress_vrf_id", INT64),
            ("egress_vrf_id", INT64),
            ("bgp_next_hop", TEXT),
            ("next_as", INT64),
            ("previous_as", INT64),
            ("observation_point_id", INT64),
            ("exporter_name", TEXT),
            ("ingress_interface_name", TEXT),
            ("egress_interface_name", TEXT),
            ("ingress_vrf_name", TEXT),
            ("egress_vrf_name", TEXT),
            ("src_country", TEXT),
            ("dst_country", TEXT),
        )
    ]
)
"""Columns of a file of flow records, in order. None has nulls."""

ADDED = RECORD_SCHEMA.names[RECORD_SCHEMA.get_field_index("src_mac") :]
"""Columns that version 3 added. Files of earlier versions lack them."""


def unreported(name: str) -> str | int:
    """Returns the value of one of `ADDED` in rows without it."""
    return "" if RECORD_SCHEMA.field(name).type == TEXT else 0
