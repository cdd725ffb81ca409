"""Repeat table 4 of Flexplane: two Spark applications over an emulated network with three schemes. Needs root.

    python experiments/flexplane-applications/run.py --output DIR

Each round runs a new cluster with each scheme, on the hosts of an emulated lab. Its runs are appended to DIR/runs.jsonl, and a later call
with the same DIR continues. A cluster with too many late timeslots does not count, and ends the program: its runs go to
DIR/discarded.jsonl, unless --keep-late is given. At the end the results are in DIR: result.json, RESULT.md, plot.svg.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pyspark

import report
from cluster import Cluster
from replay import Replay

HERE = Path(__file__).resolve().parent
PREFIX = "fa-"


@dataclass(frozen=True)
class Setting:
    """What all runs have in common."""

    thalweg: str
    output: Path
    overhead: str
    late_after: str
    runs: int
    is_replay: bool


class Lab:
    """The hosts of an emulated network, as long as the block lasts. Its arbiter has a processor of its own."""

    def __init__(self, setting: Setting, scheme: str, folder: Path) -> None:
        self.setting, self.scheme, self.folder = setting, scheme, folder

    def __enter__(self) -> Lab:
        self.folder.mkdir(parents=True, exist_ok=True)
        network = self.folder / "network.toml"
        network.write_text((HERE / "network.toml").read_text() + f'\n[scheme]\nname = "{self.scheme}"\n')
        options = ["--wait", "real-time", "--overhead", self.setting.overhead, "--late-after", self.setting.late_after]
        self.command("up", "--emulate", str(network), *options, "--output", str(self.folder))
        self.congestion_control = self.status()["congestion_control"]
        # The arbiter has the last processor. What this program starts from now on leaves it alone.
        self.processors = os.sched_getaffinity(0)
        os.sched_setaffinity(0, self.processors - {max(self.processors)} or self.processors)
        return self

    def __exit__(self, *_: object) -> None:
        os.sched_setaffinity(0, self.processors)
        self.command("down")

    def command(self, name: str, *options: str) -> str:
        """Run a command about the lab, and return its output."""
        words = [self.setting.thalweg, "lab", name, *options, "--prefix", PREFIX]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)}: {done.stderr}")
        return done.stdout

    def status(self) -> dict[str, object]:
        """Return the state of the lab."""
        return json.loads(self.command("status", "--json"))

    def counters(self) -> dict[str, int]:
        """Return the counters of the arbiter."""
        live = self.status()["arbiters"][0]["live"]
        return {key: live[key] for key in ("slots", "late_slots", "skipped_slots", "requests")}

    def report(self) -> dict[str, object]:
        """Return the report of the arbiter, once it has ended."""
        whole = json.loads((self.folder / "real-time.json").read_text())
        keys = ("valid", "slots", "late_slots", "skipped_slots", "late_share", "worst_delay_ns", "requests", "packets")
        return {key: whole[key] for key in keys}


def run_cluster(setting: Setting, scheme: str, number: int) -> list[dict[str, object]]:
    """Run the applications in a new cluster. Return a row for each run."""
    folder = setting.output / "logs" / f"{number}-{scheme}"
    rows: list[dict[str, object]] = []
    lab = Lab(setting, scheme, folder)
    with lab, (Replay if setting.is_replay else Cluster)(PREFIX, folder) as cluster:
        before = lab.counters()
        for line in cluster.run_jobs(setting.runs, seed=1 + number * setting.runs):
            after = lab.counters()
            change = {key: after[key] - before[key] for key in after}
            before = after
            late = (change["late_slots"] + change["skipped_slots"]) / max(1, change["slots"] + change["skipped_slots"])
            row = {"scheme": scheme, "congestion_control": lab.congestion_control, "round": number, **line, **change, "late_share": late}
            print(
                f"round {number}, {scheme}: {line['application']} run {line['run']}: {line['seconds']:.2f} s, {100 * late:.4f} % late",
                flush=True,
            )
            rows.append(row)
    arbiter = lab.report()
    state = "valid" if arbiter["valid"] else "INVALID"
    worst = arbiter["worst_delay_ns"] / 1e6
    print(f"round {number}, {scheme}: {state}, {100 * arbiter['late_share']:.4f} % late, worst delay {worst:.2f} ms", flush=True)
    # Warm-up runs have negative numbers.
    return [row | {"arbiter": arbiter} for row in rows if row["run"] >= 0]


def main() -> None:
    """Run all rounds that are missing, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="directory for results and logs")
    parser.add_argument("--thalweg", default="target/release/thalweg", help="the program [default: %(default)s]")
    parser.add_argument("--schemes", default=",".join(report.SCHEMES), help="schemes, by comma [default: %(default)s]")
    parser.add_argument("--rounds", type=int, default=10, help="clusters of each scheme [default: %(default)s]")
    parser.add_argument("--runs", type=int, default=1, help="runs of each application in a cluster [default: %(default)s]")
    parser.add_argument("--overhead", default="500us", help="the delay of each packet beside the emulated one [default: %(default)s]")
    parser.add_argument("--late-after", default="50us", help="delay of a late timeslot [default: %(default)s]")
    parser.add_argument(
        "--replay", action="store_true", help="replay the traffic without Spark, and sleep instead of computing"
    )
    parser.add_argument(
        "--keep-late", action="store_true", help="count clusters with too many late timeslots too: the claim about them then fails"
    )
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no cluster after this time")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    setting = Setting(options.thalweg, options.output.resolve(), options.overhead, options.late_after, options.runs, options.replay)
    path = setting.output / "runs.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(row["scheme"], row["round"]) for row in rows}
    end = time.monotonic() + 60 * options.minutes
    for number in range(options.rounds):
        # The order turns, so that no scheme always comes first.
        schemes = options.schemes.split(",")
        for scheme in schemes[number % len(schemes) :] + schemes[: number % len(schemes)]:
            if (scheme, number) in done:
                continue
            if time.monotonic() > end:
                sys.exit("time is up: call again with the same directory to continue")
            new = run_cluster(setting, scheme, number)
            is_kept = new[0]["arbiter"]["valid"] or options.keep_late
            kept = path if is_kept else setting.output / "discarded.jsonl"
            with kept.open("a") as file:
                file.writelines(json.dumps(row) + "\n" for row in new)
            if kept != path:
                sys.exit("the cluster is discarded: too many timeslots were late; call again with the same directory to repeat it")
            rows += new
    what = "Replayed traffic" if options.replay else f"Spark {pyspark.__version__}"
    report.write(rows, setting.output, {"what": what, "overhead": options.overhead, "late_after": options.late_after})
    print((setting.output / "RESULT.md").read_text())


if __name__ == "__main__":
    main()
