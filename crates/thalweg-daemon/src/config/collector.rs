//! `[[collector]]`: a packet source and its measurements.

use std::sync::Arc;

use thalweg_capture::filter::Filter;
use thalweg_measure::collector::{CollectorError, CollectorOptions, LinkDirection, LinkRule, MonitorPort};
use thalweg_measure::detect::CheetahThreshold;
use thalweg_measure::meter::flow_table::FlowTableOptions;
use thalweg_measure::rates::BurstOptions;
use thalweg_measure::samples::{SampleRing, SampleRingOptions};
use thalweg_measure::tasks::{Plan, TaskList, TasksOptions};
use thalweg_network::{NetworkState, Node, PortIndex, RouterId};
use thalweg_wire::nearest::nearest;
use thalweg_wire::{LinkType, Nanos};
use thiserror::Error;

use super::RuleConfig;
use super::links::{LinkSelection, LinkSelectionError};
use super::source::{self, SourceConfig};
use super::table::Collector;
use crate::emulation::EmulationConfig;
use thalweg_config::{Document, Problem, Typed};

/// The configuration of one collector.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectorConfig {
    /// Unique name.
    pub name: Arc<str>,
    /// Name of the monitored switch.
    pub switch: Arc<str>,
    /// Packet source.
    pub source: SourceConfig,
    /// Capture filter in tcpdump syntax.
    pub capture_filter: Option<String>,
    /// Whether to measure the flows inside tunnels.
    pub decapsulate: bool,
    /// Rate and buffer of the monitor port.
    pub monitor: Option<MonitorPort>,
    /// Minimum silence between two bursts; `None` to derive it from the link rates.
    pub gap: Option<Nanos>,
    /// Maximum length of a burst; `None` to derive it from the gap.
    pub longest_burst: Option<Nanos>,
    /// Time constant of the smoothed utilisation.
    pub smoothing: Nanos,
    /// Capacity and timeouts of the flow table.
    pub flow_table: FlowTableOptions,
    /// Threshold of cheetah flows; `None` to disable detection.
    pub threshold: Option<CheetahThreshold>,
    /// Maximum number of flows that the cheetah detector tracks at once.
    pub tracks: usize,
    /// Measurement tasks.
    pub tasks: Option<TasksOptions>,
    /// The sample ring; `None` for none.
    pub samples: Option<SampleRingOptions>,
    /// The congestion rules that apply to this collector.
    pub rules: Vec<RuleConfig>,
}

/// Why the options of a collector are invalid, alone or in a network.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum OptionsError {
    /// The topology has no such switch.
    #[error("no switch {switch:?} in the topology{}", hint(nearest))]
    NoSwitch {
        /// Name of the switch.
        switch: String,
        /// The most similar name.
        nearest: Option<String>,
    },
    /// The longest burst is shorter than the gap, or longer than 10 s.
    #[error(
        "gap is {}, longest_burst is {}: expected a longest_burst of at least gap and at most 10 s",
        .0.gap,
        .0.longest
    )]
    Bursts(BurstOptions),
    /// The options are invalid.
    #[error("{reason}")]
    Refused {
        /// The reason.
        reason: String,
    },
    /// A rule selects links that do not exist.
    #[error("rule {}: {source}", rule + 1)]
    Links {
        /// Index of the rule among those of the collector.
        rule: usize,
        /// The reason.
        source: LinkSelectionError,
    },
}

impl OptionsError {
    /// Returns the key that caused the error.
    pub(super) fn key(&self, entry: &Typed<'_, Collector>) -> &'static str {
        match self {
            OptionsError::NoSwitch { .. } if entry.is_set(Collector::switch) => Collector::switch,
            OptionsError::NoSwitch { .. } => Collector::name,
            OptionsError::Bursts(_) if entry.is_set(Collector::longest_burst) => Collector::longest_burst,
            OptionsError::Bursts(_) => Collector::gap,
            // Not reached: values of single keys, and rules, are checked before.
            OptionsError::Refused { .. } | OptionsError::Links { .. } => "",
        }
    }

    /// Returns the message, with a remedy if the collector's name stands for its switch.
    pub(super) fn message(&self, entry: &Typed<'_, Collector>) -> String {
        match self {
            OptionsError::NoSwitch { .. } if !entry.is_set(Collector::switch) => {
                format!("{self}; add the key \"switch\", whose default is the name of the collector")
            }
            _ => self.to_string(),
        }
    }
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!("; did you mean \"{name}\"?"))
}

