//! The sizes of the frames at a monitor port, which set the time scale of its samples.
//!
//! The time between two samples of a flow is a number of frames of other flows, so it grows with their size: a jumbo
//! frame takes six times as long as a full-sized one, and a segment of 64 KiB 43 times. Bursts are scaled by the
//! largest frame within the last second or two.
//!
//! **Super-packets.** Where sender and mirror are on one host, the mirror shows segments before the sender's network
//! card would split them (TSO, UDP GSO), or after the receiver's has merged them (GRO). On the wire each part has
//! headers of its own. No Ethernet carries packets of more than [`LARGEST_MTU`]; once a longer one is seen, all packets
//! longer than [`MTU`] are taken for super-packets.

use thalweg_wire::Nanos;

use super::BurstOptions;

/// A full-sized frame on the wire, framing included.
pub(crate) const FULL_FRAME: u32 = 1_538;
/// The maximum transmission unit of Ethernet.
const MTU: u32 = 1_500;
/// The largest MTU in use on Ethernet.
const LARGEST_MTU: u32 = 9_216;
/// How long a size counts at least.
const MEMORY: u64 = 1_000_000_000;

/// Bytes on the wire beside the IP packet: Ethernet's header and checksum (18), preamble and start delimiter (8), the
/// gap between packets (12) (IEEE 802.3, sections 3.1.1 and 4.4.2).
const FRAMING: u32 = 38;
/// The minimum bytes of a frame on the wire: 64, and 20 around it.
const MIN_FRAME: u32 = 84;

/// The largest frames of a monitor port.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameSizes {
    /// The largest IP packets of the current and of the previous period.
    largest: [u32; 2],
    /// The end of the current period.
    until: u64,
}

/// How IP packets appear on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Framing {
    /// Packets longer than this are super-packets, whose parts have this length.
    mtu: u32,
}

impl FrameSizes {
    /// Notes the length of an IP packet.
    #[inline(always)]
    pub(crate) fn note(&mut self, ip_length: u32) {
        self.largest[0] = self.largest[0].max(ip_length);
    }

    /// Advances the time.
    pub(crate) fn advance(&mut self, now: u64) {
        if now < self.until && self.until - now <= MEMORY {
            return;
        }
        self.largest = [0, self.largest[0]];
        self.until = now.saturating_add(MEMORY);
    }

    /// Returns the bytes that the largest frame takes at the monitor port; at least a full-sized frame's.
    pub(crate) fn largest_frame(&self) -> u32 {
        (self.largest[0].max(self.largest[1]) + FRAMING).max(FULL_FRAME)
    }

    /// Returns how packets appear on the wire.
    pub(crate) fn framing(&self) -> Framing {
        let has_super_packets = self.largest[0].max(self.largest[1]) > LARGEST_MTU;
        Framing { mtu: if has_super_packets { MTU } else { u32::MAX } }
    }

    /// Returns burst options for frames of these sizes; `options` are for full-sized frames.
    pub(crate) fn scaled(&self, options: &BurstOptions) -> BurstOptions {
        let scale = |time: Nanos| Nanos(time.0 * u64::from(self.largest_frame()) / u64::from(FULL_FRAME));
        BurstOptions { gap: scale(options.gap), longest: scale(options.longest) }
    }
}

impl Framing {
    /// Every packet is one frame.
    pub(crate) const PLAIN: Framing = Framing { mtu: u32::MAX };

    /// Whether an IP packet of this length is one frame on the wire.
    #[inline(always)]
    pub(crate) fn is_one_frame(self, ip_length: u32) -> bool {
        ip_length <= self.mtu
    }

    /// Returns the bytes that an IP packet takes on an Ethernet link; `payload` are those after the transport header.
    #[inline(always)]
    pub(crate) fn wire_bytes(self, ip_length: u32, payload: u32) -> u32 {
        match ip_length > self.mtu {
            true => self.wire_bytes_of_parts(ip_length, payload),
            false => ip_length.saturating_add(FRAMING).max(MIN_FRAME),
        }
    }

    #[cold]
    fn wire_bytes_of_parts(self, ip_length: u32, payload: u32) -> u32 {
        let headers = ip_length.saturating_sub(payload);
        let parts = payload.div_ceil(self.mtu.saturating_sub(headers).max(1)).max(1);
        payload.saturating_add(parts.saturating_mul(headers + FRAMING))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_scale_with_the_largest_frame_of_the_last_seconds() {
        let options = BurstOptions::default();
        let mut sizes = FrameSizes::default();
        sizes.advance(5 * MEMORY);
        assert_eq!(sizes.scaled(&options), options);
        sizes.note(9_000);
        assert_eq!(sizes.scaled(&options).gap, Nanos(200_000 * 9_038 / 1_538));
        sizes.advance(6 * MEMORY);
        assert_eq!(sizes.largest_frame(), 9_038, "the previous period counts");
        sizes.advance(7 * MEMORY);
        assert_eq!(sizes.scaled(&options), options);
    }

    #[test]
    fn super_packets_are_counted_as_the_frames_on_the_wire() {
        let mut sizes = FrameSizes::default();
        sizes.note(9_000);
        assert_eq!(sizes.framing(), Framing::PLAIN, "a jumbo frame");
        sizes.note(45 * 1_448 + 52);
        let framing = sizes.framing();
        assert_eq!(framing.wire_bytes(45 * 1_448 + 52, 45 * 1_448), 45 * 1_538);
        assert_eq!(framing.wire_bytes(1_449 + 52, 1_449), 1_449 + 2 * 90);
        assert_eq!(framing.wire_bytes(1_500, 1_448), 1_538);
        assert_eq!(framing.wire_bytes(40, 0), 84);
    }
}
