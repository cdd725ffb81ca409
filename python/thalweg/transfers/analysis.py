"""`Transfers`: the transfers of a store and their analyses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ibis
import pandas as pd

from .. import units
from ..dataset import Dataset
from ..errors import QuestionError
from . import model as models
from .datasets import Stored
from .evidence import COLUMNS, Evidence, collect, judged, numbers
from .explanation import Explanation, explained
from .parameters import STATIC
from .peers import PATH, BySite, Paths, pairs
from .verdict import CAUSES, judge

if TYPE_CHECKING:
    from .prca import Report

Sentences = list[str]

MIN_PREFIX = 4
"""Shortest start of an identifier that names a transfer."""


class TransferError(QuestionError):
    """A transfer, user or host that the store does not have."""


@dataclass(frozen=True)
class Transfers:
    """The transfers of a store, and the reasons why they were slow. Everything is computed on demand, and once.

    Attributes:
        stored: The datasets.
        paths: How transfers over the same path are found.
    """

    stored: Stored
    paths: Paths = field(default_factory=BySite)

    def by(self, paths: Paths) -> Transfers:
        """Returns the same transfers with other peers."""
        return replace(self, paths=paths)

    @cached_property
    def evidence(self) -> Evidence:
        """All evidence; see `evidence.collect`."""
        return collect(self.stored, self.paths)

    @cached_property
    def verdicts(self) -> Dataset:
        """The verdicts on all transfers, with the columns of `columns.VERDICTS`."""
        return judged(self.evidence, self.made)

    @cached_property
    def made(self) -> datetime:
        """Time of the analysis."""
        return datetime.now(UTC)

    def list(self, *, user: str = "", host: str = "", cause: str = "", slow: bool = False) -> Dataset:
        """Returns the verdicts on transfers, the latest first.

        Args:
            user: Only those of this user.
            host: Only those that this host sent or received.
            cause: Only those with this cause, one of `verdict.CAUSES`.
            slow: Only those that peers outperform.

        Raises:
            TransferError: If the cause is unknown.
        """
        if cause and cause not in CAUSES:
            raise TransferError(f"invalid cause {cause!r}: expected one of {', '.join(CAUSES)}")
        table = self.verdicts.table
        if user:
            table = table.filter(table["user"] == user)
        if host:
            table = table.filter((table["sender"] == host) | (table["receiver"] == host) | (table["src"] == host) | (table["dst"] == host))
        if cause:
            table = table.filter(table["cause"] == cause)
        if slow:
            table = table.filter(table["slow"] == 1)
        return self.verdicts.derive(table.order_by([ibis.desc("start_us"), "transfer"]))

    def why(self, transfer: str) -> Explanation:
        """Explains the rate of one transfer.

        Args:
            transfer: Its identifier, or the first `MIN_PREFIX` or more characters of it.

        Raises:
            TransferError: If there is none, or several.
        """
        row = self._row(transfer)
        import pyarrow as pa

        rows = numbers(pa.table({name: [row[name]] for name in COLUMNS}))
        return explained(row, judge(rows), self._of_model(row, rows))

    def peers(self) -> Dataset:
        """Returns the paths with their pairs of hosts: `src_group`, `dst_group`, `pairs`, `senders`, `receivers`, `transfers`, `bytes`."""
        return pairs(self.evidence.transfers)

    def clusters(self) -> pd.DataFrame:
        """Returns each combination of static parameters with its rates; see `clusters.clusters`."""
        return self.evidence.clusters

    def report(self, folder: str | Path | None = None, *, user: str = "", host: str = "") -> Report:
        """Returns the Performance and Root Cause Analysis report of a user, a host, or all transfers.

        Args:
            folder: Directory for `index.html` and `report.json`; None: writes nothing.
            user: Only transfers of this user.
            host: Only transfers that this host sent or received.

        Raises:
            TransferError: If there are no such transfers.
            OSError: If a file cannot be written.
        """
        from . import prca

        if user or host:
            kind, name = ("user", user) if user else ("host", host)
            if self.list(user=user, host=host).count() == 0:
                raise TransferError(f"no transfers of {kind} {name!r}; thalweg transfers list shows users and hosts")
        else:
            kind, name = "all", ""
        found = prca.report(self, kind, name)
        if folder is not None:
            prca.write(found, Path(folder))
        return found

    def _row(self, transfer: str) -> dict[str, Any]:
        table = self.evidence.transfers.table
        if len(transfer) < MIN_PREFIX:
            raise TransferError(f"invalid transfer {transfer!r}: expected at least {MIN_PREFIX} characters of an identifier")
        is_named = table["transfer"].startswith(transfer) | table["paired_transfer"].startswith(transfer)
        columns = list(dict.fromkeys([*COLUMNS, *STATIC]))
        rows = self.stored.engine.to_pyarrow(table.filter(is_named).select(columns).order_by("transfer").limit(3)).to_pylist()
        exact = [row for row in rows if transfer in (row["transfer"], row["paired_transfer"])]
        found = exact or rows
        if len(found) != 1:
            known = "is not in the store, or not in this time range" if not found else "starts several identifiers; add characters"
            raise TransferError(f"transfer {transfer!r} {known}; thalweg transfers list shows identifiers")
        return dict(found[0])

    def _of_model(self, row: dict[str, Any], rows: dict[str, Any]) -> Sentences:
        path = (row[PATH[0]], row[PATH[1]])
        if path not in self.evidence.wide:
            return []
        try:
            fitted = self.model(path)
        except (models.TooFewError, ModuleNotFoundError) as error:
            return [f"rates of equal parameters vary on this path, and there is no model of them: {error}"]
        parameters = models.parameters_of(rows)
        (expected,), (idle,) = fitted.predict(parameters), fitted.aspire(parameters)
        rate, low, high = (units.bit_rate(value) for value in (expected.rate_bps, expected.lower_bps, expected.upper_bps))
        return [
            f"the model of this path ({fitted.transfers} transfers, R² {fitted.r_squared:.2f}) expects {rate} ({low} to {high} in 90 %)",
            f"and {units.bit_rate(idle.rate_bps)} with idle hosts and without loss",
        ]

    def model(self, path: tuple[str, str]) -> models.Model:
        """Fits the throughput model of a path.

        Raises:
            models.TooFewError: If it has too few transfers.
            ModuleNotFoundError: If statsmodels is not installed.
        """
        return models.fit(models.sample(self.evidence.transfers, path))
