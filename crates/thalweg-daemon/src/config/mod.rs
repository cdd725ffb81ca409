//! The configuration file of the daemon.
//!
//! | file | contents |
//! |---|---|
//! | `table` | all sections and keys; a file is a [`Document`] of them |
//! | `names` | values that have names |
//! | `collector` | `[[collector]]`, and its options in a given network |
//! | `source` | the packet source of a collector |
//! | `emulation` | `[emulate]` |
//! | `control` | `[control]` |
//! | `flow_export` | the export of flow records, from `[records]` |
//! | `isolation` | `[isolation]` |
//! | `poll` | `[[poll]]` |
//! | `threshold` | `[threshold]` |
//! | `transfers` | `[transfers]` |
//! | `interfaces` | finds interfaces of the file that do not exist |
//! | `links` | the links of a `[[rule]]` |
//! | `samples` | `[samples]` |
//! | `warnings` | values that are valid, and probably not meant |
//! | `error` | errors |
//! | `reference` | the reference, and an example file with explanations |
//!
//! The whole file is checked before the daemon does anything: sections, keys, values, combinations of values, and names of
//! the topology. Sources are not opened for the check: one that cannot be opened now may be later. What only a host can answer is checked
//! by [`host`](crate::host).

mod alerts;
pub mod collector;
pub mod control;
mod emulation;
mod error;
mod event_log;
mod flow_export;
mod interfaces;
mod isolation;
pub mod links;
pub mod names;
mod openflow;
mod poll;
mod reference;
mod samples;
mod source;
pub mod table;
#[cfg(test)]
mod tests;
mod threshold;
mod transfers;
mod warnings;

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thalweg_network::{NetworkState, Versions};
use thalweg_wire::{BitRate, Nanos};

pub use alerts::AlertConfig;
pub use collector::CollectorConfig;
pub(crate) use control::client_options;
pub use control::{ActuatorConfig, ControlConfig, DeciderConfig};
pub use error::ConfigError;
pub use event_log::EventLogOptions;
pub use flow_export::FlowExportConfig;
pub(crate) use interfaces::{interfaces_in, missing as missing_interfaces};
pub use isolation::{IsolationConfig, IsolatorConfig, OpenFlowIsolation};
pub(crate) use openflow::tls_files;
pub use openflow::{OpenFlowConfig, TlsFiles};
pub use poll::{OpenFlowEndpoint, PollConfig, PollSource};
pub use reference::{default_file, reference};
pub use samples::{CaptureFormat, ParseCaptureFormatError, SampleOptions, Trigger};
pub use source::SourceConfig;
pub use threshold::{FlowModel, RecorderOptions, SimulationOptions, ThresholdConfig};
pub use transfers::{MailEncryption, MailOptions, TransferOptions};

use super::emulation::EmulationConfig;
use super::log::LogOptions;
pub(crate) use links::split_direction;
use links::{LinkSelection, ParseLinkSelectionError};
pub use names::Threads;
use table::{
    ALERT, API, Api, COLLECTOR, CONTROL, Collector, Control, EMULATE, EVENT_LOG, Emulate, Experiments,
    ISOLATION, Log, NETWORK, Network, POLL, PROCESS, Process, RECORDS, RULE, Records, Rule, SAMPLES, SCHEMA,
    THRESHOLD, TRANSFERS,
};
use thalweg_config::{Document, DocumentError, Format, Problem, Typed};
use thalweg_http::access::{AccessOptions, Limits};

/// Maximum number of collectors. Each has a thread.
const MAX_COLLECTORS: usize = 256;

/// Whether to check that interfaces and network namespaces exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterfaceCheck {
    /// A missing one is an error.
    Done,
    /// They may be created later.
    Skipped,
}

