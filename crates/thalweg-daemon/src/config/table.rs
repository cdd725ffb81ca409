//! The sections of the daemon's configuration file, each declared once. Types, parser, `thalweg check`, the example file, the
//! reference and the JSON Schema are derived from this table.

use thalweg_config::kind::{
    Amount, Boolean, Delay, Number, Rate, Share, Text, Texts, Time, Whole, one_of, parsed,
};
use thalweg_config::{Schema, section};
use thalweg_wire::{BitRate, Bytes, Nanos, WebUrl};

use super::names::{
    ActuatorName, AtStopName, BackendName, DeciderName, FlowModelName, InterfaceByName, IsolatorName,
    MailEncryptionName, MethodName, PollSourceName, QueueingName, RuleActionName, SimulateName, Threads,
    TimesName, WayName,
};
use super::samples::CaptureFormat;
use crate::log::{LogFormat, LogLevel};

/// The schema of the daemon's configuration file.
pub static SCHEMA: Schema = Schema::new(
    "configuration",
    &[
        &API,
        &LOG,
        &PROCESS,
        &NETWORK,
        &EMULATE,
        &COLLECTOR,
        &RULE,
        &CONTROL,
        &ISOLATION,
        &THRESHOLD,
        &POLL,
        &SAMPLES,
        &EVENT_LOG,
        &ALERT,
        &RECORDS,
        &TRANSFERS,
        &EXPERIMENTS,
    ],
);

section! {
    /// HTTP API: address, access and limits. By default only this machine has access.
    pub struct Api in API = "api" {
        /// Listen address. An address that other hosts can reach requires a token file, or TLS with client
        /// certificates.
        listen: String [Text("an address and a port, such as 127.0.0.1:9477 or [::1]:9477")] default "127.0.0.1:9477",
        /// API tokens, one line each: NAME SCOPE SECRET, where SCOPE is read, write, or report for the agent of the
        /// transfer host NAME. The file must be readable only by its owner. SIGHUP reloads it.
        token_file: String [FILE] or "no tokens",
        /// Server certificate chain (PEM), leaf first. Needs tls_key.
        tls_certificate: String [FILE] or "no TLS",
        /// Private key of the server certificate (PEM).
        tls_key: String [FILE] or "no TLS",
        /// CA certificates (PEM) that must have issued client certificates. Clients with a valid certificate
        /// have full access; others are refused.
        client_ca_file: String [FILE] or "no client certificates",
        /// Additional host names that requests may use, such as those of a reverse proxy in front of a loopback
        /// address.
        hosts: Vec<String> [Texts("names, such as \"thalweg.example.net\"")] or "none",
        /// Maximum request body. The default fits a topology of 10,000 hosts.
        max_body: Bytes [Amount] default "4MiB",
        /// Timeout of the request header, and of the TLS handshake.
        header_timeout: Nanos [Time] default "10s",
        /// Timeout of a request including its body. Event streams have no timeout.
        request_timeout: Nanos [Time] default "30s",
        /// Average request rate limit of one peer: an IPv4 address, or an IPv6 /64 prefix.
        requests_per_second: u64 [Whole(1, 1_000_000)] default "100",
        /// Request burst limit of one peer.
        request_burst: u64 [Whole(1, 1_000_000)] default "200",
        /// Maximum number of connections, event streams included.
        max_connections: u64 [Whole(1, 1_000_000)] default "1280",
        /// Maximum number of event streams.
        max_subscribers: u64 [Whole(1, 1_000_000)] default "1024",
        /// Number of latest events to keep for subscribers. A subscriber that falls further behind receives a
        /// `lost` event with the count.
        event_backlog: usize [Whole(1, 1 << 20)] default "4096",
        /// Whether to serve the dashboard, a web page for browsers, at the listen address. The page itself needs no token; what it
        /// shows does.
        dashboard: bool [Boolean] default "true",
    }
}

section! {
    /// Log, written to standard error.
    pub struct Log in LOG = "log" {
        /// Lowest level to log.
        level: LogLevel [one_of::<LogLevel>()] default "info",
        /// Log format.
        format: LogFormat [one_of::<LogFormat>()] default "text",
        /// Maximum lines per second from one source line. Suppressed lines are counted and reported.
        lines_per_second: u32 [Whole(1, 1_000_000)] default "10",
    }
}

section! {
    /// User, capabilities and threads of the daemon after its sources are open.
    pub struct Process in PROCESS = "process" {
        /// User to switch to after opening the sources.
        user: String [Text("the name of a user")] or "as root: the user of sudo, else nobody; otherwise unchanged",
        /// Keep the capabilities that open interfaces: CAP_NET_RAW, and CAP_NET_ADMIN, CAP_BPF and CAP_IPC_LOCK
        /// for AF_XDP. They are kept only if the file has an interface. Without them, a failed live source
        /// cannot be reopened, and a reload that adds or changes one is refused.
        keep_capabilities: bool [Boolean] default "true",
        /// Threads of collectors and control loop. One shared thread reroutes with the lowest delay, at low
        /// packet rates. It supports interfaces and ports of `[emulate]`.
        threads: Threads [one_of::<Threads>()] default "per_collector",
    }
}

