"""Sketches: summaries of a stream of weighted keys in a small, fixed memory, with NitroSketch sampling.

    import numpy as np
    from thalweg.sketches import Sketch

    sketch = Sketch("count-sketch", rows=5, width=4096, top=10, p=1 / 16)
    sketch.update(np.random.default_rng(1).zipf(1.2, 1_000_000).astype("u4"))
    sketch.largest()             # keys with their estimates and bounds
    sketch.estimate(np.array([1, 2, 3], dtype="u4"))
    sketch.save("window.sketch", key_kind="rank")

The same sketches as in ``thalweg watch``, with the same saved states: ``thalweg sketch show window.sketch`` reads them, and
``Sketch.load`` reads those of ``thalweg watch --save-sketches``. What a kind guarantees is in the guide on sketches.
"""

from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ._native import NativeSketch

__all__ = ["Estimate", "Sketch"]

_BOUNDS = np.dtype([("value", "f8"), ("lower", "f8"), ("upper", "f8"), ("confidence", "f8")])


class Estimate(NamedTuple):
    """A value with its bounds, which are NaN where none is known."""

    value: float
    """The estimate."""
    lower: float
    """The truth is at least this ..."""
    upper: float
    """... and at most this ..."""
    confidence: float
    """... with this probability."""


class Sketch:
    """A Count-Min, Count Sketch, K-ary or UnivMon sketch whose row updates are sampled.

    Keys are the items of a numpy array: numbers (their bytes in network byte order, so that a ``u4`` is an IPv4 address),
    ``S`` strings of one length, structured items, or the rows of a two-dimensional array of bytes. They have up to 64 bytes.
    """

    def __init__(
        self,
        kind: str = "count-sketch",
        *,
        rows: int = 5,
        width: int = 1024,
        memory_bytes: int | None = None,
        guarantee: tuple[float, float] | None = None,
        levels: int = 16,
        top: int = 100,
        counter_bits: int = 32,
        seed: int = 0,
        sampler_seed: int = 1,
        p: float = 1.0,
        correct: float | None = None,
    ) -> None:
        """Creates an empty sketch.

        kind: ``count-min``, ``count-sketch``, ``k-ary`` or ``univmon``.
        rows, width: the shape; the width is a power of two.
        memory_bytes: the widest shape that fits, instead of ``width``.
        guarantee: (eps, delta), the smallest shape whose error is at most eps L1 (count-min) or L2 with probability 1 - delta.
        levels: of a UnivMon.
        top: the number of largest keys to track, 0 for none.
        counter_bits: 32 or 64.
        seed: of the hash; sketches are merged only if it is equal.
        p: the probability of a row update, 1, 1/2, ... 1/1024.
        correct: AlwaysCorrect: sampling begins as soon as it keeps the error below this share of L2.
        """
        self._native = NativeSketch(
            kind,
            rows=rows,
            width=width,
            memory_bytes=memory_bytes,
            guarantee=guarantee,
            levels=levels,
            top=top,
            counter_bits=counter_bits,
            seed=seed,
            sampler_seed=sampler_seed,
            p=p,
            correct=correct,
        )
        self.key_kind = ""
        """The kind of keys of a saved sketch, such as ``5tuple``."""
        self.label = ""
        """The label of a saved sketch."""

    def update(self, keys: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> None:
        """Counts keys with a weight of 1 each, or with these integers."""
        data, key_bytes = _key_bytes(keys)
        of_keys = None if weights is None else _weights(weights)
        self._native.update(data, key_bytes, of_keys)

    def estimate(self, keys: npt.ArrayLike) -> npt.NDArray[Any]:
        """Returns the estimated weight of each key: an array with the fields value, lower, upper and confidence."""
        data, key_bytes = _key_bytes(keys)
        return np.frombuffer(self._native.estimates(data, key_bytes), dtype=_BOUNDS)

    def largest(self, count: int | None = None) -> list[tuple[bytes, Estimate]]:
        """Returns the keys with the largest estimates, largest first: at most ``count``, or all that are tracked."""
        if count is not None and count < 0:
            raise ValueError(f"count = {count}: expected at least 0")
        return [(key, Estimate(*bounds)) for key, bounds in self._native.largest()[:count]]

    def f2(self) -> Estimate:
        """Returns the sum of the squares of all keys' weights; not of a Count-Min."""
        return Estimate(*self._native.f2())

    def distinct(self) -> Estimate:
        """Returns the number of distinct keys, of a UnivMon."""
        return Estimate(*self._native.distinct())

    def entropy(self) -> Estimate:
        """Returns the entropy of the weights over the keys in bits, of a UnivMon."""
        return Estimate(*self._native.entropy())

    def merge(self, other: Self) -> None:
        """Adds another sketch of the same kind, shape and seed: then this is the sketch of both streams."""
        if other is self:
            raise ValueError("a sketch cannot be merged with itself")
        self._native.merge(other._native)

    def __sub__(self, earlier: Self) -> Self:
        """Returns the sketch of the change since an earlier window."""
        if not isinstance(earlier, Sketch):
            return NotImplemented
        difference = self.copy()
        difference._native.subtract(earlier._native)
        return difference

    def copy(self) -> Self:
        """Returns a copy, which counts on with p = 1."""
        return self._with(self._native.copy(), self.key_kind, self.label)

    def clear(self) -> None:
        """Empties the sketch for a new window."""
        self._native.clear()

    def to_bytes(self, *, key_kind: str | None = None, label: str | None = None, window_ns: tuple[int, int] = (0, 0)) -> bytes:
        """Returns the saved state. ``window_ns`` is its begin and end since 1970, (0, 0) for none."""
        kind = self.key_kind if key_kind is None else key_kind
        return self._native.encode(kind, self.label if label is None else label, window_ns)

    def save(
        self, path: str | PathLike[str], *, key_kind: str | None = None, label: str | None = None, window_ns: tuple[int, int] = (0, 0)
    ) -> None:
        """Writes the saved state to a file."""
        Path(path).write_bytes(self.to_bytes(key_kind=key_kind, label=label, window_ns=window_ns))

    @classmethod
    def from_bytes(cls, state: bytes) -> Self:
        """Restores a saved state. The sketch counts on with p = 1. ``ValueError`` if the bytes are damaged."""
        native, key_kind, label, _ = NativeSketch.decode(state)
        return cls._with(native, key_kind, label)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Restores a saved state from a file, of ``save`` or of ``thalweg watch``.

        Those of its tasks ``distinct`` and ``spread`` are refused: they have no counters.
        """
        try:
            return cls.from_bytes(Path(path).read_bytes())
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    @classmethod
    def _with(cls, native: NativeSketch, key_kind: str, label: str) -> Self:
        sketch = cls.__new__(cls)
        sketch._native, sketch.key_kind, sketch.label = native, key_kind, label
        return sketch

    @property
    def kind(self) -> str:
        """The kind: ``Count-Min``, ``Count Sketch``, ``K-ary`` or ``UnivMon``."""
        return self._native.kind

    @property
    def p(self) -> float:
        """The current probability of a row update."""
        return self._native.p

    @property
    def total(self) -> int:
        """The sum of all weights."""
        return self._native.total

    @property
    def memory_bytes(self) -> int:
        """The memory of counters and candidates."""
        return self._native.memory_bytes

    @property
    def saturations(self) -> int:
        """Additions that exceeded a counter's range; bounds hold while there are none."""
        return self._native.saturations

    def __repr__(self) -> str:
        return f"<{self.kind}, total {self.total}, {self.memory_bytes} bytes, p = {self.p}>"


def _key_bytes(keys: npt.ArrayLike) -> tuple[npt.NDArray[np.uint8], int]:
    """Returns the bytes of all keys and the length of one."""
    array = np.asarray(keys)
    if array.ndim == 2 and array.dtype == np.uint8:
        return np.ascontiguousarray(array).reshape(-1), array.shape[1]
    if array.ndim != 1 or array.dtype.hasobject:
        expected = "one dimension of numbers, fixed strings or structures, or two of bytes"
        raise ValueError(f"keys: expected {expected}, not {array.dtype} {array.shape}")
    if array.dtype.kind in "iuf" and array.dtype.itemsize > 1:
        array = array.astype(array.dtype.newbyteorder(">"), copy=False)
    return np.ascontiguousarray(array).view(np.uint8).reshape(-1), array.dtype.itemsize


def _weights(weights: npt.ArrayLike) -> npt.NDArray[np.int64]:
    array = np.asarray(weights)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ValueError(f"weights: expected one dimension of integers, not {array.dtype} {array.shape}")
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"weights: expected at most 2**63 - 1, not {array.max()}")
    return np.ascontiguousarray(array, dtype=np.int64)