/// The configuration of the daemon.
#[derive(Clone, Debug)]
pub struct Config {
    /// File name for messages.
    pub file: String,
    /// Access to the HTTP API.
    pub access: AccessOptions,
    /// Whether to serve the dashboard.
    pub dashboard: bool,
    /// Events kept for subscribers.
    pub event_backlog: usize,
    /// The log.
    pub log: LogOptions,
    /// User, capabilities and threads.
    pub process: ProcessConfig,
    /// The network topology.
    pub network: NetworkConfig,
    /// The emulated network, if any.
    pub emulation: Option<EmulationConfig>,
    /// The controller, if any.
    pub control: Option<ControlConfig>,
    /// Isolation of cheetah flows, if any.
    pub isolation: Option<IsolationConfig>,
    /// Polls of interface counters.
    pub polls: Vec<PollConfig>,
    /// Adaptation of the rate threshold, if any.
    pub threshold: Option<ThresholdConfig>,
    /// The collectors.
    pub collectors: Vec<Arc<CollectorConfig>>,
    /// Capture files of samples.
    pub samples: SampleOptions,
    /// The event log, if any.
    pub event_log: Option<EventLogOptions>,
    /// Alerts.
    pub alerts: Vec<AlertConfig>,
    /// File for flow records in JSON lines.
    pub records: Option<PathBuf>,
    /// Export of flow records as IPFIX and Parquet.
    pub flow_export: FlowExportConfig,
    /// Reception of reports from transfer hosts, if any.
    pub transfers: Option<TransferOptions>,
    /// Directory with results of emulated experiments, if any.
    pub experiments: Option<PathBuf>,
    /// Values that are probably not meant: `FILE:LINE: KEY: WHY`.
    pub warnings: Vec<String>,
}

/// User, capabilities and threads of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessConfig {
    /// User to switch to if the daemon runs as root.
    pub user: Option<String>,
    /// Whether to keep the capabilities that open interfaces.
    pub keep_capabilities: bool,
    /// Threads of collectors and the control loop.
    pub threads: Threads,
}

/// The network topology.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkConfig {
    /// The topology file and its contents.
    pub state: Option<(PathBuf, Arc<NetworkState>)>,
    /// Transition time of a network change.
    pub transition_time: Nanos,
}

/// A congestion rule for links.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleConfig {
    /// Selected links.
    pub links: Vec<LinkSelection>,
    /// Names of the collectors; `None` for all.
    pub collectors: Option<Vec<String>>,
    /// Utilisation from which a link is congested.
    pub upper: f64,
    /// Utilisation below which congestion clears.
    pub lower: f64,
    /// Minimum time between two events.
    pub min_event_interval: Nanos,
    /// Interval at which the event of a congested link repeats; 0 for never.
    pub repeat: Nanos,
    /// Maximum number of flows in an event.
    pub flows: usize,
}

