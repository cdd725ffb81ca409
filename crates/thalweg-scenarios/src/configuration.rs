//! The daemon's configuration for a lab, as a user would write it for `thalweg serve`.

use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use thalweg_control::decide::greedy::GreedyOptions;
use thalweg_lab::{Plan, Plane};
use thalweg_network::routing::TreeOptions;
use thalweg_network::{Forwarding, LinkState, NetworkState, Node};
use thalweg_wire::{BitRate, Nanos};

use super::error::ScenarioError;
use super::session::trees;

/// Interval of repeated ARP requests for a shadow address. A host probes the address itself 5 s after a request
/// (`delay_first_probe_time` of arp(7)) and would learn the base address.
const REFRESH: Nanos = Nanos::from_secs(2);

/// Minimum number of full-size frames (1,538 bytes with preamble and gap) for a rate estimate: 0.9 ms at 100 Mbit/s.
const FRAMES_PER_BURST: u64 = 7;

/// Minimum share of a link for a flow to be rerouted. When iperf3 sets up a transfer, its small packets briefly amount
/// to 13 % of a 100 Mbit/s link; without this limit flows would be rerouted before they collide.
const MIN_SHARE: f64 = 0.2;

/// A reroute that no packet confirms within this time has failed. The queues of a host and of a monitor port may hold a
/// few milliseconds.
const TIMEOUT: Nanos = Nanos::from_millis(50);

/// How pairs are rerouted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActuatorKind {
    /// ARP requests give the source another address.
    Arp,
    /// Flow-mods let the first switch rewrite the address.
    OpenFlow,
}

impl ActuatorKind {
    /// Returns the value of `actuator` in the daemon's file.
    pub const fn key(self) -> &'static str {
        match self {
            ActuatorKind::Arp => "arp",
            ActuatorKind::OpenFlow => "openflow",
        }
    }

    /// Returns the name for people: `ARP` or `OpenFlow`.
    pub const fn name(self) -> &'static str {
        match self {
            ActuatorKind::Arp => "ARP",
            ActuatorKind::OpenFlow => "OpenFlow",
        }
    }
}

/// The algorithm that decides on reroutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decider {
    /// Planck's algorithm.
    Greedy,
    /// Global first fit, at this interval.
    FirstFit(Nanos),
    /// No reroutes.
    Static,
}

/// Traffic engineering settings of a lab.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RerouteOptions {
    /// The algorithm.
    pub decider: Decider,
    /// How pairs are rerouted.
    pub actuator: ActuatorKind,
    /// The trees that routes follow.
    pub trees: TreeOptions,
    /// Rate of all links.
    pub rate: BitRate,
}

/// Name of the topology file, as the daemon's file refers to it.
pub const TOPOLOGY_FILE: &str = "topology.toml";

/// The configuration files of a lab's daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// Contents of the daemon's file.
    pub daemon: String,
    /// Contents of [`TOPOLOGY_FILE`].
    pub topology: String,
}

impl Files {
    /// Creates the files for a lab whose switches forward by the trees of `reroute_options`.
    ///
    /// # Errors
    /// If the network cannot have these trees.
    pub fn new(plan: &Plan, reroute_options: &RerouteOptions) -> Result<Files, ScenarioError> {
        let TreeOptions { addresses, seed } = reroute_options.trees;
        let tables = Forwarding::tables(trees(&plan.topology, addresses, seed));
        let links = LinkState::new(&plan.topology);
        let state = NetworkState::new(Arc::clone(&plan.topology), links, tables)?;
        Ok(Files::of_state(plan, &state, reroute_options))
    }

    /// Creates the files for a lab that the controller assumes to be in `state`.
    pub fn of_state(plan: &Plan, state: &NetworkState, reroute_options: &RerouteOptions) -> Files {
        let topology = match plan.plane {
            // The bridges have ports with names of their own, and numbers as for ports without names.
            Plane::Ovs => state.without_port_names().to_toml(),
            _ => state.to_toml(),
        };
        Files { daemon: configuration(plan, reroute_options), topology }
    }

    /// Writes both files to `folder`, creating it if missing, and returns the path of the daemon's.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<PathBuf> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join(TOPOLOGY_FILE), &self.topology)?;
        let daemon = folder.join("thalweg.toml");
        fs::write(&daemon, &self.daemon)?;
        Ok(daemon)
    }
}

