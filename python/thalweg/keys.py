"""Columns that identify flows and observation points."""

KEY = ("src", "dst", "src_port", "dst_port", "protocol")
"""A flow's key."""

POINT = ("exporter", "observation_domain_id", "flow_direction")
"""An observation point."""
