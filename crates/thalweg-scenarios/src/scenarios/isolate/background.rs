//! Background traffic: bursts of UDP, by the Poisson Pareto burst process of the emulator, from a seed.
//!
//! Bursts start as a Poisson process and last for a Pareto distributed time with a mean of 100 ms, as in chapter 4 of the
//! dissertation. Each sends packets of 1,500 bytes at a constant rate, from a port of its own while it lasts. With 100
//! bursts per second and 35 % of the link on average, a burst has 3.5 % of it: less than the threshold.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use thalweg_emulator::workloads::burst_process::{BurstProcess, Bursts, PACKET_BYTES, Start};
use thalweg_linux::Namespace;
use thalweg_wire::BitRate;

use crate::error::ScenarioError;

/// Bursts that start per second, on average.
const BURSTS_PER_SECOND: f64 = 100.0;

/// Ports of the sender, which bursts use in turn. Ten bursts are active on average.
const PORTS: u16 = 128;

/// Ports of the sender and of the receiver.
pub(super) const FIRST_PORT: u16 = 20_000;
pub(super) const RECEIVER_PORT: u16 = 9_000;

/// Payload of a packet: without headers of IPv4 and UDP.
const PAYLOAD: usize = PACKET_BYTES as usize - 28;

/// The sender sleeps for at least this time, and then sends what is due.
const MIN_SLEEP: Duration = Duration::from_micros(200);

/// Traffic that runs until it is dropped.
pub struct Background {
    is_over: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    late_ns: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
    _receiver: UdpSocket,
}

/// A packet of background traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The time since the start.
    pub at: Duration,
    /// The port from which it is sent, from 0 up to the number of ports.
    pub port: u16,
}

/// The packets of bursts, in order of time.
#[derive(Debug)]
pub struct Departures {
    bursts: std::iter::Peekable<Bursts>,
    gap_ps: u64,
    next_port: u16,
    /// The next packet of each active burst: time, end of the burst, port. All have the same gap, so the first is next.
    active: VecDeque<(u64, u64, u16)>,
}

impl Departures {
    /// Creates the packets of traffic with this mean rate.
    ///
    /// # Errors
    /// If a burst has no packet on average.
    pub fn new(mean_rate: BitRate, seed: u64) -> Result<Departures, ScenarioError> {
        Departures::with_bursts(mean_rate, BURSTS_PER_SECOND, seed)
    }

    /// Like [`new`](Self::new), with this number of bursts that start per second on average.
    ///
    /// # Errors
    /// If a burst has no packet on average.
    pub fn with_bursts(
        mean_rate: BitRate,
        bursts_per_second: f64,
        seed: u64,
    ) -> Result<Departures, ScenarioError> {
        let process = BurstProcess {
            start: Start::Stationary,
            ..BurstProcess::of_dissertation(bursts_per_second, mean_rate)
        };
        let bursts = process
            .bursts(seed)
            .map_err(|error| ScenarioError::Monitoring(format!("background: {error}")))?;
        let gap_ps = process.gap_ps().round() as u64;
        Ok(Departures { bursts: bursts.peekable(), gap_ps, next_port: 0, active: VecDeque::new() })
    }
}

impl Iterator for Departures {
    type Item = Departure;

    fn next(&mut self) -> Option<Departure> {
        let due = self.active.front().map_or(u64::MAX, |packet| packet.0);
        let (at, end, port) = match self.bursts.next_if(|burst| burst.start_ps <= due) {
            Some(burst) => {
                self.next_port = (self.next_port + 1) % PORTS;
                (burst.start_ps, burst.end_ps, self.next_port)
            }
            None => self.active.pop_front()?,
        };
        if at + self.gap_ps < end {
            self.active.push_back((at + self.gap_ps, end, port));
        }
        Some(Departure { at: Duration::from_nanos(at / 1_000), port })
    }
}

