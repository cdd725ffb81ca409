//! A router in a namespace of its own, between sending hosts and one receiver: real forwarding by the kernel, or by Open
//! vSwitch in user space ([`switch`]).
//!
//! ```text
//!    tw-h1 ── eth0 ─── lan1 ┐
//!    tw-h2 ── eth0 ─── lan2 ┤ tw-router ├ wan ─── eth0 ── tw-h4
//!    tw-h3 ── eth0 ─── lan3 ┘
//! ```
//!
//! Links are veth pairs without a rate. A sender may have a shaper; the queue of `wan` is that of the experiment. Each
//! packet is one segment on all links, and one processor processes all packets of a flow, so that links keep their order. Removed by [`Lab::down`](crate::Lab::down) of its prefix, also after a crash.

pub mod delay;
pub mod marks;
pub mod switch;

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;

use nix::unistd::geteuid;
use thalweg_linux::netlink::{Netlink, VethEnd};
use thalweg_linux::tc::{QueueCounters, TokenBucket};
use thalweg_linux::{Namespace, namespace};
use thalweg_wire::{BitRate, Bytes, Nanos};

use crate::carrier::wait_for_links;
use crate::error::LabError;
use crate::lab::Lab;
use crate::layout::HOST_INTERFACE;
use crate::ovs::{self, Ovs};
use crate::plan::Prefix;
use crate::record;
use crate::shaper;
use crate::sysctl::{self, silence_ipv6};

/// The interface of the router that leads to the receiver.
pub const LINK_INTERFACE: &str = "wan";

/// The namespace of the router, after the prefix.
const ROUTER: &str = "router";

/// The MTU of all links in bytes.
const MTU: u32 = 1_500;

/// Length of a sender's queue, if it has a shaper.
const SENDER_BUFFER: Nanos = Nanos::from_millis(20);

/// The address of the router on all links, and of host 1; that of host n is n - 1 higher.
const ROUTER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 254);
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

/// The first of the three sizes of a TCP buffer, as kernels have it.
const MIN_TCP_BUFFER: u64 = 4_096;

/// Maximum number of senders.
const MAX_SENDERS: usize = 200;

/// What forwards in a router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forwarding {
    /// The kernel, by IP address.
    #[default]
    Kernel,
    /// An Open vSwitch bridge in user space, by MAC address and OpenFlow rules.
    OpenVSwitch,
}

/// A router with its hosts. It belongs to no process: dropping this value leaves it up.
#[derive(Clone, Debug)]
pub struct RouterLab {
    prefix: Prefix,
    senders: usize,
}

impl RouterLab {
    /// Creates a router with one host per element of `senders`, h1, h2, ..., and a receiver after them. A host with a rate
    /// sends at most at that rate. First removes what has the same prefix. If creation fails, everything is removed
    /// again.
    ///
    /// # Errors
    /// If the process is not root, a lab with this prefix is up, a program is missing, or the kernel refuses an operation.
    pub fn up(
        prefix: &Prefix,
        senders: &[Option<BitRate>],
        forwarding: Forwarding,
    ) -> Result<RouterLab, LabError> {
        assert!((1..=MAX_SENDERS).contains(&senders.len()), "the callers have a few senders");
        if !geteuid().is_root() {
            return Err(LabError::NotRoot);
        }
        if forwarding == Forwarding::OpenVSwitch {
            Ovs::check()?;
            ovs::check_programs(&[("tc", "iproute2")])?;
        }
        Lab::down(prefix)?;
        let lab = RouterLab { prefix: prefix.clone(), senders: senders.len() };
        let made = {
            let _lock = record::lock()?;
            lab.make(senders, forwarding)
        };
        made.inspect_err(|_| {
            // Report the first error; the next attempt removes what is left.
            let _ = Lab::down(prefix);
        })?;
        Ok(lab)
    }

    /// Whether namespaces with this prefix exist.
    ///
    /// # Errors
    /// If the namespaces cannot be listed.
    pub fn exists(prefix: &Prefix) -> Result<bool, LabError> {
        Ok(!namespace::with_prefix(prefix.as_str())?.is_empty())
    }

