"""Show that the throughput of persistent HTTP transfers cannot be had from flow records (heavy-hitter dissertation, section 5.2). Needs root.

    python experiments/cftms-netflow/run.py --output DIR

Two network namespaces are joined by a link of 100 Mbit/s with 10 ms. nginx serves objects; clients fetch them over persistent connections,
with and without think times. They measure the true throughput themselves, because nginx ends a request when the last bytes are in its send buffer.
`thalweg watch` records the flows. Results are in DIR: result.json, RESULT.md, plot.svg, access.log, flows/.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import duckdb
import matplotlib.pyplot as plt

SERVER, CLIENT = "cn-server", "cn-client"
ADDRESS, PEER, PORT = "10.9.0.1", "10.9.0.2", 8080
RATE, LATENCY = "100mbit", 0.010
ACTIVE_TIMEOUT_S = 60
SIZES = [1 << n for n in range(18, 24)]
"""Sizes of objects: 256 KiB to 8 MiB."""

# Fixed before the first run. An estimate is useful within a factor of 1.25.
CLAIMS = {
    "one transfer per connection: the median ratio of estimate and truth": ("single", 0.8, 1.25),
    "persistent connections: the median ratio of estimate and truth": ("persistent", 0.0, 0.5),
}


@dataclass(frozen=True)
class Connection:
    """A connection of a client: what it fetched, and how long it paused."""

    kind: str
    port: int
    rates_bps: list[float]
    """Throughput of each transfer, in bit/s, from the request to the last byte."""


def run(*words: str) -> None:
    """Run a command, and end the program if it fails."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")


def inside(namespace: str, *words: str) -> list[str]:
    """Return a command that runs in a namespace."""
    return ["ip", "netns", "exec", namespace, *words]


class Network:
    """Two namespaces and a link between them, as long as the block lasts."""

    def __enter__(self) -> Network:
        self.remove()
        for name in (SERVER, CLIENT):
            run("ip", "netns", "add", name)
            run(*inside(name, "ip", "link", "set", "lo", "up"))
        run("ip", "link", "add", "cn0", "netns", SERVER, "type", "veth", "peer", "name", "cn1", "netns", CLIENT)
        for name, interface, address in ((SERVER, "cn0", ADDRESS), (CLIENT, "cn1", PEER)):
            run(*inside(name, "ip", "address", "add", f"{address}/24", "dev", interface))
            run(*inside(name, "ip", "link", "set", interface, "up"))
            # Packets of the wire, as a router sees them.
            run(*inside(name, "ethtool", "-K", interface, "tso", "off", "gso", "off", "gro", "off"))
        run(*inside(SERVER, "tc", "qdisc", "add", "dev", "cn0", "root", "tbf", "rate", RATE, "burst", "32kb", "latency", f"{LATENCY}s"))
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    @staticmethod
    def remove() -> None:
        """Remove both namespaces, and with them the link."""
        for name in (SERVER, CLIENT):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


NGINX = """
daemon off;
worker_processes 1;
error_log {folder}/error.log;
pid {folder}/nginx.pid;
events {{}}
http {{
    log_format timed '$remote_port $connection_requests $msec $request_time $bytes_sent $status $request_uri';
    access_log {log} timed;
    keepalive_requests 1000;
    keepalive_timeout 300;
    sendfile on;
    server {{ listen {address}:{port}; root {folder}/objects; }}
}}
"""


def client(kind: str, seed: int, transfers: int, found: list[Connection]) -> None:
    """Fetch objects over one connection. The calling process must be in the namespace of clients."""
    draw = random.Random(seed)
    connection = http.client.HTTPConnection(ADDRESS, PORT, timeout=120)
    connection.connect()
    assert connection.sock is not None
    port = connection.sock.getsockname()[1]
    rates = []
    for number in range(transfers):
        size, start = draw.choice(SIZES), time.monotonic()
        connection.request("GET", f"/{size}")
        received = len(connection.getresponse().read())
        if received != size:
            sys.exit(f"{received} bytes of {size}")
        rates.append(8 * size / (time.monotonic() - start))
        if number + 1 < transfers:
            time.sleep(min(20.0, draw.expovariate(1 / 4.0)))
    connection.close()
    found.append(Connection(kind, port, rates))


def clients(seed: int, persistent: int, single: int) -> None:
    """Run all clients, a few at a time, and print what they did as JSON."""
    draw = random.Random(seed)
    jobs = [("persistent", draw.randint(4, 20)) for _ in range(persistent)] + [("single", 1)] * single
    draw.shuffle(jobs)
    found: list[Connection] = []
    slots = threading.Semaphore(8)

    def work(number: int, kind: str, transfers: int) -> None:
        with slots:
            client(kind, seed * 1000 + number, transfers, found)

    threads = [threading.Thread(target=work, args=(number, *job)) for number, job in enumerate(jobs)]
    for thread in threads:
        thread.start()
        time.sleep(0.05)
    for thread in threads:
        thread.join()
    print(json.dumps([vars(connection) for connection in found]))


