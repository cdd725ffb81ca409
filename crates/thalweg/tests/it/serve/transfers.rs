//! `thalweg transfers agent` and the daemon that receives its reports.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;

use super::{Serve, TIMEOUT};
use crate::program::{THALWEG, thalweg_in};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// Where the fields of a transfer are in `transfers.csv`.
const MAPPING: &str = "
input = 'csv'
[fields]
application = { constant = 'copy' }
direction = { constant = 'send' }
user = { column = 'user' }
remote = { column = 'peer' }
start = { column = 'begin', time = 'iso8601' }
end = { column = 'end', time = 'iso8601' }
bytes = { column = 'kB', scale = 1000 }
";

/// An agent as a process.
struct Agent(Child);

impl Agent {
    fn start(folder: &Path) -> Agent {
        let log = File::options().append(true).create(true).open(folder.join("agent.log")).unwrap();
        let child = Command::new(THALWEG)
            .args(["transfers", "agent", "-c", "agent.toml"])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Agent(child)
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Returns the memory of the process, without that of its file.
    fn memory_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        resident.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a daemon that receives reports of the host `dtn1`, and the configuration of its agent. The agent's log is `transfers.csv`.
fn serve(token: &str) -> Serve {
    let serve = Serve::new("");
    let address = serve.address;
    let write = |file: &str, text: &str| {
        let path = serve.path(file);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    };
    write("tokens", &format!("dtn1 report {SECRET}\nreader read {SECRET}-reader\n"));
    write("token", &format!("{token}\n"));
    write("mapping.toml", MAPPING);
    write(
        "thalweg.toml",
        &format!(
            "[api]\nlisten = \"{address}\"\ntoken_file = \"tokens\"\n[records]\nfolder = \"store\"\n\
             [transfers]\nreceive = true\n"
        ),
    );
    write(
        "agent.toml",
        &format!(
            "[agent]\nhost = \"dtn1\"\napi = \"http://{address}\"\ntoken_file = \"token\"\nqueue = \"queue\"\nnames = \"clear\"\n\
             min_rate = \"8mbps\"\n[[log]]\npath = \"transfers.csv\"\nformat = \"mapping\"\nmapping = \"mapping.toml\"\nfrom_start = true\ntime_zone = \"UTC\"\n"
        ),
    );
    serve
}

fn kill(serve: &mut Serve) {
    serve.signal("-KILL");
    serve.ended();
}

fn stop(serve: &mut Serve) {
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
}

/// Appends transfers with these numbers to the log.
fn log(folder: &Path, numbers: impl Iterator<Item = u32>) {
    let path = folder.join("transfers.csv");
    let is_new = !path.exists();
    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
    if is_new {
        writeln!(file, "user,peer,begin,end,kB").unwrap();
    }
    for number in numbers {
        writeln!(file, "user{number},192.0.2.1,2026-11-28T20:00:00Z,2026-11-28T20:00:10Z,{number}").unwrap();
    }
}

/// Returns a text column of all rows of a dataset.
fn column(store: &Path, dataset: &str, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![store.join(dataset)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "parquet") {
                let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
                for row in reader.get_row_iter(None).unwrap() {
                    let row = row.unwrap();
                    let (_, value) = row.get_column_iter().find(|(column, _)| *column == name).unwrap();
                    found.push(match value {
                        Field::Str(text) => text.clone(),
                        other => other.to_string(),
                    });
                }
            }
        }
    }
    found
}

