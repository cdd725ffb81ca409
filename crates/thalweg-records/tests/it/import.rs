//! Files of nfdump are imported with nfdump's totals, once, whatever happens meanwhile.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use thalweg_records::import::sources::Sources;
use thalweg_records::import::{ImportError, ImportOptions, Imported, Progress, import};

use crate::skip::skip;

/// A capture of the repository.
const CAPTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/two-hosts.pcap");

/// Converts the capture to a file of nfdump in `folder`; `None` if nfdump is missing.
fn nfcapd_file(folder: &Path) -> Option<PathBuf> {
    let arguments = ["-r", CAPTURE, "-w", folder.to_str().unwrap()];
    let output = Command::new("nfpcapd").args(arguments).output();
    if !output.is_ok_and(|output| output.status.success()) {
        skip("nfpcapd is not installed");
        return None;
    }
    Sources::find(&[folder.to_owned()]).unwrap().files.pop()
}

/// Flows, packets and bytes as nfdump counts them.
fn nfdump_totals(file: &Path) -> [u64; 3] {
    let output = Command::new("nfdump").args(["-N", "-r"]).arg(file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    ["total flows: ", "total packets: ", "total bytes: "].map(|name| {
        let rest = text.split(name).nth(1).unwrap_or_else(|| panic!("{text}"));
        rest.split(',').next().unwrap().trim().parse().unwrap()
    })
}

fn totals(imported: &Imported) -> [u64; 3] {
    [imported.tally.flows, imported.packets, imported.octets]
}

fn options(directory: &Path) -> ImportOptions {
    ImportOptions { directory: directory.to_owned(), threads: 2, again: false, geo: None }
}

/// What was imported, how many were known, and the messages of the others.
fn run(files: &[PathBuf], options: &ImportOptions) -> (Vec<Imported>, usize, Vec<String>) {
    let (mut all, mut known, mut failed) = (Vec::new(), 0, Vec::new());
    import(files, options, &AtomicBool::new(false), |progress| match progress {
        Progress::Imported { imported, .. } => all.push(imported),
        Progress::Known(_) => known += 1,
        Progress::Failed(error) => failed.push(error.to_string()),
    })
    .unwrap();
    (all, known, failed)
}

#[test]
fn every_compression_gives_the_totals_of_nfdump() {
    let folder = tempfile::tempdir().unwrap();
    let Some(plain) = nfcapd_file(folder.path()) else { return };
    let expected = nfdump_totals(&plain);
    assert_eq!(expected, [117, 8998, 10_362_564], "the capture's description");
    for (name, option) in [("plain", None), ("lzo", Some("-z")), ("bz2", Some("-j")), ("lz4", Some("-y"))] {
        let file = folder.path().join(format!("nfcapd.{name}"));
        let mut nfdump = Command::new("nfdump");
        nfdump.arg("-r").arg(&plain).arg("-w").arg(&file).args(option);
        assert!(nfdump.output().unwrap().status.success(), "{name}");
        let store = tempfile::tempdir().unwrap();
        let (imported, _, failed) = run(&[file], &options(store.path()));
        assert_eq!(imported.iter().map(totals).collect::<Vec<_>>(), [expected], "{name}: {failed:?}");
        // By the times of the flows, because nfpcapd's times of reception are those of the conversion.
        let path = imported[0].files[0].strip_prefix(store.path()).unwrap();
        assert!(path.starts_with("flows/date=2026-11-21/hour=22"), "{}", path.display());
    }
}

#[test]
fn a_file_is_imported_once_and_after_a_crash_replaces_itself() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = nfcapd_file(folder.path()) else { return };
    let store = tempfile::tempdir().unwrap();
    let options = options(store.path());
    let files = [file.clone()];
    let (first, ..) = run(&files, &options);
    let (again, known, _) = run(&files, &options);
    assert_eq!((again.len(), known), (0, 1));

    // A crash after the Parquet file, before the ledger's line was complete.
    let ledger = store.path().join("import/nfcapd.jsonl");
    let line = std::fs::read(&ledger).unwrap();
    std::fs::write(&ledger, &line[..line.len() - 5]).unwrap();
    let (second, known, _) = run(&files, &options);
    assert_eq!((&second, known), (&first, 0));
    assert_eq!(std::fs::read(&ledger).unwrap(), line);
    let parquet = |folder: &Path| std::fs::read_dir(folder).unwrap().count();
    assert_eq!(parquet(first[0].files[0].parent().unwrap()), 1, "the same name");

    // A file that changed is another one.
    std::fs::copy(&file, folder.path().join("copy")).unwrap();
    std::fs::rename(folder.path().join("copy"), &file).unwrap();
    assert_eq!(run(&files, &options).0.len(), 1);
    std::fs::write(&ledger, "x\n").unwrap();
    let error = import(&files, &options, &AtomicBool::new(false), |_| ()).unwrap_err();
    assert!(error.to_string().contains("nfcapd.jsonl:1: ") && error.to_string().contains("remove the line"));
}

