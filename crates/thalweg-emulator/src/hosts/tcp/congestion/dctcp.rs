//! DCTCP: reacts to the fraction of marked data (Alizadeh et al., SIGCOMM 2010; RFC 8257, section 3.3). Requires the
//! receiver's exact echo (section 3.2) and a switch that marks above a threshold.

use thalweg_wire::Timestamp;

use super::{AckSample, CongestionControl, NewReno, Signal, Window};

/// Estimation gain g (RFC 8257, section 4.2).
const GAIN: f64 = 1.0 / 16.0;
/// Factor of the window after a loss (section 3.5: as without DCTCP).
const BETA: f64 = 0.5;

/// DCTCP's state.
#[derive(Clone, Copy, Debug)]
pub struct Dctcp {
    /// Estimate of the fraction of marked bytes.
    alpha: f64,
    /// End of the observation window: the estimate is updated when everything below is acknowledged.
    window_end: u64,
    bytes_acked: u64,
    bytes_marked: u64,
    growth: NewReno,
}

impl Default for Dctcp {
    /// Alpha starts at 1, so the first mark halves the window (RFC 8257, section 4.2).
    fn default() -> Dctcp {
        Dctcp { alpha: 1.0, window_end: 0, bytes_acked: 0, bytes_marked: 0, growth: NewReno::default() }
    }
}

impl Dctcp {
    /// The estimate: DCTCP.Alpha.
    pub const fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Steps 1 to 7 of section 3.3.
    #[inline]
    fn observe(&mut self, ack: &AckSample) {
        self.bytes_acked += ack.acked;
        if ack.marked {
            self.bytes_marked += ack.acked;
        }
        if ack.una <= self.window_end {
            return;
        }
        if self.bytes_acked > 0 {
            let marked = self.bytes_marked as f64 / self.bytes_acked as f64;
            self.alpha = self.alpha * (1.0 - GAIN) + GAIN * marked;
        }
        (self.bytes_acked, self.bytes_marked) = (0, 0);
        self.window_end = ack.next;
    }
}

impl CongestionControl for Dctcp {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        self.observe(ack);
        self.growth.on_ack(window, ack);
    }

    fn on_congestion(&mut self, window: &Window, signal: Signal, flight: u64, now: Timestamp) -> u64 {
        self.growth.on_congestion(window, signal, flight, now);
        match signal {
            Signal::Mark => window.threshold(window.cwnd, 1.0 - self.alpha / 2.0),
            Signal::Loss | Signal::Timeout => window.threshold(flight, BETA),
        }
    }
}
