//! The command line: help, version, generated texts, usage errors.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn thalweg(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    command.args(arguments).env("COLUMNS", "80").stdin(Stdio::null());
    command.output().unwrap()
}

/// Returns the standard output of a run that must succeed without messages.
fn stdout_of(arguments: &[&str]) -> String {
    let output = thalweg(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns exit code and standard error of a run that must not write to standard output.
fn fails_with(arguments: &[&str]) -> (i32, String) {
    let output = thalweg(arguments);
    assert!(output.stdout.is_empty(), "{arguments:?}");
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/two-hosts.pcap");
    path.to_str().unwrap().to_owned()
}

#[test]
fn help_fits_80_columns_and_has_all_sections() {
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
        let help = stdout_of(arguments);
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{arguments:?}: {line}");
        }
    }
    let help = stdout_of(&["watch", "--help"]);
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
    assert_eq!(stdout_of(&["-V"]), concat!("thalweg ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn the_long_version_lists_features() {
    let text = stdout_of(&["--version"]);
    assert!(text.starts_with(concat!("thalweg ", env!("CARGO_PKG_VERSION"), "\n")), "{text}");
    let sign = |is_built| if is_built { '+' } else { '-' };
    let features = [
        ("dpdk", cfg!(feature = "dpdk")),
        ("kafka", cfg!(feature = "kafka")),
        ("kafka-tls", cfg!(feature = "kafka-tls")),
    ];
    for (name, is_built) in features {
        assert!(text.contains(&format!("\n  {}{name} ", sign(is_built))), "{text}");
    }
}

#[test]
fn completions_contain_the_flags() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(stdout_of(&["completions", shell]).contains("flight-duration"), "{shell}");
    }
}

#[test]
fn man_pages_have_the_usual_sections() {
    let page = stdout_of(&["man", "watch"]);
    assert!(page.contains(".TH THALWEG-WATCH 1"), "{page}");
    for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "DETECTION", "EXAMPLES", "EXIT STATUS"] {
        assert!(
            page.lines().any(|line| line.trim_start_matches(".SH ").trim_matches('"') == section),
            "{section}"
        );
    }
    assert!(stdout_of(&["man"]).contains("thalweg\\-synth"));
    assert!(stdout_of(&["man", "sketch"]).contains("thalweg\\-sketch\\-merge"));
    let page = stdout_of(&["man", "sketch-merge"]);
    assert!(page.contains(".TH THALWEG-SKETCH-MERGE 1") && page.contains("\\-\\-output"), "{page}");
}

#[test]
fn the_printed_configuration_passes_its_own_check() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lab.toml");
    std::fs::write(&file, stdout_of(&["config", "watch"])).unwrap();
    let file = file.to_str().unwrap();
    let answer = stdout_of(&["check", file]);
    assert!(answer.contains(&format!("{file}: OK, ")), "{answer}");
    assert!(stdout_of(&["watch", "--summary", "--config", file, &example()]).contains("packets"));
}

#[test]
fn configuration_errors_have_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lab.toml");
    std::fs::write(&file, "[detection]\nflite_duration = '1s'\n\n[output]\nlimit = 'ten'\n").unwrap();
    let file = file.to_str().unwrap();
    let expected = format!(
        "thalweg: {file}:2: unknown key \"flite_duration\"; did you mean \"flight_duration\"?\n\
         thalweg: {file}:5: limit is 'ten': expected an integer of at least 1\n"
    );
    for arguments in [&["check", file][..], &["watch", "--config", file, "-"]] {
        assert_eq!(fails_with(arguments), (2, expected.clone()));
    }
    let (code, message) = fails_with(&["watch", "--config", "/nonexistent.toml", "-"]);
    assert_eq!(code, 2);
    assert!(
        message.starts_with("thalweg: cannot read the configuration file /nonexistent.toml: "),
        "{message}"
    );
}

