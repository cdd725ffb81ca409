"""Sketches over numpy arrays: bounds hold, states are those of the program, wrong arguments are refused."""

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.sketches import Sketch

KINDS = ["count-min", "count-sketch", "k-ary", "univmon"]
ROOT = Path(__file__).resolve().parents[2]


def stream(packets: int = 200_000, seed: int = 1) -> np.ndarray:
    return (np.random.default_rng(seed).zipf(1.3, packets) % 50_000).astype("u4")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", [1, 1 / 16])
def test_the_largest_keys_are_found_with_bounds_that_hold(kind: str, p: float) -> None:
    keys = stream()
    truth = Counter(keys.tolist())
    sketch = Sketch(kind, width=4096, top=20, p=p, seed=5)
    for batch in np.array_split(keys, 50):
        sketch.update(batch)
    largest = sketch.largest(5)
    assert [int.from_bytes(key, "big") for key, _ in largest] == [key for key, _ in truth.most_common(5)]
    inside = sum(e.lower <= truth[int.from_bytes(key, "big")] <= e.upper for key, e in sketch.largest())
    assert inside >= 18
    asked = np.array([key for key, _ in truth.most_common(5)], dtype="u4")
    assert sketch.estimate(asked)["value"].tolist() == [estimate.value for _, estimate in largest]
    assert (sketch.total, sketch.p) == (len(keys), p)


def test_a_univmon_answers_distinct_keys_and_entropy() -> None:
    keys = stream()
    sketch = Sketch("univmon", width=4096, top=500)
    sketch.update(keys)
    shares = np.array(list(Counter(keys.tolist()).values())) / len(keys)
    entropy = -(shares * np.log2(shares)).sum()
    assert abs(sketch.distinct().value / len(shares) - 1) < 0.2
    assert sketch.entropy().lower <= entropy <= sketch.entropy().upper
    assert abs(sketch.entropy().value - entropy) < 0.1
    with pytest.raises(ValueError, match="a Count Sketch does not estimate entropy"):
        Sketch().entropy()


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_any_batches_and_any_merge_give_the_same_state(data: st.DataObject) -> None:
    keys = np.array(data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=300)), dtype="u2")
    weights = np.array(data.draw(st.lists(st.integers(1, 1500), min_size=len(keys), max_size=len(keys))))
    cut = data.draw(st.integers(0, len(keys)))
    kind = data.draw(st.sampled_from(KINDS[:3]))
    whole, first, second = (Sketch(kind, width=64, top=0) for _ in range(3))
    whole.update(keys, weights)
    first.update(keys[:cut], weights[:cut])
    second.update(keys[cut:], weights[cut:])
    first.merge(second)
    assert first.to_bytes() == whole.to_bytes()
    assert (whole - second).total == weights[:cut].sum()


def test_keys_are_the_bytes_of_any_fixed_dtype() -> None:
    sketches = [Sketch(top=0) for _ in range(4)]
    numbers = np.array([0x0A000001, 0x0A000002], dtype="<u4")
    sketches[0].update(numbers)
    sketches[1].update(numbers.astype(">u4"))
    sketches[2].update(np.array([[10, 0, 0, 1], [10, 0, 0, 2]], dtype="u1"))
    structured = np.array([(10, 1), (10, 2)], dtype=[("net", "u1"), ("host", ">u2")])
    assert structured.dtype.itemsize == 3
    sketches[3].update(np.array([b"\x0a\0\0\1", b"\x0a\0\0\2"], dtype="S4"))
    assert len({sketch.to_bytes() for sketch in sketches}) == 1
    sketches[0].update(structured)
    assert sketches[0].total == 4
    sketches[0].update(numbers[::-1][:0])
    assert sketches[0].total == 4


def test_a_saved_state_is_read_by_the_program_and_back(tmp_path: Path) -> None:
    thalweg = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "thalweg"
    if not thalweg.exists():
        pytest.skip("the program is not built")
    sketch = Sketch("univmon", width=256, top=5)
    sketch.update(np.full(1000, 0x0A000001, dtype="u4"))
    sketch.save(tmp_path / "s.sketch", key_kind="src", label="test")
    shown = subprocess.run([thalweg, "sketch", "show", "--json", tmp_path / "s.sketch"], check=True, capture_output=True, text=True)
    record = json.loads(shown.stdout.splitlines()[0])
    assert (record["key_kind"], record["label"]) == ("src", "test")
    assert "10.0.0.1" in shown.stdout
    again = Sketch.load(tmp_path / "s.sketch")
    assert (again.key_kind, again.label, again.largest()) == ("src", "test", sketch.largest())
    assert repr(again).startswith("<UnivMon, total 1000,")


def test_wrong_arguments_are_refused_with_the_expectation(tmp_path: Path) -> None:
    for arguments, message in [
        ({"kind": "bloom"}, 'kind "bloom": expected count-min, count-sketch, k-ary, univmon'),
        ({"p": 0.3}, "p = 0.3: expected 1, 1/2"),
        ({"width": 1000}, "expected a power of two"),
        ({"counter_bits": 8}, "expected 32 or 64"),
        ({"guarantee": (0.0, 0.1)}, "eps = 0"),
        ({"guarantee": (0.1, 0.1), "memory_bytes": 10_000}, "guarantee and memory_bytes: expected one of them"),
        ({"correct": 0.1, "p": 0.5}, "correct and p: expected one of them"),
        ({"correct": -1.0}, "expected a number above 0"),
        ({"top": 2**40}, "expected at most 16777216"),
    ]:
        with pytest.raises(ValueError, match=message):
            Sketch(**arguments)  # type: ignore[arg-type]
    sketch = Sketch()
    for keys, weights, message in [
        (np.zeros((2, 2, 2)), None, "one dimension of numbers"),
        (np.array([{}, {}]), None, "not object"),
        (np.zeros(2, dtype="S65"), None, "keys of 65 bytes: expected 1 to 64"),
        (np.zeros(2, dtype="u4"), np.ones(3, dtype=int), "3 weights for 2 keys"),
        (np.zeros(2, dtype="u4"), np.ones(2), "one dimension of integers, not float64"),
        (np.zeros(1, dtype="u4"), np.full(1, 2**64 - 1, dtype="u8"), "expected at most 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            sketch.update(keys, weights)
    with pytest.raises(ValueError, match="hash seeds differ"):
        sketch.merge(Sketch(seed=1))
    with pytest.raises(ValueError, match="merged with itself"):
        sketch.merge(sketch)
    with pytest.raises(ValueError, match="at least 0"):
        sketch.largest(-1)
    with pytest.raises(ValueError, match="window_ns: expected an end of at least the begin 2, not 1"):
        sketch.to_bytes(window_ns=(2, 1))
    (tmp_path / "x").write_bytes(b"text")
    with pytest.raises(ValueError, match="x: "):
        Sketch.load(tmp_path / "x")
