use proptest::prelude::*;

use super::*;
use crate::outcome::Request;
use crate::packet::Ecn;
use crate::schemes::tests::harness::{Bench, ByDestination, request};

const PART: u128 = 1 << FRACTION_BITS;

proptest! {
    /// 1,425 bytes per slot are exact, and so is the remainder.
    #[test]
    fn whole_bytes_per_slot_drain_exactly(
        packets in prop::collection::vec((0u64..8, 64u16..=9_000), 1..200),
    ) {
        let mut phantom = Phantom::new(0.95 * 1_500.0);
        let (mut length, mut now) = (0i128, 0);
        for (gap, bytes) in packets {
            now += gap;
            length = (length - i128::from(gap) * 1_425).max(0);
            prop_assert_eq!(u128::from(phantom.add(bytes, Slot(now))), length as u128 * PART);
            length += i128::from(bytes);
        }
    }

    /// 1,538 * 0.95 = 1,461.1 = 14,611 / 10 is no multiple of the resolution: the error per slot is at most half of it.
    #[test]
    fn other_rates_drain_exactly_to_half_the_resolution(slots in 1u64..1_000_000) {
        let mut phantom = Phantom::new(0.95 * 1_538.0);
        let full = 60_000u16;
        let rounds = slots * 1_461 / u64::from(full) + 1;
        for _ in 0..rounds {
            phantom.add(full, Slot(0));
        }
        let exact = i128::from(rounds) * i128::from(full) * 10 - i128::from(slots) * 14_611;
        let kept = i128::from(phantom.add(0, Slot(slots))) * 10;
        let off = kept - exact.max(0) * PART as i128;
        prop_assert!(off.abs() <= 5 * i128::from(slots), "{off} tenths of a part");
    }
}

#[test]
fn a_long_silence_empties_the_phantom_queue() {
    let mut phantom = Phantom::new(1.0);
    phantom.add(9_000, Slot(0));
    assert_eq!(phantom.add(0, Slot(u64::MAX)), 0);
}

fn bench() -> Bench<Hull<ByDestination>> {
    Bench::new(1, |route, ports| hull(route, ports, &HullConfig::default()))
}

fn capable(id: u32) -> Request {
    let request = request(0, 0, id, 1_500);
    Request { packet: request.packet.with_traffic_class(Ecn::Capable0 as u8), ..request }
}

/// At line rate 75 bytes remain per slot: packet k finds 75 k, and 75 * 201 is the first above 15,000.
#[test]
fn a_full_link_is_marked_when_the_phantom_queue_is_long() {
    let mut bench = bench();
    let first_mark = (0..300).find(|&id| {
        bench.arrive([capable(id)]);
        assert_eq!(bench.waiting(), 1, "the real queue stays empty");
        bench.step_one()[0].ecn() == Ecn::Experienced
    });
    assert_eq!(first_mark, Some(201));
}

/// 19 of 20 slots are gamma: the phantom queue holds a slot's packet and at most 20 * 75 bytes.
#[test]
fn a_link_used_at_gamma_is_not_marked() {
    let mut bench = bench();
    for id in (0..10_000).filter(|id| id % 20 != 0) {
        bench.now = Slot(id.into());
        bench.arrive([capable(id)]);
        bench.step_one();
    }
    assert_eq!(bench.marked(), 0);
}
