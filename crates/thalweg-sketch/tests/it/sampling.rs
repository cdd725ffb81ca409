//! Estimates under sampling: intervals hold with the stated confidence, or the sketch reports that it has none.
//!
//! Shares are of seeds, as in `guarantees.rs`, with the same chance of a false alarm: below one in a million.

use thalweg_sketch::{
    Bound, CHEBYSHEV_FACTOR, CountMin, CountSketch, Hasher, KAry, Mode, Nitro, Probability, RowSketch, Shape,
    WithTopK, median_failure,
};

use crate::streams::{FlowKey, Stream};

const SEEDS: u64 = 200;

fn sampled<S: RowSketch>(sketch: S, stream: &Stream, probability: Probability, seed: u64) -> S {
    let mut nitro = Nitro::new(sketch, Mode::Fixed(probability), seed ^ 0xABCD);
    stream.packets.chunks(1000).for_each(|batch| nitro.update(batch));
    nitro.into_sketch()
}

fn p(log2_inverse: u8) -> Probability {
    Probability::new(log2_inverse).unwrap()
}

fn limit(delta: f64) -> f64 {
    delta + 5.0 * (delta * (1.0 - delta) / SEEDS as f64).sqrt()
}

fn assert_intervals_hold<S: RowSketch>(new: impl Fn(Hasher) -> S, stream: &Stream, probability: Probability) {
    let delta = 2.0 * median_failure(5, 1.0 / CHEBYSHEV_FACTOR);
    let queried = stream.queries(15);
    let mut outside = 0;
    for seed in 0..SEEDS {
        let sketch = sampled(new(Hasher::new(seed)), stream, probability, seed);
        let noise = sketch.noise();
        assert!(noise.is_converged(), "p = {probability}, seed {seed}");
        let is_outside = |(key, truth): &&(FlowKey, f64)| {
            let estimate = sketch.estimate(sketch.hasher().digest(key), &noise);
            assert!((estimate.confidence().unwrap() - (1.0 - delta)).abs() < 1e-12);
            estimate.contains(*truth) == Some(false)
        };
        outside += queried.iter().filter(is_outside).count();
    }
    let share = outside as f64 / (SEEDS * queried.len() as u64) as f64;
    assert!(share <= limit(delta), "p = {probability}: {share}");
}

/// 200 seeds x 45 keys for each sketch and stream.
#[test]
fn intervals_hold_with_their_confidence() {
    let shape = Shape::new(5, 512).unwrap();
    let streams = [
        (Stream::zipf(1.0, 5_000, 8_000), p(2)),
        (Stream::zipf(1.4, 5_000, 16_000), p(4)),
        (Stream::one_giant(16_000), p(4)),
        (Stream::zipf(1.4, 5_000, 12_000).in_bytes(), p(2)),
    ];
    for (stream, probability) in &streams {
        assert_intervals_hold(|hasher| CountSketch::<i32>::new(shape, hasher), stream, *probability);
        assert_intervals_hold(|hasher| KAry::<i64>::new(shape, hasher), stream, *probability);
        assert_intervals_hold(|hasher| CountMin::<i32>::new(shape, hasher), stream, *probability);
    }
}

/// At every p, all of 50 seeds: 20 packets have never converged, 40,000 / p of one key always.
#[test]
fn only_long_streams_converge() {
    fn check<S: RowSketch>(new: impl Fn(Hasher) -> S) {
        for log2 in 1..=10 {
            let short = Stream::uniform(5, 20);
            for seed in 0..50 {
                let sketch = sampled(new(Hasher::new(seed)), &short, p(log2), seed);
                // Nothing or hardly anything was sampled; the value is still the sampled weight.
                let estimate = sketch.estimate_key(&0u32.to_be_bytes());
                assert_eq!(estimate.bound, Bound::NotConverged, "{}", p(log2));
                assert_eq!(estimate.contains(4.0), None);
                assert!(!sketch.noise().is_converged());
            }
        }
        for log2 in [1, 5] {
            let long = Stream::one_key(500 << log2);
            for seed in 0..50 {
                let sketch = sampled(new(Hasher::new(seed)), &long, p(log2), seed);
                let estimate = sketch.estimate_key(&0u32.to_be_bytes());
                assert_eq!(estimate.contains((500 << log2) as f64), Some(true), "{estimate}");
            }
        }
    }
    let shape = Shape::new(5, 1024).unwrap();
    check(|hasher| CountSketch::<i32>::new(shape, hasher));
    check(|hasher| KAry::<i32>::new(shape, hasher));
    check(|hasher| CountMin::<i64>::new(shape, hasher));
}

