//! The decoder over what other people's exporters sent, against other people's decoders.
//!
//! Payloads and expectations are at `../shared/data` (see the project's README) and are not part of the project; where
//! they are absent, the tests say so and pass.

mod expected;
mod vendors;

use std::fmt::Display;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::{Decoded, Decoder, Record};

/// When payloads arrive: it does not matter.
const RECEIVED: Timestamp = Timestamp(1_700_000_000_000_000_000);

/// Says why a test is skipped, on standard error itself: the test runner hides what `eprintln!` writes.
fn skip(reason: impl Display) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    // Nobody is left to tell.
    let _ = std::io::stderr().write_all(format!("skipped: {name}: {reason}\n").as_bytes());
}

/// A folder of foreign data.
fn folder(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    if !path.is_dir() {
        skip(format_args!("no {}", path.display()));
        return None;
    }
    Some(path)
}

/// What is in a folder, in order of name.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn exporter() -> SocketAddr {
    "127.0.0.1:2055".parse().unwrap()
}

fn rows(decoded: &Decoded) -> Vec<Record> {
    decoded.flows.check_invariants();
    decoded.counters.check_invariants();
    (0..decoded.flows.len()).map(|row| decoded.flows.record(row)).collect()
}

/// Decodes payloads one after the other; those that break their format give nothing.
fn decode(decoder: &mut Decoder, payloads: &[Vec<u8>]) -> Decoded {
    let mut decoded = Decoded::default();
    for payload in payloads {
        let _ = decoder.datagram(exporter(), RECEIVED, payload, &mut decoded);
    }
    decoded
}
