//! Labs whose hosts are connected by an emulated network: `thalweg lab up --emulate`.
//!
//! `thalweg-lab` makes the hosts, and starts this program as arbiter and endpoints. This module plans that from an experiment file, asks running
//! arbiters for their state, and reports.

mod paths;
pub mod report;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use thalweg_emulator::hosts::{Algorithm, Transport};
use thalweg_emulator::schemes::Scheme;
use thalweg_experiment::{Experiment, Plan};
use thalweg_lab::{EmulatedLab, EmulatedPlan, EmulatedStatus, HostTcp, Prefix};
use thalweg_linux::priority::processors;
use thalweg_realtime::arbiter::LiveStatus;
use thalweg_realtime::protocol::EndpointOptions;
use thalweg_wire::emulation_protocol::FLOW_WINDOW;
use thalweg_wire::{BitRate, Bytes, Nanos};

use paths::Paths;

/// How long a packet may wait in the queues of the emulated network before its endpoint gives up, beyond the delay of the longest path.
const LONGEST_QUEUEING: Nanos = Nanos::from_secs(10);

/// A TCP buffer, in products of rate and one-way delay: two for a round trip, twice that for a full queue, and the kernel offers half of
/// a buffer as window.
const BUFFER_FLIGHTS: u64 = 8;

/// The largest TCP buffer.
const MAX_BUFFER: Bytes = Bytes(1 << 29);

/// How long an arbiter may take to answer. One that was stopped does not.
const ANSWER: Duration = Duration::from_millis(500);

/// What to create.
#[derive(Clone, Debug)]
pub struct LabRequest {
    /// The experiment file.
    pub file: PathBuf,
    /// Random seed, instead of the file's.
    pub seed: Option<u64>,
    /// Whether to start a secondary arbiter.
    pub has_standby: bool,
    /// How endpoints wait: a value of `endpoint --wait`.
    pub wait: String,
    /// Whether they do not sleep.
    pub polls: bool,
    /// The time that is added to the emulated delay of all packets. With the least, no packet is early while the arbiter is behind.
    /// `None`: packets leave with their answer.
    pub overhead: Option<Nanos>,
    /// How long requests and answers wait for others.
    pub batch_delay: Option<Nanos>,
    /// Delay of a late timeslot.
    pub late_after: Option<Nanos>,
    /// The congestion control of the hosts, instead of that of the file's transport.
    pub congestion_control: Option<String>,
    /// The folder for reports and logs.
    pub output: Option<PathBuf>,
}

/// What will be created.
pub struct LabPlan {
    /// The lab.
    pub plan: EmulatedPlan,
    /// Settings that are valid and probably not meant.
    pub warnings: Vec<String>,
}

/// The state of a lab, with that of its arbiters.
#[derive(Clone, Debug)]
pub struct LabStatus {
    /// The lab.
    pub lab: EmulatedStatus,
    /// What the arbiters answer, in their order; `None` for one that does not.
    pub arbiters: Vec<Option<LiveStatus>>,
}

/// Plans a lab.
///
/// # Errors
/// If the experiment is invalid, or this program cannot be found.
pub fn plan(request: &LabRequest, prefix: Prefix) -> anyhow::Result<LabPlan> {
    let mut experiment = Experiment::load(&request.file)?;
    if let Some(seed) = request.seed {
        experiment.set("seed", &seed.to_string(), "--seed")?;
    }
    let Plan { topology, mtu, scheme, hosts, mut warnings, .. } = Plan::for_real_time(&experiment)?;
    let paths = Paths::new(&topology)?;
    let (delay, flight) = (paths.longest_delay(), paths.largest_flight());
    warnings.extend(window_warning(flight, mtu));
    let mut arbiter_arguments: Vec<OsString> = Vec::new();
    if let Some(seed) = request.seed {
        arbiter_arguments.extend(["--seed".into(), seed.to_string().into()]);
    }
    if let Some(late_after) = request.late_after {
        arbiter_arguments.extend(["--late-after".into(), format!("{}ns", late_after.0).into()]);
    }
    let deadline = Nanos(delay.0.saturating_add(LONGEST_QUEUEING.0));
    let nanoseconds = |time: Nanos| OsString::from(format!("{}ns", time.0));
    let mut endpoint_arguments: Vec<OsString> = vec!["--wait".into(), (&request.wait).into()];
    endpoint_arguments.extend(["--deadline".into(), nanoseconds(deadline)]);
    if let Some(overhead) = request.overhead {
        endpoint_arguments.extend(["--overhead".into(), nanoseconds(overhead)]);
    }
    if let Some(delay) = request.batch_delay {
        let arguments = ["--batch-delay".into(), nanoseconds(delay)];
        arbiter_arguments.extend(arguments.clone());
        endpoint_arguments.extend(arguments);
    }
    if matches!(scheme, Scheme::PFabric(_)) {
        endpoint_arguments.push("--remaining".into());
    }
    let processor = free_processor(&processors(), &EmulatedLab::processors_in_use(&prefix));
    if let Some((processor, Some(other))) = &processor {
        warnings.push(format!(
            "processor {processor} is also that of the arbiter of the lab {other}: timeslots of both will be late; remove one, or use a machine \
             with more processors"
        ));
    }
    let absolute = |path: &Path| {
        std::path::absolute(path).with_context(|| format!("cannot find the directory of {}", path.display()))
    };
    let plan = EmulatedPlan {
        prefix,
        topology: Arc::new(topology),
        mtu,
        program: env::current_exe().context("cannot find this program")?,
        experiment: absolute(&request.file)?,
        arbiter_arguments,
        endpoint_arguments,
        has_standby: request.has_standby,
        processor: processor.map(|(processor, _)| processor),
        tcp_buffer: Bytes(flight.0.0.saturating_mul(BUFFER_FLIGHTS)).min(MAX_BUFFER),
        tcp: host_tcp(&hosts.transport, request.congestion_control.as_deref()),
        output: request.output.as_deref().map(absolute).transpose()?,
    };
    Ok(LabPlan { plan, warnings })
}

