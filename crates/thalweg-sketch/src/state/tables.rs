//! The bulk data of a state: counters, candidates, registers.

use super::bytes::{Reader, put_bytes, put_varint, put_zigzag};
use super::error::StateError;
use crate::counters::{Counter, Counters};
use crate::digest::{Hasher, Key};
use crate::shape::Shape;
use crate::top_k::{Candidate, TopK};

/// Appends the saturations, then all counters row by row.
pub(super) fn put_counters<C: Counter>(counters: &Counters<C>, out: &mut Vec<u8>) {
    put_varint(counters.saturations(), out);
    for counter in counters.cells() {
        put_zigzag(counter.get(), out);
    }
}

/// Reads counters of `shape`. A counter takes at least one byte, so memory is allocated only for as many as may
/// follow.
pub(super) fn read_counters<C: Counter>(
    shape: Shape,
    reader: &mut Reader<'_>,
) -> Result<Counters<C>, StateError> {
    let saturations = reader.varint("saturations")?;
    reader.require(shape.counters() as u64, "counters")?;
    let mut cells = Vec::with_capacity(shape.counters());
    for _ in 0..shape.counters() {
        let offset = reader.offset();
        let found = reader.zigzag("counter")?;
        let Ok(cell) = C::try_from(found) else {
            let [min, max] = [C::limit(-1), C::limit(1)].map(|end| end.get().into());
            return Err(StateError::range(offset, "counter", found, min, max));
        };
        cells.push(cell);
    }
    Ok(Counters::from_cells(shape, cells, saturations))
}

/// Appends the threshold, then the candidates, largest estimate first, equal ones ordered by the keys' bytes.
pub(super) fn put_top<K: Key>(top: &TopK<K>, out: &mut Vec<u8>) {
    let mut candidates: Vec<_> = top.candidates().iter().collect();
    candidates.sort_unstable_by(|a, b| order(a).cmp(&order(b)));
    put_varint(top.threshold().unsigned_abs(), out);
    put_varint(candidates.len() as u64, out);
    for candidate in candidates {
        put_bytes(candidate.key.as_bytes(), out);
        put_varint(candidate.estimate.unsigned_abs(), out);
    }
}

/// Reads the candidates of a top-k of `k`. Memory grows with each candidate.
pub(super) fn read_top<K: Key>(
    k: usize,
    hasher: Hasher,
    reader: &mut Reader<'_>,
) -> Result<TopK<K>, StateError> {
    let threshold = reader.varint_63("threshold", 0)?;
    let start = reader.offset();
    let count = reader.varint("number of candidates")?;
    if count >= 2 * k as u64 {
        return Err(StateError::range(start, "number of candidates", count, 0, 2 * k as i128 - 1));
    }
    let mut candidates: Vec<Candidate<K>> = Vec::new();
    for _ in 0..count {
        let offset = reader.offset();
        let bytes = reader.length_prefixed("candidate key")?;
        let key = K::from_bytes(bytes).ok_or(StateError::Key { offset, length: bytes.len() })?;
        let estimate = reader.varint_63("candidate estimate", threshold.max(1))?;
        let candidate = Candidate { key, digest: hasher.digest(bytes), estimate };
        if candidates.last().is_some_and(|last| order(last) >= order(&candidate)) {
            return Err(StateError::Order { offset });
        }
        candidates.push(candidate);
    }
    TopK::from_candidates(k, threshold, candidates).ok_or(StateError::Order { offset: start })
}

/// The sort key of candidates.
fn order<K: Key>(candidate: &Candidate<K>) -> (std::cmp::Reverse<i64>, &[u8]) {
    (std::cmp::Reverse(candidate.estimate), candidate.key.as_bytes())
}
