//! The trait of all packet sources: files, rings shared with the kernel, emulated monitor ports.
//!
//! A source yields **batches** of frames that borrow the memory of the source, without copying. A frame is the captured
//! part of a packet, from its link header. Consumers do not depend on the kind of source.

use crate::link_type::LinkType;
use crate::time::Timestamp;

/// The origin of frames: a network interface, or an interface description of a capture file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The name, if known.
    pub name: Option<String>,
    /// The link type of its frames.
    pub link_type: LinkType,
    /// The maximum captured length of a frame; 0 if unlimited or unknown.
    pub snap_length: u32,
}

/// The position of a frame in the bytes of its batch, with its metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRef {
    /// The capture time; zero if unknown.
    pub time: Timestamp,
    /// The offset of the first captured byte in [`Batch::bytes`].
    pub offset: usize,
    /// The number of captured bytes.
    pub captured_length: u32,
    /// The length on the wire, from the link header.
    pub original_length: u32,
    /// The index of the interface in [`Batch::interfaces`].
    pub interface: u32,
}

/// Frames in capture order.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The memory of the frames.
    pub bytes: &'a [u8],
    /// The frames; empty if none arrived within the timeout of the source.
    pub frames: &'a [FrameRef],
    /// The interfaces known so far. Indices are stable.
    pub interfaces: &'a [Interface],
}

/// A captured frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The capture time.
    pub time: Timestamp,
    /// The captured bytes, from the link header.
    pub bytes: &'a [u8],
    /// The length on the wire, from the link header.
    pub original_length: u32,
    /// The link type.
    pub link_type: LinkType,
}

impl<'a> Batch<'a> {
    /// Iterates over the frames.
    ///
    /// # Panics
    /// If a frame is outside the bytes of the batch or has an unknown interface, which is a bug of the source.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Frame<'a>> + use<'a> {
        let Batch { bytes, frames, interfaces } = *self;
        frames.iter().map(move |frame| Frame {
            time: frame.time,
            bytes: &bytes[frame.offset..][..frame.captured_length as usize],
            original_length: frame.original_length,
            link_type: interfaces[frame.interface as usize].link_type,
        })
    }
}

/// Counters of a source since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCounters {
    /// Delivered frames.
    pub frames: u64,
    /// Frames dropped by the kernel because its buffer was full.
    pub kernel_drops: u64,
    /// The number of times that the kernel stopped filling the full ring (TPACKET_V3 `tp_freeze_q_cnt`).
    pub kernel_freezes: u64,
    /// Frames rejected by a capture filter in this process. Frames that a filter in the kernel rejects are not counted.
    pub filtered: u64,
    /// Records of a capture file without a frame (names, statistics, comments, unknown blocks).
    pub other_records: u64,
    /// Delivered frames that were longer than their interface's snap length.
    pub beyond_snap_length: u64,
}

impl std::ops::AddAssign for SourceCounters {
    fn add_assign(&mut self, other: SourceCounters) {
        self.frames += other.frames;
        self.kernel_drops += other.kernel_drops;
        self.kernel_freezes += other.kernel_freezes;
        self.filtered += other.filtered;
        self.other_records += other.other_records;
        self.beyond_snap_length += other.beyond_snap_length;
    }
}

/// The progress of reading a file, in bytes on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read.
    pub done: u64,
    /// Total bytes.
    pub total: u64,
}

/// A source of packets.
pub trait Source {
    /// The error of the source.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Returns the next frames; `None` at the end of the source. Returns an empty batch if nothing arrives within about
    /// 100 ms, so that the caller can do other work.
    ///
    /// # Errors
    /// If the source fails; earlier batches contain everything before the error.
    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, Self::Error>;

    /// Returns the current counters.
    fn counters(&mut self) -> SourceCounters;

    /// Returns the progress of a source of known length.
    fn progress(&self) -> Option<Progress> {
        None
    }
}
