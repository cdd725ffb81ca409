"""The explanation of one verdict: the cause, the evidence with its thresholds, the peers, and the advice."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .. import units
from . import advice
from . import verdict as rules
from .verdict import CAUSES, Judgement

WORDS = {
    "streams": "too few parallel connections",
    "sender_window": "the sender's buffer is smaller than the path needs",
    "receiver_window": "the receiver's window is smaller than the path needs",
    "sender_disk": "the sender's disk is too slow",
    "receiver_disk": "the receiver's disk is too slow",
    "sender_cpu": "the sending process lacks processor time",
    "receiver_cpu": "the receiving process lacks processor time",
    "path_loss": "the path loses packets without congestion",
    "path_congestion": "the path is congested",
    "none": "nothing limited it that could be improved",
    "not_enough_data": "not enough data",
}
"""Causes in words."""

EXPLAINS = 0.1
"""Part of the time from which a cause is worth mentioning."""

SHARED = 1.2
"""Connections that carried this many times a transfer's bytes carried other transfers too. Headers and repetitions take less."""

HARMLESS = "did not limit this transfer"


@dataclass(frozen=True)
class Fact:
    """A measured fact.

    Attributes:
        name: What was measured.
        value: The value, for people.
        means: What it means for the verdict; may be empty.
    """

    name: str
    value: str
    means: str = ""


@dataclass(frozen=True)
class Alternative:
    """Another possible cause.

    Attributes:
        cause: One of `CAUSES`.
        confidence: As that of the verdict.
        evidence: What speaks for it.
    """

    cause: str
    confidence: float
    evidence: str


