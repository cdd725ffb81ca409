"""Transfers a second that a daemon stores: `python bench/transfer_ingest.py THALWEG DIR [--seconds N] [--agents N] [--rows N]`.

Starts `thalweg serve` with a store in DIR, and sends reports as so many agents would: each one at a time, over a connection of its own, the
next when the last is acknowledged, hence on the disk. Prints a row of CSV: agents, transfers in a report, seconds, transfers acknowledged,
transfers a second, processor seconds of the daemon, transfers in the store, median and largest time of a report in milliseconds.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb

ADDRESS, PORT = "127.0.0.1", 19477
SECRET = "0123456789abcdef0123456789abcdef"


def report(agent: int, number: int, rows: int) -> str:
    """Returns a report of an agent: transfers of GridFTP that end now."""
    now = time.time_ns() // 1000
    transfers = [
        {
            "transfer": f"{agent:04x}{number:012x}{index:016x}",
            "application": "gridftp",
            "direction": "send",
            "user": f"{index % 300:016x}",
            "file": f"{number * rows + index:016x}",
            "src": f"10.0.{agent}.1",
            "dst": f"10.1.{index % 250}.1",
            "src_port": 50000 + index % 10000,
            "dst_port": 2811,
            "start_us": now - 20_000_000 - index,
            "end_us": now - index,
            "bytes": 1_000_000_000 + index,
            "streams": 4,
            "congestion_control": "cubic",
        }
        for index in range(rows)
    ]
    return json.dumps({"host": f"host{agent}", "queue": f"{agent:016x}", "number": number, "sent_us": now, "rows": {"transfers": transfers}})


class Agent(threading.Thread):
    """Sends reports, made before, until the time is over."""

    def __init__(self, number: int, bodies: list[str], until: float) -> None:
        super().__init__()
        self.number, self.bodies, self.until = number, bodies, until
        self.times: list[float] = []
        self.problem = ""

    def run(self) -> None:
        connection = http.client.HTTPConnection(ADDRESS, PORT, timeout=60)
        headers = {"Authorization": f"Bearer {SECRET}-host{self.number}", "Content-Type": "application/json"}
        for body in self.bodies:
            begin = time.monotonic()
            if begin >= self.until:
                break
            connection.request("POST", "/v1/transfers/agent-reports", body, headers)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 200:
                self.problem = f"{answer.status} {text.decode()}"
                break
            self.times.append(time.monotonic() - begin)


def start(thalweg: str, directory: Path, agents: int) -> subprocess.Popen[bytes]:
    """Starts the daemon, and waits until it answers."""
    directory.mkdir(parents=True)
    (directory / "store").mkdir()
    tokens = directory / "tokens"
    tokens.write_text("".join(f"host{agent} report {SECRET}-host{agent}\n" for agent in range(agents)))
    tokens.chmod(0o600)
    (directory / "thalweg.toml").write_text(
        f'[api]\nlisten = "{ADDRESS}:{PORT}"\ntoken_file = "tokens"\nrequests_per_second = 100000\n[records]\nfolder = "{directory / "store"}"\n'
        "[transfers]\nreceive = true\nrows_per_second = 1000000\n"
    )
    with (directory / "serve.log").open("wb") as log:
        process = subprocess.Popen([thalweg, "serve", "-c", str(directory / "thalweg.toml")], stderr=log)
    for _ in range(100):
        time.sleep(0.1)
        try:
            connection = http.client.HTTPConnection(ADDRESS, PORT, timeout=1)
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            return process
        except OSError:
            if process.poll() is not None:
                break
    sys.exit(f"thalweg serve does not answer: {(directory / 'serve.log').read_text()}")


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("thalweg")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--agents", type=int, default=8)
    parser.add_argument("--rows", type=int, default=1000)
    options = parser.parse_args()
    enough = max(500_000 * options.seconds // (options.agents * options.rows), 2)
    bodies = [[report(agent, number, options.rows) for number in range(1, enough + 1)] for agent in range(options.agents)]
    daemon = start(options.thalweg, options.directory.resolve(), options.agents)
    before = time.monotonic()
    agents = [Agent(number, bodies[number], before + options.seconds) for number in range(options.agents)]
    for agent in agents:
        agent.start()
    for agent in agents:
        agent.join()
    took = time.monotonic() - before
    ticks = Path(f"/proc/{daemon.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    daemon.send_signal(signal.SIGTERM)
    daemon.wait()
    if problems := [agent.problem for agent in agents if agent.problem]:
        sys.exit(problems[0])
    times = [each * 1e3 for agent in agents for each in agent.times]
    count = len(times) * options.rows
    (stored,) = duckdb.execute(f"SELECT count(DISTINCT transfer) FROM '{options.directory}/store/transfers/**/*.parquet'").fetchone()
    cpu = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    print("agents,rows,seconds,acknowledged,per_second,processor_s,stored,median_ms,largest_ms")
    print(f"{options.agents},{options.rows},{took:.1f},{count},{count / took:.0f},{cpu:.1f},{stored},{statistics.median(times):.0f},{max(times):.0f}")


if __name__ == "__main__":
    main()
