//! The table of everything that an experiment file may say. It drives the reading of files, the printed experiment,
//! sweeps, and the reference.

use thalweg_emulator::hosts::Algorithm;
use thalweg_emulator::schemes::SCHEMES;
use thalweg_emulator::workloads::open_loop::SENDERS;
use thalweg_emulator::workloads::patterns::PATTERNS;
use thalweg_network::topology::shapes::SHAPES;

use super::key::{Choice, Default, Key, Kind, Section};

use Default::{Needed, Value, Words};
use Kind::{Amount, Boolean, Delay, Name, Number, Rate, Share, Text, Texts, Time, Whole};

/// The sections, in the order of a printed experiment; the first is that of the keys above all others.
pub static SECTIONS: [&Section; 10] =
    [&TOP, &TOPOLOGY, &SCHEME, &ROUTING, &TRANSPORT, &WORKLOAD, &PACKETS, &MEASURE, &MIRROR, &FAILURE];

/// Keys above all sections.
pub static TOP: Section = Section {
    name: "",
    about: "The experiment as a whole. These keys stand above all sections.",
    repeats: false,
    selector: None,
    keys: &[
        key("name", Text("a name"), Words("the file's name"), "What reports and files call it."),
        key(
            "seed",
            Whole(0, u64::MAX),
            Value("1"),
            "Everything random comes of it: the same seed gives the same bytes.",
        ),
        key("duration", Time, Needed, "Time that is emulated."),
        key(
            "warm_up",
            Delay,
            Value("0ns"),
            "How much of it passes before anything counts: what the table shows, and flows that begin, are after it. \
             Files have all of it.",
        ),
    ],
};

/// Who is attached to whom.
pub static TOPOLOGY: Section = Section {
    name: "topology",
    about: "Who is attached to whom, and by which links.",
    repeats: false,
    selector: Some("shape"),
    keys: &[
        key("shape", Name(shapes), Value("rack"), "What the network looks like."),
        of(&["racks", "isolated_racks"], "racks", SIZE, Value("2"), "How many racks there are."),
        of(
            &["rack", "racks", "isolated_racks", "dumbbell", "leaf_spine"],
            "endpoints",
            SIZE,
            Value("32"),
            "Endpoints of each rack. The default is that of Flexplane's racks.",
        ),
        of(&["leaf_spine"], "leaves", SIZE, Value("4"), "How many racks there are."),
        of(&["leaf_spine"], "spines", SIZE, Value("2"), "Switches that connect the racks."),
        of(
            &["fat_tree"],
            "k",
            SIZE,
            Value("4"),
            "Ports of each switch, an even number: there are k^3/4 endpoints.",
        ),
        of(BUILT, "rate", Rate, Value("10gbps"), "Rate of the endpoints' links."),
        of(
            BUILT,
            "delay",
            Delay,
            Value("1us"),
            "Delay of the endpoints' links: propagation, and what a switch takes. The default is that of 20 m and a fast \
             switch.",
        ),
        of(
            CONNECTED,
            "uplink_rate",
            Rate,
            Words("that of the endpoints' links"),
            "Rate of the links between routers.",
        ),
        of(
            CONNECTED,
            "uplink_delay",
            Delay,
            Words("that of the endpoints' links"),
            "Delay of the links between routers.",
        ),
        of(
            &["file"],
            "file",
            Text("the name of a topology file"),
            Needed,
            "A file with routers, endpoints and links, named from the folder of the experiment's.",
        ),
        key(
            "mtu",
            Whole(576, 9_216),
            Value("1500"),
            "Bytes of the longest IP packet. With 38 bytes of Ethernet framing it takes one slot on the fastest endpoint's \
             link.",
        ),
    ],
};

