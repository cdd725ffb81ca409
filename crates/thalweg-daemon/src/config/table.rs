//! The sections that the daemon's file may have, each declared once. Its types, the reading of the file, `thalweg check`,
//! the printed default file, the reference and the JSON Schema come from here.

use thalweg_capture::backend::Backend;
use thalweg_config::kind::{
    Amount, Boolean, Choices, Delay, Number, Rate, Share, Text, Texts, Time, Whole, one_of,
};
use thalweg_config::{Schema, choices, section};
use thalweg_wire::{BitRate, Bytes, Nanos};

use super::samples::CaptureFormat;
use crate::log::{LogFormat, LogLevel};

/// What the daemon's file may say.
pub static SCHEMA: Schema = Schema::new(
    "configuration",
    &[&API, &LOG, &PROCESS, &NETWORK, &EMULATE, &COLLECTOR, &RULE, &CONTROL, &SAMPLES, &RECORDS],
);

section! {
    /// Who may ask the daemon, and how. By default nobody but this machine.
    pub struct Api in API = "api" {
        /// Where HTTP is answered. On an address that others can reach, a token file is needed, or TLS with
        /// certificates of clients.
        listen: String [Text("an address and a port, such as 127.0.0.1:9477 or [::1]:9477")] default "127.0.0.1:9477",
        /// Who may ask: a line for each, NAME SCOPE SECRET, where SCOPE is read or write. Nobody but the
        /// file's owner may be able to read it. It is read again on SIGHUP.
        token_file: String [FILE] or "no token is asked for",
        /// Certificate chain of the daemon, in PEM; with tls_key.
        tls_certificate: String [FILE] or "no TLS",
        /// Private key of the daemon, in PEM.
        tls_key: String [FILE] or "no TLS",
        /// Certificates, in PEM, of who signs those of clients. With it only clients that have one are
        /// answered, and they may do everything.
        client_ca: String [FILE] or "clients need no certificate",
        /// Names beside its own by which the machine may be asked when it listens on the loopback interface:
        /// those of a reverse proxy in front of it.
        hosts: Vec<String> [Texts("names, such as \"thalweg.example.net\"")] or "none",
        /// Longest body of a request: enough for the topology of 10,000 hosts.
        max_body: Bytes [Amount] default "4MiB",
        /// How long a client may take to send the head of a request, and for a TLS handshake.
        header_timeout: Nanos [Time] default "10s",
        /// How long a request may take, its body included. Streams of events last.
        request_timeout: Nanos [Time] default "30s",
        /// Requests a second of one peer that are answered, on average. A peer is an IPv4 address, or the
        /// first 64 bits of an IPv6 address.
        requests_per_second: u64 [Whole(1, 1_000_000)] default "100",
        /// Requests of one peer that are answered at once.
        request_burst: u64 [Whole(1, 1_000_000)] default "200",
        /// Connections at a time, streams of events included.
        max_connections: u64 [Whole(1, 1_000_000)] default "1280",
        /// Streams of events at a time.
        max_subscribers: u64 [Whole(1, 1_000_000)] default "1024",
        /// Last events that are kept for all subscribers together. Who falls behind by more is told how many
        /// it has lost.
        event_backlog: usize [Whole(1, 1 << 20)] default "4096",
    }
}

section! {
    /// What the daemon says of itself, on standard error.
    pub struct Log in LOG = "log" {
        /// The least important thing that is said.
        level: LogLevel [one_of::<LogLevel>()] default "info",
        /// How it is written.
        format: LogFormat [one_of::<LogFormat>()] default "text",
        /// Lines of one kind in a second; of more, their number is told.
        lines_per_second: u32 [Whole(1, 1_000_000)] default "10",
    }
}

section! {
    /// As whom the daemon runs once its sources are open.
    pub struct Process in PROCESS = "process" {
        /// Whom root becomes.
        user: String [Text("the name of a user")] or "whoever started sudo, else nobody, if it is root; else the same",
        /// Whether it keeps what opening an interface needs: CAP_NET_RAW, and for AF_XDP CAP_NET_ADMIN,
        /// CAP_BPF and CAP_IPC_LOCK. They are kept only if there is an interface in the file. Without them a
        /// live source that has failed cannot be opened again, and a SIGHUP that adds or changes one is
        /// refused.
        keep_capabilities: bool [Boolean] default "true",
        /// Where collectors and the control loop run. On one thread a reroute follows from a packet without
        /// waiting for another thread to wake up: for few packets, and least delay. For interfaces, and ports
        /// of `[emulate]`.
        threads: Threads [one_of::<Threads>()] default "per_collector",
    }
}

