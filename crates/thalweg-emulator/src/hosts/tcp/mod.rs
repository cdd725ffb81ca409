//! TCP without handshakes, as pure state machines. Time is an argument, and bytes are only counted.
//!
//! Implements RFC 5681 and 6582 (slow start, congestion avoidance, fast retransmit), 6928 (initial window), 3465 (byte
//! counting), 6675 (loss detection and pipe by selective acknowledgements), 3042 (limited transmit, which follows from
//! it), 6937 (proportional rate reduction), 6298 (timeout), 7323 (timestamps), 2018 (selective acknowledgement), 3168
//! and 8257 (both kinds of ECN echo), 3522 and 4015 (Eifel: undo recovery if segments were late and not lost), and the
//! algorithms of [`congestion`].
//!
//! Not implemented: handshakes, flow control by a slow reader (applications read at once), Nagle's algorithm (all bytes
//! of a flow exist at its start), pacing, tail loss probes (RFC 8985), undo of spurious timeouts (RFC 5682).

pub mod congestion;
pub(super) mod reassembly;
pub mod receiver;
pub mod rto;
pub(super) mod scoreboard;
pub mod sender;

pub use congestion::Algorithm;
pub use receiver::{AckPolicy, Echo};
pub use rto::RtoConfig;

/// Configuration of TCP's senders and receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// Congestion control. Default CUBIC.
    pub algorithm: Algorithm,
    /// Whether data segments are ECN-capable and receivers echo marks. Default no; DCTCP always does.
    pub ecn: bool,
    /// Initial window in segments. Default 10 (RFC 6928, section 2).
    pub initial_window: u32,
    /// Bounds of the retransmission timeout.
    pub rto: RtoConfig,
    /// Delayed acknowledgements.
    pub ack: AckPolicy,
    /// Whether recovery is undone if segments were late rather than lost, and reordered segments are waited for (RFC
    /// 3522, 4015, with the bound of RFC 8985). Default yes, as in Linux. Without it, a flow that moves to a shorter
    /// path takes overtaken segments for lost.
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
