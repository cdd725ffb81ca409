"""Prefix matching on addresses stored as text, for any engine: only string comparisons, no address types.

Addresses are dotted decimal or RFC 5952, so each address has one text, and equal addresses have equal texts. An IPv4 prefix
is a prefix of the text, plus a range for an octet that the prefix divides. IPv6 text omits zeros: the number of colons tells
how many, they are restored, and then an IPv6 prefix is a prefix of the text too.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network

import ibis
import ibis.expr.types as ir

from .terms import Network

_HEX = "0123456789abcdef"


def is_within(address: ir.StringValue, networks: Iterable[Network]) -> ir.BooleanValue:
    """Whether `address` is in any of `networks`; an empty address is in no network, not even in 0.0.0.0/0."""
    networks = list(networks)
    hosts = [str(network.network_address) for network in networks if network.prefixlen == network.max_prefixlen]
    conditions = [
        _in_v4(address, network) if isinstance(network, IPv4Network) else _in_v6(address, network)
        for network in networks
        if network.prefixlen < network.max_prefixlen
    ]
    if hosts:
        conditions.append(address == hosts[0] if len(hosts) == 1 else address.isin(sorted(set(hosts))))
    return functools.reduce(operator.or_, conditions)


def is_v6(address: ir.StringValue) -> ir.BooleanValue:
    """Whether it is an IPv6 address."""
    return address.contains(":")


def is_v4(address: ir.StringValue) -> ir.BooleanValue:
    """Whether it is an IPv4 address."""
    return address.contains(".") & ~address.contains(":")


def _in_v4(address: ir.StringValue, network: IPv4Network) -> ir.BooleanValue:
    if network.prefixlen == 0:
        return is_v4(address)
    whole, bits = divmod(network.prefixlen, 8)
    octets = list(network.network_address.packed)
    begins = "".join(f"{octet}." for octet in octets[:whole])
    if bits == 0:
        return address.startswith(begins)
    choices = "|".join(str(octet) for octet in range(octets[whole], octets[whole] + (1 << (8 - bits))))
    end = r"\." if whole < 3 else "$"
    pattern = "^" + begins.replace(".", r"\.") + f"({choices}){end}"
    condition = address.re_search(pattern)
    # Engines match string prefixes faster than patterns.
    return address.startswith(begins) & condition if begins else condition


def _in_v6(address: ir.StringValue, network: IPv6Network) -> ir.BooleanValue:
    if network.prefixlen == 0:
        return is_v6(address)
    whole, bits = divmod(network.prefixlen, 16)
    groups = network.network_address.exploded.split(":")
    begins = "".join(f"{group.lstrip('0') or '0'}:" for group in groups[:whole])
    full = _without_gap(address) + ":"
    condition = is_v6(address) & full.startswith(begins) if begins else is_v6(address)
    if bits == 0:
        return condition
    return condition & full.re_search(f"^{begins}({_groups(groups[whole], bits)}):")


def _without_gap(address: ir.StringValue) -> ir.StringValue:
    """Expands an IPv6 address to eight groups: `2001:db8::1` to `2001:db8:0:0:0:0:0:1`."""
    colons = address.length() - address.replace(":", "").length()
    # With its gap, an address of n colons has n groups, or n - 1 and an end that is in the gap.
    filling = colons.cases(*((n, ":" + "0:" * (8 - n)) for n in range(2, 8)), else_="")
    begin = ibis.ifelse(address.startswith("::"), "0", "")
    end = ibis.ifelse(address.endswith("::"), "0", "")
    return begin + address.replace("::", filling) + end


def _groups(group: str, bits: int) -> str:
    """Returns a pattern for 16-bit groups that start with the first `bits` of `group`, without leading zeros."""
    digits = []
    for index, digit in enumerate(group):
        fixed = min(max(bits - 4 * index, 0), 4)
        first = int(digit, 16) >> (4 - fixed) << (4 - fixed)
        digits.append(_HEX[first : first + (1 << (4 - fixed))])
    patterns = []
    for index, choices in enumerate(digits):
        first_digits = choices.replace("0", "")
        if first_digits:
            rest = "".join(f"[{choice}]" for choice in digits[index + 1 :])
            patterns.append(f"[{first_digits}]{rest}")
        if "0" not in choices:
            return "|".join(patterns)
    return "|".join([*patterns, "0"])
