"""Sketches from Python: `python bench/sketches.py [--packets N] [--flows N] [--csv FILE]`.

Updates a second of `thalweg.sketches` on numpy batches, and of Apache DataSketches, whose Count-Min takes one item a call, on the same keys;
the relative error over the 100 largest flows is of the same run. Contenders take turns; the median of five runs counts.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from thalweg.sketches import Sketch

ROWS, WIDTH, BATCH, RUNS = 5, 1024, 10_000, 5


def keys(packets: int, flows: int) -> np.ndarray:
    """Returns flow numbers after Zipf's law with exponent 1."""
    weights = 1 / np.arange(1, flows + 1)
    draws = np.random.default_rng(1).random(packets) * weights.sum()
    return np.searchsorted(np.cumsum(weights), draws).astype(np.uint64)


class Ours:
    """A sketch of ours with sampling probability p."""

    def __init__(self, kind: str, p: float) -> None:
        self.kind, self.p, self.name = kind, p, f"thalweg {kind}, p = 1/{round(1 / p)}"

    def run(self, stream: np.ndarray) -> tuple[float, Callable[[np.ndarray], np.ndarray]]:
        sketch = Sketch(self.kind, rows=ROWS, width=WIDTH, top=0 if self.kind != "univmon" else 100, p=self.p)
        begin = time.process_time()
        for first in range(0, len(stream), BATCH):
            sketch.update(stream[first : first + BATCH])
        return time.process_time() - begin, lambda asked: sketch.estimate(asked)["value"]


class DataSketches:
    """The Count-Min of Apache DataSketches, with the same number of counters."""

    name = "datasketches count_min_sketch"

    def run(self, stream: np.ndarray) -> tuple[float, Callable[[np.ndarray], np.ndarray]]:
        from datasketches import count_min_sketch

        sketch = count_min_sketch(ROWS, WIDTH)
        items: list[int] = stream.tolist()
        update = sketch.update
        begin = time.process_time()
        for item in items:
            update(item)
        return time.process_time() - begin, lambda asked: np.array([sketch.get_estimate(int(key)) for key in asked])


def contenders() -> Iterator[Any]:
    for kind in ["count-min", "count-sketch", "k-ary", "univmon"]:
        for p in [1, 1 / 16, 1 / 64]:
            yield Ours(kind, p)
    try:
        import datasketches  # noqa: F401

        yield DataSketches()
    except ImportError:
        print("skipped: datasketches: pip install datasketches", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packets", type=int, default=2_000_000)
    parser.add_argument("--flows", type=int, default=1_000_000)
    parser.add_argument("--csv", help="write all runs to this file")
    options = parser.parse_args()
    stream = keys(options.packets, options.flows)
    numbers, counts = np.unique(stream, return_counts=True)
    top = np.argsort(counts)[::-1][:100]
    asked, truth = numbers[top], counts[top]

    all_contenders = list(contenders())
    times: dict[str, list[float]] = {contender.name: [] for contender in all_contenders}
    errors: dict[str, float] = {}
    rows = []
    for run in range(RUNS):
        for contender in all_contenders:
            seconds, estimate = contender.run(stream)
            times[contender.name].append(seconds)
            errors[contender.name] = float(np.mean(np.abs(estimate(asked) - truth) / truth))
            rows.append([contender.name, run, len(stream), seconds, errors[contender.name]])
    print(f"{'':36} {'M updates/s':>12} {'error of top 100':>17}")
    for name, seconds_of in times.items():
        print(f"{name:36} {len(stream) / statistics.median(seconds_of) / 1e6:12.2f} {errors[name]:17.2%}")
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["contender", "run", "updates", "seconds", "relative_error"])
            writer.writerows(rows)


if __name__ == "__main__":
    main()
