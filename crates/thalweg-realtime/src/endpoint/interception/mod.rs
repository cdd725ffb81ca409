//! Takes the packets that a host sends by an interface, and sends those that are released.
//!
//! ```text
//!   application ──► IP ──► interface's egress ──┐ redirected        ┌──► interface's queue ──► wire
//!                                               └──► TAP ──► process ┘ with the mark: passes
//! ```
//!
//! An eBPF program at the interface's egress redirects IP packets to a TAP interface, which the endpoint reads
//! (`egress.bpf.c`). Addresses, routes and neighbours of the interface stay as they are. The kernel cuts segments (TSO, UDP
//! GSO) and computes checksums on the way to the TAP interface, because that has no offloads. The endpoint sends by a packet
//! socket with a firewall mark that the program knows.
//!
//! **The kernel undoes all of it when the process ends**, however it ends: the program is attached by a link (TCX, Linux 6.6), and
//! both the link and the TAP interface end with the process. Packets that are held then are lost.

mod written;

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, RawFd};

use thalweg_linux::bpf::object::Loaded;
use thalweg_linux::bpf::{Link, Map, MappedArray, Object, ObjectError, PerCpuMap, Program, ProgramKind};
use thalweg_linux::name_lock::{LockError, NameLock};
use thalweg_linux::netdevice::interface_names;
use thalweg_linux::socket::Socket;
use thalweg_linux::tc::TokenBucket;
use thalweg_linux::tun::Tap;
use thalweg_linux::{KernelVersion, Namespace, NamespaceError, Netlink, NetlinkError};
use thalweg_wire::nearest::nearest;
use thalweg_wire::{BitRate, Bytes, Nanos};
use thiserror::Error;

pub(super) use written::WrittenBytes;

/// The program, compiled from `egress.bpf.c`.
const EGRESS: &[u8] = include_bytes!("egress.bpf.o");

/// The firewall mark of what the endpoint sends: "thal" in ASCII. Packets with it pass endpoints at once.
pub const MARK: u32 = 0x7468_616c;

/// The name of the TAP interface, with the first free number.
const TAP_NAME: &str = "thalweg%d";

/// The packets that the TAP interface holds until the endpoint reads them.
const TAP_QUEUE: u32 = 8_192;

/// The largest MTU in bytes.
pub const MAX_MTU: u32 = 9_216;

/// The longest frame in bytes: Ethernet header and eight VLAN tags before the largest packet.
pub(super) const MAX_FRAME: usize = MAX_MTU as usize + 14 + 8 * 4;

/// The packets that wait at the rate of the link, as many as at a real interface by default (`txqueuelen`).
const LINK_QUEUE: u64 = 1_000;

/// What may pass at once after a pause, as time at the rate of the link: the kernel may be late by so much.
const LINK_BURST: Nanos = Nanos::from_millis(1);

/// Bytes of an Ethernet frame beyond its payload: its header, which queues count; preamble, frame check sequence and gap, which they do not.
const HEADER: u32 = 14;
const FRAMING: u16 = 24;

/// The size of the send buffer in bytes.
const SEND_BUFFER: u32 = 16 << 20;

/// The first kernel with TCX.
const MIN_KERNEL: KernelVersion = KernelVersion { major: 6, minor: 6 };

/// ARPHRD_ETHER of if_arp.h.
const ETHERNET: u16 = 1;
/// IFF_UP of if.h.
const UP: i32 = 1;

