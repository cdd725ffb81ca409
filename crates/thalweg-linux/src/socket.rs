//! Safe functions for the system calls that packet sockets, XDP sockets and netlink share. Errors are those of the
//! kernel.

#![expect(unsafe_code, reason = "system calls that take pointers")]

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::zeroed;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use thalweg_wire::Nanos;

/// The result of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Data is ready to read.
    Ready,
    /// The timeout expired.
    TimedOut,
    /// A signal arrived, or the interface went down.
    Interrupted,
}

/// An open socket, closed when dropped.
#[derive(Debug)]
pub struct Socket {
    descriptor: OwnedFd,
}

impl Socket {
    /// Opens a socket (socket(2)) with close-on-exec.
    pub fn open(family: c_int, kind: c_int, protocol: c_int) -> io::Result<Socket> {
        // SAFETY: takes numbers only.
        let descriptor = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) };
        check(descriptor)?;
        // SAFETY: the descriptor is open and owned by nobody else.
        Ok(Socket { descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) } })
    }

    /// Opens a socket for ICMP echo requests (icmp(7)), which `net.ipv4.ping_group_range` must allow. Its messages begin with
    /// the header of ICMP, whose checksum and identifier the kernel fills in; its functions are those of a UDP socket.
    pub fn echo() -> io::Result<UdpSocket> {
        let Socket { descriptor } = Socket::open(libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_ICMP)?;
        Ok(descriptor.into())
    }

    /// Opens a socket for IPv4 packets that the process writes from their header on (raw(7)), to be sent by this interface
    /// whatever other routes say. Its functions are those of a UDP socket.
    pub fn packets_by(interface: &str) -> io::Result<UdpSocket> {
        let socket = Socket::open(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_RAW)?;
        let mut name = [0_u8; libc::IFNAMSIZ];
        if interface.len() >= name.len() {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        name[..interface.len()].copy_from_slice(interface.as_bytes());
        socket.set(libc::SOL_SOCKET, libc::SO_BINDTODEVICE, &name)?;
        Ok(socket.descriptor.into())
    }

    /// Opens a UDP socket for a peer of this address family whose datagrams have a firewall mark and a traffic class: DSCP in the
    /// six high bits, ECN in the two low ones. `buffer` is the size of both buffers in bytes. Needs CAP_NET_ADMIN.
    pub fn marked_datagrams(
        peer: &SocketAddr,
        mark: u32,
        traffic_class: u8,
        buffer: u32,
    ) -> io::Result<UdpSocket> {
        let family = if peer.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let socket = Socket::open(family, libc::SOCK_DGRAM, 0)?;
        let class = c_int::from(traffic_class);
        match peer.is_ipv4() {
            true => socket.set(libc::IPPROTO_IP, libc::IP_TOS, &class)?,
            false => socket.set(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &class)?,
        }
        socket.set_mark_and_buffers(mark, buffer)?;
        Ok(socket.descriptor.into())
    }

    /// Opens a packet socket that sends frames by the interface with this index, with a firewall mark, and receives nothing.
    /// `buffer` is the size of its buffer in bytes. Needs CAP_NET_RAW and CAP_NET_ADMIN.
    pub fn frames_by(interface: i32, mark: u32, buffer: u32) -> io::Result<Socket> {
        let socket = Socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        let mut address = libc::sockaddr_ll::zero();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = interface;
        socket.bind(&address)?;
        socket.set_mark_and_buffers(mark, buffer)?;
        Ok(socket)
    }

    fn set_mark_and_buffers(&self, mark: u32, buffer: u32) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, libc::SO_MARK, &mark)?;
        self.set(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &buffer)?;
        self.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &buffer)
    }

    /// Binds to an address. `T` must be the address type of the socket's family.
    pub fn bind<T>(&self, address: &T) -> io::Result<()> {
        let length = size_of::<T>() as libc::socklen_t;
        // SAFETY: the pointer is to that many bytes, which the kernel reads.
        check(unsafe { libc::bind(self.raw(), std::ptr::from_ref(address).cast(), length) })
    }

    /// Returns the address that the socket is bound to.
    pub fn address<T: Plain>(&self) -> io::Result<T> {
        let mut address = T::zero();
        let mut length = size_of::<T>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes to the address, and any bytes are a value of it.
        check(unsafe { libc::getsockname(self.raw(), (&raw mut address).cast(), &mut length) })?;
        Ok(address)
    }

    /// Sets an option. The value must have the layout that the kernel expects.
    pub fn set<T>(&self, level: c_int, option: c_int, value: &T) -> io::Result<()> {
        let length = size_of::<T>() as libc::socklen_t;
        let value = std::ptr::from_ref(value).cast::<c_void>();
        // SAFETY: the pointer is to that many bytes, which the kernel reads.
        check(unsafe { libc::setsockopt(self.raw(), level, option, value, length) })
    }

    /// Reads an option.
    pub fn get<T: Plain>(&self, level: c_int, option: c_int) -> io::Result<T> {
        let mut value = T::zero();
        let mut length = size_of::<T>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes, and any bytes are a value of a plain type.
        check(unsafe { libc::getsockopt(self.raw(), level, option, (&raw mut value).cast(), &mut length) })?;
        Ok(value)
    }

    /// Performs an ioctl on an interface.
    ///
    /// # Safety
    /// `code` must be an ioctl that reads and writes one `ifreq`. Pointers in the `ifreq` must be valid for that ioctl.
    pub unsafe fn interface_ioctl(
        &self,
        code: libc::Ioctl,
        mut request: libc::ifreq,
    ) -> io::Result<libc::ifreq> {
        // SAFETY: as the caller promises.
        check(unsafe { libc::ioctl(self.raw(), code, &mut request) })?;
        Ok(request)
    }

    /// Waits until data is ready to read, for at most `timeout` (rounded up to milliseconds).
    pub fn wait(&self, timeout: Nanos) -> io::Result<Readiness> {
        let mut request = libc::pollfd { fd: self.raw(), events: libc::POLLIN, revents: 0 };
        let timeout_ms = timeout.0.div_ceil(1_000_000) as c_int;
        // SAFETY: the pointer is to one request.
        match check(unsafe { libc::poll(&mut request, 1, timeout_ms) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Readiness::Interrupted),
            answer => answer?,
        }
        if request.revents & libc::POLLERR != 0 {
            self.take_error()?;
            return Ok(Readiness::Interrupted);
        }
        Ok(if request.revents & libc::POLLIN != 0 { Readiness::Ready } else { Readiness::TimedOut })
    }

    /// Clears and returns the pending error of the socket; a downed interface is not an error.
    fn take_error(&self) -> io::Result<()> {
        match self.get::<c_int>(libc::SOL_SOCKET, libc::SO_ERROR)? {
            0 | libc::ENETDOWN => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Sends one message.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        // SAFETY: the pointer is to that many bytes, which the kernel reads.
        let sent = unsafe { libc::send(self.raw(), message.as_ptr().cast(), message.len(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Receives one message into `buffer`, with `flags` of recv(2). Returns its length.
    pub fn receive(&self, buffer: &mut [u8], flags: c_int) -> io::Result<usize> {
        // SAFETY: the kernel writes at most that many bytes.
        let received = unsafe { libc::recv(self.raw(), buffer.as_mut_ptr().cast(), buffer.len(), flags) };
        usize::try_from(received).map_err(|_| io::Error::last_os_error())
    }

    /// The descriptor, which is open as long as the socket.
    pub fn raw(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

impl From<Socket> for OwnedFd {
    fn from(socket: Socket) -> OwnedFd {
        socket.descriptor
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.raw()
    }
}

/// Waits until any of these sockets has data or an error, for at most `timeout` (rounded up to milliseconds). Returns
/// `false` on a timeout or a signal.
pub fn wait_for_any(descriptors: impl IntoIterator<Item = RawFd>, timeout: Nanos) -> io::Result<bool> {
    let request = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut requests: Vec<libc::pollfd> = descriptors.into_iter().map(request).collect();
    let timeout_ms = timeout.0.div_ceil(1_000_000) as c_int;
    // SAFETY: the pointer is to that many requests.
    let ready = unsafe { libc::poll(requests.as_mut_ptr(), requests.len() as libc::nfds_t, timeout_ms) };
    match check(ready) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        answer => answer.map(|()| ready > 0),
    }
}

/// Types for which any bytes are a valid value.
///
/// # Safety
/// Implement only for integers and structures of integers.
pub unsafe trait Plain: Sized {
    /// Returns the all-zero value.
    fn zero() -> Self {
        // SAFETY: all-zero bytes are a value of a plain type.
        unsafe { zeroed() }
    }
}

// SAFETY: an integer.
unsafe impl Plain for c_int {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: two integers.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: three integers.
unsafe impl Plain for libc::tpacket_stats_v3 {}
// SAFETY: integers only.
unsafe impl Plain for libc::sockaddr_ll {}
// SAFETY: integers only.
unsafe impl Plain for libc::sockaddr_nl {}
// SAFETY: integers only.
unsafe impl Plain for libc::sockaddr_xdp {}
// SAFETY: integers only.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: integers only.
unsafe impl Plain for libc::xdp_statistics {}

/// Returns the last error of the operating system if `status` is negative.
pub fn check(status: c_int) -> io::Result<()> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
