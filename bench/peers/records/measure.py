"""Measures contenders in turns, checks that they agree, writes `bench/results/DATE-records-SUBJECT.{md,csv}`.

measure.py reconstruct|top|memory OUT FILE [--analyse PROGRAM] [--nfcapd DIRECTORY] [--runs N]
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import platform
import re
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path("bench/results")
MEMORY = 4 << 30
NUMBER = 10
"""Number of top source addresses."""

Row = dict[str, object]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("subject", choices=("reconstruct", "top", "memory"))
    parser.add_argument("out", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--analyse", type=Path)
    parser.add_argument("--nfcapd", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    if asked.subject == "memory":
        rows = [memory(asked)]
    else:
        contenders = reconstruct(asked) if asked.subject == "reconstruct" else top(asked)
        rows = [{"run": run} | contender() for run in range(1, asked.runs + 1) for contender in contenders.values()]
        agree(rows)
    write(asked, rows)


def records(file: Path) -> int:
    import pyarrow.parquet as pq

    return int(pq.read_metadata(file).num_rows)


def reconstruct(asked: argparse.Namespace) -> dict[str, object]:
    """Runs each contender in its own process."""

    def contender(name: str):
        def run() -> Row:
            out = asked.out / name
            shutil.rmtree(out, ignore_errors=True)
            script = Path(__file__).with_name("reconstruct.py")
            said = subprocess.run([sys.executable, script, name, out, asked.file], check=True, capture_output=True, text=True)
            return json.loads(said.stdout)

        return run

    modules = {"native": "thalweg._native", "duckdb": "duckdb", "polars": "polars", "datafusion": "datafusion"}
    found = {}
    for name, module in modules.items():
        if importlib.util.find_spec(module) is None:
            print(f"{name}: not installed, left out")
        else:
            found[name] = contender(name)
    return found


def top(asked: argparse.Namespace) -> dict[str, object]:
    """Runs the commands as on the command line, from start to end."""
    thalweg = [sys.executable, "-m", "thalweg", "flows", "top", asked.file, "--by", "src", "-n", str(NUMBER), "--threads", "1", "--json"]
    nfdump = ["nfdump", "-R", asked.nfcapd, "-s", "srcip/bytes", "-n", str(NUMBER), "-N", "-o", "csv"]

    def ours() -> Row:
        seconds, said = timed(thalweg)
        answer = [json.loads(line) for line in said.splitlines()]
        return {"contender": "thalweg", "seconds": seconds} | answered({row["src"]: int(row["bytes"]) for row in answer})

    def theirs() -> Row:
        seconds, said = timed(nfdump)
        lines = [line for line in said.splitlines() if line.count(",") > 5]
        answer = csv.DictReader(lines[: NUMBER + 1])
        return {"contender": "nfdump", "seconds": seconds} | answered({row["val"].strip(): int(row["byt"]) for row in answer})

    contenders = {"thalweg": ours}
    if shutil.which("nfdump") and asked.nfcapd and asked.nfcapd.is_dir():
        contenders["nfdump"] = theirs
    return contenders


def answered(sizes: dict[str, int]) -> Row:
    return {"addresses": " ".join(sorted(sizes)), "bytes": sum(sizes.values())}


def timed(command: list[object]) -> tuple[float, str]:
    begun = time.monotonic()
    said = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
    return time.monotonic() - begun, said.stdout


def memory(asked: argparse.Namespace) -> Row:
    """Runs ours with less address space than `MEMORY`: allocations beyond it fail."""
    given = MEMORY // 8 * 7  # the rest is for program text and I/O buffers
    seconds, said = timed(["prlimit", f"--as={MEMORY}", asked.analyse, 1, given, asked.out, asked.file])
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    counts = {name: int(value) for name, value in re.findall(r"(\w+): (\d+),", said)}
    return {"contender": "native", "seconds": seconds, "bytes": most} | counts


TIMINGS = ("run", "contender", "seconds", "cpu_seconds", "bytes")


def agree(rows: list[Row]) -> None:
    """Checks that all runs of all contenders have the same results."""
    found = {json.dumps({key: value for key, value in row.items() if key not in TIMINGS}): row["contender"] for row in rows}
    if len(found) > 1:
        sys.exit("results differ:\n" + "\n".join(f"{contender}: {result}" for result, contender in found.items()))


def raw_rows(subject: str, rows: list[Row]) -> Path:
    """Writes the rows as CSV and returns the path of the results without suffix."""
    stem = RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-records-{subject}"
    with stem.with_suffix(".csv").open("w", newline="") as file:
        table = csv.DictWriter(file, fieldnames=list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return stem


def write(asked: argparse.Namespace, rows: list[Row]) -> None:
    stem = raw_rows(asked.subject, rows)
    count = records(asked.file)
    medians = {
        name: statistics.median(float(row["seconds"]) for row in rows if row["contender"] == name)
        for name in dict.fromkeys(str(row["contender"]) for row in rows)
    }
    fastest = next(iter(medians.values()))
    lines = [
        f"# Records: {asked.subject}",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {processor()}, one processor, {platform.system()} {platform.release()}.",
        "",
        f"    bench/records.sh {asked.subject} {count}",
        "",
        f"{count:,} records, one thread; medians of {max(1, len(rows) // len(medians))} runs, from the start of the work to its end.",
        "",
        "| contender | seconds | M records/s | time as a multiple of ours | memory, MiB |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, seconds in medians.items():
        most = max((int(row["bytes"]) for row in rows if row["contender"] == name and "bytes" in row), default=0)
        cells = (name, f"{seconds:.2f}", f"{count / seconds / 1e6:.2f}", f"{seconds / fastest:.2f}", f"{most >> 20:,}" if most else "")
        lines.append("| " + " | ".join(cells) + " |")
    results = {key: value for key, value in rows[0].items() if key not in TIMINGS}
    lines += ["", "All found: " + ", ".join(f"{key} {value}" for key, value in results.items()) + ".", ""]
    stem.with_suffix(".md").write_text("\n".join(lines))
    print("\n".join(lines))
    print(shlex.join(["wrote", f"{stem}.md", f"{stem}.csv"]))


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
