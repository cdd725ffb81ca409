"""Rules of verdicts, one at a time: rows of evidence made by hand, in cases that mislead a comparison of rates or of busy resources."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from thalweg.transfers.evidence import MEASURED
from thalweg.transfers.verdict import AT_MOST_LIKELY, CAUSES, LOG_ONLY, NONE, Judgement, judge

SECONDS, STREAMS = 60, 4
US = SECONDS * 1_000_000
RTT_US = 30_000
REFERENCE = 9.4e8


def verdict(**given: float) -> tuple[str, float, Judgement]:
    """The cause and its confidence, for a transfer of a minute over four connections that nothing but the network limits, with changes."""
    rate = given.get("rate_bps", REFERENCE)
    sent = rate * SECONDS / 8 / 1448
    row: dict[str, Any] = dict.fromkeys((*MEASURED, "piped"), 0.0)
    row |= {"duration_us": US, "rate_bps": rate, "streams": STREAMS, "path_rate_bps": REFERENCE, "path_free": 20.0}
    for side in ("send", "receive"):
        row |= {f"{side}_samples": SECONDS * STREAMS, f"{side}_observed_us": US, f"{side}_connection_us": US * STREAMS}
        row |= {f"{side}_connections": STREAMS, f"{side}_host_us": US}
    row |= {"send_busy_us": US * STREAMS, "send_acked_bytes": rate * SECONDS / 8, "send_sent_segments": sent, "send_mss_bytes": 1448}
    row |= {"send_rtt_sum_us": RTT_US * 100, "send_rtt_samples": 100, "send_min_rtt_us": RTT_US, "pair_min_rtt_us": RTT_US}
    row |= {"receive_receive_buffer_us": US * STREAMS, "cluster_cause": -1}
    if given.get("send_retransmitted_segments"):
        row["send_lossy_samples"] = row["send_samples"]
    row |= given
    found = judge({name: np.array([value], dtype=np.float64) for name, value in row.items()})
    return CAUSES[int(found.cause[0])], float(found.confidence[0]), found


def lost(share: float, rate: float) -> float:
    """Lost segments of a transfer with a loss."""
    return share * rate * SECONDS / 8 / 1448


def test_a_transfer_at_the_rate_of_its_path_has_no_cause() -> None:
    cause, confidence, found = verdict()
    assert (cause, bool(found.slow[0])) == ("none", False)
    assert confidence >= 0.8


def test_files_that_share_a_session_are_not_judged_alone() -> None:
    # Four files at once fill the path together, and its queue.
    rate = REFERENCE / 4
    congested = {"send_rtt_sum_us": 1.4 * RTT_US * 100, "send_retransmitted_segments": lost(3e-5, REFERENCE)}
    together = {"send_acked_bytes": REFERENCE * SECONDS / 8, "send_sent_segments": REFERENCE * SECONDS / 8 / 1448}
    cause, _, found = verdict(rate_bps=rate, **congested, **together)
    assert (cause, bool(found.slow[0])) == ("none", False)
    # The same with the connections of one file is congestion by others.
    cause, _, found = verdict(rate_bps=rate, **congested)
    assert (cause, bool(found.slow[0])) == ("path_congestion", True)


def test_a_fault_that_all_peers_have_is_still_a_fault() -> None:
    # Half a percent of loss on the path: the reference is as slow as this one.
    rate = 2.3e7
    fault = {"path_rate_bps": rate, "path_loss_ppb": 5e6, "send_interface_bps": 1e10, "receive_interface_bps": 1e10}
    cause, _, _ = verdict(rate_bps=rate, send_retransmitted_segments=lost(5e-3, rate), **fault)
    assert cause == "path_loss"
    # Without loss, slow peers alone do not make it certain that nothing is to gain.
    cause, confidence, _ = verdict(rate_bps=rate, **fault)
    assert cause == "none"
    assert confidence <= AT_MOST_LIKELY


def test_a_few_discards_of_other_traffic_are_not_congestion() -> None:
    slower = {"rate_bps": 5e8, "streams": 1, "more_streams": 4, "more_streams_bps": REFERENCE, "path_discards": 3}
    assert verdict(**slower)[0] == "streams"
    congested = {"rate_bps": 3e7, "path_discards": 150, "send_retransmitted_segments": lost(1e-3, 3e7)}
    assert verdict(**congested)[0] == "path_congestion"


def test_a_rate_far_above_the_formulas_is_not_explained_by_loss() -> None:
    # 8 Gbit/s over one connection, with 1 of 1,000 segments lost, and no peers.
    alone = {"rate_bps": 8e9, "streams": 1, "path_rate_bps": 0, "path_free": 0, "send_retransmitted_segments": lost(1.04e-3, 8e9)}
    for rtt in (RTT_US, 1.5 * RTT_US):
        assert verdict(**alone, send_rtt_sum_us=rtt * 100)[0] in ("none", "not_enough_data")


def test_segments_that_are_lost_together_are_one_loss() -> None:
    # One connection, as fast as random losses of 1 of 10,000 allow; and 170 segments at the end of slow start.
    rate = 5.7e7
    slow = {"rate_bps": rate, "streams": 1, "path_rate_bps": 9.2e7, "path_loss_ppb": 3e5, "more_streams": 4, "more_streams_bps": 9.1e7}
    counts = {"send_samples": 60, "send_retransmitted_segments": 170 + lost(1e-4, rate)}
    cause, _, found = verdict(**slow, **counts, send_lossy_samples=25)
    assert cause == "streams"
    assert found.parts["lost"][0] == pytest.approx(-60 * np.log(1 - 25 / 60), rel=1e-2)
    # The same number, but in each second.
    assert verdict(**slow, **counts, send_lossy_samples=60)[2].parts["loss"][0] > 4e-4


def test_a_slow_reader_that_takes_the_whole_queue_at_once_is_found() -> None:
    # Four connections and one thread, blocked for 87 % of the time; the queue is full in a tenth of the samples.
    whole = US * STREAMS
    seldom = {"rate_bps": 2.2e8, "send_receive_window_limited_us": 0.97 * whole, "receive_receive_queue_full_us": 0.094 * whole}
    assert verdict(**seldom, receive_process_blocked_us=0.87 * whole)[0] == "receiver_disk"
    assert verdict(**seldom)[0] == "receiver_window", "a reader that waits for data"


def test_a_host_that_takes_less_time_than_usual_is_blamed_if_nothing_else_is_missing() -> None:
    # The reader gets a processor late: the window is closed for a quarter of the time, and the path is filled in the rest.
    whole = US * STREAMS
    late = {
        "send_receive_window_limited_us": 0.25 * whole,
        "receive_receive_queue_full_us": 0.3 * whole,
        "receive_process_wait_us": 0.9 * whole,
    }
    queued = {"send_rtt_sum_us": 1.9 * RTT_US * 100, "send_retransmitted_segments": lost(1e-3, REFERENCE)}
    assert verdict(rate_bps=0.68 * REFERENCE, **late, **queued)[0] == "receiver_cpu"
    late["receive_process_wait_us"] = 0.45 * whole
    assert verdict(rate_bps=0.3 * REFERENCE, **late, **queued)[0] == "path_congestion", "in the rest the network was slow"


def starved(share: float, **given: float) -> dict[str, float]:
    return {"rate_bps": 2e8, "send_starved_us": share * US * STREAMS, **given}


def test_a_process_that_never_sleeps_is_the_limit_whatever_tcp_says() -> None:
    """As SSH's own window shows it: bursts that look like congestion, and a starved connection."""
    whole = US * STREAMS
    queued = {"send_rtt_sum_us": 1.9 * RTT_US * 100, "send_retransmitted_segments": lost(1e-3, REFERENCE)}
    slow = {"rate_bps": 0.1 * REFERENCE, **starved(0.3), **queued}
    assert verdict(**slow)[0] == "path_congestion"
    cause, confidence, _ = verdict(**slow, receive_process_wait_us=0.85 * whole)
    assert cause == "receiver_cpu" and confidence > 0.8
    assert verdict(**slow, send_process_blocked_us=0.7 * whole)[0] == "sender_disk"
    assert verdict(**slow, receive_process_cpu_us=0.7 * whole)[0] == "path_congestion", "it had time left"


