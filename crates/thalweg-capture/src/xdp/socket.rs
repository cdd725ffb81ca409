//! An XDP socket (`Documentation/networking/af_xdp.rst`): its system calls, each behind a typed function.

#![expect(unsafe_code, reason = "system calls that take pointers")]

use std::io;
use std::os::fd::RawFd;

use thalweg_linux::socket::{Plain, Readiness, Socket, check};
use thalweg_wire::{Bytes, Nanos};

use super::options::BusyPoll;

/// The completion ring is for sending: the kernel requires one, but it stays empty.
const COMPLETION_RING_LENGTH: u32 = 1;

/// An XDP socket, which receives nothing until it is bound and in the map of a program that redirects to it.
#[derive(Debug)]
pub(crate) struct XdpSocket {
    socket: Socket,
}

impl XdpSocket {
    /// Opens a socket. Needs CAP_NET_RAW.
    pub(crate) fn open() -> io::Result<XdpSocket> {
        Ok(XdpSocket { socket: Socket::open(libc::AF_XDP, libc::SOCK_RAW, 0)? })
    }

    /// Registers the socket's memory.
    ///
    /// # Safety
    /// The kernel writes to the `length` bytes at `start` from when the socket is bound until it is gone. They must
    /// be of a mapping, and no code may read or write those that the fill ring lends to the kernel.
    pub(super) unsafe fn register_memory(
        &self,
        start: *mut u8,
        length: u64,
        chunk_size: u32,
    ) -> io::Result<()> {
        let memory = libc::xdp_umem_reg {
            addr: start as u64,
            len: length,
            chunk_size,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        self.set(libc::XDP_UMEM_REG, &memory)
    }

    /// Creates an RX and a fill ring of `entry_count` entries, a power of two, and the completion ring.
    pub(super) fn make_rings(&self, entry_count: u32) -> io::Result<()> {
        self.set(libc::XDP_UMEM_FILL_RING, &entry_count)?;
        self.set(libc::XDP_UMEM_COMPLETION_RING, &COMPLETION_RING_LENGTH)?;
        self.set(libc::XDP_RX_RING, &entry_count)
    }

    /// Returns the layout of each ring.
    pub(super) fn ring_offsets(&self) -> io::Result<libc::xdp_mmap_offsets> {
        self.socket.get(libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)
    }

    /// Lets reads of the socket process the queue's packets themselves, instead of the kernel's interrupts.
    pub(super) fn prefer_busy_poll(&self, busy_poll: BusyPoll) -> io::Result<()> {
        let set = |option, value: u32| self.socket.set(libc::SOL_SOCKET, option, &value);
        set(libc::SO_PREFER_BUSY_POLL, 1)?;
        set(libc::SO_BUSY_POLL, busy_poll.time.0.div_ceil(1000) as u32)?;
        set(libc::SO_BUSY_POLL_BUDGET, busy_poll.budget.into())
    }

    /// Binds to a receive queue of an interface, for frames that the kernel copies, into several chunks where one is
    /// too small.
    pub(super) fn bind(&self, index: i32, queue: u32) -> io::Result<()> {
        let mut address = libc::sockaddr_xdp::zero();
        address.sxdp_family = libc::AF_XDP as u16;
        address.sxdp_flags = libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP | libc::XDP_USE_SG;
        address.sxdp_ifindex = index as u32;
        address.sxdp_queue_id = queue;
        self.socket.bind(&address)
    }

    /// Waits until a frame is available, for at most `timeout` (rounded up to milliseconds).
    pub(super) fn wait(&self, timeout: Nanos) -> io::Result<Readiness> {
        self.socket.wait(timeout)
    }

    /// Wakes the kernel: it processes the queue if the socket prefers busy polling, and fills chunks again if it had
    /// stopped.
    pub(super) fn wake_kernel(&self) -> io::Result<()> {
        match self.socket.receive(&mut [], libc::MSG_DONTWAIT) {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                // Nothing available, or the interface is down or gone, which the caller handles.
                Some(libc::EAGAIN | libc::EBUSY | libc::EINTR | libc::ENETDOWN | libc::ENXIO) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Returns the counts since the socket was opened.
    pub(super) fn statistics(&self) -> io::Result<libc::xdp_statistics> {
        self.socket.get(libc::SOL_XDP, libc::XDP_STATISTICS)
    }

    fn set<T>(&self, option: i32, value: &T) -> io::Result<()> {
        self.socket.set(libc::SOL_XDP, option, value)
    }

    pub(super) fn raw(&self) -> RawFd {
        self.socket.raw()
    }
}

/// Returns how much memory this process may lock without CAP_IPC_LOCK (RLIMIT_MEMLOCK).
pub(crate) fn locked_memory_limit() -> Bytes {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to one limit, which the kernel fills.
    match check(unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) }) {
        Ok(()) => Bytes(limit.rlim_cur),
        Err(_) => Bytes(0),
    }
}
