//! TCP of iperf3 from all senders to the receiver, and a ping beside it.

use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use thalweg_linux::clock::realtime;

use super::network::Network;
use super::processors::{ProcessorUse, Processors};
use crate::sketches::peers::succeed;

/// Seconds of TCP before the measurement: slow start.
const WARM_UP: u64 = 2;

/// The first port of the receiver.
const PORT: u32 = 5_201;

/// Time between two pings in seconds.
const PING_INTERVAL: &str = "0.02";

/// What was measured while TCP sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// TCP payload that arrived, in bits per second, by flow.
    pub goodputs: Vec<f64>,
    /// Retransmitted segments.
    pub retransmits: u64,
    /// Round-trip times of pings in milliseconds.
    pub round_trips: Vec<f64>,
    /// The start and the end, since 1970 in nanoseconds.
    pub window: Range<u64>,
    /// Processor time.
    pub processors: ProcessorUse,
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
    let _servers = (0..flows).map(|flow| server(receiver, flow)).collect::<anyhow::Result<Vec<_>>>()?;
    sleep(Duration::from_millis(500));
    let clients = (0..flows).zip(senders.iter().cycle());
    let clients: Vec<Child> = clients
        .map(|(flow, sender)| client(sender, &address, flow, seconds))
        .collect::<anyhow::Result<_>>()?;
    sleep(Duration::from_secs(WARM_UP));
    let (start, before) = (realtime().0, Processors::now(&network.processes())?);
    let deadline = (seconds - 1).to_string();
    let mut ping = within(&senders[senders.len() / 2], "ping");
    ping.args(["-n", "-i", PING_INTERVAL, "-w", &deadline, &address]);
    let ping = ping.stdout(Stdio::piped()).spawn().context("cannot run ping")?;
    sleep(Duration::from_secs(seconds).saturating_sub(Duration::from_nanos(realtime().0 - start)));
    let (end, after) = (realtime().0, Processors::now(&network.processes())?);
    let round_trips = round_trips(&String::from_utf8_lossy(&ping.wait_with_output()?.stdout));
    let (mut goodputs, mut retransmits) = (Vec::new(), 0);
    for client in clients {
        let output = client.wait_with_output()?;
        let (goodput, repeated) = result(&output.stdout)?;
        goodputs.push(goodput);
        retransmits += repeated;
    }
    Ok(Traffic { goodputs, retransmits, round_trips, window: start..end, processors: after.since(&before) })
}

/// Returns a command within a network namespace.
pub fn within(namespace: &Path, program: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={}", namespace.display())).arg(program);
    command
}

/// A server, killed on drop.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn server(receiver: &Path, flow: u32) -> anyhow::Result<Server> {
    let mut command = within(receiver, "iperf3");
    command.args(["--server", "--one-off", "--port", &(PORT + flow).to_string()]);
    let started = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    started.map(Server).context("cannot run nsenter (Debian package util-linux)")
}

fn client(sender: &Path, address: &str, flow: u32, seconds: u64) -> anyhow::Result<Child> {
    let (port, seconds, omitted) = ((PORT + flow).to_string(), seconds.to_string(), WARM_UP.to_string());
    let mut command = within(sender, "iperf3");
    command.args(["--client", address, "--port", &port, "--time", &seconds, "--omit", &omitted]);
    command.args(["--congestion", "cubic", "--json", "--connect-timeout", "10000", "--interval", "0"]);
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

/// Returns the round-trip times of a ping in milliseconds.
fn round_trips(printed: &str) -> Vec<f64> {
    let time = |line: &str| line.split_once(" time=")?.1.split(' ').next()?.parse().ok();
    printed.lines().filter_map(time).collect()
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
        let printed = "PING 10.0.0.6 (10.0.0.6) 56(84) bytes of data.\n64 bytes from 10.0.0.6: icmp_seq=1 ttl=64 time=12.4 ms\n\
                       64 bytes from 10.0.0.6: icmp_seq=2 ttl=64 time=0.051 ms\n\n--- 10.0.0.6 ping statistics ---\n\
                       2 packets transmitted, 2 received, 0% packet loss, time 19ms\n";
        assert_eq!(round_trips(printed), [12.4, 0.051]);
    }

    #[test]
    fn an_error_of_iperf3_is_an_error() {
        assert_eq!(result(b"{\"error\": \"refused\"}").unwrap_err().to_string(), "iperf3: refused");
        let report =
            br#"{"end": {"sum_received": {"bits_per_second": 5e6}, "sum_sent": {"retransmits": 7}}}"#;
        assert_eq!(result(report).unwrap(), (5e6, 7));
    }
}
