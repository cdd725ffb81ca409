//! The table of everything that the daemon's file may say. It drives the reading of the file, `thalweg check`, the
//! printed default file and the reference.

use crate::document::Document;
use crate::document::key::{Choice, Default, Key, Kind, Schema, Section};

use Default::{Needed, Value, Words};
use Kind::{Amount, Boolean, Delay, Name, Number, Rate, Share, Text, Texts, Time, Whole};

/// What the daemon's file may say.
pub static SCHEMA: Schema = Schema {
    what: "configuration",
    sections: &[&API, &LOG, &PROCESS, &NETWORK, &EMULATE, &COLLECTOR, &RULE, &CONTROL, &SAMPLES, &RECORDS],
    otherwise: |_: &Document, _| "",
};

/// Who may ask, and how.
pub static API: Section = Section {
    name: "api",
    about: "Who may ask the daemon, and how. By default nobody but this machine.",
    repeats: false,
    selector: None,
    keys: &[
        key(
            "listen",
            Text("an address and a port, such as 127.0.0.1:9477 or [::1]:9477"),
            Value("127.0.0.1:9477"),
            "Where HTTP is answered. On an address that others can reach, a token file is needed, or TLS with \
             certificates of clients.",
        ),
        key(
            "token_file",
            FILE,
            Words("no token is asked for"),
            "Who may ask: a line for each, NAME SCOPE SECRET, where SCOPE is read or write. Nobody but the file's owner may \
             be able to read it. It is read again on SIGHUP.",
        ),
        key(
            "tls_certificate",
            FILE,
            Words("no TLS"),
            "Certificate chain of the daemon, in PEM; with tls_key.",
        ),
        key("tls_key", FILE, Words("no TLS"), "Private key of the daemon, in PEM."),
        key(
            "client_ca",
            FILE,
            Words("clients need no certificate"),
            "Certificates, in PEM, of who signs those of clients. With it only clients that have one are answered, and they \
             may do everything.",
        ),
        key(
            "hosts",
            Texts("names, such as \"thalweg.example.net\""),
            Words("none"),
            "Names beside its own by which the machine may be asked when it listens on the loopback interface: those of a \
             reverse proxy in front of it.",
        ),
        key(
            "max_body",
            Amount,
            Value("4MiB"),
            "Longest body of a request: enough for the topology of 10,000 hosts.",
        ),
        key(
            "header_timeout",
            Time,
            Value("10s"),
            "How long a client may take to send the head of a request, and for a TLS handshake.",
        ),
        key(
            "request_timeout",
            Time,
            Value("30s"),
            "How long a request may take, its body included. Streams of events last.",
        ),
        key(
            "requests_per_second",
            Whole(1, 1_000_000),
            Value("100"),
            "Requests a second of one peer that are answered, on average. A peer is an IPv4 address, or the first 64 bits of \
             an IPv6 address.",
        ),
        key(
            "request_burst",
            Whole(1, 1_000_000),
            Value("200"),
            "Requests of one peer that are answered at once.",
        ),
        key(
            "max_connections",
            Whole(1, 1_000_000),
            Value("1280"),
            "Connections at a time, streams of events included.",
        ),
        key("max_subscribers", Whole(1, 1_000_000), Value("1024"), "Streams of events at a time."),
        key(
            "event_backlog",
            Whole(1, 1 << 20),
            Value("4096"),
            "Last events that are kept for all subscribers together. Who falls behind by more is told how many it has lost.",
        ),
    ],
};

/// What the daemon says of itself.
pub static LOG: Section = Section {
    name: "log",
    about: "What the daemon says of itself, on standard error.",
    repeats: false,
    selector: None,
    keys: &[
        key("level", Name(levels), Value("info"), "The least important thing that is said."),
        key("format", Name(formats), Value("text"), "How it is written."),
        key(
            "lines_per_second",
            Whole(1, 1_000_000),
            Value("10"),
            "Lines of one kind in a second; of more, their number is told.",
        ),
    ],
};

/// As whom it runs.
pub static PROCESS: Section = Section {
    name: "process",
    about: "As whom the daemon runs once its sources are open.",
    repeats: false,
    selector: None,
    keys: &[
        key(
            "user",
            Text("the name of a user"),
            Words("whoever started sudo, else nobody, if it is root; else the same"),
            "Whom root becomes.",
        ),
        key(
            "keep_capabilities",
            Boolean,
            Value("true"),
            "Whether it keeps what opening an interface needs: CAP_NET_RAW, and for AF_XDP CAP_NET_ADMIN, CAP_BPF and \
             CAP_IPC_LOCK. They are kept only if there is an interface in the file. Without them a live source that has failed \
             cannot be opened again, and a SIGHUP that adds or changes one is refused.",
        ),
    ],
};