section! {
    /// What is known of the network.
    pub struct Network in NETWORK = "network" {
        /// A file of switches, hosts, links and forwarding, in TOML or, if its name ends in .json, in JSON.
        topology: String [FILE] or "nothing is known: flows have rates, but no ports, and links are not known",
        /// How long after a change packets may still have been forwarded as before: the longest time that one
        /// waits in a mirror port. What cannot be told apart within is counted as ambiguous.
        settle: Nanos [Delay] default "10ms",
    }
}

section! {
    /// A network that is emulated as the daemon runs, for all collectors together, and that the controller
    /// can steer.
    pub struct Emulate in EMULATE = "emulate" {
        /// An experiment file, as of thalweg emulate. The network is that of the experiment, and collectors
        /// that say nothing else read its monitor ports: of each switch that has a [[mirror]].
        file: String [FILE] or "nothing is emulated",
        /// Emulated seconds in a second. What the machine cannot keep up with is counted.
        pace: f64 [Number(0.0, 1.0)] default "0.01",
    }
}

section! {
    /// A collector: one monitor port of one switch. It has one of interface, file and emulate, or reads
    /// [emulate]. There may be several; each is a thread, and none depends on another.
    pub struct Collector in COLLECTOR = ["collector"] {
        /// What the API, events and metrics call it. "*" stands for a collector for each monitor port of
        /// [emulate], called as its switch.
        name: String [Text("a name")] needed,
        /// The switch that it watches, as the topology has it.
        switch: String [Text("the name of a switch")] or "the collector's name",
        /// The network interface that the monitor port is wired to.
        interface: String [Text("the name of an interface")] or "none",
        /// Network namespace of the interface, a name of `ip netns`. To reopen a deleted interface there, the daemon must be restarted
        /// or run inside the namespace, because it drops privileges.
        namespace: String [Text("the name of a network namespace")] or "that of the daemon",
        /// A capture file, or - for standard input. Time is that of its packets: the same file gives the same
        /// events.
        file: String [FILE] or "none",
        /// An experiment file, as of thalweg emulate, that is run for what its monitor ports send.
        emulate: String [FILE] or "none",
        /// With emulate: the router of the experiment whose [[mirror]] is read.
        mirror: String [Text("the name of a router")] or "the switch",
        /// With interface: how packets come from the kernel.
        backend: BackendName [one_of::<BackendName>()] default "auto",
        /// With interface and AF_XDP: ask the network card for packets instead of waiting for its interrupts.
        /// Takes a whole core, and saves tens of microseconds.
        busy_poll: bool [Boolean] default "false",
        /// With interface: memory for packets that wait to be read. The default bridges 20 ms at ten million
        /// packets a second.
        ring_size: Bytes [Amount] default "64MiB",
        /// With interface and AF_PACKET: how long the kernel may gather packets before it hands them over, 1
        /// ms to 1 s. The shortest, as it adds to the delay of every event when little arrives.
        block_timeout: Nanos [Time] default "1ms",
        /// With file or emulate: times the recorded pace. Events have packet time either way.
        speed: f64 [Number(0.0, f64::INFINITY)] or "as fast as possible",
        /// Which packets, see pcap-filter(7).
        filter: String [Text("a filter in tcpdump's language")] or "every packet is measured",
        /// Whether to look into tunnels (GRE, ERSPAN, VXLAN, Geneve, IP in IP): mirrored traffic often comes
        /// in one.
        peel_tunnels: bool [Boolean] default "false",
        /// Rate of the monitor port. With it and monitor_buffer, rates have bounds for the time that samples
        /// wait.
        monitor_rate: BitRate [Rate] or "unknown",
        /// What may wait for the monitor port: the delay of its samples is at most this over its rate.
        monitor_buffer: Bytes [Amount] or "unknown",
        /// Least time without a sample between two bursts of a flow (Planck, section 3.2.2).
        gap: Nanos [Time] or "200us, or eight full frames at the rate of the switch's fastest link if that is longer",
        /// Longest burst that a rate is taken from (Planck, section 3.2.2: 700us).
        longest_burst: Nanos [Time] or "3.5 gaps",
        /// Time constant of the smoothing of utilisation; `"0ns"` for none. Rates of flows that compete for a
        /// link change at different times, so that their sum is off by some percent now and then; a sum that
        /// jumps from nothing to 95 % of the capacity passes 90 % after 3 ms with this, and at once without.
        smoothing: Nanos [Delay] default "1ms",
        /// Most flows at once, about 450 bytes each. When the table is full, the least recently used makes
        /// room, and is counted.
        flow_capacity: u32 [Whole(1, 1 << 31)] default "131072",
        /// A flow ends after this long without a packet.
        idle_timeout: Nanos [Time] default "15s",
        /// Longer flows are handed on in parts of this length.
        active_timeout: Nanos [Time] default "30min",
        /// Whether to look for cheetah flows: those that move more than R*T bytes within T.
        cheetahs: bool [Boolean] default "true",
        /// T, the length of a flight.
        flight_duration: Nanos [Time] default "100ms",
        /// R, the flight rate above which a flow is a cheetah, by its samples.
        rate_threshold: BitRate [Rate] default "50mbps",
        /// Flows that the detector of cheetahs can follow at once, 1 KiB each.
        tracks: usize [Whole(1, 1 << 24)] default "8192",
        /// What sketches measure of the samples, window by window; as --tasks of thalweg watch.
        tasks: Vec<String> [Texts("measurement tasks, such as [\"heavy:0.1%\", \"entropy:src\", \"distinct\"]")] or "none",
        /// Length of a window of the tasks.
        window: Nanos [Time] default "1s",
        /// Memory of all sketches together.
        task_memory: Bytes [Amount] default "16MiB",
        /// Whether to keep the last frames, to be written to a capture file when somebody asks.
        keep_samples: bool [Boolean] default "true",
        /// Memory of the frames that are kept: a slot of sample_length and 16 bytes each.
        sample_ring: Bytes [Amount] default "64MiB",
        /// Bytes kept of each frame, rounded up to a multiple of 8. With the default a slot is three cache
        /// lines.
        sample_length: u32 [Whole(64, 65_528)] default "176",
    }
}