/// The processor for the arbiter: the last one that no other lab has. The first one is for hosts and endpoints. If all others are taken, the last
/// one, with the lab that has it. `None` if there are not several.
fn free_processor(all: &[usize], taken: &[(Prefix, usize)]) -> Option<(usize, Option<Prefix>)> {
    let [_, rest @ .., last] = all else { return None };
    let owner = |number: usize| taken.iter().find(|(_, other)| *other == number).map(|(lab, _)| lab.clone());
    let mut from_last = rest.iter().chain([last]).rev().copied();
    let free = from_last.find(|processor| owner(*processor).is_none());
    Some(free.map_or_else(|| (*last, owner(*last)), |processor| (processor, None)))
}

/// How the hosts use TCP: as the transport of the file, with the congestion control that was chosen, if any. pFabric is no protocol of the
/// kernel: its hosts use the default.
fn host_tcp(transport: &Transport, chosen: Option<&str>) -> HostTcp {
    let default = HostTcp::default();
    let (of_file, ecn) = match transport {
        Transport::Tcp(tcp) => {
            let name = match tcp.algorithm {
                Algorithm::NewReno => "reno",
                Algorithm::Dctcp => "dctcp",
                Algorithm::HTcp => "htcp",
                // The kernel's CUBIC has HyStart.
                _ => "cubic",
            };
            (name, tcp.ecn)
        }
        _ => (default.congestion_control.as_str(), default.ecn),
    };
    let congestion_control = chosen.unwrap_or(of_file).to_owned();
    HostTcp { ecn: ecn || congestion_control == "dctcp", congestion_control }
}

/// What the limits of endpoints do to a path that has so much data on the way, and such a delay.
fn window_warning((flight, delay): (Bytes, Nanos), mtu: u16) -> Option<String> {
    let limit = |packets: u64| Bytes(packets * u64::from(mtu));
    let [of_flow, of_host] = [FLOW_WINDOW, EndpointOptions::default().max_packets.into()].map(limit);
    let what = match () {
        () if flight > of_host => format!("a host has at most {}", BitRate::of(of_host, delay)),
        () if flight > of_flow => {
            let rate = BitRate::of(of_flow, delay);
            format!("a connection has at most {rate}, and several are needed to fill it")
        }
        () => return None,
    };
    Some(format!(
        "a path of {delay} has {flight} on the way, more than endpoints hold of a {}: {what}",
        if flight > of_host { "host" } else { "connection" }
    ))
}

/// Creates the output directory before anything else.
///
/// # Errors
/// If it cannot be created.
pub fn create_output(plan: &EmulatedPlan) -> anyhow::Result<()> {
    let Some(folder) = &plan.output else { return Ok(()) };
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}

/// Returns the state of a lab. Asks arbiters that run.
///
/// # Errors
/// If the lab no longer exists.
pub fn status(lab: &EmulatedLab) -> anyhow::Result<LabStatus> {
    let status = lab.status()?;
    let ask = |arbiter: &thalweg_lab::ArbiterStatus| match arbiter.process.is_running {
        true => LiveStatus::ask(arbiter.address, ANSWER).ok().flatten(),
        false => None,
    };
    let arbiters = lab.fabric().within(|| status.arbiters.iter().map(ask).collect())?;
    Ok(LabStatus { lab: status, arbiters })
}

/// Whether the run of each arbiter was valid, from the reports that they have written.
pub fn verdicts(status: &EmulatedStatus) -> Vec<Option<Verdict>> {
    status.arbiters.iter().map(|arbiter| Verdict::read(&arbiter.report)).collect()
}

/// What an arbiter reports on its run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// Whether few enough slots were late.
    pub is_valid: bool,
    /// The share of late and skipped slots, 0 to 1.
    pub late_share: f64,
    /// Requests of all endpoints.
    pub requests: u64,
    /// Packets that the emulated network dropped.
    pub dropped: u64,
}

