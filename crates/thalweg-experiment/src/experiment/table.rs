//! The sections of experiment files, each declared once. Types, parsing, printed experiments, sweeps, the reference and
//! the JSON Schema derive from here.

use std::sync::LazyLock;
use thalweg_config::kind::{
    Amount, Boolean, Delay, Noted, Number, Rate, Share, Text, Texts, Time, Whole, one_of,
};

use thalweg_config::{Declared as _, Section, choices, keys, section};
use thalweg_emulator::hosts::Algorithm;
use thalweg_emulator::workloads::Named;
use thalweg_emulator::workloads::open_loop::SENDERS;
use thalweg_emulator::workloads::patterns::PATTERNS;
use thalweg_network::topology::LossRate;
use thalweg_network::topology::file::LossRates;
use thalweg_network::topology::shapes::Shape;
use thalweg_wire::{BitRate, Bytes, Nanos};

use super::own_scheme::Scheme;

/// The sections, in the order of a printed experiment; the first one has the keys above all sections.
pub static SECTIONS: LazyLock<[&Section; 12]> = LazyLock::new(|| {
    [
        &TOP,
        &TOPOLOGY,
        Scheme::section(),
        &ROUTING,
        &TRANSPORT,
        &WORKLOAD,
        &PACKETS,
        &MEASURE,
        &FLOW_SERIES,
        &QUEUE_SERIES,
        &MIRROR,
        &FAILURE,
    ]
});

section! {
    /// The experiment as a whole. These keys stand above all sections.
    pub struct Top in TOP = "" {
        /// Name of the experiment in reports and files.
        name: String [Text("a name")] or "the file's name",
        /// Random seed: the same seed gives the same bytes.
        seed: u64 [Whole(0, u64::MAX)] default "1",
        /// Time to emulate.
        duration: Nanos [Time] needed,
        /// Time before the measurement starts. The report excludes it, and flows that start in it. Files include it.
        warm_up: Nanos [Delay] default "0ns",
        /// Time after the duration in which no flow starts and active flows may complete. Without it, completion times
        /// would miss the slowest flows. It ends when all flows have completed.
        drain: Nanos [Delay] or "ten times the duration, at least 1s",
    }
}

keys! {
    /// Shapes with equal racks.
    pub struct RackCount {
        /// Number of racks.
        racks: u32 [SIZE] default "2",
    }
}

keys! {
    /// Shapes with racks.
    pub struct RackSize {
        /// Endpoints per rack. The default is that of Flexplane's racks.
        endpoints: u32 [SIZE] default "32",
    }
}

keys! {
    /// Leaf-spine networks.
    pub struct LeafSpine {
        /// Number of racks.
        leaves: u32 [SIZE] default "4",
        /// Routers that connect the racks.
        spines: u32 [SIZE] default "2",
    }
}

keys! {
    /// Fat trees.
    pub struct FatTree {
        /// Ports of each router, an even number: there are k^3/4 endpoints.
        k: u32 [SIZE] default "4",
    }
}

keys! {
    /// Shapes with generated links.
    pub struct AccessLinks {
        /// Rate of the endpoints' links.
        rate: BitRate [Rate] default "10gbps",
        /// Delay of the endpoints' links: propagation, plus the router's delay. The default is that of 20 m and a fast
        /// router.
        delay: Nanos [Delay] default "1us",
        /// Random loss on the endpoints' links: the probability that a packet is lost. A list of two has one for packets
        /// from endpoints, and one for packets to them.
        loss: [LossRate; 2] [LossRates] default "0%",
        /// Jitter of the endpoints' links: the delay varies by up to this much around its value, at most by that value.
        /// Packets keep their order.
        jitter: Nanos [Delay] default "0ns",
    }
}

keys! {
    /// Shapes with links between routers.
    pub struct Uplinks {
        /// Rate of the links between routers.
        uplink_rate: BitRate [Rate] or "that of the endpoints' links",
        /// Delay of the links between routers.
        uplink_delay: Nanos [Delay] or "that of the endpoints' links",
        /// Random loss on the links between routers. A list of two has one for packets from the lower router, or from
        /// the first, and one for packets back.
        uplink_loss: [LossRate; 2] [LossRates] or "that of the endpoints' links",
        /// Jitter of the links between routers.
        uplink_jitter: Nanos [Delay] or "that of the endpoints' links",
    }
}

