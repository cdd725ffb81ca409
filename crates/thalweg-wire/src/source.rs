//! The one trait behind which packets arrive, whatever they come from: a file, a ring shared with the kernel,
//! an emulated mirror port.
//!
//! A source yields **batches** of frames that borrow the source's own memory; nothing is copied. A frame is
//! what was captured of one packet, from its link header on. What consumes frames cannot tell which source
//! they come from.

use crate::link_type::LinkType;
use crate::time::Timestamp;

/// Where frames were captured: a network interface, or an interface description of a capture file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Name, if one is known.
    pub name: Option<String>,
    /// What its frames begin with.
    pub link_type: LinkType,
    /// Most bytes kept of a frame; 0 if unlimited or unknown.
    pub snap_length: u32,
}

/// Where one frame lies in its batch's bytes, and what is known of it beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRef {
    /// When it was captured; zero if the source does not know (see [`Batch`]).
    pub time: Timestamp,
    /// Offset of the first captured byte in [`Batch::bytes`].
    pub offset: usize,
    /// Bytes captured.
    pub captured_length: u32,
    /// Bytes on the wire, from the link header on.
    pub original_length: u32,
    /// Index into the source's interfaces.
    pub interface: u32,
}

/// Some frames, in the order in which they were captured.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The memory that the frames lie in.
    pub bytes: &'a [u8],
    /// The frames; empty if nothing arrived within the source's patience.
    pub frames: &'a [FrameRef],
    /// Interfaces known so far; an index never changes its meaning.
    pub interfaces: &'a [Interface],
}

/// One captured frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// When it was captured.
    pub time: Timestamp,
    /// What was captured of it, from the link header on.
    pub bytes: &'a [u8],
    /// Its length on the wire, from the link header on.
    pub original_length: u32,
    /// What it begins with.
    pub link_type: LinkType,
}

impl<'a> Batch<'a> {
    /// The frames one by one.
    ///
    /// # Panics
    /// If a frame lies outside the batch's bytes or names an unknown interface: the source is at fault.
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

/// What a source has passed on and what it has lost, since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCounters {
    /// Frames handed on.
    pub frames: u64,
    /// Frames that the kernel saw but could not hand on for want of room.
    pub kernel_drops: u64,
    /// Times that the kernel stopped filling the ring because it was full (TPACKET_V3 `tp_freeze_q_cnt`).
    pub kernel_freezes: u64,
    /// Frames that a capture filter refused in this process (those refused in the kernel never reach it).
    pub filtered: u64,
    /// Records of a capture file that hold no frame (names, statistics, comments, unknown blocks).
    pub other_records: u64,
    /// Frames longer than their interface's snap length allows; handed on all the same.
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

/// How much of a source has been read, in bytes of the file as it lies on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

/// A place that packets come from.
pub trait Source {
    /// Why it could not go on.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The next frames, `None` when there will never be more. An empty batch means that nothing arrived in a
    /// short while (about 100 ms), so that a caller can see to other things.
    ///
    /// # Errors
    /// When the source cannot go on; everything before the fault has been handed on in earlier batches.
    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, Self::Error>;

    /// Counters as of now.
    fn counters(&mut self) -> SourceCounters;

    /// How far a source of known length has come.
    fn progress(&self) -> Option<Progress> {
        None
    }
}
