"""Flow reconstruction and flowsets over Parquet files of records, by one contender: a line of JSON with time, memory, results.

    reconstruct.py CONTENDER OUT FILE...        (CONTENDER: native, duckdb, polars, datafusion)

All do the same plain work, written to Parquet: records of a key, by start, are a flow until one begins more than 60 s after the
latest end so far; flows of two hosts, by start, are a set until one begins more than 10 s after the one before. `native` does
more: it resolves what several routers saw, and tells elephants.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
from pathlib import Path

GAP_US, TAU_US = 60_000_000, 10_000_000
KEY = "src, dst, src_port, dst_port, protocol"
PAIR = "src, dst"


def sql(records: str, microseconds: str) -> tuple[str, str]:
    """Returns the statements for flows, from `records`, and for flowsets, from a table `flows`."""
    start, end = microseconds.format("flow_start"), microseconds.format("flow_end")
    flows = f"""
        with read as (
            select {KEY}, least({start}, {end}) as flow_start, greatest({start}, {end}) as flow_end,
                bytes * greatest(sampling_interval, 1) as bytes
            from {records}
        ), marked as (
            select *, case when flow_start - max(flow_end) over (
                partition by {KEY} order by flow_start, flow_end rows between unbounded preceding and 1 preceding
            ) <= {GAP_US} then 0 else 1 end as first
            from read
        ), numbered as (
            select *, sum(first) over (
                partition by {KEY} order by flow_start, flow_end rows between unbounded preceding and current row
            ) as number
            from marked
        )
        select {KEY}, min(flow_start) as flow_start, max(flow_end) as flow_end, sum(bytes) as bytes, count(*) as records
        from numbered group by {KEY}, number"""
    order = "flow_start, flow_end, src_port, dst_port, protocol"
    flowsets = f"""
        with marked as (
            select *, case when flow_start - lag(flow_start) over (partition by {PAIR} order by {order}) <= {TAU_US}
                then 0 else 1 end as first
            from flows
        ), numbered as (
            select *, sum(first) over (
                partition by {PAIR} order by {order} rows between unbounded preceding and current row
            ) as number
            from marked
        )
        select {PAIR}, min(flow_start) as flow_start, max(flow_end) as flow_end, sum(bytes) as bytes, count(*) as flows
        from numbered group by {PAIR}, number"""
    return flows, flowsets


def native(files: list[str], out: Path) -> None:
    from thalweg import _native

    _native.analyse(
        files,
        flows=str(out / "flows.parquet"),
        flowsets=str(out / "flowsets.parquet"),
        gap_us=GAP_US,
        threshold_bytes=1_000_000_000,
        window_us=60_000_000,
        tau_us=TAU_US,
        rule="chain",
        elephants_only=False,
        memory_bytes=4 << 30,
        threads=1,
        progress=None,
    )


def duckdb(files: list[str], out: Path) -> None:
    import duckdb

    flows, flowsets = sql(f"read_parquet({files!r})", "epoch_us({})")
    connection = duckdb.connect(config={"threads": 1, "temp_directory": str(out)})
    connection.execute(f"create temp table flows as {flows}")
    connection.execute(f"copy flows to '{out}/flows.parquet' (compression zstd)")
    connection.execute(f"copy ({flowsets}) to '{out}/flowsets.parquet' (compression zstd)")


def datafusion(files: list[str], out: Path) -> None:
    import datafusion

    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    for number, file in enumerate(files):
        context.register_parquet(f"file{number}", file)
    every = " union all ".join(f"select * from file{number}" for number in range(len(files)))
    flows, flowsets = sql(f"({every})", "arrow_cast({}, 'Int64')")
    context.sql(flows).write_parquet(str(out / "flows.parquet"), compression="zstd")
    context.register_parquet("flows", str(out / "flows.parquet"))
    context.sql(flowsets).write_parquet(str(out / "flowsets.parquet"), compression="zstd")


def polars(files: list[str], out: Path) -> None:
    import polars as pl

    key, pair = KEY.split(", "), PAIR.split(", ")
    start, end = pl.col("flow_start").dt.epoch("us"), pl.col("flow_end").dt.epoch("us")
    interval = pl.max_horizontal("sampling_interval", pl.lit(1))
    columns = [*key, "flow_start", "flow_end", "bytes", "sampling_interval"]
    flows = (
        pl.read_parquet(files, columns=columns)
        .lazy()
        .select(
            *key,
            flow_start=pl.min_horizontal(start, end),
            flow_end=pl.max_horizontal(start, end),
            bytes=pl.col("bytes") * interval,
        )
        .sort(*key, "flow_start", "flow_end")
        .with_columns(first=pl.col("flow_start") - pl.col("flow_end").cum_max().shift(1).over(key) > GAP_US)
        .with_columns(number=pl.col("first").fill_null(True).cum_sum())
        .group_by(*key, "number")
        .agg(pl.col("flow_start").min(), pl.col("flow_end").max(), pl.col("bytes").sum(), records=pl.len())
        .collect()
    )
    flows.write_parquet(out / "flows.parquet", compression="zstd")
    sets = (
        flows.lazy()
        .sort(*pair, "flow_start", "flow_end", "src_port", "dst_port", "protocol")
        .with_columns(first=pl.col("flow_start").diff().over(pair) > TAU_US)
        .with_columns(number=pl.col("first").fill_null(True).cum_sum())
        .group_by(*pair, "number")
        .agg(pl.col("flow_start").min(), pl.col("flow_end").max(), pl.col("bytes").sum(), flows=pl.len())
        .collect()
    )
    sets.write_parquet(out / "flowsets.parquet", compression="zstd")


def results(out: Path) -> dict[str, int]:
    """The results on which all contenders must agree; flow sizes differ, because only one resolves duplicates."""
    import duckdb

    found = {}
    for table, counted in (("flows", "records"), ("flowsets", "flows")):
        path = out / f"{table}.parquet"
        path = path / "*.parquet" if path.is_dir() else path
        rows = duckdb.sql(f"select * from read_parquet('{path}')")
        kind = dict(zip(rows.columns, rows.types, strict=True))["flow_start"]
        length = "epoch_us(flow_end) - epoch_us(flow_start)" if "TIMESTAMP" in str(kind) else "flow_end - flow_start"
        (answer,) = rows.aggregate(f"count(*), sum({counted}), sum({length})").fetchall()
        found[table], found[counted], found[f"{table}_us"] = map(int, answer)
    return found


def main() -> None:
    contender, directory, *files = sys.argv[1:]
    out = Path(directory)
    out.mkdir(parents=True, exist_ok=True)
    importlib.import_module("thalweg._native" if contender == "native" else contender)
    begun, processor = time.monotonic(), time.process_time()
    {"native": native, "duckdb": duckdb, "polars": polars, "datafusion": datafusion}[contender](files, out)
    seconds, processor = time.monotonic() - begun, time.process_time() - processor
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"contender": contender, "seconds": seconds, "cpu_seconds": processor, "bytes": memory} | results(out)))


if __name__ == "__main__":
    main()
