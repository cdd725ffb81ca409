//! Invalid bytes: each kind of damage has its own error with an offset.

use thalweg_sketch::state::{AnyState, KeyBytes, StateError, VERSION};
use thalweg_sketch::{RegistersError, ShapeError};

use super::golden::kept;
use super::samples::{self, bytes_of};
use super::{FIXED, forged, sealed};

fn error(bytes: &[u8]) -> StateError {
    AnyState::<KeyBytes>::decode(bytes).map(|(meta, _)| meta).unwrap_err()
}

/// File name, bytes, expected error.
fn damaged() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let state = bytes_of("example");
    let end = state.len() - 8;
    let replaced = |from: &[u8], to: &[u8]| {
        let at = state.windows(from.len()).position(|window| window == from).unwrap();
        [&state[..at], to, &state[at + from.len()..]].concat()
    };
    let mut next_version = forged(&state, 8, &[VERSION as u8 + 1]);
    next_version.truncate(end);
    vec![
        ("unix-line-ends", replaced(b"\r\n", b"\n"), "text-mode transfer"),
        ("dos-line-ends", replaced(b"\x1a\n", b"\x1a\r\n"), "text-mode transfer"),
        ("seven-bits", forged(&state, 0, b"\x09"), "text-mode transfer"),
        ("other-format", b"\x89PNG\r\n\x1a\n and so on".to_vec(), "not a saved sketch"),
        ("version-2", next_version, "unsupported format version 2: this program reads version 1"),
        ("truncated", state[..end].to_vec(), "damaged or truncated"),
        ("flipped-bit", [&state[..100], &[state[100] ^ 1], &state[101..]].concat(), "damaged or truncated"),
        ("unknown-kind", forged(&state, 10, &[99]), "offset 10: unknown kind of sketch 99"),
        (
            "unknown-hash",
            forged(&state, FIXED + 1, b"XXH9"),
            "offset 96: unsupported hash \"XXH9-128\" version 1",
        ),
        (
            "missing-counter",
            sealed(state[..116].to_vec()),
            "offset 115: truncated counters: at least 24 bytes expected, 1 left",
        ),
    ]
}

#[test]
fn every_kind_of_damage_has_its_own_error() {
    for (name, made, expected) in damaged() {
        let bytes = kept(&format!("damaged/{name}"), &made);
        assert_eq!(bytes, made, "{name}");
        let error = error(&bytes).to_string();
        assert!(error.contains(expected), "{name}: {error}");
    }
}

/// XXH3 guarantees nothing for single bytes, except that it misses one change in 2^64.
#[test]
fn every_flipped_byte_is_an_error() {
    for (name, meta, state) in samples::all() {
        let bytes = state.encode(&meta);
        for offset in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xFF] {
                let mut flipped = bytes.clone();
                flipped[offset] ^= flip;
                assert!(samples::State::decode(&flipped).is_err(), "{name} at {offset}");
            }
        }
    }
}

#[test]
fn truncated_or_longer_states_are_errors() {
    for (name, meta, state) in samples::all() {
        let bytes = state.encode(&meta);
        for length in 0..bytes.len() {
            assert!(samples::State::decode(&bytes[..length]).is_err(), "{name} cut at {length}");
            if length >= 10 && length < bytes.len() - 8 {
                let error = error(&sealed(bytes[..length].to_vec()));
                assert!(matches!(error, StateError::Truncated { .. }), "{name} cut at {length}: {error}");
            }
        }
        let offset = bytes.len() - 8;
        let longer = sealed([&bytes[..offset], &[0]].concat());
        assert_eq!(error(&longer), StateError::Trailing { offset, left: 1 }, "{name}");
    }
}

