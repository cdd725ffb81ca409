//! Hierarchical token buckets (tc-htb(8)): classes with a guaranteed rate, which borrow what others leave.

use thalweg_wire::{BitRate, Bytes, Nanos};

use super::{LINK_LAYER_ETHERNET, ROOT, queue_request};
use crate::netlink::message::{find, u32_at, u64_at};
use crate::netlink::{Netlink, NetlinkError};
use crate::tc::queue::handle;

/// Attributes of TCA_OPTIONS of htb (linux/pkt_sched.h).
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;

/// The version of the interface, and `rate2quantum`, which is not used: every class has its quantum.
const VERSION: u32 = 3;
const RATE_TO_QUANTUM: u32 = 10;

/// The unit of times in tc messages: PSCHED_TICKS2NS in the kernel multiplies by 64.
const TICK_NS: u64 = 64;

/// The length of `struct tc_htb_opt`.
const PARAMETERS_LENGTH: usize = 44;

/// A class of HTB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtbClass {
    /// Its minor number.
    pub minor: u16,
    /// The minor number of its parent; `None` directly below the root.
    pub parent: Option<u16>,
    /// The guaranteed rate.
    pub rate: BitRate,
    /// The rate up to which it borrows.
    pub ceil: BitRate,
    /// Data that it may send at once at the guaranteed rate after a pause, before others that only borrow. With zero, a packet
    /// passes when the guaranteed rate has paid for the previous one.
    pub burst: Bytes,
    /// Data that it may send at once in all after a pause.
    pub ceil_burst: Bytes,
    /// Data that it sends in its turn, when several classes borrow.
    pub quantum: Bytes,
    /// Classes with a lower number borrow first.
    pub priority: u32,
}

impl Netlink {
    /// Replaces the root queue of an interface by HTB with this major number. Packets without a class use `default_minor`.
    ///
    /// # Errors
    /// If the interface does not exist, or this process lacks the privilege.
    pub fn set_root_htb(&self, interface: u32, major: u16, default_minor: u16) -> Result<(), NetlinkError> {
        let mut request = queue_request(libc::RTM_NEWQDISC, interface, handle(major, 0), ROOT, 0);
        request.text(libc::TCA_KIND, "htb");
        request.nested(libc::TCA_OPTIONS, |request| {
            // `struct tc_htb_glob`: version, rate2quantum, default class, and two numbers that the kernel returns.
            let words = [VERSION, RATE_TO_QUANTUM, u32::from(default_minor), 0, 0];
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            request.attribute(TCA_HTB_INIT, &bytes);
        });
        self.set_queue(request, interface)
    }

    /// Adds a class to the root HTB of an interface, or changes it. A change of `priority` has no effect on a class with
    /// queued packets (Linux 6.18).
    ///
    /// # Errors
    /// If the queue does not exist, or this process lacks the privilege.
    pub fn set_htb_class(&self, interface: u32, major: u16, class: &HtbClass) -> Result<(), NetlinkError> {
        let parent = handle(major, class.parent.unwrap_or(0));
        let own = handle(major, class.minor);
        let mut request = queue_request(libc::RTM_NEWTCLASS, interface, own, parent, 0);
        request.text(libc::TCA_KIND, "htb");
        request.nested(libc::TCA_OPTIONS, |request| {
            request.attribute(TCA_HTB_PARMS, &class.parameters());
            request.attribute(TCA_HTB_RATE64, &(class.rate.0 / 8).to_ne_bytes());
            request.attribute(TCA_HTB_CEIL64, &(class.ceil.0 / 8).to_ne_bytes());
        });
        let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        let operation = || format!("set class {major:x}:{:x} of interface {interface}", class.minor);
        self.request(request, flags, operation).map(drop)
    }
}

