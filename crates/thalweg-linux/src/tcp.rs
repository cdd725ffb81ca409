//! TCP connections with what the standard library lacks: a source address, a signature of each segment (RFC 2385), and
//! sends that never block.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, SockaddrStorage, bind, connect as nix_connect, send};
use thalweg_wire::Secret;

use crate::socket::Socket;

/// Maximum length of a password, in bytes (`TCP_MD5SIG_MAXKEYLEN` of Linux).
pub const MAX_PASSWORD: usize = 80;

/// Hops that a packet may take: the maximum, which peers with the security mechanism of RFC 5082 expect.
const HOPS: libc::c_int = 255;

/// Options of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectOptions {
    /// The address to connect to.
    pub peer: SocketAddr,
    /// The source address; `None` to let the kernel choose it. Must be of the same IP version as the peer.
    pub local_address: Option<IpAddr>,
    /// The password with which each segment is signed (RFC 2385), at most [`MAX_PASSWORD`] bytes.
    pub password: Option<Secret>,
    /// Maximum time that connecting takes.
    pub timeout: Duration,
}

/// `struct tcp_md5sig` of Linux.
#[repr(C)]
struct Signature {
    /// `struct __kernel_sockaddr_storage`.
    address: [u8; 128],
    flags: u8,
    prefix_length: u8,
    key_length: u16,
    interface: libc::c_int,
    key: [u8; MAX_PASSWORD],
}

/// Connects. Packets have the maximum number of hops.
///
/// # Errors
/// The error of the kernel; `TimedOut` if the peer does not answer in time; `InvalidInput` if the password is too long.
pub fn connect(options: &ConnectOptions) -> io::Result<TcpStream> {
    let is_ipv4 = options.peer.is_ipv4();
    let socket = Socket::open(if is_ipv4 { libc::AF_INET } else { libc::AF_INET6 }, libc::SOCK_STREAM, 0)?;
    match is_ipv4 {
        true => socket.set(libc::IPPROTO_IP, libc::IP_TTL, &HOPS)?,
        false => socket.set(libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, &HOPS)?,
    }
    if let Some(password) = &options.password {
        socket.set(
            libc::IPPROTO_TCP,
            libc::TCP_MD5SIG,
            &signature(options.peer.ip(), password.expose().as_bytes())?,
        )?;
    }
    // connect(2) heeds the timeout of sends.
    let timeout = libc::timeval {
        tv_sec: options.timeout.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_usec: options.timeout.subsec_micros().into(),
    };
    socket.set(libc::SOL_SOCKET, libc::SO_SNDTIMEO, &timeout)?;
    if let Some(address) = options.local_address {
        bind(socket.raw(), &SockaddrStorage::from(SocketAddr::new(address, 0)))?;
    }
    match nix_connect(socket.raw(), &SockaddrStorage::from(options.peer)) {
        Ok(()) => Ok(TcpStream::from(OwnedFd::from(socket))),
        Err(Errno::EINPROGRESS) => Err(io::ErrorKind::TimedOut.into()),
        Err(error) => Err(error.into()),
    }
}

fn signature(peer: IpAddr, password: &[u8]) -> io::Result<Signature> {
    let mut key = [0; MAX_PASSWORD];
    let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "password of more than 80 bytes");
    key.get_mut(..password.len()).ok_or_else(too_long)?.copy_from_slice(password);
    // As sockaddr_in and sockaddr_in6: family, port, for IPv6 the flow label, address.
    let mut address = [0; 128];
    let family = if peer.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    address[..2].copy_from_slice(&(family as libc::sa_family_t).to_ne_bytes());
    match peer {
        IpAddr::V4(ip) => address[4..8].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => address[8..24].copy_from_slice(&ip.octets()),
    }
    Ok(Signature {
        address,
        flags: 0,
        prefix_length: 0,
        key_length: password.len() as u16,
        interface: 0,
        key,
    })
}

/// Sends as much as the kernel takes at once, and returns the number of bytes; 0 if it takes none now.
///
/// # Errors
/// The error of the kernel.
pub fn send_now(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    match send(stream.as_raw_fd(), bytes, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL) {
        Ok(count) => Ok(count),
        Err(Errno::EAGAIN | Errno::EINTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    fn options(peer: SocketAddr) -> ConnectOptions {
        ConnectOptions { peer, local_address: None, password: None, timeout: Duration::from_secs(60) }
    }

    #[test]
    fn a_connection_has_its_source_address_and_sends_without_blocking() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let local_address = Some("127.0.0.7".parse().unwrap());
        let options = ConnectOptions { local_address, ..options(listener.local_addr().unwrap()) };
        let mut stream = connect(&options).unwrap();
        let (mut peer, from) = listener.accept().unwrap();
        assert_eq!(Some(from.ip()), local_address);
        assert_eq!(stream.ttl().unwrap(), 255);
        // The peer does not read: at last the kernel takes no more.
        let chunk = [7; 65_536];
        let mut sent = 0;
        loop {
            match send_now(&stream, &chunk).unwrap() {
                0 => break,
                count => sent += count,
            }
        }
        let mut received = vec![0; sent];
        peer.read_exact(&mut received).unwrap();
        assert!(received.iter().all(|byte| *byte == 7));
        peer.write_all(b"hello").unwrap();
        let mut hello = [0; 5];
        stream.read_exact(&mut hello).unwrap();
        assert_eq!(&hello, b"hello");
    }

    #[test]
    fn nobody_listens() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert_eq!(connect(&options(address)).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_password_has_at_most_80_bytes() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let options = ConnectOptions { password: Some(Secret::new("x".repeat(81))), ..options(address) };
        assert_eq!(connect(&options).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
