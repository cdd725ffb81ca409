//! `sketch-peers KEYS TOP`: runs the sketches of other crates once on a stream of keys, and prints a line of JSON for
//! each.
//!
//! KEYS contains the concatenated keys of 13 bytes each; TOP the largest flows, one per line: the key in hexadecimal, a
//! space, its packets. Times are the CPU time of the updates alone.

#![warn(missing_docs)]

mod asap;
mod datasketches;

// The same clock as for the contenders in `thalweg-bench`.
#[path = "../../src/clock.rs"]
mod clock;

use std::fs;

use anyhow::{Context, bail};
use serde_json::{Value, json};

/// Rows of every sketch.
const ROWS: usize = 5;
/// Counters per row.
const WIDTH: usize = 8_192;
/// Number of flows in a heap.
const TOP: usize = 100;
/// Probabilities of the sampled versions; the seed of their draws.
const SAMPLED: [f64; 2] = [1.0 / 16.0, 1.0 / 128.0];
const SEED: u64 = 1;

/// A 5-tuple.
type Key = [u8; 13];

/// The stream and its exact counts.
struct Stream {
    keys: Vec<Key>,
    /// The keys hashed to 64 bits, for sketches that accept no longer keys.
    folded: Vec<i64>,
    largest: Vec<(Key, u64)>,
}

/// Differences of a contender from a plain sketch with full keys.
struct Subject {
    contender: &'static str,
    sketch: &'static str,
    p: f64,
    top: usize,
    levels: usize,
    key_bytes: usize,
    counter_bytes: usize,
    note: &'static str,
}

impl Subject {
    const fn new(contender: &'static str, sketch: &'static str) -> Subject {
        Subject { contender, sketch, p: 1.0, top: 0, levels: 1, key_bytes: 13, counter_bytes: 4, note: "" }
    }
}

impl Stream {
    fn read(keys: &str, top: &str) -> anyhow::Result<Stream> {
        let bytes = fs::read(keys).with_context(|| format!("cannot read {keys}"))?;
        let (keys, rest) = bytes.as_chunks::<13>();
        if !rest.is_empty() {
            bail!("{} bytes too many", rest.len());
        }
        let lines = fs::read_to_string(top).with_context(|| format!("cannot read {top}"))?;
        let largest = lines.lines().map(|line| flow(line).with_context(|| format!("no flow: {line}")));
        let folded = keys.iter().map(fold).collect();
        Ok(Stream { keys: keys.to_vec(), folded, largest: largest.collect::<Result<_, _>>()? })
    }

    /// Prints the line of a contender: nanoseconds of its updates, its estimates, the flows in its heap.
    fn print(&self, subject: &Subject, nanos: f64, estimate: impl Fn(&Key) -> f64, named: Option<&[Key]>) {
        let error = |(key, count): &(Key, u64)| (estimate(key) - *count as f64).abs() / *count as f64;
        let sum: f64 = self.largest.iter().map(error).sum();
        let found = |named: &[Key]| self.largest.iter().filter(|(key, _)| named.contains(key)).count();
        let Subject { contender, sketch, p, top, levels, key_bytes, counter_bytes, note } = subject;
        let line = json!({
            "contender": contender,
            "sketch": sketch,
            "rows": ROWS,
            "width": WIDTH,
            "p": p,
            "top": top,
            "key_bytes": key_bytes,
            "memory_bytes": levels * ROWS * WIDTH * counter_bytes,
            "note": note,
            "packets": self.keys.len(),
            "seconds": nanos / 1e9,
            "error": sum / self.largest.len().max(1) as f64,
            "found": named.map_or(Value::Null, |named| found(named).into()),
        });
        println!("{line}");
    }
}

/// Parses a line of TOP into key and packets.
fn flow(line: &str) -> Option<(Key, u64)> {
    let (digits, count) = line.split_once(' ')?;
    let mut key = [0; 13];
    for (byte, digits) in key.iter_mut().zip(digits.as_bytes().as_chunks::<2>().0) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some((key, count.parse().ok()?))
}

/// Hashes a key to 64 bits. Among a million flows a collision has probability 3e-8.
fn fold(key: &Key) -> i64 {
    xxhash_rust::xxh3::xxh3_64(key) as i64
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [keys, top] = &arguments[..] else { bail!("usage: sketch-peers KEYS TOP") };
    let stream = Stream::read(keys, top)?;
    asap::run(&stream);
    datasketches::run(&stream);
    Ok(())
}