/// Returns the time of one full-size frame at this rate, the resolution of all estimates.
pub(crate) fn frame_time(rate: BitRate) -> Nanos {
    Nanos(1_538 * 8 * 1_000_000_000 / rate.0.max(1))
}

fn configuration(plan: &Plan, reroute_options: &RerouteOptions) -> String {
    let mut text = String::new();
    write(&mut text, plan, reroute_options).expect("writing to a string succeeds");
    text
}

fn write(text: &mut String, plan: &Plan, reroute_options: &RerouteOptions) -> fmt::Result {
    let frame = frame_time(reroute_options.rate);
    writeln!(text, "# thalweg serve -c FILE, on a lab of `thalweg lab`.\n")?;
    writeln!(text, "[api]\nlisten = \"127.0.0.1:0\"\n")?;
    writeln!(text, "[process]\nthreads = \"one\"\n")?;
    writeln!(text, "[network]\ntopology = \"{TOPOLOGY_FILE}\"\n")?;
    // Only outgoing directions: their queues fill. The link to a host has no alternative.
    writeln!(
        text,
        "[[rule]]\nlinks = [\"switches:out\"]\nmin_event_interval = \"{}\"",
        time(Nanos(2 * frame.0))
    )?;
    // One flow already congests a link that it fills; only a repeated event shows that a second one has joined.
    writeln!(text, "repeat = \"{}\"", time(Nanos(4 * frame.0)))?;
    write_control(text, plan, reroute_options)?;
    for router in plan.topology.router_ids() {
        writeln!(text, "\n[[collector]]\nname = {:?}", plan.topology.name(Node::Router(router)))?;
        writeln!(text, "interface = \"{}\"", plan.monitor_interface(router))?;
        writeln!(text, "namespace = \"{}\"\nbackend = \"prompt\"", plan.fabric())?;
        // 2,048 frames, a quarter of a second at 100 Mbit/s.
        writeln!(text, "ring_size = \"1MiB\"")?;
        let monitor_rate = plan.monitor_rate.unwrap_or(reroute_options.rate);
        writeln!(text, "monitor_rate = \"{}bps\"", monitor_rate.0)?;
        writeln!(text, "monitor_buffer = \"{}B\"", monitor_rate.amount_in(plan.monitor_buffer).0)?;
        writeln!(text, "gap = \"{}\"", time(Nanos(2 * frame.0)))?;
        writeln!(text, "longest_burst = \"{}\"", time(Nanos(FRAMES_PER_BURST * frame.0)))?;
        writeln!(text, "smoothing = \"{}\"", time(Nanos(8 * frame.0)))?;
        // Hosts times connections, with a margin.
        writeln!(text, "flow_capacity = 4096\nidle_timeout = \"5s\"\ncheetahs = false")?;
        // Headers of about 70,000 frames.
        writeln!(text, "sample_ring = \"8MiB\"\nsample_length = 96")?;
    }
    Ok(())
}

