"""Time and memory of a report over many transfers: `PYTHONPATH=python python bench/transfers.py TRANSFERS HOST_ROWS DIR [--report]`.

Makes a store of TRANSFERS transfers and HOST_ROWS rows of host metrics in DIR, or with `--report` computes the report of all of it on one
thread within 4 GiB. Prints a row of CSV: transfers, rows of host metrics, step, seconds, processor seconds, peak memory in MiB.

Each tenth transfer has samples of its connections, four a transfer and second; all have those of both hosts. Hosts have one row a second.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import duckdb

DURATION_S = 50
HOSTS = 1000
PEERS = 10
"""Hosts that each host sends to."""
START_S = 1_795_000_000
MEMORY_BYTES = 3 << 30
"""For DuckDB; a quarter more is for other buffers."""


def make(transfers: int, rows: int, directory: Path) -> None:
    """Writes the datasets with DuckDB: a file for each."""
    connection = duckdb.connect()
    connection.execute("SET memory_limit = '3GB'; SET preserve_insertion_order = false; SET TimeZone = 'UTC'")
    seconds = rows // HOSTS

    def copy(name: str, query: str) -> None:
        folder = directory / name / "date=2026-11-18" / "hour=08"
        if folder.is_dir():
            return
        folder.mkdir(parents=True)
        connection.execute(f"COPY ({query}) TO '{folder / 'serve-1.parquet'}' (FORMAT parquet, COMPRESSION zstd)")

    def at(second: str) -> str:
        return f"make_timestamp(({second})::BIGINT * 1000000)::TIMESTAMPTZ"

    address = "'10.' || (({0}) % 20) || '.0.' || (({0}) // 20 + 1)"
    source, destination = address.format("h"), address.format("(h + 7 * k + 1) % 1000")
    base = f"""
        SELECT i, i % {HOSTS} AS h, (i // {HOSTS}) % {PEERS} AS k, {START_S}::BIGINT + (hash(i) % {max(seconds - DURATION_S, 1)})::BIGINT AS s,
            (100000000 + hash(i, 7) % 900000000)::BIGINT AS rate
        FROM range({transfers}) t(i)
    """
    copy(
        "transfers",
        f"""SELECT {at(f"s + {DURATION_S + 2}")} AS received, 'host' || h AS reporter, printf('%016x', hash(i)) AS transfer,
            'gridftp' AS application, 'send' AS direction, 'user' || (h % 300) AS "user", '' AS file, {source} AS src, {destination} AS dst,
            0 AS src_port, 0 AS dst_port, {at("s")} AS "start", {at(f"s + {DURATION_S}")} AS "end", rate * {DURATION_S} // 8 AS bytes,
            (1 + 3 * (i % 2))::INTEGER AS streams, 0::BIGINT AS send_buffer_bytes, 0::BIGINT AS receive_buffer_bytes,
            'cubic' AS congestion_control, '' AS error, 'q' AS queue, i AS report FROM ({base})""",
    )
    sides = ("send", "host' || h AS reporter", "receive", "host' || ((h + 7 * k + 1) % 1000) AS reporter")
    samples = []
    for direction, reporter in zip(sides[::2], sides[1::2], strict=True):
        is_sender = int(direction == "send")
        samples.append(
            f"""SELECT {at("s + n + 3")} AS received, '{reporter}, {at("s + n")} AS "time", 1000000::BIGINT AS interval_us, {source} AS src,
            {destination} AS dst, (1024 + hash(i, 8) % 64000)::INTEGER AS src_port, (50000 + c + 4 * (hash(i, 9) % 3000))::INTEGER AS dst_port, '{direction}' AS direction,
            1::BIGINT AS pid, 'globus-gridftp-' AS process, 300000::BIGINT AS process_cpu_us, 20000::BIGINT AS process_wait_us,
            0::BIGINT AS process_throttled_us, (hash(i) % 900000)::BIGINT AS process_blocked_us, 0::BIGINT AS process_read_bytes,
            0::BIGINT AS process_write_bytes, 31000::BIGINT AS rtt_us, 0::BIGINT AS rtt_variation_us, 30000::BIGINT AS min_rtt_us,
            500::BIGINT AS cwnd_segments, 1448::BIGINT AS mss_bytes, rate // 32 AS sent_bytes, rate // 32 AS acked_bytes,
            rate // 32 AS received_bytes, 0::BIGINT AS retransmitted_bytes, rate // 46336 AS sent_segments, 0::BIGINT AS retransmitted_segments,
            0::BIGINT AS delivery_rate_bps, 1000000::BIGINT AS busy_us, ({is_sender} * (hash(i, 3) % 900000))::BIGINT AS receive_window_limited_us,
            0::BIGINT AS send_buffer_limited_us, 0::INTEGER AS application_limited, 100000::BIGINT AS send_queue_bytes,
            (hash(i, 5) % 4000000)::BIGINT AS receive_queue_bytes, 8000000::BIGINT AS send_buffer_bytes, 8000000::BIGINT AS receive_buffer_bytes,
            'cubic' AS congestion_control, 'q' AS queue, i AS report
            FROM ({base}), range(1, {DURATION_S + 1}) r(n), range(4) q(c) WHERE i % 10 = 0"""
        )
    copy("connections", " UNION ALL ".join(samples))
    copy(
        "host-metrics",
        f"""SELECT {at("t + 3")} AS received, 'host' || h AS reporter, {at("t")} AS "time", 1000000::BIGINT AS interval_us, 16::INTEGER AS cpus,
            (hash(h, t) % 16000000)::BIGINT AS cpu_busy_us, (hash(h, t, 1) % 1000000)::BIGINT AS cpu_busiest_us, 0::BIGINT AS cpu_iowait_us,
            0::BIGINT AS cpu_steal_us, 1000000000::BIGINT AS memory_available_bytes, (hash(t) % 100000000)::BIGINT AS memory_dirty_bytes,
            'sda' AS disk, (hash(h, t, 2) % 1000000)::BIGINT AS disk_busy_us, (hash(h, t, 3) % 500000000)::BIGINT AS disk_read_bytes,
            (hash(h, t, 4) % 500000000)::BIGINT AS disk_write_bytes, 'eth0' AS interface, (hash(h, t, 5) % 1250000000)::BIGINT AS interface_in_bytes,
            (hash(h, t, 6) % 1250000000)::BIGINT AS interface_out_bytes, 0::BIGINT AS interface_in_drops, 0::BIGINT AS interface_out_drops,
            'q' AS queue, t AS report FROM range({START_S}::BIGINT, {START_S + seconds}) a(t), range({HOSTS}) b(h)""",
    )
    copy(
        "hosts",
        f"""SELECT {at(str(START_S))} AS received, 'host' || h AS reporter, {at(str(START_S))} AS "time", {address.format("h")} AS addresses,
            '' AS kernel, 16::INTEGER AS cpus, 0::BIGINT AS memory_bytes, 'eth0' AS interface, 10000000000::BIGINT AS interface_rate_bps,
            1500::BIGINT AS mtu_bytes, 268435456::BIGINT AS tcp_receive_buffer_max_bytes, 268435456::BIGINT AS tcp_send_buffer_max_bytes,
            0::BIGINT AS socket_receive_buffer_max_bytes, 0::BIGINT AS socket_send_buffer_max_bytes, 'cubic' AS congestion_control,
            '' AS data_directory, '' AS file_system, '' AS disk, 0::BIGINT AS disk_read_bps, 0::BIGINT AS disk_write_bps, 'q' AS queue,
            h AS report FROM range({HOSTS}) b(h)""",
    )


def measure(directory: Path, transfers: int, rows: int) -> None:
    """Computes the report and prints time and memory of its steps."""
    import thalweg
    from thalweg.transfers import Stored, Transfers

    start = time.perf_counter()

    def step(name: str) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"{transfers},{rows},{name},{time.perf_counter() - start:.1f},{time.process_time():.1f},{peak}", flush=True)

    with thalweg.connect("duckdb", memory_bytes=MEMORY_BYTES, threads=1, scratch=directory) as engine:
        found = Transfers(Stored(engine, directory))
        _ = found.evidence
        step("evidence")
        _ = found.verdicts
        step("verdicts")
        found.report(directory / "report")
        step("report")


def main() -> None:
    transfers, rows, directory = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    if "--report" not in sys.argv:
        make(transfers, rows, directory)
    if "--report" in sys.argv:
        measure(directory, transfers, rows)


if __name__ == "__main__":
    main()
