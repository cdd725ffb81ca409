//! A sketch whose kind, shape and mode are chosen at run time, for users that are not written in Rust.
//!
//! [`AnySketch`] is a linear sketch with Nitro sampling over keys of up to 64 bytes. It adds one virtual call to each
//! batch, and updates do not allocate. Its states are those of [`crate::state`].
//!
//! ```
//! use thalweg_sketch::any::{AnySketch, Settings, Size};
//! use thalweg_sketch::state::{Kind, Meta};
//! use thalweg_sketch::{Mode, Probability};
//!
//! let settings = Settings {
//!     kind: Kind::CountSketch,
//!     size: Size::Shape { rows: 5, width: 1024 },
//!     mode: Mode::Fixed(Probability::at_most(1.0 / 16.0)),
//!     ..Settings::default()
//! };
//! let mut sketch = AnySketch::new(&settings)?;
//! let keys: Vec<u8> = (0..100_000u32).flat_map(|n| (n % 10).to_be_bytes()).collect();
//! sketch.update(&keys, 4, None)?;
//! let estimate = sketch.estimate(&7u32.to_be_bytes())?;
//! assert_eq!(estimate.contains(10_000.0), Some(true));
//! let bytes = sketch.encode(&Meta::default());
//! assert_eq!(AnySketch::decode(&bytes)?.1.statistics().total(), 100_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod keys;
mod settings;
mod typed;

pub use error::AnyError;
pub use settings::{Settings, Size};

use crate::digest::Hasher;
use crate::estimate::Estimate;
use crate::nitro::{Mode, Probability};
use crate::state::{AnyState, CombineError, KeyBytes, Kind, Meta};
use crate::stream_statistics::StreamStatistics;
use keys::Keys;
use typed::Typed;

/// A linear sketch of any kind, whose row updates are sampled.
pub struct AnySketch {
    typed: Box<dyn Typed>,
}

impl AnySketch {
    /// Creates an empty sketch.
    ///
    /// # Errors
    /// If a setting is out of range, or contradicts another.
    pub fn new(settings: &Settings) -> Result<AnySketch, AnyError> {
        Ok(AnySketch { typed: settings.build()? })
    }

    /// Returns the current p.
    pub fn probability(&self) -> Probability {
        self.typed.probability()
    }

    /// Returns the totals of the stream.
    pub fn statistics(&self) -> &StreamStatistics {
        self.typed.statistics()
    }

    /// Returns the number of additions that exceeded a counter's range.
    pub fn saturations(&self) -> u64 {
        self.typed.saturations()
    }

    /// Returns the memory of counters and candidates, in bytes.
    pub fn bytes(&self) -> u64 {
        self.typed.bytes()
    }

    /// Returns the hash.
    pub fn hasher(&self) -> Hasher {
        self.typed.hasher()
    }

    /// Sets the current time in nanoseconds of any monotonic clock, which AlwaysLineRate needs.
    pub fn advance(&mut self, now_ns: u64) {
        self.typed.advance(now_ns);
    }

    /// Counts the keys of `key_bytes` bytes that lie one behind another in `keys`, with a weight of 1 or with
    /// `weights[i]`.
    ///
    /// # Errors
    /// If the keys have no bytes or more than 64, do not fill the batch, or there is not one weight for each; then
    /// nothing changes.
    pub fn update(&mut self, keys: &[u8], key_bytes: usize, weights: Option<&[i64]>) -> Result<(), AnyError> {
        let keys = Keys::new(keys, key_bytes, weights)?;
        self.typed.update(&keys);
        Ok(())
    }

    /// Counts `packets` packets, and asks for the keys of the sampled ones only. `key(i, bytes)` writes the key of
    /// packet i into up to 64 bytes and returns its length, or 0 if the packet has none ([`AnySketch::uncounted`]); so
    /// does a length above 64.
    ///
    /// # Errors
    /// If there is not one weight for each packet; then nothing changes.
    pub fn update_on_demand(
        &mut self,
        packets: usize,
        weights: Option<&[i64]>,
        mut key: impl FnMut(usize, &mut [u8; KeyBytes::MAX_LENGTH]) -> usize,
    ) -> Result<(), AnyError> {
        if let Some(weights) = weights.filter(|weights| weights.len() != packets) {
            return Err(AnyError::Weights { weights: weights.len(), keys: packets });
        }
        let read = &mut |packet: usize, bytes: &mut KeyBytes| bytes.write(|bytes| key(packet, bytes));
        self.typed.update_on_demand(packets, weights, read);
        Ok(())
    }

    /// Returns how many packets pass before the next sampled one.
    #[inline]
    pub fn unsampled(&self) -> u64 {
        self.typed.unsampled()
    }

    /// Counts up to `packets` packets of weight 1 that are not sampled, without their keys; returns how many.
    #[inline]
    pub fn skip(&mut self, packets: u64) -> u64 {
        self.typed.skip(packets)
    }

