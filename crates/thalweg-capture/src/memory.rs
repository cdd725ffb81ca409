//! Memory for frames that wait to be read, sized by the rate of the port.
//!
//! This memory is allocated when a capture starts and never swapped, whether frames arrive or not. So a program with many
//! captures should size it by what each port can carry: [`BUFFERED_TIME`] of frames of [`TYPICAL_FRAME`] at the rate of
//! the port, between [`MIN_MEMORY`] and [`MAX_MEMORY`]. A reader that is away for longer loses frames, which are counted
//! as `kernel_drops`.
//!
//! | rate of the port | AF_PACKET | AF_XDP |
//! |---|---:|---:|
//! | unknown, or up to 1 Gbit/s | 4 MiB | 4 MiB |
//! | 10 Gbit/s | 8 MiB | 64 MiB |
//! | 25 Gbit/s | 16 MiB | 64 MiB |
//! | 100 Gbit/s | 64 MiB | 64 MiB |

use thalweg_linux::Netlink;
use thalweg_linux::socket::Socket;
use thalweg_wire::{BitRate, Bytes, Nanos};

use crate::error::CaptureError;
use crate::spec::InterfaceSpec;

/// How long a reader may be away while frames of [`TYPICAL_FRAME`] arrive at the rate of the port. Longer than the 4 to
/// 10 ms for which the scheduler of a busy host runs other threads.
pub const BUFFERED_TIME: Nanos = Nanos::from_micros(12_500);

/// The mean length of a frame on a busy link, between a full-size frame and its acknowledgement.
pub const TYPICAL_FRAME: Bytes = Bytes(800);

/// The minimum: 2,048 frames with AF_XDP. At a million packets/s it lasts for 2 ms, with AF_PACKET for 14 ms.
pub const MIN_MEMORY: Bytes = Bytes(4 << 20);

/// The maximum: 32,768 frames with AF_XDP.
pub const MAX_MEMORY: Bytes = Bytes(64 << 20);

/// What a frame of the default snap length takes in the ring of AF_PACKET, headers included.
const RING_FRAME: Bytes = Bytes(288);

/// Memory for the frames of one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameMemory {
    /// The ring of AF_PACKET.
    pub ring_size: Bytes,
    /// The chunks of AF_XDP, for each receive queue.
    pub chunks: Bytes,
}

impl FrameMemory {
    /// Returns the memory for a port of this rate, with chunks of `chunk_size`. `None` gives the minimum.
    pub fn for_rate(rate: Option<BitRate>, chunk_size: Bytes) -> FrameMemory {
        let buffered = rate.map_or(Bytes(0), |rate| rate.amount_in(BUFFERED_TIME));
        let frames = buffered.0.div_ceil(TYPICAL_FRAME.0);
        let memory = |frame: Bytes| {
            let needed = frames.saturating_mul(frame.0).min(MAX_MEMORY.0);
            Bytes(needed.next_power_of_two().clamp(MIN_MEMORY.0, MAX_MEMORY.0))
        };
        FrameMemory { ring_size: memory(RING_FRAME), chunks: memory(chunk_size) }
    }
}

/// Returns the rate that a network card reports for the interface; `None` if it reports none, and for virtual interfaces,
/// whose nominal rate says nothing about their traffic.
///
/// # Errors
/// If the namespace of the interface cannot be entered.
pub fn port_rate(spec: &InterfaceSpec) -> Result<Option<BitRate>, CaptureError> {
    Ok(spec.within(|| {
        let interfaces = Netlink::open().ok()?.interfaces().ok()?;
        interfaces.iter().find(|interface| interface.name == spec.name() && interface.kind.is_empty())?;
        Socket::for_ioctls().ok()?.link_speed(spec.name()).ok()?
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::LiveOptions;

    #[test]
    fn memory_follows_the_rate_of_the_port() {
        let memory = |gigabits: Option<u64>| {
            let rate = gigabits.map(|gigabits| BitRate(gigabits * 1_000_000_000));
            let FrameMemory { ring_size, chunks } = FrameMemory::for_rate(rate, Bytes(2048));
            (ring_size.0 >> 20, chunks.0 >> 20)
        };
        assert_eq!(memory(None), (4, 4));
        assert_eq!(memory(Some(0)), (4, 4));
        assert_eq!(memory(Some(1)), (4, 4));
        assert_eq!(memory(Some(10)), (8, 64));
        assert_eq!(memory(Some(25)), (16, 64));
        assert_eq!(memory(Some(100)), (64, 64));
        assert_eq!(memory(Some(u64::MAX / 1_000_000_000)), (64, 64));
    }

    #[test]
    fn virtual_and_missing_interfaces_have_no_rate() {
        for name in ["lo", "no-such-one"] {
            let spec = InterfaceSpec::new(LiveOptions::new(name));
            assert_eq!(port_rate(&spec).unwrap(), None, "{name}");
        }
    }
}
