"""Two applications on Spark, which the runner starts as the driver: a sort and a block coordinate descent.

Prints a line of JSON for each run, with its completion time. Input is created and cached before the clock starts, so a run is what the
application does with data in memory. Each run checks its result.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from pyspark import RDD, SparkConf, SparkContext

Matrix = np.ndarray

KEY_BYTES = 10
VALUE_BYTES = 90


@dataclass(frozen=True)
class SortSize:
    """Size of a sort: records of 100 bytes, and tasks of each wave."""

    records: int
    partitions: int


@dataclass(frozen=True)
class DescentSize:
    """Size of a least squares problem, and of its blocks."""

    rows: int
    blocks: int
    block_features: int
    outputs: int
    partitions: int
    epochs: int


# A transfer of the sort has 2,000,000 / 16 / 16 = 8 kB. One of the descent has a matrix of 512 x 640 numbers: 2.6 MB.
SORT = SortSize(records=20_000, partitions=16)
DESCENT = DescentSize(rows=8_000, blocks=4, block_features=512, outputs=128, partitions=8, epochs=1)


def numbers(seed: int, part: int) -> np.random.Generator:
    """Return the random numbers of a partition."""
    return np.random.default_rng([seed, part])


def random_records(seed: int, part: int, count: int) -> list[tuple[bytes, bytes]]:
    """Return records with random keys and values."""
    data = numbers(seed, part).bytes(count * (KEY_BYTES + VALUE_BYTES))
    size = KEY_BYTES + VALUE_BYTES
    return [(data[at : at + KEY_BYTES], data[at + KEY_BYTES : at + size]) for at in range(0, len(data), size)]


def summary(part: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[int, bytes, bytes, bool]]:
    """Yield number, first and last key of a sorted partition, and whether it is sorted."""
    keys = [key for key, _ in part]
    if keys:
        yield len(keys), keys[0], keys[-1], all(a <= b for a, b in pairwise(keys))


def sort(context: SparkContext, seed: int, size: SortSize) -> float:
    """Sort random records in memory: waves of small tasks, each of which fetches a few kilobytes from every other. Return the seconds."""
    count = size.records // size.partitions
    parts = context.parallelize(range(size.partitions), size.partitions)
    records = parts.flatMap(lambda part: random_records(seed, part, count)).cache()
    records.count()
    start = time.monotonic()
    found = records.sortByKey(numPartitions=size.partitions).mapPartitions(summary).collect()
    seconds = time.monotonic() - start
    records.unpersist(blocking=True)
    ends = [key for _, first, last, _ in found for key in (first, last)]
    if sum(number for number, *_ in found) != count * size.partitions or ends != sorted(ends) or not all(it[3] for it in found):
        message = "the records are not sorted"
        raise RuntimeError(message)
    return seconds


def features_of(seed: int, part: int, block: int, size: DescentSize) -> Matrix:
    """Return a block of the features of a partition's rows."""
    return numbers(seed, part * size.blocks + block).standard_normal((size.rows // size.partitions, size.block_features))


def outputs_of(seed: int, part: int, size: DescentSize) -> Matrix:
    """Return the outputs of a partition's rows: a random linear model of all features."""
    model = numbers(seed, size.partitions * size.blocks)
    shape = (size.block_features, size.outputs)
    return sum(features_of(seed, part, block, size) @ model.standard_normal(shape) for block in range(size.blocks))


def normal_equations(features: Matrix, residual: Matrix) -> Matrix:
    """Return the matrix and the right side of a block's least squares problem, side by side."""
    return np.hstack((features.T @ features, features.T @ residual))


def squares(residual: Matrix) -> float:
    """Return the sum of the squares."""
    return float(np.sum(residual * residual))


def coordinate_descent(context: SparkContext, seed: int, size: DescentSize) -> float:
    """Solve a least squares problem block by block. Return the seconds.

    Each step adds up a matrix over all workers as a tree, solves the problem of its block on the driver, and broadcasts the solution, which
    changes the residual of the workers.
    """
    parts = context.parallelize(range(size.partitions), size.partitions)
    features = [parts.map(lambda part, block=block: features_of(seed, part, block, size)).cache() for block in range(size.blocks)]
    residual: RDD[Matrix] = parts.map(lambda part: outputs_of(seed, part, size)).cache()
    for block in features:
        block.count()
    before = residual.map(squares).sum()
    old: list[RDD[Matrix]] = []
    start = time.monotonic()
    for step in range(size.epochs * size.blocks):
        pairs = features[step % size.blocks].zip(residual)
        summed = pairs.map(lambda pair: normal_equations(*pair)).treeReduce(np.add, depth=2)
        matrix, right = summed[:, : size.block_features], summed[:, size.block_features :]
        solution = context.broadcast(np.linalg.solve(matrix, right))
        old.append(residual)
        residual = pairs.map(lambda pair, solution=solution: pair[1] - pair[0] @ solution.value).cache()
    error = residual.map(squares).sum()
    seconds = time.monotonic() - start
    for it in (*old, residual, *features):
        it.unpersist(blocking=True)
    # Each block of random features removes about its share of the error, and the last one what it can.
    if not error < 0.5 * before:
        message = f"the error fell from {before:.3g} only to {error:.3g}"
        raise RuntimeError(message)
    return seconds


def main() -> None:
    """Run the applications in turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--master", required=True, help="address of the cluster, as spark://10.0.0.1:7077")
    parser.add_argument("--address", required=True, help="address of this host")
    parser.add_argument("--warm-up", type=int, default=1, help="runs that do not count")
    parser.add_argument("--runs", type=int, default=1, help="runs of each application that count")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    settings = {
        "spark.driver.host": options.address,
        "spark.driver.bindAddress": options.address,
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    conf = SparkConf().setMaster(options.master).setAppName("flexplane-applications").setAll(list(settings.items()))
    context = SparkContext(conf=conf)
    context.setLogLevel("ERROR")
    for run in range(-options.warm_up, options.runs):
        for name, seconds in (
            ("sort", sort(context, options.seed + run, SORT)),
            ("coordinate_descent", coordinate_descent(context, options.seed + run, DESCENT)),
        ):
            print(json.dumps({"application": name, "run": run, "seconds": seconds}), flush=True)
    context.stop()


if __name__ == "__main__":
    main()
