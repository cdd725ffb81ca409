"""Compares planted flowsets with those found by the analysis: number, size, duration, rate, by number of flows.

For each setting and seed `thalweg synth --netflow` writes records as Parquet and the ground truth of its transfers. The package
`thalweg` reconstructs flows and flowsets, and each planted transfer is matched with them. Writes `transfers.csv` (a row per planted
transfer) and `table.csv` (a row per setting and number of flows), and prints the tables of RESULT.md.

A transfer is recovered if exactly one flowset of its two hosts starts within the separation of transfers from its own start, and
has the same number of flows. Sampling one packet in k, independently, gives a size of n packets a relative standard deviation of
sqrt((1 - 1/k) / (n / k)); `covered` is the share of sizes within 1.96 standard deviations, 95 % if the model holds.
"""

from __future__ import annotations

import argparse
import math
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

import thalweg

SETTINGS = {
    "three routers, 1 in 1000": ["--path-routers", "3", "--sampling-interval", "1000"],
    "one router, 1 in 1000": ["--path-routers", "1", "--sampling-interval", "1000"],
    "three routers, every packet": ["--path-routers", "3", "--sampling-interval", "1"],
}
INTERVALS = {"three routers, 1 in 1000": 1000, "one router, 1 in 1000": 1000, "three routers, every packet": 1}
TRANSFERS = ["--flowsets", "500", "--components", "2,3,4,8,16", "--single-flows", "200", "--ordinary", "200", "--chains", "20"]

