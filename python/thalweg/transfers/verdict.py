"""Verdicts: the cause of a transfer's rate, from its own evidence first and then from its peers.

Time of the sender's connections is divided by TCP's own accounting:

| part | means | cause |
|---|---|---|
| starved | the application had not written enough, and the send queue was not full | sender's disk or processor |
| buffer full | no more fitted into the send buffer | sender's window |
| window closed, receive queue full | the receiving application reads too slowly | receiver's disk or processor |
| window closed, receive queue empty | the window is smaller than the path | receiver's window |
| the rest | the congestion window limited | streams, loss, congestion, or nothing |

So a processor or a disk that is busy is blamed only if an application kept TCP waiting. Whether disk or processor slowed that
application follows from where its process spent the time: on a processor, waiting for one, throttled, or blocked on a disk.

The rest is compared with the path: a transfer that reaches `AT_RATE` of what free peers (`peers`) or the slower interface allow has no
cause, unless the path loses so much that all peers are slow. Transfers that share their connections share that rate. Retransmissions
with longer round trips mean congestion, without them random loss. A transfer with fewer streams than faster peers, and no more loss
than they have, lacks streams.

All thresholds are named below. Values are columns of numpy, so that a million verdicts take seconds; one verdict is a column of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Columns = Mapping[str, npt.NDArray[Any]]

CAUSES = (
    *("streams", "sender_window", "receiver_window", "sender_disk", "receiver_disk", "sender_cpu", "receiver_cpu"),
    *("path_loss", "path_congestion", "none", "not_enough_data"),
)
"""Causes by number."""

NONE, NOT_ENOUGH_DATA = CAUSES.index("none"), CAUSES.index("not_enough_data")

AT_RATE = 0.85
"""Share of what the path gives from which nothing is to gain. Headers take 3 to 6 % of an interface's rate, and Table 5.1's best setting
varies by 6 %."""

BLAME = 0.3
"""Smallest part of the time that a cause must explain. Removing a limit of less than that would not make a difference that anybody
notices, and one of several samples would decide."""

OF_GAP = 0.5
"""Part of what is missing to the rate of the path that a cause must explain, if that is less time than `BLAME`. Only where the network gave
the whole rate of the path in the rest of the time: then nothing else can be missing."""

QUEUE_EMPTY, QUEUE_STANDING = 0.2, 0.5
"""Part of the time with a closed window in which the receive queue is full (a quarter of the buffer, half of the window), up to which it
counts as empty, and from which as standing. A reader that keeps up is caught with a full queue only between two of its reads."""

QUEUE_OF_BUSY = 0.05
"""As `QUEUE_EMPTY`, if the reading process waits for a disk or a processor for `PROCESS_BUSY` of the time: a reader that takes the whole
queue at once, and then is blocked for about a round trip, is seldom caught with a full one."""

PROCESS_BUSY = 0.5
"""Part of the time that a process must be seen on, waiting for or denied a processor, or blocked on a disk, to blame it. A starved
connection whose process does neither waits for something that nobody measured, such as another process or a remote file system."""

DISK_BUSY = 0.8
"""Part of the time with requests from which a disk is blamed where its reader is another process than that of the connection: the host's
load cannot tell who kept the disk busy, so the confidence is that of a log alone. See `evidence.PIPED`."""

COMPUTES = 0.85
"""Part of the time on a processor from which a process has none left to wait for a disk that another process reads."""

INFLATED, INFLATED_US = 0.25, 1000
"""A mean round trip that is longer than the shortest one by this part, and by at least this time, has waited in queues of the path.
Interrupts and delayed acknowledgements take less than a millisecond."""

LOSS_PPM = 100
"""Loss that a clean path does not have: one segment in 10,000. It counts where no peers show the usual loss.

