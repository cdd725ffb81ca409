"""Repeat table 5.1 and figure 5.3 of the heavy-hitter dissertation in a lab: six settings of transfers, and their diagnosis. Needs root.

    python experiments/cftms-table-5-1/run.py --output DIR

Runs of the settings alternate. Each is appended to DIR/runs.jsonl; a later call with the same DIR continues. `--show-limits` first shows
for each limit that it alone slows a copy. At the end the results are in DIR: result.json, RESULT.md, plot.svg.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from transfer_lab import Host, Lab, Limits

HERE = Path(__file__).resolve().parent

W, DAEMON, V, IDC = Host(0), Host(1), Host(2), Host(3)
RTT_S, RATE_BPS = 0.0335, 100e6
BUFFER = round(4 * RATE_BPS * RTT_S / 8)
"""Four products of rate and round-trip time, as in the paper."""

NO_LIMITS = Limits()
SLOW_DISK = Limits(disk_write_bps=24_000_000)
"""A quarter of the path. The paper's disk took 0.26 of it."""

BUSY = Limits(cpu=0.10, load=8)
"""Processes that compute share the quota of the host with the transfer, as with `stress -c 100`."""

FAST, SLOW, SSH = 64 << 20, 24 << 20, 12 << 20
"""Bytes of a transfer: each lasts at least five seconds."""


@dataclass(frozen=True)
class Setting:
    """A row of table 5.1."""

    number: int
    application: str
    streams: int
    src: Host
    dst: Host
    limits: tuple[Host, Limits] | None
    size: int
    paper: tuple[float, float, float, float, float, float]
    """Mbit/s: minimum, first quartile, median, mean, maximum; coefficient of variation."""
    cause: str
    """The cause that the settings give it: the program does not see it."""


SETTINGS = (
    Setting(1, "iperf3", 1, W, V, None, FAST, (364.6, 589.1, 629.7, 614.6, 743, 0.121), "streams"),
    Setting(2, "iperf3", 1, W, IDC, (IDC, SLOW_DISK), SLOW, (137.5, 200, 214.4, 210.4, 239.6, 0.096), "receiver_disk"),
    Setting(3, "iperf3", 4, W, V, None, FAST, (577.9, 935.2, 940.9, 929.5, 953.7, 0.061), "none"),
    Setting(4, "iperf3", 4, W, IDC, (IDC, SLOW_DISK), SLOW, (113.2, 226, 258, 245.6, 282.5, 0.137), "receiver_disk"),
    Setting(5, "scp", 1, V, W, (V, BUSY), SSH, (111.4, 120.7, 126.6, 127.2, 151, 0.071), "sender_cpu"),
    Setting(6, "gridftp", 4, W, V, (V, BUSY), FAST, (461.3, 534.5, 558.3, 565, 736, 0.099), "receiver_cpu"),
)

# Fixed before the first run. Ratios of medians and of coefficients of variation; the paper's value is in the text.
BOUNDS = {
    "median of four streams against one (3 / 1; paper 1.49)": (1.2, 2.0),
    "variation of one stream against four (1 / 3; paper 1.98)": (1.3, 10.0),
    "four streams to the slow disk against one (4 / 2; paper 1.20)": (0.8, 1.3),
    "slow disk against fast (2 / 1; paper 0.34)": (0.2, 0.6),
    "busy receiver against idle (6 / 3; paper 0.59)": (0.3, 0.85),
    "share of the points of setting 3 within the range of setting 1 (paper 0.025)": (0.0, 0.1),
}


def transfer(lab: Lab, setting: Setting) -> float:
    """Run a setting once. Return the throughput in bit/s."""
    loads: list[subprocess.Popen[bytes]] = []
    if setting.limits is not None:
        host, limits = setting.limits
        lab.limit(host, limits)
        loads = lab.load(host, limits.load)
    try:
        match setting.application:
            case "iperf3":
                return lab.iperf3(setting.src, setting.dst, setting.size, setting.streams)
            case "scp":
                return lab.scp(setting.src, setting.dst, setting.size)
            case _:
                return lab.gridftp(setting.src, setting.dst, setting.size, setting.streams)
    finally:
        for load in loads:
            load.kill()
            load.wait()
        if setting.limits is not None:
            lab.limit(setting.limits[0], NO_LIMITS)


