//! Options of the process that runs an endpoint.

use std::net::SocketAddr;

use thalweg_linux::Namespace;
use thalweg_wire::{BitRate, Nanos};

use super::host_table::HostTable;
use crate::protocol::{EndpointOptions, LinkOptions};

/// What happens to packets for addresses that the host table does not have, multicast and broadcast included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unlisted {
    /// They are sent at once, without emulation.
    #[default]
    Pass,
    /// They are dropped.
    Drop,
}

/// How the endpoint waits for packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// It sleeps until a packet or an answer arrives.
    #[default]
    Sleep,
    /// As [`Sleep`](Waiting::Sleep), with real-time priority: it wakes up before other work of its processor. Needs CAP_SYS_NICE. The processors of
    /// the machine do not sleep meanwhile, if this process may ask for that.
    RealTime,
    /// It polls without a pause. Uses a whole processor for the shortest delay.
    BusyPoll,
}

/// The options of an endpoint's process.
#[derive(Clone, Debug)]
pub struct ProcessOptions {
    /// The interface whose outgoing packets are intercepted.
    pub interface: String,
    /// The network namespace of the interface; by default that of the process. Datagrams for the arbiter are always sent from
    /// that of the process.
    pub namespace: Option<Namespace>,
    /// The primary arbiter.
    pub arbiter: SocketAddr,
    /// The secondary arbiter.
    pub standby: Option<SocketAddr>,
    /// The endpoints of addresses.
    pub hosts: HostTable,
    /// What happens to packets for other addresses.
    pub unlisted: Unlisted,
    /// How to wait.
    pub waiting: Waiting,
    /// Whether to send the remaining bytes of TCP flows as scheme bytes, for pFabric.
    pub sends_remaining: bool,
    /// The rate of the emulated link of this host. Packets wait for it in a queue of the kernel, as at a real interface, where TCP and
    /// UDP notice them: otherwise a connection sends its whole window into the emulated interface at once. Default: none.
    pub link_rate: Option<BitRate>,
    /// The overhead of all packets: each is released when its emulated delay and this time have passed since it was intercepted. Those
    /// whose answer comes later are released at once, and counted. The same at all endpoints, and more than they need, it makes packets
    /// comparable whose endpoints are not equally far from the arbiter (section 3.4). Default: none; packets are released with their answer.
    pub overhead: Option<Nanos>,
    /// The protocol. `has_secondary` follows from `standby`.
    pub protocol: EndpointOptions,
}

impl ProcessOptions {
    /// The default options of endpoint `number`, which sends requests at once: those that arrive together share a datagram.
    pub fn new(
        interface: impl Into<String>,
        number: u16,
        arbiter: SocketAddr,
        hosts: HostTable,
    ) -> ProcessOptions {
        let link = LinkOptions { batch_delay: Nanos::ZERO, ..LinkOptions::default() };
        ProcessOptions {
            interface: interface.into(),
            namespace: None,
            arbiter,
            standby: None,
            hosts,
            unlisted: Unlisted::default(),
            waiting: Waiting::default(),
            sends_remaining: false,
            link_rate: None,
            overhead: None,
            protocol: EndpointOptions { endpoint: number, link, ..EndpointOptions::default() },
        }
    }
}
