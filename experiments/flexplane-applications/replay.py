"""The traffic of both applications without Spark: real TCP connections between the same hosts, and sleep instead of computing.

A light substitute, for machines on which Spark takes the processors of the emulation. The runner starts workers and driver on the hosts of
a lab. As in Spark, data is fetched by those who need it, from several hosts at once and over connections that stay open.
"""

from __future__ import annotations

import argparse
import json
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

WORKERS = 4
DATA_PORT, CONTROL_PORT = 7000, 7001

# Seconds of a task. Sort and descent then compute for about three quarters of the time with DropTail, as in the paper.
SORT_TASK_S = 0.08
DESCENT_TASK_S, SOLVE_S = 0.45, 0.5

TASK_BYTES = 3_000
SORT_BLOCK = 8_000
SORT_WAVES = 4
MATRIX = 650_000
SOLUTION = 130_000
STEPS = 4


def address(host: int) -> str:
    """Return the address of a host."""
    return f"10.0.0.{host + 1}"


def receive(connection: socket.socket, size: int) -> bytes:
    """Receive exactly this many bytes."""
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = connection.recv_into(view)
        if count == 0:
            raise ConnectionError("the other side has closed the connection")
        view = view[count:]
    return bytes(data)


def listen(host: int, port: int, serve: Callable[[socket.socket], None]) -> None:
    """Accept connections in the background, each with a thread of its own."""
    server = socket.create_server((address(host), port), backlog=64)

    def accept() -> None:
        while True:
            connection, _ = server.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def connect(host: int, port: int) -> socket.socket:
    """Connect to a host that may not listen yet."""
    while True:
        try:
            connection = socket.create_connection((address(host), port))
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection


def serve_data(connection: socket.socket) -> None:
    """Answer each request, the number of bytes, with so many."""
    while True:
        try:
            (size,) = struct.unpack("!Q", receive(connection, 8))
            connection.sendall(bytes(size))
        except OSError:
            return


class Fetcher:
    """Connections to the data of other hosts."""

    def __init__(self) -> None:
        self.connections: dict[int, socket.socket] = {}
        self.threads = ThreadPoolExecutor(WORKERS + 1)

    def fetch(self, hosts: list[int], size: int) -> None:
        """Fetch so many bytes from each of these hosts at once."""
        list(self.threads.map(lambda host: self.fetch_one(host, size), hosts))

    def fetch_one(self, host: int, size: int) -> None:
        if host not in self.connections:
            self.connections[host] = connect(host, DATA_PORT)
        self.connections[host].sendall(struct.pack("!Q", size))
        receive(self.connections[host], size)


def worker(host: int) -> None:
    """Carry out tasks: fetch, compute, answer."""
    listen(host, DATA_PORT, serve_data)
    done = threading.Event()
    fetcher = Fetcher()

    def serve_tasks(connection: socket.socket) -> None:
        while True:
            try:
                task = json.loads(receive(connection, TASK_BYTES))
            except OSError:
                done.set()
                return
            if task["fetch"]:
                fetcher.fetch(task["fetch"], task["bytes"])
            time.sleep(task["compute"])
            connection.sendall(bytes(TASK_BYTES))

    listen(host, CONTROL_PORT, serve_tasks)
    done.wait()


class Driver:
    """Gives tasks to the workers."""

    def __init__(self) -> None:
        listen(0, DATA_PORT, serve_data)
        self.controls = {host: connect(host, CONTROL_PORT) for host in range(1, WORKERS + 1)}
        self.fetcher = Fetcher()

    def stage(self, hosts: list[int], tasks: int, compute: float, fetch: Callable[[int], list[int]], size: int) -> None:
        """Run a stage: tasks on each of some hosts, one after the other, and wait for all."""

        def run(host: int) -> None:
            task = json.dumps({"compute": compute, "fetch": fetch(host), "bytes": size})
            for _ in range(tasks):
                self.controls[host].sendall(task.encode().ljust(TASK_BYTES))
                receive(self.controls[host], TASK_BYTES)

        with ThreadPoolExecutor(len(hosts)) as threads:
            list(threads.map(run, hosts))

    def sort(self) -> None:
        """Waves of small tasks. Those of the second stage fetch a block of each of the four tasks of every other worker."""
        everyone = list(range(1, WORKERS + 1))
        self.stage(everyone, SORT_WAVES, SORT_TASK_S, lambda _: [], 0)
        self.stage(everyone, SORT_WAVES, SORT_TASK_S, lambda host: [it for it in everyone if it != host], SORT_WAVES * SORT_BLOCK)

    def coordinate_descent(self) -> None:
        """Steps of bulk transfers: to two workers that add up, from them to the driver, and the solution to all."""
        everyone = list(range(1, WORKERS + 1))
        for _ in range(STEPS):
            self.stage(everyone, 2, DESCENT_TASK_S, lambda _: [], 0)
            self.stage([1, 2], 1, 0, lambda host: [it for it in everyone if it != host], 2 * MATRIX)
            self.fetcher.fetch([1, 2], MATRIX)
            time.sleep(SOLVE_S)
            self.stage(everyone, 1, 0, lambda _: [0], SOLUTION)


def driver(warm_up: int, runs: int) -> None:
    """Run the applications in turns, and print a line for each run."""
    it = Driver()
    for run in range(-warm_up, runs):
        for name, application in (("sort", it.sort), ("coordinate_descent", it.coordinate_descent)):
            start = time.monotonic()
            application()
            print(json.dumps({"application": name, "run": run, "seconds": time.monotonic() - start}), flush=True)


class Replay:
    """The workers of the substitute, as long as the block lasts."""

    def __init__(self, prefix: str, folder: Path) -> None:
        self.prefix, self.folder = prefix, folder
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Replay:
        for host in range(1, WORKERS + 1):
            self.start(host, "worker")
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()

    def start(self, host: int, *options: str) -> subprocess.Popen[bytes]:
        """Start this program on a host."""
        words = ["ip", "netns", "exec", f"{self.prefix}h{host}", sys.executable, __file__, str(host), *options]
        with (self.folder / f"replay{host}.log").open("wb") as log:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        self.processes.append(process)
        return process

    def run_jobs(self, runs: int, seed: int) -> Iterator[dict[str, object]]:
        """Run the applications. Yield what they report on each run. Nothing is random here."""
        del seed
        started = self.start(0, "driver", "--runs", str(runs))
        assert started.stdout is not None
        for line in started.stdout:
            yield json.loads(line)
        if started.wait() != 0:
            sys.exit(f"the substitute failed: see {self.folder / 'replay0.log'}")


def main() -> None:
    """Run as a worker or as the driver."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("host", type=int)
    parser.add_argument("role", choices=("worker", "driver"))
    parser.add_argument("--warm-up", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args()
    if options.role == "worker":
        worker(options.host)
    else:
        driver(options.warm_up, options.runs)


if __name__ == "__main__":
    main()
