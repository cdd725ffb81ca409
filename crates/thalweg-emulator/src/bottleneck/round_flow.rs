//! H-TCP in rounds, as the program that was published with the dissertation models it
//! (github.com/UVA-High-Speed-Networks, `htcpModel.py`).
//!
//! At the start of a round the flow reads the delay of the primary queue, even if it is in the scavenger queue. The
//! round lasts for the round-trip time and that delay; the window is at most what the flow's rate allows in it, and is
//! sent at that rate. If packets of the round were dropped, the window is halved; otherwise it doubles up to the
//! threshold of slow start, and above it grows by alpha = max(1, 2 (1 - beta) (1 + 10 D + D^2 / 4)) packets per round,
//! where D is the time since the last loss in seconds minus one.
//!
//! Particulars of that program, which are kept: beta is always 1/2, because the throughput that it compares with is never
//! stored; the growth has a further 1,500 / window packets, and is rounded down; losses cost no retransmissions; a packet
//! that is dropped takes its time all the same.

use thalweg_wire::{BitRate, Nanos};

use super::SECOND_PS;
use super::lane::PortFlow;
use crate::workloads::burst_process::PACKET_BYTES;

/// The initial threshold of slow start in packets.
const INITIAL_THRESHOLD: u64 = 100_000;
/// The increase is Reno's for this long after a loss: Delta_L.
const LOW_SPEED_PS: u64 = SECOND_PS;
/// The decrease.
const BETA: f64 = 0.5;

/// The flow.
#[derive(Clone, Debug)]
pub struct RoundFlow {
    round_trip_ps: u64,
    packets_per_second: u64,
    gap_ps: u64,
    /// Picoseconds of a byte in the primary queue.
    byte_ps: f64,
    window: u64,
    threshold: u64,
    last_loss_ps: u64,
    /// Of the current round: its end, packets that are not sent yet, packets that were dropped.
    round_end_ps: u64,
    left: u64,
    dropped: u64,
    is_between_rounds: bool,
    next_ps: u64,
    alpha: f64,
}

impl RoundFlow {
    /// A flow of at most `rate`, with an idle round-trip time of `round_trip`, through a port of `port_rate`.
    pub fn new(rate: BitRate, round_trip: Nanos, port_rate: BitRate) -> RoundFlow {
        let packets_per_second = (rate.0 / (8 * u64::from(PACKET_BYTES))).max(1);
        RoundFlow {
            round_trip_ps: round_trip.0 * 1_000,
            packets_per_second,
            gap_ps: SECOND_PS / packets_per_second,
            byte_ps: 8.0 * SECOND_PS as f64 / port_rate.0.max(1) as f64,
            window: 1,
            threshold: INITIAL_THRESHOLD,
            last_loss_ps: 0,
            round_end_ps: 0,
            left: 0,
            dropped: 0,
            is_between_rounds: true,
            next_ps: 0,
            alpha: 1.0,
        }
    }

    /// The window in packets.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Window growth in packets per round, `since_ps` after the last loss.
    fn alpha(since_ps: u64) -> f64 {
        let beyond = since_ps.saturating_sub(LOW_SPEED_PS) as f64 / SECOND_PS as f64;
        (2.0 * (1.0 - BETA) * (1.0 + 10.0 * beyond + 0.25 * beyond * beyond)).max(1.0)
    }

    fn start_round(&mut self, now_ps: u64, primary_bytes: u64) {
        let round_ps = self.round_trip_ps + (primary_bytes as f64 * self.byte_ps) as u64;
        let most =
            (u128::from(self.packets_per_second) * u128::from(round_ps) / u128::from(SECOND_PS)) as u64;
        self.window = self.window.min(most).max(1);
        self.alpha = RoundFlow::alpha(now_ps - self.last_loss_ps);
        self.round_end_ps = now_ps + round_ps;
        self.left = self.window;
        self.dropped = 0;
    }

