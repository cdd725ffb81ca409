//! pcap: a 24-byte file header, then records of a 16-byte header (time, captured length, original length) and the
//! captured bytes. The magic number determines the time unit (microseconds or nanoseconds) and the byte order.
//!
//! The variant with magic number `a1b2cd34` (A. Kuznetzov's patch to an old libpcap) has 8 more bytes in each record
//! header, which duplicate a cooked link header and are skipped.

use super::{ByteOrder, Decoded, FormatError, MAX_RECORD_LENGTH};
use crate::link_type::LinkType;
use crate::source::{Frame, FrameRef, Interface};
use crate::time::Timestamp;

/// The length of the file header in bytes.
pub const FILE_HEADER_LENGTH: usize = 24;
/// The length of a record header in the usual variants, in bytes.
pub const RECORD_HEADER_LENGTH: usize = 16;
const MODIFIED_RECORD_HEADER_LENGTH: usize = 24;

const MAGIC_MICROS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOS: u32 = 0xa1b2_3c4d;
const MAGIC_MODIFIED: u32 = 0xa1b2_cd34;

/// The version since 1998.
const VERSION: (u16, u16) = (2, 4);
/// The version of the tcpdump of DG/UX.
const VERSION_DG_UX: (u16, u16) = (543, 0);

/// The order of the two lengths of a record, by version. libpcap reads the same versions in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lengths {
    /// Captured length, original length.
    Captured,
    /// Original length, captured length.
    Original,
    /// Version 2.3: some programs wrote one order and some the other. The captured length is the smaller one.
    Smaller,
}

impl Lengths {
    fn of(version: (u16, u16)) -> Option<Lengths> {
        Some(match version {
            VERSION => Lengths::Captured,
            (2, 3) => Lengths::Smaller,
            (2, 0..3) | VERSION_DG_UX => Lengths::Original,
            _ => return None,
        })
    }

    /// Returns the captured and the original length.
    fn ordered(self, first: u32, second: u32) -> (u32, u32) {
        match self {
            Lengths::Captured => (first, second),
            Lengths::Original => (second, first),
            Lengths::Smaller => (first.min(second), first.max(second)),
        }
    }
}

/// The unit of the sub-second part of a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
}

impl Precision {
    const fn nanos_per_unit(self) -> u32 {
        match self {
            Precision::Micros => 1_000,
            Precision::Nanos => 1,
        }
    }
}

/// The variant of the format, from the magic number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variant {
    order: ByteOrder,
    precision: Precision,
    record_header_length: usize,
}

impl Variant {
    pub(super) fn from_magic(magic: [u8; 4]) -> Option<Variant> {
        [ByteOrder::Little, ByteOrder::Big].into_iter().find_map(|order| {
            let (precision, record_header_length) = match order.read_u32(&magic, 0) {
                MAGIC_MICROS => (Precision::Micros, RECORD_HEADER_LENGTH),
                MAGIC_NANOS => (Precision::Nanos, RECORD_HEADER_LENGTH),
                MAGIC_MODIFIED => (Precision::Micros, MODIFIED_RECORD_HEADER_LENGTH),
                _ => return None,
            };
            Some(Variant { order, precision, record_header_length })
        })
    }
}

/// Decodes the records after the file header.
#[derive(Clone, Debug)]
pub(super) struct Decoder {
    variant: Variant,
    lengths: Lengths,
    interface: Interface,
    beyond_snap_length: u64,
}

impl Decoder {
    /// Creates a decoder from the file header.
    pub(super) fn new(variant: Variant, header: &[u8; FILE_HEADER_LENGTH]) -> Result<Decoder, FormatError> {
        let order = variant.order;
        let (major, minor) = (order.read_u16(header, 4), order.read_u16(header, 6));
        let Some(lengths) = Lengths::of((major, minor)) else {
            let expected = "2.0 to 2.4, or 543.0";
            return Err(FormatError::Version { offset: 0, format: "pcap", major, minor, expected });
        };
        let snap_length = order.read_u32(header, 16);
        // The upper half is the length of the frame check sequence (FCS). It does not matter: lengths come from the IP
        // header.
        let link_type = LinkType::from_number(order.read_u32(header, 20) as u16);
        Ok(Decoder {
            variant,
            lengths,
            interface: Interface { name: None, link_type, snap_length },
            beyond_snap_length: 0,
        })
    }

    pub(super) fn interfaces(&self) -> &[Interface] {
        std::slice::from_ref(&self.interface)
    }

    pub(super) fn beyond_snap_length(&self) -> u64 {
        self.beyond_snap_length
    }

    /// Decodes records from `bytes[at..]`; see [`super::Decoder::decode`].
    pub(super) fn decode(
        &mut self,
        bytes: &[u8],
        at: usize,
        base: u64,
        limit: usize,
        frames: &mut Vec<FrameRef>,
    ) -> Result<Decoded, FormatError> {
        // One copy of the loop per byte order, to branch once per call and not three times per record; and for old files.
        match (self.variant.order, self.lengths) {
            (ByteOrder::Little, Lengths::Captured) => {
                self.decode_records::<false, false>(bytes, at, base, limit, frames)
            }
            (ByteOrder::Big, Lengths::Captured) => {
                self.decode_records::<true, false>(bytes, at, base, limit, frames)
            }
            (ByteOrder::Little, _) => self.decode_records::<false, true>(bytes, at, base, limit, frames),
            (ByteOrder::Big, _) => self.decode_records::<true, true>(bytes, at, base, limit, frames),
        }
    }

