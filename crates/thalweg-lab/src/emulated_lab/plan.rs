//! The plan of an emulated lab, checked completely before anything is created.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::sync::Arc;

use thalweg_network::{EndpointId, MacAddress, Topology};
use thalweg_wire::Bytes;

use crate::plan::{MAX_EMULATED_HOSTS, PlanError, Prefix, check_host};
use crate::sysctl;
use crate::tcp::HostTcp;

/// The smallest MTU of a link with IPv6 in bytes (RFC 8200, section 5). Below it, the kernel has no IPv6 at the interface.
const MIN_IPV6_MTU: u16 = 1_280;

/// The addresses of hosts without an IPv6 address in the topology: host number n, from 0, has n + 1 in the last bits.
const FIRST_IPV6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);

/// The plan of an emulated lab.
#[derive(Clone, Debug)]
pub struct EmulatedPlan {
    /// Prefix of all names.
    pub prefix: Prefix,
    /// The emulated network. Hosts have the names and addresses of its endpoints.
    pub topology: Arc<Topology>,
    /// MTU of the emulated network, and so of the hosts, in bytes.
    pub mtu: u16,
    /// The program with the commands `emulate` and `endpoint`.
    pub program: PathBuf,
    /// The experiment file.
    pub experiment: PathBuf,
    /// Further arguments of `emulate`, such as the seed.
    pub arbiter_arguments: Vec<OsString>,
    /// Further arguments of `endpoint`, such as the deadline.
    pub endpoint_arguments: Vec<OsString>,
    /// Whether a secondary arbiter waits.
    pub has_standby: bool,
    /// The processor that the arbiter has for itself: neither endpoints nor what runs on hosts uses it, nor the kernel for received packets. `None`: it
    /// shares all of them.
    pub processor: Option<usize>,
    /// The least maximum of the TCP buffers of the hosts, so that they can fill the longest path.
    pub tcp_buffer: Bytes,
    /// How the hosts use TCP.
    pub tcp: HostTcp,
    /// The folder of the logs and reports, which exists. `None`: a folder that is removed with the lab.
    pub output: Option<PathBuf>,
}

/// The addresses of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAddresses {
    /// IPv4.
    pub ip: Ipv4Addr,
    /// IPv6; `None` if the machine has no IPv6, or the MTU is below 1,280 bytes.
    pub ipv6: Option<Ipv6Addr>,
}

impl HostAddresses {
    /// Returns the addresses of a host: those of the topology, or `fd00::1` and the following.
    ///
    /// # Panics
    /// If the topology has no such endpoint.
    pub(crate) fn of(topology: &Topology, endpoint: EndpointId, mtu: u16) -> HostAddresses {
        let host = &topology.endpoints()[endpoint.index()];
        let default = Ipv6Addr::from_bits(FIRST_IPV6.to_bits() + u128::from(endpoint.0));
        let is_free = topology.endpoint_with_ip(default).is_none();
        let ipv6 = host.ipv6.or(is_free.then_some(default)).filter(|_| has_ipv6(mtu));
        HostAddresses { ip: host.ip, ipv6 }
    }

    /// Iterates over them.
    pub fn iter(self) -> impl Iterator<Item = IpAddr> {
        [Some(self.ip.into()), self.ipv6.map(IpAddr::from)].into_iter().flatten()
    }
}

impl EmulatedPlan {
    /// Checks the plan.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn check(&self) -> Result<(), PlanError> {
        let hosts = self.topology.endpoints();
        if hosts.len() > MAX_EMULATED_HOSTS {
            return Err(PlanError::TooManyHosts { hosts: hosts.len() });
        }
        hosts.iter().try_for_each(|host| check_host(&host.name))
    }

    /// Returns the host table of the endpoints: for each, a line with its number and addresses, also that of its IPv6 link.
    pub(super) fn host_table(&self) -> String {
        let line = |endpoint: EndpointId| {
            let addresses = HostAddresses::of(&self.topology, endpoint, self.mtu);
            let host = &self.topology.endpoints()[endpoint.index()];
            let link_local = has_ipv6(self.mtu).then(|| IpAddr::from(link_local(host.mac)));
            let addresses: Vec<_> =
                addresses.iter().chain(link_local).map(|address| address.to_string()).collect();
            format!("{} {} # {}\n", endpoint.0, addresses.join(" "), host.name)
        };
        self.topology.endpoint_ids().map(line).collect()
    }
}

/// Whether interfaces with this MTU have IPv6.
fn has_ipv6(mtu: u16) -> bool {
    mtu >= MIN_IPV6_MTU && sysctl::has_ipv6()
}

/// Returns the link-local address of an interface with this MAC address (RFC 4291, appendix A), which hosts also have.
fn link_local(mac: MacAddress) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.0;
    let words = [[a ^ 2, b], [c, 0xff], [0xfe, d], [e, f]].map(u16::from_be_bytes);
    Ipv6Addr::new(0xfe80, 0, 0, 0, words[0], words[1], words[2], words[3])
}

#[cfg(test)]
mod tests {
    use thalweg_network::topology::shapes::{Tiers, fat_tree};
    use thalweg_network::{LinkSpec, TopologyBuilder};

    use super::*;

    fn plan(topology: Topology) -> EmulatedPlan {
        EmulatedPlan {
            prefix: Prefix::default(),
            topology: Arc::new(topology),
            mtu: 1_500,
            program: PathBuf::new(),
            experiment: PathBuf::new(),
            arbiter_arguments: Vec::new(),
            endpoint_arguments: Vec::new(),
            has_standby: false,
            processor: None,
            tcp_buffer: Bytes(0),
            tcp: HostTcp::default(),
            output: None,
        }
    }

    #[test]
    fn hosts_are_bounded_and_their_names_are_file_names() {
        assert_eq!(plan(fat_tree(6, Tiers::default()).unwrap()).check(), Ok(()));
        let large = plan(fat_tree(8, Tiers::default()).unwrap()).check();
        assert_eq!(large, Err(PlanError::TooManyHosts { hosts: 128 }));
        let mut builder = TopologyBuilder::new();
        let router = builder.add_router("r").unwrap();
        builder.add_endpoint("a/b", router, LinkSpec::default()).unwrap();
        let named = plan(builder.build().unwrap()).check();
        assert_eq!(named, Err(PlanError::Host { name: "a/b".to_owned() }));
    }

    #[test]
    fn addresses_are_those_of_the_topology_or_numbered() {
        let mut builder = TopologyBuilder::new();
        let router = builder.add_router("r").unwrap();
        for name in ["a", "b", "c"] {
            builder.add_endpoint(name, router, LinkSpec::default()).unwrap();
        }
        let known: Ipv6Addr = "2001:db8::7".parse().unwrap();
        builder.set_ipv6(EndpointId(1), known).unwrap();
        // The default of the first host.
        builder.set_ipv6(EndpointId(2), FIRST_IPV6).unwrap();
        let mut plan = plan(builder.build().unwrap());
        if sysctl::has_ipv6() {
            let table = plan.host_table();
            let expected = "\
0 10.0.0.1 fe80::54:57ff:fe00:0 # a
1 10.0.0.2 2001:db8::7 fe80::54:57ff:fe00:1 # b
2 10.0.0.3 fd00::1 fe80::54:57ff:fe00:2 # c
";
            assert_eq!(table, expected);
        }
        plan.mtu = 1_279;
        assert_eq!(plan.host_table(), "0 10.0.0.1 # a\n1 10.0.0.2 # b\n2 10.0.0.3 # c\n");
    }
}
