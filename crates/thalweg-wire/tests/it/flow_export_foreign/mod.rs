//! Compares the decoder with foreign decoders on data of foreign exporters.
//!
//! Payloads and expectations are in `../shared/data` (see the project's README), outside the project; if
//! they are missing, the tests are skipped with a message.

mod expected;
mod vendors;

use std::fmt::Display;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::{Decoded, Decoder, Record};

/// The arrival time of payloads, which does not affect the tests.
const RECEIVED: Timestamp = Timestamp(1_700_000_000_000_000_000);

/// Reports on standard error why a test is skipped; the test runner hides output of `eprintln!`.
fn skip(reason: impl Display) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    // An error here cannot be reported.
    let _ = std::io::stderr().write_all(format!("skipped: {name}: {reason}\n").as_bytes());
}

/// Returns a directory of foreign data, if present.
fn folder(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    if !path.is_dir() {
        skip(format_args!("no {}", path.display()));
        return None;
    }
    Some(path)
}

/// Returns the entries of a directory, sorted by name.
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

/// Decodes payloads; invalid ones give no rows.
fn decode(decoder: &mut Decoder, payloads: &[Vec<u8>]) -> Decoded {
    let mut decoded = Decoded::default();
    for payload in payloads {
        let _ = decoder.datagram(exporter(), RECEIVED, payload, &mut decoded);
    }
    decoded
}
