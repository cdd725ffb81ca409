//! The sections that an experiment file may have, each declared once. Their types, the reading of files, the printed
//! experiment, sweeps, the reference and the JSON Schema come from here.

use thalweg_config::kind::{Amount, Boolean, Delay, Number, Rate, Share, Text, Texts, Time, Whole, one_of};
use thalweg_config::{Section, choices, keys, section};
use thalweg_emulator::hosts::Algorithm;
use thalweg_emulator::schemes::SCHEMES;
use thalweg_emulator::workloads::Named;
use thalweg_emulator::workloads::open_loop::SENDERS;
use thalweg_emulator::workloads::patterns::PATTERNS;
use thalweg_network::topology::shapes::Shape;
use thalweg_wire::{BitRate, Bytes, Nanos};

/// The sections, in the order of a printed experiment; the first is that of the keys above all others.
pub static SECTIONS: [&Section; 10] =
    [&TOP, &TOPOLOGY, &SCHEME, &ROUTING, &TRANSPORT, &WORKLOAD, &PACKETS, &MEASURE, &MIRROR, &FAILURE];

section! {
    /// The experiment as a whole. These keys stand above all sections.
    pub struct Top in TOP = "" {
        /// What reports and files call it.
        name: String [Text("a name")] or "the file's name",
        /// Everything random comes of it: the same seed gives the same bytes.
        seed: u64 [Whole(0, u64::MAX)] default "1",
        /// Time that is emulated.
        duration: Nanos [Time] needed,
        /// How much of it passes before anything counts: what the table shows, and flows that begin, are
        /// after it. Files have all of it.
        warm_up: Nanos [Delay] default "0ns",
        /// Time after the duration in which flows under way may complete, while no flow starts. Without it, the flows that
        /// take longest would be missing from the completion times. It ends when all have completed.
        drain: Nanos [Delay] or "ten times the duration, at least 1s",
    }
}

keys! {
    /// Of shapes with racks that are alike.
    pub struct RackCount {
        /// How many racks there are.
        racks: u32 [SIZE] default "2",
    }
}

keys! {
    /// Of shapes with racks.
    pub struct RackSize {
        /// Endpoints of each rack. The default is that of Flexplane's racks.
        endpoints: u32 [SIZE] default "32",
    }
}

keys! {
    /// Of leaf-spine networks.
    pub struct LeafSpine {
        /// How many racks there are.
        leaves: u32 [SIZE] default "4",
        /// Switches that connect the racks.
        spines: u32 [SIZE] default "2",
    }
}

keys! {
    /// Of fat trees.
    pub struct FatTree {
        /// Ports of each switch, an even number: there are k^3/4 endpoints.
        k: u32 [SIZE] default "4",
    }
}

keys! {
    /// Of shapes that are built, not read.
    pub struct AccessLinks {
        /// Rate of the endpoints' links.
        rate: BitRate [Rate] default "10gbps",
        /// Delay of the endpoints' links: propagation, and what a switch takes. The default is that of 20 m
        /// and a fast switch.
        delay: Nanos [Delay] default "1us",
    }
}

keys! {
    /// Of shapes with links between routers.
    pub struct Uplinks {
        /// Rate of the links between routers.
        uplink_rate: BitRate [Rate] or "that of the endpoints' links",
        /// Delay of the links between routers.
        uplink_delay: Nanos [Delay] or "that of the endpoints' links",
    }
}

keys! {
    /// Of topologies that are read.
    pub struct TopologyFile {
        /// A file with routers, endpoints and links, named from the folder of the experiment's.
        file: String [Text("the name of a topology file")] needed,
    }
}

keys! {
    /// Of all topologies.
    pub struct Packet {
        /// Bytes of the longest IP packet. With 38 bytes of Ethernet framing it takes one slot on the fastest
        /// endpoint's link.
        mtu: u16 [Whole(576, 9_216)] default "1500",
    }
}

