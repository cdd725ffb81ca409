"""Flow records to test with: many small flows, transfers of parallel flows, two routers that see the same, clocks astray."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from thalweg.schema import RECORD_SCHEMA

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
"""2023-11-14 22:13:20 UTC: less than two hours before a midnight."""
COMPONENTS = (1, 1, 1, 2, 2, 3, 4, 8, 16)

Integers = npt.NDArray[np.int64]


def table(columns: dict[str, Integers | pa.Array], rows: int) -> pa.Table:
    """Records with these columns, which tell nothing in the others."""
    told: list[pa.Array] = []
    for field in RECORD_SCHEMA:
        given = columns.get(field.name)
        if given is None:
            blank = "ipfix" if field.name == "format" else "" if pa.types.is_string(field.type) else 0
            given = pa.array([blank], pa.string() if isinstance(blank, str) else pa.int64()).take(pa.array(np.zeros(rows, dtype=np.int64)))
        told.append(pa.array(given).cast(field.type))
    return pa.Table.from_arrays(told, schema=RECORD_SCHEMA)


def records(rows: int, seed: int) -> pa.Table:
    """About `rows` records over three hours: two thirds of flows with one record, the others of transfers.

    A transfer is one to sixteen flows between two hosts that start within seconds of each other. A record covers up to a
    minute of a flow. A second router sees every third flow, with a sampling interval of its own.
    """
    random = np.random.default_rng(seed)
    return pa.concat_tables([_small(random, rows * 2 // 3), _transfers(random, rows // 3)])


def write(records: pa.Table, directory: Path) -> None:
    """Writes records as a collector does: an hour of reception a directory."""
    hours = pc.strftime(records["received"], "date=%Y-%m-%d/hour=%H")
    for hour in sorted(pc.unique(hours).to_pylist()):
        folder = directory / "flows" / hour
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(records.filter(pc.equal(hours, hour)), folder / "part.parquet", compression="zstd")


def addresses(numbers: Integers) -> pa.Array:
    """Addresses of 10.0.0.0/8, and every seventh of 2001:db8::/64."""
    distinct, where = np.unique(numbers, return_inverse=True)
    texts = [f"2001:db8::{n:x}" if n % 7 == 0 else f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}" for n in distinct.tolist()]
    return pa.array(texts).take(pa.array(where))


def _small(random: np.random.Generator, rows: int) -> pa.Table:
    start = START + random.integers(0, 10_800 * SECOND, rows)
    end = start + random.integers(0, 20 * SECOND, rows)
    source, destination = random.zipf(1.3, rows) % 50_000 + 1, random.integers(1, 50_000, rows)
    packets = random.integers(1, 40, rows)
    columns = {
        "received": end + 2 * SECOND,
        "exporter": _routers(random.integers(1, 3, rows)),
        "sampling_interval": np.full(rows, 1000),
        "flow_start": start,
        "flow_end": end,
        "src": addresses(source),
        "dst": addresses(destination),
        "src_port": random.integers(1024, 65_536, rows),
        "dst_port": random.choice(np.array([53, 80, 443]), rows),
        "protocol": random.choice(np.array([6, 17]), rows),
        "tcp_flags": random.integers(0, 64, rows),
        "bytes": packets * random.integers(40, 1500, rows),
        "packets": packets,
        "src_as": source % 200 + 64_512,
        "dst_as": destination % 200 + 64_512,
    }
    return table(columns, rows)


def _transfers(random: np.random.Generator, rows: int) -> pa.Table:
    """Transfers of about `rows` records: 13 of a flow and router, 4/3 routers, 38/9 flows."""
    count = max(1, rows // 73)
    of_transfer = np.repeat(np.arange(count), random.choice(np.array(COMPONENTS), count))
    flows = len(of_transfer)
    begin = random.integers(0, 9_000 * SECOND, count)[of_transfer] + random.integers(0, 12 * SECOND, flows)
    pieces, rate = random.integers(1, 26, flows), random.lognormal(10, 1.2, flows)
    # Each record is of a flow, seen by the first router and, for every third flow, by the second as well.
    seen = np.concatenate([np.arange(flows), np.arange(0, flows, 3)])
    router = np.repeat([1, 2], [flows, len(seen) - flows])
    of_seen = np.repeat(np.arange(len(seen)), pieces[seen])
    flow, number = seen[of_seen], _count_up(pieces[seen])
    jitter = random.integers(0, 3 * SECOND, len(flow))
    # A gap of over a minute within every fifth flow: two flows of one key.
    pause = np.where((flow % 5 == 0) & (number > pieces[flow] // 2), 90 * SECOND, 0)
    start = START + begin[flow] + number * 60 * SECOND + pause + jitter
    end = start + random.integers(0, 62 * SECOND, len(flow))
    swapped = random.random(len(flow)) < 0.002
    packets = (rate[flow] * random.uniform(0.3, 1.7, len(flow))).astype(np.int64) // 12 + 1
    columns = {
        "received": np.maximum(start, end) + 2 * SECOND,
        "exporter": _routers(router[of_seen]),
        "observation_domain_id": flow % 2,
        "sampling_interval": np.where(router[of_seen] == 1, 1000, 512),
        "flow_start": np.where(swapped, end, start),
        "flow_end": np.where(swapped, start, end),
        "src": addresses(of_transfer[flow] % 97 * 3 + 1),
        "dst": addresses(of_transfer[flow] % 89 * 5 + 2),
        "src_port": flow % 50_000 + 1024,
        "dst_port": np.full(len(flow), 2811),
        "protocol": np.full(len(flow), 6),
        "tcp_flags": random.choice(np.array([2, 16, 17, 24]), len(flow)),
        "bytes": packets * 1460,
        "packets": packets,
        "src_as": of_transfer[flow] % 97 + 64_512,
        "dst_as": of_transfer[flow] % 89 + 64_512,
        "flow_direction": np.where(router[of_seen] == 1, 0, 255),
    }
    return table(columns, len(flow))


def _count_up(lengths: Integers) -> Integers:
    """0, 1, ... of each length in turn."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)


def _routers(numbers: Integers) -> pa.Array:
    return pa.array(["192.0.2.1", "192.0.2.2"]).take(pa.array(numbers - 1))
