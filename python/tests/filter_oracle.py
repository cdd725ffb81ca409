"""A filter taken at its word, row by row: slow, and plain enough to be believed."""

from __future__ import annotations

import ipaddress
import math
import operator
from collections.abc import Mapping
from typing import Any

from thalweg.filter.terms import AddressIn, Always, Both, Either, Family, Flags, Not, Number, NumberIn, Term

Row = Mapping[str, Any]

_COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def holds(term: Term, row: Row) -> bool:
    """Whether `row` (the columns of records, times as `flow_start_us` and `flow_end_us`) is what `term` says."""
    match term:
        case Always():
            return True
        case Not(inner):
            return not holds(inner, row)
        case Both(left, right):
            return holds(left, row) and holds(right, row)
        case Either(left, right):
            return holds(left, row) or holds(right, row)
        case Number(quantity, comparison, value):
            if quantity.startswith("icmp") and row["protocol"] not in (1, 58):
                return False
            return bool(_COMPARE[comparison](measure(row, quantity), value))
        case NumberIn(quantity, values):
            return measure(row, quantity) in values
        case AddressIn(column, networks):
            text = row[column]
            return bool(text) and any(ipaddress.ip_address(text) in network for network in networks)
        case Family(version):
            return ipaddress.ip_address(row["src"]).version == version
        case Flags(mask, is_any):
            flags = row["tcp_flags"] & mask
            return row["protocol"] == 6 and (flags != 0 if is_any else flags == mask)


def measure(row: Row, quantity: str) -> int:
    """The number that is compared."""
    scale = max(1, row["sampling_interval"])
    size, packets = row["bytes"] * scale, row["packets"] * scale
    length_us = max(0, row["flow_end_us"] - row["flow_start_us"])
    match quantity:
        case "flows":
            return 1
        case "bytes":
            return size
        case "packets":
            return packets
        case "duration":
            return length_us // 1000
        case "bps":
            return math.floor(size * 8 * 1e6 / length_us) if length_us else 0
        case "pps":
            return math.floor(packets * 1e6 / length_us) if length_us else 0
        case "bpp":
            return size // packets if packets else 0
        case "icmp-type":
            return int(row["icmp_type_code"]) >> 8
        case "icmp-code":
            return int(row["icmp_type_code"]) & 255
    return int(row[quantity])
