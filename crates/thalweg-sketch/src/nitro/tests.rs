//! Bias and variance of rows under sampling, over many seeds of the hash and of the draws. The stream is always the
//! same.

use proptest::prelude::*;

use super::*;
use crate::counters::Counter;
use crate::rows::{RowSketch, Rows};
use crate::{CountMin, CountSketch, Hasher, KAry, Shape};

type Packet = ([u8; 4], i64);

const X: [u8; 4] = [0; 4];
const ROWS: usize = 5;
const WIDTH: usize = 16;

/// 4,000 packets of 31 keys. X has a quarter of them; the others have from 25 to 175 each, of 100 and 1500 bytes.
fn stream() -> Vec<Packet> {
    let packet = |number: u32| {
        let key = if number.is_multiple_of(4) { 0 } else { 1 + (number * number / 8 + number) % 30 };
        (key.to_be_bytes(), if number * 7 % 10 < 6 { 100 } else { 1500 })
    };
    (0..4000).map(packet).collect()
}

fn sum_of(stream: &[Packet], key: [u8; 4], of: impl Fn(i64) -> f64) -> f64 {
    stream.iter().filter(|packet| packet.0 == key).map(|packet| of(packet.1)).sum()
}

fn f2(stream: &[Packet]) -> f64 {
    (0..31u32).map(|key| sum_of(stream, key.to_be_bytes(), |weight| weight as f64).powi(2)).sum()
}

/// The squares of all weights.
fn squares(stream: &[Packet]) -> f64 {
    stream.iter().map(|packet| (packet.1 as f64).powi(2)).sum()
}

/// The mean of some numbers, the standard error of that mean, and their variance.
fn moments(values: &[f64]) -> (f64, f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt(), variance)
}

/// Each row's estimate of X, minus the mean for rows without signs.
fn rows_of_x<S: RowSketch>(sketch: &S) -> Vec<f64> {
    let Rows { counters, hasher, .. } = sketch.rows();
    let of_row = |row| {
        let column = counters.column(row, hasher.digest(&X));
        let counter = counters.get(row, column);
        if S::SIGNED {
            column.signed(counter) as f64
        } else {
            let (width, sum) = (counters.shape().width() as f64, counters.sum(row));
            (counter as f64 - sum / width) / (1.0 - 1.0 / width)
        }
    };
    (0..counters.shape().rows()).map(of_row).collect()
}

fn fed<S: RowSketch>(sketch: S, stream: &[Packet], probability: Probability, seed: u64) -> S {
    let mut nitro = Nitro::new(sketch, Mode::Fixed(probability), !seed);
    stream.chunks(777).for_each(|batch| nitro.update(batch));
    nitro.into_sketch()
}

