//! Keys on demand: the same counts as with all keys at hand, and an honest number of packets without one.

use proptest::prelude::*;
use thalweg_sketch::{
    Bound, CountMin, CountSketch, Hasher, LineRate, Mode, Nitro, Offers, Probability, RowSketch, Shape,
    Target, UnivMon, UnivMonShape, WithTopK,
};

use crate::streams::{FlowKey, Stream};

type Ranked = WithTopK<CountSketch<i32>, FlowKey>;

fn ranked() -> Ranked {
    WithTopK::new(CountSketch::new(Shape::new(5, 64).unwrap(), Hasher::new(3)), 10)
}

fn p(log2_inverse: u8) -> Probability {
    Probability::new(log2_inverse).unwrap()
}

fn modes() -> impl Strategy<Value = Mode> {
    let fixed = (0..=7u8).prop_map(|log2| Mode::Fixed(p(log2)));
    let line_rate = LineRate { epoch_ns: 1_000, ..LineRate::default() };
    prop_oneof![
        fixed,
        Just(Mode::AlwaysLineRate(line_rate)),
        Just(Mode::AlwaysCorrect(Target { eps: 0.6, min_probability: p(7) })),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the mode, the batches and the weights.
    #[test]
    fn keys_on_demand_count_as_keys_at_hand(mode in modes(), piece in 1usize..3000, weighted: bool, seed: u64) {
        let stream = Stream::zipf(1.1, 500, 100_000);
        let stream = if weighted { stream.in_bytes() } else { stream };
        let mut at_hand = Nitro::new(ranked(), mode, seed);
        let (mut on_demand, mut offers) = (at_hand.clone(), Offers::default());
        for (number, batch) in stream.packets.chunks(piece).enumerate() {
            let now_ns = number as u64 * 700;
            at_hand.advance(now_ns);
            on_demand.advance(now_ns);
            at_hand.update(batch);
            let weights: Vec<i64> = batch.iter().map(|packet| packet.1).collect();
            let weights = weighted.then_some(weights.as_slice());
            on_demand.update_on_demand(batch.len(), weights, &mut offers, |packet, key| {
                *key = batch[packet].0;
                true
            });
        }
        prop_assert_eq!(at_hand.probability(), on_demand.probability());
        prop_assert_eq!(on_demand.uncounted::<FlowKey>().value, 0.0);
        // Candidates may differ: estimates are offered in groups of another size.
        prop_assert_eq!(at_hand.sketch().sketch.rows(), on_demand.sketch().sketch.rows());
    }

    /// One by one, with the packets that are not sampled skipped, in steps of any length.
    #[test]
    fn packets_that_pass_unsampled_need_no_key(log2 in 0..=8u8, step in 1u64..100, seed: u64) {
        let stream = Stream::zipf(1.0, 300, 20_000);
        let mut whole = Nitro::new(ranked(), Mode::Fixed(p(log2)), seed);
        let mut one_by_one = whole.clone();
        whole.update(stream.packets.as_slice());
        let mut at = 0;
        while at < stream.packets.len() {
            let unsampled = one_by_one.unsampled::<FlowKey>();
            let left = (stream.packets.len() - at) as u64;
            let skipped = one_by_one.skip::<FlowKey>(step.min(left));
            prop_assert_eq!(skipped, unsampled.min(step).min(left));
            at += skipped as usize;
            if skipped == 0 {
                one_by_one.update(&stream.packets[at..=at]);
                at += 1;
            }
        }
        prop_assert_eq!(whole.sketch().sketch.rows(), one_by_one.sketch().sketch.rows());
    }
}

#[test]
fn without_sampling_packets_without_a_key_are_left_out_exactly() {
    let stream = Stream::zipf(1.0, 300, 20_000);
    let has_key = |packet: usize| !packet.is_multiple_of(7);
    let mut all =
        Nitro::new(CountMin::<i32>::new(Shape::new(4, 256).unwrap(), Hasher::new(1)), Mode::Fixed(p(0)), 1);
    let mut rest = all.clone();
    let keyed: Vec<_> =
        (0..20_000).filter(|&packet| has_key(packet)).map(|packet| stream.packets[packet]).collect();
    rest.update(keyed.as_slice());
    all.update_on_demand(20_000, None, &mut Offers::default(), |packet, key| {
        *key = stream.packets[packet].0;
        has_key(packet)
    });
    assert_eq!(all.sketch(), rest.sketch());
    let uncounted = all.uncounted::<FlowKey>();
    assert_eq!(uncounted.value, (20_000 - keyed.len()) as f64);
    assert_eq!(uncounted.confidence(), Some(1.0));
}

/// 99 % of the intervals hold: of 200, more than 9 fail once in 20,000 times.
#[test]
fn sampled_packets_without_a_key_are_estimated_with_a_bound() {
    let shape = UnivMonShape::new(4, Shape::new(5, 64).unwrap(), 10).unwrap();
    let keyless = (0..30_000usize).filter(|packet| packet.is_multiple_of(3)).count() as f64;
    let mut outside = 0;
    for seed in 0..200 {
        let sketch = UnivMon::<FlowKey>::new(shape, Hasher::new(seed));
        let mut nitro = Nitro::new(sketch, Mode::Fixed(p(5)), seed);
        let mut offers = Offers::default();
        for first in (0..30_000).step_by(100) {
            nitro.update_on_demand(100, None, &mut offers, |packet, key| {
                let number = first + packet;
                *key = (number as u32 % 9).to_be_bytes();
                !number.is_multiple_of(3)
            });
        }
        let uncounted = nitro.uncounted::<FlowKey>();
        assert!(matches!(uncounted.bound, Bound::Interval { confidence: 0.99, .. }), "{uncounted}");
        outside += u32::from(uncounted.contains(keyless) == Some(false));
        // The rest is the total of the sketch.
        let total = nitro.sketch().statistics().total() as f64;
        assert!((total + uncounted.value - 30_000.0).abs() <= 1.0, "{total} and {uncounted}");
    }
    assert!(outside <= 9, "{outside}");
}
