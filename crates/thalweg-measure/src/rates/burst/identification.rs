//! Counts the packets between two samples by the identification of IPv4 headers.
//!
//! RFC 6864 leaves the identification of unfragmented packets to the sender. Many senders count it up: Linux by one per
//! packet of a connected socket, other systems by one per packet to a destination or per packet at all. Where it counts
//! the packets of one flow, it does for UDP what sequence numbers do for TCP: it tells how many packets were not
//! sampled. Senders may as well set it to zero or draw it at random, so it is believed only while it behaves like a
//! counter.
//!
//! **Test.** A step is plausible if the fastest link can have carried as many packets of half the size of the sample
//! since the previous sample. A random step is plausible with a probability of `p = packets / 65,536`, at most a
//! quarter. Plausible steps must follow each other until the product of their probabilities is below `2^-EVIDENCE`, one
//! in 4 * 10^9. That takes 2 to 4 samples on a slow link, and at most 16. After a silence in which the link can have
//! carried [`AMBIGUOUS`] packets, the counter may have wrapped around, and the test restarts.
//!
//! **Memory:** 16 bytes, where TCP has its ranges seen. **Cost:** one division per sample without a sequence number.

use bytemuck::{Pod, Zeroable};

use thalweg_wire::{Fragment, Packet};

use super::TrackContext;

/// The largest step, in packets.
const LONGEST_STEP: u16 = 16_384;
/// The counter can wrap around once the link can have carried this many packets: less than all values and the largest
/// step backwards.
const AMBIGUOUS: f64 = 49_152.0;
/// The largest step backwards of a reordered packet.
const REORDERED: u16 = 64;
/// The evidence that makes identifications a counter: minus the binary logarithm of the probability that random ones
/// give it.
const EVIDENCE: u32 = 32;

/// The identifications of a direction without sequence numbers.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Identifications {
    /// The last identification in sequence, extended to 32 bits.
    last: u32,
    /// The same of the burst's first sample.
    burst: u32,
    /// The evidence of plausible steps since the last other one, saturating.
    evidence: u32,
    /// The largest sample of the burst, in bytes on the wire.
    largest: u16,
    /// Whether a step of this burst was not plausible.
    is_broken: u16,
}

impl Identifications {
    /// Begins with a first sample of this size on the wire.
    pub(super) fn begin(packet: &Packet, wire: u32) -> Identifications {
        let last = u32::from(packet.identification);
        Identifications { last, burst: last, evidence: 0, largest: saturated(wire), is_broken: 0 }
    }

    /// Processes the next sample, `gap` nanoseconds after the previous one.
    #[inline(always)]
    pub(super) fn follow(&mut self, packet: &Packet, wire: u32, gap: u64, context: &TrackContext) {
        let step = packet.identification.wrapping_sub(self.last as u16);
        let bytes = (gap + context.jitter_ns) as f64 * context.bytes_per_ns;
        let possible = 1.0 + 2.0 * bytes / f64::from(wire.max(1));
        let is_whole = packet.fragment == Fragment::Whole && context.framing.is_one_frame(packet.ip_length);
        if step.wrapping_neg() <= REORDERED && step != 0 && is_whole {
            return;
        }
        let is_counted =
            (1..=LONGEST_STEP).contains(&step) && f64::from(step) <= possible && possible < AMBIGUOUS;
        self.last = self.last.wrapping_add(u32::from(step));
        match is_counted && is_whole {
            true => self.evidence = self.evidence.saturating_add(evidence(possible)),
            false => (self.evidence, self.is_broken) = (0, 1),
        }
    }

    /// Begins the next burst with the last sample. Returns the number of packets since the burst's first sample, or 0
    /// if it is not known, and the largest sample in bytes on the wire.
    pub(super) fn close(&mut self) -> (u32, u32) {
        let is_known = self.evidence >= EVIDENCE && self.is_broken == 0;
        let passed = if is_known { self.last.wrapping_sub(self.burst) } else { 0 };
        let largest = std::mem::take(&mut self.largest);
        (self.burst, self.is_broken) = (self.last, 0);
        (passed, u32::from(largest))
    }

    /// Notes the size of a sample of the burst.
    #[inline(always)]
    pub(super) fn note_size(&mut self, wire: u32) {
        self.largest = self.largest.max(saturated(wire));
    }
}

