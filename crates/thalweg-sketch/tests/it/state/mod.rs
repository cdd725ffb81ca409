//! Saved states: a stable format, detected damage, and merges of saved parts.
//!
//! `THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg-sketch --test it state` rewrites the files in `tests/golden`; that
//! changes the format, or the counts of a sketch, and goes into a commit of its own.

mod damage;
mod golden;
mod merging;
mod round_trip;
mod samples;

use thalweg_sketch::state::checksum;

/// Bytes before the texts of a state.
const FIXED: usize = 96;

/// Replaces some bytes of a state and fixes its checksum.
fn forged(state: &[u8], offset: usize, bytes: &[u8]) -> Vec<u8> {
    let mut forged = state[..state.len() - 8].to_vec();
    forged[offset..offset + bytes.len()].copy_from_slice(bytes);
    sealed(forged)
}

/// Replaces the checksum with that of the bytes.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}