impl Config {
    /// Reads a file and its topology file. Reads no other file, because a reload may not be able to.
    ///
    /// # Errors
    /// Returns all problems of the file.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        Config::load_with(path, |_| Vec::new()).map_err(first)
    }

    /// Reads a file like [`Config::load`], with the results of a further check.
    ///
    /// # Errors
    /// Returns one error per file, with all of its problems.
    pub fn load_with(
        path: &Path,
        check: impl FnOnce(&Document) -> Vec<Problem>,
    ) -> Result<Config, Vec<ConfigError>> {
        let file = path.display().to_string();
        let text = thalweg_config::read_text(path).map_err(|source| {
            vec![DocumentError::Unreadable { file_kind: SCHEMA.file_kind, file: file.clone(), source }.into()]
        })?;
        Config::read(&text, &file, path.parent().unwrap_or(Path::new("")), check)
    }

    /// Parses the text of a file. `file` is its name for messages; relative paths start at `folder`.
    ///
    /// # Errors
    /// Returns all problems of the file.
    pub fn parse(text: &str, file: &str, folder: &Path) -> Result<Config, ConfigError> {
        Config::read(text, file, folder, |_| Vec::new()).map_err(first)
    }

    fn read(
        text: &str,
        file: &str,
        folder: &Path,
        check: impl FnOnce(&Document) -> Vec<Problem>,
    ) -> Result<Config, Vec<ConfigError>> {
        let (mut document, mut problems) = Document::read(&SCHEMA, text, file, Format::Toml)
            .map_err(|wrong| vec![DocumentError::Invalid(wrong).into()])?;
        folder.clone_into(&mut document.folder);
        problems.extend(check(&document));
        Config::new(&document, problems)
    }

    /// Interprets a file. Sections are checked if they, and those that they depend on, are valid. If the topology or experiment file is
    /// invalid, checks only what does not depend on that file.
    ///
    /// # Errors
    /// Returns one error per file, that of the file itself first, with `problems` of its own.
    fn new(document: &Document, mut problems: Vec<Problem>) -> Result<Config, Vec<ConfigError>> {
        let problems = &mut problems;
        let mut other_files = Vec::new();
        let mut network = NetworkConfig { state: None, transition_time: Nanos::ZERO };
        if document.are_valid(&[&NETWORK]) {
            network.transition_time = document.one::<Network>().transition_time;
            match topology(document) {
                Ok(state) => network.state = state,
                Err(error) => other_files.push(error),
            }
        }
        let emulation = match document.are_valid(&[&EMULATE, &NETWORK]) {
            true => emulation::read(document, problems).unwrap_or_else(|error| {
                other_files.push(error);
                None
            }),
            false => None,
        };
        let emulation = emulation.map(|(emulation, state)| {
            if network.state.replace((emulation.path.clone(), state)).is_some() {
                let reason = "not allowed with [emulate], whose experiment is the topology";
                problems.push(document.one::<Network>().refuse(Network::topology, reason));
            }
            emulation
        });
        let state = network.state.as_ref().map(|(_, state)| Arc::clone(state));
        let has_network = document.are_valid(&[&NETWORK, &EMULATE]);
        let rules = match has_network && document.are_valid(&[&RULE, &COLLECTOR]) {
            true => rules(document, emulation.as_ref(), state.as_deref(), problems),
            false => Vec::new(),
        };
        let has_emulation = has_network && (emulation.is_some() || document.one::<Emulate>().file.is_none());
        let collectors = match has_emulation && document.are_valid(&[&COLLECTOR, &CONTROL]) {
            true => collectors(document, &rules, &network, emulation.as_ref(), problems),
            false => Vec::new(),
        };
        let control = match other_files.is_empty() && has_network && document.are_valid(&[&CONTROL]) {
            true => control::read(document, state.as_deref(), problems),
            false => None,
        };
        let isolation = match has_network && document.are_valid(&[&ISOLATION, &COLLECTOR]) {
            true => isolation::read(document, emulation.as_ref(), control.as_ref(), &collectors, problems),
            false => None,
        };
        let polls = match document.are_valid(&[&POLL]) {
            true => poll::read(document, control.as_ref(), isolation.as_ref(), problems),
            false => Vec::new(),
        };
        let threshold = match document.are_valid(&[&THRESHOLD, &ISOLATION]) {
            true => threshold::read(document, &collectors, &polls, problems),
            false => None,
        };
        if document.are_valid(&[&PROCESS]) {
            check_threads(&document.one(), &collectors, problems);
        }
        let access = document.are_valid(&[&API]).then(|| access(document, problems));
        let samples = document.are_valid(&[&SAMPLES]).then(|| samples::read(document, problems));
        let event_log = match document.are_valid(&[&EVENT_LOG]) {
            true => event_log::read(document, problems),
            false => None,
        };
        let alerts = match document.are_valid(&[&ALERT]) {
            true => alerts::read(document, problems),
            false => Vec::new(),
        };
        let flow_export = match document.are_valid(&[&RECORDS]) {
            true => flow_export::read(document, &document.one(), problems),
            false => FlowExportConfig::default(),
        };
        let transfers = match document.are_valid(&[&RECORDS, &TRANSFERS]) {
            true => transfers::read(document, problems),
            false => None,
        };
        let own = (!problems.is_empty()).then(|| document.error(std::mem::take(problems)).into());
        let errors: Vec<ConfigError> = own.into_iter().chain(other_files).collect();
        let (true, Some(access), Some(samples)) = (errors.is_empty(), access, samples) else {
            return Err(errors);
        };
        let (process, records) = (document.one::<Process>(), document.one::<Records>());
        let experiments = document.one::<Experiments>();
        let mut config = Config {
            file: document.file.clone(),
            access,
            dashboard: document.one::<Api>().dashboard,
            event_backlog: document.one::<Api>().event_backlog,
            log: log(&document.one()),
            process: ProcessConfig {
                user: process.user.clone(),
                keep_capabilities: process.keep_capabilities,
                threads: process.threads,
            },
            network,
            emulation,
            control,
            isolation,
            polls,
            threshold,
            collectors,
            samples,
            event_log,
            alerts,
            records: records.file.as_ref().map(|file| document.folder.join(file)),
            flow_export,
            transfers,
            experiments: experiments.folder.as_ref().map(|folder| document.folder.join(folder)),
            warnings: Vec::new(),
        };
        let warnings = warnings::of(document, &config);
        if !warnings.is_empty() {
            let warnings = document.problems(warnings).to_string();
            config.warnings = warnings.lines().map(str::to_owned).collect();
        }
        Ok(config)
    }

    /// Returns the initial network versions.
    pub fn versions(&self) -> Option<Versions> {
        let (_, state) = self.network.state.as_ref()?;
        Some(Versions::new(Arc::clone(state)).with_transition_time(self.network.transition_time))
    }
}

/// Rates that links have.
const LINK_RATES: RangeInclusive<BitRate> = BitRate(8_000)..=BitRate(10_000_000_000_000);

