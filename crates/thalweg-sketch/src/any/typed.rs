//! The virtual calls of a sketch, and the types behind them.

use std::any::Any;

use super::keys::Keys;
use super::settings::Settings;
use crate::count_min::CountMin;
use crate::count_sketch::CountSketch;
use crate::counters::Counter;
use crate::digest::Hasher;
use crate::estimate::Estimate;
use crate::k_ary::KAry;
use crate::nitro::{Batch as _, Mode, Nitro, Offers, Probability, RowWise, WithTopK, largest};
use crate::rows::RowSketch;
use crate::state::{AnyState, CombineError, KeyBytes, Kind, Linear, RowState};
use crate::stream_statistics::StreamStatistics;
use crate::univmon::UnivMon;

/// A sampled sketch of one type. One call is for a batch.
pub(super) trait Typed: Any + Send + Sync {
    fn update(&mut self, keys: &Keys<'_>);
    fn update_on_demand(
        &mut self,
        packets: usize,
        weights: Option<&[i64]>,
        read: &mut dyn FnMut(usize, &mut KeyBytes) -> bool,
    );
    fn unsampled(&self) -> u64;
    fn skip(&mut self, packets: u64) -> u64;
    fn uncounted(&self) -> Estimate;
    fn advance(&mut self, now_ns: u64);
    fn set_mode(&mut self, mode: Mode, seed: u64);
    fn probability(&self) -> Probability;
    fn hasher(&self) -> Hasher;
    fn kind(&self) -> Kind;
    fn statistics(&self) -> &StreamStatistics;
    fn saturations(&self) -> u64;
    fn bytes(&self) -> u64;
    fn estimates(&self, keys: &Keys<'_>, take: &mut dyn FnMut(usize, Estimate));
    fn largest(&self) -> Vec<(KeyBytes, Estimate)>;
    fn f2(&self) -> Option<Estimate>;
    fn distinct(&self) -> Option<Estimate>;
    fn entropy(&self) -> Option<Estimate>;
    fn merge(&mut self, other: &dyn Typed) -> Result<(), CombineError>;
    fn subtract(&mut self, other: &dyn Typed) -> Result<(), CombineError>;
    fn clear(&mut self);
    fn state(&self) -> AnyState<KeyBytes>;
}

/// What differs between the types.
pub(super) trait Queried: RowWise<KeyBytes> + Clone + Send + Sync + 'static {
    fn kind(&self) -> Kind;
    fn saturations(&self) -> u64;
    fn bytes(&self) -> u64;
    fn estimates(&self, keys: &Keys<'_>, take: &mut dyn FnMut(usize, Estimate));
    fn largest(&self) -> Vec<(KeyBytes, Estimate)>;
    fn f2(&self) -> Option<Estimate>;
    fn distinct(&self) -> Option<Estimate> {
        None
    }
    fn entropy(&self) -> Option<Estimate> {
        None
    }
    fn merge(&mut self, other: &Self) -> Result<(), CombineError>;
    fn subtract(&mut self, other: &Self) -> Result<(), CombineError>;
    fn clear(&mut self);
    fn state(self) -> AnyState<KeyBytes>;
}

/// A sampled sketch, and the keys that wait for its top-k.
struct Sampled<S> {
    nitro: Nitro<S>,
    offers: Offers<KeyBytes>,
}

impl<S> Sampled<S> {
    fn new(sketch: S, mode: Mode, seed: u64) -> Sampled<S> {
        Sampled { nitro: Nitro::new(sketch, mode, seed), offers: Offers::default() }
    }
}

impl<S: Queried> Typed for Sampled<S> {
    fn update(&mut self, keys: &Keys<'_>) {
        self.nitro.update(keys);
    }

    fn update_on_demand(
        &mut self,
        packets: usize,
        weights: Option<&[i64]>,
        read: &mut dyn FnMut(usize, &mut KeyBytes) -> bool,
    ) {
        self.nitro.update_on_demand(packets, weights, &mut self.offers, read);
    }

    fn unsampled(&self) -> u64 {
        self.nitro.unsampled::<KeyBytes>()
    }

    fn skip(&mut self, packets: u64) -> u64 {
        self.nitro.skip::<KeyBytes>(packets)
    }

    fn uncounted(&self) -> Estimate {
        self.nitro.uncounted::<KeyBytes>()
    }

    fn advance(&mut self, now_ns: u64) {
        self.nitro.advance(now_ns);
    }

    fn set_mode(&mut self, mode: Mode, seed: u64) {
        *self = Sampled::new(self.nitro.sketch().clone(), mode, seed);
    }

    fn probability(&self) -> Probability {
        self.nitro.probability()
    }

    fn hasher(&self) -> Hasher {
        self.nitro.sketch().hasher()
    }

    fn kind(&self) -> Kind {
        self.nitro.sketch().kind()
    }

    fn statistics(&self) -> &StreamStatistics {
        self.nitro.sketch().statistics()
    }

    fn saturations(&self) -> u64 {
        self.nitro.sketch().saturations()
    }

    fn bytes(&self) -> u64 {
        self.nitro.sketch().bytes()
    }

    fn estimates(&self, keys: &Keys<'_>, take: &mut dyn FnMut(usize, Estimate)) {
        self.nitro.sketch().estimates(keys, take);
    }

    fn largest(&self) -> Vec<(KeyBytes, Estimate)> {
        self.nitro.sketch().largest()
    }

    fn f2(&self) -> Option<Estimate> {
        self.nitro.sketch().f2()
    }

    fn distinct(&self) -> Option<Estimate> {
        self.nitro.sketch().distinct()
    }

    fn entropy(&self) -> Option<Estimate> {
        self.nitro.sketch().entropy()
    }

    fn merge(&mut self, other: &dyn Typed) -> Result<(), CombineError> {
        match (other as &dyn Any).downcast_ref::<Self>() {
            Some(other) => self.nitro.sketch_mut().merge(other.nitro.sketch()),
            // Different types: the states name the difference.
            None => self.state().merge(&other.state()),
        }
    }

    fn subtract(&mut self, other: &dyn Typed) -> Result<(), CombineError> {
        match (other as &dyn Any).downcast_ref::<Self>() {
            Some(other) => self.nitro.sketch_mut().subtract(other.nitro.sketch()),
            None => self.state().subtract(&other.state()),
        }
    }

    fn clear(&mut self) {
        self.nitro.sketch_mut().clear();
        self.nitro.begin_window();
        self.offers.clear();
    }

    fn state(&self) -> AnyState<KeyBytes> {
        self.nitro.sketch().clone().state()
    }
}

/// Returns a sampled UnivMon.
pub(super) fn new_univmon<C: Counter + Send + Sync + 'static>(
    sketch: UnivMon<KeyBytes, C>,
    settings: &Settings,
) -> Box<dyn Typed>
where
    AnyState<KeyBytes>: From<Linear<KeyBytes, C>>,
{
    Box::new(Sampled::new(sketch, settings.mode, settings.sampler_seed))
}

/// A sketch of rows, as a variant of [`Linear`].
pub(super) trait Named: RowSketch + Clone + Send + Sync + 'static {
    const KIND: Kind;
    fn linear(state: RowState<Self, KeyBytes>) -> AnyState<KeyBytes>;
    fn second_moment(&self) -> Option<Estimate>;
}

