//! Captures packets of a network interface as soon as they arrive, through a ring of frames shared with the kernel
//! (AF_PACKET, TPACKET_V2; see packet(7)).
//!
//! [`LiveSource`](super::LiveSource) receives blocks of frames from the kernel, and waits for each until it is full
//! or a millisecond old: best for throughput. Here each frame is available as soon as the kernel has copied it, with
//! the kernel's own timestamp: best if a reaction must be fast, and packets are few. It costs the kernel one wake-up
//! per frame as long as a thread waits.
//!
//! **Several interfaces** are served by one thread: [`wait_any`](crate::wait_any) waits for all of them.
//!
//! **Frames, filters** and **several workers** are as with [`LiveSource`](super::LiveSource). **Drops are counted**:
//! frames without a free slot ([`SourceCounters::kernel_drops`]).
//!
//! Needs CAP_NET_RAW while opening and nothing afterwards. Memory: the ring; a slot is the snap length and 128 bytes,
//! rounded up to a power of two.

use std::io;
use std::mem::offset_of;
use std::num::NonZeroUsize;
use std::os::fd::RawFd;

use libc::tpacket2_hdr;
use thalweg_linux::socket::Readiness;
use thalweg_wire::{Batch, FrameRef, Interface, LinkType, Source, SourceCounters, Timestamp};

use super::error::LiveError;
use super::interface::{self, LinkState};
use super::kernel_filter::{REJECT_ALL, kernel_program};
use super::options::{LiveOptions, READ_TIMEOUT, Way};
use super::slots::Slots;
use super::socket::PacketSocket;
use super::vlan_tag::{Tag, VLAN_TAG_LENGTH};
use crate::filter::Filter;

/// The maximum number of frames in a batch.
const MAX_BATCH: usize = 64;

/// Captures the packets of a network interface as soon as they arrive.
#[derive(Debug)]
pub struct PromptSource {
    slots: Slots,
    socket: PacketSocket,
    interface: Interface,
    link_state: LinkState,
    /// Applied to tagged frames, which the kernel lets pass.
    filter: Option<Filter>,
    frames: Vec<FrameRef>,
    counters: SourceCounters,
}

impl PromptSource {
    /// Opens an interface and starts the capture. The options for blocks have no effect here.
    ///
    /// # Errors
    /// See [`LiveError`].
    pub fn open(options: &LiveOptions) -> Result<PromptSource, LiveError> {
        let mut group = PromptSource::open_group(options, NonZeroUsize::MIN)?;
        Ok(group.pop().expect("a group of one has one source"))
    }

    /// Opens an interface for `workers` sources that share its packets, like
    /// [`LiveSource::open_group`](super::LiveSource::open_group).
    ///
    /// # Errors
    /// See [`LiveError`].
    pub fn open_group(options: &LiveOptions, workers: NonZeroUsize) -> Result<Vec<PromptSource>, LiveError> {
        options.validate()?;
        let mut group: Vec<PromptSource> = Vec::with_capacity(workers.get());
        let mut fanout_id = None;
        for _ in 0..workers.get() {
            let source = PromptSource::open_rejecting_all(options)?;
            if workers.get() > 1 {
                let joined =
                    interface::join_group(&source.socket, source.name(), source.link_state, fanout_id);
                fanout_id = Some(joined?);
            }
            group.push(source);
        }
        // As there, none accepts frames until all have joined.
        for source in &group {
            let program = kernel_program(source.filter.as_ref(), source.interface.snap_length, options.way);
            let attached = source.socket.attach_filter(&program);
            attached.map_err(|error| source.failed("attach the capture filter", error))?;
        }
        Ok(group)
    }

    /// Opens the source without accepting frames yet.
    fn open_rejecting_all(options: &LiveOptions) -> Result<PromptSource, LiveError> {
        let name = &options.interface;
        let at = |step| move |source| LiveError::Kernel { interface: name.clone(), step, source };
        let socket = PacketSocket::open().map_err(|source| LiveError::from_open(name, source))?;
        let index = interface::index_of(&socket, name)?;
        let link_type = interface::link_type_of(&socket, name)?;
        let snap_length = options.snap_length;
        let filter = options.filter.as_deref();
        let filter = filter.map(|text| Filter::compile(text, link_type, snap_length)).transpose()?;
        socket.attach_filter(&REJECT_ALL).map_err(at("attach a filter"))?;
        socket.use_tpacket_v2().map_err(at("choose TPACKET_V2"))?;
        socket.reserve(VLAN_TAG_LENGTH as u32).map_err(at("reserve room for a VLAN tag"))?;
        let slots = Slots::map(&socket, options.ring_size.0, snap_length).map_err(at("allocate the ring"))?;
        let is_loopback = interface::is_loopback(&socket, name).map_err(at("read the interface's flags"))?;
        if is_loopback && options.way != Way::Out {
            socket.ignore_outgoing().map_err(at("ignore outgoing copies"))?;
        }
        socket.bind(index).map_err(at("bind to the interface"))?;
        if options.promiscuous {
            socket.enter_promiscuous_mode(index).map_err(at("enter promiscuous mode"))?;
        }
        let link_state = interface::state_of(&socket);
        let interface = Interface { name: Some(name.clone()), link_type, snap_length };
        let (frames, counters) = (Vec::with_capacity(MAX_BATCH), SourceCounters::default());
        Ok(PromptSource { slots, socket, interface, link_state, filter, frames, counters })
    }