keys! {
    /// Topologies from files.
    pub struct TopologyFile {
        /// File with routers, endpoints and links. Relative paths start at the experiment file.
        file: String [Text("the name of a topology file")] needed,
    }
}

keys! {
    /// All topologies.
    pub struct Packet {
        /// Bytes of the longest IP packet. With 38 bytes of Ethernet framing it is the longest packet on a link.
        mtu: u16 [Whole(576, 9_216)] default "1500",
    }
}

section! {
    /// The network: nodes and links.
    pub enum Topology in TOPOLOGY = "topology" {
        /// Shape of the network.
        select shape [shape_summary] default "rack",
        groups { RackCount, RackSize, LeafSpine, FatTree, AccessLinks, Uplinks, TopologyFile, Packet }
        Rack = "rack" (RackSize, AccessLinks),
        Racks = "racks" (RackCount, RackSize, AccessLinks, Uplinks),
        IsolatedRacks = "isolated_racks" (RackCount, RackSize, AccessLinks),
        Dumbbell = "dumbbell" (RackSize, AccessLinks, Uplinks),
        LeafSpine = "leaf_spine" (RackSize, LeafSpine, AccessLinks, Uplinks),
        FatTree = "fat_tree" (FatTree, AccessLinks, Uplinks),
        File = "file" (TopologyFile),
    }
}

section! {
    /// How routers choose among shortest paths.
    pub struct Routing in ROUTING = "routing" {
        /// Method of load balancing.
        balance: BalanceName [one_of::<BalanceName>()] default "ecmp",
    }
}

keys! {
    /// Congestion control with optional ECN.
    pub struct Ecn {
        /// Whether data segments are ECN-capable and receivers echo marks (RFC 3168). DCTCP always uses ECN.
        ecn: bool [Boolean] or "true if the scheme marks",
    }
}

keys! {
    /// TCP.
    pub struct Tcp {
        /// Initial window in segments (RFC 6928, section 2).
        initial_window: u32 [Whole(1, 1_000)] default "10",
        /// Minimum retransmission timeout. The default is that of Linux; data centres that tune for incast set 1 to 10
        /// ms.
        min_rto: Nanos [Time] default "200ms",
        /// Retransmission timeout before the first measurement of a round trip. Flows start after the handshake, which
        /// has measured one (RFC 6298, rule 2.2).
        initial_rto: Nanos [Time] or "three round trips of the longest path without queues",
        /// Maximum retransmission timeout (RFC 6298, rule 2.5).
        max_rto: Nanos [Time] default "1min",
        /// Full-size segments per acknowledgement (RFC 5681, section 4.2).
        ack_every: u32 [Whole(1, 64)] default "2",
        /// Longest delay of an acknowledgement. The default is the minimum of Linux.
        ack_timeout: Nanos [Time] default "40ms",
        /// Whether recovery is undone if segments were late rather than lost (RFC 3522 and 4015), as in Linux.
        tolerates_reordering: bool [Boolean] default "true",
    }
}

keys! {
    /// pFabric's minimal transport.
    pub struct PFabricTransport {
        /// Initial and largest window (pFabric, section 4.3).
        window: Bytes [Amount] or "a bandwidth-delay product of the longest path",
        /// Timeout of all flows (pFabric, section 4.3).
        rto: Nanos [Time] or "three round trips of the longest path without queues",
        /// Consecutive timeouts after which a flow only probes (pFabric, section 4.3).
        probe_after: u32 [Whole(1, 1_000)] default "5",
    }
}

keys! {
    /// All transports.
    pub struct Hosts {
        /// Delay between the arrival of a segment and its processing by the host's kernel. With the default, a round
        /// trip through an idle rack takes about 25 us at 10 Gbit/s.
        stack_delay: Nanos [Delay] default "10us",
        /// Receive buffer per flow. The default is the maximum that Linux chooses by itself.
        receive_window: Bytes [Amount] default "6MiB",
        /// Maximum number of concurrent flows; more are refused and counted.
        max_flows: u32 [Whole(1, 1 << 24)] default "1048576",
    }
}