fn shape() -> Shape {
    Shape::new(ROWS, WIDTH).unwrap()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Checks 5 rows of each of 600 seeds against the truth f and the variance V = E/w + Q_x: the mean within five
/// standard errors (false alarm: once in 1.7 million), the variance within a fifth, which is about five standard
/// errors too, as the kurtosis of a row is below six.
#[track_caller]
fn assert_unbiased(what: &str, rows: &[Vec<f64>], truth: f64, variance: f64) {
    let all = rows.concat();
    let (mean, error, seen) = moments(&all);
    assert!((mean - truth).abs() < 5.0 * error, "{what}: {mean} +- {error}, not {truth}");
    assert!((seen / variance - 1.0).abs() < 0.2, "{what}: variance {seen}, not {variance}");
    for row in 0..ROWS {
        let (mean, error, _) = moments(&rows.iter().map(|rows| rows[row]).collect::<Vec<_>>());
        assert!((mean - truth).abs() < 5.0 * error, "{what}, row {row}: {mean} +- {error}, not {truth}");
    }
}

/// V of [`crate::noise`], as an equality: E without X over w, and the variance of X itself.
fn variance(stream: &[Packet], excess: f64, effective_width: f64) -> f64 {
    let key_variance = sum_of(stream, X, |weight| (weight as f64).powi(2)) * excess;
    let truth = sum_of(stream, X, |weight| weight as f64);
    let others = f2(stream) - truth * truth + squares(stream) * excess - key_variance;
    others / effective_width + key_variance
}

fn assert_rows_are_unbiased<S: RowSketch>(new: impl Fn(Hasher) -> S, effective_width: f64) {
    let stream = stream();
    let truth = sum_of(&stream, X, |weight| weight as f64);
    for log2 in 0..=10 {
        let probability = Probability::new(log2).unwrap();
        let rows: Vec<_> = (0..600)
            .map(|seed| rows_of_x(&fed(new(Hasher::new(seed)), &stream, probability, seed)))
            .collect();
        let variance = variance(&stream, probability.excess(), effective_width);
        assert_unbiased(&format!("p = {probability}"), &rows, truth, variance);
        // Signs make a row symmetric except for the draws of X itself, whose skew is below a tenth here. Rows without
        // signs are skewed by collisions: their median is low by up to a deviation.
        let (mean, error, _) = moments(&rows.into_iter().map(median).collect::<Vec<_>>());
        let bias = ((mean - truth).abs() - 5.0 * error) / variance.sqrt();
        assert!(
            bias < if S::SIGNED { 0.1 } else { 1.0 },
            "p = {probability}: {mean} +- {error}, not {truth}"
        );
    }
}

#[test]
fn count_sketch_rows_are_unbiased_with_the_documented_variance() {
    assert_rows_are_unbiased(|hasher| CountSketch::<i32>::new(shape(), hasher), WIDTH as f64);
}

#[test]
fn k_ary_rows_are_unbiased_with_the_documented_variance() {
    assert_rows_are_unbiased(|hasher| KAry::<i64>::new(shape(), hasher), WIDTH as f64 - 1.0);
}

/// 600 seeds, tolerances of `assert_unbiased`. The halves are sampled with different seeds and probabilities.
#[test]
fn merged_sampled_sketches_are_unbiased() {
    let stream = stream();
    let (one, other) = stream.split_at(1500);
    let [coarse, fine] = [6, 3].map(|log2| Probability::new(log2).unwrap());
    let mut q = 0.0;
    let rows: Vec<_> = (0..600)
        .map(|seed| {
            let new = || CountSketch::<i32>::new(shape(), Hasher::new(seed));
            let mut sketch = fed(new(), one, coarse, seed);
            sketch.merge(&fed(new(), other, fine, seed + 10_000)).unwrap();
            assert_eq!(sketch.rows().statistics.min_probability(), coarse);
            q = sketch.rows().statistics.sampling_f2();
            rows_of_x(&sketch)
        })
        .collect();
    assert_eq!(q, squares(one) * coarse.excess() + squares(other) * fine.excess());
    let truth = sum_of(&stream, X, |weight| weight as f64);
    let key_variance = |part: &[Packet]| sum_of(part, X, |weight| (weight as f64).powi(2));
    let key_variance = key_variance(one) * coarse.excess() + key_variance(other) * fine.excess();
    assert_unbiased(
        "merged",
        &rows,
        truth,
        (f2(&stream) - truth * truth + q - key_variance) / WIDTH as f64 + key_variance,
    );
}

/// 600 seeds, tolerances of `assert_unbiased`. The rate rises and falls, and p with it.
#[test]
fn estimates_stay_unbiased_while_p_follows_the_rate() {
    let stream = stream();
    let line_rate = LineRate {
        epoch_ns: 1000,
        share: 1.0,
        row_ns: 20.0,
        sampled_row_ns: 20.0,
        min_probability: Probability::MIN,
    };
    let gaps_ns = [15_000, 400, 90, 2600, 30, 1100, 7000, 60];
    let (mut seen, mut q, mut key_variance) = (Vec::new(), 0.0, 0.0);
    let rows: Vec<_> = (0..600)
        .map(|seed| {
            let sketch = CountSketch::<i32>::new(shape(), Hasher::new(seed));
            let mut nitro = Nitro::new(sketch, Mode::AlwaysLineRate(line_rate), !seed);
            seen.clear();
            (q, key_variance) = (0.0, 0.0);
            let mut now_ns = 0;
            for (number, batch) in stream.chunks(100).enumerate() {
                nitro.advance(now_ns);
                nitro.update(batch);
                let excess = nitro.probability().excess();
                seen.push(nitro.probability());
                q += squares(batch) * excess;
                key_variance += sum_of(batch, X, |weight| (weight as f64).powi(2)) * excess;
                now_ns += gaps_ns[number % gaps_ns.len()];
            }
            let found = nitro.sketch().rows.statistics.sampling_f2();
            assert!((found / q - 1.0).abs() < 1e-12, "{found}, not {q}: {seen:?}");
            rows_of_x(nitro.sketch())
        })
        .collect();
    seen.sort();
    seen.dedup();
    assert!(seen.len() >= 4 && seen.last() == Some(&Probability::ONE), "{seen:?}");
    let truth = sum_of(&stream, X, |weight| weight as f64);
    assert_unbiased(
        "by rate",
        &rows,
        truth,
        (f2(&stream) - truth * truth + q - key_variance) / WIDTH as f64 + key_variance,
    );
}

/// 5 rows of 600 seeds: mean within five standard errors (false alarm: once in 1.7 million for each p).
fn assert_f2_is_unbiased<S: RowSketch>(
    new: impl Fn(Hasher) -> S,
    row_f2: impl Fn(&Rows<S::Counter>, usize) -> f64,
) {
    let stream = stream();
    for log2 in [0, 1, 4, 7, 10] {
        let probability = Probability::new(log2).unwrap();
        let added = squares(&stream) * probability.excess();
        let of_seed = |seed| {
            let sketch = fed(new(Hasher::new(seed)), &stream, probability, seed);
            assert_eq!(sketch.rows().statistics.sampling_f2(), added);
            (0..ROWS).map(|row| row_f2(sketch.rows(), row) - added).collect::<Vec<_>>()
        };
        let all: Vec<f64> = (0..600).flat_map(of_seed).collect();
        let (mean, error, seen) = moments(&all);
        let truth = f2(&stream);
        assert!((mean - truth).abs() < 5.0 * error, "p = {probability}: {mean} +- {error}, not {truth}");
        let key_variance = 1500.0 * probability.excess();
        let bound =
            crate::row_f2::row_f2_variance(truth + added, WIDTH, key_variance) * (truth + added).powi(2);
        assert!(seen < bound * 1.1, "p = {probability}: variance {seen}, bound {bound}");
    }
}

#[test]
fn f2_is_unbiased_under_sampling_with_the_documented_variance() {
    fn mean_free<C: Counter>(rows: &Rows<C>, row: usize) -> f64 {
        let (width, sum) = (WIDTH as f64, rows.counters.sum(row));
        (width * rows.counters.sum_of_squares(row) - sum * sum) / (width - 1.0)
    }
    assert_f2_is_unbiased(
        |hasher| CountSketch::<i64>::new(shape(), hasher),
        |rows, row| rows.counters.sum_of_squares(row),
    );
    assert_f2_is_unbiased(|hasher| KAry::<i32>::new(shape(), hasher), mean_free);
    assert_f2_is_unbiased(|hasher| CountMin::<i32>::new(shape(), hasher), mean_free);
}

/// Each (packet, row) pair is drawn independently: the sampling errors of one key in two rows are uncorrelated. 4,000
/// pairs of rows; the correlation of independent ones exceeds 5/sqrt(4,000) once in 1.7 million.
#[test]
fn rows_are_sampled_independently() {
    let packets = vec![(X, 1i64); 400];
    let probability = Probability::new(3).unwrap();
    let (mut product, mut square) = (0.0, 0.0);
    for seed in 0..4000 {
        let sketch =
            fed(KAry::<i32>::new(Shape::new(2, 4).unwrap(), Hasher::new(1)), &packets, probability, seed);
        let errors: Vec<f64> = (0..2).map(|row| sketch.rows.counters.sum(row) - 400.0).collect();
        product += errors[0] * errors[1];
        square += (errors[0].powi(2) + errors[1].powi(2)) / 2.0;
    }
    assert!((product / square).abs() < 5.0 / 4000f64.sqrt(), "{}", product / square);
}

/// 2,000 times 100 pairs with p = 1/2 between as many with 1/1024: 100,000 +- 224 of the former, and 195 +- 14 of the
/// latter, are sampled; five deviations are exceeded once in 1.7 million.
#[test]
fn a_change_of_p_draws_a_new_gap() {
    let [half, min] = [Probability::new(1).unwrap(), Probability::MIN];
    let mut sampler = Sampler::new(half, 4);
    let mut sampled = [0u32; 2];
    for piece in 0..4000 {
        sampler.set_probability(if piece % 2 == 0 { half } else { min });
        let mut position = 0;
        while sampler.next(&mut position, 100).is_some() {
            sampled[piece % 2] += 1;
        }
    }
    assert!(sampled[0].abs_diff(100_000) < 5 * 224 && sampled[1].abs_diff(195) < 5 * 14, "{sampled:?}");
}

#[test]
fn an_overflowing_product_saturates_with_its_sign() {
    let mut packets = vec![];
    for key in 0..40u32 {
        packets.push((key.to_be_bytes(), if key % 2 == 0 { 1 << 61 } else { -(1 << 61) }));
    }
    let sketch = CountSketch::<i64>::new(Shape::new(3, 1 << 12).unwrap(), Hasher::new(3));
    let sketch = fed(sketch, &packets, Probability::new(3).unwrap(), 5);
    let counters = &sketch.rows.counters;
    let mut saturated = 0;
    for &(key, weight) in &packets {
        for row in 0..3 {
            let column = counters.column(row, sketch.rows.hasher.digest(&key));
            let value = column.signed(counters.get(row, column));
            if value != 0 {
                assert_eq!(
                    (value > 0, value.unsigned_abs() >= i64::MAX as u64),
                    (weight > 0, true),
                    "{value}"
                );
                saturated += 1;
            }
        }
    }
    assert!(saturated > 5);
    assert_eq!(sketch.saturations(), saturated);
}

proptest! {
    #[test]
    fn divisor_matches_integer_division(divisor in 1..=64u64, number in 0..1u64 << 40, below in 1..100u64) {
        let rows = Divisor::new(divisor);
        let multiple = number / divisor * divisor;
        for number in [number, multiple, multiple.saturating_sub(1), (1 << 40) - below] {
            assert_eq!(rows.divide(number), (number / divisor, number % divisor));
        }
    }
}