impl HtbClass {
    /// Encodes `struct tc_htb_opt`: two rates of 12 bytes, then buffer, cbuffer, quantum, level and priority.
    fn parameters(&self) -> [u8; PARAMETERS_LENGTH] {
        let mut bytes = [0; PARAMETERS_LENGTH];
        for (at, rate) in [(0, self.rate), (12, self.ceil)] {
            bytes[at + 1] = LINK_LAYER_ETHERNET;
            // The kernel wants a number here even if the 64-bit attribute replaces it.
            let rate = u32::try_from(rate.0 / 8).unwrap_or(u32::MAX).max(1);
            bytes[at + 8..at + 12].copy_from_slice(&rate.to_ne_bytes());
        }
        let quantum = u32::try_from(self.quantum.0).unwrap_or(u32::MAX);
        let words =
            [ticks(self.burst, self.rate), ticks(self.ceil_burst, self.ceil), quantum, 0, self.priority];
        for (place, word) in bytes[24..].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// Returns whether `options`, those of a class, have the rates, bursts, quantum and priority of this class.
    pub fn has_options(&self, options: &[u8]) -> bool {
        let rate = |attribute: u16, at: usize| {
            let wide = find(options, attribute).and_then(|value| u64_at(value, 0));
            let narrow = || find(options, TCA_HTB_PARMS).and_then(|value| u32_at(value, at)).map(u64::from);
            wide.or_else(narrow)
        };
        let word = |at: usize| find(options, TCA_HTB_PARMS).and_then(|value| u32_at(value, at));
        let bursts = [ticks(self.burst, self.rate), ticks(self.ceil_burst, self.ceil)];
        let quantum = word(32);
        rate(TCA_HTB_RATE64, 8) == Some((self.rate.0 / 8).max(1))
            && rate(TCA_HTB_CEIL64, 20) == Some((self.ceil.0 / 8).max(1))
            && [word(24), word(28)] == bursts.map(Some)
            && quantum.map(u64::from) == Some(self.quantum.0)
            && self.has_priority(options)
    }

    /// Returns whether `options`, those of a class, have the priority of this class.
    pub fn has_priority(&self, options: &[u8]) -> bool {
        find(options, TCA_HTB_PARMS).and_then(|value| u32_at(value, 40)) == Some(self.priority)
    }
}

/// Returns the time of a burst at a rate, in the kernel's unit.
fn ticks(burst: Bytes, rate: BitRate) -> u32 {
    let Nanos(time) = Nanos((burst.0 * 8).saturating_mul(1_000_000_000) / rate.0.max(1));
    u32::try_from(time / TICK_NS).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASS: HtbClass = HtbClass {
        minor: 0x20,
        parent: Some(1),
        rate: BitRate(8_000_000),
        ceil: BitRate(80_000_000_000),
        burst: Bytes(10_000),
        ceil_burst: Bytes(10_000),
        quantum: Bytes(1_514),
        priority: 7,
    };

    #[test]
    fn the_parameters_have_the_layout_of_the_kernel() {
        let bytes = CLASS.parameters();
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!((bytes[1], word(8), bytes[13], word(20)), (1, 1_000_000, 1, u32::MAX));
        // 10,000 bytes at 1 MB/s take 10 ms.
        assert_eq!((word(24), word(28)), (10_000_000 / 64, 1_000 / 64));
        assert_eq!((word(32), word(36), word(40)), (1_514, 0, 7));
    }

    #[test]
    fn other_options_are_noticed() {
        let mut request = crate::netlink::message::Request::new(0, &[]);
        request.attribute(TCA_HTB_PARMS, &CLASS.parameters());
        request.attribute(TCA_HTB_CEIL64, &10_000_000_000_u64.to_ne_bytes());
        let options = request.attributes().to_vec();
        assert!(CLASS.has_options(&options));
        assert!(!HtbClass { priority: 6, ..CLASS }.has_options(&options));
        assert!(!HtbClass { rate: BitRate(9_000_000), ..CLASS }.has_options(&options));
        assert!(!HtbClass { burst: Bytes(0), ..CLASS }.has_options(&options));
        assert!(!HtbClass { ceil_burst: Bytes(100_000), ..CLASS }.has_options(&options));
        assert!(!HtbClass { ceil: BitRate(8_000_000), ..CLASS }.has_options(&options));
        assert!(!CLASS.has_options(&[]));
    }
}
