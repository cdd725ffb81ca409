//! Real sockets through the custom scheme in real time: short flows overtake long ones, by the remaining bytes that the kernel knows.

#![cfg(target_os = "linux")]

mod hosts;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hosts::Hosts;
use thalweg_linux::clock;
use thalweg_realtime::endpoint::{EndpointProcess, ProcessOptions};
use thalweg_wire::Nanos;

/// The receiver, two hosts with long flows, and one with short flows.
const HOSTS: u16 = 4;
const RECEIVER: u16 = 0;
const LONG: [u16; 2] = [1, 2];
const SHORT: u16 = 3;

/// The rate of the links in Mbit/s: a short flow alone takes 13 ms, and a full queue of 256 packets takes 157 ms.
const MBPS: &str = "20";
const SHORT_BYTES: usize = 30_000;

/// The number of short flows that are measured, after the queue had time to grow.
const FLOWS: usize = 15;
const LEAD: Duration = Duration::from_secs(2);

/// A send buffer that holds much of a long flow, so that the kernel knows that it is long.
const SEND_BUFFER: &str = "4096 8388608 8388608";

fn skip(reason: &str) {
    let _ = std::io::stderr().write_all(format!("skipped: least-slack in real time: {reason}\n").as_bytes());
}

#[test]
fn short_flows_overtake_long_ones_if_packets_carry_their_remaining_bytes() {
    let Some(hosts) = Hosts::new(HOSTS) else {
        return skip("needs root and ip(8) to make network namespaces");
    };
    let Some(without) = median(&hosts, false) else { return };
    let Some(with) = median(&hosts, true) else { return };
    // 13 ms and a few round trips of the busy machine, against a queue of two long flows.
    assert!(with * 2 < without, "{with:?} with remaining bytes, {without:?} without");
}

/// Returns the median time of short flows beside the long ones; `None` if the machine cannot run endpoints.
fn median(hosts: &Hosts, sends_remaining: bool) -> Option<Duration> {
    let arbiter = Scheme::start();
    let is_stopped = Arc::new(AtomicBool::new(false));
    let start = |number| endpoint(hosts, number, arbiter.address, sends_remaining, &is_stopped);
    let endpoints: Vec<JoinHandle<Result<(), String>>> = (0..HOSTS).map(start).collect();
    thread::sleep(Duration::from_millis(300));
    let failed = endpoints.iter().any(JoinHandle::is_finished);
    let mut times = if failed { Vec::new() } else { measure(hosts) };
    is_stopped.store(true, Ordering::Relaxed);
    for endpoint in endpoints {
        if let Err(error) = endpoint.join().unwrap() {
            skip(&error);
        }
    }
    let report = arbiter.finish();
    assert!(failed || report.contains("delivered"), "{report}");
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

/// The times of short flows beside the long ones.
fn measure(hosts: &Hosts) -> Vec<Duration> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for host in LONG {
            let (mut sender, mut receiver) = connect(hosts, host);
            let is_over = &is_over;
            scope.spawn(
                move || while !is_over.load(Ordering::Relaxed) && sender.write_all(&[0; 65_536]).is_ok() {},
            );
            scope.spawn(move || {
                let mut room = [0; 65_536];
                while receiver.read(&mut room).is_ok_and(|count| count > 0)
                    && !is_over.load(Ordering::Relaxed)
                {}
            });
        }
        let (mut sender, mut receiver) = connect(hosts, SHORT);
        thread::sleep(LEAD);
        let mut room = vec![0; SHORT_BYTES];
        let mut flow = || {
            let start = Instant::now();
            sender.write_all(&vec![0; SHORT_BYTES]).unwrap();
            receiver.read_exact(&mut room).unwrap();
            thread::sleep(Duration::from_millis(20));
            start.elapsed() - Duration::from_millis(20)
        };
        let times = (0..FLOWS).map(|_| flow()).collect();
        is_over.store(true, Ordering::Relaxed);
        times
    })
}

/// A connection from a host to the receiver.
fn connect(hosts: &Hosts, from: u16) -> (TcpStream, TcpStream) {
    let (receiver, sender) = (hosts.namespace(RECEIVER), hosts.namespace(from));
    let listener = receiver.within(|| TcpListener::bind((hosts.address(RECEIVER), 0)).unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    let stream = sender.within(|| {
        fs::write("/proc/sys/net/ipv4/tcp_wmem", SEND_BUFFER).unwrap();
        TcpStream::connect_timeout(&to, Duration::from_secs(20)).unwrap()
    });
    let (stream, accepted) = (stream.unwrap(), listener.accept().unwrap().0);
    for end in [&stream, &accepted] {
        end.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        end.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    }
    (stream, accepted)
}

/// Runs the endpoint of a host in a thread.
fn endpoint(
    hosts: &Hosts,
    number: u16,
    arbiter: SocketAddr,
    sends_remaining: bool,
    is_stopped: &Arc<AtomicBool>,
) -> JoinHandle<Result<(), String>> {
    let options = ProcessOptions {
        namespace: Some(hosts.namespace(number)),
        sends_remaining,
        ..ProcessOptions::new("eth0", number, arbiter, hosts.table())
    };
    let is_stopped = Arc::clone(is_stopped);
    thread::spawn(move || {
        let run = || {
            let mut process = EndpointProcess::start(options.clone())?;
            let end = clock::monotonic() + Nanos::from_secs(120);
            process.run(end, || is_stopped.load(Ordering::Relaxed), |_| ())?;
            process.finish(|| true, |_| ()).map(|_| ())
        };
        run().map_err(|error: thalweg_realtime::endpoint::ProcessError| error.to_string())
    })
}

/// The program as the arbiter; killed on drop.
struct Scheme {
    process: Child,
    notes: BufReader<ChildStderr>,
    address: SocketAddr,
    _experiment: tempfile::NamedTempFile,
}

impl Scheme {
    fn start() -> Scheme {
        let experiment = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
        let text = format!(
            "duration = \"1s\"\n[topology]\nshape = \"rack\"\nendpoints = {HOSTS}\nrate = \"{MBPS}mbps\"\n[scheme]\nname = \"least_slack\"\n"
        );
        fs::write(experiment.path(), text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_least-slack"));
        command.arg(experiment.path()).args(["--real-time", "--listen", "127.0.0.1:0"]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut notes = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains(" in real time on ") {
            line.clear();
            assert!(notes.read_line(&mut line).unwrap() > 0, "it ended");
        }
        let address = line.split_whitespace().last().and_then(|word| word.parse().ok());
        let address = address.unwrap_or_else(|| panic!("{line}"));
        Scheme { process, notes, address, _experiment: experiment }
    }

    /// Ends it. Returns its report.
    fn finish(mut self) -> String {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let mut report = String::new();
        self.process.stdout.take().unwrap().read_to_string(&mut report).unwrap();
        self.notes.read_to_string(&mut report).unwrap();
        assert!(self.process.wait().unwrap().success(), "{report}");
        report
    }
}

impl Drop for Scheme {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
