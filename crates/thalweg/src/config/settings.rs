//! The settings of `thalweg watch`, from flags and files. Each section is declared once. Flags, file parser, default file,
//! reference and JSON Schema are derived from it.

use std::num::NonZeroUsize;

use thalweg_config::kind::{Boolean, Time, Whole, of, one_of, parsed};
use thalweg_config::section::flag;
use thalweg_config::{Key, Schema, Section, choices, section};
pub use thalweg_daemon::config::names::{BackendName, TimesName};
use thalweg_dataplane::HookChoice;
use thalweg_measure::tasks::{Sampling, TaskList};
use thalweg_records::export::Destination;
use thalweg_wire::{BitRate, Bytes, Nanos};

use super::value::{MeteredFilter, Probability, Protocols};

/// The configuration file of `thalweg watch`.
pub static SCHEMA: Schema =
    Schema::new("configuration", &[&OUTPUT, &INPUT, &TASKS, &EXPORT, &DETECTION, &FLOW_TABLE, &LIVE]);

/// All settings by section. Key names are unique across sections.
pub fn keys() -> impl Iterator<Item = (&'static Section, &'static Key)> {
    SCHEMA.sections.iter().flat_map(|section| section.keys().map(|key| (*section, key)))
}

choices! {
    /// Output formats.
    pub enum ShowChoice {
        /// Live view on a terminal, summary otherwise
        Auto = "auto",
        /// Full-screen table of the largest flows, updated live
        LiveView = "live-view",
        /// Report at the end
        Summary = "summary",
        /// JSON lines: cheetah flows as they are detected, the summary at the end
        Json = "json",
        /// CSV: flows as they end; with --by, hosts or pairs at the end
        Csv = "csv",
    }
}

choices! {
    /// Rows of tables.
    pub enum GroupingName {
        /// Flows
        Flow = "flow",
        /// Hosts
        Host = "host",
        /// Pairs of hosts
        Pair = "pair",
    }
}

choices! {
    /// When to look up names of hosts.
    pub enum NamesName {
        /// In the live view of interfaces
        Auto = "auto",
        /// Also for files, in the summary and in JSON lines and CSV of hosts and pairs
        Always = "always",
        /// Until n is pressed in the live view, not at all
        Never = "never",
    }
}

choices! {
    /// Cheetah flow detectors.
    pub enum DetectorName {
        /// Checks every interval of length T and misses no cheetah flow while `--tracks` suffices
        SlidingWindow = "sliding-window",
        /// CFINF as published: checks consecutive flights
        Cfinf = "cfinf",
        /// No detection
        None = "none",
    }
}

section! {
    /// Output format.
    pub struct Output in OUTPUT = "output" {
        /// Output format.
        show: ShowChoice [one_of::<ShowChoice>()] default "auto" with flag("WHAT"),
        /// Rows of the table and of the list of the largest: flows, hosts, or pairs of hosts.
        ///
        /// In the live view, b switches between them. With --json and --csv, hosts and pairs are written at the end, all that were seen.
        /// Traffic of a host or pair is the sum over its flows.
        by: GroupingName [one_of::<GroupingName>()] default "flow" with flag("WHAT"),
        /// Look up the names of hosts by DNS.
        ///
        /// A name server learns which addresses you watch. So files cause no DNS queries unless you ask for names. In the live view, n turns
        /// the names of hosts on and off, and N those of ports, which are from /etc/services.
        names: NamesName [one_of::<NamesName>()] default "auto" with flag("WHEN"),
        /// Directory for the files with packets of a flow, which w writes in the live view.
        ///
        /// Files are written as the user to whom the program changes when it is started as root: the caller of sudo, or nobody.
        capture_directory: String [of::<String>()] default "." with flag("DIR").sample("captures"),
        /// Maximum size of such a file.
        capture_limit: Bytes [of::<Bytes>()] default "1GB" with flag("SIZE"),
        /// Use the mouse in the live view.
        ///
        /// A click selects a row, a second click opens it, a click on a column title sorts, one on a key in the last line presses it, the
        /// wheel moves the selection. To select text with the mouse, hold Shift, or turn the mouse off.
        mouse: bool [Boolean] default "true" with flag("BOOL").opposite("no-mouse", "Leave the mouse to the terminal, to select text in the live view.\n\nBy default a click selects a row, a second click opens it, a click on a column title sorts, and the wheel moves the selection. Most terminals select text with Shift held down."),
        /// Also write each flow record as JSON when the flow ends.
        ///
        /// Off by default: tens of thousands of flows end per second on a busy link.
        flows: bool [Boolean] default "false" with flag("BOOL"),
        /// Show only the flows that match a filter in nfdump syntax.
        ///
        /// For example 'dst port 443 and bytes > 1m', see docs/reference/flow-filter.md. Applies to the flows and cheetah
        /// flows of the live view, the summary and JSON lines. All packets are still measured: counters count all traffic,
        /// and --ipfix and --records export all flows. Use -f (--capture-filter) to measure only some packets.
        filter: MeteredFilter [parsed::<MeteredFilter>("a flow filter, such as dst port 443 and bytes > 1m").with_own_error()] or "all flows" with flag("FILTER").sample("dst port 443 and bytes > 1m"),
        /// Maximum rows of each list in the summary.
        limit: NonZeroUsize [of::<NonZeroUsize>()] default "10" with flag("N").short('n'),
    }
}

