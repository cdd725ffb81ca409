use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::digest::Hasher;
use crate::stream_statistics::Sums;

/// The counters as the module doc of [`crate::shape`] describes them, written as simply as possible: bits as text, a
/// map of (row, column), sums in an `i128` that is clamped after every addition.
struct Oracle {
    shape: Shape,
    ends: [i128; 2],
    cells: HashMap<(usize, usize), i128>,
    saturations: u64,
}

impl Oracle {
    fn new<C: Counter>(shape: Shape) -> Oracle {
        let ends = [i128::from(C::limit(-1).get()), i128::from(C::limit(1).get())];
        Oracle { shape, ends, cells: HashMap::new(), saturations: 0 }
    }

    /// Column and sign: the lowest free bits of a word, the very lowest for the sign.
    fn column(&self, digest: Digest, row: usize) -> (usize, bool) {
        let [low, high] = digest.0;
        let fold = |a: u64, b: u64| {
            let product = format!("{:0128b}", u128::from(a) * u128::from(b));
            let half = |bits: &str| u64::from_str_radix(bits, 2).unwrap();
            half(&product[..64]) ^ half(&product[64..])
        };
        let third = fold(low ^ 0x9E37_79B9_7F4A_7C15, high);
        let fourth = fold(low, high ^ 0xBB67_AE85_84CA_A73B);
        let bits = self.shape.width().ilog2() as usize + 1;
        let mut slices = Vec::new();
        for (word, free_bits) in [(low, 64), (high, 48), (third, 64), (fourth, 64)] {
            let text: Vec<bool> = (0..free_bits).map(|bit| word >> bit & 1 == 1).collect();
            slices.extend(text.chunks_exact(bits).map(<[bool]>::to_vec));
        }
        let slice = &slices[row];
        let column = slice[1..].iter().rev().fold(0, |column, &bit| 2 * column + usize::from(bit));
        (column, slice[0])
    }

    /// A weight at a limit of `i64` stands for one beyond it.
    fn add<const SIGNED: bool>(&mut self, digest: Digest, weight: i64) {
        for row in 0..self.shape.rows() {
            let (column, minus) = self.column(digest, row);
            let signed = if SIGNED && minus { -i128::from(weight) } else { i128::from(weight) };
            let is_cut = signed.abs() >= i128::from(i64::MAX);
            let cell = self.cells.entry((row, column)).or_default();
            let sum = *cell + if is_cut { 4 * signed } else { signed };
            let [min, max] = self.ends;
            self.saturations += u64::from(sum < min || sum > max);
            *cell = sum.clamp(min, max);
        }
    }

    fn assert_same<C: Counter>(&self, counters: &Counters<C>) {
        let width = self.shape.width();
        for (index, cell) in counters.cells().iter().enumerate() {
            let expected = self.cells.get(&(index / width, index % width)).copied().unwrap_or(0);
            assert_eq!(i128::from(cell.get()), expected, "{} at {index}", self.shape);
        }
        assert_eq!(counters.saturations(), self.saturations, "{}", self.shape);
    }
}

type Batches = Vec<Vec<(u16, i64)>>;

fn digest(key: u16) -> Digest {
    Hasher::new(5).digest(&key.to_be_bytes())
}

fn add<C: Counter, const SIGNED: bool>(counters: &mut Counters<C>, batch: &[(u16, i64)]) {
    let digests: Vec<Digest> = batch.iter().map(|&(key, _)| digest(key)).collect();
    let sums = Sums::of(batch.iter().map(|&(_, weight)| weight));
    counters.add_all::<SIGNED>(&digests, sums.magnitude, |number| batch[number].1);
}

/// Checks that batches, their additions one by one, and each alone agree with the oracle.
fn assert_as_the_oracle<C: Counter, const SIGNED: bool>(shape: Shape, batches: &Batches) {
    let (mut whole, mut single) = (Counters::<C>::new(shape), Counters::<C>::new(shape));
    let mut oracle = Oracle::new::<C>(shape);
    for batch in batches {
        add::<C, SIGNED>(&mut whole, batch);
        for &(key, weight) in batch {
            for row in 0..shape.rows() {
                let (index, column) = single.locate(row, digest(key));
                single.add_at(index, if SIGNED { column.signed(weight) } else { weight });
            }
            oracle.add::<SIGNED>(digest(key), weight);
        }
        oracle.assert_same(&whole);
    }
    assert_eq!(whole, single);
}

fn assert_as_the_oracle_for_all<C: Counter>(shape: Shape, batches: &Batches) {
    assert_as_the_oracle::<C, true>(shape, batches);
    assert_as_the_oracle::<C, false>(shape, batches);
}

