//! `[isolation]`: which cheetah flows are redirected, and how.

mod flowspec;
mod openflow;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thalweg_actuators::isolation::exec::ExecOptions;
use thalweg_actuators::isolation::flowspec::FlowspecOptions;
use thalweg_actuators::isolation::tc::{QueuePlan, Queueing, TcOptions};
use thalweg_actuators::isolation::webhook::WebhookOptions;
use thalweg_capture::Namespace;
use thalweg_config::{Document, Problem, Typed};
use thalweg_control::isolate::IsolationOptions;
use thalweg_control::isolate::exclusions::Exclusions;
use thalweg_control::isolate::message::ScavengerName;
use thalweg_wire::{Bytes, IpPrefix, Nanos, ParsePrefixError};

use super::names::{AtStopName, IsolatorName, QueueingName};
use super::table::{Collector, Emulate, Isolation};
use super::{CollectorConfig, ControlConfig, SourceConfig};
use crate::emulation::EmulationConfig;
pub use openflow::OpenFlowIsolation;

/// The configuration of isolation.
#[derive(Clone, Debug, PartialEq)]
pub struct IsolationConfig {
    /// How flows are redirected.
    pub isolator: IsolatorConfig,
    /// Limits and times.
    pub options: IsolationOptions,
    /// Names of the collectors whose cheetah flows are redirected; `None` for all.
    pub collectors: Option<Vec<String>>,
}

/// How flows are redirected.
#[derive(Clone, Debug, PartialEq)]
pub enum IsolatorConfig {
    /// Not at all.
    Log,
    /// In the emulated network of the daemon.
    Emulated,
    /// By traffic control of this host.
    Tc {
        /// The interface and its queues.
        options: TcOptions,
        /// Network namespace of the interface; `None` for that of the daemon.
        namespace: Option<Namespace>,
    },
    /// By a command.
    Exec(ExecOptions),
    /// By HTTP requests.
    Webhook {
        /// The requests, without the token.
        options: WebhookOptions,
        /// The file with the token.
        token_file: Option<PathBuf>,
    },
    /// By rules that a router receives over BGP.
    Flowspec {
        /// Session and action, without the password.
        options: FlowspecOptions,
        /// The file with the password.
        password_file: Option<PathBuf>,
    },
    /// By rules of a switch.
    OpenFlow(Box<OpenFlowIsolation>),
}

/// Keys of one actuator.
const TC_KEYS: [&str; 7] = [
    Isolation::interface,
    Isolation::link_rate,
    Isolation::queueing,
    Isolation::scavenger_share,
    Isolation::primary_queue,
    Isolation::scavenger_queue,
    Isolation::expiry,
];
/// Keys of tc and openflow.
const QUEUE_KEYS: [&str; 2] = [Isolation::namespace, Isolation::at_stop];
/// Keys of tc, openflow and emulated, which read counters.
const COUNTER_KEYS: [&str; 1] = [Isolation::confirm_timeout];
const EXEC_KEYS: [&str; 1] = [Isolation::command];
const WEBHOOK_KEYS: [&str; 2] = [Isolation::url, Isolation::token_file];
/// Keys of openflow and flowspec.
const MARK_KEYS: [&str; 1] = [Isolation::dscp];
/// Keys of exec and webhook.
const CALL_KEYS: [&str; 2] = [Isolation::timeout, Isolation::concurrency];

/// Sizes of queues with tc: from a full frame to what the kernel counts in 32 bits.
const QUEUE_SIZES: RangeInclusive<Bytes> = Bytes(1_514)..=Bytes(u32::MAX as u64);

/// Minimum time with tc.
const MIN_EXPIRY: Nanos = Nanos::from_millis(500);
/// Minimum time with tc and emulated.
const MIN_QUIET: Nanos = Nanos::from_millis(300);
/// The default of `quiet` with actuators that count nothing, and how much longer than the idle timeout of collectors it is with others.
const UNCOUNTED_QUIET: Nanos = Nanos::from_secs(2);
const QUIET_MARGIN: Nanos = Nanos::from_secs(1);
const QUIET_REASON: &str = "expected at least 300ms, because the daemon reads counters every 100 ms";

