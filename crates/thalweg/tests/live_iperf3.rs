//! `thalweg watch` on a live interface, with iperf3 as the other opinion.
//!
//! Two network namespaces are joined by a veth pair. Across it go an iperf3 transfer at 200 Mbit/s and a ping,
//! while thalweg watches the sender's end. The transfer must be found as a cheetah flow within 2T of its start,
//! its bytes must agree with what iperf3 itself reports, and nothing else may be called a cheetah.
//!
//! Needs root, `ip` (iproute2), `ping` and `iperf3`; says that it is skipped where one is missing.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

/// T, the flight duration that the test asks for.
const FLIGHT_DURATION: Duration = Duration::from_millis(100);
const SENDER: &str = "192.0.2.1";
const RECEIVER: &str = "192.0.2.2";
const IPERF3_PORT: u64 = 5201;
const ICMP: u64 = 1;
const TCP: u64 = 6;
/// An IPv4 header and a TCP header with the time-stamp option (RFC 791, RFC 9293, RFC 7323): what Linux puts
/// before every data segment.
const HEADER_BYTES: u64 = 20 + 20 + 12;

#[test]
fn an_iperf3_transfer_is_found_within_two_flights_and_its_bytes_agree_with_iperf3() {
    let Some(link) = Link::set_up("an_iperf3_transfer_is_found") else { return };
    let scratch = tempfile::tempdir().unwrap();

    let watch = Watch::start(&link, scratch.path());
    let ping =
        Running(link.at_sender("ping").args(["-i", "0.2", RECEIVER]).stdout(Stdio::null()).spawn().unwrap());
    let transfer = Transfer::run(&link);
    drop(ping);
    let lines = watch.interrupt();

    // The data connection; iperf3's control connection has the same port at the receiver.
    let is_transfer = |line: &Value| {
        let flow = &line["flow"];
        number(flow, "protocol") == TCP
            && flow["src"] == SENDER
            && number(flow, "src_port") == transfer.sender_port
            && flow["dst"] == RECEIVER
            && number(flow, "dst_port") == IPERF3_PORT
    };
    let of_type = |name: &'static str| lines.iter().filter(move |line| line["type"] == name);

    let records: Vec<_> = of_type("flow").filter(|line| is_transfer(line)).collect();
    assert!(
        !records.is_empty(),
        "no record of the transfer from port {} in {lines:#?}",
        transfer.sender_port
    );
    let start_ns = records.iter().map(|record| number(record, "first_ns")).min().unwrap();

    let cheetah = of_type("cheetah").find(|line| is_transfer(line)).expect("the transfer is a cheetah");
    let two_flights_ns = 2 * FLIGHT_DURATION.as_nanos() as u64;
    let detected_ns = number(cheetah, "detected_ns");
    assert!(detected_ns - number(cheetah, "first_ns") <= two_flights_ns, "found late: {cheetah}");
    assert!(detected_ns - start_ns <= two_flights_ns, "found late after {start_ns}: {cheetah}");
    let others: Vec<_> = of_type("cheetah").filter(|line| !is_transfer(line)).collect();
    assert!(others.is_empty(), "no cheetahs: {others:#?}");

    let is_ping = |line: &&Value| number(&line["flow"], "protocol") == ICMP;
    assert!(of_type("flow").any(|line| is_ping(&line)), "the ping was metered");

    let summary = lines.last().expect("a summary");
    assert_eq!(summary["type"], "summary");
    assert!(number(summary, "cheetahs") >= 1, "{summary}");
    assert_agree(payload_bytes(&records), transfer.received_bytes, summary);
}

/// Payload bytes from the transfer's sender, by the records' count of IP-layer bytes. Every packet has one IP and
/// one TCP header, however long it is, so that this holds with and without segmentation offload.
fn payload_bytes(records: &[&Value]) -> u64 {
    let sum = |field| records.iter().map(|record| number(record, field)).sum::<u64>();
    sum("bytes") - HEADER_BYTES * sum("packets")
}

/// Within 1 %. They differ by nature by what is sent again, and by what the receiver has not read from its socket
/// when the time is up: at most a few socket buffers of 128 KiB, against 75 MB in all.
fn assert_agree(metered: u64, reported: u64, summary: &Value) {
    assert!(
        metered.abs_diff(reported) * 100 <= reported,
        "{metered} payload bytes metered, {reported} reported by iperf3; {summary}"
    );
}

/// The unsigned integer in `field`.
fn number(object: &Value, field: &str) -> u64 {
    object[field].as_u64().unwrap_or_else(|| panic!("no unsigned integer '{field}' in {object}"))
}

/// Two namespaces and the veth pair between them, for as long as the value lives.
struct Link {
    sender: String,
    receiver: String,
    /// The sender's end.
    interface: String,
}