section! {
    /// The network topology.
    pub struct Network in NETWORK = "network" {
        /// Topology file with switches, hosts, links and forwarding, in TOML, or in JSON if its name ends in
        /// .json.
        topology: String [FILE] or "unknown: flows have rates, but their links are unknown, so links have no utilisation",
        /// How long packets may still follow the old forwarding state after a change: the maximum queueing
        /// delay of a monitor port. Packets that cannot be attributed within it are counted as ambiguous.
        transition_time: Nanos [Delay] default "10ms",
    }
}

section! {
    /// An emulated network for all collectors, which the controller can control.
    pub struct Emulate in EMULATE = "emulate" {
        /// Experiment file of thalweg emulate. Its network is the topology. Collectors without another source
        /// read its monitor ports, one for each switch with a [[mirror]].
        file: String [FILE] or "none",
        /// Emulated seconds per second. Time that the machine cannot keep up with is counted.
        pace: f64 [Number(0.0, 1.0)] default "0.01",
    }
}

section! {
    /// A collector: reads one monitor port of one switch. Needs one of interface, file and emulate, or reads
    /// [emulate].
    pub struct Collector in COLLECTOR = ["collector"] {
        /// Name in API, events and metrics. "*" creates a collector for each monitor port of [emulate], named
        /// after its switch.
        name: String [Text("a name")] needed,
        /// Switch of the monitor port, as named in the topology.
        switch: String [Text("the name of a switch")] or "the collector's name",
        /// Network interface that is connected to the monitor port.
        interface: String [Text("the name of an interface")] or "none",
        /// Network namespace of the interface, as in `ip netns`. Reopening a deleted interface there requires a
        /// restart, or a daemon that runs inside the namespace, because privileges are dropped.
        namespace: String [Text("the name of a network namespace")] or "that of the daemon",
        /// Capture file, or - for standard input. Time follows its packets, so the same file gives the same
        /// events.
        file: String [FILE] or "none",
        /// Experiment file of thalweg emulate, run to read one of its monitor ports.
        emulate: String [FILE] or "none",
        /// With emulate: router of the experiment whose [[mirror]] is read.
        mirror: String [Text("the name of a router")] or "the switch",
        /// With interface: capture backend.
        backend: BackendName [one_of::<BackendName>()] default "auto",
        /// With interface: frames to measure, by whether this host sends or receives them. Frames that it sends need
        /// AF_PACKET.
        way: WayName [one_of::<WayName>()] default "both",
        /// With interface and AF_XDP: poll the network card instead of waiting for interrupts. Uses a whole
        /// core and saves tens of microseconds.
        busy_poll: bool [Boolean] default "false",
        /// With interface: memory for frames that wait to be read, allocated and locked at the start. With AF_PACKET
        /// a frame takes about 288 bytes, with AF_XDP 2 KiB. The default holds 12.5 ms of frames of 800 bytes at
        /// monitor_rate, or else at the rate that the network card reports. Frames that find it full are counted
        /// as kernel_drops. Increase it, or give monitor_rate, for virtual interfaces with more than 150,000
        /// packets/s, and increase it on a host whose processors have other work: a collector may then wait
        /// longer than 12.5 ms for its turn.
        ring_size: Bytes [Amount] or "by the rate of the port: 4MiB up to 1 Gbit/s and if unknown, 8MiB at 10 Gbit/s, up to 64MiB; with AF_XDP 64MiB from 10 Gbit/s on",
        /// With interface and AF_PACKET: maximum time that the kernel may batch packets, 1 ms to 1 s. It adds
        /// to the delay of events at low packet rates.
        block_timeout: Nanos [Time] default "1ms",
        /// With file or emulate: replay speed relative to real time. Events have packet time in any case.
        speed: f64 [Number(0.0, f64::INFINITY)] or "as fast as possible",
        /// Capture filter, see pcap-filter(7).
        capture_filter: String [Text("a capture filter in tcpdump syntax")] or "all packets",
        /// Measure the flows inside tunnels (GRE, ERSPAN, VXLAN, Geneve, IP in IP). Mirrored traffic often
        /// arrives in a tunnel.
        decapsulate: bool [Boolean] default "false",
        /// Rate of the monitor port. With monitor_buffer, rate bounds include the queueing delay of samples.
        monitor_rate: BitRate [Rate] or "unknown",
        /// Buffer of the monitor port. The delay of samples is at most this divided by monitor_rate.
        monitor_buffer: Bytes [Amount] or "unknown",
        /// Minimum silence between two bursts of a flow (Planck, section 3.2.2).
        gap: Nanos [Time] or "200us, or eight full-size frames at the rate of the switch's fastest link if longer",
        /// Maximum length of a burst (Planck, section 3.2.2: 700us).
        longest_burst: Nanos [Time] or "3.5 gaps",
        /// Time constant of the smoothed utilisation, `"0ns"` for none. Rates of flows that share a link change
        /// at different times, so their sum is off by some percent at times. A jump from 0 to 95 % of the
        /// capacity passes 90 % after 3 ms with the default, and at once without smoothing.
        smoothing: Nanos [Delay] default "1ms",
        /// Maximum number of live flows, about 450 bytes each. A full table evicts the least recently used flow
        /// and counts it.
        flow_capacity: u32 [Whole(1, 1 << 31)] default "131072",
        /// A flow ends after this much silence.
        idle_timeout: Nanos [Time] default "15s",
        /// A flow that is still active after this long exports a record and continues.
        active_timeout: Nanos [Time] default "30min",
        /// Detect cheetah flows: flows that send more than R*T bytes within T.
        cheetahs: bool [Boolean] default "true",
        /// T, the flight duration.
        flight_duration: Nanos [Time] default "100ms",
        /// R, the flight rate threshold, applied to samples.
        rate_threshold: BitRate [Rate] default "50mbps",
        /// Maximum number of flows that the detector tracks at once, 1.1 KiB each.
        tracks: usize [Whole(1, 1 << 24)] default "8192",
        /// Measurement tasks on samples, as --tasks of thalweg watch.
        tasks: Vec<String> [Texts("measurement tasks, such as [\"heavy:0.1%\", \"entropy:src\", \"distinct\"]")] or "none",
        /// Window length of the tasks.
        window: Nanos [Time] default "1s",
        /// Memory of all sketches.
        task_memory: Bytes [Amount] default "16MiB",
        /// Keep the latest frames, for capture files on request.
        keep_samples: bool [Boolean] default "true",
        /// Memory for kept frames: sample_length and 16 bytes each.
        sample_ring: Bytes [Amount] default "64MiB",
        /// Bytes kept of each frame, rounded up to a multiple of 8. The default fills three cache lines.
        sample_length: u32 [Whole(64, 65_528)] default "176",
    }
}

