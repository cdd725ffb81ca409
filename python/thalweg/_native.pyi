"""The native analyses of flow records (Rust: ``thalweg_records::analyse`` and ``top``), and sketches (``thalweg_sketch::any``)."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

class Statistics(TypedDict):
    """What an analysis came upon."""

    records: int
    """Records read."""
    swapped_times: int
    """Records that ended before they began, and were turned round."""
    saturated: int
    """Records whose bytes or packets, times the sampling interval, pass 2**63 - 1 and were taken as that."""
    observation_points: int
    """Observation points: exporter, domain and direction."""
    flows: int
    """Flows put together."""
    elephants: int
    """Those of them that are elephants."""
    flowsets: int
    """Flowsets, single flows included."""
    single_flows: int
    """Flowsets of one flow."""
    spilled_bytes: int
    """Bytes that did not fit into memory, each time they were written."""
    largest_key: int
    """Most records of one key held at once beyond ``memory_bytes``; 0 if it never came to that."""
    largest_pair: int
    """Most flows of one pair of hosts held at once beyond ``memory_bytes``; 0 if it never came to that."""

def analyse(
    paths: Sequence[str | PathLike[str]],
    *,
    flows: str | PathLike[str] | None,
    flowsets: str | PathLike[str] | None,
    gap_us: int,
    threshold_bytes: int,
    window_us: int,
    tau_us: int,
    rule: Literal["span", "chain"],
    elephants_only: bool,
    memory_bytes: int,
    threads: int,
    progress: Callable[[int, int], object] | None,
) -> Statistics:
    """Reconstruct flows and parallel flowsets from Parquet files of flow records.

    Results are those of the Ibis expressions, to the last bit; ``flows`` and ``flowsets`` are the Parquet files
    to write (``None``: only counted). Lengths of time are microseconds. ``progress`` is given steps done and steps
    in all, some twenty times a second; what it raises, ``KeyboardInterrupt`` too, ends the analysis and removes what
    it had begun to write. The interpreter is free meanwhile.

    Raises ``ValueError`` for a parameter, a file or a value that is not as expected, saying which and what was, and
    ``OSError`` for what the system refuses.
    """

class Top(TypedDict):
    """The largest groups, column by column."""

    key: list[list[Any]]
    """What the records of each group have in common; a list for each column of the key."""
    bytes: list[int]
    """Scaled by sampling."""
    packets: list[int]
    """Scaled by sampling."""
    flows: list[int]
    """Records."""
    share: list[float | None]
    """Of all bytes, packets or records, as ordered; None where there are none."""
    flow_start_us: list[int]
    """First packet, microseconds since 1970 (UTC)."""
    flow_end_us: list[int]
    """Last packet."""
    observation_points: int
    """Observation points of all records; 0 if all records count."""
    records_left_out: int
    """Records that do not count, because another observation point counts their flow."""

def top(
    paths: Sequence[str | PathLike[str]],
    *,
    key: Sequence[tuple[str, str | None]],
    order: str,
    limit: int | None,
    once_gap_us: int | None,
    per_router: bool,
    memory_bytes: int,
    threads: int,
    progress: Callable[[int, int], object] | None,
) -> Top:
    """The largest groups of Parquet files of flow records, the largest first; equals in the order of their keys.

    A part of the key is a column, and the column of the other end if a record belongs to both. Results are those of
    ``thalweg.top.top``, to the last bit. ``order`` is ``bytes``, ``packets`` or ``flows``; ``progress`` as of
    ``analyse``. With ``once_gap_us`` each flow counts once (``thalweg.once``), or once per router; with None all records count.

    Raises ``MemoryError`` for more groups than ``memory_bytes`` hold, and ``ValueError`` and ``OSError`` as ``analyse``.
    """

class GeoDatabases:
    """Databases of countries and AS numbers in MMDB format (Rust: ``thalweg_records::geo``).

    Raises ``ValueError`` for a file that is no database, and ``OSError`` for what the system refuses.
    """

    def __init__(self, paths: Sequence[str | PathLike[str]]) -> None: ...
    def lookup(self, addresses: list[str]) -> tuple[list[str], list[str], list[int]]:
        """The addresses that a database knows, their countries (two letters, or empty) and their AS numbers (or 0)."""

Bounds: TypeAlias = tuple[float, float, float, float]
"""Value, lower and upper bound, confidence; the last three are NaN without a bound."""

class NativeSketch:
    """A sketch with sampled updates; ``thalweg.sketches.Sketch`` describes the arguments."""

    def __init__(
        self,
        kind: str,
        *,
        rows: int,
        width: int,
        memory_bytes: int | None,
        guarantee: tuple[float, float] | None,
        levels: int,
        top: int,
        counter_bits: int,
        seed: int,
        sampler_seed: int,
        p: float,
        correct: float | None,
    ) -> None: ...
    def update(self, keys: npt.NDArray[np.uint8], key_bytes: int, weights: npt.NDArray[np.int64] | None) -> None: ...
    def estimates(self, keys: npt.NDArray[np.uint8], key_bytes: int) -> bytes: ...
    def largest(self) -> list[tuple[bytes, Bounds]]: ...
    def f2(self) -> Bounds: ...
    def distinct(self) -> Bounds: ...
    def entropy(self) -> Bounds: ...
    def merge(self, other: NativeSketch) -> None: ...
    def subtract(self, other: NativeSketch) -> None: ...
    def clear(self) -> None: ...
    def copy(self) -> NativeSketch: ...
    def encode(self, key_kind: str, label: str, window_ns: tuple[int, int]) -> bytes: ...
    @staticmethod
    def decode(state: bytes) -> tuple[NativeSketch, str, str, tuple[int, int]]: ...
    @property
    def kind(self) -> str: ...
    @property
    def p(self) -> float: ...
    @property
    def total(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def saturations(self) -> int: ...
