//! A delay line: packets from one host to another arrive later by a constant time.
//!
//! ```text
//!   receiver ── route to h3 ──► TUN ──► this process, for the delay ──► raw socket ──► eth0 ── router ── h3
//! ```
//!
//! Few kernels of small machines have `netem`, and neither HTB nor a token bucket delays. So packets from the host take a TUN
//! interface, from which this process reads them, and a raw socket that is bound to the host's own interface. Two threads:
//! one reads and notes the time, the other waits and writes. A packet is late by what the scheduler takes, some 0.1 ms; its
//! most is counted. Memory is bounded: packets beyond [`MAX_PACKETS`] are dropped and counted.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use thalweg_linux::netlink::Netlink;
use thalweg_linux::socket::Socket;
use thalweg_linux::tun::Tun;
use thalweg_wire::Nanos;

use super::RouterLab;
use crate::error::LabError;
use crate::layout::HOST_INTERFACE;

/// Maximum number of packets in the line.
pub const MAX_PACKETS: usize = 65_536;

/// The interface that leads into the line.
const INTERFACE: &str = "delay";

/// Maximum length of a packet.
const PACKET: usize = 65_535;

/// The reader looks at this interval whether the line has ended.
const POLL: Nanos = Nanos::from_millis(20);

/// A running delay line. On drop, packets in it are lost and its route ends.
#[derive(Debug)]
pub struct DelayLine {
    is_over: Arc<AtomicBool>,
    counters: Arc<Counters>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Counters {
    passed: AtomicU64,
    dropped: AtomicU64,
    late_ns: AtomicU64,
}

/// A packet, and when it leaves.
type Delayed = (Instant, Vec<u8>);

impl RouterLab {
    /// Delays packets from a host to another, both from 1.
    ///
    /// # Errors
    /// If the lab does not exist, or the kernel has no TUN interfaces.
    pub fn delay(&self, from: usize, to: usize, delay: Duration) -> Result<DelayLine, LabError> {
        let (host, address) = (self.host(from), self.address(to));
        let failed = |source: io::Error| LabError::DelayLine { source };
        let open = || -> io::Result<(Tun, UdpSocket)> {
            let socket = Socket::packets_by(HOST_INTERFACE)?;
            socket.connect((address, 0))?;
            Ok((Tun::create(INTERFACE)?, socket))
        };
        let (tun, socket) = host.within(open)?.map_err(failed)?;
        let netlink = Netlink::open_within(&host)?;
        let interface = netlink.interface(INTERFACE)?;
        netlink.set_up(interface, true)?;
        netlink.add_route(interface, Some(address))?;
        let (is_over, counters) = (Arc::new(AtomicBool::new(false)), Arc::<Counters>::default());
        let (line, rest) = sync_channel(MAX_PACKETS);
        let (ended, counted) = (Arc::clone(&is_over), Arc::clone(&counters));
        let read = move || read(&tun, delay, &line, &ended, &counted);
        let counted = Arc::clone(&counters);
        let write = move || write(&socket, &rest, &counted);
        let spawn = |work: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().name("delay".to_owned()).spawn(work).map_err(failed)
        };
        let threads = vec![spawn(Box::new(read))?, spawn(Box::new(write))?];
        Ok(DelayLine { is_over, counters, threads })
    }
}

impl DelayLine {
    /// Returns the packets that have passed.
    pub fn passed(&self) -> u64 {
        self.counters.passed.load(Ordering::Relaxed)
    }

    /// Returns the packets that were dropped, because the line was full or the kernel refused them.
    pub fn dropped(&self) -> u64 {
        self.counters.dropped.load(Ordering::Relaxed)
    }

    /// Returns by how much the latest packet so far was sent too late.
    pub fn most_late(&self) -> Duration {
        Duration::from_nanos(self.counters.late_ns.load(Ordering::Relaxed))
    }
}

impl Drop for DelayLine {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panicked thread has printed its message.
            let _ = thread.join();
        }
    }
}

/// Reads packets until the line ends, or its interface is gone.
fn read(tun: &Tun, delay: Duration, line: &SyncSender<Delayed>, is_over: &AtomicBool, counters: &Counters) {
    let mut buffer = vec![0; PACKET];
    while !is_over.load(Ordering::Relaxed) {
        let Ok(received) = tun.receive(&mut buffer, POLL) else { return };
        let Some(length) = received else { continue };
        match line.try_send((Instant::now() + delay, buffer[..length].to_vec())) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => drop(counters.dropped.fetch_add(1, Ordering::Relaxed)),
            Err(TrySendError::Disconnected(_)) => return,
        }
    }
}

/// Writes packets when they are due, until the reader has ended.
fn write(socket: &UdpSocket, line: &Receiver<Delayed>, counters: &Counters) {
    for (due, packet) in line {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let late = due.elapsed().as_nanos() as u64;
        counters.late_ns.fetch_max(late, Ordering::Relaxed);
        let counter = match socket.send(&packet) {
            Ok(_) => &counters.passed,
            Err(_) => &counters.dropped,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