/// How routers manage their queues.
pub static SCHEME: Section = Section {
    name: "scheme",
    about: "How routers manage their queues. Keys for a scheme that a sweep chooses stand in a section of their own, as \
            [scheme.hull].",
    repeats: false,
    selector: Some("name"),
    keys: &[
        key("name", Name(schemes), Value("droptail"), "The scheme of all routers."),
        of(
            &["droptail", "red", "red-ecn", "dctcp", "hull", "pie"],
            "buffer",
            BUFFER,
            Value("1024"),
            "Packets that a port has room for. The default is that of Flexplane, section 5.1.",
        ),
        of(
            &["priority", "drr"],
            "buffer",
            BUFFER,
            Value("1024"),
            "Packets that each queue of a port has room for. The default is that of Flexplane, section 5.1.",
        ),
        of(
            &["pfabric"],
            "buffer",
            Whole(1, 4_096),
            Value("36"),
            "Packets that a port has room for: about twice the bandwidth-delay product (pFabric, section 4.2).",
        ),
        of(
            &["fq_codel"],
            "buffer",
            Whole(1, 32_768),
            Value("10240"),
            "Packets that a port has room for, in all its queues (RFC 8290, section 5.2.3).",
        ),
        of(
            &["red", "red-ecn"],
            "min_threshold",
            Whole(0, MAX_BUFFER),
            Value("150"),
            "Average length, in packets, below which nothing is dropped (Flexplane, section 5.1).",
        ),
        of(
            &["red", "red-ecn"],
            "max_threshold",
            Whole(1, MAX_BUFFER),
            Value("300"),
            "Average length, in packets, from which on everything is dropped (Flexplane, section 5.1).",
        ),
        of(
            &["red", "red-ecn"],
            "max_probability",
            PROBABILITY,
            Value("0.1"),
            "Probability of a drop or mark just below the upper threshold (Flexplane, section 5.1).",
        ),
        of(
            &["red", "red-ecn"],
            "weight",
            Whole(0, 16),
            Value("5"),
            "The average's weight as a negative power of two: 5 is 1/32 (Flexplane, section 5.1).",
        ),
        of(
            &["red", "red-ecn"],
            "gentle",
            Boolean,
            Value("false"),
            "Whether the probability goes up to 1 between the upper threshold and twice that.",
        ),
        of(
            &["dctcp"],
            "threshold",
            Whole(0, MAX_BUFFER),
            Value("65"),
            "K: packets in a queue from which on arrivals are marked; 65 is for 10 Gbit/s (DCTCP, section 3.4).",
        ),
        of(
            &["hull"],
            "threshold",
            Amount,
            Value("15000B"),
            "Length of a phantom queue beyond which packets are marked (Flexplane, section 5.2, for 10 Gbit/s; HULL itself \
             has 1 kB at 1 Gbit/s).",
        ),
        of(
            &["hull"],
            "gamma",
            PROBABILITY,
            Value("0.95"),
            "Share of the link's rate at which phantom queues drain (HULL, section 6).",
        ),
        of(
            &["priority"],
            "queues",
            QUEUES,
            Value("64"),
            "Queues at a port; DSCP 0 is the most urgent (Flexplane, section 4).",
        ),
        of(
            &["drr"],
            "queues",
            QUEUES,
            Value("64"),
            "Queues at a port, for flows by a hash (Flexplane, section 4).",
        ),
        of(
            &["drr"],
            "quantum",
            Amount,
            Value("1538B"),
            "What a turn adds, framing included: no less than the longest packet.",
        ),
        of(
            &["fq_codel"],
            "quantum",
            Amount,
            Value("1538B"),
            "What a turn adds, framing included: a full-size packet (RFC 8290, section 5.2.4).",
        ),
        of(
            &["fq_codel"],
            "flows",
            Whole(1, 65_536),
            Value("1024"),
            "Flow queues at a port (RFC 8290, section 5.2.5).",
        ),
        of(
            &["fq_codel"],
            "target",
            Time,
            Value("5ms"),
            "Wait that is acceptable (RFC 8290, section 5.2.2); 50us suits a data centre.",
        ),
        of(
            &["fq_codel"],
            "interval",
            Time,
            Value("100ms"),
            "Time in which a packet must have waited for less: about the longest round trip (RFC 8290, section 5.2.1); 1ms \
             suits a data centre.",
        ),
        of(
            &["fq_codel"],
            "ecn",
            Boolean,
            Value("true"),
            "Whether ECN-capable packets are marked in the place of drops (RFC 8290, section 5.2.6).",
        ),
        of(
            &["pie"],
            "target",
            Time,
            Value("15ms"),
            "Delay that is wanted, QDELAY_REF (RFC 8033, section 4.2).",
        ),
        of(
            &["pie"],
            "update",
            Time,
            Value("15ms"),
            "Time between updates, T_UPDATE (RFC 8033, section 4.2).",
        ),
        of(
            &["pie"],
            "alpha",
            POSITIVE,
            Value("0.125"),
            "Gain on the distance from the target, per second (RFC 8033, section 4.2).",
        ),
        of(
            &["pie"],
            "beta",
            POSITIVE,
            Value("1.25"),
            "Gain on the change of the delay, per second (RFC 8033, section 4.2).",
        ),
        of(
            &["pie"],
            "max_burst",
            Delay,
            Value("150ms"),
            "Length of a burst that is let through, MAX_BURST (RFC 8033, section 4.4).",
        ),
        of(
            &["pie"],
            "ecn",
            Boolean,
            Value("false"),
            "Whether ECN-capable packets are marked in the place of drops.",
        ),
        of(
            &["pie"],
            "ecn_threshold",
            Share,
            Value("0.1"),
            "Drop probability beyond which packets are dropped all the same, mark_ecnth (RFC 8033, section 5.1).",
        ),
    ],
};

