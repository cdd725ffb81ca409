//! Estimates the rate of one direction of a flow from bursts of samples (Planck, section 3.2.2).
//!
//! **Bursts.** Samples that follow each other within the *gap* belong to one burst, and no burst is longer than the
//! *longest* allowed. A rate covers the **span** from the first sample of a burst to the first sample of the next:
//! the advance of sequence numbers, divided by the time. So a span contains one burst *and the pause after it*. In
//! slow start TCP sends a window at line rate and then waits for the rest of a round trip. A span contains both, so
//! the estimate is the window over the round trip, not the line rate. A flow that sends all the time has spans of the
//! longest burst's length.
//!
//! **Accuracy.** Spans of a flow follow each other without a gap, and their advances add up to all that it sent. The
//! bytes between two samples are known exactly, however few of the packets between were sampled, because sequence
//! numbers count them all. The times at which the two samples passed the switch are not known exactly: the monitor
//! port's queue delays them by varying amounts. And sequence numbers do not count retransmitted bytes
//! (`Track::repeated`).
//!
//! **Late samples.** A sample below the highest sequence number seen is late: reordered, or retransmitted. The paper
//! ignores it. Here it is counted for its span (`Span::late`). Where packets are lost before the monitor port,
//! sequence numbers run ahead of the passed data and then stop while it is retransmitted; many late samples indicate
//! this (the collector then uses the sampling ratio). Where possible, the two cases are distinguished: if a sample
//! that begins in the same kibibyte was seen before, the range was retransmitted; if not, it may be either. The last
//! 256 KiB are remembered. Segments shorter than 1 KiB are too short for this test, and keep-alives (RFC 9293,
//! section 3.8.4) count as neither.
//!
//! **The first span** of a flow ends after a single gap: it is as accurate as any other, only shorter, and a new
//! flow's rate is available that much earlier.
//!
//! **SYN and FIN** take a sequence number each (RFC 9293, section 3.4); a SYN restarts the direction. **Wrap-around**
//! (every 4 GiB) is harmless as long as less than 2 GiB can have passed between two samples; the collector checks
//! this with the fastest link. A sample further ahead than the fastest link can have sent since the burst began does
//! not count as an advance, nor do resets, and later fragments have no sequence number. If a flow moves to a path with
//! a shorter queue, its sequence numbers jump; it is measured again once the link can have sent that much.
//!
//! Without an advance of sequence numbers, the direction only acknowledges, or its protocol has none. Then its
//! samples are counted, over spans of at least [`MIN_SAMPLES`] if there are that many. The first sample after a
//! silence ends a span in any case, which contains the samples before the silence, and the silence. If the protocol
//! has none, the identifications of IPv4 headers may count all packets (`identification`).

mod identification;

use bytemuck::{Pod, Zeroable};

use thalweg_wire::{Fragment, Nanos, Packet, PacketNotes, Protocol, TcpFlags};

use super::BurstOptions;
use super::bounds::Bounds;
use super::frame_sizes::Framing;
use super::unseen::UnseenBytes;
use identification::Identifications;

/// Bytes that begin at the same multiple of this are one range in the memory of ranges seen.
const RANGE: u32 = 1 << 10;
/// The number of ranges remembered.
const RANGES: u32 = 256;

/// The minimum number of samples of a span without sequence numbers, unless it lasts [`LONGEST_COUNT`]. If samples
/// are drawn at random, their number is within 18 % of its mean 19 times out of 20.
pub const MIN_SAMPLES: u32 = 128;
/// The longest span without sequence numbers that waits for samples, or twelve of the longest bursts if that is more.
pub const LONGEST_COUNT: Nanos = Nanos::from_millis(20);

/// If a sample is further behind than is remembered, and the last burst began this long ago, another connection has
/// the same ports.
const RESYNCHRONISE: u64 = 100_000_000;

/// The unit of pauses: 16 bits reach to a second.
const PAUSE: u64 = 16_384;

