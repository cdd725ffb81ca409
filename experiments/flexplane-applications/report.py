"""Results of all runs: completion times relative to DropTail, claims, a plot."""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
from datetime import date
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

BASE = "droptail"
SCHEMES = {BASE: "DropTail", "dctcp": "DCTCP", "hull": "HULL"}
APPLICATIONS = {"sort": "sort", "coordinate_descent": "coordinate descent"}

# Percent. Fixed before the first run; the paper has 4.4 and 29.4 for coordinate descent, and "small improvements" for the sort.
BOUNDS = {
    ("coordinate_descent", "dctcp"): (0.0, 15.0),
    ("coordinate_descent", "hull"): (10.0, 60.0),
    ("sort", "dctcp"): (-10.0, 0.0),
    ("sort", "hull"): (-10.0, 0.0),
}
MAX_LATE_SHARE = 0.001

# Student's t with 1 to 30 degrees of freedom, two-sided 95 %.
T_95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)

Row = dict[str, object]


def interval(values: list[float]) -> tuple[float, float, float]:
    """Return mean, and lower and upper bound of its 95 % confidence interval; infinite with fewer than two values."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, -math.inf, math.inf
    t = T_95[len(values) - 2] if len(values) - 2 < len(T_95) else 1.96
    half = t * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def seconds(rows: list[Row], application: str, scheme: str) -> dict[tuple[int, int], float]:
    """Return the completion times of an application with a scheme, by round and run."""
    wanted = [row for row in rows if (row["application"], row["scheme"]) == (application, scheme)]
    return {(row["round"], row["run"]): row["seconds"] for row in wanted}


def difference(rows: list[Row], application: str, scheme: str) -> tuple[float, float, float]:
    """Return the difference to DropTail in percent, with its interval: of the geometric mean of the ratios of runs of a round."""
    base, times = seconds(rows, application, BASE), seconds(rows, application, scheme)
    ratios = [math.log(times[at] / base[at]) for at in sorted(base.keys() & times.keys())]
    if not ratios:
        return math.nan, -math.inf, math.inf
    percent = [100 * (math.exp(value) - 1) if value < 100 else math.inf for value in interval(ratios)]
    return percent[0], percent[1], percent[2]


def measured(rows: list[Row]) -> list[Row]:
    """Return a line for each application and scheme."""
    lines = []
    for application in APPLICATIONS:
        for scheme in SCHEMES:
            times = list(seconds(rows, application, scheme).values())
            if not times:
                continue
            mean, lower, upper = interval(times)
            change, least, most = (0.0, 0.0, 0.0) if scheme == BASE else difference(rows, application, scheme)
            lines.append({
                "application": application,
                "scheme": scheme,
                "runs": len(times),
                "seconds": {"mean": mean, "lower": lower, "upper": upper},
                "difference_percent": {"mean": change, "lower": least, "upper": most},
            })  # fmt: skip
    return lines


def arbiters(rows: list[Row]) -> dict[str, list[dict]]:
    """Return the reports of the arbiters by scheme, one for each cluster."""
    clusters = {(row["scheme"], row["round"]): row["arbiter"] for row in rows}
    return {scheme: [report for (of, _), report in clusters.items() if of == scheme] for scheme in SCHEMES}


def checks(rows: list[Row]) -> list[Row]:
    """Return the claims, with what was measured."""
    claims = []
    for (application, scheme), (lower, upper) in BOUNDS.items():
        mean, least, most = difference(rows, application, scheme)
        name = f"{APPLICATIONS[application]} with {SCHEMES[scheme]} takes {lower:+.0f} to {upper:+.0f} % longer than with DropTail"
        claims.append({"claim": name, "passed": lower <= mean <= upper, "value": f"{mean:+.1f} % ({least:+.1f} to {most:+.1f})"})
    _, least, _ = difference(rows, "coordinate_descent", "hull")
    claims.append({
        "claim": "coordinate descent is slower with HULL: the confidence interval excludes 0",
        "passed": least > 0,
        "value": f"from {least:+.1f} %",
    })  # fmt: skip
    worst = max(report["late_share"] for of_scheme in arbiters(rows).values() for report in of_scheme)
    claims.append({
        "claim": "at most 0.1 % of the timeslots of each cluster are late",
        "passed": worst <= MAX_LATE_SHARE,
        "value": f"{100 * worst:.4f} % in the worst cluster",
    })  # fmt: skip
    return claims


def machine() -> str:
    """Describe this machine."""
    model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), "?")
    memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    return f"{model}, {os.cpu_count()} processors, {memory} GiB, Linux {platform.release()}"


def text(lines: list[Row], rows: list[Row], claims: list[Row], setting: dict[str, object]) -> str:
    """Return the results as Markdown."""
    out = [
        "# Applications over the real-time emulation",
        "",
        f"{date.today()}, {machine()}.",
        "",
        f"{setting['what']}, packets with {setting['overhead']} of overhead, timeslots late after {setting['late_after']}. "
        f"95 % confidence intervals. {setting['discarded_runs']} runs of clusters with too many late timeslots were discarded.",
        "",
        "| application | scheme | runs | completion time, s | difference to DropTail |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for line in lines:
        time, change = line["seconds"], line["difference_percent"]
        against = "-" if line["scheme"] == BASE else f"{change['mean']:+.1f} % ({change['lower']:+.1f} to {change['upper']:+.1f})"
        out.append(
            f"| {APPLICATIONS[line['application']]} | {SCHEMES[line['scheme']]} | {line['runs']} | "
            f"{time['mean']:.2f} ({time['lower']:.2f} to {time['upper']:.2f}) | {against} |"
        )
    out += [
        "",
        "| scheme | valid clusters | late timeslots | worst cluster | longest delay of a timeslot | packets | marked | dropped |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for scheme, reports in arbiters(rows).items():
        if not reports:
            continue
        late = sum(it["late_slots"] + it["skipped_slots"] for it in reports) / sum(it["slots"] + it["skipped_slots"] for it in reports)
        total = {key: sum(it["packets"][key] for it in reports) for key in ("delivered", "marked", "dropped")}
        out.append(
            f"| {SCHEMES[scheme]} | {sum(it['valid'] for it in reports)} of {len(reports)} | {100 * late:.4f} % | "
            f"{100 * max(it['late_share'] for it in reports):.4f} % | {max(it['worst_delay_ns'] for it in reports) / 1e6:.2f} ms | "
            f"{total['delivered']:,} | {total['marked']:,} | {total['dropped']:,} |"
        )
    out += ["", "## Claims", "", "| claim | here | measured |", "| --- | ---: | ---: |"]
    out += [f"| {it['claim']} | {'pass' if it['passed'] else '**fail**'} | {it['value']} |" for it in claims]
    return "\n".join([*out, "", "![plot](plot.svg)", ""])


def plot(rows: list[Row], path: Path) -> None:
    """Plot the completion times of all runs relative to the mean of DropTail, with the mean of each scheme."""
    style = {"svg.fonttype": "none", "svg.hashsalt": "thalweg", "axes.spines.top": False, "axes.spines.right": False}
    colours = ("#0072b2", "#d55e00", "#009e73")
    with plt.rc_context(style):
        figure, panels = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True, layout="constrained")
        for panel, (application, name) in zip(panels, APPLICATIONS.items(), strict=True):
            base = statistics.fmean(seconds(rows, application, BASE).values())
            for at, (scheme, colour) in enumerate(zip(SCHEMES, colours, strict=True)):
                values = [100 * (it / base - 1) for it in seconds(rows, application, scheme).values()]
                if not values:
                    continue
                mean, lower, upper = interval(values)
                places = [at - 0.2 + 0.1 * (number % 3) for number in range(len(values))]
                panel.plot(places, values, "o", color=colour, alpha=0.45, markersize=4)
                if math.isfinite(lower):
                    panel.errorbar(at + 0.2, mean, [[mean - lower], [upper - mean]], fmt="s", color=colour, capsize=4)
            panel.axhline(0, color="#8a8a8a", linewidth=0.8)
            panel.set_title(name)
            panel.set_xticks(range(len(SCHEMES)), SCHEMES.values())
        panels[0].set_ylabel("completion time against DropTail, %")
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def write(rows: list[Row], output: Path, setting: dict[str, object]) -> None:
    """Write all results."""
    path = output / "discarded.jsonl"
    discarded = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    setting = setting | {"discarded_runs": len(discarded)}
    lines, claims = measured(rows), checks(rows)
    result = {"setting": setting, "measured": lines, "claims": claims, "arbiters": arbiters(rows), "runs": rows}
    (output / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    (output / "RESULT.md").write_text(text(lines, rows, claims, setting))
    plot(rows, output / "plot.svg")
