//! The theorems at p = 1: how often bounds hold over many seeds of the hash, on easy streams and on the worst case.
//!
//! Keys of one sketch share its collisions, so the statistic is per seed: the share of keys that are outside, which
//! is between 0 and 1 and has a mean of at most delta if the theorem holds. The mean over n seeds is then above delta
//! + 5 sqrt(delta (1 - delta)/n) less than once in a million (by the central limit theorem).

use thalweg_sketch::{
    CHEBYSHEV_FACTOR, CountMin, CountSketch, Hasher, KAry, Mode, Nitro, Probability, RowSketch, Shape,
    median_failure,
};

use crate::streams::{FlowKey, Stream};

fn fed<S: RowSketch>(sketch: S, stream: &Stream) -> S {
    let mut nitro = Nitro::new(sketch, Mode::Fixed(Probability::ONE), 0);
    nitro.update(stream.packets.as_slice());
    nitro.into_sketch()
}

/// The mean over seeds of the share of keys outside their bounds, which the sketch claims to be at most `delta`.
fn share_outside<S: RowSketch>(
    new: impl Fn(Hasher) -> S,
    stream: &Stream,
    queried: &[(FlowKey, f64)],
    seeds: u64,
    delta: f64,
) -> f64 {
    let mut outside = 0;
    for seed in 0..seeds {
        let sketch = fed(new(Hasher::new(seed)), stream);
        let noise = sketch.noise();
        for (key, truth) in queried {
            let estimate = sketch.estimate(sketch.hasher().digest(key), &noise);
            assert!((estimate.confidence().unwrap() - (1.0 - delta)).abs() < 1e-12);
            outside += u64::from(estimate.contains(*truth) == Some(false));
        }
    }
    let share = outside as f64 / (seeds * queried.len() as u64) as f64;
    assert!(share <= limit(delta, seeds), "share outside {share}, expected {delta}");
    share
}

fn limit(delta: f64, seeds: u64) -> f64 {
    delta + 5.0 * (delta * (1.0 - delta) / seeds as f64).sqrt()
}

fn streams() -> [Stream; 5] {
    [
        Stream::zipf(1.0, 5_000, 8_000),
        Stream::zipf(1.4, 5_000, 8_000),
        Stream::uniform(2_000, 8_000),
        Stream::one_giant(8_000),
        Stream::zipf(1.0, 5_000, 8_000).in_bytes(),
    ]
}

/// 200 seeds x 60 keys for each stream.
#[test]
fn count_min_exceeds_eps_l1_with_probability_delta() {
    let shape = Shape::new(3, 64).unwrap();
    for stream in streams() {
        let new = |hasher| CountMin::<i64>::new(shape, hasher);
        share_outside(new, &stream, &stream.queries(20), 200, (-3f64).exp());
    }
}

/// Keys of equal weight, just few enough that each weighs a little more than eps L1: a row that collides with any of
/// them is outside. That has probability 1 - (1 - 1/w)^n, near 1 - exp(-1/e) = 0.31, where Markov's inequality has
/// 1/e = 0.37.
#[test]
fn the_count_min_bound_is_nearly_tight() {
    let stream = Stream::uniform(23, 23 * 10);
    let absent: Vec<_> = (1000..1100u32).map(|key| (key.to_be_bytes(), 0.0)).collect();
    for (rows, seeds) in [(1, 500), (2, 500)] {
        let shape = Shape::new(rows, 64).unwrap();
        assert!(10.0 > CountMin::<i32>::guarantee(shape).0 * stream.l1());
        let delta = (-(rows as f64)).exp();
        let share =
            share_outside(|hasher| CountMin::<i32>::new(shape, hasher), &stream, &absent, seeds, delta);
        let exact = (1.0 - (1.0 - 1.0 / 64f64).powi(23)).powi(rows as i32);
        assert!((share - exact).abs() < 0.03, "{rows} rows: {share}, expected {exact}");
    }
}

/// 200 seeds x 60 keys for each stream; five rows, 512 columns.
#[test]
fn count_sketch_and_k_ary_intervals_hold() {
    let shape = Shape::new(5, 512).unwrap();
    let delta = 2.0 * median_failure(5, 1.0 / CHEBYSHEV_FACTOR);
    for stream in streams() {
        let queried = stream.queries(20);
        share_outside(|hasher| CountSketch::<i64>::new(shape, hasher), &stream, &queried, 200, delta);
        share_outside(|hasher| KAry::<i64>::new(shape, hasher), &stream, &queried, 200, delta);
    }
}

