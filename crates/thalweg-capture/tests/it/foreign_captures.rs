//! Captures by other people, if a folder of them is beside the checkout: every packet in them is accounted for,
//! compared with `capinfos`.

use std::path::{Path, PathBuf};
use std::process::Command;

use thalweg_capture::file::FileSource;
use thalweg_wire::Source;

/// The contents of a capture file.
#[derive(Debug, PartialEq, Eq)]
struct Contents {
    packets: u64,
    /// The sum of the lengths on the wire.
    original_bytes: u64,
}

fn ours(path: &Path) -> Contents {
    let mut source = FileSource::open(path).unwrap_or_else(|error| panic!("{error}"));
    let mut contents = Contents { packets: 0, original_bytes: 0 };
    while let Some(batch) = source.next_batch().unwrap_or_else(|error| panic!("{error}")) {
        for frame in batch.iter() {
            contents.packets += 1;
            contents.original_bytes += u64::from(frame.original_length);
        }
    }
    contents
}

/// The result of `capinfos`; `None` if it is not installed.
fn by_capinfos(path: &Path) -> Option<Contents> {
    let output = Command::new("capinfos").args(["-M", "-c", "-d"]).arg(path).output().ok()?;
    let output = String::from_utf8(output.stdout).expect("capinfos prints text");
    let number = |label: &str| {
        let line = output.lines().find_map(|line| line.strip_prefix(label));
        let word = line.and_then(|rest| rest.split_whitespace().next());
        word.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("no `{label}` in: {output}"))
    };
    Some(Contents { packets: number("Number of packets:"), original_bytes: number("Data size:") })
}

#[test]
fn captures_of_other_tools_are_read_completely() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/captures");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        crate::skip::skip(format_args!("there is no folder {}", folder.display()));
        return;
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|kind| kind == "pcap" || kind == "pcapng"));
    paths.sort();
    for path in &paths {
        let Some(by_capinfos) = by_capinfos(path) else {
            crate::skip::skip("capinfos is not installed");
            return;
        };
        assert_eq!(ours(path), by_capinfos, "{}", path.display());
    }
    println!("{} captures agree with capinfos", paths.len());
}
