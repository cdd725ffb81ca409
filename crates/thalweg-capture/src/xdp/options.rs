//! What a user may choose about a capture through AF_XDP.

use thalweg_wire::{Bytes, Nanos};

use crate::live::options::check;
use crate::live::{LiveError, LiveOptions};

/// Bytes that the kernel leaves free at the start of each chunk (XDP_PACKET_HEADROOM of bpf.h).
const CHUNK_HEADROOM: u32 = 256;

/// Where in the kernel the program takes frames from the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver, before the kernel has made anything of a frame; about two to three times as fast.
    Native,
    /// At the start of the network stack, for any driver.
    Generic,
}

/// How reads of a socket process its queue themselves (Linux 5.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyPoll {
    /// How long one read may look for frames, in whole microseconds (SO_BUSY_POLL). Default 20 us.
    pub turn: Nanos,
    /// Frames taken from the driver in one go (SO_BUSY_POLL_BUDGET). Default 64, a driver's usual share.
    pub budget: u16,
}

impl Default for BusyPoll {
    fn default() -> BusyPoll {
        BusyPoll { turn: Nanos::from_micros(20), budget: 64 }
    }
}

/// How to capture from an interface through AF_XDP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XdpOptions {
    /// The interface's name, as `ip link` shows it.
    pub interface: String,
    /// Memory for the frames of one receive queue, 256 KiB to 2 GiB, rounded down to a power of two. A frame
    /// takes a whole chunk however short it is. Default 64 MiB: 32,768 frames, which is 33 ms at a million
    /// packets/s.
    pub memory_size: Bytes,
    /// Room for one frame, of which the kernel keeps 256 bytes to itself: 2048 or 4096 bytes, which take frames
    /// of up to 1792 and 3840 bytes. Longer ones are dropped and counted. Default 2048.
    pub chunk_size: Bytes,
    /// Most bytes handed on of each frame, from the link header on; at least 64. Frames lie in memory whole;
    /// what is cut is only not shown, so that what reads frames sees as much of them as from AF_PACKET.
    /// Default: all that fits in a chunk.
    pub snap_length: u32,
    /// Whether to take frames that are addressed to other hosts. Default true.
    pub promiscuous: bool,
    /// A capture filter in tcpdump's language ([`crate::filter`]), no filter by default. It runs in this
    /// process.
    pub filter: Option<String>,
    /// Where to take frames from the interface. Default `None`: natively, else generically where the driver
    /// cannot.
    pub mode: Option<XdpMode>,
    /// Whether reads process the queue themselves; the thread that reads then takes a whole core, and spares
    /// the interrupts. Default `None`: the kernel processes it. Worth having together with the interface's
    /// `napi_defer_hard_irqs` and `gro_flush_timeout`, which are for the administrator to set.
    pub busy_poll: Option<BusyPoll>,
}

impl XdpOptions {
    /// The defaults, for `interface`.
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
    /// [`LiveError::BadOption`] for the first that is outside.
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
        let Some(BusyPoll { turn, budget }) = self.busy_poll else { return Ok(()) };
        check(
            (Nanos::from_micros(1)..=Nanos::from_millis(10)).contains(&turn),
            "busy-poll turn",
            turn,
            "1 us to 10 ms",
        )?;
        check((1..=4096).contains(&budget), "busy-poll budget", budget, "1 to 4096 frames")
    }

    /// Chunks of one queue, a power of two, once the options are valid.
    pub(super) fn chunk_count(&self) -> u32 {
        let chunks = self.memory_size.0 / self.chunk_size.0;
        1 << chunks.ilog2()
    }

    /// Bytes of memory of one queue, once the options are valid.
    pub(crate) fn memory_of_a_queue(&self) -> Bytes {
        Bytes(u64::from(self.chunk_count()) * self.chunk_size.0)
    }

    /// Most bytes that are handed on of a frame.
    pub(super) fn longest_frame(&self) -> u32 {
        self.snap_length.min(self.chunk_size.0 as u32 - CHUNK_HEADROOM)
    }
}

/// The same interface, snap length, filter and mode of addressing through AF_XDP; the rest as by default.
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
            assert!(options.memory_of_a_queue() <= options.memory_size);
        }
    }

    #[test]
    fn each_value_outside_its_range_is_named() {
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
            o.busy_poll = Some(BusyPoll { turn: Nanos::ZERO, ..BusyPoll::default() });
        };
        assert!(wrong(turn_zero).starts_with("busy-poll turn"));
    }
}
