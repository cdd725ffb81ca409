//! `thalweg serve` as a process: start, reload, kill, stop.

mod control;
mod experiments;
mod flowspec;
#[path = "../../../../thalweg-actuators/tests/isolation_flowspec/frr.rs"]
#[allow(dead_code, reason = "not every user of this file needs all of it")]
mod frr;
mod interfaces;
mod isolation;
mod isolation_openflow;
mod openflow;
#[path = "../../../../thalweg-actuators/tests/openflow_ovs/ovs.rs"]
#[allow(dead_code, reason = "not every user of this file needs all of it")]
mod ovs;
mod polls;
mod polls_openflow;
mod records;
mod slow;
mod threshold;
mod threshold_poll;
mod transfers;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{THALWEG, root, thalweg_in};

/// Maximum time of operations that are normally instant.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A daemon with its own folder and configuration file `thalweg.toml`.
struct Serve {
    folder: TempDir,
    address: SocketAddr,
    child: Option<Child>,
}

impl Serve {
    /// Writes a configuration: sections for API and network, then `rest`. Does not start the daemon.
    fn new(rest: &str) -> Serve {
        // A port that was free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let serve = Serve { folder: tempfile::tempdir().unwrap(), address, child: None };
        // Started by root, the daemon changes its user.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(serve.folder.path(), open).unwrap();
        for file in ["topology.toml", "leaf0.pcapng.zst", "experiment.toml"] {
            fs::copy(root().join("examples/collector").join(file), serve.path(file)).unwrap();
        }
        serve.configure(rest);
        serve
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn configure(&self, rest: &str) {
        let address = self.address;
        let text = format!("[api]\nlisten = \"{address}\"\n[network]\ntopology = \"topology.toml\"\n{rest}");
        fs::write(self.path("thalweg.toml"), text).unwrap();
    }

    /// Starts the daemon and waits until it is ready.
    fn start(&mut self) {
        self.start_as(Command::new(THALWEG));
    }

    /// Starts it by a command that runs the program.
    fn start_as(&mut self, command: Command) {
        self.launch(command);
        self.wait("it is ready", |serve| serve.get("/readyz").is_some());
    }

    fn launch(&mut self, mut command: Command) {
        let log = File::options().append(true).create(true).open(self.path("log")).unwrap();
        let child = command
            .args(["serve", "-c", "thalweg.toml"])
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.child = Some(child);
    }

    /// Returns the resident memory of the daemon, with rings and memory that the kernel has locked.
    fn resident_kib(&self) -> u64 {
        let status = format!("/proc/{}/status", self.child.as_ref().unwrap().id());
        let status = fs::read_to_string(status).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        resident.trim().trim_end_matches(" kB").parse().unwrap()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Returns a response of the API; `None` unless successful.
    fn get(&self, path: &str) -> Option<Value> {
        self.text(path).map(|body| serde_json::from_str(&body).unwrap_or(Value::Null))
    }

    /// Returns the value of a metric.
    fn metric(&self, name: &str) -> Option<u64> {
        let page = self.text("/metrics")?;
        page.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    }

    fn text(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        let host = self.address;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.starts_with("HTTP/1.1 200").then(|| body.to_owned())
    }

    /// Returns names and states of the collectors.
    fn collectors(&self) -> Vec<(String, String)> {
        let answer = self.get("/v1/collectors").unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let collectors = answer["collectors"].as_array().cloned().unwrap_or_default();
        collectors.iter().map(|it| (text(&it["name"]), text(&it["state"]["name"]))).collect()
    }

    fn has(&self, collector: &str, state: &str) -> bool {
        self.collectors().iter().any(|(name, now)| name == collector && now == state)
    }

    #[track_caller]
    fn wait(&self, what: &str, matches: impl Fn(&Serve) -> bool) {
        let started = Instant::now();
        while !matches(self) {
            assert!(started.elapsed() < TIMEOUT, "{what}: {}\n{:?}", self.log(), self.collectors());
            sleep(Duration::from_millis(20));
        }
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Waits for its end. Returns the exit code.
    fn ended(&mut self) -> Option<i32> {
        self.child.take().unwrap().wait().unwrap().code()
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

const CAPTURE: &str = "[[collector]]\nname = \"a\"\nswitch = \"leaf0\"\nfile = \"leaf0.pcapng.zst\"\n";

#[test]
fn a_graceful_stop_exports_and_writes_all_flows() {
    let records = "[records]\nfile = \"records.jsonl\"\n";
    let mut serve = Serve::new(&[CAPTURE, records].concat());
    serve.start();
    serve.wait("the file has ended", |serve| serve.has("a", "ended"));
    let counts = serve.get("/v1/collectors").unwrap()["collectors"][0]["counts"].clone();
    assert_eq!(counts["frames"], 14_123);
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
    let text = fs::read_to_string(serve.path("records.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sum = |field: &str| lines.iter().map(|line| line[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("packets") + sum("reverse_packets"), 14_123, "every packet is in one record");
    assert!(lines.iter().all(|line| line["type"] == "flow" && line["collector"] == "a"));
    assert!(serve.log().contains("stopped"), "{}", serve.log());
}

#[test]
fn a_killed_daemon_restarts_with_the_same_results() {
    let mut serve = Serve::new(CAPTURE);
    let flows = |serve: &Serve| {
        let answer = serve.get("/v1/flows?limit=50").unwrap();
        assert!(answer["total"].as_u64().unwrap() > 20, "{answer}");
        answer
    };
    serve.start();
    serve.wait("the file has ended", |serve| serve.has("a", "ended"));
    let before = flows(&serve);
    serve.signal("-KILL");
    assert_eq!(serve.ended(), None, "a signal ended it");
    serve.start();
    serve.wait("the file has ended", |serve| serve.has("a", "ended"));
    assert_eq!(flows(&serve), before);
}

#[test]
fn a_reload_applies_only_valid_files() {
    let mut serve = Serve::new(CAPTURE);
    serve.start();
    serve.wait("the file has ended", |serve| serve.has("a", "ended"));
    let emulated = "[[collector]]\nname = \"b\"\nswitch = \"leaf0\"\nemulate = \"experiment.toml\"\n";
    serve.configure(&[CAPTURE, emulated, "[log]\nlevel = \"debug\"\n"].concat());
    serve.signal("-HUP");
    serve.wait("b is there", |serve| serve.has("a", "ended") && serve.has("b", "ended"));

    serve.configure(&[CAPTURE, "speeed = 1\n[[rule]]\nupper = 0.1\n"].concat());
    serve.signal("-HUP");
    serve.wait("the log message", |serve| serve.log().contains("nothing changed"));
    let log = serve.log();
    assert!(log.contains("thalweg.toml:9: unknown key \"speeed\"; did you mean \"speed\"?"), "{log}");
    assert_eq!(serve.collectors().len(), 2);

    // The topology is also checked before anything changes.
    fs::write(serve.path("topology.toml"), "[[router]]\nname = \"leaf9\"\n").unwrap();
    serve.configure(&emulated.replace("\"b\"", "\"c\""));
    serve.signal("-HUP");
    serve.wait("the log message", |serve| serve.log().matches("nothing changed").count() == 2);
    assert_eq!(serve.collectors().len(), 2);

    fs::copy(root().join("examples/collector/topology.toml"), serve.path("topology.toml")).unwrap();
    serve.signal("-HUP");
    serve.wait("c alone is there", |serve| serve.collectors() == [("c".to_owned(), "ended".to_owned())]);
    serve.signal("-INT");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
}

#[test]
fn samples_are_dumped_on_signals_and_events() {
    let samples = "[samples]\nfolder = \"samples\"\non_event = \"congestion\"\n";
    let mut serve = Serve::new(&[CAPTURE, samples].concat());
    serve.start();
    serve.wait("the file has ended", |serve| serve.has("a", "ended"));
    let files = |serve: &Serve, ending: &str| {
        let files = fs::read_dir(serve.path("samples")).into_iter().flatten();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(ending)).collect::<Vec<_>>()
    };
    serve.wait("an event's", |serve| files(serve, "-congestion.pcapng").len() == 1);
    serve.signal("-USR1");
    serve.wait("a signal's", |serve| files(serve, "-signal.pcapng").len() == 1);
    let name = &files(&serve, "-signal.pcapng")[0];
    let bytes = fs::read(serve.path("samples").join(name)).unwrap();
    assert!(bytes.len() > 14_123 * 86, "{}", bytes.len());
}

/// Whether the tests run as root, whose daemon changes its user.
fn is_root() -> bool {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    if !is_root {
        let _ = writeln!(std::io::stderr(), "skipped: change of user: not root");
    }
    is_root
}

#[test]
fn files_that_only_root_can_use_are_reported_at_the_start_and_by_check() {
    if !is_root() {
        return;
    }
    let mut serve = Serve::new("");
    let mode = |path: PathBuf, mode| {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    fs::write(serve.path("tokens"), "operator write 0123456789abcdef\n").unwrap();
    mode(serve.path("tokens"), 0o600);
    // Not empty: the daemon does not take it for its own.
    fs::create_dir(serve.path("samples")).unwrap();
    fs::write(serve.path("samples/other"), "").unwrap();
    mode(serve.path("samples"), 0o755);
    let address = serve.address;
    let text = format!(
        "[api]\nlisten = \"{address}\"\ntoken_file = \"tokens\"\n[samples]\nfolder = \"samples\"\n[network]\ntopology = \"topology.toml\"\n{CAPTURE}"
    );
    fs::write(serve.path("thalweg.toml"), text).unwrap();
    let check = thalweg_in(serve.folder.path(), &["check", "thalweg.toml"]).ended_with(0);
    for expected in [
        "warning: as an unprivileged user, the daemon cannot read tokens (api.token_file): Permission denied",
        "warning: as an unprivileged user, the daemon cannot write to samples (samples.folder): Permission denied",
    ] {
        assert!(check.stdout.contains(expected), "{}", check.stdout);
    }
    assert!(!check.stdout.contains("topology.toml (network.topology): "), "{}", check.stdout);
    serve.start();
    let log = serve.log();
    assert!(log.contains("cannot read tokens (api.token_file): Permission denied"), "{log}");
    assert!(log.contains("samples will not be written"), "{log}");
    // As the user that owns the files, nothing is reported.
    let owned = fs::read_to_string(serve.path("thalweg.toml")).unwrap() + "[process]\nuser = \"nobody\"\n";
    fs::write(serve.path("thalweg.toml"), owned).unwrap();
    for file in ["tokens", "samples"] {
        assert!(Command::new("chown").arg("nobody").arg(serve.path(file)).status().unwrap().success());
    }
    let check = thalweg_in(serve.folder.path(), &["check", "thalweg.toml"]).ended_with(0);
    assert!(!check.stdout.contains("warning"), "{}", check.stdout);
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
    // A directory of the threshold below one of root is created for that user; another one is refused at its line.
    fs::create_dir_all(serve.path("lib/taken")).unwrap();
    fs::write(serve.path("lib/taken/other"), "").unwrap();
    mode(serve.path("lib"), 0o755);
    mode(serve.path("lib/taken"), 0o755);
    let owned = fs::read_to_string(serve.path("thalweg.toml")).unwrap();
    let threshold = |folder: &str| {
        let section = format!(
            "[threshold]\ncollector = \"a\"\nfolder = \"lib/{folder}\"\nacceptable_loss = 1e-5\nlink_rate = \"1gbps\"\n"
        );
        fs::write(serve.path("thalweg.toml"), [&*owned, &section].concat()).unwrap();
    };
    threshold("taken");
    let line = owned.lines().count() + 3;
    let expected = format!(
        "thalweg.toml:{line}: folder: user nobody, to which the daemon changes, cannot create files in lib/taken: Permission denied"
    );
    for arguments in [&["check", "thalweg.toml"][..], &["serve", "-c", "thalweg.toml"]] {
        let refused = thalweg_in(serve.folder.path(), arguments).ended_with(2);
        assert!(refused.stderr.contains(&expected), "{}", refused.stderr);
    }
    threshold("state/threshold");
    thalweg_in(serve.folder.path(), &["check", "thalweg.toml"]).ended_with(0);
    assert!(!serve.path("lib/state").exists(), "a check changes nothing");
    serve.start();
    assert!(fs::read_dir(serve.path("lib/state/threshold")).is_ok(), "{}", serve.log());
}

#[test]
fn idle_collectors_take_little_memory() {
    let collector =
        |number: u32| format!("[[collector]]\nname = \"c{number}\"\nswitch = \"leaf0\"\nfile = \"pipe\"\n");
    let mut serve = Serve::new(&(0..20).map(collector).collect::<String>());
    assert!(Command::new("mkfifo").args(["-m", "666"]).arg(serve.path("pipe")).status().unwrap().success());
    serve.start();
    serve.wait("all run", |serve| {
        serve.collectors().iter().filter(|(_, state)| state == "running").count() == 20
    });
    let kib = serve.resident_kib();
    assert!(kib < 20 * 10_000, "{kib} KiB");
}

#[test]
fn dumps_of_earlier_runs_are_kept_within_the_limit() {
    let samples = "[samples]\nfolder = \"samples\"\non_event = \"congestion\"\nkeep = 2\n";
    let mut serve = Serve::new(&[CAPTURE, samples].concat());
    let dumps = |serve: &Serve| {
        let files = fs::read_dir(serve.path("samples")).into_iter().flatten();
        let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name.ends_with(".pcapng"));
        names.sort();
        names
    };
    for run in 1..=3 {
        serve.start();
        serve.wait("it has written", |serve| serve.metric("thalweg_sample_files_total ") == Some(1));
        serve.signal("-TERM");
        assert_eq!(serve.ended(), Some(0), "{}", serve.log());
        assert_eq!(dumps(&serve).len(), run.min(2), "{:?}", dumps(&serve));
    }
}

#[test]
fn records_lost_on_a_full_disk_are_counted() {
    let records = "[records]\nfile = \"/dev/full\"\n[log]\nformat = \"json\"\n";
    let mut serve = Serve::new(&[CAPTURE, records].concat());
    serve.start();
    serve.wait("the file has ended", |serve| serve.has("a", "ended"));
    let before = serve.metric("thalweg_flow_records_lost_total{collector=\"a\",reason=\"write_failed\"}");
    // Collectors restart, and the existing flows are exported.
    serve.configure(&[CAPTURE, "smoothing = \"2ms\"\n", records].concat());
    serve.signal("-HUP");
    let lost = |serve: &Serve| {
        let lost = serve.metric("thalweg_flow_records_lost_total{collector=\"a\",reason=\"write_failed\"}");
        lost.filter(|lost| Some(*lost) > before)
    };
    serve.wait("they are counted", |serve| lost(serve).is_some());
    let lost = lost(&serve).unwrap();
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
    let log = serve.log();
    assert!(
        log.contains("cannot write records") && log.contains(&format!("\"write_failed\":{lost}")),
        "{log}"
    );
}

#[test]
fn check_describes_valid_files_and_reports_errors() {
    let folder = root().join("examples/collector");
    let run = thalweg_in(&folder, &["check", "--skip-interfaces", "thalweg.toml"]).ended_with(0);
    for line in [
        "thalweg.toml: OK",
        "network: topology.toml: 4 switches, 6 hosts, 10 links",
        "leaf0: file leaf0.pcapng.zst (at 0.001 times real time), switch leaf0 with 5 ports",
    ] {
        assert!(run.stdout.contains(line), "{}", run.stdout);
    }
    let default = thalweg_in(&folder, &["config", "serve"]).ended_with(0).stdout;
    let serve = Serve::new("");
    fs::write(serve.path("default.toml"), default).unwrap();
    let run = thalweg_in(serve.folder.path(), &["check", "--skip-interfaces", "default.toml"]).ended_with(0);
    assert!(run.stdout.contains("tor0: interface eth1 (the interface does not exist now)"), "{}", run.stdout);
    let run = thalweg_in(serve.folder.path(), &["check", "--skip-interfaces", "thalweg.toml"]).ended_with(2);
    assert!(run.stderr.contains("no collectors"), "{}", run.stderr);
    let run = thalweg_in(Path::new("/"), &["serve", "-c", "no-such-file.toml"]).ended_with(2);
    assert!(run.stderr.contains("cannot read the configuration file"), "{}", run.stderr);
}