/// Why an interface cannot be intercepted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InterceptionError {
    /// The interface does not exist.
    #[error(
        "no interface {name:?}{}; existing: {}",
        nearest.as_ref().map_or_else(String::new, |name| format!(", did you mean {name:?}?")),
        existing.join(", ")
    )]
    NoSuchInterface {
        /// The name.
        name: String,
        /// The most similar name.
        nearest: Option<String>,
        /// All interfaces of the namespace.
        existing: Vec<String>,
    },
    /// The frames of the interface have no Ethernet header.
    #[error("{name} is no Ethernet interface (type {hardware_type}): only those can be intercepted")]
    NotEthernet {
        /// The interface.
        name: String,
        /// Its `ARPHRD_` type.
        hardware_type: u16,
    },
    /// The MTU is too large.
    #[error(
        "the MTU of {name} is {mtu}: expected at most {MAX_MTU}; set it with: ip link set {name} mtu 9000"
    )]
    Mtu {
        /// The interface.
        name: String,
        /// Its MTU in bytes.
        mtu: u32,
    },
    /// Another endpoint runs on the interface.
    #[error("{name} is {source}: another endpoint runs on it")]
    InUse {
        /// The interface.
        name: String,
        /// The process.
        source: LockError,
    },
    /// The kernel is too old.
    #[error("the kernel is {version}: interception needs Linux 6.6 or newer")]
    OldKernel {
        /// The running one.
        version: KernelVersion,
    },
    /// A privilege is missing.
    #[error(
        "cannot {step} for {name}: missing privileges; run as root, or with CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF"
    )]
    Denied {
        /// The interface.
        name: String,
        /// What failed, to follow the word "cannot".
        step: &'static str,
    },
    /// The kernel refuses a step.
    #[error("cannot {step} for {name}: {source}")]
    Kernel {
        /// The interface.
        name: String,
        /// What failed, to follow the word "cannot".
        step: &'static str,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The eBPF program cannot be loaded.
    #[error("cannot load the program that intercepts packets of {name}: {source}")]
    Program {
        /// The interface.
        name: String,
        /// The reason.
        source: ObjectError,
    },
    /// The TAP interface cannot be set up.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// The network namespace cannot be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
}

/// Whether the interface carries packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkState {
    Up,
    Down,
    /// It was deleted, or moved to another namespace.
    Gone,
}

/// Packets that passed the interface without being intercepted, or were lost before they were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KernelCounters {
    pub(super) not_ip: u64,
    pub(super) neighbour_discovery: u64,
    /// The ring of the TAP interface was full.
    pub(super) overflow: u64,
    /// The queue before it was full, which has the rate of the emulated link.
    pub(super) queue_full: u64,
}

/// What is intercepted, and how.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InterceptionOptions {
    /// For [`take_written`](Interception::take_written).
    pub(super) notes_written: bool,
    /// The rate of the emulated link of the host.
    pub(super) link_rate: Option<BitRate>,
}

/// An interface that is intercepted.
#[derive(Debug)]
pub(super) struct Interception {
    // Dropped first: nothing is redirected any longer when the TAP interface goes.
    link: Option<Link>,
    _program: Program,
    pub(super) tap: Tap,
    tap_index: u32,
    pub(super) sender: Socket,
    name: String,
    index: i32,
    ioctls: Socket,
    netlink: Netlink,
    passed: PerCpuMap<4, 16>,
    written: Option<WrittenBytes>,
    link_rate: Option<BitRate>,
    /// So that there is one endpoint per interface.
    _lock: NameLock,
}

impl Interception {
    /// Intercepts an interface of a namespace, by default that of the calling thread.
    ///
    /// # Errors
    /// See [`InterceptionError`]. Then nothing is changed.
    pub(super) fn start(
        interface: &str,
        namespace: Option<&Namespace>,
        options: InterceptionOptions,
    ) -> Result<Interception, InterceptionError> {
        match namespace {
            None => Interception::start_here(interface, options),
            Some(namespace) => namespace.within(|| Interception::start_here(interface, options))?,
        }
    }