section! {
    /// Transport of the endpoints. Without a name, keys of all transports are valid. Keys for a transport that a sweep
    /// selects go into a section of their own, as [transport.dctcp].
    pub enum Transport in TRANSPORT = "transport" {
        /// Congestion control, or pFabric's minimal transport.
        select name [transport_summary] or "dctcp for the schemes dctcp and hull, pfabric for pfabric, otherwise cubic",
        groups { Ecn, Tcp, PFabricTransport, Hosts }
        NewReno = "new_reno" (Ecn, Tcp),
        Cubic = "cubic" (Ecn, Tcp),
        CubicHyStart = "cubic_hystart" (Ecn, Tcp),
        Dctcp = "dctcp" (Tcp),
        HTcp = "h_tcp" (Ecn, Tcp),
        PFabric = "pfabric" (PFabricTransport),
    }
}

keys! {
    /// Patterns whose flows have sizes.
    pub struct FlowSizes {
        /// Bytes of the flows: a published distribution (see thalweg emulate --list), a file with lines
        /// BYTES,PROBABILITY, an amount, or forever. Several, each "WEIGHT SIZES" or "WEIGHT SIZES dscp N", are a
        /// mixture: ["0.8 1500B dscp 0", "0.2 10MB dscp 1"].
        sizes: Vec<String> [Texts( "\"web_search\" or another distribution of `thalweg emulate --list`, the name of a file, an amount such as \"10MB\", or \"forever\"", )] needed,
    }
}

keys! {
    /// Patterns with a load.
    pub struct Load {
        /// Mean traffic that endpoints or clients receive, payload alone, as a share of their links' rate. Above 1 it is
        /// more than the links carry, and a warning says so.
        load: f64 [LOAD] needed,
        /// Spacing of requests over time.
        spacing: SpacingName [one_of::<SpacingName>()] default "poisson",
    }
}

keys! {
    /// Requests to servers.
    pub struct Requests {
        /// Endpoints that send requests.
        clients: Vec<String> [ENDPOINTS] needed,
        /// Endpoints that respond.
        servers: Vec<String> [ENDPOINTS] or "all endpoints that are not clients",
        /// Servers per request; each responds with a flow.
        fan_in: usize [Whole(1, 65_535)] default "1",
    }
}

keys! {
    /// Patterns for any set of endpoints.
    pub struct Participants {
        /// Endpoints that take part.
        endpoints: Vec<String> [ENDPOINTS] or "all",
    }
}

keys! {
    /// Patterns with one receiver.
    pub struct ToOne {
        /// The receiver.
        receiver: String [Text("the name of an endpoint")] default "h0",
        /// Endpoints that send to it.
        senders: Vec<String> [ENDPOINTS] or "all but the receiver",
    }
}

keys! {
    /// Incast.
    pub struct Rounds {
        /// Number of rounds; each starts when all flows of the previous one are complete.
        rounds: u64 [Whole(1, u64::MAX)] or "until the end",
        /// Pause between rounds.
        pause: Nanos [Delay] default "0ns",
    }
}

keys! {
    /// Strides.
    pub struct Stride {
        /// Endpoint i sends to endpoint i + stride, modulo the number of endpoints.
        stride: usize [Whole(1, 65_535)] or "half of the endpoints",
    }
}

keys! {
    /// Shuffles.
    pub struct Shuffle {
        /// Concurrent flows per endpoint (Planck, section 7.1).
        at_once: usize [Whole(1, 65_535)] default "2",
    }
}

keys! {
    /// Staggered flows.
    pub struct Stages {
        /// Consecutive endpoints per edge router.
        endpoints_per_edge: usize [Whole(2, 65_535)] default "2",
        /// Endpoints per pod, a multiple of that.
        endpoints_per_pod: usize [Whole(3, 65_535)] default "4",
        /// Probability that a flow stays at its edge router.
        edge: f64 [Share] default "0.5",
        /// Probability that it goes to another edge router of its pod.
        pod: f64 [Share] default "0.3",
    }
}

