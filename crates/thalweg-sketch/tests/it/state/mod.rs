//! Saved states: bytes that stay as they are, damage that is found, and parts that merge to the whole.
//!
//! `THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg-sketch --test state` writes the files in `tests/golden` anew; that
//! changes the format, or what a sketch counts, and goes into a commit of its own.

mod damage;
mod golden;
mod merging;
mod round_trip;
mod samples;

use thalweg_sketch::state::checksum;

/// Bytes before the texts of a state.
const FIXED: usize = 96;

/// The state with other bytes in the place of some, and a checksum that says that all is well.
fn forged(state: &[u8], offset: usize, bytes: &[u8]) -> Vec<u8> {
    let mut forged = state[..state.len() - 8].to_vec();
    forged[offset..offset + bytes.len()].copy_from_slice(bytes);
    sealed(forged)
}

/// The bytes with their checksum.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}
