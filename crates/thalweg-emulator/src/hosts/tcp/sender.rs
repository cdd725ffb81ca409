//! The sender: what may be sent now, and which segment is next.
//!
//! A segment may be sent when the congestion window exceeds `pipe` (RFC 6675). Limited transmit (RFC 3042) needs no
//! rule of its own, because each segment that arrives out of order leaves the pipe. Recovery follows RFC 6675, paced by
//! proportional rate reduction (RFC 6937), with the addition in `scoreboard.rs`. A timeout marks everything lost and
//! restarts slow start. Timestamps tell late segments from lost ones, see `reordering.rs`. ECN follows RFC 3168: the
//! window shrinks at most once per window of data.

use thalweg_wire::{Nanos, Timestamp};

use super::congestion::{AckSample, Congestion, CongestionControl, Signal, Window};
use super::rto::RttEstimator;
use super::scoreboard::{Progress, Scoreboard};
use super::{Algorithm, TcpConfig};
use crate::hosts::segment::{Ack, Data};

mod reordering;

use reordering::{Before, LossDelay};

/// No timer runs.
const NEVER: Timestamp = Timestamp(u64::MAX);

/// The phase of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No loss is known.
    Open,
    /// Fast recovery (RFC 6675, section 5), until everything below `point` is acknowledged.
    Recovery { point: u64, prr: RateReduction },
    /// After a timeout, until everything below `point` is acknowledged.
    Loss { point: u64 },
}

/// Proportional rate reduction (RFC 6937, section 3). Bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RateReduction {
    /// Bytes in flight when recovery started: RecoverFS.
    flight: u64,
    delivered: u64,
    sent: u64,
}

impl RateReduction {
    /// Bytes that may be sent on an acknowledgement of `delivered` bytes, with slow start reduction bound.
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

/// The state of a sender.
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
    /// The state before recovery, until it is known whether anything was lost.
    before: Option<Before>,
    /// If set, nothing is marked lost for now.
    loss_delay: Option<LossDelay>,
    /// Losses of transmissions up to this one have reduced the window. A lost retransmission among them does not reduce
    /// it again.
    cut_at: u64,
    /// Marks of data below this segment have reduced the window.
    reduced_below: u64,
    must_send_cwr: bool,
    /// Event counters for reports.
    pub(in crate::hosts) events: Events,
}

/// Event counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// Segments retransmitted.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Entries into fast recovery.
    pub recoveries: u64,
    /// Recoveries that were undone, because nothing had been lost.
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
            loss_delay: None,
            cut_at: 0,
            reduced_below: 0,
            must_send_cwr: false,
            events: Events::default(),
        }
    }

    /// Reuses the memory for another flow.
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

    /// Bytes in flight, as the sender estimates: `pipe` of RFC 6675, in whole segments.
    pub fn in_flight(&self) -> u64 {
        self.board.pipe() * self.window.mss
    }

    /// Segments sent, including retransmissions.
    pub fn segments_sent(&self) -> u64 {
        self.board.next() + self.events.retransmissions
    }

    /// Whether all bytes are acknowledged.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.board.una() == self.segments
    }

    /// Whether the sender is in recovery.
    pub fn is_recovering(&self) -> bool {
        self.phase != Phase::Open
    }

    /// When [`on_timer`](Self::on_timer) is due; the end of time if no timer runs.
    #[inline]
    pub fn deadline(&self) -> Timestamp {
        self.loss_delay.map_or(self.deadline, |loss_delay| loss_delay.until.min(self.deadline))
    }

    /// Processes an acknowledgement.
    #[inline]
    pub fn on_ack(&mut self, ack: &Ack, now: Timestamp) {
        let pipe = self.board.pipe() * self.window.mss;
        let was_used = pipe + self.window.mss > self.window.cwnd
            || (self.window.in_slow_start() && self.window.cwnd < 2 * pipe);
        let mss = self.window.mss;
        let progress = self.board.acknowledge(ack.acknowledgement.div_ceil(mss), &ack.sack, mss);
        let rtt = (progress.acked > 0).then(|| self.take_rtt(ack, now));
        if progress.acked > 0 {
            self.check_recovery(ack, now);
        }
        let lost_again = if self.delays_loss(progress, now) {
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

    /// Measures the round trip and restarts the timer (RFC 6298, rules 5.2 and 5.3).
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

    /// Bytes in flight for the threshold, without those of limited transmit (RFC 5681, section 3.2).
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

    /// Starts to reduce the window to the threshold while `flight` segments leave the network. The first retransmission
    /// does not wait (RFC 6675, section 5, step 4.3).
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

    /// Handles the loss of a retransmission. If it was sent after the window shrank, it is a congestion event of its
    /// own (RFC 5681, section 4.3).
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

    /// Reduces the window, unless it was reduced within the last window of data (RFC 3168, section 6.1.2).
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

    /// Handles the expiry of the timer of [`deadline`](Self::deadline) (RFC 6298, rules 5.4 to 5.6; RFC 5681, section
    /// 3.1).
    pub fn on_timer(&mut self, now: Timestamp) {
        self.end_loss_delay(now);
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
        (self.before, self.loss_delay) = (None, None);
        self.reduced_below = self.board.next();
        self.cut_at = self.board.transmissions();
        self.events.timeouts += 1;
        self.rtt.back_off();
        self.deadline = now + self.rtt.rto();
    }

    /// Whether the congestion window allows another segment. It does not change before the next acknowledgement or timer.
    #[inline]
    pub fn has_window(&self) -> bool {
        (self.board.pipe() + 1) * self.window.mss <= self.window.cwnd
    }

    /// The next segment, if one may be sent now (RFC 6675, section 4, NextSeg, without rule 4).
    #[inline]
    pub fn transmit(&mut self, now: Timestamp) -> Option<Data> {
        let mss = self.window.mss;
        if !self.has_window() {
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

    /// Checks the scoreboard.
    ///
    /// # Panics
    /// If its counters are wrong.
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
