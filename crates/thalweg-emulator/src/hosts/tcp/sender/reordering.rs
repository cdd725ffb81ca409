//! What was late, and not lost: recovery is taken back, and holes are waited for.
//!
//! A flow that changes to a shorter way overtakes its own packets, and three that have overtaken one make it look lost.
//! **Detection** is Eifel's (RFC 3522, section 3.2): the first acknowledgement that moves on after something was sent again
//! echoes the time stamp of what it answers; if that is from before the retransmission, the original has arrived.
//! **The response** is RFC 4015's (section 3): window, threshold and the algorithm's state are what they were (for CUBIC: RFC
//! 9438, section 4.9), and what counted as lost is under way again.
//!
//! From then on the order of packets tells nothing, until all that was under way has arrived. Meanwhile a hole counts as lost
//! when a smoothed round-trip time has passed in which nothing was filled: the most that RACK lets its window of reordering
//! grow to (RFC 8985, section 6.2, step 4). Linux comes there by steps, one for each round trip with a duplicate; here it is
//! the first step.
//!
//! Not there: taking back timeouts (RFC 5682), and detection by duplicates that receivers report (RFC 3708): it comes a round
//! trip later than time stamps, and adds nothing where all packets have them.

use thalweg_wire::Timestamp;

use super::{Congestion, Phase, Progress, Sender, Window};
use crate::hosts::segment::Ack;

/// What recovery has changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    window: Window,
    congestion: Congestion,
    /// When the first retransmission was sent.
    sent_again: Option<Timestamp>,
}

/// Nothing counts as lost until this time, or until all below a segment is acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) until: Timestamp,
    point: u64,
}

impl Before {
    pub(super) fn new(window: Window, congestion: &Congestion) -> Before {
        Before { window, congestion: *congestion, sent_again: None }
    }

    /// Something is sent again.
    pub(super) fn sent_again(&mut self, now: Timestamp) {
        self.sent_again.get_or_insert(now);
    }
}

impl Sender {
    /// An acknowledgement has moved on. If it is the first since something was sent again, it tells whether that was in
    /// vain.
    #[inline]
    pub(super) fn judge_recovery(&mut self, ack: &Ack, now: Timestamp) {
        let Some(Before { window, congestion, sent_again: Some(sent_again) }) = self.before else { return };
        self.before = None;
        if ack.echo < sent_again && matches!(self.phase, Phase::Recovery { .. }) {
            self.window = window;
            self.congestion = congestion;
            self.phase = Phase::Open;
            self.board.unmark_lost();
            self.patience = Some(Patience { until: self.at_the_latest(now), point: self.board.next() });
            self.events.undone += 1;
        }
    }

    /// Whether holes are waited for.
    #[inline]
    pub(super) fn has_patience(&mut self, progress: Progress, now: Timestamp) -> bool {
        let Some(Patience { until, point }) = self.patience else { return false };
        self.patience = if self.board.una() >= point || until <= now {
            None
        } else if progress.acked > 0 {
            Some(Patience { until: self.at_the_latest(now), point })
        } else {
            return true;
        };
        self.patience.is_some()
    }

    /// Once it has lasted too long, what order tells counts again, even if no acknowledgement comes.
    pub(super) fn end_patience(&mut self, now: Timestamp) {
        if self.patience.is_some_and(|patience| patience.until <= now) {
            self.patience = None;
            self.board.mark_lost();
            if self.phase == Phase::Open && self.board.first_is_lost() {
                self.enter_recovery(Progress::default(), now);
            }
        }
    }

    fn at_the_latest(&self, now: Timestamp) -> Timestamp {
        now + self.rtt.srtt().unwrap_or_default()
    }
}
