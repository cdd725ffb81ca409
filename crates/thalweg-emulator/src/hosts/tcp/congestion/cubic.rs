//! CUBIC: the window is a cubic function of the time since the last congestion event (RFC 9438).

use thalweg_wire::{Nanos, Timestamp};

use super::{AckSample, Carry, CongestionControl, HyStart, Signal, Window};

/// Factor of the window after congestion (RFC 9438, section 4.6).
const BETA: f64 = 0.7;
/// C, in segments per second cubed (section 5.1).
const C: f64 = 0.4;
/// Additive increase that matches Reno's rate despite the smaller decrease (section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Bound of the window growth per round trip (section 4.2).
const MAX_TARGET: f64 = 1.5;

/// CUBIC's state. Windows in segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cubic {
    /// The window before the last reduction, or less after fast convergence.
    w_max: f64,
    /// cwnd_prior: the window at the last reduction.
    before_reduction: f64,
    /// The last congestion event was a timeout, or there was none yet: K is zero in the next epoch (section 4.8).
    starts_flat: bool,
    epoch: Option<Epoch>,
    last_ack: Timestamp,
    carry: Carry,
    hystart: Option<HyStart>,
}

/// An epoch of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Timestamp,
    w_max: f64,
    /// Seconds until the curve reaches `w_max`.
    k: f64,
    /// Reno's window.
    w_est: f64,
}

impl Epoch {
    /// W_cubic `seconds` into the epoch (section 4.2, equation 1).
    fn w_cubic(&self, seconds: f64) -> f64 {
        let from_plateau = seconds - self.k;
        C * from_plateau * from_plateau * from_plateau + self.w_max
    }
}

impl Cubic {
    /// CUBIC with HyStart++ for slow start.
    pub fn with_hystart() -> Cubic {
        Cubic { hystart: Some(HyStart::default()), ..Cubic::default() }
    }

    /// Starts an epoch of congestion avoidance at the current window (equation 2).
    fn begin_epoch(&self, window: &Window, now: Timestamp) -> Epoch {
        let cwnd = window.segments();
        let flat = self.starts_flat || self.w_max <= cwnd;
        let w_max = if flat { cwnd } else { self.w_max };
        Epoch { start: now, w_max, k: libm::cbrt((w_max - cwnd) / C), w_est: cwnd }
    }

    fn avoid_congestion(&mut self, window: &mut Window, ack: &AckSample) {
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin_epoch(window, ack.now));
        let cwnd = window.segments();
        let acked = ack.acked as f64 / window.mss as f64;
        let alpha = if epoch.w_est < self.before_reduction { ALPHA } else { 1.0 };
        epoch.w_est += alpha * acked / cwnd;
        let elapsed = ack.now.since(epoch.start).as_secs_f64();
        let target = if epoch.w_cubic(elapsed) < epoch.w_est {
            epoch.w_est
        } else {
            let target = epoch.w_cubic(elapsed + ack.srtt.as_secs_f64()).clamp(cwnd, MAX_TARGET * cwnd);
            cwnd + (target - cwnd) * (acked / cwnd).min(1.0)
        };
        window.cwnd += self.carry.whole((target - cwnd).max(0.0) * window.mss as f64);
        self.epoch = Some(epoch);
    }

    /// Excludes a time in which the window was not used (section 5.8).
    fn stand_still(&mut self, span: Nanos) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start = epoch.start + span;
        }
    }
}

impl CongestionControl for Cubic {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        let since_last = ack.now.since(self.last_ack);
        self.last_ack = ack.now;
        if !ack.may_grow {
            self.stand_still(since_last);
        } else if !window.in_slow_start() {
            self.avoid_congestion(window, ack);
        } else if let Some(hystart) = &mut self.hystart {
            hystart.on_ack(window, ack);
        } else {
            window.slow_start(ack.acked);
        }
    }

    fn on_congestion(&mut self, window: &Window, signal: Signal, flight: u64, _: Timestamp) -> u64 {
        let cwnd = window.segments();
        // Fast convergence (section 4.7): a flow that was reduced below its old maximum leaves room for new flows.
        self.w_max = if cwnd < self.w_max { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.before_reduction = cwnd;
        self.starts_flat = signal == Signal::Timeout;
        self.epoch = None;
        self.carry = Carry::default();
        window.threshold(flight, BETA)
    }
}
