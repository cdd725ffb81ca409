//! Sends the datagrams of all exporters to a collector over one UDP socket.

use std::io::{self, IoSlice};
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, sendmmsg};
use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::Address;

use super::datagrams::Deliver;

/// Datagrams per system call.
const DATAGRAMS: usize = 64;

/// A buffer of datagrams to be sent, at once or after all of them are encoded.
#[derive(Debug, Default)]
pub struct Prepared {
    bytes: Vec<u8>,
    /// End of each datagram.
    ends: Vec<usize>,
}

impl Prepared {
    /// Returns the number of datagrams.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn datagram(&self, number: usize) -> &[u8] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.bytes[start..self.ends[number]]
    }
}

impl Deliver for Prepared {
    fn deliver(&mut self, _: Address, _: Timestamp, datagram: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(datagram);
        self.ends.push(self.bytes.len());
        Ok(())
    }
}

/// Sends with `sendmmsg`. Exporters differ by observation domain, since they share the socket's address.
#[derive(Debug)]
pub struct Sender {
    socket: UdpSocket,
    /// The socket is connected, so messages have no address.
    headers: MultiHeaders<()>,
    pending: Prepared,
}

impl Sender {
    /// Opens a connected socket, so that sending fails if nothing listens at the collector's address.
    ///
    /// # Errors
    /// If the socket cannot be opened or connected.
    pub fn new(collector: SocketAddr) -> io::Result<Sender> {
        let any: SocketAddr = match collector {
            SocketAddr::V4(_) => ([0; 4], 0).into(),
            SocketAddr::V6(_) => ([0; 16], 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(collector)?;
        let headers = MultiHeaders::preallocate(DATAGRAMS, None);
        Ok(Sender { socket, headers, pending: Prepared::default() })
    }

    /// Sends all pending datagrams.
    ///
    /// # Errors
    /// If sending fails.
    pub fn flush(&mut self) -> io::Result<()> {
        let mut pending = std::mem::take(&mut self.pending);
        self.send(&pending, 0..pending.len())?;
        pending.clear();
        self.pending = pending;
        Ok(())
    }

    /// Sends the datagrams with these numbers.
    ///
    /// # Errors
    /// If sending fails.
    ///
    /// # Panics
    /// If the numbers are out of range.
    pub fn send(&mut self, prepared: &Prepared, numbers: Range<usize>) -> io::Result<()> {
        let mut numbers = numbers;
        while !numbers.is_empty() {
            let chunk = numbers.clone().take(DATAGRAMS);
            let datagrams: Vec<_> = chunk.map(|number| [IoSlice::new(prepared.datagram(number))]).collect();
            let (socket, flags) = (self.socket.as_raw_fd(), MsgFlags::empty());
            match sendmmsg(socket, &mut self.headers, &datagrams, [None; DATAGRAMS], [], flags) {
                Ok(results) => numbers.start += results.count(),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Deliver for Sender {
    fn deliver(&mut self, exporter: Address, time: Timestamp, datagram: &[u8]) -> io::Result<()> {
        self.pending.deliver(exporter, time, datagram)?;
        match self.pending.len() {
            DATAGRAMS => self.flush(),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_arrive_in_order_and_a_closed_port_is_an_error() {
        let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut sender = Sender::new(collector.local_addr().unwrap()).unwrap();
        let datagrams: Vec<Vec<u8>> =
            (0..100u8).map(|number| vec![number; 1 + usize::from(number)]).collect();
        for datagram in &datagrams {
            sender.deliver(Address::NONE, Timestamp(0), datagram).unwrap();
        }
        sender.flush().unwrap();
        let mut buffer = [0; 200];
        for datagram in &datagrams {
            let length = collector.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], datagram);
        }
        drop(collector);
        let error = (0..10).find_map(|_| {
            sender.deliver(Address::NONE, Timestamp(0), b"nobody").unwrap();
            sender.flush().err()
        });
        assert_eq!(error.unwrap().kind(), io::ErrorKind::ConnectionRefused);
    }
}
