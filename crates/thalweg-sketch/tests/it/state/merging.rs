//! Merging the states of many collectors.

use proptest::prelude::*;
use thalweg_sketch::state::{AnyState, CombineError, KeyBytes, Kind, Linear, Meta};
use thalweg_sketch::{
    CountSketch, Hasher, HyperLogLog, MergeError, Mode, Nitro, Probability, RowSketch, Shape, WithTopK,
};

use super::round_trip::recipe;
use super::samples::{self, State};

fn decoded(state: &State) -> AnyState<KeyBytes> {
    AnyState::decode(&state.encode(&Meta::default())).unwrap().1
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// A program can merge saved states without knowing the key type, with the same result as one that knows it.
    /// There is room for all keys: beyond that, the remaining candidates depend on the order.
    #[test]
    fn merging_saved_states_equals_merging_sketches(recipe in recipe(), cut in 0usize..200) {
        let mut recipe = recipe;
        recipe.k = recipe.k.map(|_| 300);
        let (left, right) = recipe.stream.split_at(cut.min(recipe.stream.len()));
        let (left, right) = (recipe.state_of(left), recipe.state_of(right));
        let meta = Meta::default();
        for subtract in [false, true] {
            let (mut state, mut saved) = (left.clone(), decoded(&left));
            let (of_states, of_saved) = if subtract {
                (state.subtract(&right), saved.subtract(&decoded(&right)))
            } else {
                (state.merge(&right), saved.merge(&decoded(&right)))
            };
            prop_assert_eq!(&of_states, &of_saved);
            prop_assert_eq!(of_states.is_ok(), !subtract || left.statistics().is_some());
            prop_assert_eq!(saved.encode(&meta), state.encode(&meta));
        }
    }
}

/// Without candidates, whose estimates are from their last offer.
#[test]
fn saved_parts_merge_to_the_saved_whole() {
    let state = |numbers: std::ops::Range<u32>| {
        let mut sketch = CountSketch::<i64>::new(Shape::new(5, 64).unwrap(), Hasher::new(3));
        numbers.for_each(|number| sketch.add(&samples::host(number % 97), i64::from(number)));
        decoded(&State::from(Linear::CountSketch(sketch.into())))
    };
    let mut merged = state(0..400);
    merged.merge(&state(400..1_000)).unwrap();
    assert_eq!(merged, state(0..1_000));
    merged.subtract(&state(400..1_000)).unwrap();
    assert_eq!(
        merged.statistics().map(|statistics| statistics.total()),
        state(0..400).statistics().map(|statistics| statistics.total())
    );
}

#[test]
fn different_kinds_are_not_merged() {
    let all = samples::all();
    for (name, _, state) in &all {
        for (other_name, _, other) in &all {
            let mut merged = state.clone();
            let result = merged.merge(other);
            if name == other_name {
                assert_eq!(result, Ok(()));
                continue;
            }
            let error = result.unwrap_err();
            assert_eq!(&merged, state, "{name} was changed by a failed merge");
            let kinds_differ = state.kind() != other.kind();
            assert_eq!(
                matches!(error, CombineError::Kind { .. }),
                kinds_differ,
                "{name} {other_name}: {error}"
            );
            assert!(merged.subtract(other).is_err());
        }
    }
}

#[test]
fn merge_errors_name_the_difference() {
    let sketch = |rows, seed| CountSketch::<i32>::new(Shape::new(rows, 8).unwrap(), Hasher::new(seed));
    let state = |rows, seed| State::from(Linear::CountSketch(sketch(rows, seed).into()));
    let with_top = State::from(Linear::CountSketch(WithTopK::new(sketch(3, 1), 2).into()));
    let wide = CountSketch::<i64>::new(Shape::new(3, 8).unwrap(), Hasher::new(1));
    let wide = State::from(Linear::CountSketch(wide.into()));
    let distinct = State::from(HyperLogLog::new(4, Hasher::new(1)).unwrap());
    let mut ours = state(3, 1);
    let kinds = CombineError::Kind { ours: Kind::CountSketch, theirs: Kind::HyperLogLog };
    assert_eq!(ours.merge(&distinct), Err(kinds));
    assert_eq!(ours.merge(&wide), Err(CombineError::Counter { ours: 32, theirs: 64 }));
    assert_eq!(ours.merge(&with_top), Err(CombineError::TopK { ours: false }));
    assert_eq!(with_top.clone().merge(&ours), Err(CombineError::TopK { ours: true }));
    let shapes = MergeError::Shape { ours: Shape::new(3, 8).unwrap(), theirs: Shape::new(4, 8).unwrap() };
    assert_eq!(ours.merge(&state(4, 1)), Err(shapes.into()));
    assert_eq!(ours.subtract(&state(3, 2)), Err(MergeError::Seed { ours: 1, theirs: 2 }.into()));
    let linear = CombineError::NotLinear { kind: Kind::HyperLogLog };
    assert_eq!(distinct.clone().subtract(&distinct), Err(linear));
}

/// A top-k that was restored with few candidates accepts many.
#[test]
fn a_restored_top_k_grows_to_its_limit() {
    let sketch = || CountSketch::<i32>::new(Shape::new(3, 1 << 14).unwrap(), Hasher::new(1));
    let fed = |keys: std::ops::Range<u32>| {
        let mut nitro = Nitro::new(WithTopK::new(sketch(), 500), Mode::Fixed(Probability::ONE), 1);
        let batch: Vec<_> = keys.map(|key| (samples::host(key), 1_000 - i64::from(key))).collect();
        nitro.update(batch.as_slice());
        State::from(Linear::CountSketch(nitro.into_sketch().into()))
    };
    let mut merged = decoded(&fed(0..1));
    merged.merge(&decoded(&fed(1..900))).unwrap();
    let largest = merged.largest();
    assert_eq!(largest.len(), 500);
    let names: Vec<_> = largest.iter().map(|(key, _)| key.to_string()).collect();
    assert_eq!((names[0].as_str(), names[499].as_str()), ("0a000000", "0a0001f3"));
}
