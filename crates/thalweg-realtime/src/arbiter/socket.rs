//! A UDP socket that receives and sends many datagrams per system call, without blocking.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrLike, SockaddrStorage, recvmmsg, sendmmsg};
use thalweg_linux::socket::wait_for_any;
use thalweg_wire::Nanos;

/// Datagrams per system call.
const BATCH: usize = 64;

/// A socket with its buffers.
pub struct BatchSocket {
    socket: UdpSocket,
    max_datagram: usize,
    received: MultiHeaders<SockaddrStorage>,
    bytes: Vec<u8>,
    sent: MultiHeaders<SockaddrStorage>,
    /// Datagrams to send, one after the other.
    outgoing: Vec<u8>,
    ends: Vec<usize>,
    addresses: Vec<Option<SockaddrStorage>>,
    /// Datagrams that the kernel refused to send: their buffer was full, or the address is unreachable.
    pub send_errors: u64,
}

impl BatchSocket {
    /// Binds to an address. Longer datagrams than `max_datagram` are cut, and so refused.
    ///
    /// # Errors
    /// If the address is in use or not of this host.
    pub fn bind(address: SocketAddr, max_datagram: usize) -> io::Result<BatchSocket> {
        BatchSocket::new(UdpSocket::bind(address)?, max_datagram)
    }

    /// Takes a socket that is bound. The result stays in the thread that created it.
    ///
    /// # Errors
    /// If the kernel refuses to make it non-blocking.
    pub fn new(socket: UdpSocket, max_datagram: usize) -> io::Result<BatchSocket> {
        socket.set_nonblocking(true)?;
        Ok(BatchSocket {
            socket,
            max_datagram,
            received: MultiHeaders::preallocate(BATCH, None),
            bytes: vec![0; BATCH * max_datagram],
            sent: MultiHeaders::preallocate(BATCH, None),
            outgoing: Vec::with_capacity(BATCH * max_datagram),
            ends: Vec::with_capacity(BATCH),
            addresses: Vec::with_capacity(BATCH),
            send_errors: 0,
        })
    }

    /// The address that it is bound to.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Receives up to 64 datagrams that have arrived, and returns their number.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn receive(&mut self, mut each: impl FnMut(SocketAddr, &[u8])) -> io::Result<usize> {
        let BatchSocket { socket, max_datagram, received, bytes, .. } = self;
        let mut slices: Vec<_> =
            bytes.chunks_exact_mut(*max_datagram).map(|buffer| [IoSliceMut::new(buffer)]).collect();
        let flags = MsgFlags::MSG_DONTWAIT;
        let messages = match recvmmsg(socket.as_raw_fd(), received, slices.iter_mut(), flags, None) {
            Ok(messages) => messages,
            // ECONNREFUSED: an endpoint that was sent to has gone.
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNREFUSED) => return Ok(0),
            Err(error) => return Err(error.into()),
        };
        let mut count = 0;
        for message in messages {
            count += 1;
            if let Some(from) = message.address.as_ref().and_then(socket_address) {
                each(from, message.iovs().next().unwrap_or_default());
            }
        }
        Ok(count)
    }

    /// Appends a datagram to those to send. Sends them if there are 64.
    pub fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        self.outgoing.extend_from_slice(datagram);
        self.ends.push(self.outgoing.len());
        self.addresses.push(Some(to.into()));
        if self.ends.len() == BATCH {
            self.flush();
        }
    }

    /// Sends all datagrams. Those that the kernel refuses are counted, not repeated: the protocol repeats what is needed.
    pub fn flush(&mut self) {
        let BatchSocket { socket, sent, outgoing, ends, addresses, send_errors, .. } = self;
        let mut first = 0;
        while first < ends.len() {
            let start = |number: usize| if number == 0 { 0 } else { ends[number - 1] };
            let slices: Vec<_> = (first..ends.len())
                .map(|number| [IoSlice::new(&outgoing[start(number)..ends[number]])])
                .collect();
            let (fd, flags) = (socket.as_raw_fd(), MsgFlags::MSG_DONTWAIT);
            match sendmmsg(fd, sent, &slices, &addresses[first..], [], flags) {
                Ok(results) => first += results.count().max(1),
                Err(Errno::EINTR) => {}
                Err(_) => {
                    *send_errors += 1;
                    first += 1;
                }
            }
        }
        outgoing.clear();
        ends.clear();
        addresses.clear();
    }

    /// Sleeps until a datagram arrives, for at most `timeout`, rounded up to milliseconds.
    ///
    /// # Errors
    /// If the kernel refuses to wait.
    pub fn wait(&self, timeout: Nanos) -> io::Result<()> {
        wait_for_any([self.socket.as_raw_fd()], timeout).map(|_| ())
    }
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    debug_assert!(address.family().is_some());
    let v4 = || address.as_sockaddr_in().map(|address| SocketAddr::V4((*address).into()));
    let v6 = || address.as_sockaddr_in6().map(|address| SocketAddr::V6((*address).into()));
    v4().or_else(v6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_arrive_in_order_with_their_addresses() {
        let any: SocketAddr = ([127, 0, 0, 1], 0).into();
        let (mut one, mut two) = (BatchSocket::bind(any, 100).unwrap(), BatchSocket::bind(any, 100).unwrap());
        let (from, to) = (one.local_addr().unwrap(), two.local_addr().unwrap());
        (0..150u8).for_each(|number| one.send(to, &[number; 3]));
        one.flush();
        let mut arrived = Vec::new();
        while arrived.len() < 150 {
            two.wait(Nanos::from_secs(1)).unwrap();
            let each = |address, bytes: &[u8]| {
                assert_eq!(address, from);
                assert_eq!(bytes, [bytes[0]; 3]);
                arrived.push(bytes[0]);
            };
            two.receive(each).unwrap();
        }
        assert!(arrived.is_sorted());
        assert_eq!((two.receive(|_, _| ()).unwrap(), one.send_errors), (0, 0));
    }
}
