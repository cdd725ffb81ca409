"""Runs every engine over the same records, by the package's public interface, and measures CPU time, memory and disk.

engines.py SCRATCH ENGINE=FILE... [--threads N] [--memory-gib N]

Each analysis of each engine has a process of its own. Its CPU time is that of the process and all below it (Spark's driver and
workers) while the analysis runs; memory and scratch are the most that they held at once, looked at five times a second. An
engine that is measured on a file of its own is compared with the first engine's answer for that file.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from measure import RESULTS, processor, records

MODULES = {"native": "thalweg._native", "duckdb": "duckdb", "clickhouse": "chdb", "spark": "pyspark"}
WORKERS = 2
"""Spark's, of one core each."""
LOOKED_EVERY_S = 0.2
HERTZ = os.sysconf("SC_CLK_TCK")

Row = dict[str, Any]


def main() -> None:
    asked = arguments()
    if asked.analysis:
        ((engine, file),) = asked.measured
        print(json.dumps(analysed(engine, file, asked)))
        return
    rows: list[Row] = []
    for engine, file in asked.measured:
        if importlib.util.find_spec(MODULES[engine]) is None:
            print(f"{engine}: not installed, left out")
            continue
        for analysis in ANALYSES:
            rows.append({"engine": engine, "analysis": analysis, "records": records(file)} | watched(engine, file, analysis, asked))
            print(json.dumps(rows[-1]), flush=True)
    agree(rows)
    write(asked, rows)


def arguments() -> argparse.Namespace:
    def measured(word: str) -> tuple[str, Path]:
        engine, _, file = word.partition("=")
        if engine not in MODULES or not file:
            raise argparse.ArgumentTypeError(f"expected ENGINE=FILE, with one of {', '.join(MODULES)}; found {word}")
        return engine, Path(file)

    parser = argparse.ArgumentParser()
    parser.add_argument("scratch", type=Path)
    parser.add_argument("measured", type=measured, nargs="+")
    parser.add_argument("--threads", type=int, default=1, help="of engines within one process")
    parser.add_argument("--memory-gib", type=float, default=4.0, help="of engines within one process, for their tables")
    parser.add_argument("--analysis", choices=ANALYSES, help=argparse.SUPPRESS)
    return parser.parse_args()


# --- One analysis, in this process ------------------------------------------------------------------------


def reconstruct(opened: Any) -> Row:
    from thalweg import analyse

    found = analyse(opened)
    answer = {}
    for name, rows in (("flows", found.flows), ("flowsets", found.flowsets)):
        table = rows.table
        sums = rows.derive(table.aggregate(number=table.count(), bytes=table["bytes"].sum())).to_pyarrow().to_pylist()[0]
        answer |= {name: int(sums["number"]), f"{name}_bytes": int(sums["bytes"])}
    return answer


def top(opened: Any) -> Row:
    from thalweg.top import top

    found = opened.derive(top(opened.table)).to_pyarrow()
    return dict(zip(found["src"].to_pylist(), map(int, found["bytes"].to_pylist()), strict=True))


def series(opened: Any) -> Row:
    from thalweg.series import series

    found = series(opened, 60_000_000, by=("protocol",))
    return {name: int(found[name].sum()) for name in ("bytes", "packets", "flows")} | {"rows": len(found)}


ANALYSES: dict[str, Callable[[Any], Row]] = {"reconstruct": reconstruct, "top": top, "series": series}


def analysed(engine: str, file: Path, asked: argparse.Namespace) -> Row:
    """Times are those of a warmed-up engine, from reading the file to the answer."""
    from thalweg import connect

    spark = engine == "spark"
    # Spark's master sets the threads and memory of its workers.
    limits = {} if spark else {"threads": asked.threads, "memory_bytes": int(asked.memory_gib * 2**30)}
    begun = time.perf_counter()
    with connect(engine, scratch=asked.scratch, **limits) as chosen:
        opened = chosen.open(file)
        opened.count()  # triggers lazy imports and processes
        started, cpu = time.perf_counter(), cpu_seconds(os.getpid())
        answer = ANALYSES[asked.analysis](opened)
        seconds, cpu = time.perf_counter() - started, cpu_seconds(os.getpid()) - cpu
    return {"start_seconds": started - begun, "seconds": seconds, "cpu_seconds": cpu, "answer": answer}


# --- Watched from outside ---------------------------------------------------------------------------------