section! {
    /// Who is attached to whom, and by which links.
    pub enum Topology in TOPOLOGY = "topology" {
        /// What the network looks like.
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

keys! {
    /// Of schemes with one queue a port.
    pub struct PortBuffer {
        /// Packets that a port has room for. The default is that of Flexplane, section 5.1.
        buffer: u32 [BUFFER] default "1024",
    }
}

keys! {
    /// Of schemes with several queues a port, each with room of its own.
    pub struct QueueBuffer {
        /// Packets that each queue of a port has room for. The default is that of Flexplane, section 5.1.
        buffer: u32 [BUFFER] default "1024",
    }
}

keys! {
    /// Of pFabric.
    pub struct PFabricBuffer {
        /// Packets that a port has room for: about twice the bandwidth-delay product (pFabric, section 4.2).
        buffer: u32 [Whole(1, 4_096)] default "36",
    }
}

keys! {
    /// Of FQ-CoDel: its room.
    pub struct FqCodelBuffer {
        /// Packets that a port has room for, in all its queues (RFC 8290, section 5.2.3).
        buffer: u32 [Whole(1, 32_768)] default "10240",
    }
}

keys! {
    /// Of random early detection.
    pub struct Red {
        /// Average length, in packets, below which nothing is dropped (Flexplane, section 5.1).
        min_threshold: u32 [Whole(0, MAX_BUFFER)] default "150",
        /// Average length, in packets, from which on everything is dropped (Flexplane, section 5.1).
        max_threshold: u32 [Whole(1, MAX_BUFFER)] default "300",
        /// Probability of a drop or mark just below the upper threshold (Flexplane, section 5.1).
        max_probability: f64 [PROBABILITY] default "0.1",
        /// The average's weight as a negative power of two: 5 is 1/32 (Flexplane, section 5.1).
        weight: u8 [Whole(0, 16)] default "5",
        /// Whether the probability goes up to 1 between the upper threshold and twice that.
        gentle: bool [Boolean] default "false",
    }
}

keys! {
    /// Of DCTCP.
    pub struct Dctcp {
        /// K: packets in a queue from which on arrivals are marked; 65 is for 10 Gbit/s (DCTCP, section 3.4).
        threshold: u32 [Whole(0, MAX_BUFFER)] default "65",
    }
}

keys! {
    /// Of HULL.
    pub struct Hull {
        /// Length of a phantom queue beyond which packets are marked (Flexplane, section 5.2, for 10 Gbit/s;
        /// HULL itself has 1 kB at 1 Gbit/s).
        threshold: Bytes [Amount] default "15000B",
        /// Share of the link's rate at which phantom queues drain (HULL, section 6).
        gamma: f64 [PROBABILITY] default "0.95",
    }
}

keys! {
    /// Of strict priorities.
    pub struct PriorityQueues {
        /// Queues at a port; DSCP 0 is the most urgent (Flexplane, section 4).
        queues: u8 [QUEUES] default "64",
    }
}

keys! {
    /// Of deficit round robin.
    pub struct DrrQueues {
        /// Queues at a port, for flows by a hash (Flexplane, section 4).
        queues: u8 [QUEUES] default "64",
        /// What a turn adds, framing included: no less than the longest packet.
        quantum: Bytes [Amount] default "1538B",
    }
}

keys! {
    /// Of FQ-CoDel.
    pub struct FqCodel {
        /// What a turn adds, framing included: a full-size packet (RFC 8290, section 5.2.4).
        quantum: Bytes [Amount] default "1538B",
        /// Flow queues at a port (RFC 8290, section 5.2.5).
        flows: u32 [Whole(1, 65_536)] default "1024",
        /// Acceptable queueing delay (RFC 8290, section 5.2.2).
        target: Nanos [Time] or "5ms up to 100Mbit/s, less in proportion to the rate of endpoints' links, 50us from 10Gbit/s on",
        /// Time in which at least one packet must have waited for less than the target: about the longest round trip
        /// (RFC 8290, section 5.2.1).
        interval: Nanos [Time] or "100ms up to 100Mbit/s, less in proportion to the rate, 1ms from 10Gbit/s on",
        /// Whether ECN-capable packets are marked in the place of drops (RFC 8290, section 5.2.6).
        ecn: bool [Boolean] default "true",
    }
}

keys! {
    /// Of PIE.
    pub struct Pie {
        /// Target queueing delay, QDELAY_REF (RFC 8033, section 4.2).
        target: Nanos [Time] or "15ms up to 66Mbit/s, less in proportion to the rate of endpoints' links, 100us from 10Gbit/s on",
        /// Time between updates, T_UPDATE (RFC 8033, section 4.2).
        update: Nanos [Time] or "15ms up to 66Mbit/s, less in proportion to the rate, 100us from 10Gbit/s on",
        /// Gain on the distance from the target, per second (RFC 8033, section 4.2).
        alpha: f64 [POSITIVE] or "0.125 up to 66Mbit/s, more in proportion to the rate, 18.75 from 10Gbit/s on",
        /// Gain on the change of the delay, per second (RFC 8033, section 4.2).
        beta: f64 [POSITIVE] or "1.25 up to 66Mbit/s, more in proportion to the rate, 187.5 from 10Gbit/s on",
        /// Length of a burst that passes without drops, MAX_BURST (RFC 8033, section 4.4).
        max_burst: Nanos [Delay] or "150ms up to 66Mbit/s, less in proportion to the rate, 1ms from 10Gbit/s on",
        /// Whether ECN-capable packets are marked in the place of drops.
        ecn: bool [Boolean] default "false",
        /// Drop probability beyond which packets are dropped all the same, mark_ecnth (RFC 8033, section
        /// 5.1).
        ecn_threshold: f64 [Share] default "0.1",
    }
}

section! {
    /// How routers manage their queues. Keys for a scheme that a sweep chooses stand in a section of their
    /// own, as [scheme.hull].
    pub enum Scheme in SCHEME = "scheme" {
        /// The scheme of all routers.
        select name [scheme_summary] default "droptail",
        groups { PortBuffer, QueueBuffer, PFabricBuffer, FqCodelBuffer, Red, Dctcp, Hull, PriorityQueues, DrrQueues, FqCodel, Pie }
        DropTail = "droptail" (PortBuffer),
        Red = "red" (PortBuffer, Red),
        RedEcn = "red-ecn" (PortBuffer, Red),
        Dctcp = "dctcp" (PortBuffer, Dctcp),
        Priority = "priority" (QueueBuffer, PriorityQueues),
        Drr = "drr" (QueueBuffer, DrrQueues),
        Hull = "hull" (PortBuffer, Hull),
        PFabric = "pfabric" (PFabricBuffer),
        Pie = "pie" (PortBuffer, Pie),
        FqCodel = "fq_codel" (FqCodelBuffer, FqCodel),
    }
}

section! {
    /// How routers choose among shortest paths.
    pub struct Routing in ROUTING = "routing" {
        /// By what they choose.
        balance: BalanceName [one_of::<BalanceName>()] default "ecmp",
    }
}

keys! {
    /// Of congestion control that can do without ECN.
    pub struct Ecn {
        /// Whether data are ECN-capable and the receiver echoes marks (RFC 3168). DCTCP does so in any case.
        ecn: bool [Boolean] or "true if the scheme marks",
    }
}

keys! {
    /// Of TCP.
    pub struct Tcp {
        /// Initial window in segments (RFC 6928, section 2).
        initial_window: u32 [Whole(1, 1_000)] default "10",
        /// Least retransmission timeout. The default is that of Linux; data centres that tune for incast set
        /// 1 to 10 ms.
        min_rto: Nanos [Time] default "200ms",
        /// Retransmission timeout before the first measurement of a round trip. Flows begin after the handshake,
        /// which has measured one (RFC 6298, rule 2.2).
        initial_rto: Nanos [Time] or "three round trips of the longest path without queues",
        /// Longest retransmission timeout (RFC 6298, rule 2.5).
        max_rto: Nanos [Time] default "1min",
        /// Full-size segments that one acknowledgement answers (RFC 5681, section 4.2).
        ack_every: u32 [Whole(1, 64)] default "2",
        /// How long an acknowledgement may wait. The default is the least that Linux waits.
        ack_timeout: Nanos [Time] default "40ms",
        /// Whether recovery is undone when what it took for lost was only late (RFC 3522 and 4015), as Linux
        /// does it.
        tolerates_reordering: bool [Boolean] default "true",
    }
}

keys! {
    /// Of pFabric's minimal transport.
    pub struct PFabricTransport {
        /// Window of a flow that begins, and the largest (pFabric, section 4.3).
        window: Bytes [Amount] or "a bandwidth-delay product of the longest path",
        /// Timeout of all flows (pFabric, section 4.3).
        rto: Nanos [Time] or "three round trips of the longest path without queues",
        /// Timeouts in a row after which a flow only probes (pFabric, section 4.3).
        probe_after: u32 [Whole(1, 1_000)] default "5",
    }
}

keys! {
    /// Of all transports.
    pub struct Hosts {
        /// How long a segment that has arrived waits for the host's kernel. With the default a round trip
        /// through an idle rack takes some 25 us at 10 Gbit/s.
        stack_delay: Nanos [Delay] default "10us",
        /// What a receiver holds of a flow. The default is the most that Linux gives by itself.
        receive_window: Bytes [Amount] default "6MiB",
        /// Flows under way at the same time; more are refused, and counted.
        max_flows: u32 [Whole(1, 1 << 24)] default "1048576",
    }
}

section! {
    /// How endpoints send flows. Where no transport is named, keys of all of them may stand; else keys for
    /// one that a sweep chooses stand in a section of their own, as [transport.dctcp].
    pub enum Transport in TRANSPORT = "transport" {
        /// Congestion control, or pFabric's minimal transport.
        select name [transport_summary] or "what goes with the scheme: dctcp with dctcp and hull, pfabric with pfabric, else cubic",
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
    /// Of patterns whose flows have sizes.
    pub struct FlowSizes {
        /// Bytes of the flows: a published distribution (see thalweg emulate --list), a file of them with
        /// lines BYTES,PROBABILITY, an amount, or forever. Several, each "WEIGHT SIZES" or "WEIGHT SIZES dscp
        /// N", are a mixture: ["0.8 1500B dscp 0", "0.2 10MB dscp 1"].
        sizes: Vec<String> [Texts( "\"web_search\", another published distribution, the name of a file, an amount as \"10MB\", or \"forever\"", )] needed,
    }
}

keys! {
    /// Of patterns that send at a load.
    pub struct Load {
        /// What hosts or clients receive on average, payload alone, as a share of their links' rate.
        load: f64 [LOAD] needed,
        /// How requests are spaced over time.
        spacing: SpacingName [one_of::<SpacingName>()] default "poisson",
    }
}

keys! {
    /// Of requests to servers.
    pub struct Requests {
        /// Endpoints that request.
        clients: Vec<String> [ENDPOINTS] needed,
        /// Endpoints that answer.
        servers: Vec<String> [ENDPOINTS] or "all that are no clients",
        /// Servers that each request asks at once; each answers with a flow.
        fan_in: usize [Whole(1, 65_535)] default "1",
    }
}

keys! {
    /// Of patterns in which all hosts may take part.
    pub struct Participants {
        /// Endpoints that take part.
        hosts: Vec<String> [ENDPOINTS] or "all",
    }
}

keys! {
    /// Of patterns in which all send to one.
    pub struct ToOne {
        /// The endpoint that all send to.
        receiver: String [Text("the name of an endpoint")] default "h0",
        /// Endpoints that send to it.
        senders: Vec<String> [ENDPOINTS] or "all but the receiver",
    }
}

keys! {
    /// Of incast.
    pub struct Rounds {
        /// Rounds; each begins when all flows of the one before are done.
        rounds: u64 [Whole(1, u64::MAX)] or "until the end",
        /// Time between rounds.
        pause: Nanos [Delay] default "0ns",
    }
}

keys! {
    /// Of strides.
    pub struct Stride {
        /// Host i sends to host i + stride, counted round.
        stride: usize [Whole(1, 65_535)] or "half of the hosts",
    }
}

keys! {
    /// Of shuffles.
    pub struct Shuffle {
        /// Flows that each host sends at a time (Planck, section 7.1).
        at_once: usize [Whole(1, 65_535)] default "2",
    }
}

keys! {
    /// Of staggered flows.
    pub struct Stages {
        /// Hosts under one edge switch, which follow one another.
        hosts_per_edge: usize [Whole(2, 65_535)] default "2",
        /// Hosts in one pod, a multiple of those.
        hosts_per_pod: usize [Whole(3, 65_535)] default "4",
        /// Probability that a flow stays under its edge switch.
        edge: f64 [Share] default "0.5",
        /// Probability that it goes to another edge switch of its pod.
        pod: f64 [Share] default "0.3",
    }
}

keys! {
    /// Of patterns with a flow for each host.
    pub struct Apart {
        /// How much later than the one before each flow begins.
        apart: Nanos [Delay] default "0ns",
    }
}

keys! {
    /// Of flows that are read.
    pub struct FlowFile {
        /// A CSV file, START,SOURCE,DESTINATION,BYTES and perhaps ,DSCP on each line, named from the folder
        /// of the experiment's.
        file: String [Text("the name of a file of flows")] needed,
    }
}

keys! {
    /// Of flows that are not read.
    pub struct Start {
        /// When the first flow may begin.
        from: Nanos [Delay] default "0ns",
    }
}

keys! {
    /// Of all workloads.
    pub struct Limits {
        /// From when on no flow begins.
        until: Nanos [Time] or "the end",
        /// Most flows that begin.
        flows: u64 [Whole(1, u64::MAX)] or "no limit",
    }
}

keys! {
    /// Of patterns whose flows have sizes: how urgent they are.
    pub struct CodePoint {
        /// Differentiated services code point of the packets; what sizes says goes first.
        dscp: u8 [Whole(0, 63)] default "0",
    }
}

section! {
    /// Flows that endpoints begin. There may be several workloads, whose flows are merged in order of time.
    ///
    /// Endpoints are named as the topology has them, "h0", or as a range of them with both ends, "h0..h3".
    pub enum Workload in WORKLOAD = ["workload"] {
        /// Who sends to whom.
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
    /// Of all senders of packets.
    pub struct OpenLoop {
        /// What each endpoint sends, framing included, as a share of its link's rate.
        load: f64 [LOAD] needed,
        /// Bytes of the packets on a link, framing included. Several, each "WEIGHT LENGTH", are a mixture.
        lengths: Vec<String> [Texts("\"64B\", or several as \"0.5 64B\"")] or "full-size packets",
        /// Whom each endpoint sends to.
        destinations: DestinationsName [one_of::<DestinationsName>()] default "uniform",
        /// Share of packets that leave their rack, if destinations are uniform.
        leaving: f64 [Share] or "whatever an even draw gives",
        /// Differentiated services code point of the packets.
        dscp: u8 [Whole(0, 63)] default "0",
        /// Whether packets are ECN-capable.
        ecn: bool [Boolean] default "false",
    }
}

keys! {
    /// Of bursts.
    pub struct BurstLengths {
        /// Hurst parameter: 0.5 is no long-range dependence.
        hurst: f64 [Number(0.499_999, 0.999_999)] default "0.8",
        /// Mean length of a burst.
        burst: Nanos [Time] default "100us",
        /// Rate of a burst, as a share of the endpoint's link.
        burst_rate: f64 [LOAD] default "0.1",
    }
}

section! {
    /// Packets that endpoints send whatever becomes of them, without transport.
    pub enum Packets in PACKETS = ["packets"] {
        /// How packets are spaced over time.
        select sender [sender_summary] needed,
        groups { OpenLoop, BurstLengths }
        Poisson = "poisson" (),
        Constant = "constant" (),
        Bursts = "bursts" (BurstLengths),
    }
}

section! {
    /// What is written down as the emulation runs.
    pub struct Measure in MEASURE = "measure" {
        /// How often queues are looked at.
        queue_interval: Nanos [Time] or "a thousandth of the duration, or longer if there are many ports",
        /// Over how long what links carry is added up.
        link_interval: Nanos [Time] or "a hundredth of the duration, or longer if there are many links",
        /// Ports whose queues are looked at.
        ports: Vec<String> [Texts("\"tor0 > h3\" (the port of tor0 that leads to h3), or \"tor0\" (all its ports)")] or "all of all routers",
    }
}

section! {
    /// A monitor port of a router: it sends a copy of what other ports send, as far as its rate and its
    /// buffer go (Planck, section 3.1). With --output the copies are in mirror-ROUTER.pcapng, with true headers.
    /// There may be one a router.
    pub struct Mirror in MIRROR = ["mirror"] {
        /// The router.
        router: String [Text("the name of a router")] needed,
        /// Ports whose packets are copied.
        ports: Vec<String> [Texts("names of what ports lead to, as \"h3\"")] or "all",
        /// Rate of the monitor port.
        rate: BitRate [Rate] or "that of the fastest endpoint's link",
        /// What may wait for it; what finds no room is dropped, and counted.
        buffer: Bytes [Amount] default "1MiB",
    }
}

section! {
    /// A link that fails: what is on it, and what waits for it, is lost. There may be several.
    pub struct Failure in FAILURE = ["failure"] {
        /// The two ends of the link.
        link: Vec<String> [Texts("the names of its two ends, as [\"edge0\", \"agg0\"]")] needed,
        /// When it fails.
        at: Nanos [Delay] needed,
        /// When it is up again.
        repair: Nanos [Delay] or "it is not repaired",
        /// How long after either routers know.
        reroute_after: Nanos [Delay] default "0ns",
    }
}

const SIZE: Whole = Whole(1, 65_535);
const MAX_BUFFER: u64 = 1 << 20;
const BUFFER: Whole = Whole(1, MAX_BUFFER);
const QUEUES: Whole = Whole(1, 64);
const PROBABILITY: Number = Number(0.0, 1.0);
const POSITIVE: Number = Number(0.0, f64::INFINITY);
const LOAD: Number = Number(0.0, thalweg_emulator::workloads::MAX_LOAD);
const ENDPOINTS: Texts = Texts("names of endpoints, as \"h0\" or \"h0..h3\"");

choices! {
    /// How routers choose among paths.
    pub enum BalanceName {
        /// by a hash of the flow, so that a flow keeps to its path (RFC 2992)
        Ecmp = "ecmp",
        /// at random for each packet
        Spray = "spray",
    }
}

choices! {
    /// How requests are spaced over time.
    pub enum SpacingName {
        /// a Poisson process
        Poisson = "poisson",
        /// evenly
        Constant = "constant",
    }
}

choices! {
    /// Whom endpoints send packets to.
    pub enum DestinationsName {
        /// any other, drawn evenly for each packet
        Uniform = "uniform",
        /// each to one other, all to different ones
        Permutation = "permutation",
    }
}

fn shape_summary(name: &str) -> &'static str {
    Shape::named(name).map_or("from a file of routers, endpoints and links", |shape| shape.summary)
}

fn scheme_summary(name: &str) -> &'static str {
    SCHEMES.iter().find(|scheme| scheme.name == name).map_or("", |scheme| scheme.summary)
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
        assert!(names(&SCHEME).into_iter().eq(SCHEMES.iter().map(|scheme| scheme.name)));
        assert!(names(&WORKLOAD).into_iter().eq(PATTERNS.iter().map(|pattern| pattern.name)));
        assert!(names(&PACKETS).into_iter().eq(SENDERS.iter().map(|sender| sender.name)));
        let algorithms = Algorithm::ALL.iter().map(|algorithm| algorithm.name());
        assert!(names(&TRANSPORT).into_iter().eq(algorithms.chain(["pfabric"])));
        for section in SECTIONS {
            assert!(section.choices().iter().all(|(_, summary)| !summary.is_empty()), "{}", section.name);
        }
    }
}
