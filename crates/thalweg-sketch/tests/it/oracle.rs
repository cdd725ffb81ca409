//! Exact results at p = 1, compared with a map of weights, however a stream is fed, split, merged or subtracted.

use std::collections::HashMap;

use proptest::prelude::*;
use thalweg_sketch::{
    Bound, CountMin, CountSketch, Counter, Digest, Hasher, KAry, MergeError, Mode, Nitro, Probability,
    RowSketch, Shape, Sums, Target, TopK,
};

type FlowKey = [u8; 2];
type Packet = (FlowKey, i64);

fn packets(weights: impl Strategy<Value = i64>) -> impl Strategy<Value = Vec<Packet>> {
    prop::collection::vec(((0..300u16).prop_map(u16::to_be_bytes), weights), 0..600)
}

fn shapes() -> impl Strategy<Value = Shape> {
    (1..=8usize, 2..=13u32).prop_map(|(rows, width_log2)| Shape::new(rows, 1 << width_log2).unwrap())
}

fn fed<S: RowSketch>(mut sketch: S, packets: &[Packet], batch: usize) -> S {
    for batch in packets.chunks(batch.max(1)) {
        let digests: Vec<Digest> = batch.iter().map(|packet| sketch.hasher().digest(&packet.0)).collect();
        sketch.add_batch(&digests, &Sums::of(batch.iter().map(|packet| packet.1)), |number| batch[number].1);
    }
    sketch
}

fn by_nitro<S: RowSketch>(sketch: S, packets: &[Packet], batch: usize, mode: Mode) -> S {
    let mut nitro = Nitro::new(sketch, mode, 3);
    packets.chunks(batch.max(1)).for_each(|batch| nitro.update(batch));
    nitro.into_sketch()
}

fn one_by_one<S: RowSketch>(mut sketch: S, packets: &[Packet]) -> S {
    packets.iter().for_each(|(key, weight)| sketch.add(key, *weight));
    sketch
}

fn truth(packets: &[Packet]) -> HashMap<FlowKey, i64> {
    let mut truth = HashMap::new();
    packets.iter().for_each(|&(key, weight)| *truth.entry(key).or_default() += weight);
    truth
}

fn assert_all_ways_lead_to_one_state<S>(empty: &S, packets: &[Packet], batch: usize)
where
    S: RowSketch + Clone + PartialEq + std::fmt::Debug,
{
    let expected = one_by_one(empty.clone(), packets);
    assert_eq!(fed(empty.clone(), packets, batch), expected);
    assert_eq!(by_nitro(empty.clone(), packets, batch, Mode::Fixed(Probability::ONE)), expected);
    // Fewer packets than the first test waits for: p stays 1.
    let target = Target::for_width(empty.shape().width());
    assert_eq!(by_nitro(empty.clone(), packets, batch, Mode::AlwaysCorrect(target)), expected);
    assert_eq!(expected.statistics().total(), packets.iter().map(|packet| packet.1).sum::<i64>());
    assert!(!expected.statistics().is_sampled());
}