All losses are those of loss events, as in the formulas of congestion control: segments that are lost together, such as at the end of slow
start, are one. Samples say in which part of the seconds there was any."""

MOSTLY_LOSSY = 0.9
"""Part of the samples with losses from which they say nothing about the number of events: then each lost segment counts."""

UNUSUAL_LOSS = 1.5
"""A loss at least this many times that of the path's free transfers, beyond two standard deviations of its count, is not the usual one. It
is the cause only if this number of connections reaches the rate of the path with the usual loss; otherwise there are too few of them."""

MUCH_LOSS_PPM = 1000
"""Loss that is a fault of the path whatever peers have: one segment in 1,000."""

LIMITING = 3.0
"""Loss limits if the rate that congestion control can reach with it (Mathis et al. 1997; RFC 9438, section 5.1) is at most this many times
the measured one. Both formulas are means over random losses."""

BEYOND = 10.0
"""Loss does not limit a transfer that is this many times faster than the formulas allow: one burst of losses in slow start, or a
congestion control that does not back off."""

DISCARDS = 0.1
"""Part of the lost segments that interfaces of the path must have discarded to show congestion. They discard other traffic too."""

OBSERVED = 0.8
"""Part of the duration from which samples cover a transfer. Each tenth may be missing."""

FAR_BELOW, AT_MOST_LIKELY = 0.5, 0.8
"""`none` has at most the second number as confidence if the rate is below this part of the interfaces' rate: peers may share a fault."""

FASTER = 1.15
"""Peers with more streams are faster if their median exceeds the rate by this factor; see AT_RATE."""

FREE = 0.5
"""Part of the time that hosts may limit a transfer at most for the rest to show the rate of the path: in the rest it may catch up from
queues."""

MIN_SAMPLES, MIN_DURATION_US = 3, 3_000_000
"""A verdict on connections needs three samples, hence three seconds."""

MIN_OBSERVED_US = 2_900_000
"""Time that three samples cover at least: each may be some milliseconds early."""

NEVER_IDLE, DENIED = 0.85, 0.5
"""Part of the time that a process must be on a processor, waiting for or denied one, or blocked on a disk, to be the limit whatever TCP
says, and part of the time that it must wait for or be denied one, or blocked, to be it. A process that never sleeps never waits for the
other end, and one that keeps up is seldom denied what it needs. SSH and GridFTP have windows of their own, by which the other end sees a
starved connection, or bursts that look like congestion, and not a closed window."""

SLOW_START = 0.3
"""Part of the duration from which slow start is what the rate shows."""

INITIAL_WINDOW_SEGMENTS = 10
"""RFC 6928."""

LOG_ONLY, ONE_SIDE = 0.6, 0.8
"""Factors of the confidence without samples of connections, and with those of the sender alone."""

HOST_FULL = 0.95
"""Part of the time that a disk or a processor must be busy to explain, without samples of connections, why peers with another host are
faster: the paper's receiver with slow disks showed "almost 100 %"."""

SENDER_DIFFERS, RECEIVER_DIFFERS = -2, -3
"""Values of `cluster_cause` where the faster cluster has another host at one end: only the host's metrics can tell the cause."""

_MSS = 1448.0


@dataclass(frozen=True)
class Judgement:
    """Verdicts of many transfers.

    Attributes:
        cause: Number in `CAUSES`.
        confidence: 0 to 1: the part of the time with a known limit that the cause explains, reduced for missing data. On the generated
            set, at least 95 % of the verdicts with 0.8 or more are correct.
        shares: Part of the time that each cause explains: one row a transfer, one column for each of `CAUSES`.
        weights: Confidence in each of `CAUSES` before `none`, were it the only one: its part of the time with a known limit, reduced for
            missing data.
        second: Number of the best alternative; -1: none.
        second_confidence: Its confidence.
        aspiration_bps: The rate that peers, or the interfaces, show to be possible; 0: unknown.
        slow: Whether the rate is below `AT_RATE` of that.
        parts: The shares that decided, by name, for explanations.
    """

    cause: npt.NDArray[np.int64]
    confidence: Numbers
    shares: Numbers
    weights: Numbers
    second: npt.NDArray[np.int64]
    second_confidence: Numbers
    aspiration_bps: Numbers
    slow: npt.NDArray[np.bool_]
    parts: dict[str, Numbers]


