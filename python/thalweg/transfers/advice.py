"""Advice: what to change, with numbers.

The bandwidth-delay product (BDP) is rate times shortest round-trip time: what must be in flight to fill the path. Linux uses about half of
a socket buffer for payload, and a window of 2 BDP lets congestion control halve it without idling, so that buffers should have 4 BDP in all
(the dissertation, section 5.4.1). Parallel connections share the rate, and each needs its part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .. import units
from .verdict import CAUSES, Judgement, Numbers

BUFFER_BDP = 4
"""Size of a socket buffer, in bandwidth-delay products of one connection."""

MAX_STREAMS = 16
"""More connections than this are not advised: they compete with each other, and take the share of others."""


@dataclass(frozen=True)
class Advised:
    """Numbers of an advice, 0 where it has none.

    Attributes:
        streams: Parallel connections.
        buffer_bytes: Size of the socket buffer of each connection.
    """

    streams: Numbers
    buffer_bytes: Numbers


def numbers(rows: Mapping[str, Numbers], found: Judgement) -> Advised:
    """Returns the numbers of the advice for each transfer."""
    parts = found.parts
    target = np.maximum(np.maximum(found.aspiration_bps, parts["reference"]), parts["rate"])
    # Without peers, the slower interface is all that limits the aim.
    target = np.where((found.aspiration_bps == 0) & (parts["reference"] == 0), np.maximum(parts["interfaces"], parts["rate"]), target)
    bdp_bytes = target / 8e6 * parts["shortest"]
    is_window = np.isin(found.cause, [CAUSES.index("sender_window"), CAUSES.index("receiver_window")])
    buffers = np.where(is_window, np.ceil(BUFFER_BDP * bdp_bytes / parts["streams"]), 0.0)
    is_streams = found.cause == CAUSES.index("streams")
    needed = np.ceil(parts["streams"] * target / np.maximum(parts["rate"], 1))
    streams = np.where(parts["more_streams"] > 0, parts["more_streams"], np.minimum(needed, MAX_STREAMS))
    return Advised(np.where(is_streams, streams, 0.0), buffers)


def text(cause: str, *, streams: int, buffer_bytes: int, sender: str, receiver: str, rtt_us: float, target_bps: float) -> str:
    """Returns the advice in words."""
    sender, receiver = sender or "the sender", receiver or "the receiver"
    rtt, in_flight = units.duration(rtt_us / 1e6), units.size(target_bps / 8e6 * rtt_us)
    bdp = f"{units.bit_rate(target_bps)} at a round-trip time of {rtt} need {in_flight} in flight"
    match cause:
        case "streams":
            return f"Use {streams} parallel connections."
        case "sender_window":
            return (
                f"Raise the send buffer on {sender} to {buffer_bytes:,} bytes for each connection: {bdp}. Set the maximum of "
                "net.ipv4.tcp_wmem, and remove the program's own buffer option or raise it and net.core.wmem_max."
            )
        case "receiver_window":
            return (
                f"Raise the receive buffer on {receiver} to {buffer_bytes:,} bytes for each connection: {bdp}. Set the maximum of "
                "net.ipv4.tcp_rmem, and remove the program's own buffer option or raise it and net.core.rmem_max."
            )
        case "sender_disk":
            return f"Read from a faster file system on {sender}, or less at once. More connections will not help."
        case "receiver_disk":
            return f"Write to a faster file system on {receiver}, or less at once. More connections will not help."
        case "sender_cpu":
            return f"Give the process on {sender} more processor time: fewer other jobs, a higher quota, or a cheaper cipher."
        case "receiver_cpu":
            return f"Give the process on {receiver} more processor time: fewer other jobs, a higher quota, or a cheaper cipher."
        case "path_loss":
            return (
                "Ask the network operators for the link that loses packets although its queue is short. Check optics and duplex settings."
            )
        case "path_congestion":
            return "Move the transfer to a quieter time, or ask the network operators about the congested link."
        case "none":
            return "Nothing to gain."
    return "Collect what is missing."
