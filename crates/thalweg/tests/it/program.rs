//! Runs the program under test.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

pub(crate) const THALWEG: &str = env!("CARGO_BIN_EXE_thalweg");

/// Exit code and output of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs `thalweg` in a folder with empty standard input.
pub(crate) fn thalweg_in(folder: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::new(THALWEG);
    Run::from(command.args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap())
}

/// Runs `thalweg watch` with these arguments.
pub(crate) fn watch(arguments: &[&str]) -> Run {
    watch_stdin(arguments, b"")
}

/// Runs `thalweg watch` with these bytes as its standard input.
pub(crate) fn watch_stdin(arguments: &[&str], stdin: &[u8]) -> Run {
    let mut child = Command::new(THALWEG)
        .arg("watch")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // It may end before it has read everything.
        scope.spawn(move || drop(input.write_all(stdin)));
        Run::from(child.wait_with_output().unwrap())
    })
}

impl From<std::process::Output> for Run {
    fn from(output: std::process::Output) -> Run {
        let text = |bytes| String::from_utf8(bytes).expect("it writes text");
        Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Run {
    /// Checks the exit code.
    #[track_caller]
    pub(crate) fn ended_with(self, code: i32) -> Run {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stderr, self.stdout);
        self
    }

    /// Returns the JSON lines.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
        self.stdout.lines().map(parse).collect()
    }

    /// Returns the JSON lines of a type.
    #[track_caller]
    pub(crate) fn of_type(&self, name: &str) -> Vec<Value> {
        self.lines().into_iter().filter(|line| line["type"] == name).collect()
    }

    /// Returns the last JSON line.
    #[track_caller]
    pub(crate) fn summary(&self) -> Value {
        let last = self.lines().pop().unwrap_or_else(|| panic!("nothing was written; {}", self.stderr));
        assert_eq!(last["type"], "summary");
        last
    }
}

/// Returns the unsigned integer in `field`.
#[track_caller]
pub(crate) fn number(object: &Value, field: &str) -> u64 {
    object[field].as_u64().unwrap_or_else(|| panic!("no unsigned integer `{field}` in {object}"))
}

/// Returns the instant in `field` in nanoseconds since 1970.
#[track_caller]
pub(crate) fn time_ns(object: &Value, field: &str) -> u64 {
    let text = object[field].as_str().unwrap_or_else(|| panic!("no instant `{field}` in {object}"));
    text.parse::<thalweg_api::UtcTime>().unwrap().0.0
}

/// Compares the summary of a run with its flow records: every packet is counted exactly once.
#[track_caller]
pub(crate) fn check_accounting(run: &Run) {
    let (summary, flows) = (run.summary(), run.of_type("flow"));
    let of_flows = |field: &str| flows.iter().map(|flow| number(flow, field)).sum::<u64>();
    let of_others = |ending: &str| -> u64 {
        ["non_ip", "malformed", "unsupported_link"]
            .map(|name| number(&summary, &format!("{name}{ending}")))
            .iter()
            .sum()
    };
    let packets = of_flows("packets") + of_flows("reverse_packets");
    let bytes = of_flows("bytes") + of_flows("reverse_bytes");
    assert_eq!(packets, number(&summary, "ip_packets"));
    assert_eq!(bytes, number(&summary, "ip_bytes"));
    assert_eq!(packets + of_others(""), number(&summary, "packets"));
    assert_eq!(bytes + of_others("_bytes"), number(&summary, "bytes"));
    let by_kind = summary["malformed_by_kind"].as_object().unwrap();
    let malformed: u64 = by_kind.values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(malformed, number(&summary, "malformed"));
    let by_reason = summary["records"].as_object().unwrap();
    let records: u64 = by_reason.values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(records, flows.len() as u64);
}

/// Returns the root of the checkout.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Whether a program is installed: it runs with this flag.
pub(crate) fn is_installed(program: &str, version_flag: &str) -> bool {
    let version = Command::new(program).arg(version_flag).stdin(Stdio::null()).output();
    version.is_ok_and(|version| version.status.success())
}

/// Returns the output of a tool that must succeed.
#[track_caller]
pub(crate) fn output_of(program: &str, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns packets and bytes on the wire according to capinfos.
#[track_caller]
pub(crate) fn capinfos(path: &Path) -> (u64, u64) {
    let said = output_of("capinfos", [OsStr::new("-M"), "-c".as_ref(), "-d".as_ref(), path.as_os_str()]);
    let number = |label: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(label));
        let word = line.and_then(|rest| rest.split_whitespace().next());
        word.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("no `{label}` in: {said}"))
    };
    (number("Number of packets:"), number("Data size:"))
}

/// Reports a skipped test directly to standard error, because the test runner captures the output of passing tests.
pub(crate) fn skip(test: &str, reason: &str) {
    std::io::stderr().write_all(format!("skipped: {test}: {reason}\n").as_bytes()).unwrap();
}
