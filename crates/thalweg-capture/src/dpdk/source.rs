//! The source: polls the queues of a port.

use std::ffi::CString;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use thalweg_linux::clock;
use thalweg_linux::socket::Socket;
use thalweg_wire::{Batch, FrameRef, Interface, LinkType, Source, SourceCounters};

use super::error::DpdkError;
use super::ffi::{self, Drops, Failure, OpenPort, PortRequest, Received};
use super::options::DpdkOptions;
use super::{MAX_BATCH, eal};
use crate::filter::Filter;
use crate::live::LinkState;
use crate::live::options::READ_TIMEOUT;

/// How long a source polls without a pause for the next packet.
const BUSY_TIME: Duration = Duration::from_millis(1);

/// The pause between two polls after that.
const PAUSE: Duration = Duration::from_micros(50);

/// Reading the drops of a card takes up to tens of microseconds, in which no packets are received: it gets at most
/// one part in this many of the time.
const DROPS_SHARE: u32 = 100;

/// How much of a packet a filter reads at least.
const FILTERED_LENGTH: u32 = 2048;

/// The packets of some receive queues of a DPDK port.
#[derive(Debug)]
pub struct DpdkSource {
    port: Arc<OpenPort>,
    /// The queues of this source alone.
    queues: Vec<u16>,
    /// The index of the queue to poll next.
    turn: usize,
    device: String,
    interface: Interface,
    link_state: LinkState,
    filter: Option<Filter>,
    /// A part of `stride` bytes for each packet of a batch.
    bytes: Vec<u8>,
    stride: usize,
    received: Vec<Received>,
    frames: Vec<FrameRef>,
    counters: SourceCounters,
    /// Whether this source reports the drops, which the port has only as a whole.
    has_drops: bool,
    /// Drops of the kernel in front of the driver.
    by_kernel: u64,
    /// When the drops may be read again.
    drops_due: Instant,
    /// Whether the last batch was full, so that another is likely.
    was_full: bool,
}

impl DpdkSource {
    /// Opens a port and starts the capture: one source for each worker, but at most one for each receive queue.
    ///
    /// # Errors
    /// See [`DpdkError`].
    pub fn open_group(options: &DpdkOptions, workers: NonZeroUsize) -> Result<Vec<DpdkSource>, DpdkError> {
        options.validate()?;
        let filter = options.filter.as_deref();
        let filter = filter.map(|text| Filter::compile(text, LinkType::Ethernet, 0)).transpose()?;
        let device = CString::new(options.device.as_str())
            .map_err(|_| DpdkError::BadDevice { device: options.device.clone() })?;
        let request = PortRequest {
            readers: u16::try_from(workers.get()).unwrap_or(u16::MAX),
            descriptors: options.descriptors,
            frame_bytes: options.frame_bytes(),
            promiscuous: options.promiscuous,
        };
        eal::start(options)?;
        let failed = |Failure { reason }| DpdkError::Open { device: options.device.clone(), reason };
        let port = Arc::new(OpenPort::open(&device, request).map_err(failed)?);
        let count = u16::try_from(workers.get()).unwrap_or(u16::MAX).min(port.queues());
        let source = |number| {
            let queues = (number..port.queues()).step_by(usize::from(count)).collect();
            DpdkSource::new(options, Arc::clone(&port), queues, filter.clone())
        };
        Ok((0..count).map(source).collect())
    }

    fn new(
        options: &DpdkOptions,
        port: Arc<OpenPort>,
        queues: Vec<u16>,
        filter: Option<Filter>,
    ) -> DpdkSource {
        let kept =
            if filter.is_some() { options.snap_length.max(FILTERED_LENGTH) } else { options.snap_length };
        let has_drops = queues.contains(&0);
        let mut source = DpdkSource {
            port,
            queues,
            turn: 0,
            device: options.device.clone(),
            interface: Interface {
                name: Some(format!("dpdk:{}", options.device)),
                link_type: LinkType::Ethernet,
                snap_length: options.snap_length,
            },
            link_state: LinkState::Up,
            filter,
            bytes: vec![0; kept as usize * MAX_BATCH],
            stride: kept as usize,
            received: vec![Received::default(); MAX_BATCH],
            frames: Vec::with_capacity(MAX_BATCH),
            counters: SourceCounters::default(),
            has_drops,
            by_kernel: 0,
            drops_due: Instant::now(),
            was_full: false,
        };
        source.update_link_state();
        source
    }

