//! The program as it is run: help, version, generated texts, and what wrong usage gets.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn thalweg(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    command.args(arguments).env("COLUMNS", "80").stdin(Stdio::null());
    command.output().unwrap()
}

/// Standard output of a run that went well and complained of nothing.
fn said(arguments: &[&str]) -> String {
    let output = thalweg(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Exit code, and what stands on standard error; nothing may stand on standard output.
fn complained(arguments: &[&str]) -> (i32, String) {
    let output = thalweg(arguments);
    assert!(output.stdout.is_empty(), "{arguments:?}");
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/two-hosts.pcap");
    path.to_str().unwrap().to_owned()
}

#[test]
fn help_fits_a_terminal_of_80_columns_and_teaches() {
    for arguments in [
        &["-h"][..],
        &["--help"],
        &["watch", "-h"],
        &["watch", "--help"],
        &["synth", "--help"],
        &["emulate", "--help"],
        &["sketch", "--help"],
        &["sketch", "show", "--help"],
        &["sketch", "merge", "--help"],
        &["sketch", "diff", "--help"],
    ] {
        let help = said(arguments);
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{arguments:?}: {line}");
        }
    }
    let help = said(&["watch", "--help"]);
    for part in [
        "Output:",
        "Input:",
        "Measurement tasks:",
        "Detection:",
        "Flow table:",
        "Live capture:",
        "Examples:",
        "Exit codes:",
    ] {
        assert!(help.lines().any(|line| line == part), "{part}");
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    assert_eq!(said(&["-V"]), concat!("thalweg ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn the_long_version_lists_the_features_that_the_build_has_and_lacks() {
    let text = said(&["--version"]);
    assert!(text.starts_with(concat!("thalweg ", env!("CARGO_PKG_VERSION"), "\n")), "{text}");
    let sign = |is_built| if is_built { '+' } else { '-' };
    for (name, is_built) in [("kafka", cfg!(feature = "kafka")), ("kafka-tls", cfg!(feature = "kafka-tls"))] {
        assert!(text.contains(&format!("\n  {}{name} ", sign(is_built))), "{text}");
    }
}

#[test]
fn completions_know_the_flags() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(said(&["completions", shell]).contains("flight-duration"), "{shell}");
    }
}

#[test]
fn man_pages_have_the_usual_sections() {
    let page = said(&["man", "watch"]);
    assert!(page.contains(".TH THALWEG-WATCH 1"), "{page}");
    for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "DETECTION", "EXAMPLES", "EXIT STATUS"] {
        assert!(
            page.lines().any(|line| line.trim_start_matches(".SH ").trim_matches('"') == section),
            "{section}"
        );
    }
    assert!(said(&["man"]).contains("thalweg\\-synth"));
    assert!(said(&["man", "sketch"]).contains("thalweg\\-sketch\\-merge"));
    let page = said(&["man", "sketch-merge"]);
    assert!(page.contains(".TH THALWEG-SKETCH-MERGE 1") && page.contains("\\-\\-output"), "{page}");
}

#[test]
fn the_printed_configuration_passes_its_own_check() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lab.toml");
    std::fs::write(&file, said(&["config"])).unwrap();
    let file = file.to_str().unwrap();
    let answer = said(&["config", "--check", file]);
    assert!(answer.starts_with(&format!("{file}: OK, ")), "{answer}");
    assert!(said(&["watch", "--summary", "--config", file, &example()]).contains("packets"));
}

#[test]
fn mistakes_in_a_configuration_are_named_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lab.toml");
    std::fs::write(&file, "[detection]\nflite_duration = '1s'\n\n[output]\nlimit = 'ten'\n").unwrap();
    let file = file.to_str().unwrap();
    let expected = format!(
        "thalweg: {file}:2: unknown key flite_duration; did you mean flight_duration?\n\
         thalweg: {file}:5: limit is 'ten': expected an integer of at least 1\n"
    );
    for arguments in [&["config", "--check", file][..], &["watch", "--config", file, "-"]] {
        assert_eq!(complained(arguments), (2, expected.clone()));
    }
    let (code, message) = complained(&["watch", "--config", "/nonexistent.toml", "-"]);
    assert_eq!(code, 2);
    assert!(
        message.starts_with("thalweg: cannot read the configuration file /nonexistent.toml: "),
        "{message}"
    );
}

