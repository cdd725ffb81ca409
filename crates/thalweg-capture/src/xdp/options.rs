//! Options of a capture through AF_XDP.

use thalweg_wire::{Bytes, Nanos};

use crate::live::options::check;
use crate::live::{LiveError, LiveOptions};

/// Bytes that the kernel leaves free at the start of each chunk (XDP_PACKET_HEADROOM of bpf.h).
const CHUNK_HEADROOM: u32 = 256;

/// Where in the kernel the program takes frames from the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver, before the kernel has processed the frame; about two to three times as fast.
    Native,
    /// At the start of the network stack, for any driver.
    Generic,
}

/// How reads of a socket process its queue themselves (Linux 5.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyPoll {
    /// The maximum time that one read looks for frames, in whole microseconds (SO_BUSY_POLL). Default 20 us.
    pub time: Nanos,
    /// The maximum number of frames taken from the driver at a time (SO_BUSY_POLL_BUDGET). Default 64, a driver's
    /// usual budget.
    pub budget: u16,
}

impl Default for BusyPoll {
    fn default() -> BusyPoll {
        BusyPoll { time: Nanos::from_micros(20), budget: 64 }
    }
}

/// Options of a capture through AF_XDP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XdpOptions {
    /// The interface's name, as `ip link` shows it.
    pub interface: String,
    /// The memory for the frames of one receive queue, 256 KiB to 2 GiB, rounded down to a power of two. Even a short
    /// frame takes a whole chunk, and a long one takes several. Default 64 MiB: 32,768 frames of up to 1792 bytes, which
    /// is 33 ms at a million packets/s.
    pub memory_size: Bytes,
    /// The size of a chunk, of which the kernel reserves 256 bytes: 2048 or 4096 bytes. The first 1792 or 3840 bytes of
    /// a frame are delivered and visible to filters. Default 2048.
    pub chunk_size: Bytes,
    /// The maximum bytes delivered of each frame, from the link header on; at least 64. Memory contains whole frames;
    /// only the visible part is cut, so that readers get the same bytes as from AF_PACKET. Default: everything in the
    /// first chunk.
    pub snap_length: u32,
    /// Whether to capture frames that are addressed to other hosts. Default true.
    pub promiscuous: bool,
    /// A capture filter in tcpdump's language ([`crate::filter`]), no filter by default. It runs in this process.
    pub filter: Option<String>,
    /// Where to take frames from the interface. Default `None`: native, otherwise generic if the driver does not
    /// support native mode.
    pub mode: Option<XdpMode>,
    /// Whether reads process the queue themselves; the reading thread then uses a whole core, and avoids interrupts.
    /// Default `None`: the kernel processes it. Most useful together with the interface's `napi_defer_hard_irqs` and
    /// `gro_flush_timeout`, which the administrator sets.
    pub busy_poll: Option<BusyPoll>,
}

impl XdpOptions {
    /// Creates the default options for `interface`.
    pub fn new(interface: impl Into<String>) -> XdpOptions {
        XdpOptions {
            interface: interface.into(),
            memory_size: Bytes(64 << 20),
            chunk_size: Bytes(2048),
            snap_length: u32::MAX,
            promiscuous: true,
            filter: None,
            mode: None,
            busy_poll: None,
        }
    }

    /// Checks every value against its documented range.
    ///
    /// # Errors
    /// [`LiveError::BadOption`] for the first value out of range.
    pub fn validate(&self) -> Result<(), LiveError> {
        check(
            (256 << 10..=2 << 30).contains(&self.memory_size.0),
            "memory size",
            self.memory_size.0,
            "256 KiB to 2 GiB",
        )?;
        check(
            matches!(self.chunk_size, Bytes(2048 | 4096)),
            "chunk size",
            self.chunk_size.0,
            "2048 or 4096 bytes",
        )?;
        check(self.snap_length >= 64, "snap length", self.snap_length, "at least 64 bytes")?;
        let Some(BusyPoll { time, budget }) = self.busy_poll else { return Ok(()) };
        check(
            (Nanos::from_micros(1)..=Nanos::from_millis(10)).contains(&time),
            "busy-poll time",
            time,
            "1 us to 10 ms",
        )?;
        check((1..=4096).contains(&budget), "busy-poll budget", budget, "1 to 4096 frames")
    }

    /// Returns the number of chunks of one queue, a power of two; the options must be valid.
    pub(super) fn chunk_count(&self) -> u32 {
        let chunks = self.memory_size.0 / self.chunk_size.0;
        1 << chunks.ilog2()
    }

    /// Returns the bytes of memory of one queue; the options must be valid.
    pub(crate) fn queue_memory(&self) -> Bytes {
        Bytes(u64::from(self.chunk_count()) * self.chunk_size.0)
    }

    /// Returns the maximum bytes that are delivered of a frame.
    pub(super) fn longest_frame(&self) -> u32 {
        self.snap_length.min(self.chunk_size.0 as u32 - CHUNK_HEADROOM)
    }
}

/// The same interface, snap length, filter and promiscuous mode through AF_XDP; the rest are defaults.
impl From<&LiveOptions> for XdpOptions {
    fn from(options: &LiveOptions) -> XdpOptions {
        XdpOptions {
            snap_length: options.snap_length,
            promiscuous: options.promiscuous,
            filter: options.filter.clone(),
            ..XdpOptions::new(options.interface.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid() {
        let options = XdpOptions::new("eth0");
        options.validate().unwrap();
        assert_eq!((options.chunk_count(), options.longest_frame()), (32_768, 1792));
        XdpOptions { busy_poll: Some(BusyPoll::default()), ..options }.validate().unwrap();
    }

    #[test]
    fn memory_is_rounded_down_to_a_power_of_two_of_chunks() {
        for (memory_size, chunk_size, chunk_count) in
            [(256 << 10, 2048, 128), (1_000_000, 2048, 256), (1 << 20, 4096, 256), (2 << 30, 2048, 1 << 20)]
        {
            let options = XdpOptions {
                memory_size: Bytes(memory_size),
                chunk_size: Bytes(chunk_size),
                ..XdpOptions::new("eth0")
            };
            options.validate().unwrap();
            assert_eq!(options.chunk_count(), chunk_count, "{memory_size} in chunks of {chunk_size}");
            assert!(options.queue_memory() <= options.memory_size);
        }
    }

    #[test]
    fn values_out_of_range_are_rejected() {
        let wrong = |change: fn(&mut XdpOptions)| {
            let mut options = XdpOptions::new("eth0");
            change(&mut options);
            options.validate().unwrap_err().to_string()
        };
        assert!(wrong(|o| o.memory_size = Bytes(200_000)).starts_with("memory size 200000"));
        assert!(wrong(|o| o.memory_size = Bytes(3 << 30)).starts_with("memory size"));
        assert!(wrong(|o| o.chunk_size = Bytes(1024)).starts_with("chunk size 1024"));
        assert!(wrong(|o| o.snap_length = 63).starts_with("snap length 63"));
        let budget_zero = |o: &mut XdpOptions| {
            o.busy_poll = Some(BusyPoll { budget: 0, ..BusyPoll::default() });
        };
        assert!(wrong(budget_zero).starts_with("busy-poll budget 0"));
        let turn_zero = |o: &mut XdpOptions| {
            o.busy_poll = Some(BusyPoll { time: Nanos::ZERO, ..BusyPoll::default() });
        };
        assert!(wrong(turn_zero).starts_with("busy-poll time"));
    }
}
