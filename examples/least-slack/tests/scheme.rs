//! The program knows the scheme and its keys, in experiments, sweeps, lists and messages.

use std::process::{Command, Output};

const EXPERIMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/experiment.toml");

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_least-slack")).args(arguments).output().unwrap()
}

fn text(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Writes an experiment of 20 ms with these lines in `[scheme]`.
fn experiment(scheme: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let rest = "[[workload]]\npattern = \"incast\"\nsizes = \"100KB\"\n";
    std::fs::write(file.path(), format!("duration = \"20ms\"\n[scheme]\n{scheme}\n{rest}")).unwrap();
    file
}

#[test]
fn the_experiment_runs_and_a_sweep_compares_the_scheme_with_others() {
    let file = experiment("name = \"least_slack\"\nbuffer = 50");
    let path = file.path().to_str().unwrap();
    assert!(text(&[path]).contains("scheme           least_slack"), "{}", text(&[path]));
    let sweep = text(&["--json", "--sweep", "scheme=droptail,least_slack", path]);
    assert_eq!(sweep.lines().count(), 2, "{sweep}");
    assert!(sweep.contains("\"scheme\":\"least_slack\""), "{sweep}");
    // The same seed gives the same bytes.
    assert_eq!(
        text(&["--json", path]).split("elapsed_ns").next(),
        text(&["--json", path]).split("elapsed_ns").next()
    );
    assert!(text(&["--print-config", EXPERIMENT]).contains("bytes_per_slot = 1448"));
}

#[test]
fn wrong_keys_are_refused_with_their_line() {
    for (scheme, expected) in [
        ("name = \"least_slack\"\nthreshold = 5", "threshold"),
        ("name = \"least_slack\"\nbuffer = 5000", "expected an integer from 1 to 4096 packets"),
        ("name = \"slack\"", "least_slack"),
        ("name = \"droptail\"\nbytes_per_slot = 5", "bytes_per_slot"),
    ] {
        let file = experiment(scheme);
        let output = run(&[file.path().to_str().unwrap()]);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(expected) && message.contains(":3:") | message.contains(":4:"), "{message}");
    }
}

#[test]
fn lists_reference_and_schema_have_the_scheme() {
    let list = text(&["--list"]);
    let line = list.lines().find(|line| line.trim_start().starts_with("least_slack "));
    assert!(line.is_some_and(|line| line.ends_with("the packet that may wait for the shortest time first")));
    let reference = text(&["--reference"]);
    assert!(reference.contains("`bytes_per_slot`") && reference.contains("`least_slack`"), "{reference}");
    assert!(text(&["--schema"]).contains("bytes_per_slot"));
    assert!(text(&["--help"]).contains("--sweep"));
}