section! {
    /// When to tell of the utilisation of links. There may be several, 64 for a collector; without any, there
    /// is one with all defaults.
    pub struct Rule in RULE = ["rule"] {
        /// Which: all; those between a switch and hosts; those between switches; the one from one node to the
        /// next; a port's. With :in or :out only what comes in to the switch, or goes out of it.
        links: Vec<String> [Texts("all, hosts, switches, \"switches:out\", \"tor0 > h3\", \"tor0:p3\", or \"tor0:p3:out\"")] default "all",
        /// Whose.
        collectors: Vec<String> [Texts("names of collectors")] or "all",
        /// Share of the capacity from which on a link is congested.
        upper: f64 [Number(0.0, 100.0)] default "0.9",
        /// Share of the capacity at which it is so no more: at most upper. What is between changes nothing.
        lower: f64 [Number(0.0, 100.0)] default "0.8",
        /// Least packet time between two events of one link and rule. A crossing within it is told when it is
        /// over, if it still holds.
        spacing: Nanos [Delay] default "1ms",
        /// As long as the link is congested, that is told again after so much packet time, for whoever
        /// forgets what is not told, as a controller does. 0s for never.
        repeat: Nanos [Delay] default "0s",
        /// Most flows to name in an event, the fastest first.
        flows: usize [Whole(0, 1_000)] default "16",
    }
}

