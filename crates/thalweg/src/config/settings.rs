//! What can be set for `thalweg watch`, by flag or by file. Each section is declared once; flags, the reading of files, the
//! default file, the reference and the JSON Schema come from here.

use std::num::NonZeroUsize;

use thalweg_config::kind::{Boolean, Time, Whole, of, one_of, parsed};
use thalweg_config::section::flag;
use thalweg_config::{Key, Schema, Section, choices, section};
pub use thalweg_daemon::config::table::{BackendName, TimesName};
use thalweg_measure::tasks::{Sampling, TaskList};
use thalweg_records::export::Destination;
use thalweg_wire::{BitRate, Bytes, Nanos};

use super::value::{Probability, Protocols};

/// What a configuration file of `thalweg watch` may say.
pub static SCHEMA: Schema =
    Schema::new("configuration", &[&OUTPUT, &INPUT, &TASKS, &EXPORT, &DETECTION, &FLOW_TABLE, &LIVE]);

/// Everything that can be set, by section. No two sections share a name of a key.
pub fn keys() -> impl Iterator<Item = (&'static Section, &'static Key)> {
    SCHEMA.sections.iter().flat_map(|section| section.keys().map(|key| (*section, key)))
}

choices! {
    /// What to show.
    pub enum ShowChoice {
        /// The live view on a terminal, else the summary
        Auto = "auto",
        /// A full-screen table of the strongest flows, as they run
        LiveView = "live-view",
        /// A report at the end
        Summary = "summary",
        /// One JSON object a line: cheetahs as they are found, the summary at the end
        Json = "json",
    }
}

choices! {
    /// How cheetahs are found.
    pub enum DetectorName {
        /// Looks at every window of length T; misses none
        SlidingWindow = "sliding-window",
        /// CFINF as published: looks at one flight after the other
        Cfinf = "cfinf",
        /// Finds none
        None = "none",
    }
}

section! {
    /// What is shown.
    pub struct Output in OUTPUT = "output" {
        /// What to show.
        show: ShowChoice [one_of::<ShowChoice>()] default "auto" with flag("WHAT"),
        /// With JSON, also write each flow as it ends.
        ///
        /// Off by default: a busy link ends tens of thousands of flows a second.
        flows: bool [Boolean] default "false" with flag("BOOL"),
        /// Rows of each list in the summary.
        top: NonZeroUsize [of::<NonZeroUsize>()] default "10" with flag("N"),
    }
}

section! {
    /// Which packets are measured, and by how many threads.
    pub struct Input in INPUT = "input" {
        /// Measure only packets that match, in tcpdump's language.
        ///
        /// One argument, as in 'tcp port 443 and net 10.0.0.0/8'; see pcap-filter(7). libpcap compiles it, and has
        /// to be installed for this alone. On interfaces it runs in the kernel.
        filter: String [of::<String>()] or "every packet is measured" with flag("EXPR").short('f').sample("tcp port 443"),
        /// Look into tunnels, and measure the flows inside.
        ///
        /// GRE, ERSPAN, VXLAN, Geneve and IP in IP; mirrored traffic often arrives in them. Off by default, because
        /// the flows of a tunnel's ends are what the network between them carries.
        peel_tunnels: bool [Boolean] default "false" with flag("BOOL"),
        /// Threads that meter.
        ///
        /// Each has a flow table of its own, and the flows that hash to it: none waits for another. On an interface
        /// each has a ring of its own too.
        workers: NonZeroUsize [of::<NonZeroUsize>()] or "1 for files, one a core for interfaces" with flag("N").short('w').sample("4"),
        /// Stop when this much time has passed since the first packet.
        ///
        /// By the time stamps of the packets, so that it means the same for a file and an interface.
        duration: Nanos [Time] or "until the input ends" with flag("TIME").sample("10s"),
        /// Seed of hashes and of sampling, to repeat a run.
        ///
        /// Sketches and CFINF's sampling make results depend on it; saved states can be merged if they have the same.
        /// Another each run by default, so that nobody can prepare packets whose hashes collide.
        seed: u64 [of::<u64>()] or "another each run" with flag("N").sample("1"),
    }
}