/// The interval of F2 under sampling: 200 seeds, delta = 0.016.
#[test]
fn f2_intervals_hold_under_sampling() {
    let shape = Shape::new(5, 512).unwrap();
    let delta = median_failure(5, 1.0 / CHEBYSHEV_FACTOR);
    for (stream, log2) in [(Stream::one_giant(8_000), 3), (Stream::zipf(1.4, 5_000, 12_000).in_bytes(), 2)] {
        let (mut outside, mut sum) = (0, 0.0);
        for seed in 0..SEEDS {
            let sketch = sampled(CountSketch::<i32>::new(shape, Hasher::new(seed)), &stream, p(log2), seed);
            outside += u64::from(sketch.f2().contains(stream.f2()).map(|holds| !holds).unwrap());
            sum += sketch.f2().value / stream.f2() / SEEDS as f64;
        }
        assert!(outside as f64 / SEEDS as f64 <= limit(delta), "{outside}");
        // Relative deviation of a row: below 0.12; of the mean of 200 medians below 0.01.
        assert!((sum - 1.0).abs() < 0.04, "{sum}");
    }
}

/// Here sampling adds 3/8 to the sum of squares, Q = 15 x 8,000 to 200 x 40^2. 200 seeds; the deviation of a median
/// is below a tenth, so 0.05 is more than five standard errors.
#[test]
fn f2_excludes_the_sampling_noise() {
    let stream = Stream::uniform(200, 8_000);
    let shape = Shape::new(5, 512).unwrap();
    let of_seed =
        |seed| sampled(CountSketch::<i32>::new(shape, Hasher::new(seed)), &stream, p(4), seed).f2().value;
    let mean = (0..SEEDS).map(of_seed).sum::<f64>() / SEEDS as f64;
    assert!((mean / stream.f2() - 1.0).abs() < 0.05, "{mean}, expected {}", stream.f2());
}

#[test]
fn stream_statistics_keep_the_minimum_p_and_maximum_weight() {
    let [heavy, light] = [9, 2].map(|weight| Stream::of(vec![([1; 4], weight); 10]));
    let sketch = CountSketch::<i32>::new(Shape::new(3, 64).unwrap(), Hasher::new(1));
    let sketch = sampled(sampled(sampled(sketch, &light, p(3), 1), &heavy, p(1), 2), &light, p(0), 3);
    let statistics = sketch.statistics();
    assert_eq!(
        (statistics.min_probability(), statistics.max_weight(), statistics.sampling_variance()),
        (p(3), 9.0, 14.0)
    );
    assert_eq!(statistics.sampling_f2(), 40.0 * 7.0 + 810.0);
    assert_eq!((statistics.total(), statistics.magnitude()), (130, 130));
    let mut merged = sampled(CountSketch::new(sketch.shape(), Hasher::new(1)), &light, p(2), 1);
    merged.merge(&sketch).unwrap();
    assert_eq!((merged.statistics().min_probability(), merged.statistics().max_weight()), (p(3), 9.0));
    merged.scale(-0.5);
    assert_eq!((merged.statistics().max_weight(), merged.statistics().sampling_variance()), (4.5, 7.0));
    assert_eq!(merged.statistics().sampling_f2(), (40.0 * 7.0 + 810.0 + 40.0 * 3.0) / 4.0);
    assert!(merged.statistics().has_negative());
}

/// Subtracting a sampled stream leaves noise without a known bound.
#[test]
fn subtracting_a_sampled_sketch_leaves_no_bound() {
    let shape = Shape::new(5, 512).unwrap();
    let stream = Stream::one_giant(8_000);
    let new = || KAry::<i32>::new(shape, Hasher::new(1));
    let mut difference = sampled(new(), &stream, p(2), 1);
    difference.subtract(&sampled(new(), &stream, p(2), 2)).unwrap();
    assert_eq!(difference.estimate_key(&0u32.to_be_bytes()).bound, Bound::Unknown);
    let exact = sampled(new(), &stream, p(0), 1);
    let mut difference = exact.clone();
    difference.subtract(&exact).unwrap();
    assert_eq!(difference.estimate_key(&0u32.to_be_bytes()).contains(0.0), Some(true));
}

/// The ten largest of Zipf 1.4 differ by more than the error: 10 % of the count between the tenth and the eleventh,
/// at 30,000 packets 30, against a deviation of 2 F2^(1/2)/w = 9 at p = 1. Found for all of 20 seeds.
#[test]
fn the_largest_keys_are_found_with_and_without_sampling() {
    let stream = Stream::zipf(1.4, 5_000, 30_000);
    let top = stream.queries(10);
    for (log2, min) in [(0, 9), (3, 6)] {
        for seed in 0..20 {
            let sketch = CountSketch::<i32>::new(Shape::new(5, 2048).unwrap(), Hasher::new(seed));
            let mut nitro = Nitro::new(WithTopK::<_, FlowKey>::new(sketch, 10), Mode::Fixed(p(log2)), seed);
            stream.packets.chunks(100).for_each(|batch| nitro.update(batch));
            let found = nitro.sketch().largest();
            assert_eq!(found.len(), 10);
            assert_eq!(found[0].0, top[0].0);
            let true_ones = found.iter().filter(|(key, _)| top[..10].iter().any(|(of_top, _)| of_top == key));
            assert!(true_ones.count() >= min, "p = {}, seed {seed}", p(log2));
            assert!(found.windows(2).all(|pair| pair[0].1.value >= pair[1].1.value));
        }
    }
}