    /// Estimates how many packets of the window had no key.
    pub fn uncounted(&self) -> Estimate {
        self.typed.uncounted()
    }

    /// Estimates the weight of a key.
    ///
    /// # Errors
    /// If the key has no bytes or more than 64.
    pub fn estimate(&self, key: &[u8]) -> Result<Estimate, AnyError> {
        let mut estimate = Estimate::exact(0.0);
        self.estimates(key, key.len(), |_, found| estimate = found)?;
        Ok(estimate)
    }

    /// Estimates the weights of the keys of `key_bytes` bytes that lie one behind another in `keys`; calls `take` with
    /// the number of each. Faster than one by one, because the noise is measured once.
    ///
    /// # Errors
    /// If the keys have no bytes or more than 64, or do not fill the batch.
    pub fn estimates(
        &self,
        keys: &[u8],
        key_bytes: usize,
        mut take: impl FnMut(usize, Estimate),
    ) -> Result<(), AnyError> {
        self.typed.estimates(&Keys::new(keys, key_bytes, None)?, &mut take);
        Ok(())
    }

    /// Returns the keys with the largest estimates, largest first; empty if the sketch tracks none.
    pub fn largest(&self) -> Vec<(KeyBytes, Estimate)> {
        self.typed.largest()
    }

    /// Estimates F2, the sum of the squares of all keys' weights.
    ///
    /// # Errors
    /// If the sketch is a Count-Min.
    pub fn f2(&self) -> Result<Estimate, AnyError> {
        self.typed.f2().ok_or_else(|| self.unanswered("F2"))
    }

    /// Estimates the number of distinct keys.
    ///
    /// # Errors
    /// If the sketch is not a UnivMon.
    pub fn distinct(&self) -> Result<Estimate, AnyError> {
        self.typed.distinct().ok_or_else(|| self.unanswered("the number of distinct keys"))
    }

    /// Estimates the entropy of the weights over the keys, in bits.
    ///
    /// # Errors
    /// If the sketch is not a UnivMon.
    pub fn entropy(&self) -> Result<Estimate, AnyError> {
        self.typed.entropy().ok_or_else(|| self.unanswered("entropy"))
    }

    fn unanswered(&self, question: &'static str) -> AnyError {
        AnyError::Unanswered { kind: self.kind(), question }
    }

    /// Returns the kind of sketch.
    pub fn kind(&self) -> Kind {
        self.typed.kind()
    }

    /// Merges `other` into this sketch.
    ///
    /// # Errors
    /// If they differ in anything but their counts and modes; then nothing changes.
    pub fn merge(&mut self, other: &AnySketch) -> Result<(), AnyError> {
        Ok(self.typed.merge(&*other.typed)?)
    }

    /// Subtracts `other` from this sketch: the change since then, if `other` is an earlier window.
    ///
    /// # Errors
    /// If they differ in anything but their counts and modes; then nothing changes.
    pub fn subtract(&mut self, other: &AnySketch) -> Result<(), AnyError> {
        Ok(self.typed.subtract(&*other.typed)?)
    }

    /// Starts a new window with an empty sketch. p goes on, but for AlwaysCorrect, which starts at 1.
    pub fn clear(&mut self) {
        self.typed.clear();
    }

    /// Returns a copy of the sketch as a state.
    pub fn state(&self) -> AnyState<KeyBytes> {
        self.typed.state()
    }

    /// Encodes the sketch with its metadata. The mode is not part of a state.
    pub fn encode(&self, meta: &Meta) -> Vec<u8> {
        self.state().encode(meta)
    }

    /// Restores a saved sketch, which goes on with p = 1 ([`AnySketch::set_mode`]).
    ///
    /// # Errors
    /// If the bytes are not a state, or that of a sketch without counters.
    pub fn decode(bytes: &[u8]) -> Result<(Meta, AnySketch), AnyError> {
        let (meta, state) = AnyState::<KeyBytes>::decode(bytes)?;
        let kind = state.kind();
        let typed = typed::of_state(state).ok_or(AnyError::NotLinear { kind })?;
        Ok((meta, AnySketch { typed }))
    }

    /// Samples further updates in another mode.
    ///
    /// # Errors
    /// If a field of the mode is out of range; then nothing changes.
    pub fn set_mode(&mut self, mode: Mode, seed: u64) -> Result<(), AnyError> {
        settings::check_mode(mode)?;
        settings::prepare_tables(mode);
        self.typed.set_mode(mode, seed);
        Ok(())
    }
}

impl std::fmt::Debug for AnySketch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AnySketch({}, p = {})", self.kind(), self.probability())
    }
}

impl From<CombineError> for AnyError {
    fn from(error: CombineError) -> Self {
        AnyError::Combine(error)
    }
}
