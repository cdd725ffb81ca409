//! Congestion control: the size of the window. One algorithm per file behind one trait, selected by an enum so that
//! acknowledgements need no virtual call.
//!
//! The sender reports acknowledgements and congestion. The algorithm grows and reduces the window. Loss detection and
//! retransmission are in [`super::sender`].

use thalweg_wire::{Nanos, Timestamp};

mod cubic;
mod dctcp;
mod h_tcp;
mod hystart;
mod new_reno;

pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use h_tcp::HTcp;
pub use hystart::HyStart;
pub use new_reno::NewReno;

/// Windows in bytes (RFC 5681, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window.
    pub cwnd: u64,
    /// Slow start threshold.
    pub ssthresh: u64,
    /// Maximum segment size.
    pub mss: u64,
}

/// Segments that one acknowledgement may add to the window in slow start: L of RFC 3465, section 2.3.
const SLOW_START_LIMIT: u64 = 2;
/// Segments below which the threshold never falls (RFC 5681, equation 4).
const MIN_SEGMENTS: u64 = 2;

impl Window {
    /// A window of `segments` segments without a threshold (RFC 5681, section 3.1).
    pub const fn new(mss: u64, segments: u64) -> Window {
        Window { cwnd: segments * mss, ssthresh: u64::MAX, mss }
    }

    /// Whether the window is below its threshold.
    #[inline]
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Slow start with appropriate byte counting (RFC 3465): grows by the acknowledged bytes, at most two segments, up
    /// to the threshold.
    #[inline]
    pub fn slow_start(&mut self, acked: u64) {
        let growth = acked.min(SLOW_START_LIMIT * self.mss);
        self.cwnd = self.cwnd.saturating_add(growth).min(self.ssthresh);
    }

    /// The threshold for `factor` of `flight` bytes (RFC 5681, equation 4, which has 1/2).
    pub fn threshold(&self, flight: u64, factor: f64) -> u64 {
        ((flight as f64 * factor) as u64).max(MIN_SEGMENTS * self.mss)
    }

    /// The window in segments, as used in most formulas.
    pub fn segments(&self) -> f64 {
        self.cwnd as f64 / self.mss as f64
    }
}

/// The information in an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// Its arrival.
    pub now: Timestamp,
    /// Bytes newly covered by its acknowledgement number.
    pub acked: u64,
    /// Whether it echoes congestion (ECE).
    pub marked: bool,
    /// The round-trip time that it measured.
    pub rtt: Option<Nanos>,
    /// Smoothed round-trip time; zero before the first measurement.
    pub srtt: Nanos,
    /// First byte that is not acknowledged.
    pub una: u64,
    /// First byte that was never sent.
    pub next: u64,
    /// Whether the window may grow: it was fully used, without recovery or an echo of congestion.
    pub may_grow: bool,
}

/// A sign of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A segment was found lost by selective acknowledgements.
    Loss,
    /// The receiver echoed a mark (RFC 3168).
    Mark,
    /// The retransmission timer expired.
    Timeout,
}

/// A congestion control algorithm.
pub trait CongestionControl {
    /// Processes an acknowledgement. Grows `window` if `ack.may_grow`.
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample);

    /// Processes a sign of congestion, at most once per window of data, with `flight` bytes in flight. Returns the new
    /// slow start threshold. The sender reduces the window to it, or after a timeout to one segment first.
    fn on_congestion(&mut self, window: &Window, signal: Signal, flight: u64, now: Timestamp) -> u64;
}

/// The congestion control algorithms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// RFC 5681 and 6582.
    NewReno,
    /// RFC 9438. The default, as in Linux, Windows and macOS.
    #[default]
    Cubic,
    /// CUBIC with HyStart++ (RFC 9406) for slow start.
    ///
    /// Not the default: its delay threshold is at least 4 ms, more than any data centre queue at 10 Gbit/s.
    CubicHyStart,
    /// RFC 8257.
    Dctcp,
    /// Leith and Shorten's H-TCP.
    HTcp,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Algorithm; 5] =
        [Algorithm::NewReno, Algorithm::Cubic, Algorithm::CubicHyStart, Algorithm::Dctcp, Algorithm::HTcp];

    /// The name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::NewReno => "new_reno",
            Algorithm::Cubic => "cubic",
            Algorithm::CubicHyStart => "cubic_hystart",
            Algorithm::Dctcp => "dctcp",
            Algorithm::HTcp => "h_tcp",
        }
    }
}

/// The state of an algorithm.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Congestion {
    NewReno(NewReno),
    Cubic(Cubic),
    Dctcp(Dctcp),
    HTcp(HTcp),
}

impl Congestion {
    pub(crate) fn new(algorithm: Algorithm) -> Congestion {
        match algorithm {
            Algorithm::NewReno => Congestion::NewReno(NewReno::default()),
            Algorithm::Cubic => Congestion::Cubic(Cubic::default()),
            Algorithm::CubicHyStart => Congestion::Cubic(Cubic::with_hystart()),
            Algorithm::Dctcp => Congestion::Dctcp(Dctcp::default()),
            Algorithm::HTcp => Congestion::HTcp(HTcp::default()),
        }
    }
}

impl CongestionControl for Congestion {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        match self {
            Congestion::NewReno(control) => control.on_ack(window, ack),
            Congestion::Cubic(control) => control.on_ack(window, ack),
            Congestion::Dctcp(control) => control.on_ack(window, ack),
            Congestion::HTcp(control) => control.on_ack(window, ack),
        }
    }

    fn on_congestion(&mut self, window: &Window, signal: Signal, flight: u64, now: Timestamp) -> u64 {
        match self {
            Congestion::NewReno(control) => control.on_congestion(window, signal, flight, now),
            Congestion::Cubic(control) => control.on_congestion(window, signal, flight, now),
            Congestion::Dctcp(control) => control.on_congestion(window, signal, flight, now),
            Congestion::HTcp(control) => control.on_congestion(window, signal, flight, now),
        }
    }
}

/// Converts fractions of bytes to whole bytes and carries the remainder.
#[derive(Clone, Copy, Debug, Default)]
struct Carry(f64);

impl Carry {
    /// Adds `bytes`, at least zero, and takes the whole part.
    fn whole(&mut self, bytes: f64) -> u64 {
        self.0 += bytes;
        let whole = self.0.trunc();
        self.0 -= whole;
        whole as u64
    }
}

#[cfg(test)]
mod tests;
