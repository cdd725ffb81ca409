//! Receives datagrams with `recvmmsg`, up to 64 per system call.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrLike, SockaddrStorage, recvmmsg};
use thalweg_wire::Timestamp;

use super::intake::Intake;

/// Datagrams per system call.
const BATCH: usize = 64;

/// Maximum size of a UDP datagram (RFC 768: the length has 16 bits).
const MAX_DATAGRAM_LENGTH: usize = 65_535;

/// Distance between buffers. It is not a power of two: otherwise the first lines of all buffers would share a few sets
/// of the cache.
const STRIDE: usize = (1 << 16) + (17 << 6) + 4096;

/// Maximum number of datagrams read after a stop request: more than a default buffer holds, and a limit while an
/// exporter keeps sending.
const LAST_DATAGRAMS: usize = 1 << 17;

/// How long a thread blocks for input before it checks for other work.
pub(super) const READ_TIMEOUT: Duration = Duration::from_millis(100);

/// Counters of a receiver.
#[derive(Debug, Default)]
pub(super) struct ReceiverCounts {
    pub(super) datagrams: AtomicU64,
    pub(super) bytes: AtomicU64,
    /// Errors of the socket; the receiver continues.
    pub(super) errors: AtomicU64,
}

/// A socket and its counters.
pub(super) struct Receiver {
    socket: UdpSocket,
    counts: Arc<ReceiverCounts>,
}

/// Memory for one system call, local to the thread.
struct Buffers {
    headers: MultiHeaders<SockaddrStorage>,
    bytes: Vec<u8>,
}

impl Receiver {
    pub(super) fn new(socket: UdpSocket, counts: Arc<ReceiverCounts>) -> Receiver {
        Receiver { socket, counts }
    }

    /// Receives until `stop` is set, then drains the socket's buffer.
    pub(super) fn run(self, intake: &mut Intake, clock: fn() -> Timestamp, stop: &AtomicBool) {
        let headers = MultiHeaders::preallocate(BATCH, None);
        let mut buffers = Buffers { headers, bytes: vec![0; BATCH * STRIDE] };
        while !stop.load(Ordering::Relaxed) {
            self.receive_batch(&mut buffers, intake, clock, MsgFlags::MSG_WAITFORONE);
        }
        let mut taken = 0;
        while taken < LAST_DATAGRAMS {
            match self.receive_batch(&mut buffers, intake, clock, MsgFlags::MSG_DONTWAIT) {
                0 => break,
                some => taken += some,
            }
        }
        intake.finish(clock());
    }

    /// Receives and decodes some datagrams, or waits for the read timeout. Returns their number.
    fn receive_batch(
        &self,
        buffers: &mut Buffers,
        intake: &mut Intake,
        clock: fn() -> Timestamp,
        flags: MsgFlags,
    ) -> usize {
        let mut bytes = 0;
        let mut received = None;
        let result = self.receive(buffers, flags, |from, datagram| {
            let received = *received.get_or_insert_with(clock);
            bytes += datagram.len() as u64;
            intake.datagram(from, received, datagram);
        });
        let count = match result {
            Ok(count) => count,
            Err(error) => {
                let timed_out = matches!(error, Errno::EAGAIN | Errno::EINTR);
                if !timed_out {
                    self.counts.errors.fetch_add(1, Ordering::Relaxed);
                }
                0
            }
        };
        self.counts.datagrams.fetch_add(count as u64, Ordering::Relaxed);
        self.counts.bytes.fetch_add(bytes, Ordering::Relaxed);
        let now = received.unwrap_or_else(clock);
        intake.flush(now);
        intake.tick(now);
        count
    }

    /// Makes one system call.
    fn receive(
        &self,
        buffers: &mut Buffers,
        flags: MsgFlags,
        mut each: impl FnMut(SocketAddr, &[u8]),
    ) -> Result<usize, Errno> {
        let slot = |buffer| <[u8]>::split_at_mut(buffer, MAX_DATAGRAM_LENGTH).0;
        let mut slices: Vec<_> =
            buffers.bytes.chunks_exact_mut(STRIDE).map(|buffer| [IoSliceMut::new(slot(buffer))]).collect();
        let descriptor = self.socket.as_raw_fd();
        let messages = recvmmsg(descriptor, &mut buffers.headers, slices.iter_mut(), flags, None)?;
        let mut count = 0;
        for message in messages {
            count += 1;
            let from = message.address.as_ref().and_then(socket_address);
            // An empty datagram has no slice.
            let datagram = message.iovs().next().unwrap_or_default();
            if let Some(from) = from {
                each(from, datagram);
            }
        }
        Ok(count)
    }
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    debug_assert!(address.family().is_some());
    let v4 = || address.as_sockaddr_in().map(|address| SocketAddr::V4((*address).into()));
    let v6 = || address.as_sockaddr_in6().map(|address| SocketAddr::V6((*address).into()));
    v4().or_else(v6)
}

/// Returns whether an error is only a timeout.
pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