section! {
    /// What sketches measure, window by window, in a fixed memory.
    pub struct Tasks in TASKS = "tasks" {
        /// What sketches are to measure, separated by commas.
        ///
        /// heavy:0.1% keys with at least this share of all traffic; change:30s>1% keys whose traffic has changed from
        /// one period of 30 s to the next, by this share of both; distinct how many different keys; entropy of the
        /// distribution of packets over keys; spread:dst>1000 destinations with more peers than this; moments L1 and L2
        /// of the keys' sizes; hhh:1% prefixes with at least this share beyond that of longer ones.
        ///
        /// Behind a colon each takes a key (5tuple, src, dst, dst+port, src/24, dst/16; 5tuple by default, src or dst
        /// for hhh), and packets or bytes to count: heavy:1%:src:bytes. In a shell, > needs quotes.
        tasks: TaskList [parsed::<TaskList>("measurement tasks, such as heavy:0.1%, entropy:src, distinct").as_list().in_own_words()] or "none" with flag("LIST").sample("heavy:0.1%,entropy:src,distinct"),
        /// Memory of all sketches together.
        ///
        /// Of all tasks, workers and kept windows; divided before the first packet, and never exceeded. More of it makes
        /// the bounds of the answers narrower.
        memory: Bytes [of::<Bytes>()] default "2MiB" with flag("SIZE"),
        /// Length of a window, at the end of which tasks answer.
        ///
        /// Windows follow the packets' time, and begin at multiples of their length since 1970. A period of change has to
        /// be a whole number of them.
        window: Nanos [Time] default "10s" with flag("TIME"),
        /// Finished windows that are kept, for answers over all of them together.
        keep_windows: NonZeroUsize [of::<NonZeroUsize>()] default "3" with flag("N"),
        /// How many of a sketch's updates are made.
        ///
        /// 1 all of them; 1/16 each with this probability, as NitroSketch does: several times faster, with wider bounds;
        /// line-rate as few as the rate of packets demands; correct all until fewer keep the error. distinct and spread
        /// look at each packet always.
        sampling: Sampling [parsed::<Sampling>("1, 1/2, 1/4, ... 1/1024, line-rate or correct")] default "1" with flag("HOW"),
        /// Whether to keep the exact flow table, and look for cheetahs, beside the tasks.
        ///
        /// Without it memory stays at the bound of the sketches, whatever the traffic.
        table: bool [Boolean] default "true" with flag("BOOL").opposite("no-table", "Do without the exact flow table and without detectors.\n\nThen memory stays at the bound of the sketches, whatever the traffic. Needs --tasks."),
        /// Save the sketches of each finished window in a folder, a file a task.
        ///
        /// thalweg sketch shows, merges and compares them. States of several collectors can be merged if all ran with
        /// the same --seed, --tasks and sizes.
        save_states: String [of::<String>()] or "no states are saved" with flag("FOLDER").sample("states"),
    }
}

section! {
    /// Where flows go as they end.
    pub struct Export in EXPORT = "export" {
        /// Send flows to a collector as IPFIX, as they end.
        ///
        /// [udp://|tcp://|tls://]HOST[:PORT], UDP and port 4739 unless told otherwise (4740 with TLS). Both directions of a
        /// flow are one record (RFC 5103). What could not be sent is counted.
        ipfix: Destination [parsed::<Destination>("[udp://|tcp://|tls://]HOST[:PORT], such as 10.0.0.1:4739 or tcp://[::1]")] or "no flows are sent" with flag("COLLECTOR").sample("udp://10.0.0.1:4739"),
        /// In what unit IPFIX tells times.
        ///
        /// nfdump 1.7.1 knows no microseconds, and takes all flows for flows of 1970.
        ipfix_times: TimesName [one_of::<TimesName>()] default "microseconds" with flag("UNIT"),
        /// For tls://: certificates (PEM) of the authority that signs the collector's.
        ipfix_authority: String [of::<String>()] or "none, so tls:// is refused" with flag("FILE").sample("collector-ca.pem"),
        /// Keep flows as Parquet in a folder, as they end.
        ///
        /// In flows/date=.../hour=..., as thalweg collect keeps those of routers. A flow is a row for each direction.
        records: String [of::<String>()] or "no flows are kept" with flag("FOLDER").sample("records"),
    }
}

