"""Cost of a sketch in a DPDK forwarder: `python bench/dpdk_forward.py [--packets N] [--flows N] [--repeat N] [--output PREFIX] [--quick]`.

Runs `thalweg-dpdk-forward` (examples/dpdk-forward) without a sketch, with each sketch at p = 1, 1/16, 1/64, 1/128 and AlwaysLineRate, and with DPDK's
rte_member:

- memory: packets of a trace from memory, as fast as they are forwarded. Only the forwarding is measured. The added time of a row is the median
  of its differences from the run without a sketch in the same repetition. Errors are those of the largest 100 flows. Two sketches are also
  measured without candidates for the largest flows.
- bursts: the same with bursts of 16 to 256 packets, at p = 1/64. A call has a fixed cost, which larger bursts share.
- offered: a second processor offers a fixed rate. A polling forwarder always uses a whole processor, so its use is the share of cycles in bursts
  with packets.
- line rate: 14.88 million packets a second, 10 Gbit/s of the shortest frames, are offered: does one processor keep up?
- af_packet: through two Linux interfaces in a network namespace, as fast as another process sends (root).

Prints tables, and writes them as PREFIX.md and all rows as PREFIX.csv. Needs two processors on which nothing else runs.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BURSTS = [16, 32, 64, 128, 256]
LINE_RATE_PPS = 14_880_952
EAL = "--no-huge --no-shconf -m 1024 --no-pci --no-telemetry --log-level=error"
SAMPLINGS = ["1", "1/16", "1/64", "1/128", "line-rate"]
NAMES = {
    "none": "no sketch",
    "count-min": "Count-Min 5x1024",
    "count-sketch": "Count Sketch 5x1024",
    "k-ary": "K-ary 5x1024",
    "univmon": "UnivMon 16 levels 5x16384",
    "count-min, counters": "Count-Min 5x1024 without candidates",
    "count-sketch, counters": "Count Sketch 5x1024 without candidates",
    "member": "DPDK rte_member 5x1023",
}
FIELDS = [
    "section", "sketch", "sampling", "burst", "repetition", "packets", "ns_per_packet", "added_ns", "packets_per_second", "busy_share", "offered_per_second",
    "offered", "missed", "tx_dropped", "rx_missed", "relative_error", "named", "packets_read", "packets_without_key", "max_inverse_probability",
    "memory_bytes",
]  # fmt: skip


class Case(NamedTuple):
    """A sketch and how it samples."""

    sketch: str
    sampling: str

    def arguments(self, costs: dict[str, tuple[float, float]]) -> list[str]:
        """Returns the options of the forwarder. AlwaysLineRate knows the time of a row at p = 1 and of a sampled row, as far as it was measured."""
        kind, _, counters = self.sketch.partition(", ")
        words = ["--sketch", kind] + (["--top-k", "0"] if counters else [])
        if self.sketch == "univmon":
            words += ["--width", "16384", "--levels", "16"]
        if self.sampling != "line-rate":
            return [*words, "--sampling", self.sampling]
        row_ns, sampled_row_ns = costs.get(self.sketch, (0.0, 0.0))
        known = ["--row-ns", f"{row_ns:.3f}", "--sampled-row-ns", f"{sampled_row_ns:.3f}"] if min(row_ns, sampled_row_ns) > 0 else []
        return [*words, "--mode", "line-rate", *known]


NO_SKETCH = Case("none", "1")
SKETCHES = [Case(sketch, sampling) for sketch in ("count-min", "count-sketch", "k-ary", "univmon") for sampling in SAMPLINGS]
COUNTERS = [Case(f"{sketch}, counters", sampling) for sketch in ("count-min", "count-sketch") for sampling in ("1", "1/64")]
MEMBERS = [Case("member", sampling) for sampling in SAMPLINGS[:4]]


class Bench:
    """The programs, the trace and the rows so far."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.rows: list[dict[str, Any]] = []
        self.costs: dict[str, tuple[float, float]] = {}
        cpus = sorted(os.sched_getaffinity(0))
        self.forwarder_cpu, self.other_cpu = cpus[-1], cpus[0]

    def command(self, arguments: list[str], *, first_cpu: int, second_cpu: int | None = None, vdevs: list[str] | None = None) -> list[str]:
        """Returns the command of a forwarder on these processors."""
        lcores = f"--lcores=0@{first_cpu}" + (f",1@{second_cpu}" if second_cpu is not None else "")
        ports = [f"--vdev={vdev}" for vdev in vdevs or []]
        return [str(self.options.forwarder), lcores, *shlex.split(EAL), *ports, "--", *arguments]

    def run(self, case: Case, arguments: list[str], *, second: bool = False) -> dict[str, Any]:
        """Forwards the trace from memory, and returns the result."""
        words = ["--trace", str(self.options.trace), "--ring", str(self.options.ring), *case.arguments(self.costs), *arguments]
        command = self.command(words, first_cpu=self.forwarder_cpu, second_cpu=self.other_cpu if second else None)
        return json.loads(checked(command))

    def add(self, section: str, case: Case, repetition: int, result: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Remembers a row."""
        row = {**result, **more, "section": section, "sketch": case.sketch, "sampling": case.sampling, "repetition": repetition}
        self.rows.append(row)
        print(f"{section:9} {case.sketch:22} {case.sampling:9} {repetition}  {row.get('ns_per_packet', 0):8.2f} ns", file=sys.stderr)
        return row

    def memory(self) -> None:
        """As fast as packets are forwarded. Rows alternate, so that a slow moment does not hit all repetitions of one."""
        for repetition in range(self.options.repeat):
            alone = self.run(NO_SKETCH, [])["ns_per_packet"]
            self.add("memory", NO_SKETCH, repetition, {"ns_per_packet": alone, "packets_per_second": 1e9 / alone}, added_ns=0.0)
            added: dict[Case, float] = {}
            for case in SKETCHES + COUNTERS + MEMBERS:
                result = self.run(case, ["--exact"] if repetition == 0 else [])
                added[case] = result["ns_per_packet"] - alone
                self.add("memory", case, repetition, result, added_ns=added[case])
                if case.sampling == "1/64":
                    self.costs[case.sketch] = (added[Case(case.sketch, "1")] / 5, added[case] * 64 / 5)

    def bursts(self) -> None:
        """With bursts of several sizes."""
        for repetition in range(self.options.repeat):
            for burst in BURSTS:
                alone = 0.0
                for case in [NO_SKETCH, *(Case(sketch, "1/64") for sketch in ("count-min", "count-sketch", "univmon", "member"))]:
                    result = self.run(case, ["--burst", str(burst)])
                    alone = result["ns_per_packet"] if case == NO_SKETCH else alone
                    self.add("bursts", case, repetition, result, burst=burst, added_ns=result["ns_per_packet"] - alone)

    def offered(self) -> None:
        """At a fixed rate."""
        for case in [NO_SKETCH, *SKETCHES, *MEMBERS]:
            self.add("offered", case, 0, self.run(case, ["--rate", str(self.options.rate)], second=True))

    def line_rate(self) -> None:
        """At 14.88 million packets a second."""
        for case in [NO_SKETCH, *(case for case in SKETCHES + MEMBERS if case.sampling != "1/16")]:
            self.add("line rate", case, 0, self.run(case, ["--rate", str(LINE_RATE_PPS)], second=True))

    def af_packet(self) -> None:
        """Through two interfaces of a network namespace."""
        namespace = f"twdf{os.getpid()}"
        cases = [NO_SKETCH, *(Case(sketch, sampling) for sketch in ("count-min", "count-sketch", "univmon") for sampling in ("1", "1/64", "line-rate"))]
        try:
            set_up_interfaces(namespace)
            for repetition in range(self.options.repeat):
                for case in cases:
                    self.add("af_packet", case, repetition, self.run_between_interfaces(namespace, case))
        finally:
            subprocess.run(["ip", "netns", "delete", namespace], check=False)

    def run_between_interfaces(self, namespace: str, case: Case) -> dict[str, Any]:
        """Forwards from one interface to another what a second process sends; the rate is that of the time in which it sends."""
        seconds = self.options.seconds
        within = ["ip", "netns", "exec", namespace]
        ports = ["net_af_packet0,iface=in", "net_af_packet1,iface=out"]
        forward = self.command([*case.arguments(self.costs), "--duration", str(seconds + 60)], first_cpu=self.forwarder_cpu, vdevs=ports)
        # A loop of the trace ends after the duration: the first packets of it are enough.
        send = self.command(["--trace", str(self.options.short_trace), "--duration", str(seconds)], first_cpu=self.other_cpu, vdevs=["net_af_packet0,iface=gen"])
        forwarder = subprocess.Popen([*within, *forward], stdout=subprocess.PIPE, text=True)
        wait_for_sockets(namespace, len(ports))
        sent = json.loads(checked([*within, *send]))
        time.sleep(0.5)
        forwarder.terminate()
        output, _ = forwarder.communicate(timeout=60)
        result = json.loads(output)
        forwarded, offered = result["packets"] - result["tx_dropped"], sent["packets"] - sent["tx_dropped"]
        return {**result, "packets_per_second": forwarded / sent["seconds"], "offered": offered, "missed": offered - result["packets"]}

    def rows_of(self, section: str) -> dict[Case, list[dict[str, Any]]]:
        """Returns the rows of a section by case, in order."""
        found: dict[Case, list[dict[str, Any]]] = {}
        for row in self.rows:
            if row["section"] == section:
                found.setdefault(Case(row["sketch"], row["sampling"]), []).append(row)
        return found

    def report(self) -> str:
        """Returns the tables as Markdown."""
        parts = [head(self.options)]
        memory, offered, line, packet = (self.rows_of(section) for section in ("memory", "offered", "line rate", "af_packet"))
        if memory:
            parts += ["## From memory, as fast as possible\n", "| sketch | p | ns/packet | added ns | M packets/s | error of the top 100 | named | memory |", "|---|---|---:|---:|---:|---:|---:|---:|"]
            for case, rows in memory.items():
                ns, first = median(rows, "ns_per_packet"), rows[0]
                error, named = ("", "") if case == NO_SKETCH else (f"{100 * first['relative_error']:.1f} %", f"{first['named']}")
                memory_kib = "" if case == NO_SKETCH else f"{first['memory_bytes'] / 1024:.0f} KiB"
                parts.append(f"| {NAMES[case.sketch]} | {case.sampling} | {ns:.2f} | {median(rows, 'added_ns'):.2f} | {1e3 / ns:.1f} | {error} | {named} | {memory_kib} |")
        bursts = self.rows_of("bursts")
        if bursts:
            parts += ["\n## Added ns per packet by the size of a burst, p = 1/64\n", "| sketch | " + " | ".join(map(str, BURSTS)) + " |", "|---|" + "---:|" * len(BURSTS)]
            for case, rows in bursts.items():
                if case != NO_SKETCH:
                    added = [median([row for row in rows if row["burst"] == burst], "added_ns") for burst in BURSTS]
                    parts.append(f"| {NAMES[case.sketch]} | " + " | ".join(f"{ns:.2f}" for ns in added) + " |")
        if offered:
            rate = self.options.rate / 1e6
            parts += [f"\n## At {rate:g} M packets/s\n", "| sketch | p | busy | ns/packet in bursts | less than p = 1 | missed |", "|---|---|---:|---:|---:|---:|"]
            for case, rows in offered.items():
                exact = offered.get(Case(case.sketch, "1"), rows)
                saved = 1 - median(rows, "busy_share") / median(exact, "busy_share")
                parts.append(f"| {NAMES[case.sketch]} | {case.sampling} | {100 * median(rows, 'busy_share'):.1f} % | {median(rows, 'ns_per_packet'):.2f} | {100 * saved:.0f} % | {share(rows)} |")
            parts.append("\nThe paper states up to 45 % less CPU use than the sketch without sampling, in the whole switch.")
        if line:
            parts += ["\n## At 14.88 M packets/s\n", "| sketch | p | busy | missed | largest 1/p |", "|---|---|---:|---:|---:|"]
            for case, rows in line.items():
                parts.append(f"| {NAMES[case.sketch]} | {case.sampling} | {100 * median(rows, 'busy_share'):.1f} % | {share(rows)} | {rows[0]['max_inverse_probability']} |")
        if packet:
            alone = median(packet[NO_SKETCH], "packets_per_second")
            parts += ["\n## Between two Linux interfaces (net_af_packet)\n", "| sketch | p | M packets/s | of no sketch |", "|---|---|---:|---:|"]
            for case, rows in packet.items():
                rate = median(rows, "packets_per_second")
                parts.append(f"| {NAMES[case.sketch]} | {case.sampling} | {rate / 1e6:.3f} | {100 * rate / alone:.1f} % |")
        return "\n".join(parts) + "\n"


def head(options: argparse.Namespace) -> str:
    """Returns the title, the command and the machine."""
    model = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "unknown")
    version = subprocess.run(["pkg-config", "--modversion", "libdpdk"], capture_output=True, text=True, check=False).stdout.strip()
    words = " ".join(shlex.quote(word) for word in sys.argv[1:])
    return (
        f"# A sketch in a DPDK forwarder, {datetime.date.today():%-d %B %Y}\n\n    python bench/dpdk_forward.py {words}\n\n"
        f"{model}, Linux {platform.release()}, DPDK {version}, without huge pages. {options.packets:,} packets of {options.flows:,} flows from "
        f"`thalweg synth`, 5-tuples of IPv4; the forwarder is on one processor. Medians of {options.repeat}.\n"
    )


def median(rows: list[dict[str, Any]], field: str) -> float:
    """Returns the median of a field."""
    return statistics.median(row[field] for row in rows)


def share(rows: list[dict[str, Any]]) -> str:
    """Returns the share of offered packets that found the ring full."""
    missed, offered = (sum(row[field] for row in rows) for field in ("missed", "offered"))
    return f"{100 * missed / offered:.2f} %" if offered else ""


def checked(command: list[str]) -> str:
    """Runs a command and returns its output; ends the program if it fails."""
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"{shlex.join(command)}: {ran.stderr.strip()}")
    return ran.stdout


def wait_for_sockets(namespace: str, count: int) -> None:
    """Waits until packet sockets are open in a namespace."""
    for _ in range(600):
        sockets = checked(["ip", "netns", "exec", namespace, "cat", "/proc/net/packet"]).splitlines()
        if len(sockets) > count:  # the first line is a heading
            time.sleep(0.5)
            return
        time.sleep(0.1)
    sys.exit("waited 60 s until the forwarder opens its interfaces")


def set_up_interfaces(namespace: str) -> None:
    """Makes a namespace with two veth pairs: gen to in, out to sink."""
    checked(["ip", "netns", "add", namespace])
    inside = ["ip", "netns", "exec", namespace]
    checked([*inside, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1"])
    for one, other in (("gen", "in"), ("out", "sink")):
        checked(["ip", "-n", namespace, "link", "add", one, "type", "veth", "peer", "name", other])
        for name in (one, other):
            checked(["ip", "-n", namespace, "link", "set", name, "up"])


def make_trace(options: argparse.Namespace, path: Path, packets: int, flows: int) -> Path:
    """Generates a trace unless it exists."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        words = ["synth", "-n", str(packets), "--flows", str(flows), "--link-type", "ethernet", "--ipv6-share", "0", "-o", str(unfinished)]
        checked([str(options.thalweg), *words])
        unfinished.rename(path)
    return path


def main() -> None:
    """Runs the sections."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--packets", type=int, default=10_000_000, help="packets of the trace (10 million)")
    parser.add_argument("--flows", type=int, default=1_000_000, help="flows of the trace (1 million)")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions from memory and between interfaces (5)")
    parser.add_argument("--rate", type=float, default=2e6, help="packets a second of the section offered (2 million)")
    parser.add_argument("--seconds", type=float, default=5, help="seconds of a run between interfaces (5)")
    parser.add_argument("--ring", type=int, default=4096, help="packets that wait in memory (4096)")
    parser.add_argument("--sections", default="memory,bursts,offered,line_rate,af_packet", help="sections, separated by commas (all)")
    parser.add_argument("--output", type=Path, default=ROOT / f"bench/results/{datetime.date.today()}-dpdk-forward", help="beginning of the names of the results")
    parser.add_argument("--thalweg", type=Path, default=ROOT / "target/release/thalweg", help="the program, for the trace")
    parser.add_argument("--forwarder", type=Path, default=ROOT / "target/dpdk-forward/thalweg-dpdk-forward", help="made by make -C examples/dpdk-forward")
    parser.add_argument("--traces", type=Path, default=ROOT / "target/bench-traces", help="folder for traces")
    parser.add_argument("--quick", action="store_true", help="200,000 packets of 20,000 flows, once")
    options = parser.parse_args()
    if options.quick:
        options.packets, options.flows, options.repeat, options.seconds = 200_000, 20_000, 1, 1
    options.trace = make_trace(options, options.traces / f"dpdk-{options.packets}-{options.flows}.pcap", options.packets, options.flows)
    options.short_trace = make_trace(options, options.traces / "dpdk-200000-20000.pcap", 200_000, 20_000)
    bench = Bench(options)
    for section in options.sections.split(","):
        if section == "af_packet" and os.geteuid() != 0:
            print("af_packet: skipped, needs root", file=sys.stderr)
            continue
        getattr(bench, section)()
    report = bench.report()
    print(report)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.with_name(options.output.name + ".md").write_text(report)
    with options.output.with_name(options.output.name + ".csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(bench.rows)


if __name__ == "__main__":
    main()
