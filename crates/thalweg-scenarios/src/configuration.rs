//! The configuration of the daemon that steers a lab: what a user would write for `thalweg serve`.

use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use thalweg_control::decide::greedy::GreedyOptions;
use thalweg_lab::Plan;
use thalweg_network::routing::TreeOptions;
use thalweg_network::{Forwarding, LinkState, NetworkState, Node};
use thalweg_wire::{BitRate, Nanos};

use super::error::ScenarioError;
use super::session::trees;

/// Hosts are told again of an address that is not their own choice this often: well before they ask for themselves, which
/// they do 5 s after they were told (`delay_first_probe_time` of arp(7)).
const REFRESH: Nanos = Nanos::from_secs(2);

/// Frames of full size on the wire (1,538 bytes with preamble and gap) that a rate is derived from at least: some 0.9 ms
/// at 100 Mbit/s.
const FRAMES_A_BURST: u64 = 7;

/// Flows with less of a link are left out. When iperf3 arranges a transfer its few small packets within a gap come to 13 % of a
/// link of 100 Mbit/s for a moment, and flows would be parted that have not met.
const LEAST_SHARE: f64 = 0.2;

/// What has not been seen to have taken effect after so long has failed. A host's queue and a monitor port's may hold
/// a few milliseconds.
const PATIENCE: Nanos = Nanos::from_millis(50);

/// By what means pairs are sent another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Their sources are told another address.
    Arp,
    /// Their first switches write another address.
    OpenFlow,
}

impl By {
    /// As people write it.
    pub const fn name(self) -> &'static str {
        match self {
            By::Arp => "ARP",
            By::OpenFlow => "OpenFlow",
        }
    }
}

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decider {
    /// Planck's algorithm.
    Greedy,
    /// First fit, so often.
    FirstFit(Nanos),
    /// Nobody.
    Static,
}

/// How a lab is steered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steering {
    /// Who decides.
    pub decider: Decider,
    /// By what means.
    pub by: By,
    /// The trees of the network's routes.
    pub trees: TreeOptions,
    /// Rate of all links.
    pub rate: BitRate,
}

/// What the network's file is called in the daemon's.
pub const NETWORK_FILE: &str = "network.toml";

/// What a user would write to steer a lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The daemon's.
    pub daemon: String,
    /// The network's, of the name [`NETWORK_FILE`].
    pub network: String,
}

impl Files {
    /// For a lab of this plan whose switches forward by the trees that are said.
    ///
    /// # Errors
    /// If the network can have no such trees.
    pub fn new(plan: &Plan, steering: &Steering) -> Result<Files, ScenarioError> {
        let TreeOptions { addresses, seed } = steering.trees;
        let tables = Forwarding::tables(trees(&plan.topology, addresses, seed));
        let links = LinkState::new(&plan.topology);
        let state = NetworkState::new(Arc::clone(&plan.topology), links, tables)?;
        Ok(Files::of_state(plan, &state, steering))
    }

    /// For a lab of this plan that is believed to be in this state.
    pub fn of_state(plan: &Plan, state: &NetworkState, steering: &Steering) -> Files {
        Files { daemon: configuration(plan, steering), network: state.to_toml() }
    }

    /// Leaves both in a folder, which is made if it is not there. Gives the path of the daemon's.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&self, folder: &Path) -> io::Result<PathBuf> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join(NETWORK_FILE), &self.network)?;
        let daemon = folder.join("thalweg.toml");
        fs::write(&daemon, &self.daemon)?;
        Ok(daemon)
    }
}

/// The time of one frame of full size at this rate: the least from which anything can be told.
pub(crate) fn frame_time(rate: BitRate) -> Nanos {
    Nanos(1_538 * 8 * 1_000_000_000 / rate.0.max(1))
}

fn configuration(plan: &Plan, steering: &Steering) -> String {
    let mut text = String::new();
    write(&mut text, plan, steering).expect("a string has room");
    text
}

fn write(text: &mut String, plan: &Plan, steering: &Steering) -> fmt::Result {
    let frame = frame_time(steering.rate);
    writeln!(text, "# thalweg serve -c FILE, on a lab of `thalweg lab`.\n")?;
    writeln!(text, "[api]\nlisten = \"127.0.0.1:0\"\n")?;
    writeln!(text, "[process]\nthreads = \"one\"\n")?;
    writeln!(text, "[network]\ntopology = \"{NETWORK_FILE}\"\n")?;
    // What leaves by a port is what the port's queue holds; no path leads round the link to a host.
    writeln!(text, "[[rule]]\nlinks = [\"switches:out\"]\nspacing = \"{}\"", time(Nanos(2 * frame.0)))?;
    // A link that one flow fills is congested already, and nothing else tells that another has come.
    writeln!(text, "repeat = \"{}\"", time(Nanos(4 * frame.0)))?;
    write_control(text, plan, steering)?;
    for router in plan.topology.router_ids() {
        writeln!(text, "\n[[collector]]\nname = {:?}", plan.topology.name(Node::Router(router)))?;
        writeln!(text, "interface = \"{}\"", plan.monitor_interface(router))?;
        writeln!(text, "namespace = \"{}\"\nbackend = \"prompt\"", plan.fabric())?;
        // 2,048 frames, a quarter of a second at 100 Mbit/s.
        writeln!(text, "ring_size = \"1MiB\"")?;
        let monitor_rate = plan.monitor_rate.unwrap_or(steering.rate);
        writeln!(text, "monitor_rate = \"{}bps\"", monitor_rate.0)?;
        writeln!(text, "monitor_buffer = \"{}B\"", monitor_rate.amount_in(plan.monitor_buffer).0)?;
        writeln!(text, "gap = \"{}\"", time(Nanos(2 * frame.0)))?;
        writeln!(text, "longest_burst = \"{}\"", time(Nanos(FRAMES_A_BURST * frame.0)))?;
        writeln!(text, "smoothing = \"{}\"", time(Nanos(8 * frame.0)))?;
        // Hosts times connections, with room.
        writeln!(text, "flow_capacity = 4096\nidle_timeout = \"5s\"\ncheetahs = false")?;
        // Headers, of some 70,000 frames.
        writeln!(text, "sample_ring = \"8MiB\"\nsample_length = 96")?;
    }
    Ok(())
}

