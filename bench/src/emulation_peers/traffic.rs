//! TCP of iperf3 from all senders to the receiver, and a ping beside it.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use thalweg_linux::clock::realtime;

use super::network::Network;
use super::processors::{ProcessorUse, Processors};
use crate::sketches::peers::succeed;

/// Seconds of TCP before the measurement: slow start.
const WARM_UP: u64 = 2;

/// The first port of the receiver.
const PORT: usize = 5_201;

/// How long servers may take to start.
const START: Duration = Duration::from_secs(30);

/// Time between two pings in seconds.
const PING_INTERVAL: &str = "0.02";

/// What was measured while TCP sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// TCP payload that arrived, in bits per second, by client.
    pub goodputs: Vec<f64>,
    /// Retransmitted segments.
    pub retransmits: u64,
    /// Pings, in the order of their replies.
    pub pings: Vec<Ping>,
    /// The start and the end, since 1970 in nanoseconds.
    pub window: Range<u64>,
    /// Processor time of the window.
    pub processors: ProcessorUse,
    /// Processor time from the first packet to the last, in seconds of a processor.
    pub processor_seconds: ProcessorUse,
}

/// A ping that was answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ping {
    /// When it was sent, since 1970 in nanoseconds.
    pub sent_ns: u64,
    /// Its round-trip time in milliseconds.
    pub round_trip_ms: f64,
}

/// Sends for `seconds` after the warm-up, with `flows` connections, which take the senders in turn.
///
/// # Errors
/// If a program fails or a host is not reachable.
pub fn run(network: &dyn Network, flows: u32, seconds: u64) -> anyhow::Result<Traffic> {
    let (receiver, senders) = network.hosts().split_last().context("a network without hosts")?;
    let address = format!("10.0.0.{}", network.hosts().len());
    // Also fills the neighbour tables, and finds a network that does not work.
    for sender in senders {
        let ping = within(sender, "ping").args(["-n", "-q", "-c", "1", "-w", "5", &address]).output()?;
        ensure!(ping.status.success(), "{address} does not answer a ping of {}", sender.display());
    }
    let shares = shares(flows, senders.len() as u32);
    let servers =
        (0..shares.len()).map(|number| server(receiver, number)).collect::<anyhow::Result<Vec<_>>>()?;
    wait_for_listeners(&servers)?;
    let (first, first_time) = (Processors::now(&network.processes())?, Instant::now());
    let clients = shares.iter().zip(senders.iter().cycle()).enumerate();
    let clients = clients.map(|(number, (flows, sender))| client(sender, &address, number, *flows, seconds));
    let clients: Vec<Child> = clients.collect::<anyhow::Result<_>>()?;
    sleep(Duration::from_secs(WARM_UP));
    let (start, before) = (realtime().0, Processors::now(&network.processes())?);
    let deadline = (seconds - 1).to_string();
    let mut ping = within(&senders[senders.len() / 2], "ping");
    ping.args(["-n", "-D", "-i", PING_INTERVAL, "-w", &deadline, &address]);
    let ping = ping.stdout(Stdio::piped()).spawn().context("cannot run ping")?;
    sleep(Duration::from_secs(seconds).saturating_sub(Duration::from_nanos(realtime().0 - start)));
    let (end, after) = (realtime().0, Processors::now(&network.processes())?);
    let pings = pings(&String::from_utf8_lossy(&ping.wait_with_output()?.stdout));
    let (mut goodputs, mut retransmits) = (Vec::new(), 0);
    for client in clients {
        let output = client.wait_with_output()?;
        let (goodput, repeated) = result(&output.stdout)?;
        goodputs.push(goodput);
        retransmits += repeated;
    }
    let last = Processors::now(&network.processes())?;
    Ok(Traffic {
        goodputs,
        retransmits,
        pings,
        window: start..end,
        processors: after.since(&before),
        processor_seconds: last.since(&first).times(first_time.elapsed().as_secs_f64()),
    })
}

/// Returns the connections of each client of iperf3: one client per sender, or more if one had too many connections.
fn shares(flows: u32, senders: u32) -> Vec<u32> {
    /// Connections of a client at most. iperf3 has 128.
    const MOST: u32 = 100;
    let clients = flows.min(senders).max(flows.div_ceil(MOST));
    (0..clients).map(|client| flows / clients + u32::from(client < flows % clients)).collect()
}

/// Returns a command within a network namespace.
pub fn within(namespace: &Path, program: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={}", namespace.display())).arg(program);
    command
}

/// Waits until all servers listen, which are in the same network namespace.
fn wait_for_listeners(servers: &[Server]) -> anyhow::Result<()> {
    let end = Instant::now() + START;
    let first = servers.first().context("no servers")?.0.id();
    loop {
        let tables = ["tcp", "tcp6"].map(|table| fs::read_to_string(format!("/proc/{first}/net/{table}")));
        let listeners: usize = tables.iter().flatten().map(|table| listeners(table)).sum();
        if listeners >= servers.len() {
            return Ok(());
        }
        ensure!(Instant::now() < end, "only {listeners} of {} servers of iperf3 listen", servers.len());
        sleep(Duration::from_millis(20));
    }
}

