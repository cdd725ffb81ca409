//! Transfers between hosts by iperf3: one process per transfer, and a server on every receiver.

use std::io::{self, Read as _};
use std::net::IpAddr;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::Deserialize;
use thalweg_control::Pair;
use thalweg_lab::{Lab, Namespace};
use thalweg_wire::BitRate;

use super::error::ScenarioError;

/// Port of the first server (registered for iperf3).
pub(super) const PORT: u16 = 5_201;

/// How much longer than planned a transfer may take.
const GRACE: Duration = Duration::from_secs(10);

/// The protocol, rate and duration of a transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Load {
    /// TCP at full speed for this time.
    Tcp(Duration),
    /// UDP at this rate for this time.
    Udp(BitRate, Duration),
}

/// Checks that iperf3 is installed.
///
/// # Errors
/// If it cannot be run.
pub(super) fn check() -> Result<(), ScenarioError> {
    let version =
        Command::new("iperf3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.map(|_| ()).map_err(ScenarioError::IperfMissing)
}

/// An iperf3 server for one transfer at a time; it stops on drop.
pub(super) struct Server {
    process: Child,
}

impl Server {
    /// Starts a server on the destination of a pair, at port 5201 + `number`.
    ///
    /// # Errors
    /// If iperf3 cannot be started.
    pub(super) fn start(lab: &Lab, pair: Pair, number: u16) -> Result<Server, ScenarioError> {
        Server::start_on(&lab.host(pair.destination), number)
    }

    /// Starts a server in a namespace, at port 5201 + `number`.
    ///
    /// # Errors
    /// If iperf3 cannot be started.
    pub(super) fn start_on(namespace: &Namespace, number: u16) -> Result<Server, ScenarioError> {
        let mut command = Command::new("iperf3");
        command.args(["--server", "--port", &(PORT + number).to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Server { process: namespace.spawn(&mut command)? })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// The ends of a transfer.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    /// The namespace of the sender.
    pub(super) from: Namespace,
    /// The names of sender and receiver, for messages.
    pub(super) names: [String; 2],
    /// The address of the receiver.
    pub(super) address: IpAddr,
}

/// A running transfer; it stops on drop.
pub(super) struct Transfer {
    process: Child,
    output: Option<JoinHandle<io::Result<String>>>,
    from: String,
    to: String,
    deadline: Instant,
}

/// The result of a transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Transferred {
    /// Payload rate at the receiver, in bits per second.
    pub(super) rate: f64,
    /// Duration in seconds.
    pub(super) seconds: f64,
    /// Share of datagrams lost, 0 to 1 (UDP).
    pub(super) loss_ratio: f64,
}

impl Transfer {
    /// Starts a transfer from the source of a pair to server `number` at its destination.
    ///
    /// # Errors
    /// If iperf3 cannot be started.
    pub(super) fn start(lab: &Lab, pair: Pair, number: u16, load: Load) -> Result<Transfer, ScenarioError> {
        let topology = lab.topology();
        let host = |endpoint: thalweg_network::EndpointId| &topology.endpoints()[endpoint.index()];
        let ends = Ends {
            from: lab.host(pair.source),
            names: [pair.source, pair.destination].map(|endpoint| host(endpoint).name.clone()),
            address: host(pair.destination).ip.into(),
        };
        Transfer::start_between(&ends, number, load, None)
    }

    /// Starts a transfer to server `number`, with another congestion control than the default if one is given.
    ///
    /// # Errors
    /// If iperf3 cannot be started.
    pub(super) fn start_between(
        ends: &Ends,
        number: u16,
        load: Load,
        congestion_control: Option<&str>,
    ) -> Result<Transfer, ScenarioError> {
        Transfer::spawn(ends, number, load, congestion_control, 0)
    }

    /// Like [`start_between`](Self::start_between), with a report of every second.
    ///
    /// # Errors
    /// If iperf3 cannot be started.
    pub(super) fn start_reporting(
        ends: &Ends,
        number: u16,
        load: Load,
        congestion_control: &str,
    ) -> Result<Transfer, ScenarioError> {
        Transfer::spawn(ends, number, load, Some(congestion_control), 1)
    }

    /// Starts a TCP transfer to server `number`, whose rate is that of the `duration` after a warm-up.
    ///
    /// # Errors
    /// If iperf3 cannot be started.
    pub(super) fn start_steady(
        ends: &Ends,
        number: u16,
        warm_up: Duration,
        duration: Duration,
    ) -> Result<Transfer, ScenarioError> {
        let mut command = Command::new("iperf3");
        command.args(["--omit", &warm_up.as_secs().to_string()]);
        let mut transfer = Transfer::spawn_with(command, ends, number, Load::Tcp(duration), None, 0)?;
        transfer.deadline += warm_up;
        Ok(transfer)
    }

    /// `interval` is in seconds; 0 for none.
    fn spawn(
        ends: &Ends,
        number: u16,
        load: Load,
        congestion_control: Option<&str>,
        interval: u32,
    ) -> Result<Transfer, ScenarioError> {
        Transfer::spawn_with(Command::new("iperf3"), ends, number, load, congestion_control, interval)
    }

    fn spawn_with(
        mut command: Command,
        ends: &Ends,
        number: u16,
        load: Load,
        congestion_control: Option<&str>,
        interval: u32,
    ) -> Result<Transfer, ScenarioError> {
        command.args(["--client", &ends.address.to_string()]);
        if let Some(name) = congestion_control {
            command.args(["--congestion", name]);
        }
        command.args([
            "--port",
            &(PORT + number).to_string(),
            "--json",
            "--connect-timeout",
            "2000",
            "--interval",
            &interval.to_string(),
        ]);
        let seconds = |time: Duration| time.as_secs().max(1).to_string();
        let time = match load {
            Load::Tcp(time) => {
                command.args(["--time", &seconds(time)]);
                time
            }
            Load::Udp(rate, time) => {
                command.args(["--udp", "--bitrate", &rate.0.to_string(), "--time", &seconds(time)]);
                time
            }
        };
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = ends.from.spawn(&mut command)?;
        let [from, to] = ends.names.clone();
        // A pipe holds less than the report of a long transfer.
        let output = process.stdout.take().map(|mut out| {
            thread::spawn(move || {
                let mut text = String::new();
                out.read_to_string(&mut text).map(|_| text)
            })
        });
        Ok(Transfer { process, output, from, to, deadline: Instant::now() + time + GRACE })
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        self.process.try_wait().map_or(true, |status| status.is_some())
    }

    /// Waits until the transfer ends.
    ///
    /// # Errors
    /// If it failed, took too long, or `is_stopped` returned true.
    pub(super) fn finish(self, is_stopped: impl Fn() -> bool) -> Result<Transferred, ScenarioError> {
        Ok(self.finish_with_intervals(is_stopped)?.0)
    }

    /// Like [`finish`](Self::finish), and returns the reported intervals.
    ///
    /// # Errors
    /// See [`finish`](Self::finish).
    pub(super) fn finish_with_intervals(
        mut self,
        is_stopped: impl Fn() -> bool,
    ) -> Result<(Transferred, Vec<Interval>), ScenarioError> {
        while !self.has_ended() {
            if is_stopped() {
                return Err(ScenarioError::Interrupted);
            }
            if Instant::now() > self.deadline {
                return Err(self.failed("did not finish in time"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let output = self.output.take().map(JoinHandle::join);
        let text = output.unwrap_or_else(|| Ok(Ok(String::new())));
        let text = text.map_err(|_| self.failed("reading its output panicked"))?;
        let text = text.map_err(|error| self.failed(&error.to_string()))?;
        let report: Report =
            serde_json::from_str(&text).map_err(|_| self.failed("its output is not a JSON report"))?;
        if let Some(error) = report.error {
            return Err(self.failed(&error));
        }
        let sum = report.end.and_then(|end| end.sum_received.or(end.sum));
        let sum = sum.ok_or_else(|| self.failed("its report has no receiver statistics"))?;
        let streams = report.intervals.into_iter().filter_map(|interval| interval.streams.into_iter().next());
        let transferred = Transferred {
            rate: sum.bits_per_second,
            seconds: sum.seconds,
            loss_ratio: sum.lost_percent / 100.0,
        };
        Ok((transferred, streams.collect()))
    }

    fn failed(&self, reason: &str) -> ScenarioError {
        ScenarioError::Iperf { from: self.from.clone(), to: self.to.clone(), reason: reason.to_owned() }
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// Kills a process and waits for it.
fn end(process: &mut Child) {
    // Fails if it has already ended.
    let _ = process.kill();
    let _ = process.wait();
}

/// The parts of iperf3's report that are used.
#[derive(Deserialize)]
struct Report {
    error: Option<String>,
    #[serde(default)]
    intervals: Vec<Intervals>,
    end: Option<End>,
}

#[derive(Deserialize)]
struct Intervals {
    #[serde(default)]
    streams: Vec<Interval>,
}

/// The state of a TCP sender at the end of an interval (`TCP_INFO`), and what it sent again within.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Interval {
    /// Segments sent again.
    #[serde(default)]
    pub(super) retransmits: u64,
    /// The congestion window in bytes.
    #[serde(default)]
    pub(super) snd_cwnd: u64,
    /// The smoothed round trip in microseconds.
    #[serde(default)]
    pub(super) rtt: u64,
}

#[derive(Deserialize)]
struct End {
    sum_received: Option<Sum>,
    sum: Option<Sum>,
}

#[derive(Deserialize)]
struct Sum {
    bits_per_second: f64,
    seconds: f64,
    #[serde(default)]
    lost_percent: f64,
}