fn write_control(text: &mut String, plan: &Plan, steering: &Steering) -> fmt::Result {
    let frame = frame_time(steering.rate);
    writeln!(text, "\n[control]")?;
    match steering.decider {
        Decider::Greedy => {
            let defaults = GreedyOptions::default();
            // Rates are told anew after some ten frames.
            let timeout = defaults.timeout.max(Nanos(24 * frame.0));
            // A flow that had half of a link has all of another one only when its window has grown by half, a frame in two
            // round trips. Until then that way looks freer than it is: of 16 flows in `stride` at 20 Mbit/s, with 40 frames
            // some moved 86 times in all, with 100 frames 13 times.
            let settle = defaults.settle.max(Nanos(100 * frame.0));
            writeln!(text, "decider = \"greedy\"\ntimeout = \"{}\"", time(timeout))?;
            // Whoever makes room loses by it here: its window has to grow again. In `bijection` at 20 Mbit/s flows have 15.2
            // to 16.1 Mbit/s without, and 14.1 to 15.6 with it.
            writeln!(text, "settle = \"{}\"\nmakes_room = false", time(settle))?;
        }
        Decider::FirstFit(interval) => {
            writeln!(text, "decider = \"first_fit\"\ninterval = \"{}\"", time(interval))?;
        }
        Decider::Static => writeln!(text, "decider = \"static\"")?,
    }
    writeln!(text, "patience = \"{}\"", time(PATIENCE.max(Nanos(100 * frame.0))))?;
    writeln!(text, "least_share = {LEAST_SHARE}\nlearn_after = \"500ms\"\nsettle_routes = \"2ms\"")?;
    let TreeOptions { addresses, seed } = steering.trees;
    writeln!(text, "addresses = {addresses}\nseed = {seed}\nnamespace = \"{}\"", plan.fabric())?;
    match steering.by {
        By::Arp => {
            writeln!(text, "actuator = \"arp\"\nrefresh = \"{}\"\ninterfaces = [", time(REFRESH))?;
            for (host, interface) in host_ports(plan) {
                writeln!(text, "  \"{host} {interface}\",")?;
            }
            writeln!(text, "]")
        }
        By::OpenFlow => {
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

/// By which port of a switch each host is reached.
fn host_ports(plan: &Plan) -> impl Iterator<Item = (&str, String)> {
    let topology = &plan.topology;
    topology.endpoint_ids().map(|host| {
        let interface = plan.port_interface(topology.router_of(host), topology.port_of(host));
        (topology.name(Node::Endpoint(host)), interface)
    })
}

/// As files have it, without loss.
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
    fn every_file_is_one_that_the_daemon_takes() {
        let folder = std::env::temp_dir().join(format!("thalweg-configuration-{}", std::process::id()));
        let deciders = [Decider::Greedy, Decider::FirstFit(Nanos::from_millis(100)), Decider::Static];
        let means = [(Plane::Ebpf, By::Arp), (Plane::Ovs, By::OpenFlow), (Plane::Ovs, By::Arp)];
        for rate in [BitRate(100_000_000), BitRate(20_000_000)] {
            let plan = Plan::leaf_spine(rate).unwrap();
            let trees_of = TreeOptions { addresses: 2, seed: 3 };
            for decider in deciders {
                for (plane, by) in means {
                    let plan = Plan { plane, ..plan.clone() };
                    let steering = Steering { decider, by, trees: trees_of, rate };
                    let files = Files::new(&plan, &steering).unwrap();
                    let config = Config::load(&files.write(&folder).unwrap());
                    let config = config.unwrap_or_else(|error| panic!("{error}\n{}", files.daemon));
                    assert_eq!(config.collectors.len(), 5);
                    assert_eq!(config.network.state.unwrap().1.to_toml(), files.network);
                    assert_eq!(config.control.unwrap().trees, trees_of);
                }
            }
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn times_are_written_without_loss() {
        let texts = [2_000_000_000, 50_000_000, 246_080, 1_000].map(|ns| time(Nanos(ns)));
        assert_eq!(texts, ["2s", "50ms", "246080ns", "1us"]);
    }
}