/// What is known of the network.
pub static NETWORK: Section = Section {
    name: "network",
    about: "What is known of the network.",
    repeats: false,
    selector: None,
    keys: &[
        key(
            "topology",
            FILE,
            Words("nothing is known: flows have rates, but no ports, and links are not known"),
            "A file of switches, hosts, links and forwarding, in TOML or, if its name ends in .json, in JSON.",
        ),
        key(
            "settle",
            Delay,
            Value("10ms"),
            "How long after a change packets may still have been forwarded as before: the longest time that one waits in a \
             mirror port. What cannot be told apart within is counted as ambiguous.",
        ),
    ],
};

/// A network that is emulated.
pub static EMULATE: Section = Section {
    name: "emulate",
    about: "A network that is emulated as the daemon runs, for all collectors together, and that the controller can steer.",
    repeats: false,
    selector: None,
    keys: &[
        key(
            "file",
            FILE,
            Words("nothing is emulated"),
            "An experiment file, as of thalweg emulate. The network is that of the experiment, and collectors that say \
             nothing else read its monitor ports: of each switch that has a [[mirror]].",
        ),
        key(
            "pace",
            Number(0.0, 1.0),
            Value("0.01"),
            "Emulated seconds in a second. What the machine cannot keep up with is counted.",
        ),
    ],
};

/// A monitor port that is read.
pub static COLLECTOR: Section = Section {
    name: "collector",
    about: "A collector: one monitor port of one switch. It has one of interface, file and emulate, or reads [emulate]. \
            There may be several; each is a thread, and none depends on another.",
    repeats: true,
    selector: None,
    keys: &[
        key(
            "name",
            Text("a name"),
            Needed,
            "What the API, events and metrics call it. \"*\" stands for a collector for each monitor port of [emulate], called \
             as its switch.",
        ),
        key(
            "switch",
            Text("the name of a switch"),
            Words("the collector's name"),
            "The switch that it watches, as the topology has it.",
        ),
        key(
            "interface",
            Text("the name of an interface"),
            Words("none"),
            "The network interface that the monitor port is wired to.",
        ),
        key(
            "file",
            FILE,
            Words("none"),
            "A capture file, or - for standard input. Time is that of its packets: the same file gives the same events.",
        ),
        key(
            "emulate",
            FILE,
            Words("none"),
            "An experiment file, as of thalweg emulate, that is run for what its monitor ports send.",
        ),
        key(
            "mirror",
            Text("the name of a router"),
            Words("the switch"),
            "With emulate: the router of the experiment whose [[mirror]] is read.",
        ),
        key("backend", Name(backends), Value("auto"), "With interface: how packets come from the kernel."),
        key(
            "busy_poll",
            Boolean,
            Value("false"),
            "With interface and AF_XDP: ask the network card for packets instead of waiting for its interrupts. Takes a \
             whole core, and saves tens of microseconds.",
        ),
        key(
            "ring_size",
            Amount,
            Value("64MiB"),
            "With interface: memory for packets that wait to be read. The default bridges 20 ms at ten million packets a \
             second.",
        ),
        key(
            "block_timeout",
            Time,
            Value("1ms"),
            "With interface and AF_PACKET: how long the kernel may gather packets before it hands them over, 1 ms to 1 s. \
             The shortest, as it adds to the delay of every event when little arrives.",
        ),
        key(
            "speed",
            Number(0.0, f64::INFINITY),
            Words("as fast as possible"),
            "With file or emulate: times the recorded pace. Events have packet time either way.",
        ),
        key(
            "filter",
            Text("a filter in tcpdump's language"),
            Words("every packet is measured"),
            "Which packets, see pcap-filter(7).",
        ),
        key(
            "peel_tunnels",
            Boolean,
            Value("false"),
            "Whether to look into tunnels (GRE, ERSPAN, VXLAN, Geneve, IP in IP): mirrored traffic often comes in one.",
        ),
        key(
            "monitor_rate",
            Rate,
            Words("unknown"),
            "Rate of the monitor port. With it and monitor_buffer, rates have bounds for the time that samples wait.",
        ),
        key(
            "monitor_buffer",
            Amount,
            Words("unknown"),
            "What may wait for the monitor port: the delay of its samples is at most this over its rate.",
        ),
        key(
            "gap",
            Time,
            Words("200us, or eight full frames at the rate of the switch's fastest link if that is longer"),
            "Least time without a sample between two bursts of a flow (Planck, section 3.2.2).",
        ),
        key(
            "longest_burst",
            Time,
            Words("3.5 gaps"),
            "Longest burst that a rate is taken from (Planck, section 3.2.2: 700us).",
        ),
        key(
            "smoothing",
            Delay,
            Value("1ms"),
            "Time constant of the smoothing of utilisation; `\"0ns\"` for none. Rates of flows that compete for a link change \
             at different times, so that their sum is off by some percent now and then; a sum that jumps from nothing to \
             95 % of the capacity passes 90 % after 3 ms with this, and at once without.",
        ),
        key(
            "flow_capacity",
            Whole(1, 1 << 31),
            Value("131072"),
            "Most flows at once, about 450 bytes each. When the table is full, the least recently used makes room, and is \
             counted.",
        ),
        key("idle_timeout", Time, Value("15s"), "A flow ends after this long without a packet."),
        key("active_timeout", Time, Value("30min"), "Longer flows are handed on in parts of this length."),
        key(
            "cheetahs",
            Boolean,
            Value("true"),
            "Whether to look for cheetah flows: those that move more than R*T bytes within T.",
        ),
        key("flight_duration", Time, Value("100ms"), "T, the length of a flight."),
        key(
            "rate_threshold",
            Rate,
            Value("50mbps"),
            "R, the flight rate above which a flow is a cheetah, by its samples.",
        ),
        key(
            "tracks",
            Whole(1, 1 << 24),
            Value("8192"),
            "Flows that the detector of cheetahs can follow at once, 1 KiB each.",
        ),
        key(
            "tasks",
            Texts("measurement tasks, such as [\"heavy:0.1%\", \"entropy:src\", \"distinct\"]"),
            Words("none"),
            "What sketches measure of the samples, window by window; as --tasks of thalweg watch.",
        ),
        key("window", Time, Value("1s"), "Length of a window of the tasks."),
        key("task_memory", Amount, Value("16MiB"), "Memory of all sketches together."),
        key(
            "keep_samples",
            Boolean,
            Value("true"),
            "Whether to keep the last frames, to be written to a capture file when somebody asks.",
        ),
        key(
            "sample_ring",
            Amount,
            Value("64MiB"),
            "Memory of the frames that are kept: a slot of sample_length and 16 bytes each.",
        ),
        key(
            "sample_length",
            Whole(64, 65_528),
            Value("176"),
            "Bytes kept of each frame, rounded up to a multiple of 8. With the default a slot is three cache lines.",
        ),
    ],
};