fn status(serve: &Serve) -> serde_json::Value {
    let text = fs::read_to_string(serve.path("queue/status.json")).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn hosts(serve: &Serve) -> serde_json::Value {
    let mut stream = TcpStream::connect(serve.address).unwrap();
    let host = serve.address;
    write!(
        stream,
        "GET /v1/transfers/hosts HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {SECRET}-reader\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap_or_default()
}

#[track_caller]
fn wait_for(what: &str, mut is_reached: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_reached() {
        assert!(started.elapsed() < TIMEOUT, "not within {TIMEOUT:?}: {what}");
        sleep(Duration::from_millis(50));
    }
}

/// Sends this many bytes through a TCP connection, slowly enough to be seen in two intervals.
fn transfer(bytes: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut server = listener.accept().unwrap().0;
    let reader = std::thread::spawn(move || server.read_to_end(&mut Vec::new()).unwrap());
    for _ in 0..25 {
        client.write_all(&vec![7; bytes / 25]).unwrap();
        sleep(Duration::from_millis(100));
    }
    drop(client);
    assert_eq!(reader.join().unwrap(), bytes);
}

#[test]
fn logs_and_connections_reach_the_store() {
    let mut serve = serve(SECRET);
    serve.start();
    log(serve.folder.path(), 0..100);
    let agent = Agent::start(serve.folder.path());
    wait_for("the agent runs", || status(&serve)["host"] == "dtn1");
    transfer(25_000_000);
    log(serve.folder.path(), 100..150);
    wait_for("all reports have arrived", || {
        let status = status(&serve);
        let logged = status["logs"].as_object().and_then(|logs| logs.values().next().cloned());
        logged.is_some_and(|log| log["transfers"] == 150) && status["queue"]["reports"] == 0
    });
    let memory_kib = agent.memory_kib();
    assert!(memory_kib < 30 << 10, "{memory_kib} KiB");
    agent.kill();
    let host = hosts(&serve)["hosts"][0].clone();
    assert_eq!((&host["host"], &host["counts"]["duplicates"]), (&"dtn1".into(), &0.into()));
    assert!(host["clock_difference_us"].as_i64().unwrap().abs() < 10_000_000, "{host}");
    stop(&mut serve);
    let store = serve.path("store");
    let users: BTreeSet<String> = column(&store, "transfers", "user").into_iter().collect();
    assert_eq!(users.len(), 150);
    assert_eq!(column(&store, "transfers", "transfer").into_iter().collect::<BTreeSet<_>>().len(), 150);
    let received: u64 = column(&store, "connections", "received_bytes")
        .iter()
        .map(|bytes| bytes.parse::<u64>().unwrap())
        .sum();
    assert!((20_000_000..=25_000_000).contains(&received), "{received} bytes of 25 MB");
    assert!(!column(&store, "host-metrics", "cpus").is_empty());
    assert_eq!(column(&store, "hosts", "reporter"), ["dtn1"]);
}

#[test]
fn kills_of_agent_and_daemon_neither_lose_nor_repeat_transfers() {
    const ROUNDS: u32 = 8;
    let mut serve = serve(SECRET);
    serve.start();
    let mut agent = Agent::start(serve.folder.path());
    for round in 0..ROUNDS {
        log(serve.folder.path(), 500 * round..500 * (round + 1));
        // Each time at another moment of reading, queueing and sending.
        sleep(Duration::from_millis(300 + 217 * u64::from(round)));
        match round % 3 {
            0 => {
                agent.kill();
                agent = Agent::start(serve.folder.path());
            }
            1 => {
                kill(&mut serve);
                serve.start();
            }
            _ => {
                kill(&mut serve);
                agent.kill();
                serve.start();
                agent = Agent::start(serve.folder.path());
            }
        }
    }
    wait_for("all reports have arrived", || {
        hosts(&serve)["hosts"][0]["number"].as_u64().is_some() && status(&serve)["queue"]["reports"] == 0 && {
            // A status is written every 5 s: it is of this agent once the log was read to its end.
            let log = status(&serve)["logs"].as_object().and_then(|logs| logs.values().next().cloned());
            log.is_some()
        }
    });
    sleep(Duration::from_secs(6));
    wait_for("the queue is empty", || status(&serve)["queue"]["reports"] == 0);
    agent.kill();
    stop(&mut serve);
    let users = column(&serve.path("store"), "transfers", "user");
    let distinct: BTreeSet<&String> = users.iter().collect();
    assert_eq!((users.len(), distinct.len()), (500 * ROUNDS as usize, 500 * ROUNDS as usize));
}

#[test]
fn a_wrong_token_keeps_reports_in_the_queue() {
    let mut serve = serve("another-token-of-nobody");
    serve.start();
    log(serve.folder.path(), 0..10);
    let _agent = Agent::start(serve.folder.path());
    wait_for("the daemon refuses", || {
        status(&serve)["daemon"]["failure"].as_str().is_some_and(|failure| failure.contains("unknown token"))
    });
    assert!(status(&serve)["queue"]["reports"].as_u64().unwrap() > 0);
    let log = fs::read_to_string(serve.path("agent.log")).unwrap();
    assert_eq!(log.matches("reports wait").count(), 1, "logged once: {log}");
    assert_eq!(hosts(&serve)["hosts"], serde_json::json!([]));
}

#[test]
fn a_wrong_configuration_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        "[agent]\nhost = \"a b\"\n[[log]]\npath = \"x\"\nformat = \"ftp\"\n[[log]]\nformat = \"rsync\"\n";
    fs::write(folder.path().join("agent.toml"), text).unwrap();
    let run = thalweg_in(folder.path(), &["transfers", "agent", "-c", "agent.toml"]).ended_with(2);
    for line in ["agent.toml:5: ", "agent.toml:6: "] {
        assert!(run.stderr.contains(line), "{line} in {}", run.stderr);
    }
    fs::write(folder.path().join("agent.toml"), "[agent]\nhost = \"a b\"\n").unwrap();
    let run = thalweg_in(folder.path(), &["check", "agent.toml"]).ended_with(2);
    assert!(run.stderr.contains("agent.toml:2: host: \"a b\": expected 1 to 64 letters"), "{}", run.stderr);
}

/// A list with one report, as `thalweg transfers report` writes it.
const INDEX: &str = r#"{"version":1,"made":"2026-11-28T20:00:00Z","left_out":0,"reports":[{"subject":"host","name":"dtn1",
"start":"2026-11-27T00:00:00Z","end":"2026-11-28T00:00:00Z","made":"2026-11-28T20:00:00Z","transfers":7,"slow":2,
"causes":{"streams":2},"html":"transfers/p/host.html","json":"transfers/p/host.json"}]}"#;