/// Returns why no link has this rate; `None` if one may have it.
fn wrong_rate(rate: BitRate) -> Option<String> {
    let (min, max) = (LINK_RATES.start(), LINK_RATES.end());
    (!LINK_RATES.contains(&rate))
        .then(|| format!("{rate} is not the rate of a link: expected {min} to {max}"))
}

fn check_threads(
    process: &Typed<'_, Process>,
    collectors: &[Arc<CollectorConfig>],
    problems: &mut Vec<Problem>,
) {
    let can_share = |collector: &CollectorConfig| match collector.source {
        SourceConfig::Interface { .. } => true,
        SourceConfig::Port { .. } => collector.capture_filter.is_none(),
        _ => false,
    };
    let other = collectors.iter().find(|collector| !can_share(collector));
    if let (Threads::One, Some(other)) = (process.threads, other) {
        let reason = format!(
            "\"one\" requires interfaces, or ports of [emulate] without a filter; collector {} would block the others",
            other.name
        );
        problems.push(process.refuse(Process::threads, reason));
    }
}

/// Returns the first of the errors.
fn first(mut errors: Vec<ConfigError>) -> ConfigError {
    errors.swap_remove(0)
}

/// Reads the topology file, if any.
fn topology(document: &Document) -> Result<Option<(PathBuf, Arc<NetworkState>)>, ConfigError> {
    let Some(file) = &document.one::<Network>().topology else { return Ok(None) };
    let path = document.folder.join(file);
    let state = load_state(&path)?;
    Ok(Some((path, Arc::new(state))))
}

/// Reads a topology file: JSON if its name ends in `.json`, else TOML.
///
/// # Errors
/// If the file cannot be read or is invalid.
pub fn load_state(path: &Path) -> Result<NetworkState, ConfigError> {
    let file = path.display().to_string();
    let text = thalweg_config::read_text(path)
        .map_err(|source| ConfigError::Topology { file: file.clone(), source })?;
    Ok(NetworkState::from_text(&text, &file, Format::of(path))?)
}

/// Returns the valid rules. Problems of the others are reported here, once, and not again by each collector.
fn rules(
    document: &Document,
    emulation: Option<&EmulationConfig>,
    state: Option<&NetworkState>,
    problems: &mut Vec<Problem>,
) -> Vec<RuleConfig> {
    if !document.has(&RULE) {
        return vec![RuleConfig::default()];
    }
    let collectors: Vec<String> =
        document.all::<Collector>().flat_map(|entry| names(&entry, emulation)).collect();
    let mut rules = Vec::new();
    for entry in document.all::<Rule>() {
        let before = problems.len();
        let links = match selected_links(&entry, state) {
            Ok(links) => links,
            Err(reason) => {
                problems.push(entry.refuse(Rule::links, reason));
                Vec::new()
            }
        };
        check_thresholds(&entry, problems);
        for name in entry.collectors.iter().flatten().filter(|name| !collectors.contains(name)) {
            problems.push(entry.refuse(Rule::collectors, format!("unknown collector {name}")));
        }
        if problems.len() == before {
            rules.push(RuleConfig {
                links,
                collectors: entry.collectors.clone(),
                upper: entry.upper,
                lower: entry.lower,
                min_event_interval: entry.min_event_interval,
                repeat: entry.repeat,
                flows: entry.flows,
            });
        }
    }
    rules
}

/// Returns the links of a rule, which exist in the network.
///
/// # Errors
/// The reason why the text is invalid, or does not fit the network.
fn selected_links(entry: &Rule, state: Option<&NetworkState>) -> Result<Vec<LinkSelection>, String> {
    let select = |text: &String| {
        let selection: LinkSelection =
            text.parse().map_err(|error: ParseLinkSelectionError| error.to_string())?;
        if let Some(state) = state {
            selection.check(state.topology()).map_err(|error| error.to_string())?;
        }
        Ok(selection)
    };
    entry.links.iter().map(select).collect()
}

/// Reports thresholds that exclude each other, at the one that the file sets.
fn check_thresholds(entry: &Typed<'_, Rule>, problems: &mut Vec<Problem>) {
    if entry.lower > entry.upper {
        problems.push(match entry.is_set(Rule::lower) {
            true => entry.refuse(
                Rule::lower,
                format!("{} is above upper, {}: expected at most that", entry.lower, entry.upper),
            ),
            false => entry.refuse(
                Rule::upper,
                format!("{} is below lower, {}: expected at least that", entry.upper, entry.lower),
            ),
        });
    }
}