/// Returns the number of listening sockets in `/proc/net/tcp` or `tcp6`.
fn listeners(table: &str) -> usize {
    /// TCP_LISTEN (net/tcp_states.h).
    const LISTEN: &str = "0A";
    table.lines().filter(|line| line.split_whitespace().nth(3) == Some(LISTEN)).count()
}

/// A server, killed on drop.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn server(receiver: &Path, number: usize) -> anyhow::Result<Server> {
    let mut command = within(receiver, "iperf3");
    command.args(["--server", "--one-off", "--port", &(PORT + number).to_string()]);
    let started = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    started.map(Server).context("cannot run nsenter (Debian package util-linux)")
}

fn client(sender: &Path, address: &str, number: usize, flows: u32, seconds: u64) -> anyhow::Result<Child> {
    let (port, seconds, omitted) = ((PORT + number).to_string(), seconds.to_string(), WARM_UP.to_string());
    let mut command = within(sender, "iperf3");
    command.args(["--client", address, "--port", &port, "--time", &seconds, "--omit", &omitted]);
    command.args(["--congestion", "cubic", "--json", "--connect-timeout", "10000", "--interval", "0"]);
    command.args(["--parallel", &flows.to_string()]);
    command.stdout(Stdio::piped()).spawn().context("cannot run iperf3 (Debian package iperf3)")
}

/// Returns the goodput in bits per second and the retransmits of a client.
fn result(output: &[u8]) -> anyhow::Result<(f64, u64)> {
    let report: Value = serde_json::from_slice(output).context("unexpected output of iperf3")?;
    if let Some(error) = report["error"].as_str() {
        bail!("iperf3: {error}");
    }
    let end = &report["end"];
    let goodput = end["sum_received"]["bits_per_second"].as_f64().context("iperf3 reports no rate")?;
    Ok((goodput, end["sum_sent"]["retransmits"].as_u64().unwrap_or(0)))
}

/// Reads what `ping -D` prints. Its lines begin with the time of the reply, in seconds: `[1795872113.600376] 64 bytes from`.
fn pings(printed: &str) -> Vec<Ping> {
    let ping = |line: &str| {
        let (second, micros) = line.strip_prefix('[')?.split_once(']')?.0.split_once('.')?;
        let received = second.parse::<u64>().ok()? * 1_000_000_000 + micros.parse::<u64>().ok()? * 1_000;
        let round_trip_ms: f64 = line.split_once(" time=")?.1.split(' ').next()?.parse().ok()?;
        Some(Ping { sent_ns: received.saturating_sub((round_trip_ms * 1e6) as u64), round_trip_ms })
    };
    printed.lines().filter_map(ping).collect()
}

/// Checks that the programs are installed.
///
/// # Errors
/// Names the missing packages.
pub fn check() -> anyhow::Result<()> {
    let programs =
        [("iperf3", "iperf3"), ("ping", "iputils-ping"), ("nsenter", "util-linux"), ("ip", "iproute2")];
    let missing = programs.iter().filter(|(program, _)| !crate::timed::is_installed(program));
    let missing: Vec<_> = missing.map(|(_, package)| *package).collect();
    ensure!(missing.is_empty(), "not installed: `apt-get install {}` (Debian packages)", missing.join(" "));
    succeed(Command::new("iperf3").arg("--version")).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_pings_are_read() {
        let printed = "PING 10.0.0.6 (10.0.0.6) 56(84) bytes of data.\n[5.000001] 64 bytes from 10.0.0.6: icmp_seq=1 ttl=64 time=12.4 ms\n\
                       [6.500000] 64 bytes from 10.0.0.6: icmp_seq=2 ttl=64 time=0.051 ms\n\n--- 10.0.0.6 ping statistics ---\n\
                       2 packets transmitted, 2 received, 0% packet loss, time 19ms\n";
        let first = Ping { sent_ns: 4_987_601_000, round_trip_ms: 12.4 };
        let second = Ping { sent_ns: 6_499_949_000, round_trip_ms: 0.051 };
        assert_eq!(pings(printed), [first, second]);
    }

    #[test]
    fn connections_are_spread_over_senders() {
        assert_eq!(shares(5, 5), [1; 5]);
        assert_eq!(shares(2, 5), [1; 2]);
        assert_eq!(shares(12, 5), [3, 3, 2, 2, 2]);
        assert_eq!(shares(1_000, 1), [100; 10]);
    }

    #[test]
    fn only_listening_sockets_are_listeners() {
        let table = "  sl  local_address rem_address   st tx_queue\n   0: 00000000:1451 00000000:0000 0A 00000000:00000000\n   \
                     1: 0100000A:1451 0600000A:C350 01 00000000:00000000\n";
        assert_eq!(listeners(table), 1);
    }

    #[test]
    fn an_error_of_iperf3_is_an_error() {
        assert_eq!(result(b"{\"error\": \"refused\"}").unwrap_err().to_string(), "iperf3: refused");
        let report =
            br#"{"end": {"sum_received": {"bits_per_second": 5e6}, "sum_sent": {"retransmits": 7}}}"#;
        assert_eq!(result(report).unwrap(), (5e6, 7));
    }
}