def judge(columns: Columns) -> Judgement:
    """Judges transfers with the columns of `evidence.COLUMNS`."""
    rows = {name: np.asarray(values, dtype=np.float64) for name, values in columns.items() if np.asarray(values).dtype.kind in "biuf"}
    parts = measured(rows)
    count = len(parts["rate"])
    shares = np.zeros((count, len(CAUSES)))
    _hosts(shares, parts)
    _network(shares, parts)
    _never_idle(shares, parts)
    _from_logs(shares, columns, parts)
    blamed = _blamed(shares, parts)
    return _decided(blamed, shares, parts)


def measured(rows: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Returns the shares of time and the properties of the path that verdicts use."""
    seen = rows["send_connection_us"]
    parts = {
        "rate": rows["rate_bps"],
        # Transfers at the same time over the same connections: their samples are those of all.
        "carried": np.maximum(rows["rate_bps"], _ratio(rows["send_acked_bytes"] * 8e6, rows["duration_us"])),
        "duration": rows["duration_us"],
        "piped": rows["piped"],
        "streams": np.maximum(rows["streams"], 1),
        "sender_known": ((rows["send_samples"] >= MIN_SAMPLES) & (rows["send_observed_us"] >= MIN_OBSERVED_US)).astype(float),
        "receiver_known": ((rows["receive_samples"] >= MIN_SAMPLES) & (rows["receive_observed_us"] >= MIN_OBSERVED_US)).astype(float),
        "window_closed": _ratio(rows["send_receive_window_limited_us"], seen),
        "buffer_full": _ratio(np.maximum(rows["send_send_buffer_limited_us"], rows["send_buffer_full_us"]), seen),
        # Kernels before 4.10 do not say how long a connection was busy.
        "starved": np.maximum(
            _ratio(rows["send_starved_us"], seen), np.where(rows["send_busy_us"] > 0, 1 - _ratio(rows["send_busy_us"], seen), 0)
        ),
        "queue_full": _ratio(rows["receive_receive_queue_full_us"], rows["receive_receive_buffer_us"]),
        "queue_known": (rows["receive_receive_buffer_us"] > 0).astype(float),
    }
    # A sample or two say nothing about the whole. Time that two accounts claim counts once: TCP's own before the sampled flag.
    for name in ("window_closed", "buffer_full", "starved"):
        parts[name] = np.where(parts["sender_known"] > 0, parts[name], 0.0)
    parts["window_closed"] = np.minimum(parts["window_closed"], 1.0)
    parts["buffer_full"] = np.minimum(parts["buffer_full"], 1 - parts["window_closed"])
    parts["starved"] = np.clip(parts["starved"], 0, 1 - parts["window_closed"] - parts["buffer_full"])
    parts["network"] = np.where(parts["sender_known"] > 0, 1 - parts["window_closed"] - parts["buffer_full"] - parts["starved"], 0.0)
    for side, name in (("send", "sender"), ("receive", "receiver")):
        observed, host = rows[f"{side}_connection_us"], rows[f"{side}_host_us"]
        parts[f"{name}_coverage"] = np.minimum(_ratio(rows[f"{side}_observed_us"], OBSERVED * rows["duration_us"]), 1.0)
        for state in ("cpu", "wait", "throttled", "blocked"):
            parts[f"{side}_{state}"] = _ratio(rows[f"{side}_process_{state}_us"], observed)
        parts[f"{side}_disk_busy"] = _ratio(rows[f"{side}_disk_busy_us"], host)
        parts[f"{side}_busiest"] = _ratio(rows[f"{side}_cpu_busiest_us"], host)
    return parts | _path(rows)


def _path(rows: Mapping[str, Numbers]) -> dict[str, Numbers]:
    rtt = _ratio(rows["send_rtt_sum_us"], rows["send_rtt_samples"])
    shortest = np.where(rows["pair_min_rtt_us"] > 0, rows["pair_min_rtt_us"], rows["send_min_rtt_us"])
    lost = _events(rows)
    loss = _ratio(lost, rows["send_sent_segments"])
    mss = np.where(rows["send_mss_bytes"] > 0, rows["send_mss_bytes"], _MSS)
    interfaces = np.where(rows["send_interface_bps"] > 0, rows["send_interface_bps"], np.inf)
    interfaces = np.minimum(interfaces, np.where(rows["receive_interface_bps"] > 0, rows["receive_interface_bps"], np.inf))
    interfaces = np.where(np.isfinite(interfaces), interfaces, 0.0)
    reference = rows["path_rate_bps"]
    streams = np.maximum(rows["streams"], 1)
    return {
        "rtt": rtt,
        "shortest": shortest,
        "inflation": np.where((shortest > 0) & (rtt > 0), rtt / np.maximum(shortest, 1) - 1, 0.0),
        "lost": lost,
        "loss": loss,
        "least_loss": _ratio(np.maximum(lost - 2 * np.sqrt(lost), 0), rows["send_sent_segments"]),
        "path_loss": rows["path_loss_ppb"] / 1e9,
        "mss": mss,
        "loss_rate": streams * reachable_bps(loss, rtt, mss),
        "usual_rate": streams * reachable_bps(rows["path_loss_ppb"] / 1e9, rtt, mss),
        "interfaces": interfaces,
        "reference": reference,
        "cluster_best": rows["cluster_best_bps"],
        "free": rows["path_free"],
        "more_streams": rows["more_streams"],
        "more_streams_bps": rows["more_streams_bps"],
        "discards": rows.get("path_discards", np.zeros_like(rtt)),
        "slow_start_us": _slow_start_us(shortest, mss, np.maximum(reference, rows["rate_bps"]) / streams),
    }


def _events(rows: Mapping[str, Numbers]) -> Numbers:
    """Returns the number of loss events: that of independent events which leave as many samples without any. At most the lost segments."""
    lost = rows["send_retransmitted_segments"]
    share = _ratio(rows["send_lossy_samples"], rows["send_samples"])
    return np.where(share < MOSTLY_LOSSY, np.minimum(rows["send_samples"] * events(share), lost), lost)


def events(share: Any) -> Any:
    """Returns the mean number of independent events in a sample, from the part of samples with any, below `MOSTLY_LOSSY`: -ln(1 - share),
    by a fraction that every engine computes equally."""
    return share * (6 - share) / (6 - 4 * share)


def reachable_bps(loss: Numbers, rtt_us: Numbers, mss_bytes: Numbers) -> Numbers:
    """Returns the mean rate of one connection with random losses: the larger one of Reno's (Mathis et al. 1997: MSS / RTT * sqrt(3/2) /
    sqrt(p)) and CUBIC's (RFC 9438, equation 6: 1.054 * RTT^(3/4) / p^(3/4) segments per RTT); infinite without loss."""
    rtt_s = np.maximum(rtt_us, 1) / 1e6
    p = np.maximum(loss, 1e-12)
    segments = np.maximum(1.2247 / np.sqrt(p), 1.054 * (rtt_s / p) ** 0.75)
    return np.where(loss > 0, segments * mss_bytes * 8 / rtt_s, np.inf)