impl Default for RuleConfig {
    fn default() -> Self {
        let thalweg_measure::collector::LinkRule { upper, lower, min_event_interval, repeat, flows, .. } =
            Default::default();
        RuleConfig {
            links: vec![LinkSelection::All],
            collectors: None,
            upper,
            lower,
            min_event_interval,
            repeat,
            flows,
        }
    }
}

fn collectors(
    document: &Document,
    rules: &[RuleConfig],
    network: &NetworkConfig,
    emulation: Option<&EmulationConfig>,
    problems: &mut Vec<Problem>,
) -> Vec<Arc<CollectorConfig>> {
    let state = network.state.as_ref().map(|(_, state)| &**state);
    let mut collectors: Vec<Arc<CollectorConfig>> = Vec::new();
    for entry in document.all::<Collector>() {
        for name in names(&entry, emulation) {
            let before = problems.len();
            let collector = collector::read(&entry, &name, document, emulation, rules, problems);
            if let Some(collector) = collector {
                check_unique(&entry, &collector, &collectors, problems);
                match collector.options(state) {
                    Ok(_) => collectors.push(Arc::new(collector)),
                    Err(error) => problems.push(entry.refuse(error.key(&entry), error.message(&entry))),
                }
            }
            // One problem of a "*" section would repeat for each of its collectors.
            if problems.len() > before {
                break;
            }
        }
    }
    match document.all::<Collector>().map(|entry| names(&entry, emulation).len()).sum() {
        // A controller may use remote collectors only.
        0 if document.one::<Control>().remotes.is_some() => {}
        0 if document.are_valid(&[&TRANSFERS]) && document.one::<table::Transfers>().receive => {}
        0 => problems.push(document.one::<Network>().entry.refuse_value(
            "",
            0,
            "no collectors: at least one [[collector]] is required",
        )),
        many if many > MAX_COLLECTORS => {
            let reason = format!("{many} collectors: at most {MAX_COLLECTORS} are supported");
            problems.push(document.one::<Network>().entry.refuse_value("", 0, reason));
        }
        _ => {}
    }
    collectors
}

/// Returns the names of the collectors that a section defines.
fn names(entry: &Collector, emulation: Option<&EmulationConfig>) -> Vec<String> {
    match (entry.name.as_str(), emulation) {
        ("*", Some(emulation)) => emulation.ports.iter().map(|(switch, _)| switch.to_string()).collect(),
        (name, _) => vec![name.to_owned()],
    }
}

/// Checks that a collector shares neither name nor emulated monitor port with another. Two readers of one port would split
/// its packets.
fn check_unique(
    entry: &Typed<'_, Collector>,
    collector: &CollectorConfig,
    others: &[Arc<CollectorConfig>],
    problems: &mut Vec<Problem>,
) {
    if others.iter().any(|other| other.name == collector.name) {
        problems.push(entry.refuse(Collector::name, format!("duplicate collector name {}", collector.name)));
    }
    let reads_same_port =
        |other: &Arc<CollectorConfig>| other.source == collector.source && other.switch == collector.switch;
    if matches!(collector.source, SourceConfig::Port { .. }) && others.iter().any(reads_same_port) {
        let reason = format!("another collector already reads the monitor port of {}", collector.switch);
        problems.push(entry.refuse(Collector::switch, reason));
    }
}

fn access(document: &Document, problems: &mut Vec<Problem>) -> AccessOptions {
    let entry = document.one::<Api>();
    let file = |file: &Option<String>| file.as_ref().map(|file| document.folder.join(file));
    let listen = entry.listen.parse::<SocketAddr>().unwrap_or_else(|_| {
        problems.push(entry.refuse(Api::listen, "expected an address and a port, such as 127.0.0.1:9477"));
        AccessOptions::default().listen
    });
    let options = AccessOptions {
        listen,
        token_file: file(&entry.token_file),
        tls_certificate: file(&entry.tls_certificate),
        tls_key: file(&entry.tls_key),
        client_ca_file: file(&entry.client_ca_file),
        hosts: entry.hosts.clone().unwrap_or_default(),
        limits: Limits {
            body_bytes: entry.max_body.0,
            header_timeout: entry.header_timeout.into(),
            request_timeout: entry.request_timeout.into(),
            requests_per_second: entry.requests_per_second,
            request_burst: entry.request_burst,
            connections: entry.max_connections,
            subscribers: entry.max_subscribers,
        },
    };
    if let Err(error) = options.check() {
        problems.push(entry.refuse("", error.to_string()));
    }
    options
}

fn log(entry: &Typed<'_, Log>) -> LogOptions {
    LogOptions { level: entry.level, format: entry.format, lines_per_second: entry.lines_per_second }
}
