//! The files in `tests/golden`: the format must not change.

use std::path::{Path, PathBuf};

use thalweg_sketch::state::{AnyState, KeyBytes, Linear, Meta};
use thalweg_sketch::{CountSketch, Hasher, RowSketch, Shape};

use super::samples;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.tsk"))
}

/// Returns the bytes of the golden file; writes them first if a refresh is requested.
pub(crate) fn kept(name: &str, made: &[u8]) -> Vec<u8> {
    let path = golden(name);
    if std::env::var_os("THALWEG_REFRESH_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, made).unwrap();
        return made.to_vec();
    }
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_format_has_not_changed() {
    for (name, meta, state) in samples::all() {
        let made = state.encode(&meta);
        assert!(
            kept(name, &made) == made,
            "{name}: the format, or what is counted, has changed; to keep the change: \
             THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg-sketch --test it state"
        );
    }
}

#[test]
fn golden_states_decode_with_and_without_the_key_type() {
    for (name, meta, state) in samples::all() {
        let bytes = kept(name, &state.encode(&meta));
        let read = samples::State::decode(&bytes).unwrap();
        assert_eq!(read, (meta.clone(), state), "{name}");
        let (same_meta, any) = AnyState::<KeyBytes>::decode(&bytes).unwrap();
        assert_eq!(same_meta, meta);
        assert!(any.encode(&meta) == bytes, "{name}");
        let known: Vec<_> = read.1.largest().into_iter().map(|(_, estimate)| estimate).collect();
        let unknown: Vec<_> = any.largest().into_iter().map(|(_, estimate)| estimate).collect();
        assert_eq!(known, unknown, "{name}");
    }
}

/// The hexadecimal dump in the reference is that of the example.
#[test]
fn the_reference_dump_matches_the_example() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/sketch-state.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter_map(|line| line.split_once("  ").filter(|(offset, _)| is_offset(offset)));
    let shown: Vec<u8> = rows
        .flat_map(|(_, bytes)| bytes.split("  ").next().unwrap().split_whitespace())
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect();
    assert_eq!(shown, samples::bytes_of("example"), "expected:\n{}", dump(&samples::bytes_of("example")));
}

/// A shape that uses bits of all four words. The expected values were computed from the reference, by other software.
#[test]
fn columns_and_signs_match_the_reference() {
    let shape = Shape::new(8, 1 << 14).unwrap();
    let mut sketch = CountSketch::<i32>::new(shape, Hasher::new(7));
    sketch.add(&samples::host(1), 1);
    let meta = Meta::default();
    let state = samples::State::from(Linear::CountSketch(sketch.into())).encode(&meta);
    // Numbers, the texts (`XXH3-128`, empty, empty), saturations; then one byte per counter: 0 is 0, 1 is -1, 2 is 1.
    let counters = &state[96 + 9 + 1 + 1 + 1..state.len() - 8];
    let expected = [10_565, -1_903, 13_122, 6_388, 2_516, -5_966, 3_859, -12_082];
    for (row, (counters, expected)) in counters.chunks(shape.width()).zip(expected).enumerate() {
        let column = counters.iter().position(|&counter| counter != 0).unwrap();
        let found = if counters[column] == 1 { -(column as i64) } else { column as i64 };
        assert_eq!(found, expected, "row {row}");
    }
    assert_eq!(counters.len(), shape.counters());
}

fn is_offset(text: &str) -> bool {
    text.len() == 4 && text.chars().all(|c| c.is_ascii_hexdigit())
}

fn dump(bytes: &[u8]) -> String {
    let line = |(number, bytes): (usize, &[u8])| {
        let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{:04x}  {}\n", number * 16, bytes.join(" "))
    };
    bytes.chunks(16).enumerate().map(line).collect()
}
