//! A transport session (RFC 7011 section 10) with the collector.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::destination::{Destination, Transport};

/// Timeout of a connection attempt and of the TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout of a write; then the session is closed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait until the collector closes its end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A socket to the collector.
pub(super) enum Session {
    Udp(UdpSocket),
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Session {
    /// Resolves the collector's name and connects.
    pub(super) fn open(to: &Destination, tls: Option<&Arc<ClientConfig>>) -> io::Result<Session> {
        let mut last_error = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
        for address in (to.host.as_str(), to.port).to_socket_addrs()? {
            let session = match (to.transport, tls) {
                (Transport::Udp, _) => udp(address),
                (Transport::Tcp, _) => tcp(address).map(Session::Tcp),
                (Transport::Tls, Some(tls)) => tls_session(tcp(address)?, to, tls),
                (Transport::Tls, None) => Err(io::Error::other("TLS needs certificates")),
            };
            match session {
                Ok(session) => return Ok(session),
                Err(error) => last_error = error,
            }
        }
        Err(last_error)
    }

    /// Writes one message.
    pub(super) fn send(&mut self, message: &[u8]) -> io::Result<()> {
        match self {
            Session::Udp(socket) => socket.send(message).map(drop),
            Session::Tcp(stream) => stream.write_all(message),
            Session::Tls(stream) => stream.write_all(message),
        }
    }

    /// Flushes buffered data.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Session::Udp(_) | Session::Tcp(_) => Ok(()),
            Session::Tls(stream) => stream.flush(),
        }
    }

    /// Returns whether a failed write ends the session: in a stream, part of the message may have been sent.
    pub(super) fn is_stream(&self) -> bool {
        !matches!(self, Session::Udp(_))
    }

    /// Returns whether the collector has closed the connection. Collectors send nothing, so anything readable is the end. With
    /// TLS, only an end that is not encrypted is detected.
    pub(super) fn has_ended(&self) -> bool {
        let stream = match self {
            Session::Udp(_) => return false,
            Session::Tcp(stream) => stream,
            Session::Tls(stream) => &stream.sock,
        };
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        match recv(stream.as_raw_fd(), &mut [0], flags) {
            Ok(bytes) => bytes == 0,
            Err(Errno::EAGAIN | Errno::EINTR) => false,
            Err(_) => true,
        }
    }

    /// Closes the session in order: the collector reads everything, then closes its end.
    pub(super) fn close(mut self) -> io::Result<()> {
        if let Session::Tls(stream) = &mut self {
            stream.conn.send_close_notify();
            stream.flush()?;
        }
        let mut stream = match self {
            Session::Udp(_) => return Ok(()),
            Session::Tcp(stream) => stream,
            Session::Tls(stream) => stream.sock,
        };
        stream.shutdown(Shutdown::Write)?;
        // Closing a socket with unread data, such as TLS session tickets, would discard data not sent yet
        // (RFC 1122 section 4.2.2.13).
        let (deadline, mut unread) = (Instant::now() + CLOSE_TIMEOUT, [0; 512]);
        stream.set_read_timeout(Some(CLOSE_TIMEOUT))?;
        while Instant::now() < deadline && stream.read(&mut unread).is_ok_and(|bytes| bytes > 0) {}
        Ok(())
    }
}

fn udp(address: SocketAddr) -> io::Result<Session> {
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    Ok(Session::Udp(socket))
}

fn tcp(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    Ok(stream)
}

fn tls_session(mut stream: TcpStream, to: &Destination, tls: &Arc<ClientConfig>) -> io::Result<Session> {
    let name = ServerName::try_from(to.host.clone()).map_err(io::Error::other)?;
    let mut connection = ClientConnection::new(Arc::clone(tls), name).map_err(io::Error::other)?;
    stream.set_read_timeout(Some(CONNECT_TIMEOUT))?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream)?;
    }
    Ok(Session::Tls(Box::new(StreamOwned::new(connection, stream))))
}