section! {
    /// Packet selection and threads.
    pub struct Input in INPUT = "input" {
        /// Measure only the packets that match a capture filter in tcpdump syntax.
        ///
        /// For example 'tcp port 443 and net 10.0.0.0/8', see pcap-filter(7). Needs libpcap, which compiles the filter.
        /// On interfaces the filter runs in the kernel, with AF_XDP in the program. -f is a capture filter as in tshark. Use --filter, a flow filter, to
        /// measure all packets and show only some flows.
        capture_filter: String [of::<String>()] or "all packets" with flag("EXPR").short('f').sample("tcp port 443"),
        /// Measure the flows inside tunnels.
        ///
        /// Supports GRE, PPTP, ERSPAN, VXLAN, Geneve, GTP-U, L2TP (versions 2 and 3), Teredo and IP in IP. Mirrored traffic often arrives in a tunnel. Off by default:
        /// the network between the tunnel endpoints carries the outer flows.
        decapsulate: bool [Boolean] default "false" with flag("BOOL"),
        /// Number of metering threads.
        ///
        /// Flows are distributed over threads by hash. Each thread has its own flow table and, on an interface, its own
        /// capture ring, so threads never wait for each other.
        threads: NonZeroUsize [of::<NonZeroUsize>()] or "1 for files, one per core for interfaces" with flag("N").sample("4"),
        /// Stop after this long.
        ///
        /// Counts from the start on interfaces, and from the first packet in files, by packet timestamps.
        duration: Nanos [Time] or "until the end of input" with flag("TIME").sample("10s"),
        /// Seed of hash functions and sampling, to repeat a run.
        ///
        /// Results of sketches and of CFINF sampling depend on it. Saved sketches can be merged only if they have the same
        /// seed. Random by default, so that an attacker cannot construct hash collisions.
        seed: u64 [of::<u64>()] or "random" with flag("N").sample("1"),
    }
}

section! {
    /// Measurement tasks, answered by sketches in a fixed amount of memory.
    pub struct Tasks in TASKS = "tasks" {
        /// Measurement tasks, separated by commas.
        ///
        /// heavy:0.1% (keys with at least 0.1 % of the traffic), change:30s>1% (keys whose traffic changed from one 30 s period to the
        /// next by at least 1 % of all traffic), distinct (number of keys), entropy (of the traffic distribution over keys),
        /// spread:dst>1000 (destinations with more than 1000 peers), moments (L1 and L2 of key sizes), hhh:1% (hierarchical
        /// heavy hitters).
        ///
        /// A key may follow after a colon: 5tuple (default), src, dst, dst+port, src/24, dst/16; src or dst for hhh. Then
        /// packets (default) or bytes, as in heavy:1%:src:bytes. Quote > in a shell.
        tasks: TaskList [parsed::<TaskList>("measurement tasks, such as heavy:0.1%, entropy:src, distinct").as_list().with_own_error()] or "none" with flag("LIST").sample("heavy:0.1%,entropy:src,distinct"),
        /// Memory of all sketches.
        ///
        /// Shared by all tasks, threads and kept windows, allocated before the first packet and never exceeded. More memory
        /// gives tighter error bounds.
        memory: Bytes [of::<Bytes>()] default "2MiB" with flag("SIZE"),
        /// Window length. Tasks report at the end of each window.
        ///
        /// Windows follow packet time and start at multiples of their length since 1970. The period of a change task must be
        /// a multiple of the window.
        window: Nanos [Time] default "10s" with flag("TIME"),
        /// Number of finished windows to keep, for results over several windows.
        keep_windows: NonZeroUsize [of::<NonZeroUsize>()] default "3" with flag("N"),
        /// Sampling of sketch updates (NitroSketch).
        ///
        /// 1: update all rows, no sampling. 1/2, 1/4, ... 1/1024: update each row with this probability; 1/16 is several
        /// times faster, with wider bounds. line-rate: adapt the probability to the packet rate. correct: do not sample until
        /// the error bound holds. The tasks distinct and spread always process every packet.
        sampling: Sampling [parsed::<Sampling>("1, 1/2, 1/4, ... 1/1024, line-rate or correct")] default "1" with flag("P|NAME"),
        /// Keep the exact flow table and detect cheetah flows in addition to the tasks.
        ///
        /// Without the table, memory use is bounded by the sketches.
        table: bool [Boolean] default "true" with flag("BOOL").opposite("no-table", "Run without the flow table and without cheetah flow detection.\n\nMemory use is then bounded by the sketches. Needs --tasks."),
        /// Save the sketches at the end of each window in a directory, one file per task.
        ///
        /// `thalweg sketch` shows, merges and compares the files. Sketches of several runs can be merged if all ran with the
        /// same --seed, --tasks, --memory, --threads and --keep-windows.
        save_sketches: String [of::<String>()] or "not saved" with flag("DIR").sample("sketches"),
    }
}

