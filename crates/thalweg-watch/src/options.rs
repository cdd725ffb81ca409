//! Options of a run: flags and configuration file, resolved and validated.

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

use crate::flow_capture::FlowCaptureOptions;
use crate::groups::Grouping;
use crate::in_kernel::InKernelOptions;

/// Options of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchOptions {
    /// Capture files (`-` for standard input), read one after another, or interfaces, captured in parallel. At least one.
    pub sources: Vec<String>,
    /// Output format.
    pub show: Show,
    /// Replay speed as a multiple of real time; `None` reads files as fast as possible.
    pub replay: Option<f64>,
    /// Number of metering threads. Default 1 for files, one per core for interfaces.
    pub workers: Option<usize>,
    /// Capture filter in tcpdump syntax: packets to measure.
    pub capture_filter: Option<String>,
    /// Flow filter in nfdump syntax: flows to show. All packets are measured.
    pub flow_filter: FlowFilter,
    /// Whether to measure the flows inside tunnels (GRE, ERSPAN, VXLAN, Geneve, IP in IP). Default no.
    pub decapsulate: bool,
    /// Stop after this much packet time since the first packet. Default never.
    pub duration: Option<Nanos>,
    /// Capacity and timeouts of the flow table.
    pub flow_table: FlowTableOptions,
    /// Cheetah flow threshold: `T` and `R`.
    pub threshold: CheetahThreshold,
    /// Cheetah flow detector.
    pub detector: Detector,
    /// Measurement tasks. Seed and number of workers are set from the other options.
    pub tasks: Option<TasksOptions>,
    /// Whether to keep the flow table and detect cheetah flows. Default yes; required without tasks.
    pub table: bool,
    /// Directory for the sketches of finished windows. Default none.
    pub save_sketches: Option<PathBuf>,
    /// IPFIX export. Default none.
    pub export: Option<ExportOptions>,
    /// Directory for flow records as Parquet files. Default none.
    pub records: Option<PathBuf>,
    /// Whether exported and stored records have MAC addresses. Default no.
    pub mac_addresses: bool,
    /// Live capture. Interface name and filter are set from the other options.
    pub live: LiveOptions,
    /// Capture backend; `None` selects one automatically. Default AF_PACKET.
    pub backend: Option<Backend>,
    /// Counts the tasks by a program inside the kernel. Default no.
    pub in_kernel: Option<InKernelOptions>,
    /// Seed of hash functions and sampling. Default random. Affects only the results of tasks and of CFINF sampling.
    pub seed: Option<u64>,
    /// Maximum rows of each list in the report. Default 10.
    pub top: usize,
    /// Whether the table and the list of the largest rows have flows, hosts or pairs. Default flows.
    pub grouping: Grouping,
    /// Directory and size of the files with the packets of a flow.
    pub flow_capture: FlowCaptureOptions,
    /// When to look up names of hosts. Default in the live view of interfaces.
    pub names: Names,
    /// Whether the live view uses the mouse. Default yes.
    pub mouse: bool,
}

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// The live view.
    LiveView,
    /// A report at the end.
    Summary,
    /// JSON lines.
    Json {
        /// Also write flow records as flows end.
        flows: bool,
    },
    /// CSV: flow records as flows end; or hosts or pairs at the end.
    Csv,
}

/// When to look up names of hosts by DNS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// In the live view of interfaces.
    #[default]
    Auto,
    /// Also for files, and in the results.
    Always,
    /// Only if the live view asks for them.
    Never,
}

/// Cheetah flow detector.
#[derive(Clone, Debug, PartialEq)]
pub enum Detector {
    /// Checks every interval of length `T`, for flows that send at least `R * T / 64` bytes within `T`.
    SlidingWindow {
        /// Maximum number of such flows at once. Default 32,768 (32 MiB): twice the average need of a 10 Gbit/s link at
        /// `R` = 50 Mbit/s.
        tracks: usize,
    },
    /// CFINF as published: checks consecutive flights. Uses [`WatchOptions::threshold`].
    Cfinf(CfinfParameters),
    /// No detection.
    None,
}