keys! {
    /// Patterns with one flow per endpoint.
    pub struct Apart {
        /// Time between the starts of consecutive flows.
        apart: Nanos [Delay] default "0ns",
    }
}

keys! {
    /// Flows from files.
    pub struct FlowFile {
        /// File with START,SOURCE,DESTINATION,BYTES and optionally ,DSCP on each line, or of ns-3's data centre models
        /// (SOURCE DESTINATION PRIORITY PORT BYTES START after the number of flows), or a connection matrix of htsim. Relative
        /// paths start at the experiment file.
        file: String [Text("the name of a file of flows")] needed,
    }
}

keys! {
    /// Generated flows.
    pub struct Start {
        /// Start of the first flow.
        from: Nanos [Delay] default "0ns",
    }
}

keys! {
    /// All workloads.
    pub struct Limits {
        /// Time from which no flow starts.
        until: Nanos [Time] or "the end",
        /// Maximum number of flows.
        flows: u64 [Whole(1, u64::MAX)] or "no limit",
    }
}

keys! {
    /// Patterns whose flows have sizes: their code point.
    pub struct CodePoint {
        /// Differentiated services code point of the packets. A code point in sizes has precedence.
        dscp: u8 [Whole(0, 63)] default "0",
    }
}

section! {
    /// Flows between endpoints. Several workloads are merged in order of time.
    ///
    /// Endpoints are named as in the topology, "h0". A range "h0..h3" includes both ends and all endpoints between them in
    /// the order of the topology.
    pub enum Workload in WORKLOAD = ["workload"] {
        /// Traffic pattern.
        select pattern [pattern_summary] needed,
        groups { FlowSizes, Load, Requests, Participants, ToOne, Rounds, Stride, Shuffle, Stages, Apart, FlowFile, Start, Limits, CodePoint }
        AllToAll = "all_to_all" (FlowSizes, Load, Participants, Start, CodePoint),
        Rpc = "rpc" (FlowSizes, Load, Requests, Start, CodePoint),
        Incast = "incast" (FlowSizes, ToOne, Rounds, Start, CodePoint),
        Stride = "stride" (FlowSizes, Participants, Stride, Apart, Start, CodePoint),
        Shuffle = "shuffle" (FlowSizes, Participants, Shuffle, Start, CodePoint),
        RandomBijection = "random_bijection" (FlowSizes, Participants, Apart, Start, CodePoint),
        Random = "random" (FlowSizes, Participants, Apart, Start, CodePoint),
        Staggered = "staggered" (FlowSizes, Participants, Stages, Apart, Start, CodePoint),
        Persistent = "persistent" (ToOne, Apart, Start),
        File = "file" (FlowFile),
    }
}

keys! {
    /// All senders of packets.
    pub struct OpenLoop {
        /// Traffic that each endpoint sends, framing included, as a share of its link's rate. Above 1 it is more than the
        /// link carries, and a warning says so.
        load: f64 [LOAD] needed,
        /// Bytes of packets on a link, framing included. Several, each "WEIGHT LENGTH", are a mixture.
        lengths: Vec<String> [Texts("\"64B\", or several as \"0.5 64B\"")] or "full-size packets",
        /// Destinations of each endpoint.
        destinations: DestinationsName [one_of::<DestinationsName>()] default "uniform",
        /// Share of packets that leave their rack, with uniform destinations.
        leaving: f64 [Share] or "that of uniform destinations",
        /// Differentiated services code point of the packets.
        dscp: u8 [Whole(0, 63)] default "0",
        /// Whether packets are ECN-capable.
        ecn: bool [Boolean] default "false",
    }
}

keys! {
    /// Bursts.
    pub struct BurstLengths {
        /// Hurst parameter: 0.5 means no long-range dependence.
        hurst: f64 [Number(0.499_999, 0.999_999)] default "0.8",
        /// Mean duration of a burst.
        burst: Nanos [Time] default "100us",
        /// Rate of a burst, as a share of the endpoint's link.
        burst_rate: f64 [LOAD] default "0.1",
    }
}

