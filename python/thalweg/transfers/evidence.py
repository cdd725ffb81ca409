"""The evidence of all transfers of a store: their own and that of their peers, one row each, and the verdicts on them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ..dataset import Dataset
from ..engines.engine import microseconds
from . import advice
from .clocks import Clocks, clocks
from .clusters import MIN_MEMBERS, clusters, wide_paths
from .columns import VERDICTS
from .datasets import Stored
from .entries import entries
from .join import CONNECTION_SUMS, HOST_SUMS, SIDES, joined
from .network import COLUMNS as NETWORK
from .network import with_network
from .parameters import STATIC, with_parameters
from .peers import PATH, Paths, References, references
from .verdict import AT_RATE, CAUSES, FASTER, NONE, RECEIVER_DIFFERS, SENDER_DIFFERS, Judgement, judge

IDENTITY = (
    *("received_us", "transfer", "paired_transfer", "application", "user", "sender", "receiver", "src", "dst", *PATH),
    *("start_us", "end_us", "bytes", "combination", "error"),
)
"""Columns that identify a transfer."""

MEASURED = (
    *("duration_us", "rate_bps", "streams", "send_window_bytes", "receive_window_bytes", "send_interface_bps", "receive_interface_bps"),
    *(f"{side}_{name}" for side in SIDES for name in (*CONNECTION_SUMS, *HOST_SUMS)),
    *NETWORK,
    *("path_rate_bps", "path_loss_ppb", "path_free", "pair_min_rtt_us", "more_streams", "more_streams_bps"),
    *("cluster_cause", "cluster_best_bps"),
)
"""Columns of numbers that a verdict uses: what one row of evidence consists of."""

COLUMNS = (*IDENTITY, *MEASURED)

PIPED = ("rsync", "scp", "sftp")
"""Applications whose connections belong to ssh, which reads no disk itself."""

_UNKNOWN = -1
_CAUSE_OF = {
    "streams": "streams",
    "send_window_bytes": "sender_window",
    "receive_window_bytes": "receiver_window",
    "send_disk_bps": "sender_disk",
    "receive_disk_bps": "receiver_disk",
}
_OF_SENDER = {"sender", "send_window_bytes", "send_disk_bps", "send_interface_bps"}
_OF_RECEIVER = {"receiver", "receive_window_bytes", "receive_disk_bps", "receive_interface_bps"}


@dataclass(frozen=True)
class Evidence:
    """What is known about the transfers of a store.

    Attributes:
        transfers: One row for each transfer, with the columns of `COLUMNS` and `STATIC`.
        clocks: The clocks of the hosts.
        clusters: The result of `clusters.clusters`.
        wide: Paths on which dynamic parameters dominate.
        references: What free peers reach on each path.
    """

    transfers: Dataset
    clocks: Clocks
    clusters: pd.DataFrame
    wide: set[tuple[str, str]]
    references: References


def collect(stored: Stored, paths: Paths) -> Evidence:
    """Joins all evidence of a store. Costs one pass over each dataset."""
    times = clocks(stored)
    transfers = joined(stored, entries(stored, times), times)
    transfers = with_network(stored, with_parameters(stored, transfers), times)
    transfers = paths.grouped(stored, transfers)
    found = references(transfers)
    groups = clusters(found.transfers)
    wide = wide_paths(groups)
    return Evidence(_with_clusters(found.transfers, groups, wide), times, groups, wide, found)


def judged(evidence: Evidence, made: datetime) -> Dataset:
    """Returns the verdict on each transfer, with the columns of `columns.VERDICTS`, a batch of rows at a time."""
    engine = evidence.transfers.engine
    path = engine.scratch / f"verdicts-{id(evidence)}-{microseconds(made)}.parquet"
    schema = _in_engine(VERDICTS)
    with pq.ParquetWriter(path, schema) as writer:
        for batch in engine.batches(evidence.transfers.table.select(list(COLUMNS))):
            table = pa.Table.from_batches([batch])
            writer.write_table(verdicts(table, judge(numbers(table)), made).select(schema.names).cast(schema))
    return engine.read_parquet([path])


def numbers(table: pa.Table) -> dict[str, Any]:
    """Returns the columns of `MEASURED` as arrays, and `piped`: whether the application is one of `PIPED`."""
    found = {name: table[name].to_numpy(zero_copy_only=False).astype(np.float64) for name in MEASURED}
    return found | {"piped": np.isin(np.array(table["application"].to_pylist()), PIPED).astype(np.float64)}


def verdicts(table: pa.Table, found: Judgement, made: datetime) -> pa.Table:
    """Returns rows of `columns.VERDICTS`; instants are microseconds."""
    names = pa.array(["", *CAUSES])
    advised = advice.numbers(numbers(table), found)
    columns = {name: table[name] for name in (*IDENTITY, "streams", "rate_bps") if name != "error"}
    columns |= {
        "made_us": pa.array(np.full(table.num_rows, microseconds(made.astimezone(UTC)))),
        "aspiration_bps": pa.array(found.aspiration_bps.astype(np.int64)),
        "slow": pa.array(found.slow.astype(np.int32)),
        "cause": names.take(pa.array(found.cause + 1)),
        "confidence": pa.array(found.confidence.round(3)),
        "second_cause": names.take(pa.array(found.second + 1)),
        "second_confidence": pa.array(found.second_confidence.round(3)),
        "advised_streams": pa.array(advised.streams.astype(np.int64)),
        "advised_buffer_bytes": pa.array(advised.buffer_bytes.astype(np.int64)),
    }
    return pa.table(columns)


def _in_engine(schema: pa.Schema) -> pa.Schema:
    fields = [(f"{field.name}_us", pa.int64()) if pa.types.is_timestamp(field.type) else (field.name, field.type) for field in schema]
    return pa.schema(fields)


def _with_clusters(transfers: Dataset, groups: pd.DataFrame, wide: set[tuple[str, str]]) -> Dataset:
    """Adds what a comparison of each combination with the best one of its path says."""
    rows: list[dict[str, Any]] = []
    for path, of_path in groups.groupby(PATH):
        best = of_path.loc[of_path["best"], "p50"].tolist()
        is_compared = bool(best) and (str(path[0]), str(path[1])) not in wide
        causes = _differences(of_path) if is_compared else [_UNKNOWN] * len(of_path)
        for combination, cause in zip(of_path["combination"], causes, strict=True):
            row = dict(zip(PATH, path, strict=True)) | {"combination": combination, "cluster_cause": cause}
            rows.append(row | {"cluster_best_bps": round(best[0]) if is_compared else 0})
    keys = [*PATH, "combination"]
    columns = {f"of_{name}": pa.array([row[name] for row in rows], pa.string()) for name in keys}
    columns |= {name: pa.array([row[name] for row in rows], pa.int64()) for name in ("cluster_cause", "cluster_best_bps")}
    loaded = transfers.engine.from_arrow(pa.table(columns)).table
    table = transfers.table
    both = table.left_join(loaded, [(name, f"of_{name}") for name in keys])
    found = both.select(
        *table.columns, cluster_cause=both["cluster_cause"].fill_null(_UNKNOWN), cluster_best_bps=both["cluster_best_bps"].fill_null(0)
    )
    return transfers.derive(found).materialised()


def _differences(of_path: pd.DataFrame) -> list[int]:
    """Returns for each cluster of a path the cause that the most similar faster cluster shows: its number, or a negative hint."""
    members = of_path.to_dict("records")
    codes = np.stack([pd.factorize(of_path[name])[0] for name in STATIC], axis=1)
    medians = of_path["p50"].to_numpy(dtype=float)
    eligible = (of_path["count"].to_numpy() >= MIN_MEMBERS) & of_path["narrow"].to_numpy(dtype=bool)
    found = []
    for index, row in enumerate(members):
        others = eligible & (np.arange(len(members)) != index)
        if not eligible[index] or not others.any():
            found.append(_UNKNOWN)
        elif medians[index] >= AT_RATE * medians[others].max():
            found.append(NONE)
        else:
            faster = np.flatnonzero(others & (medians >= FASTER * medians[index]))
            # Clusters come with the fastest first, and so does the first of the most similar ones.
            unequal = (codes[faster] != codes[index]).sum(axis=1)
            found.append(_cause(row, members[faster[unequal.argmin()]]) if len(faster) else _UNKNOWN)
    return found


def _cause(row: dict[Any, Any], nearest: dict[Any, Any]) -> int:
    """Returns the cause that the parameters in which a faster cluster differs show."""
    differ = {name for name in STATIC if nearest[name] != row[name]}
    causal = [name for name in differ if name in _CAUSE_OF and 0 < row[name] < nearest[name]]
    if "receiver" in differ and differ <= _OF_RECEIVER:
        return RECEIVER_DIFFERS if "receive_disk_bps" not in causal else CAUSES.index("receiver_disk")
    if "sender" in differ and differ <= _OF_SENDER:
        return SENDER_DIFFERS if "send_disk_bps" not in causal else CAUSES.index("sender_disk")
    return CAUSES.index(_CAUSE_OF[causal[0]]) if len(differ) == 1 and causal else _UNKNOWN
