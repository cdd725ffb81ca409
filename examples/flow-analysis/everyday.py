#!/usr/bin/env python3
"""Everyday questions to an archive of flow records, as one would ask them in a notebook.

.venv/bin/python examples/flow-analysis/everyday.py ARCHIVE
"""

import sys

import thalweg


def main(source: str) -> None:
    archive = thalweg.open(source)

    # Who sends most? Names of groups are those of `thalweg flows top --help`; the answer is a data frame.
    print(archive.top("src", limit=5).to_pandas()[["src", "bytes", "share"]])

    # The same of flows, in which what several routers saw counts once, and only of what a filter in nfdump's language lets pass.
    print(archive.top("dst", of="flows", matching="proto tcp", limit=5).to_pandas()[["dst", "bytes"]])

    # Transfers: flows between two hosts that begin together.
    flowsets = archive.flowsets()
    parallel = flowsets.filter(lambda sets: sets.flows > 1)
    print(f"{parallel.count()} of {flowsets.count()} transfers were over several connections at once")

    # SQL, about records, flows, cheetahs or flowsets.
    print(
        archive.query(
            "SELECT flows, count(*) AS transfers, max(rate_bps) AS rate_bps FROM flowsets GROUP BY ALL ORDER BY flows"
        ).to_pandas()
    )

    # Any Ibis expression, on any engine: `table` is what these are made of.
    sets = flowsets.table
    rates = sets.filter(sets.rate_bps.notnull()).group_by("flows").aggregate(rate_bps=sets.rate_bps.mean()).order_by("flows")
    print(flowsets.derive(rates).to_pandas())

    # Traffic over time, a row an interval: plot it with whatever you like.
    series = archive.series("1h", by="src-as", groups=3)
    print(series.pivot(index="time", columns="group", values="rate_bps"))


if __name__ == "__main__":
    main(*sys.argv[1:])