section! {
    /// Export of flow records.
    pub struct Export in EXPORT = "export" {
        /// Export flow records by IPFIX when flows end.
        ///
        /// [udp://|tcp://|tls://]HOST[:PORT], by default UDP and port 4739 (4740 for TLS). Both directions of a flow are one
        /// record (RFC 5103). Records that cannot be sent are counted.
        ipfix: Destination [parsed::<Destination>("[udp://|tcp://|tls://]HOST[:PORT], such as 10.0.0.1:4739 or tcp://[::1]")] or "no export" with flag("DESTINATION").sample("udp://10.0.0.1:4739"),
        /// Time unit of IPFIX records.
        ///
        /// nfdump 1.7.1 does not support microseconds and dates every flow to 1970.
        ipfix_times: TimesName [one_of::<TimesName>()] default "microseconds" with flag("UNIT"),
        /// CA certificates (PEM) that verify a tls:// destination.
        ipfix_ca_file: String [of::<String>()] or "none: tls:// is refused" with flag("FILE").sample("collector-ca.pem"),
        /// Write flow records to Parquet files in a directory.
        ///
        /// Files are in flows/date=.../hour=..., as `thalweg collect` writes them. Each direction of a flow is one row.
        records: String [of::<String>()] or "no files" with flag("DIR").sample("records"),
        /// Export and write MAC addresses.
        ///
        /// Those of the first packet in each direction of a flow. They take 25 bytes per flow. IPFIX then has a record for each direction.
        mac_addresses: bool [Boolean] default "false" with flag("BOOL"),
    }
}

section! {
    /// Cheetah flow detection.
    pub struct Detection in DETECTION = "detection" {
        /// T, the flight duration.
        ///
        /// A cheetah flow sends more than R*T bytes within T. The default is from the dissertation that defines cheetah
        /// flows.
        flight_duration: Nanos [Time] default "100ms" with flag("TIME").short('T'),
        /// R, the rate threshold: a cheetah flow sends more than R*T bytes within T.
        ///
        /// Counts IP packets, per direction of a flow. The default is from the same dissertation, for 10 Gbit/s links.
        rate_threshold: BitRate [of::<BitRate>()] default "50mbps" with flag("RATE").short('R'),
        /// Cheetah flow detector.
        detector: DetectorName [one_of::<DetectorName>()] default "sliding-window" with flag("NAME"),
        /// sliding-window: maximum number of flows tracked at once.
        ///
        /// Flows that send more than R*T/64 bytes within T are tracked and take 1.1 KiB each. A link carries at most about
        /// 64 * capacity / R of them on average. The default takes 32 MiB. If the memory is full, further flows are not tracked, and counted.
        tracks: NonZeroUsize [of::<NonZeroUsize>()] default "32768" with flag("N"),
        /// cfinf: L, the packet length threshold. Shorter packets do not start a flow.
        ///
        /// In bytes of the IP packet. The default keeps all packets.
        packet_length_threshold: Bytes [of::<Bytes>()] default "0B" with flag("SIZE"),
        /// cfinf: S, the probability that a packet starts a flow.
        ///
        /// Applied to packets of unknown flows that passed the other filters. The default keeps all packets.
        sampling_probability: Probability [of::<Probability>()] default "1.0" with flag("P"),
        /// cfinf: number of flow cache entries.
        ///
        /// A full cache evicts the least recently used entry. The default performed best in the dissertation's evaluation.
        flow_cache_entries: u32 [Whole(1, 1 << 31)] default "50000" with flag("N"),
        /// cfinf: protocols that do not start a flow.
        ///
        /// Names or numbers. An empty list keeps all protocols. The default is that of the published algorithm.
        protocol_filter: Protocols [parsed::<Protocols>("names or numbers of IP protocols, such as icmp, icmp6, 89").as_list()] default "icmp,icmp6" with flag("LIST"),
    }
}

