//! Captures packets of a network interface through a ring shared with the kernel (AF_PACKET, TPACKET_V3; see
//! packet(7) and the kernel's `Documentation/networking/packet_mmap.rst`).
//!
//! The kernel copies the first bytes of each frame into a block of the ring. It passes a block to us when the block
//! is full, or has been open for the block timeout. Each becomes one [`Batch`] that borrows the ring's memory, and
//! returns to the kernel with the next call: no copy and no system call per frame, and at most one poll per block.
//!
//! **Frames.** Frames in both directions, each as it is on the wire: an 802.1Q or 802.1ad tag that the kernel removed
//! is restored. [`LiveOptions::way`] selects one direction. On the loopback interface, where each frame appears as outgoing and incoming, the outgoing copy is
//! omitted. Network cards and stacks that join or split segments (GRO, TSO) do so on the other side of the tap: a
//! captured frame may be longer than the interface's MTU.
//!
//! **Drops are counted.** If no block is free, the kernel drops frames and counts them
//! ([`SourceCounters::kernel_drops`]).
//!
//! **Several workers.** [`LiveSource::open_group`] gives each worker its own ring (PACKET_FANOUT_HASH). The kernel
//! divides frames by a hash of their flow that is the same in both directions, within GRE and IP-in-IP tunnels too
//! but not within VXLAN or Geneve, where it hashes the outer flow. IP fragments are hashed by their addresses alone,
//! so a flow with both fragments and whole packets may be split between two workers.
//!
//! **If an interface goes down**, the source waits and resumes when it comes up again ([`LinkState`]). If it is
//! deleted, or moved to another network namespace, the source ends with [`LiveError::InterfaceGone`] after everything
//! in the ring has been delivered.
//!
//! **Filters** run in the kernel on untagged frames. Tagged frames pass it and are filtered in this process with
//! their tag restored, so an expression means the same here as on a file ([`SourceCounters::filtered`] counts the
//! frames rejected in this process).
//!
//! **For minimum delay**, [`PromptSource`] delivers each frame on its own. [`FrameSender`] sends frames.
//!
//! Needs CAP_NET_RAW while opening and nothing afterwards; Linux 4.20 or newer. Memory: the ring, which the kernel
//! allocates at once and does not swap.

mod block;
pub(crate) mod error;
pub(crate) mod interface;
mod interface_list;
mod kernel_filter;
pub(crate) mod options;
pub mod prompt;
mod ring;
pub mod sender;
mod slots;
pub(crate) mod socket;
mod vlan_tag;

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::RawFd;

use thalweg_linux::socket::Readiness;
use thalweg_wire::{Batch, FrameRef, Interface, LinkType, Nanos, Source, SourceCounters};

pub use error::LiveError;
pub use interface::LinkState;
pub use interface_list::{Capturable, CaptureInterface, InterfaceState, ListError, list_interfaces};
pub use options::{LiveOptions, Way};
pub use prompt::PromptSource;
pub use sender::FrameSender;

use crate::filter::Filter;
use block::read_block;
use kernel_filter::{REJECT_ALL, kernel_program};
use options::READ_TIMEOUT;
use ring::Ring;
use socket::PacketSocket;
use vlan_tag::VLAN_TAG_LENGTH;

/// Captures the packets of a network interface.
#[derive(Debug)]
pub struct LiveSource {
    ring: Ring,
    socket: PacketSocket,
    interface: Interface,
    link_state: LinkState,
    /// Applied to tagged frames, which the kernel lets pass.
    filter: Option<Filter>,
    way: Way,
    frames: Vec<FrameRef>,
    counters: SourceCounters,
    /// The maximum wait: the read timeout, and enough for the kernel to pass on an open block.
    wait: Nanos,
}

impl LiveSource {
    /// Opens an interface and starts the capture.
    ///
    /// # Errors
    /// See [`LiveError`].
    pub fn open(options: &LiveOptions) -> Result<LiveSource, LiveError> {
        let mut group = LiveSource::open_group(options, NonZeroUsize::MIN)?;
        Ok(group.pop().expect("a group of one has one source"))
    }

    /// Opens an interface for `workers` sources that share its packets: each has a ring of the size in `options`, and
    /// each flow, both directions together, goes to one of them.
    ///
    /// # Errors
    /// See [`LiveError`].
    pub fn open_group(options: &LiveOptions, workers: NonZeroUsize) -> Result<Vec<LiveSource>, LiveError> {
        options.validate()?;
        let mut group: Vec<LiveSource> = Vec::with_capacity(workers.get());
        let mut fanout_id = None;
        for _ in 0..workers.get() {
            let source = LiveSource::open_rejecting_all(options)?;
            if workers.get() > 1 {
                let joined =
                    interface::join_group(&source.socket, source.name(), source.link_state, fanout_id);
                fanout_id = Some(joined?);
            }
            group.push(source);
        }
        // A new member moves flows between the earlier ones, so none accepts frames until all have joined.
        for source in &group {
            source.start()?;
        }
        Ok(group)
    }

