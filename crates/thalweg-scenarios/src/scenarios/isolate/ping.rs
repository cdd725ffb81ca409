//! A ping: echo requests at a fixed interval, and the delays of their replies.
//!
//! Delays are between two packets at the interface of the sending host, by the kernel's times, so waiting for a processor
//! does not count unless the kernel itself waits.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::Serialize;
use thalweg_linux::Namespace;
use thalweg_linux::socket::Socket;
use thalweg_wire::source::Frame;
use thalweg_wire::{Nanos, Timestamp};

use super::capture::Record;
use crate::error::ScenarioError;
use crate::quantiles::Quantiles;

/// Interval of the requests. The bound of 30 ms is 15 of these.
pub const INTERVAL: Duration = Duration::from_millis(2);

/// ICMP echo request (RFC 792): type, code, checksum, identifier, sequence number, which the kernel fills in. A number
/// follows, which does not wrap.
const REQUEST: u8 = 8;
const REPLY: u8 = 0;
const HEADER: usize = 8;

/// Bytes of the payload, as ping has.
const PAYLOAD: usize = 56;

/// Offsets in a frame: Ethernet, IPv4 without options.
const ETHERNET: usize = 14;
const ICMP: usize = ETHERNET + 20;

/// A ping that runs until it is dropped.
pub struct Ping {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A recorded echo request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// When the kernel saw it.
    pub time: Timestamp,
    /// Its number.
    pub number: u64,
    /// Whether it is a reply.
    pub is_reply: bool,
}

/// A request and its delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// When it was sent.
    pub sent: Timestamp,
    /// Time until the reply; `None` if there was none.
    pub delay: Option<Nanos>,
}

/// Delays of a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Period {
    /// Quantiles of the delays of answered requests.
    #[serde(flatten)]
    pub delays: Quantiles,
    /// Mean of these in nanoseconds.
    pub mean_ns: u64,
    /// Requests without a reply.
    pub lost: u64,
}

impl Ping {
    /// Starts a ping from a host.
    ///
    /// # Errors
    /// If the socket cannot be opened.
    pub fn start(from: &Namespace, to: Ipv4Addr) -> Result<Ping, ScenarioError> {
        let failed = |error: io::Error| ScenarioError::Monitoring(format!("ping: {error}"));
        let socket = from.within(|| open(to))?.map_err(failed)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&is_over);
        let send = move || {
            let start = Instant::now();
            let mut packet = [0; HEADER + PAYLOAD];
            packet[0] = REQUEST;
            for number in 0_u64.. {
                let due = INTERVAL * u32::try_from(number).unwrap_or(u32::MAX);
                thread::sleep(due.saturating_sub(start.elapsed()));
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                packet[HEADER..HEADER + 8].copy_from_slice(&number.to_be_bytes());
                // The record shows which were sent.
                let _ = socket.send(&packet);
                while socket.recv(&mut [0; 128]).is_ok() {}
            }
        };
        let thread = thread::Builder::new().name("ping".to_owned()).spawn(send).map_err(failed)?;
        Ok(Ping { is_over, thread: Some(thread) })
    }
}

/// Opens a socket for echo requests. Its functions are those of a UDP socket.
fn open(to: Ipv4Addr) -> io::Result<UdpSocket> {
    let socket = Socket::echo()?;
    socket.connect((to, 0))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

impl Drop for Ping {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panicked thread has printed its message.
            let _ = thread.join();
        }
    }
}

/// Returns the echo request or reply in a frame, if it is one of [`Ping`].
pub fn echo(frame: &Frame<'_>) -> Option<Echo> {
    let bytes = frame.bytes;
    let is_icmp = bytes.get(12..14) == Some(&[8, 0]) && bytes.get(ETHERNET) == Some(&0x45) && bytes[23] == 1;
    let kind = *bytes.get(ICMP)?;
    if !is_icmp || !matches!(kind, REQUEST | REPLY) {
        return None;
    }
    let number = u64::from_be_bytes(*bytes.get(ICMP + HEADER..)?.first_chunk()?);
    Some(Echo { time: frame.time, number, is_reply: kind == REPLY })
}

/// Matches requests and replies. Returns the requests in order.
pub fn delays(record: &Record<Echo>) -> Vec<Delay> {
    let mut delays: Vec<Option<Delay>> = Vec::new();
    for echo in &record.packets {
        let place = usize::try_from(echo.number).unwrap_or(usize::MAX);
        match echo.is_reply {
            // Numbers are consecutive; one that is far ahead is not ours.
            false if place < delays.len() + 1_000_000 => {
                delays.resize(delays.len().max(place + 1), None);
                delays[place].get_or_insert(Delay { sent: echo.time, delay: None });
            }
            false => {}
            true => {
                if let Some(Some(request)) = delays.get_mut(place) {
                    request.delay.get_or_insert(echo.time.since(request.sent));
                }
            }
        }
    }
    delays.into_iter().flatten().collect()
}

impl Period {
    /// Summarises the requests that were sent from `from` on and before `until`.
    pub fn of(delays: &[Delay], from: Timestamp, until: Timestamp) -> Period {
        let within = || delays.iter().filter(|delay| (from..until).contains(&delay.sent));
        let answered: Vec<Nanos> = within().filter_map(|delay| delay.delay).collect();
        let sum: u64 = answered.iter().map(|delay| delay.0).sum();
        Period {
            delays: Quantiles::of(answered.iter().copied()),
            mean_ns: sum / (answered.len() as u64).max(1),
            lost: within().filter(|delay| delay.delay.is_none()).count() as u64,
        }
    }
}

/// Returns for how long a ping suffers in a period: the number of requests that are lost or delayed by more than `limit`,
/// times their interval.
pub fn suffering(delays: &[Delay], limit: Nanos, from: Timestamp, until: Timestamp) -> Nanos {
    let suffers =
        |delay: &&Delay| (from..until).contains(&delay.sent) && delay.delay.is_none_or(|delay| delay > limit);
    Nanos(delays.iter().filter(suffers).count() as u64 * INTERVAL.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_matched_by_number_and_lost_requests_suffer() {
        let echo = |time, number, is_reply| Echo { time: Timestamp(time), number, is_reply };
        let packets = vec![
            echo(10, 0, false),
            echo(20, 1, false),
            echo(25, 1, true),
            echo(30, 2, false),
            echo(70, 2, true),
        ];
        let delays = delays(&Record { packets, lost: 0 });
        let found: Vec<_> = delays.iter().map(|it| it.delay.map(|delay| delay.0)).collect();
        assert_eq!(found, [None, Some(5), Some(40)]);
        let all = Period::of(&delays, Timestamp(0), Timestamp(100));
        assert_eq!((all.delays.max_ns, all.mean_ns, all.lost), (40, 22, 1));
        let ms =
            |limit, until| suffering(&delays, Nanos(limit), Timestamp(0), Timestamp(until)).0 / 1_000_000;
        assert_eq!([ms(4, 100), ms(5, 100), ms(40, 100), ms(4, 15)], [6, 4, 2, 2]);
    }
}
