"""Why data transfers are slow: peers, clusters, verdicts and reports (the dissertation, chapter 5).

    transfers = thalweg.open("/var/lib/thalweg").transfers
    transfers.list().to_pandas()
    print(transfers.why("8f3c0a9d").text())
    transfers.report("report")

| module | contents |
|---|---|
| `datasets`, `columns` | the datasets of a store |
| `clocks` | differences between the clocks of hosts |
| `entries` | transfers from log entries, each once |
| `join`, `network` | samples of connections and hosts, flow records, discards of each transfer |
| `parameters`, `clusters` | combinations of static parameters and their rates |
| `peers` | transfers over the same path, and what they reach |
| `model` | rates where dynamic parameters dominate |
| `evidence`, `verdict` | one row for each transfer; the cause |
| `advice`, `explanation` | what to change; the reasons of one verdict |
| `prca`, `page`, `store` | reports for users and hosts; files for the daemon |
| `analysis` | `Transfers`, the entry point |
"""

from .analysis import TransferError, Transfers
from .datasets import Stored
from .peers import ByAsOfFlows, BySite, ByTraceroute, Paths

__all__ = ["ByAsOfFlows", "BySite", "ByTraceroute", "Paths", "Stored", "TransferError", "Transfers"]
