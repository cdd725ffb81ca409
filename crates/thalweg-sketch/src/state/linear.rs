//! The linear sketches, with counters of one type.

use super::bytes::Reader;
use super::error::{CombineError, StateError};
use super::header::{AT_LEVELS, Header};
use super::kind::Kind;
use super::tables::{put_counters, put_top, read_counters, read_top};
use crate::count_min::CountMin;
use crate::count_sketch::CountSketch;
use crate::counters::Counter;
use crate::digest::{Hasher, Key};
use crate::estimate::Estimate;
use crate::k_ary::KAry;
use crate::merge::MergeError;
use crate::nitro::{WithTopK, largest};
use crate::rows::{RowSketch, Rows};
use crate::shape::{Shape, ShapeError};
use crate::stream_statistics::StreamStatistics;
use crate::top_k::TopK;
use crate::univmon::{Level, UnivMon, UnivMonShape};

/// A linear sketch with counters of type `C`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Linear<K: Key, C: Counter> {
    /// Estimates that are never too low.
    CountMin(RowState<CountMin<C>, K>),
    /// Unbiased estimates.
    CountSketch(RowState<CountSketch<C>, K>),
    /// Changes between windows.
    KAry(RowState<KAry<C>, K>),
    /// Many statistics from one state.
    UnivMon(UnivMon<K, C>),
}

/// A sketch, and its largest keys if it tracks them.
#[derive(Clone, Debug, PartialEq)]
pub struct RowState<S, K: Key> {
    /// The sketch.
    pub sketch: S,
    /// The largest keys.
    pub top: Option<TopK<K>>,
}

impl<S, K: Key> From<S> for RowState<S, K> {
    fn from(sketch: S) -> Self {
        RowState { sketch, top: None }
    }
}

impl<S, K: Key> From<WithTopK<S, K>> for RowState<S, K> {
    fn from(with: WithTopK<S, K>) -> Self {
        RowState { sketch: with.sketch, top: Some(with.top) }
    }
}

impl<S: RowSketch, K: Key> RowState<S, K> {
    /// Applies `combine` to the sketches; the candidates of both get new estimates.
    fn combine(
        &mut self,
        other: &Self,
        combine: impl Fn(&mut S, &S) -> Result<(), MergeError>,
    ) -> Result<(), CombineError> {
        if self.top.is_some() != other.top.is_some() {
            return Err(CombineError::TopK { ours: self.top.is_some() });
        }
        combine(&mut self.sketch, &other.sketch)?;
        if let (Some(ours), Some(theirs)) = (&mut self.top, &other.top) {
            ours.merge(theirs, |digest| self.sketch.estimate_without_bound(digest));
        }
        Ok(())
    }

    fn largest(&self) -> Vec<(K, Estimate)> {
        self.top.as_ref().map_or_else(Vec::new, |top| largest(&self.sketch, top))
    }
}

/// Evaluates one expression for any row-wise sketch, and another for a UnivMon.
macro_rules! either {
    ($linear:expr, $rows:ident => $with_rows:expr, $univmon:ident => $with_univmon:expr) => {
        match $linear {
            Linear::CountMin($rows) => $with_rows,
            Linear::CountSketch($rows) => $with_rows,
            Linear::KAry($rows) => $with_rows,
            Linear::UnivMon($univmon) => $with_univmon,
        }
    };
}

impl<K: Key, C: Counter> Linear<K, C> {
    /// Returns the kind of sketch.
    pub fn kind(&self) -> Kind {
        match self {
            Linear::CountMin(_) => Kind::CountMin,
            Linear::CountSketch(_) => Kind::CountSketch,
            Linear::KAry(_) => Kind::KAry,
            Linear::UnivMon(_) => Kind::UnivMon,
        }
    }

    /// Returns the hash.
    pub fn hasher(&self) -> Hasher {
        either!(self, rows => rows.sketch.hasher(), univmon => univmon.hasher())
    }

    /// Returns the number of rows and columns; of a UnivMon those of each level.
    pub fn shape(&self) -> Shape {
        either!(self, rows => rows.sketch.shape(), univmon => univmon.shape().shape())
    }

    /// Returns the totals of the stream.
    pub fn statistics(&self) -> &StreamStatistics {
        either!(self, rows => rows.sketch.statistics(), univmon => univmon.statistics())
    }

    /// Returns the number of additions that exceeded a counter's range.
    pub fn saturations(&self) -> u64 {
        either!(self, rows => rows.sketch.saturations(), univmon => univmon.saturations())
    }

    /// Returns the memory of counters and candidates, in bytes.
    pub fn bytes(&self) -> u64 {
        either!(self,
            rows => rows.sketch.bytes() + rows.top.as_ref().map_or(0, TopK::bytes),
            univmon => univmon.bytes()
        )
    }