    /// Returns the source's name: `dpdk:` and the device.
    pub fn name(&self) -> &str {
        self.interface.name.as_deref().unwrap_or_default()
    }

    /// Returns whether packets can arrive, as of the last call of [`next_batch`](Source::next_batch) that returned none.
    pub fn link_state(&self) -> LinkState {
        self.link_state
    }

    /// Updates the link state without waiting for a packet.
    pub fn update_link_state(&mut self) {
        self.link_state = match (self.port.is_up(), self.port.interface()) {
            (None, _) => LinkState::Gone,
            (Some(_), Some(index)) => state_of(index),
            (Some(true), None) => LinkState::Up,
            (Some(false), None) => LinkState::Down,
        };
    }

    /// Whether another packet is likely to be available, because the last batch was full.
    pub fn is_ready(&self) -> bool {
        self.was_full
    }

    /// Receives packets of the next queue that has some; returns their number.
    #[inline]
    fn receive(&mut self) -> usize {
        for _ in 0..self.queues.len() {
            let queue = self.queues[self.turn];
            self.turn = (self.turn + 1) % self.queues.len();
            let count = self.port.receive(queue, &mut self.bytes, self.stride, &mut self.received);
            if count > 0 {
                return count;
            }
        }
        0
    }

    /// Polls until packets arrive or the timeout expires; returns their number.
    fn wait(&mut self) -> usize {
        let start = Instant::now();
        loop {
            let count = self.receive();
            let elapsed = start.elapsed();
            if count > 0 || elapsed.as_nanos() >= u128::from(READ_TIMEOUT.0) {
                return count;
            }
            match elapsed < BUSY_TIME {
                true => std::hint::spin_loop(),
                false => thread::sleep(PAUSE),
            }
        }
    }

    /// Describes the first `count` received packets, except those that the filter rejects.
    fn describe(&mut self, count: usize) {
        let time = clock::realtime();
        for (number, received) in self.received[..count].iter().enumerate() {
            let offset = number * self.stride;
            if let Some(filter) = &self.filter {
                let bytes = &self.bytes[offset..][..received.captured as usize];
                if !filter.matches(bytes, received.length) {
                    self.counters.filtered += 1;
                    continue;
                }
            }
            self.frames.push(FrameRef {
                time,
                offset,
                captured_length: received.captured.min(self.interface.snap_length),
                original_length: received.length,
                interface: 0,
            });
        }
        self.counters.frames += self.frames.len() as u64;
    }
}

/// Returns the state of the network interface with this index.
fn state_of(index: i32) -> LinkState {
    let Ok(socket) = Socket::for_ioctls() else { return LinkState::Up };
    match socket.interface_name(index).and_then(|name| socket.interface_flags(&name)) {
        Ok(flags) if flags & libc::IFF_UP != 0 => LinkState::Up,
        Ok(_) => LinkState::Down,
        Err(_) => LinkState::Gone,
    }
}

impl Source for DpdkSource {
    type Error = DpdkError;

    /// Returns the available packets, at most [`MAX_BATCH`]; see [`Source::next_batch`].
    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, DpdkError> {
        self.frames.clear();
        let count = match self.receive() {
            0 => self.wait(),
            count => count,
        };
        self.was_full = count == MAX_BATCH;
        if count == 0 {
            self.update_link_state();
            if self.link_state == LinkState::Gone {
                return Err(DpdkError::Removed { device: self.device.clone() });
            }
        }
        self.describe(count);
        let interfaces = std::slice::from_ref(&self.interface);
        Ok(Some(Batch { bytes: &self.bytes, frames: &self.frames, interfaces }))
    }

    /// Reads the counts of driver and kernel, if they were not read just before. Of several sources of a port, one reports the drops of all.
    fn counters(&mut self) -> SourceCounters {
        let start = Instant::now();
        if self.has_drops && start >= self.drops_due {
            let Drops { missed, no_buffer, by_kernel } = self.port.drops();
            self.by_kernel += by_kernel;
            self.counters.kernel_drops = missed + no_buffer + self.by_kernel;
            let end = Instant::now();
            self.drops_due = end + (end - start) * DROPS_SHARE;
        }
        self.counters
    }
}

impl Drop for DpdkSource {
    fn drop(&mut self) {
        ffi::leave();
    }
}