    fn start_here(
        interface: &str,
        InterceptionOptions { notes_written, link_rate }: InterceptionOptions,
    ) -> Result<Interception, InterceptionError> {
        let failed = |step| move |source| failed(interface, step, source);
        if let Some(version) = KernelVersion::running().filter(|version| *version < MIN_KERNEL) {
            return Err(InterceptionError::OldKernel { version });
        }
        let ioctls = Socket::for_ioctls().map_err(failed("open a socket"))?;
        let index = check_interface(&ioctls, interface)?;
        let lock = lock(interface, index)?;
        let netlink = Netlink::open().map_err(failed("open a netlink socket"))?;
        let (tap, tap_index) = create_tap(interface, &netlink)?;
        if let Some(rate) = link_rate {
            let mtu = ioctls.interface_mtu(interface).map_err(failed("read the MTU"))?;
            netlink.set_token_bucket(tap_index, &link(rate, mtu))?;
        }
        let (program, mut maps) = load(interface, notes_written)?;
        let mut take = |map: &str| maps.remove(map).expect("the object file has these maps");
        let settings = Map::<4, 8>::try_from(take("settings"));
        let mut settings = settings.map_err(failed("open the map settings"))?;
        let (tap_word, mark_word) = (tap_index.to_ne_bytes(), MARK.to_ne_bytes());
        let value = *[tap_word, mark_word].as_flattened().first_chunk().expect("eight bytes");
        settings.set(&[0; 4], &value).map_err(failed("write the map settings"))?;
        let passed = take("passed").try_into().map_err(failed("open the map passed"))?;
        let written = match notes_written {
            false => None,
            true => Some(WrittenBytes::new(
                MappedArray::try_from(take("written")).map_err(failed("open the map written"))?,
            )),
        };
        let sender = Socket::frames_by(index, MARK, SEND_BUFFER).map_err(failed("open a packet socket"))?;
        let link = program.attach_to_egress(index).map_err(failed("attach the program"))?;
        Ok(Interception {
            link: Some(link),
            _program: program,
            tap,
            tap_index,
            sender,
            name: interface.to_owned(),
            index,
            ioctls,
            netlink,
            passed,
            written,
            link_rate,
            _lock: lock,
        })
    }

    /// Intercepts nothing from now on. What has been redirected can still be read.
    pub(super) fn stop(&mut self) {
        self.link = None;
    }

    /// Whether the interface is up, even if it was renamed.
    pub(super) fn state(&mut self) -> LinkState {
        let Ok(name) = self.ioctls.interface_name(self.index) else { return LinkState::Gone };
        let flags = self.ioctls.interface_flags(&name);
        self.name = name;
        match flags {
            Ok(flags) if flags & UP != 0 => LinkState::Up,
            Ok(_) => LinkState::Down,
            Err(_) => LinkState::Gone,
        }
    }

    /// Lets the queue of the link hold frames of another MTU.
    pub(super) fn set_mtu(&self, mtu: u32) {
        if let Some(rate) = self.link_rate {
            // Without it, longer frames are dropped and counted.
            let _ = self.netlink.set_token_bucket(self.tap_index, &link(rate, mtu));
        }
    }

    /// The MTU in bytes; `None` if the interface is gone.
    pub(super) fn mtu(&self) -> Option<u32> {
        self.ioctls.interface_mtu(&self.name).ok()
    }

    /// What the kernel has counted; 0 for what cannot be read.
    pub(super) fn counters(&self) -> KernelCounters {
        let mut counters = KernelCounters::default();
        for value in self.passed.get(&[0; 4]).ok().flatten().unwrap_or_default() {
            let [not_ip, neighbour_discovery] =
                [0, 8].map(|at| u64::from_ne_bytes(*value[at..].first_chunk().expect("16 bytes")));
            counters.not_ip += not_ip;
            counters.neighbour_discovery += neighbour_discovery;
        }
        counters.overflow = self.netlink.traffic(self.tap_index).map_or(0, |traffic| traffic.sent_dropped);
        if self.link_rate.is_some() {
            let queues = self.netlink.queue_counters().unwrap_or_default();
            counters.queue_full = queues.get(&self.tap_index).map_or(0, |queue| queue.dropped_packets);
        }
        counters
    }