section! {
    /// A congestion rule: when to publish events about link utilisation. At most 64 for each collector. Without any
    /// rule, one with all defaults applies.
    pub struct Rule in RULE = ["rule"] {
        /// Links: all, those to hosts, those between switches, one between two nodes, or one port, by its number
        /// or by the name that the topology gives it. The suffix :in or :out selects one direction, as seen from
        /// the switch.
        links: Vec<String> [Texts("all, hosts, switches, \"switches:out\", \"tor0 > h3\", \"tor0:p3\", \"tor0:p3:out\", or \"tor0:Ethernet4:out\"")] default "all",
        /// Collectors that the rule applies to.
        collectors: Vec<String> [Texts("names of collectors")] or "all",
        /// Utilisation from which a link is congested, as a share of its capacity: 0.9 is 90 %.
        upper: f64 [Number(0.0, 1.0)] default "0.9",
        /// Utilisation below which congestion clears, at most upper.
        lower: f64 [Number(0.0, 1.0)] default "0.8",
        /// Minimum packet time between two events of one link and rule. A change within it is published
        /// afterwards if it still holds.
        min_event_interval: Nanos [Delay] default "1ms",
        /// Interval at which events repeat while a link is congested, in packet time, for subscribers that
        /// expire old events, such as the controller. 0s for never.
        repeat: Nanos [Delay] default "0s",
        /// Maximum number of flows in an event, fastest first.
        flows: usize [Whole(0, 1_000)] default "16",
    }
}

