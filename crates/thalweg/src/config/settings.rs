//! What can be set, by flag or by the configuration file: every value optional, none with a default yet.
//!
//! One structure serves both: clap fills it from flags, [`super::Config`] from a file. The comments on the
//! fields are the text of `--help`, of the default file and of the reference, so each says what is meant and
//! why the default is what it is; the default itself is added from [`Settings::defaults`].

use std::num::NonZeroUsize;

use clap::{Args, ValueEnum};
use thalweg_capture::live::LiveOptions;
use thalweg_measure::detect::CheetahThreshold;
use thalweg_measure::detect::cfinf::CfinfParameters;
use thalweg_measure::meter::flow_table::FlowTableOptions;
use thalweg_measure::tasks::{Sampling, TaskList, TasksOptions};
use thalweg_records::export::Destination;
use thalweg_wire::{BitRate, Bytes, Nanos};

use super::value::{FlowCount, Probability, Protocols, parse, parse_negated};

/// Tracks of the sliding-window detector: 32 MiB.
const DEFAULT_TRACKS: NonZeroUsize = NonZeroUsize::new(32_768).unwrap();
const DEFAULT_TOP: NonZeroUsize = NonZeroUsize::new(10).unwrap();

/// What can be set, a field a section.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// `[output]`.
    #[command(flatten)]
    pub output: OutputSettings,
    /// `[input]`.
    #[command(flatten)]
    pub input: InputSettings,
    /// `[tasks]`.
    #[command(flatten)]
    pub tasks: TasksSettings,
    /// `[export]`.
    #[command(flatten)]
    pub export: ExportSettings,
    /// `[detection]`.
    #[command(flatten)]
    pub detection: DetectionSettings,
    /// `[flow_table]`.
    #[command(flatten)]
    pub flow_table: FlowTableSettings,
    /// `[live]`.
    #[command(flatten)]
    pub live: LiveSettings,
}

/// What to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShowChoice {
    /// The live view on a terminal, else the summary.
    Auto,
    /// A full-screen table of the strongest flows, as they run
    LiveView,
    /// A report at the end
    Summary,
    /// One JSON object a line: cheetahs as they are found, the summary at the end
    Json,
}

/// How cheetahs are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DetectorName {
    /// Looks at every window of length T; misses none
    SlidingWindow,
    /// CFINF as published: looks at one flight after the other
    Cfinf,
    /// Finds none
    None,
}

/// Capture backend of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackendName {
    /// af_xdp if the host itself does not use the interface, else af_packet
    Auto,
    /// Captures copies: the host's own network stack is not affected
    #[value(name = "af_packet")]
    AfPacket,
    /// Fastest: the host's own network stack no longer receives the packets
    #[value(name = "af_xdp")]
    AfXdp,
    /// As af_packet, but each packet is delivered immediately: lowest delay, for low packet rates
    Prompt,
}

/// In what unit IPFIX tells times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TimesName {
    /// flowStartMicroseconds and flowEndMicroseconds
    Microseconds,
    /// flowStartMilliseconds and flowEndMilliseconds, for collectors that know no others
    Milliseconds,
}

/// `[output]`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Output")]
pub struct OutputSettings {
    /// What to show.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub show: Option<ShowChoice>,

    /// With JSON, also write each flow as it ends.
    ///
    /// Off by default: a busy link ends tens of thousands of flows a second.
    #[arg(long, value_name = "BOOL", value_parser = parse::<bool>,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub flows: Option<bool>,

    /// Rows of each list in the summary.
    #[arg(long, value_name = "N", value_parser = parse::<NonZeroUsize>)]
    pub top: Option<NonZeroUsize>,
}

/// `[input]`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Input")]
pub struct InputSettings {
    /// Measure only packets that match, in tcpdump's language.
    ///
    /// One argument, as in 'tcp port 443 and net 10.0.0.0/8'; see pcap-filter(7). libpcap compiles it, and has
    /// to be installed for this alone. On interfaces it runs in the kernel.
    #[arg(short, long, value_name = "EXPR", value_parser = parse::<String>)]
    pub filter: Option<String>,

