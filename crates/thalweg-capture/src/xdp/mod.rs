//! Captures packets of a network interface through AF_XDP (the kernel's `Documentation/networking/af_xdp.rst`;
//! Høiland-Jørgensen et al., "The eXpress Data Path", CoNEXT 2018): frames go from the driver to this process,
//! bypassing the network stack.
//!
//! A short program (`redirect.rs`) runs for each frame where the driver receives it, notes the time, and passes the
//! frame to the socket of its receive queue. The kernel copies the whole frame into chunks of memory that the socket
//! has lent to it. Consecutive chunks become a [`Batch`] that borrows them, and are lent again with the next call. No copy and
//! no allocation here, and at most one system call per batch: none as long as frames are available.
//!
//! **The host does not see the frames.** Packets that arrive at the interface no longer reach this host's network
//! stack, nor a bridge that the interface is a port of. So this is for ports that carry only mirrored packets.
//! [`crate::choose`] chooses accordingly.
//!
//! **Frames.** Only incoming frames, each as the driver received it, before GRO. A network card that removes VLAN
//! tags does so before: disable that where tags matter (`ethtool -K eth0 rxvlan off`). Frames of any length arrive:
//! jumbo frames, and segments that a sender on the same host has not split (TSO), take several chunks, of which the
//! first is delivered, with the length of the whole frame.
//!
//! **Time** is that of the kernel when the frame arrived: the program reads the clock (bpf_ktime_get_tai_ns) and puts
//! the time before the frame. So it does not depend on when this process gets to read. A driver without space for
//! metadata cannot carry the time; then the wall clock is read once per batch, when the batch is taken.
//!
//! **Drops are counted.** [`SourceCounters::kernel_drops`] are the frames without enough free chunks
//! (`rx_dropped` and `rx_ring_full` of XDP_STATISTICS; `rx_fill_ring_empty_descs` counts some of them again). Drops before the program runs, in the card or in the ring of a veth pair, are counted elsewhere by
//! the kernel: `ip -s -s link`, for a veth pair as `dropped` of the sending end.
//!
//! **Several workers.** [`XdpSource::open_group`] returns one source for each receive queue. The card chooses the
//! queue of a frame (RSS), possibly a different one for each direction of a flow; `ethtool -L` sets the number of
//! queues.
//!
//! **If an interface goes down**, the source waits and resumes when it comes up again. If it is deleted, or moved to
//! another network namespace, the source ends with [`LiveError::InterfaceGone`] after everything was delivered.
//!
//! **Filters** run in this process, on the first chunk of each frame ([`SourceCounters::filtered`]).
//!
//! Needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF while opening and nothing afterwards, and either CAP_IPC_LOCK or a
//! sufficient limit of locked memory; Linux 6.6 or newer. The program is attached through a link that ends with the
//! last source of the group, or with the process, even if it is killed. Memory: [`XdpOptions::memory_size`] for each
//! queue, which is not swapped, and 24 bytes per chunk for the rings.

mod options;
mod redirect;
mod ring;
mod socket;
mod umem;

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use thalweg_linux::socket::Readiness;
use thalweg_linux::{KernelVersion, clock};
use thalweg_wire::{Batch, Bytes, FrameRef, Interface, LinkType, Source, SourceCounters, Timestamp};

pub use options::{BusyPoll, XdpMode, XdpOptions};

use crate::filter::Filter;
use crate::live::options::READ_TIMEOUT;
use crate::live::socket::PacketSocket;
use crate::live::{LinkState, LiveError, error, interface};
use redirect::{Attachment, Redirect};
pub(crate) use socket::{XdpSocket, locked_memory_limit};
use umem::Umem;

/// The maximum number of frames in a batch. Their headers fit in a core's level 1 cache.
pub const MAX_BATCH: u32 = 256;

/// How long the queue of a closed socket may stay in use.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);

/// The first kernel with all that is used: frames in several chunks (XDP_USE_SG).
const MIN_KERNEL: KernelVersion = KernelVersion { major: 6, minor: 6 };

/// The packets of one receive queue of an interface.
#[derive(Debug)]
pub struct XdpSource {
    // Dropped in this order: nothing is redirected any longer when the socket closes.
    attachment: Arc<Attachment>,
    socket: XdpSocket,
    umem: Umem,
    /// Monitors the state of the interface, and keeps it promiscuous.
    watch: PacketSocket,
    queue: u32,
    interface: Interface,
    link_state: LinkState,
    filter: Option<Filter>,
    busy_poll: Option<BusyPoll>,
    frames: Vec<FrameRef>,
    counters: SourceCounters,
}

/// A queue's socket before frames arrive.
struct Member {
    socket: XdpSocket,
    umem: Umem,
    watch: PacketSocket,
}