impl IsolatorConfig {
    /// Returns the name used in the configuration.
    pub const fn name(&self) -> &'static str {
        match self {
            IsolatorConfig::Log => "log",
            IsolatorConfig::Emulated => "emulated",
            IsolatorConfig::Tc { .. } => "tc",
            IsolatorConfig::Exec(_) => "exec",
            IsolatorConfig::Webhook { .. } => "webhook",
            IsolatorConfig::Flowspec { .. } => "flowspec",
            IsolatorConfig::OpenFlow(_) => "openflow",
        }
    }

    /// Whether redirections stay when the daemon stops, for the next start.
    pub const fn keeps_at_stop(&self) -> bool {
        match self {
            IsolatorConfig::Tc { options, .. } => options.keeps_at_stop,
            IsolatorConfig::OpenFlow(config) => config.options.keeps_at_stop,
            IsolatorConfig::Log
            | IsolatorConfig::Emulated
            | IsolatorConfig::Exec(_)
            | IsolatorConfig::Webhook { .. }
            | IsolatorConfig::Flowspec { .. } => false,
        }
    }

    /// Names the scavenger queue in errors.
    fn scavenger(&self) -> ScavengerName {
        match self {
            IsolatorConfig::Tc { options, .. } => ScavengerName {
                name: format!("scavenger queue of {}", options.interface),
                advice: "Check the queues and classes of the interface.".to_owned(),
            },
            IsolatorConfig::OpenFlow(config) => config.scavenger(),
            IsolatorConfig::Emulated => ScavengerName {
                name: "scavenger queue of the mirrored ports".to_owned(),
                advice: "Does the flow leave by a port of [[mirror]] in the experiment?".to_owned(),
            },
            _ => ScavengerName::default(),
        }
    }

    /// Maximum duration of the actuator's stop, after flows were released: running requests, and the reset. Running commands are killed.
    pub const fn stop_time(&self) -> Duration {
        match self {
            IsolatorConfig::Exec(options) => options.timeout,
            IsolatorConfig::Webhook { options, .. } => options.timeout.saturating_mul(2),
            IsolatorConfig::Log
            | IsolatorConfig::Emulated
            | IsolatorConfig::Tc { .. }
            | IsolatorConfig::OpenFlow(_)
            | IsolatorConfig::Flowspec { .. } => Duration::ZERO,
        }
    }

    /// Whether it needs CAP_NET_ADMIN and CAP_BPF while the daemon runs.
    pub const fn needs_capabilities(&self) -> bool {
        matches!(self, IsolatorConfig::Tc { .. })
    }
}

/// Reads the section. Returns `None` if there is no isolation, or on a problem.
pub(super) fn read(
    document: &Document,
    emulation: Option<&EmulationConfig>,
    control: Option<&ControlConfig>,
    read: &[Arc<CollectorConfig>],
    problems: &mut Vec<Problem>,
) -> Option<IsolationConfig> {
    let entry = document.one::<Isolation>();
    let before = problems.len();
    let Some(actuator) = entry.actuator else {
        // Keys without an actuator have no effect, which nobody wants.
        let keys =
            TC_KEYS.iter().chain(&QUEUE_KEYS).chain(&EXEC_KEYS).chain(&WEBHOOK_KEYS).chain(&flowspec::KEYS);
        let keys = keys.chain(&openflow::KEYS).chain(&MARK_KEYS).chain(&COUNTER_KEYS);
        let keys = keys.chain(&[Isolation::collectors, Isolation::dry_run]);
        if let Some(key) = keys.copied().find(|key| entry.is_set(key)) {
            let reason = "requires actuator, one of tc, openflow, exec, webhook, flowspec, emulated and log";
            problems.push(entry.refuse(key, reason));
        }
        return None;
    };
    check_keys(&entry, actuator, problems);
    let collectors: Vec<String> =
        document.all::<Collector>().flat_map(|collector| super::names(&collector, emulation)).collect();
    for name in entry.collectors.iter().flatten().filter(|name| !collectors.contains(name)) {
        problems.push(entry.refuse(Isolation::collectors, format!("unknown collector {name}")));
    }
    let quiet = quiet(&entry, actuator, read);
    let isolator = match actuator {
        IsolatorName::Log => Some(IsolatorConfig::Log),
        IsolatorName::Emulated => emulated(&entry, document, emulation, problems),
        IsolatorName::Tc => tc(&entry, read, problems),
        IsolatorName::Exec => exec(&entry, document, problems),
        IsolatorName::Webhook => webhook(&entry, document, problems),
        IsolatorName::Flowspec => flowspec::read(&entry, document, problems),
        IsolatorName::OpenFlow => openflow::read(&entry, document, control, quiet, problems),
    };
    let options = IsolationOptions {
        max_redirections: entry.max_redirections,
        changes_per_second: entry.changes_per_second,
        quiet,
        refresh: Nanos(entry.expiry.0 / 3),
        confirm_timeout: entry.confirm_timeout,
        drain_time: entry.drain_time,
        scavenger: isolator.as_ref().map(IsolatorConfig::scavenger).unwrap_or_default(),
        release_timeout: entry.release_timeout,
        max_time: entry.max_time,
        reads_counters: reads_counters(actuator),
        dry_run: entry.dry_run,
        exclusions: exclusions(&entry, problems),
        ..IsolationOptions::default()
    };
    let config = IsolationConfig { isolator: isolator?, options, collectors: entry.collectors.clone() };
    (problems.len() == before).then_some(config)
}

