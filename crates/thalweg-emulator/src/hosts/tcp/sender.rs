//! The sending end: what may be sent now, and what comes next.
//!
//! A segment may be sent when the congestion window has room for it beside what is under way (`pipe` of RFC 6675).
//! So limited transmit (RFC 3042) needs no rule of its own: each segment that arrives out of order leaves the pipe.
//! Recovery from losses is RFC 6675's, paced by proportional rate reduction (RFC 6937), with the addition that
//! `scoreboard.rs` describes. A timeout marks everything lost and begins slow start again.
//! What was late rather than lost is told apart by time stamps, and answered as `reordering.rs` describes.
//! ECN follows RFC 3168: the window shrinks at most once a window of data.

use thalweg_wire::{Nanos, Timestamp};

use super::congestion::{AckSample, Congestion, CongestionControl, Signal, Window};
use super::rto::RttEstimator;
use super::scoreboard::{Progress, Scoreboard};
use super::{Algorithm, TcpConfig};
use crate::hosts::segment::{Ack, Data};

mod reordering;

use reordering::{Before, Patience};

/// No timer runs.
const NEVER: Timestamp = Timestamp(u64::MAX);

/// Where the sender stands between losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing is known to be lost.
    Open,
    /// Fast recovery (RFC 6675, section 5), until all below `point` is acknowledged.
    Recovery { point: u64, prr: RateReduction },
    /// After a timeout, until all below `point` is acknowledged.
    Loss { point: u64 },
}

/// Proportional rate reduction (RFC 6937, section 3). Bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RateReduction {
    /// Under way when recovery began: RecoverFS.
    flight: u64,
    delivered: u64,
    sent: u64,
}

impl RateReduction {
    /// How much may be sent on an acknowledgement of `delivered` bytes, with slow start reduction bound.
    fn allowance(&mut self, delivered: u64, pipe: u64, window: &Window) -> u64 {
        self.delivered += delivered;
        if pipe > window.ssthresh {
            let proportion = u128::from(self.delivered) * u128::from(window.ssthresh);
            return (proportion.div_ceil(u128::from(self.flight)) as u64).saturating_sub(self.sent);
        }
        let limit = self.delivered.saturating_sub(self.sent).max(delivered) + window.mss;
        (window.ssthresh - pipe).min(limit)
    }
}

/// A sender's state.
#[derive(Clone, Debug)]
pub struct Sender {
    board: Scoreboard,
    window: Window,
    congestion: Congestion,
    rtt: RttEstimator,
    phase: Phase,
    bytes: u64,
    /// Segments of the flow, and segments that the receiver's window holds.
    segments: u64,
    receive_window: u64,
    deadline: Timestamp,
    tolerates_reordering: bool,
    /// What recovery has changed, until it is known whether anything was lost.
    before: Option<Before>,
    /// Nothing counts as lost for now.
    patience: Option<Patience>,
    /// The transmissions up to this one have been answered for: a retransmission among them that is lost as well
    /// shrinks the window no further.
    cut_at: u64,
    /// Marks of data below this segment have been answered for.
    reduced_below: u64,
    must_send_cwr: bool,
    /// What happened, for reports.
    pub(in crate::hosts) events: Events,
}

/// What has happened to a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// Segments sent again.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Entries into fast recovery.
    pub recoveries: u64,
    /// Of those, how many were undone, as nothing had been lost.
    pub undone: u64,
}

impl Sender {
    /// The sender of a flow of `bytes` bytes in segments of `mss`, to a receiver that holds `receive_window` bytes.
    pub fn new(config: &TcpConfig, bytes: u64, mss: u64, receive_window: u64) -> Sender {
        Sender {
            board: Scoreboard::default(),
            window: Window::new(mss, u64::from(config.initial_window)),
            congestion: Congestion::new(config.algorithm),
            rtt: RttEstimator::new(config.rto),
            phase: Phase::Open,
            bytes,
            segments: bytes.div_ceil(mss),
            receive_window: receive_window / mss,
            deadline: NEVER,
            tolerates_reordering: config.tolerates_reordering,
            before: None,
            patience: None,
            cut_at: 0,
            reduced_below: 0,
            must_send_cwr: false,
            events: Events::default(),
        }
    }

    /// The same for another flow, with the memory of this one.
    pub fn reset(&mut self, config: &TcpConfig, bytes: u64) {
        let mut board = std::mem::take(&mut self.board);
        board.reset();
        let (mss, receive_window) = (self.window.mss, self.receive_window * self.window.mss);
        *self = Sender { board, ..Sender::new(config, bytes, mss, receive_window) };
    }

