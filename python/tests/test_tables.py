"""Groups of hosts, and the dissertation's tables of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from test_flowsets import flow

from thalweg import ByAs, ByPrefix, Dataset, Sites, connect
from thalweg.flowsets import flowsets
from thalweg.groups import SiteError
from thalweg.statistics import variability
from thalweg.tables import characteristics, component_counts, single_flows, top_transfers

LAB, OTHER_LAB = "10.1.0.0/16", "10.2.0.0/16"


def as_numbers(source: str, destination: str) -> dict[str, int]:
    return {"src_as": int(source.split(".")[1]), "dst_as": int(destination.split(".")[1])}


@pytest.fixture(scope="module")
def found() -> Any:
    """To and from a lab: a set of two flows each way, one of three away, and a single flow to it."""
    pairs = [("10.2.0.1", "10.1.0.1", 2), ("10.1.0.2", "10.2.0.1", 2), ("10.1.0.3", "10.2.0.1", 3), ("10.2.0.2", "10.1.0.1", 1)]
    rows = [
        flow(0, 8, port=n, src=source, dst=destination, **as_numbers(source, destination))
        for source, destination, flows in pairs
        for n in range(flows)
    ]
    with connect("duckdb") as engine:
        yield flowsets(engine.from_arrow(pa.Table.from_pylist(rows))).materialised()


def by_group(frame: Any) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["group"], row["direction"]): row for row in frame.to_dict("records")}


def test_sets_are_counted_by_their_flows_to_and_from_a_group(found: Dataset) -> None:
    for grouping, name in ((ByAs({1: "Lab 1"}), "Lab 1"), (ByPrefix(16), LAB), (Sites([(LAB, "lab"), (OTHER_LAB, "other")]), "lab")):
        counted = by_group(component_counts(found, grouping))
        to, away = counted[name, "to"], counted[name, "from"]
        assert [to[f"flowsets{column}"] for column in ("_2", "_4", "_other", "")] == [1, 0, 0, 1]
        assert [away[f"flowsets{column}"] for column in ("_2", "_4", "_other", "")] == [1, 0, 1, 2]
        assert (to["dst_hosts"], away["src_hosts"]) == (1, 2)
        single = by_group(single_flows(found, grouping))
        assert single[name, "to"]["flows"] == 1
        assert (name, "from") not in single


def test_sizes_rates_and_durations_have_their_units(found: Dataset) -> None:
    rows = characteristics(found, ByPrefix(16)).to_dict("records")
    to = {row["quantity"]: row for row in rows if (row["group"], row["direction"]) == (LAB, "to")}
    assert [to[quantity]["p50"] for quantity in ("size", "rate", "duration")] == [4e9, 4e9, 8.0]
    assert to["size"]["count"] == 1
    alone = characteristics(found, ByPrefix(16), single=True)
    assert alone[alone["quantity"] == "size"]["max"].tolist() == [2e9, 2e9]


def test_the_longest_prefix_determines_the_site() -> None:
    sites = Sites([("10.0.0.0/8", "net"), ("10.1.0.0/16", "lab"), ("10.1.2.3/32", "host"), ("2001:db8::/32", "six"), ("::/0", "world")])
    asked = ["10.9.9.9", "10.1.9.9", "10.1.2.3", "2001:db8::1", "2a00::1", "192.0.2.1", ""]
    assert [sites.name_of(address) for address in asked] == ["net", "lab", "host", "six", "world", "", ""]


def test_invalid_lines_of_a_site_list_are_named(tmp_path: Path) -> None:
    path = tmp_path / "sites.csv"
    path.write_text("prefix,name\n# ours\n10.1.0.0/16, Lab 1\n\n2001:db8::/32,six\n")
    assert Sites.read(path).name_of("10.1.2.3") == "Lab 1"
    for wrong in ("10.1.0.0/16", "10.1.0.1/16,bits beyond", "lab,10.0.0.0/8", "10.0.0.0/8,a,b"):
        path.write_text(f"10.2.0.0/16,fine\n{wrong}\n")
        with pytest.raises(SiteError, match="line 2"):
            Sites.read(path)


def test_equal_rates_have_no_variability(found: Dataset) -> None:
    by_flows = variability(found, ["flows"])
    assert set(by_flows.loc[by_flows["count"] > 1, "iqr_over_median"]) == {0.0}


def test_a_single_rate_has_no_variability_to_show(found: Dataset) -> None:
    by_flows = variability(found, ["flows"])
    alone = by_flows[by_flows["count"] == 1]
    assert len(alone) > 0
    assert alone["iqr_over_median"].isna().all()
    assert top_transfers(found, 2)["bytes"].tolist() == [6_000_000_000, 4_000_000_000]