/// Returns how long a flow is silent before it is released. If its collector reports the end of the flow before that, it also reports the
/// flow once more when it sends again.
fn quiet(entry: &Typed<'_, Isolation>, actuator: IsolatorName, read: &[Arc<CollectorConfig>]) -> Nanos {
    let longest = isolated(entry, read).map(|collector| collector.flow_table.idle_timeout).max();
    let default = match longest.filter(|_| reads_counters(actuator)) {
        Some(longest) => Nanos(longest.0.saturating_add(QUIET_MARGIN.0)).max(UNCOUNTED_QUIET),
        None => UNCOUNTED_QUIET,
    };
    entry.quiet.unwrap_or(default)
}

/// Returns the collectors whose flows are isolated.
pub(super) fn isolated<'c>(
    entry: &Isolation,
    read: &'c [Arc<CollectorConfig>],
) -> impl Iterator<Item = &'c CollectorConfig> {
    let is_listed =
        |name: &str| entry.collectors.as_ref().is_none_or(|names| names.iter().any(|listed| listed == name));
    read.iter().map(|collector| &**collector).filter(move |collector| is_listed(&collector.name))
}

/// Whether an actuator reads the counters of flows and queues.
const fn reads_counters(actuator: IsolatorName) -> bool {
    matches!(actuator, IsolatorName::Tc | IsolatorName::OpenFlow | IsolatorName::Emulated)
}

/// Reports keys of another actuator.
fn check_keys(entry: &Typed<'_, Isolation>, actuator: IsolatorName, problems: &mut Vec<Problem>) {
    for (keys, owner) in [
        (&TC_KEYS[..], IsolatorName::Tc),
        (&EXEC_KEYS[..], IsolatorName::Exec),
        (&WEBHOOK_KEYS[..], IsolatorName::Webhook),
        (&flowspec::KEYS[..], IsolatorName::Flowspec),
        (&openflow::KEYS[..], IsolatorName::OpenFlow),
    ] {
        if let Some(key) = keys.iter().copied().find(|key| actuator != owner && entry.is_set(key)) {
            let reason = format!("requires actuator {}, not {}", owner.name(), actuator.name());
            problems.push(entry.refuse(key, reason));
        }
    }
    let has_queues = matches!(actuator, IsolatorName::Tc | IsolatorName::OpenFlow);
    if let Some(key) = QUEUE_KEYS.iter().copied().find(|key| !has_queues && entry.is_set(key)) {
        let reason = format!("requires actuator tc or openflow, not {}", actuator.name());
        problems.push(entry.refuse(key, reason));
    }
    if let Some(key) = COUNTER_KEYS.iter().copied().find(|key| !reads_counters(actuator) && entry.is_set(key))
    {
        let reason = format!("requires actuator tc, openflow or emulated, not {}", actuator.name());
        problems.push(entry.refuse(key, reason));
    }
    let marks = matches!(actuator, IsolatorName::OpenFlow | IsolatorName::Flowspec);
    if let Some(key) = MARK_KEYS.iter().copied().find(|key| !marks && entry.is_set(key)) {
        let reason = format!("requires actuator openflow or flowspec, not {}", actuator.name());
        problems.push(entry.refuse(key, reason));
    }
    let calls = matches!(actuator, IsolatorName::Exec | IsolatorName::Webhook);
    if let Some(key) = CALL_KEYS.iter().copied().find(|key| !calls && entry.is_set(key)) {
        problems
            .push(entry.refuse(key, format!("requires actuator exec or webhook, not {}", actuator.name())));
    }
    if reads_counters(actuator) && entry.is_set(Isolation::max_time) {
        let reason = format!(
            "requires actuator exec, webhook, flowspec or log: with {}, a redirection lasts as long as its flow sends",
            actuator.name()
        );
        problems.push(entry.refuse(Isolation::max_time, reason));
    }
    if entry.queueing == QueueingName::Strict && entry.is_set(Isolation::scavenger_share) {
        problems.push(entry.refuse(Isolation::scavenger_share, "requires queueing borrow, not strict"));
    }
}