impl<C: Counter + Send + Sync + 'static> Named for CountMin<C>
where
    AnyState<KeyBytes>: From<Linear<KeyBytes, C>>,
{
    const KIND: Kind = Kind::CountMin;

    fn linear(state: RowState<Self, KeyBytes>) -> AnyState<KeyBytes> {
        Linear::CountMin(state).into()
    }

    fn second_moment(&self) -> Option<Estimate> {
        None
    }
}

impl<C: Counter + Send + Sync + 'static> Named for CountSketch<C>
where
    AnyState<KeyBytes>: From<Linear<KeyBytes, C>>,
{
    const KIND: Kind = Kind::CountSketch;

    fn linear(state: RowState<Self, KeyBytes>) -> AnyState<KeyBytes> {
        Linear::CountSketch(state).into()
    }

    fn second_moment(&self) -> Option<Estimate> {
        Some(self.f2())
    }
}

impl<C: Counter + Send + Sync + 'static> Named for KAry<C>
where
    AnyState<KeyBytes>: From<Linear<KeyBytes, C>>,
{
    const KIND: Kind = Kind::KAry;

    fn linear(state: RowState<Self, KeyBytes>) -> AnyState<KeyBytes> {
        Linear::KAry(state).into()
    }

    fn second_moment(&self) -> Option<Estimate> {
        Some(self.f2())
    }
}

fn estimates_of<S: RowSketch>(sketch: &S, keys: &Keys<'_>, take: &mut dyn FnMut(usize, Estimate)) {
    let (noise, hasher) = (sketch.noise(), sketch.hasher());
    (0..keys.len()).for_each(|number| take(number, sketch.estimate(keys.digest(number, hasher), &noise)));
}

impl<S: Named> Queried for S
where
    S::Counter: Send + Sync + 'static,
{
    fn kind(&self) -> Kind {
        S::KIND
    }

    fn saturations(&self) -> u64 {
        RowSketch::saturations(self)
    }

    fn bytes(&self) -> u64 {
        RowSketch::bytes(self)
    }

    fn estimates(&self, keys: &Keys<'_>, take: &mut dyn FnMut(usize, Estimate)) {
        estimates_of(self, keys, take);
    }

    fn largest(&self) -> Vec<(KeyBytes, Estimate)> {
        Vec::new()
    }

    fn f2(&self) -> Option<Estimate> {
        self.second_moment()
    }

    fn merge(&mut self, other: &Self) -> Result<(), CombineError> {
        Ok(RowSketch::merge(self, other)?)
    }

    fn subtract(&mut self, other: &Self) -> Result<(), CombineError> {
        Ok(RowSketch::subtract(self, other)?)
    }

    fn clear(&mut self) {
        RowSketch::clear(self);
    }

    fn state(self) -> AnyState<KeyBytes> {
        S::linear(self.into())
    }
}