    /// Returns the namespace of the router.
    pub fn router(&self) -> Namespace {
        RouterLab::router_of(&self.prefix)
    }

    /// Returns the namespace of the router of a lab with this prefix.
    pub fn router_of(prefix: &Prefix) -> Namespace {
        Namespace::named(prefix.name(ROUTER))
    }

    /// Returns the namespace of a host, from 1.
    pub fn host(&self, number: usize) -> Namespace {
        Namespace::named(self.prefix.name(&format!("h{number}")))
    }

    /// Returns the number of the receiver.
    pub fn receiver(&self) -> usize {
        self.senders + 1
    }

    /// Returns the address of a host, from 1.
    pub fn address(&self, number: usize) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(FIRST_ADDRESS) + number as u32 - 1)
    }

    /// Returns the interface of the router that leads to a host, from 1.
    pub fn interface_to(&self, number: usize) -> String {
        match number == self.receiver() {
            true => LINK_INTERFACE.to_owned(),
            false => sender_interface(number),
        }
    }

    /// Sets the rate of the link to the receiver and the size of the queue in front of it, in a lab whose router is the
    /// kernel. Packets beyond it are dropped.
    ///
    /// # Errors
    /// If the lab does not exist.
    pub fn set_link(&self, rate: BitRate, buffer: Bytes) -> Result<(), LabError> {
        let netlink = Netlink::open_within(&self.router())?;
        let bucket = TokenBucket { limit: buffer, ..shaper::shaper(rate, SENDER_BUFFER, MTU) };
        Ok(netlink.set_token_bucket(netlink.interface(LINK_INTERFACE)?, &bucket)?)
    }

    /// Returns the counters of the queue in front of the link to the receiver.
    ///
    /// # Errors
    /// If the lab does not exist.
    pub fn link_queue(&self) -> Result<QueueCounters, LabError> {
        queue_counters(&self.router(), LINK_INTERFACE)
    }

    /// Sets the rate at which a host sends, from 1. Its queue holds 20 ms at that rate, and at least `buffer`.
    ///
    /// # Errors
    /// If the lab does not exist.
    pub fn set_host_rate(&self, number: usize, rate: BitRate, buffer: Bytes) -> Result<(), LabError> {
        let netlink = Netlink::open_within(&self.host(number))?;
        let bucket = shaper::shaper(rate, SENDER_BUFFER, MTU);
        let bucket = TokenBucket { limit: bucket.limit.max(buffer), ..bucket };
        Ok(netlink.set_token_bucket(netlink.interface(HOST_INTERFACE)?, &bucket)?)
    }

    /// Returns the counters of the queue of a host, from 1.
    ///
    /// # Errors
    /// If the lab does not exist.
    pub fn host_queue(&self, number: usize) -> Result<QueueCounters, LabError> {
        queue_counters(&self.host(number), HOST_INTERFACE)
    }

    /// Sets the buffers of TCP connections that a host opens or accepts from now on, from 1: what it sends without an
    /// acknowledgement, and what it receives without being read. The kernel counts its overhead for packets as well.
    ///
    /// # Errors
    /// If the lab does not exist.
    pub fn set_tcp_buffers(&self, number: usize, size: Bytes) -> Result<(), LabError> {
        let sizes = format!("{0} {1} {1}", size.0.min(MIN_TCP_BUFFER), size.0);
        let parameters = [("net/ipv4/tcp_rmem", sizes.as_str()), ("net/ipv4/tcp_wmem", sizes.as_str())];
        sysctl::set_within(&self.host(number), &parameters)
    }

    fn make(&self, senders: &[Option<BitRate>], forwarding: Forwarding) -> Result<(), LabError> {
        let router = Namespace::create(self.router().name().to_owned())?;
        silence_ipv6(&router)?;
        sysctl::keep_flows_in_order(&router, None)?;
        if forwarding == Forwarding::Kernel {
            sysctl::set_within(&router, &[("net/ipv4/ip_forward", "1")])?;
        }
        let netlink = Netlink::open_within(&router)?;
        netlink.set_loopback_up()?;
        for (number, rate) in (1..).zip(senders.iter().copied().chain([None])) {
            self.make_host(number, rate, &netlink)?;
            let port = self.interface_to(number);
            match forwarding {
                Forwarding::Kernel => self.make_route(number, &port, &router, &netlink)?,
                Forwarding::OpenVSwitch => ovs::complete_checksums(&self.host(number))?,
            }
        }
        let names: Vec<String> = (1..=self.receiver()).map(|number| self.interface_to(number)).collect();
        let ports = names.iter().map(|name| netlink.interface(name)).collect::<Result<Vec<_>, _>>()?;
        wait_for_links(ports.into_iter(), &netlink)?;
        match forwarding {
            Forwarding::Kernel => Ok(()),
            Forwarding::OpenVSwitch => switch::start(self, &names),
        }
    }

    /// Lets the kernel of the router forward to a host.
    fn make_route(
        &self,
        number: usize,
        port: &str,
        router: &Namespace,
        netlink: &Netlink,
    ) -> Result<(), LabError> {
        // Every host believes that all others are its neighbours, and the router answers for them at once.
        let [proxy, delay] = [format!("conf/{port}/proxy_arp"), format!("neigh/{port}/proxy_delay")];
        let parameters = [(format!("net/ipv4/{proxy}"), "1"), (format!("net/ipv4/{delay}"), "0")];
        let parameters: Vec<_> = parameters.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        sysctl::set_within(router, &parameters)?;
        let interface = netlink.interface(port)?;
        netlink.add_address(interface, ROUTER_ADDRESS)?;
        Ok(netlink.add_route(interface, Some(self.address(number)))?)
    }

    /// Creates a host and its link.
    fn make_host(&self, number: usize, rate: Option<BitRate>, netlink: &Netlink) -> Result<(), LabError> {
        let host = Namespace::create(self.host(number).name().to_owned())?;
        silence_ipv6(&host)?;
        sysctl::keep_flows_in_order(&host, None)?;
        let file = File::open(host.path()).map_err(|source| LabError::Namespace {
            name: host.name().to_owned(),
            what: "open it",
            source,
        })?;
        let port = self.interface_to(number);
        let end = VethEnd { name: port.clone(), mtu: MTU, one_segment: true, ..VethEnd::default() };
        let peer = VethEnd {
            name: HOST_INTERFACE.to_owned(),
            mtu: MTU,
            one_segment: true,
            namespace: Some(file.as_fd()),
            ..VethEnd::default()
        };
        netlink.add_veth(&end, &peer)?;
        netlink.set_up(netlink.interface(&port)?, true)?;

        let within = Netlink::open_within(&host)?;
        within.set_loopback_up()?;
        let interface = within.interface(HOST_INTERFACE)?;
        if let Some(rate) = rate {
            within.set_token_bucket(interface, &shaper::shaper(rate, SENDER_BUFFER, MTU))?;
        }
        sysctl::set_within(
            &host,
            &[
                // Connections do not inherit metrics from earlier ones.
                ("net/ipv4/tcp_no_metrics_save", "1"),
                // Root may send pings by a socket without headers.
                ("net/ipv4/ping_group_range", "0 0"),
            ],
        )?;
        within.set_up(interface, true)?;
        Ok(within.add_address_and_default_route(interface, self.address(number))?)
    }
}

fn queue_counters(namespace: &Namespace, interface: &str) -> Result<QueueCounters, LabError> {
    let netlink = Netlink::open_within(namespace)?;
    let interface = netlink.interface(interface)?;
    Ok(netlink.queue_counters()?.get(&interface).copied().unwrap_or_default())
}

/// Returns the interface of the router that leads to a sender, from 1.
pub fn sender_interface(number: usize) -> String {
    format!("lan{number}")
}