fn exclusions(entry: &Typed<'_, Isolation>, problems: &mut Vec<Problem>) -> Exclusions {
    let mut exclusions = Exclusions::default();
    for text in entry.never_prefixes.iter().flatten() {
        match text.parse::<IpPrefix>() {
            Ok(prefix) => exclusions.prefixes.push(prefix),
            Err(error) => {
                let error: ParsePrefixError = error;
                problems.push(entry.refuse(Isolation::never_prefixes, error.to_string()));
            }
        }
    }
    for text in entry.never_ports.iter().flatten() {
        match text.parse() {
            Ok(port) => exclusions.ports.push(port),
            Err(_) => {
                let reason = format!("invalid port {text:?}: expected 0 to 65535");
                problems.push(entry.refuse(Isolation::never_ports, reason));
            }
        }
    }
    exclusions
}

/// Checks that the flows of all collectors are in an emulated network with scavenger queues.
fn emulated(
    entry: &Typed<'_, Isolation>,
    document: &Document,
    emulation: Option<&EmulationConfig>,
    problems: &mut Vec<Problem>,
) -> Option<IsolatorConfig> {
    let before = problems.len();
    let mut refuse = |key, reason: String| problems.push(entry.refuse(key, reason));
    let Some(emulation) = emulation else {
        // Problems of the experiment are reported elsewhere.
        if document.one::<Emulate>().file.is_none() {
            refuse(Isolation::actuator, "emulated requires [emulate]".to_owned());
        }
        return None;
    };
    if !emulation.scheme.has_scavenger_queue() {
        let reason = format!(
            "emulated requires a scheme with a scavenger queue: set name = \"scavenger\" in [scheme] of {}, not {}",
            emulation.path.display(),
            emulation.scheme.name()
        );
        refuse(Isolation::actuator, reason);
    }
    for collector in document.all::<Collector>() {
        let is_isolated = |name: &String| entry.collectors.as_ref().is_none_or(|names| names.contains(name));
        let has_source = [Collector::interface, Collector::file, Collector::emulate];
        if has_source.iter().any(|key| collector.is_set(key)) && is_isolated(&collector.name) {
            let reason = format!(
                "collector {} does not read [emulate], so its flows are not in the emulated network: list the others",
                collector.name
            );
            refuse(Isolation::collectors, reason);
        }
    }
    if entry.quiet.is_some_and(|quiet| quiet < MIN_QUIET) {
        refuse(Isolation::quiet, QUIET_REASON.to_owned());
    }
    (problems.len() == before).then_some(IsolatorConfig::Emulated)
}