    /// Returns the interface's name when it was opened.
    pub fn name(&self) -> &str {
        self.interface.name.as_deref().unwrap_or_default()
    }

    /// Returns the link type.
    pub fn link_type(&self) -> LinkType {
        self.interface.link_type
    }

    /// Returns whether packets can arrive, as of the last call of [`next_batch`](Source::next_batch); a change is
    /// detected within about 100 ms.
    pub fn link_state(&self) -> LinkState {
        self.link_state
    }

    /// Updates the link state without waiting for a frame, for callers that read several sources, each only when it
    /// has frames. If the interface is gone, [`next_batch`](Source::next_batch) delivers the remaining frames and
    /// then returns the error.
    pub fn update_link_state(&mut self) {
        self.link_state = interface::state_of(&self.socket);
    }

    /// Whether another frame is available, so that the next call does not wait.
    pub fn is_ready(&self) -> bool {
        self.slots.is_ready()
    }

    /// Releases the last batch and returns the descriptor to wait for: as long as a slot is held, the kernel reports
    /// it as readable.
    pub(crate) fn release_batch(&mut self) -> RawFd {
        self.slots.release();
        self.frames.clear();
        self.socket.raw()
    }

    /// Waits until a frame is available or the timeout expires.
    fn wait_for_frame(&mut self) -> Result<(), LiveError> {
        let was_gone = self.link_state == LinkState::Gone;
        let readiness =
            self.socket.wait(READ_TIMEOUT).map_err(|source| self.failed("wait for packets", source))?;
        if readiness != Readiness::Ready || self.link_state != LinkState::Up {
            self.update_link_state();
        }
        if was_gone && readiness == Readiness::TimedOut {
            return Err(LiveError::InterfaceGone { name: self.name().to_owned() });
        }
        Ok(())
    }

    fn failed(&self, step: &'static str, source: io::Error) -> LiveError {
        LiveError::Kernel { interface: self.name().to_owned(), step, source }
    }
}

impl Source for PromptSource {
    type Error = LiveError;

    /// Returns the available frames, at most 64; see [`Source::next_batch`]. Waits for one if there is none, and
    /// returns an empty batch after about 100 ms, after a signal, and when the interface went down.
    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, LiveError> {
        self.slots.release();
        self.frames.clear();
        if !self.slots.is_ready() {
            self.wait_for_frame()?;
        }
        let slot_size = self.slots.slot_size();
        let bytes = self.slots.hold(MAX_BATCH);
        for at in (0..bytes.len()).step_by(slot_size) {
            let (mut frame, tag) = read_slot(&bytes[at..at + slot_size], at);
            if let Some(tag) = tag.filter(|_| self.interface.link_type == LinkType::Ethernet) {
                tag.restore(bytes, &mut frame, self.interface.snap_length);
                let captured = &bytes[frame.offset..][..frame.captured_length as usize];
                if self.filter.as_ref().is_some_and(|filter| !filter.matches(captured, frame.original_length))
                {
                    self.counters.filtered += 1;
                    continue;
                }
            }
            self.frames.push(frame);
        }
        self.counters.frames += self.frames.len() as u64;
        Ok(Some(Batch { bytes, frames: &self.frames, interfaces: std::slice::from_ref(&self.interface) }))
    }

    /// Reads the kernel's counts, and keeps the last ones when the kernel cannot be queried any longer.
    fn counters(&mut self) -> SourceCounters {
        if let Ok(since_last_time) = self.socket.take_statistics_v2() {
            self.counters.kernel_drops += u64::from(since_last_time.tp_drops);
        }
        self.counters
    }
}

/// Reads the frame in a slot that begins at `at`, and the tag that the kernel removed from it.
fn read_slot(slot: &[u8], at: usize) -> (FrameRef, Option<Tag>) {
    // One bounds check for all fields.
    let header: &[u8; size_of::<tpacket2_hdr>()] = slot.first_chunk().expect("a whole header");
    let word = |offset: usize| u32::from_ne_bytes(*header[offset..].first_chunk().expect("four bytes"));
    let half = |offset: usize| u16::from_ne_bytes(*header[offset..].first_chunk().expect("two bytes"));
    let frame = FrameRef {
        time: Timestamp::new(
            u64::from(word(offset_of!(tpacket2_hdr, tp_sec))),
            word(offset_of!(tpacket2_hdr, tp_nsec)),
        ),
        offset: at + usize::from(half(offset_of!(tpacket2_hdr, tp_mac))),
        captured_length: word(offset_of!(tpacket2_hdr, tp_snaplen)),
        original_length: word(offset_of!(tpacket2_hdr, tp_len)),
        interface: 0,
    };
    let (tpid, tci) = (offset_of!(tpacket2_hdr, tp_vlan_tpid), offset_of!(tpacket2_hdr, tp_vlan_tci));
    (frame, Tag::of(word(offset_of!(tpacket2_hdr, tp_status)), half(tpid), half(tci)))
}
