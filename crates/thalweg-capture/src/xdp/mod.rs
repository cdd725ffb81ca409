//! Packets of a network interface through AF_XDP (the kernel's `Documentation/networking/af_xdp.rst`;
//! Høiland-Jørgensen et al., "The eXpress Data Path", CoNEXT 2018): frames go from the driver to this process past the
//! network stack.
//!
//! A program of six instructions (`redirect.rs`) runs for each frame where the driver receives it and hands it
//! to the socket of its receive queue. The kernel copies it, whole, into a chunk of memory that the socket has lent
//! it; chunks that follow one another become a [`Batch`] that borrows them, and are lent again with the next call.
//! No copy and no allocation here, and at most one system call a batch: none as long as frames wait.
//!
//! **Frames are taken away.** What comes in through the interface no longer reaches this host's own network stack, nor
//! a bridge that the interface is a port of: this is for ports that bring nothing but a mirror's packets.
//! [`crate::choose`] chooses so.
//!
//! **What is seen.** Incoming frames alone, each as the driver received it, before GRO. A network card that takes VLAN
//! tags off frames does so before: switch that off where tags matter (`ethtool -K eth0 rxvlan off`). A frame that does
//! not fit in a chunk is dropped and counted.
//!
//! **Time.** AF_XDP tells none. The wall clock is read once a batch, when the batch is taken: a frame's time is never
//! earlier than its arrival, and later by as long as it has waited to be read. That is the wake-up of a thread (some
//! 10 us) as long as the reader keeps up, and else as much as it is behind, which the memory bounds: 33 ms at a million
//! packets/s by default. Frames of a batch, [`LARGEST_BATCH`] at most, have one time.
//!
//! **What is lost is counted.** [`SourceCounters::kernel_drops`] are the frames that found no free chunk or did not fit
//! in one (`rx_dropped` and `rx_ring_full` of XDP_STATISTICS; `rx_fill_ring_empty_descs` are some of the former again).
//! What is lost before the program runs, in the card or in the ring of a veth pair, the kernel counts elsewhere:
//! `ip -s -s link`, for a veth pair as `dropped` of the sending end.
//!
//! **Several workers.** [`XdpSource::open_group`] gives one source for each receive queue. Which queue a frame comes to
//! is the card's choice (RSS), which may differ for both directions of a flow; the number of queues is set by
//! `ethtool -L`.
//!
//! **An interface that goes down** is waited for and followed when it comes up again; one that is deleted, or moved to
//! another network namespace, ends the source with [`LiveError::InterfaceGone`] after everything was handed on.
//!
//! **Filters** run in this process, on whole frames ([`SourceCounters::filtered`]).
//!
//! Needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF while opening and nothing afterwards, and either CAP_IPC_LOCK or the
//! allowance to lock as much memory; Linux 5.9 or newer. The program is attached through a link that vanishes with the
//! last source of the group, or with the process, however that ends. Memory: [`XdpOptions::memory_size`] for each
//! queue, which is not swapped, and 24 bytes a chunk for the rings.

mod options;
mod redirect;
mod ring;
mod socket;
mod umem;

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use thalweg_linux::socket::Readiness;
use thalweg_wire::{Batch, Bytes, FrameRef, Interface, LinkType, Source, SourceCounters, Timestamp};

pub use options::{BusyPoll, XdpMode, XdpOptions};

use crate::filter::Filter;
use crate::live::options::PATIENCE;
use crate::live::socket::PacketSocket;
use crate::live::{LinkState, LiveError, error, interface};
use redirect::{Attachment, Redirect};
pub(crate) use socket::{XdpSocket, locked_memory_limit};
use umem::Umem;

/// Most frames of a batch. Their headers lie in a core's level 1 cache, and no frame shares its time with one that
/// came long before it.
pub const LARGEST_BATCH: u32 = 256;

/// How long the queue of a closed socket may stay taken.
const LONGEST_RELEASE: Duration = Duration::from_secs(1);