/// Merging any parts gives the whole; merging and subtracting, in either order, changes nothing.
fn assert_linear<S>(empty: &S, packets: &[Packet], cuts: [usize; 2])
where
    S: RowSketch + Clone + PartialEq + std::fmt::Debug,
{
    let mut cuts = cuts.map(|cut| cut % (packets.len() + 1));
    cuts.sort_unstable();
    let parts = [&packets[..cuts[0]], &packets[cuts[0]..cuts[1]], &packets[cuts[1]..]];
    let [one, two, three] = parts.map(|part| fed(empty.clone(), part, 50));
    let whole = fed(empty.clone(), packets, 70);
    let mut merged = three.clone();
    merged.merge(&one).unwrap();
    merged.merge(&two).unwrap();
    assert_eq!(merged, whole);

    let values = |sketch: &S| -> Vec<i64> {
        (0..300u16)
            .map(|key| sketch.estimate_without_bound(sketch.hasher().digest(&key.to_be_bytes())))
            .collect()
    };
    let mut back = whole.clone();
    back.subtract(&two).unwrap();
    back.merge(&two).unwrap();
    assert_eq!(values(&back).len(), 300);
    assert_eq!(back.statistics().total(), whole.statistics().total());
    // After a subtraction a Count-Min is read by its median.
    back.subtract(&whole).unwrap();
    assert!(values(&back).iter().all(|&value| value == 0));
    assert!(back.statistics().has_negative() || packets.iter().all(|packet| packet.1 == 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn one_by_one_batch_and_nitro_updates_agree(
        shape in shapes(), packets in packets(-2000..2000i64), batch in 1..600usize, seed: u64,
    ) {
        let hasher = Hasher::new(seed);
        assert_all_ways_lead_to_one_state(&CountSketch::<i32>::new(shape, hasher), &packets, batch);
        assert_all_ways_lead_to_one_state(&CountSketch::<i64>::new(shape, hasher), &packets, batch);
        assert_all_ways_lead_to_one_state(&CountMin::<i32>::new(shape, hasher), &packets, batch);
        assert_all_ways_lead_to_one_state(&KAry::<i64>::new(shape, hasher), &packets, batch);
    }

    #[test]
    fn merge_and_subtract_are_inverse(
        shape in shapes(), packets in packets(-2000..2000i64), cuts: [usize; 2], seed: u64,
    ) {
        let hasher = Hasher::new(seed);
        assert_linear(&CountSketch::<i32>::new(shape, hasher), &packets, cuts);
        assert_linear(&CountMin::<i64>::new(shape, hasher), &packets, cuts);
        assert_linear(&KAry::<i32>::new(shape, hasher), &packets, cuts);
    }

    /// With 300 keys in 2^13 columns, a key is alone in most rows; deterministic, as seeds are fixed.
    #[test]
    fn estimates_are_exact_where_keys_do_not_collide(packets in packets(-9..2000i64), seed in 0..20u64) {
        let shape = Shape::new(7, 1 << 13).unwrap();
        let exact = truth(&packets);
        let sketch = one_by_one(CountSketch::<i64>::new(shape, Hasher::new(seed)), &packets);
        let noise = sketch.noise();
        let at_zero = if sketch.statistics().has_negative() { i64::MIN } else { 0 };
        for key in (0..300u16).map(u16::to_be_bytes) {
            let expected = exact.get(&key).copied().unwrap_or(0);
            let digest = sketch.hasher().digest(&key);
            prop_assert_eq!(sketch.estimate(digest, &noise).value, expected.max(at_zero) as f64);
            prop_assert_eq!(sketch.estimate_without_bound(digest), expected);
        }
    }

    #[test]
    fn count_min_is_never_below_the_truth(shape in shapes(), packets in packets(0..2000i64), seed: u64) {
        let sketch = fed(CountMin::<i64>::new(shape, Hasher::new(seed)), &packets, 64);
        let noise = sketch.noise();
        for (key, weight) in truth(&packets) {
            let estimate = sketch.estimate(sketch.hasher().digest(&key), &noise);
            prop_assert!(estimate.value >= weight as f64);
            prop_assert_eq!(estimate.upper(), Some(estimate.value));
            prop_assert_eq!(sketch.estimate_without_bound(sketch.hasher().digest(&key)) as f64, estimate.value);
        }
    }

    #[test]
    fn scaling_by_powers_of_two_is_reversible(packets in packets(-2000..2000i64), up in 0..8i32) {
        let shape = Shape::new(3, 64).unwrap();
        let sketch = fed(CountSketch::<i64>::new(shape, Hasher::new(1)), &packets, 64);
        let mut scaled = sketch.clone();
        scaled.scale(2f64.powi(up));
        prop_assert_eq!(scaled.statistics().total(), sketch.statistics().total() << up);
        scaled.scale(2f64.powi(-up));
        prop_assert_eq!(scaled, sketch);
    }

    /// Every key is offered with its exact count when it grows: the k largest are there, except for ties.
    #[test]
    fn a_top_k_of_exact_estimates_is_exact(
        keys in prop::collection::vec(0..200u16, 0..2000), k in 1..40usize, skew in 1..5u32,
    ) {
        let mut top = TopK::<FlowKey>::new(k);
        let mut exact = HashMap::<u16, i64>::new();
        for key in keys {
            let key = (f64::from(key) / 200.0).powi(skew as i32).mul_add(200.0, 0.0) as u16;
            let count = exact.entry(key).or_default();
            *count += 1;
            top.offer(&key.to_be_bytes(), Hasher::new(1).digest(&key.to_be_bytes()), *count);
        }
        let mut counts: Vec<i64> = exact.values().copied().collect();
        counts.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
        counts.truncate(k);
        let largest = top.largest();
        let found: Vec<i64> = largest.iter().map(|candidate| candidate.estimate).collect();
        prop_assert_eq!(found, counts);
        for candidate in largest {
            prop_assert_eq!(candidate.estimate, exact[&u16::from_be_bytes(candidate.key)]);
        }
        prop_assert!(top.candidates().len() < 2 * k);
    }

    #[test]
    fn a_top_k_for_a_memory_is_the_largest_that_fits(memory in 0..1u64 << 22) {
        let top = TopK::<FlowKey>::for_memory(memory);
        prop_assert!(top.bytes() <= memory || top.k() == 1);
        prop_assert!(TopK::<FlowKey>::bytes_for(top.k() + 1) > memory, "{} keys", top.k());
    }
}

#[test]
fn different_sketches_are_not_merged() {
    let [narrow, wide] = [64, 128].map(|width| Shape::new(3, width).unwrap());
    let mut sketch = CountSketch::<i32>::new(narrow, Hasher::new(1));
    sketch.add(&[1u8, 2], 9);
    let before = sketch.clone();
    let other = CountSketch::new(wide, Hasher::new(1));
    assert_eq!(sketch.merge(&other), Err(MergeError::Shape { ours: narrow, theirs: wide }));
    let other = CountSketch::new(narrow, Hasher::new(2));
    assert_eq!(sketch.subtract(&other), Err(MergeError::Seed { ours: 1, theirs: 2 }));
    assert_eq!(sketch, before);
}

/// The difference of two streams may be negative even if neither was: a Count-Min is then read by its median.
#[test]
fn a_difference_may_be_negative() {
    fn check<S: RowSketch + Clone>(empty: S) {
        let (mut one, mut other) = (empty.clone(), empty.clone());
        one.add(&[1u8; 2], 10);
        other.add(&[2u8; 2], 30);
        one.subtract(&empty).unwrap();
        assert!(!one.statistics().has_negative(), "before subtraction");
        one.subtract(&other).unwrap();
        assert!(one.statistics().has_negative());
        assert_eq!((one.statistics().total(), one.statistics().magnitude()), (-20, 40));
        let [grown, shrunk] = [[1u8; 2], [2u8; 2]].map(|key| one.estimate_key(&key));
        assert!((grown.value - 10.0).abs() < 1.0 && (shrunk.value + 30.0).abs() < 1.0, "{grown}, {shrunk}");
        assert_eq!((grown.contains(10.0), shrunk.contains(-30.0)), (Some(true), Some(true)));
    }
    let (shape, hasher) = (Shape::new(5, 256).unwrap(), Hasher::new(1));
    check(CountSketch::<i32>::new(shape, hasher));
    check(CountMin::<i32>::new(shape, hasher));
    check(KAry::<i64>::new(shape, hasher));
}

#[test]
fn an_empty_sketch_estimates_exactly_zero() {
    fn check<S: RowSketch>(sketch: S) {
        let estimate = sketch.estimate_key(&[7u8; 2]);
        assert_eq!((estimate.value, estimate.lower(), estimate.upper()), (0.0, Some(0.0), Some(0.0)));
        assert_eq!((sketch.statistics().total(), sketch.saturations()), (0, 0));
    }
    let (shape, hasher) = (Shape::new(5, 256).unwrap(), Hasher::new(1));
    check(CountSketch::<i32>::new(shape, hasher));
    check(CountMin::<i32>::new(shape, hasher));
    check(KAry::<i32>::new(shape, hasher));
    let empty: [FlowKey; 0] = [];
    let mode = Mode::Fixed(Probability::MIN);
    let mut nitro = Nitro::new(CountSketch::<i32>::new(shape, hasher), mode, 1);
    nitro.update(empty.as_slice());
    check(nitro.into_sketch());
}

#[test]
fn a_saturated_sketch_has_no_bound() {
    fn check<S: RowSketch>(mut sketch: S) {
        let max = S::Counter::limit(1).get();
        sketch.add(&[1u8; 2], max / 3 * 2);
        sketch.add(&[2u8; 2], 5);
        assert!(sketch.estimate_key(&[2u8; 2]).confidence().is_some());
        sketch.add(&[1u8; 2], max / 3 * 2);
        assert_eq!(sketch.saturations(), 3);
        assert_eq!(sketch.estimate_key(&[2u8; 2]).bound, Bound::Unknown);
        // All of it, except for the mean of a row without signs.
        let rough = sketch.estimate_without_bound(sketch.hasher().digest(&[1u8; 2]));
        assert!(rough <= max && rough > max / 100 * 97, "{rough}");
        sketch.clear();
        assert_eq!(sketch.saturations(), 0);
    }
    let (shape, hasher) = (Shape::new(3, 256).unwrap(), Hasher::new(1));
    check(CountSketch::<i32>::new(shape, hasher));
    check(CountMin::<i32>::new(shape, hasher));
    check(KAry::<i32>::new(shape, hasher));
    check(CountMin::<i64>::new(shape, hasher));
    check(CountSketch::<i64>::new(shape, hasher));
}

/// The shape for the guarantee of a shape is that shape.
#[test]
fn a_shape_is_the_smallest_that_meets_its_guarantee() {
    for rows in [1, 3, 5, 7] {
        for width_log2 in 4..=20 {
            let shape = Shape::new(rows, 1 << width_log2).unwrap();
            let (eps, delta) = CountMin::<i32>::guarantee(shape);
            assert_eq!(CountMin::<i32>::shape_for(eps, delta), Ok(shape), "Count-Min {shape}");
            let (eps, delta) = CountSketch::<i32>::guarantee(shape);
            assert_eq!(CountSketch::<i32>::shape_for(eps, delta), Ok(shape), "Count Sketch {shape}");
            let (eps, delta) = KAry::<i32>::guarantee(shape);
            assert_eq!(KAry::<i32>::shape_for(eps, delta), Ok(shape), "K-ary {shape}");
        }
    }
}