impl XdpSource {
    /// Opens an interface: one source for each of its receive queues, in order. The capture starts when all are
    /// ready.
    ///
    /// # Errors
    /// See [`LiveError`].
    pub fn open_group(options: &XdpOptions) -> Result<Vec<XdpSource>, LiveError> {
        options.validate()?;
        let name = &options.interface;
        if let Some(version) = old_kernel() {
            return Err(LiveError::OldKernel { interface: name.clone(), version });
        }
        let at = |step| move |source| LiveError::Kernel { interface: name.clone(), step, source };
        let watch = PacketSocket::open().map_err(|source| denied_or(name, "open a packet socket", source))?;
        let index = interface::index_of(&watch, name)?;
        if interface::link_type_of(&watch, name)? != LinkType::Ethernet {
            return Err(LiveError::NotEthernet { interface: name.clone() });
        }
        let queue_count = watch.socket().receive_queue_count(name).map_err(at("count the receive queues"))?;
        let filter = options.filter.as_deref();
        let filter = filter.map(|text| Filter::compile(text, LinkType::Ethernet, 0)).transpose()?;

        let redirect = Redirect::load(queue_count).map_err(|e| denied_or(name, "load the XDP program", e))?;
        // Before any socket exists, so that all queues begin at the same time; until then frames pass.
        let attachment = Arc::new(attach(&redirect, options, index)?);
        let open = |queue| Member::open(options, index, queue, queue_count);
        let members = (0..queue_count).map(open).collect::<Result<Vec<_>, _>>()?;
        for (queue, member) in (0..queue_count).zip(&members) {
            redirect.put(queue, &member.socket).map_err(at("enter the socket of a queue"))?;
        }
        let source = |(queue, member)| XdpSource::new(options, queue, member, &attachment, filter.clone());
        Ok((0..queue_count).zip(members).map(source).collect())
    }

    fn new(
        options: &XdpOptions,
        queue: u32,
        Member { socket, umem, watch }: Member,
        attachment: &Arc<Attachment>,
        filter: Option<Filter>,
    ) -> XdpSource {
        let link_state = interface::state_of(&watch);
        XdpSource {
            attachment: Arc::clone(attachment),
            socket,
            umem,
            watch,
            queue,
            interface: Interface {
                name: Some(options.interface.clone()),
                link_type: LinkType::Ethernet,
                snap_length: options.longest_frame(),
            },
            link_state,
            filter,
            busy_poll: options.busy_poll,
            frames: Vec::with_capacity(MAX_BATCH as usize),
            counters: SourceCounters::default(),
        }
    }

    /// Returns the interface's name when it was opened.
    pub fn name(&self) -> &str {
        self.interface.name.as_deref().unwrap_or_default()
    }

    /// Returns the number of the receive queue, from 0.
    pub fn queue(&self) -> u32 {
        self.queue
    }

    /// Returns where frames are taken from the interface.
    pub fn mode(&self) -> XdpMode {
        self.attachment.mode()
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
        self.link_state = interface::state_of(&self.watch);
    }

    /// Whether another frame is available, so that the next call does not wait.
    pub fn is_ready(&self) -> bool {
        self.umem.is_ready()
    }

    /// Releases the last batch and returns the descriptor to wait for.
    pub(crate) fn release_batch(&mut self) -> RawFd {
        self.umem.give_back();
        self.frames.clear();
        self.socket.raw()
    }

    /// Waits until a frame is available or the timeout expires.
    fn wait_for_frames(&mut self) -> Result<(), LiveError> {
        let waited =
            if self.busy_poll.is_some() { self.poll_busily() } else { self.socket.wait(READ_TIMEOUT) };
        let readiness = waited.map_err(|source| self.failed("wait for packets", source))?;
        if readiness != Readiness::Ready || self.link_state != LinkState::Up {
            self.update_link_state();
        }
        // The kernel reports that an interface is gone after its last frame was processed.
        if self.link_state == LinkState::Gone && !self.umem.is_ready() {
            return Err(LiveError::InterfaceGone { name: self.name().to_owned() });
        }
        Ok(())
    }

    /// Processes the queue until a frame is available or the timeout expires.
    fn poll_busily(&self) -> io::Result<Readiness> {
        let start = Instant::now();
        loop {
            self.socket.wake_kernel()?;
            if self.umem.is_ready() {
                return Ok(Readiness::Ready);
            }
            if start.elapsed().as_nanos() >= u128::from(READ_TIMEOUT.0) {
                return Ok(Readiness::TimedOut);
            }
        }
    }

    /// Takes the available frames.
    fn take_frames(&mut self) {
        if !self.umem.is_ready() {
            return;
        }
        let (now, tai_offset) = (clock::realtime(), clock::tai_offset());
        let frames = &mut self.frames;
        self.umem.hold(MAX_BATCH, |held| {
            frames.push(FrameRef {
                time: held.arrival.map_or(now, |tai| Timestamp(tai.saturating_sub(tai_offset.0))),
                offset: held.offset,
                captured_length: held.available,
                original_length: held.length,
                interface: 0,
            });
        });
        self.filter_frames();
        let snap_length = self.interface.snap_length;
        self.frames
            .iter_mut()
            .for_each(|frame| frame.captured_length = frame.captured_length.min(snap_length));
        self.counters.frames += self.frames.len() as u64;
    }

