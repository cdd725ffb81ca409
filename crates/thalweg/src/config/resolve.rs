//! Resolves flags, file and defaults to the options of a run.

use std::fmt;
use std::path::PathBuf;

use thalweg_capture::live::{LiveError, LiveOptions};
use thalweg_config::{Document, Place, Typed};
use thalweg_dataplane::DataplaneError;
use thalweg_measure::detect::CheetahThreshold;
use thalweg_measure::detect::cfinf::CfinfParameters;
use thalweg_measure::meter::flow_table::FlowTableOptions;
use thalweg_measure::tasks::{Plan, PlanError, Sampling, TasksOptions};
use thalweg_records::export::{ExportOptions, TlsFiles, Transport};
use thalweg_watch::flow_capture::FlowCaptureOptions;
use thalweg_watch::groups::Grouping;
use thalweg_watch::in_kernel::InKernelOptions;
use thalweg_wire::Bytes;
use thalweg_wire::flow_export::encode::ipfix::{self, Times};
use thiserror::Error;

use super::settings::{
    Detection, DetectorName, Export, FlowTable, GroupingName, Input, Live, NamesName, Output, ShowChoice,
    Tasks, TimesName, keys,
};
use super::value::format_time;
use super::{Config, Flags};
use crate::watch::options::{Detector, Names, Show, WatchOptions};

/// Keys that apply only to one detector.
const SLIDING_WINDOW_ONLY: [&str; 1] = [Detection::tracks];
const CFINF_ONLY: [&str; 4] = [
    Detection::packet_length_threshold,
    Detection::sampling_probability,
    Detection::flow_cache_entries,
    Detection::protocol_filter,
];
/// Keys that apply to all detectors except `none`.
const DETECTORS_ONLY: [&str; 2] = [Detection::flight_duration, Detection::rate_threshold];

/// Keys that apply only to the flow table and its detectors.
const TABLE_ONLY: [&str; 8] = [
    Output::by,
    Output::flows,
    Output::filter,
    Detection::detector,
    FlowTable::flow_capacity,
    FlowTable::idle_timeout,
    FlowTable::active_timeout,
    FlowTable::linger,
];
/// Keys that require flows.
const FLOWS_ONLY: [&str; 2] = [Export::ipfix, Export::records];
/// Keys that apply only to IPFIX export.
const IPFIX_ONLY: [&str; 2] = [Export::ipfix_times, Export::ipfix_ca_file];
/// Keys that apply only to exported or stored flows.
const RECORDS_ONLY: [&str; 1] = [Export::mac_addresses];
/// Keys that apply only to measurement tasks.
const TASKS_ONLY: [&str; 5] =
    [Tasks::memory, Tasks::window, Tasks::keep_windows, Tasks::sampling, Tasks::save_sketches];

/// Keys that apply only to sketches in the kernel.
const IN_KERNEL_ONLY: [&str; 2] = [Live::hook, Live::pin];
/// Keys that apply only to captured packets.
const CAPTURE_ONLY: [&str; 7] = [
    Input::capture_filter,
    Input::decapsulate,
    Input::threads,
    Live::backend,
    Live::snap_length,
    Live::ring_size,
    Live::block_timeout,
];

/// A command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Files or interfaces.
    pub sources: Vec<String>,
    /// Speed of a replay.
    pub replay: Option<f64>,
    /// Flags with a key in the configuration file.
    pub flags: Flags,
}

/// Origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A flag.
    Flag(String),
    /// The configuration file.
    File {
        /// Name of the file.
        file: String,
        /// Line number, from 1.
        line: usize,
        /// The key.
        key: &'static str,
    },
    /// The default of a flag.
    Default(String),
}

/// Invalid combination of flags and configuration file.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum OptionsError {
    /// A flag that would have no effect.
    #[error("{flag} cannot be used here: it applies only to {needs}")]
    NoEffect {
        /// The flag.
        flag: String,
        /// What the flag applies to, to be read after "it applies only to".
        needs: &'static str,
    },
    /// A value out of range, or contradictory values.
    #[error("{}: {reason}", listed(origins))]
    OutOfRange {
        /// Origins of the values.
        origins: Vec<Origin>,
        /// The error.
        reason: String,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flag(flag) => f.write_str(flag),
            Origin::File { file, line, key } => write!(f, "{key} ({file}, line {line})"),
            Origin::Default(flag) => write!(f, "{flag} (default)"),
        }
    }
}

fn listed(origins: &[Origin]) -> String {
    let origins: Vec<String> = origins.iter().map(Origin::to_string).collect();
    origins.join(" and ")
}