    /// Opens the source without accepting frames yet.
    fn open_rejecting_all(options: &LiveOptions) -> Result<LiveSource, LiveError> {
        let name = &options.interface;
        let at = |step| move |source| LiveError::Kernel { interface: name.clone(), step, source };
        let socket = PacketSocket::open().map_err(|source| LiveError::from_open(name, source))?;
        let index = interface::index_of(&socket, name)?;
        let link_type = interface::link_type_of(&socket, name)?;
        let filter = options.filter.as_deref();
        let filter = filter.map(|text| Filter::compile(text, link_type, options.snap_length)).transpose()?;

        socket.attach_filter(&REJECT_ALL).map_err(at("attach a filter"))?;
        socket.use_tpacket_v3().map_err(at("choose TPACKET_V3"))?;
        socket.reserve(VLAN_TAG_LENGTH as u32).map_err(at("reserve room for a VLAN tag"))?;
        let ring = Ring::map(&socket, options.geometry()).map_err(at("allocate the ring"))?;
        let is_loopback = interface::is_loopback(&socket, name).map_err(at("read the interface's flags"))?;
        if is_loopback && options.way != Way::Out {
            socket.ignore_outgoing().map_err(at("ignore outgoing copies"))?;
        }
        socket.bind(index).map_err(at("bind to the interface"))?;
        if options.promiscuous {
            socket.enter_promiscuous_mode(index).map_err(at("enter promiscuous mode"))?;
        }
        let snap_length = options.snap_length;
        let mut source = LiveSource {
            ring,
            socket,
            interface: Interface { name: Some(name.clone()), link_type, snap_length },
            link_state: LinkState::Up,
            filter,
            way: options.way,
            frames: Vec::new(),
            counters: SourceCounters::default(),
            wait: READ_TIMEOUT.saturating_add(Nanos(2 * options.block_timeout.0)),
        };
        source.update_link_state();
        Ok(source)
    }

    /// Starts to accept frames.
    fn start(&self) -> Result<(), LiveError> {
        let program = kernel_program(self.filter.as_ref(), self.interface.snap_length, self.way);
        self.socket.attach_filter(&program).map_err(|source| self.failed("attach the capture filter", source))
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

    /// Whether another block is available, so that the next call does not wait.
    pub fn is_ready(&self) -> bool {
        self.ring.has_more()
    }

    /// Releases the last batch and returns the descriptor to wait for.
    pub(crate) fn release_batch(&mut self) -> RawFd {
        self.ring.release();
        self.frames.clear();
        self.socket.raw()
    }

    /// Waits until a block is ready or the timeout expires.
    fn wait_for_block(&mut self) -> Result<(), LiveError> {
        let was_gone = self.link_state == LinkState::Gone;
        let readiness =
            self.socket.wait(self.wait).map_err(|source| self.failed("wait for packets", source))?;
        if readiness != Readiness::Ready || self.link_state != LinkState::Up {
            self.update_link_state();
        }
        // Once the interface is gone, a whole wait without a block means that the ring will stay empty: the kernel
        // would have passed on an open block within its timeout.
        if was_gone && readiness == Readiness::TimedOut {
            return Err(LiveError::InterfaceGone { name: self.name().to_owned() });
        }
        Ok(())
    }

    fn failed(&self, step: &'static str, source: io::Error) -> LiveError {
        LiveError::Kernel { interface: self.name().to_owned(), step, source }
    }
}

impl Source for LiveSource {
    type Error = LiveError;

    /// Returns one block of the ring; see [`Source::next_batch`]. Also empty after a signal, and when the interface
    /// went down.
    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, LiveError> {
        self.ring.release();
        self.frames.clear();
        if !self.ring.is_ready() {
            self.wait_for_block()?;
        }
        let bytes = match self.ring.hold() {
            Some(block) => {
                let refused = read_block(block, &self.interface, self.filter.as_ref(), &mut self.frames);
                self.counters.filtered += refused;
                self.counters.frames += self.frames.len() as u64;
                &*block
            }
            None => &[],
        };
        Ok(Some(Batch { bytes, frames: &self.frames, interfaces: std::slice::from_ref(&self.interface) }))
    }

    /// Reads the kernel's counts, and keeps the last ones when the kernel cannot be queried any longer.
    fn counters(&mut self) -> SourceCounters {
        if let Ok(since_last_time) = self.socket.take_statistics() {
            self.counters.kernel_drops += u64::from(since_last_time.tp_drops);
            self.counters.kernel_freezes += u64::from(since_last_time.tp_freeze_q_cnt);
        }
        self.counters
    }
}