section! {
    /// The controller: reroutes flows from congested links to another address of their destination (Planck,
    /// section 6.2). It reacts to the congestion events of the [[rule]]s.
    pub struct Control in CONTROL = "control" {
        /// Rerouting algorithm.
        decider: DeciderName [one_of::<DeciderName>()] or "no rerouting",
        /// How pairs are rerouted.
        actuator: ActuatorName [one_of::<ActuatorName>()] default "log",
        /// With greedy: rates measured longer ago are ignored. Pairs that no event reports count on their links for this
        /// time, and for five hold-down times. Set repeat of the rules well below it.
        report_timeout: Nanos [Time] default "3ms",
        /// With greedy: minimum improvement of the expected rate, as a share of the present one. Rates are
        /// accurate to 3 %.
        gain: f64 [Share] default "0.1",
        /// With greedy: time after a reroute in which the pair is not moved again, until rates show its effect; four times
        /// as long after the second reroute of a flow. After the third of a flow the pair stays while that flow sends.
        /// Flows not reported for 2,048 times as long are forgotten. 0 turns both off.
        hold_down: Nanos [Delay] default "5ms",
        /// With greedy: a pair without a better path may take one that another pair leaves at the same time, if
        /// that pair loses nothing. Up to three others move for one.
        makes_room: bool [Boolean] default "true",
        /// With first_fit: interval of the placement.
        interval: Nanos [Time] default "100ms",
        /// Time to wait for a packet with the new address after a reroute. Then the reroute has timed out, and
        /// the pair counts as not rerouted.
        arrival_timeout: Nanos [Time] default "50ms",
        /// Ignore flows below this share of a link.
        min_share: f64 [Share] default "0",
        /// How long after its start the controller reads the present path of all pairs and keeps them there.
        /// Collectors have seen all senders by then.
        learn_after: Nanos [Time] default "1s",
        /// Log decisions without carrying them out.
        dry_run: bool [Boolean] default "false",
        /// Addresses per host, base address included, each with its own spanning tree. With arp and log, the
        /// topology defines them if it has any.
        addresses: u8 [Whole(1, 64)] default "4",
        /// Random seed of the spanning trees.
        seed: u64 [Whole(0, u64::MAX)] default "1",
        /// Time from the announcement of new routes to collectors to their first use (Planck, section 4.1).
        route_lead_time: Nanos [Delay] default "10ms",
        /// Local interfaces whose carrier says whether a link is up, each after a port of the link. Read in the namespace
        /// of namespace. The API reports links too (PUT /v1/links/LINK/state), and switches with openflow.
        link_interfaces: Vec<String> [Texts("a port and an interface: \"leaf0:p2 eth3\" or \"leaf0:Ethernet2 eth3\"")] or "none",
        /// Number of failures within link_failure_window from which a flapping link is held down. 0 for never.
        link_failures: usize [Whole(0, 1_000)] default "3",
        /// Time within which failures of a link count together.
        link_failure_window: Nanos [Time] default "10s",
        /// How long a flapping link is held down after its last failure. Doubles with each further hold.
        link_hold: Nanos [Time] default "5s",
        /// The longest time that a flapping link is held down. Without a hold for this time, the next one takes
        /// link_hold again.
        link_max_hold: Nanos [Time] default "5min",
        /// Other daemons whose collectors report congestion too. They must use the same switch names.
        remotes: Vec<String> [Texts("the address of another daemon's API, such as \"http://192.0.2.1:9477\"")] or "none",
        /// API token for these daemons. The scope read suffices unless the controller installs routes.
        remote_token_file: String [FILE] or "no token",
        /// CA certificates (PEM) that verify these daemons.
        remote_ca_file: String [FILE] or "public CAs",
        /// With arp: interfaces for ARP requests and Neighbor Solicitations to hosts.
        interfaces: Vec<String> [Texts("\"eth1\", or \"h3 eth1\" for a host that is reached by one of its own")] or "none",
        /// With arp, openflow and link_interfaces: network namespace of hosts, switches or interfaces, as in
        /// `ip netns`. With openflow the daemon must be started inside it (`ip netns exec`).
        namespace: String [Text("the name of a network namespace")] or "that of the daemon",
        /// With arp: interval at which ARP and neighbor entries of hosts are refreshed.
        refresh: Nanos [Time] default "1s",
        /// With openflow: datapath ID of every switch of the topology. A port that the topology names has the number
        /// that the switch reports for this name. Port p without a name is OpenFlow port p + 1. With a monitor
        /// port, a number or name, every flow entry also mirrors to it (Planck, section 4.1).
        switches: Vec<String> [Texts( "a switch of the topology, its datapath ID, and perhaps its monitor port: \"leaf0 0000005457000001 5\" or \"leaf0 0000005457000001 eth5\"", )] or "none",
        /// With openflow: listen address for switches, OpenFlow 1.3. Without TLS any host that reaches it can
        /// pose as a switch.
        openflow_listen: String [Text("an address and a port, such as 0.0.0.0:6653")] or "none",
        /// With openflow: switches to connect to. With TLS, their certificates must match the name, or else the
        /// address.
        openflow_connect: Vec<String> [Texts("an address and a port, and with TLS perhaps a name: \"192.0.2.1:6653 leaf0.example.net\"")] or "none",
        /// With openflow: interval at which the rules of every switch are read and repaired.
        openflow_audit_interval: Nanos [Time] default "500ms",
        /// With openflow: priority of this daemon among those that control the same switches. The highest becomes master
        /// first; the others are standbys.
        openflow_priority: u8 [Whole(1, 255)] default "255",
        /// With openflow: time without a heartbeat of the master after which a standby takes over.
        openflow_master_timeout: Nanos [Time] default "2s",
        /// With openflow: certificate of the controller (PEM).
        openflow_certificate: String [FILE] or "no TLS",
        /// With openflow: private key of the controller (PEM).
        openflow_key: String [FILE] or "no TLS",
        /// With openflow: CA certificates (PEM) that must have issued those of switches.
        openflow_ca_file: String [FILE] or "no TLS",
    }
}