    /// Look into tunnels, and measure the flows inside.
    ///
    /// GRE, ERSPAN, VXLAN, Geneve and IP in IP; mirrored traffic often arrives in them. Off by default, because
    /// the flows of a tunnel's ends are what the network between them carries.
    #[arg(long, value_name = "BOOL", value_parser = parse::<bool>,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub peel_tunnels: Option<bool>,

    /// Threads that meter.
    ///
    /// Each has a flow table of its own, and the flows that hash to it: none waits for another. On an interface
    /// each has a ring of its own too.
    #[arg(short, long, value_name = "N", value_parser = parse::<NonZeroUsize>)]
    pub workers: Option<NonZeroUsize>,

    /// Stop when this much time has passed since the first packet.
    ///
    /// By the time stamps of the packets, so that it means the same for a file and an interface.
    #[arg(long, value_name = "TIME", value_parser = parse::<Nanos>)]
    pub duration: Option<Nanos>,

    /// Seed of hashes and of sampling, to repeat a run.
    ///
    /// Sketches and CFINF's sampling make results depend on it; saved states can be merged if they have the same.
    /// Another each run by default, so that nobody can prepare packets whose hashes collide.
    #[arg(long, value_name = "N", value_parser = parse::<u64>)]
    pub seed: Option<u64>,
}

/// `[tasks]`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Measurement tasks")]
pub struct TasksSettings {
    /// What sketches are to measure, separated by commas.
    ///
    /// heavy:0.1% keys with at least this share of all traffic; change:30s>1% keys whose traffic has changed from
    /// one period of 30 s to the next, by this share of both; distinct how many different keys; entropy of the
    /// distribution of packets over keys; spread:dst>1000 destinations with more peers than this; moments L1 and L2
    /// of the keys' sizes; hhh:1% prefixes with at least this share beyond that of longer ones.
    ///
    /// Behind a colon each takes a key (5tuple, src, dst, dst+port, src/24, dst/16; 5tuple by default, src or dst
    /// for hhh), and packets or bytes to count: heavy:1%:src:bytes. In a shell, > needs quotes.
    #[arg(long, value_name = "LIST", value_parser = parse::<TaskList>)]
    pub tasks: Option<TaskList>,

    /// Memory of all sketches together.
    ///
    /// Of all tasks, workers and kept windows; divided before the first packet, and never exceeded. More of it makes
    /// the bounds of the answers narrower.
    #[arg(long, value_name = "SIZE", value_parser = parse::<Bytes>)]
    pub memory: Option<Bytes>,

    /// Length of a window, at the end of which tasks answer.
    ///
    /// Windows follow the packets' time, and begin at multiples of their length since 1970. A period of change has to
    /// be a whole number of them.
    #[arg(long, value_name = "TIME", value_parser = parse::<Nanos>)]
    pub window: Option<Nanos>,

    /// Finished windows that are kept, for answers over all of them together.
    #[arg(long, value_name = "N", value_parser = parse::<NonZeroUsize>)]
    pub keep_windows: Option<NonZeroUsize>,

    /// How many of a sketch's updates are made.
    ///
    /// 1 all of them; 1/16 each with this probability, as NitroSketch does: several times faster, with wider bounds;
    /// line-rate as few as the rate of packets demands; correct all until fewer keep the error. distinct and spread
    /// look at each packet always.
    #[arg(long, value_name = "HOW", value_parser = parse::<Sampling>)]
    pub sampling: Option<Sampling>,

    /// Do without the exact flow table and without detectors.
    ///
    /// Then memory stays at the bound of the sketches, whatever the traffic. Needs --tasks.
    #[arg(long = "no-table", value_name = "BOOL", value_parser = parse_negated,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub table: Option<bool>,

    /// Save the sketches of each finished window in a folder, a file a task.
    ///
    /// thalweg sketch shows, merges and compares them. States of several collectors can be merged if all ran with
    /// the same --seed, --tasks and sizes.
    #[arg(long, value_name = "FOLDER", value_parser = parse::<String>)]
    pub save_states: Option<String>,
}

/// `[export]`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Export")]
#[allow(rustdoc::broken_intra_doc_links, reason = "help has brackets that are no links")]
pub struct ExportSettings {
    /// Send flows to a collector as IPFIX, as they end.
    ///
    /// [udp://|tcp://|tls://]HOST[:PORT], UDP and port 4739 unless told otherwise (4740 with TLS). Both directions of a
    /// flow are one record (RFC 5103). What could not be sent is counted.
    #[arg(long, value_name = "COLLECTOR", value_parser = parse::<Destination>)]
    pub ipfix: Option<Destination>,

