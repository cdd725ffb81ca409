//! The emulated lab of one scenario: created from an experiment, removed at its end.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use thalweg_lab::{EmulatedLab, EmulatedPlan, Lab, Namespace, Prefix};
use thalweg_network::EndpointId;

use crate::error::ScenarioError;
use crate::traffic::Ends;

/// The report of the arbiter in its folder.
const REPORT: &str = "real-time.json";

/// Counters of the interfaces of a thread's namespace.
const INTERFACES: &str = "/proc/thread-self/net/dev";

/// Time between two looks at whether to stop.
const LOOK: Duration = Duration::from_millis(100);

/// Plans the lab of an experiment file, with its reports in a folder.
pub type Planner<'a> = dyn Fn(&Path, &Prefix, &Path) -> Result<EmulatedPlan, String> + 'a;

/// What the arbiter reports on a run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct ArbiterRun {
    /// When slot 0 began, in nanoseconds since 1970.
    pub started_at_ns: u64,
    /// Whether few enough slots were late.
    pub valid: bool,
    /// Slots that were due and not skipped.
    pub slots: u64,
    /// Slots that started late.
    pub late_slots: u64,
    /// Slots of pauses.
    pub skipped_slots: u64,
    /// The share of late and skipped slots, 0 to 1.
    pub late_share: f64,
    /// The longest delay of a slot, in nanoseconds.
    pub worst_delay_ns: u64,
    /// Requests of all endpoints.
    pub requests: u64,
}

/// What an endpoint reports on its run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EndpointRun {
    /// Bytes of the packets that it read, from the Ethernet header on.
    pub(crate) intercepted_bytes: u64,
    /// What it added to the emulated delay of a packet, in the median.
    pub(crate) overhead_ns: u64,
    /// Packets that it dropped without a decision of the arbiter.
    pub(crate) undecided_packets: u64,
}

impl EndpointRun {
    /// Reads the log of the endpoint of a host in the folder of a lab that has ended.
    ///
    /// # Errors
    /// If there is no summary.
    pub(crate) fn read(folder: &Path, host: &str) -> Result<EndpointRun, ScenarioError> {
        let path = folder.join(format!("endpoint-{host}.log"));
        let failed = |reason: String| ScenarioError::Monitoring(format!("{}: {reason}", path.display()));
        let text = fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
        let line = text.lines().rev().find_map(|line| serde_json::from_str::<Summary>(line).ok());
        let line =
            line.ok_or_else(|| failed("expected a line with the summary of the endpoint".to_owned()))?;
        let Summary { packets, decisions, release_overhead } = line;
        Ok(EndpointRun {
            intercepted_bytes: packets.intercepted_bytes,
            overhead_ns: release_overhead.p50_ns.unwrap_or_default(),
            undecided_packets: packets.overflow
                + packets.too_long
                + decisions.refused_packets
                + decisions.refused_flows
                + decisions.refused_window
                + decisions.expired,
        })
    }
}

/// The parts of an endpoint's summary that are used.
#[derive(Deserialize)]
struct Summary {
    packets: PacketCounts,
    decisions: DecisionCounts,
    release_overhead: Times,
}

#[derive(Deserialize)]
struct PacketCounts {
    intercepted_bytes: u64,
    overflow: u64,
    too_long: u64,
}

#[derive(Deserialize)]
struct DecisionCounts {
    refused_packets: u64,
    refused_flows: u64,
    refused_window: u64,
    expired: u64,
}

#[derive(Deserialize)]
struct Times {
    p50_ns: Option<u64>,
}

/// A lab that is removed on drop.
pub(crate) struct EmulatedSession {
    lab: EmulatedLab,
    folder: PathBuf,
    stop: Arc<AtomicBool>,
}

impl EmulatedSession {
    /// Creates the lab of an experiment, with its reports in `folder`.
    ///
    /// # Errors
    /// If a lab with this prefix exists, the experiment is invalid, or the lab cannot be created.
    pub(crate) fn up(
        experiment: &str,
        planner: &Planner<'_>,
        prefix: &Prefix,
        folder: &Path,
        stop: &Arc<AtomicBool>,
    ) -> Result<EmulatedSession, ScenarioError> {
        EmulatedSession::up_with(experiment, planner, prefix, folder, stop, &[])
    }