/// The packets of one receive queue of an interface.
#[derive(Debug)]
pub struct XdpSource {
    // Dropped in this order: nothing is redirected any more when the socket closes.
    attachment: Arc<Attachment>,
    socket: XdpSocket,
    umem: Umem,
    /// Tells what becomes of the interface, and keeps it promiscuous.
    watch: PacketSocket,
    queue: u32,
    interface: Interface,
    link_state: LinkState,
    filter: Option<Filter>,
    busy_poll: Option<BusyPoll>,
    frames: Vec<FrameRef>,
    counters: SourceCounters,
}

/// A queue's socket before frames flow.
struct Member {
    socket: XdpSocket,
    umem: Umem,
    watch: PacketSocket,
}

impl XdpSource {
    /// Opens an interface: one source for each of its receive queues, in their order. Frames are captured from
    /// when all are ready.
    ///
    /// # Errors
    /// See [`LiveError`].
    pub fn open_group(options: &XdpOptions) -> Result<Vec<XdpSource>, LiveError> {
        options.validate()?;
        let name = &options.interface;
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
        // Before there are sockets, so that all queues begin at once; until then frames pass.
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
            frames: Vec::with_capacity(LARGEST_BATCH as usize),
            counters: SourceCounters::default(),
        }
    }

    /// The interface's name when it was opened.
    pub fn name(&self) -> &str {
        self.interface.name.as_deref().unwrap_or_default()
    }

    /// Which receive queue of the interface, from 0.
    pub fn queue(&self) -> u32 {
        self.queue
    }

    /// Where frames are taken from the interface.
    pub fn mode(&self) -> XdpMode {
        self.attachment.mode()
    }

    /// Whether packets can arrive, as of the last call of [`next_batch`](Source::next_batch); a change is
    /// noted within about 100 ms.
    pub fn link_state(&self) -> LinkState {
        self.link_state
    }

    /// Notes the link state without waiting for a frame: for who reads several sources, each only when frames wait at it.
    /// Of an interface that is gone [`next_batch`](Source::next_batch) hands on what is left, and then says so.
    pub fn note_link_state(&mut self) {
        self.link_state = interface::state_of(&self.watch);
    }

    /// Whether a frame waits beyond the last batch: the next one comes without waiting.
    pub fn is_ready(&self) -> bool {
        self.umem.is_ready()
    }

    /// Gives the last batch back, so that the descriptor that is returned can be waited for.
    pub(crate) fn release_batch(&mut self) -> RawFd {
        self.umem.give_back();
        self.frames.clear();
        self.socket.raw()
    }

    /// Waits until a frame is there, for the patience at most.
    fn wait_for_frames(&mut self) -> Result<(), LiveError> {
        let waited = if self.busy_poll.is_some() { self.poll_busily() } else { self.socket.wait(PATIENCE) };
        let readiness = waited.map_err(|source| self.failed("wait for packets", source))?;
        if readiness != Readiness::Ready || self.link_state != LinkState::Up {
            self.note_link_state();
        }
        // The kernel tells that an interface is gone after its last frame was processed.
        if self.link_state == LinkState::Gone && !self.umem.is_ready() {
            return Err(LiveError::InterfaceGone { name: self.name().to_owned() });
        }
        Ok(())
    }

    /// Processes the queue until a frame is there, for the patience at most.
    fn poll_busily(&self) -> io::Result<Readiness> {
        let start = Instant::now();
        loop {
            self.socket.look()?;
            if self.umem.is_ready() {
                return Ok(Readiness::Ready);
            }
            if start.elapsed().as_nanos() >= u128::from(PATIENCE.0) {
                return Ok(Readiness::TimedOut);
            }
        }
    }

    /// Takes the frames that wait.
    fn take_frames(&mut self) {
        let waiting = self.umem.waiting().min(LARGEST_BATCH);
        if waiting == 0 {
            return;
        }
        // After it is known how many wait, so that no frame's time is earlier than its arrival.
        let time = now();
        let (frames, snap_length) = (&mut self.frames, self.interface.snap_length);
        self.umem.hold(waiting, |place| {
            frames.push(FrameRef {
                time,
                offset: place.offset,
                captured_length: place.length.min(snap_length),
                original_length: place.length,
                interface: 0,
            });
        });
        if let Some(filter) = &self.filter {
            let held = self.umem.held();
            let taken = frames.len();
            // The filter sees the frame whole, as it is in memory.
            frames.retain(|frame| {
                let whole = &held[frame.offset..][..frame.original_length as usize];
                filter.matches(whole, frame.original_length)
            });
            self.counters.filtered += (taken - frames.len()) as u64;
        }
        self.counters.frames += frames.len() as u64;
    }

    fn failed(&self, step: &'static str, source: io::Error) -> LiveError {
        LiveError::Kernel { interface: self.name().to_owned(), step, source }
    }
}