/// An incorrect writer, with a correct checksum.
#[test]
fn invalid_values_are_reported_with_their_offset() {
    let (rows, registers) = (bytes_of("example"), bytes_of("hyper-log-log"));
    let of_rows = |offset: usize, bytes: &[u8]| error(&forged(&rows, offset, bytes));
    let of_registers = |offset: usize, bytes: &[u8]| error(&forged(&registers, offset, bytes));
    assert_eq!(of_rows(11, &[5]), StateError::Counter { offset: 11, found: 5 });
    let source = ShapeError::Rows { rows: 9 };
    assert_eq!(of_rows(12, &[9]), StateError::Shape { offset: 12, source });
    for log2 in [1, 24, 64, 255] {
        assert!(matches!(of_rows(13, &[log2]), StateError::Shape { offset: 12, .. }), "{log2}");
    }
    assert_eq!(of_rows(14, &[1]), StateError::Unused { offset: 14, found: 1, expected: 0 });
    let range = |offset, field, found, min, max| StateError::Range { offset, field, found, min, max };
    assert_eq!(of_rows(16, &[1, 0, 0, 1]), range(16, "k", (1 << 24) + 1, 1, 1 << 24));
    assert_eq!(of_rows(22, &[11]), range(22, "binary logarithm of 1/p", 11, 0, 10));
    assert_eq!(of_rows(23, &[2]), StateError::Unused { offset: 23, found: 2, expected: 0 });
    let field = "heaviest weight";
    assert_eq!(of_rows(48, &(-1f64).to_le_bytes()), StateError::Negative { offset: 48, field, found: -1.0 });
    assert!(matches!(of_rows(56, &f64::NAN.to_le_bytes()), StateError::Negative { offset: 56, .. }));
    assert_eq!(of_rows(FIXED + 10, &[0xFF]), StateError::Text { offset: FIXED + 9, field: "key kind" });
    assert_eq!(of_registers(11, &[4]), StateError::Unused { offset: 11, found: 4, expected: 0 });
    assert!(matches!(of_registers(14, &[19]), StateError::Registers { offset: 14, .. }));
    let offset = registers.len() - 8 - 16;
    let source = RegistersError::Rank { register: 2, rank: 62, last: 61 };
    assert_eq!(of_registers(offset + 2, &[62]), StateError::Registers { offset, source });
}

#[test]
fn candidates_must_be_ordered_and_unique() {
    let state = bytes_of("example");
    // At the end: threshold, number, then (length, key, estimate) three times, estimates of 2, 2 and 1 bytes;
    // checksum.
    let top = state.len() - 8 - (7 + 7 + 6) - 2;
    let with = |top_k: &[u8]| error(&sealed([&state[..top], top_k].concat()));
    assert_eq!(state[top..top + 2], [0, 3]);
    assert_eq!(with(&[0, 2, 1, 7, 5, 1, 8, 6]), StateError::Order { offset: top + 5 });
    assert_eq!(with(&[0, 2, 1, 7, 5, 1, 7, 5]), StateError::Order { offset: top + 5 });
    assert_eq!(with(&[0, 2, 1, 7, 5, 1, 7, 4]), StateError::Order { offset: top + 1 });
    let range = |offset, field, found, min, max| StateError::Range { offset, field, found, min, max };
    let max = i64::MAX.into();
    assert_eq!(with(&[5, 1, 1, 7, 4]), range(top + 4, "candidate estimate", 4, 5, max));
    assert_eq!(with(&[0, 1, 1, 7, 0]), range(top + 4, "candidate estimate", 0, 1, max));
    assert_eq!(with(&[0, 4]), range(top + 1, "number of candidates", 4, 0, 3));
    let long = [&[0, 1, 65][..], &[0; 65], &[1]].concat();
    assert_eq!(with(&long), StateError::Key { offset: top + 2, length: 65 });
    let read = samples::State::decode(&sealed([&state[..top], &[0, 1, 3, 1, 2, 3, 1]].concat()));
    assert_eq!(read, Err(StateError::Key { offset: top + 2, length: 3 }));
}

/// 115 bytes that claim maximum sizes: rejected before memory is allocated.
#[test]
fn an_excessive_size_allocates_nothing() {
    for (name, sizes) in [
        ("univmon-64", [4, 8, 8, 23, 0, 17]),
        ("count-min-32", [1, 4, 8, 23, 0, 0]),
        ("hyper-log-log", [5, 0, 0, 0, 18, 0]),
        ("spread", [6, 0, 8, 23, 8, 0]),
    ] {
        let state = bytes_of(name);
        let mut claims = state[..FIXED].to_vec();
        claims[10..16].copy_from_slice(&sizes);
        claims[16..20].copy_from_slice(&if sizes[0] == 5 { 0u32 } else { 1 << 24 }.to_le_bytes());
        claims.extend_from_slice(b"\x08XXH3-128\x00\x00\x00");
        let error = error(&sealed(claims));
        assert!(matches!(error, StateError::Truncated { needed: 0x4_0000.., .. }), "{name}: {error}");
    }
}
