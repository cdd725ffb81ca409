"""Clusters of rates by combination of static parameters (the dissertation, section 5.3).

If static parameters dominate, the rates of each combination vary little, and each combination is a cluster. The median of the best cluster
of a path is what the users of the others can aspire to. Clusters should not overlap; the overlap of two is the share of the better one's
points within the range of the lower one (Figure 5.3: 1 of 40).

A combination is narrow if its coefficient of variation is at most `NARROW_COV`. A path is wide if more than half of its
transfers are in combinations that are not: other parameters dominate there, and the model describes the rates (`model`).
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import ibis
import pandas as pd
import pyarrow as pa

from ..dataset import Dataset
from ..statistics import summary
from .parameters import STATIC
from .peers import PATH

NARROW_COV = 0.2
"""Largest coefficient of variation of a narrow cluster. Table 5.1 has 0.061 to 0.137 over a day on a shared path, with and without load
on the processors. Half as much again as its largest leaves room for busier paths; a loaded host or a congested path is far above."""

MIN_MEMBERS = 5
"""Minimum number of transfers of a cluster that others can aspire to."""

SEPARATE = 0.1
"""Largest overlap of separate clusters: four times that of Figure 5.3, one point of ten."""

TABLE = ("min", "p25", "p50", "mean", "max", "cov")
"""Statistics of Table 5.1."""


def clusters(transfers: Dataset) -> pd.DataFrame:
    """Returns each combination of each path, the best of a path first.

    Args:
        transfers: With the columns of `parameters.with_parameters` and of `PATH`. Failed transfers and those without a rate are left out.

    Returns:
        `PATH`, `combination`, the columns of `STATIC`, `count`, the statistics of `TABLE` (bit/s; `cov` without unit), `best`
        (whether it is the best of its path with at least `MIN_MEMBERS`), `overlap` (share of the best cluster's points within its range)
        and `narrow`.
    """
    keys = [*PATH, "combination"]
    rates = transfers.filter((transfers.table["rate_bps"] > 0) & (transfers.table["error"] == ""))
    rates = rates.derive(rates.table.select(*keys, *STATIC, "rate_bps")).materialised()
    found = summary(rates, "rate_bps", keys).merge(_variation(rates, keys), on=keys)
    found["narrow"] = found["cov"] <= NARROW_COV
    found = found.merge(_parameters(rates, keys), on=keys)
    found = found.sort_values([*PATH, "p50", "combination"], ascending=[True, True, False, True], ignore_index=True)
    eligible = found[found["count"] >= MIN_MEMBERS]
    found["best"] = False
    found.loc[eligible.groupby(PATH, sort=False).head(1).index, "best"] = True
    found = found.merge(_overlaps(rates, found), on=keys, how="left")
    return found[[*keys, *(name for name in STATIC), "count", *TABLE, "best", "overlap", "narrow"]]


def wide_paths(clusters: pd.DataFrame) -> set[tuple[str, str]]:
    """Returns the paths on which most transfers are in combinations that are not narrow."""
    found = set()
    for path, of_path in clusters[clusters["count"] >= MIN_MEMBERS].groupby(PATH):
        wide = int(of_path.loc[~of_path["narrow"], "count"].sum())
        if 2 * wide > int(of_path["count"].sum()):
            found.add((str(path[0]), str(path[1])))
    return found


def _variation(rates: Dataset, keys: list[str]) -> pd.DataFrame:
    """Returns the coefficient of variation of each combination, from sums of whole kbit/s and of their squares."""
    kilobits = rates.table.select(*keys, kbps=(rates.table["rate_bps"] - rates.table["rate_bps"] % 1000) / 1000).cast({"kbps": "int64"})
    found = kilobits.group_by(keys).aggregate(
        total=kilobits["kbps"].sum().cast("int64"),
        # A sum of squares can overflow int64.
        squares=(kilobits["kbps"] * kilobits["kbps"]).cast("decimal(38, 0)").sum().cast("string"),
        members=kilobits.count(),
    )
    rows = []
    for row in rates.engine.to_pyarrow(found).to_pylist():
        members, total = int(row["members"]), int(row["total"])
        # In whole numbers: members^2 times the variance of the population.
        spread = members * int(Decimal(row["squares"])) - total * total
        cov = math.sqrt(spread / (members * (members - 1))) / (total / members) if members > 1 and total > 0 else 0.0
        rows.append({name: row[name] for name in keys} | {"cov": cov})
    return pd.DataFrame(rows, columns=[*keys, "cov"])


def _parameters(rates: Dataset, keys: list[str]) -> pd.DataFrame:
    table = rates.table
    found = table.group_by(keys).aggregate(**{name: table[name].max() for name in STATIC})
    return rates.derive(found).to_pyarrow().to_pandas()


def _overlaps(rates: Dataset, found: pd.DataFrame) -> pd.DataFrame:
    """Returns the share of the best cluster's points that lie within the range of each other cluster of the path."""
    best = found.loc[found["best"], [*PATH, "combination"]].rename(columns={"combination": "best_combination"})
    lower = found.loc[~found["best"], [*PATH, "combination", "min", "max"]].merge(best, on=PATH)
    texts = [*PATH, "combination", "best_combination"]
    columns = {f"of_{name}": pa.array(lower[name].tolist(), pa.string()) for name in texts}
    columns |= {name: pa.array([int(value) for value in lower[name]], pa.int64()) for name in ("min", "max")}
    ranges = rates.engine.from_arrow(pa.table(columns)).table
    table = rates.table
    both = table.inner_join(ranges, [*((name, f"of_{name}") for name in PATH), ("combination", "of_best_combination")])
    is_within = (both["rate_bps"] >= both["min"]) & (both["rate_bps"] <= both["max"])
    names = [f"of_{name}" for name in (*PATH, "combination")]
    counted = both.group_by(names).aggregate(within=ibis.ifelse(is_within, 1, 0).sum().cast("int64"), points=both.count())
    rows: list[dict[str, Any]] = rates.engine.to_pyarrow(counted).to_pylist()
    return pd.DataFrame(
        [{name.removeprefix("of_"): row[name] for name in names} | {"overlap": row["within"] / row["points"]} for row in rows],
        columns=[*PATH, "combination", "overlap"],
    )