def _slow_start_us(rtt_us: Numbers, mss: Numbers, rate_bps: Numbers) -> Numbers:
    """Returns the time in which a window that doubles each round trip reaches the bandwidth-delay product."""
    segments = np.maximum(rate_bps * rtt_us / 8e6 / mss, 1)
    return rtt_us * np.maximum(np.log2(segments / INITIAL_WINDOW_SEGMENTS), 0)


def _hosts(shares: Numbers, parts: Mapping[str, Numbers]) -> None:
    """Adds the shares of the causes in the hosts."""
    _put(shares, "sender_window", parts["buffer_full"])
    # Without the sender's accounting, the queue alone shows a slow reader.
    closed = np.where(parts["sender_known"] > 0, parts["window_closed"], parts["queue_full"])
    full = np.minimum(_ratio(parts["queue_full"], closed), 1.0)
    is_slow = np.clip((full - QUEUE_EMPTY) / (QUEUE_STANDING - QUEUE_EMPTY), 0, 1)
    is_slow = np.where((sum(pressures(parts, "receive")) >= PROCESS_BUSY) & (full >= QUEUE_OF_BUSY), 1.0, is_slow)
    slow_reader = closed * is_slow * parts["queue_known"]
    _put(shares, "receiver_window", closed * (1 - is_slow) * parts["queue_known"] * parts["sender_known"])
    for side, name, part in (("send", "sender", parts["starved"]), ("receive", "receiver", slow_reader)):
        on_cpu, on_disk = pressures(parts, side)
        is_seen = on_cpu + on_disk >= PROCESS_BUSY
        # Time in which the process did neither stays unexplained.
        total = np.maximum(on_cpu + on_disk, 1.0)
        _put(shares, f"{name}_cpu", np.where(is_seen, part * on_cpu / total, 0.0))
        _put(shares, f"{name}_disk", np.where(is_seen, part * on_disk / total, 0.0))
    explained = shares[:, :NONE].sum(axis=1) - parts["buffer_full"]
    shares[:, NOT_ENOUGH_DATA] = np.maximum(closed + parts["starved"] - explained, 0)


