//! The generation id by which a master claims its role and shows that it lives.
//!
//! A switch accepts a role request only if its generation id is not older than the latest one (section 7.3.9), and tells
//! every controller the latest one. Thalweg's consist of
//!
//! | bits | field | meaning |
//! |---:|---|---|
//! | 24 | term | one more with every new master |
//! | 8 | priority | of the master: of two claims of the same term, the higher priority wins |
//! | 12 | instance | distinguishes daemons of the same priority |
//! | 20 | beat | one more with every heartbeat; all bits set once the master has released its role |

use std::fmt;

const INSTANCE_BITS: u32 = 12;
const BEAT_BITS: u32 = 20;
const BEATS: u64 = (1 << BEAT_BITS) - 1;

/// What a switch reports before any controller has sent one.
const NONE: u64 = u64::MAX;

/// A generation id of Thalweg.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation(u64);

/// The identity of a daemon among those that control the same switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) priority: u8,
    /// Only its low 12 bits count.
    pub(crate) instance: u16,
}

impl Generation {
    /// Returns the generation id that a switch reports; `None` if no controller has sent one yet.
    pub(crate) fn reported(number: u64) -> Option<Generation> {
        (number != NONE).then_some(Generation(number))
    }

    /// Returns the first generation of a term after `latest`.
    pub(crate) fn claim(latest: Option<Generation>, identity: Identity) -> Generation {
        let term = latest.map_or(0, Generation::term).wrapping_add(1);
        let instance = u64::from(identity.instance) & ((1 << INSTANCE_BITS) - 1);
        let master = u64::from(identity.priority) << INSTANCE_BITS | instance;
        Generation((term << 20 | master) << BEAT_BITS)
    }

    /// Returns the number to send.
    pub(crate) fn number(self) -> u64 {
        self.0
    }

    /// Returns the generation of the next heartbeat. Before beats run out, the term advances.
    pub(crate) fn next(self) -> Generation {
        match (self.0 & BEATS) + 1 < BEATS {
            true => Generation(self.0 + 1),
            false => Generation((self.0 & !BEATS).wrapping_add(1 << 40)),
        }
    }

    /// Returns the generation that releases the role.
    pub(crate) fn released(self) -> Generation {
        Generation(self.0 | BEATS)
    }

    /// Returns whether its master has released the role.
    pub(crate) fn is_released(self) -> bool {
        self.0 & BEATS == BEATS
    }

    /// Returns whether this is newer than `other`, as a switch decides: numbers wrap around.
    pub(crate) fn is_newer_than(self, other: Generation) -> bool {
        (self.0.wrapping_sub(other.0) as i64) > 0
    }

    /// Returns whether both are of the same term and the same master.
    pub(crate) fn is_same_claim(self, other: Generation) -> bool {
        self.0 >> BEAT_BITS == other.0 >> BEAT_BITS
    }

    fn term(self) -> u64 {
        self.0 >> 40
    }
}

/// `term 3 of priority 200`.
impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "term {} of priority {}", self.term(), self.0 >> (INSTANCE_BITS + BEAT_BITS) & 0xff)
    }
}

impl fmt::Debug for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Generation({self}, beat {})", self.0 & BEATS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: Identity = Identity { priority: 100, instance: 7 };
    const HIGH: Identity = Identity { priority: 200, instance: 1 };

    #[test]
    fn a_claim_is_newer_than_every_heartbeat_before() {
        let mut master = Generation::claim(None, HIGH);
        for _ in 0..1_000 {
            master = master.next();
        }
        let claim = Generation::claim(Some(master), LOW);
        assert!(claim.is_newer_than(master) && claim.is_newer_than(master.released()));
        assert!(!master.next().is_newer_than(claim));
    }

    #[test]
    fn of_two_claims_of_a_term_the_higher_priority_is_newer() {
        let [low, high] = [LOW, HIGH].map(|identity| Generation::claim(None, identity));
        assert!(high.is_newer_than(low) && high.is_newer_than(low.next().next()));
        let twin = Generation::claim(None, Identity { instance: 8, ..LOW });
        assert!(twin.is_newer_than(low), "the instance decides between equal priorities");
    }

    #[test]
    fn heartbeats_never_look_like_a_release() {
        let first = Generation::claim(None, LOW);
        let last = Generation(first.released().0 - 1);
        assert!(!last.is_released() && first.released().is_released());
        let next = last.next();
        assert!(next.is_newer_than(last) && !next.is_released());
        assert_eq!(next.to_string(), "term 2 of priority 100");
    }

    #[test]
    fn terms_wrap_around() {
        let old = Generation(0xff_ffff << 40);
        let claim = Generation::claim(Some(old), LOW);
        assert!(claim.is_newer_than(old), "{claim:?}");
        assert_eq!(Generation::reported(u64::MAX), None);
    }
}
