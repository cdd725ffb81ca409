//! A small state of every kind.

use thalweg_sketch::state::{AnyState, Linear, Meta, RowState};
use thalweg_sketch::{
    CountMin, CountSketch, Counter, Hasher, HyperLogLog, KAry, Mode, Nitro, Probability, RowSketch, Shape,
    Spread, UnivMon, UnivMonShape, WithTopK,
};

/// IPv4 addresses.
pub(crate) type Host = [u8; 4];
pub(crate) type State = AnyState<Host>;

const HASHER: Hasher = Hasher::new(7);

pub(crate) fn host(number: u32) -> Host {
    (0x0A00_0000 + number).to_be_bytes()
}

fn shape(rows: usize, width: usize) -> Shape {
    Shape::new(rows, width).unwrap()
}

/// A few keys with large weights, many with small ones.
fn weights() -> impl Iterator<Item = (Host, i64)> {
    (1..60u32).map(|n| (host(n % (n % 7 + 1) * n % 31), i64::from(2_000 / n)))
}

/// Adds the weights times `factor` to the sketch.
fn fed<S: RowSketch>(mut sketch: S, factor: i64) -> S {
    weights().for_each(|(key, weight)| sketch.add(&key, weight * factor));
    sketch
}

fn with_top<S: RowSketch>(sketch: S, k: usize, factor: i64) -> RowState<S, Host> {
    let mut nitro = Nitro::new(WithTopK::new(sketch, k), Mode::Fixed(Probability::ONE), 1);
    let batch: Vec<_> = weights().map(|(key, weight)| (key, weight * factor)).collect();
    nitro.update(batch.as_slice());
    nitro.into_sketch().into()
}

fn univmon<C: Counter>(factor: i64) -> UnivMon<Host, C> {
    let mut univmon = UnivMon::new(UnivMonShape::new(3, shape(2, 8), 3).unwrap(), HASHER);
    weights().for_each(|(key, weight)| univmon.add(&key, weight * factor));
    univmon
}

/// The sketch of the example in `docs/reference/sketch-state.md`.
fn example() -> WithTopK<CountSketch, Host> {
    let mut nitro =
        Nitro::new(WithTopK::new(CountSketch::new(shape(3, 8), HASHER), 2), Mode::Fixed(Probability::ONE), 1);
    nitro.update([(host(1), 1000), (host(2), 30), (host(3), 200), (host(1), 500)].as_slice());
    nitro.into_sketch()
}

fn sampled() -> KAry {
    let mut nitro = Nitro::new(KAry::new(shape(2, 8), HASHER), Mode::Fixed(Probability::new(3).unwrap()), 5);
    nitro.update(weights().collect::<Vec<_>>().as_slice());
    nitro.into_sketch()
}

fn difference() -> KAry<i64> {
    let mut difference = fed(KAry::new(shape(3, 8), HASHER), 1_000_000);
    difference.subtract(&fed(KAry::new(shape(3, 8), HASHER), 999_000)).unwrap();
    difference
}

fn saturated() -> CountMin {
    fed(CountMin::new(shape(1, 4), HASHER), 2_000_000)
}

fn distinct() -> HyperLogLog {
    let mut counter = HyperLogLog::new(4, HASHER).unwrap();
    weights().for_each(|(key, _)| {
        counter.add(HASHER.digest(&key));
    });
    counter
}

fn spread() -> Spread<Host> {
    let mut spread = Spread::new(shape(2, 4), 4, 3, HASHER).unwrap();
    weights().enumerate().for_each(|(n, (key, weight))| {
        (0..weight as u32 % 40).for_each(|peer| spread.add(&key, &host(1_000 + n as u32 * peer)));
    });
    spread
}

/// Name, metadata, state.
pub(crate) fn all() -> Vec<(&'static str, Meta, State)> {
    let meta = |key_kind: &str, label: &str, start_s: u64| Meta {
        key_kind: key_kind.to_owned(),
        label: label.to_owned(),
        start_ns: start_s * 1_000_000_000,
        end_ns: (start_s + if start_s > 0 { 10 } else { 0 }) * 1_000_000_000,
    };
    let src = |start_s| meta("src", "", start_s);
    let state32 = |linear: Linear<Host, i32>| State::from(linear);
    let state64 = |linear: Linear<Host, i64>| State::from(linear);
    let s = 1_750_000_000;
    vec![
        ("example", meta("src", "edge", s), state32(Linear::CountSketch(example().into()))),
        (
            "empty",
            Meta::default(),
            state32(Linear::CountSketch(CountSketch::new(shape(1, 4), HASHER).into())),
        ),
        (
            "count-min-32",
            src(0),
            state32(Linear::CountMin(with_top(CountMin::new(shape(2, 16), HASHER), 5, 1))),
        ),
        (
            "count-min-64",
            src(s),
            state64(Linear::CountMin(fed(CountMin::new(shape(2, 16), HASHER), 1500).into())),
        ),
        ("count-min-saturated", src(s), state32(Linear::CountMin(saturated().into()))),
        (
            "count-sketch-32",
            src(s),
            state32(Linear::CountSketch(fed(CountSketch::new(shape(5, 8), HASHER), 1).into())),
        ),
        (
            "count-sketch-64",
            meta("src/24", "näher am Rand", s),
            state64(Linear::CountSketch(with_top(CountSketch::new(shape(3, 16), HASHER), 8, 1500))),
        ),
        ("k-ary-32-sampled", src(s), state32(Linear::KAry(sampled().into()))),
        ("k-ary-64-difference", src(s), state64(Linear::KAry(difference().into()))),
        ("univmon-32", src(s), state32(Linear::UnivMon(univmon(1)))),
        ("univmon-64", src(s), state64(Linear::UnivMon(univmon(1 << 40)))),
        ("hyper-log-log", src(s), State::from(distinct())),
        ("spread", meta("src>dst", "", s), State::from(spread())),
    ]
}

/// The state of one sample.
pub(crate) fn bytes_of(name: &str) -> Vec<u8> {
    let (_, meta, state) = all().into_iter().find(|sample| sample.0 == name).unwrap();
    state.encode(&meta)
}