    /// Removes the frames that do not match the filter, which reads all that is in memory of each.
    fn filter_frames(&mut self) {
        let Some(filter) = &self.filter else { return };
        let held = self.umem.held();
        let taken = self.frames.len();
        self.frames.retain(|frame| {
            let available = &held[frame.offset..][..frame.captured_length as usize];
            filter.matches(available, frame.original_length)
        });
        self.counters.filtered += (taken - self.frames.len()) as u64;
    }

    fn failed(&self, step: &'static str, source: io::Error) -> LiveError {
        LiveError::Kernel { interface: self.name().to_owned(), step, source }
    }
}

impl Source for XdpSource {
    type Error = LiveError;

    /// Returns the available frames, at most [`MAX_BATCH`]; see [`Source::next_batch`]. Also empty after a
    /// signal, and when the interface went down.
    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, LiveError> {
        self.umem.give_back();
        self.frames.clear();
        if !self.umem.is_ready() {
            self.wait_for_frames()?;
        } else if self.umem.needs_wakeup() {
            self.socket.wake_kernel().map_err(|source| self.failed("wake the kernel", source))?;
        }
        self.take_frames();
        Ok(Some(Batch {
            bytes: self.umem.held(),
            frames: &self.frames,
            interfaces: std::slice::from_ref(&self.interface),
        }))
    }

    /// Reads the kernel's counts, and keeps the last ones when the kernel cannot be queried any longer.
    fn counters(&mut self) -> SourceCounters {
        if let Ok(statistics) = self.socket.statistics() {
            self.counters.kernel_drops = statistics.rx_dropped + statistics.rx_ring_full;
        }
        self.counters
    }
}

impl Member {
    /// Opens a socket that is bound to `queue` and receives nothing yet.
    fn open(options: &XdpOptions, index: i32, queue: u32, queue_count: u32) -> Result<Member, LiveError> {
        let name = &options.interface;
        let at = |step| move |source| LiveError::Kernel { interface: name.clone(), step, source };
        let watch = PacketSocket::open().map_err(|source| denied_or(name, "open a packet socket", source))?;
        watch.bind_to_watch(index).map_err(at("watch the interface"))?;
        if options.promiscuous {
            watch.enter_promiscuous_mode(index).map_err(at("enter promiscuous mode"))?;
        }
        let socket = XdpSocket::open().map_err(|source| denied_or(name, "open an XDP socket", source))?;
        let registered = Umem::register(&socket, options.chunk_size.0 as u32, options.chunk_count());
        let umem = registered.map_err(|source| match source.raw_os_error() {
            Some(libc::ENOBUFS) => LiveError::LockedMemory {
                interface: name.clone(),
                needed: Bytes(options.queue_memory().0 * u64::from(queue_count)),
            },
            _ => at("register memory for frames")(source),
        })?;
        if let Some(busy_poll) = options.busy_poll {
            socket.prefer_busy_poll(busy_poll).map_err(at("prefer busy polling"))?;
        }
        bind_when_free(&socket, index, queue).map_err(|source| match source.raw_os_error() {
            Some(libc::EBUSY) => LiveError::XdpInUse { interface: name.clone() },
            _ => at("bind to a receive queue")(source),
        })?;
        Ok(Member { socket, umem, watch })
    }
}

/// Returns the version of the running kernel if it is too old.
pub(crate) fn old_kernel() -> Option<KernelVersion> {
    KernelVersion::running().filter(|version| *version < MIN_KERNEL)
}

/// Binds to a queue. The kernel frees the queue of a closed socket later, in the background.
fn bind_when_free(socket: &XdpSocket, index: i32, queue: u32) -> io::Result<()> {
    let start = Instant::now();
    loop {
        match socket.bind(index, queue) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && start.elapsed() < RELEASE_TIMEOUT => {
                thread::sleep(RELEASE_TIMEOUT / 100);
            }
            result => return result,
        }
    }
}

/// Attaches the program in the mode of the options.
fn attach(redirect: &Redirect, options: &XdpOptions, index: i32) -> Result<Attachment, LiveError> {
    let name = &options.interface;
    let mut result = redirect.attach(index, options.mode.unwrap_or(XdpMode::Native));
    let is_final =
        |error: &io::Error| matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST | libc::EPERM));
    if options.mode.is_none() && result.as_ref().is_err_and(|error| !is_final(error)) {
        result = redirect.attach(index, XdpMode::Generic);
    }
    result.map_err(|source| match source.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) => LiveError::XdpInUse { interface: name.clone() },
        _ => denied_or(name, "attach the XDP program", source),
    })
}

/// Returns the error of a missing permission, or of the failed `step`.
fn denied_or(name: &str, step: &'static str, source: io::Error) -> LiveError {
    let interface = name.to_owned();
    match source.kind() {
        io::ErrorKind::PermissionDenied => {
            LiveError::NoXdpPermission { interface, program: error::program() }
        }
        _ => LiveError::Kernel { interface, step, source },
    }
}