    /// The window.
    pub fn window(&self) -> Window {
        self.window
    }

    /// The smoothed round-trip time.
    pub fn srtt(&self) -> Option<Nanos> {
        self.rtt.srtt()
    }

    /// All bytes below this offset are acknowledged.
    pub fn acknowledged(&self) -> u64 {
        (self.board.una().saturating_mul(self.window.mss)).min(self.bytes)
    }

    /// Whether all bytes are acknowledged.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.board.una() == self.segments
    }

    /// Whether it repairs losses.
    pub fn is_recovering(&self) -> bool {
        self.phase != Phase::Open
    }

    /// When [`on_timer`](Self::on_timer) is due; the end of time if it is not.
    #[inline]
    pub fn deadline(&self) -> Timestamp {
        self.patience.map_or(self.deadline, |patience| patience.until.min(self.deadline))
    }

    /// Takes an acknowledgement.
    #[inline]
    pub fn on_ack(&mut self, ack: &Ack, now: Timestamp) {
        let pipe = self.board.pipe() * self.window.mss;
        let was_used = pipe + self.window.mss > self.window.cwnd
            || (self.window.in_slow_start() && self.window.cwnd < 2 * pipe);
        let mss = self.window.mss;
        let progress = self.board.acknowledge(ack.acknowledgement.div_ceil(mss), &ack.sack, mss);
        let rtt = (progress.acked > 0).then(|| self.take_rtt(ack, now));
        if progress.acked > 0 {
            self.judge_recovery(ack, now);
        }
        let lost_again = if self.has_patience(progress, now) {
            None
        } else {
            self.board.mark_lost();
            self.board.lose_retransmissions()
        };
        self.leave_phase();
        if self.phase == Phase::Open && self.board.first_is_lost() {
            self.enter_recovery(progress, now);
        } else if lost_again.is_some_and(|transmission| transmission > self.cut_at) {
            self.answer_lost_retransmission(progress, now);
        } else {
            self.pace_recovery(progress);
        }
        if progress.acked > 0 {
            let may_grow = was_used && !ack.ece && !matches!(self.phase, Phase::Recovery { .. });
            let sample = AckSample {
                now,
                acked: progress.acked * mss,
                marked: ack.ece,
                rtt,
                srtt: self.rtt.srtt().unwrap_or_default(),
                una: self.board.una() * mss,
                next: self.board.next() * mss,
                may_grow,
            };
            self.congestion.on_ack(&mut self.window, &sample);
        }
        if ack.ece {
            self.answer_mark(now);
        }
    }

    /// Measures the round trip, and starts the timer anew (RFC 6298, rules 5.2 and 5.3).
    #[inline]
    fn take_rtt(&mut self, ack: &Ack, now: Timestamp) -> Nanos {
        let rtt = now.since(ack.echo);
        self.rtt.sample(rtt);
        self.deadline = if self.board.outstanding() == 0 { NEVER } else { now + self.rtt.rto() };
        rtt
    }

    #[inline]
    fn leave_phase(&mut self) {
        match self.phase {
            Phase::Recovery { point, .. } if self.board.una() >= point => {
                self.window.cwnd = self.window.ssthresh;
                self.phase = Phase::Open;
                self.before = None;
            }
            Phase::Loss { point } if self.board.una() >= point => self.phase = Phase::Open,
            _ => {}
        }
    }

    /// Bytes under way, for the threshold. Not those that limited transmit has added (RFC 5681, section 3.2).
    fn flight(&self) -> u64 {
        (self.board.outstanding() * self.window.mss).min(self.window.cwnd)
    }

    fn enter_recovery(&mut self, progress: Progress, now: Timestamp) {
        let flight = self.flight();
        self.before = self.tolerates_reordering.then(|| Before::new(self.window, &self.congestion));
        self.window.ssthresh = self.congestion.on_congestion(&self.window, Signal::Loss, flight, now);
        self.reduced_below = self.board.next();
        self.must_send_cwr = true;
        self.events.recoveries += 1;
        self.begin_reduction(self.board.next(), self.board.outstanding(), progress);
    }

    /// Brings the window down to the threshold while `flight` segments leave the network. The first retransmission does
    /// not wait (RFC 6675, section 5, step 4.3).
    fn begin_reduction(&mut self, point: u64, flight: u64, progress: Progress) {
        let prr = RateReduction { flight: flight.max(1) * self.window.mss, delivered: 0, sent: 0 };
        self.phase = Phase::Recovery { point, prr };
        self.cut_at = self.board.transmissions();
        self.pace_recovery(progress);
        self.window.cwnd = self.window.cwnd.max((self.board.pipe() + 1) * self.window.mss);
    }

    #[inline]
    fn pace_recovery(&mut self, progress: Progress) {
        if let Phase::Recovery { prr, .. } = &mut self.phase
            && progress.delivered > 0
        {
            let pipe = self.board.pipe() * self.window.mss;
            let delivered = progress.delivered * self.window.mss;
            self.window.cwnd = pipe + prr.allowance(delivered, pipe, &self.window);
        }
    }

    /// The loss of a retransmission that was sent after the window shrank counts as congestion of its own (RFC 5681,
    /// section 4.3).
    fn answer_lost_retransmission(&mut self, progress: Progress, now: Timestamp) {
        let flight = self.window.ssthresh.min(self.flight());
        self.window.ssthresh = self.congestion.on_congestion(&self.window, Signal::Loss, flight, now);
        match self.phase {
            Phase::Recovery { point, .. } => self.begin_reduction(point, self.board.pipe(), progress),
            Phase::Open | Phase::Loss { .. } => {
                self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
                self.cut_at = self.board.transmissions();
            }
        }
    }

    /// Reduces the window if it has not been within the last window of data (RFC 3168, section 6.1.2).
    fn answer_mark(&mut self, now: Timestamp) {
        if self.board.una() < self.reduced_below || self.phase != Phase::Open {
            return;
        }
        let flight = self.flight();
        self.window.ssthresh = self.congestion.on_congestion(&self.window, Signal::Mark, flight, now);
        self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        self.reduced_below = self.board.next();
        self.must_send_cwr = true;
    }

    /// The timer of [`deadline`](Self::deadline) has run out (RFC 6298, rules 5.4 to 5.6; RFC 5681, section 3.1).
    pub fn on_timer(&mut self, now: Timestamp) {
        self.end_patience(now);
        if self.deadline > now {
            return;
        }
        // Only the first expiry for a segment lowers the threshold.
        if !self.rtt.has_backed_off() {
            let flight = self.flight();
            self.window.ssthresh = self.congestion.on_congestion(&self.window, Signal::Timeout, flight, now);
        }
        self.window.cwnd = self.window.mss;
        self.board.lose_all();
        self.phase = Phase::Loss { point: self.board.next() };
        (self.before, self.patience) = (None, None);
        self.reduced_below = self.board.next();
        self.cut_at = self.board.transmissions();
        self.events.timeouts += 1;
        self.rtt.back_off();
        self.deadline = now + self.rtt.rto();
    }

    /// The next segment, if one may be sent now (RFC 6675, section 4, NextSeg; rule 4 is left out).
    #[inline]
    pub fn transmit(&mut self, now: Timestamp) -> Option<Data> {
        let mss = self.window.mss;
        if (self.board.pipe() + 1) * mss > self.window.cwnd {
            return None;
        }
        let (segment, is_retransmission) = if let Some(segment) = self.board.next_lost() {
            (segment, true)
        } else if self.board.next() < self.segments && self.board.outstanding() < self.receive_window {
            (self.board.next(), false)
        } else if matches!(self.phase, Phase::Recovery { .. })
            && let Some(segment) = self.board.next_missing()
        {
            (segment, true)
        } else {
            return None;
        };
        if is_retransmission {
            self.board.send_again(segment);
            self.events.retransmissions += 1;
        } else {
            self.board.send_new();
        }
        if let Phase::Recovery { prr, .. } = &mut self.phase {
            prr.sent += mss;
        }
        if is_retransmission && let Some(before) = &mut self.before {
            before.sent_again(now);
        }
        if self.deadline == NEVER {
            self.deadline = now + self.rtt.rto();
        }
        let sequence = segment * mss;
        let length = (self.bytes - sequence).min(mss) as u16;
        let cwr = !is_retransmission && std::mem::take(&mut self.must_send_cwr);
        Some(Data { sequence, sent_at: now, length, is_retransmission, cwr })
    }

    /// # Panics
    /// If the scoreboard's counters are wrong.
    pub fn check_invariants(&self) {
        self.board.check_invariants();
        assert!(self.board.next() <= self.segments, "more was sent than there is");
        assert!(self.board.outstanding() == 0 || self.deadline < NEVER, "data under way without a timer");
    }
}

impl TcpConfig {
    /// Whether data segments are ECN-capable.
    pub fn is_ecn_capable(&self) -> bool {
        self.ecn || self.algorithm == Algorithm::Dctcp
    }
}

#[cfg(test)]
mod tests;