def watched(engine: str, file: Path, analysis: str, asked: argparse.Namespace) -> Row:
    shutil.rmtree(asked.scratch, ignore_errors=True)
    asked.scratch.mkdir(parents=True)
    scratch = str(asked.scratch.absolute())
    options = [f"--threads={asked.threads}", f"--memory-gib={asked.memory_gib}", f"--analysis={analysis}"]
    command = [sys.executable, __file__, scratch, f"{engine}={file}", *options]
    environment = os.environ | {"TMPDIR": scratch, "SPARK_LOCAL_DIRS": scratch, "SPARK_WORKER_DIR": scratch}
    memory = disk = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment) as process:
        while process.poll() is None:
            tree = descendants(process.pid)
            memory = max(memory, sum(map(resident, tree)))
            disk = max(disk, in_directory(asked.scratch) + sum(map(unlinked, tree)))
            time.sleep(LOOKED_EVERY_S)
        said = process.stdout.read() if process.stdout else ""
    shutil.rmtree(asked.scratch, ignore_errors=True)
    if process.returncode:
        sys.exit(f"{engine}: {analysis} failed; to see why: {' '.join(command)}")
    return json.loads(said.splitlines()[-1]) | {"memory_bytes": memory, "scratch_bytes": disk}


def descendants(root: int) -> list[int]:
    """A process and its descendants."""
    children: dict[int, list[int]] = defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        if fields := of_stat(stat):
            children[int(fields[1])].append(int(stat.parent.name))
    found = [root]
    for process in found:
        found += children[process]
    return found


def of_stat(stat: Path) -> list[str]:
    """The fields after the name in /proc/PID/stat; empty if the process has ended."""
    try:
        return stat.read_text().rpartition(")")[2].split()
    except OSError:
        return []


def cpu_seconds(root: int) -> float:
    """CPU time of a process, its descendants, and descendants that have ended and were waited for."""
    ticks = (sum(map(int, of_stat(Path(f"/proc/{process}/stat"))[11:15])) for process in descendants(root))
    return sum(ticks) / HERTZ


def resident(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, IndexError):
        return 0


def in_directory(directory: Path) -> int:
    found = subprocess.run(["du", "-s", "-B1", directory], capture_output=True, text=True, check=False).stdout
    return int(found.split()[0]) if found else 0


def unlinked(process: int) -> int:
    """Bytes on disk of unlinked files, which the compiled analyses use."""
    total = 0
    try:
        for file in Path(f"/proc/{process}/fd").iterdir():
            if "(deleted)" in os.readlink(file):
                total += file.stat().st_blocks * 512
    except OSError:
        pass
    return total


# --- What came out ----------------------------------------------------------------------------------------


def agree(rows: list[Row]) -> None:
    """Checks that every engine has the same answers for the same records."""
    first: dict[tuple[str, int], Row] = {}
    for row in rows:
        other = first.setdefault((row["analysis"], row["records"]), row)
        if row["answer"] != other["answer"]:
            sys.exit(f"{row['analysis']}: results differ:\n{other['engine']}: {other['answer']}\n{row['engine']}: {row['answer']}")


COLUMNS = ("engine", "analysis", "records", "seconds", "start_seconds", "cpu_seconds", "memory_bytes", "scratch_bytes")


def write(asked: argparse.Namespace, rows: list[Row]) -> None:
    stem = RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-records-engines"
    with stem.with_suffix(".csv").open("w", newline="") as file:
        table = csv.DictWriter(file, fieldnames=COLUMNS, extrasaction="ignore")
        table.writeheader()
        table.writerows(rows)
    files = {records(file): file for _, file in asked.measured}
    sizes = ", ".join(f"{count:,} records of {file.stat().st_size / count:.1f} bytes in Parquet" for count, file in files.items())
    own = " ".join(f"{engine}={records(file)}" for engine, file in asked.measured if file != asked.measured[0][1])
    lines = [
        "# Records: engines",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {processor()}, {os.cpu_count()} processors, {platform.system()} {platform.release()}.",
        "",
        f"    bench/records.sh engines {records(asked.measured[0][1])} {own}".rstrip(),
        "",
        f"{sizes}. Engines within one process: threads: {asked.threads}, {asked.memory_gib:g} GiB for their tables. "
        f"Spark: {WORKERS} workers of one core and 1 GiB each, and a driver.",
        "`reconstruct` is flows and the flowsets of elephants, `top` the ten source addresses of most bytes, `series` minutes by",
        "protocol. Seconds are from the open engine to the answer, memory and scratch those of all its processes.",
        "",
        "| engine | analysis | M records | start, s | seconds | CPU, s | M records a CPU-second | memory, MiB | scratch, bytes a record |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        count = row["records"]
        cells = (
            f"`{row['engine']}`",
            row["analysis"],
            f"{count / 1e6:g}",
            f"{row['start_seconds']:.1f}",
            f"{row['seconds']:.1f}",
            f"{row['cpu_seconds']:.1f}",
            f"{count / max(row['cpu_seconds'], 1 / HERTZ) / 1e6:.2f}",
            f"{row['memory_bytes'] / 2**20:,.0f}",
            f"{row['scratch_bytes'] / count:.0f}",
        )
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "All engines answered the same.", ""]
    stem.with_suffix(".md").write_text("\n".join(lines))
    print("\n".join(lines))
    print(f"wrote {stem}.md {stem}.csv")


if __name__ == "__main__":
    main()
