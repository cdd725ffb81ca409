"""Judge transfers of a lab whose causes are known: nine causes, and none. Needs root.

    python experiments/cftms-causes/run.py --output DIR
    python experiments/cftms-causes/run.py --output DIR --report [--held-back] [--fresh]

The first call runs what is missing in DIR/runs.jsonl, round by round. `--report` judges the open settings, and with `--held-back` those
that were held back until the rules were finished too, with `--fresh` those that were made after these rules had been changed: DIR/result.json
and DIR/RESULT.md.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from math import sqrt
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TABLE_5_1 = HERE.parent / "cftms-table-5-1"
sys.path.insert(0, str(TABLE_5_1))

from transfer_lab import CGROUPS, IPERF3_PORT, PREFIX, Host, Lab, Limits

W, DAEMON, V, IDC = Host(0), Host(1), Host(2), Host(3)
BUFFER = 1_675_000
"""Four products of 100 Mbit/s and 33.5 ms."""

TEST_PORT = IPERF3_PORT + 1
TEST_SECONDS = 4
OTHER = CGROUPS / "blkio" / f"{PREFIX}other"
"""Control group of reads that are not of a transfer."""

CAUSES = (
    *("streams", "sender_window", "receiver_window", "sender_disk", "receiver_disk", "sender_cpu", "receiver_cpu"),
    *("path_loss", "path_congestion", "none"),
)

# Fixed before the first run.
CORRECT, FALSE_ALARMS = 0.90, 0.02
SMALL, MIDDLE, LONG, LARGE = 12 << 20, 24 << 20, 40 << 20, 64 << 20
LOSS = {"usual": "0.03%", "lossy": "0.5%", "less lossy": "0.3%"}
"""Random loss of the path to the receiver and back in the three phases."""


@dataclass(frozen=True)
class Setting:
    """What a group of transfers has in common.

    Attributes:
        cause: What limits them: one of `CAUSES`.
        part: One of `PARTS`: whether somebody had looked at verdicts on it before the rules were finished.
        application: iperf3, scp or gridftp.
        streams: Parallel connections.
        src, dst: Hosts.
        size: Bytes.
        limits: Limits of hosts, lifted afterwards.
        options: Further arguments of iperf3.
        other: What else happens meanwhile: one of `Others`' methods, or empty.
        loss: Phase, a key of `LOSS`.
        runs: Number of transfers.
    """

    cause: str
    part: str
    application: str
    streams: int
    src: Host
    dst: Host
    size: int
    limits: dict[Host, Limits] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    other: str = ""
    loss: str = "usual"
    runs: int = 8


OPEN, HELD, FRESH = "open", "held back", "fresh"
PARTS = (OPEN, HELD, FRESH)
VERY_SLOW, SLOW, LESS_SLOW = 12_000_000, 24_000_000, 40_000_000
"""Rates of limited disks, in bit/s. Parallel connections of iperf3 read the same file, and only the first one from the disk."""

BUSY, VERY_BUSY = Limits(cpu=0.10, load=16), Limits(cpu=0.10, load=40)
"""A sender of GridFTP takes half a percent of a processor."""

SMALL_WRITES = ("-l", "8K")
"""One write may exceed the send buffer by its whole length."""

SETTINGS = (
    Setting("streams", OPEN, "iperf3", 1, W, V, LONG),
    Setting("streams", HELD, "gridftp", 1, V, W, LONG),
    Setting("sender_window", OPEN, "iperf3", 1, W, V, SMALL, {W: Limits(send_buffer=60_000)}, SMALL_WRITES),
    Setting("sender_window", HELD, "iperf3", 2, V, W, MIDDLE, {V: Limits(send_buffer=30_000)}, SMALL_WRITES),
    Setting("receiver_window", OPEN, "iperf3", 4, W, V, MIDDLE, {V: Limits(receive_buffer=50_000)}),
    Setting("receiver_window", HELD, "gridftp", 2, V, W, MIDDLE, {W: Limits(receive_buffer=80_000)}),
    Setting("sender_disk", OPEN, "iperf3", 1, W, V, SMALL, {W: Limits(disk_read_bps=VERY_SLOW)}),
    Setting("sender_disk", HELD, "gridftp", 4, V, W, MIDDLE, {V: Limits(disk_read_bps=SLOW)}),
    Setting("receiver_disk", OPEN, "iperf3", 4, W, IDC, MIDDLE, {IDC: Limits(disk_write_bps=SLOW)}),
    Setting("receiver_disk", HELD, "gridftp", 4, V, W, MIDDLE, {W: Limits(disk_write_bps=LESS_SLOW)}),
    Setting("sender_cpu", OPEN, "gridftp", 4, W, V, MIDDLE, {W: VERY_BUSY}),
    Setting("sender_cpu", HELD, "scp", 1, V, W, SMALL, {V: Limits(cpu=0.10, load=4)}),
    Setting("receiver_cpu", OPEN, "gridftp", 4, W, V, MIDDLE, {V: BUSY}),
    Setting("receiver_cpu", HELD, "scp", 1, W, IDC, SMALL, {IDC: Limits(cpu=0.10, load=4)}),
    Setting("path_loss", OPEN, "iperf3", 4, W, V, MIDDLE, loss="lossy"),
    Setting("path_loss", HELD, "gridftp", 4, V, W, MIDDLE, loss="less lossy"),
    Setting("path_congestion", OPEN, "iperf3", 4, W, V, MIDDLE, other="udp"),
    Setting("path_congestion", HELD, "gridftp", 4, W, V, MIDDLE, other="tcp"),
    Setting("none", OPEN, "iperf3", 6, W, V, LARGE, runs=25),
    Setting("none", OPEN, "gridftp", 6, W, V, LARGE, other="busy_processor", runs=25),
    Setting("none", HELD, "gridftp", 8, V, W, LARGE, runs=25),
    Setting("none", HELD, "iperf3", 8, W, IDC, LARGE, other="busy_disk", runs=25),
    Setting("streams", FRESH, "iperf3", 1, V, W, LONG),
    Setting("sender_window", FRESH, "gridftp", 2, W, V, MIDDLE, {W: Limits(send_buffer=40_000)}),
    Setting("receiver_window", FRESH, "iperf3", 2, V, W, MIDDLE, {W: Limits(receive_buffer=60_000)}),
    Setting("sender_disk", FRESH, "gridftp", 2, W, V, MIDDLE, {W: Limits(disk_read_bps=LESS_SLOW)}),
    Setting("receiver_disk", FRESH, "gridftp", 2, W, V, MIDDLE, {V: Limits(disk_write_bps=SLOW)}),
    Setting("sender_cpu", FRESH, "scp", 1, W, V, SMALL, {W: Limits(cpu=0.10, load=6)}),
    Setting("receiver_cpu", FRESH, "scp", 1, V, W, SMALL, {W: Limits(cpu=0.10, load=6)}),
    Setting("path_loss", FRESH, "gridftp", 3, V, W, MIDDLE, loss="lossy"),
    Setting("path_congestion", FRESH, "gridftp", 2, W, V, MIDDLE, other="udp"),
    Setting("none", FRESH, "gridftp", 6, V, W, LARGE, other="busy_processor", runs=25),
    Setting("none", FRESH, "iperf3", 7, V, W, LARGE, runs=25),
)
"""Eight transfers of each setting with a cause, hence 24 of each cause, and 150 of none. The fresh ones were added after the first report on
those that were held back."""


class Others:
    """What happens beside a transfer and is not its own."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    @contextmanager
    def beside(self, name: str, setting: Setting) -> Iterator[None]:
        """Runs the method with a name, from before the transfer until after it."""
        processes = getattr(self, name)(setting) if name else []
        if processes:
            time.sleep(1.5)
        try:
            yield
        finally:
            for process in reversed(processes):
                process.terminate()
                process.wait()
            if OTHER.exists():
                OTHER.rmdir()

    def udp(self, _: Setting) -> list[subprocess.Popen[bytes]]:
        """60 Mbit/s of UDP over the same path, between hosts that report nothing of it."""
        return self.cross(["-u", "-b", "60M", "-l", "1400"])

    def tcp(self, _: Setting) -> list[subprocess.Popen[bytes]]:
        """Twelve TCP connections over the same path."""
        return self.cross(["-P", "12"])

    def cross(self, options: Sequence[str]) -> list[subprocess.Popen[bytes]]:
        """Traffic from the host of the daemon to the second receiver."""
        server = self.outside(IDC, ["iperf3", "-s", "-p", str(TEST_PORT)])
        self.lab.wait_listening(IDC, TEST_PORT)
        client = self.outside(DAEMON, ["iperf3", "-c", IDC.address, "-p", str(TEST_PORT), "-t", "600", *options])
        return [server, client]

    def busy_processor(self, _: Setting) -> list[subprocess.Popen[bytes]]:
        """A process that takes all time that nobody else wants."""
        return [self.outside(V, ["chrt", "--idle", "0", "sh", "-c", "while :; do :; done"])]

    def busy_disk(self, setting: Setting) -> list[subprocess.Popen[bytes]]:
        """Reads that keep the sender's disk busy: each waits for the disk below, whose rate is limited for them alone."""
        OTHER.mkdir(exist_ok=True)
        below = self.lab.folder.stat().st_dev
        (OTHER / "blkio.throttle.read_bps_device").write_text(f"{os.major(below)}:{os.minor(below)} 1000000")
        # Not that of the transfer, which would wait for the same pages.
        file = self.lab.file(setting.src, LARGE + MIDDLE)
        words = ["sh", "-c", f'echo $$ > {OTHER}/tasks; exec dd if={file} of=/dev/null bs=64k iflag=direct status=none']
        return [subprocess.Popen(words, stdin=subprocess.DEVNULL)]

    @staticmethod
    def outside(host: Host, words: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a program on a host, outside its control groups."""
        return subprocess.Popen(["ip", "netns", "exec", host.namespace, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def transfer(lab: Lab, setting: Setting) -> float:
    """Run one transfer. Return its throughput in bit/s."""
    match setting.application:
        case "iperf3":
            return lab.iperf3(setting.src, setting.dst, setting.size, setting.streams, setting.options)
        case "scp":
            return lab.scp(setting.src, setting.dst, setting.size)
        case _:
            return lab.gridftp(setting.src, setting.dst, setting.size, setting.streams)


def test(lab: Lab, setting: Setting) -> dict[str, float]:
    """Run the test that an operator would run between the hosts: from memory to memory, with as many streams."""
    server = lab.start(setting.dst, ["iperf3", "-s", "-1", "-p", str(TEST_PORT)], "test.log")
    lab.wait_listening(setting.dst, TEST_PORT)
    words = ["iperf3", "-c", setting.dst.address, "-p", str(TEST_PORT), "-t", str(TEST_SECONDS), "-P", str(setting.streams), "-J"]
    done = subprocess.run(lab.inside(setting.src, words), capture_output=True, text=True, check=False)
    server.wait(60)
    found = json.loads(done.stdout)
    if "error" in found:
        sys.exit(f"iperf3 failed: {found['error']}")
    found = found["end"]
    sent = found["sum_sent"]
    return {"bps": found["sum_received"]["bits_per_second"], "loss": sent["retransmits"] * 1448 / max(sent["bytes"], 1)}


def run_setting(lab: Lab, setting: Setting, with_test: bool) -> dict[str, Any]:
    """Run a transfer under its limits, and the operator's test after it if asked for."""
    for host, limits in setting.limits.items():
        lab.limit(host, limits)
    loads = [load for host, limits in setting.limits.items() for load in lab.load(host, limits.load)]
    try:
        with Others(lab).beside(setting.other, setting):
            start = time.time_ns() // 1000
            rate = transfer(lab, setting)
            run = {"bps": rate, "span_us": [start, time.time_ns() // 1000]}
            return run | ({"test": test(lab, setting)} if with_test else {})
    finally:
        for load in loads:
            load.kill()
            load.wait()
        for host in setting.limits:
            lab.limit(host, Limits())


def run_phase(options: argparse.Namespace, phase: str, path: Path) -> None:
    """Run what is missing of one phase, in rounds: one transfer of each setting that has any left."""
    runs = read(path)
    done = Counter(run["setting"] for run in runs)
    if all(done[number] >= setting.runs for number, setting in enumerate(SETTINGS) if setting.loss == phase):
        return
    network = options.output / f"{phase.replace(' ', '-')}.toml"
    text = (TABLE_5_1 / "network.toml").read_text()
    network.write_text(text.replace('["0.01%", "0.01%"]', f'["{LOSS[phase]}", "{LOSS[phase]}"]'))
    with Lab(options.thalweg, network, options.output / "lab", (W, V, IDC), DAEMON, BUFFER) as lab:
        for host in (W, V, IDC):
            lab.start_servers(host)
        time.sleep(2)
        before = lab.report()
        # Settings with more transfers have them spread over all rounds.
        rounds = max(setting.runs for setting in SETTINGS)
        for index in range(rounds):
            for number, setting in enumerate(SETTINGS):
                due = (index + 1) * setting.runs // rounds
                if setting.loss != phase or done[number] >= due:
                    continue
                run = {"setting": number, **run_setting(lab, setting, done[number] % 4 == 0)}
                done[number] += 1
                print(f"{phase}, round {index}: {setting.cause}, {setting.application}: {run['bps'] / 1e6:.1f} Mbit/s", flush=True)
                with path.open("a") as file:
                    file.write(json.dumps(run) + "\n")
        after = lab.report()
        with (options.output / "slots.jsonl").open("a") as file:
            file.write(json.dumps({"phase": phase} | {key: after[key] - before[key] for key in after}) + "\n")
        # The agents report every 5 s.
        time.sleep(8)


def read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file; none if there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# --- Report


def evidence(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the evidence and the verdict of each transfer in the store."""
    import thalweg

    transfers = thalweg.open(options.output / "lab" / "store").transfers
    facts = {row["transfer"]: row for row in transfers.stored.engine.to_pyarrow(transfers.evidence.transfers.table).to_pylist()}
    return [facts[row["transfer"]] | row for row in transfers.verdicts.to_pyarrow().to_pylist()]


def by_tcp_info(row: dict[str, Any], path_bps: float) -> str:
    """Return the cause that the sender's TCP_INFO alone shows, by the usual reading of its accounts."""
    seen = max(row["send_connection_us"], 1)
    if row["rate_bps"] >= 0.85 * path_bps:
        return "none"
    if row["send_receive_window_limited_us"] >= seen / 2:
        return "receiver_window"
    if row["send_send_buffer_limited_us"] >= seen / 2:
        return "sender_window"
    if row["send_busy_us"] <= seen / 2 or row["send_starved_us"] + row["send_buffer_full_us"] >= seen / 2:
        return "sender_disk"
    if row["send_retransmitted_segments"] < 1e-3 * row["send_sent_segments"]:
        return "streams"
    inflated = row["send_rtt_sum_us"] >= 1.25 * row["send_min_rtt_us"] * max(row["send_rtt_samples"], 1)
    return "path_congestion" if inflated else "path_loss"


def by_test(setting: Setting, rate: float, found: dict[str, float], path_bps: float) -> str:
    """Return the cause that an operator would suspect from a test between the hosts. It tells the network from the hosts; among the causes
    in the hosts, and among windows, it has to guess."""
    if rate >= 0.85 * path_bps:
        return "none"
    if found["bps"] >= 0.85 * path_bps:
        return "receiver_disk"
    if found["loss"] >= 1e-3:
        return "path_loss"
    return "streams" if setting.streams == 1 else "receiver_window"


def judge(options: argparse.Namespace, runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each run: its cause, and what the program and the two alternatives say."""
    rows = evidence(options)
    unlimited = [run["bps"] for run in runs if SETTINGS[run["setting"]].cause == "none"]
    path_bps = statistics.median(unlimited)
    tests: dict[int, dict[str, float]] = {}
    found = []
    for run in runs:
        setting = SETTINGS[run["setting"]]
        tests[run["setting"]] = run.get("test") or tests[run["setting"]]
        low, high = run["span_us"]
        # The middle: the log of iperf3 has whole seconds for the start.
        own = [row for row in rows if row["application"] == setting.application and low <= (row["start_us"] + row["end_us"]) / 2 <= high]
        if setting.part not in options.parts:
            continue
        row = own[0] if own else None
        found.append(
            {
                "setting": run["setting"],
                "cause": setting.cause,
                "part": setting.part,
                "bps": run["bps"],
                "transfer": row["transfer"] if row else "",
                "verdict": row["cause"] if row else "missing",
                "confidence": row["confidence"] if row else 0.0,
                "tcp_info": by_tcp_info(row, path_bps) if row else "missing",
                "test": by_test(setting, run["bps"], tests[run["setting"]], path_bps),
            }
        )
    return found


def matrix(rows: list[dict[str, Any]], column: str) -> list[str]:
    """Return a table: a row for each cause, a column for each verdict."""
    verdicts = [name for name in (*CAUSES, "not_enough_data", "missing") if any(row[column] == name for row in rows)]
    lines = [f"| cause | transfers | {' | '.join(verdicts)} |", f"| --- | ---: |{' ---: |' * len(verdicts)}"]
    for cause in CAUSES:
        own = Counter(row[column] for row in rows if row["cause"] == cause)
        lines.append(f"| {cause} | {own.total()} | {' | '.join(str(own[name] or '') for name in verdicts)} |")
    return lines


def interval(count: int, of: int) -> tuple[float, float]:
    """Return Wilson's interval with 95 %."""
    z, p = 1.96, count / of
    centre, half = p + z * z / (2 * of), z * sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    return (centre - half) / (1 + z * z / of), (centre + half) / (1 + z * z / of)


def claims(rows: list[dict[str, Any]], column: str) -> list[dict[str, Any]]:
    """Return the shares of correct causes and false alarms."""
    caused = [row for row in rows if row["cause"] != "none"]
    others = [row for row in rows if row["cause"] == "none"]
    right = sum(row[column] == row["cause"] for row in caused)
    alarms = sum(row[column] in CAUSES and row[column] != "none" for row in others)
    return [
        {"claim": "correct causes", "bound": f"at least {CORRECT:.0%}", "count": right, "of": len(caused), "passed": right >= CORRECT * len(caused)},
        {
            "claim": "false alarms",
            "bound": f"at most {FALSE_ALARMS:.0%}",
            "count": alarms,
            "of": len(others),
            "passed": alarms <= FALSE_ALARMS * len(others),
        },
    ]


def report(options: argparse.Namespace, runs: list[dict[str, Any]]) -> None:
    """Write result.json and RESULT.md."""
    rows = judge(options, runs)
    slots = read(options.output / "slots.jsonl")
    parts = {f"{part} settings": [row for row in rows if row["part"] == part] for part in options.parts}
    parts = {name: part for name, part in parts.items() if part}
    if len(parts) > 1:
        parts = {"all settings": rows} | parts
    lines = ["# Causes of transfers in a lab", "", f"{date.today()}. {len(rows)} transfers.", ""]
    lines += ["| claim | bounds | here | measured | 95 % |", "| --- | --- | --- | ---: | --- |"]
    for name, part in parts.items():
        for it in claims(part, "verdict"):
            low, high = interval(it["count"], it["of"])
            here = "pass" if it["passed"] else "**fail**"
            lines.append(f"| {it['claim']}, {name} | {it['bound']} | {here} | {it['count']} of {it['of']} | {low:.1%} to {high:.1%} |")
    for title, column in (("Verdicts", "verdict"), ("TCP_INFO of the sender alone", "tcp_info"), ("An iperf3 test between the hosts", "test")):
        lines += ["", f"## {title}", "", *matrix(rows, column)]
        if column != "verdict":
            lines += ["", *(f"{it['claim']}: {it['count']} of {it['of']}." for it in claims(rows, column))]
    lines += ["", "## Settings", "", "| setting | cause | application | streams | hosts | runs | median, Mbit/s | correct |"]
    lines += ["| ---: | --- | --- | ---: | --- | ---: | ---: | ---: |"]
    for number, setting in enumerate(SETTINGS):
        own = [row for row in rows if row["setting"] == number]
        if own:
            median = statistics.median(row["bps"] for row in own) / 1e6
            right = sum(row["verdict"] == row["cause"] for row in own)
            name = f"{setting.cause}{', ' + setting.other.replace('_', ' ') if setting.other else ''}{', ' + setting.part if setting.part != OPEN else ''}"
            ends = f"{setting.src.name} to {setting.dst.name}"
            lines.append(f"| {number} | {name} | {setting.application} | {setting.streams} | {ends} | {len(own)} | {median:.1f} | {right} |")
    late, total = (sum(row[key] for row in slots) for key in ("late_slots", "slots"))
    lines += ["", f"Slots of the emulator: {total:,}, {late / max(total, 1):.3%} of them late.", ""]
    (options.output / "RESULT.md").write_text("\n".join(lines))
    made = datetime.now(UTC).isoformat(timespec="seconds")
    (options.output / "result.json").write_text(json.dumps({"made": made, "slots": slots, "transfers": rows}, indent=1) + "\n")
    print("\n".join(lines))


def main() -> None:
    """Run what is missing, or report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="directory for results, logs and the store")
    parser.add_argument("--thalweg", default="target/release/thalweg", help="the program [default: %(default)s]")
    parser.add_argument("--report", action="store_true", help="judge what has run")
    parser.add_argument("--held-back", action="store_true", help="with --report: judge the settings that were held back too")
    parser.add_argument("--fresh", action="store_true", help="with --report: judge the fresh settings too")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    options.output = options.output.resolve()
    options.output.mkdir(parents=True, exist_ok=True)
    options.parts = [part for part, wanted in zip(PARTS, (True, options.held_back, options.fresh), strict=True) if wanted]
    options.thalweg = str(Path(options.thalweg).resolve())
    path = options.output / "runs.jsonl"
    if options.report:
        report(options, read(path))
        return
    for phase in LOSS:
        run_phase(options, phase, path)


if __name__ == "__main__":
    main()
