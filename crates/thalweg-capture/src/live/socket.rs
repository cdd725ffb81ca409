//! A packet socket (packet(7)): the system calls of the capture, each behind a safe and typed function.

#![expect(unsafe_code, reason = "system calls that take pointers")]

use std::ffi::{CStr, c_int, c_void};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use thalweg_wire::Nanos;

use crate::filter::Instruction;

/// What a wait ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    /// A block of the ring is ready.
    Block,
    /// Nothing came in time.
    Nothing,
    /// A signal arrived, or the interface went down.
    Interrupted,
}

/// A raw packet socket, which captures nothing until it is bound.
#[derive(Debug)]
pub(super) struct PacketSocket {
    descriptor: OwnedFd,
}

impl PacketSocket {
    /// Opens a socket for no protocol, so that no packet enters before [`bind`](Self::bind).
    pub(super) fn open() -> io::Result<PacketSocket> {
        // SAFETY: takes numbers only.
        let descriptor = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        check(descriptor)?;
        // SAFETY: the descriptor is open and nobody else's.
        Ok(PacketSocket { descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) } })
    }

    /// Replaces the filter, at once and between two frames.
    pub(super) fn attach_filter(&self, program: &[Instruction]) -> io::Result<()> {
        let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        // An `Instruction` is a `sock_filter`, and the kernel only reads it.
        let filter = program.as_ptr().cast_mut().cast::<libc::sock_filter>();
        self.set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &libc::sock_fprog { len, filter })
    }

    /// Chooses the third version of the ring.
    pub(super) fn use_tpacket_v3(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V3 as c_int))
    }

    /// Has `length` bytes left free before each frame in the ring.
    pub(super) fn reserve(&self, length: u32) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_RESERVE, &length)
    }

    /// Allocates the ring.
    pub(super) fn allocate_ring(&self, request: &libc::tpacket_req3) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_RX_RING, request)
    }

    /// Leaves out frames that this host sends.
    pub(super) fn ignore_outgoing(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1_i32)
    }

    /// Takes every protocol's frames of one interface from now on.
    pub(super) fn bind(&self, index: i32) -> io::Result<()> {
        // SAFETY: all-zero bytes are a valid `sockaddr_ll`.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the pointer is to an address of that length.
        check(unsafe { libc::bind(self.raw(), (&raw const address).cast(), length) })
    }

    /// The interface that the socket is bound to; -1 after it left the namespace.
    pub(super) fn bound_index(&self) -> io::Result<i32> {
        // SAFETY: all-zero bytes are a valid `sockaddr_ll`.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes to the address.
        check(unsafe { libc::getsockname(self.raw(), (&raw mut address).cast(), &mut length) })?;
        Ok(address.sll_ifindex)
    }

    /// Has the interface take frames for other hosts until the socket is closed.
    pub(super) fn enter_promiscuous_mode(&self, index: i32) -> io::Result<()> {
        let membership = libc::packet_mreq {
            mr_ifindex: index,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
    }

    /// Joins the fanout group `id` of this namespace, or a new one with an id that the kernel chooses;
    /// returns the id. Members get frames by a hash of their flow. Within a group the group decides whether
    /// outgoing frames are ignored.
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

    /// Frames taken and dropped since the last call.
    pub(super) fn take_statistics(&self) -> io::Result<libc::tpacket_stats_v3> {
        self.get(libc::SOL_PACKET, libc::PACKET_STATISTICS)
    }

    /// Waits until a block is ready, for `patience` (rounded up to milliseconds) at most.
    pub(super) fn wait(&self, patience: Nanos) -> io::Result<Readiness> {
        let mut request = libc::pollfd { fd: self.raw(), events: libc::POLLIN, revents: 0 };
        let timeout_ms = patience.0.div_ceil(1_000_000) as c_int;
        // SAFETY: the pointer is to one request.
        match check(unsafe { libc::poll(&mut request, 1, timeout_ms) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Readiness::Interrupted),
            answer => answer?,
        }
        if request.revents & libc::POLLERR != 0 {
            self.take_error()?;
            return Ok(Readiness::Interrupted);
        }
        Ok(if request.revents & libc::POLLIN != 0 { Readiness::Block } else { Readiness::Nothing })
    }

    /// Takes the pending error off the socket; that the interface is down is none.
    fn take_error(&self) -> io::Result<()> {
        match self.get::<c_int>(libc::SOL_SOCKET, libc::SO_ERROR)? {
            0 | libc::ENETDOWN => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// The index of the interface `name`; ENODEV if there is none.
    pub(super) fn interface_index(&self, name: &str) -> io::Result<i32> {
        let answer = self.ask(libc::SIOCGIFINDEX as _, request_for(name)?)?;
        // SAFETY: SIOCGIFINDEX fills this field.
        Ok(unsafe { answer.ifr_ifru.ifru_ifindex })
    }

    /// The name of the interface `index`.
    pub(super) fn interface_name(&self, index: i32) -> io::Result<String> {
        let mut request = request_for("")?;
        request.ifr_ifru.ifru_ifindex = index;
        let answer = self.ask(libc::SIOCGIFNAME as _, request)?;
        let name: Vec<u8> = answer.ifr_name.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
        Ok(String::from_utf8_lossy(&name).into_owned())
    }

    /// The `IFF_` flags of the interface `name`.
    pub(super) fn interface_flags(&self, name: &str) -> io::Result<c_int> {
        let answer = self.ask(libc::SIOCGIFFLAGS as _, request_for(name)?)?;
        // SAFETY: SIOCGIFFLAGS fills this field.
        Ok(c_int::from(unsafe { answer.ifr_ifru.ifru_flags }))
    }

    /// The `ARPHRD_` type of the interface `name`.
    pub(super) fn hardware_type(&self, name: &str) -> io::Result<u16> {
        let answer = self.ask(libc::SIOCGIFHWADDR as _, request_for(name)?)?;
        // SAFETY: SIOCGIFHWADDR fills this field.
        Ok(unsafe { answer.ifr_ifru.ifru_hwaddr }.sa_family)
    }

    fn ask(&self, what: libc::Ioctl, mut request: libc::ifreq) -> io::Result<libc::ifreq> {
        // SAFETY: each of the requests above reads and writes one `ifreq`.
        check(unsafe { libc::ioctl(self.raw(), what, &mut request) })?;
        Ok(request)
    }

    fn set<T>(&self, level: c_int, option: c_int, value: &T) -> io::Result<()> {
        let length = size_of::<T>() as libc::socklen_t;
        let value = std::ptr::from_ref(value).cast::<c_void>();
        // SAFETY: the pointer is to that many bytes, which the kernel reads.
        check(unsafe { libc::setsockopt(self.raw(), level, option, value, length) })
    }

    /// Reads an option of the plain integer fields that `T` consists of.
    fn get<T: Plain>(&self, level: c_int, option: c_int) -> io::Result<T> {
        // SAFETY: all-zero bytes are a value of a plain type.
        let mut value: T = unsafe { zeroed() };
        let mut length = size_of::<T>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes, and any bytes are a value of a plain type.
        check(unsafe { libc::getsockopt(self.raw(), level, option, (&raw mut value).cast(), &mut length) })?;
        Ok(value)
    }

    pub(super) fn raw(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

/// Types of which any bytes are a value.
///
/// # Safety
/// Integers, and structures of nothing but integers.
unsafe trait Plain {}
// SAFETY: an integer.
unsafe impl Plain for c_int {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: three integers.
unsafe impl Plain for libc::tpacket_stats_v3 {}

/// The interfaces of the calling thread's network namespace; none if they cannot be listed.
pub(super) fn interface_names() -> Vec<String> {
    let mut names = Vec::new();
    // SAFETY: takes nothing; returns null or a list that an all-zero entry ends.
    let list = unsafe { libc::if_nameindex() };
    if list.is_null() {
        return names;
    }
    let mut entry = list;
    // SAFETY: each entry up to the all-zero one is readable and its name a C string, until the list is freed.
    unsafe {
        while !(*entry).if_name.is_null() {
            names.push(CStr::from_ptr((*entry).if_name).to_string_lossy().into_owned());
            entry = entry.add(1);
        }
        libc::if_freenameindex(list);
    }
    names
}

/// A request that concerns the interface `name`; ENODEV if no interface can have that name.
fn request_for(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all-zero bytes are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { zeroed() };
    if name.len() >= request.ifr_name.len() || name.contains('\0') {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as _;
    }
    Ok(request)
}

fn check(status: c_int) -> io::Result<()> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