section! {
    /// The controller: sends flows from links that are congested another way, by one of several addresses
    /// that every host has (Planck, section 6.2). It hears of congestion as the [[rule]]s tell it.
    pub struct Control in CONTROL = "control" {
        /// Who decides which flow goes which way.
        decider: DeciderName [one_of::<DeciderName>()] or "nothing is steered",
        /// How a flow is sent another way.
        actuator: ActuatorName [one_of::<ActuatorName>()] default "log",
        /// With greedy: what has not been told for so long is not counted on (Planck, section 7.1). A rule's
        /// repeat should be well below it.
        timeout: Nanos [Time] default "3ms",
        /// With greedy: what another path must promise above the present one, as a share of that. Rates are
        /// measured to within 3 %.
        gain: f64 [Share] default "0.1",
        /// With greedy: how long a flow is left alone after it was moved, until rates tell what that did.
        settle: Nanos [Delay] default "5ms",
        /// With greedy: whether flows that no way suits may take one that others leave at the same time, if
        /// those lose nothing by it.
        makes_room: bool [Boolean] default "true",
        /// With first_fit: how often all flows are looked at.
        interval: Nanos [Time] default "100ms",
        /// How long after a decision a packet with the new address is waited for. Then it has failed, and the
        /// flow is taken to be where it was.
        patience: Nanos [Time] default "50ms",
        /// Flows with less than this share of a link are none of its business.
        least_share: f64 [Share] default "0",
        /// After so long a controller that has just begun looks which way flows go, and holds them there.
        /// Collectors have seen all senders by then.
        learn_after: Nanos [Time] default "1s",
        /// Whether it only says what it would do.
        dry_run: bool [Boolean] default "false",
        /// Addresses of a host, the base address among them, each with a spanning tree of its own. With arp
        /// and log they are those of the topology, if that has any.
        addresses: u8 [Whole(1, 64)] default "4",
        /// Decides which trees a host's addresses have.
        seed: u64 [Whole(0, u64::MAX)] default "1",
        /// How long before they are used collectors are told of new routes (Planck, section 4.1).
        settle_routes: Nanos [Delay] default "10ms",
        /// Other daemons whose collectors tell of congestion too, beside those here, if there are any. They
        /// have to know the same switches by the same names.
        remotes: Vec<String> [Texts("the address of another daemon's API, such as \"http://192.0.2.1:9477\"")] or "none",
        /// The token for these daemons: read is enough, unless the controller sets routes, which they are
        /// told of.
        remote_token_file: String [FILE] or "no token is shown",
        /// Certificates, in PEM, of who signs those of these daemons.
        remote_ca: String [FILE] or "those that browsers trust",
        /// With arp: the interfaces by which requests reach hosts.
        interfaces: Vec<String> [Texts("\"eth1\", or \"h3 eth1\" for a host that is reached by one of its own")] or "none",
        /// With arp and openflow: the network namespace that hosts, or switches, are reached from, as `ip netns`
        /// has it. With openflow the daemon has to be started in it (`ip netns exec`).
        namespace: String [Text("the name of a network namespace")] or "that of the daemon",
        /// With arp: how often hosts are told again, so that what nobody acknowledges does not fall back.
        refresh: Nanos [Time] default "1s",
        /// With openflow: which switch is which. All of the topology's are needed. Port p of the topology is
        /// OpenFlow's port p + 1. With a monitor port every rule gets a second action that copies to it
        /// (Planck, section 4.1); without, mirroring is the switch's own business.
        switches: Vec<String> [Texts( "a switch of the topology, its datapath ID, and perhaps its monitor port: \"leaf0 0000005457000001 5\"", )] or "none",
        /// With openflow: where switches connect to, with OpenFlow 1.3. Without certificates whoever reaches
        /// the address may say that it is a switch.
        openflow_listen: String [Text("an address and a port, such as 0.0.0.0:6653")] or "it does not listen",
        /// With openflow: switches that are connected to. With TLS their certificates are to be for the name,
        /// else for the address.
        openflow_connect: Vec<String> [Texts("an address and a port, and with TLS perhaps a name: \"192.0.2.1:6653 leaf0.example.net\"")] or "none",
        /// With openflow: certificate of the controller, in PEM.
        openflow_certificate: String [FILE] or "no TLS",
        /// With openflow: private key of the controller, in PEM.
        openflow_key: String [FILE] or "no TLS",
        /// With openflow: certificates, in PEM, of who signs those of switches. A switch without one is
        /// refused.
        openflow_ca: String [FILE] or "no TLS",
    }
}

section! {
    /// Capture files of the last samples: on SIGUSR1, when the API is asked, or when something happens.
    pub struct Samples in SAMPLES = "samples" {
        /// Where the files go. It is made if it is not there.
        folder: String [Text("the name of a folder")] or "none: only the API gives samples",
        /// What files are written.
        format: CaptureFormat [one_of::<CaptureFormat>()] default "pcapng",
        /// What makes the collector at which it happens write its samples: a link's utilisation rises to its
        /// upper threshold; falls to its lower; a flow becomes a cheetah.
        on_event: Vec<String> [Texts("some of congestion, relief, cheetah")] or "nothing",
        /// Least time between two dumps of a collector for events; others in between are counted.
        spacing: Nanos [Time] default "10s",
        /// Dumps for events that are kept, those of earlier runs included. The oldest makes room.
        keep: usize [Whole(1, 100_000)] default "20",
        /// How long to wait after an event before samples are written, so that they show what followed.
        after: Nanos [Delay] default "5ms",
    }
}

