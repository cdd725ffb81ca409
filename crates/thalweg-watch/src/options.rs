//! What `thalweg watch` is to do: flags and configuration file, resolved and validated.

use std::path::PathBuf;

use thalweg_capture::backend::Backend;
use thalweg_capture::live::LiveOptions;
use thalweg_measure::detect::CheetahThreshold;
use thalweg_measure::detect::cfinf::CfinfParameters;
use thalweg_measure::filter::FlowFilter;
use thalweg_measure::meter::flow_table::FlowTableOptions;
use thalweg_measure::tasks::TasksOptions;
use thalweg_records::export::ExportOptions;
use thalweg_wire::Nanos;

/// Everything that a run depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchOptions {
    /// Capture files (`-` for standard input), one after the other, or interfaces, all at once; at least one.
    pub sources: Vec<String>,
    /// What to show.
    pub show: Show,
    /// Replay files at this multiple of the pace at which they were recorded; `None` as fast as possible.
    pub replay: Option<f64>,
    /// Threads that meter. Default 1 for files, one a core for interfaces.
    pub workers: Option<usize>,
    /// Which packets are measured: a capture filter in tcpdump's language.
    pub capture_filter: Option<String>,
    /// Which flows are shown: a flow filter in nfdump's language. Every packet is counted all the same.
    pub flow_filter: FlowFilter,
    /// Whether to look into tunnels (GRE, ERSPAN, VXLAN, Geneve, IP in IP). Default no.
    pub peel_tunnels: bool,
    /// Stop when this much packet time has passed since the first packet. Default never.
    pub duration: Option<Nanos>,
    /// Flow table: capacity and timeouts.
    pub flow_table: FlowTableOptions,
    /// `T` and `R`.
    pub threshold: CheetahThreshold,
    /// How cheetahs are found.
    pub detector: Detector,
    /// Measurement tasks, if there are any; their seed and their number of workers are filled in from the others.
    pub tasks: Option<TasksOptions>,
    /// Whether to keep the flow table, and to look for cheetahs. Default yes; without it there are tasks.
    pub table: bool,
    /// Where to save the states of each finished window. Default nowhere.
    pub save_states: Option<PathBuf>,
    /// Where to send flows as IPFIX. Default nowhere.
    pub export: Option<ExportOptions>,
    /// Where to keep flows as Parquet. Default nowhere.
    pub records: Option<PathBuf>,
    /// Live capture; its interface name and filter are filled in from the above.
    pub live: LiveOptions,
    /// How packets come from interfaces; `None` to choose. Default AF_PACKET.
    pub backend: Option<Backend>,
    /// Seed of hashes and sampling. Default from the system, once a run; results do not depend on it, except
    /// where `S` samples, and those of tasks.
    pub seed: Option<u64>,
    /// Rows of each list in the report. Default 10.
    pub top: usize,
}

/// What to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// The live view.
    LiveView,
    /// A report at the end.
    Summary,
    /// One JSON object a line.
    Json {
        /// Also flows, as they end.
        flows: bool,
    },
}

/// How cheetahs are found.
#[derive(Clone, Debug, PartialEq)]
pub enum Detector {
    /// In every window of length `T`, for up to this many flows at once that move a 64th of `R * T` or more.
    SlidingWindow {
        /// Flows that can be followed at once. Default 32,768 (32 MiB): twice what 10 Gbit/s
        /// of such flows need on average at 50 Mbit/s.
        tracks: usize,
    },
    /// By consecutive flights, as published; the threshold is that of [`WatchOptions::threshold`].
    Cfinf(CfinfParameters),
    /// Not at all.
    None,
}