fn write_control(text: &mut String, plan: &Plan, reroute_options: &RerouteOptions) -> fmt::Result {
    let frame = frame_time(reroute_options.rate);
    writeln!(text, "\n[control]")?;
    match reroute_options.decider {
        Decider::Greedy => {
            let defaults = GreedyOptions::default();
            // Rates are updated about every ten frames.
            let report_timeout = defaults.report_timeout.max(Nanos(24 * frame.0));
            // A flow that had half of a link fills another one only after its window has grown by half, one frame every
            // two round trips. Until then the new path looks less loaded than it is: in `stride` at 20 Mbit/s the 16
            // flows were rerouted 86 times with 40 frames, 13 times with 100.
            let hold_down = defaults.hold_down.max(Nanos(100 * frame.0));
            writeln!(text, "decider = \"greedy\"\nreport_timeout = \"{}\"", time(report_timeout))?;
            // Displacing a flow costs throughput here, because its window has to grow again: in `bijection` at 20
            // Mbit/s flows have 15.2 to 16.1 Mbit/s without, and 14.1 to 15.6 with it.
            writeln!(text, "hold_down = \"{}\"\nmakes_room = false", time(hold_down))?;
        }
        Decider::FirstFit(interval) => {
            writeln!(text, "decider = \"first_fit\"\ninterval = \"{}\"", time(interval))?;
        }
        Decider::Static => writeln!(text, "decider = \"static\"")?,
    }
    writeln!(text, "arrival_timeout = \"{}\"", time(TIMEOUT.max(Nanos(100 * frame.0))))?;
    writeln!(text, "min_share = {MIN_SHARE}\nlearn_after = \"500ms\"\nroute_lead_time = \"2ms\"")?;
    let TreeOptions { addresses, seed } = reroute_options.trees;
    writeln!(text, "addresses = {addresses}\nseed = {seed}\nnamespace = \"{}\"", plan.fabric())?;
    match reroute_options.actuator {
        ActuatorKind::Arp => {
            writeln!(text, "actuator = \"arp\"\nrefresh = \"{}\"\ninterfaces = [", time(REFRESH))?;
            for (host, interface) in host_ports(plan) {
                writeln!(text, "  \"{host} {interface}\",")?;
            }
            writeln!(text, "]")
        }
        ActuatorKind::OpenFlow => {
            writeln!(text, "actuator = \"openflow\"\nswitches = [")?;
            for switch in plan.openflow() {
                let name = plan.topology.name(Node::Router(switch.router));
                writeln!(text, "  \"{name} {:016x} {}\",", switch.datapath_id, switch.monitor_port)?;
            }
            writeln!(text, "]\nopenflow_connect = [")?;
            for switch in plan.openflow() {
                writeln!(text, "  \"{}\",", switch.address)?;
            }
            writeln!(text, "]")
        }
    }
}

/// Returns each host with the interface of the switch port that leads to it.
fn host_ports(plan: &Plan) -> impl Iterator<Item = (&str, String)> {
    let topology = &plan.topology;
    topology.endpoint_ids().map(|host| {
        let interface = plan.port_interface(topology.router_of(host), topology.port_of(host));
        (topology.name(Node::Endpoint(host)), interface)
    })
}

/// Formats a time for a configuration file, without rounding.
fn time(time: Nanos) -> String {
    match time.0 {
        ns if ns % 1_000_000_000 == 0 => format!("{}s", ns / 1_000_000_000),
        ns if ns % 1_000_000 == 0 => format!("{}ms", ns / 1_000_000),
        ns if ns % 1_000 == 0 => format!("{}us", ns / 1_000),
        ns => format!("{ns}ns"),
    }
}

#[cfg(test)]
mod tests {
    use thalweg_daemon::config::Config;
    use thalweg_lab::Plane;

    use super::*;

    #[test]
    fn daemon_accepts_every_configuration() {
        let folder = std::env::temp_dir().join(format!("thalweg-configuration-{}", std::process::id()));
        let deciders = [Decider::Greedy, Decider::FirstFit(Nanos::from_millis(100)), Decider::Static];
        let actuators = [
            (Plane::Ebpf, ActuatorKind::Arp),
            (Plane::Ovs, ActuatorKind::OpenFlow),
            (Plane::Ovs, ActuatorKind::Arp),
        ];
        for rate in [BitRate(100_000_000), BitRate(20_000_000)] {
            let plan = Plan::leaf_spine(rate).unwrap();
            let trees_of = TreeOptions { addresses: 2, seed: 3 };
            for decider in deciders {
                for (plane, actuator) in actuators {
                    let plan = Plan { plane, ..plan.clone() };
                    let reroute_options = RerouteOptions { decider, actuator, trees: trees_of, rate };
                    let files = Files::new(&plan, &reroute_options).unwrap();
                    let config = Config::load(&files.write(&folder).unwrap());
                    let config = config.unwrap_or_else(|error| panic!("{error}\n{}", files.daemon));
                    assert_eq!(config.collectors.len(), 5);
                    assert_eq!(config.network.state.unwrap().1.to_toml(), files.topology);
                    assert_eq!(config.control.unwrap().trees, trees_of);
                }
            }
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn times_are_not_rounded() {
        let texts = [2_000_000_000, 50_000_000, 246_080, 1_000].map(|ns| time(Nanos(ns)));
        assert_eq!(texts, ["2s", "50ms", "246080ns", "1us"]);
    }
}