/// How routers find the way.
pub static ROUTING: Section = Section {
    name: "routing",
    about: "How routers choose among shortest paths.",
    repeats: false,
    selector: None,
    keys: &[key("balance", Name(balances), Value("ecmp"), "By what they choose.")],
};

/// How endpoints send flows.
pub static TRANSPORT: Section = Section {
    name: "transport",
    about: "How endpoints send flows. Where no transport is named, keys of all of them may stand; else keys for one that \
            a sweep chooses stand in a section of their own, as [transport.dctcp].",
    repeats: false,
    selector: Some("name"),
    keys: &[
        key(
            "name",
            Name(transports),
            Words("what goes with the scheme: dctcp with dctcp and hull, pfabric with pfabric, else cubic"),
            "Congestion control, or pFabric's minimal transport.",
        ),
        of(
            &["new_reno", "cubic", "cubic_hystart", "h_tcp"],
            "ecn",
            Boolean,
            Words("true if the scheme marks"),
            "Whether data are ECN-capable and the receiver echoes marks (RFC 3168). DCTCP does so in any case.",
        ),
        of(
            TCP,
            "initial_window",
            Whole(1, 1_000),
            Value("10"),
            "Initial window in segments (RFC 6928, section 2).",
        ),
        of(
            TCP,
            "min_rto",
            Time,
            Value("200ms"),
            "Least retransmission timeout. The default is that of Linux; data centres that tune for incast set 1 to 10 ms.",
        ),
        of(
            TCP,
            "initial_rto",
            Time,
            Value("1s"),
            "Retransmission timeout before the first measurement (RFC 6298, rule 2.1).",
        ),
        of(TCP, "max_rto", Time, Value("1min"), "Longest retransmission timeout (RFC 6298, rule 2.5)."),
        of(
            TCP,
            "ack_every",
            Whole(1, 64),
            Value("2"),
            "Full-size segments that one acknowledgement answers (RFC 5681, section 4.2).",
        ),
        of(
            TCP,
            "ack_timeout",
            Time,
            Value("40ms"),
            "How long an acknowledgement may wait. The default is the least that Linux waits.",
        ),
        of(
            TCP,
            "tolerates_reordering",
            Boolean,
            Value("true"),
            "Whether recovery is undone when what it took for lost was only late (RFC 3522 and 4015), as Linux does it.",
        ),
        of(
            &["pfabric"],
            "window",
            Amount,
            Words("a bandwidth-delay product of the longest path"),
            "Window of a flow that begins, and the largest (pFabric, section 4.3).",
        ),
        of(
            &["pfabric"],
            "rto",
            Time,
            Words("three round trips of the longest path without queues"),
            "Timeout of all flows (pFabric, section 4.3).",
        ),
        of(
            &["pfabric"],
            "probe_after",
            Whole(1, 1_000),
            Value("5"),
            "Timeouts in a row after which a flow only probes (pFabric, section 4.3).",
        ),
        key(
            "stack_delay",
            Delay,
            Value("10us"),
            "How long a segment that has arrived waits for the host's kernel. With the default a round trip through an idle \
             rack takes some 25 us at 10 Gbit/s.",
        ),
        key(
            "receive_window",
            Amount,
            Value("6MiB"),
            "What a receiver holds of a flow. The default is the most that Linux gives by itself.",
        ),
        key(
            "max_flows",
            Whole(1, 1 << 24),
            Value("1048576"),
            "Flows under way at the same time; more are refused, and counted.",
        ),
    ],
};