fn tc(
    entry: &Typed<'_, Isolation>,
    collectors: &[Arc<CollectorConfig>],
    problems: &mut Vec<Problem>,
) -> Option<IsolatorConfig> {
    let before = problems.len();
    let mut refuse = |key, reason: &str| {
        problems.push(entry.refuse(key, reason));
    };
    if entry.interface.is_none() {
        refuse(Isolation::interface, "required by actuator tc: the interface that leads to the link");
    }
    if entry.link_rate.is_none() {
        refuse(Isolation::link_rate, "required by actuator tc: the rate of the link, such as \"980mbps\"");
    }
    if let Some(name) = emulated_collector(entry, collectors) {
        let reason = format!(
            "collector {name} reads an emulated network, whose flows do not pass this host: expected emulated or log, or the others in \
             collectors"
        );
        refuse(Isolation::actuator, &reason);
    }
    if let Some(reason) = entry.link_rate.and_then(super::wrong_rate) {
        refuse(Isolation::link_rate, &reason);
    }
    if entry.scavenger_share >= 1.0 {
        refuse(Isolation::scavenger_share, "1 leaves nothing to all other flows: expected less than 1");
    }
    for (key, size) in
        [(Isolation::primary_queue, entry.primary_queue), (Isolation::scavenger_queue, entry.scavenger_queue)]
    {
        if !QUEUE_SIZES.contains(&size) {
            let (min, max) = (QUEUE_SIZES.start(), QUEUE_SIZES.end());
            let what = if size < *min { "small" } else { "large" };
            let reason = format!(
                "{size} is too {what}: expected {} bytes, a full frame, to {}, the most that the kernel counts",
                min.0, max.0
            );
            refuse(key, &reason);
        }
    }
    if entry.expiry < MIN_EXPIRY {
        refuse(
            Isolation::expiry,
            "expected at least 500ms, because the daemon extends it between readings of counters",
        );
    }
    if entry.quiet.is_some_and(|quiet| quiet < MIN_QUIET) {
        refuse(Isolation::quiet, QUIET_REASON);
    }
    let options = TcOptions {
        interface: entry.interface.clone()?,
        queues: QueuePlan {
            rate: entry.link_rate?,
            queueing: match entry.queueing {
                QueueingName::Borrow => Queueing::Borrow { scavenger_share: entry.scavenger_share },
                QueueingName::Strict => Queueing::Strict,
            },
            primary_queue: entry.primary_queue,
            scavenger_queue: entry.scavenger_queue,
        },
        expiry: entry.expiry,
        capacity: u32::try_from(entry.max_redirections).unwrap_or(u32::MAX),
        keeps_at_stop: entry.at_stop == AtStopName::Keep,
    };
    let namespace = entry.namespace.as_deref().map(Namespace::named);
    (problems.len() == before).then_some(IsolatorConfig::Tc { options, namespace })
}

/// Returns the name of a collector whose flows are isolated and emulated, if there is one.
pub(super) fn emulated_collector<'c>(
    entry: &Isolation,
    collectors: &'c [Arc<CollectorConfig>],
) -> Option<&'c str> {
    let is_emulated =
        |source: &SourceConfig| matches!(source, SourceConfig::Port { .. } | SourceConfig::Emulation { .. });
    let found = isolated(entry, collectors).find(|collector| is_emulated(&collector.source));
    found.map(|collector| &*collector.name)
}

fn exec(
    entry: &Typed<'_, Isolation>,
    document: &Document,
    problems: &mut Vec<Problem>,
) -> Option<IsolatorConfig> {
    let Some((program, arguments)) = entry.command.as_deref().and_then(<[String]>::split_first) else {
        let reason = "required by actuator exec: a program and its arguments";
        problems.push(entry.refuse(Isolation::command, reason));
        return None;
    };
    Some(IsolatorConfig::Exec(ExecOptions {
        program: document.folder.join(program),
        arguments: arguments.to_vec(),
        timeout: entry.timeout.into(),
        concurrency: entry.concurrency,
    }))
}

fn webhook(
    entry: &Typed<'_, Isolation>,
    document: &Document,
    problems: &mut Vec<Problem>,
) -> Option<IsolatorConfig> {
    let Some(url) = &entry.url else {
        let reason = "required by actuator webhook: a URL that starts with http:// or https://";
        problems.push(entry.refuse(Isolation::url, reason));
        return None;
    };
    let options = WebhookOptions {
        url: url.clone(),
        token: None,
        timeout: entry.timeout.into(),
        concurrency: entry.concurrency,
    };
    let token_file = entry.token_file.as_ref().map(|file| document.folder.join(file));
    Some(IsolatorConfig::Webhook { options, token_file })
}

#[cfg(test)]
mod tests;
