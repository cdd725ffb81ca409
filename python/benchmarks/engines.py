"""How fast each engine is, and what memory it takes: reconstruction with flowsets, and the top source addresses.

    python benchmarks/engines.py DATA [--engines duckdb,clickhouse,spark] [--threads 1] [--memory-gib 4] [--json FILE]
    python benchmarks/engines.py --rows 1500000

DATA is what a collector wrote. With `--rows`, records are made (`tests/make_records.py`). Each measurement has a process of its
own; its memory is the most that it and all its children (Spark's workers) held at once, looked at five times a second, so the
files that the system keeps in memory do not count. Time is from the open files to the answer; starting an engine is told apart.
CPU time is that of the engine's own process: of an embedded engine all of it, of Spark only the driver's Python.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

TASKS = ("flowsets", "top")
_ANSWER = "answer: "


def measure(task: str, data: str, engine: str, threads: int, memory_gib: float) -> dict[str, Any]:
    """One measurement, in this process."""
    from thalweg import analyse, connect
    from thalweg.top import top

    begun = time.perf_counter()
    with connect(engine, threads=threads, memory_bytes=int(memory_gib * 2**30)) as chosen:
        records = chosen.open(data)
        started, worked = time.perf_counter(), time.process_time()
        if task == "flowsets":
            found = analyse(records)
            answer = [found.flows.count(), found.flowsets.count()]
        else:
            answer = records.derive(top(records.table)).to_pandas()["octets"].tolist()
        done, cpu_s = time.perf_counter(), time.process_time() - worked
    return {"start_s": started - begun, "seconds": done - started, "cpu_seconds": cpu_s, "answer": answer}


def main() -> None:
    """Measures and prints a table."""
    asked = arguments()
    if asked.task:
        found = measure(asked.task, asked.data, asked.engines, asked.threads, asked.memory_gib)
        print(_ANSWER + json.dumps(found))
        return
    with tempfile.TemporaryDirectory() as made:
        data = asked.data or made_records(asked.rows, asked.seed, Path(made))
        files = sorted(Path(data).rglob("*.parquet"))
        rows = sum(pq.read_metadata(file).num_rows for file in files)
        octets = sum(file.stat().st_size for file in files)
        print(f"{rows:,} records, {octets / rows:.1f} bytes each in Parquet, {asked.threads} threads, {asked.memory_gib} GiB allowed")
        found = [
            {"engine": engine, "task": task, "rows": rows, **in_process(asked, data, engine, task)}
            for engine in asked.engines.split(",")
            for task in TASKS
        ]
    print(table(found), flush=True)
    if asked.json:
        about = {"at": datetime.now(UTC).isoformat(), "threads": asked.threads, "memory_gib": asked.memory_gib}
        Path(asked.json).write_text(json.dumps({**about, "bytes_per_record": octets / rows, "measured": found}, indent=1))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", nargs="?", help="a collector's directory")
    parser.add_argument("--rows", type=int, default=1_000_000, help="records to make, without DATA (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engines", default="duckdb,clickhouse,spark")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--memory-gib", type=float, default=4.0)
    parser.add_argument("--json", help="where to put the figures")
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    return parser.parse_args()


def made_records(rows: int, seed: int, directory: Path) -> str:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from make_records import records, write

    write(records(rows, seed), directory)
    return str(directory)


def in_process(asked: argparse.Namespace, data: str, engine: str, task: str) -> dict[str, Any]:
    """One measurement in a process of its own, watched from here."""
    options = [f"--threads={asked.threads}", f"--memory-gib={asked.memory_gib}", f"--engines={engine}", f"--task={task}"]
    command = [sys.executable, __file__, data, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        most = 0
        while process.poll() is None:
            most = max(most, memory_of_tree(process.pid))
            time.sleep(0.2)
        out, errors = process.communicate()
    answers = [line for line in out.splitlines() if line.startswith(_ANSWER)]
    if not answers:
        return {"error": errors.strip().splitlines()[-1] if errors.strip() else "no answer"}
    return {**json.loads(answers[0].removeprefix(_ANSWER)), "memory_bytes": most}


def memory_of_tree(root: int) -> int:
    """Bytes of memory that a process and its descendants hold."""
    children: dict[int, list[int]] = defaultdict(list)
    resident: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except OSError:
            continue
        process = int(fields["Pid"])
        children[int(fields["PPid"])].append(process)
        resident[process] = int(fields.get("VmRSS", "0 kB").split()[0]) * 1024
    total, todo = 0, [root]
    while todo:
        process = todo.pop()
        total += resident.get(process, 0)
        todo += children[process]
    return total


def table(found: list[dict[str, Any]]) -> str:
    head = ("engine", "task", "M records/s", "seconds", "CPU seconds", "start, s", "peak memory, MiB", "bytes of memory a record")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row in found:
        if "error" in row:
            lines.append(f"| {row['engine']} | {row['task']} | {row['error']} | | | | | |")
            continue
        rate, memory = row["rows"] / row["seconds"] / 1e6, row["memory_bytes"]
        times = f"{row['seconds']:.1f} | {row['cpu_seconds']:.1f} | {row['start_s']:.1f}"
        figures = f"{rate:.2f} | {times} | {memory / 2**20:.0f} | {memory / row['rows']:.0f}"
        lines.append(f"| {row['engine']} | {row['task']} | {figures} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