section! {
    /// Isolation of cheetah flows: redirects each to a scavenger queue while it lasts, so that it does not delay or drop
    /// the packets of others. Needs no topology.
    pub struct Isolation in ISOLATION = "isolation" {
        /// How flows are redirected.
        actuator: IsolatorName [one_of::<IsolatorName>()] or "no isolation",
        /// Collectors whose cheetah flows are redirected.
        collectors: Vec<String> [Texts("names of collectors")] or "all",
        /// With tc: interface of this host that leads to the link. Its queue is replaced, and restored at the end.
        interface: String [Text("the name of an interface")] or "none",
        /// With tc: network namespace of the interface, as in `ip netns`. With openflow: that of the connections; must be that of
        /// the daemon if it drops privileges.
        namespace: String [Text("the name of a network namespace")] or "that of the daemon",
        /// With tc: rate of the link. Set it 1 to 2 % below the real rate, so that packets queue in this host and not
        /// behind it.
        link_rate: BitRate [Rate] or "none",
        /// With tc: how both queues share the link.
        queueing: QueueingName [one_of::<QueueingName>()] default "borrow",
        /// With tc and borrow: share of the link that the scavenger queue has in any case.
        scavenger_share: f64 [Share] default "0.05",
        /// With tc: maximum size of the primary queue.
        primary_queue: Bytes [Amount] default "5MB",
        /// With tc: maximum size of the scavenger queue.
        scavenger_queue: Bytes [Amount] default "5MB",
        /// With tc: a redirection ends after this time unless the daemon refreshes it, which it does every third of it. At
        /// least 500 ms. No flow stays redirected for longer if the daemon is killed.
        expiry: Nanos [Time] default "5s",
        /// With tc and openflow: what happens to queues and redirections when the daemon stops.
        at_stop: AtStopName [one_of::<AtStopName>()] default "remove",
        /// With openflow: datapath ID of the switch, up to 16 hexadecimal digits. It must not be one of `[control] switches`.
        switch: String [Text("a datapath ID, such as 0000005457000001")] or "none",
        /// With openflow: port of the switch that leads to the link: its name, or its number.
        port: String [Text("a port of the switch, such as eth2 or 2")] or "none",
        /// With openflow: scavenger queue of the port. Its counters confirm redirections.
        queue: u32 [Whole(0, 4_294_967_294)] or "none",
        /// With openflow: how rules direct packets to the scavenger queue.
        method: MethodName [one_of::<MethodName>()] default "both",
        /// With openflow: how rules forward packets: `normal`, as the switch does without OpenFlow; `output`, to the port; or `table N`,
        /// by the rules of a later table.
        forward: String [Text("normal, output, or a table such as \"table 1\"")] default "normal",
        /// With openflow: table of the rules.
        rule_table: u8 [Whole(0, 254)] default "0",
        /// With openflow: priority of the rules. Higher than that of all rules that forward, and used by nobody else in the table.
        rule_priority: u16 [Whole(1, 65_535)] default "24576",
        /// With openflow: the switch deletes a rule without packets for this long, in whole seconds. At least `quiet` and 3 s.
        idle_timeout: Nanos [Time] or "4 s more than quiet",
        /// With openflow: a flow without packets for this long has none in the scavenger queue, and can be released. At least the size of
        /// the queue divided by its guaranteed rate.
        drain_time: Nanos [Time] default "2s",
        /// With openflow: listen address for the switch, OpenFlow 1.3. Without TLS any host that reaches it can pose as the switch.
        openflow_listen: String [Text("an address and a port, such as 0.0.0.0:6654")] or "none",
        /// With openflow: address of the switch to connect to. With TLS, its certificate must match the name, or else the address.
        openflow_connect: String [Text("an address and a port, and with TLS perhaps a name: \"192.0.2.1:6653 wan.example.net\"")] or "none",
        /// With openflow: interval at which rules and counters are read, and rules repaired.
        openflow_audit_interval: Nanos [Time] default "500ms",
        /// With openflow: priority of this daemon among those that isolate flows at the same switch. The highest becomes master
        /// first; the others are standbys.
        openflow_priority: u8 [Whole(1, 255)] default "255",
        /// With openflow: time without a heartbeat of the master after which a standby takes over.
        openflow_master_timeout: Nanos [Time] default "2s",
        /// With openflow: certificate of the controller (PEM).
        openflow_certificate: String [FILE] or "no TLS",
        /// With openflow: private key of the controller (PEM).
        openflow_key: String [FILE] or "no TLS",
        /// With openflow: CA certificates (PEM) that must have issued that of the switch.
        openflow_ca_file: String [FILE] or "no TLS",
        /// With tc, openflow and emulated: a redirection has failed if its flow sends for this long and the scavenger queue
        /// receives fewer than an eighth as many packets.
        confirm_timeout: Nanos [Time] default "5s",
        /// With exec: program and arguments. It receives `redirect` or `release` and the flow as further arguments, and as
        /// JSON on standard input. It runs without a shell and without privileges.
        command: Vec<String> [Texts("a program and its arguments, such as [\"/usr/local/bin/redirect\", \"r1\"]")] or "none",
        /// With webhook: URL that receives a POST request with JSON for each redirection and release. Messages and logs show it without user,
        /// password and query.
        url: WebUrl [parsed::<WebUrl>("a URL, such as \"https://controller.example.net/flows\"").with_own_error()] or "none",
        /// With webhook: file with a token for the header `Authorization: Bearer`, read at the start.
        token_file: String [FILE] or "no token",
        /// With flowspec: the router or route reflector that receives the rules. The port is 179 by default.
        peer: String [Text("an address, such as \"192.0.2.1\", \"2001:db8::1\" or \"192.0.2.1:1790\"")] or "none",
        /// With flowspec: number of the router's autonomous system.
        peer_as: u32 [Whole(1, 4_294_967_295)] or "none",
        /// With flowspec: number of the autonomous system of this daemon. The same as peer_as for a session within it.
        local_as: u32 [Whole(1, 4_294_967_295)] or "none",
        /// With flowspec: source address of the session.
        local_address: String [Text("an address of this host")] or "by the route to the peer",
        /// With flowspec: BGP identifier of this daemon. Required if peer is an IPv6 address.
        router_id: String [Text("an IPv4 address")] or "the source address",
        /// With flowspec: hold time to propose. The router drops all rules if it hears nothing for this long. Whole seconds, at
        /// least 3.
        hold_time: Nanos [Time] default "30s",
        /// With flowspec: file with the password of the session (TCP MD5, RFC 2385), read at the start.
        password_file: String [FILE] or "no password",
        /// With flowspec: what the router does with the packets of redirected flows.
        action: RuleActionName [one_of::<RuleActionName>()] default "mark",
        /// With flowspec and mark, and with openflow: DSCP that the router or switch writes into the packets. Its queues must send 1
        /// (lower effort, RFC 8622) to a scavenger queue.
        dscp: u8 [Whole(0, 63)] default "1",
        /// With flowspec and rate: rate limit of each flow. The router drops what exceeds it.
        rate_limit: BitRate [Rate] or "none",
        /// With flowspec and redirect: route target of a routing instance, or address of a next hop.
        redirect_to: String [Text("a route target such as \"64500:100\", or an address")] or "none",
        /// With exec and webhook: maximum duration of a run or request.
        timeout: Nanos [Time] default "5s",
        /// With exec and webhook: maximum number of simultaneous runs or requests.
        concurrency: usize [Whole(1, 64)] default "4",
        /// With exec, webhook, flowspec and log: a redirection ends after this time even if the end of the flow was not reported.
        max_time: Nanos [Time] default "1h",
        /// Maximum number of simultaneous redirections. Further cheetah flows are counted, and wait until others end.
        max_redirections: usize [Whole(1, 262_144)] default "1024",
        /// Maximum number of redirections and releases per second. Further ones wait.
        changes_per_second: u32 [Whole(1, 1_000_000)] default "100",
        /// A redirected flow without packets for this long is released. More than idle_timeout of its collector: otherwise a flow that pauses for a
        /// time between both is released, and stays so when it sends again, because its collector reports it once. With exec, webhook, flowspec and
        /// log: how long after its end a flow is released.
        quiet: Nanos [Time] or "1 s more than the longest idle_timeout of the collectors; 2s with exec, webhook, flowspec and log",
        /// A flow whose packets do not leave the scavenger queue is released after this time, which may reorder them.
        release_timeout: Nanos [Time] default "30s",
        /// Addresses whose flows are never redirected.
        never_prefixes: Vec<String> [Texts("prefixes, such as [\"192.0.2.0/24\", \"2001:db8::/32\"]")] or "none",
        /// Ports whose flows are never redirected.
        never_ports: Vec<String> [Texts("ports, such as [\"22\", \"179\"]")] or "none",
        /// Record what would be redirected, and redirect nothing. With tc, the queues are set all the same, so that their counters can be read.
        dry_run: bool [Boolean] default "false",
    }
}