@dataclass(frozen=True)
class Explanation:
    """A verdict on one transfer, with its reasons.

    Attributes:
        transfer: Identifier.
        cause: One of `verdict.CAUSES`.
        confidence: 0 to 1, see `verdict.Judgement`.
        rate_bps: Throughput.
        aspiration_bps: What peers reach; 0: unknown.
        facts: The evidence, the deciding facts first.
        missing: What would have to be measured for a verdict, or a better one.
        alternatives: Other causes, the likeliest first.
        advice: What to change.
        peers: Comparison with peers, in sentences.
        about: Columns of the transfer.
    """

    transfer: str
    cause: str
    confidence: float
    rate_bps: int
    aspiration_bps: int
    facts: list[Fact]
    missing: list[str]
    alternatives: list[Alternative]
    advice: str
    peers: list[str]
    about: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Returns everything for JSON."""
        return asdict(self)

    def text(self) -> str:
        """Returns the explanation for a terminal."""
        about = self.about
        size, seconds = units.size(about["bytes"]), units.duration(about["duration_us"] / 1e6)
        ends = f"{about['sender'] or about['src']} to {about['receiver'] or about['dst']}"
        connections = "connection" if about["streams"] == 1 else "connections"
        lines = [
            f"{WORDS[self.cause].capitalize()} ({self.cause}, confidence {self.confidence:.2f}).",
            "",
            f"{about['application'] or 'transfer'} {self.transfer}, {ends}",
            f"{size} in {seconds}: {units.bit_rate(self.rate_bps)}, {about['streams']} {connections}",
            "",
            *_table("Evidence", [(fact.name, fact.value, fact.means) for fact in self.facts]),
        ]
        if self.peers:
            lines += ["Peers", *(f"  {line}" for line in self.peers), ""]
        if self.alternatives:
            rows = [(WORDS[other.cause], f"{other.confidence:.2f}", other.evidence) for other in self.alternatives]
            lines += _table("Alternatives", rows)
        if self.missing:
            lines += ["Missing", *(f"  {line}" for line in self.missing), ""]
        return "\n".join([*lines, "Advice", f"  {self.advice}"])


def explained(row: dict[str, Any], found: Judgement, extra: list[str]) -> Explanation:
    """Returns the explanation of a verdict.

    Args:
        row: The row of evidence.
        found: The judgement of this row alone.
        extra: Further sentences about peers.
    """
    parts = {name: float(values[0]) for name, values in found.parts.items()}
    cause = CAUSES[int(found.cause[0])]
    advised = advice.numbers({name: np.array([row[name]], dtype=np.float64) for name in ("streams",)}, found)
    target = max(float(found.aspiration_bps[0]), parts["reference"], parts["rate"])
    if found.aspiration_bps[0] == 0 and parts["reference"] == 0:
        target = max(parts["interfaces"], parts["rate"])
    words = advice.text(
        cause,
        streams=int(advised.streams[0]),
        buffer_bytes=int(advised.buffer_bytes[0]),
        sender=row["sender"],
        receiver=row["receiver"],
        rtt_us=parts["shortest"],
        target_bps=target,
    )
    return Explanation(
        transfer=row["transfer"],
        cause=cause,
        confidence=round(float(found.confidence[0]), 3),
        rate_bps=int(row["rate_bps"]),
        aspiration_bps=int(found.aspiration_bps[0]),
        facts=_facts(row, parts, found, cause),
        missing=_missing(row, parts, cause),
        alternatives=_alternatives(found, cause),
        advice=words,
        peers=[*_peers(row, parts, found), *extra],
        about={name: row[name] for name in _ABOUT},
    )


_ABOUT = (
    *("application", "user", "sender", "receiver", "src", "dst", "src_group", "dst_group", "start_us", "end_us", "duration_us"),
    *("bytes", "streams", "paired_transfer", "error", "combination"),
)


def _facts(row: dict[str, Any], parts: dict[str, float], judgement: Judgement, cause: str) -> list[Fact]:
    harmless = {name for name, share in zip(CAUSES, judgement.shares[0], strict=True) if share < EXPLAINS and name != cause}
    found: list[tuple[set[str], Fact]] = []
    if parts["sender_known"]:
        found += [
            (
                {"receiver_window", "receiver_disk", "receiver_cpu"},
                Fact("receive window closed", units.share(parts["window_closed"]), "of the time"),
            ),
            (
                {"sender_window"},
                Fact("send buffer full", units.share(parts["buffer_full"]), f"buffer {units.size(row['send_send_buffer_bytes'])}"),
            ),
            (
                {"sender_disk", "sender_cpu"},
                Fact(
                    "nothing to send",
                    units.share(parts["starved"]),
                    "the sending application was too slow" if parts["starved"] >= rules.BLAME else "of the time",
                ),
            ),
            (
                {"streams", "path_loss", "path_congestion", "none"},
                Fact("congestion window", units.share(parts["network"]), "the network limited"),
            ),
            (
                {"path_loss", "path_congestion", "streams"},
                Fact("lost segments", _loss(parts["loss"]), f"path usually {_loss(parts['path_loss'])}" if parts["free"] else ""),
            ),
            (
                {"path_congestion"},
                Fact(
                    "round-trip time",
                    f"{parts['rtt'] / 1e3:.1f} ms",
                    f"{max(parts['inflation'], 0):.0%} over the shortest, {parts['shortest'] / 1e3:.1f} ms",
                ),
            ),
        ]
    if parts["queue_known"]:
        means = (
            "the receiving application was too slow"
            if parts["queue_full"] >= rules.QUEUE_STANDING
            else f"of samples; standing from {rules.QUEUE_STANDING:.0%}"
        )
        found.append(
            ({"receiver_disk", "receiver_cpu", "receiver_window"}, Fact("receive queue full", units.share(parts["queue_full"]), means))
        )
        buffer = units.size(row["receive_receive_buffer_bytes"])
        found.append(({"receiver_window"}, Fact("receive buffer", buffer, f"path needs {_needed(parts)} per connection")))
    for side, name in (("send", "sender"), ("receive", "receiver")):
        if parts[f"{name}_known"]:
            on_cpu = f"{parts[f'{side}_cpu']:.0%} running, {parts[f'{side}_wait']:.0%} waiting, {parts[f'{side}_throttled']:.0%} throttled"
            found.append(({f"{name}_cpu"}, Fact(f"{name}'s process", on_cpu, "of one processor")))
            found.append(({f"{name}_disk"}, Fact(f"{name}'s process", f"{parts[f'{side}_blocked']:.0%} blocked", "on a disk")))
        if row[f"{side}_host_us"]:
            busy = f"{parts[f'{side}_disk_busy']:.0%} busy"
            found.append(({f"{name}_disk"}, Fact(f"{name}'s disk", busy, HARMLESS if f"{name}_disk" in harmless else "")))
            moved = row[f"{side}_interface_{'out' if side == 'send' else 'in'}_bytes"] * 8e6 / row[f"{side}_host_us"]
            of = f"of {units.bit_rate(row[f'{side}_interface_bps'])}" if row[f"{side}_interface_bps"] else "rate unknown"
            found.append(({"path_congestion"}, Fact(f"{name}'s interface", units.bit_rate(moved), of)))
            means = HARMLESS if f"{name}_cpu" in harmless else ""
            found.append(({f"{name}_cpu"}, Fact(f"{name}'s busiest processor", f"{parts[f'{side}_busiest']:.0%} busy", means)))
    if parts["carried"] >= SHARED * parts["rate"]:
        found.append((set(), Fact("its connections", units.bit_rate(parts["carried"]), "with other transfers at the same time")))
    if row["flow_records"]:
        found.append(
            (
                set(),
                Fact("flow records", units.bit_rate(row["flow_rate_bps"]), f"{row['flow_records']} records; think times count as transfer"),
            )
        )
    if row["path_discards"]:
        found.append(({"path_congestion"}, Fact("discards on the path", units.count(row["path_discards"]), "packets during the transfer")))
    # A stable order: what decided first.
    return [fact for causes, fact in sorted(found, key=lambda each: cause not in each[0])]


def _needed(parts: dict[str, float]) -> str:
    target = max(parts["reference"], parts["cluster_best"], parts["interfaces"] if parts["reference"] == 0 else 0, parts["rate"])
    return units.size(advice.BUFFER_BDP * target / 8e6 * parts["shortest"] / parts["streams"])


def _loss(loss: float) -> str:
    return "none" if loss == 0 else f"1 of {1 / loss:,.0f}"


def _missing(row: dict[str, Any], parts: dict[str, float], cause: str) -> list[str]:
    found = []
    for side, name in (("send", "sender"), ("receive", "receiver")):
        if not parts[f"{name}_known"]:
            host = row[name] or row["src" if side == "send" else "dst"] or "unknown"
            what = "no samples" if not row[f"{side}_samples"] else f"only {row[f'{side}_observed_us'] / 1e6:g} s of samples"
            found.append(f"{what} of the {name}'s connections (host {host}): run thalweg transfers agent there")
    if cause != "not_enough_data":
        return found
    if parts["rate"] <= 0:
        found.append("the log has no size or no duration, hence no rate")
    elif parts["duration"] < rules.MIN_DURATION_US:
        found.append(
            f"it lasted {units.duration(parts['duration'] / 1e6)}, and a verdict needs {rules.MIN_DURATION_US / 1e6:g} s of samples"
        )
    elif parts["slow_start_us"] >= rules.SLOW_START * parts["duration"]:
        found.append(
            f"slow start takes about {units.duration(parts['slow_start_us'] / 1e6)} of its {units.duration(parts['duration'] / 1e6)}"
        )
    if parts["starved"] >= rules.BLAME:
        found.append("the sending process waited for neither processor nor disk: what it reads from is not measured")
    if parts["window_closed"] >= rules.BLAME and parts["queue_full"] >= rules.QUEUE_STANDING:
        found.append("the receiving process waited for neither processor nor disk: what it writes to is not measured")
    if parts["network"] >= rules.BLAME and not parts["reference"]:
        found.append("no peers on this path that only the network limits, to know its rate")
    return found


def _alternatives(found: Judgement, cause: str) -> list[Alternative]:
    """Returns the other causes that explain a tenth of the time or more."""
    each = zip(CAUSES[: rules.NONE], found.shares[0], found.weights[0], strict=False)
    others = [(float(share), name, float(weight)) for name, share, weight in each if share >= EXPLAINS and name != cause]
    return [
        Alternative(name, round(weight, 3), f"explains {share:.0%} of the time") for share, name, weight in sorted(others, reverse=True)
    ]


def _peers(row: dict[str, Any], parts: dict[str, float], found: Judgement) -> list[str]:
    lines = []
    path = f"{row['src_group']} to {row['dst_group']}"
    if parts["reference"]:
        share = parts["rate"] / parts["reference"]
        lines.append(
            f"{path}: nine in ten of {parts['free']:.0f} transfers without limits in the hosts reach up to "
            f"{units.bit_rate(parts['reference'])}; this one had {share:.0%} of it"
        )
    else:
        lines.append(f"{path}: too few transfers without limits in the hosts for a comparison")
    if parts["cluster_best"]:
        lines.append(f"the best cluster of parameters has a median of {units.bit_rate(parts['cluster_best'])}")
    if parts["more_streams_bps"] > parts["rate"]:
        lines.append(f"with {parts['more_streams']:.0f} connections: {units.bit_rate(parts['more_streams_bps'])} (median)")
    return lines


def _table(title: str, rows: list[tuple[str, str, str]]) -> list[str]:
    widths = [max((len(row[index]) for row in rows), default=0) for index in (0, 1)]
    return [title, *(f"  {name.ljust(widths[0])}  {value.ljust(widths[1])}  {means}".rstrip() for name, value, means in rows), ""]