#[test]
fn invalid_usage_and_failures_have_different_codes() {
    let example = example();
    for (arguments, code, beginning) in [
        (
            &["watch"][..],
            2,
            "thalweg: no source: expected capture files, interfaces, or - for standard input",
        ),
        (
            &["watch", "--limit", "none", "-"],
            2,
            "thalweg: invalid value 'none' for '--limit <N>': expected an integer",
        ),
        (&["watch", "--detctor=none", "-"], 2, "thalweg: unexpected argument '--detctor' found"),
        (
            &["watch", "--flows", "-"],
            2,
            "thalweg: --flows cannot be used here: it applies only to JSON output (--json)\n",
        ),
        (&["watch", "--tracks=1", "--detector=none", "-"], 2, "thalweg: --tracks cannot be used here: "),
        (&["watch", "--ring-size=1", "-"], 2, "thalweg: --ring-size: expected at least 524288 bytes"),
        (&["watch", "--show=live-view", "-"], 2, "thalweg: --show: the live view requires a terminal"),
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
        (&["watch", "--no-table", "-"], 2, "thalweg: --no-table: nothing to measure without the flow table"),
        (
            &["watch", "--memory=1MiB", "-"],
            2,
            "thalweg: --memory cannot be used here: it applies only to measurement tasks",
        ),
        (
            &["watch", "--no-table", "--tasks=distinct", "--tracks=9", "-"],
            2,
            "thalweg: --tracks cannot be used here: it applies only to the flow table",
        ),
        (
            &["synth", "-o", "/dev/null", "--udp-share", "7"],
            2,
            "thalweg: invalid UDP share 7: expected 0 to 1\n",
        ),
        (&["check", "/nonexistent.toml"], 2, "thalweg: cannot read /nonexistent.toml: "),
        (
            &["emulate", "/nonexistent.toml"],
            2,
            "thalweg: cannot read the experiment file /nonexistent.toml: ",
        ),
        (
            &["serve", "-c", "/nonexistent.toml"],
            2,
            "thalweg: cannot read the configuration file /nonexistent.toml: ",
        ),
        (
            &["top", "--api", "http://127.0.0.1:99999"],
            2,
            "thalweg: invalid API address \"http://127.0.0.1:99999\": expected http://HOST:PORT or https://HOST:PORT, port 1-65535",
        ),
        (&["top", "--filter", "bps > 1"], 2, "thalweg: --filter selects the flows of the live view"),
        (
            &["watch", "--filter", "dst prt 1", "-"],
            2,
            "thalweg: invalid value 'dst prt 1' for '--filter <FILTER>'",
        ),
        (
            &["watch", "--capture-filter", "tcp prt 1", &example],
            2,
            "thalweg: invalid capture filter `tcp prt 1`",
        ),
        (
            &["endpoint", "-i", "lo", "-n", "1", "-a", "127.0.0.1:9", "--hosts", "/nonexistent"],
            2,
            "thalweg: cannot read the host table /nonexistent: ",
        ),
        (&["lab", "up", "/nonexistent.toml"], 2, "thalweg: unknown topology \"/nonexistent.toml\": "),
        (
            &["lab", "run", "collide", "--duration", "10s"],
            2,
            "thalweg: --duration cannot be used with collide: it applies to udp, emulated-latency, emulated-queues, emulated-rpc, isolate, switch-buffer, stride,",
        ),
        (
            &["lab", "run", "stride", "--trials", "3"],
            2,
            "thalweg: --trials cannot be used with stride: it applies to collide, emulated-latency, emulated-queues, isolate, reroute-latency and switch-buffer",
        ),
        (
            &["lab", "run", "udp", "--actuator", "openflow"],
            2,
            "thalweg: --actuator cannot be used with udp: it applies to isolate",
        ),
        (
            &["lab", "run", "isolate", "--actuator", "exec"],
            2,
            "thalweg: invalid value 'exec' for '--actuator <ACTUATOR>': unknown actuator \"exec\": expected tc or openflow",
        ),
        (
            &["lab", "run", "switch-buffer", "--print-config"],
            2,
            "thalweg: --print-config cannot be used with switch-buffer: it applies to all other scenarios, in which a daemon runs",
        ),
        (&["sketch", "show", "/nonexistent"], 1, "thalweg: cannot read /nonexistent: "),
        (&["watch", "/nonexistent.pcap"], 1, "thalweg: cannot open /nonexistent.pcap: "),
        (&["synth", "-o", "/nonexistent/trace.pcap"], 1, "thalweg: cannot create /nonexistent/trace.pcap: "),
        (&[], 2, "Finds the flows that fill a network's links"),
    ] {
        let (actual, message) = fails_with(arguments);
        assert_eq!(actual, code, "{arguments:?}: {message}");
        assert!(message.starts_with(beginning), "{arguments:?}: {message}");
    }
}