section! {
    /// Adaptation of the rate threshold R of cheetah flows to the traffic: the largest R at which the loss of all other
    /// packets stays acceptable. Recorded hours are replayed in a simulation of the link, together with fast flows.
    pub struct Threshold in THRESHOLD = "threshold" {
        /// Collector that receives all packets of the link in one direction, none of them sampled or dropped.
        collector: String [Text("the name of a collector")] or "no adaptation",
        /// Collectors whose rate_threshold becomes R.
        applies_to: Vec<String> [Texts("names of collectors")] or "that collector",
        /// Directory for the state and for recordings, which are deleted once they are simulated. Needed.
        folder: String [Text("a directory name, relative to the directory of this file")] or "none",
        /// Maximum share of packets of other flows that may be lost, such as 1e-5. Needed.
        acceptable_loss: f64 [Share] or "none",
        /// Rate of the link.
        link_rate: BitRate [Rate] or "that of [isolation]",
        /// Buffer of the link's queue.
        buffer: Bytes [Amount] default "5MB",
        /// Time for which traffic is summarised and R holds (T2). 24 of them are a day.
        period: Nanos [Time] default "1h",
        /// Windows whose bytes give the burstiness (T1).
        burst_window: Nanos [Time] default "100ms",
        /// Mean rates of similar traffic differ by less than this.
        rate_tolerance: BitRate [Rate] or "2 % of link_rate",
        /// Burstiness of similar traffic differs by less than this.
        burstiness_tolerance: f64 [Number(0.0, 100.0)] default "0.05",
        /// Number of rates that are simulated, evenly spaced from 5 to 90 % of link_rate.
        rates: usize [Whole(2, 64)] default "18",
        /// Round-trip times of the simulated flows. The longest decides.
        round_trips: Vec<String> [Texts("times, such as [\"10ms\", \"100ms\"]")] default "10ms,100ms",
        /// Simulated flow.
        flow: FlowModelName [one_of::<FlowModelName>()] default "tcp",
        /// How much of a recording is simulated.
        simulate: SimulateName [one_of::<SimulateName>()] default "all",
        /// Maximum size of a recording. It takes about 3 bytes per packet. A recording that is full holds the first part.
        max_recording: Bytes [Amount] default "2GB",
        /// Poll of the link's interface. If the primary queue loses more than acceptable_loss there, R decreases.
        poll: String [Text("the name of a [[poll]]")] or "R follows the simulations alone",
        /// With poll: by how much R decreases and increases at a time.
        step: BitRate [Rate] or "0.5 % of link_rate",
        /// Alpha of R = alpha (C - r) for a burstiness of 1. This equation applies until a simulation has finished.
        alpha: f64 [Number(0.0, 100.0)] default "0.1",
    }
}

