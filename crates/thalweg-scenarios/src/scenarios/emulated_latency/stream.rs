//! Datagrams at a constant rate from a host to another, and how long each takes: from the call that sends it to the kernel of the receiver.
//!
//! Each has its number and the time of its call. If the sender is late, what is due is sent at once.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use thalweg_linux::Namespace;
use thalweg_linux::clock::realtime;
use thalweg_linux::priority::set_timer_slack;
use thalweg_linux::socket::Socket;
use thalweg_wire::source::Frame;
use thalweg_wire::{Nanos, Timestamp};

use crate::error::ScenarioError;
use crate::scenarios::isolate::capture::Recorder;

/// Bytes of a datagram with its headers of IPv4 and UDP: an MTU.
pub const PACKET_BYTES: usize = 1_500;

/// The port of the receiver.
const PORT: u16 = 9_100;

/// Offsets in a frame: Ethernet, IPv4 without options, UDP.
const UDP: usize = 14 + 20;
const PAYLOAD: usize = UDP + 8;

/// The socket buffer of the sender.
const BUFFER: u32 = 4 << 20;

/// How long the last datagrams may take.
const TAIL: Duration = Duration::from_millis(300);

/// The two hosts, and the interface of the receiver.
#[derive(Clone, Debug)]
pub struct Route {
    /// The sender.
    pub from: Namespace,
    /// The receiver.
    pub to: Namespace,
    /// Its interface.
    pub interface: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// The firewall mark of the datagrams, 0 for none.
    pub mark: u32,
}

/// What became of the datagrams of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Streamed {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that the kernel of the sender refused.
    pub refused: u64,
    /// Time from call to arrival of each datagram that arrived, in their order of arrival.
    pub latencies: Vec<Nanos>,
    /// Datagrams that arrived twice.
    pub duplicates: u64,
    /// Datagrams that arrived after a later one.
    pub reordered: u64,
    /// Frames that the record missed.
    pub unseen: u64,
    /// The most that a datagram was sent too late.
    pub late: Nanos,
}

/// An arrival: number, time of the call, time at the kernel of the receiver.
type Arrival = (u64, Timestamp, Timestamp);

/// Sends `rate` datagrams per second for a time.
///
/// # Errors
/// If a socket cannot be opened, or packets cannot be recorded.
pub fn run(route: &Route, rate: u32, duration: Duration) -> Result<Streamed, ScenarioError> {
    let failed = |error: io::Error| ScenarioError::Monitoring(format!("stream of datagrams: {error}"));
    let peer = SocketAddr::from((route.address, PORT));
    // Nobody reads it; without it, the kernel would answer with ICMP.
    let _receiver = route.to.within(|| UdpSocket::bind(peer))?.map_err(failed)?;
    let socket = route.from.within(|| open(&peer, route.mark))?.map_err(failed)?;
    let record = Recorder::start(route.to.clone(), &route.interface, |_, frame| arrival(frame))?;
    let sender = thread::Builder::new().name("stream".to_owned());
    let sender = sender.spawn(move || send(&socket, rate, duration)).map_err(failed)?;
    let panicked = |_| ScenarioError::Monitoring("the sending thread panicked".to_owned());
    let mut streamed = sender.join().map_err(panicked)?;
    thread::sleep(TAIL);
    let record = record.finish()?;
    streamed.unseen = record.lost;
    streamed.count(&record.packets);
    Ok(streamed)
}

fn open(peer: &SocketAddr, mark: u32) -> io::Result<UdpSocket> {
    let socket = Socket::marked_datagrams(peer, mark, 0, BUFFER)?;
    socket.connect(peer)?;
    Ok(socket)
}

fn send(socket: &UdpSocket, rate: u32, duration: Duration) -> Streamed {
    // Without it, the sender sleeps up to 50 us too long.
    let _ = set_timer_slack(Nanos(1));
    let mut streamed = Streamed::default();
    let mut payload = [0; PACKET_BYTES - 28];
    let start = Instant::now();
    for number in 0_u64.. {
        let due = Duration::from_nanos(number.saturating_mul(1_000_000_000) / u64::from(rate.max(1)));
        if due >= duration {
            break;
        }
        let elapsed = start.elapsed();
        match due.checked_sub(elapsed) {
            Some(early) => thread::sleep(early),
            None => streamed.late = streamed.late.max(Nanos((elapsed - due).as_nanos() as u64)),
        }
        payload[..8].copy_from_slice(&number.to_be_bytes());
        payload[8..16].copy_from_slice(&realtime().0.to_be_bytes());
        match socket.send(&payload) {
            Ok(_) => streamed.sent += 1,
            Err(_) => streamed.refused += 1,
        }
    }
    streamed
}

/// Returns the datagram of a stream that a frame contains.
fn arrival(frame: &Frame<'_>) -> Option<Arrival> {
    let bytes = frame.bytes;
    let is_udp =
        bytes.get(12..14) == Some(&[8, 0]) && bytes.get(14) == Some(&0x45) && bytes.get(23) == Some(&17);
    if !is_udp || bytes.get(UDP + 2..UDP + 4)? != PORT.to_be_bytes() {
        return None;
    }
    let word = |at: usize| Some(u64::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    Some((word(PAYLOAD)?, Timestamp(word(PAYLOAD + 8)?), frame.time))
}

impl Streamed {
    fn count(&mut self, arrivals: &[Arrival]) {
        let mut has_arrived = vec![false; (self.sent + self.refused) as usize];
        let mut highest = None;
        for &(number, sent, arrived) in arrivals {
            let Some(has_arrived) = has_arrived.get_mut(number as usize) else { continue };
            if std::mem::replace(has_arrived, true) {
                self.duplicates += 1;
                continue;
            }
            self.reordered += u64::from(highest.is_some_and(|highest| number < highest));
            highest = highest.max(Some(number));
            self.latencies.push(arrived.since(sent));
        }
    }

    /// Adds another stream.
    pub fn add(&mut self, other: Streamed) {
        self.sent += other.sent;
        self.refused += other.refused;
        self.latencies.extend(other.latencies);
        self.duplicates += other.duplicates;
        self.reordered += other.reordered;
        self.unseen += other.unseen;
        self.late = self.late.max(other.late);
    }

    /// Datagrams that did not arrive.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.latencies.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_datagram_counts_once() {
        let mut streamed = Streamed { sent: 4, ..Streamed::default() };
        let at = |number, sent, arrived| (number, Timestamp(sent), Timestamp(arrived));
        streamed.count(&[at(0, 10, 15), at(2, 30, 34), at(1, 20, 36), at(2, 30, 37), at(9, 1, 2)]);
        assert_eq!(streamed.latencies, [Nanos(5), Nanos(4), Nanos(16)]);
        assert_eq!((streamed.duplicates, streamed.reordered, streamed.lost()), (1, 1, 1));
    }
}
