//! H-TCP: the window grows faster, the longer the last congestion event is ago (Leith and Shorten, PFLDnet 2004;
//! draft-leith-tcp-htcp-06, sections 2 and 3).
//!
//! The increase is not scaled by the round-trip time, which the draft leaves open. In the first second after congestion
//! H-TCP is as fast as Reno on the same path.

use thalweg_wire::{Nanos, Timestamp};

use super::{AckSample, Carry, CongestionControl, Signal, Window};

/// Delta_L: the increase is Reno's for this long after congestion.
const LOW_SPEED: Nanos = Nanos::from_secs(1);
/// Bounds of the decrease factor.
const BETA_MIN: f64 = 0.5;
const BETA_MAX: f64 = 0.8;
/// Relative change of throughput between congestion events up to which the factor adapts (Delta_B).
const THROUGHPUT_TOLERANCE: f64 = 0.2;

/// H-TCP's state.
#[derive(Clone, Copy, Debug)]
pub struct HTcp {
    beta: f64,
    /// The last congestion event; before the first, the first acknowledgement.
    last_congestion: Option<Timestamp>,
    min_rtt: Nanos,
    /// The longest round-trip time since the last congestion event.
    max_rtt: Nanos,
    /// The current round: its start, its end, and the bytes acknowledged in it.
    round_start: Timestamp,
    round_end: u64,
    round_acked: u64,
    /// The highest throughput of a round since the last congestion event, and in the epoch before, in bytes per second.
    throughput: f64,
    last_throughput: f64,
    carry: Carry,
}

impl Default for HTcp {
    fn default() -> HTcp {
        HTcp {
            beta: BETA_MIN,
            last_congestion: None,
            min_rtt: Nanos(u64::MAX),
            max_rtt: Nanos::ZERO,
            round_start: Timestamp(0),
            round_end: 0,
            round_acked: 0,
            throughput: 0.0,
            last_throughput: 0.0,
            carry: Carry::default(),
        }
    }
}

impl HTcp {
    /// Window growth in segments per round trip, `since` after the last congestion event: 1 at low speed, then 1 + 10 d
    /// + (d/2)^2 with d in seconds beyond, scaled by 2 (1 - beta) so that the mean rate does not depend on beta.
    fn alpha(&self, since: Nanos) -> f64 {
        let beyond = Nanos(since.0.saturating_sub(LOW_SPEED.0)).as_secs_f64();
        let high_speed = 1.0 + 10.0 * beyond + beyond * beyond / 4.0;
        (2.0 * (1.0 - self.beta) * high_speed).max(1.0)
    }

    fn measure(&mut self, ack: &AckSample) {
        if let Some(rtt) = ack.rtt {
            self.min_rtt = self.min_rtt.min(rtt);
            self.max_rtt = self.max_rtt.max(rtt);
        }
        self.round_acked += ack.acked;
        if ack.una > self.round_end {
            let seconds = ack.now.since(self.round_start).as_secs_f64();
            if self.round_end > 0 && seconds > 0.0 {
                self.throughput = self.throughput.max(self.round_acked as f64 / seconds);
            }
            (self.round_start, self.round_end, self.round_acked) = (ack.now, ack.next, 0);
        }
    }

    /// The adaptive decrease: keeps the link busy while its queue drains, whose length is the difference between the
    /// longest and the shortest round trip. Only with steady throughput, which shows that both are of the same link's
    /// queue.
    fn adapt_beta(&mut self) {
        let change = (self.throughput - self.last_throughput).abs();
        let is_steady = change <= THROUGHPUT_TOLERANCE * self.last_throughput;
        self.beta = if is_steady && self.max_rtt > Nanos::ZERO {
            (self.min_rtt.0 as f64 / self.max_rtt.0 as f64).clamp(BETA_MIN, BETA_MAX)
        } else {
            BETA_MIN
        };
        (self.last_throughput, self.throughput) = (self.throughput, 0.0);
        self.max_rtt = Nanos::ZERO;
    }
}

impl CongestionControl for HTcp {
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        self.measure(ack);
        let since = ack.now.since(*self.last_congestion.get_or_insert(ack.now));
        if !ack.may_grow {
        } else if window.in_slow_start() {
            window.slow_start(ack.acked);
        } else {
            let growth = self.alpha(since) * window.mss as f64 * ack.acked as f64 / window.cwnd as f64;
            window.cwnd += self.carry.whole(growth);
        }
    }

    fn on_congestion(&mut self, window: &Window, signal: Signal, flight: u64, now: Timestamp) -> u64 {
        self.adapt_beta();
        if signal == Signal::Timeout {
            self.beta = BETA_MIN;
        }
        self.last_congestion = Some(now);
        self.carry = Carry::default();
        window.threshold(flight, self.beta)
    }
}
