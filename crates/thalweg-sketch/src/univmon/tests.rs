use std::collections::HashMap;

use super::*;
use crate::nitro::{Mode, Nitro};

type Exact = HashMap<[u8; 4], i64>;

/// `packets` packets; the key of rank r occurs about 1/r as often as the first.
fn zipf(packets: usize, keys: u32, seed: u64) -> Vec<[u8; 4]> {
    use rand_xoshiro::rand_core::{Rng, SeedableRng};
    let mut draws = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
    let total: f64 = (1..=keys).map(|rank| 1.0 / f64::from(rank)).sum();
    let mut cumulative = Vec::new();
    let mut sum = 0.0;
    for rank in 1..=keys {
        sum += 1.0 / f64::from(rank) / total;
        cumulative.push(sum);
    }
    let mut draw = || {
        let uniform = (draws.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        (cumulative.partition_point(|&below| below < uniform) as u32).to_be_bytes()
    };
    (0..packets).map(|_| draw()).collect()
}

fn exact(packets: &[[u8; 4]]) -> Exact {
    let mut counts = Exact::new();
    packets.iter().for_each(|key| *counts.entry(*key).or_default() += 1);
    counts
}

fn shape(width: usize, k: usize) -> UnivMonShape {
    UnivMonShape::new(12, Shape::new(5, width).unwrap(), k).unwrap()
}

#[test]
fn sums_are_exact_if_every_key_is_tracked() {
    let packets = zipf(20_000, 300, 1);
    let truth = exact(&packets);
    let mut univmon: UnivMon<[u8; 4]> = UnivMon::new(shape(16_384, 400), Hasher::new(3));
    packets.iter().for_each(|key| univmon.add(key, 1));
    let sum = |g: &dyn Fn(f64) -> f64| truth.values().map(|&count| g(count as f64)).sum::<f64>();
    for g in [&|_| 1.0, &|f| f, &|f: f64| f * f, &|f: f64| f * f.log2()] as [&dyn Fn(f64) -> f64; 4] {
        let (found, expected) = (univmon.g_sum(g), sum(g));
        assert!((found - expected).abs() <= 1e-9 * expected, "{found} {expected}");
    }
    assert_eq!(univmon.distinct().value, truth.len() as f64);
}

#[test]
fn entropy_and_distinct_are_close_with_few_candidates() {
    let packets = zipf(200_000, 50_000, 2);
    let truth = exact(&packets);
    let total = packets.len() as f64;
    let entropy: f64 =
        truth.values().map(|&count| count as f64 / total).map(|share| -share * share.log2()).sum();
    let mut nitro = Nitro::new(
        UnivMon::<[u8; 4]>::new(shape(8192, 512), Hasher::new(9)),
        Mode::Fixed(Probability::ONE),
        1,
    );
    nitro.update(packets.as_slice());
    let univmon = nitro.sketch();
    assert!((univmon.entropy().value / entropy - 1.0).abs() < 0.05, "{} {entropy}", univmon.entropy());
    assert_eq!(univmon.entropy().contains(entropy), Some(true), "{}", univmon.entropy());
    // The entropy of order 2 is not far below for this distribution, so the lower bound says something.
    assert!(univmon.entropy().lower().unwrap() > 0.3 * entropy, "{}", univmon.entropy());
    // A sample of 512 keys counts with a standard deviation of 4.4 %.
    let distinct = univmon.distinct().value / truth.len() as f64;
    assert!((distinct - 1.0).abs() < 0.2, "{distinct}");
    let f2: f64 = truth.values().map(|&count| (count * count) as f64).sum();
    assert_eq!(univmon.f2().contains(f2), Some(true), "{} {f2}", univmon.f2());
}

#[test]
fn the_largest_keys_are_found_with_their_bounds() {
    let packets = zipf(100_000, 10_000, 5);
    let truth = exact(&packets);
    let mut nitro = Nitro::new(
        UnivMon::<[u8; 4]>::new(shape(4096, 100), Hasher::new(4)),
        Mode::Fixed(Probability::ONE),
        1,
    );
    nitro.update(packets.as_slice());
    let largest = nitro.sketch().largest();
    for (rank, (key, estimate)) in largest.iter().take(20).enumerate() {
        assert_eq!(
            estimate.contains(truth[key] as f64),
            Some(true),
            "rank {rank}: {estimate} {}",
            truth[key]
        );
        assert!(u32::from_be_bytes(*key) < 40, "rank {rank}");
    }
}

#[test]
fn parts_merge_to_the_whole() {
    let packets = zipf(30_000, 5_000, 7);
    let new = || UnivMon::<[u8; 4]>::new(shape(1024, 64), Hasher::new(4));
    let (mut whole, mut parts) = (new(), [new(), new(), new()]);
    for (number, key) in packets.iter().enumerate() {
        whole.add(key, 1);
        parts[number % 3].add(key, 1);
    }
    let [mut merged, second, third] = parts;
    merged.merge(&second).unwrap();
    merged.merge(&third).unwrap();
    for (ours, whole) in merged.levels.iter().zip(&whole.levels) {
        assert_eq!(ours.counters, whole.counters);
    }
    assert_eq!(merged.statistics, whole.statistics);
    assert_eq!(merged.largest()[..20], whole.largest()[..20]);
    merged.subtract(&whole).unwrap();
    assert!(merged.levels.iter().all(|level| level.counters.cells().iter().all(|&cell| cell == 0)));
}

#[test]
fn different_shapes_or_seeds_do_not_merge() {
    let new = |width, seed| UnivMon::<[u8; 4]>::new(shape(width, 8), Hasher::new(seed));
    assert!(matches!(new(64, 1).merge(&new(128, 1)), Err(MergeError::Shape { .. })));
    assert!(matches!(new(64, 1).merge(&new(64, 2)), Err(MergeError::Seed { .. })));
    let fewer = UnivMonShape::new(3, Shape::new(5, 64).unwrap(), 8).unwrap();
    let other = UnivMon::<[u8; 4]>::new(fewer, Hasher::new(1));
    assert_eq!(new(64, 1).merge(&other), Err(MergeError::Levels { ours: 12, theirs: 3 }));
}

#[test]
fn an_empty_univmon_is_exactly_zero() {
    let univmon = UnivMon::<[u8; 4]>::new(shape(256, 8), Hasher::new(1));
    assert_eq!((univmon.distinct().value, univmon.entropy().value, univmon.f2().value), (0.0, 0.0, 0.0));
    assert!(univmon.largest().is_empty());
}

#[test]
fn sampled_entropy_is_close() {
    let packets = zipf(400_000, 20_000, 11);
    let truth = exact(&packets);
    let total = packets.len() as f64;
    let entropy: f64 =
        truth.values().map(|&count| count as f64 / total).map(|share| -share * share.log2()).sum();
    let mut nitro = Nitro::new(
        UnivMon::<[u8; 4]>::new(shape(8192, 512), Hasher::new(9)),
        Mode::Fixed(Probability::new(4).unwrap()),
        1,
    );
    nitro.update(packets.as_slice());
    let found = nitro.sketch().entropy().value;
    assert!((found / entropy - 1.0).abs() < 0.1, "{found} {entropy}");
}

#[test]
fn shape_meets_the_requested_guarantee() {
    let shape = UnivMonShape::for_guarantee(0.05, 0.02, 16, 100).unwrap();
    let (eps, delta) = shape.guarantee();
    assert!(eps <= 0.05 && delta <= 0.02, "{eps} {delta}");
    assert_eq!((shape.levels(), shape.k(), shape.shape().rows()), (16, 100, 5));
    assert!(UnivMonShape::for_guarantee(0.0, 0.02, 16, 100).is_err());
}

#[test]
fn memory_stays_within_its_limit() {
    for memory in [100_000u64, 1 << 20, 4 << 20] {
        let shape = UnivMonShape::for_memory::<[u8; 13], i32>(memory, 16, 5).unwrap();
        assert!(shape.bytes::<[u8; 13], i32>() <= memory, "{shape:?}");
    }
    assert!(UnivMonShape::for_memory::<[u8; 13], i32>(1000, 16, 5).is_err());
    assert_eq!(UnivMonShape::new(18, Shape::new(1, 4).unwrap(), 1), Err(ShapeError::Levels { levels: 18 }));
}

/// 20,000 keys of equal weight and room for 64 per level: which ones are tracked is chance, which must not depend on
/// levels. The sum over 40 seeds has a standard deviation of 16 % / sqrt(40) = 2.6 %: five of them are 13 %.
#[test]
fn many_equal_keys_are_counted_without_bias() {
    let packets: Vec<[u8; 4]> = (0..20_000u32).map(u32::to_be_bytes).collect();
    let mean: f64 = (0..40)
        .map(|seed| {
            let sketch = UnivMon::<[u8; 4]>::new(shape(512, 64), Hasher::new(seed));
            let mut nitro = Nitro::new(sketch, Mode::Fixed(Probability::ONE), 1);
            nitro.update(packets.as_slice());
            nitro.sketch().distinct().value / 40.0
        })
        .sum();
    assert!((mean / 20_000.0 - 1.0).abs() < 0.13, "{mean}");
}

/// The sample's error in the number of keys must not affect the entropy: the total weight is known.
#[test]
fn entropy_of_equal_keys_is_the_log_of_their_number() {
    for width in [64, 256, 1024] {
        for seed in 0..10 {
            let sketch = UnivMon::<[u8; 4]>::new(shape(width, width / 8), Hasher::new(seed));
            let mut nitro = Nitro::new(sketch, Mode::Fixed(Probability::ONE), 1);
            let packets: Vec<[u8; 4]> = (0..50_000u32).map(|number| (number % 500).to_be_bytes()).collect();
            nitro.update(packets.as_slice());
            let found = nitro.sketch().entropy().value;
            assert!((found - 500f64.log2()).abs() < 0.2, "width {width}, seed {seed}: {found}");
        }
    }
}

/// 400 seeds, p = 1/8, a key of 600 among 200 of 20: its variance is at most a f + E/w = 7 * 600 + 800, so the mean
/// of 400 has a standard error of 3.6, and 18 is five of them. F2 likewise: 360,000 + 80,000, which sampling and
/// collisions change by less than 15 % in a run.
#[test]
fn sampled_weights_and_f2_are_unbiased() {
    let packets: Vec<[u8; 4]> = (0..4_600u32)
        .map(|number| if number < 600 { [0xFF; 4] } else { (number % 200).to_be_bytes() })
        .collect();
    let (mut weight, mut f2) = (0.0, 0.0);
    for seed in 0..400 {
        let sketch = UnivMon::<[u8; 4]>::new(shape(512, 64), Hasher::new(seed));
        let mut nitro = Nitro::new(sketch, Mode::Fixed(Probability::new(3).unwrap()), !seed);
        nitro.update(packets.as_slice());
        weight += nitro.sketch().estimate_key(&[0xFF; 4]).value / 400.0;
        f2 += nitro.sketch().f2().value / 400.0;
    }
    assert!((weight - 600.0).abs() < 18.0, "{weight}");
    assert!((f2 / 440_000.0 - 1.0).abs() < 0.0375, "{f2}");
}