section! {
    /// Flow table size and timeouts.
    pub struct FlowTable in FLOW_TABLE = "flow_table" {
        /// Maximum number of live flows, over all threads.
        ///
        /// A full table evicts the least recently used flow: its record is exported, and the eviction is counted. A flow takes
        /// about 148 bytes: up to 155 MB with the default, and the detector's memory.
        flow_capacity: u32 [Whole(1, 1 << 31)] default "1048576" with flag("N"),
        /// A flow ends after this much silence.
        ///
        /// At least T with the sliding-window detector. The default is that of Cisco exporters.
        idle_timeout: Nanos [Time] default "15s" with flag("TIME"),
        /// A flow that is still active after this long exports a record and continues.
        ///
        /// Long flows become visible before they end. The default is that of Cisco exporters.
        active_timeout: Nanos [Time] default "30min" with flag("TIME"),
        /// How long a flow stays in the table after TCP closed it.
        ///
        /// Late packets then do not start a new flow. The default is longer than retransmissions of the last segments take.
        linger: Nanos [Time] default "1s" with flag("TIME"),
    }
}

section! {
    /// Live capture.
    pub struct Live in LIVE = "live" {
        /// Capture backend.
        ///
        /// af_xdp takes incoming packets away from the host. Do not use it on an interface that the host needs, such as the
        /// one of your SSH session.
        backend: BackendName [one_of::<BackendName>()] default "af_packet" with flag("NAME"),
        /// Captured bytes per packet, from the link header on.
        ///
        /// 64 to 261888. The default covers TCP over IPv6 inside an IPv6 tunnel, with TCP options and VLAN tags.
        snap_length: Bytes [of::<Bytes>()] default "192B" with flag("SIZE"),
        /// Size of the capture ring of each thread.
        ///
        /// Rounded to blocks of 256 KiB: at least two, less than 4 GiB. The default buffers 20 ms at 10 million packets/s.
        ring_size: Bytes [of::<Bytes>()] default "64MiB" with flag("SIZE"),
        /// Maximum time that the kernel may batch packets.
        ///
        /// 1 ms to 1 s. The default is a tenth of the default T, so that it adds little to the detection delay.
        block_timeout: Nanos [Time] default "10ms" with flag("TIME"),
        /// Count the measurement tasks by a program inside the kernel, instead of capturing packets.
        ///
        /// An eBPF program at XDP or at the ingress of tc samples and counts packets before the network stack and passes them on. A packet that is
        /// not sampled costs a few nanoseconds. Needs --tasks with heavy, change, entropy, moments or distinct, at most four, one interface, and root
        /// or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN. There is no flow table, and cheetah flows are not detected.
        in_kernel: bool [Boolean] default "false" with flag("BOOL"),
        /// --in-kernel: where the program is attached.
        ///
        /// auto: XDP in the driver; the ingress of tc if the driver has no XDP or another XDP program is attached. xdp: XDP only, in the driver or in
        /// the slower generic mode. tc: the ingress of tc, beside other programs.
        hook: HookChoice [parsed::<HookChoice>("auto, xdp or tc")] default "auto" with flag("HOOK"),
        /// --in-kernel: pin program and sketches under a name, so that they count on when this process ends.
        ///
        /// A later run with the same name and options continues, and its first window has all that was counted meanwhile. `thalweg watch --unpin NAME`
        /// detaches and removes them.
        pin: String [of::<String>()] or "not pinned" with flag("NAME").sample("uplink"),
        /// Capture packets that are addressed to other hosts.
        ///
        /// On by default: a monitor port delivers only such packets.
        promiscuous: bool [Boolean] default "true" with flag("BOOL").opposite("no-promiscuous", "Capture only what this host sends and receives.\n\nBy default the interface is in promiscuous mode, because a monitor port delivers packets that are addressed to others."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_and_examples_are_valid_and_every_key_is_documented() {
        SCHEMA.check();
    }

    #[test]
    fn every_key_has_a_flag_and_a_unique_name() {
        let mut flags: Vec<String> = keys().map(|(_, key)| key.flag_name().expect("a flag")).collect();
        let mut names: Vec<&str> = keys().map(|(_, key)| key.name).collect();
        let count = names.len();
        flags.sort_unstable();
        flags.dedup();
        names.sort_unstable();
        names.dedup();
        assert_eq!((flags.len(), names.len()), (count, count));
        for (_, key) in keys() {
            assert_ne!(key.default_description(), "", "{key:?}");
        }
    }
}
