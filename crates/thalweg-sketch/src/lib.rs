//! Sketches: summaries of a stream of weighted keys in a small, fixed memory, with NitroSketch sampling.
//!
//! | sketch | answers | error |
//! |---|---|---|
//! | [`CountMin`] | the weight of a key | never too low; eps L1 |
//! | [`CountSketch`] | the weight of a key; L2 | unbiased; eps L2 |
//! | [`KAry`] | the change of a key's weight between two windows | each row unbiased; eps L2 of the change |
//! | [`UnivMon`] | distinct keys, entropy, moments and heavy hitters from one state | |
//! | [`TopK`] | the largest keys, beside any of these | |
//! | [`HyperLogLog`] | distinct keys | 1.04/sqrt(m) |
//! | [`Spread`] | keys with many distinct peers | |
//!
//! [`Nitro`] samples the row updates of the linear sketches. That makes them one to two orders of magnitude faster
//! and keeps their guarantees. Every result is an [`Estimate`]: a value with its error bounds. Sketches are saved,
//! read back and merged across machines: [`state`].
//!
//! ```
//! use thalweg_sketch::{CountSketch, Hasher, Mode, Nitro, Probability, RowSketch, Shape};
//!
//! let sketch = CountSketch::<i32>::new(Shape::for_memory(1 << 18, 5, 4)?, Hasher::new(7));
//! let mut nitro = Nitro::new(sketch, Mode::Fixed(Probability::at_most(1.0 / 16.0)), 1);
//! let packets: Vec<[u8; 4]> = (0..1_000_000u32).map(|n| (n % 1000 * (n % 3)).to_be_bytes()).collect();
//! nitro.update(packets.as_slice());
//! let estimate = nitro.sketch().estimate_key(&[0, 0, 0, 0]);
//! assert_eq!(estimate.contains(334_000.0), Some(true));
//! # Ok::<(), thalweg_sketch::ShapeError>(())
//! ```

pub mod any;
mod change;
mod count_min;
mod count_sketch;
mod counters;
mod digest;
mod estimate;
mod hyper_log_log;
mod k_ary;
mod memory;
mod merge;
pub mod nitro;
mod noise;
mod parts;
mod probability;
mod row_f2;
mod rows;
mod shape;
mod spread;
pub mod state;
mod stream_statistics;
mod top_k;
mod uncounted;
mod univmon;

pub use change::Change;
pub use count_min::CountMin;
pub use count_sketch::CountSketch;
pub use counters::{Counter, Reading};
pub use digest::{Digest, HASH_NAME, Hasher, Key};
pub use estimate::{Bound, CHEBYSHEV_FACTOR, Estimate, median_failure};
pub use hyper_log_log::{HyperLogLog, RegistersError, SizeError};
pub use k_ary::KAry;
pub use merge::MergeError;
pub use nitro::{Batch, LineRate, Mode, Nitro, Offers, Probability, Target, WithTopK};
pub use noise::Noise;
pub use parts::Columns;
pub use rows::{RowSketch, Rows};
pub use shape::{Shape, ShapeError};
pub use spread::{Collisions, Spread};
pub use stream_statistics::{StreamStatistics, Sums};
pub use top_k::{Candidate, TopK};
pub use uncounted::Uncounted;
pub use univmon::{UnivMon, UnivMonShape};