def summary(rates: list[float]) -> dict[str, float]:
    """Return the columns of table 5.1, in Mbit/s."""
    mega = sorted(rate / 1e6 for rate in rates)
    quartile = statistics.quantiles(mega, n=4, method="inclusive")[0] if len(mega) > 1 else mega[0]
    mean = statistics.fmean(mega)
    deviation = statistics.stdev(mega) if len(mega) > 1 else 0.0
    found = {"min": mega[0], "p25": quartile, "median": statistics.median(mega), "mean": mean, "max": mega[-1]}
    return {**found, "cov": deviation / mean}


def claims(rates: dict[int, list[float]]) -> list[dict[str, Any]]:
    """Compare what was measured with the bounds."""
    of = {number: summary(values) for number, values in rates.items()}
    low, high = min(rates[1]), max(rates[1])
    values = (
        of[3]["median"] / of[1]["median"],
        of[1]["cov"] / of[3]["cov"],
        of[4]["median"] / of[2]["median"],
        of[2]["median"] / of[1]["median"],
        of[6]["median"] / of[3]["median"],
        sum(low <= rate <= high for rate in rates[3]) / len(rates[3]),
    )
    rows = []
    for (name, (lower, upper)), value in zip(BOUNDS.items(), values, strict=True):
        rows.append({"claim": name, "bounds": [lower, upper], "value": value, "passed": lower <= value <= upper})
    return rows


def diagnose(options: argparse.Namespace, runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Let the program explain every transfer, and compare with the settings."""
    store = options.output / "lab" / "store"
    done = subprocess.run([options.thalweg, "transfers", "list", str(store), "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"thalweg transfers list: {done.stderr}")
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    by_number = {setting.number: setting for setting in SETTINGS}
    rows = []
    for number, setting in by_number.items():
        spans = [run["span_us"] for run in runs if run["setting"] == number]
        own = [it for it in verdicts if any(low <= middle_us(it) <= high for low, high in spans)]
        right = sum(it["cause"] == setting.cause for it in own)
        others = Counter(it["cause"] for it in own if it["cause"] != setting.cause)
        rows.append({"setting": number, "cause": setting.cause, "transfers": len(own), "runs": len(spans), "right": right, "others": others})
    return rows


def middle_us(verdict: dict[str, str]) -> int:
    """Return the middle of a transfer, in microseconds since 1970. The log of iperf3 has whole seconds for the start."""
    start, end = (datetime.fromisoformat(verdict[name]).timestamp() for name in ("start", "end"))
    return round((start + end) * 500_000)


def show_limits(lab: Lab) -> list[dict[str, Any]]:
    """Show for each limit that it alone slows a copy."""
    window = round(RATE_BPS * RTT_S / 8 / 4)
    cases = {
        "no limit, iperf3": (V, NO_LIMITS),
        "no limit, GridFTP": (V, Limits(cpu=1.0)),
        "receiver's disk": (V, SLOW_DISK),
        "sender's disk": (W, Limits(disk_read_bps=24_000_000)),
        "receiver's processor": (V, BUSY),
        "sender's processor": (W, BUSY),
        "receiver's window": (V, Limits(receive_buffer=window)),
        "sender's window": (W, Limits(send_buffer=window)),
    }
    rows = []
    for name, (host, limits) in cases.items():
        application = "gridftp" if limits.cpu is not None or limits.disk_read_bps is not None else "iperf3"
        setting = Setting(0, application, 4, W, V, (host, limits), SLOW, (0, 0, 0, 0, 0, 0), "")
        rate = transfer(lab, setting)
        print(f"{name}: {rate / 1e6:.1f} Mbit/s", flush=True)
        rows.append({"limit": name, "bps": rate})
    return rows


def write(found: dict[str, Any], rates: dict[int, list[float]], output: Path) -> None:
    """Write result.json, RESULT.md and the plot."""
    (output / "result.json").write_text(json.dumps(found, indent=1) + "\n")
    lines = [
        "# Throughput of six settings, and its causes",
        "",
        f"{date.today()}. Mbit/s; the paper's values, of links with ten times the rate, are in parentheses.",
        "",
        "| setting | runs | min | 25 % | median | mean | max | cov |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for setting in SETTINGS:
        own = summary(rates[setting.number])
        name = f"{setting.number}: {setting.application}, {setting.streams} {'stream' if setting.streams == 1 else 'streams'}, {setting.src.name} to {setting.dst.name}"
        cells = [f"{value:.1f} ({paper:g})" for value, paper in zip(list(own.values())[:5], setting.paper[:5], strict=True)]
        lines.append(f"| {name} | {len(rates[setting.number])} | {' | '.join(cells)} | {own['cov']:.3f} ({setting.paper[5]:g}) |")
    lines += ["", "| claim | bounds | here | measured |", "| --- | --- | --- | ---: |"]
    for it in found["claims"]:
        lower, upper = it["bounds"]
        lines.append(f"| {it['claim']} | {lower:g} to {upper:g} | {'pass' if it['passed'] else '**fail**'} | {it['value']:.3f} |")
    lines += ["", "| setting | cause | transfers | verdicts with this cause | other verdicts |", "| --- | --- | ---: | ---: | --- |"]
    for it in found["diagnosis"]:
        others = ", ".join(f"{count} {name}" for name, count in it["others"].items())
        lines.append(f"| {it['setting']} | {it['cause']} | {it['transfers']} | {it['right']} | {others} |")
    late = found["slots"]["late_slots"] / max(found["slots"]["slots"], 1)
    lines += ["", f"Slots of the emulator: {found['slots']['slots']:,}, {late:.3%} of them late."]
    (output / "RESULT.md").write_text("\n".join([*lines, "", "![plot](plot.svg)", ""]))
    style = {"svg.fonttype": "none", "svg.hashsalt": "thalweg", "axes.spines.top": False, "axes.spines.right": False}
    with plt.rc_context(style):
        figure, panel = plt.subplots(figsize=(6, 3.4), layout="constrained")
        bins = [rate / 2 for rate in range(60, 200)]
        for number, colour, label in ((1, "#d55e00", "one stream"), (3, "#0072b2", "four streams")):
            panel.hist([rate / 1e6 for rate in rates[number]], bins=bins, color=colour, alpha=0.7, label=label)
        panel.set_xlabel("throughput, Mbit/s")
        panel.set_ylabel("runs")
        panel.legend(frameon=False)
        figure.savefig(output / "plot.svg", metadata={"Date": None})
        plt.close(figure)


def main() -> None:
    """Run what is missing, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="directory for results, logs and the store")
    parser.add_argument("--thalweg", default="target/release/thalweg", help="the program [default: %(default)s]")
    parser.add_argument("--runs", type=int, default=40, help="runs of each setting [default: %(default)s]")
    parser.add_argument("--show-limits", action="store_true", help="show what each limit does, and end")
    options = parser.parse_args()
    options.output = options.output.resolve()
    options.output.mkdir(parents=True, exist_ok=True)
    options.thalweg = str(Path(options.thalweg).resolve())
    path = options.output / "runs.jsonl"
    runs = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(run["setting"], run["run"]) for run in runs}
    missing = [(setting, number) for number in range(options.runs) for setting in SETTINGS if (setting.number, number) not in done]
    if missing or options.show_limits:
        with Lab(options.thalweg, HERE / "network.toml", options.output / "lab", (W, V, IDC), DAEMON, BUFFER) as lab:
            for host in (W, V, IDC):
                lab.start_servers(host)
            time.sleep(2)
            if options.show_limits:
                (options.output / "limits.json").write_text(json.dumps(show_limits(lab), indent=1) + "\n")
                return
            run_all(lab, missing, options.output)
    report(options, [json.loads(line) for line in path.read_text().splitlines()])


