"""A Spark cluster on the hosts of a lab: master and driver on h0, a worker with one executor of one thread on each other host."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark

HERE = Path(__file__).resolve().parent
WORKERS = 4
MASTER = "spark://10.0.0.1:7077"

# The time that workers may take to register.
JOIN_S = 120


def address(host: int) -> str:
    """Return the address of a host."""
    return f"10.0.0.{host + 1}"


class Cluster:
    """Master and workers, as long as the block lasts."""

    def __init__(self, prefix: str, folder: Path) -> None:
        self.prefix, self.folder = prefix, folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.scratch = Path(tempfile.mkdtemp(prefix="flexplane-applications-"))

    def __enter__(self) -> Cluster:
        spark = Path(pyspark.__file__).parent / "bin" / "spark-class"
        self.start(0, "master", [str(spark), "org.apache.spark.deploy.master.Master", "--host", address(0), "--port", "7077"])
        self.wait_for(self.folder / "master.log", "I have been elected leader", 1)
        worker = [str(spark), "org.apache.spark.deploy.worker.Worker", "--cores", "1", "--memory", "900m"]
        for host in range(1, WORKERS + 1):
            self.start(host, f"worker{host}", [*worker, "--host", address(host), MASTER])
        self.wait_for(self.folder / "master.log", "Registering worker", WORKERS)
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            process.wait()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def start(self, host: int, name: str, command: list[str], output: int | None = None) -> subprocess.Popen[bytes]:
        """Start a program on a host. Its messages go to a log, and its output too unless it is a pipe."""
        scratch = self.scratch / name
        scratch.mkdir()
        environment = os.environ | {
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYTHONPATH": str(HERE),
            "SPARK_LOCAL_IP": address(host),
            "SPARK_LOCAL_DIRS": str(scratch),
            "SPARK_WORKER_DIR": str(scratch),
            "SPARK_DAEMON_MEMORY": "256m",
            # One thread each: all share the processors that the arbiter leaves.
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "JAVA_TOOL_OPTIONS": "-Djava.net.preferIPv4Stack=true -XX:+UseSerialGC",
        }
        words = ["ip", "netns", "exec", f"{self.prefix}h{host}", *command]
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=output or log, stderr=log)
        self.processes.append(process)
        return process

    def wait_for(self, log: Path, text: str, count: int) -> None:
        """Wait until a log has a text so many times."""
        end = time.monotonic() + JOIN_S
        while log.read_text(errors="replace").count(text) < count:
            if time.monotonic() > end or any(process.poll() is not None for process in self.processes):
                sys.exit(f"the cluster does not start: see {log.parent}")
            time.sleep(0.2)

    def run_jobs(self, runs: int, seed: int) -> Iterator[dict[str, object]]:
        """Run the applications. Yield what they report on each run."""
        jobs = [sys.executable, str(HERE / "jobs.py"), "--master", MASTER, "--address", address(0)]
        driver = self.start(0, "driver", [*jobs, "--runs", str(runs), "--seed", str(seed)], subprocess.PIPE)
        assert driver.stdout is not None
        for line in driver.stdout:
            yield json.loads(line)
        if driver.wait() != 0:
            sys.exit(f"the applications failed: see {self.folder / 'driver.log'}")
