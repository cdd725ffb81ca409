use std::collections::HashSet;

use super::*;

fn digests(seed: u64, keys: std::ops::Range<u32>) -> impl Iterator<Item = Digest> {
    keys.map(move |key| Hasher::new(seed).digest(&key.to_be_bytes()))
}

fn counted(precision: u8, seed: u64, keys: std::ops::Range<u32>) -> HyperLogLog {
    let mut counter = HyperLogLog::new(precision, Hasher::new(seed)).unwrap();
    digests(seed, keys).for_each(|digest| {
        counter.add(digest);
    });
    counter
}

/// 200 seeds. The chances of a false alarm: 6e-7 for a mean further than five standard deviations from the truth
/// (beside the known bias), 1.4e-6 for twelve misses of a 99 % interval, 1e-5 for a mean square off by half. Five
/// cardinalities with three tests each: less than one in ten thousand together.
#[test]
fn estimates_are_unbiased_and_intervals_hold() {
    const SEEDS: u64 = 200;
    for (keys, precision) in
        [(1u32, 6u8), (10, 6), (10, 12), (40, 14), (1_000, 6), (1_000, 12), (100_000, 12)]
    {
        let (mut sum, mut squares, mut misses) = (0.0, 0.0, 0);
        for seed in 0..SEEDS {
            let estimate = counted(precision, seed, 0..keys).estimate();
            let error = estimate.value / f64::from(keys) - 1.0;
            sum += error;
            squares += error * error;
            misses += u32::from(estimate.contains(f64::from(keys)) != Some(true));
        }
        let registers = f64::from(1u32 << precision);
        let (mean, deviation) = (sum / SEEDS as f64, 1.06 / registers.sqrt());
        let allowed = 5.0 * deviation / (SEEDS as f64).sqrt();
        assert!((-allowed..1.1 / registers + allowed).contains(&mean), "{keys} keys, p {precision}: {mean}");
        assert!(misses < 12, "{keys} keys, p {precision}: {misses} misses");
        let spread = squares / SEEDS as f64 / (deviation * deviation);
        assert!(spread < 1.5, "{keys} keys, p {precision}: {spread}");
        assert!(spread > 0.5 || f64::from(keys) < 10.0 * registers, "{keys} keys, p {precision}: {spread}");
    }
}

#[test]
fn the_interval_allows_for_two_keys_in_one_register() {
    let mut counter = HyperLogLog::new(14, Hasher::new(0)).unwrap();
    for key in 0..20u64 {
        // The last key is in the register of the first.
        counter.add(Digest([(key % 19) << 50 | 1 << 49 | key, 0]));
    }
    let estimate = counter.estimate();
    assert!(estimate.value < 19.1 && estimate.contains(20.0) == Some(true), "{estimate:.2}");
}

#[test]
fn an_empty_counter_is_exactly_zero() {
    for precision in HyperLogLog::MIN_PRECISION..=HyperLogLog::MAX_PRECISION {
        let mut counter = counted(precision, 1, 0..100);
        counter.clear();
        assert_eq!(counter.estimate(), Estimate::exact(0.0));
        assert_eq!(counter, HyperLogLog::new(precision, Hasher::new(1)).unwrap());
    }
}

#[test]
fn a_register_changes_only_for_a_new_key() {
    let mut counter = HyperLogLog::new(10, Hasher::new(5)).unwrap();
    let mut seen = HashSet::new();
    for step in 0u32..5_000 {
        let key = step * step % 499;
        let grew = counter.add(counter.hasher().digest(&key.to_be_bytes()));
        assert!(seen.insert(key) || !grew);
    }
    let estimate = counter.estimate();
    assert_eq!(estimate.contains(seen.len() as f64), Some(true), "{estimate} for {}", seen.len());
    assert_eq!(counter.registers(), counted(10, 5, 0..0).with_all(&seen).registers());
}

impl HyperLogLog {
    /// The definition, bit by bit.
    fn with_all(mut self, keys: &HashSet<u32>) -> HyperLogLog {
        for key in keys {
            let bits = format!("{:064b}", self.hasher.digest(&key.to_be_bytes()).0[0]);
            let (index, rest) = bits.split_at(usize::from(self.precision));
            let rank = rest.find('1').unwrap_or(rest.len()) as u8 + 1;
            let register = &mut self.registers[usize::from_str_radix(index, 2).unwrap()];
            *register = rank.max(*register);
        }
        self
    }
}

#[test]
fn a_batch_equals_its_keys_one_by_one() {
    let mut batch = HyperLogLog::new(7, Hasher::new(3)).unwrap();
    batch.add_batch(&digests(3, 0..1_001).collect::<Vec<_>>());
    assert_eq!(batch, counted(7, 3, 0..1_001));
}

