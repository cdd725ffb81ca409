"""The report on big-data movement: chapter 2 of the dissertation for your own network, as a page with plots, CSV and JSON.

| module | contents |
|---|---|
| `contents` | the results: tables, rates by path, time series |
| `plots` | plots |
| `page` | the HTML page |
| `files` | the files of the report |
"""

from .contents import Contents, collect
from .files import write

__all__ = ["Contents", "collect", "write"]
