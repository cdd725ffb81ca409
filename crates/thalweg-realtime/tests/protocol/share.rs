//! The share of the network that the protocol takes.

use thalweg_realtime::protocol::{ArbiterOptions, EndpointOptions, LinkOptions, Submission};
use thalweg_wire::emulation_protocol::{Flow, SchemeBytes};
use thalweg_wire::{Nanos, Timestamp};

use crate::wire::Conditions;
use crate::world::{Fate, World};

/// Bytes of a data packet's frame without preamble and FCS: an MTU of 1,500 and 14 of Ethernet.
const FRAME: u64 = 1_514;

/// Bytes around a datagram: Ethernet 14, IPv4 20, UDP 8.
const AROUND: u64 = 14 + 20 + 8;

/// The time of a frame at 10 Gbit/s with preamble, FCS and gap: 1,538 bytes.
const FRAME_NS: u64 = 1_230;

const BATCHES: u64 = 500;

/// The share in hundredths of a percent, rounded up: bytes of requests, answers and acknowledgements over those of
/// the data packets. The endpoint sends at 10 Gbit/s, `batch` packets at a time over `flows` flows, each with 4
/// scheme bytes.
fn share(batch: u64, flows: u64) -> u64 {
    // Requests and answers wait until a batch is full, and acknowledgements for the next batch.
    let link = LinkOptions {
        batch: batch as u32,
        batch_delay: Nanos(4 * batch * FRAME_NS),
        acknowledgement_delay: Nanos(4 * batch * FRAME_NS + 50_000),
        ..LinkOptions::default()
    };
    let endpoint = EndpointOptions { link, ..EndpointOptions::default() };
    let arbiter = ArbiterOptions { link, ..ArbiterOptions::default() };
    let calm = Conditions {
        lost_per_mille: 0,
        duplicated_per_mille: 0,
        damaged_per_mille: 0,
        delay_ns: 15_000,
        jitter_ns: 0,
    };
    let mut world = World::new(1, calm, endpoint, arbiter);
    world.emulation_ns = Some((30_000, 0));
    let start = world.now.0;
    for number in 0..BATCHES * batch {
        let flow =
            Flow { source: 0, destination: (1 + number % flows) as u16, number: (number % flows) as u32 };
        let custom = SchemeBytes::new(&(number as u32).to_be_bytes()).unwrap();
        world.run_until(Timestamp(start + number / batch * batch * FRAME_NS));
        world.submit(Submission { flow, length: 1_500, traffic_class: 2, custom });
    }
    let end = start + BATCHES * batch * FRAME_NS;
    world.run_until(Timestamp(end + 2_000_000));
    assert_eq!(world.count(Fate::Sent) + world.count(Fate::Dropped), BATCHES * batch);
    let (bytes, datagrams) = world.traffic;
    (10_000 * (bytes + datagrams * AROUND)).div_ceil(BATCHES * batch * FRAME)
}

/// The oracle's answers are the worst case: 3/8 of the packets break a run of equal verdicts, and most delays take two bytes.
#[test]
fn batches_of_eight_or_more_cost_at_most_two_percent() {
    let shares: Vec<u64> =
        [(1, 1), (8, 1), (32, 1), (8, 8), (32, 8)].map(|(batch, flows)| share(batch, flows)).into();
    // The figures of docs/decisions/0058-emulation-protocol.md.
    assert_eq!(shares, [1_075, 182, 86, 256, 105], "in hundredths of a percent");
    assert!(shares[1..3].iter().all(|share| *share <= 200), "{shares:?}");
}
