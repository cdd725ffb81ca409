"""The HTML page of a PRCA report: one self-contained file. Every text from data is escaped."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from .. import units
from ..report.page import style, table
from ..report.plots import causes_svg, histogram_svg
from . import advice
from .explanation import WORDS
from .peers import PATH
from .prca import CLUSTERS, Report, labels
from .verdict import AT_RATE


def page(found: Report) -> str:
    """Returns the report as HTML."""
    template = Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    subject = {"user": f"user {found.name}", "host": f"host {found.name}", "all": "all users and hosts"}[found.kind]
    totals = found.totals
    return template.substitute(
        style=style(),
        title=escape(f"Performance of data transfers: {subject}"),
        about=_about(found),
        totals="".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in _totals(totals).items()),
        conclusion=_conclusion(found),
        causes=_causes(found),
        slowest=_slowest(found),
        clusters=_clusters(found),
        histogram=_histogram(found),
        hosts=_hosts(found),
        models=_models(found),
        clocks=_clocks(found),
        at_rate=f"{AT_RATE:.0%}",
        method="".join(f"<div><dt>{escape(name)}</dt><dd>{escape(str(value))}</dd></div>" for name, value in found.about.items() if value),
    )


def _about(found: Report) -> str:
    period = f"{units.instant(found.totals['first_us'])} to {units.instant(found.totals['last_us'])} UTC"
    return f"<p>Transfers from {period}. Made at {found.made:%Y-%m-%d %H:%M} UTC.</p>"


def _totals(totals: dict[str, Any]) -> dict[str, str]:
    return {
        "transfers": units.count(totals["transfers"]),
        "slow": units.count(totals["slow"]),
        "without a verdict": units.count(totals["without_verdict"]),
        "total size": units.size(totals["bytes"]),
    }


def _conclusion(found: Report) -> str:
    slow = sorted(
        (row for row in found.causes if row["slow"] and row["cause"] not in ("none", "not_enough_data")), key=lambda row: -row["slow"]
    )
    if not found.totals["slow"]:
        return "<p>No transfer is slower than its peers.</p>"
    if not slow:
        return "<p>Some transfers are slower than their peers, and the data do not show why.</p>"
    reasons = "; ".join(f"{escape(row['words'])} ({units.count(row['slow'])})" for row in slow[:3])
    return f"<p>Most frequent causes of slow transfers: {reasons}.</p>"


def _causes(found: Report) -> str:
    rows = [
        [escape(row["words"]), units.count(row["transfers"]), units.count(row["slow"]), units.size(row["bytes"])]
        + [units.bit_rate(row[f"rate_{name}_bps"]) for name in ("p25", "p50", "p75")]
        for row in found.causes
    ]
    heads = ["cause", "transfers", "slow", "size", "1st quartile", "median rate", "3rd quartile"]
    counts = {row["words"]: row["transfers"] for row in found.causes}
    plot = f"<figure>{causes_svg(counts, 'Number of transfers of each cause')}</figure>" if counts else ""
    return plot + table("Causes", heads, rows)


SHOWN = 8
"""Characters of an identifier in a table."""


def _slowest(found: Report) -> str:
    rows = []
    for row in found.slowest:
        target = max(row["aspiration_bps"], row["rate_bps"])
        verdict = f"{escape(WORDS[row['cause']])} <small>{row['confidence']:.2f}</small>"
        rows.append(
            [
                # `thalweg transfers why` takes the first characters too.
                f'<code title="{escape(row["transfer"])}">{escape(row["transfer"][:SHOWN])}</code>',
                units.instant(row["start_us"]).replace(" ", "&nbsp;").replace("-", "&#8209;"),
                escape(row["application"]),
                escape(row["sender"] or row["src"]),
                escape(row["receiver"] or row["dst"]),
                f"{verdict}<br><small>{escape(_advice(row, target))}</small>",
                units.size(row["bytes"]),
                units.bit_rate(row["rate_bps"]),
                units.bit_rate(row["aspiration_bps"]),
                units.duration(row["lost_us"] / 1e6),
            ]
        )
    heads = ["transfer", "start (UTC)", "application", "from", "to", "verdict", "size", "rate", "peers reach", "time lost"]
    return table("Slow transfers by lost time", heads, rows, labels=6)


def _advice(row: dict[str, Any], target: float) -> str:
    if row["cause"] in ("sender_window", "receiver_window"):
        side = "send" if row["cause"] == "sender_window" else "receive"
        host = row["sender"] if side == "send" else row["receiver"]
        return f"Raise the {side} buffer{f' on {host}' if host else ''} to {row['advised_buffer_bytes']:,} bytes for each connection."
    return advice.text(
        row["cause"],
        streams=row["advised_streams"],
        buffer_bytes=row["advised_buffer_bytes"],
        sender=row["sender"],
        receiver=row["receiver"],
        rtt_us=0,
        target_bps=target,
    )


def _clusters(found: Report) -> str:
    shown = found.clusters[:CLUSTERS]
    rows = [
        [
            escape(name),
            f"{escape(row['src_group'])} → {escape(row['dst_group'])}",
            "best" if row["best"] else "",
            units.count(row["own"]),
            units.count(row["count"]),
            *(units.bit_rate(row[name]) for name in ("min", "p25", "p50", "mean", "max")),
            f"{row['cov']:.3f}",
            units.share(row["overlap"]),
        ]
        for row, name in zip(shown, labels(shown), strict=True)
    ]
    heads = ["combination", "path", "", "own", "all", "min", "25 %", "median", "mean", "max", "cov", "overlap"]
    return table("Rates by combination of static parameters", heads, rows, labels=3)


def _histogram(found: Report) -> str:
    if not found.rates:
        return ""
    path = [found.clusters[0][name] for name in PATH]
    of_path = {row["combination"]: row for row in found.clusters if [row[name] for name in PATH] == path}
    names = labels(of_path[combination] for combination in found.rates)
    text = f"Rates of {' and of '.join(names)}"
    # The names of groups are texts of data: matplotlib escapes them in SVG, and takes $ for mathematics.
    groups = {name.replace("$", r"\$"): values for name, values in zip(names, found.rates.values(), strict=True)}
    return f"<figure>{histogram_svg(groups, text)}<figcaption>{escape(text)}.</figcaption></figure>"


def _hosts(found: Report) -> str:
    rows = [
        [
            escape(row["host"]),
            "often" if row["often"] else "",
            escape(WORDS.get(row["cause"], "")),
            units.count(row["transfers"]),
            units.count(row["slow"]),
            units.share(row["slow_share"]),
        ]
        for row in found.hosts[:CLUSTERS]
    ]
    return table("Hosts in slow transfers", ["host", "", "most frequent cause", "transfers", "slow", "share"], rows, labels=3)


def _models(found: Report) -> str:
    parts = []
    for model in found.models:
        path = f"{escape(model['src_group'])} → {escape(model['dst_group'])}"
        if "reason" in model:
            parts.append(f"<p>{path}: no model: {escape(model['reason'])}.</p>")
            continue
        rows = [[escape(row["name"]), f"{row['value']:.3g}", f"{row['lower']:.3g}", f"{row['upper']:.3g}"] for row in model["coefficients"]]
        title = f"{path}: log rate of {model['transfers']:,} transfers, R² {model['r_squared']:.2f}"
        parts.append(table(title, ["parameter", "coefficient", "5 %", "95 %"], rows))
    return "".join(parts) or "<p>Static parameters dominate on these paths: clusters describe the rates.</p>"


def _clocks(found: Report) -> str:
    if not found.clocks:
        return ""
    rows = [[escape(row["reporter"]), _difference(row["ahead_us"]), units.count(row["pairs"])] for row in found.clocks]
    return "<h3>Wrong clocks</h3>" + table("Clocks that differ", ["host", "difference", "pairs"], rows)


def _difference(ahead_us: int) -> str:
    return f"{units.duration(abs(ahead_us) / 1e6)} {'ahead' if ahead_us > 0 else 'behind'}"
