//! `thalweg collect` as a process: output, signals, recovery after a crash.

#![cfg(target_os = "linux")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use serde_json::Value;
use tempfile::TempDir;
use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::encode::{Messages, netflow9};
use thalweg_wire::flow_export::{Address, Record, RecordBatch};

/// Maximum time of operations that are normally instant.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A process `thalweg collect --json` on a free port.
struct Collector {
    child: Child,
    port: u16,
    lines: BufReader<std::process::ChildStdout>,
}

impl Collector {
    fn start(folder: &Path, arguments: &[&str]) -> Collector {
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut child = Command::new(env!("CARGO_BIN_EXE_thalweg"))
            .args(["collect", "--json", "--interval", "100ms", "--receive-buffer", "1MiB", "-o"])
            .arg(folder)
            .args(arguments)
            .arg(format!("127.0.0.1:{port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut collector = Collector { child, port, lines };
        // The first line shows that it listens.
        collector.line(|_| true);
        collector
    }

    /// Returns the first line that matches.
    #[track_caller]
    fn line(&mut self, matches: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the process has ended");
            let value: Value = serde_json::from_str(&line).unwrap();
            if matches(&value) {
                return value;
            }
            assert!(Instant::now() < deadline, "{line}");
        }
    }

    fn signal(&self, signal: &str) {
        let kill = format!("kill -{signal} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Stops it as Ctrl-C does and returns its summary.
    fn summary(mut self) -> Value {
        self.signal("INT");
        let summary = self.line(|line| line["type"] == "summary");
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        summary
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns records, packets and octets of all files.
fn stored(folder: &Path) -> [u64; 3] {
    let mut sums = [0; 3];
    for file in files_below(&folder.join("flows")) {
        let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        let place = |name| schema.columns().iter().position(|column| column.name() == name).unwrap();
        let (packets, octets) = (place("packets"), place("bytes"));
        for row in reader.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            let value = |place| u64::try_from(row.get_long(place).unwrap()).unwrap();
            sums = [sums[0] + 1, sums[1] + value(packets), sums[2] + value(octets)];
        }
    }
    sums
}

fn files_below(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    entries
        .map(|entry| entry.unwrap().path())
        .flat_map(|path| match path.is_dir() {
            true => files_below(&path),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|extension| extension == "parquet"))
        .collect()
}

/// Encodes `count` records.
fn messages(encoder: &mut netflow9::Encoder, count: u32) -> Messages {
    let now = now();
    let mut rows = RecordBatch::default();
    for number in 0..count {
        rows.push(&Record {
            flow_start_us: (now.0 / 1000) as i64,
            flow_end_us: (now.0 / 1000) as i64,
            source_address: Address::v4(number),
            destination_address: Address::v4(0xC000_0201),
            octets: 100,
            packets: 1,
            protocol: 17,
            ..Record::default()
        });
    }
    let mut messages = Messages::new();
    encoder.encode(&rows, now, &mut messages);
    messages
}

fn now() -> Timestamp {
    thalweg_linux::clock::realtime()
}

fn encoder() -> netflow9::Encoder {
    netflow9::Encoder::new(netflow9::Options::new(Timestamp::new(now().seconds() - 60, 0))).unwrap()
}

fn send(messages: &Messages, port: u16) {
    send_from(&UdpSocket::bind("127.0.0.1:0").unwrap(), messages, port);
}

fn send_from(socket: &UdpSocket, messages: &Messages, port: u16) {
    for (number, message) in messages.iter().enumerate() {
        socket.send_to(message, ("127.0.0.1", port)).unwrap();
        if number % 32 == 31 {
            sleep(Duration::from_millis(2));
        }
    }
}

#[test]
fn a_run_writes_status_exporters_and_summary() {
    let folder = TempDir::new().unwrap();
    let mut collector = Collector::start(folder.path(), &[]);
    send(&messages(&mut encoder(), 5_000), collector.port);
    let status = collector.line(|line| line["records"] == 5_000);
    assert_eq!((&status["type"], &status["lost"]["kernel_drops"]), (&"status".into(), &0.into()));
    collector.signal("USR1");
    let table = collector.line(|line| line["type"] == "exporters");
    assert_eq!(table["exporters"][0]["counts"]["records"], 5_000);
    let summary = collector.summary();
    assert_eq!((&summary["records"], &summary["store"]["written"]), (&5_000.into(), &5_000.into()));
    assert_eq!(summary["by_exporter"][0]["format"], "netflow9");
    assert_eq!(stored(folder.path()), [5_000, 5_000, 500_000]);
}

/// Encodes `count` records of an observation domain of one exporter.
fn of_domain(source_id: u32, count: u32) -> Messages {
    let boot = Timestamp::new(now().seconds() - 60, 0);
    let options = netflow9::Options { source_id, ..netflow9::Options::new(boot) };
    messages(&mut netflow9::Encoder::new(options).unwrap(), count)
}

#[test]
fn domains_above_the_limit_are_counted_and_named_and_the_known_ones_go_on() {
    let folder = TempDir::new().unwrap();
    let mut collector = Collector::start(folder.path(), &["--domains", "3"]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for domain in 1..=5 {
        send_from(&socket, &of_domain(domain, 10), collector.port);
    }
    collector.line(|line| line["lost"]["unreadable_messages"] == 2);
    // The known domains go on, and another source port has a limit of its own.
    for domain in 1..=3 {
        send_from(&socket, &of_domain(domain, 10), collector.port);
    }
    send(&of_domain(7, 10), collector.port);
    collector.line(|line| line["records"] == 70);
    let summary = collector.summary();
    assert_eq!(summary["lost"]["unreadable_messages"], 2);
    let error = summary["last_message_error"].as_str().unwrap();
    assert!(error.contains("too many observation domains: 5 would exceed the limit of 3"), "{error}");
    let exporters = summary["by_exporter"].as_array().unwrap();
    let records = |row: &Value| {
        (row["observation_domain_id"].as_u64().unwrap(), row["counts"]["records"].as_u64().unwrap())
    };
    assert_eq!(exporters.iter().map(records).collect::<Vec<_>>(), [(1, 20), (2, 20), (3, 20), (7, 10)]);
    assert_eq!(stored(folder.path())[0], 70);
}

/// Returns the keys in the tables of docs/reference/collect-json.md by heading.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/collect-json.md");
    let (mut keys, mut heading) = (BTreeMap::<String, BTreeSet<String>>::new(), "");
    for line in std::fs::read_to_string(page).unwrap().lines() {
        if let Some(text) = line.strip_prefix("## ") {
            heading = text;
        } else if let Some((key, _)) = line.strip_prefix("| `").and_then(|rest| rest.split_once("` | ")) {
            keys.entry(heading.to_owned()).or_default().insert(key.to_owned());
        }
    }
    keys
}

#[test]
fn exactly_the_written_keys_are_documented() {
    let folder = TempDir::new().unwrap();
    let mut collector = Collector::start(folder.path(), &["tcp:127.0.0.1:0"]);
    send(&messages(&mut encoder(), 10), collector.port);
    let status = collector.line(|line| line["records"] == 10);
    collector.signal("USR1");
    let exporters = collector.line(|line| line["type"] == "exporters");
    let summary = collector.summary();
    let replay = Command::new(env!("CARGO_BIN_EXE_thalweg"))
        .args(["collect", "--json", "--replay", "../../examples/two-hosts.pcap"])
        .args(["--mmdb", "../thalweg-records/tests/data/country.mmdb", "-o"])
        .arg(folder.path().join("replayed"))
        .output()
        .unwrap();
    let replay: Value = serde_json::from_slice(&replay.stdout).unwrap();

    let mut documented = documented();
    documented.remove("");
    let own: BTreeSet<_> = documented["summary"].iter().chain(&documented["status"]).cloned().collect();
    documented.insert("summary".to_owned(), own);
    let written = [
        ("status", &status),
        ("exporters", &exporters),
        ("summary", &summary),
        ("lost", &status["lost"]),
        ("store", &status["store"]),
        ("An exporter", &exporters["exporters"][0]),
        ("Counts", &summary["counts"]),
        ("A socket", &summary["sockets"][0]),
        ("A listener", &summary["listeners"][0]),
        ("templates", &summary["templates"]),
        ("databases", &replay["databases"]),
        ("capture", &replay["capture"]),
    ];
    for (heading, written) in written {
        let written: BTreeSet<_> = written.as_object().unwrap().keys().cloned().collect();
        assert_eq!(documented.remove(heading), Some(written), "{heading}");
    }
    // The test with brokers checks these.
    assert_eq!(documented.keys().collect::<Vec<_>>(), ["kafka"]);
}

#[test]
fn a_crash_loses_at_most_the_bound_and_duplicates_nothing() {
    let folder = TempDir::new().unwrap();
    let mut collector = Collector::start(folder.path(), &["--sync-interval", "500ms"]);
    send(&messages(&mut encoder(), 20_000), collector.port);
    collector.line(|line| line["records"] == 20_000);
    // Twice the bound, because the machine may be busy.
    sleep(Duration::from_secs(1));
    collector.signal("KILL");
    collector.child.wait().unwrap();
    assert_eq!(stored(folder.path()), [0; 3], "the file was not complete");
    let collector = Collector::start(folder.path(), &["--sync-interval", "500ms"]);
    assert_eq!(stored(folder.path()), [20_000, 20_000, 2_000_000], "from the spool");
    assert_eq!(collector.summary()["records"], 0);
    assert_eq!(stored(folder.path())[0], 20_000);
}

#[test]
fn templates_outlive_a_killed_process() {
    let folder = TempDir::new().unwrap();
    let (mut encoder, exporter) = (encoder(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let mut collector = Collector::start(folder.path(), &[]);
    // The template is in the first message only.
    send_from(&exporter, &messages(&mut encoder, 10), collector.port);
    collector.line(|line| line["records"] == 10);
    let file = folder.path().join("spool/collect/templates");
    let deadline = Instant::now() + TIMEOUT;
    while !file.exists() {
        assert!(Instant::now() < deadline, "{}", file.display());
        sleep(Duration::from_millis(20));
    }
    collector.signal("KILL");
    collector.child.wait().unwrap();
    let mut collector = Collector::start(folder.path(), &[]);
    send_from(&exporter, &messages(&mut encoder, 2_000), collector.port);
    collector.line(|line| line["records"] == 2_000);
    let summary = collector.summary();
    assert_eq!(summary["lost"]["sets_without_template"], 0);
    assert_eq!(
        (&summary["templates"]["sessions_read"], &summary["templates"]["errors"]),
        (&1.into(), &0.into())
    );
}

#[cfg(not(feature = "kafka"))]
#[test]
fn a_build_without_kafka_reports_the_remedy() {
    let folder = TempDir::new().unwrap();
    let program = Command::new(env!("CARGO_BIN_EXE_thalweg"))
        .args(["collect", "--kafka", "127.0.0.1:9092", "127.0.0.1:0", "-o"])
        .arg(folder.path().join("flows"))
        .output()
        .unwrap();
    let error = String::from_utf8(program.stderr).unwrap();
    assert!(error.contains("--features kafka"), "{error}");
    assert!(!program.status.success() && !folder.path().join("flows").exists());
}

/// kcat with a mock cluster, reading its own topic.
#[cfg(feature = "kafka")]
struct Cluster {
    child: Child,
    brokers: String,
    /// Lines of the reader. They must be consumed at once, because a blocked reader blocks the cluster.
    messages: std::sync::mpsc::Receiver<String>,
    /// Kept open while kcat may write to it.
    _stderr: BufReader<std::process::ChildStderr>,
}

#[cfg(feature = "kafka")]
impl Cluster {
    fn start() -> std::io::Result<Cluster> {
        let arguments = ["-C", "-u", "-b", "none", "-t", "routers", "-o", "beginning", "-f", "%k %s\n"];
        let mut child = Command::new("kcat")
            .args(arguments)
            .args(["-X", "test.mock.num.brokers=3"])
            // Cargo sets it to the directory of our librdkafka, which kcat must not use.
            .env_remove("LD_LIBRARY_PATH")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut brokers = (&mut stderr).lines().map(Result::unwrap);
        let brokers = brokers.find_map(|line| Some(line.split_once("replaced with ")?.1.to_owned()));
        let brokers = brokers.expect("kcat prints the broker addresses");
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (read, messages) = std::sync::mpsc::channel();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| read.send(line)));
        Ok(Cluster { child, brokers, messages, _stderr: stderr })
    }

    /// Returns keys and rows of the next messages.
    fn messages(&self, count: usize) -> Vec<(String, Value)> {
        let message = |_| {
            let line = self.messages.recv_timeout(TIMEOUT).expect("another message");
            let (key, row) = line.split_once(' ').unwrap();
            (key.to_owned(), serde_json::from_str(row).unwrap())
        };
        (0..count).map(message).collect()
    }
}

#[cfg(feature = "kafka")]
impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(feature = "kafka")]
#[test]
fn kafka_and_files_have_the_same_records() {
    let Ok(mut cluster) = Cluster::start() else {
        use std::io::Write as _;
        let line = "skipped: kafka_and_files_have_the_same_records: there is no kcat\n";
        return std::io::stderr().write_all(line.as_bytes()).unwrap();
    };
    let folder = TempDir::new().unwrap();
    let secret = folder.path().join("client");
    std::fs::write(&secret, "collector-7\n").unwrap();
    let client = format!("client.id=@{}", secret.display());
    let kafka = ["--kafka", &cluster.brokers, "--kafka-topic", "routers", "--kafka-option", &client];
    let mut collector = Collector::start(folder.path(), &kafka);
    send(&messages(&mut encoder(), 5_000), collector.port);
    collector.line(|line| line["records"] == 5_000);
    let summary = collector.summary();
    assert_eq!(summary["store"]["written"], 5_000);
    let reader = cluster.child.try_wait().unwrap();
    assert_eq!(summary["kafka"]["delivered"], 5_000, "{}, kcat: {reader:?}", summary["kafka"]);
    assert_eq!(summary["lost"]["kafka_records"], 0);
    let keys: BTreeSet<_> = summary["kafka"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(documented()["kafka"], keys);
    let messages = cluster.messages(5_000);
    let sum = |column| messages.iter().map(|(_, row)| row[column].as_u64().unwrap()).sum::<u64>();
    assert_eq!(stored(folder.path()), [messages.len() as u64, sum("packets"), sum("bytes")]);
    assert!(messages.iter().all(|(key, row)| key == "127.0.0.1" && row["exporter"] == "127.0.0.1"));
    let sources: BTreeSet<_> = messages.iter().map(|(_, row)| row["src"].as_str().unwrap()).collect();
    assert_eq!(sources.len(), 5_000, "no duplicates");
}

/// Needs a mount namespace, thus root.
#[test]
fn a_full_disk_is_an_error() {
    let folder = TempDir::new().unwrap();
    let (capture, disk) = (folder.path().join("records.pcap"), folder.path().join("disk"));
    std::fs::create_dir(&disk).unwrap();
    let program = env!("CARGO_BIN_EXE_thalweg");
    let synth =
        Command::new(program).args(["synth", "--netflow", "--records", "20k", "-o"]).arg(&capture).output();
    assert!(synth.unwrap().status.success());
    let script =
        "mount -t tmpfs -o size=100k tmpfs \"$2\" || exit 77; exec \"$1\" collect -o \"$2\" --replay \"$3\"";
    let run = Command::new("unshare")
        .args(["-m", "sh", "-c", script, "sh", program])
        .args([&disk, &capture])
        .output();
    let run = run.unwrap();
    let message = String::from_utf8_lossy(&run.stderr);
    if run.status.code() == Some(77) || message.starts_with("unshare:") {
        eprintln!("skipped: a_full_disk_is_an_error: needs root: {message}");
        return;
    }
    assert_eq!(run.status.code(), Some(1), "{message}");
    assert!(message.contains("rows could not be stored and are lost: "), "{message}");
    assert!(message.contains("No space left on device"), "{message}");
}