section! {
    /// Interface counters of a router, a switch or this host, polled for losses. At most 256.
    pub struct Poll in POLL = ["poll"] {
        /// Name in API, events and metrics.
        name: String [Text("a name")] needed,
        /// Where the counters come from.
        source: PollSourceName [one_of::<PollSourceName>()] default "snmp",
        /// Interface whose counters are read: the port that leads to the link.
        interface: String [Text("the name of an interface")] needed,
        /// Interval of the polls.
        interval: Nanos [Time] default "10s",
        /// Number of intervals over which the loss is averaged: dropped packets divided by all packets.
        average: usize [Whole(1, 10_000)] default "6",
        /// With snmp: the agent.
        target: String [Text("an address or name and a port, such as 192.0.2.1:161")] or "none",
        /// With snmp: file with `user NAME`, `auth sha256 PASSWORD` and `priv aes128 PASSWORD` on a line each, or
        /// `community SECRET` for SNMP v2c. Only its owner may have access. Read at the start.
        credentials_file: String [FILE] or "none",
        /// With snmp: the object that contains the name of the interface. The index is looked up by it again whenever it changes.
        interface_by: InterfaceByName [one_of::<InterfaceByName>()] default "name",
        /// With snmp and openflow: timeout of a request.
        timeout: Nanos [Time] default "2s",
        /// With snmp: how often a request without an answer is repeated.
        retries: u32 [Whole(0, 10)] default "1",
        /// With snmp: the longest time for which the agent caches its counters. The daemon asks until they change, so that
        /// rates have the time of the cache. `"0s"` if the agent has no cache.
        cache_time: Nanos [Delay] default "3s",
        /// With snmp and openflow: whether the port has a scavenger queue too. Then the discards of the port say nothing about the
        /// loss of the primary queue, unless a queue is read by the keys below.
        has_scavenger: bool [Boolean] default "true",
        /// With snmp: two OIDs, of the packets that left the primary queue and of those that it dropped. `{index}` stands
        /// for ifIndex.
        primary_oids: Vec<String> [Texts("two OIDs, such as [\"1.3.6.1.4.1.99999.1.{index}.1\", \"1.3.6.1.4.1.99999.1.{index}.2\"]")] or "none",
        /// With snmp: the same of the scavenger queue. Without primary_oids it is subtracted from the port.
        scavenger_oids: Vec<String> [Texts("two OIDs, such as [\"1.3.6.1.4.1.99999.1.{index}.3\", \"1.3.6.1.4.1.99999.1.{index}.4\"]")] or "none",
        /// With openflow: datapath ID of the switch, up to 16 hexadecimal digits. `interface` is the name of the port, as the switch
        /// reports it.
        switch: String [Text("a datapath ID, such as 0000005457000001")] or "none",
        /// With openflow: listen address for switches, OpenFlow 1.3. Polls with the same address share it, and a switch has one
        /// connection for all of its ports. Without TLS any host that reaches it can pose as a switch.
        openflow_listen: String [Text("an address and a port, such as 0.0.0.0:6655")] or "none",
        /// With openflow: address of the switch to connect to. With TLS, its certificate must match the name, or else the address.
        openflow_connect: String [Text("an address and a port, and with TLS perhaps a name: \"192.0.2.1:6654 wan.example.net\"")] or "none",
        /// With openflow: number of the primary queue.
        primary_queue: u32 [Whole(0, 4_294_967_294)] or "none: the loss is unknown, unless has_scavenger is false",
        /// With openflow: number of the scavenger queue. Requires primary_queue.
        scavenger_queue: u32 [Whole(0, 4_294_967_294)] or "none",
        /// With openflow: certificate of the controller (PEM).
        openflow_certificate: String [FILE] or "no TLS",
        /// With openflow: private key of the controller (PEM).
        openflow_key: String [FILE] or "no TLS",
        /// With openflow: CA certificates (PEM) that must have issued those of switches.
        openflow_ca_file: String [FILE] or "no TLS",
        /// With qdisc: network namespace of the interface, as in `ip netns`. With openflow: that of the connections; must be that of
        /// the daemon if it drops privileges.
        namespace: String [Text("the name of a network namespace")] or "that of the daemon",
        /// With qdisc: class of the primary queue, as tc prints it.
        primary_class: String [Text("a class, such as \"1:10\"")] or "that of [isolation], or the only queue of the interface",
        /// With qdisc: class of the scavenger queue.
        scavenger_class: String [Text("a class, such as \"1:20\"")] or "that of [isolation]",
    }
}

section! {
    /// Capture files of the latest samples, written on SIGUSR1, by the API, or on events.
    pub struct Samples in SAMPLES = "samples" {
        /// Directory for capture files. Created if missing.
        folder: String [Text("a directory name")] or "none: samples only by the API",
        /// Format of capture files.
        format: CaptureFormat [one_of::<CaptureFormat>()] default "pcapng",
        /// Events that dump the samples of their collector: utilisation reaches the upper threshold
        /// (congestion), falls below the lower one (cleared), or a flow becomes a cheetah flow (cheetah).
        on_event: Vec<String> [Texts("some of congestion, cleared, cheetah")] or "none",
        /// Minimum time between two event dumps of one collector. Skipped dumps are counted.
        min_dump_interval: Nanos [Time] default "10s",
        /// Number of event dumps to keep, including those of earlier runs. The oldest are deleted.
        keep: usize [Whole(1, 100_000)] default "20",
        /// Delay between event and dump, to include what followed.
        after: Nanos [Delay] default "5ms",
    }
}