impl CollectorConfig {
    /// Returns the options of the collector in a network; without a network, they have no links.
    ///
    /// # Errors
    /// If the network lacks the switch or a link of a rule, or the options are invalid.
    pub fn options(&self, network: Option<&NetworkState>) -> Result<CollectorOptions, OptionsError> {
        let switch = network.map(|network| self.switch_in(network)).transpose()?;
        let rules = self.rules.iter().enumerate().map(|(rule, config)| {
            let links = match (network, switch) {
                (Some(network), Some(switch)) => config
                    .directions(network, switch)
                    .map_err(|source| OptionsError::Links { rule, source })?,
                _ => Some(Vec::new()),
            };
            let RuleConfig { upper, lower, min_event_interval, repeat, flows, .. } = *config;
            Ok(LinkRule { links, upper, lower, min_event_interval, repeat, flows })
        });
        let options = CollectorOptions {
            router: switch.unwrap_or(RouterId(0)),
            flow_table: self.flow_table,
            threshold: self.threshold,
            tracks: self.tracks,
            bursts: self.bursts(network, switch),
            monitor: self.monitor,
            smoothing: self.smoothing,
            rules: rules.collect::<Result<_, _>>()?,
            seed: 0,
        };
        options.validate().map_err(|error| match error {
            CollectorError::Bursts(bursts) => OptionsError::Bursts(bursts),
            other => OptionsError::Refused { reason: other.to_string() },
        })?;
        Ok(options)
    }

    /// Whether a running collector can change to the settings of `other` without opening its source again: they differ at
    /// most in the monitor port, bursts, smoothing, flow table, cheetah detection and rules.
    pub fn can_keep_source_of(&self, other: &CollectorConfig) -> bool {
        let CollectorConfig {
            name,
            switch,
            source,
            capture_filter,
            decapsulate,
            tasks,
            samples,
            // The collector applies changes of these.
            monitor: _,
            gap: _,
            longest_burst: _,
            smoothing: _,
            flow_table: _,
            threshold: _,
            tracks: _,
            rules: _,
        } = self;
        *name == other.name
            && *switch == other.switch
            && *source == other.source
            && *capture_filter == other.capture_filter
            && *decapsulate == other.decapsulate
            && *tasks == other.tasks
            && *samples == other.samples
    }

    /// Returns the monitored switch.
    fn switch_in(&self, network: &NetworkState) -> Result<RouterId, OptionsError> {
        let topology = network.topology();
        if let Some(Node::Router(switch)) = topology.node_named(&self.switch) {
            return Ok(switch);
        }
        let names = topology.routers().iter().map(|router| router.name.as_str());
        let nearest = nearest(&self.switch, names).map(str::to_owned);
        Err(OptionsError::NoSwitch { switch: self.switch.to_string(), nearest })
    }

    /// Returns the gap, as configured or derived from the fastest link of the switch, and the longest burst, as configured or
    /// derived from the gap.
    fn bursts(&self, network: Option<&NetworkState>, switch: Option<RouterId>) -> BurstOptions {
        let rates = network.zip(switch).into_iter().flat_map(|(network, switch)| {
            let topology = network.topology();
            (0..topology.ports(switch) as u16)
                .map(move |port| topology.links()[topology.link_at(switch, PortIndex(port)).index()].rate)
        });
        let derived = rates.max().map_or_else(BurstOptions::default, BurstOptions::for_rate);
        let gap = self.gap.unwrap_or(derived.gap);
        let longest = self.longest_burst.unwrap_or(Nanos(gap.0.saturating_mul(7) / 2));
        BurstOptions { gap, longest }
    }
}

impl RuleConfig {
    /// Returns the link directions at a switch that the rule selects; `None` for all.
    fn directions(
        &self,
        network: &NetworkState,
        switch: RouterId,
    ) -> Result<Option<Vec<LinkDirection>>, LinkSelectionError> {
        if self.links.contains(&LinkSelection::All) {
            return Ok(None);
        }
        let mut directions = Vec::new();
        for links in &self.links {
            directions.extend(links.at(network.topology(), switch)?);
        }
        directions.sort_unstable();
        directions.dedup();
        Ok(Some(directions))
    }
}

