//! TCP without its handshakes, as pure state machines: time is an argument, bytes are only counted.
//!
//! RFC 5681 and 6582 (slow start, congestion avoidance, fast retransmit), 6928 (initial window), 3465 (byte counting),
//! 6675 (what is lost and what is under way, by selective acknowledgements), 3042 (limited transmit, which follows from
//! it), 6937 (proportional rate reduction), 6298 (timeout), 7323 (timestamps), 2018 (selective acknowledgement),
//! 3168 and 8257 (both kinds of ECN echo), 3522 and 4015 (Eifel: recovery from what was late and not lost is undone),
//! and the algorithms of [`congestion`].
//!
//! Not there: handshakes, flow control by a slow reader (the application reads at once), Nagle's algorithm (a flow's
//! bytes are all there when it begins), pacing, tail loss probes (RFC 8985), undoing of spurious timeouts (RFC 5682).

pub mod congestion;
pub(super) mod reassembly;
pub mod receiver;
pub mod rto;
pub(super) mod scoreboard;
pub mod sender;

pub use congestion::Algorithm;
pub use receiver::{AckPolicy, Echo};
pub use rto::RtoConfig;

/// How TCP's senders and receivers behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// Congestion control. Default CUBIC.
    pub algorithm: Algorithm,
    /// Whether data are ECN-capable and the receiver echoes marks. Default no; DCTCP does so in any case.
    pub ecn: bool,
    /// Initial window in segments. Default 10 (RFC 6928, section 2).
    pub initial_window: u32,
    /// Bounds of the retransmission timeout.
    pub rto: RtoConfig,
    /// When acknowledgements may wait.
    pub ack: AckPolicy,
    /// Whether recovery is undone when what it took for lost was only late, and what comes out of order then is waited for
    /// (RFC 3522, 4015, and the bound of RFC 8985). Default yes, as Linux does it; without it a flow that changes to a
    /// shorter way takes what it overtakes for lost.
    pub tolerates_reordering: bool,
}

impl Default for TcpConfig {
    fn default() -> TcpConfig {
        TcpConfig {
            algorithm: Algorithm::default(),
            ecn: false,
            initial_window: 10,
            rto: RtoConfig::default(),
            ack: AckPolicy::default(),
            tolerates_reordering: true,
        }
    }
}

impl TcpConfig {
    /// The defaults with another algorithm.
    pub fn with(algorithm: Algorithm) -> TcpConfig {
        TcpConfig { algorithm, ..TcpConfig::default() }
    }

    /// How the receiver echoes marks.
    pub fn echo(&self) -> Echo {
        match (self.algorithm, self.ecn) {
            (Algorithm::Dctcp, _) => Echo::Exact,
            (_, true) => Echo::UntilReduced,
            (_, false) => Echo::Never,
        }
    }
}
