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

GROUPS = 12
"""Maximum number of groups in a table; the CSV files have all."""
DIRECTIONS = ("to", "from")

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
    groups = contents.groups[:GROUPS]
    return template.substitute(
        title=f"Transfers in {escape(str(contents.about['data']))}",
        about=_about(contents),
        totals=_totals(contents),
        groups_note=_groups_note(contents),
        counts=_counts(contents, groups),
        characteristics=_characteristics(contents.tables["flowset-characteristics"], groups),
        singles=_singles(contents, groups),
        single_characteristics=_characteristics(contents.tables["single-flow-characteristics"], groups),
        rates=_rates(contents),
        variability=_variability(contents),
        transfers="".join(_transfers(contents.tables[name], title) for name, title in _LISTS.items()),
        traffic=_traffic(contents),
        method=_method(contents),
    )


def style() -> str:
    """Returns the style sheet, for other pages."""
    text = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    return text.partition("<style>")[2].partition("</style>")[0]


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


def _groups_note(contents: Contents) -> str:
    found = len(contents.groups)
    return f" The {GROUPS} groups with the most bytes, of {found:,}; the CSV files have all." if found > GROUPS else ""


def _by_side(found: pd.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["group"], row["direction"]): row for row in found.to_dict("records")}


def _counts(contents: Contents, groups: list[str]) -> str:
    found, totals = (_by_side(contents.tables[name]) for name in ("component-counts", "group-totals"))
    numbers = [*(f"flowsets_{number}" for number in COMPONENTS), "flowsets_other", "flowsets"]
    rows = []
    for group in groups:
        for direction in DIRECTIONS:
            row = found.get((group, direction), {})
            hosts = row.get("dst_hosts" if direction == "to" else "src_hosts", 0)
            size = units.size(totals.get((group, direction), {}).get("bytes", 0))
            rows.append([escape(group), direction, *(units.count(row.get(name, 0)) for name in numbers), units.count(hosts), size])
    heads = ["group", "", *(_KINDS[number] for number in COMPONENTS), "other", "all", "hosts", "all transfers"]
    return table("Parallel flowsets by number of flows", heads, rows, labels=2)


def _characteristics(found: pd.DataFrame, groups: list[str]) -> str:
    values = {(row["group"], row["direction"], row["quantity"]): row for row in found.to_dict("records")}
    parts = []
    for quantity, (title, form) in _QUANTITIES.items():
        rows = []
        for group in groups:
            for direction in DIRECTIONS:
                row = values.get((group, direction, quantity))
                if row is not None:
                    rows.append([escape(group), direction, *(form(row[name]) for name in _STATISTICS)])
        parts.append(table(title, ["group", "", *_STATISTICS.values()], rows, labels=2))
    return "".join(parts)


def _singles(contents: Contents, groups: list[str]) -> str:
    found = _by_side(contents.tables["single-flow-counts"])
    rows = [
        [escape(group), *(units.count(found.get((group, direction), {}).get("flows", 0)) for direction in DIRECTIONS)] for group in groups
    ]
    return table("Single flows", ["group", *DIRECTIONS], rows)


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
            # The quartiles of a single rate are that rate, which looks like no variability at all.
            *(units.bit_rate(row[name]) if row["count"] > 1 else units.NONE for name in ("p25", "p75")),
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
