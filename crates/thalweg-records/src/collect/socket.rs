//! UDP sockets, with their actual receive buffer size.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, getsockopt, setsockopt, socket, sockopt,
};

use super::Listen;

/// A bound socket and its properties.
#[derive(Debug)]
pub(super) struct BoundSocket {
    pub(super) socket: UdpSocket,
    pub(super) address: SocketAddr,
    /// Actual size of the receive buffer in bytes, in the unit of the request; the kernel reports twice that.
    pub(super) receive_buffer: usize,
    /// Inode of the socket, its key in `/proc/net/udp`.
    pub(super) inode: u64,
}

/// Opens `count` sockets on one address. If there are several, they share the port. Another program on the port is
/// detected first, because the kernel would give a second program of the same user a share of the datagrams.
pub(super) fn open_group(
    listen: &Listen,
    count: usize,
    receive_buffer: usize,
    read_timeout: Duration,
) -> io::Result<Vec<BoundSocket>> {
    let address = match listen.address {
        Some(_) => listen.socket_address(),
        None => any_address(listen.port)?,
    };
    let first = open(address, false, receive_buffer, read_timeout)?;
    if count == 1 {
        return Ok(vec![first]);
    }
    let address = first.address;
    drop(first);
    (0..count).map(|_| open(address, true, receive_buffer, read_timeout)).collect()
}

/// Returns the unspecified address: IPv6, which includes IPv4, or IPv4 if the kernel has no IPv6.
fn any_address(port: u16) -> io::Result<SocketAddr> {
    match socket(AddressFamily::Inet6, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None) {
        Ok(_) => Ok(Listen::udp(port).socket_address()),
        Err(Errno::EAFNOSUPPORT) => Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port)),
        Err(error) => Err(error.into()),
    }
}

fn open(
    address: SocketAddr,
    shares_port: bool,
    receive_buffer: usize,
    read_timeout: Duration,
) -> io::Result<BoundSocket> {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let descriptor = socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    if address.is_ipv6() {
        let is_particular = !address.ip().is_unspecified();
        setsockopt(&descriptor, sockopt::Ipv6V6Only, &is_particular)?;
    }
    if shares_port {
        setsockopt(&descriptor, sockopt::ReusePort, &true)?;
    }
    // May exceed net.core.rmem_max with CAP_NET_ADMIN; without, it is limited to that.
    if setsockopt(&descriptor, sockopt::RcvBufForce, &receive_buffer).is_err() {
        setsockopt(&descriptor, sockopt::RcvBuf, &receive_buffer)?;
    }
    let given = getsockopt(&descriptor, sockopt::RcvBuf)? / 2;
    bind(descriptor.as_raw_fd(), &SockaddrStorage::from(address))?;
    let socket = UdpSocket::from(descriptor);
    socket.set_read_timeout(Some(read_timeout))?;
    let (address, inode) = (socket.local_addr()?, inode(&socket)?);
    Ok(BoundSocket { socket, address, receive_buffer: given, inode })
}

fn inode(socket: &UdpSocket) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    Ok(std::fs::metadata(format!("/proc/self/fd/{}", socket.as_raw_fd()))?.ino())
}