#[test]
fn a_closed_pipe_ends_the_program_quietly() {
    for arguments in
        [&["config", "watch"][..], &["watch", "--json", "--flows", &example()], &["synth", "-o", "-"]]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), message.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

/// Notes, warnings, logs and usage errors.
#[test]
fn a_closed_pipe_on_standard_error_is_ignored() {
    let experiment = example().replace("two-hosts.pcap", "experiments/incast.toml");
    for (arguments, code) in [
        (&["emulate", &experiment][..], 0),
        (&["-v", "emulate", "--sweep", "load=1", &experiment], 2),
        (&["-v", "watch", "--summary", &example()], 0),
        (&["watch", "--no-such-flag"], 2),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
        let status =
            command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(writer).status();
        assert_eq!(status.unwrap().code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn a_truncated_file_is_measured_and_reported() {
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
fn a_synthetic_trace_matches_its_summary() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (trace, truth) = (path("trace.pcap"), path("truth.csv"));
    let summary = stdout_of(&["synth", "-n", "50k", "-o", &trace, "--truth", &truth, "--json"]);
    assert!(summary.starts_with("{\"packets\":50000,"), "{summary}");
    assert!(std::fs::read_to_string(&truth).unwrap().starts_with("kind,flow,"));
    assert!(stdout_of(&["watch", "--json", &trace]).contains("\"packets\":50000"));

    // Standard output contains only the trace.
    let output = thalweg(&["synth", "-n", "50k", "-o", "-"]);
    assert_eq!(output.stdout, std::fs::read(&trace).unwrap());
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("50000 packets"));
}

#[test]
fn an_interrupted_synth_writes_no_file_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, unfinished) = (folder.path().join("trace.pcap"), folder.path().join("trace.pcap.unfinished"));
    let planted = ["--flowsets", "1", "--single-flows", "0", "--ordinary", "0"];
    let records = [&["--netflow", "--records", "500M"][..], &planted].concat();
    for kind in [&["-n", "900M"][..], &records] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_thalweg"))
            .arg("synth")
            .args(kind)
            .arg("-o")
            .arg(&trace)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while !unfinished.exists() {
            assert!(child.try_wait().unwrap().is_none(), "it ended");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let kill = format!("kill -INT {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let ended = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(128 + 2), "{stderr}");
        assert!(stderr.contains("interrupted") && stderr.contains("trace.pcap was not written"), "{stderr}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{kind:?}");
    }
}

#[test]
fn synth_keeps_files_when_its_options_are_invalid() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.pcap");
    std::fs::write(&file, "kept").unwrap();
    let output = file.to_str().unwrap();
    for arguments in [
        &["synth", "-T", "1us", "-n", "1000", "-o", output][..],
        &["synth", "-n", "10k", "--cheetahs", "20", "-o", output],
        &["synth", "--netflow", "--separation", "999h", "-o", output],
    ] {
        assert_eq!(fails_with(arguments).0, 2, "{arguments:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept", "{arguments:?}");
    }
}
