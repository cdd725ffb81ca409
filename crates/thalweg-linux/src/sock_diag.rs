//! TCP connections of a network namespace with their state (sock_diag(7), `struct tcp_info` of linux/tcp.h).
//!
//! One request returns all established connections of an address family. It takes about a microsecond per connection, and needs no
//! privilege.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::namespace::{Namespace, NamespaceError};
use crate::netlink::connection::Connection as Socket;
use crate::netlink::message::{Request, attributes, text, u16_at, u32_at, u64_at};

/// The kind of request and response (`SOCK_DIAG_BY_FAMILY`).
const BY_FAMILY: u16 = 20;

/// The length of `struct inet_diag_sockid` in bytes.
const SOCKET_ID_LENGTH: usize = 48;

/// The length of `struct inet_diag_msg` in bytes.
const MESSAGE_LENGTH: usize = 72;

/// The state of an established connection (`TCP_ESTABLISHED`), and those in which it still sends (`TCP_FIN_WAIT1`, `TCP_CLOSE_WAIT`,
/// `TCP_LAST_ACK`).
const STATES: [u32; 4] = [1, 4, 8, 9];

/// Attributes (`INET_DIAG_INFO`, `INET_DIAG_CONG`, `INET_DIAG_SKMEMINFO`).
const INFO: u16 = 2;
const CONGESTION_CONTROL: u16 = 4;
const MEMORY: u16 = 7;

/// Positions in the memory attribute (`SK_MEMINFO_RCVBUF`, `SK_MEMINFO_SNDBUF`).
const RECEIVE_BUFFER: usize = 4;
const SEND_BUFFER: usize = 12;

/// Lists the TCP connections of a network namespace.
#[derive(Debug)]
pub struct SockDiag {
    socket: Socket,
}

/// A TCP connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpConnection {
    /// Address and port of this host.
    pub local: SocketAddr,
    /// Address and port of the peer.
    pub remote: SocketAddr,
    /// Inode of the socket, as in `/proc/PID/fd`; 0 if no process has it any more.
    pub inode: u32,
    /// A number that no other socket has until the machine restarts.
    pub cookie: u64,
    /// Bytes that arrived, and that the application has not read.
    pub receive_queue_bytes: u32,
    /// Bytes that the application wrote, and that the peer has not acknowledged.
    pub send_queue_bytes: u32,
    /// Size of the receive buffer (`SO_RCVBUF`).
    pub receive_buffer_bytes: u32,
    /// Size of the send buffer (`SO_SNDBUF`).
    pub send_buffer_bytes: u32,
    /// Name of the congestion control.
    pub congestion_control: String,
    /// State and counters.
    pub info: TcpInfo,
}

/// State and counters of a connection (`struct tcp_info`). A field that an older kernel lacks is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Whether the latest sample of the delivery rate was limited by the application.
    pub is_application_limited: bool,
    /// Maximum segment size of sent segments in bytes.
    pub mss_bytes: u32,
    /// Smoothed round-trip time in microseconds.
    pub rtt_us: u32,
    /// Mean deviation of the round-trip time in microseconds.
    pub rtt_variation_us: u32,
    /// Congestion window in segments.
    pub cwnd_segments: u32,
    /// Minimum round-trip time in microseconds.
    pub min_rtt_us: u32,
    /// Round-trip time in microseconds that the receiving side estimates.
    pub receive_rtt_us: u32,
    /// Payload bytes that the peer acknowledged, and 1 for the SYN.
    pub acked_bytes: u64,
    /// Payload bytes that arrived in order.
    pub received_bytes: u64,
    /// Segments sent with payload, retransmissions included.
    pub sent_segments: u32,
    /// Segments retransmitted.
    pub retransmitted_segments: u32,
    /// Payload bytes sent, retransmissions included.
    pub sent_bytes: u64,
    /// Payload bytes retransmitted.
    pub retransmitted_bytes: u64,
    /// Latest sample of the delivery rate in bytes per second.
    pub delivery_rate_bytes_per_second: u64,
    /// Time with unacknowledged or unsent data, in microseconds.
    pub busy_us: u64,
    /// Time limited by the peer's receive window, in microseconds.
    pub receive_window_limited_us: u64,
    /// Time limited by the send buffer, in microseconds.
    pub send_buffer_limited_us: u64,
}

impl SockDiag {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// If the kernel has no sock_diag.
    pub fn open() -> io::Result<SockDiag> {
        Ok(SockDiag { socket: Socket::open(libc::NETLINK_SOCK_DIAG)? })
    }

    /// Opens a socket inside `namespace`.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or the kernel has no sock_diag.
    pub fn open_within(namespace: &Namespace) -> Result<SockDiag, NamespaceError> {
        namespace
            .within(SockDiag::open)?
            .map_err(|source| namespace.error("open a sock_diag socket in it", source))
    }

    /// Returns all established TCP connections, of IPv4 first.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn tcp_connections(&self) -> io::Result<Vec<TcpConnection>> {
        let mut found = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let responses = self.socket.list(request(family as u8)).map_err(|error| error.source)?;
            found.extend(responses.iter().filter_map(|response| connection(&response.payload)));
        }
        Ok(found)
    }
}