def measure(options: argparse.Namespace) -> tuple[list[Connection], Path]:
    """Run server, clients and recording. Return the connections and the folder of records."""
    log, flows = options.output / "access.log", options.output / "flows"
    for old in (log, flows):
        shutil.rmtree(old, ignore_errors=True) if old.is_dir() else old.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as name, Network():
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "objects").mkdir(mode=0o755)
        for size in SIZES:
            (folder / "objects" / str(size)).write_bytes(os.urandom(size))
        (folder / "nginx.conf").write_text(NGINX.format(folder=folder, log=log, address=ADDRESS, port=PORT))
        # `thalweg watch` changes its user once the interface is open.
        flows.mkdir()
        flows.chmod(0o777)
        nginx = subprocess.Popen(inside(SERVER, "nginx", "-c", str(folder / "nginx.conf")))
        watch = [options.thalweg, "watch", "--quiet", "--records", str(flows), "--active-timeout", f"{ACTIVE_TIMEOUT_S}s", "cn1"]
        recording = subprocess.Popen(inside(CLIENT, *watch), stdout=subprocess.DEVNULL)
        time.sleep(2)
        own = [sys.executable, str(Path(__file__).resolve()), "--clients", str(options.seed)]
        own += ["--persistent", str(options.persistent), "--single", str(options.single)]
        done = subprocess.run(inside(CLIENT, *own), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stderr)
        time.sleep(2)
        recording.terminate()
        recording.wait()
        nginx.terminate()
        nginx.wait()
    return [Connection(**connection) for connection in json.loads(done.stdout)], flows


def estimates(flows: Path) -> dict[int, float]:
    """Return the throughput of each connection in bit/s, as records suggest it: all bytes of its records by the sum of their durations."""
    query = f"""
        SELECT dst_port, sum(bytes) AS bytes, sum(epoch_us(flow_end) - epoch_us(flow_start)) AS us
        FROM read_parquet('{flows}/flows/*/*/*.parquet', hive_partitioning = false)
        WHERE src = '{ADDRESS}' AND src_port = {PORT} AND bytes > 0 GROUP BY dst_port
    """
    return {port: 8e6 * total / us for port, total, us in duckdb.sql(query).fetchall() if us > 0}


def result(connections: list[Connection], estimated: dict[int, float]) -> dict[str, object]:
    """Compare estimates with the median of the true throughputs of each connection."""
    rows = []
    for connection in connections:
        median = statistics.median(connection.rates_bps)
        ratio = estimated[connection.port] / median if connection.port in estimated else None
        rows.append({**vars(connection), "true_bps": median, "estimated_bps": estimated.get(connection.port), "ratio": ratio})
    claims = []
    for name, (kind, lower, upper) in CLAIMS.items():
        ratios = [row["ratio"] for row in rows if row["kind"] == kind and row["ratio"] is not None]
        median = statistics.median(ratios)
        claims.append({"claim": name, "bounds": [lower, upper], "value": median, "passed": lower <= median <= upper, "connections": len(ratios)})
    return {"claims": claims, "connections": rows}


def write(found: dict[str, object], output: Path) -> None:
    """Write result.json, RESULT.md and the plot."""
    (output / "result.json").write_text(json.dumps(found, indent=1) + "\n")
    lines = [
        "# Throughput from flow records",
        "",
        f"{date.today()}. Link of 100 Mbit/s, active timeout {ACTIVE_TIMEOUT_S} s, records without packet sampling.",
        "",
        "| claim | bounds | here | connections | measured |",
        "| --- | --- | --- | ---: | ---: |",
    ]
    for it in found["claims"]:
        lower, upper = it["bounds"]
        verdict = "pass" if it["passed"] else "**fail**"
        lines.append(f"| {it['claim']} | {lower:g} to {upper:g} | {verdict} | {it['connections']} | {it['value']:.3f} |")
    (output / "RESULT.md").write_text("\n".join([*lines, "", "![plot](plot.svg)", ""]))
    style = {"svg.fonttype": "none", "svg.hashsalt": "thalweg", "axes.spines.top": False, "axes.spines.right": False}
    with plt.rc_context(style):
        figure, panel = plt.subplots(figsize=(5.2, 4.4), layout="constrained")
        for kind, colour, label in (("single", "#0072b2", "one transfer per connection"), ("persistent", "#d55e00", "persistent, with think times")):
            rows = [row for row in found["connections"] if row["kind"] == kind and row["ratio"] is not None]
            panel.loglog([row["true_bps"] / 1e6 for row in rows], [row["estimated_bps"] / 1e6 for row in rows], "o", color=colour, alpha=0.6, markersize=4, label=label)
        ends = [0.5, 110]
        panel.plot(ends, ends, color="#8a8a8a", linewidth=0.8)
        panel.set_xlabel("throughput of a transfer (median of the connection), Mbit/s")
        panel.set_ylabel("estimate from flow records, Mbit/s")
        panel.legend(frameon=False)
        figure.savefig(output / "plot.svg", metadata={"Date": None})
        plt.close(figure)


def main() -> None:
    """Measure and report, or run the clients."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="directory for results")
    parser.add_argument("--thalweg", default="target/release/thalweg", help="the program [default: %(default)s]")
    parser.add_argument("--seed", type=int, default=1, help="random seed [default: %(default)s]")
    parser.add_argument("--persistent", type=int, default=40, help="persistent connections [default: %(default)s]")
    parser.add_argument("--single", type=int, default=40, help="connections with one transfer [default: %(default)s]")
    parser.add_argument("--clients", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.clients is not None:
        return clients(options.clients, options.persistent, options.single)
    if options.output is None:
        parser.error("--output is needed")
    options.output = options.output.resolve()
    options.output.mkdir(parents=True, exist_ok=True)
    options.thalweg = str(Path(options.thalweg).resolve())
    connections, flows = measure(options)
    write(result(connections, estimates(flows)), options.output)
    print((options.output / "RESULT.md").read_text())
    return None


if __name__ == "__main__":
    main()
