//! HyStart++: leaves slow start when the round-trip time grows, before the queue overflows (RFC 9406).

use thalweg_wire::Nanos;

use super::{AckSample, Window};

/// Bounds of the growth of the round-trip time that ends slow start (RFC 9406, section 4.3).
const MIN_RTT_THRESH: Nanos = Nanos::from_millis(4);
const MAX_RTT_THRESH: Nanos = Nanos::from_millis(16);
/// Between the bounds, the round-trip time divided by this.
const MIN_RTT_DIVISOR: u64 = 8;
/// Measurements required per round.
const N_RTT_SAMPLE: u32 = 8;
/// Conservative slow start grows slower by this factor, and lasts for this many rounds.
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;
/// No measurement yet.
const NONE: Nanos = Nanos(u64::MAX);

/// HyStart++'s state.
#[derive(Clone, Copy, Debug)]
pub struct HyStart {
    /// A round ends when this byte is acknowledged.
    window_end: u64,
    last_round_min_rtt: Nanos,
    current_round_min_rtt: Nanos,
    samples: u32,
    conservative: Option<Conservative>,
}

/// Conservative slow start: the round-trip time may have grown for another reason.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    baseline_min_rtt: Nanos,
    rounds: u32,
}

impl Default for HyStart {
    fn default() -> HyStart {
        HyStart {
            window_end: 0,
            last_round_min_rtt: NONE,
            current_round_min_rtt: NONE,
            samples: 0,
            conservative: None,
        }
    }
}

impl HyStart {
    /// Processes an acknowledgement in slow start. Sets the threshold to the window when slow start ends (section 4.2).
    pub fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        match self.conservative {
            None => window.slow_start(ack.acked),
            Some(_) => window.slow_start(ack.acked / CSS_GROWTH_DIVISOR),
        }
        if let Some(rtt) = ack.rtt {
            self.current_round_min_rtt = self.current_round_min_rtt.min(rtt);
            self.samples += 1;
        }
        self.judge_delay();
        if ack.una > self.window_end {
            self.end_round(window, ack.next);
        }
    }

    fn judge_delay(&mut self) {
        if self.samples < N_RTT_SAMPLE || self.last_round_min_rtt == NONE {
            return;
        }
        match self.conservative {
            None => {
                let threshold = Nanos(self.last_round_min_rtt.0 / MIN_RTT_DIVISOR);
                let threshold = threshold.clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if self.current_round_min_rtt >= self.last_round_min_rtt.saturating_add(threshold) {
                    let baseline_min_rtt = self.current_round_min_rtt;
                    self.conservative = Some(Conservative { baseline_min_rtt, rounds: 0 });
                }
            }
            Some(css) if self.current_round_min_rtt < css.baseline_min_rtt => self.conservative = None,
            Some(_) => {}
        }
    }

    fn end_round(&mut self, window: &mut Window, next: u64) {
        self.window_end = next;
        (self.last_round_min_rtt, self.current_round_min_rtt) = (self.current_round_min_rtt, NONE);
        self.samples = 0;
        if let Some(css) = &mut self.conservative {
            css.rounds += 1;
            if css.rounds >= CSS_ROUNDS {
                window.ssthresh = window.cwnd;
            }
        }
    }
}