#[test]
fn damaged_files_are_named_with_their_offset_and_leave_no_rows() {
    let folder = tempfile::tempdir().unwrap();
    let Some(whole) = nfcapd_file(folder.path()) else { return };
    let bytes = std::fs::read(&whole).unwrap();
    let store = tempfile::tempdir().unwrap();
    let damaged = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let mut size = bytes.clone();
    size[52 + 76 + 2] = 2;
    let mut old = bytes.clone();
    old[2] = 1;
    let files = [
        damaged("empty", b""),
        damaged("text", b"not a file of nfdump, by far"),
        damaged("old", &old),
        damaged("short", &bytes[..9_000]),
        damaged("size", &size),
        folder.path().join("missing"),
        whole,
    ];
    let (imported, _, mut failed) = run(&files, &options(store.path()));
    assert_eq!((imported.len(), failed.len()), (1, 6), "the others go on");
    let name = |message: &String| message.rsplit_once('/').map(|(_, rest)| rest.to_owned());
    failed.sort_by_key(name);
    for (message, expected) in failed.iter().zip([
        "empty: byte 0: 0 bytes left: expected 40 for the file header",
        "missing: No such file",
        "old: byte 2: layout 1: expected 2",
        "short: byte 40: 8948 bytes left: expected 10068 for a block",
        "size: block 0 at byte 40: byte 76: a record of 2 bytes: expected at least 4",
        "text: byte 0: begins with 0x6f6e: expected 0xa50c",
    ]) {
        assert!(message.contains(expected), "{message}");
    }
    let hour = imported[0].files[0].parent().unwrap();
    assert_eq!(std::fs::read_dir(hour).unwrap().count(), 1, "no interim files");
}

#[test]
fn directories_are_searched_and_files_being_written_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let error = Sources::find(&[folder.path().to_owned()]).unwrap_err();
    assert!(matches!(error, ImportError::Nothing(_)), "{error}");
    std::fs::create_dir_all(folder.path().join("2026/11")).unwrap();
    for name in ["2026/11/nfcapd.202611221300", "nfcapd.202611221305", "nfcapd.current.77", "other"] {
        std::fs::write(folder.path().join(name), b"").unwrap();
    }
    let found = Sources::find(&[folder.path().to_owned(), folder.path().join("other")]).unwrap();
    assert_eq!((found.files.len(), found.being_written.len()), (3, 1));
}

#[test]
fn two_imports_into_one_directory_exclude_each_other() {
    let store = tempfile::tempdir().unwrap();
    let _ledger = thalweg_records::import::ledger::Ledger::open(store.path()).unwrap();
    let error = import(&[], &options(store.path()), &AtomicBool::new(false), |_| ()).unwrap_err();
    assert!(error.to_string().contains("another import writes here"), "{error}");
}
