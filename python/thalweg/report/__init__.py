"""The report on big-data movement: chapter 2 of the dissertation for your own network, as a page with plots, CSV and JSON.

| file | what it has |
|---|---|
| `contents` | what is computed: tables, rates by path, time series |
| `plots` | drawings |
| `page` | the page |
| `files` | what is written where |
"""

from .contents import Contents, collect
from .files import write

__all__ = ["Contents", "collect", "write"]
