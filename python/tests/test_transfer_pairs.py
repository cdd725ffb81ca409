"""Entries of both ends that are one transfer, clocks, connections and buffers: cases in which the obvious rule is wrong."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_transfers import SECOND, START, Store
from test_transfers import HOUR, entry, rows_of

from thalweg.engines import Engine
from thalweg.sources import TimeRange
from thalweg.transfers import Stored, Transfers
from thalweg.transfers.clocks import clocks
from thalweg.transfers.entries import FLUSH_US, TOLERANCE_US, entries
from thalweg.transfers.page import page

EngineOf = Callable[[str], Engine]
SENDER, RECEIVER = "dtn-192.0.2.1", "dtn-198.51.100.1"
TUPLE = {"src": "192.0.2.1", "dst": "198.51.100.1", "direction": "send", "reporter": SENDER, "process": "globus-gridftp-"}


def sent(store: Store, name: str, begin_s: float, end_s: float, **given: Any) -> None:
    entry(store, f"s{name:>03}", start=START + int(begin_s * SECOND), end=START + int(end_s * SECOND), **given)


def arrived(store: Store, name: str, begin_s: float, end_s: float, **given: Any) -> None:
    at = {"start": START + int(begin_s * SECOND), "end": START + int(end_s * SECOND)}
    entry(store, f"r{name:>03}", reporter=RECEIVER, direction="receive", **at, **given)


def samples(store: Store, times: Any, interval_us: int = SECOND, **given: Any) -> None:
    store.connections.add(len(times), received=times, time=times, interval_us=interval_us, **TUPLE | given)


def pairs_of(engine: Engine, directory: Path) -> dict[str, str]:
    """Returns the partner of each transfer; empty: it has none."""
    stored = Stored(engine, directory)
    rows = entries(stored, clocks(stored)).to_pyarrow().to_pylist()
    assert len({row["transfer"] for row in rows}) == len(rows)
    return {row["transfer"]: row["paired_transfer"] for row in rows}


@pytest.fixture
def pairs(engine_of: EngineOf, tmp_path: Path) -> Callable[[Store], dict[str, str]]:
    def write_and_pair(store: Store) -> dict[str, str]:
        store.write(tmp_path)
        return pairs_of(engine_of("duckdb"), tmp_path)

    return write_and_pair


@pytest.fixture
def opened(engine_of: EngineOf, tmp_path: Path) -> Callable[[Store], Transfers]:
    def write_and_open(store: Store) -> Transfers:
        store.write(tmp_path)
        return Transfers(Stored(engine_of("duckdb"), tmp_path))

    return write_and_open


def same(numbers: Any) -> dict[str, str]:
    return {f"s{number:03}": f"r{number:03}" for number in numbers}


# --- Pairs


def test_simultaneous_files_of_one_size_are_paired_one_to_one(engine_of: EngineOf, tmp_path: Path) -> None:
    store = Store()
    for number in range(8):
        sent(store, str(number), 0, 80)
        arrived(store, str(number), 0, 80)
    store.write(tmp_path)
    assert pairs_of(engine_of("duckdb"), tmp_path) == same(range(8))


@pytest.mark.parametrize("later_s", [0, 7])
def test_files_that_start_within_a_second_keep_their_order(pairs: Any, later_s: float) -> None:
    store = Store()
    for number in range(8):
        sent(store, str(number), number * 0.02, 80 + number * 0.02)
        arrived(store, str(number), later_s + number * 0.02, 80 + later_s + number * 0.02)
    found = pairs(store)
    assert len(found) == 8
    if later_s != 1.95:  # half of the candidates are in whole seconds nearer than the others
        assert found == same(range(8))


def test_a_file_that_the_receiver_did_not_log_leaves_the_others_paired(pairs: Any) -> None:
    store = Store()
    for number in range(8):
        sent(store, str(number), 0, 80)
        if number != 3:
            arrived(store, str(number), 1, 81)
    found = pairs(store)
    assert len(found) == 8
    assert sum(partner != "" for partner in found.values()) == 7


def test_a_missing_entry_does_not_shift_the_partners_of_a_stream(pairs: Any) -> None:
    store = Store()
    lost = {"sent": {3, 30}, "arrived": {10, 11, 12}}
    for number in range(60):
        if number not in lost["sent"]:
            sent(store, str(number), 5 * number, 5 * number + 4)
        if number not in lost["arrived"]:
            arrived(store, str(number), 5 * number + 1, 5 * number + 5)
    found = pairs(store)
    alone = {f"r{number:03}": "" for number in lost["sent"]} | {f"s{number:03}": "" for number in lost["arrived"]}
    assert found == {name: partner for name, partner in same(range(60)).items() if name[1:] not in {key[1:] for key in alone}} | alone


def test_equal_names_of_files_decide_among_files_of_one_size(pairs: Any) -> None:
    store = Store()
    for number, name in enumerate("abc"):
        sent(store, str(number), number, 80, file=name)
    for number, name in enumerate("cab"):
        arrived(store, str(number), number, 80, file=name)
    assert pairs(store) == {"s000": "r001", "s001": "r002", "s002": "r000"}


def test_names_that_hosts_hash_differently_do_not_matter(pairs: Any) -> None:
    store = Store()
    sent(store, "1", 0, 80, file="5d41402a")
    arrived(store, "1", 1, 81, file="7d793037")
    assert pairs(store) == same([1])


def test_a_receiver_that_flushes_is_paired_with_the_sender_of_the_same_start(pairs: Any) -> None:
    store = Store()
    for number in range(8):
        sent(store, str(number), 20 * number, 20 * number + 16)
        arrived(store, str(number), 20 * number, 20 * number + 116)
    for number in range(20, 36):
        sent(store, str(number), 10_000, 10_016)
        arrived(store, str(number), 10_000, 10_040 + 5 * number)
    assert pairs(store) == same([*range(8), *range(20, 36)])


def test_sizes_may_differ_by_one_percent(pairs: Any) -> None:
    store = Store()
    # Each difference of 1 % falls on a boundary of classes of size somewhere.
    sizes = [int(10**9 * 1.003**step) for step in range(60)]
    for number, size in enumerate(sizes):
        sent(store, str(number), 1000 * number, 1000 * number + 80, bytes=size)
        arrived(store, str(number), 1000 * number, 1000 * number + 80, bytes=size - size // 100 + 1)
    sent(store, "100", 100_000, 100_080, bytes=10**9)
    arrived(store, "101", 100_000, 100_080, bytes=985 * 10**6)
    assert pairs(store) == same(range(60)) | {"s100": "", "r101": ""}


def test_ports_that_both_ends_know_must_agree(pairs: Any) -> None:
    store = Store()
    for number in range(4):
        sent(store, str(number), 0, 80, src_port=1000 + number)
        arrived(store, str(number), 0, 80, src_port=1003 - number)
    assert pairs(store) == {f"s{number:03}": f"r{3 - number:03}" for number in range(4)}


def of_chance(seed: int) -> tuple[Store, list[dict[str, Any]]]:
    """Makes entries of few sizes, many at once, some of which one end did not log."""
    random = np.random.default_rng(seed)
    store, rows = Store(), []
    for number in range(120):
        begin = float(random.integers(0, 900) if number % 3 else random.integers(0, 10) * 90)
        length = float(random.integers(5, 90))
        size = int(random.choice([10**9, 4 * 10**9, 4 * 10**9 + 10**7]))
        for direction, add in (("send", sent), ("receive", arrived)):
            late = 0.0 if direction == "send" else float(random.random() * 1.5)
            flushed = 0.0 if direction == "send" or random.random() < 0.7 else float(random.random() * 60)
            if random.random() < 0.15:
                continue
            add(store, str(number), begin + late, begin + length + late + flushed, bytes=size)
            times = {"start": int((begin + late) * SECOND), "end": int((begin + length + late + flushed) * SECOND)}
            rows.append({"transfer": f"{'s' if direction == 'send' else 'r'}{number:03}", "direction": direction, "bytes": size, **times})
    return store, rows


def can_pair(one: dict[str, Any], other: dict[str, Any]) -> bool:
    later = other["end"] - one["end"]
    size = max(one["bytes"], other["bytes"])
    is_near = abs(one["start"] - other["start"]) <= TOLERANCE_US and -TOLERANCE_US <= later <= FLUSH_US
    return is_near and abs(one["bytes"] - other["bytes"]) * 100 <= size


@pytest.mark.parametrize("seed", range(2))
def test_no_two_entries_that_could_be_one_transfer_are_left(seed: int, pairs: Any) -> None:
    store, rows = of_chance(seed)
    found = pairs(store)
    by_name = {row["transfer"]: row for row in rows}
    partners = {name: partner for name, partner in found.items() if partner}
    assert set(found) | set(partners.values()) == set(by_name)
    assert len(set(partners.values())) == len(partners)
    assert all(can_pair(by_name[name], by_name[partner]) for name, partner in partners.items())
    alone = [by_name[name] for name, partner in found.items() if not partner]
    left = [(one, other) for one in alone for other in alone if one["direction"] == "send" and other["direction"] == "receive"]
    assert not any(can_pair(one, other) for one, other in left)
    assert sum(name[1:] == partner[1:] for name, partner in partners.items()) >= 0.8 * len(partners)


@pytest.fixture(scope="module")
def chance(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("chance")
    of_chance(9)[0].write(directory)
    return directory


# Spark: see test_transfers.
@pytest.mark.parametrize("name", ("native", "clickhouse"))
def test_all_engines_find_the_same_pairs(name: str, engine_of: EngineOf, chance: Path) -> None:
    assert pairs_of(engine_of(name), chance) == pairs_of(engine_of("duckdb"), chance)


def test_thousands_of_equal_files_a_minute_are_paired_in_order(pairs: Any) -> None:
    store, count = Store(), 3000
    starts = START + np.arange(count) * SECOND // 50
    for prefix, later, given in (("s", 0, {}), ("r", SECOND // 4, {"reporter": RECEIVER, "direction": "receive"})):
        row = {"reporter": SENDER, "direction": "send", "application": "xrootd", "src": "192.0.2.1", "dst": "198.51.100.1", "bytes": 10**7}
        times = {"start": starts + later, "end": starts + later + SECOND // 10, "received": starts + 5 * SECOND}
        store.transfers.add(count, transfer=[f"{prefix}{number:04}" for number in range(count)], **row | given, **times)
    found = pairs(store)
    assert len(found) == count
    assert all(found.values())
    assert all(name[1:] == partner[1:] for name, partner in found.items())


def test_thousands_of_equal_files_of_which_some_are_missing_are_paired_within_seconds(pairs: Any) -> None:
    store, count = Store(), 3000
    random = np.random.default_rng(1)
    starts = START + np.arange(count) * SECOND // 50
    for prefix, later, given in (("s", 0, {}), ("r", SECOND // 4, {"reporter": RECEIVER, "direction": "receive"})):
        row = {"reporter": SENDER, "direction": "send", "application": "xrootd", "src": "192.0.2.1", "dst": "198.51.100.1", "bytes": 10**7}
        times = {"start": starts + later, "end": starts + later + SECOND // 10, "received": starts + 5 * SECOND}
        lost = random.random(count) < 0.1
        store.transfers.add(count, lost, transfer=[f"{prefix}{number:04}" for number in range(count)], **row | given, **times)
    found = pairs(store)
    partners = {name: partner for name, partner in found.items() if partner}
    assert len(partners) >= 0.97 * 0.9 * count
    assert max(abs(int(name[1:]) - int(partner[1:])) for name, partner in partners.items()) <= 50 * TOLERANCE_US // SECOND


# --- Clocks


def test_a_receiver_that_flushes_has_no_wrong_clock(opened: Any) -> None:
    store = Store()
    for number in range(5):
        times = (1000 * number, 1000 * number + 16)
        sent(store, str(number), *times, bytes=10**10 + number)
        arrived(store, str(number), times[0], times[1] + 100, bytes=10**10 + number)
    transfers = opened(store)
    found = transfers.evidence.clocks
    assert found.wrong() == []
    assert [clock.ahead_us for clock in found.by_reporter.values()] == [0, 0]
    assert {row["transfer"]: row["paired_transfer"] for row in rows_of(transfers)} == same(range(5))


def test_a_sender_that_ends_early_has_no_wrong_clock(opened: Any) -> None:
    store = Store()
    for number in range(5):
        sent(store, str(number), 1000 * number, 1000 * number + 10, bytes=10**10 + number, application="nginx")
        arrived(store, str(number), 1000 * number, 1000 * number + 300, bytes=10**10 + number)
    assert [clock.ahead_us for clock in opened(store).evidence.clocks.by_reporter.values()] == [0, 0]


@pytest.mark.parametrize(("count", "ahead_us"), [(2, 0), (3, -3 * HOUR)])
def test_entries_show_a_wrong_clock_from_three_pairs_on(engine_of: EngineOf, tmp_path: Path, count: int, ahead_us: int) -> None:
    store = Store()
    for number in range(count):
        sent(store, str(number), 1000 * number, 1000 * number + 80, bytes=10**10 + number)
        arrived(store, str(number), 1000 * number + 3 * 3600, 1000 * number + 3 * 3600 + 80, bytes=10**10 + number)
    store.write(tmp_path)
    found = clocks(Stored(engine_of("duckdb"), tmp_path)).by_reporter
    ahead = {name: clock.ahead_us for name, clock in found.items()}
    assert ahead.get(SENDER, 0) - ahead.get(RECEIVER, 0) == ahead_us


def test_connections_at_both_ends_come_before_entries(opened: Any) -> None:
    store = Store()
    for number in range(5):
        sent(store, str(number), 1000 * number, 1000 * number + 80, bytes=10**10 + number)
        arrived(store, str(number), 1000 * number + 25, 1000 * number + 105, bytes=10**10 + number)
    times = START + np.arange(1, 81) * SECOND
    for given in ({}, {"direction": "receive", "reporter": RECEIVER}):
        samples(store, times, src_port=50_000, dst_port=2811, acked_bytes=10**8, **given)
    found = opened(store).evidence.clocks.by_reporter
    assert (found[SENDER].ahead_us, found[RECEIVER].ahead_us, found[SENDER].pairs) == (0, 0, 1)


# --- Connections


def test_a_short_transfer_keeps_its_connections_beside_a_long_one(opened: Any) -> None:
    # 1 TB in 10 hours, and 5 GB in 40 s meanwhile, with four connections each, between the same hosts, without ports in the log.
    store = Store()
    sent(store, "1", 0, 36_000, bytes=10**12)
    sent(store, "2", 7200, 7240, bytes=5 * 10**9)
    for port in range(4):
        long = START + np.arange(1, 3601) * 10 * SECOND
        samples(store, long, 10 * SECOND, src_port=50_000 + port, dst_port=2811, acked_bytes=10**12 // 4 // 3600)
        short = START + (7200 + np.arange(1, 41)) * SECOND
        samples(store, short, src_port=51_000 + port, dst_port=2811, acked_bytes=5 * 10**9 // 4 // 40)
    first, second = rows_of(opened(store))
    assert (first["send_connections"], first["send_samples"]) == (4, 4 * 3600)
    assert second["send_connections"] == 8, "the log cannot tell them apart"
    assert second["send_acked_bytes"] >= 5 * 10**9


def test_a_connection_that_uses_the_same_ports_again_is_another_one(opened: Any) -> None:
    store = Store()
    sent(store, "1", 7200, 7240, bytes=10**9)
    for hour in (0, 5):
        times = START + (hour * 3600 + np.arange(1, 41)) * SECOND
        samples(store, times, src_port=50_000, dst_port=2811, acked_bytes=10**12)
    times = START + (7200 + np.arange(1, 41)) * SECOND
    samples(store, times, src_port=50_001, dst_port=2811, acked_bytes=10**9 // 40)
    (row,) = rows_of(opened(store))
    assert (row["send_connections"], row["send_samples"], row["send_acked_bytes"]) == (1, 40, 10**9)


def test_a_connection_over_several_buckets_of_time_is_one(opened: Any) -> None:
    store = Store()
    sent(store, "1", 100, 2000, bytes=10**9)
    times = START + np.arange(1, 2101) * SECOND
    samples(store, times, src_port=50_000, dst_port=2811, acked_bytes=10**6)
    samples(store, times, src_port=50_001, dst_port=2811, acked_bytes=10**3)
    (row,) = rows_of(opened(store))
    assert (row["send_connections"], row["send_samples"], row["send_acked_bytes"]) == (1, 1900, 1900 * 10**6)


# --- Buffers


def host(store: Store, reporter: str = SENDER, address: str = "192.0.2.1") -> None:
    limits = {"tcp_send_buffer_max_bytes": 2**28, "tcp_receive_buffer_max_bytes": 2**27}
    store.hosts.add(1, received=START, reporter=reporter, time=START, addresses=address, **limits)


def test_a_buffer_that_the_kernel_sizes_is_no_parameter(opened: Any) -> None:
    store = Store()
    host(store)
    for number in range(12):
        sent(store, str(number), 1000 * number, 1000 * number + 80, bytes=10**10 + number, send_buffer_bytes=2**20 + 4096 * number)
    transfers = opened(store)
    assert {row["send_window_bytes"] for row in rows_of(transfers)} == {2**28}
    assert transfers.clusters()["count"].tolist() == [12]


@pytest.mark.parametrize(
    ("sizes", "logged", "expected"),
    [
        ([2**22] * 40, 2**22, 2**22),
        ([2**22] * 40, 2**21, 2**28),
        ([2**20] * 20 + [2**22] * 20, 2**22, 2**28),
        ([0] * 40, 2**22, 2**28),
    ],
    ids=["requested", "of another socket", "grown", "without a size"],
)
def test_a_logged_buffer_counts_if_the_socket_has_this_size_all_the_time(opened: Any, sizes: list[int], logged: int, expected: int) -> None:
    store = Store()
    host(store)
    sent(store, "1", 0, 40, send_buffer_bytes=logged)
    times = START + np.arange(1, 41) * SECOND
    samples(store, times, src_port=50_000, dst_port=2811, acked_bytes=10**8, send_buffer_bytes=np.array(sizes))
    (row,) = rows_of(opened(store))
    assert row["send_window_bytes"] == expected


def test_a_logged_buffer_of_the_receiver_counts_by_the_same_rule(opened: Any) -> None:
    store = Store()
    host(store, RECEIVER, "198.51.100.1")
    times = START + np.arange(1, 41) * SECOND
    for number, size in enumerate((2**21, 2**23)):
        given = {"direction": "receive", "reporter": RECEIVER, "src_port": 50_000 + number, "dst_port": 2811, "received_bytes": 10**8}
        arrived(store, str(number), 1000 * number, 1000 * number + 40, receive_buffer_bytes=2**21, bytes=10**10 + number)
        samples(store, times + 1000 * number * SECOND, receive_buffer_bytes=size, **given)
    assert [row["receive_window_bytes"] for row in rows_of(opened(store))] == [2**21, 2**27]


def test_a_buffer_of_a_program_that_logs_only_chosen_ones_is_a_parameter(opened: Any) -> None:
    store = Store()
    host(store)
    sent(store, "1", 0, 80, application="iperf3", send_buffer_bytes=2**20)
    (row,) = rows_of(opened(store))
    assert row["send_window_bytes"] == 2**20


# --- Periods

DAY = datetime.fromtimestamp(START // SECOND, UTC) + timedelta(days=1)


@pytest.mark.parametrize(("sender_s", "receiver_s"), [(3, -2), (-2, 3 * 3600)])
def test_a_transfer_at_midnight_belongs_to_one_day(engine_of: EngineOf, tmp_path: Path, sender_s: int, receiver_s: int) -> None:
    midnight = 24 * 3600
    store = Store()
    sent(store, "1", midnight - 90, midnight - 10, received=START + (midnight + sender_s) * SECOND)
    arrived(store, "1", midnight - 90, midnight - 10, received=START + (midnight + receiver_s) * SECOND)
    arrived(store, "2", midnight + 500, midnight + 600)
    store.write(tmp_path)
    days = [TimeRange(DAY + timedelta(days=number), DAY + timedelta(days=number + 1)) for number in (-1, 0)]
    found = [Transfers(Stored(engine_of("duckdb"), tmp_path, day)).list().to_pandas() for day in days]
    pair = [["s001"], ["r002"]] if sender_s < 0 else [[], ["r002", "s001"]]
    assert [sorted(frame["transfer"]) for frame in found] == pair
    of_pair = found[0 if sender_s < 0 else 1]
    assert set(of_pair.loc[of_pair["transfer"] == "s001", "paired_transfer"]) == {"r001"}


# --- Reports


def test_combinations_that_differ_in_a_buffer_have_a_histogram_each(opened: Any) -> None:
    store, random = Store(), np.random.default_rng(1)
    for number, (size, rate) in enumerate(((2**20, 3e8), (2**24, 9e8))):
        for index in range(10):
            begin = (100 * number + index) * 1000
            bytes_ = int(random.normal(rate, rate / 20) * 10)
            sent(store, str(10 * number + index), begin, begin + 80, application="iperf3", bytes=bytes_, send_buffer_bytes=size)
    found = opened(store).report()
    assert sorted(map(len, found.rates.values())) == [10, 10]
    assert set(found.rates) == {row["combination"] for row in found.clusters}
    text = page(found)
    for size in ("send buffer 1 MiB", "send buffer 16 MiB"):
        # In the table, the legend, and twice in the description of the figure.
        assert text.count(f"iperf3, 4 connections, dtn-192.0.2.1 to ?, {size}") >= 3
    assert "receive buffer 1" not in text