section! {
    /// Packets without transport, sent without feedback.
    pub enum Packets in PACKETS = ["packets"] {
        /// Spacing of packets over time.
        select sender [sender_summary] needed,
        groups { OpenLoop, BurstLengths }
        Poisson = "poisson" (),
        Constant = "constant" (),
        Bursts = "bursts" (BurstLengths),
    }
}

section! {
    /// What is recorded during the run.
    pub struct Measure in MEASURE = "measure" {
        /// Time between queue samples.
        queue_interval: Nanos [Time] or "a thousandth of the duration, or longer if there are many ports",
        /// Interval over which link traffic is summed up.
        link_interval: Nanos [Time] or "a hundredth of the duration, or longer if there are many links",
        /// Ports whose queues are sampled.
        ports: Vec<String> [Texts("\"tor0 > h3\" (the port of tor0 that leads to h3), \"tor0:p3\" or \"tor0:Ethernet4\" (a port), or \"tor0\" (all its ports)")] or "all ports of all routers",
    }
}

section! {
    /// Flows over time: congestion window, round-trip time, rates, queueing delay. With --output, they are in the table
    /// flow_series. Without an interval or changes, no flow is sampled. The other keys choose flows; without any, all are
    /// sampled.
    pub struct FlowSeries in FLOW_SERIES = "flow_series" {
        /// Time between samples of a flow.
        interval: Nanos [Time] or "no samples at intervals",
        /// Whether each change of a congestion window or slow start threshold gives a sample, at most one per timeslot.
        changes: bool [Boolean] default "false",
        /// Senders of the flows.
        sources: Vec<String> [ENDPOINTS] or "all endpoints",
        /// Receivers of the flows.
        destinations: Vec<String> [ENDPOINTS] or "all endpoints",
        /// Number of the [[workload]] of the flows, from 1 in the order of the file.
        workload: u32 [Whole(1, 65_535)] or "all workloads",
        /// Differentiated services code point of the flows.
        dscp: u8 [Whole(0, 63)] or "all",
        /// Size of the smallest flow.
        min_size: Bytes [Amount] or "any size",
        /// Only this many flows, the largest of those that the other keys choose.
        largest: u32 [Whole(1, 65_535)] or "all of them",
    }
}

section! {
    /// Queues over time: length, drops, marks, bytes sent. With --output, they are in the table queue_series. Without an
    /// interval, no queue is sampled.
    pub struct QueueSeries in QUEUE_SERIES = "queue_series" {
        /// Length of the intervals.
        interval: Nanos [Time] or "no samples",
        /// Ports whose queues are sampled, as in [measure].
        ports: Vec<String> [Texts("\"tor0 > h3\" (the port of tor0 that leads to h3), \"tor0:p3\" or \"tor0:Ethernet4\" (a port), or \"tor0\" (all its ports)")] or "all ports of all routers",
        /// Whether the classes of a port's scheduler are sampled apart: with --output, in the table class_series. The schemes priority,
        /// scavenger, drr and fq_codel have classes.
        classes: bool [Boolean] default "false",
    }
}

section! {
    /// A monitor port of a router: sends copies of what other ports send, up to its rate and buffer (Planck, section
    /// 3.1). With --output, mirror-ROUTER.pcapng contains the copies with valid headers. At most one per router.
    pub struct Mirror in MIRROR = ["mirror"] {
        /// The router.
        router: String [Text("the name of a router")] needed,
        /// Ports whose packets are copied.
        ports: Vec<String> [Texts("names of what ports lead to, such as \"h3\"")] or "all",
        /// Rate of the monitor port.
        rate: BitRate [Rate] or "that of the fastest endpoint's link",
        /// Buffer of the monitor port. Copies that do not fit are dropped and counted.
        buffer: Bytes [Amount] default "1MiB",
    }
}

