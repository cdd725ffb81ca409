"""Columns of the datasets about transfers, as `thalweg serve` stores them, and of the verdicts.

No column has nulls: 0 or an empty text means unknown. Instants are timestamps of microseconds (UTC) in files.
"""

from __future__ import annotations

import pyarrow as pa

from ..schema import INSTANT, INT32, INT64, TEXT

_RECEIVED = {"received": INSTANT, "reporter": TEXT}
_REPORT = {"queue": TEXT, "report": INT64}
_CONNECTION = {"src": TEXT, "dst": TEXT, "src_port": INT32, "dst_port": INT32}


def _schema(columns: dict[str, pa.DataType]) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns.items()])


TRANSFERS = _schema(
    _RECEIVED
    | {"transfer": TEXT, "application": TEXT, "direction": TEXT, "user": TEXT, "file": TEXT}
    | _CONNECTION
    | {"start": INSTANT, "end": INSTANT, "bytes": INT64, "streams": INT32}
    | {"send_buffer_bytes": INT64, "receive_buffer_bytes": INT64, "congestion_control": TEXT, "error": TEXT}
    | _REPORT
)
"""One row for each entry of a transfer log."""

HOST_METRICS = _schema(
    _RECEIVED
    | {"time": INSTANT, "interval_us": INT64, "cpus": INT32}
    | dict.fromkeys(("cpu_busy_us", "cpu_busiest_us", "cpu_iowait_us", "cpu_steal_us"), INT64)
    | dict.fromkeys(("memory_available_bytes", "memory_dirty_bytes"), INT64)
    | {"disk": TEXT, "disk_busy_us": INT64, "disk_read_bytes": INT64, "disk_write_bytes": INT64}
    | {"interface": TEXT, "interface_in_bytes": INT64, "interface_out_bytes": INT64}
    | {"interface_in_drops": INT64, "interface_out_drops": INT64}
    | _REPORT
)
"""One row for each host and second with an active transfer."""

CONNECTIONS = _schema(
    _RECEIVED
    | {"time": INSTANT, "interval_us": INT64}
    | _CONNECTION
    | {"direction": TEXT, "pid": INT64, "process": TEXT}
    | dict.fromkeys((f"process_{name}" for name in ("cpu_us", "wait_us", "throttled_us", "blocked_us", "read_bytes", "write_bytes")), INT64)
    | dict.fromkeys(("rtt_us", "rtt_variation_us", "min_rtt_us", "cwnd_segments", "mss_bytes"), INT64)
    | dict.fromkeys(("sent_bytes", "acked_bytes", "received_bytes", "retransmitted_bytes"), INT64)
    | dict.fromkeys(("sent_segments", "retransmitted_segments", "delivery_rate_bps"), INT64)
    | dict.fromkeys(("busy_us", "receive_window_limited_us", "send_buffer_limited_us"), INT64)
    | {"application_limited": INT32}
    | dict.fromkeys(("send_queue_bytes", "receive_queue_bytes", "send_buffer_bytes", "receive_buffer_bytes"), INT64)
    | {"congestion_control": TEXT}
    | _REPORT
)
"""One row for each TCP connection and second, as one of its hosts sees it."""

HOSTS = _schema(
    _RECEIVED
    | {"time": INSTANT, "addresses": TEXT, "kernel": TEXT, "cpus": INT32, "memory_bytes": INT64}
    | {"interface": TEXT, "interface_rate_bps": INT64, "mtu_bytes": INT64}
    | dict.fromkeys(("tcp_receive_buffer_max_bytes", "tcp_send_buffer_max_bytes"), INT64)
    | dict.fromkeys(("socket_receive_buffer_max_bytes", "socket_send_buffer_max_bytes"), INT64)
    | {"congestion_control": TEXT, "data_directory": TEXT, "file_system": TEXT}
    | {"disk": TEXT, "disk_read_bps": INT64, "disk_write_bps": INT64}
    | _REPORT
)
"""Static parameters of a host, at each start of its agent and once a day."""

VERDICTS = _schema(
    {"received": INSTANT, "made": INSTANT, "transfer": TEXT, "paired_transfer": TEXT, "application": TEXT, "user": TEXT}
    | {"sender": TEXT, "receiver": TEXT, "src": TEXT, "dst": TEXT, "src_group": TEXT, "dst_group": TEXT}
    | {"start": INSTANT, "end": INSTANT, "bytes": INT64, "streams": INT64, "rate_bps": INT64, "aspiration_bps": INT64}
    | {"slow": INT32, "cause": TEXT, "confidence": pa.float64(), "second_cause": TEXT, "second_confidence": pa.float64()}
    | {"advised_streams": INT64, "advised_buffer_bytes": INT64, "combination": TEXT}
)
"""One row for each transfer. `received` is that of its log entry, `made` the time of the analysis. `slow` is 1 for a transfer
below `verdict.AT_RATE` of `aspiration_bps`, the rate that its peers reach (0: unknown)."""
