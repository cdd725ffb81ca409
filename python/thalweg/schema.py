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
        )
    ]
)
"""Columns of a file of flow records, in order. None has nulls."""
