"""Analyses of routers' flow records.

    import thalweg

    archive = thalweg.open("/var/lib/thalweg")
    archive.top("src").to_pandas()
    archive.flowsets().to_pandas()
    print(archive.transfers.why("8f3c0a9d").text())

    with thalweg.connect("duckdb", memory_bytes=4 << 30) as engine:
        found = thalweg.analyse(engine.open("/var/lib/thalweg"))

| module | contents |
|---|---|
| `archive` | flow records and their analyses, for notebooks |
| `engines` | query engines: DuckDB, compiled code, Spark, ClickHouse, servers |
| `sources`, `dataset` | files of a time range; rows that an engine can compute |
| `flows`, `elephants` | flow reconstruction; the elephant rule |
| `flowsets` | parallel flowsets, equations 2.1 to 2.3 |
| `analysis` | flows and flowsets in one pass |
| `groups`, `tables`, `statistics` | groups of hosts; Tables 2.2 to 2.4; quantiles and rate variability |
| `interfaces` | interface counters and their rates |
| `transfers` | why data transfers are slow: peers, verdicts, reports |
| `sketches` | Count-Min, Count Sketch, K-ary and UnivMon over numpy arrays, with sampled updates |
| `filter`, `top`, `series` | nfdump's filter language, top talkers, time series |
| `parameters`, `dimensions`, `schema` | definitions, dimensions to group by, columns of records |
| `report`, `cli` | the page with tables and plots; `thalweg flows` and `thalweg transfers` |
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .analysis import Analysis, analyse
    from .archive import Archive
    from .archive import open_archive as open  # noqa: A004
    from .dataset import Dataset
    from .engines import Engine, EngineError, connect
    from .flows import reconstruct
    from .groups import ByAs, ByPrefix, Sites
    from .parameters import Parameters
    from .sources import SourceError

__version__ = "0.1.0"

__all__ = [
    "Analysis",
    "Archive",
    "ByAs",
    "ByPrefix",
    "Dataset",
    "Engine",
    "EngineError",
    "Parameters",
    "Sites",
    "SourceError",
    "analyse",
    "connect",
    "open",
    "reconstruct",
]

_MODULES = {
    "Analysis": "analysis",
    "Archive": "archive",
    "ByAs": "groups",
    "ByPrefix": "groups",
    "Dataset": "dataset",
    "Engine": "engines",
    "EngineError": "engines",
    "Parameters": "parameters",
    "Sites": "groups",
    "SourceError": "sources",
    "analyse": "analysis",
    "connect": "engines",
    "open": "archive",
    "reconstruct": "flows",
}


def __getattr__(name: str) -> Any:
    """Imports on first use: Ibis, pandas and DuckDB take a second, and most commands need only some of them."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f".{_MODULES[name]}", __name__)
    found = getattr(module, "open_archive" if name == "open" else name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
