//! The queue in front of a link: a token bucket filter (tc-tbf(8)) of the link's rate.
//!
//! Links have no rate of their own here; the shaper in front of each is what makes one of so many bits a second. Its
//! bucket holds [`BURST`] of data, which may pass at once after a pause; behind it wait as many bytes as the buffer is
//! given, and what is more is dropped and counted.

use rtnetlink::packet_core::DefaultNla;
use rtnetlink::packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption, TcStats2};
use thalweg_wire::{BitRate, Bytes, Nanos};

/// Data that may pass at once, as time at the link's rate: 10 kB at 100 Mbit/s. A shaper that lets through one frame at
/// a time sets a timer for each, and timers cost more than forwarding.
const BURST: Nanos = Nanos::from_micros(800);

/// Frames of the longest length that a bucket and a queue hold at the least.
const LEAST_FRAMES: u64 = 2;

/// Ethernet header.
const HEADER: u64 = 14;

/// Attributes of TCA_OPTIONS of tbf (linux/pkt_sched.h).
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_BURST: u16 = 6;

/// TC_LINKLAYER_ETHERNET (linux/pkt_sched.h): the kernel works out times itself, without a table of ours.
const LINK_LAYER_ETHERNET: u8 = 1;

/// What a queue has let through, and what it has not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounters {
    /// Frames sent. Wraps at 2^32, as in the kernel.
    pub sent_packets: u64,
    /// Their bytes, without preamble and check sequence.
    pub sent_bytes: u64,
    /// Frames dropped, for the queue was full. Wraps at 2^32, too.
    pub dropped_packets: u64,
    /// Bytes waiting now.
    pub backlog: Bytes,
}

/// A shaper of `rate` at an interface, whose queue holds what the link carries in `buffer`.
pub(crate) fn shaper(interface: u32, rate: BitRate, buffer: Nanos, mtu: u32) -> TcMessage {
    let least = LEAST_FRAMES * (u64::from(mtu) + HEADER);
    let burst = rate.amount_in(BURST).0.max(least);
    let limit = rate.amount_in(buffer).0.max(least);
    let options = vec![
        option(TCA_TBF_PARMS, &parameters(rate, limit)),
        option(TCA_TBF_BURST, &(burst as u32).to_ne_bytes()),
    ];
    let mut message = TcMessage::with_index(interface as i32);
    message.header.parent = TcHandle::ROOT;
    message.header.handle = TcHandle { major: 1, minor: 0 };
    message.attributes = vec![TcAttribute::Kind("tbf".to_owned()), TcAttribute::Options(options)];
    message
}

/// The interface of a queue and what it has counted, if it is at the root of the interface.
pub(crate) fn queue_counters(message: &TcMessage) -> Option<(u32, QueueCounters)> {
    if message.header.parent != TcHandle::ROOT {
        return None;
    }
    let mut counters = QueueCounters::default();
    let of_attribute = |attribute: &TcAttribute| match attribute {
        TcAttribute::Stats2(statistics) => Some(statistics.clone()),
        _ => None,
    };
    for statistics in message.attributes.iter().filter_map(of_attribute).flatten() {
        match statistics {
            TcStats2::Basic(basic) => {
                counters.sent_packets = u64::from(basic.packets);
                counters.sent_bytes = basic.bytes;
            }
            TcStats2::Queue(queue) => {
                counters.dropped_packets = u64::from(queue.drops);
                counters.backlog = Bytes(u64::from(queue.backlog));
            }
            _ => {}
        }
    }
    Some((message.header.index as u32, counters))
}

/// `struct tc_tbf_qopt` (linux/pkt_sched.h): two rates, then limit, bucket and longest packet. The peak rate is none,
/// and the bucket is said in bytes by an attribute of its own.
fn parameters(rate: BitRate, limit: u64) -> [u8; 36] {
    let mut bytes = [0; 36];
    bytes[1] = LINK_LAYER_ETHERNET;
    // Plans have no rate of 2^32 bytes a second.
    let bytes_per_second = u32::try_from(rate.0 / 8).unwrap_or(u32::MAX);
    bytes[8..12].copy_from_slice(&bytes_per_second.to_ne_bytes());
    bytes[24..28].copy_from_slice(&u32::try_from(limit).unwrap_or(u32::MAX).to_ne_bytes());
    bytes
}

fn option(kind: u16, value: &[u8]) -> TcOption {
    TcOption::Other(DefaultNla::new(kind, value.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_are_where_the_kernel_reads_them() {
        let bytes = parameters(BitRate(100_000_000), 62_500);
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!((bytes[1], word(8), word(24)), (1, 12_500_000, 62_500));
        assert!(bytes[12..24].iter().all(|&byte| byte == 0), "no peak rate");
        let fast = parameters(BitRate(100_000_000_000), 1 << 40);
        assert_eq!((&fast[8..12], &fast[24..28]), ([255; 4].as_slice(), [255; 4].as_slice()));
    }
}