#[test]
fn reports_are_served_and_sent_to_subscribers_once() {
    let mut serve = serve(SECRET);
    let text =
        fs::read_to_string(serve.path("thalweg.toml")).unwrap().replace("token_file = \"tokens\"\n", "");
    fs::write(serve.path("thalweg.toml"), text).unwrap();
    serve.start();
    let api = format!("http://{}", serve.address);
    let missing = serve.get("/v1/transfers/reports");
    assert_eq!(missing, None, "no analysis yet");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let hook = format!("http://{}/hook", listener.local_addr().unwrap());
    let subscribe = ["transfers", "subscribe", "--host", "dtn1", "--webhook", &hook, "--api", &api];
    let run = thalweg_in(serve.folder.path(), &subscribe).ended_with(0);
    assert_eq!(run.stdout, format!("host dtn1: {hook}; nothing sent yet\n"));
    let wrong = ["transfers", "subscribe", "--host", "dtn1", "--email", "nora@example.net", "--api", &api];
    assert!(thalweg_in(serve.folder.path(), &wrong).ended_with(1).stderr.contains("transfers.mail_server"));
    stop(&mut serve);

    let folder = serve.path("store/reports/transfers/p");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("host.html"), "<p>slow</p>").unwrap();
    fs::write(folder.join("host.json"), "{\"slow\":2}").unwrap();
    fs::write(serve.path("store/reports/index.json"), INDEX).unwrap();
    serve.start();
    let (mut stream, _) = listener.accept().unwrap();
    let mut request = vec![0; 4_096];
    let mut length = 0;
    while !String::from_utf8_lossy(&request[..length]).contains("{\"slow\":2}") {
        length += stream.read(&mut request[length..]).unwrap();
    }
    assert!(String::from_utf8_lossy(&request[..length]).starts_with("POST /hook HTTP/1.1"));
    write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").unwrap();
    drop(stream);
    wait_for("the delivery is recorded", || {
        serve
            .get("/v1/transfers/subscriptions")
            .is_some_and(|list| list["subscriptions"][0]["delivered"].is_string())
    });
    let list = serve.get("/v1/transfers/reports").unwrap();
    assert_eq!(list["reports"][0]["slow"], 2, "{list}");
    assert_eq!(serve.text("/v1/transfers/reports/p/host.html").unwrap(), "<p>slow</p>");
    // Not again after a restart.
    stop(&mut serve);
    serve.start();
    listener.set_nonblocking(true).unwrap();
    sleep(Duration::from_secs(1));
    assert!(listener.accept().is_err());
}