section! {
    /// Event log: the events of the API on disk, also those of earlier runs.
    pub struct EventLog in EVENT_LOG = "event_log" {
        /// Directory of the log. Created if missing.
        folder: String [Text("a directory name, relative to the directory of this file")] or "none: events are only in the stream",
        /// Maximum size on disk. The oldest events are removed.
        max_size: Bytes [Amount] default "64MiB",
        /// Types of events to keep.
        types: Vec<String> [Texts("types of events, such as congestion, decision and action")] or "all",
    }
}

section! {
    /// Alert: events that are sent to a webhook.
    pub struct Alert in ALERT = ["alert"] {
        /// Name in requests, log and metrics.
        name: String [Text("a name")] needed,
        /// URL of the webhook. It gets events as JSON by POST: `{"alert": NAME, "events": [...], "omitted_events": 0}`, with
        /// events as in the API. A failed request is repeated.
        webhook: WebUrl [parsed::<WebUrl>("a URL, such as \"https://hooks.example.net/thalweg\"").with_own_error()] needed,
        /// File with the token of the header Authorization: Bearer. Only its owner may have access. Read at the start.
        token_file: String [FILE] or "no token",
        /// Types of events.
        types: Vec<String> [Texts("types of events, such as congestion, link and collector")] or "all",
        /// Link that the events name: SWITCH:pPORT:in or SWITCH:pPORT:out, or the ports at its ends.
        link: String [Text("the name of a link, such as tor0:p3:out")] or "any",
        /// Collector of the events; control is the controller.
        collector: String [Text("the name of a collector")] or "any",
        /// Least time between two requests. Events in between are sent together, at most 100.
        min_interval: Nanos [Delay] default "1m",
    }
}

section! {
    /// Export of flow records.
    pub struct Records in RECORDS = "records" {
        /// File for JSON lines, one per flow record, as thalweg watch --flows, with the name of the collector.
        /// Lines are appended.
        file: String [FILE] or "none",
        /// Directory for Parquet files, as written by thalweg collect: flows, interface counters of each [[poll]], and
        /// reports of transfer hosts.
        folder: String [Text("a directory name, relative to the directory of this file")] or "none",
        /// With folder: removes files whose rows are all older.
        retention_age: Nanos [Time] or "forever",
        /// With folder: removes the oldest files of a dataset while it exceeds this size.
        retention_size: Bytes [Amount] or "unlimited",
        /// IPFIX destination for flow records. Both directions of a flow are one record (RFC 5103). Metrics
        /// count records that could not be sent.
        ipfix: String [Text("[udp://|tcp://|tls://]HOST[:PORT], such as 10.0.0.1:4739")] or "none",
        /// Time unit of IPFIX records. nfdump 1.7.1 does not support microseconds.
        ipfix_times: TimesName [one_of::<TimesName>()] default "microseconds",
        /// CA certificates (PEM) that verify a tls:// destination.
        ipfix_ca_file: String [FILE] or "none: tls:// is refused",
        /// Client certificate (PEM) for the destination.
        ipfix_certificate: String [FILE] or "none",
        /// Private key of the client certificate (PEM).
        ipfix_key: String [FILE] or "none",
    }
}

section! {
    /// Reception of reports from transfer hosts (thalweg transfers agent). Each host needs a token with its name and the
    /// scope report.
    pub struct Transfers in TRANSFERS = "transfers" {
        /// Receive reports, and store them in records.folder. A daemon that does nothing else needs no collector.
        receive: bool [Boolean] default "false",
        /// Maximum rows per second of a host, on average. A minute of them may arrive at once.
        rows_per_second: u64 [Whole(1, 1_000_000_000)] default "20000",
        /// Maximum number of hosts.
        max_hosts: usize [Whole(1, 100_000)] default "10000",
        /// Age from which the reports of the latest analysis (thalweg transfers report) are called outdated.
        report_age: Nanos [Time] default "48h",
        /// Mail server for reports to subscribers, as HOST or HOST:PORT.
        mail_server: String [Text("HOST or HOST:PORT")] or "no reports by e-mail",
        /// Encryption of the connection to the mail server. The port is 465, 587 or 25 if mail_server names none.
        mail_encryption: MailEncryptionName [one_of::<MailEncryptionName>()] default "starttls",
        /// User at the mail server. Needs mail_password_file.
        mail_user: String [Text("a name")] or "no authentication",
        /// File with the password of the user.
        mail_password_file: String [FILE] or "no authentication",
        /// Sender of the reports.
        mail_from: String [Text("an e-mail address")] or "needed with mail_server",
    }
}

section! {
    /// Results of emulated experiments, which the API and the dashboard show.
    pub struct Experiments in EXPERIMENTS = "experiments" {
        /// Directory whose subdirectories have the results of thalweg emulate --output DIR, each or in groups.
        folder: String [Text("a directory name, relative to the directory of this file")] or "none",
    }
}

const FILE: Text = Text("a file name, relative to the directory of this file");

#[cfg(test)]
mod tests {
    use super::SCHEMA;

    #[test]
    fn defaults_are_valid_and_every_key_is_documented() {
        SCHEMA.check();
    }
}
