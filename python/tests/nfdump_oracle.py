"""What nfdump finds among the same records: they are sent to nfcapd as NetFlow v9 over loopback, and filtered there.

A record is known again by the millisecond at which its flow started, so these must differ.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PROGRAMS = ("nfcapd", "nfdump")

# Field types and lengths of RFC 3954 section 8, with the column that each tells; addresses come first.
_FIELDS = (
    (7, 2, "src_port"),
    (11, 2, "dst_port"),
    (4, 1, "protocol"),
    (32, 2, "icmp_type_code"),
    (6, 1, "tcp_flags"),
    (5, 1, "tos"),
    (1, 8, "bytes"),
    (2, 8, "packets"),
    (10, 4, "ingress_interface"),
    (14, 4, "egress_interface"),
    (16, 4, "src_as"),
    (17, 4, "dst_as"),
    (58, 2, "vlan_id"),
    (61, 1, "flow_direction"),
    (59, 2, "post_vlan_id"),
    (56, 6, "src_mac"),
    (80, 6, "dst_mac"),
    (81, 6, "post_src_mac"),
    (57, 6, "post_dst_mac"),
    (89, 1, "forwarding_status"),
    (55, 1, "post_tos"),
    *((70 + number, 3, "mpls_labels") for number in range(10)),
    (234, 4, "ingress_vrf_id"),
    (235, 4, "egress_vrf_id"),
    (128, 4, "next_as"),
    (129, 4, "previous_as"),
)
# By IP version: template, and the field types of source, destination, the two next hops, and the two prefix lengths.
_VERSIONS = {4: (256, 4, (8, 12, 15, 18), (9, 13)), 6: (257, 16, (27, 28, 62, 63), (29, 30))}
_UPTIME_MS = 3_600_000
_PACK = {1: "B", 2: "H", 4: "I", 8: "Q"}


def is_there() -> bool:
    """Whether nfdump's programs are installed."""
    return all(shutil.which(program) for program in PROGRAMS)


class Nfdump:
    """Records in nfdump's own file."""

    def __init__(self, records: Iterable[Mapping[str, Any]], folder: Path) -> None:
        """Takes `records` (the columns of ours) in; `folder` is empty, and nfcapd writes there."""
        records = list(records)
        port = _free_port()
        command = ["nfcapd", "-l", folder, "-p", port, "-b", "127.0.0.1", "-t", 300, "-S", 0]
        with (folder.parent / f"{folder.name}.log").open("w") as log:
            collector = subprocess.Popen([*map(str, command)], stdout=log, stderr=log)
        try:
            _wait_for_listener(port)
            _send(records, port)
            time.sleep(0.3)
        finally:
            collector.send_signal(signal.SIGTERM)
            collector.wait(timeout=30)
        self._folder = folder
        assert len(self.matching("any")) == len(records)

    def matching(self, expression: str) -> set[int]:
        """Starts, in milliseconds since 1970, of the flows that match nfdump's filter."""
        output = subprocess.run(
            ["nfdump", "-q", "-R", self._folder, "-o", "fmt:%tsr", expression],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "TZ": "UTC"},
        )
        if output.returncode:
            raise ValueError(output.stdout + output.stderr)
        lines = (line.strip() for line in output.stdout.splitlines())
        return {round(float(line) * 1000) for line in lines if line[:1].isdigit()}


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for_listener(port: int) -> None:
    wanted = f":{port:04X} "
    for _ in range(200):
        if wanted in Path("/proc/net/udp").read_text():
            return
        time.sleep(0.02)
    raise TimeoutError("nfcapd does not listen")


def _send(records: list[Mapping[str, Any]], port: int) -> None:
    now_s = max(record["flow_end_us"] for record in records) // 1_000_000 + 1
    base_ms = now_s * 1000 - _UPTIME_MS
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        for sequence, record in enumerate([None, *records]):
            sets = _templates() if record is None else _data(record, base_ms)
            header = struct.pack("!HHIIII", 9, 2 if record is None else 1, _UPTIME_MS, now_s, sequence, 7)
            out.sendto(header + sets, ("127.0.0.1", port))


def _templates() -> bytes:
    sets = b""
    for template, length, addresses, masks in _VERSIONS.values():
        fields = [(22, 4), (21, 4), *((kind, length) for kind in addresses), *((kind, 1) for kind in masks)]
        fields += [(kind, size) for kind, size, _ in _FIELDS]
        body = b"".join(struct.pack("!HH", *field) for field in fields)
        sets += struct.pack("!HHHH", 0, len(body) + 8, template, len(fields)) + body
    return sets


def _data(record: Mapping[str, Any], base_ms: int) -> bytes:
    version = ipaddress.ip_address(record["src"]).version
    template, length, _, _ = _VERSIONS[version]
    body = b"".join(struct.pack("!I", record[time_of_flow] // 1000 - base_ms) for time_of_flow in ("flow_start_us", "flow_end_us"))
    for column in ("src", "dst", "next_hop", "bgp_next_hop"):
        text = record[column]
        body += ipaddress.ip_address(text).packed if text else bytes(length)
    body += bytes((record["src_prefix_length"], record["dst_prefix_length"]))
    body += b"".join(_field(kind, size, record[column]) for kind, size, column in _FIELDS)
    body += bytes(-len(body) % 4)
    return struct.pack("!HH", template, len(body) + 4) + body


def _field(kind: int, size: int, value: int | str) -> bytes:
    if isinstance(value, int):
        return struct.pack("!" + _PACK[size], value)
    if size == 6:
        return bytes.fromhex(value.replace(":", "")) or bytes(size)
    labels = value.split()[kind - 70 : kind - 69]
    label, experimental, bottom = map(int, labels[0].split("-")) if labels else (0, 0, 0)
    return (label << 4 | experimental << 1 | bottom).to_bytes(size, "big")