    fn decode_records<const BIG: bool, const OLD: bool>(
        &mut self,
        bytes: &[u8],
        mut at: usize,
        base: u64,
        limit: usize,
        frames: &mut Vec<FrameRef>,
    ) -> Result<Decoded, FormatError> {
        let order = if BIG { ByteOrder::Big } else { ByteOrder::Little };
        let lengths = if OLD { self.lengths } else { Lengths::Captured };
        let header_length = self.variant.record_header_length;
        let nanos_per_unit = self.variant.precision.nanos_per_unit();
        let snap_length = match self.interface.snap_length {
            0 => u32::MAX,
            snap_length => snap_length,
        };
        for _ in 0..limit {
            let rest = &bytes[at..];
            let Some(header) = rest.first_chunk::<RECORD_HEADER_LENGTH>() else {
                return Ok(Decoded { consumed: at, needed: header_length });
            };
            let (captured_length, original_length) =
                lengths.ordered(order.read_u32(header, 8), order.read_u32(header, 12));
            let record_length = header_length + captured_length as usize;
            // One comparison for truncated and for too long records.
            if record_length > rest.len().min(MAX_RECORD_LENGTH) {
                return incomplete(at, base, record_length);
            }
            // Cannot overflow: the factors are below 2^32 and 2^30, the summands below 2^62 and 2^42.
            let time = u64::from(order.read_u32(header, 0)) * 1_000_000_000
                + u64::from(order.read_u32(header, 4)) * u64::from(nanos_per_unit);
            self.beyond_snap_length += u64::from(captured_length > snap_length);
            frames.push(FrameRef {
                time: Timestamp(time),
                offset: at + header_length,
                captured_length,
                original_length: original_length.max(captured_length),
                interface: 0,
            });
            at += record_length;
        }
        Ok(Decoded { consumed: at, needed: 0 })
    }
}

/// Returns the length of the incomplete record at `at`, or an error if it is too long.
#[cold]
fn incomplete(at: usize, base: u64, record_length: usize) -> Result<Decoded, FormatError> {
    if record_length > MAX_RECORD_LENGTH {
        return Err(FormatError::RecordTooLong {
            offset: base.saturating_add(at as u64),
            length: record_length as u64,
        });
    }
    Ok(Decoded { consumed: at, needed: record_length })
}

/// Encodes a pcap file.
///
/// Call [`file_header`](Encoder::file_header) once, then [`record`](Encoder::record) for each frame:
///
/// ```
/// use thalweg_wire::capture_file::{ByteOrder, pcap};
/// use thalweg_wire::{Frame, LinkType, Timestamp};
///
/// let encoder = pcap::Encoder { order: ByteOrder::Little, precision: pcap::Precision::Nanos };
/// let mut file = Vec::new();
/// encoder.file_header(LinkType::Ethernet, 64, &mut file);
/// let (time, link_type) = (Timestamp::new(1, 5), LinkType::Ethernet);
/// encoder.record(&Frame { time, bytes: &[0; 64], original_length: 1500, link_type }, &mut file);
/// assert_eq!(file.len(), 24 + 16 + 64);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoder {
    /// The byte order.
    pub order: ByteOrder,
    /// The unit of the sub-second part of timestamps; microseconds are rounded down.
    pub precision: Precision,
}

impl Encoder {
    /// Appends the file header. `snap_length` is the maximum captured length of a frame; readers rely on it. tcpdump
    /// uses 262144 for "everything".
    pub fn file_header(&self, link_type: LinkType, snap_length: u32, out: &mut Vec<u8>) {
        let magic = match self.precision {
            Precision::Micros => MAGIC_MICROS,
            Precision::Nanos => MAGIC_NANOS,
        };
        out.extend_from_slice(&self.order.u32(magic));
        out.extend_from_slice(&self.order.u16(VERSION.0));
        out.extend_from_slice(&self.order.u16(VERSION.1));
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&self.order.u32(snap_length));
        out.extend_from_slice(&self.order.u32(u32::from(link_type.number())));
    }

    /// Appends a frame, which must have the link type of the file. The format ends in the year 2106: later times become
    /// its last second.
    ///
    /// # Panics
    /// If the frame is too long for [`MAX_RECORD_LENGTH`].
    #[inline]
    pub fn record(&self, frame: &Frame<'_>, out: &mut Vec<u8>) {
        assert!(
            frame.bytes.len() <= MAX_RECORD_LENGTH - RECORD_HEADER_LENGTH,
            "the frame is too long for readers"
        );
        let seconds = u32::try_from(frame.time.seconds()).unwrap_or(u32::MAX);
        let fraction = frame.time.subsec_nanos() / self.precision.nanos_per_unit();
        let mut header = [0; RECORD_HEADER_LENGTH];
        header[0..4].copy_from_slice(&self.order.u32(seconds));
        header[4..8].copy_from_slice(&self.order.u32(fraction));
        header[8..12].copy_from_slice(&self.order.u32(frame.bytes.len() as u32));
        header[12..16].copy_from_slice(&self.order.u32(frame.original_length));
        out.extend_from_slice(&header);
        out.extend_from_slice(frame.bytes);
    }
}
