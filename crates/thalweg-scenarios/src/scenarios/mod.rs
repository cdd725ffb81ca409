//! The scenarios, each with the claim that it tests.
//!
//! | scenario | claim |
//! |---|---|
//! | [`collide`] | two TCP flows that collide on a link are rerouted within milliseconds (Planck, figure 15) |
//! | [`emulated_latency`] | the latency that the real-time emulation adds (Flexplane, figure 3) |
//! | [`emulated_queues`] | throughput and queue of real and of emulated TCP in the same emulated network (Flexplane, table 2) |
//! | [`emulated_rpc`] | completion times of requests with real TCP over emulated networks (Flexplane, figures 4 and 7) |
//! | [`faults`] | after a fault of the network or the controller, forwarding recovers and the control loop resumes |
//! | [`isolate`] | isolation of a cheetah flow keeps the delay of a ping low (heavy-hitter dissertation, figures 3.7 and 3.8) |
//! | [`reroute_latency`] | latency of a reroute by ARP and by OpenFlow (figure 16) |
//! | [`switch_buffer`] | whether a TCP flow causes losses, by TCP buffer, rate and round trip (heavy-hitter dissertation, table 3.3) |
//! | [`udp`] | a rerouted UDP flow stays on its new path |
//! | [`workload`] | throughput of hosts that all send at once, by method (figure 14) |

pub mod collide;
pub mod emulated_latency;
pub mod emulated_queues;
pub mod emulated_rpc;
pub mod faults;
pub mod isolate;
pub mod reroute_latency;
pub mod switch_buffer;
pub mod udp;
pub mod workload;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use thalweg_control::Pair;
use thalweg_lab::Prefix;
use thalweg_network::{Node, Topology};
use thalweg_wire::BitRate;

/// Settings common to all scenarios.
pub struct Setting<'a> {
    /// Rate of the links.
    pub rate: BitRate,
    /// Sending rate of the hosts of a workload, as a share of their links' rate, above 0 and up to 1.
    pub host_share: f64,
    /// Prefix of the lab.
    pub prefix: Prefix,
    /// Set to stop the scenario and remove its lab.
    pub stop: Arc<AtomicBool>,
    /// Called with a progress message.
    pub on_progress: &'a mut dyn FnMut(&str),
}

/// The names of a flow's hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostPair {
    /// Source host.
    pub src: String,
    /// Destination host.
    pub dst: String,
}

impl HostPair {
    pub(crate) fn new(topology: &Topology, pair: Pair) -> HostPair {
        let [src, dst] =
            [pair.source, pair.destination].map(|host| topology.name(Node::Endpoint(host)).to_owned());
        HostPair { src, dst }
    }
}

/// Describes the network that ran: `3 switches with 2 hosts each, 2 without hosts, 12 links`.
pub(crate) fn network_of(topology: &Topology) -> String {
    let sizes: Vec<usize> = topology.router_ids().map(|router| topology.rack_size(router)).collect();
    let with_hosts: Vec<usize> = sizes.iter().copied().filter(|hosts| *hosts > 0).collect();
    let (leaves, links) = (with_hosts.len(), topology.links().len());
    let hosts = match with_hosts.iter().all(|hosts| *hosts == with_hosts[0]) {
        true => format!("{} hosts each", with_hosts[0]),
        false => format!("{} hosts", topology.endpoints().len()),
    };
    match sizes.len() - leaves {
        0 => format!("{leaves} switches with {hosts}, {links} links"),
        others => format!("{leaves} switches with {hosts}, {others} without hosts, {links} links"),
    }
}

/// `h0 > h2`.
impl fmt::Display for HostPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {}", self.src, self.dst)
    }
}