/// When to tell of links.
pub static RULE: Section = Section {
    name: "rule",
    about: "When to tell of the utilisation of links. There may be several, 64 for a collector; without any, there is one with \
            all defaults.",
    repeats: true,
    selector: None,
    keys: &[
        key(
            "links",
            Texts("all, hosts, switches, \"tor0 > h3\", \"tor0:p3\", or \"tor0:p3:out\""),
            Value("all"),
            "Which: all; those between a switch and hosts; those between switches; the one from one node to the next; a \
             port's, in both directions or in one.",
        ),
        key("collectors", Texts("names of collectors"), Words("all"), "Whose."),
        key(
            "upper",
            Number(0.0, 100.0),
            Value("0.9"),
            "Share of the capacity from which on a link is congested.",
        ),
        key(
            "lower",
            Number(0.0, 100.0),
            Value("0.8"),
            "Share of the capacity at which it is so no more: at most upper. What is between changes nothing.",
        ),
        key(
            "spacing",
            Delay,
            Value("1ms"),
            "Least packet time between two events of one link and rule. A crossing within it is told when it is over, if it \
             still holds.",
        ),
        key(
            "repeat",
            Delay,
            Value("0s"),
            "As long as the link is congested, that is told again after so much packet time, for whoever forgets what is \
             not told, as a controller does. 0s for never.",
        ),
        key("flows", Whole(0, 1_000), Value("16"), "Most flows to name in an event, the fastest first."),
    ],
};

