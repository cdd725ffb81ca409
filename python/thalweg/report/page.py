"""The report page: one self-contained file for screens, paper and screen readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import pandas as pd

from .. import units
from ..tables import COMPONENTS
from .contents import Contents
from .plots import rates_svg, series_svg

GROUPS = 8
"""Maximum number of groups in a table; the CSV files have all."""

_KINDS = {2: "2-flow", 4: "4-flow", 8: "8-flow", 16: "16-flow"}
_STATISTICS = {
    "min": "minimum",
    "p25": "1st quartile",
    "p50": "median",
    "mean": "mean",
    "p75": "3rd quartile",
    "p95": "95 %",
    "p99": "99 %",
    "max": "maximum",
}
_QUANTITIES: dict[str, tuple[str, Callable[[float], str]]] = {
    "size": ("Size", units.size),
    "rate": ("Rate", units.bit_rate),
    "duration": ("Duration", units.duration),
}
_LISTS = {"largest-transfers": "Largest", "fastest-transfers": "Fastest, of parallel flowsets", "longest-transfers": "Longest"}


def page(contents: Contents) -> str:
    """Returns the report as HTML."""
    template = Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    groups = _largest_groups(contents)
    sides = _sides(contents, groups)
    return template.substitute(
        title=f"Transfers in {escape(str(contents.about['data']))}",
        about=_about(contents),
        totals=_totals(contents),
        groups_note=_groups_note(contents, groups),
        counts=_counts(contents, groups, sides),
        characteristics=_characteristics(contents.tables["flowset-characteristics"], groups),
        singles=_singles(contents, groups),
        single_characteristics=_characteristics(contents.tables["single-flow-characteristics"], groups),
        rates=_rates(contents),
        variability=_variability(contents),
        transfers="".join(_transfers(contents.tables[name], title) for name, title in _LISTS.items()),
        traffic=_traffic(contents),
        method=_method(contents),
    )


# --- Common parts of tables


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *, labels: int = 1) -> str:
    """Returns a table whose first `labels` columns identify a row; the others are numbers."""
    head = "".join(f'<th scope="col"{"" if index < labels else " class=n"}>{text}</th>' for index, text in enumerate(heads))
    body = []
    for row in rows:
        cells = [f'<th scope="row">{cell}</th>' for cell in row[:1]]
        cells += [f"<td>{cell}</td>" for cell in row[1:labels]]
        cells += [f"<td class=n>{cell}</td>" for cell in row[labels:]]
        body.append(f"<tr>{''.join(cells)}</tr>")
    if not body:
        body.append(f'<tr><td colspan="{len(heads)}">none</td></tr>')
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{caption}"><table><caption>{caption}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _pair(to: str, from_: str) -> str:
    """Formats `to | from`, as in the dissertation."""
    return f'<span class="to">{to}</span><span class="bar"> | </span><span class="from">{from_}</span>'


# --- Sections


def _about(contents: Contents) -> str:
    about, totals = contents.about, contents.totals
    period = f"{units.instant(totals['first_us'])} to {units.instant(totals['last_us'])} UTC" if totals["bytes"] else "no transfers"
    turned = totals["reversed_records"]
    note = f" Records that end before they start (times swapped): {units.count(turned)}." if turned else ""
    return f"<p>Data: <code>{escape(str(about['data']))}</code>, by {escape(str(about['by']))}. Transfers from {period}.{note}</p>"


def _totals(contents: Contents) -> str:
    totals = contents.totals
    kind = "elephant flows" if contents.about["elephants_only"] else "flows"
    fields = {
        "records": units.count(totals["records"]),
        kind: units.count(totals["component_flows"]),
        "parallel flowsets": units.count(totals["parallel_flowsets"]),
        "single flows": units.count(totals["single_flows"]),
        "total size": units.size(totals["bytes"]),
        "by parallel flowsets": units.size(totals["parallel_bytes"]),
    }
    return "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in fields.items())


def _largest_groups(contents: Contents) -> list[str]:
    """Orders groups by parallel flowsets and single flows in both directions, the largest first."""
    counts = [
        contents.tables["component-counts"].set_index("group")["flowsets"],
        contents.tables["single-flow-counts"].set_index("group")["flows"],
    ]
    sums = pd.concat(counts).groupby(level=0).sum()
    return [str(name) for name, _ in sorted(sums.items(), key=lambda entry: (-entry[1], entry[0]))]


def _groups_note(contents: Contents, groups: list[str]) -> str:
    rest = len(groups) - GROUPS
    return f" The {GROUPS} largest of {len(groups):,} groups; the CSV files have all." if rest > 0 else ""


def _sides(contents: Contents, groups: list[str]) -> dict[tuple[str, str], dict[str, Any]]:
    rows = contents.tables["component-counts"].to_dict("records")
    return {(row["group"], row["direction"]): row for row in rows}


def _counts(contents: Contents, groups: list[str], sides: dict[tuple[str, str], dict[str, Any]]) -> str:
    shown = groups[:GROUPS]

    def cells(to: str, from_: str) -> list[str]:
        ends = (sides.get((group, "to"), {}).get(to, 0) for group in shown)
        starts = (sides.get((group, "from"), {}).get(from_, 0) for group in shown)
        return [_pair(units.count(one), units.count(other)) for one, other in zip(ends, starts, strict=True)]

    rows = [[_KINDS[number], *cells(f"flowsets_{number}", f"flowsets_{number}")] for number in COMPONENTS]
    rows.append(["other numbers of flows", *cells("flowsets_other", "flowsets_other")])
    rows.append(["<b>all</b>", *cells("flowsets", "flowsets")])
    rows.append(["destination hosts | source hosts", *cells("dst_hosts", "src_hosts")])
    return table("Parallel flowsets, to | from", ["", *map(escape, shown)], rows)


def _characteristics(found: pd.DataFrame, groups: list[str]) -> str:
    shown = groups[:GROUPS]
    values = {(row["group"], row["direction"], row["quantity"]): row for row in found.to_dict("records")}
    parts = []
    for quantity, (title, form) in _QUANTITIES.items():
        rows = []
        for statistic, name in _STATISTICS.items():
            both = [
                [form(values.get((group, direction, quantity), {}).get(statistic, float("nan"))) for direction in ("to", "from")]
                for group in shown
            ]
            rows.append([name, *(_pair(*pair) for pair in both)])
        parts.append(table(f"{title}, to | from", ["", *map(escape, shown)], rows))
    return "".join(parts)


def _singles(contents: Contents, groups: list[str]) -> str:
    shown = groups[:GROUPS]
    counts = {(row["group"], row["direction"]): row["flows"] for row in contents.tables["single-flow-counts"].to_dict("records")}
    cells = [_pair(units.count(counts.get((group, "to"), 0)), units.count(counts.get((group, "from"), 0))) for group in shown]
    return table("Single flows, to | from", ["", *map(escape, shown)], [["single flows", *cells]])


def _rates(contents: Contents) -> str:
    if not contents.rates:
        return "<p>No path has enough parallel flowsets of one number of flows for this.</p>"
    paths = ", ".join(contents.rates)
    return f"<figure>{rates_svg(contents.rates, f'Box plots of rates by number of component flows, for the paths {paths}')}</figure>"


def _variability(contents: Contents) -> str:
    found = contents.tables["rate-variability"]
    sizes = found.groupby(["src_group", "dst_group"])["count"].transform("sum")
    ordered = found.assign(size=sizes).sort_values(["size", "src_group", "dst_group", "flows"], ascending=[False, True, True, True])
    rows = [
        [
            f"{escape(row['src_group'])} → {escape(row['dst_group'])}",
            units.count(row["flows"]),
            units.count(row["count"]),
            units.bit_rate(row["p50"]),
            units.bit_rate(row["p25"]),
            units.bit_rate(row["p75"]),
            units.NONE if pd.isna(row["iqr_over_median"]) else f"{row['iqr_over_median']:.2f}",
        ]
        for row in ordered.head(40).to_dict("records")
    ]
    heads = ["path", "component flows", "flowsets", "median rate", "1st quartile", "3rd quartile", "IQR / median"]
    return table("Variability of rates on a path", heads, rows)


def _transfers(found: pd.DataFrame, title: str) -> str:
    rows = [
        [
            units.instant(row["flow_start"].value // 1000),
            f"{escape(row['src'])} <small>{escape(row['src_group'])}</small>",
            f"{escape(row['dst'])} <small>{escape(row['dst_group'])}</small>",
            units.count(row["flows"]),
            units.size(row["bytes"]),
            units.duration(row["duration_ns"] / 1e9),
            units.bit_rate(row["rate_bps"]),
        ]
        for row in found.to_dict("records")
    ]
    return table(title, ["start (UTC)", "from", "to", "flows", "size", "duration", "rate"], rows, labels=3)


def _traffic(contents: Contents) -> str:
    if contents.traffic.empty:
        return "<p>None.</p>"
    every = units.duration(contents.every_us / 1e6)
    label = f"Total rate of all transfers over time, in intervals of {every}"
    return f"<figure>{series_svg(contents.traffic, label)}<figcaption>{label}.</figcaption></figure>"


def _method(contents: Contents) -> str:
    about = contents.about
    kind = "elephant flows" if about["elephants_only"] else "all flows"
    fields = {
        "gap": f"{about['gap']:g} s: a record after a longer gap starts a new flow",
        "elephant flow": f"more than {units.size(about['threshold'])} ({about['threshold']:,} bytes) within {about['window']:g} s",
        "flowsets of": kind,
        "tau": f"{about['tau']:g} s: maximum time between the starts of a flowset",
        "rule": f"{about['rule']}, where a chain of gaps of at most tau spans more than tau",
        "engine": str(about["engine"]),
    }
    return "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>" for name, text in fields.items())
