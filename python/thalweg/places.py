"""Countries and AS numbers of addresses, looked up in local databases when records are queried.

Collectors do the same when records arrive (`thalweg collect --mmdb`), by the same code. A value of a record stays; the
databases of today fill what it lacks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .dataset import Dataset
from .errors import QuestionError

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from .engines import Engine

PLACE_COLUMNS = ("src_as", "dst_as", "src_country", "dst_country")
"""Columns that databases fill."""

_ENDS = ("src", "dst")


class PlaceError(QuestionError):
    """A file that cannot be read or is no database, or no way to read one."""


class Places:
    """Databases in MMDB format: GeoLite2, DB-IP or IPinfo."""

    def __init__(self, paths: Sequence[str | Path], *, replace_as: bool = False) -> None:
        """
        Args:
            paths: The files. The first that knows an address applies.
            replace_as: AS numbers of the databases replace those of records.

        Raises:
            PlaceError: If a file cannot be read or is no database, or the package was installed without compiled code.
        """
        try:
            from thalweg import _native
        except ImportError:
            raise PlaceError("--mmdb: databases need the compiled part of the package, which is not installed") from None
        try:
            self._databases = _native.GeoDatabases([str(path) for path in paths])
        except OSError as error:
            reason = error.strerror if error.errno is None else os.strerror(error.errno)
            raise PlaceError(f"--mmdb: {error.filename}: {reason}") from None
        except ValueError as error:
            raise PlaceError(f"--mmdb: {error}") from None
        self._replaces_as = replace_as

    def annotated(self, rows: Dataset) -> Dataset:
        """Returns the same rows with `PLACE_COLUMNS`: their own values, and those of the databases where they have none."""
        return Dataset(rows.engine, lambda: self._filled(rows.engine, rows.table), note=rows.note)

    def _filled(self, engine: Engine, rows: ir.Table) -> ir.Table:
        import ibis

        found = self._found(engine, rows)
        columns = dict.fromkeys([*rows.columns, *PLACE_COLUMNS])
        for end in _ENDS:
            place = found.select(**{f"{end}_{name}": found[name] for name in ("place", "place_country", "place_as")})
            rows = rows.left_join(place, rows[end] == place[f"{end}_place"])
            country, number = rows[f"{end}_place_country"].fill_null(""), rows[f"{end}_place_as"].fill_null(0)
            filled = {f"{end}_country": country, f"{end}_as": number}
            if f"{end}_country" in rows.columns:
                own = rows[f"{end}_country"]
                filled[f"{end}_country"] = ibis.ifelse(own == "", country, own)
            if f"{end}_as" in rows.columns:
                own = rows[f"{end}_as"]
                first, then = (number, own) if self._replaces_as else (own, number)
                filled[f"{end}_as"] = ibis.ifelse(first == 0, then, first)
            rows = rows.mutate(**filled)
        return rows.select(*columns)

    def _found(self, engine: Engine, rows: ir.Table) -> ir.Table:
        """Returns what the databases know about the addresses of these rows."""
        import pyarrow as pa

        places = [self._databases.lookup(addresses) for addresses in _addresses(engine, rows)]
        address, country, number = ([value for part in places for value in part[column]] for column in range(3))
        types = {"place": pa.string(), "place_country": pa.string(), "place_as": pa.int64()}
        return engine.from_arrow(pa.table({"place": address, "place_country": country, "place_as": number}, pa.schema(types))).table


def _addresses(engine: Engine, rows: ir.Table) -> Iterator[list[str]]:
    """Yields the distinct addresses of both ends, in batches."""
    source, destination = (rows.select(address=rows[end]) for end in _ENDS)
    for batch in engine.batches(source.union(destination).distinct()):
        yield batch["address"].to_pylist()