/// Who steers.
pub static CONTROL: Section = Section {
    name: "control",
    about: "The controller: sends flows from links that are congested another way, by one of several addresses that every \
            host has (Planck, section 6.2). It hears of congestion as the [[rule]]s tell it.",
    repeats: false,
    selector: None,
    keys: &[
        key("decider", Name(deciders), Words("nothing is steered"), "Who decides which flow goes which way."),
        key("actuator", Name(actuators), Value("log"), "How a flow is sent another way."),
        key(
            "timeout",
            Time,
            Value("3ms"),
            "With greedy: what has not been told for so long is not counted on (Planck, section 7.1). A rule's repeat should \
             be well below it.",
        ),
        key(
            "gain",
            Share,
            Value("0.1"),
            "With greedy: what another path must promise above the present one, as a share of that. Rates are measured to \
             within 3 %.",
        ),
        key(
            "settle",
            Delay,
            Value("5ms"),
            "With greedy: how long a flow is left alone after it was moved, until rates tell what that did.",
        ),
        key("interval", Time, Value("100ms"), "With first_fit: how often all flows are looked at."),
        key(
            "patience",
            Time,
            Value("50ms"),
            "How long after a decision a packet with the new address is waited for. Then it has failed, and the flow is taken \
             to be where it was.",
        ),
        key("dry_run", Boolean, Value("false"), "Whether it only says what it would do."),
        key(
            "addresses",
            Whole(1, 64),
            Value("4"),
            "Addresses of a host, the base address among them, each with a spanning tree of its own. With arp and log they \
             are those of the topology, if that has any.",
        ),
        key("seed", Whole(0, u64::MAX), Value("1"), "Decides which trees a host's addresses have."),
        key(
            "settle_routes",
            Delay,
            Value("10ms"),
            "How long before they are used collectors are told of new routes (Planck, section 4.1).",
        ),
        key(
            "remotes",
            Texts("the address of another daemon's API, such as \"http://192.0.2.1:9477\""),
            Words("none"),
            "Other daemons whose collectors tell of congestion too, beside those here, if there are any. They have to know the \
             same switches by the same names.",
        ),
        key(
            "remote_token_file",
            FILE,
            Words("no token is shown"),
            "The token for these daemons: read is enough, unless the controller sets routes, which they are told of.",
        ),
        key(
            "remote_ca",
            FILE,
            Words("those that browsers trust"),
            "Certificates, in PEM, of who signs those of these daemons.",
        ),
        key(
            "interfaces",
            Texts("\"eth1\", or \"h3 eth1\" for a host that is reached by one of its own"),
            Words("none"),
            "With arp: the interfaces by which requests reach hosts.",
        ),
        key(
            "refresh",
            Time,
            Value("1s"),
            "With arp: how often hosts are told again, so that what nobody acknowledges does not fall back.",
        ),
        key(
            "switches",
            Texts(
                "a switch of the topology, its datapath ID, and perhaps its monitor port: \"leaf0 0000005457000001 5\"",
            ),
            Words("none"),
            "With openflow: which switch is which. All of the topology's are needed. Port p of the topology is OpenFlow's port \
             p + 1. With a monitor port every rule gets a second action that copies to it (Planck, section 4.1); without, \
             mirroring is the switch's own business.",
        ),
        key(
            "openflow_listen",
            Text("an address and a port, such as 0.0.0.0:6653"),
            Words("it does not listen"),
            "With openflow: where switches connect to, with OpenFlow 1.3. Without certificates whoever reaches the address may \
             say that it is a switch.",
        ),
        key(
            "openflow_connect",
            Texts("an address and a port, and with TLS perhaps a name: \"192.0.2.1:6653 leaf0.example.net\""),
            Words("none"),
            "With openflow: switches that are connected to. With TLS their certificates are to be for the name, else for the \
             address.",
        ),
        key(
            "openflow_certificate",
            FILE,
            Words("no TLS"),
            "With openflow: certificate of the controller, in PEM.",
        ),
        key("openflow_key", FILE, Words("no TLS"), "With openflow: private key of the controller, in PEM."),
        key(
            "openflow_ca",
            FILE,
            Words("no TLS"),
            "With openflow: certificates, in PEM, of who signs those of switches. A switch without one is refused.",
        ),
    ],
};

/// Samples to files.
pub static SAMPLES: Section = Section {
    name: "samples",
    about: "Capture files of the last samples: on SIGUSR1, when the API is asked, or when something happens.",
    repeats: false,
    selector: None,
    keys: &[
        key(
            "folder",
            Text("the name of a folder"),
            Words("none: only the API gives samples"),
            "Where the files go. It is made if it is not there.",
        ),
        key("format", Name(capture_formats), Value("pcapng"), "What files are written."),
        key(
            "on_event",
            Texts("some of congestion, relief, cheetah"),
            Words("nothing"),
            "What makes the collector at which it happens write its samples: a link's utilisation rises to its upper \
             threshold; falls to its lower; a flow becomes a cheetah.",
        ),
        key(
            "spacing",
            Time,
            Value("10s"),
            "Least time between two dumps of a collector for events; others in between are counted.",
        ),
        key(
            "keep",
            Whole(1, 100_000),
            Value("20"),
            "Dumps for events that are kept, those of earlier runs included. The oldest makes room.",
        ),
        key(
            "after",
            Delay,
            Value("5ms"),
            "How long to wait after an event before samples are written, so that they show what followed.",
        ),
    ],
};