/// Flows.
pub static WORKLOAD: Section = Section {
    name: "workload",
    about: "Flows that endpoints begin. There may be several workloads, whose flows are merged in order of time.\n\n\
            Endpoints are named as the topology has them, \"h0\", or as a range of them with both ends, \"h0..h3\".",
    repeats: true,
    selector: Some("pattern"),
    keys: &[
        key("pattern", Name(patterns), Needed, "Who sends to whom."),
        of(
            &["all_to_all", "rpc", "incast", "stride", "shuffle", "random_bijection", "random", "staggered"],
            "sizes",
            Texts(
                "\"web_search\", another published distribution, the name of a file, an amount as \"10MB\", or \"forever\"",
            ),
            Needed,
            "Bytes of the flows: a published distribution (see thalweg emulate --list), a file of them with lines \
             BYTES,PROBABILITY, an amount, or forever. Several, each \"WEIGHT SIZES\" or \"WEIGHT SIZES dscp N\", are a \
             mixture: [\"0.8 1500B dscp 0\", \"0.2 10MB dscp 1\"].",
        ),
        of(
            &["all_to_all", "rpc"],
            "load",
            LOAD,
            Needed,
            "What hosts or clients receive on average, payload alone, as a share of their links' rate.",
        ),
        of(
            &["all_to_all", "rpc"],
            "spacing",
            Name(spacings),
            Value("poisson"),
            "How requests are spaced over time.",
        ),
        of(&["rpc"], "clients", ENDPOINTS, Needed, "Endpoints that request."),
        of(&["rpc"], "servers", ENDPOINTS, Words("all that are no clients"), "Endpoints that answer."),
        of(
            &["rpc"],
            "fan_in",
            Whole(1, 65_535),
            Value("1"),
            "Servers that each request asks at once; each answers with a flow.",
        ),
        of(
            &["all_to_all", "stride", "shuffle", "random_bijection", "random", "staggered"],
            "hosts",
            ENDPOINTS,
            Words("all"),
            "Endpoints that take part.",
        ),
        of(
            &["incast", "persistent"],
            "receiver",
            Text("the name of an endpoint"),
            Value("h0"),
            "The endpoint that all send to.",
        ),
        of(
            &["incast", "persistent"],
            "senders",
            ENDPOINTS,
            Words("all but the receiver"),
            "Endpoints that send to it.",
        ),
        of(
            &["incast"],
            "rounds",
            Whole(1, u64::MAX),
            Words("until the end"),
            "Rounds; each begins when all flows of the one before are done.",
        ),
        of(&["incast"], "pause", Delay, Value("0ns"), "Time between rounds."),
        of(
            &["stride"],
            "stride",
            Whole(1, 65_535),
            Words("half of the hosts"),
            "Host i sends to host i + stride, counted round.",
        ),
        of(
            &["shuffle"],
            "at_once",
            Whole(1, 65_535),
            Value("2"),
            "Flows that each host sends at a time (Planck, section 7.1).",
        ),
        of(
            &["staggered"],
            "hosts_per_edge",
            Whole(2, 65_535),
            Value("2"),
            "Hosts under one edge switch, which follow one another.",
        ),
        of(
            &["staggered"],
            "hosts_per_pod",
            Whole(3, 65_535),
            Value("4"),
            "Hosts in one pod, a multiple of those.",
        ),
        of(
            &["staggered"],
            "edge",
            Share,
            Value("0.5"),
            "Probability that a flow stays under its edge switch.",
        ),
        of(
            &["staggered"],
            "pod",
            Share,
            Value("0.3"),
            "Probability that it goes to another edge switch of its pod.",
        ),
        of(
            &["stride", "random_bijection", "random", "staggered", "persistent"],
            "apart",
            Delay,
            Value("0ns"),
            "How much later than the one before each flow begins.",
        ),
        of(
            &["file"],
            "file",
            Text("the name of a file of flows"),
            Needed,
            "A CSV file, START,SOURCE,DESTINATION,BYTES and perhaps ,DSCP on each line, named from the folder of the \
             experiment's.",
        ),
        of(NOT_FROM_FILE, "from", Delay, Value("0ns"), "When the first flow may begin."),
        key("until", Time, Words("the end"), "From when on no flow begins."),
        key("flows", Whole(1, u64::MAX), Words("no limit"), "Most flows that begin."),
        of(
            &["all_to_all", "rpc", "incast", "stride", "shuffle", "random_bijection", "random", "staggered"],
            "dscp",
            Whole(0, 63),
            Value("0"),
            "Differentiated services code point of the packets; what sizes says goes first.",
        ),
    ],
};