def pressures(parts: Mapping[str, Numbers], side: str) -> tuple[Numbers, Numbers]:
    """Returns the parts of the time that the process of one side needed a processor, and was blocked on a disk."""
    on_cpu = np.minimum(parts[f"{side}_cpu"] + parts[f"{side}_wait"] + parts[f"{side}_throttled"], 1.0)
    blocked = np.minimum(parts[f"{side}_blocked"], 1.0)
    on_disk = np.where(_by_host(parts, side), np.maximum(blocked, parts[f"{side}_disk_busy"]), blocked)
    return on_cpu, on_disk


def _never_idle(shares: Numbers, parts: Mapping[str, Numbers]) -> None:
    """Gives the time in which a process of a host never slept to that host, and takes it from all other causes alike."""
    for side, name in (("send", "sender"), ("receive", "receiver")):
        on_cpu, on_disk = pressures(parts, side)
        both = np.maximum(on_cpu + on_disk, 1e-9)
        own = np.minimum(both, 1.0)
        known = shares[:, CAUSES.index(f"{name}_cpu")] + shares[:, CAUSES.index(f"{name}_disk")]
        denied = parts[f"{side}_wait"] + parts[f"{side}_throttled"] + on_disk
        is_limit = (parts[f"{name}_known"] > 0) & ((own >= NEVER_IDLE) | (denied >= DENIED)) & (own > known)
        left = np.where(is_limit, (1 - own) / np.maximum(1 - known, 1e-9), 1.0)
        shares *= left[:, np.newaxis]
        _put(shares, f"{name}_cpu", np.where(is_limit, own * on_cpu / both, shares[:, CAUSES.index(f"{name}_cpu")]))
        _put(shares, f"{name}_disk", np.where(is_limit, own * on_disk / both, shares[:, CAUSES.index(f"{name}_disk")]))


def _by_host(parts: Mapping[str, Numbers], side: str) -> npt.NDArray[np.bool_]:
    """Returns whether the host's load stands for the process that reads or writes the disk, such as rsync for ssh."""
    on_cpu = parts[f"{side}_cpu"] + parts[f"{side}_wait"] + parts[f"{side}_throttled"]
    return (parts["piped"] > 0) & (parts[f"{side}_disk_busy"] >= DISK_BUSY) & (on_cpu < COMPUTES)