/// Flow records.
pub static RECORDS: Section = Section {
    name: "records",
    about: "Records of flows as they end.",
    repeats: false,
    selector: None,
    keys: &[
        key(
            "file",
            FILE,
            Words("records are not written"),
            "A file that gets a JSON line for each flow that ends, as of thalweg watch --flows, with the collector's name. Lines \
         are added to what is there.",
        ),
        key(
            "folder",
            Text("the name of a folder, from the folder of this file"),
            Words("records are not kept"),
            "A folder in which flows are kept as Parquet, as thalweg collect keeps those of routers.",
        ),
        key(
            "ipfix",
            Text("[udp://|tcp://|tls://]HOST[:PORT], such as 10.0.0.1:4739"),
            Words("records are not sent"),
            "A collector to which flows are sent as IPFIX; both directions of a flow are one record (RFC 5103). Metrics count what \
         could not be sent.",
        ),
        key(
            "ipfix_times",
            Name(time_units),
            Value("microseconds"),
            "In what unit IPFIX tells times. nfdump 1.7.1 knows no microseconds.",
        ),
        key(
            "ipfix_authority",
            FILE,
            Words("none, so tls:// is refused"),
            "Of who signs the collector's certificate, for tls://, in PEM.",
        ),
        key(
            "ipfix_certificate",
            FILE,
            Words("none is shown"),
            "The certificate that is shown to a collector that asks for one, in PEM.",
        ),
        key("ipfix_key", FILE, Words("none"), "Its private key, in PEM."),
    ],
};

const FILE: Kind = Text("the name of a file, from the folder of this file");

const fn key(name: &'static str, kind: Kind, default: Default, meaning: &'static str) -> Key {
    Key { name, kind, default, of: &[], meaning }
}

fn levels() -> Vec<Choice> {
    vec![
        ("error", "what fails for good"),
        ("warn", "what fails and is tried again, and what is lost"),
        ("info", "what begins and ends"),
        ("debug", "what is done on the way"),
    ]
}

fn formats() -> Vec<Choice> {
    vec![("text", "a line of text each"), ("json", "a JSON object a line")]
}

fn time_units() -> Vec<Choice> {
    vec![
        ("microseconds", "flowStartMicroseconds and flowEndMicroseconds"),
        ("milliseconds", "flowStartMilliseconds and flowEndMilliseconds, for collectors that know no others"),
    ]
}

fn deciders() -> Vec<Choice> {
    vec![
        ("greedy", "each flow of a congested link goes where it can expect the most (Planck, algorithm 1)"),
        ("first_fit", "from time to time all flows are placed anew, each where it first fits (Hedera)"),
        ("static", "nobody: only what is pinned moves"),
    ]
}

fn actuators() -> Vec<Choice> {
    vec![
        ("log", "not at all: it is only told"),
        ("emulated", "in the network of [emulate]"),
        (
            "arp",
            "its source learns another address for its destination, from a request sent to it alone (needs CAP_NET_RAW)",
        ),
        (
            "openflow",
            "its first switch writes another address over its destination's; sets the routes of all switches",
        ),
    ]
}

fn backends() -> Vec<Choice> {
    vec![
        (
            "auto",
            "AF_XDP on an interface that carries nothing else, AF_PACKET otherwise; the log says which and why",
        ),
        ("af_packet", "a ring shared with the kernel, beside the host's own stack"),
        ("af_xdp", "in front of the host's own stack, which gets no packets any more"),
        (
            "prompt",
            "as af_packet, but each packet is delivered immediately: lowest delay, for low packet rates",
        ),
    ]
}

fn capture_formats() -> Vec<Choice> {
    vec![
        (
            "pcapng",
            "one file, with an interface for each port and direction, and a comment with both ports at each packet",
        ),
        ("pcap", "a file for each output port"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_accepted_and_every_key_says_what_it_means() {
        for key in SCHEMA.sections.iter().flat_map(|section| section.keys) {
            if let Value(text) = key.default {
                assert!(key.kind.accepts(text), "{}: {text}", key.name);
            }
            assert!(key.meaning.len() > 5 && key.meaning.ends_with('.'), "{}", key.name);
        }
    }

    #[test]
    fn a_key_stands_once_in_its_section() {
        for section in SCHEMA.sections {
            let mut names: Vec<&str> = section.keys.iter().map(|key| key.name).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "[{}]", section.name);
        }
    }
}
