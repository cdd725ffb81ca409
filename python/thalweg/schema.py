"""Columns of flow records, as files have them."""

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
            ("source_address", TEXT),
            ("destination_address", TEXT),
            ("source_port", INT32),
            ("destination_port", INT32),
            ("protocol", INT32),
            ("tcp_flags", INT32),
            ("class_of_service", INT32),
            ("icmp_type_code", INT32),
            ("octets", INT64),
            ("packets", INT64),
            ("ingress_interface", INT64),
            ("egress_interface", INT64),
            ("source_as", INT64),
            ("destination_as", INT64),
            ("next_hop", TEXT),
            ("source_prefix_length", INT32),
            ("destination_prefix_length", INT32),
            ("vlan_id", INT32),
            ("flow_direction", INT32),
            ("flow_end_reason", INT32),
            ("biflow_direction", INT32),
        )
    ]
)
"""Columns of a file of flow records, in order. None has gaps."""