/// Resolves a command line and a configuration file.
///
/// # Errors
/// If a flag has no effect, a value is out of range, or values contradict each other.
pub fn resolve(
    request: &Request,
    config: &Config,
    stdout_is_terminal: bool,
) -> Result<WatchOptions, OptionsError> {
    let set = request.flags.over(&config.0);
    let resolution = Resolution {
        typed: &request.flags,
        output: set.one(),
        input: set.one(),
        tasks: set.one(),
        export: set.one(),
        detection: set.one(),
        flow_table: set.one(),
        live: set.one(),
        document: &set,
    };
    resolution.refuse_flags_without_effect()?;
    Ok(WatchOptions {
        sources: request.sources.clone(),
        show: resolution.show(stdout_is_terminal)?,
        replay: request.replay,
        workers: resolution.input.threads.map(Into::into),
        capture_filter: resolution.input.capture_filter.clone(),
        flow_filter: resolution.output.filter.clone().unwrap_or_default().0,
        decapsulate: resolution.input.decapsulate && !resolution.live.in_kernel,
        duration: resolution.input.duration,
        flow_table: resolution.flow_table()?,
        threshold: resolution.threshold()?,
        tasks: resolution.tasks()?,
        table: resolution.has_table(),
        save_sketches: resolution.tasks.save_sketches.clone().map(Into::into),
        export: resolution.export()?,
        records: resolution.records(),
        mac_addresses: resolution.export.mac_addresses && resolution.has_table(),
        detector: resolution.detector()?,
        live: resolution.live()?,
        backend: resolution.live.backend.backend(),
        in_kernel: resolution.in_kernel()?,
        seed: resolution.input.seed,
        top: resolution.output.limit.get(),
        grouping: resolution.grouping(),
        flow_capture: FlowCaptureOptions {
            directory: resolution.output.capture_directory.clone().into(),
            max_size: resolution.output.capture_limit,
        },
        names: match resolution.output.names {
            NamesName::Auto => Names::Auto,
            NamesName::Always => Names::Always,
            NamesName::Never => Names::Never,
        },
        mouse: resolution.output.mouse,
    })
}

/// Flags, file and defaults, merged.
struct Resolution<'a> {
    typed: &'a Flags,
    document: &'a Document,
    output: Typed<'a, Output>,
    input: Typed<'a, Input>,
    tasks: Typed<'a, Tasks>,
    export: Typed<'a, Export>,
    detection: Typed<'a, Detection>,
    flow_table: Typed<'a, FlowTable>,
    live: Typed<'a, Live>,
}

