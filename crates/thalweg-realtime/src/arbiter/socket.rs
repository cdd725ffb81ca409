//! A UDP socket that receives and sends many datagrams per system call, without blocking and without allocating.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use thalweg_linux::message_batch::{MAX_MESSAGES, MessageRanges, ReceivedMessages};
use thalweg_linux::socket::wait_for_any;
use thalweg_wire::Nanos;

/// A socket with its buffers.
pub struct BatchSocket {
    socket: UdpSocket,
    received: ReceivedMessages,
    sent: MessageRanges,
    /// Datagrams to send, one after the other.
    outgoing: Vec<u8>,
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

    /// Takes a socket that is bound. All memory is allocated here.
    ///
    /// # Errors
    /// If the kernel refuses to make it non-blocking.
    pub fn new(socket: UdpSocket, max_datagram: usize) -> io::Result<BatchSocket> {
        socket.set_nonblocking(true)?;
        Ok(BatchSocket {
            socket,
            received: ReceivedMessages::with_senders(max_datagram),
            sent: MessageRanges::with_receivers(),
            outgoing: Vec::with_capacity(MAX_MESSAGES * max_datagram),
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
        let count = match self.received.receive(self.socket.as_raw_fd()) {
            Ok(count) => count,
            // Refused: an endpoint that was sent to has gone.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionRefused) =>
            {
                return Ok(0);
            }
            Err(error) => return Err(error),
        };
        self.received.iter_from().for_each(|(from, bytes)| each(from, bytes));
        Ok(count)
    }

    /// Appends a datagram to those to send. Sends them if there are 64.
    pub fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        self.sent.push_to(to, self.outgoing.len(), datagram.len());
        self.outgoing.extend_from_slice(datagram);
        if self.sent.is_full() {
            self.flush();
        }
    }

    /// Sends all datagrams. Those that the kernel refuses are counted, not repeated: the protocol repeats what is needed.
    pub fn flush(&mut self) {
        if self.sent.is_empty() {
            return;
        }
        let BatchSocket { socket, sent, outgoing, send_errors, .. } = self;
        sent.send(socket.as_raw_fd(), outgoing, |_| *send_errors += 1);
        outgoing.clear();
    }

    /// Sleeps until a datagram arrives, for at most `timeout`, rounded up to milliseconds.
    ///
    /// # Errors
    /// If the kernel refuses to wait.
    pub fn wait(&self, timeout: Nanos) -> io::Result<()> {
        wait_for_any([self.socket.as_raw_fd()], timeout).map(|_| ())
    }
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