    /// How far applications have written, if it is noted.
    pub(super) fn take_written(&mut self) -> Option<WrittenBytes> {
        self.written.take()
    }

    /// The descriptor of the TAP interface.
    pub(super) fn raw(&self) -> RawFd {
        self.tap.as_raw_fd()
    }
}

fn failed(interface: &str, step: &'static str, source: io::Error) -> InterceptionError {
    let name = interface.to_owned();
    match source.kind() {
        io::ErrorKind::PermissionDenied => InterceptionError::Denied { name, step },
        _ => InterceptionError::Kernel { name, step, source },
    }
}

/// Returns the index of an interface that can be intercepted.
fn check_interface(ioctls: &Socket, name: &str) -> Result<i32, InterceptionError> {
    let index = ioctls.interface_index(name).map_err(|_| {
        let existing = interface_names();
        let nearest = nearest(name, existing.iter().map(String::as_str)).map(str::to_owned);
        InterceptionError::NoSuchInterface { name: name.to_owned(), nearest, existing }
    })?;
    let failed = |step| move |source| failed(name, step, source);
    let hardware_type = ioctls.hardware_type(name).map_err(failed("read the hardware type"))?;
    if hardware_type != ETHERNET {
        return Err(InterceptionError::NotEthernet { name: name.to_owned(), hardware_type });
    }
    let mtu = ioctls.interface_mtu(name).map_err(failed("read the MTU"))?;
    match mtu <= MAX_MTU {
        true => Ok(index),
        false => Err(InterceptionError::Mtu { name: name.to_owned(), mtu }),
    }
}

/// Reserves the interface.
fn lock(interface: &str, index: i32) -> Result<NameLock, InterceptionError> {
    NameLock::acquire(&format!("thalweg-endpoint/{index}")).map_err(|error| match error {
        LockError::System(source) => failed(interface, "reserve the interface", source),
        source @ LockError::Held { .. } => InterceptionError::InUse { name: interface.to_owned(), source },
    })
}

/// Creates the TAP interface. The host sends nothing of its own by it.
fn create_tap(interface: &str, netlink: &Netlink) -> Result<(Tap, u32), InterceptionError> {
    let tap = Tap::create(TAP_NAME).map_err(|source| failed(interface, "create a TAP interface", source))?;
    let index = netlink.interface(tap.name())?;
    let setting = format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", tap.name());
    match fs::write(setting, "1") {
        // A kernel without IPv6.
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => {}
        written => {
            written.map_err(|source| failed(interface, "disable IPv6 of the TAP interface", source))?
        }
    }
    netlink.set_queue_length(index, TAP_QUEUE)?;
    netlink.set_up(index, true)?;
    Ok((tap, index))
}

/// A queue that passes packets at the rate of a link. They have their sockets while they wait in it, so TCP sends no more to it than to the queue of a
/// real interface (TCP small queues), and UDP waits for room. In the ring of a TAP interface, packets have none.
fn link(rate: BitRate, mtu: u32) -> TokenBucket {
    let frame = Bytes((mtu + HEADER).into());
    let burst = rate.amount_in(LINK_BURST).max(Bytes(2 * frame.0));
    TokenBucket { rate, framing: FRAMING, burst, limit: Bytes(LINK_QUEUE * frame.0).max(burst) }
}

type Maps = std::collections::BTreeMap<String, thalweg_linux::bpf::AnyMap>;

fn load(interface: &str, notes_written: bool) -> Result<(Program, Maps), InterceptionError> {
    let name = if notes_written { "convey_tcp" } else { "convey" };
    let loaded = Object::read(EGRESS).and_then(|object| object.load(name, ProgramKind::Classifier));
    let Loaded { program, maps } =
        loaded.map_err(|source| InterceptionError::Program { name: interface.to_owned(), source })?;
    Ok((program, maps))
}
