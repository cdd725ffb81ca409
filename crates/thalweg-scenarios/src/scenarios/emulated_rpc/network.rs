//! The networks that are measured: emulated ones as experiment files, and a lab whose queues are the kernel's.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use thalweg_lab::{Lab, Namespace, Plan, Prefix};
use thalweg_network::topology::shapes::rack;
use thalweg_network::{EndpointId, LinkSpec};
use thalweg_wire::{BitRate, Nanos};

use crate::emulated::{ArbiterRun, EmulatedSession, EndpointRun, Planner};
use crate::error::ScenarioError;
use crate::session::is_stopped;

/// The hosts that request, from number 0. As in the paper.
pub const CLIENTS: u16 = 4;

/// The hosts that respond, after the clients. The paper has 32.
pub const SERVERS: u16 = 8;

/// The buffer of a port in packets (Flexplane, section 5.1).
const BUFFER: u64 = 1_024;

/// Bytes of a full frame on a link of a lab, and on an emulated link with checksum, preamble and gap.
const FRAME: u64 = 1_514;
const ON_THE_LINK: u64 = 1_538;

/// Sizes of a socket's send buffer: the least, that of a new socket, and the largest. A server writes whole responses at once, so the
/// kernel knows the remaining bytes of a flow, which pFabric needs.
const SEND_BUFFER: &str = "4096 67108864 67108864";
const SEND_BUFFER_SIZES: &str = "/proc/sys/net/ipv4/tcp_wmem";

/// A network with its scheme and the congestion control of its hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Token buckets of the kernel in front of each link, with a buffer of 1,024 packets; CUBIC. Stands in for the hardware switch.
    Kernel,
    /// Emulated: a buffer of 1,024 packets, CUBIC.
    DropTail,
    /// Emulated: marks from 65 packets on, DCTCP.
    Dctcp,
    /// Emulated: phantom queues of 95 % of the rate, marks above 15,000 bytes, DCTCP.
    Hull,
    /// Emulated: the flow with the fewest remaining bytes first, a buffer of 36 packets, CUBIC.
    PFabric,
}

impl Network {
    /// All networks, in the order of reports.
    pub const ALL: [Network; 5] =
        [Network::Kernel, Network::DropTail, Network::Dctcp, Network::Hull, Network::PFabric];

    /// Its name in text.
    pub const fn name(self) -> &'static str {
        match self {
            Network::Kernel => "kernel",
            Network::DropTail => "DropTail",
            Network::Dctcp => "DCTCP",
            Network::Hull => "HULL",
            Network::PFabric => "pFabric",
        }
    }

    /// Its value on the command line.
    const fn value(self) -> &'static str {
        match self {
            Network::Kernel => "kernel",
            Network::DropTail => "droptail",
            Network::Dctcp => "dctcp",
            Network::Hull => "hull",
            Network::PFabric => "pfabric",
        }
    }

    /// The section of an experiment file; `None` without emulation.
    const fn section(self) -> Option<&'static str> {
        match self {
            Network::Kernel => None,
            Network::DropTail => Some("name = \"droptail\"\nbuffer = 1024\n"),
            Network::Dctcp => Some("name = \"dctcp\"\n[scheme.dctcp]\nbuffer = 1024\nthreshold = 65\n"),
            Network::Hull => {
                Some("name = \"hull\"\n[scheme.hull]\nbuffer = 1024\nthreshold = \"15000B\"\ngamma = 0.95\n")
            }
            Network::PFabric => Some("name = \"pfabric\"\nbuffer = 36\n"),
        }
    }

    /// The experiment file of a rack whose links have no delay; `None` without emulation.
    fn experiment(self, rate: BitRate) -> Option<String> {
        let (rate, endpoints) = (rate.0, CLIENTS + SERVERS);
        self.section().map(|section| {
            format!(
                "name = \"emulated-rpc\"\nduration = \"1s\"\n\n\
                 [topology]\nshape = \"rack\"\nendpoints = {endpoints}\nrate = \"{rate}bps\"\ndelay = \"0s\"\n\n\
                 [scheme]\n{section}"
            )
        })
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let found = Network::ALL.into_iter().find(|network| network.value() == text);
        found.ok_or_else(|| {
            let values = Network::ALL.map(Network::value).join(", ");
            format!("unknown scheme {text:?}: expected {values}")
        })
    }
}

/// The verdict on an emulated run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Emulation {
    /// The arbiter's report.
    #[serde(flatten)]
    pub arbiter: ArbiterRun,
    /// Packets that endpoints dropped without a decision of the arbiter.
    pub undecided_packets: u64,
    /// What the endpoints added to the emulated delay of a packet: the mean over hosts, of medians.
    pub overhead_ns: u64,
}