#[test]
fn wrong_usage_is_told_from_failure() {
    for (arguments, code, beginning) in [
        (&["watch"][..], 2, "thalweg: the following required arguments were not provided:\n  <SOURCE>"),
        (
            &["watch", "--limit", "none", "-"],
            2,
            "thalweg: invalid value 'none' for '--limit <N>': expected an integer",
        ),
        (&["watch", "--detctor=none", "-"], 2, "thalweg: unexpected argument '--detctor' found"),
        (
            &["watch", "--flows", "-"],
            2,
            "thalweg: --flows has no effect here: it is for JSON output (--json)\n",
        ),
        (&["watch", "--tracks=1", "--detector=none", "-"], 2, "thalweg: --tracks has no effect here"),
        (&["watch", "--ring-size=1", "-"], 2, "thalweg: --ring-size: expected at least two blocks"),
        (&["watch", "--show=live-view", "-"], 2, "thalweg: --show: the live view needs a terminal"),
        (
            &["watch", "--tasks=hevy:1%", "-"],
            2,
            "thalweg: invalid value 'hevy:1%' for '--tasks <LIST>': unknown task `hevy` (did you mean heavy?)",
        ),
        (
            &["watch", "--tasks=distinct:port", "-"],
            2,
            "thalweg: invalid value 'distinct:port' for '--tasks <LIST>': task distinct: invalid flow key `port`",
        ),
        (&["watch", "--tasks=heavy:1%", "--memory=1KiB", "-"], 2, "thalweg: --memory: 1.02 kB is too small"),
        (
            &["watch", "--tasks=change:15s", "-"],
            2,
            "thalweg: --tasks and --window (default): task change:15s: the period must be a multiple of the window",
        ),
        (
            &["watch", "--no-table", "-"],
            2,
            "thalweg: --no-table: without it there is nothing left to measure",
        ),
        (
            &["watch", "--memory=1MiB", "-"],
            2,
            "thalweg: --memory has no effect here: it is for measurement tasks",
        ),
        (
            &["watch", "--no-table", "--tasks=distinct", "--tracks=9", "-"],
            2,
            "thalweg: --tracks has no effect here: it is for the flow table",
        ),
        (&["synth", "-o", "/dev/null", "--udp-share", "7"], 2, "thalweg: UDP share 7: expected 0 to 1\n"),
        (&["watch", "/nonexistent.pcap"], 1, "thalweg: cannot open /nonexistent.pcap: "),
        (&["synth", "-o", "/nonexistent/trace.pcap"], 1, "thalweg: cannot create /nonexistent/trace.pcap: "),
        (&[], 2, "Finds the flows that fill a network's links"),
    ] {
        let (actual, message) = complained(arguments);
        assert_eq!(actual, code, "{arguments:?}: {message}");
        assert!(message.starts_with(beginning), "{arguments:?}: {message}");
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_program_quietly() {
    for arguments in [&["config"][..], &["watch", "--json", "--flows", &example()], &["synth", "-o", "-"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), message.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn a_file_that_ends_inside_a_record_is_measured_and_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(example()).unwrap();
    let file = folder.path().join("cut.pcap");
    std::fs::write(&file, &whole[..whole.len() - 1]).unwrap();
    let output = thalweg(&["watch", "--json", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8(output.stdout).unwrap().contains("\"type\":\"summary\""));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("thalweg: warning: "));
}

#[test]
fn a_synthetic_trace_has_what_its_summary_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (trace, truth) = (path("trace.pcap"), path("truth.csv"));
    let summary = said(&["synth", "-n", "50k", "-o", &trace, "--truth", &truth, "--json"]);
    assert!(summary.starts_with("{\"packets\":50000,"), "{summary}");
    assert!(std::fs::read_to_string(&truth).unwrap().starts_with("kind,flow,"));
    assert!(said(&["watch", "--json", &trace]).contains("\"packets\":50000"));

    // To standard output the trace goes alone.
    let output = thalweg(&["synth", "-n", "50k", "-o", "-"]);
    assert_eq!(output.stdout, std::fs::read(&trace).unwrap());
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("50000 packets"));
}
