//! pFabric's minimal transport (Alizadeh et al., SIGCOMM 2013, section 4.3). The fabric does the scheduling; hosts only
//! avoid congestion collapse.
//!
//! A flow starts with a window of one bandwidth-delay product. Only a short, fixed timeout detects loss. After a
//! timeout the window restarts from one segment, in slow start up to half of its size. After five timeouts in a row the
//! flow only probes. Each segment is acknowledged selectively, and lost segments are retransmitted in order.
//!
//! Where we differ:
//! - A timeout marks segments lost that a later transmission overtook, or the first segment if there are none, not
//!   everything outstanding. A flow of low priority waits in switches for longer than the timeout, and its segments
//!   there would be retransmitted needlessly.
//! - The window never exceeds the bandwidth-delay product, because more would only wait at the host.
//! - A probe has no payload where the paper's has one byte, so that segments keep their boundaries.

use thalweg_wire::{BitRate, Nanos, Timestamp};

use super::segment::{Ack, Data};
use super::tcp::congestion::Window;
use super::tcp::scoreboard::Scoreboard;
use super::tcp::sender::Events;

/// No timer runs.
const NEVER: Timestamp = Timestamp(u64::MAX);

/// The configuration of pFabric's hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PFabricConfig {
    /// The initial and largest window in bytes: a bandwidth-delay product.
    pub window: u32,
    /// The timeout of all flows: about three round trips without queues.
    pub rto: Nanos,
    /// Consecutive timeouts after which a flow only probes. Default 5 (section 4.3).
    pub probe_after: u32,
}

impl PFabricConfig {
    /// For hosts on links of `rate` and a round trip of `rtt` through empty queues.
    pub fn for_path(rate: BitRate, rtt: Nanos) -> PFabricConfig {
        let window = rate.amount_in(rtt).0.min(u64::from(u32::MAX)) as u32;
        PFabricConfig { window, rto: Nanos(rtt.0.saturating_mul(3)), probe_after: 5 }
    }
}

/// 10 Gbit/s and 40 us, half of it in the default host stacks.
impl Default for PFabricConfig {
    fn default() -> PFabricConfig {
        PFabricConfig::for_path(BitRate(10_000_000_000), Nanos::from_micros(40))
    }
}

/// The state of a sender.
#[derive(Clone, Debug)]
pub struct Sender {
    board: Scoreboard,
    window: Window,
    config: PFabricConfig,
    bytes: u64,
    segments: u64,
    deadline: Timestamp,
    /// Timeouts since the last acknowledgement.
    timeouts_in_row: u32,
    /// After a timeout: the first segment not sent by then. Until it is acknowledged, acknowledgements detect losses
    /// too.
    recovery_point: u64,
    /// Whether the next segment or probe ignores the window.
    must_send: bool,
    /// Event counters for reports.
    pub(super) events: Events,
}

impl Sender {
    /// The sender of a flow of `bytes` bytes in segments of `mss`.
    pub fn new(config: &PFabricConfig, bytes: u64, mss: u64) -> Sender {
        Sender {
            board: Scoreboard::default(),
            window: Window::new(mss, u64::from(config.window).div_ceil(mss)),
            config: *config,
            bytes,
            segments: bytes.div_ceil(mss),
            deadline: NEVER,
            timeouts_in_row: 0,
            recovery_point: 0,
            must_send: false,
            events: Events::default(),
        }
    }

    /// Reuses the memory for another flow.
    pub fn reset(&mut self, bytes: u64) {
        let mut board = std::mem::take(&mut self.board);
        board.reset();
        *self = Sender { board, ..Sender::new(&self.config, bytes, self.window.mss) };
    }

    /// The window.
    pub fn window(&self) -> Window {
        self.window
    }

    /// All bytes below this offset are acknowledged.
    pub fn acknowledged(&self) -> u64 {
        (self.board.una().saturating_mul(self.window.mss)).min(self.bytes)
    }

    /// Bytes in flight, as the sender estimates, in whole segments.
    pub fn in_flight(&self) -> u64 {
        self.board.pipe() * self.window.mss
    }

    /// Segments sent, including retransmissions, without probes.
    pub fn segments_sent(&self) -> u64 {
        self.board.next() + self.events.retransmissions
    }

    /// Whether all bytes are acknowledged.
    pub fn is_done(&self) -> bool {
        self.board.una() == self.segments
    }

    /// Whether the flow only probes.
    pub fn is_probing(&self) -> bool {
        self.timeouts_in_row >= self.config.probe_after
    }

    /// When [`on_timer`](Self::on_timer) is due; the end of time if no timer runs.
    pub fn deadline(&self) -> Timestamp {
        self.deadline
    }

    /// Processes an acknowledgement. Any acknowledgement shows that the path is open.
    pub fn on_ack(&mut self, ack: &Ack, now: Timestamp) {
        let was_probing = self.is_probing();
        let mss = self.window.mss;
        let progress = self.board.acknowledge(ack.acknowledgement.div_ceil(mss), &ack.sack, mss);
        self.timeouts_in_row = 0;
        self.must_send = false;
        if was_probing && progress.delivered == 0 {
            self.board.lose_all(); // The probe has overtaken everything.
        } else if self.board.una() < self.recovery_point {
            self.board.lose_overtaken();
        }
        if progress.delivered > 0 || was_probing {
            self.deadline = if self.board.outstanding() == 0 { NEVER } else { now + self.config.rto };
        }
        let acked = progress.delivered * mss;
        if self.window.in_slow_start() {
            self.window.slow_start(acked);
        } else {
            self.window.cwnd += mss * acked / self.window.cwnd;
        }
        let largest = u64::from(self.config.window).next_multiple_of(mss);
        self.window.cwnd = self.window.cwnd.min(largest);
    }

    /// Handles the expiry of the timer.
    pub fn on_timer(&mut self, now: Timestamp) {
        if self.deadline > now {
            return;
        }
        self.events.timeouts += 1;
        self.timeouts_in_row += 1;
        if self.timeouts_in_row == 1 {
            self.window.ssthresh = self.window.threshold(self.window.cwnd, 0.5);
        }
        self.window.cwnd = self.window.mss;
        self.board.lose_overtaken();
        if self.board.next_lost().is_none() {
            self.board.lose_first();
        }
        self.recovery_point = self.board.next();
        self.must_send = true;
        self.deadline = now + self.config.rto;
    }

    /// The next segment, if one may be sent now.
    pub fn transmit(&mut self, now: Timestamp) -> Option<Data> {
        if self.is_probing() {
            let sequence = self.acknowledged();
            let probe = Data { sequence, sent_at: now, length: 0, is_retransmission: false, cwr: false };
            return std::mem::take(&mut self.must_send).then_some(probe);
        }
        if (self.board.pipe() + 1) * self.window.mss > self.window.cwnd && !self.must_send {
            return None;
        }
        self.must_send = false;
        let (segment, is_retransmission) = match self.board.next_lost() {
            Some(segment) => {
                self.board.send_again(segment);
                self.events.retransmissions += 1;
                (segment, true)
            }
            None if self.board.next() < self.segments => (self.board.send_new(), false),
            None => return None,
        };
        if self.deadline == NEVER {
            self.deadline = now + self.config.rto;
        }
        let sequence = segment * self.window.mss;
        let length = (self.bytes - sequence).min(self.window.mss) as u16;
        Some(Data { sequence, sent_at: now, length, is_retransmission, cwr: false })
    }

    /// # Panics
    /// If the scoreboard's counters are wrong.
    pub fn check_invariants(&self) {
        self.board.check_invariants();
    }
}
