//! Reordering: undoes recovery if segments were late and not lost, and waits for holes afterwards.
//!
//! A flow that moves to a shorter path overtakes its own packets, and three packets that overtake a segment make it
//! look lost. **Detection** is Eifel's (RFC 3522, section 3.2): the first acknowledgement of new data after a
//! retransmission echoes a timestamp. If it is from before the retransmission, the original has arrived. **The
//! response** is that of RFC 4015, section 3: window, threshold and the algorithm's state are restored (for CUBIC: RFC
//! 9438, section 4.9), and segments marked lost are in flight again.
//!
//! From then on order means nothing until everything in flight has arrived. Meanwhile a hole is lost after a smoothed
//! round-trip time without progress, the largest reordering window of RACK (RFC 8985, section 6.2, step 4). Linux
//! increases it step by step, once per round trip with a duplicate; here the first step is the largest.
//!
//! Not implemented: undo of timeouts (RFC 5682), and detection by duplicates that receivers report (RFC 3708), which
//! takes a round trip longer than timestamps and adds nothing if all packets have them.

use thalweg_wire::Timestamp;

use super::{Congestion, Phase, Progress, Sender, Window};
use crate::hosts::segment::Ack;

/// The state before recovery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    window: Window,
    congestion: Congestion,
    /// When the first retransmission was sent.
    sent_again: Option<Timestamp>,
}

/// Nothing is marked lost until this time, or until everything below a segment is acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossDelay {
    pub(super) until: Timestamp,
    point: u64,
}

impl Before {
    pub(super) fn new(window: Window, congestion: &Congestion) -> Before {
        Before { window, congestion: *congestion, sent_again: None }
    }

    /// Records the first retransmission.
    pub(super) fn sent_again(&mut self, now: Timestamp) {
        self.sent_again.get_or_insert(now);
    }
}

impl Sender {
    /// Processes an acknowledgement of new data. If it is the first after a retransmission, it tells whether recovery
    /// was needed.
    #[inline]
    pub(super) fn check_recovery(&mut self, ack: &Ack, now: Timestamp) {
        let Some(Before { window, congestion, sent_again: Some(sent_again) }) = self.before else { return };
        self.before = None;
        if ack.echo < sent_again && matches!(self.phase, Phase::Recovery { .. }) {
            self.window = window;
            self.congestion = congestion;
            self.phase = Phase::Open;
            self.board.unmark_lost();
            self.loss_delay = Some(LossDelay { until: self.loss_delay_end(now), point: self.board.next() });
            self.events.undone += 1;
        }
    }

    /// Whether holes are waited for.
    #[inline]
    pub(super) fn delays_loss(&mut self, progress: Progress, now: Timestamp) -> bool {
        let Some(LossDelay { until, point }) = self.loss_delay else { return false };
        self.loss_delay = if self.board.una() >= point || until <= now {
            None
        } else if progress.acked > 0 {
            Some(LossDelay { until: self.loss_delay_end(now), point })
        } else {
            return true;
        };
        self.loss_delay.is_some()
    }

    /// Ends the wait when it has lasted too long, even without an acknowledgement.
    pub(super) fn end_loss_delay(&mut self, now: Timestamp) {
        if self.loss_delay.is_some_and(|loss_delay| loss_delay.until <= now) {
            self.loss_delay = None;
            self.board.mark_lost();
            if self.phase == Phase::Open && self.board.first_is_lost() {
                self.enter_recovery(Progress::default(), now);
            }
        }
    }

    fn loss_delay_end(&self, now: Timestamp) -> Timestamp {
        now + self.rtt.srtt().unwrap_or_default()
    }
}