NEAR_US = 20_000_000
"""Maximum difference between the starts of a found and a planted transfer: less than half the separation of transfers, 30 s, more than
any delay by sampling, and less than the 30 s of a chain, so that chains are evaluated separately."""
WITHIN = 1.96
"""95 % of normal errors are within this many standard deviations."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--thalweg", default="thalweg", help="the thalweg program")
    parser.add_argument("--records", default="600000", help="records per setting and seed")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--engine", default="auto", help="analysis engine")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="output folder")
    arguments = parser.parse_args()
    print(build(arguments))
    print()
    found, chains = [], []
    for setting in SETTINGS:
        for seed in range(1, arguments.seeds + 1):
            with tempfile.TemporaryDirectory() as directory:
                truth = make(arguments, setting, seed, Path(directory))
                span, chain = (flowsets(arguments.engine, Path(directory), rule) for rule in ("span", "chain"))
            found.append(matched(truth, span).assign(setting=setting, seed=seed))
            chains.append({"setting": setting, "seed": seed, **chain_counts(truth, span, chain)})
    transfers = pd.concat(found, ignore_index=True)
    transfers["interval"] = transfers.setting.map(INTERVALS)
    add_errors(transfers)
    table = by_components(transfers)
    columns = ["setting", "seed", "transfer", "kind", "flows", "bytes", "packets", "duration_ns", "rate_bps"]
    columns += ["sets", "found_flows", "found_bytes", "found_duration_ns", "found_rate_bps", "sigma", "size_error"]
    transfers[columns].to_csv(arguments.out / "transfers.csv", index=False, float_format="%.8g")
    table.to_csv(arguments.out / "table.csv", index=False, float_format="%.6g")
    print(markdown(table))
    print()
    print(markdown(pd.DataFrame(chains).groupby("setting", sort=False).sum().drop(columns="seed").reset_index()))


def build(arguments: argparse.Namespace) -> str:
    """What makes the records, and what computes; the program's path tells a debug build from a release."""
    said = subprocess.run([arguments.thalweg, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    with thalweg.connect(arguments.engine) as engine:
        return f"Records by `{shutil.which(arguments.thalweg)}` ({said}), analysed on the engine `{engine.name}`."


def make(arguments: argparse.Namespace, setting: str, seed: int, directory: Path) -> pd.DataFrame:
    """Makes records below `directory`, and returns the truth about transfers."""
    truth = directory / "truth.csv"
    where = ["--parquet", str(directory / "records"), "--truth-transfers", str(truth)]
    how = ["--records", arguments.records, "--seed", str(seed), *SETTINGS[setting], *TRANSFERS]
    subprocess.run([arguments.thalweg, "synth", "--netflow", *where, *how], check=True, stdout=subprocess.DEVNULL)
    return pd.read_csv(truth)


def flowsets(engine: str, directory: Path, rule: str) -> pd.DataFrame:
    """What the analysis finds."""
    with thalweg.connect(engine) as computer:
        analysis = thalweg.analyse(computer.open(directory / "records"), thalweg.Parameters(rule=rule))
        return computer.to_pyarrow(analysis.flowsets.table).to_pandas()


def matched(truth: pd.DataFrame, sets: pd.DataFrame) -> pd.DataFrame:
    """The planted flowsets, single flows and ordinary transfers, each with what was found near its start."""
    planted = truth[truth.kind != "chain"].reset_index(drop=True)
    hosts = ["src", "dst"]
    near = planted.merge(sets, on=hosts, suffixes=("", "_found"))
    near = near[(near.flow_start_us_found - near.flow_start_us).abs() <= NEAR_US]
    counts = near.groupby("transfer").size().rename("sets")
    names = {"flows_found": "found_flows", "bytes_found": "found_bytes"}
    names |= {"duration_ns_found": "found_duration_ns", "rate_bps_found": "found_rate_bps"}
    first = near.sort_values("flow_start_us_found").drop_duplicates("transfer").rename(columns=names)
    rows = planted.join(counts, on="transfer").merge(first[["transfer", *names.values()]], on="transfer", how="left")
    return rows.assign(sets=rows.sets.fillna(0).astype(int))


def chain_counts(truth: pd.DataFrame, span: pd.DataFrame, chain: pd.DataFrame) -> dict[str, int]:
    """Into how many sets each rule divides planted chains."""
    planted = truth[truth.kind == "chain"]

    def sets(found: pd.DataFrame) -> int:
        near = planted.merge(found, on=["src", "dst"], suffixes=("", "_found"))
        since = near.flow_start_us_found - near.flow_start_us
        return int(((since >= -1_000_000) & (since <= 31_000_000)).sum())

    return {"chains": len(planted), "flows": int(planted.flows.sum()), "sets by span": sets(span), "sets by chain": sets(chain)}


def add_errors(transfers: pd.DataFrame) -> None:
    """Relative errors, and the standard deviation that sampling leaves of sizes."""
    share = 1.0 / transfers.interval
    transfers["sigma"] = ((1.0 - share) / (transfers.packets * share)).map(math.sqrt)
    transfers["size_error"] = transfers.found_bytes / transfers.bytes - 1.0
    transfers["duration_error"] = transfers.found_duration_ns / transfers.duration_ns - 1.0
    transfers["rate_error"] = transfers.found_rate_bps / transfers.rate_bps - 1.0


def by_components(transfers: pd.DataFrame) -> pd.DataFrame:
    """The table: what was planted, what was recovered and how well."""
    rows = []
    for setting in SETTINGS:
        of_setting = transfers[transfers.setting == setting]
        rows.extend(row(setting, f"{flows}", of) for flows, of in of_setting[of_setting.kind != "ordinary"].groupby("flows"))
        ordinary = of_setting[of_setting.kind == "ordinary"]
        rows.append(
            {"setting": setting, "flows": "no cheetah", "planted": len(ordinary), "found as flowset": int(ordinary.sets.gt(0).sum())}
        )
    return pd.DataFrame(rows)


def row(setting: str, flows: str, of: pd.DataFrame) -> dict[str, object]:
    """One number of component flows."""
    good = of[(of.sets == 1) & (of.found_flows == of.flows)]
    exact = good.sigma.eq(0)
    within = good.size_error.abs().le(WITHIN * good.sigma) | (exact & good.size_error.eq(0))
    scaled = (good.size_error / good.sigma)[~exact]
    return {
        "setting": setting,
        "flows": flows,
        "planted": len(of),
        "recovered": len(good),
        "sigma expected, %": 100 * math.sqrt((good.sigma**2).mean()),
        "size error, rms %": 100 * math.sqrt((good.size_error**2).mean()),
        "mean of error/sigma": scaled.mean(),
        "sd of error/sigma": scaled.std(),
        "covered, %": 100 * within.mean(),
        "duration error, median %": 100 * good.duration_error.median(),
        "duration error, most s": (good.found_duration_ns - good.duration_ns).abs().max() / 1e9,
        "rate error, median %": 100 * good.rate_error.median(),
        "rate error, 95 % below, %": 100 * good.rate_error.abs().quantile(0.95),
    }


def markdown(table: pd.DataFrame) -> str:
    """As Markdown, numbers to three digits, nothing where there is nothing."""

    def text(value: object) -> str:
        if isinstance(value, float):
            return "" if math.isnan(value) else f"{value:.0f}" if value.is_integer() else f"{value:.3g}"
        return str(value)

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    rows = [line(text(value) for value in values) for values in table.itertuples(index=False)]
    return "\n".join([line(table.columns), line("---" for _ in table.columns), *rows])


if __name__ == "__main__":
    main()
