//! Values of the configuration file that have names, each with what it means. The help, the reference and errors list them.

use thalweg_capture::backend::Backend;
use thalweg_capture::live::Way;
use thalweg_config::choices;
use thalweg_config::kind::Choices;

use super::samples::CaptureFormat;
use crate::log::{LogFormat, LogLevel};

impl Choices for LogLevel {
    const ALL: &'static [(Self, &'static str, &'static [&'static str])] = &[
        (LogLevel::Error, "error", &["permanent failures"]),
        (LogLevel::Warn, "warn", &["failures that are retried, and losses"]),
        (LogLevel::Info, "info", &["starts, stops and reroutes"]),
        (LogLevel::Debug, "debug", &["details"]),
    ];
}

impl Choices for LogFormat {
    const ALL: &'static [(Self, &'static str, &'static [&'static str])] =
        &[(LogFormat::Text, "text", &["lines of text"]), (LogFormat::Json, "json", &["JSON lines"])];
}

impl Choices for CaptureFormat {
    const ALL: &'static [(Self, &'static str, &'static [&'static str])] = &[
        (
            CaptureFormat::Pcapng,
            "pcapng",
            &[
                "one file with an interface per port and direction, and both ports in a comment of each packet",
            ],
        ),
        (CaptureFormat::Pcap, "pcap", &["one file per output port"]),
    ];
}

choices! {
    /// Encryption of the connection to a mail server.
    pub enum MailEncryptionName {
        /// from the beginning
        Tls = "tls",
        /// after STARTTLS, which the server must offer
        StartTls = "starttls",
        /// none, for a server on this host
        None = "none",
    }
}

choices! {
    /// Rerouting algorithms.
    pub enum DeciderName {
        /// moves each pair on a congested link to the path with the highest expected rate (Planck, algorithm 1)
        Greedy = "greedy",
        /// periodically places all pairs on the first path with room (Hedera)
        FirstFit = "first_fit",
        /// moves pinned pairs only
        Static = "static",
    }
}

choices! {
    /// Ways to reroute a pair.
    pub enum ActuatorName {
        /// only logs decisions
        Log = "log",
        /// changes the network of [emulate]
        Emulated = "emulated",
        /// sends the source an ARP request with another address of the destination, and a Neighbor Solicitation if the
        /// topology has the IPv6 addresses of both (needs CAP_NET_RAW)
        Arp = "arp",
        /// installs a rule in the first switch that rewrites the destination address, and the routes of all switches
        OpenFlow = "openflow",
    }
}

choices! {
    /// Ways to redirect a flow.
    pub enum IsolatorName {
        /// only records redirections
        Log = "log",
        /// in the network of [emulate], whose scheme must be `scavenger`
        Emulated = "emulated",
        /// by traffic control of this host, which routes (needs CAP_NET_ADMIN and CAP_BPF, and root at the start)
        Tc = "tc",
        /// by a command, which changes a router or a controller
        Exec = "exec",
        /// by HTTP requests to a controller
        Webhook = "webhook",
        /// by a router that receives rules over BGP (FlowSpec, RFC 8955 and 8956)
        Flowspec = "flowspec",
        /// by rules of an OpenFlow switch at the link
        OpenFlow = "openflow",
    }
}

choices! {
    /// What a router does with the packets of a flow.
    pub enum RuleActionName {
        /// writes the code point dscp into them
        Mark = "mark",
        /// drops what exceeds rate_limit
        Rate = "rate",
        /// forwards them to redirect_to
        Redirect = "redirect",
    }
}

choices! {
    /// How rules of a switch direct packets to the scavenger queue.
    pub enum MethodName {
        /// by both of the following
        Both = "both",
        /// write the DSCP; a filter at the port selects the queue
        Dscp = "dscp",
        /// select the queue (set_queue), which Open vSwitch in user space accepts and ignores
        SetQueue = "set_queue",
    }
}

choices! {
    /// Flows of simulations.
    pub enum FlowModelName {
        /// H-TCP of emulated hosts, packet by packet
        Tcp = "tcp",
        /// H-TCP in rounds, as in the published simulation; five times faster
        Rounds = "rounds",
    }
}

choices! {
    /// How much of a recording is simulated.
    pub enum SimulateName {
        /// all packets
        All = "all",
        /// a quarter of them; the error is estimated
        Quick = "quick",
    }
}

choices! {
    /// How the primary and the scavenger queue share a link.
    pub enum QueueingName {
        /// each has a share, and borrows what the other leaves
        Borrow = "borrow",
        /// the scavenger queue sends only what the primary queue leaves
        Strict = "strict",
    }
}

choices! {
    /// What happens to queues and redirections when the daemon stops.
    pub enum AtStopName {
        /// releases all flows, and restores the previous queue
        Remove = "remove",
        /// keeps the queues; redirections expire, unless the next start takes them over
        Keep = "keep",
    }
}

choices! {
    /// Sources of interface counters.
    pub enum PollSourceName {
        /// IF-MIB of a router by SNMP v2c or v3
        Snmp = "snmp",
        /// port and queue statistics of a switch by OpenFlow 1.3, on a connection of its own that changes nothing
        OpenFlow = "openflow",
        /// the queues of an interface of this host, by netlink
        Qdisc = "qdisc",
    }
}

choices! {
    /// Objects that contain the name of an interface.
    pub enum InterfaceByName {
        /// ifName: the short name, such as Gi0/1 or eth0
        Name = "name",
        /// ifAlias: the description that operators set
        Alias = "alias",
        /// ifDescr: the description of the vendor. For net-snmp, whose ifName stays when an interface is renamed
        Description = "description",
    }
}

choices! {
    /// Time units of IPFIX records.
    pub enum TimesName {
        /// flowStartMicroseconds and flowEndMicroseconds
        Microseconds = "microseconds",
        /// flowStartMilliseconds and flowEndMilliseconds, for receivers that support no others
        Milliseconds = "milliseconds",
    }
}

choices! {
    /// Threads of collectors and control loop.
    pub enum Threads {
        /// one thread for each collector, one for the control loop
        PerCollector = "per_collector",
        /// one thread for all
        One = "one",
    }
}

choices! {
    /// Capture backends.
    pub enum BackendName {
        /// AF_XDP on an interface that the host does not use, AF_PACKET otherwise. A log message or note names the choice and its reason
        Auto = "auto",
        /// a ring shared with the kernel, beside the host's network stack
        AfPacket = "af_packet",
        /// takes packets away from the host's network stack
        AfXdp = "af_xdp",
        /// as af_packet, but delivers each packet at once: lowest delay, for low packet rates
        Prompt = "prompt",
    }
}

choices! {
    /// Frames by their way.
    pub enum WayName {
        /// all frames
        Both = "both",
        /// frames that this host receives
        In = "in",
        /// frames that this host sends, after they have left the queue of the interface
        Out = "out",
    }
}

impl WayName {
    /// Returns the option of the capture.
    pub const fn way(self) -> Way {
        match self {
            WayName::Both => Way::Both,
            WayName::In => Way::In,
            WayName::Out => Way::Out,
        }
    }
}

impl BackendName {
    /// Returns the backend; `None` to choose one automatically.
    pub const fn backend(self) -> Option<Backend> {
        match self {
            BackendName::Auto => None,
            BackendName::AfPacket => Some(Backend::AfPacket),
            BackendName::AfXdp => Some(Backend::AfXdp),
            BackendName::Prompt => Some(Backend::Prompt),
        }
    }
}
