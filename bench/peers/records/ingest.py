"""NetFlow v9 over loopback into files: `thalweg collect` and `nfcapd`, each alone on one processor, the sender on another.

ingest.py OUT THALWEG RECORDS COLLECTOR_CPU SENDER_CPU [--rates M,M,...]

Both are sent the same datagrams at the same rates. At the lowest rate both have to keep every record; from there on what is
kept is counted. Processor time is the whole collector's, all threads, from its start to its end. Writes
`bench/results/DATE-records-ingest.{md,csv}`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from measure import Row, processor, raw_rows

PORT = 29_995
PATIENCE = 60.0
"""Timeout in seconds for a collector to start, and to process everything that it received."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("thalweg", type=Path)
    parser.add_argument("records", type=int)
    parser.add_argument("collector_cpu", type=int)
    parser.add_argument("sender_cpu", type=int)
    parser.add_argument("--rates", default="1,1.5,2,2.5,3,3.5", help="millions of records a second")
    asked = parser.parse_args()
    contenders: dict[str, Callable[[Path], list[object]]] = {
        "thalweg": lambda folder: [asked.thalweg, "collect", "-o", folder, "--json", f"127.0.0.1:{PORT}"],
    }
    if shutil.which("nfcapd"):
        contenders["nfcapd"] = lambda folder: [
            *("nfcapd", "-p", PORT, "-b", "127.0.0.1", "-w", folder, "-t", 3600, "-B", 200_000_000),
        ]
    else:
        print("nfcapd: not installed, left out")
    rates = [round(float(rate) * 1e6) for rate in asked.rates.split(",")]
    rows = [run(asked, name, command, rate) for rate in rates for name, command in contenders.items()]
    lost = [row for row in rows if row["rate"] == rates[0] and row["kept"] != asked.records]
    if lost:
        sys.exit(f"at {rates[0]} records a second all {asked.records} have to be kept: {lost}")
    write(asked, rows)


def run(asked: argparse.Namespace, name: str, command: Callable[[Path], list[object]], rate: int) -> Row:
    """One collector, from its start to its end."""
    folder = asked.out / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    said = asked.out / f"{name}.txt"
    with said.open("w") as output:
        collector = subprocess.Popen(pinned(asked.collector_cpu, command(folder)), stdout=output, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: waiting() is not None, f"{name} to listen")
        sending = [asked.thalweg, "synth", "--netflow", "--records", asked.records, "--send", f"127.0.0.1:{PORT}"]
        sending += ["--pregenerate", "--rate", rate, "--json"]
        sender = subprocess.run(pinned(asked.sender_cpu, sending), check=True, capture_output=True, text=True)
        wait_until(lambda: waiting() == 0, f"{name} to read its socket")
    finally:
        collector.send_signal(signal.SIGTERM)
        _, _, usage = os.wait4(collector.pid, 0)
        collector.returncode = 0
    sent = json.loads(sender.stdout.splitlines()[-1])
    kept, size = (thalweg_kept if name == "thalweg" else nfcapd_kept)(folder, said)
    shutil.rmtree(folder)
    seconds = usage.ru_utime + usage.ru_stime
    row: Row = {"contender": name, "rate": rate, "sent": sent["records"], "sending_seconds": sent["sending_seconds"]}
    row |= {"kept": kept, "cpu_seconds": round(seconds, 3), "bytes": size}
    print(row, flush=True)
    return row


def pinned(cpu: int, command: list[object]) -> list[str]:
    return ["taskset", "-c", str(cpu), *map(str, command)]


def wait_until(holds: Callable[[], bool], what: str) -> None:
    begun = time.monotonic()
    while not holds():
        if time.monotonic() - begun > PATIENCE:
            sys.exit(f"waited {PATIENCE:.0f} s for {what}")
        time.sleep(0.05)


def waiting() -> int | None:
    """Bytes queued in the socket of the port; zero if there is no such socket."""
    for line in Path("/proc/net/udp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1].endswith(f":{PORT:04X}"):
            return int(fields[4].split(":")[1], 16)
    return None


def thalweg_kept(folder: Path, said: Path) -> tuple[int, int]:
    store = json.loads(said.read_text().splitlines()[-1])["store"]
    return int(store["written"]), sum(file.stat().st_size for file in folder.rglob("*.parquet"))


def nfcapd_kept(folder: Path, _: Path) -> tuple[int, int]:
    """The counts of nfdump in the files."""
    kept = 0
    files = [file for file in folder.rglob("nfcapd.*") if file.is_file()]
    for file in files:
        told = subprocess.run(["nfdump", "-I", "-r", str(file)], check=True, capture_output=True, text=True).stdout
        kept += int(re.search(r"^Flows: *(\d+)", told, re.MULTILINE)[1])  # type: ignore[index]
    return kept, sum(file.stat().st_size for file in files)


def write(asked: argparse.Namespace, rows: list[Row]) -> None:
    stem = raw_rows("ingest", rows)
    lines = [
        "# Records: ingest",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {processor()}, {platform.system()} {platform.release()}.",
        "",
        f"    bench/records.sh ingest {asked.records}",
        "",
        f"{asked.records:,} records as NetFlow v9 over loopback; the collector has one processor, the sender another. `thalweg collect`",
        "writes Parquet, `nfcapd` its own format. Processor time is that of all threads, from the start to the end.",
        "",
        "| collector | asked, M/s | sent, M/s | kept | lost | processor time, s | M records per processor second | bytes a record |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        sent, kept, seconds = int(str(row["sent"])), int(str(row["kept"])), float(str(row["cpu_seconds"]))
        rate, sending = float(str(row["rate"])), float(str(row["sending_seconds"]))
        cells = [str(row["contender"]), f"{rate / 1e6:.1f}", f"{sent / sending / 1e6:.2f}", f"{kept:,}", f"{sent - kept:,}"]
        cells += [f"{seconds:.2f}", f"{kept / seconds / 1e6:.2f}", f"{int(str(row['bytes'])) / max(kept, 1):.1f}"]
        lines.append("| " + " | ".join(cells) + " |")
    stem.with_suffix(".md").write_text("\n".join([*lines, ""]))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