impl Resolution<'_> {
    fn refuse_flags_without_effect(&self) -> Result<(), OptionsError> {
        if !self.has_tasks() {
            self.refuse_typed(&TASKS_ONLY, "measurement tasks (--tasks)")?;
        }
        if !self.live.in_kernel {
            self.refuse_typed(&IN_KERNEL_ONLY, "sketches in the kernel (--in-kernel)")?;
        }
        if self.live.in_kernel {
            self.refuse_typed(&CAPTURE_ONLY, "captured packets (remove --in-kernel)")?;
            self.refuse_typed(&[Tasks::table], "captured packets (remove --in-kernel)")?;
        }
        if !self.has_table() {
            let needs = match self.live.in_kernel {
                true => "the flow table and its detectors (remove --in-kernel)",
                false => "the flow table and its detectors (remove --no-table)",
            };
            self.refuse_typed(&TABLE_ONLY, needs)?;
            self.refuse_typed(&SLIDING_WINDOW_ONLY, needs)?;
            self.refuse_typed(&CFINF_ONLY, needs)?;
            self.refuse_typed(&FLOWS_ONLY, needs)?;
            self.refuse_typed(&IPFIX_ONLY, needs)?;
            self.refuse_typed(&RECORDS_ONLY, needs)?;
            return self.refuse_typed(&DETECTORS_ONLY, needs);
        }
        if self.export.ipfix.is_none() {
            self.refuse_typed(&IPFIX_ONLY, "IPFIX export (--ipfix)")?;
        }
        if self.export.ipfix.is_none() && self.export.records.is_none() {
            self.refuse_typed(&RECORDS_ONLY, "exported flow records (--ipfix or --records)")?;
        }
        let detector = self.detection.detector;
        if detector != DetectorName::SlidingWindow {
            self.refuse_typed(&SLIDING_WINDOW_ONLY, "the detector sliding-window")?;
        }
        if detector != DetectorName::Cfinf {
            self.refuse_typed(&CFINF_ONLY, "the detector cfinf (--detector cfinf)")?;
        }
        if detector == DetectorName::None {
            self.refuse_typed(&DETECTORS_ONLY, "the detectors sliding-window and cfinf")?;
        }
        if self.typed.get(Output::flows) == Some("true") && self.output.show != ShowChoice::Json {
            self.refuse_typed(&[Output::flows], "JSON output (--json)")?;
        }
        Ok(())
    }

    fn has_tasks(&self) -> bool {
        self.tasks.tasks.as_ref().is_some_and(|tasks| !tasks.0.is_empty())
    }

    /// Whether there is a flow table: not beside sketches in the kernel, which see no flows.
    fn has_table(&self) -> bool {
        self.tasks.table && !self.live.in_kernel
    }

    fn in_kernel(&self) -> Result<Option<InKernelOptions>, OptionsError> {
        if !self.live.in_kernel {
            return Ok(None);
        }
        if !self.has_tasks() {
            let reason = "counts measurement tasks only (add --tasks)";
            return Err(self.out_of_range(&[Live::in_kernel], reason));
        }
        if self.tasks.sampling == Sampling::Correct {
            let reason = "not available with --in-kernel: expected 1, 1/2, ... 1/1024 or line-rate";
            return Err(self.out_of_range(&[Tasks::sampling], reason));
        }
        let pin = self.live.pin.as_ref().map(|name| name.parse()).transpose();
        let pin = pin.map_err(|error: DataplaneError| self.out_of_range(&[Live::pin], error))?;
        Ok(Some(InKernelOptions { hook: self.live.hook, pin }))
    }

    fn refuse_typed(&self, names: &[&str], needs: &'static str) -> Result<(), OptionsError> {
        match keys().find(|(_, key)| names.contains(&key.name) && self.typed.get(key.name).is_some()) {
            Some((_, key)) => Err(OptionsError::NoEffect { flag: flag_of(key.name), needs }),
            None => Ok(()),
        }
    }

    fn grouping(&self) -> Grouping {
        match self.output.by {
            GroupingName::Flow => Grouping::Flow,
            GroupingName::Host => Grouping::Host,
            GroupingName::Pair => Grouping::Pair,
        }
    }

    fn show(&self, stdout_is_terminal: bool) -> Result<Show, OptionsError> {
        match self.output.show {
            ShowChoice::Json => Ok(Show::Json { flows: self.has_table() && self.output.flows }),
            ShowChoice::Csv => Ok(Show::Csv),
            ShowChoice::LiveView if !stdout_is_terminal => {
                Err(self
                    .out_of_range(&[Output::show], "the live view requires a terminal as standard output"))
            }
            ShowChoice::Summary => Ok(Show::Summary),
            ShowChoice::Auto if !stdout_is_terminal => Ok(Show::Summary),
            ShowChoice::Auto | ShowChoice::LiveView => Ok(Show::LiveView),
        }
    }

    /// Returns the options of IPFIX export, if configured.
    fn export(&self) -> Result<Option<ExportOptions>, OptionsError> {
        let set = &self.export;
        let Some(destination) = set.ipfix.clone().filter(|_| self.has_table()) else { return Ok(None) };
        let tls = set.ipfix_ca_file.as_ref().map(|file| TlsFiles { authority: file.into(), identity: None });
        match (destination.transport, &tls) {
            (Transport::Tls, None) => {
                return Err(
                    self.out_of_range(&[Export::ipfix], "a tls:// destination requires --ipfix-ca-file")
                );
            }
            (Transport::Udp | Transport::Tcp, Some(_)) => {
                let reason = "CA certificates apply only to tls:// destinations";
                return Err(self.out_of_range(&[Export::ipfix_ca_file, Export::ipfix], reason));
            }
            _ => {}
        }
        let times = match set.ipfix_times {
            TimesName::Microseconds => Times::Microseconds,
            TimesName::Milliseconds => Times::Milliseconds,
        };
        let defaults = ExportOptions::new(destination);
        Ok(Some(ExportOptions { tls, ipfix: ipfix::Options { times, ..defaults.ipfix }, ..defaults }))
    }

    fn records(&self) -> Option<PathBuf> {
        self.export.records.as_ref().filter(|_| self.has_table()).map(PathBuf::from)
    }

    fn threshold(&self) -> Result<CheetahThreshold, OptionsError> {
        let threshold = CheetahThreshold {
            flight_duration: self.detection.flight_duration,
            rate_threshold: self.detection.rate_threshold,
        };
        let wrong = |error| self.out_of_range(&DETECTORS_ONLY, error);
        threshold.validate().map_err(wrong)?;
        Ok(threshold)
    }

    /// Returns the options of tasks, validated for the configured number of workers. Interfaces may have more.
    fn tasks(&self) -> Result<Option<TasksOptions>, OptionsError> {
        if !self.has_tasks() {
            return match self.has_table() {
                true => Ok(None),
                false if self.live.in_kernel => {
                    Err(self.out_of_range(&[Live::in_kernel], "counts measurement tasks only (add --tasks)"))
                }
                false => Err(self.out_of_range(
                    &[Tasks::table],
                    "nothing to measure without the flow table (add --tasks)",
                )),
            };
        }
        let set = &self.tasks;
        let options = TasksOptions {
            tasks: set.tasks.clone().unwrap_or_default().0,
            memory: set.memory,
            window: set.window,
            kept_windows: set.keep_windows.get(),
            sampling: set.sampling,
            seed: 0,
            workers: self.input.threads.map_or(1, Into::into),
        };
        match Plan::new(options.clone()) {
            Ok(_) => Ok(Some(options)),
            Err(error) => Err(self.out_of_range(names_in(&error), error)),
        }
    }

    fn detector(&self) -> Result<Detector, OptionsError> {
        let set = &self.detection;
        if !self.has_table() {
            return Ok(Detector::None);
        }
        Ok(match set.detector {
            DetectorName::SlidingWindow => Detector::SlidingWindow { tracks: set.tracks.get() },
            DetectorName::Cfinf => Detector::Cfinf(CfinfParameters {
                threshold: self.threshold()?,
                packet_length_threshold: self
                    .whole(set.packet_length_threshold, Detection::packet_length_threshold)?,
                sampling_probability: set.sampling_probability.0,
                dropped_protocols: set.protocol_filter.0.clone(),
                flow_cache_entries: set.flow_cache_entries,
            }),
            DetectorName::None => Detector::None,
        })
    }

    fn flow_table(&self) -> Result<FlowTableOptions, OptionsError> {
        let set = &self.flow_table;
        let options = FlowTableOptions {
            capacity: set.flow_capacity,
            idle_timeout: set.idle_timeout,
            active_timeout: set.active_timeout,
            linger: set.linger,
        };
        // Sliding windows are stored in the flow table and end with the flow.
        let flight_duration = self.detection.flight_duration;
        let has_windows = self.has_table() && self.detection.detector == DetectorName::SlidingWindow;
        if has_windows && options.idle_timeout < flight_duration {
            let (idle, flight) = (format_time(options.idle_timeout), format_time(flight_duration));
            let reason = format!("the idle timeout ({idle}) must be at least the flight duration ({flight})");
            return Err(self.out_of_range(&[FlowTable::idle_timeout, Detection::flight_duration], reason));
        }
        Ok(options)
    }

    fn live(&self) -> Result<LiveOptions, OptionsError> {
        let set = &self.live;
        let options = LiveOptions {
            snap_length: self.whole(set.snap_length, Live::snap_length)?,
            ring_size: set.ring_size,
            block_timeout: set.block_timeout,
            promiscuous: set.promiscuous,
            ..LiveOptions::new("")
        };
        options.validate().map_err(|error| match &error {
            // Its field names match the names of keys, with spaces.
            LiveError::BadOption { option, expected, .. } => {
                self.out_of_range(&[&option.replace(' ', "_")], format!("expected {expected}"))
            }
            _ => self.out_of_range(&[], error),
        })?;
        Ok(options)
    }

    /// Converts a packet length to 32 bits.
    fn whole(&self, length: Bytes, name: &str) -> Result<u32, OptionsError> {
        let wrong = |_| self.out_of_range(&[name], format!("expected at most {} bytes", u32::MAX));
        u32::try_from(length.0).map_err(wrong)
    }

    fn out_of_range(&self, names: &[&str], reason: impl ToString) -> OptionsError {
        // In the order of the names, as in the reason.
        let origins = names.iter().filter_map(|name| self.origin(name)).collect();
        OptionsError::OutOfRange { origins, reason: reason.to_string() }
    }

    /// Returns the origin of the value of a key; `None` if the key does not exist.
    fn origin(&self, name: &str) -> Option<Origin> {
        let (section, key) = keys().find(|(_, key)| key.name == name)?;
        let entry = self.document.entries().iter().find(|entry| std::ptr::eq(entry.section, section))?;
        Some(match entry.place_of(name) {
            Some(Place::Flag(flag)) => Origin::Flag(flag.clone()),
            Some(&Place::Line(line)) => {
                Origin::File { file: self.document.file.clone(), line, key: key.name }
            }
            None => Origin::Default(flag_of(key.name)),
        })
    }
}

/// Returns the flag of a key.
fn flag_of(name: &str) -> String {
    let flag = keys().find(|(_, key)| key.name == name).and_then(|(_, key)| key.flag_name());
    flag.unwrap_or_default()
}

/// Returns the keys that caused an error.
fn names_in(error: &PlanError) -> &'static [&'static str] {
    match error {
        PlanError::Memory { .. } => &[Tasks::memory],
        PlanError::Period { .. } => &[Tasks::tasks, Tasks::window],
        PlanError::ShortWindow { .. } => &[Tasks::window],
        _ => &[Tasks::tasks],
    }
}
