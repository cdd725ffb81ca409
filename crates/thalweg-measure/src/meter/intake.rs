//! Parses frames into packets, and counts every frame that is not an IP packet.

use thalweg_wire::parse::{Malformed, Parser, Unparsed};
use thalweg_wire::{Batch, Bytes, HashSeed, Packet, PacketNotes, Timestamp, VlanTags};

use super::fragments::Fragments;

/// A number of frames and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of frames.
    pub packets: u64,
    /// The bytes: of the IP layer for IP packets, on the wire for others.
    pub bytes: Bytes,
}

impl Tally {
    #[inline]
    fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += Bytes(u64::from(bytes));
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// Counters of the frames read. `frames = ip + non_ip + unsupported_link + all malformed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntakeCounters {
    /// All frames, with their bytes on the wire.
    pub frames: Tally,
    /// IP packets, passed to the flow table; bytes of the IP layer.
    pub ip: Tally,
    /// Frames without IP.
    pub non_ip: Tally,
    /// Frames of an unsupported link type.
    pub unsupported_link: Tally,
    /// Frames that violate their format, by kind in the order of [`Malformed::ALL`].
    pub malformed: [Tally; Malformed::ALL.len()],
    /// Frames with an earlier timestamp than the previous one.
    pub backwards: u64,
    /// Later fragments with unknown ports.
    pub portless_fragments: u64,
    /// IP packets whose ports were cut off by the capture's snap length.
    pub ports_not_captured: u64,
    /// IP packets without a length of their own (BIG TCP).
    pub length_from_frame: u64,
    /// IP packets with a length beyond their frame.
    pub length_beyond_frame: u64,
    /// Packets extracted from tunnels.
    pub decapsulated: u64,
}

impl IntakeCounters {
    /// Returns the total of all malformed frames.
    pub fn malformed_total(&self) -> Tally {
        self.malformed.iter().fold(Tally::default(), |mut sum, kind| {
            sum += *kind;
            sum
        })
    }

    /// Returns the total in the unit of flow records: bytes of the IP layer for IP packets, bytes on the wire for
    /// other frames. It equals the sum of flow records, `non_ip`, `unsupported_link` and `malformed`.
    pub fn accounted(&self) -> Tally {
        let mut sum = self.ip;
        sum += self.non_ip;
        sum += self.unsupported_link;
        sum += self.malformed_total();
        sum
    }
}

impl std::ops::AddAssign for IntakeCounters {
    fn add_assign(&mut self, other: IntakeCounters) {
        self.frames += other.frames;
        self.ip += other.ip;
        self.non_ip += other.non_ip;
        self.unsupported_link += other.unsupported_link;
        for (kind, others) in self.malformed.iter_mut().zip(other.malformed) {
            *kind += others;
        }
        self.backwards += other.backwards;
        self.portless_fragments += other.portless_fragments;
        self.ports_not_captured += other.ports_not_captured;
        self.length_from_frame += other.length_from_frame;
        self.length_beyond_frame += other.length_beyond_frame;
        self.decapsulated += other.decapsulated;
    }
}

/// What a batch gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The packets, with bytes of the IP layer.
    pub packets: Tally,
    /// The VLAN tags of their frames.
    pub tags: VlanTags,
    /// Whether some were extracted from tunnels.
    pub has_decapsulated: bool,
}

/// Parses frames, assigns ports to later fragments, and counts.
#[derive(Debug)]
pub struct Intake {
    parser: Parser,
    fragments: Fragments,
    counters: IntakeCounters,
    latest: Timestamp,
    span: Option<(Timestamp, Timestamp)>,
}

impl Intake {
    /// Creates an intake.
    pub fn new(parser: Parser, seed: HashSeed) -> Self {
        let (counters, latest, span) = Default::default();
        Intake { parser, fragments: Fragments::new(seed), counters, latest, span }
    }

    /// Returns the counters.
    pub fn counters(&self) -> IntakeCounters {
        self.counters
    }

    /// Returns the earliest and latest timestamp of all frames so far; `None` without frames.
    pub fn span(&self) -> Option<(Timestamp, Timestamp)> {
        self.span
    }

    /// Appends the packets of a batch to `packets`.
    #[inline]
    pub fn take(&mut self, batch: &Batch<'_>, packets: &mut Vec<Packet>) -> Taken {
        packets.reserve(batch.frames.len());
        let begin = packets.len();
        let mut unusual = false;
        let mut tags = VlanTags::default();
        let mut ip_bytes = 0;
        let counters = &mut self.counters;
        for frame in batch.iter() {
            counters.backwards += u64::from(frame.time < self.latest);
            self.latest = frame.time;
            // Written in place: copying a packet right after writing it would stall on its own stores.
            match self.parser.parse_into(&frame, packets, &mut tags) {
                Ok(()) => {
                    if let Some(packet) = packets.last() {
                        unusual |= packet.is_unusual();
                        ip_bytes += u64::from(packet.ip_length);
                    }
                }
                Err(unparsed) => counters.note_unparsed(unparsed, frame.original_length),
            }
        }
        let decapsulated_before = counters.decapsulated;
        if unusual {
            for packet in packets[begin..].iter_mut().filter(|packet| packet.is_unusual()) {
                let portless = self.fragments.resolve(packet);
                counters.note(packet, portless);
            }
        }
        for time in batch.frames.iter().map(|frame| frame.time) {
            let (first, last) = self.span.unwrap_or((time, time));
            self.span = Some((first.min(time), last.max(time)));
        }
        let frame_bytes = batch.frames.iter().map(|frame| u64::from(frame.original_length)).sum();
        counters.frames += Tally { packets: batch.frames.len() as u64, bytes: Bytes(frame_bytes) };
        let taken = Tally { packets: (packets.len() - begin) as u64, bytes: Bytes(ip_bytes) };
        counters.ip += taken;
        Taken { packets: taken, tags, has_decapsulated: counters.decapsulated > decapsulated_before }
    }
}

impl IntakeCounters {
    #[cold]
    fn note(&mut self, packet: &Packet, portless: bool) {
        let count = |note| u64::from(packet.notes.contains(note));
        self.portless_fragments += u64::from(portless);
        self.ports_not_captured += count(PacketNotes::PORTS_NOT_CAPTURED);
        self.length_from_frame += count(PacketNotes::LENGTH_FROM_FRAME);
        self.length_beyond_frame += count(PacketNotes::LENGTH_BEYOND_FRAME);
        self.decapsulated += count(PacketNotes::DECAPSULATED);
    }

    #[cold]
    fn note_unparsed(&mut self, unparsed: Unparsed, frame_bytes: u32) {
        match unparsed {
            Unparsed::NonIp { .. } => self.non_ip.add(frame_bytes),
            Unparsed::UnsupportedLinkType(_) => self.unsupported_link.add(frame_bytes),
            Unparsed::Malformed { kind, .. } => self.malformed[kind.index()].add(frame_bytes),
        }
    }
}