/// Weights of all sizes, many of them at the limits of counters.
fn weights() -> impl Strategy<Value = i64> {
    let ends =
        [0, 1, -1, i64::MAX, i64::MIN, i64::MIN + 1, i64::MAX - 1, 1 << 62, -(1 << 62), 1 << 30, -(1 << 31)];
    let near_ends_of_i32 = (0..40i64).prop_map(|less| i64::from(i32::MAX) - less);
    prop_oneof![
        4 => -1500..1500i64,
        1 => any::<i64>(),
        1 => any::<i32>().prop_map(i64::from),
        1 => near_ends_of_i32,
        1 => prop::sample::select(ends.to_vec()),
    ]
}

fn batches(weights: impl Strategy<Value = i64>) -> impl Strategy<Value = Batches> {
    prop::collection::vec(prop::collection::vec((0..60u16, weights), 0..40), 0..8)
}

/// Up to 2^13 columns; eight rows of that width need a third word.
fn shapes() -> impl Strategy<Value = Shape> {
    (1..=8usize, 2..=13u32).prop_map(|(rows, width_log2)| Shape::new(rows, 1 << width_log2).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn counters_match_a_map_of_rows_and_columns(shape in shapes(), batches in batches(-1500..1500i64)) {
        assert_as_the_oracle_for_all::<i32>(shape, &batches);
        assert_as_the_oracle_for_all::<i64>(shape, &batches);
    }

    #[test]
    fn counters_saturate_at_both_limits_and_count_it(
        rows in 1..=8usize, width_log2 in 2..=5u32, batches in batches(weights()),
    ) {
        let shape = Shape::new(rows, 1 << width_log2).unwrap();
        assert_as_the_oracle_for_all::<i32>(shape, &batches);
        assert_as_the_oracle_for_all::<i64>(shape, &batches);
    }

    #[test]
    fn median_is_the_middle_of_the_sorted_values(values in prop::collection::vec(-9..9i64, 1..=8)) {
        let mut sorted = values.clone();
        sorted.sort_unstable();
        let (low, high) = (sorted[(values.len() - 1) / 2], sorted[values.len() / 2]);
        let mut floats: Vec<f64> = values.iter().map(|&value| value as f64).collect();
        assert_eq!(median(&mut floats), (low + high) as f64 / 2.0);
    }

    #[test]
    fn estimates_during_updates_are_the_minimum_or_the_median(
        shape in shapes(), batches in batches(weights()), queried in 0..40u16,
    ) {
        assert_read_as_sorted::<i32>(shape, &batches, queried);
        assert_read_as_sorted::<i64>(shape, &batches, queried);
    }
}

fn assert_read_as_sorted<C: Counter>(shape: Shape, batches: &Batches, queried: u16) {
    let mut counters = Counters::<C>::new(shape);
    batches.iter().for_each(|batch| add::<C, true>(&mut counters, batch));
    let digests: Vec<Digest> = (0..queried).map(digest).collect();
    for reading in [Reading::Minimum, Reading::Median] {
        let (mut signed, mut unsigned) = (Vec::new(), Vec::new());
        counters.read_all::<true>(&digests, reading, |number, value| signed.push((number, value)));
        counters.read_all::<false>(&digests, reading, |number, value| unsigned.push((number, value)));
        for (number, &digest) in digests.iter().enumerate() {
            let [with, without] = [true, false].map(|is_signed| {
                let mut rows: Vec<i128> = (0..shape.rows())
                    .map(|row| {
                        let (index, column) = counters.locate(row, digest);
                        let cell = i128::from(counters.cells()[index].get());
                        if is_signed && column.minus {
                            (-cell).min(i128::from(C::limit(1).get()))
                        } else {
                            cell
                        }
                    })
                    .collect();
                rows.sort_unstable();
                let (low, high) = (rows[(rows.len() - 1) / 2], rows[rows.len() / 2]);
                let value = if reading == Reading::Minimum { rows[0] } else { (low + high).div_euclid(2) };
                i64::try_from(value).unwrap()
            });
            assert_eq!((signed[number], unsigned[number]), ((number, with), (number, without)), "{shape}");
            assert_eq!(counters.read::<true>(digest, reading), with);
            assert_eq!(counters.read::<false>(digest, reading), without);
        }
    }
}

/// 8 x 2^21 takes slices from all four words; 5 x 2^15 ends in the second.
#[test]
fn rows_that_use_all_four_words_derived_from_a_digest_match_a_map() {
    for (rows, width_log2) in [(8, 21), (6, 21), (8, 19), (5, 15)] {
        let shape = Shape::new(rows, 1 << width_log2).unwrap();
        let mut counters = Counters::<i32>::new(shape);
        let mut oracle = Oracle::new::<i32>(shape);
        for key in 0..200 {
            add::<i32, true>(&mut counters, &[(key, i64::from(key) - 70)]);
            oracle.add::<true>(digest(key), i64::from(key) - 70);
        }
        let cells = counters.cells();
        let filled = cells.iter().filter(|&&cell| cell != 0).count();
        assert_eq!(filled, oracle.cells.values().filter(|&&cell| cell != 0).count(), "{shape}");
        for (&(row, column), &expected) in &oracle.cells {
            assert_eq!(i128::from(cells[row * shape.width() + column]), expected, "{shape}");
        }
    }
}

/// A collision in one row does not make one in another row more likely. 2,000 keys make 1,999,000 pairs, of which
/// 30.5 are expected to collide in two given rows of 256 columns. More than 64 (six standard deviations) occur once
/// in 10^6 for each pair of rows. Rows of 2^21 columns are reduced to their low eight bits.
#[test]
fn rows_are_independent_across_words() {
    for width_log2 in [8, 13, 21] {
        let slices = Shape::new(8, 1 << width_log2).unwrap().slices();
        for (first, second) in [(0, 1), (0, 3), (2, 5), (3, 4), (0, 7), (4, 6), (5, 7), (6, 7)] {
            let mut meetings = HashMap::new();
            for key in 0..2_000 {
                let [a, b] = [first, second].map(|row| slices.of(digest(key), row).index & 255);
                *meetings.entry((a, b)).or_insert(0u32) += 1;
            }
            let pairs: u32 = meetings.values().map(|keys| keys * (keys - 1) / 2).sum();
            assert!((4..=64).contains(&pairs), "2^{width_log2}, rows {first} and {second}: {pairs}");
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn both_paths<C: Counter, const ROWS: usize, const SIGNED: bool>(width_log2: u32) {
    let shape = Shape::new(ROWS, 1 << width_log2).unwrap();
    let slices = shape.slices();
    let weight = |number: usize| number as i64 * 7_919 % 3_001 - 1_000;
    let digests: Vec<Digest> = (0..500).map(digest).collect();
    let fill = |is_portable: bool| {
        let mut cells = vec![C::default(); shape.counters()];
        let mut chunks = cells.chunks_exact_mut(shape.width());
        let rows: [&mut [C]; ROWS] = std::array::from_fn(|_| chunks.next().unwrap());
        if is_portable {
            add_rows::<C, ROWS, SIGNED>(rows, &slices, &digests, weight);
        } else {
            avx2::add_rows::<C, ROWS, SIGNED>(rows, &slices, &digests, weight);
        }
        cells
    };
    assert!(slices.is_short);
    let cells = fill(true);
    assert_eq!(cells, fill(false), "{shape}");
    let rows: [&[C]; ROWS] = std::array::from_fn(|row| &cells[row << width_log2..][..1 << width_log2]);
    for lanes in digests.as_chunks::<LANES>().0 {
        for reading in [Reading::Minimum, Reading::Median] {
            let portable = read_lanes::<C, ROWS, SIGNED>(rows, &slices, lanes, reading);
            assert_eq!(avx2::read_lanes::<C, ROWS, SIGNED>(rows, &slices, lanes, reading), portable);
        }
    }
    assert!(cells.iter().any(|cell| cell.get() != 0));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn portable_and_avx2_loops_agree() {
    if !avx2::is_supported() {
        eprintln!("skipped: this processor has no AVX2");
        return;
    }
    for width_log2 in [2, 7, 11] {
        both_paths::<i32, 1, true>(width_log2);
        both_paths::<i32, 3, false>(width_log2);
        both_paths::<i32, 5, true>(width_log2);
        both_paths::<i32, 8, true>(width_log2);
        both_paths::<i64, 2, true>(width_log2);
        both_paths::<i64, 4, true>(width_log2);
        both_paths::<i64, 5, false>(width_log2);
        both_paths::<i64, 7, true>(width_log2);
    }
}

/// A counter approaches its limit to within less than one batch, in batches whose additions are not checked one by
/// one, and only then saturates.
#[test]
fn headroom_is_measured_before_a_counter_can_overflow() {
    fn fill<C: Counter, const SIGNED: bool>(step: i64, negative: bool) {
        let shape = Shape::new(3, 8).unwrap();
        let mut counters = Counters::<C>::new(shape);
        let mut oracle = Oracle::new::<C>(shape);
        let weight = if negative { -step } else { step };
        for round in 0..200u16 {
            let batch: Vec<(u16, i64)> =
                (0..4).map(|key| (key + round % 3, weight + i64::from(key))).collect();
            add::<C, SIGNED>(&mut counters, &batch);
            batch.iter().for_each(|&(key, weight)| oracle.add::<SIGNED>(digest(key), weight));
            oracle.assert_same(&counters);
        }
        assert!(counters.saturations() > 0);
    }
    for negative in [false, true] {
        fill::<i32, false>(i64::from(i32::MAX) / 150, negative);
        fill::<i32, true>(i64::from(i32::MAX) / 150, negative);
        fill::<i64, false>(i64::MAX / 150, negative);
        fill::<i64, true>(i64::MAX / 150, negative);
    }
}

/// While there is headroom, no single addition is checked; when there is little, all counters are scanned no more
/// often than they are updated.
#[test]
fn headroom_is_measured_no_more_often_than_counters_are_updated() {
    let shape = Shape::new(2, 64).unwrap();
    let mut counters = Counters::<i32>::new(shape);
    assert!(counters.reserve_headroom(1000, 1));
    assert_eq!((counters.headroom, counters.checked_additions), (i64::from(i32::MAX) - 1001, 0));
    counters.cells[70] = i32::MIN + 10;
    counters.headroom = 5;
    assert!(!counters.reserve_headroom(100, 1), "the fullest counter, far below zero, leaves no headroom");
    assert_eq!(counters.checked_additions, shape.counters() - 1);
    counters.cells[70] = 0;
    assert!(!counters.reserve_headroom(100, 100), "headroom was measured too early");
    assert!(!counters.reserve_headroom(100, 27));
    assert!(counters.reserve_headroom(100, 1));
}

#[test]
fn scaling_rounds_halves_away_from_zero_and_saturates() {
    let shape = Shape::new(1, 8).unwrap();
    let cells = vec![1, -1, 3, -3, 5, 7, i32::MAX, i32::MIN];
    let mut counters = Counters::from_cells(shape, cells, 0);
    counters.scale(0.5);
    assert_eq!(counters.cells(), [1, -1, 2, -2, 3, 4, 1 << 30, -(1 << 30)]);
    counters.scale(-3.0);
    assert_eq!(counters.cells(), [-3, 3, -6, 6, -9, -12, i32::MIN, i32::MAX]);
    assert_eq!(counters.saturations(), 2);

    let mut wide = Counters::from_cells(Shape::new(1, 4).unwrap(), vec![1i64 << 62, -(1 << 62), 1, -1], 0);
    wide.scale(0.5);
    assert_eq!(wide.cells(), [1 << 61, -(1 << 61), 1, -1]);
    assert_eq!(wide.saturations(), 0);
    wide.scale(4.0);
    assert_eq!((wide.cells(), wide.saturations()), ([i64::MAX, i64::MIN, 4, -4].as_slice(), 1));
}

#[test]
fn merged_counters_saturate_and_add_their_saturation_counts() {
    let shape = Shape::new(1, 4).unwrap();
    let mut one = Counters::from_cells(shape, vec![i32::MAX, i32::MIN, 5, -5], 3);
    let other = Counters::from_cells(shape, vec![1, -1, 7, 5], 4);
    one.join(&other, |ours, theirs| i128::from(ours) + i128::from(theirs));
    assert_eq!((one.cells(), one.saturations()), ([i32::MAX, i32::MIN, 12, 0].as_slice(), 9));

    let mut one = Counters::from_cells(shape, vec![i64::MAX - 1, i64::MIN + 1, 0, 9], 0);
    let other = Counters::from_cells(shape, vec![-5, 5, i64::MIN, 4], 0);
    one.join(&other, |ours, theirs| i128::from(ours) - i128::from(theirs));
    assert_eq!((one.cells(), one.saturations()), ([i64::MAX, i64::MIN, i64::MAX, 5].as_slice(), 3));
}

/// A join or a scaling resets the known headroom.
#[test]
fn headroom_is_measured_again_after_counters_are_joined_or_scaled() {
    let shape = Shape::new(1, 4).unwrap();
    let full = Counters::from_cells(shape, vec![i32::MAX - 5; 4], 0);
    for version in 0..2 {
        let mut counters = Counters::<i32>::new(shape);
        add::<i32, false>(&mut counters, &[(1, 50)]);
        if version == 0 {
            counters.join(&full, |_, theirs| i128::from(theirs));
        } else {
            counters.scale(4.29e7);
        }
        add::<i32, false>(&mut counters, &[(1, 9_000_000)]);
        assert_eq!(counters.saturations(), 1);
        assert!(counters.cells().contains(&i32::MAX));
    }
}
