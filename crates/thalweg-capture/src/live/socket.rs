//! A packet socket (packet(7)): the system calls of the capture, each behind a safe and typed function.

use std::ffi::c_int;
use std::io;
use std::os::fd::RawFd;

use thalweg_linux::socket::{Plain, Readiness, Socket};
use thalweg_wire::Nanos;

use crate::filter::Instruction;

/// A raw packet socket, which captures nothing until it is bound.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    socket: Socket,
}

impl PacketSocket {
    /// Opens a socket for no protocol, so that no packet enters before [`bind`](Self::bind).
    pub(crate) fn open() -> io::Result<PacketSocket> {
        Ok(PacketSocket { socket: Socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0)? })
    }

    /// Replaces the filter atomically, between two frames.
    pub(super) fn attach_filter(&self, program: &[Instruction]) -> io::Result<()> {
        let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        // An `Instruction` is a `sock_filter`, and the kernel only reads it.
        let filter = program.as_ptr().cast_mut().cast::<libc::sock_filter>();
        self.set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &libc::sock_fprog { len, filter })
    }

    /// Selects TPACKET_V3.
    pub(super) fn use_tpacket_v3(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V3 as c_int))
    }

    /// Selects TPACKET_V2.
    pub(super) fn use_tpacket_v2(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as c_int))
    }

    /// Reserves `length` bytes before each frame in the ring.
    pub(super) fn reserve(&self, length: u32) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_RESERVE, &length)
    }

    /// Allocates a TPACKET_V2 ring.
    pub(super) fn allocate_slots(&self, request: &libc::tpacket_req) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_RX_RING, request)
    }

    /// Allocates a TPACKET_V3 ring.
    pub(super) fn allocate_ring(&self, request: &libc::tpacket_req3) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_RX_RING, request)
    }

    /// Ignores frames that this host sends.
    pub(super) fn ignore_outgoing(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1_i32)
    }

    /// Captures the frames of all protocols of one interface from now on.
    pub(super) fn bind(&self, index: i32) -> io::Result<()> {
        self.bind_for(libc::ETH_P_ALL as u16, index)
    }

    /// Binds without capturing, to monitor the state of the interface ([`bound_index`](Self::bound_index)).
    pub(crate) fn bind_to_watch(&self, index: i32) -> io::Result<()> {
        self.bind_for(0, index)
    }

    fn bind_for(&self, protocol: u16, index: i32) -> io::Result<()> {
        let mut address = libc::sockaddr_ll::zero();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = index;
        self.socket.bind(&address)
    }

    /// Returns the index of the interface that the socket is bound to; -1 after it left the namespace.
    pub(crate) fn bound_index(&self) -> io::Result<i32> {
        Ok(self.socket.address::<libc::sockaddr_ll>()?.sll_ifindex)
    }

    /// Makes the interface accept frames for other hosts until the socket is closed.
    pub(crate) fn enter_promiscuous_mode(&self, index: i32) -> io::Result<()> {
        let membership = libc::packet_mreq {
            mr_ifindex: index,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
    }

    /// Joins the fanout group `id` of this namespace, or a new one with an id that the kernel chooses; returns the
    /// id. Members get frames by a hash of their flow. Within a group, the group decides whether outgoing frames are
    /// ignored.
    pub(super) fn join_fanout(&self, id: Option<u16>, ignore_outgoing: bool) -> io::Result<u16> {
        let mut mode = libc::PACKET_FANOUT_HASH;
        if ignore_outgoing {
            mode |= libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
        }
        if id.is_none() {
            mode |= libc::PACKET_FANOUT_FLAG_UNIQUEID;
        }
        let request = mode << 16 | u32::from(id.unwrap_or(0));
        self.set(libc::SOL_PACKET, libc::PACKET_FANOUT, &request)?;
        Ok(self.get::<u32>(libc::SOL_PACKET, libc::PACKET_FANOUT)? as u16)
    }

    /// Returns the frames received and dropped since the last call.
    pub(super) fn take_statistics(&self) -> io::Result<libc::tpacket_stats_v3> {
        self.get(libc::SOL_PACKET, libc::PACKET_STATISTICS)
    }

    /// Like [`take_statistics`](Self::take_statistics), for TPACKET_V2.
    pub(super) fn take_statistics_v2(&self) -> io::Result<libc::tpacket_stats> {
        self.get(libc::SOL_PACKET, libc::PACKET_STATISTICS)
    }

    /// Sends one frame out of the interface that the socket is bound to.
    pub(super) fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.socket.send(frame)
    }

    /// Waits until a block is ready, for at most `timeout` (rounded up to milliseconds).
    pub(super) fn wait(&self, timeout: Nanos) -> io::Result<Readiness> {
        self.socket.wait(timeout)
    }

    /// Returns the socket, to query interfaces.
    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    fn set<T>(&self, level: c_int, option: c_int, value: &T) -> io::Result<()> {
        self.socket.set(level, option, value)
    }

    fn get<T: Plain>(&self, level: c_int, option: c_int) -> io::Result<T> {
        self.socket.get(level, option)
    }

    pub(super) fn raw(&self) -> RawFd {
        self.socket.raw()
    }
}