section! {
    /// Records of flows as they end.
    pub struct Records in RECORDS = "records" {
        /// A file that gets a JSON line for each flow that ends, as of thalweg watch --flows, with the
        /// collector's name. Lines are added to what is there.
        file: String [FILE] or "records are not written",
        /// A folder in which flows are kept as Parquet, as thalweg collect keeps those of routers.
        folder: String [Text("the name of a folder, from the folder of this file")] or "records are not kept",
        /// A collector to which flows are sent as IPFIX; both directions of a flow are one record (RFC 5103).
        /// Metrics count what could not be sent.
        ipfix: String [Text("[udp://|tcp://|tls://]HOST[:PORT], such as 10.0.0.1:4739")] or "records are not sent",
        /// In what unit IPFIX tells times. nfdump 1.7.1 knows no microseconds.
        ipfix_times: TimesName [one_of::<TimesName>()] default "microseconds",
        /// Of who signs the collector's certificate, for tls://, in PEM.
        ipfix_authority: String [FILE] or "none, so tls:// is refused",
        /// The certificate that is shown to a collector that asks for one, in PEM.
        ipfix_certificate: String [FILE] or "none is shown",
        /// Its private key, in PEM.
        ipfix_key: String [FILE] or "none",
    }
}

const FILE: Text = Text("the name of a file, from the folder of this file");

impl Choices for LogLevel {
    const ALL: &'static [(Self, &'static str, &'static [&'static str])] = &[
        (LogLevel::Error, "error", &["what fails for good"]),
        (LogLevel::Warn, "warn", &["what fails and is tried again, and what is lost"]),
        (LogLevel::Info, "info", &["what begins and ends"]),
        (LogLevel::Debug, "debug", &["what is done on the way"]),
    ];
}

impl Choices for LogFormat {
    const ALL: &'static [(Self, &'static str, &'static [&'static str])] = &[
        (LogFormat::Text, "text", &["a line of text each"]),
        (LogFormat::Json, "json", &["a JSON object a line"]),
    ];
}

impl Choices for CaptureFormat {
    const ALL: &'static [(Self, &'static str, &'static [&'static str])] = &[
        (
            CaptureFormat::Pcapng,
            "pcapng",
            &[
                "one file, with an interface for each port and direction, and a comment with both ports at each packet",
            ],
        ),
        (CaptureFormat::Pcap, "pcap", &["a file for each output port"]),
    ];
}

choices! {
    /// Who decides which flow goes which way.
    pub enum DeciderName {
        /// each flow of a congested link goes where it can expect the most (Planck, algorithm 1)
        Greedy = "greedy",
        /// from time to time all flows are placed anew, each where it first fits (Hedera)
        FirstFit = "first_fit",
        /// nobody: only what is pinned moves
        Static = "static",
    }
}

choices! {
    /// How a flow is sent another way.
    pub enum ActuatorName {
        /// not at all: it is only told
        Log = "log",
        /// in the network of [emulate]
        Emulated = "emulated",
        /// its source learns another address for its destination, from a request sent to it alone (needs CAP_NET_RAW)
        Arp = "arp",
        /// its first switch writes another address over its destination's; sets the routes of all switches
        OpenFlow = "openflow",
    }
}

choices! {
    /// In what unit IPFIX tells times.
    pub enum TimesName {
        /// flowStartMicroseconds and flowEndMicroseconds
        Microseconds = "microseconds",
        /// flowStartMilliseconds and flowEndMilliseconds, for collectors that know no others
        Milliseconds = "milliseconds",
    }
}

choices! {
    /// Where collectors and the control loop run.
    pub enum Threads {
        /// each collector has a thread, and so has the control loop
        PerCollector = "per_collector",
        /// all on one: no thread waits for another to wake up
        One = "one",
    }
}

choices! {
    /// How packets come from the kernel.
    pub enum BackendName {
        /// AF_XDP on an interface that carries nothing else, AF_PACKET otherwise; the log says which and why
        Auto = "auto",
        /// a ring shared with the kernel, beside the host's own stack
        AfPacket = "af_packet",
        /// in front of the host's own stack, which gets no packets any more
        AfXdp = "af_xdp",
        /// as af_packet, but each packet is delivered immediately: lowest delay, for low packet rates
        Prompt = "prompt",
    }
}

impl BackendName {
    /// The backend; `None` to choose one.
    pub const fn backend(self) -> Option<Backend> {
        match self {
            BackendName::Auto => None,
            BackendName::AfPacket => Some(Backend::AfPacket),
            BackendName::AfXdp => Some(Backend::AfXdp),
            BackendName::Prompt => Some(Backend::Prompt),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SCHEMA;

    #[test]
    fn defaults_are_accepted_and_every_key_says_what_it_means() {
        SCHEMA.check();
    }
}
