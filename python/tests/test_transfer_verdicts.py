"""Verdicts on a generated set with known causes: see `made_transfers`.

Bounds, written before the first run: at least 90 % of the causes are correct, and at most 2 % of the transfers without a cause are blamed.
Half of the seeds were held back until the rules were finished. Eight seeds of each half were judged then; the tests repeat three. With 15
transfers of each cause and 90 of none a seed, they give 405 and 270: at a true rate of 95 %, fewer than 90 % correct have a chance of less
than 1e-4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from made_transfers import CAUSES, make

from thalweg.engines import Engine
from thalweg.transfers import Stored, Transfers

SEEDS, HELD_BACK = range(1, 4), range(201, 204)
CORRECT, FALSE_ALARMS = 0.90, 0.02
SURE, SURE_CORRECT = 0.8, 0.95


@pytest.fixture(scope="module", params=[SEEDS, HELD_BACK], ids=["seeds", "held back"])
def judged(
    request: pytest.FixtureRequest, engine_of: Callable[[str], Engine], tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[str, str, float]]:
    """Cause, verdict and confidence of each transfer."""
    store = make(request.param)
    directory = tmp_path_factory.mktemp("made")
    store.write(directory)
    rows = Transfers(Stored(engine_of("duckdb"), directory)).verdicts.to_pyarrow().to_pylist()
    assert len(rows) == len(store.causes)
    return [(store.causes[row["transfer"]], row["cause"], row["confidence"]) for row in rows]


def matrix(judged: list[tuple[str, str, float]]) -> str:
    """The confusion matrix: a row for each cause, with its verdicts."""
    counts = {cause: Counter(verdict for label, verdict, _ in judged if label == cause) for cause in (*CAUSES, "none")}
    return "\n".join(f"{cause:16} {dict(found.most_common())}" for cause, found in counts.items())


def test_causes_are_found_and_harmless_load_is_not_blamed(judged: list[tuple[str, str, float]]) -> None:
    print(matrix(judged))
    with_cause = [(label, verdict) for label, verdict, _ in judged if label != "none"]
    without = [verdict for label, verdict, _ in judged if label == "none"]
    assert sum(label == verdict for label, verdict in with_cause) >= CORRECT * len(with_cause), matrix(judged)
    assert sum(verdict in CAUSES for verdict in without) <= FALSE_ALARMS * len(without), matrix(judged)
    for cause in CAUSES:
        of_cause = [verdict for label, verdict in with_cause if label == cause]
        assert of_cause.count(cause) >= CORRECT * len(of_cause) - 1, matrix(judged)


def test_confident_verdicts_are_correct(judged: list[tuple[str, str, float]]) -> None:
    sure = [label == verdict for label, verdict, confidence in judged if confidence >= SURE and verdict != "not_enough_data"]
    assert len(sure) > len(judged) / 3
    assert sum(sure) >= SURE_CORRECT * len(sure)
