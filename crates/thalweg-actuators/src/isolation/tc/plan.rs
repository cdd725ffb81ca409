//! The queues of an interface: HTB with two classes, whose leaves are first in, first out.

use thalweg_linux::tc::htb::HtbClass;
use thalweg_linux::tc::queue::handle;
use thalweg_wire::{BitRate, Bytes, Nanos};

/// The major number of our queue: "th" in ASCII, which nobody chooses by chance.
pub(super) const MAJOR: u16 = 0x7468;

/// Minor numbers of the classes: the link, and its two leaves.
const LINK: u16 = 1;
pub(super) const PRIMARY: u16 = 0x10;
pub(super) const SCAVENGER: u16 = 0x20;

/// The guaranteed rate of the scavenger class with [`Queueing::Strict`]. HTB requires one.
const STRICT_RATE: BitRate = BitRate(8_000);

/// Data that a class may send at once, as time at the rate of the link, and its minimum: two full frames.
const BURST: Nanos = Nanos::from_millis(1);
const MIN_BURST: Bytes = Bytes(2 * 1_514);

/// The same for the scavenger class, at its own guaranteed rate and without a minimum. A flow that moves overtakes by this, and one more
/// packet, its packets in the primary queue: HTB sends what is guaranteed whenever the other class waits for its own rate. It makes up
/// for a late timer of the kernel.
const SCAVENGER_BURST: Nanos = Nanos::from_micros(100);

/// Data that both leaves together send in their turns while they borrow.
const QUANTUM: f64 = 100_000.0;
const MIN_QUANTUM: u64 = 1_514;

/// How both queues share the link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Queueing {
    /// The scavenger queue has this share of the link, and each queue borrows what the other leaves (section 3.5.1 of the
    /// dissertation).
    Borrow {
        /// From 0 to 1.
        scavenger_share: f64,
    },
    /// The scavenger queue sends only what the primary queue leaves (chapter 4 of the dissertation).
    Strict,
}

/// The queues of an interface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueuePlan {
    /// The rate of the link. Slightly below the real one, so that packets queue here and not in the network card.
    pub rate: BitRate,
    /// How both queues share it.
    pub queueing: Queueing,
    /// Maximum size of the primary queue.
    pub primary_queue: Bytes,
    /// Maximum size of the scavenger queue.
    pub scavenger_queue: Bytes,
}

impl QueuePlan {
    /// Returns the classes, parents first, the default class before the other leaf.
    pub(super) fn classes(&self) -> [HtbClass; 3] {
        let burst = self.rate.amount_in(BURST).max(MIN_BURST);
        let share = |share: f64| BitRate((self.rate.0 as f64 * share) as u64);
        let quantum = |share: f64| Bytes(((QUANTUM * share) as u64).max(MIN_QUANTUM));
        let class = |minor, rate: BitRate, quantum, priority| HtbClass {
            minor,
            parent: (minor != LINK).then_some(LINK),
            rate,
            ceil: self.rate,
            burst: match minor {
                SCAVENGER => rate.amount_in(SCAVENGER_BURST),
                _ => burst,
            },
            ceil_burst: burst,
            quantum,
            priority,
        };
        let link = class(LINK, self.rate, quantum(1.0), 0);
        match self.queueing {
            Queueing::Borrow { scavenger_share } => {
                let scavenger = share(scavenger_share).max(STRICT_RATE);
                let primary = BitRate(self.rate.0.saturating_sub(scavenger.0)).max(STRICT_RATE);
                [
                    link,
                    class(PRIMARY, primary, quantum(1.0 - scavenger_share), 0),
                    class(SCAVENGER, scavenger, quantum(scavenger_share), 0),
                ]
            }
            Queueing::Strict => [
                link,
                class(PRIMARY, self.rate, quantum(0.5), 0),
                class(SCAVENGER, STRICT_RATE, quantum(0.5), 7),
            ],
        }
    }

    /// Returns the leaf queues: class, own handle, maximum size.
    pub(super) fn leaves(&self) -> [(u32, u32, Bytes); 2] {
        [
            (handle(MAJOR, PRIMARY), handle(MAJOR + 1, 0), self.primary_queue),
            (handle(MAJOR, SCAVENGER), handle(MAJOR + 2, 0), self.scavenger_queue),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(queueing: Queueing) -> QueuePlan {
        let queue = Bytes(5_000_000);
        QueuePlan { rate: BitRate(1_000_000_000), queueing, primary_queue: queue, scavenger_queue: queue }
    }

    #[test]
    fn borrowing_classes_divide_the_link() {
        let [link, primary, scavenger] = plan(Queueing::Borrow { scavenger_share: 0.05 }).classes();
        assert_eq!(link.rate, BitRate(1_000_000_000));
        assert_eq!((primary.rate.0, scavenger.rate.0), (950_000_000, 50_000_000));
        assert!([link, primary, scavenger].iter().all(|class| class.ceil == link.rate));
        assert_eq!(primary.priority, scavenger.priority);
        assert_eq!((primary.burst, scavenger.burst), (Bytes(125_000), Bytes(625)), "0.1 ms at its own rate");
    }

    #[test]
    fn a_strict_scavenger_borrows_last() {
        let [link, primary, scavenger] = plan(Queueing::Strict).classes();
        assert_eq!((primary.rate, scavenger.rate), (link.rate, STRICT_RATE));
        assert!(primary.priority < scavenger.priority);
        assert_eq!((primary.parent, scavenger.parent, link.parent), (Some(LINK), Some(LINK), None));
        assert_eq!((scavenger.burst, scavenger.ceil_burst), (Bytes(0), link.burst), "packet by packet");
    }
}
