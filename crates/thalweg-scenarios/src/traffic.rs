//! Transfers between hosts, by iperf3: a process each, and one that listens on every receiver.

use std::io::{self, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;
use thalweg_control::Pair;
use thalweg_lab::Lab;
use thalweg_wire::BitRate;

use super::error::ScenarioError;

/// The port that receivers listen at first (registered for iperf3).
const PORT: u16 = 5_201;

/// How long a transfer may take beyond its time.
const GRACE: Duration = Duration::from_secs(10);

/// What is sent, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Load {
    /// TCP, as fast as it goes, for so long.
    Tcp(Duration),
    /// UDP, at this rate for so long.
    Udp(BitRate, Duration),
}

/// Says whether there is an iperf3.
///
/// # Errors
/// If there is none.
pub(super) fn check() -> Result<(), ScenarioError> {
    let version =
        Command::new("iperf3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.map(|_| ()).map_err(ScenarioError::NoIperf)
}

/// A receiver that listens, one transfer at a time; it ends when this is dropped.
pub(super) struct Server {
    process: Child,
}

impl Server {
    /// Listens on the destination of a pair, at the port that its `number` says.
    ///
    /// # Errors
    /// If iperf3 cannot be started.
    pub(super) fn start(lab: &Lab, pair: Pair, number: u16) -> Result<Server, ScenarioError> {
        let mut command = Command::new("iperf3");
        command.args(["--server", "--port", &(PORT + number).to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Server { process: lab.host(pair.destination).spawn(&mut command)? })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// A transfer under way; it ends when this is dropped.
pub(super) struct Transfer {
    process: Child,
    from: String,
    to: String,
    deadline: Instant,
}

/// What came of a transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Transferred {
    /// What the receiver got, in bits per second of payload.
    pub(super) rate: f64,
    /// In how many seconds.
    pub(super) seconds: f64,
    /// Datagrams lost, as a share (UDP).
    pub(super) lost: f64,
}

impl Transfer {
    /// Sends from the source of a pair to the server of this `number` at its destination.
    ///
    /// # Errors
    /// If iperf3 cannot be started.
    pub(super) fn start(lab: &Lab, pair: Pair, number: u16, load: Load) -> Result<Transfer, ScenarioError> {
        let topology = lab.topology();
        let host = |endpoint: thalweg_network::EndpointId| &topology.endpoints()[endpoint.index()];
        let mut command = Command::new("iperf3");
        command.args(["--client", &host(pair.destination).ip.to_string()]);
        command.args([
            "--port",
            &(PORT + number).to_string(),
            "--json",
            "--connect-timeout",
            "2000",
            "--interval",
            "0",
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
        let process = lab.host(pair.source).spawn(&mut command)?;
        let (from, to) = (host(pair.source).name.clone(), host(pair.destination).name.clone());
        Ok(Transfer { process, from, to, deadline: Instant::now() + time + GRACE })
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        self.process.try_wait().map_or(true, |status| status.is_some())
    }

    /// Waits for its end, and for `is_stopped`.
    ///
    /// # Errors
    /// If it failed, took too long or was interrupted.
    pub(super) fn finish(mut self, is_stopped: impl Fn() -> bool) -> Result<Transferred, ScenarioError> {
        while !self.has_ended() {
            if is_stopped() {
                return Err(ScenarioError::Interrupted);
            }
            if Instant::now() > self.deadline {
                return Err(self.failed("it does not come to an end"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // At most some kilobytes, which the pipe has held.
        let mut text = String::new();
        let said = self.process.stdout.take().map(|mut out| out.read_to_string(&mut text));
        said.unwrap_or(Ok(0)).map_err(|error: io::Error| self.failed(&error.to_string()))?;
        let report: Report =
            serde_json::from_str(&text).map_err(|_| self.failed("it says nothing of use"))?;
        if let Some(error) = report.error {
            return Err(self.failed(&error));
        }
        let sum = report.end.and_then(|end| end.sum_received.or(end.sum));
        let sum = sum.ok_or_else(|| self.failed("it does not say what was received"))?;
        Ok(Transferred { rate: sum.bits_per_second, seconds: sum.seconds, lost: sum.lost_percent / 100.0 })
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

/// Ends a process and waits for it.
fn end(process: &mut Child) {
    // One that has ended cannot be killed.
    let _ = process.kill();
    let _ = process.wait();
}

/// What of iperf3's report is read.
#[derive(Deserialize)]
struct Report {
    error: Option<String>,
    end: Option<End>,
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
