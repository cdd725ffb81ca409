//! Random sketches of every kind.

use proptest::prelude::*;
use thalweg_sketch::nitro::RowWise;
use thalweg_sketch::state::{AnyState, KeyBytes, Kind, Linear, Meta, RowState};
use thalweg_sketch::{
    CountMin, CountSketch, Counter, Hasher, HyperLogLog, KAry, Key as _, Mode, Nitro, Probability, RowSketch,
    Shape, Spread, UnivMon, UnivMonShape, WithTopK,
};

use super::samples::{Host, State, host};

/// The parameters of a state.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    kind: Kind,
    is_wide: bool,
    rows: usize,
    width: usize,
    precision: u8,
    levels: usize,
    pub(crate) k: Option<usize>,
    seed: u64,
    probability: Probability,
    pub(crate) stream: Vec<(Host, i64)>,
}

pub(crate) fn recipe() -> impl Strategy<Value = Recipe> {
    let kinds = prop::sample::select(Kind::ALL.to_vec());
    let weight =
        prop_oneof![1i64..100, -50i64..1_000_000_000, prop::sample::select(vec![i64::MIN, i64::MAX])];
    let stream = prop::collection::vec(((0u32..300).prop_map(host), weight), 0..200);
    let sizes = (1usize..=8, 2u32..=7, 4u8..=8, 1usize..=17);
    let probability = (0u8..=10).prop_map(|log2| Probability::new(log2).unwrap());
    let probability = prop_oneof![Just(Probability::ONE), probability];
    (kinds, any::<bool>(), sizes, prop::option::of(1usize..20), any::<u64>(), probability, stream).prop_map(
        |(kind, is_wide, (rows, width_log2, precision, levels), k, seed, probability, stream)| {
            let width = 1 << width_log2;
            Recipe { kind, is_wide, rows, width, precision, levels, k, seed, probability, stream }
        },
    )
}

impl Recipe {
    pub(crate) fn state(&self) -> State {
        self.state_of(&self.stream)
    }

    pub(crate) fn state_of(&self, stream: &[(Host, i64)]) -> State {
        match self.kind {
            Kind::HyperLogLog => {
                let mut counter = HyperLogLog::new(self.precision, self.hasher()).unwrap();
                stream.iter().for_each(|(key, _)| {
                    counter.add(self.hasher().digest(key));
                });
                counter.into()
            }
            Kind::Spread => {
                let k = self.k.unwrap_or(300);
                let mut spread = Spread::new(self.shape(), self.precision, k, self.hasher()).unwrap();
                stream
                    .iter()
                    .for_each(|(key, weight)| spread.add(&[key[3] % 16, 0, 0, 0], &weight.to_le_bytes()));
                spread.into()
            }
            _ if self.is_wide => self.linear::<i64>(stream).into(),
            _ => self.linear::<i32>(stream).into(),
        }
    }

    fn hasher(&self) -> Hasher {
        Hasher::new(self.seed)
    }

    fn shape(&self) -> Shape {
        Shape::new(self.rows, self.width).unwrap()
    }

    fn linear<C: Counter>(&self, stream: &[(Host, i64)]) -> Linear<Host, C> {
        let (shape, hasher) = (self.shape(), self.hasher());
        match self.kind {
            Kind::CountMin => Linear::CountMin(self.rows_of(CountMin::new(shape, hasher), stream)),
            Kind::CountSketch => Linear::CountSketch(self.rows_of(CountSketch::new(shape, hasher), stream)),
            Kind::KAry => Linear::KAry(self.rows_of(KAry::new(shape, hasher), stream)),
            _ => {
                let shape = UnivMonShape::new(self.levels, shape, self.k.unwrap_or(300)).unwrap();
                Linear::UnivMon(self.fed(UnivMon::new(shape, hasher), stream))
            }
        }
    }

    fn rows_of<S: RowSketch>(&self, sketch: S, stream: &[(Host, i64)]) -> RowState<S, Host> {
        match self.k {
            None => self.fed(sketch, stream).into(),
            Some(k) => self.fed(WithTopK::new(sketch, k), stream).into(),
        }
    }

    fn fed<S: RowWise<Host>>(&self, sketch: S, stream: &[(Host, i64)]) -> S {
        let mut nitro = Nitro::new(sketch, Mode::Fixed(self.probability), self.seed);
        nitro.update(stream);
        nitro.into_sketch()
    }
}

fn meta() -> impl Strategy<Value = Meta> {
    (".{0,20}", ".{0,200}", any::<u64>(), any::<u64>()).prop_map(|(key_kind, label, start_ns, end_ns)| Meta {
        key_kind,
        label,
        start_ns,
        end_ns,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn states_round_trip(recipe in recipe(), meta in meta()) {
        let state = recipe.state();
        let bytes = state.encode(&meta);
        let (same_meta, same) = State::decode(&bytes).unwrap();
        prop_assert_eq!(&same_meta, &meta);
        prop_assert_eq!(&same, &state);
        prop_assert_eq!(same.encode(&meta), bytes.clone());
        let (_, any) = AnyState::<KeyBytes>::decode(&bytes).unwrap();
        prop_assert_eq!(any.encode(&meta), bytes);
        let keys = |of: Vec<(KeyBytes, _)>| of.into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        let known: Vec<_> = state.largest().iter().map(|(key, _)| KeyBytes::from_bytes(key).unwrap()).collect();
        prop_assert_eq!(keys(any.largest()), known);
    }

    #[test]
    fn a_flipped_byte_in_any_state_is_an_error(
        recipe in recipe(),
        meta in meta(),
        position: prop::sample::Index,
        flip in 1u8..,
    ) {
        let mut bytes = recipe.state().encode(&meta);
        let index = position.index(bytes.len());
        bytes[index] ^= flip;
        prop_assert!(State::decode(&bytes).is_err());
    }
}