impl Verdict {
    /// Reads a report; `None` if there is none.
    fn read(path: &Path) -> Option<Verdict> {
        let report: Value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        Some(Verdict {
            is_valid: report["valid"].as_bool()?,
            late_share: report["late_share"].as_f64()?,
            requests: report["requests"].as_u64()?,
            dropped: report["packets"]["dropped"].as_u64()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPERIMENT: &str = "\
duration = \"1s\"

[topology]
shape = \"rack\"
endpoints = 3
rate = \"1gbps\"
delay = \"50ms\"
mtu = 9000

[scheme]
name = \"pfabric\"
";

    fn request(file: PathBuf) -> LabRequest {
        LabRequest {
            file,
            seed: Some(7),
            has_standby: false,
            wait: "sleep".to_owned(),
            polls: false,
            overhead: Some(Nanos::from_micros(300)),
            batch_delay: Some(Nanos::from_micros(500)),
            late_after: Some(Nanos::from_millis(1)),
            congestion_control: None,
            output: None,
        }
    }

    #[test]
    fn a_plan_follows_from_the_experiment() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("wan.toml");
        fs::write(&file, EXPERIMENT).unwrap();
        let LabPlan { plan, warnings } = plan(&request(file.clone()), Prefix::default()).unwrap();
        assert_eq!((plan.mtu, plan.topology.endpoints().len(), &plan.experiment), (9_000, 3, &file));
        assert_eq!(
            plan.arbiter_arguments,
            ["--seed", "7", "--late-after", "1000000ns", "--batch-delay", "500000ns"]
        );
        // The path takes 100 ms, and pFabric needs the remaining bytes.
        let expected = [
            "--wait",
            "sleep",
            "--deadline",
            "10100000000ns",
            "--overhead",
            "300000ns",
            "--batch-delay",
            "500000ns",
            "--remaining",
        ];
        assert_eq!(plan.endpoint_arguments, expected);
        assert_eq!(plan.tcp_buffer, Bytes(100_000_000));
        assert!(warnings.is_empty(), "1,389 packets of 9,000 bytes: {warnings:?}");
    }

    #[test]
    fn each_lab_has_a_processor_for_its_arbiter_while_there_are_some() {
        let lab = |name: &str, processor| (name.parse::<Prefix>().unwrap(), processor);
        assert_eq!(free_processor(&[0], &[]), None);
        assert_eq!(free_processor(&[0, 1], &[]), Some((1, None)));
        let taken = [lab("a-", 3), lab("b-", 2)];
        assert_eq!(free_processor(&[0, 1, 2, 3], &taken), Some((1, None)));
        assert_eq!(free_processor(&[0, 2, 3], &taken), Some((3, Some("a-".parse().unwrap()))));
    }

    #[test]
    fn hosts_use_the_transport_of_the_file_unless_another_is_chosen() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rack.toml");
        let tcp = |text: &str, chosen: Option<&str>| {
            fs::write(&file, format!("duration = \"1s\"\n\n{text}")).unwrap();
            let request =
                LabRequest { congestion_control: chosen.map(str::to_owned), ..request(file.clone()) };
            let HostTcp { congestion_control, ecn } = plan(&request, Prefix::default()).unwrap().plan.tcp;
            (congestion_control, ecn)
        };
        let scheme = |name: &str| format!("[scheme]\nname = \"{name}\"\n");
        let transport = |name: &str| format!("[transport]\nname = \"{name}\"\n");
        let is = |name: &str, ecn| (name.to_owned(), ecn);
        assert_eq!(tcp("", None), is("cubic", false));
        assert_eq!(tcp(&scheme("hull"), None), is("dctcp", true));
        assert_eq!(tcp(&scheme("dctcp"), Some("reno")), is("reno", false));
        assert_eq!(tcp(&scheme("red_ecn"), None), is("cubic", true));
        assert_eq!(tcp(&scheme("red_ecn"), Some("bbr")), is("bbr", true));
        assert_eq!(tcp(&scheme("pfabric"), None), is("cubic", false));
        assert_eq!(tcp("", Some("dctcp")), is("dctcp", true));
        for (name, kernel) in [("new_reno", "reno"), ("cubic_hystart", "cubic"), ("h_tcp", "htcp")] {
            assert_eq!(tcp(&transport(name), None), is(kernel, false));
        }
    }

    #[test]
    fn paths_with_more_packets_than_endpoints_hold_are_named() {
        let warning = |mbps: u64, mtu| {
            let delay = Nanos::from_millis(100);
            window_warning((BitRate(mbps * 1_000_000).amount_in(delay), delay), mtu)
        };
        assert_eq!(warning(400, 1_500), None);
        assert_eq!(
            warning(1_000, 1_500).unwrap(),
            "a path of 100 ms has 12.5 MB on the way, more than endpoints hold of a connection: a connection has at most 492 Mbit/s, and \
             several are needed to fill it"
        );
        assert_eq!(
            warning(10_000, 1_500).unwrap(),
            "a path of 100 ms has 125 MB on the way, more than endpoints hold of a host: a host has at most 1.97 Gbit/s"
        );
    }
}