def _network(shares: Numbers, parts: Mapping[str, Numbers]) -> None:
    """Divides the time that the congestion window limited."""
    network = parts["network"]
    loss = parts["loss"]
    is_inflated = (parts["inflation"] >= INFLATED) & (parts["rtt"] - parts["shortest"] >= INFLATED_US)
    carried = np.maximum(parts["carried"], 1)
    # The rate while no host limited.
    rate = carried / np.maximum(network, 1 - FREE)
    is_limiting = (parts["loss_rate"] <= LIMITING * carried) & (parts["loss_rate"] * BEYOND >= carried)
    is_discarded = (parts["discards"] > 0) & (parts["discards"] >= DISCARDS * parts["lost"]) & (loss > 0) & is_limiting
    is_congested = ((loss > 0) & is_inflated) | is_discarded
    is_unusual = (parts["free"] > 0) & (parts["least_loss"] > 0) & (parts["least_loss"] >= UNUSUAL_LOSS * parts["path_loss"])
    is_unusual &= parts["usual_rate"] >= AT_RATE * parts["reference"]
    is_much = loss >= np.where(parts["free"] > 0, MUCH_LOSS_PPM, LOSS_PPM) / 1e6
    is_loss = ~is_congested & is_limiting & (is_unusual | is_much) & (loss > 0)
    more = (parts["more_streams_bps"] >= FASTER * rate) & (parts["more_streams"] > parts["streams"])
    is_known = (parts["reference"] > 0) | (parts["interfaces"] > 0)
    below = rate < AT_RATE * np.where(parts["reference"] > 0, parts["reference"], np.inf)
    # A single transfer that fills the queue of its own path looks congested. Only peers, discards or, without peers, much loss tell.
    without_peers = (parts["reference"] <= 0) & is_limiting & (loss >= MUCH_LOSS_PPM / 1e6)
    is_congestion = is_congested & (((parts["reference"] > 0) & below) | is_discarded | without_peers)
    is_streams = ~is_congestion & ~is_loss & more
    rest = ~(is_congestion | is_loss | is_streams)
    _put(shares, "path_congestion", np.where(is_congestion, network, 0.0))
    _put(shares, "path_loss", np.where(is_loss, network, 0.0))
    _put(shares, "streams", np.where(is_streams, network, 0.0))
    fills = rest & (is_congested | (is_known & ~below & (parts["reference"] > 0)))
    shares[:, NONE] += np.where(fills, network, 0.0)
    shares[:, NOT_ENOUGH_DATA] += np.where(rest & ~fills, network, 0.0)


def _is_free(parts: Mapping[str, Numbers]) -> npt.NDArray[np.bool_]:
    """Returns whether the network gave a transfer the whole rate of its path while no host limited it."""
    rate = parts["carried"] / np.maximum(parts["network"], 1 - FREE)
    return (parts["sender_known"] > 0) & (parts["reference"] > 0) & (rate >= AT_RATE * parts["reference"])


def _from_logs(shares: Numbers, columns: Columns, parts: Mapping[str, Numbers]) -> None:
    """For transfers without samples: the parameter in which the most similar faster cluster differs (`evidence`)."""
    without = (parts["sender_known"] == 0) & (parts["receiver_known"] == 0)
    if "cluster_cause" not in columns or not without.any():
        return
    number = np.asarray(columns["cluster_cause"], dtype=np.int64).copy()
    for hint, side, name in ((SENDER_DIFFERS, "send", "sender"), (RECEIVER_DIFFERS, "receive", "receiver")):
        differs = number == hint
        number[differs] = -1
        number[differs & (parts[f"{side}_busiest"] >= HOST_FULL)] = CAUSES.index(f"{name}_cpu")
        number[differs & (parts[f"{side}_disk_busy"] >= HOST_FULL)] = CAUSES.index(f"{name}_disk")
    is_known = without & (number >= 0)
    shares[without] = 0.0
    shares[np.flatnonzero(is_known), number[is_known]] = 1.0
    shares[without & ~is_known, NOT_ENOUGH_DATA] = 1.0


def _blamed(shares: Numbers, parts: Mapping[str, Numbers]) -> npt.NDArray[np.int64]:
    """Returns the number of the cause of each transfer."""
    causes = shares[:, :NONE]
    best = causes.argmax(axis=1)
    largest = causes.max(axis=1)
    gap = np.where(_is_free(parts), 1 - _ratio(parts["carried"], parts["reference"]), 1.0)
    least = np.minimum(BLAME, OF_GAP * np.maximum(gap, 1 - AT_RATE))
    found = np.where(largest >= least, best, NOT_ENOUGH_DATA)
    nothing = (largest < least) & (shares[:, NONE] >= np.maximum(shares[:, NOT_ENOUGH_DATA], BLAME))
    found = np.where(nothing, NONE, found)
    with_samples = (parts["sender_known"] > 0) | (parts["receiver_known"] > 0)
    # Peers that are as slow do not excuse a path that loses much.
    is_fault = (found == CAUSES.index("path_loss")) & (parts["loss"] >= MUCH_LOSS_PPM / 1e6)
    at_rate = (parts["reference"] > 0) & (parts["carried"] >= AT_RATE * parts["reference"]) & ~is_fault
    at_rate |= (parts["interfaces"] > 0) & (parts["carried"] >= AT_RATE * parts["interfaces"])
    found = np.where(at_rate & with_samples, NONE, found)
    found = np.where(_is_short(parts) & (found != NONE), NOT_ENOUGH_DATA, found)
    return np.where(parts["rate"] <= 0, NOT_ENOUGH_DATA, found).astype(np.int64)