def test_time_on_a_disk_and_on_a_processor_add_up() -> None:
    whole = US * STREAMS
    cause, _, found = verdict(**starved(0.9, send_process_cpu_us=0.45 * whole, send_process_blocked_us=0.5 * whole))
    assert cause == "sender_disk"
    assert found.shares[0, CAUSES.index("sender_cpu")] == pytest.approx(0.45)
    assert verdict(**starved(0.9, send_process_cpu_us=0.1 * whole))[0] == "not_enough_data", "it waited for something else"


def test_the_load_of_a_host_counts_only_where_another_process_reads_the_disk() -> None:
    whole = US * STREAMS
    busy = starved(0.6, send_process_cpu_us=0.55 * whole, send_disk_busy_us=0.98 * US)
    cause, confidence, _ = verdict(**busy, piped=1)
    assert cause == "sender_disk"
    assert confidence <= LOG_ONLY
    assert verdict(**busy)[0] == "sender_cpu", "of a process that reads itself, and is not blocked"
    idle = starved(0.95, send_process_cpu_us=0.1 * whole, send_disk_busy_us=US)
    assert verdict(**idle)[0] == "not_enough_data", "a backup keeps the disk busy"


def test_confidence_is_that_of_the_part_that_was_observed() -> None:
    closed = {"rate_bps": 2e8, "send_receive_window_limited_us": 0.95 * US * STREAMS}
    cause, whole, _ = verdict(**closed)
    assert (cause, whole >= 0.9) == ("receiver_window", True)
    seconds = {f"{side}_observed_us": 4e6 for side in ("send", "receive")}
    assert verdict(**closed, **seconds)[1] <= 0.1, "4 of 60 s"
    with_one_sample = {"send_samples": 1, "send_observed_us": 1e6, "send_starved_us": US * STREAMS, "rate_bps": 2e8}
    shares = verdict(**with_one_sample)[2].shares[0]
    assert shares[CAUSES.index("sender_cpu")] == shares[CAUSES.index("sender_disk")] == 0


def test_a_kernel_that_does_not_count_busy_time_does_not_starve_everybody() -> None:
    assert verdict(send_busy_us=0)[0] == "none"
    assert verdict(send_busy_us=0, rate_bps=2e8)[2].parts["starved"][0] == 0


def test_neither_short_transfers_nor_slow_interfaces_are_slow() -> None:
    short = verdict(duration_us=1e6, rate_bps=1e7)
    assert (short[0], bool(short[2].slow[0])) == ("not_enough_data", False)
    cause, _, found = verdict(rate_bps=9.4e8, path_rate_bps=9.4e9, receive_interface_bps=1e9)
    assert (cause, bool(found.slow[0]), float(found.aspiration_bps[0])) == ("none", False, 1e9)


def test_alternatives_are_as_sure_as_the_second_cause() -> None:
    found = verdict(rate_bps=2e8, send_receive_window_limited_us=0.6 * US * STREAMS, send_send_buffer_limited_us=0.4 * US * STREAMS)[2]
    second = int(found.second[0])
    assert second == CAUSES.index("sender_window")
    assert found.second_confidence[0] == found.weights[0, second]
    assert found.weights.shape == (1, NONE)
