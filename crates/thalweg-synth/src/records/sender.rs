//! Datagrams of all exporters over one UDP socket to a collector, as fast as is asked.

use std::io::{self, IoSlice};
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, sendmmsg};
use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::Address;

use super::datagrams::Deliver;

/// Datagrams for one system call.
const DATAGRAMS: usize = 64;

/// Datagrams one after the other in memory, to be sent: as made, or once all are made, which is quicker than making them.
#[derive(Debug, Default)]
pub struct Prepared {
    bytes: Vec<u8>,
    /// Where each datagram ends.
    ends: Vec<usize>,
}

impl Prepared {
    /// Datagrams.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
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

/// Sends with `sendmmsg`. Exporters differ by their observation domain: their addresses are not the socket's.
#[derive(Debug)]
pub struct Sender {
    socket: UdpSocket,
    /// The socket is connected: no message has an address.
    headers: MultiHeaders<()>,
    waiting: Prepared,
}

impl Sender {
    /// A socket of the collector's family, connected: if nobody listens there, sending says so.
    ///
    /// # Errors
    /// If there can be none.
    pub fn new(collector: SocketAddr) -> io::Result<Sender> {
        let any: SocketAddr = match collector {
            SocketAddr::V4(_) => ([0; 4], 0).into(),
            SocketAddr::V6(_) => ([0; 16], 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(collector)?;
        let headers = MultiHeaders::preallocate(DATAGRAMS, None);
        Ok(Sender { socket, headers, waiting: Prepared::default() })
    }

    /// Sends what waits.
    ///
    /// # Errors
    /// If it cannot be sent.
    pub fn flush(&mut self) -> io::Result<()> {
        let mut waiting = std::mem::take(&mut self.waiting);
        self.send(&waiting, 0..waiting.len())?;
        waiting.clear();
        self.waiting = waiting;
        Ok(())
    }

    /// Sends some datagrams.
    ///
    /// # Errors
    /// If they cannot be sent.
    ///
    /// # Panics
    /// If there are none of these numbers.
    pub fn send(&mut self, prepared: &Prepared, numbers: Range<usize>) -> io::Result<()> {
        let mut numbers = numbers;
        while !numbers.is_empty() {
            let few = numbers.clone().take(DATAGRAMS);
            let datagrams: Vec<_> = few.map(|number| [IoSlice::new(prepared.datagram(number))]).collect();
            let (socket, none) = (self.socket.as_raw_fd(), MsgFlags::empty());
            match sendmmsg(socket, &mut self.headers, &datagrams, [None; DATAGRAMS], [], none) {
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
        self.waiting.deliver(exporter, time, datagram)?;
        match self.waiting.len() {
            DATAGRAMS => self.flush(),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_arrives_in_order_and_a_port_without_collector_says_so() {
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
        let refused = (0..10).find_map(|_| {
            sender.deliver(Address::NONE, Timestamp(0), b"nobody").unwrap();
            sender.flush().err()
        });
        assert_eq!(refused.unwrap().kind(), io::ErrorKind::ConnectionRefused);
    }
}