/// If time goes back by more than this, the clock was set, and the state of a burst is void.
pub(crate) const TURNED_BACK: u64 = 1_000_000_000;

/// The state of one direction of a flow: two cache lines.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Track {
    /// The time of the burst's first sample, in nanoseconds since the epoch.
    burst_time: u64,
    /// The time of the last sample in sequence.
    last_time: u64,
    /// The sequence number at which the burst begins.
    burst_sequence: u32,
    /// One more than the highest sequence number seen.
    next_sequence: u32,
    /// Bytes on the wire, payload, and number of the burst's samples so far.
    wire: u32,
    payload: u32,
    samples: u32,
    /// The time between samples, a running mean in nanoseconds.
    mean_gap: u32,
    /// The path data of the track's owner.
    pub(crate) ports: InferredPorts,

    /// The rate on the wire in bits per second.
    pub(crate) rate: u64,
    pub(crate) bounds: Bounds,
    /// The length of the span that the rate covers, in nanoseconds, saturating; it ends where the burst begins.
    span: u32,
    /// The pauses at the end of that span and of the previous one, in units of [`PAUSE`], saturating.
    pauses: [u16; 2],
    /// The ranges of sequence numbers that have been seen, by number modulo [`RANGES`]. Of a protocol without sequence
    /// numbers: its [`Identifications`].
    seen: [u64; RANGES as usize / 64],
    /// Payload bytes seen twice, saturating.
    repeated: u32,
    /// Late samples that had not been seen before, saturating.
    reordered: u16,
    /// Late samples of data in this burst, saturating.
    late: u16,
}

/// The environment of a track.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrackContext {
    /// The maximum plausible rate, in bytes per nanosecond.
    pub(crate) bytes_per_ns: f64,
    /// Whether every packet is sampled.
    pub(crate) is_all: bool,
    /// The time by which a sample can be later than another one beside it, in nanoseconds: the queueing delay at the
    /// monitor port.
    pub(crate) jitter_ns: u64,
    /// How packets appear on the wire.
    pub(crate) framing: Framing,
}

/// The ports of this direction, as inferred by the owner of the track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct InferredPorts {
    /// The Ethernet addresses that they were inferred from, destination first.
    pub(crate) ethernet: [u8; 12],
    /// The version of the forwarding state that they were inferred from, the lower half.
    pub(crate) version: u32,
    /// Ports, one more than their number; zero for none.
    pub(crate) input: u16,
    pub(crate) output: u16,
    /// Bits of the owner.
    pub(crate) flags: u32,
}

const _: () = assert!(size_of::<Track>() == 128, "a track is two cache lines");

/// A completed burst, and the pause after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Nanoseconds from its first sample to the first of the next burst.
    pub(crate) length: u64,
    /// The advance of sequence numbers; 0 if they did not advance, or there are none.
    pub(crate) advance: u32,
    /// The payload of its samples, without late ones.
    pub(crate) payload: u32,
    /// Their bytes on the wire.
    pub(crate) wire: u32,
    /// The number of samples.
    pub(crate) samples: u32,
    /// The number of additional late samples: of data that had been sent before.
    pub(crate) late: u32,
    /// The number of packets, sampled or not, by their identifications; 0 if it is not known.
    pub(crate) passed: u32,
    /// The largest sample in bytes on the wire, if that number is known.
    pub(crate) largest: u32,
}

/// The result of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sampled {
    /// It belongs to the burst.
    Within,
    /// It is the first of the direction.
    First,
    /// It begins a burst; this is the span before it.
    Began(Span),
    /// It was seen before: a retransmission.
    Repeated,
    /// It arrived after later ones.
    Late,
}

impl Track {
    /// Returns the time of the last sample in sequence.
    #[inline(always)]
    pub(crate) fn last_time(&self) -> u64 {
        self.last_time
    }

    /// Returns the begin and end of the span that the rate covers.
    pub(crate) fn span(&self) -> (u64, u64) {
        (self.burst_time.saturating_sub(u64::from(self.span)), self.burst_time)
    }

