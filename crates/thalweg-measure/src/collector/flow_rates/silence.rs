//! Bounds the rate of flows without samples.

use thalweg_sketch::{Bound, Estimate};
use thalweg_wire::Timestamp;

use super::FlowRates;
use crate::collector::links;
use crate::rates::sampling::CONFIDENCE;

impl FlowRates {
    /// Returns the rate of a flow, or of several, on these links, none of which had a sample since `since`.
    ///
    /// They may have sent as much as TCP flows send between two samples, and what the monitor port still holds. So the
    /// upper bound falls with the time of silence. It is at most the capacity of the slower link.
    pub(super) fn silent_rate(
        &self,
        links: [Option<usize>; 2],
        since: Timestamp,
        now: Timestamp,
    ) -> Estimate {
        let Some(jitter) = self.jitter else { return Estimate { value: 0.0, bound: Bound::Unknown } };
        let capacity = self.capacity(links);
        let silence = (now - since).0.max(1) as f64;
        let upper = match self.unseen.bound() {
            Some(unseen) => {
                let bits = 8e9 * (f64::from(unseen) * self.framing_factor() + self.full_frame);
                (bits + capacity * jitter) / silence
            }
            None => capacity,
        };
        Estimate::within(0.0, 0.0, upper.min(capacity), CONFIDENCE)
    }

    /// Returns the rate of a silent flow on these links, and the span that it covers: from its last sample to now. If
    /// that was only just now, the span covers the gap between two bursts, and the upper bound is the capacity: an empty
    /// span would have no rate.
    pub(super) fn silent(
        &self,
        links: [Option<usize>; 2],
        last: Timestamp,
    ) -> (Estimate, (Timestamp, Timestamp)) {
        let now = self.now.max(last);
        if (now - last) >= self.bursts.gap {
            return (self.silent_rate(links, last, now), (last, now));
        }
        let bound = match self.jitter {
            Some(_) => Estimate::within(0.0, 0.0, self.capacity(links), CONFIDENCE),
            None => Estimate { value: 0.0, bound: Bound::Unknown },
        };
        (bound, (Timestamp(now.0.saturating_sub(self.bursts.gap.0)), now))
    }

    /// Returns the sum of the rates of all flows on a link, those included that have become silent.
    pub(super) fn link_rate(&self, link: usize, active: Estimate, now: Timestamp) -> Estimate {
        match self.links.silent_since(link) {
            Some(since) => links::sum(active, self.silent_rate([Some(link), None], since, now)),
            None => active,
        }
    }

    /// Returns the capacity of the slower of these links in bits per second; infinite if none is known.
    #[inline]
    pub(super) fn capacity(&self, links: [Option<usize>; 2]) -> f64 {
        let capacities = links.into_iter().flatten().map(|link| self.links.capacity(link).0 as f64);
        capacities.fold(f64::INFINITY, f64::min)
    }

    /// Returns the bytes on the wire per byte of payload in full-sized frames.
    fn framing_factor(&self) -> f64 {
        self.full_frame / (self.full_frame - super::measure::TCP_OVERHEAD)
    }
}