/// Returns a request for the TCP connections of an address family.
fn request(family: u8) -> Request {
    let wanted = [INFO, CONGESTION_CONTROL, MEMORY].iter().fold(0, |bits, kind| bits | 1_u8 << (kind - 1));
    let states = STATES.iter().fold(0, |bits, state| bits | 1_u32 << state);
    let mut fixed = vec![family, libc::IPPROTO_TCP as u8, wanted, 0];
    fixed.extend_from_slice(&states.to_ne_bytes());
    fixed.resize(fixed.len() + SOCKET_ID_LENGTH, 0);
    Request::new(BY_FAMILY, &fixed)
}

/// Reads a response; `None` if it is truncated or has no `tcp_info`.
fn connection(payload: &[u8]) -> Option<TcpConnection> {
    let family = i32::from(*payload.first()?);
    let address = |at: usize| -> Option<IpAddr> {
        match family {
            libc::AF_INET => Some(Ipv4Addr::from_octets(*payload.get(at..)?.first_chunk()?).into()),
            _ => Some(Ipv6Addr::from_octets(*payload.get(at..)?.first_chunk()?).to_canonical()),
        }
    };
    let port = |at| Some(u16::from_be(u16_at(payload, at)?));
    let mut connection = TcpConnection {
        local: SocketAddr::new(address(8)?, port(4)?),
        remote: SocketAddr::new(address(24)?, port(6)?),
        cookie: u64_at(payload, 44)?,
        receive_queue_bytes: u32_at(payload, 56)?,
        send_queue_bytes: u32_at(payload, 60)?,
        inode: u32_at(payload, 68)?,
        receive_buffer_bytes: 0,
        send_buffer_bytes: 0,
        congestion_control: String::new(),
        info: TcpInfo::default(),
    };
    let mut has_info = false;
    for (kind, value) in attributes(payload.get(MESSAGE_LENGTH..)?) {
        match kind {
            INFO => {
                connection.info = TcpInfo::read(value);
                has_info = true;
            }
            CONGESTION_CONTROL => connection.congestion_control = text(value),
            MEMORY => {
                connection.receive_buffer_bytes = u32_at(value, RECEIVE_BUFFER).unwrap_or_default();
                connection.send_buffer_bytes = u32_at(value, SEND_BUFFER).unwrap_or_default();
            }
            _ => {}
        }
    }
    has_info.then_some(connection)
}

impl TcpInfo {
    /// Reads a `struct tcp_info`, of which older kernels have a prefix.
    fn read(bytes: &[u8]) -> TcpInfo {
        let number = |at| u32_at(bytes, at).unwrap_or_default();
        let wide = |at| u64_at(bytes, at).unwrap_or_default();
        TcpInfo {
            is_application_limited: bytes.get(7).is_some_and(|flags| flags & 1 != 0),
            mss_bytes: number(16),
            rtt_us: number(68),
            rtt_variation_us: number(72),
            cwnd_segments: number(80),
            receive_rtt_us: number(92),
            retransmitted_segments: number(100),
            acked_bytes: wide(120),
            received_bytes: wide(128),
            // The kernel starts with the largest number.
            min_rtt_us: Some(number(148)).filter(|rtt| *rtt != u32::MAX).unwrap_or_default(),
            sent_segments: number(156),
            delivery_rate_bytes_per_second: wide(160),
            busy_us: wide(168),
            receive_window_limited_us: wide(176),
            send_buffer_limited_us: wide(184),
            sent_bytes: wide(200),
            retransmitted_bytes: wide(208),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd as _;

    use proptest::prelude::*;

    use super::*;

    fn pair(address: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(address).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    fn find(local: SocketAddr) -> TcpConnection {
        let connections = SockDiag::open().unwrap().tcp_connections().unwrap();
        connections.into_iter().find(|connection| connection.local == local).unwrap()
    }

    #[test]
    fn a_connection_has_its_bytes_and_its_inode() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (mut client, mut server) = pair(address);
            client.write_all(&[7; 100_000]).unwrap();
            server.read_exact(&mut [0; 60_000]).unwrap();
            let sender = find(client.local_addr().unwrap());
            let receiver = find(client.peer_addr().unwrap());
            assert_eq!(sender.remote, receiver.local);
            assert_eq!(sender.info.acked_bytes, 100_001, "the SYN included");
            assert_eq!((sender.info.sent_bytes, sender.info.retransmitted_bytes), (100_000, 0));
            assert_eq!(receiver.info.received_bytes, 100_000);
            assert_eq!((receiver.receive_queue_bytes, sender.send_queue_bytes), (40_000, 0));
            assert_ne!(sender.cookie, receiver.cookie);
            assert!(sender.info.min_rtt_us > 0 && sender.info.min_rtt_us < 1_000_000);
            assert!(sender.send_buffer_bytes > 0 && !sender.congestion_control.is_empty());
            let link = fs::read_link(format!("/proc/self/fd/{}", client.as_raw_fd())).unwrap();
            assert_eq!(link.to_str().unwrap(), format!("socket:[{}]", sender.inode));
        }
    }

    #[test]
    fn time_is_counted_that_a_slow_receiver_costs() {
        let (mut client, server) = pair("127.0.0.1:0");
        client.set_write_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
        // The peer does not read, so at last its window is closed.
        while client.write(&[7; 65_536]).is_ok() {}
        let sender = find(client.local_addr().unwrap());
        assert!(sender.info.receive_window_limited_us > 100_000, "{sender:?}");
        assert!(sender.send_queue_bytes > 0);
        drop(server);
    }

    proptest! {
        #[test]
        fn any_bytes_parse_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = connection(&bytes);
            let _ = TcpInfo::read(&bytes);
        }
    }
}
