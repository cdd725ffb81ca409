"""The report against a month that is small enough to work out by hand."""

from __future__ import annotations

import csv
import json
import re
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planted import DAY, Transfer, record, records_of, write_archive

from thalweg import cli
from thalweg.report.boxes import OUTLIERS, Box
from thalweg.report.files import MAX_GROUPS

HOUR = timedelta(hours=1)
A, B, C = 64500, 64501, 64502

# From A to B: rates of 2, 4 and 6 Gbit/s over two flows, in a minute less half a second each.
TO_B = [
    Transfer("192.0.2.1", f"198.51.100.{rate}", A, B, DAY + rate * HOUR, minutes=1, flows=2, bytes=rate * 60 * 10**9 // 8)
    for rate in (2, 4, 6)
]
OTHERS = [
    Transfer("192.0.2.2", "198.51.100.9", A, B, DAY + 8 * HOUR, minutes=2, flows=16, bytes=64 * 10**9),
    Transfer("198.51.100.9", "203.0.113.5", B, C, DAY + 9 * HOUR, minutes=4, flows=5, bytes=40 * 10**9),
    Transfer("203.0.113.5", "192.0.2.1", C, A, DAY + 10 * HOUR, minutes=3, flows=1, bytes=6 * 10**9),
    Transfer("203.0.113.5", "192.0.2.1", C, A, DAY + 11 * HOUR, minutes=1, flows=1, bytes=2 * 10**9),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [row for transfer in (*TO_B, *OTHERS) for row in records_of(transfer)]
    noon = DAY + 12 * HOUR
    reversed_one = record(flow_start=noon, flow_end=noon - HOUR / 60, src="192.0.2.9", dst="192.0.2.8")
    rows.append(reversed_one)
    return write_archive(tmp_path_factory.mktemp("report"), rows)


@pytest.fixture(scope="module")
def folder(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "made" / "for it"
    assert cli.main(["report", str(data), "--by", "asn", "--output", str(out)]) == cli.COMPLETE
    return out


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_flowsets_are_counted_by_their_flows_in_both_directions(folder: Path) -> None:
    counted = {
        (row["group"], row["direction"]): [int(row[f"flowsets_{kind}"]) for kind in ("2", "4", "8", "16", "other")]
        + [int(row[name]) for name in ("flowsets", "dst_hosts", "src_hosts")]
        for row in rows(folder, "component-counts")
    }
    assert counted == {
        ("AS64500", "from"): [3, 0, 0, 1, 0, 4, 4, 2],
        ("AS64501", "to"): [3, 0, 0, 1, 0, 4, 4, 2],
        ("AS64501", "from"): [0, 0, 0, 0, 1, 1, 1, 1],
        ("AS64502", "to"): [0, 0, 0, 0, 1, 1, 1, 1],
    }


def test_single_flows_are_counted_separately(folder: Path) -> None:
    counted = {(row["group"], row["direction"]): int(row["flows"]) for row in rows(folder, "single-flow-counts")}
    assert counted == {("AS64500", "to"): 2, ("AS64502", "from"): 2}


def test_sizes_rates_and_durations_have_their_quantiles(folder: Path) -> None:
    found = {(row["group"], row["direction"], row["quantity"]): row for row in rows(folder, "flowset-characteristics")}
    size = found["AS64501", "to", "size"]
    # 15, 30, 45 and 64 GB: quantiles of type 7.
    told = [float(size[name]) / 1e9 for name in ("min", "p25", "p50", "mean", "p75", "max")]
    assert told == [15.0, 26.25, 37.5, 38.5, 49.75, 64.0]
    duration = found["AS64502", "to", "duration"]
    assert float(duration["p50"]) == 242.0
    rate = found["AS64502", "to", "rate"]
    assert float(rate["p50"]) == pytest.approx(40e9 * 8 / 242, rel=1e-15)
    single = {(row["group"], row["direction"], row["quantity"]): row for row in rows(folder, "single-flow-characteristics")}
    assert float(single["AS64500", "to", "size"]["p50"]) == 4e9


def test_rate_variability_is_the_interquartile_range_over_the_median(folder: Path) -> None:
    found = {(row["src_group"], row["dst_group"], row["flows"]): row for row in rows(folder, "rate-variability")}
    path = found["AS64500", "AS64501", "2"]
    assert path["count"] == "3"
    # Rates in the ratio 2 : 4 : 6, whose quartiles are 3 and 5.
    assert float(path["iqr_over_median"]) == pytest.approx(0.5)


def test_the_largest_the_fastest_and_the_longest_come_first(folder: Path) -> None:
    assert [row["bytes"] for row in rows(folder, "largest-transfers")][:3] == ["64000000000", "45000000000", "40000000000"]
    assert rows(folder, "fastest-transfers")[0]["dst"] == "198.51.100.6"
    longest = rows(folder, "longest-transfers")[0]
    assert (longest["duration_ns"], longest["flow_start"]) == ("242000000000", "2026-11-22T09:00:00.000000000Z")


def test_the_json_file_has_all_tables_and_parameters(folder: Path) -> None:
    report = json.loads((folder / "report.json").read_text())
    assert report["about"]["threshold"] == 10**9
    assert report["about"]["tau"] == 10.0
    assert report["totals"]["parallel_flowsets"] == 5
    assert report["totals"]["reversed_records"] == 1
    assert report["totals"]["bytes"] == (15 + 30 + 45 + 64 + 40 + 6 + 2) * 10**9
    for path in folder.glob("*.csv"):
        told = report["traffic"] if path.stem == "traffic" else report["tables"][path.stem]
        assert len(told) == len(rows(folder, path.stem)) > 0, path
    assert sum(row["bytes"] for row in report["traffic"]) == report["totals"]["bytes"]


def small_flows(hosts: int) -> list[dict[str, Any]]:
    """A large flow from one host, and many small flows between others: each pair of hosts has two flows and a transfer of 2 kB."""
    rows = records_of(Transfer("198.51.100.200", "192.0.2.200", C, A, DAY, minutes=1, flows=1, bytes=10**9))
    for host in range(hosts):
        transfer = Transfer(f"10.{host >> 8}.{host & 255}.1", "192.0.2.7", A, B, DAY + HOUR, minutes=1, flows=2, bytes=2000)
        rows += records_of(transfer)
    return rows


def test_groups_are_ranked_by_bytes_and_the_json_file_has_the_largest(tmp_path: Path) -> None:
    data = write_archive(tmp_path / "data", small_flows(600))
    out = tmp_path / "out"
    assert cli.main(["report", str(data), "--by", "prefix/24", "--all-flows", "--output", str(out)]) == cli.COMPLETE
    report = json.loads((out / "report.json").read_text())
    # The host with one flow has more bytes than any with two.
    assert [row["group"] for row in report["tables"]["group-totals"]][:1] == ["10.0.0.0/24"]
    totals = {(row["group"], row["direction"]): row["bytes"] for row in report["tables"]["group-totals"]}
    assert totals["198.51.100.0/24", "from"] == 10**9
    assert totals["192.0.2.0/24", "to"] == 10**9 + 600 * 2000
    assert report["groups"] == 602
    assert len({row["group"] for row in report["tables"]["component-counts"]}) < MAX_GROUPS + 1
    assert report["rows"]["component-counts"] == len(rows(out, "component-counts")) == 601
    assert (out / "report.json").stat().st_size < 5 * 10**6
    page = (out / "index.html").read_text(encoding="utf-8")
    assert page.index("192.0.2.0/24") < page.index("198.51.100.0/24") < page.index("10.0.0.0/24")


def test_a_box_keeps_its_quartiles_and_a_bounded_number_of_outliers() -> None:
    box = Box.of(np.array([*[1.0, 2.0, 3.0, 4.0] * 1000, *np.arange(100.0, 1100.0)]))
    assert (box.count, box.p25, box.p50, box.p75) == (5000, 2.0, 3.0, 4.0)
    assert (box.whisker_low, box.whisker_high) == (1.0, 4.0)
    assert len(box.outliers) == OUTLIERS
    assert (box.outliers[0], box.outliers[-1]) == (100.0, 1099.0)
    alone = Box.of(np.array([7.0]))
    assert (alone.p25, alone.whisker_low, alone.whisker_high, alone.outliers) == (7.0, 7.0, 7.0, [])


class Page(HTMLParser):
    """Whether tags are closed in their order, ids are there once, and nothing is loaded from elsewhere."""

    VOID = ("meta", "br", "img", "link", "path", "use", "rect")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        self.ids += [str(named["id"])] if "id" in named else []
        self.links += [str(named[name]) for name in ("href", "src", "xlink:href") if name in named]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_page_is_self_contained(folder: Path) -> None:
    text = (folder / "index.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert page.open == []
    assert all(link.startswith("#") for link in page.links)
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert "url(http" not in text and "@import" not in text
    words = " ".join(page.texts)
    for expected in (
        "AS64500",
        "59.6 GiB",
        "10 s: maximum time between the starts of a flowset",
        "(times swapped): 1.",
        "1,000,000,000 bytes",
        "203.0.113.5",
    ):
        assert expected in words, expected
    assert "nan" not in re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL).lower().split()


def test_the_page_is_the_same_each_time(data: Path, folder: Path, tmp_path: Path) -> None:
    assert cli.main(["report", str(data), "--by", "asn", "--output", str(tmp_path)]) == cli.COMPLETE
    for path in folder.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name


def test_groups_are_prefixes_or_sites_too(data: Path, tmp_path: Path) -> None:
    sites = tmp_path / "sites.csv"
    sites.write_text('prefix,name\n192.0.2.0/24,Lab 1\n198.51.100.0/24,"Lab <2>"\n')
    for by, names in (("prefix/24", {"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"}), (f"sites={sites}", {"Lab 1", "Lab <2>"})):
        out = tmp_path / by.partition("=")[0].replace("/", "-")
        assert cli.main(["report", str(data), "--by", by, "--output", str(out)]) == cli.COMPLETE
        assert {row["group"] for row in rows(out, "component-counts")} == names
        assert "<2>" not in (out / "index.html").read_text(encoding="utf-8")


def test_an_empty_report_says_so(tmp_path: Path, data: Path, capsys: Any) -> None:
    arguments = ["report", str(data), "--by", "asn", "--threshold", "1TB", "--output", str(tmp_path)]
    assert cli.main(arguments) == cli.COMPLETE, capsys.readouterr().err
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "no transfers" in page
    assert json.loads((tmp_path / "report.json").read_text())["totals"]["parallel_flowsets"] == 0