/// Packets that nobody acknowledges.
pub static PACKETS: Section = Section {
    name: "packets",
    about: "Packets that endpoints send whatever becomes of them, without transport.",
    repeats: true,
    selector: Some("sender"),
    keys: &[
        key("sender", Name(senders), Needed, "How packets are spaced over time."),
        key(
            "load",
            LOAD,
            Needed,
            "What each endpoint sends, framing included, as a share of its link's rate.",
        ),
        key(
            "lengths",
            Texts("\"64B\", or several as \"0.5 64B\""),
            Words("full-size packets"),
            "Bytes of the packets on a link, framing included. Several, each \"WEIGHT LENGTH\", are a mixture.",
        ),
        key("destinations", Name(destinations), Value("uniform"), "Whom each endpoint sends to."),
        key(
            "leaving",
            Share,
            Words("whatever an even draw gives"),
            "Share of packets that leave their rack, if destinations are uniform.",
        ),
        key("dscp", Whole(0, 63), Value("0"), "Differentiated services code point of the packets."),
        key("ecn", Boolean, Value("false"), "Whether packets are ECN-capable."),
        of(
            &["bursts"],
            "hurst",
            Number(0.499_999, 0.999_999),
            Value("0.8"),
            "Hurst parameter: 0.5 is no long-range dependence.",
        ),
        of(&["bursts"], "burst", Time, Value("100us"), "Mean length of a burst."),
        of(
            &["bursts"],
            "burst_rate",
            LOAD,
            Value("0.1"),
            "Rate of a burst, as a share of the endpoint's link.",
        ),
    ],
};

/// What is written down.
pub static MEASURE: Section = Section {
    name: "measure",
    about: "What is written down as the emulation runs.",
    repeats: false,
    selector: None,
    keys: &[
        key(
            "queue_interval",
            Time,
            Words("a thousandth of the duration, or longer if there are many ports"),
            "How often queues are looked at.",
        ),
        key(
            "link_interval",
            Time,
            Words("a hundredth of the duration, or longer if there are many links"),
            "Over how long what links carry is added up.",
        ),
        key(
            "ports",
            Texts("\"tor0 > h3\" (the port of tor0 that leads to h3), or \"tor0\" (all its ports)"),
            Words("all of all routers"),
            "Ports whose queues are looked at.",
        ),
    ],
};

/// Ports whose packets are copied.
pub static MIRROR: Section = Section {
    name: "mirror",
    about: "A monitor port of a router: it sends a copy of what other ports send, as far as its rate and its buffer go \
            (Planck, section 3.1). With --out the copies are in mirror-ROUTER.pcapng, with true headers. There may be one a \
            router.",
    repeats: true,
    selector: None,
    keys: &[
        key("router", Text("the name of a router"), Needed, "The router."),
        key(
            "ports",
            Texts("names of what ports lead to, as \"h3\""),
            Words("all"),
            "Ports whose packets are copied.",
        ),
        key("rate", Rate, Words("that of the fastest endpoint's link"), "Rate of the monitor port."),
        key(
            "buffer",
            Amount,
            Value("1MiB"),
            "What may wait for it; what finds no room is dropped, and counted.",
        ),
    ],
};

/// Links that fail.
pub static FAILURE: Section = Section {
    name: "failure",
    about: "A link that fails: what is on it, and what waits for it, is lost. There may be several.",
    repeats: true,
    selector: None,
    keys: &[
        key(
            "link",
            Texts("the names of its two ends, as [\"edge0\", \"agg0\"]"),
            Needed,
            "The two ends of the link.",
        ),
        key("at", Delay, Needed, "When it fails."),
        key("repair", Delay, Words("it is not repaired"), "When it is up again."),
        key("reroute_after", Delay, Value("0ns"), "How long after either routers know."),
    ],
};

const SIZE: Kind = Whole(1, 65_535);
const MAX_BUFFER: u64 = 1 << 20;
const BUFFER: Kind = Whole(1, MAX_BUFFER);
const QUEUES: Kind = Whole(1, 64);
const PROBABILITY: Kind = Number(0.0, 1.0);
const POSITIVE: Kind = Number(0.0, f64::INFINITY);
const LOAD: Kind = Number(0.0, thalweg_emulator::workloads::MAX_LOAD);
const ENDPOINTS: Kind = Texts("names of endpoints, as \"h0\" or \"h0..h3\"");

