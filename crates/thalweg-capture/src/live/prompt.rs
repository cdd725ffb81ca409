//! Packets of a network interface as soon as they come, through a ring of frames shared with the kernel (AF_PACKET,
//! TPACKET_V2; see packet(7)).
//!
//! [`LiveSource`](super::LiveSource) gets blocks of frames from the kernel, and waits for each until it is full or a
//! millisecond old: right for speed. Here each frame is ours the moment the kernel has copied it, with the kernel's own
//! time of its arrival: right where a reaction has to be quick, and packets are few. It costs the kernel a wake-up a
//! frame as long as somebody waits.
//!
//! **Several interfaces** are served by one thread: [`wait_any`] waits for all of them.
//!
//! **What is seen** is as with [`LiveSource`](super::LiveSource), but for VLAN tags: those that the kernel took off stay
//! off. **What is lost is counted**: frames that find no free slot ([`SourceCounters::kernel_drops`]).
//!
//! Needs CAP_NET_RAW while opening and nothing afterwards. Memory: the ring; a slot is the snap length and 128 bytes,
//! rounded up to a power of two.

#![expect(unsafe_code, reason = "system calls that take pointers")]

use std::ffi::c_int;
use std::io;
use std::mem::offset_of;

use libc::tpacket2_hdr;
use thalweg_wire::{Batch, FrameRef, Interface, Nanos, Source, SourceCounters, Timestamp};

use super::error::LiveError;
use super::slots::Slots;
use super::socket::PacketSocket;
use super::{LiveOptions, PATIENCE, interface, kernel_program};
use crate::filter::Filter;
use thalweg_linux::socket::check;

/// Most frames of a batch.
const LARGEST_BATCH: usize = 64;

/// A source of the packets that pass a network interface, as soon as they do.
#[derive(Debug)]
pub struct PromptSource {
    slots: Slots,
    socket: PacketSocket,
    interface: Interface,
    frames: Vec<FrameRef>,
    counters: SourceCounters,
}

impl PromptSource {
    /// Opens an interface, and captures from this moment on. Of the options, those of blocks mean nothing here.
    ///
    /// # Errors
    /// See [`LiveError`].
    pub fn open(options: &LiveOptions) -> Result<PromptSource, LiveError> {
        options.validate()?;
        let name = &options.interface;
        let at = |step| move |source| LiveError::Kernel { interface: name.clone(), step, source };
        let socket = PacketSocket::open().map_err(|source| LiveError::from_open(name, source))?;
        let index = interface::index_of(&socket, name)?;
        let link_type = interface::link_type_of(&socket, name)?;
        let snap_length = options.snap_length;
        let filter = options.filter.as_deref();
        let filter = filter.map(|text| Filter::compile(text, link_type, snap_length)).transpose()?;
        let program = kernel_program(filter.as_ref(), snap_length);
        socket.attach_filter(&program).map_err(at("attach the capture filter"))?;
        socket.use_tpacket_v2().map_err(at("choose TPACKET_V2"))?;
        let slots = Slots::map(&socket, options.ring_size.0, snap_length).map_err(at("allocate the ring"))?;
        if interface::is_loopback(&socket, name).map_err(at("read the interface's flags"))? {
            socket.ignore_outgoing().map_err(at("ignore outgoing copies"))?;
        }
        socket.bind(index).map_err(at("bind to the interface"))?;
        if options.promiscuous {
            socket.enter_promiscuous_mode(index).map_err(at("enter promiscuous mode"))?;
        }
        let interface = Interface { name: Some(name.clone()), link_type, snap_length };
        let (frames, counters) = (Vec::with_capacity(LARGEST_BATCH), SourceCounters::default());
        Ok(PromptSource { slots, socket, interface, frames, counters })
    }

    /// The interface's name when it was opened.
    pub fn name(&self) -> &str {
        self.interface.name.as_deref().unwrap_or_default()
    }

    /// Whether a frame waits beyond the last batch: the next one comes without waiting.
    pub fn is_ready(&self) -> bool {
        self.slots.is_ready()
    }
}

impl Source for PromptSource {
    type Error = LiveError;

    /// The frames that wait, 64 at most; see [`Source::next_batch`]. Waits for one if there is none, and comes back
    /// empty after about 100 ms.
    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, LiveError> {
        self.slots.release();
        self.frames.clear();
        if !self.slots.is_ready() {
            let gone = |source| LiveError::Kernel {
                interface: self.name().to_owned(),
                step: "wait for packets",
                source,
            };
            self.socket.wait(PATIENCE).map_err(gone)?;
        }
        let slot_size = self.slots.slot_size();
        let bytes = self.slots.hold(LARGEST_BATCH);
        let slots = bytes.chunks_exact(slot_size).enumerate();
        self.frames.extend(slots.map(|(number, slot)| frame(slot, number * slot_size)));
        self.counters.frames += self.frames.len() as u64;
        Ok(Some(Batch { bytes, frames: &self.frames, interfaces: std::slice::from_ref(&self.interface) }))
    }

    /// The kernel's counts are read here, and kept even when the kernel cannot be asked any more.
    fn counters(&mut self) -> SourceCounters {
        if let Ok(since_last_time) = self.socket.take_statistics_v2() {
            self.counters.kernel_drops += u64::from(since_last_time.tp_drops);
        }
        self.counters
    }
}

/// Gives the last batches of these back, and waits until a frame waits at any of them, for `patience` (rounded up to
/// milliseconds) at most. Says whether one does; a signal ends the wait, too.
///
/// # Errors
/// What the kernel says.
pub fn wait_any<'a>(
    sources: impl IntoIterator<Item = &'a mut PromptSource>,
    patience: Nanos,
) -> io::Result<bool> {
    let request = |source: &mut PromptSource| {
        // To the kernel a slot that is held has a frame to be read.
        source.slots.release();
        source.frames.clear();
        libc::pollfd { fd: source.socket.raw(), events: libc::POLLIN, revents: 0 }
    };
    let mut requests: Vec<libc::pollfd> = sources.into_iter().map(request).collect();
    let timeout_ms = patience.0.div_ceil(1_000_000) as c_int;
    // SAFETY: the pointer is to that many requests.
    let ready = unsafe { libc::poll(requests.as_mut_ptr(), requests.len() as libc::nfds_t, timeout_ms) };
    match check(ready) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        answer => answer.map(|()| ready > 0),
    }
}

/// The frame in a slot that begins at `at`.
fn frame(slot: &[u8], at: usize) -> FrameRef {
    let word = |place: usize| u32::from_ne_bytes(*slot[place..].first_chunk().expect("a whole header"));
    let mac =
        u16::from_ne_bytes(*slot[offset_of!(tpacket2_hdr, tp_mac)..].first_chunk().expect("a whole header"));
    FrameRef {
        time: Timestamp::new(
            u64::from(word(offset_of!(tpacket2_hdr, tp_sec))),
            word(offset_of!(tpacket2_hdr, tp_nsec)),
        ),
        offset: at + usize::from(mac),
        captured_length: word(offset_of!(tpacket2_hdr, tp_snaplen)),
        original_length: word(offset_of!(tpacket2_hdr, tp_len)),
        interface: 0,
    }
}
