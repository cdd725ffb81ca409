"""Transfers of a store: counted once, joined with their samples, compared with their peers, explained."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_transfers import SECOND, START, Limits, NetworkPath, Store, add, make, write
from planted import BLANK

import thalweg
from thalweg.engines import Engine
from thalweg.schema import RECORD_SCHEMA
from thalweg.sources import SourceError
from thalweg.transfers import ByAsOfFlows, BySite, ByTraceroute, Stored, TransferError, Transfers
from thalweg.transfers.clusters import clusters
from thalweg.transfers.evidence import COLUMNS
from thalweg.transfers.model import TooFewError
from thalweg.transfers.peers import TracerouteError

EngineOf = Callable[[str], Engine]
ENGINES = ("duckdb", "native", "clickhouse", "spark")
HOUR = 3600 * SECOND
PATH = NetworkPath(0, 1e9, 30_000.0, 10**10, 0.6, ("192.0.2.1",), ("198.51.100.1",))


def shifted(table: pa.Table, reporter: str, by_us: int) -> pa.Table:
    """Sets the clock of a host wrong."""
    chosen = np.array(table["reporter"].to_pylist()) == reporter
    for name in ("time", "start", "end"):
        if name in table.column_names:
            moved = table[name].cast(pa.int64()).to_numpy() + chosen * by_us
            table = table.set_column(
                table.column_names.index(name), table.schema.field(name), pa.array(moved).cast(pa.timestamp("us", "UTC"))
            )
    return table


def entry(store: Store, transfer: str, **given: Any) -> None:
    """Adds a log entry of a sender."""
    row = {
        "received": given.get("end", START + 80 * SECOND) + 20 * SECOND,
        "reporter": "dtn-192.0.2.1",
        "transfer": transfer,
        "application": "gridftp",
        "direction": "send",
        "src": "192.0.2.1",
        "dst": "198.51.100.1",
        "start": START,
        "end": START + 80 * SECOND,
        "bytes": 10**10,
        "streams": 4,
    }
    store.transfers.add(1, **row | given)


@pytest.fixture
def opened(engine_of: EngineOf, tmp_path: Path) -> Callable[[Store], Transfers]:
    def write_and_open(store: Store) -> Transfers:
        store.write(tmp_path)
        return Transfers(Stored(engine_of("duckdb"), tmp_path))

    return write_and_open


def rows_of(transfers: Transfers) -> list[dict[str, Any]]:
    table = transfers.evidence.transfers.table
    rows: list[dict[str, Any]] = transfers.stored.engine.to_pyarrow(table.order_by("transfer")).to_pylist()
    return rows


# --- Opening


def test_a_store_without_flow_records_has_transfers(tmp_path: Path) -> None:
    store = Store()
    entry(store, "aaaa0001")
    store.write(tmp_path)
    archive = thalweg.open(tmp_path, engine="duckdb")
    assert archive.count() == 0
    assert archive.transfers.list().count() == 1
    assert archive.transfers is archive.transfers, "it is computed once"


def test_a_store_without_transfers_says_what_to_run(tmp_path: Path, engine_of: EngineOf) -> None:
    (tmp_path / "transfers").mkdir()
    with pytest.raises(SourceError, match="no transfers stored; run thalweg transfers agent"):
        Transfers(Stored(engine_of("duckdb"), tmp_path)).list()
    with pytest.raises(SourceError, match="expected the directory of a store"):
        file = tmp_path / "records.parquet"
        pq.write_table(RECORD_SCHEMA.empty_table(), file)
        _ = thalweg.open(file, engine="duckdb").transfers


def test_a_time_range_without_transfers_has_no_rows(tmp_path: Path) -> None:
    store = Store()
    entry(store, "aaaa0001")
    store.write(tmp_path)
    transfers = thalweg.open(tmp_path, engine="duckdb", start="2020-01-01", end="2020-01-02").transfers
    assert transfers.list().count() == 0
    assert transfers.report().totals["transfers"] == 0
    with pytest.raises(TransferError, match="not in the store, or not in this time range"):
        transfers.why("aaaa0001")


# --- Entries


def test_an_entry_that_arrived_twice_counts_once(opened: Any) -> None:
    store = Store()
    entry(store, "aaaa0001")
    entry(store, "aaaa0001", received=START + 200 * SECOND)
    (row,) = rows_of(opened(store))
    assert (row["rate_bps"], row["received_us"]) == (10**9, START + 100 * SECOND)


def test_entries_of_both_ends_are_one_transfer(opened: Any) -> None:
    store = Store()
    entry(store, "aaaa0001", streams=0)
    received = {"reporter": "dtn-198.51.100.1", "direction": "receive", "receive_buffer_bytes": 2**20}
    entry(store, "bbbb0001", start=START + 1 * SECOND, end=START + 82 * SECOND, **received)
    entry(store, "bbbb0002", start=START + 4000 * SECOND, end=START + 4080 * SECOND, **received)
    transfers = opened(store)
    first, second = rows_of(transfers)
    assert (first["transfer"], first["paired_transfer"], first["streams"], first["receive_window_bytes"]) == (
        "aaaa0001",
        "bbbb0001",
        4,
        2**20,
    )
    assert (second["transfer"], second["paired_transfer"]) == ("bbbb0002", "")
    assert (first["sender"], first["receiver"]) == ("dtn-192.0.2.1", "dtn-198.51.100.1")
    assert transfers.why("bbbb0001").transfer == "aaaa0001"


def test_a_transfer_without_duration_has_no_verdict(opened: Any) -> None:
    store = Store()
    entry(store, "aaaa0001", end=START)
    found = opened(store).why("aaaa")
    assert (found.cause, found.rate_bps) == ("not_enough_data", 0)
    assert "the log has no size or no duration, hence no rate" in found.missing


def test_identifiers_must_name_one_transfer(opened: Any) -> None:
    store = Store()
    entry(store, "aaaa0001")
    entry(store, "aaaa0002", start=START + 500 * SECOND, end=START + 600 * SECOND)
    transfers = opened(store)
    assert transfers.why("aaaa0001").transfer == "aaaa0001"
    for wrong, message in (("aaa", "at least 4 characters"), ("aaaa", "starts several identifiers"), ("cccc", "is not in the store")):
        with pytest.raises(TransferError, match=message):
            transfers.why(wrong)
    with pytest.raises(TransferError, match="invalid cause 'bad luck'"):
        transfers.list(cause="bad luck")
    with pytest.raises(TransferError, match="no transfers of user 'nobody'"):
        transfers.report(user="nobody")


# --- Samples and clocks


def test_samples_of_both_ends_are_joined(opened: Any) -> None:
    store = Store()
    add(store, np.random.default_rng(1), PATH, Limits(network=1e9, streams=4), "aaaa0001", start_us=START, seconds=30)
    (row,) = rows_of(opened(store))
    assert (row["send_samples"], row["receive_samples"]) == (120, 120)
    assert (row["send_connections"], row["streams"]) == (4, 4)
    assert row["send_connection_us"] == 4 * row["send_observed_us"] == 4 * row["send_host_us"] == 120 * SECOND
    assert row["send_acked_bytes"] == pytest.approx(row["bytes"], rel=0.1)


def test_connections_of_other_programs_and_idle_ones_are_left_out(opened: Any) -> None:
    store = Store()
    add(store, np.random.default_rng(1), PATH, Limits(network=1e9, streams=2), "aaaa0001", start_us=START, seconds=10)
    other = {"reporter": "dtn-192.0.2.1", "src": "192.0.2.1", "dst": "198.51.100.1", "direction": "send", "interval_us": SECOND}
    times = START + np.arange(1, 11) * SECOND
    store.connections.add(10, received=times, time=times, src_port=1, dst_port=22, process="sshd", acked_bytes=10**9, **other)
    store.connections.add(10, received=times, time=times, src_port=2, dst_port=2811, process="globus-gridftp-", acked_bytes=100, **other)
    (row,) = rows_of(opened(store))
    assert row["send_connections"] == 2
    assert row["send_connection_us"] == 2 * row["send_observed_us"]


@pytest.mark.parametrize("ahead_us", [3 * HOUR, -7 * HOUR])
def test_clocks_hours_apart_are_found_and_corrected(engine_of: EngineOf, tmp_path: Path, ahead_us: int) -> None:
    store = Store()
    random = np.random.default_rng(1)
    for index in range(5):
        add(store, random, PATH, Limits(network=1e9, streams=2), f"aaaa000{index}", start_us=START + index * 100 * SECOND, seconds=30)
    wrong = "dtn-198.51.100.1"
    for name in ("transfers", "connections", "host_metrics", "hosts"):
        write(shifted(getattr(store, name).table(), wrong, ahead_us), tmp_path / name.replace("_", "-"))
    transfers = Transfers(Stored(engine_of("duckdb"), tmp_path))
    (clock,) = transfers.evidence.clocks.wrong()
    assert clock.reporter == wrong
    assert abs(clock.ahead_us - ahead_us) <= 2 * SECOND
    assert all(row["receive_samples"] >= 28 and row["receive_host_us"] >= 28 * SECOND for row in rows_of(transfers))


def test_right_clocks_and_a_late_spool_are_not_reported(opened: Any) -> None:
    store = Store()
    add(store, np.random.default_rng(1), PATH, Limits(network=1e9, streams=2), "aaaa0001", start_us=START, seconds=30)
    entry(store, "aaaa0002", received=START + 30 * HOUR)
    assert opened(store).evidence.clocks.wrong() == []


# --- Verdicts


def alone(transfers: Transfers, transfer: str) -> Any:
    return transfers.why(transfer)


@pytest.fixture(scope="module")
def busy_path(engine_of: EngineOf, tmp_path_factory: pytest.TempPathFactory) -> Transfers:
    """Twelve transfers that fill the path, and one of each of several kinds."""
    store, random = Store(), np.random.default_rng(5)
    for index in range(12):
        add(store, random, PATH, Limits(network=1e9, loss=1e-6), f"full{index:04}", start_us=START + index * 100 * SECOND, seconds=40)
    bdp = 1e9 * 0.03 / 8
    kinds = {
        "disk0001": Limits(network=1e9, receive_disk=3e8),
        "cpus0001": Limits(network=1e9, send_cpu=3e8),
        "wind0001": Limits(network=1e9, receive_buffer=0.6 * bdp / 4),
        "busy0001": Limits(network=1e9, loss=1e-6, busy=frozenset({"send_cpu", "receive_disk"})),
    }
    for index, (name, limits) in enumerate(kinds.items(), 20):
        add(store, random, PATH, limits, name, start_us=START + index * 100 * SECOND, seconds=40)
    add(store, random, PATH, Limits(network=1e9), "shrt0001", start_us=START + 3000 * SECOND, seconds=2)
    directory = tmp_path_factory.mktemp("busy")
    store.write(directory)
    return Transfers(Stored(engine_of("duckdb"), directory))


def test_a_slow_disk_of_the_receiver_is_found(busy_path: Transfers) -> None:
    found = busy_path.why("disk0001")
    assert found.cause == "receiver_disk"
    assert found.confidence >= 0.8
    assert "faster file system on dtn-198.51.100.1" in found.advice


def test_a_busy_but_harmless_processor_and_disk_are_not_blamed(busy_path: Transfers) -> None:
    found = busy_path.why("busy0001")
    assert found.cause == "none"
    harmless = {fact.name: fact.means for fact in found.facts if "busiest processor" in fact.name or "disk" in fact.name}
    assert harmless["sender's busiest processor"] == "did not limit this transfer"
    assert harmless["receiver's disk"] == "did not limit this transfer"


def test_a_small_window_is_advised_its_bandwidth_delay_product(busy_path: Transfers) -> None:
    found = busy_path.why("wind0001")
    assert found.cause == "receiver_window"
    # Four BDP of a quarter of about 1 Gbit/s at 30 ms.
    advised = int(found.advice.split(" bytes")[0].split()[-1].replace(",", ""))
    assert 3_000_000 < advised < 4_500_000
    assert "net.ipv4.tcp_rmem" in found.advice


def test_a_short_transfer_has_no_verdict_and_says_why(busy_path: Transfers) -> None:
    found = busy_path.why("shrt0001")
    if found.rate_bps < 0.85 * found.aspiration_bps:
        assert found.cause == "not_enough_data"
    assert any("only 2 s of samples" in line for line in found.missing)


def test_the_text_of_an_explanation_leads_with_the_cause(busy_path: Transfers) -> None:
    text = busy_path.why("cpus0001").text()
    assert text.startswith("The sending process lacks processor time (sender_cpu, confidence")
    for title in ("Evidence", "Peers", "Advice"):
        assert f"\n{title}\n" in text
    assert max(map(len, text.splitlines())) < 200


def log_only(store: Store, rates: dict[str, list[float]], **given: Any) -> None:
    for index, (name, values) in enumerate(rates.items()):
        for number, rate in enumerate(values):
            start = START + (index * 100 + number) * 1000 * SECOND
            entry(store, f"{name}{number:04}", start=start, end=start + 80 * SECOND, bytes=int(rate * 10), **given)


def test_logs_alone_show_that_streams_are_missing(opened: Any) -> None:
    store, random = Store(), np.random.default_rng(2)
    log_only(store, {"slow": list(random.normal(630e6, 60e6, 40))}, streams=1)
    log_only(store, {"fast": list(random.normal(930e6, 50e6, 40))}, streams=4)
    found = opened(store).why("slow0000")
    assert (found.cause, found.confidence) == ("streams", 0.6)
    assert opened(store).why("fast0000").cause == "none"
    assert any("no samples of the sender's connections" in line for line in found.missing)


def test_one_point_of_forty_overlaps_as_in_figure_5_3(opened: Any) -> None:
    store = Store()
    log_only(store, {"slow": list(np.linspace(365e6, 743e6, 40))}, streams=1)
    log_only(store, {"fast": [578e6, *np.linspace(900e6, 953e6, 39)]}, streams=4)
    found = clusters(opened(store).evidence.transfers)
    assert found["best"].tolist() == [True, False]
    assert found["streams"].tolist() == [4, 1]
    assert found["overlap"].tolist()[1] == 1 / 40
    by_pandas = pd.Series([578e6, *np.linspace(900e6, 953e6, 39)])
    assert found["cov"].tolist()[0] == pytest.approx(by_pandas.std() / by_pandas.mean(), rel=1e-3)


def test_metrics_of_the_receiver_explain_why_peers_to_another_host_are_faster(opened: Any) -> None:
    # Table 5.1, experiments 1 and 2: same sender, another receiver, whose disk is fully used.
    store, random = Store(), np.random.default_rng(3)
    log_only(store, {"fast": list(random.normal(630e6, 60e6, 20))})
    log_only(store, {"slow": list(random.normal(210e6, 15e6, 20))}, dst="198.51.100.2")
    for address in ("198.51.100.1", "198.51.100.2"):
        store.hosts.add(1, received=START, reporter=f"dtn-{address}", time=START, addresses=address)
    times = START + np.arange(1, 81) * SECOND
    store.host_metrics.add(
        80, received=times, reporter="dtn-198.51.100.2", time=times, interval_us=SECOND, cpus=4, disk_busy_us=0.99 * SECOND
    )
    transfers = opened(store)
    assert transfers.why("slow0000").cause == "receiver_disk"
    assert transfers.why("slow0001").cause == "not_enough_data", "without metrics of that time"


# --- Peers


def test_peers_are_found_by_prefix_traceroute_and_as(opened: Any, tmp_path: Path) -> None:
    store = Store()
    entry(store, "aaaa0001")
    entry(store, "aaaa0002", dst="198.51.100.2", start=START + 500 * SECOND, end=START + 600 * SECOND)
    entry(store, "aaaa0003", dst="203.0.113.9", start=START + 900 * SECOND, end=START + 999 * SECOND)
    flow = {**BLANK, "received": datetime.fromtimestamp(START // SECOND, UTC), "flow_start": datetime.fromtimestamp(START // SECOND, UTC)}
    flow |= {"flow_end": flow["flow_start"], "src_as": 64500, "dst_as": 64501, "src": "192.0.2.1", "format": "ipfix"}
    rows = [{**flow, "dst": dst} for dst in ("198.51.100.1", "203.0.113.9")]
    write(pa.Table.from_pylist(rows, RECORD_SCHEMA), tmp_path / "flows")
    transfers = opened(store)
    by_prefix = transfers.peers().to_pyarrow().to_pylist()
    assert [(row["src_group"], row["dst_group"], row["pairs"]) for row in by_prefix] == [
        ("192.0.2.0/24", "198.51.100.0/24", 2),
        ("192.0.2.0/24", "203.0.113.0/24", 1),
    ]
    by_as = transfers.by(ByAsOfFlows()).peers().to_pyarrow().to_pylist()
    assert [(row["src_group"], row["dst_group"], row["pairs"]) for row in by_as] == [
        ("AS64500", "AS64501", 2),
        ("AS64500", "198.51.100.2", 1),
    ]
    routes = tmp_path / "routes.csv"
    routes.write_text("# ours\n192.0.2.1,198.51.100.1,192.0.2.254,*,203.0.113.254\n192.0.2.1, 203.0.113.9, 192.0.2.254, 203.0.113.254\n")
    by_route = transfers.by(ByTraceroute.read(routes)).peers().to_pyarrow().to_pylist()
    assert [row["pairs"] for row in by_route] == [2, 1]
    routes.write_text("192.0.2.1,198.51.100.1\n")
    with pytest.raises(TracerouteError, match="line 1: expected source,destination,router"):
        ByTraceroute.read(routes)


def test_as_numbers_need_flow_records(opened: Any) -> None:
    store = Store()
    entry(store, "aaaa0001")
    with pytest.raises(SourceError, match="AS numbers come from flow records"):
        opened(store).by(ByAsOfFlows()).peers()


def test_a_log_with_a_host_name_instead_of_an_address_is_a_group_of_its_own(opened: Any) -> None:
    store = Store()
    entry(store, "aaaa0001", dst="dtn.example.org")
    (row,) = opened(store).by(BySite()).peers().to_pyarrow().to_pylist()
    assert row["dst_group"] == "dtn.example.org"


# --- The network's view


def test_discards_at_the_interfaces_of_a_transfer_show_congestion(opened: Any, tmp_path: Path) -> None:
    store = Store()
    add(store, np.random.default_rng(1), PATH, Limits(network=3e8, loss=1e-4, inflation=0.1), "aaaa0001", start_us=START, seconds=40)
    connection = store.connections.table().to_pylist()[0]
    at = datetime.fromtimestamp(START // SECOND, UTC)
    flow = {**BLANK, "received": at + timedelta(seconds=41), "flow_start": at, "flow_end": at + timedelta(seconds=40), "format": "ipfix"}
    flow |= {name: connection[name] for name in ("src", "dst", "src_port", "dst_port")}
    flow |= {"protocol": 6, "exporter": "192.0.2.254", "egress_interface": 7, "bytes": 10**9, "packets": 10**6}
    write(pa.Table.from_pylist([flow], RECORD_SCHEMA), tmp_path / "flows")
    names = ("in_unicast_packets", "in_discards", "in_errors", "out_unicast_packets", "out_discards", "out_errors")
    counters = [
        {"received": at + timedelta(seconds=20 * index), "exporter": "192.0.2.254", "observation_domain_id": 0, "interface": 7}
        | {"in_bytes": index, "out_bytes": index * 10**8, **dict.fromkeys(names, index * 50)}
        for index in range(4)
    ]
    table = pa.Table.from_pylist(counters)
    stamped = table.set_column(0, "received", table["received"].cast(pa.timestamp("us", "UTC")))
    write(stamped, tmp_path / "interface-counters")
    transfers = opened(store)
    (row,) = rows_of(transfers)
    assert (row["flow_records"], row["flow_bytes"], row["path_discards"]) == (1, 10**9, 150)
    assert transfers.why("aaaa0001").cause == "path_congestion"


def test_throughput_of_a_persistent_session_cannot_be_derived_from_flow_records(opened: Any, tmp_path: Path) -> None:
    # Twelve downloads of 2 s over one connection, each after a pause of 8 s: records of a minute, each with several downloads.
    store = Store()
    ports = {"src_port": 443, "dst_port": 50_000}
    for index in range(12):
        start = START + index * 10 * SECOND
        entry(store, f"http{index:04}", application="nginx", start=start, end=start + 2 * SECOND, bytes=250_000_000, **ports)
        times = start + np.arange(1, 3) * SECOND
        store.connections.add(
            2, received=times, reporter="dtn-192.0.2.1", time=times, interval_us=SECOND, src="192.0.2.1", dst="198.51.100.1",
            direction="send", process="nginx", acked_bytes=125_000_000, **ports,
        )  # fmt: skip
    at = datetime.fromtimestamp(START // SECOND, UTC)
    flow = {**BLANK, "src": "192.0.2.1", "dst": "198.51.100.1", **ports, "protocol": 6, "exporter": "192.0.2.254", "format": "netflow9"}
    records = [
        {
            **flow,
            "flow_start": at + timedelta(minutes=minute),
            "flow_end": at + timedelta(minutes=minute, seconds=60),
            "bytes": 6 * 250_000_000,
        }
        | {"received": at + timedelta(minutes=minute + 1)}
        for minute in range(2)
    ]
    write(pa.Table.from_pylist(records, RECORD_SCHEMA), tmp_path / "flows")
    rows = rows_of(opened(store))
    assert {row["rate_bps"] for row in rows} == {10**9}
    assert all(row["flow_rate_bps"] <= 0.2 * 10**9 for row in rows), "flow records see a fifth of it"


# --- Models


def test_a_model_predicts_rates_within_its_interval(engine_of: EngineOf, tmp_path: Path) -> None:
    store, random = Store(), np.random.default_rng(9)
    for index in range(120):
        limits = Limits(network=1e9, send_cpu=float(random.uniform(2e8, 9e8)), receive_disk=float(random.uniform(4e8, 2e9)))
        add(store, random, PATH, limits, f"aaaa{index:04}", start_us=START + index * 100 * SECOND, seconds=20)
    store.write(tmp_path)
    transfers = Transfers(Stored(engine_of("duckdb"), tmp_path))
    path = ("192.0.2.0/24", "198.51.100.0/24")
    assert path in transfers.evidence.wide
    from thalweg.transfers import model

    fitted = transfers.model(path)
    rows = model.sample(transfers.evidence.transfers, path)
    predicted = fitted.predict(model.parameters_of(rows))
    inside = [low.lower_bps <= rate <= low.upper_bps for low, rate in zip(predicted, rows["rate_bps"], strict=True)]
    assert 0.8 <= np.mean(inside) <= 1
    idle = fitted.aspire(model.parameters_of(rows))
    assert np.median([each.rate_bps for each in idle]) > np.median(rows["rate_bps"])
    assert any("the model of this path (120 transfers" in line for line in transfers.why("aaaa0000").peers)


def test_a_model_of_few_transfers_says_how_many_are_missing(busy_path: Transfers) -> None:
    with pytest.raises(TooFewError, match=r"transfers with samples, and a model of \d+ parameters needs \d+"):
        busy_path.model(("192.0.2.0/24", "198.51.100.0/24"))


# --- Engines


def answers(engine: Engine, directory: Path) -> dict[str, pd.DataFrame]:
    transfers = Transfers(Stored(engine, directory))
    evidence = transfers.evidence.transfers
    verdicts = transfers.verdicts.table
    return {
        "evidence": evidence.derive(evidence.table.select(list(COLUMNS)).order_by("transfer")).to_pandas(),
        "clusters": transfers.clusters(),
        "peers": transfers.peers().to_pandas(),
        "verdicts": transfers.verdicts.derive(verdicts.drop("made_us").order_by("transfer")).to_pandas(),
    }


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Transfers of all causes, some logged at both ends, one host with a wrong clock, and flow records."""
    store = make([3])
    directory = tmp_path_factory.mktemp("shared")
    entries = store.transfers.table()
    doubled = entries.to_pylist()[::4]
    for row in doubled:
        row |= {"transfer": f"r{row['transfer']}", "direction": "receive", "reporter": f"dtn-{row['dst']}"}
    store.transfers._parts.append(pa.Table.from_pylist(doubled, entries.schema))
    wrong = f"dtn-{doubled[0]['dst']}"
    for name in ("transfers", "connections", "host_metrics", "hosts"):
        write(shifted(getattr(store, name).table(), wrong, 5 * HOUR), directory / name.replace("_", "-"))
    return directory


@pytest.fixture(scope="session")
def reference(engine_of: EngineOf, shared: Path) -> dict[str, pd.DataFrame]:
    return answers(engine_of("duckdb"), shared)


@pytest.mark.parametrize("name", ENGINES[1:])
def test_all_engines_give_the_same_evidence_and_verdicts(
    name: str, engine_of: EngineOf, shared: Path, reference: dict[str, pd.DataFrame]
) -> None:
    for analysis, frame in answers(engine_of(name), shared).items():
        assert len(frame) > 0, analysis
        pd.testing.assert_frame_equal(frame, reference[analysis], check_exact=True, check_dtype=False, obj=analysis)


def test_pairs_and_a_wrong_clock_do_not_hide_samples(reference: dict[str, pd.DataFrame]) -> None:
    evidence = reference["evidence"]
    assert (evidence["paired_transfer"] != "").sum() == 57
    assert (evidence["receive_samples"] >= 10).all()