impl Link {
    /// Sets it up, or says why `test` is skipped.
    fn set_up(test: &str) -> Option<Link> {
        let skip = |reason: &str| {
            // Straight to the stream: what a passing test prints through the macros is not shown.
            std::io::stderr().write_all(format!("skipped: {test}: {reason}\n").as_bytes()).unwrap();
            None
        };
        for (program, version_flag) in [("ip", "-V"), ("ping", "-V"), ("iperf3", "-v")] {
            let version = Command::new(program).arg(version_flag).output();
            if !version.is_ok_and(|version| version.status.success()) {
                return skip(&format!("needs {program}"));
            }
        }
        let id = std::process::id();
        let link = Link {
            sender: format!("twl-{id}-sender"),
            receiver: format!("twl-{id}-receiver"),
            interface: format!("twl{id}s"),
        };
        let peer = format!("twl{id}r");
        let (sender, receiver, interface) = (&link.sender, &link.receiver, &link.interface);
        for namespace in [sender, receiver] {
            if !ip(&format!("netns add {namespace}")).success() {
                return skip("needs root and the right to make network namespaces");
            }
        }
        let pair = format!("link add {interface} netns {sender} type veth peer name {peer} netns {receiver}");
        assert!(ip(&pair).success(), "{pair}");
        for (namespace, interface, address) in [(sender, interface, SENDER), (receiver, &peer, RECEIVER)] {
            assert!(ip(&format!("-n {namespace} address add {address}/24 dev {interface}")).success());
            assert!(ip(&format!("-n {namespace} link set {interface} up")).success());
            // Packets of the MTU rather than of 64 KiB, so that headers weigh enough for a wrong count of them to
            // show. It is no matter if there is no ethtool.
            let _ = within(namespace, "ethtool")
                .args(["-K", interface, "tso", "off", "gso", "off", "gro", "off"])
                .stdout(Stdio::null())
                .status();
        }
        Some(link)
    }

    fn at_sender(&self, program: &str) -> Command {
        within(&self.sender, program)
    }

    fn at_receiver(&self, program: &str) -> Command {
        within(&self.receiver, program)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        for namespace in [&self.sender, &self.receiver] {
            ip(&format!("netns delete {namespace}"));
        }
    }
}

/// `program`, to be run in `namespace`. The process that starts becomes the program itself.
fn within(namespace: &str, program: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, program]);
    command
}

fn ip(arguments: &str) -> ExitStatus {
    let command = Command::new("ip").args(arguments.split(' ')).stderr(Stdio::null()).status();
    command.expect("ip starts")
}

/// A process that ends with the value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `thalweg watch` at the sender's end of the link.
struct Watch {
    process: Running,
    output: std::path::PathBuf,
    errors: std::path::PathBuf,
}

impl Watch {
    /// Starts it, and returns once it listens.
    fn start(link: &Link, scratch: &Path) -> Watch {
        let (output, errors) = (scratch.join("output"), scratch.join("errors"));
        let child = link
            .at_sender(env!("CARGO_BIN_EXE_thalweg"))
            .args(["watch", "--json", "--flows"])
            .args(["--flight-duration", "100ms", "--rate-threshold", "50mbps"])
            .arg(&link.interface)
            .stdin(Stdio::null())
            .stdout(File::create(&output).unwrap())
            .stderr(File::create(&errors).unwrap())
            .spawn()
            .unwrap();
        let mut watch = Watch { process: Running(child), output, errors };
        watch.wait_until(Duration::from_secs(10), "it listens", |watch| {
            assert!(watch.exit_status().is_none(), "{}", watch.told());
            // One line a packet socket of the namespace, below a heading.
            let sockets = link.at_sender("cat").arg("/proc/net/packet").output().unwrap();
            String::from_utf8_lossy(&sockets.stdout).lines().count() > 1
        });
        sleep(Duration::from_millis(300)); // for what it does between opening its sockets and reading them
        watch
    }

    /// Ends it as Ctrl-C does, and returns the objects that it wrote, one a line.
    fn interrupt(mut self) -> Vec<Value> {
        let interrupt = format!("kill -INT {}", self.process.0.id());
        assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
        self.wait_until(Duration::from_secs(10), "it ends", |watch| watch.exit_status().is_some());
        assert!(self.exit_status().unwrap().success(), "{}", self.told());
        let output = fs::read_to_string(&self.output).unwrap();
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
        output.lines().map(parse).collect()
    }

    fn exit_status(&mut self) -> Option<ExitStatus> {
        self.process.0.try_wait().unwrap()
    }

    fn told(&self) -> String {
        format!("thalweg said: {}", fs::read_to_string(&self.errors).unwrap())
    }

    fn wait_until(&mut self, patience: Duration, what: &str, mut holds: impl FnMut(&mut Watch) -> bool) {
        let deadline = Instant::now() + patience;
        while !holds(self) {
            assert!(Instant::now() < deadline, "waited {patience:?} until {what}; {}", self.told());
            sleep(Duration::from_millis(20));
        }
    }
}

/// What iperf3 reports of its transfer.
struct Transfer {
    sender_port: u64,
    received_bytes: u64,
}

impl Transfer {
    /// Sends 200 Mbit/s for 3 s over one TCP connection.
    fn run(link: &Link) -> Transfer {
        let server = link.at_receiver("iperf3").arg("--server").stdout(Stdio::null()).spawn();
        let _server = Running(server.unwrap());
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let client = ["--client", RECEIVER, "--bitrate", "200M", "--time", "3", "--json"];
            let output = link.at_sender("iperf3").args(client).output().unwrap();
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            // Its exit status says nothing: it is 0 after some failures.
            if report["error"].is_null() && !report["end"]["sum_received"].is_null() {
                return Transfer {
                    sender_port: number(&report["start"]["connected"][0], "local_port"),
                    received_bytes: number(&report["end"]["sum_received"], "bytes"),
                };
            }
            // The server may not listen yet.
            assert!(Instant::now() < deadline, "iperf3: {report}");
            sleep(Duration::from_millis(100));
        }
    }
}