    /// The window is sent: adapts it, and waits for the end of the round.
    fn finish_round(&mut self, now_ps: u64) {
        if self.dropped > 0 {
            self.last_loss_ps = now_ps;
            self.window = (self.window as f64 * BETA) as u64;
            self.threshold = self.window;
        }
        if self.window < self.threshold {
            self.window *= 2;
        } else {
            let growth = f64::from(PACKET_BYTES) / self.window.max(1) as f64 + self.alpha;
            self.window += growth.max(1.0) as u64;
        }
        self.is_between_rounds = true;
        self.next_ps = self.round_end_ps.max(now_ps);
    }
}

impl PortFlow for RoundFlow {
    #[inline]
    fn next_ps(&self) -> u64 {
        self.next_ps
    }

    fn reaction_ps(&self) -> u64 {
        u64::MAX
    }

    #[inline]
    fn act(&mut self, now_ps: u64, primary_bytes: impl FnOnce() -> u64) -> bool {
        if self.is_between_rounds {
            self.start_round(now_ps, primary_bytes());
            self.is_between_rounds = false;
        }
        if self.left == 0 {
            self.finish_round(now_ps);
            return false;
        }
        self.left -= 1;
        self.next_ps = now_ps + self.gap_ps;
        true
    }

    #[inline]
    fn was_queued(&mut self, queued: bool) {
        self.dropped += u64::from(!queued);
    }

    fn left(&mut self, _at_ps: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the flow for `seconds` without a queue, dropping the packets that `drops` names by number, and returns the
    /// windows of all rounds with their starts in seconds.
    fn windows(mut flow: RoundFlow, seconds: u64, drops: &[u64]) -> Vec<(f64, u64)> {
        let (mut rounds, mut number) = (Vec::new(), 0);
        while flow.next_ps() < seconds * SECOND_PS {
            let now_ps = flow.next_ps();
            let starts = flow.is_between_rounds;
            if flow.act(now_ps, || 0) {
                flow.was_queued(!drops.contains(&number));
                number += 1;
            }
            if starts {
                rounds.push((now_ps as f64 / SECOND_PS as f64, flow.window()));
            }
        }
        rounds
    }

    /// 120 Mbit/s and 100 ms: 1,000 packets per round.
    fn flow() -> RoundFlow {
        RoundFlow::new(BitRate(120_000_000), Nanos::from_millis(100), BitRate(1_000_000_000))
    }

    #[test]
    fn window_doubles_up_to_the_bandwidth_delay_product() {
        let sizes: Vec<u64> = windows(flow(), 2, &[]).iter().map(|round| round.1).collect();
        assert_eq!(sizes[..12], [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_000, 1_000]);
        assert_eq!(sizes.len(), 20, "rounds of 100 ms");
    }

    /// A loss in round 11, which ends at 1.1 s with a window of 1,000.
    #[test]
    fn loss_halves_the_window_which_then_grows_faster_with_time() {
        let rounds = windows(flow(), 5, &[1_500]);
        assert_eq!(rounds[10].1, 1_000);
        // 500 + 1 + 1,500 / 500 at the end of the round of the loss; alpha is that of its start, 1.1 s after the flow's.
        let mut expected = 500 + (1_500.0 / 500.0 + RoundFlow::alpha(SECOND_PS)) as u64;
        for &(start, window) in &rounds[11..] {
            assert_eq!(window, expected.min(1_000), "at {start} s");
            let beyond = (start - 1.1 - 1.0f64).max(0.0);
            let alpha = 1.0 + 10.0 * beyond + beyond * beyond / 4.0;
            let growth = 1_500.0 / window as f64 + alpha;
            // The gap of a packet is not a whole number of picoseconds: times differ by up to a nanosecond per round.
            assert!(
                (growth.fract() - 0.5).abs() < 0.499_999,
                "a growth that rounding decides: choose other numbers"
            );
            expected = window + growth as u64;
        }
        assert_eq!(RoundFlow::alpha(3 * SECOND_PS), 22.0);
    }
}