#[test]
fn overlapping_parts_merge_to_the_whole() {
    let mut merged = counted(11, 9, 0..6_000);
    merged.merge(&counted(11, 9, 4_000..10_000)).unwrap();
    assert_eq!(merged, counted(11, 9, 0..10_000));
}

#[test]
fn a_failed_merge_changes_nothing() {
    let mut counter = counted(8, 1, 0..100);
    let before = counter.clone();
    let error = counter.merge(&counted(9, 1, 0..9)).unwrap_err();
    assert_eq!(error, MergeError::Precision { ours: 8, theirs: 9 });
    let error = counter.merge(&counted(8, 2, 0..9)).unwrap_err();
    assert_eq!(error, MergeError::Seed { ours: 1, theirs: 2 });
    assert_eq!(counter, before);
}

#[test]
fn ranks_are_limited_by_the_hash() {
    for precision in HyperLogLog::MIN_PRECISION..=HyperLogLog::MAX_PRECISION {
        let last = 65 - precision;
        let mut counter = HyperLogLog::new(precision, Hasher::new(0)).unwrap();
        assert!(counter.add(Digest([0, !0])));
        assert_eq!(counter.registers()[0], last);
        assert!(!counter.add(Digest([1, !0])), "a rank below the last does not lower it");
        assert!(counter.add(Digest([!0, 0])));
        assert_eq!(counter.registers()[(1 << precision) - 1], 1);
        assert_eq!(counter.estimate().contains(2.0), Some(true), "{}", counter.estimate());
    }
}

#[test]
fn a_full_counter_has_no_bound() {
    let all_last = vec![65 - 6; 64];
    let counter = HyperLogLog::from_registers(6, Hasher::new(0), all_last).unwrap();
    assert_eq!(counter.estimate(), Estimate { value: HASHES, bound: Bound::Unknown });
}

#[test]
fn saved_registers_are_checked() {
    let hasher = Hasher::new(4);
    let counter = counted(5, 4, 0..300);
    let registers = counter.registers().to_vec();
    assert_eq!(HyperLogLog::from_registers(5, hasher, registers.clone()), Ok(counter));
    let wrong = HyperLogLog::from_registers(6, hasher, registers.clone()).unwrap_err();
    assert_eq!(wrong, RegistersError::Count { found: 32, expected: 64 });
    let mut damaged = registers;
    damaged[17] = 61;
    let wrong = HyperLogLog::from_registers(5, hasher, damaged).unwrap_err();
    assert_eq!(wrong, RegistersError::Rank { register: 17, rank: 61, last: 60 });
    let wrong = HyperLogLog::from_registers(3, hasher, vec![0; 8]).unwrap_err();
    assert_eq!(wrong.to_string(), "precision 3: expected 4 to 18 (2^precision registers)");
}

#[test]
fn precision_follows_from_memory_or_guarantee() {
    let hasher = Hasher::default();
    let for_memory = |bytes| HyperLogLog::for_memory(bytes, hasher).map(|counter| counter.bytes());
    assert_eq!(for_memory(20_000), Ok(16_384));
    assert_eq!(for_memory(u64::MAX), Ok(1 << 18));
    assert_eq!(for_memory(15), Err(SizeError::Memory { bytes: 15, min: 16 }));

    // Manual calculation: z = 1.96 for delta = 5 %, so that m = (1.96 * 1.039 / 0.02)^2 = 10,368 at least.
    let counter = HyperLogLog::for_guarantee(0.02, 0.05, hasher).unwrap();
    assert_eq!(counter.precision(), 14);
    assert!((counter.relative_standard_error() - 0.0081).abs() < 0.0001);
    let (eps, delta) = counter.guarantee();
    assert_eq!(HyperLogLog::for_guarantee(eps * 1.0001, delta, hasher).unwrap().precision(), 14);
    assert_eq!(HyperLogLog::for_guarantee(eps * 0.9999, delta, hasher).unwrap().precision(), 15);

    let error = HyperLogLog::for_guarantee(0.001, 0.05, hasher).unwrap_err();
    assert!(matches!(error, SizeError::TooLarge { min, .. } if (0.0039..0.0041).contains(&min)), "{error}");
    for (eps, delta) in [(0.0, 0.1), (1.0, 0.1), (f64::NAN, 0.1), (0.1, 0.0), (0.1, 1.5)] {
        assert!(matches!(HyperLogLog::for_guarantee(eps, delta, hasher), Err(SizeError::Guarantee { .. })));
    }
}
