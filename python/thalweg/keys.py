"""What tells flows apart, and what tells apart where they were seen."""

KEY = ("src", "dst", "src_port", "dst_port", "protocol")
"""A flow's key."""

POINT = ("exporter", "observation_domain_id", "flow_direction")
"""An observation point."""
