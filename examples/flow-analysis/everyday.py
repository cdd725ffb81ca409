#!/usr/bin/env python3
"""Everyday queries on an archive of flow records, as in a notebook.

.venv/bin/python examples/flow-analysis/everyday.py ARCHIVE
"""

import sys

import thalweg


def main(source: str) -> None:
    archive = thalweg.open(source)

    # The largest senders. `thalweg flows top --help` lists the dimensions. The result is a data frame.
    print(archive.top("src", limit=5).to_pandas()[["src", "bytes", "share"]])

    # The largest receivers of TCP traffic. Flows count traffic once, even if several routers saw it. Filters use nfdump's language.
    print(archive.top("dst", of="flows", matching="proto tcp", limit=5).to_pandas()[["dst", "bytes"]])

    # Transfers: flows between two hosts that start together.
    flowsets = archive.flowsets()
    parallel = flowsets.filter(lambda sets: sets.flows > 1)
    print(f"{parallel.count()} of {flowsets.count()} transfers used several connections at once")

    # SQL on records, flows, elephants or flowsets.
    print(
        archive.query(
            "SELECT flows, count(*) AS transfers, max(rate_bps) AS rate_bps FROM flowsets GROUP BY ALL ORDER BY flows"
        ).to_pandas()
    )

    # Any Ibis expression on `table`, on any engine.
    sets = flowsets.table
    rates = sets.filter(sets.rate_bps.notnull()).group_by("flows").aggregate(rate_bps=sets.rate_bps.mean()).order_by("flows")
    print(flowsets.derive(rates).to_pandas())

    # Traffic over time, one row per interval, ready to plot.
    series = archive.series("1h", by="src-as", groups=3).to_pandas()
    print(series.pivot(index="time", columns="group", values="rate_bps"))


if __name__ == "__main__":
    main(*sys.argv[1:])