/// Shapes that are built, not read.
const BUILT: &[&str] = &["rack", "racks", "isolated_racks", "dumbbell", "leaf_spine", "fat_tree"];
/// Those of them with links between routers.
const CONNECTED: &[&str] = &["racks", "dumbbell", "leaf_spine", "fat_tree"];
const TCP: &[&str] = &["new_reno", "cubic", "cubic_hystart", "dctcp", "h_tcp"];
const NOT_FROM_FILE: &[&str] = &[
    "all_to_all",
    "rpc",
    "incast",
    "stride",
    "shuffle",
    "random_bijection",
    "random",
    "staggered",
    "persistent",
];

const fn key(name: &'static str, kind: Kind, default: Default, meaning: &'static str) -> Key {
    of(&[], name, kind, default, meaning)
}

const fn of(
    of: &'static [&'static str],
    name: &'static str,
    kind: Kind,
    default: Default,
    meaning: &'static str,
) -> Key {
    Key { name, kind, default, of, meaning }
}

fn shapes() -> Vec<Choice> {
    let shapes = SHAPES.iter().map(|shape| (shape.name, shape.summary));
    shapes.chain([("file", "from a file of routers, endpoints and links")]).collect()
}

fn schemes() -> Vec<Choice> {
    SCHEMES.iter().map(|scheme| (scheme.name, scheme.summary)).collect()
}

fn balances() -> Vec<Choice> {
    vec![
        ("ecmp", "by a hash of the flow, so that a flow keeps to its path (RFC 2992)"),
        ("spray", "at random for each packet"),
    ]
}

/// Transports, by the names that experiments use.
pub fn transports() -> Vec<Choice> {
    let summary = |algorithm| match algorithm {
        Algorithm::NewReno => "TCP NewReno (RFC 5681, 6582)",
        Algorithm::Cubic => "TCP CUBIC (RFC 9438)",
        Algorithm::CubicHyStart => "TCP CUBIC with HyStart++ (RFC 9438, 9406)",
        Algorithm::Dctcp => "Data Center TCP (RFC 8257)",
        Algorithm::HTcp => "H-TCP (Leith and Shorten, draft-leith-tcp-htcp-06)",
        _ => "TCP",
    };
    let tcp = Algorithm::ALL.iter().map(|&algorithm| (algorithm.name(), summary(algorithm)));
    tcp.chain([("pfabric", "pFabric's minimal transport (SIGCOMM 2013, section 4.3)")]).collect()
}

fn patterns() -> Vec<Choice> {
    PATTERNS.iter().map(|pattern| (pattern.name, pattern.summary)).collect()
}

fn senders() -> Vec<Choice> {
    SENDERS.iter().map(|sender| (sender.name, sender.summary)).collect()
}

fn spacings() -> Vec<Choice> {
    vec![("poisson", "a Poisson process"), ("constant", "evenly")]
}

fn destinations() -> Vec<Choice> {
    vec![
        ("uniform", "any other, drawn evenly for each packet"),
        ("permutation", "each to one other, all to different ones"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_accepted_and_every_key_says_what_it_means() {
        for key in SECTIONS.iter().flat_map(|section| section.keys) {
            if let Value(text) = key.default {
                assert!(key.kind.accepts(text), "{}: {text}", key.name);
            }
            assert!(key.meaning.len() > 10 && key.meaning.ends_with('.'), "{}", key.name);
            assert_ne!(key.kind.expected(), "");
        }
    }

    #[test]
    fn a_name_means_one_thing_for_each_that_can_be_selected() {
        for section in SECTIONS {
            let choices = section.selector().map_or(vec![("", "")], |selector| selector.kind.choices());
            for (chosen, _) in &choices {
                let mut names: Vec<&str> =
                    section.keys.iter().filter(|key| key.matters_to(chosen)).map(|key| key.name).collect();
                let count = names.len();
                names.sort_unstable();
                names.dedup();
                assert_eq!(names.len(), count, "[{}] with {chosen}", section.name);
            }
            for name in section.keys.iter().flat_map(|key| key.of) {
                assert!(choices.iter().any(|(chosen, _)| chosen == name), "[{}]: {name}", section.name);
            }
        }
    }
}