impl<S: Named> Queried for WithTopK<S, KeyBytes> {
    fn kind(&self) -> Kind {
        S::KIND
    }

    fn saturations(&self) -> u64 {
        self.sketch.saturations()
    }

    fn bytes(&self) -> u64 {
        self.sketch.bytes() + self.top.bytes()
    }

    fn estimates(&self, keys: &Keys<'_>, take: &mut dyn FnMut(usize, Estimate)) {
        estimates_of(&self.sketch, keys, take);
    }

    fn largest(&self) -> Vec<(KeyBytes, Estimate)> {
        largest(&self.sketch, &self.top)
    }

    fn f2(&self) -> Option<Estimate> {
        self.sketch.second_moment()
    }

    fn merge(&mut self, other: &Self) -> Result<(), CombineError> {
        Ok(WithTopK::merge(self, other)?)
    }

    fn subtract(&mut self, other: &Self) -> Result<(), CombineError> {
        Ok(WithTopK::subtract(self, other)?)
    }

    fn clear(&mut self) {
        WithTopK::clear(self);
    }

    fn state(self) -> AnyState<KeyBytes> {
        S::linear(self.into())
    }
}

impl<C: Counter + Send + Sync + 'static> Queried for UnivMon<KeyBytes, C>
where
    AnyState<KeyBytes>: From<Linear<KeyBytes, C>>,
{
    fn kind(&self) -> Kind {
        Kind::UnivMon
    }

    fn saturations(&self) -> u64 {
        UnivMon::saturations(self)
    }

    fn bytes(&self) -> u64 {
        UnivMon::bytes(self)
    }

    fn estimates(&self, keys: &Keys<'_>, take: &mut dyn FnMut(usize, Estimate)) {
        (0..keys.len()).for_each(|number| take(number, self.estimate_key(&keys.key(number))));
    }

    fn largest(&self) -> Vec<(KeyBytes, Estimate)> {
        UnivMon::largest(self)
    }

    fn f2(&self) -> Option<Estimate> {
        Some(UnivMon::f2(self))
    }

    fn distinct(&self) -> Option<Estimate> {
        Some(UnivMon::distinct(self))
    }

    fn entropy(&self) -> Option<Estimate> {
        Some(UnivMon::entropy(self))
    }

    fn merge(&mut self, other: &Self) -> Result<(), CombineError> {
        Ok(UnivMon::merge(self, other)?)
    }

    fn subtract(&mut self, other: &Self) -> Result<(), CombineError> {
        Ok(UnivMon::subtract(self, other)?)
    }

    fn clear(&mut self) {
        UnivMon::clear(self);
    }

    fn state(self) -> AnyState<KeyBytes> {
        Linear::UnivMon(self).into()
    }
}

/// A sampled sketch of rows with as many candidates as the settings ask for.
pub(super) fn new_rows<S: Named>(sketch: S, settings: &Settings) -> Box<dyn Typed>
where
    S::Counter: Send + Sync + 'static,
{
    let (mode, seed) = (settings.mode, settings.sampler_seed);
    match settings.top_k {
        0 => Box::new(Sampled::new(sketch, mode, seed)),
        k => Box::new(Sampled::new(WithTopK::<S, KeyBytes>::new(sketch, k), mode, seed)),
    }
}

/// Returns the sketch of a state, without sampling; `None` if it has no counters.
pub(super) fn of_state(state: AnyState<KeyBytes>) -> Option<Box<dyn Typed>> {
    match state {
        AnyState::I32(linear) => Some(of_linear(linear)),
        AnyState::I64(linear) => Some(of_linear(linear)),
        AnyState::HyperLogLog(_) | AnyState::Spread(_) => None,
    }
}

fn of_linear<C: Counter + Send + Sync + 'static>(linear: Linear<KeyBytes, C>) -> Box<dyn Typed>
where
    AnyState<KeyBytes>: From<Linear<KeyBytes, C>>,
{
    match linear {
        Linear::CountMin(state) => of_rows(state),
        Linear::CountSketch(state) => of_rows(state),
        Linear::KAry(state) => of_rows(state),
        Linear::UnivMon(sketch) => Box::new(unsampled(sketch)),
    }
}

fn of_rows<S: Named>(state: RowState<S, KeyBytes>) -> Box<dyn Typed>
where
    S::Counter: Send + Sync + 'static,
{
    let RowState { sketch, top } = state;
    match top {
        None => Box::new(unsampled(sketch)),
        Some(top) => Box::new(unsampled(WithTopK { sketch, top })),
    }
}

fn unsampled<S>(sketch: S) -> Sampled<S> {
    Sampled::new(sketch, Mode::Fixed(Probability::ONE), 0)
}