    /// In what unit IPFIX tells times.
    ///
    /// nfdump 1.7.1 knows no microseconds, and takes all flows for flows of 1970.
    #[arg(long, value_enum, value_name = "UNIT")]
    pub ipfix_times: Option<TimesName>,

    /// For tls://: certificates (PEM) of the authority that signs the collector's.
    #[arg(long, value_name = "FILE", value_parser = parse::<String>)]
    pub ipfix_authority: Option<String>,

    /// Keep flows as Parquet in a folder, as they end.
    ///
    /// In flows/date=.../hour=..., as thalweg collect keeps those of routers. A flow is a row for each direction.
    #[arg(long, value_name = "FOLDER", value_parser = parse::<String>)]
    pub records: Option<String>,
}

/// `[detection]`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Detection")]
pub struct DetectionSettings {
    /// T, the length of a flight.
    ///
    /// A flow that moves more than R*T bytes within T is a cheetah. The default is that of the dissertation
    /// which defines cheetahs.
    #[arg(short = 'T', long, value_name = "TIME", value_parser = parse::<Nanos>)]
    pub flight_duration: Option<Nanos>,

    /// R, the flight rate above which a flow is a cheetah.
    ///
    /// In bits per second of the IP layer, one direction of a flow at a time. The default is that of the same
    /// dissertation, for links of 10 Gbit/s.
    #[arg(short = 'R', long, value_name = "RATE", value_parser = parse::<BitRate>)]
    pub rate_threshold: Option<BitRate>,

    /// How cheetahs are found.
    #[arg(long, value_enum, value_name = "NAME")]
    pub detector: Option<DetectorName>,

    /// sliding-window: flows that can be followed at once.
    ///
    /// Flows that move more than a 64th of R*T bytes within T need 1 KiB each; a link has about 64 times its rate
    /// over R of them on average if all its traffic is such. The default comes to 32 MiB. What finds no room is
    /// counted.
    #[arg(long, value_name = "N", value_parser = parse::<NonZeroUsize>)]
    pub tracks: Option<NonZeroUsize>,

    /// cfinf: L, shorter packets begin no flow.
    ///
    /// In bytes of the IP layer. The default keeps all.
    #[arg(long, value_name = "SIZE", value_parser = parse::<Bytes>)]
    pub packet_length_threshold: Option<Bytes>,

    /// cfinf: S, the probability that a packet begins a flow.
    ///
    /// Drawn for packets of no flow yet that passed the other tests. The default keeps all.
    #[arg(long, value_name = "P", value_parser = parse::<Probability>)]
    pub sampling_probability: Option<Probability>,

    /// cfinf: entries in the flow cache.
    ///
    /// When it is full, the least recently used makes room. The default was best in the dissertation's
    /// evaluation.
    #[arg(long, value_name = "N", value_parser = parse::<FlowCount>)]
    pub flow_cache_entries: Option<FlowCount>,

    /// cfinf: protocols that begin no flow.
    ///
    /// Names or numbers; an empty list drops none. By default those that the published algorithm drops.
    #[arg(long, value_name = "LIST", value_parser = parse::<Protocols>)]
    pub protocol_filter: Option<Protocols>,
}

/// `[flow_table]`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Flow table")]
pub struct FlowTableSettings {
    /// Most flows at once; workers share them.
    ///
    /// When the table is full, the least recently used flow makes room; it is handed on, and counted. A flow
    /// takes about 148 bytes, so that the default comes to 155 MB when all are in use.
    #[arg(long, value_name = "N", value_parser = parse::<FlowCount>)]
    pub flow_capacity: Option<FlowCount>,

    /// A flow ends after this long without a packet.
    ///
    /// At least T, if the detector is sliding-window. The default is that of Cisco's exporters.
    #[arg(long, value_name = "TIME", value_parser = parse::<Nanos>)]
    pub idle_timeout: Option<Nanos>,

    /// Longer flows are handed on in parts of this length.
    ///
    /// So that they are known of before they end. The default is that of Cisco's exporters.
    #[arg(long, value_name = "TIME", value_parser = parse::<Nanos>)]
    pub active_timeout: Option<Nanos>,

