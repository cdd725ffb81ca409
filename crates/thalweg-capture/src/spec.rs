//! Specifies a capture: the argument of [`open`](crate::open()).

use std::num::NonZeroUsize;
use std::path::PathBuf;

use thalweg_linux::{Namespace, NamespaceError};
use thalweg_wire::Bytes;

use crate::backend::Backend;
use crate::dpdk::DpdkOptions;
use crate::live::LiveOptions;
use crate::xdp::{BusyPoll, XdpMode, XdpOptions};

/// Specifies a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// A capture file.
    File {
        /// The path; `-` is standard input.
        path: PathBuf,
        /// A capture filter in tcpdump's language ([`crate::filter`]).
        filter: Option<String>,
        /// How a plain regular file is read.
        access: FileAccess,
    },
    /// A network interface.
    Interface(InterfaceSpec),
    /// A DPDK port.
    Dpdk {
        /// Device, snap length and so on.
        options: DpdkOptions,
        /// How many sources share the packets: at most one for each receive queue.
        readers: Readers,
    },
}

/// How a plain regular file is read. Compressed files and streams are always read into a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileAccess {
    /// Mapped into memory, without a copy. If another process shortens the file meanwhile, the kernel ends this process.
    #[default]
    Mapped,
    /// Read into a buffer, for reading that takes hours. A file that another process shortens meanwhile ends with an error.
    Buffered,
}

/// How to capture from a network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceSpec {
    /// Name, snap length, memory and so on, for any backend. The options for blocks apply to AF_PACKET only.
    pub options: LiveOptions,
    /// The network namespace of the interface. Default `None`: that of the calling thread. Sources stay there, even
    /// if other threads read them.
    pub namespace: Option<Namespace>,
    /// The backend. Default `None`: AF_XDP if this host does not use the interface, otherwise AF_PACKET, see
    /// [`choose`](crate::choose).
    pub backend: Option<Backend>,
    /// How many sources share the packets. Default [`Readers::One`].
    pub readers: Readers,
    /// Where AF_XDP takes frames from the interface. Default `None`: native, otherwise generic.
    pub xdp_mode: Option<XdpMode>,
    /// The memory for frames with AF_XDP, which replaces the ring. Default `None`: the size of the ring.
    pub frame_memory: Option<Bytes>,
    /// The space for one frame with AF_XDP: 2048 or 4096 bytes. Default 2048.
    pub chunk_size: Bytes,
    /// Whether reads through AF_XDP process the receive queue themselves. Default `None`: the kernel does.
    pub busy_poll: Option<BusyPoll>,
}

/// How many sources share the packets of an interface or a DPDK port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// One source. AF_XDP then needs an interface with one receive queue.
    One,
    /// This many through AF_PACKET; through AF_XDP one for each receive queue, regardless of this number; through DPDK
    /// this many, but at most one for each receive queue.
    Workers(NonZeroUsize),
}

impl Spec {
    /// Specifies a capture file without a filter.
    pub fn file(path: impl Into<PathBuf>) -> Spec {
        Spec::File { path: path.into(), filter: None, access: FileAccess::Mapped }
    }

    /// Specifies an interface, with the defaults of [`InterfaceSpec`].
    pub fn interface(name: impl Into<String>) -> Spec {
        Spec::Interface(InterfaceSpec::new(LiveOptions::new(name)))
    }
}

impl InterfaceSpec {
    /// Creates the defaults for the interface of `options`.
    pub fn new(options: LiveOptions) -> InterfaceSpec {
        let xdp = XdpOptions::new("");
        InterfaceSpec {
            options,
            namespace: None,
            backend: None,
            readers: Readers::One,
            xdp_mode: xdp.mode,
            frame_memory: None,
            chunk_size: xdp.chunk_size,
            busy_poll: xdp.busy_poll,
        }
    }

    /// Returns the interface's name.
    pub fn name(&self) -> &str {
        &self.options.interface
    }

    /// Returns the number of sources for AF_PACKET.
    pub(crate) fn workers(&self) -> NonZeroUsize {
        self.readers.count()
    }

    /// Returns the options for AF_XDP.
    pub(crate) fn xdp_options(&self) -> XdpOptions {
        XdpOptions {
            memory_size: self.frame_memory.unwrap_or(self.options.ring_size),
            chunk_size: self.chunk_size,
            mode: self.xdp_mode,
            busy_poll: self.busy_poll,
            ..XdpOptions::from(&self.options)
        }
    }

    /// Runs `work` in the interface's network namespace.
    pub(crate) fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
        match &self.namespace {
            None => Ok(work()),
            Some(namespace) => namespace.within(work),
        }
    }
}

impl Readers {
    /// Returns the number of sources.
    pub(crate) fn count(self) -> NonZeroUsize {
        match self {
            Readers::One => NonZeroUsize::MIN,
            Readers::Workers(workers) => workers,
        }
    }
}

impl From<InterfaceSpec> for Spec {
    fn from(spec: InterfaceSpec) -> Spec {
        Spec::Interface(spec)
    }
}