impl Source for XdpSource {
    type Error = LiveError;

    /// The frames that wait, [`LARGEST_BATCH`] at most; see [`Source::next_batch`]. Empty also when a signal
    /// arrived, and when the interface went down.
    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, LiveError> {
        self.umem.give_back();
        self.frames.clear();
        if !self.umem.is_ready() {
            self.wait_for_frames()?;
        } else if self.umem.needs_wakeup() {
            self.socket.look().map_err(|source| self.failed("wake the kernel", source))?;
        }
        self.take_frames();
        Ok(Some(Batch {
            bytes: self.umem.held(),
            frames: &self.frames,
            interfaces: std::slice::from_ref(&self.interface),
        }))
    }

    /// The kernel's counts are read here, and kept even when the kernel cannot be asked any more.
    fn counters(&mut self) -> SourceCounters {
        if let Ok(statistics) = self.socket.statistics() {
            self.counters.kernel_drops = statistics.rx_dropped + statistics.rx_ring_full;
        }
        self.counters
    }
}

impl Member {
    /// A socket that is bound to `queue`, and gets nothing yet.
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
                needed: Bytes(options.memory_of_a_queue().0 * u64::from(queue_count)),
            },
            _ => at("register memory for frames")(source),
        })?;
        if let Some(busy_poll) = options.busy_poll {
            socket.prefer_busy_poll(busy_poll).map_err(at("prefer busy polling"))?;
        }
        bind_when_free(&socket, index, queue).map_err(|source| match source.raw_os_error() {
            Some(libc::EBUSY) => LiveError::XdpTaken { interface: name.clone() },
            _ => at("bind to a receive queue")(source),
        })?;
        Ok(Member { socket, umem, watch })
    }
}

/// Binds to a queue. The kernel frees the queue of a socket that was closed a little later, in the background.
fn bind_when_free(socket: &XdpSocket, index: i32, queue: u32) -> io::Result<()> {
    let start = Instant::now();
    loop {
        match socket.bind(index, queue) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && start.elapsed() < LONGEST_RELEASE => {
                thread::sleep(LONGEST_RELEASE / 100);
            }
            result => return result,
        }
    }
}

/// Attaches the program as the options say.
fn attach(redirect: &Redirect, options: &XdpOptions, index: i32) -> Result<Attachment, LiveError> {
    let name = &options.interface;
    let mut result = redirect.attach(index, options.mode.unwrap_or(XdpMode::Native));
    let is_final =
        |error: &io::Error| matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST | libc::EPERM));
    if options.mode.is_none() && result.as_ref().is_err_and(|error| !is_final(error)) {
        result = redirect.attach(index, XdpMode::Generic);
    }
    result.map_err(|source| match source.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) => LiveError::XdpTaken { interface: name.clone() },
        _ => denied_or(name, "attach the XDP program", source),
    })
}

/// The missing permission, or that `step` failed.
fn denied_or(name: &str, step: &'static str, source: io::Error) -> LiveError {
    let interface = name.to_owned();
    match source.kind() {
        io::ErrorKind::PermissionDenied => {
            LiveError::NoXdpPermission { interface, program: error::program() }
        }
        _ => LiveError::Kernel { interface, step, source },
    }
}

/// The wall clock, as the kernel reads it for the frames of a packet socket.
fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(since_epoch.as_nanos() as u64)
}