section! {
    /// What makes a flow a cheetah, and how cheetahs are found.
    pub struct Detection in DETECTION = "detection" {
        /// T, the length of a flight.
        ///
        /// A flow that moves more than R*T bytes within T is a cheetah. The default is that of the dissertation
        /// which defines cheetahs.
        flight_duration: Nanos [Time] default "100ms" with flag("TIME").short('T'),
        /// R, the flight rate above which a flow is a cheetah.
        ///
        /// In bits per second of the IP layer, one direction of a flow at a time. The default is that of the same
        /// dissertation, for links of 10 Gbit/s.
        rate_threshold: BitRate [of::<BitRate>()] default "50mbps" with flag("RATE").short('R'),
        /// How cheetahs are found.
        detector: DetectorName [one_of::<DetectorName>()] default "sliding-window" with flag("NAME"),
        /// sliding-window: flows that can be followed at once.
        ///
        /// Flows that move more than a 64th of R*T bytes within T need 1 KiB each; a link has about 64 times its rate
        /// over R of them on average if all its traffic is such. The default comes to 32 MiB. What finds no room is
        /// counted.
        tracks: NonZeroUsize [of::<NonZeroUsize>()] default "32768" with flag("N"),
        /// cfinf: L, shorter packets begin no flow.
        ///
        /// In bytes of the IP layer. The default keeps all.
        packet_length_threshold: Bytes [of::<Bytes>()] default "0B" with flag("SIZE"),
        /// cfinf: S, the probability that a packet begins a flow.
        ///
        /// Drawn for packets of no flow yet that passed the other tests. The default keeps all.
        sampling_probability: Probability [of::<Probability>()] default "1.0" with flag("P"),
        /// cfinf: entries in the flow cache.
        ///
        /// When it is full, the least recently used makes room. The default was best in the dissertation's
        /// evaluation.
        flow_cache_entries: u32 [Whole(1, 1 << 31)] default "50000" with flag("N"),
        /// cfinf: protocols that begin no flow.
        ///
        /// Names or numbers; an empty list drops none. By default those that the published algorithm drops.
        protocol_filter: Protocols [parsed::<Protocols>("names or numbers of IP protocols, such as icmp, icmp6, 89").as_list()] default "icmp,icmp6" with flag("LIST"),
    }
}

section! {
    /// How many flows are kept, and for how long.
    pub struct FlowTable in FLOW_TABLE = "flow_table" {
        /// Most flows at once; workers share them.
        ///
        /// When the table is full, the least recently used flow makes room; it is handed on, and counted. A flow
        /// takes about 148 bytes, so that the default comes to 155 MB when all are in use.
        flow_capacity: u32 [Whole(1, 1 << 31)] default "1048576" with flag("N"),
        /// A flow ends after this long without a packet.
        ///
        /// At least T, if the detector is sliding-window. The default is that of Cisco's exporters.
        idle_timeout: Nanos [Time] default "15s" with flag("TIME"),
        /// Longer flows are handed on in parts of this length.
        ///
        /// So that they are known of before they end. The default is that of Cisco's exporters.
        active_timeout: Nanos [Time] default "30min" with flag("TIME"),
        /// How long a flow is kept after TCP has ended it.
        ///
        /// So that late packets do not begin a flow of their own. The default is longer than the last segments take
        /// to be sent again.
        linger: Nanos [Time] default "1s" with flag("TIME"),
    }
}

section! {
    /// Capture from interfaces.
    pub struct Live in LIVE = "live" {
        /// Capture backend of interfaces.
        ///
        /// af_xdp takes incoming packets away from the host: do not use it on an interface that the host needs, such as
        /// the one that you are logged in through.
        backend: BackendName [one_of::<BackendName>()] default "af_packet" with flag("NAME"),
        /// Bytes kept of each packet, from the link header on.
        ///
        /// From 64 to 261888. The default holds the headers of TCP over IPv6 in a tunnel over IPv6, with TCP options
        /// and VLAN tags.
        snap_length: Bytes [of::<Bytes>()] default "192B" with flag("SIZE"),
        /// Memory for the packets that wait to be read, for each worker.
        ///
        /// In blocks of 256 KiB, at least two, and less than 4 GiB. The default bridges a pause of 20 ms at ten
        /// million packets/s.
        ring_size: Bytes [of::<Bytes>()] default "64MiB" with flag("SIZE"),
        /// How long the kernel may gather packets before it hands them over.
        ///
        /// From 1 ms to 1 s. The default is a tenth of the default T, so that it adds little to the delay of a
        /// detection.
        block_timeout: Nanos [Time] default "10ms" with flag("TIME"),
        /// Whether to take packets that are addressed to other hosts.
        ///
        /// On by default: a mirror port brings nothing else.
        promiscuous: bool [Boolean] default "true" with flag("BOOL").opposite("no-promiscuous", "Take only packets that are addressed to this host.\n\nWithout this the interface is in promiscuous mode, because a mirror port brings only packets that are addressed to others."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_and_examples_are_accepted_and_every_key_says_what_it_means() {
        SCHEMA.check();
    }

    #[test]
    fn every_key_is_a_flag_and_no_two_share_a_name() {
        let mut flags: Vec<String> = keys().map(|(_, key)| key.flag_name().expect("a flag")).collect();
        let mut names: Vec<&str> = keys().map(|(_, key)| key.name).collect();
        let count = names.len();
        flags.sort_unstable();
        flags.dedup();
        names.sort_unstable();
        names.dedup();
        assert_eq!((flags.len(), names.len()), (count, count));
        for (_, key) in keys() {
            assert_ne!(key.default_in_words(), "", "{key:?}");
        }
    }
}