def run_all(lab: Lab, missing: list[tuple[Setting, int]], output: Path) -> None:
    """Run settings, and append each run to runs.jsonl, and the counters of the emulator to slots.jsonl."""
    before = lab.report()
    for setting, number in missing:
        start = time.time_ns() // 1000
        rate = transfer(lab, setting)
        run = {"setting": setting.number, "run": number, "bps": rate, "span_us": [start, time.time_ns() // 1000]}
        print(f"run {number}, setting {setting.number}: {rate / 1e6:.1f} Mbit/s", flush=True)
        with (output / "runs.jsonl").open("a") as file:
            file.write(json.dumps(run) + "\n")
    after = lab.report()
    with (output / "slots.jsonl").open("a") as file:
        file.write(json.dumps({key: after[key] - before[key] for key in after}) + "\n")
    # The agents report every 5 s.
    time.sleep(8)


def report(options: argparse.Namespace, runs: list[dict[str, Any]]) -> None:
    """Compare with the paper, and let the program explain the transfers."""
    parts = [json.loads(line) for line in (options.output / "slots.jsonl").read_text().splitlines()]
    slots = {key: sum(part[key] for part in parts) for key in parts[0]}
    rates = {setting.number: [run["bps"] for run in runs if run["setting"] == setting.number] for setting in SETTINGS}
    found = {"claims": claims(rates), "diagnosis": diagnose(options, runs), "slots": slots, "runs": runs}
    write(found, rates, options.output)
    print((options.output / "RESULT.md").read_text())


if __name__ == "__main__":
    main()