    /// Returns the payload bytes seen twice.
    pub(crate) fn repeated(&self) -> u32 {
        self.repeated
    }

    /// Returns the late samples that had not been seen before.
    pub(crate) fn reordered(&self) -> u16 {
        self.reordered
    }

    /// Returns the idle timeout: the maximum of two gaps, twice the flow's pause between bursts, and eight times the
    /// interval between its samples (so that a steady flow, sampled at random, is considered idle less than once in
    /// 2,000 samples). The shorter one of its last two pauses counts, because one may have been a longer rest; so the
    /// first pause of a flow does not count.
    #[inline(always)]
    pub(crate) fn idle_timeout(&self, options: &BurstOptions) -> u64 {
        let [last, before] = self.pauses;
        let pause = last.min(before);
        (2 * options.gap.0.max(u64::from(pause) * PAUSE)).max(8 * u64::from(self.mean_gap))
    }

    /// Processes a sample. The bytes that TCP sent before it without a sample go into `unseen`.
    #[inline(always)]
    pub(crate) fn sample(
        &mut self,
        packet: &Packet,
        options: &BurstOptions,
        context: &TrackContext,
        unseen: &mut UnseenBytes,
    ) -> Sampled {
        let time = packet.time.0;
        if time.saturating_add(TURNED_BACK) < self.burst_time {
            self.samples = 0;
        }
        if packet.key.protocol != Protocol::TCP {
            return self.unsequenced(time, packet, options, context);
        }
        const UNRELIABLE: TcpFlags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::RST.0);
        if (packet.tcp_flags.intersects(UNRELIABLE) || packet.is_unusual())
            && let Some(sampled) = self.unreliable(time, packet, context.framing)
        {
            return sampled;
        }
        let fin = u32::from(packet.tcp_flags.intersects(TcpFlags::FIN));
        let length = packet.payload_length + fin;
        if self.samples == 0 {
            let begin = packet.tcp_sequence;
            self.begin(time, packet, [begin, begin.wrapping_add(length)], context.framing);
            return Sampled::First;
        }
        // A packet without data shows only that data before it was sent, possibly by another connection.
        let begin = if length == 0 { self.next_sequence } else { packet.tcp_sequence };
        let end = begin.wrapping_add(length);
        let ahead = begin.wrapping_sub(self.next_sequence) as i32;
        let gap = time.saturating_sub(self.last_time);
        let length = time.saturating_sub(self.burst_time);
        let advance = begin.wrapping_sub(self.burst_sequence);
        let possible_time = length + options.longest.0 + context.jitter_ns;
        let is_possible = f64::from(advance) <= possible_time as f64 * context.bytes_per_ns;
        if ahead < 0 || !is_possible {
            return self.late(time, packet, [begin, end], context.framing);
        }
        if packet.payload_length > 0 {
            unseen.add(ahead as u32);
        }
        // One unpredictable branch, not four.
        let is_over = (gap >= options.gap.0) | (length >= self.longest(options));
        let tells = (advance > 0)
            | self.has_enough_samples(length, options, context.is_all)
            | self.resumes(gap, options);
        let sampled = if is_over & (length > 0) & tells {
            let span = self.close(length, advance, gap);
            (self.burst_time, self.burst_sequence) = (time, begin);
            Sampled::Began(span)
        } else {
            Sampled::Within
        };
        self.update_mean_gap(gap);
        self.last_time = self.last_time.max(time);
        self.forget(self.next_sequence, end);
        self.next_sequence = end;
        self.count(packet, context.framing);
        self.mark_seen(begin, packet.payload_length);
        sampled
    }

    /// Handles a packet with an unreliable sequence number; returns `None` if it is reliable after all.
    #[cold]
    fn unreliable(&mut self, time: u64, packet: &Packet, framing: Framing) -> Option<Sampled> {
        if packet.tcp_flags.intersects(TcpFlags::SYN) {
            let begin = packet.tcp_sequence;
            let end = begin.wrapping_add(packet.payload_length).wrapping_add(1);
            self.begin(time, packet, [begin, end], framing);
            return Some(Sampled::First);
        }
        let has_none = packet.tcp_flags.intersects(TcpFlags::RST)
            || matches!(packet.fragment, Fragment::Later { .. })
            || packet.notes.contains(PacketNotes::PORTS_NOT_CAPTURED);
        if !has_none {
            return None;
        }
        if self.samples > 0 {
            self.count(packet, framing);
        }
        Some(Sampled::Within)
    }

    #[inline(always)]
    fn unsequenced(
        &mut self,
        time: u64,
        packet: &Packet,
        options: &BurstOptions,
        context: &TrackContext,
    ) -> Sampled {
        let wire = context.framing.wire_bytes(packet.ip_length, packet.payload_length);
        if self.samples == 0 {
            self.begin(time, packet, [0, 0], context.framing);
            *self.identifications() = Identifications::begin(packet, wire);
            return Sampled::First;
        }
        let gap = time.saturating_sub(self.last_time);
        let length = time.saturating_sub(self.burst_time);
        self.identifications().follow(packet, wire, gap, context);
        self.update_mean_gap(gap);
        self.last_time = self.last_time.max(time);
        let is_over = gap >= options.gap.0 || length >= options.longest.0;
        let sampled = if is_over
            && (self.has_enough_samples(length, options, context.is_all)
                || (self.resumes(gap, options) && length > 0))
        {
            let (passed, largest) = self.identifications().close();
            let span = self.close(length, 0, gap);
            self.burst_time = time;
            Sampled::Began(Span { passed, largest, ..span })
        } else {
            Sampled::Within
        };
        self.identifications().note_size(wire);
        self.count(packet, context.framing);
        sampled
    }

    /// Whether the direction was silent, so that a sample after this gap ends the span of the samples before the silence.
    #[inline(always)]
    fn resumes(&self, gap: u64, options: &BurstOptions) -> bool {
        (self.rate == 0) & (self.span > 0) & (gap >= options.gap.0)
    }

    /// Returns the identifications of a direction without sequence numbers.
    #[inline(always)]
    fn identifications(&mut self) -> &mut Identifications {
        let [identifications, _]: &mut [Identifications; 2] = bytemuck::must_cast_mut(&mut self.seen);
        identifications
    }

    /// The first span may be shorter than others.
    #[inline(always)]
    fn longest(&self, options: &BurstOptions) -> u64 {
        if self.span == 0 { options.gap.0 } else { options.longest.0 }
    }

    /// Updates the running mean of the time between samples by an eighth of the difference. A pause counts as at most
    /// eight times the mean, so that it is soon forgotten.
    #[inline(always)]
    fn update_mean_gap(&mut self, gap: u64) {
        let mean = i64::from(self.mean_gap);
        let gap = gap.min(u64::from(u32::MAX)) as i64;
        let next = if mean == 0 { gap } else { mean + ((gap.min(8 * mean) - mean) >> 3) };
        self.mean_gap = next as u32;
    }

    /// Whether a span without sequence numbers has enough samples. If every packet is sampled, any span has.
    #[inline(always)]
    fn has_enough_samples(&self, length: u64, options: &BurstOptions, is_all: bool) -> bool {
        let required = if is_all { 1 } else { MIN_SAMPLES };
        (length >= options.longest.0) & (self.samples >= required)
            | (length >= LONGEST_COUNT.0.max(12 * options.longest.0))
    }

    fn begin(&mut self, time: u64, packet: &Packet, [begin, end]: [u32; 2], framing: Framing) {
        (self.burst_time, self.last_time) = (time, time);
        (self.burst_sequence, self.next_sequence) = (begin, end);
        (self.wire, self.payload, self.samples, self.late) = (0, 0, 0, 0);
        self.seen = [0; RANGES as usize / 64];
        self.count(packet, framing);
        self.mark_seen(begin, packet.payload_length);
    }

    #[inline(always)]
    fn count(&mut self, packet: &Packet, framing: Framing) {
        let wire = framing.wire_bytes(packet.ip_length, packet.payload_length);
        self.wire = self.wire.saturating_add(wire);
        self.payload = self.payload.saturating_add(packet.payload_length);
        self.samples += 1;
    }

    #[inline(always)]
    fn close(&mut self, length: u64, advance: u32, pause: u64) -> Span {
        let Track { payload, wire, samples, late, .. } = *self;
        (self.wire, self.payload, self.samples, self.late) = (0, 0, 0, 0);
        self.pauses = [pause.div_ceil(PAUSE).min(u64::from(u16::MAX)) as u16, self.pauses[0]];
        self.span = u32::try_from(length).unwrap_or(u32::MAX);
        // Samples come in trains: the running mean is that of the last train, and may be less than that of the burst.
        let mean = length.saturating_sub(pause) / u64::from(samples.max(1));
        self.mean_gap = self.mean_gap.max(mean.min(u64::from(u32::MAX)) as u32);
        Span { length, advance, payload, wire, samples, late: u32::from(late), passed: 0, largest: 0 }
    }

    /// Handles a sample that begins below the highest sequence number seen.
    #[cold]
    fn late(&mut self, time: u64, packet: &Packet, [begin, end]: [u32; 2], framing: Framing) -> Sampled {
        let is_data = packet.payload_length > 1;
        let is_forgotten = self.next_sequence.wrapping_sub(begin) > (RANGES - 1) * RANGE;
        if is_forgotten && is_data && time.saturating_sub(self.burst_time) > RESYNCHRONISE {
            self.begin(time, packet, [begin, end], framing);
            return Sampled::First;
        }
        self.last_time = self.last_time.max(time);
        self.late = self.late.saturating_add(u16::from(is_data));
        if packet.payload_length < RANGE || is_forgotten {
            self.reordered = self.reordered.saturating_add(u16::from(is_data));
            return if is_data { Sampled::Late } else { Sampled::Within };
        }
        if self.has_seen(begin) {
            self.repeated = self.repeated.saturating_add(packet.payload_length);
            return Sampled::Repeated;
        }
        self.mark_seen(begin, packet.payload_length);
        self.reordered = self.reordered.saturating_add(1);
        Sampled::Late
    }

    /// Adds the ranges between two sequence numbers to the memory, which removes older ones.
    #[inline(always)]
    fn forget(&mut self, from: u32, to: u32) {
        let first = (from / RANGE).wrapping_add(1);
        let count = (to / RANGE).wrapping_sub(from / RANGE) % (1 << 22);
        let bit = first % 64;
        if bit + count < 64 {
            // Usually all ranges, possibly none, are in one word.
            self.seen[(first % RANGES / 64) as usize] &= !(((1 << count) - 1) << bit);
        } else {
            self.forget_many(first, count);
        }
    }

    #[cold]
    fn forget_many(&mut self, first: u32, count: u32) {
        if count >= RANGES {
            self.seen = [0; RANGES as usize / 64];
            return;
        }
        for range in 0..count {
            let range = first.wrapping_add(range) % RANGES;
            self.seen[range as usize / 64] &= !(1 << (range % 64));
        }
    }

    /// Marks a segment that begins here as seen, unless it is too short.
    #[inline(always)]
    fn mark_seen(&mut self, sequence: u32, payload: u32) {
        let range = sequence / RANGE % RANGES;
        self.seen[range as usize / 64] |= u64::from(payload >= RANGE) << (range % 64);
    }

    fn has_seen(&self, sequence: u32) -> bool {
        let range = sequence / RANGE % RANGES;
        self.seen[range as usize / 64] >> (range % 64) & 1 != 0
    }
}

#[cfg(test)]
mod tests;