    /// How long a flow is kept after TCP has ended it.
    ///
    /// So that late packets do not begin a flow of their own. The default is longer than the last segments take
    /// to be sent again.
    #[arg(long, value_name = "TIME", value_parser = parse::<Nanos>)]
    pub linger: Option<Nanos>,
}

/// `[live]`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Live capture")]
pub struct LiveSettings {
    /// Capture backend of interfaces.
    ///
    /// af_xdp takes incoming packets away from the host: do not use it on an interface that the host needs, such as the one
    /// that you are logged in through.
    #[arg(long, value_enum, value_name = "NAME")]
    pub backend: Option<BackendName>,

    /// Bytes kept of each packet, from the link header on.
    ///
    /// From 64 to 261888. The default holds the headers of TCP over IPv6 in a tunnel over IPv6, with TCP options
    /// and VLAN tags.
    #[arg(long, value_name = "SIZE", value_parser = parse::<Bytes>)]
    pub snap_length: Option<Bytes>,

    /// Memory for the packets that wait to be read, for each worker.
    ///
    /// In blocks of 256 KiB, at least two, and less than 4 GiB. The default bridges a pause of 20 ms at ten
    /// million packets/s.
    #[arg(long, value_name = "SIZE", value_parser = parse::<Bytes>)]
    pub ring_size: Option<Bytes>,

    /// How long the kernel may gather packets before it hands them over.
    ///
    /// From 1 ms to 1 s. The default is a tenth of the default T, so that it adds little to the delay of a
    /// detection.
    #[arg(long, value_name = "TIME", value_parser = parse::<Nanos>)]
    pub block_timeout: Option<Nanos>,

    /// Take only packets that are addressed to this host.
    ///
    /// Without this the interface is in promiscuous mode, because a mirror port brings only packets that are
    /// addressed to others.
    #[arg(long = "no-promiscuous", value_name = "BOOL", value_parser = parse_negated,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub promiscuous: Option<bool>,
}

impl Settings {
    /// Every default, as the parts that they are for define it; `None` where the default is to have no value.
    pub fn defaults() -> Settings {
        let CheetahThreshold { flight_duration, rate_threshold } = CheetahThreshold::default();
        let cfinf = CfinfParameters::default();
        let table = FlowTableOptions::default();
        let live = LiveOptions::new("");
        let tasks = TasksOptions::default();
        Settings {
            output: OutputSettings {
                show: Some(ShowChoice::Auto),
                flows: Some(false),
                top: Some(DEFAULT_TOP),
            },
            input: InputSettings { peel_tunnels: Some(false), ..InputSettings::default() },
            tasks: TasksSettings {
                tasks: None,
                memory: Some(tasks.memory),
                window: Some(tasks.window),
                keep_windows: NonZeroUsize::new(tasks.kept_windows),
                sampling: Some(tasks.sampling),
                table: Some(true),
                save_states: None,
            },
            export: ExportSettings {
                ipfix: None,
                ipfix_times: Some(TimesName::Microseconds),
                ipfix_authority: None,
                records: None,
            },
            detection: DetectionSettings {
                flight_duration: Some(flight_duration),
                rate_threshold: Some(rate_threshold),
                detector: Some(DetectorName::SlidingWindow),
                tracks: Some(DEFAULT_TRACKS),
                packet_length_threshold: Some(Bytes(cfinf.packet_length_threshold.into())),
                sampling_probability: Some(Probability(cfinf.sampling_probability)),
                flow_cache_entries: Some(FlowCount(cfinf.flow_cache_entries)),
                protocol_filter: Some(Protocols(cfinf.dropped_protocols)),
            },
            flow_table: FlowTableSettings {
                flow_capacity: Some(FlowCount(table.capacity)),
                idle_timeout: Some(table.idle_timeout),
                active_timeout: Some(table.active_timeout),
                linger: Some(table.linger),
            },
            live: LiveSettings {
                backend: Some(BackendName::AfPacket),
                snap_length: Some(Bytes(live.snap_length.into())),
                ring_size: Some(live.ring_size),
                block_timeout: Some(live.block_timeout),
                promiscuous: Some(live.promiscuous),
            },
        }
    }
}