/// A lab of a network; removed on drop.
pub(super) struct Testbed {
    hosts: Hosts,
    stop: Arc<AtomicBool>,
}

enum Hosts {
    Emulated(EmulatedSession),
    Kernel(KernelLab),
}

/// Hosts at one switch of the lab, whose links are token buckets of the kernel.
struct KernelLab(Lab);

impl Drop for KernelLab {
    fn drop(&mut self) {
        // Nobody is left to report to; the next lab of this prefix removes what is left.
        let _ = Lab::down(&self.0.plan().prefix);
    }
}

impl Testbed {
    /// Creates the lab of a network, with reports in a folder.
    ///
    /// # Errors
    /// If a lab with this prefix exists, or it cannot be created.
    pub(super) fn up(
        network: Network,
        rate: BitRate,
        planner: &Planner<'_>,
        prefix: &Prefix,
        folder: &Path,
        stop: &Arc<AtomicBool>,
    ) -> Result<Testbed, ScenarioError> {
        let hosts = match network.experiment(rate) {
            Some(text) => Hosts::Emulated(EmulatedSession::up(&text, planner, prefix, folder, stop)?),
            None => Hosts::Kernel(KernelLab::up(rate, prefix)?),
        };
        let testbed = Testbed { hosts, stop: Arc::clone(stop) };
        for number in 0..CLIENTS + SERVERS {
            let written = testbed.host(number).within(|| fs::write(SEND_BUFFER_SIZES, SEND_BUFFER))?;
            written.map_err(|error| ScenarioError::Monitoring(format!("{SEND_BUFFER_SIZES}: {error}")))?;
        }
        Ok(testbed)
    }

    /// Returns the namespace of a host.
    pub(super) fn host(&self, number: u16) -> Namespace {
        match &self.hosts {
            Hosts::Emulated(session) => session.host(number),
            Hosts::Kernel(KernelLab(lab)) => lab.host(EndpointId(number)),
        }
    }

    /// Returns the address of a host.
    pub(super) fn address(&self, number: u16) -> Ipv4Addr {
        match &self.hosts {
            Hosts::Emulated(session) => session.address(number),
            Hosts::Kernel(KernelLab(lab)) => lab.topology().endpoints()[usize::from(number)].ip,
        }
    }

    /// Whether the user wants the scenario to stop.
    pub(super) fn is_stopped(&self) -> bool {
        is_stopped(&self.stop)
    }

    /// Removes the lab. Returns what its arbiter and endpoints report, if it is emulated.
    ///
    /// # Errors
    /// If a process cannot be ended, or there is no report.
    pub(super) fn finish(self, folder: &Path) -> Result<Option<Emulation>, ScenarioError> {
        let Hosts::Emulated(session) = self.hosts else { return Ok(None) };
        let arbiter = session.finish()?;
        let hosts = CLIENTS + SERVERS;
        let endpoint = |number: u16| EndpointRun::read(folder, &format!("h{number}"));
        let endpoints = (0..hosts).map(endpoint).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Emulation {
            arbiter,
            undecided_packets: endpoints.iter().map(|it| it.undecided_packets).sum(),
            overhead_ns: endpoints.iter().map(|it| it.overhead_ns).sum::<u64>() / u64::from(hosts),
        }))
    }
}

impl KernelLab {
    fn up(rate: BitRate, prefix: &Prefix) -> Result<KernelLab, ScenarioError> {
        if Lab::is_up(prefix) {
            return Err(ScenarioError::PrefixInUse { prefix: prefix.to_string() });
        }
        let topology = rack(u32::from(CLIENTS + SERVERS), LinkSpec::default())
            .map_err(|error| ScenarioError::Monitoring(error.to_string()))?;
        // Packets take as long as on an emulated link.
        let rate = BitRate(rate.0 * FRAME / ON_THE_LINK);
        Ok(KernelLab(Lab::up(Plan {
            prefix: prefix.clone(),
            rate: Some(rate),
            host_share: 1.0,
            port_buffer: Nanos(BUFFER * FRAME * 8 * 1_000_000_000 / rate.0.max(1)),
            ..Plan::new(topology)
        })?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_chosen_by_name() {
        for network in Network::ALL {
            assert_eq!(network.value().parse(), Ok(network));
        }
        let error = "DCTCP".parse::<Network>().unwrap_err();
        assert_eq!(error, "unknown scheme \"DCTCP\": expected kernel, droptail, dctcp, hull, pfabric");
    }

    #[test]
    fn only_the_kernel_has_no_experiment() {
        let rate = BitRate(100_000_000);
        assert_eq!(Network::Kernel.experiment(rate), None);
        for network in &Network::ALL[1..] {
            let text = network.experiment(rate).unwrap();
            assert!(text.contains("endpoints = 12\nrate = \"100000000bps\"\n"), "{text}");
        }
    }
}
