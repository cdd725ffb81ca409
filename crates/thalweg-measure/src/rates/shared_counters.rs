//! Finds flows that share a counter of identifications.
//!
//! Where a sender has one counter for several flows, the steps of one flow include the packets of the others
//! ([`super::burst`]). Then two samples of the same sender in succession have almost the same identification although
//! they are of different flows. Separate counters begin at random values, so theirs are that close with a probability of
//! 2 [`CLOSE`] in 65,536, and rarely for long.
//!
//! **Limit.** A flow that shares its counter with packets that the switch does not carry is not found.
//!
//! **Memory:** 2 KiB. **Cost:** one look-up per sample of a flow without sequence numbers; per sample of TCP only
//! while identifications are in use.

use thalweg_wire::{FlowKey, Packet};

/// The number of senders remembered.
const SENDERS: usize = 256;
/// Identifications that differ by no more than this are close.
const CLOSE: u16 = 256;

/// The last sample of each sender.
#[derive(Clone, Debug)]
pub(crate) struct SharedCounters {
    last: [LastSample; SENDERS],
}

#[derive(Clone, Copy, Debug)]
struct LastSample {
    /// One more than the index of the flow's direction; 0 for none.
    track: u32,
    identification: u16,
}

impl Default for SharedCounters {
    fn default() -> SharedCounters {
        SharedCounters { last: [LastSample { track: 0, identification: 0 }; SENDERS] }
    }
}

impl SharedCounters {
    /// Notes a sample of a flow direction. Returns the direction that appears to share its counter, if there is one.
    #[inline]
    pub(crate) fn note(&mut self, track: u32, packet: &Packet) -> Option<u32> {
        if packet.identification == 0 {
            return None;
        }
        let sample = LastSample { track: track + 1, identification: packet.identification };
        let before = std::mem::replace(&mut self.last[sender(&packet.key)], sample);
        let ahead = sample.identification.wrapping_sub(before.identification);
        let is_close = ahead.min(ahead.wrapping_neg()) <= CLOSE;
        (is_close && before.track != 0 && before.track != sample.track).then(|| before.track - 1)
    }
}

/// Returns the index of a sender.
#[inline(always)]
fn sender(key: &FlowKey) -> usize {
    let ([upper, lower], _) = key.address_words();
    // Fibonacci hashing (Knuth, TAOCP 3, section 6.4).
    let mixed = (upper ^ lower).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - SENDERS.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use thalweg_wire::{Fragment, PacketNotes, Protocol, TcpFlags, Timestamp};

    use super::*;

    fn packet(source: u32, identification: u16) -> Packet {
        Packet {
            time: Timestamp(0),
            key: FlowKey::v4(source, 9, 1, 2, Protocol::UDP),
            ethernet: Default::default(),
            ip_length: 100,
            payload_length: 72,
            identification,
            tcp_sequence: 0,
            tcp_flags: TcpFlags::default(),
            fragment: Fragment::Whole,
            notes: PacketNotes::default(),
        }
    }

    #[test]
    fn flows_of_one_sender_with_close_identifications_share_a_counter() {
        let mut counters = SharedCounters::default();
        assert_eq!(counters.note(0, &packet(1, 65_500)), None);
        assert_eq!(counters.note(0, &packet(1, 65_510)), None, "the same flow");
        assert_eq!(counters.note(7, &packet(1, 12)), Some(0), "beyond the wrap-around");
        assert_eq!(counters.note(5, &packet(1, 40_000)), None, "another counter");
        assert_eq!(counters.note(4, &packet(2, 40_001)), None, "another sender");
        assert_eq!(counters.note(6, &packet(1, 0)), None, "no identification");
        assert_eq!(counters.note(7, &packet(1, 39_990)), Some(5), "slightly out of order");
    }
}
