//! Options of a live capture.

use thalweg_wire::{Bytes, Nanos};

use super::error::LiveError;
use super::ring::Geometry;

/// The read timeout, after which a batch is empty.
pub(crate) const READ_TIMEOUT: Nanos = Nanos::from_millis(100);

/// Options of a live capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveOptions {
    /// The interface's name, as `ip link` shows it.
    pub interface: String,
    /// Memory for packets of one worker that wait to be read; rounded down to whole blocks, of which there must be at
    /// least two. Default 64 MiB: about 200,000 small frames, which is 20 ms at ten million packets/s and 0.2 s at
    /// one million. At low rates blocks are passed on nearly empty and the number of blocks counts: a reader may fall
    /// behind by as many block timeouts as there are blocks, by default 2.5 s.
    pub ring_size: Bytes,
    /// The size of a block: a power of two from 64 KiB to 16 MiB. Default 256 KiB, so that a block is still in a
    /// core's level 2 cache when it is read the second time.
    pub block_size: Bytes,
    /// How long a block may stay open before the kernel passes it on partly filled, 1 ms to 1 s. Default 10 ms: a
    /// tenth of the default flight duration, so it adds little to the delay of a detection, at the cost of at most
    /// 100 wake-ups a second.
    pub block_timeout: Nanos,
    /// Bytes kept of each frame, from the link header on; at least 64 and at most the size of a block minus 256
    /// bytes. Default 192: the headers of TCP over IPv6 in a tunnel over IPv6, VLAN tags and options included, take
    /// 156 to 188 bytes.
    pub snap_length: u32,
    /// Whether to capture frames that are addressed to other hosts. Default true: a monitor port delivers nothing
    /// else.
    pub promiscuous: bool,
    /// A capture filter in tcpdump's language ([`crate::filter`]), no filter by default. The few expressions that
    /// need loops (`protochain`) work on files only: the kernel rejects them.
    pub filter: Option<String>,
    /// Which frames to capture, by whether this host receives or sends them. Default [`Way::Both`].
    pub way: Way,
}

/// Whether this host receives or sends a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// Either.
    #[default]
    Both,
    /// It receives the frame, or sees that others do.
    In,
    /// It sends the frame. Not possible with AF_XDP.
    Out,
}

impl LiveOptions {
    /// Creates the default options for `interface`.
    pub fn new(interface: impl Into<String>) -> LiveOptions {
        LiveOptions {
            interface: interface.into(),
            ring_size: Bytes(64 << 20),
            block_size: Bytes(256 << 10),
            block_timeout: Nanos::from_millis(10),
            snap_length: 192,
            promiscuous: true,
            filter: None,
            way: Way::Both,
        }
    }

    /// Checks every value against its documented range.
    ///
    /// # Errors
    /// [`LiveError::BadOption`] for the first value out of range.
    pub fn validate(&self) -> Result<(), LiveError> {
        let block_size = self.block_size.0;
        check(
            block_size.is_power_of_two() && (64 << 10..=16 << 20).contains(&block_size),
            "block size",
            block_size,
            "a power of two from 65536 to 16777216 bytes",
        )?;
        check(
            (2..=u64::from(u32::MAX) / block_size).contains(&(self.ring_size.0 / block_size)),
            "ring size",
            self.ring_size.0,
            format_args!("at least {} bytes, two blocks, and less than 4 GiB", 2 * block_size),
        )?;
        check(
            (Nanos::from_millis(1)..=Nanos::from_secs(1)).contains(&self.block_timeout),
            "block timeout",
            self.block_timeout,
            "1 ms to 1 s",
        )?;
        check(
            (64..=block_size - 256).contains(&u64::from(self.snap_length)),
            "snap length",
            self.snap_length,
            format_args!("64 to {} bytes", block_size - 256),
        )
    }

    /// Returns the geometry of the ring; the options must be valid.
    pub(super) fn geometry(&self) -> Geometry {
        Geometry {
            block_size: self.block_size.0 as u32,
            block_count: (self.ring_size.0 / self.block_size.0) as u32,
            block_timeout_ms: self.block_timeout.0.div_ceil(1_000_000) as u32,
        }
    }
}

/// Returns an error about the value of an option unless `holds`.
pub(crate) fn check(
    holds: bool,
    option: &'static str,
    value: impl std::fmt::Display,
    expected: impl std::fmt::Display,
) -> Result<(), LiveError> {
    match holds {
        true => Ok(()),
        false => {
            Err(LiveError::BadOption { option, value: value.to_string(), expected: expected.to_string() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid() {
        LiveOptions::new("eth0").validate().unwrap();
    }

    #[test]
    fn values_out_of_range_are_rejected() {
        let wrong = |change: fn(&mut LiveOptions)| {
            let mut options = LiveOptions::new("eth0");
            change(&mut options);
            options.validate().unwrap_err().to_string()
        };
        assert!(wrong(|o| o.block_size = Bytes(100_000)).starts_with("block size 100000"));
        assert!(wrong(|o| o.block_size = Bytes(32 << 20)).starts_with("block size"));
        assert!(wrong(|o| o.ring_size = o.block_size).starts_with("ring size 262144"));
        assert!(wrong(|o| o.ring_size = Bytes(1 << 40)).starts_with("ring size"));
        assert!(wrong(|o| o.block_timeout = Nanos::ZERO).starts_with("block timeout 0 ns"));
        assert!(wrong(|o| o.snap_length = 40).starts_with("snap length 40"));
        assert!(wrong(|o| o.snap_length = 262_144).starts_with("snap length"));
    }
}