/// n keys of equal weight: a key that collides with one of them is wrong by its weight, which is outside while n is
/// below w (1 - sqrt(2 c/w))/c = 112. One row of 1,024 columns, 300 seeds x 200 absent keys. At 105 that has the
/// probability 1 - (1 - 1/w)^105 = 0.0975, near Chebyshev's 1/8; at 125 it takes two keys in one column, 0.007.
#[test]
fn chebyshev_intervals_are_nearly_tight() {
    let shape = Shape::new(1, 1024).unwrap();
    let delta = 2.0 / CHEBYSHEV_FACTOR;
    let absent: Vec<_> = (1000..1200u32).map(|key| (key.to_be_bytes(), 0.0)).collect();
    for (keys, min, max) in [(105, 0.085, 0.11), (125, 0.002, 0.015)] {
        let stream = Stream::uniform(keys, 100 * keys as usize);
        // A positive and a negative weight that cancel keep estimates from being clamped to zero.
        let mut stream = stream;
        stream.packets.extend([([9; 4], 1), ([9; 4], -1)]);
        let share =
            share_outside(|hasher| CountSketch::<i32>::new(shape, hasher), &stream, &absent, 300, delta);
        assert!((min..max).contains(&share), "{keys} keys: {share}");
    }
}

/// F2 within its interval: 200 seeds, delta = 0.016 for five rows.
#[test]
fn f2_intervals_hold() {
    let shape = Shape::new(5, 512).unwrap();
    let delta = median_failure(5, 1.0 / CHEBYSHEV_FACTOR);
    for stream in streams() {
        let (mut outside, mut sum) = (0, 0.0);
        for seed in 0..200 {
            let signed = fed(CountSketch::<i64>::new(shape, Hasher::new(seed)), &stream).f2();
            let unsigned = fed(KAry::<i64>::new(shape, Hasher::new(seed)), &stream).f2();
            for estimate in [signed, unsigned] {
                assert!((estimate.confidence().unwrap() - (1.0 - delta)).abs() < 1e-12);
                outside += u32::from(estimate.contains(stream.f2()) == Some(false));
                sum += estimate.value / stream.f2() / 400.0;
            }
        }
        assert!(f64::from(outside) / 400.0 <= limit(delta, 200), "{outside}");
        // A row has a relative deviation of sqrt(2/512) = 0.0625, the mean of 400 medians below 0.004.
        assert!((sum - 1.0).abs() < 0.02, "{sum}");
    }
}

/// The sketch of a decayed stream is as accurate as any other: 200 seeds x 60 keys.
#[test]
fn intervals_hold_after_scaling() {
    let shape = Shape::new(5, 512).unwrap();
    let stream = Stream::zipf(1.0, 5_000, 8_000);
    let delta = 2.0 * median_failure(5, 1.0 / CHEBYSHEV_FACTOR);
    for factor in [0.4, 0.9] {
        let queried: Vec<_> =
            stream.queries(20).into_iter().map(|(key, truth)| (key, factor * truth)).collect();
        let mut outside = 0;
        for seed in 0..200 {
            let mut sketch = fed(CountSketch::<i32>::new(shape, Hasher::new(seed)), &stream);
            sketch.scale(factor);
            let noise = sketch.noise();
            let is_outside = |key: &FlowKey, truth| {
                sketch.estimate(sketch.hasher().digest(key), &noise).contains(truth) == Some(false)
            };
            outside += queried.iter().filter(|(key, truth)| is_outside(key, *truth)).count();
        }
        let share = outside as f64 / (200 * queried.len()) as f64;
        assert!(share <= limit(delta, 200), "{factor}: {share}");
    }
}

/// Scaled counters are rounded to integers. With weights this small the rounding error dominates, and bounds have to
/// include it. Every key, every seed: rounding is deterministic.
#[test]
fn bounds_hold_for_small_weights_after_scaling() {
    for (keys, factors) in [(100u32, vec![0.5, 0.4, 0.3]), (5_000, vec![0.3]), (100, vec![0.5, 0.5, 3.0])] {
        for seed in 0..20 {
            let shape = Shape::new(5, 4096).unwrap();
            let mut count_min = CountMin::<i32>::new(shape, Hasher::new(seed));
            let mut count_sketch = CountSketch::<i32>::new(shape, Hasher::new(seed));
            let mut k_ary = KAry::<i32>::new(shape, Hasher::new(seed));
            for key in 0..keys {
                count_min.add(&key.to_be_bytes(), 1);
                count_sketch.add(&key.to_be_bytes(), 1);
                k_ary.add(&key.to_be_bytes(), 1);
            }
            let truth: f64 = factors.iter().product();
            for &factor in &factors {
                count_min.scale(factor);
                count_sketch.scale(factor);
                k_ary.scale(factor);
            }
            let (min, signed, ary) = (count_min.noise(), count_sketch.noise(), k_ary.noise());
            let mut outside = [0; 3];
            for key in 0..keys {
                let digest = Hasher::new(seed).digest(&key.to_be_bytes());
                outside[0] += u32::from(count_min.estimate(digest, &min).contains(truth) == Some(false));
                outside[1] +=
                    u32::from(count_sketch.estimate(digest, &signed).contains(truth) == Some(false));
                outside[2] += u32::from(k_ary.estimate(digest, &ary).contains(truth) == Some(false));
            }
            assert!(
                outside.iter().all(|&keys_outside| keys_outside * 100 <= keys * 5),
                "{outside:?} of {keys}"
            );
            assert_eq!(count_sketch.f2().contains(f64::from(keys) * truth * truth), Some(true));
        }
    }
}
