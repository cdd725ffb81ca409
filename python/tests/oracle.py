"""The analyses as one would do them by hand: plain loops over lists, slow, and obviously what the definitions say."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from thalweg.keys import KEY, POINT

Row = dict[str, Any]
MAX_COUNT = 2**63 - 1


def flows(records: Iterable[Row], gap_us: int, threshold: int, window_us: int) -> list[Row]:
    """What `thalweg.flows.reconstruct` gives, times in microseconds."""
    of_key: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for record in records:
        ordered = put_right(record)
        of_key[tuple(ordered[name] for name in KEY)].append(ordered)
    found = []
    for key, of_this in of_key.items():
        for members in parted(sorted(of_this, key=lambda r: (r["flow_start_us"], r["flow_end_us"])), gap_us):
            found.append(dict(zip(KEY, key, strict=True)) | flow(members, threshold, window_us))
    return found


def put_right(record: Row) -> Row:
    """Times in order, counts scaled."""
    interval = max(1, record["sampling_interval"])
    times = sorted([record["flow_start_us"], record["flow_end_us"]])
    return record | {
        "flow_start_us": times[0],
        "flow_end_us": times[1],
        "bytes": min(record["bytes"] * interval, MAX_COUNT),
        "packets": min(record["packets"] * interval, MAX_COUNT),
        "sampling_interval": interval,
    }


def parted(ordered: list[Row], gap_us: int) -> list[list[Row]]:
    """Records of a key, cut where one starts more than the gap after the latest end before it."""
    parts: list[list[Row]] = []
    latest = -math.inf
    for record in ordered:
        if record["flow_start_us"] - latest > gap_us:
            parts.append([])
        parts[-1].append(record)
        latest = max(latest, record["flow_end_us"])
    return parts


def flow(members: list[Row], threshold: int, window_us: int) -> Row:
    """One flow of all its records."""
    points: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for record in members:
        points[tuple(record[name] for name in POINT)].append(record)

    def preference(point: tuple[Any, ...]) -> tuple[Any, ...]:
        seen = points[point]
        length = max(r["flow_end_us"] for r in seen) - min(r["flow_start_us"] for r in seen)
        return (-length, min(r["sampling_interval"] for r in seen), *point)

    chosen = points[min(points, key=preference)]
    flags = 0
    for record in chosen:
        flags |= record["tcp_flags"]
    return {
        "flow_start_us": min(r["flow_start_us"] for r in members),
        "flow_end_us": max(r["flow_end_us"] for r in members),
        "bytes": min(sum(r["bytes"] for r in chosen), MAX_COUNT),
        "packets": min(sum(r["packets"] for r in chosen), MAX_COUNT),
        "records": len(members),
        "observation_points": len(points),
        "sampling_interval": min(r["sampling_interval"] for r in chosen),
        "src_as": max(r["src_as"] for r in chosen),
        "dst_as": max(r["dst_as"] for r in chosen),
        "tcp_flags": flags,
        "elephant": is_elephant(chosen, threshold, window_us),
    }


def is_elephant(records: list[Row], threshold: int, window_us: int) -> bool:
    """Whether one of the windows that begin at a start or end at an end holds more than the threshold."""
    begins = [r["flow_start_us"] for r in records] + [r["flow_end_us"] - window_us for r in records]
    return any(sum(bytes_within(r, begin, begin + window_us) for r in records) > threshold for begin in begins)


def bytes_within(record: Row, begin: int, end: int) -> int:
    """What of a record lies within a window."""
    start, last, size = record["flow_start_us"], record["flow_end_us"], record["bytes"]
    if last < begin or start > end:
        return 0
    if start >= begin and last <= end:
        return int(size)
    return math.floor(float(size) * float(min(last, end) - max(start, begin)) / float(last - start))


def flowsets(flows: Iterable[Row], tau_us: int, rule: str, elephants_only: bool) -> list[Row]:
    """What `thalweg.flowsets.flowsets` gives, times in microseconds."""
    of_pair: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for each in flows:
        if each["elephant"] or not elephants_only:
            of_pair[each["src"], each["dst"]].append(each)
    order = ("flow_start_us", "flow_end_us", "src_port", "dst_port", "protocol")
    found = []
    for pair, members in of_pair.items():
        sets: list[list[Row]] = []
        for each in sorted(members, key=lambda f: tuple(f[name] for name in order)):
            if not sets or each["flow_start_us"] - sets[-1][0 if rule == "span" else -1]["flow_start_us"] > tau_us:
                sets.append([])
            sets[-1].append(each)
        found += [dict(zip(("src", "dst"), pair, strict=True)) | flowset(s) for s in sets]
    return found


def flowset(members: list[Row]) -> Row:
    """Equation 2.3."""
    start, end = members[0]["flow_start_us"], max(f["flow_end_us"] for f in members)
    size = min(sum(f["bytes"] for f in members), MAX_COUNT)
    return {
        "flow_start_us": start,
        "flow_end_us": end,
        "flows": len(members),
        "bytes": size,
        "packets": min(sum(f["packets"] for f in members), MAX_COUNT),
        "duration_ns": (end - start) * 1000,
        "rate_bps": float(min(size * 8, MAX_COUNT)) * 1e6 / float(end - start) if end > start else None,
        "src_as": max(f["src_as"] for f in members),
        "dst_as": max(f["dst_as"] for f in members),
    }