impl Background {
    /// Starts traffic from a host to another, from `departures`. `number` tells traffic to the same host apart.
    ///
    /// # Errors
    /// If a socket cannot be opened.
    pub fn start(
        from: &Namespace,
        to: (&Namespace, Ipv4Addr),
        number: u16,
        departures: impl Iterator<Item = Departure> + Send + 'static,
    ) -> Result<Background, ScenarioError> {
        let failed = |error: io::Error| ScenarioError::Monitoring(format!("background traffic: {error}"));
        let ((receiver, address), port_to) = (to, RECEIVER_PORT + number);
        // Nobody reads it: what exceeds its buffer is dropped by the kernel of the receiver.
        let receiver = receiver.within(|| UdpSocket::bind((address, port_to)))?.map_err(failed)?;
        let open = |port| -> io::Result<UdpSocket> {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, FIRST_PORT + port))?;
            socket.connect(SocketAddr::from((address, port_to)))?;
            Ok(socket)
        };
        let sockets =
            from.within(|| (0..PORTS).map(open).collect::<io::Result<Vec<_>>>())?.map_err(failed)?;
        let (is_over, sent, late_ns) = (Arc::new(AtomicBool::new(false)), Arc::default(), Arc::default());
        let sender = Sender {
            sockets,
            is_over: Arc::clone(&is_over),
            sent: Arc::clone(&sent),
            late_ns: Arc::clone(&late_ns),
        };
        let thread = thread::Builder::new().name("background".to_owned());
        let thread = thread.spawn(move || sender.run(departures)).map_err(failed)?;
        Ok(Background { is_over, sent, late_ns, thread: Some(thread), _receiver: receiver })
    }

    /// Returns the bytes sent so far, from the IP header on.
    pub fn sent_bytes(&self) -> u64 {
        self.sent.load(Ordering::Relaxed) * u64::from(PACKET_BYTES)
    }

    /// Returns by how much the latest packet so far was sent too late.
    pub fn most_late(&self) -> Duration {
        Duration::from_nanos(self.late_ns.load(Ordering::Relaxed))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panicked thread has printed its message.
            let _ = thread.join();
        }
    }
}

struct Sender {
    sockets: Vec<UdpSocket>,
    is_over: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    late_ns: Arc<AtomicU64>,
}

impl Sender {
    fn run(self, departures: impl Iterator<Item = Departure>) {
        let (start, payload) = (Instant::now(), [0; PAYLOAD]);
        for Departure { at, port } in departures {
            while let Some(left) = at.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
                if self.is_over.load(Ordering::Relaxed) {
                    return;
                }
                thread::sleep(left.clamp(MIN_SLEEP, Duration::from_millis(20)));
            }
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            let late = start.elapsed().saturating_sub(at).as_nanos() as u64;
            self.late_ns.fetch_max(late, Ordering::Relaxed);
            // A packet that the host cannot send is not sent again, and not counted.
            if self.sockets[usize::from(port)].send(&payload).is_ok() {
                self.sent.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn background_has_its_mean_rate_and_no_burst_exceeds_the_threshold() {
        // 60 s of 70 Mbit/s: 600 bursts... the standard error of the mean is 4 %; tolerance 4 of these.
        let rate = BitRate(70_000_000);
        let time = Duration::from_secs(60);
        let packets: Vec<Departure> =
            Departures::new(rate, 1).unwrap().take_while(|packet| packet.at < time).collect();
        let mean = packets.len() as f64 * 12_000.0 / 60.0;
        assert!((0.84..1.16).contains(&(mean / 70e6)), "{mean}");
        assert!(packets.is_sorted_by_key(|packet| packet.at));
        let again: Vec<Departure> = Departures::new(rate, 1).unwrap().take(100).collect();
        assert_eq!(packets[..100], again);
        // A tenth of a link of 200 Mbit/s for 10 ms are 25,000 bytes.
        for port in 0..PORTS {
            let of_port: Vec<Duration> =
                packets.iter().filter(|packet| packet.port == port).map(|packet| packet.at).collect();
            let window = Duration::from_millis(10);
            let most = (0..of_port.len()).map(|end| {
                of_port[..=end].iter().rev().take_while(|at| of_port[end] - **at < window).count()
            });
            assert!(most.max().unwrap_or(0) * 1_500 < 25_000, "port {port}");
        }
    }
}