section! {
    /// A link failure: packets on the link and in its queues are lost. There may be several.
    pub struct Failure in FAILURE = ["failure"] {
        /// The two ends of the link, or a port at one of them, by its number or by its name in the topology.
        link: Vec<String> [Texts("the names of its two ends, as [\"edge0\", \"agg0\"], or a port, as \"edge0:p2\"")] needed,
        /// Time of the failure.
        at: Nanos [Delay] needed,
        /// Time of the repair.
        repair: Nanos [Delay] or "never",
        /// Delay until routers react to failure and repair.
        reroute_after: Nanos [Delay] default "0ns",
    }
}

const SIZE: Whole = Whole(1, 65_535);
const LOAD: Noted<Number> =
    Noted(Number(0.0, thalweg_emulator::workloads::MAX_LOAD), " (a multiple of the rate: 0.7 is 70 %)");
const ENDPOINTS: Texts = Texts("names of endpoints, such as \"h0\", or ranges, such as \"h0..h3\"");

choices! {
    /// How routers choose among equal-cost paths.
    pub enum BalanceName {
        /// by a hash of the flow, so that a flow keeps its path (RFC 2992)
        Ecmp = "ecmp",
        /// at random for each packet
        Spray = "spray",
    }
}

choices! {
    /// Spacing of requests over time.
    pub enum SpacingName {
        /// a Poisson process
        Poisson = "poisson",
        /// evenly spaced
        Constant = "constant",
    }
}

choices! {
    /// Destinations of packets.
    pub enum DestinationsName {
        /// any other endpoint, drawn uniformly for each packet
        Uniform = "uniform",
        /// a fixed permutation of the endpoints
        Permutation = "permutation",
    }
}

fn shape_summary(name: &str) -> &'static str {
    Shape::named(name).map_or("from a file of routers, endpoints and links", |shape| shape.summary)
}

fn transport_summary(name: &str) -> &'static str {
    match Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name) {
        Some(Algorithm::NewReno) => "TCP NewReno (RFC 5681, 6582)",
        Some(Algorithm::Cubic) => "TCP CUBIC (RFC 9438)",
        Some(Algorithm::CubicHyStart) => "TCP CUBIC with HyStart++ (RFC 9438, 9406)",
        Some(Algorithm::Dctcp) => "Data Center TCP (RFC 8257)",
        Some(Algorithm::HTcp) => "H-TCP (Leith and Shorten, draft-leith-tcp-htcp-06)",
        Some(_) => "TCP",
        None => "pFabric's minimal transport (SIGCOMM 2013, section 4.3)",
    }
}

fn pattern_summary(name: &str) -> &'static str {
    summary(PATTERNS, name)
}

fn sender_summary(name: &str) -> &'static str {
    summary(SENDERS, name)
}

fn summary(known: &'static [Named], name: &str) -> &'static str {
    known.iter().find(|known| known.name == name).map_or("", |known| known.summary)
}

#[cfg(test)]
mod tests {
    use thalweg_emulator::schemes::SCHEMES;

    use super::super::SCHEMA;
    use super::*;

    #[test]
    fn defaults_are_valid_and_every_key_is_documented() {
        SCHEMA.check();
    }

    #[test]
    fn selectable_names_are_the_implemented_ones() {
        let names =
            |section: &Section| -> Vec<&str> { section.choices().iter().map(|(name, _)| *name).collect() };
        let shapes = thalweg_network::topology::shapes::SHAPES.iter().map(|shape| shape.name);
        assert!(names(&TOPOLOGY).into_iter().eq(shapes.chain(["file"])));
        assert!(names(Scheme::section()).into_iter().eq(SCHEMES.iter().map(|scheme| scheme.name)));
        assert!(names(&WORKLOAD).into_iter().eq(PATTERNS.iter().map(|pattern| pattern.name)));
        assert!(names(&PACKETS).into_iter().eq(SENDERS.iter().map(|sender| sender.name)));
        let algorithms = Algorithm::ALL.iter().map(|algorithm| algorithm.name());
        assert!(names(&TRANSPORT).into_iter().eq(algorithms.chain(["pfabric"])));
        for section in *SECTIONS {
            assert!(section.choices().iter().all(|(_, summary)| !summary.is_empty()), "{}", section.name);
        }
    }
}
