//! NewReno: one segment more per round trip, half the window after congestion (RFC 5681, section 3.1; RFC 6582).

use thalweg_wire::Timestamp;

use super::{AckSample, CongestionControl, Signal, Window};

/// Factor of the window after congestion (RFC 5681, equation 4).
const BETA: f64 = 0.5;

/// NewReno's state.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewReno {
    /// Bytes acknowledged since the window last grew (RFC 3465, section 2.1).
    bytes_acked: u64,
}

impl NewReno {
    /// Congestion avoidance with appropriate byte counting: one segment more per acknowledged window.
    #[inline]
    pub(super) fn avoid_congestion(&mut self, window: &mut Window, acked: u64) {
        self.bytes_acked += acked;
        if self.bytes_acked >= window.cwnd {
            self.bytes_acked -= window.cwnd;
            window.cwnd += window.mss;
        }
    }
}

impl CongestionControl for NewReno {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if !ack.may_grow {
        } else if window.in_slow_start() {
            window.slow_start(ack.acked);
        } else {
            self.avoid_congestion(window, ack.acked);
        }
    }

    fn on_congestion(&mut self, window: &Window, _: Signal, flight: u64, _: Timestamp) -> u64 {
        self.bytes_acked = 0;
        window.threshold(flight, BETA)
    }
}