def _is_short(parts: Mapping[str, Numbers]) -> npt.NDArray[np.bool_]:
    """Returns whether a transfer is too short for its rate to mean much."""
    return (parts["duration"] < MIN_DURATION_US) | (parts["slow_start_us"] >= SLOW_START * parts["duration"])


def _decided(cause: npt.NDArray[np.int64], shares: Numbers, parts: dict[str, Numbers]) -> Judgement:
    rows = np.arange(len(cause))
    limited = np.maximum(shares[:, :NONE].sum(axis=1) + shares[:, NOT_ENOUGH_DATA], 1e-9)
    weights = np.minimum(shares[:, :NONE] / limited[:, np.newaxis], 1.0) * _completeness(parts)[:, np.newaxis]
    for side, name in (("send", "sender"), ("receive", "receiver")):
        of_disk = weights[:, CAUSES.index(f"{name}_disk")]
        np.copyto(of_disk, np.minimum(of_disk, LOG_ONLY), where=_by_host(parts, side))
    is_cause = cause < NONE
    # A cause of part of the time is likely, but its removal gains less.
    gain = 0.5 + 0.5 * np.minimum(shares[rows, cause] / PROCESS_BUSY, 1.0)
    confidence = np.where(is_cause, weights[rows, np.minimum(cause, NONE - 1)] * gain, _of_none(parts))
    confidence = np.where(cause == NOT_ENOUGH_DATA, 1 - shares[:, :NONE].max(axis=1), confidence)
    others = weights.copy()
    others[rows[is_cause], cause[is_cause]] = 0.0
    second = np.where(others.max(axis=1) >= 0.1, others.argmax(axis=1), -1)
    second_confidence = np.where(second >= 0, others.max(axis=1), 0.0)
    aspiration = np.where(parts["cluster_best"] > 0, parts["cluster_best"], parts["reference"])
    aspiration = np.where(parts["interfaces"] > 0, np.minimum(aspiration, parts["interfaces"]), aspiration)
    slow = (aspiration > 0) & (parts["carried"] < AT_RATE * aspiration) & ~_is_short(parts)
    return Judgement(
        cause,
        np.clip(confidence, 0, 1),
        shares,
        weights,
        second.astype(np.int64),
        np.clip(second_confidence, 0, 1),
        aspiration,
        slow,
        parts,
    )


def _completeness(parts: Mapping[str, Numbers]) -> Numbers:
    """Returns the factor of confidences for data that is missing."""
    of_sender, of_receiver = (np.where(parts[f"{name}_known"] > 0, parts[f"{name}_coverage"], 0.0) for name in ("sender", "receiver"))
    both = (of_sender > 0) & (of_receiver > 0)
    one = ONE_SIDE * np.maximum(of_sender, of_receiver)
    with_samples = np.where(both, np.maximum(np.minimum(of_sender, of_receiver), one), one)
    return np.where(np.maximum(of_sender, of_receiver) > 0, with_samples, LOG_ONLY)


def _of_none(parts: Mapping[str, Numbers]) -> Numbers:
    """Returns the confidence that nothing limited a transfer that could be improved."""
    at_rate = np.maximum(_ratio(parts["carried"], parts["reference"]), _ratio(parts["carried"], parts["interfaces"]))
    found = np.where(at_rate >= AT_RATE, np.minimum(0.7 + (at_rate - AT_RATE) * 2, 1.0), 0.5)
    found = np.where(parts["carried"] < FAR_BELOW * parts["interfaces"], np.minimum(found, AT_MOST_LIKELY), found)
    return found * _completeness(parts)


def _ratio(number: Numbers, of: Numbers) -> Numbers:
    return np.where(of > 0, number / np.maximum(of, 1), 0.0)


def _put(shares: Numbers, cause: str, values: Numbers) -> None:
    shares[:, CAUSES.index(cause)] = values