    /// Returns the keys with the largest estimates, largest first; empty if the sketch tracks none.
    pub fn largest(&self) -> Vec<(K, Estimate)> {
        either!(self, rows => rows.largest(), univmon => univmon.largest())
    }

    /// Merges `other` into this sketch.
    ///
    /// # Errors
    /// If they differ in anything but their counts; then nothing changes.
    pub fn merge(&mut self, other: &Self) -> Result<(), CombineError> {
        match (self, other) {
            (Linear::CountMin(ours), Linear::CountMin(theirs)) => ours.combine(theirs, RowSketch::merge),
            (Linear::CountSketch(ours), Linear::CountSketch(theirs)) => {
                ours.combine(theirs, RowSketch::merge)
            }
            (Linear::KAry(ours), Linear::KAry(theirs)) => ours.combine(theirs, RowSketch::merge),
            (Linear::UnivMon(ours), Linear::UnivMon(theirs)) => Ok(ours.merge(theirs)?),
            (ours, theirs) => Err(CombineError::Kind { ours: ours.kind(), theirs: theirs.kind() }),
        }
    }

    /// Subtracts `other` from this sketch. The candidates are those of both that grew.
    ///
    /// # Errors
    /// If they differ in anything but their counts; then nothing changes.
    pub fn subtract(&mut self, other: &Self) -> Result<(), CombineError> {
        match (self, other) {
            (Linear::CountMin(ours), Linear::CountMin(theirs)) => ours.combine(theirs, RowSketch::subtract),
            (Linear::CountSketch(ours), Linear::CountSketch(theirs)) => {
                ours.combine(theirs, RowSketch::subtract)
            }
            (Linear::KAry(ours), Linear::KAry(theirs)) => ours.combine(theirs, RowSketch::subtract),
            (Linear::UnivMon(ours), Linear::UnivMon(theirs)) => Ok(ours.subtract(theirs)?),
            (ours, theirs) => Err(CombineError::Kind { ours: ours.kind(), theirs: theirs.kind() }),
        }
    }

    /// Returns the header of the state.
    pub(super) fn header(&self) -> Header {
        let (k, levels) = either!(self,
            rows => (rows.top.as_ref().map_or(0, TopK::k), 0),
            univmon => (univmon.levels[0].top.k(), univmon.levels.len())
        );
        Header {
            counter_bytes: C::BYTES as u8,
            k: k as u32,
            levels: levels as u8,
            statistics: *self.statistics(),
            ..Header::new(self.kind(), self.hasher()).with_shape(self.shape())
        }
    }

    /// Appends counters and candidates.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        either!(self,
            rows => {
                put_counters(&rows.sketch.rows().counters, out);
                rows.top.iter().for_each(|top| put_top(top, out));
            },
            univmon => for level in &univmon.levels {
                put_counters(&level.counters, out);
                put_top(&level.top, out);
            }
        );
    }

    /// Reads counters and candidates of the kind in the header.
    pub(super) fn read(header: &Header, reader: &mut Reader<'_>) -> Result<Linear<K, C>, StateError> {
        Ok(match header.kind {
            Kind::CountMin => Linear::CountMin(read_rows(header, reader, |rows| CountMin { rows })?),
            Kind::CountSketch => Linear::CountSketch(read_rows(header, reader, |rows| CountSketch { rows })?),
            Kind::KAry => Linear::KAry(read_rows(header, reader, |rows| KAry { rows })?),
            Kind::UnivMon => Linear::UnivMon(read_univmon(header, reader)?),
            kind @ (Kind::HyperLogLog | Kind::Spread) => unreachable!("{kind} has registers"),
        })
    }
}

fn read_rows<S, K: Key, C: Counter>(
    header: &Header,
    reader: &mut Reader<'_>,
    sketch: impl Fn(Rows<C>) -> S,
) -> Result<RowState<S, K>, StateError> {
    let counters = read_counters(header.shape()?, reader)?;
    let rows = Rows { hasher: header.hasher, counters, statistics: header.statistics };
    let top = match header.k {
        0 => None,
        _ => Some(read_top(header.top_k()?, header.hasher, reader)?),
    };
    Ok(RowState { sketch: sketch(rows), top })
}

fn read_univmon<K: Key, C: Counter>(
    header: &Header,
    reader: &mut Reader<'_>,
) -> Result<UnivMon<K, C>, StateError> {
    let (shape, k) = (header.shape()?, header.top_k()?);
    let in_shape = |source: ShapeError| StateError::Shape { offset: AT_LEVELS, source };
    let univmon_shape = UnivMonShape::new(header.levels.into(), shape, k).map_err(in_shape)?;
    let mut levels = Vec::new();
    for _ in 0..header.levels {
        let counters = read_counters(shape, reader)?;
        levels.push(Level { counters, top: read_top(k, header.hasher, reader)? });
    }
    Ok(UnivMon { hasher: header.hasher, shape: univmon_shape, statistics: header.statistics, levels })
}