    /// Creates the lab of an experiment, with further arguments of the arbiter and of the endpoints.
    ///
    /// # Errors
    /// See [`up`](EmulatedSession::up).
    pub(crate) fn up_with(
        experiment: &str,
        planner: &Planner<'_>,
        prefix: &Prefix,
        folder: &Path,
        stop: &Arc<AtomicBool>,
        arguments: &[&str],
    ) -> Result<EmulatedSession, ScenarioError> {
        if Lab::is_up(prefix) {
            return Err(ScenarioError::PrefixInUse { prefix: prefix.to_string() });
        }
        let file = folder.join("experiment.toml");
        fs::write(&file, experiment)
            .map_err(|error| ScenarioError::Monitoring(format!("{}: {error}", file.display())))?;
        let mut plan = planner(&file, prefix, folder).map_err(ScenarioError::Monitoring)?;
        plan.arbiter_arguments.extend(arguments.iter().map(Into::into));
        plan.endpoint_arguments.extend(arguments.iter().map(Into::into));
        Ok(EmulatedSession {
            lab: EmulatedLab::up(&plan)?,
            folder: folder.to_owned(),
            stop: Arc::clone(stop),
        })
    }

    /// Returns the namespace of a host.
    pub(crate) fn host(&self, number: u16) -> Namespace {
        self.lab.host(EndpointId(number))
    }

    /// Returns the address of a host.
    pub(crate) fn address(&self, number: u16) -> Ipv4Addr {
        self.lab.topology().endpoints()[usize::from(number)].ip
    }

    /// Returns the ends of a transfer between hosts.
    pub(crate) fn ends(&self, from: u16, to: u16) -> Ends {
        let name = |number: u16| self.lab.topology().endpoints()[usize::from(number)].name.clone();
        Ends { from: self.host(from), names: [name(from), name(to)], address: self.address(to).into() }
    }

    /// Returns the bytes that arbiter and endpoints have exchanged, with headers.
    ///
    /// # Errors
    /// If the kernel's counters cannot be read.
    pub(crate) fn loopback_bytes(&self) -> Result<u64, ScenarioError> {
        let table = self.lab.fabric().within(|| fs::read_to_string(INTERFACES))?;
        let bytes = table.ok().as_deref().and_then(received_by_loopback);
        bytes.ok_or_else(|| ScenarioError::Monitoring(format!("{INTERFACES}: expected the counters of lo")))
    }

    /// Waits.
    ///
    /// # Errors
    /// If the user wants the scenario to stop.
    pub(crate) fn sleep(&self, time: Duration) -> Result<(), ScenarioError> {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match left {
                Duration::ZERO => return Ok(()),
                _ if self.is_stopped() => return Err(ScenarioError::Interrupted),
                _ => thread::sleep(left.min(LOOK)),
            }
        }
    }

    /// Whether the user wants the scenario to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends the emulated network. Returns the report of the arbiter.
    ///
    /// # Errors
    /// If a process cannot be ended, or there is no report.
    pub(crate) fn finish(self) -> Result<ArbiterRun, ScenarioError> {
        self.lab.stop()?;
        let path = self.folder.join(REPORT);
        let failed = |reason: String| ScenarioError::Monitoring(format!("{}: {reason}", path.display()));
        let text = fs::read(&path).map_err(|error| failed(error.to_string()))?;
        serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))
    }
}

/// Returns the bytes received by `lo` in a table of interfaces.
fn received_by_loopback(table: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix("lo:"))?;
    line.split_whitespace().next()?.parse().ok()
}

impl Drop for EmulatedSession {
    fn drop(&mut self) {
        // Nobody is left to report to; the next lab of this prefix removes what is left.
        let _ = Lab::down(self.lab.prefix());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_bytes_are_in_the_table_of_interfaces() {
        let table = "Inter-|   Receive\n face |bytes    packets\n  eth0: 7 1 0\n    lo: 1234      9    0\n";
        assert_eq!(received_by_loopback(table), Some(1_234));
        assert_eq!(received_by_loopback("  eth0: 7 1 0\n"), None);
    }

    #[test]
    fn an_endpoint_without_a_summary_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            fs::write(folder.path().join("endpoint-h1.log"), text).unwrap();
            EndpointRun::read(folder.path(), "h1")
        };
        assert!(read("{\"type\":\"event\"}\n").unwrap_err().to_string().contains("endpoint-h1.log"));
        let summary = r#"{"type":"summary","packets":{"intercepted_bytes":9,"overflow":1,"too_long":2},"decisions":{"refused_packets":3,
            "refused_flows":4,"refused_window":5,"expired":6},"release_overhead":{"count":1,"p50_ns":70}}"#;
        let expected = EndpointRun { intercepted_bytes: 9, overhead_ns: 70, undecided_packets: 21 };
        assert_eq!(read(&summary.replace('\n', "")).unwrap(), expected);
    }
}