/// Reads the collector of this name. A section named `*` defines one for each emulated monitor port. Returns `None` if its name or source is invalid.
pub(super) fn read(
    entry: &Typed<'_, Collector>,
    name: &str,
    document: &Document,
    emulation: Option<&EmulationConfig>,
    rules: &[RuleConfig],
    problems: &mut Vec<Problem>,
) -> Option<CollectorConfig> {
    if name.contains(char::is_control) {
        problems.push(entry.refuse(Collector::name, "a name must not contain control characters"));
        return None;
    }
    let name: Arc<str> = name.into();
    let switch: Arc<str> = entry.switch.as_deref().unwrap_or(&name).into();
    let source = source::read(entry, &document.folder, &switch, emulation, problems)?;
    let is_emulated = matches!(source, SourceConfig::Port { .. });
    let ports = emulation.filter(|_| is_emulated).map_or(&[][..], |emulation| &emulation.ports);
    let port = ports.iter().find(|(of, _)| *of == switch);
    let applies = |rule: &&RuleConfig| {
        rule.collectors.as_ref().is_none_or(|names| names.iter().any(|other| **other == *name))
    };
    let rules: Vec<RuleConfig> = rules.iter().filter(applies).cloned().collect();
    if rules.len() > CollectorOptions::MAX_RULES {
        let reason = format!(
            "{} rules apply to it: at most {} are supported",
            rules.len(),
            CollectorOptions::MAX_RULES
        );
        problems.push(entry.refuse(Collector::name, reason));
    }
    let flow_table = FlowTableOptions {
        capacity: entry.flow_capacity,
        idle_timeout: entry.idle_timeout,
        active_timeout: entry.active_timeout,
        ..FlowTableOptions::default()
    };
    let threshold =
        CheetahThreshold { flight_duration: entry.flight_duration, rate_threshold: entry.rate_threshold };
    let threshold = entry.cheetahs.then_some(threshold);
    if let Some(threshold) = threshold {
        if let Err(error) = threshold.validate() {
            problems.push(entry.refuse(Collector::flight_duration, error.to_string()));
        }
        if threshold.flight_duration > flow_table.idle_timeout {
            let (key, reason) = match entry.is_set(Collector::idle_timeout) {
                true => (
                    Collector::idle_timeout,
                    format!("must be at least flight_duration, {}", threshold.flight_duration),
                ),
                false => (
                    Collector::flight_duration,
                    format!("must be at most idle_timeout, {}", flow_table.idle_timeout),
                ),
            };
            problems.push(entry.refuse(key, reason));
        }
    }
    let capture_filter = entry.capture_filter.clone();
    // The link type is unknown until the source is open. A filter that is invalid on Ethernet is invalid everywhere.
    let compiled = capture_filter.as_deref().map(|filter| Filter::compile(filter, LinkType::Ethernet, 0));
    if let Some(Err(error)) = compiled {
        problems.push(entry.refuse(Collector::capture_filter, error.to_string()));
    }
    Some(CollectorConfig {
        capture_filter,
        decapsulate: entry.decapsulate,
        // Unless configured here, the experiment's monitor port applies.
        monitor: monitor(entry, problems).or(port.map(|&(_, port)| port)),
        gap: entry.gap,
        longest_burst: entry.longest_burst,
        smoothing: entry.smoothing,
        flow_table,
        threshold,
        tracks: entry.tracks,
        tasks: tasks(entry, &source, problems),
        samples: samples(entry, problems),
        rules,
        name,
        switch,
        source,
    })
}

fn monitor(entry: &Typed<'_, Collector>, problems: &mut Vec<Problem>) -> Option<MonitorPort> {
    if let Some(reason) = entry.monitor_rate.and_then(super::wrong_rate) {
        problems.push(entry.refuse(Collector::monitor_rate, reason));
    }
    match (entry.monitor_rate, entry.monitor_buffer) {
        (Some(rate), Some(buffer)) => Some(MonitorPort { rate, buffer }),
        (None, None) => None,
        (Some(_), None) => {
            problems.push(entry.refuse(Collector::monitor_rate, "requires monitor_buffer"));
            None
        }
        (None, Some(_)) => {
            problems.push(entry.refuse(Collector::monitor_buffer, "requires monitor_rate"));
            None
        }
    }
}

fn tasks(
    entry: &Typed<'_, Collector>,
    source: &SourceConfig,
    problems: &mut Vec<Problem>,
) -> Option<TasksOptions> {
    let TaskList(tasks) = match entry.tasks.as_ref()?.join(",").parse() {
        Ok(tasks) => tasks,
        Err(error) => {
            let error: thalweg_measure::tasks::ParseTaskError = error;
            problems.push(entry.refuse(Collector::tasks, error.to_string()));
            return None;
        }
    };
    let options = TasksOptions {
        tasks,
        memory: entry.task_memory,
        window: entry.window,
        // Files give repeatable results. On interfaces the seed must be unpredictable, so that nobody can force collisions.
        seed: if source.is_live() { random_seed() } else { 0 },
        ..TasksOptions::default()
    };
    if let Err(error) = Plan::new(options.clone()) {
        problems.push(entry.refuse(Collector::tasks, error.to_string()));
    }
    Some(options)
}

/// Returns a seed from the standard library's hasher. It is constant within the process, so that a reload finds no change.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    static SEED: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *SEED.get_or_init(|| RandomState::new().build_hasher().finish())
}

fn samples(entry: &Typed<'_, Collector>, problems: &mut Vec<Problem>) -> Option<SampleRingOptions> {
    let options = SampleRingOptions { bytes: entry.sample_ring, snap_length: entry.sample_length };
    if !entry.keep_samples {
        return None;
    }
    let min = SampleRing::min_bytes(options.snap_length);
    if options.bytes < min {
        let reason = format!("expected at least {}B, the size of two samples of sample_length", min.0);
        problems.push(entry.refuse(Collector::sample_ring, reason));
    }
    Some(options)
}
