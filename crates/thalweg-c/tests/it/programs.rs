//! The examples in C, C++ and Go are compiled against the installed library and run, with sanitizers.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use thalweg_sketch::any::AnySketch;

/// Reports a skipped test directly to standard error, because the test runner captures `eprintln!`.
fn skip(reason: impl std::fmt::Display) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = std::io::stderr().write_all(format!("skipped: {name}: {reason}\n").as_bytes());
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The library, installed once for all tests.
fn prefix() -> &'static Path {
    static PREFIX: OnceLock<tempfile::TempDir> = OnceLock::new();
    PREFIX
        .get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            let script = root().join("scripts/c-library.sh");
            succeeded(Command::new(script).arg(folder.path()).arg("dev"));
            folder
        })
        .path()
}

fn succeeded(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    output
}

fn is_missing(program: &str, argument: &str) -> bool {
    let missing = !Command::new(program).arg(argument).output().is_ok_and(|output| output.status.success());
    if missing {
        skip(format!("no {program}"));
    }
    missing
}

/// Builds one example with these flags and returns the program.
fn build(folder: &Path, name: &str, flags: &str) -> PathBuf {
    let program = folder.join(name);
    let make = Command::new("make")
        .current_dir(root().join("examples/c-sketch"))
        .arg("--silent")
        .arg(format!("PREFIX={}", prefix().display()))
        .arg(format!("OUT={}", folder.display()))
        .args([format!("CFLAGS=-g {flags}"), format!("CXXFLAGS=-g {flags}")])
        .arg(&program)
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    assert!(make.status.success(), "{}", String::from_utf8_lossy(&make.stderr));
    program
}

const MEMORY: &str = "-fsanitize=address,undefined -fno-sanitize-recover=all";

#[test]
fn a_c_program_parses_only_sampled_packets_and_saves_a_state() {
    if is_missing("make", "--version")
        || is_missing("pkg-config", "--version")
        || is_missing("cc", "--version")
    {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let flows = build(folder.path(), "flows", MEMORY);
    let capture = root().join("examples/two-hosts.pcap");
    let run = |p: &str| {
        let state = folder.path().join("state.sketch");
        let output = succeeded(Command::new(&flows).arg(&capture).arg(p).arg(&state));
        (
            String::from_utf8(output.stdout).unwrap(),
            AnySketch::decode(&std::fs::read(&state).unwrap()).unwrap(),
        )
    };
    // The capture's own description: 9,000 packets, of which 8,998 are IP; 4,603 of the largest flow.
    let (text, (meta, sketch)) = run("1");
    assert!(text.starts_with("9000 packets, of which 9000 were parsed; without a flow 2 [2, 2]\n"), "{text}");
    assert!(text.contains("192.0.2.1 port 35888 > 192.0.2.2 port 5201, protocol 6"), "{text}");
    assert_eq!((sketch.statistics().total(), meta.key_kind.as_str()), (8998, "5tuple"));
    let (_, largest) = sketch.largest()[0];
    assert_eq!(largest.contains(4603.0), Some(true), "{largest}");

    let (text, (_, sketch)) = run("1/64");
    let parsed: u32 = text.split(' ').nth(4).unwrap().parse().unwrap();
    // 9,000 packets of 5 rows: 676 are expected, with a deviation of 25.
    assert!((550..800).contains(&parsed), "{text}");
    assert!(sketch.statistics().is_sampled(), "{text}");

    let wrong = Command::new(&flows).arg(&capture).arg("3").output().unwrap();
    let message = String::from_utf8(wrong.stderr).unwrap();
    assert!(message.contains("inverse_probability = 3: expected a power of two from 1 to 1024"), "{message}");
}

#[test]
fn a_cpp_program_counts_in_threads_and_finds_a_change() {
    if is_missing("make", "--version")
        || is_missing("pkg-config", "--version")
        || is_missing("c++", "--version")
    {
        return;
    }
    for flags in [MEMORY, "-fsanitize=thread"] {
        let folder = tempfile::tempdir().unwrap();
        let output = succeeded(&mut Command::new(build(folder.path(), "merge", flags)));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("10.0.0.7 grew by"), "{text}");
    }
}

#[test]
fn a_go_program_counts_one_by_one() {
    if is_missing("make", "--version") || is_missing("pkg-config", "--version") || is_missing("go", "version")
    {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = succeeded(&mut Command::new(build(folder.path(), "hosts.out", "")));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let parsed: u32 = lines[0].split(' ').nth(2).unwrap().parse().unwrap();
    // 2,000,000 packets of 5 rows: about 151,000 of them have at least one sampled row.
    assert!((148_000..154_000).contains(&parsed), "{text}");
    assert!(lines[1].starts_with("10.0.0.1 ") && lines[2].starts_with("10.0.0.2 "), "{text}");
}

#[test]
fn the_shared_library_has_versioned_symbols_of_the_interface_only() {
    if is_missing("objdump", "--version") || is_missing("cc", "--version") {
        return;
    }
    let library = prefix().join("lib/libthalweg_sketch.so");
    let output = succeeded(Command::new("objdump").arg("-T").arg(&library));
    let text = String::from_utf8(output.stdout).unwrap();
    let defined: Vec<_> = text
        .lines()
        .filter(|line| line.contains(" g ") && !line.contains("*UND*") && !line.contains("*ABS*"))
        .collect();
    assert!(defined.len() >= 15, "{text}");
    assert!(
        defined.iter().all(|line| line.contains("THALWEG_1 ") && line.contains(" thalweg_")),
        "{defined:#?}"
    );
}