/// Returns the evidence of a step of which this many values are plausible, in whole bits.
#[inline(always)]
fn evidence(plausible: f64) -> u32 {
    let values = (plausible as u32).min(u32::from(LONGEST_STEP)).max(1);
    16 - (values.ilog2() + u32::from(!values.is_power_of_two()))
}

/// Larger ones are super-packets, whose identifications are not used.
#[inline(always)]
fn saturated(wire: u32) -> u16 {
    wire.min(u32::from(u16::MAX)) as u16
}

#[cfg(test)]
mod tests {
    use thalweg_wire::{FlowKey, PacketNotes, Protocol, TcpFlags, Timestamp};

    use super::*;
    use crate::rates::frame_sizes::{FrameSizes, Framing};

    /// 200 Mbit/s.
    const CONTEXT: TrackContext =
        TrackContext { bytes_per_ns: 0.025, is_all: false, jitter_ns: 1_000_000, framing: Framing::PLAIN };
    const WIRE: u32 = 1_538;
    /// The time between two samples in nanoseconds.
    const GAP: u64 = 300_000;

    fn packet(identification: u16) -> Packet {
        Packet {
            time: Timestamp(0),
            key: FlowKey::v4(1, 2, 3, 4, Protocol::UDP),
            ethernet: Default::default(),
            ip_length: 1_500,
            payload_length: 1_472,
            identification,
            tcp_sequence: 0,
            tcp_flags: TcpFlags::default(),
            fragment: Fragment::Whole,
            notes: PacketNotes::default(),
        }
    }

    /// The packets that passed from the first to the last sample with these identifications, if known.
    fn passed(identifications: &[u16]) -> u32 {
        let mut state = Identifications::begin(&packet(identifications[0]), WIRE);
        identifications[1..].iter().for_each(|&next| state.follow(&packet(next), WIRE, GAP, &CONTEXT));
        state.close().0
    }

    fn counted(first: u16, step: u16) -> Vec<u16> {
        (0..30).map(|n: u16| first.wrapping_add(n * step)).collect()
    }

    #[test]
    fn counted_identifications_tell_how_many_packets_passed() {
        assert_eq!(passed(&counted(7, 4)), 29 * 4);
        assert_eq!(passed(&counted(65_530, 9)), 29 * 9, "a wrap-around");
        let mut reordered = counted(7, 4);
        reordered.swap(5, 6);
        assert_eq!(passed(&reordered), 29 * 4);
    }

    #[test]
    fn identifications_that_are_not_counted_tell_nothing() {
        assert_eq!(passed(&[0; 30]), 0, "none");
        let random = |n: u64| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as u16;
        assert_eq!(passed(&(1..200).map(random).collect::<Vec<_>>()), 0, "random");
        assert_eq!(passed(&counted(7, 1_000)), 0, "more than the link can carry");
        assert_eq!(passed(&counted(7, 1)[..3]), 0, "too little evidence");
    }

    #[test]
    fn a_jump_voids_one_span_and_the_evidence() {
        let mut state = Identifications::begin(&packet(0), WIRE);
        let mut follow = |identifications: std::ops::RangeInclusive<u16>| {
            identifications.for_each(|next| state.follow(&packet(next), WIRE, GAP, &CONTEXT));
            state.close().0
        };
        assert_eq!(follow(1..=20), 20);
        assert_eq!(follow(30_000..=30_019), 0);
        assert_eq!(follow(30_020..=30_030), 11);
    }

    /// The counter may have wrapped around.
    #[test]
    fn a_long_silence_voids_a_span() {
        let mut state = Identifications::begin(&packet(0), WIRE);
        (1..=20).for_each(|next| state.follow(&packet(next), WIRE, GAP, &CONTEXT));
        state.follow(&packet(21), WIRE, 3_000_000_000, &CONTEXT);
        assert_eq!(state.close().0, 0);
    }

    #[test]
    fn fragments_and_super_packets_are_not_counted() {
        let mut sizes = FrameSizes::default();
        sizes.note(64_000);
        let context = TrackContext { framing: sizes.framing(), ..CONTEXT };
        for wrong in [
            Packet { fragment: Fragment::First { identification: 10 }, ..packet(10) },
            Packet { ip_length: 64_000, ..packet(10) },
        ] {
            let mut state = Identifications::begin(&packet(0), WIRE);
            (1..10).chain(11..30).for_each(|next| {
                if next == 11 {
                    state.follow(&wrong, WIRE, GAP, &context);
                }
                state.follow(&packet(next), WIRE, GAP, &context);
            });
            assert_eq!(state.close().0, 0);
        }
    }
}
