//! `[isolation]`: which cheetah flows are redirected, and how.

mod openflow;

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thalweg_actuators::isolation::exec::ExecOptions;
use thalweg_actuators::isolation::flowspec::{
    Action, FlowspecOptions, MIN_HOLD_TIME, PORT, ParseTargetError,
};
use thalweg_actuators::isolation::tc::{QueuePlan, Queueing, TcOptions};
use thalweg_actuators::isolation::webhook::WebhookOptions;
use thalweg_capture::Namespace;
use thalweg_config::{Document, Problem, Typed};
use thalweg_control::isolate::IsolationOptions;
use thalweg_control::isolate::exclusions::Exclusions;
use thalweg_control::isolate::message::ScavengerName;
use thalweg_wire::{Bytes, IpPrefix, Nanos, ParsePrefixError};

use super::table::{AtStopName, Collector, Emulate, Isolation, IsolatorName, QueueingName, RuleActionName};
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
const FLOWSPEC_KEYS: [&str; 10] = [
    Isolation::peer,
    Isolation::peer_as,
    Isolation::local_as,
    Isolation::local_address,
    Isolation::router_id,
    Isolation::hold_time,
    Isolation::password_file,
    Isolation::action,
    Isolation::rate_limit,
    Isolation::redirect_to,
];
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
            TC_KEYS.iter().chain(&QUEUE_KEYS).chain(&EXEC_KEYS).chain(&WEBHOOK_KEYS).chain(&FLOWSPEC_KEYS);
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
        IsolatorName::Flowspec => flowspec(&entry, document, problems),
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
        (&FLOWSPEC_KEYS[..], IsolatorName::Flowspec),
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

fn flowspec(
    entry: &Typed<'_, Isolation>,
    document: &Document,
    problems: &mut Vec<Problem>,
) -> Option<IsolatorConfig> {
    let before = problems.len();
    let peer = peer(entry, problems);
    let mut refuse = |key, reason: &str| problems.push(entry.refuse(key, reason));
    for (key, number) in [(Isolation::peer_as, entry.peer_as), (Isolation::local_as, entry.local_as)] {
        if number.is_none() {
            refuse(key, "required by actuator flowspec: the number of an autonomous system");
        }
    }
    let local_address = entry.local_address.as_ref().map(|text| text.parse::<IpAddr>());
    let is_other = |address: &IpAddr| peer.is_some_and(|peer| peer.is_ipv4() != address.is_ipv4());
    match &local_address {
        Some(Err(_)) => refuse(Isolation::local_address, "expected an address, such as \"192.0.2.2\""),
        Some(Ok(address)) if is_other(address) => {
            refuse(Isolation::local_address, "expected an address of the same IP version as peer");
        }
        _ => {}
    }
    let router_id = entry.router_id.as_ref().map(|text| text.parse());
    match &router_id {
        Some(Err(_)) => refuse(Isolation::router_id, "expected an IPv4 address, such as \"192.0.2.2\""),
        None if peer.is_some_and(|peer| peer.is_ipv6()) => {
            refuse(Isolation::router_id, "required if peer is an IPv6 address: an IPv4 address of this host");
        }
        _ => {}
    }
    let (seconds, rest) = (entry.hold_time.0 / 1_000_000_000, entry.hold_time.0 % 1_000_000_000);
    let hold_time = u16::try_from(seconds).ok().filter(|seconds| *seconds >= MIN_HOLD_TIME && rest == 0);
    if hold_time.is_none() {
        refuse(Isolation::hold_time, "expected whole seconds, 3s to 65535s");
    }
    let action = rule_action(entry, problems);
    let options = FlowspecOptions {
        peer: peer?,
        local_address: local_address.transpose().ok()?,
        local_as: entry.local_as?,
        peer_as: entry.peer_as?,
        router_id: router_id.transpose().ok()?,
        hold_time: hold_time?,
        password: None,
        action: action?,
    };
    let password_file = entry.password_file.as_ref().map(|file| document.folder.join(file));
    (problems.len() == before).then_some(IsolatorConfig::Flowspec { options, password_file })
}

fn peer(entry: &Typed<'_, Isolation>, problems: &mut Vec<Problem>) -> Option<SocketAddr> {
    let Some(text) = &entry.peer else {
        let reason = "required by actuator flowspec: the address of the router";
        problems.push(entry.refuse(Isolation::peer, reason));
        return None;
    };
    let address = || text.parse().map(|address| SocketAddr::new(address, PORT));
    let peer = text.parse::<SocketAddr>().or_else(|_| address()).ok().filter(|peer| peer.port() != 0);
    if peer.is_none() {
        let reason = format!(
            "invalid address {text:?}: expected an address and perhaps a port, such as 192.0.2.1, 192.0.2.1:1790, 2001:db8::1 or \
             [2001:db8::1]:1790"
        );
        problems.push(entry.refuse(Isolation::peer, reason));
    }
    peer
}

/// Reads what the router does, and reports keys of another action.
fn rule_action(entry: &Typed<'_, Isolation>, problems: &mut Vec<Problem>) -> Option<Action> {
    for (key, owner) in [
        (Isolation::dscp, RuleActionName::Mark),
        (Isolation::rate_limit, RuleActionName::Rate),
        (Isolation::redirect_to, RuleActionName::Redirect),
    ] {
        if entry.action != owner && entry.is_set(key) {
            let reason = format!("requires action {}, not {}", owner.name(), entry.action.name());
            problems.push(entry.refuse(key, reason));
        }
    }
    match entry.action {
        RuleActionName::Mark => Some(Action::Mark(entry.dscp)),
        RuleActionName::Rate => {
            let rate = entry.rate_limit.filter(|rate| rate.0 >= 8);
            if rate.is_none() {
                let reason = "required by action rate: at least 8bps, such as \"10mbps\"";
                problems.push(entry.refuse(Isolation::rate_limit, reason));
            }
            rate.map(Action::RateLimit)
        }
        RuleActionName::Redirect => {
            let Some(text) = &entry.redirect_to else {
                let reason =
                    "required by action redirect: a route target such as \"64500:100\", or an address";
                problems.push(entry.refuse(Isolation::redirect_to, reason));
                return None;
            };
            match text.parse() {
                Ok(target) => Some(Action::Redirect(target)),
                Err(error) => {
                    let error: ParseTargetError = error;
                    problems.push(entry.refuse(Isolation::redirect_to, error.to_string()));
                    None
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    fn parse(lines: &str) -> Result<Option<IsolationConfig>, String> {
        let text = format!("[[collector]]\nname = \"a\"\ninterface = \"eth1\"\n[isolation]\n{lines}");
        let config = Config::parse(&text, "t.toml", Path::new("/etc"));
        config.map(|config| config.isolation).map_err(|error| error.to_string())
    }

    #[test]
    fn a_section_is_read() {
        assert_eq!(parse("").unwrap(), None);
        let tc = "actuator = \"tc\"\ninterface = \"wan0\"\nlink_rate = \"980mbps\"\nexpiry = \"3s\"\n";
        let limits = "never_prefixes = [\"10.0.0.0/8\"]\nnever_ports = [\"22\"]\nqueueing = \"strict\"\n";
        let config = parse(&[tc, limits].concat()).unwrap().unwrap();
        assert_eq!((config.options.refresh, config.options.reads_counters), (Nanos::from_secs(1), true));
        assert_eq!(
            config.options.quiet,
            Nanos::from_secs(16),
            "longer than the idle timeout of the collector"
        );
        assert_eq!(config.options.exclusions.ports, [22]);
        let IsolatorConfig::Tc { options, .. } = config.isolator else { panic!("tc") };
        assert_eq!((options.interface.as_str(), options.capacity), ("wan0", 1_024));
        assert_eq!(options.queues.queueing, Queueing::Strict);
        let config = parse("actuator = \"exec\"\ncommand = [\"bin/redirect\", \"r1\"]").unwrap().unwrap();
        let IsolatorConfig::Exec(options) = config.isolator else { panic!("exec") };
        assert_eq!((options.program.as_path(), options.arguments.len()), (Path::new("/etc/bin/redirect"), 1));
        assert!(!config.options.reads_counters);
        assert_eq!(config.options.quiet, Nanos::from_secs(2));
        let config =
            parse("actuator = \"webhook\"\nurl = \"http://[::1]:80/x\"\ntoken_file = \"t\"").unwrap();
        assert_eq!(config.unwrap().isolator.name(), "webhook");
    }

    const OPENFLOW: &str = "actuator = \"openflow\"\nswitch = \"0xd1\"\nport = \"eth2\"\nqueue = 1\n";

    #[test]
    fn a_section_for_a_switch_is_read() {
        let listen = "openflow_listen = \"127.0.0.1:6654\"\nconfirm_timeout = \"3s\"\nat_stop = \"keep\"\n";
        let config = parse(&[OPENFLOW, listen].concat()).unwrap().unwrap();
        let options = &config.options;
        assert_eq!((options.reads_counters, options.confirm_timeout), (true, Nanos::from_secs(3)));
        assert_eq!(options.scavenger.name, "scavenger queue 1 of port eth2");
        assert!(options.scavenger.advice.contains("DSCP 1"), "{}", options.scavenger.advice);
        assert!(config.isolator.keeps_at_stop());
        let IsolatorConfig::OpenFlow(config) = config.isolator else { panic!("openflow") };
        let (options, rules) = (&config.options, &config.options.rules);
        assert_eq!((options.switch.0, rules.idle_timeout, rules.priority), (0xd1, 20, 24_576));
        assert_eq!((rules.dscp, rules.queue.map(|queue| queue.0)), (Some(1), Some(1)), "both by default");
        let only = "method = \"set_queue\"\nforward = \"table 1\"\nopenflow_connect = \"127.0.0.1:6653\"\n";
        let config = parse(&[OPENFLOW, only].concat()).unwrap().unwrap();
        assert!(config.options.scavenger.advice.contains("may ignore it"));
        let IsolatorConfig::OpenFlow(config) = config.isolator else { panic!("openflow") };
        assert_eq!(config.options.rules.dscp, None);
    }

    #[test]
    fn a_switch_of_the_controller_is_refused() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/collector");
        let parse = |switch: &str, port: u16| {
            let text = format!(
                "[network]\ntopology = \"topology.toml\"\n[[collector]]\nname = \"a\"\nswitch = \"leaf0\"\ninterface = \"eth1\"\n\
                 [control]\ndecider = \"static\"\nactuator = \"openflow\"\nswitches = [\"leaf0 d1\", \"leaf1 d3\", \"spine0 d4\", \"spine1 d5\"]\n\
                 openflow_listen = \"127.0.0.1:6653\"\n[isolation]\nactuator = \"openflow\"\nport = \"2\"\nqueue = 1\n\
                 switch = \"{switch}\"\nopenflow_listen = \"127.0.0.1:{port}\"\n"
            );
            Config::parse(&text, "t.toml", &folder).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(parse("d2", 6_654), Ok(()));
        let error = parse("d1", 6_654).unwrap_err();
        assert!(error.contains("switch: a switch of [control]: a switch has one master"), "{error}");
        let error = parse("d2", 6_653).unwrap_err();
        assert!(
            error.contains("openflow_listen: the same address as openflow_listen of [control]"),
            "{error}"
        );
    }

    #[test]
    fn a_session_for_rules_is_read() {
        let session = "actuator = \"flowspec\"\npeer_as = 64500\nlocal_as = 64501\n";
        let config = parse(&[session, "peer = \"192.0.2.1\"\npassword_file = \"bgp\""].concat());
        let config = config.unwrap().unwrap();
        assert!(!config.options.reads_counters && !config.isolator.needs_capabilities());
        let IsolatorConfig::Flowspec { options, password_file } = config.isolator else { panic!("flowspec") };
        let expected = FlowspecOptions {
            peer: "192.0.2.1:179".parse().unwrap(),
            local_address: None,
            local_as: 64_501,
            peer_as: 64_500,
            router_id: None,
            hold_time: 30,
            password: None,
            action: Action::Mark(1),
        };
        assert_eq!((options, password_file), (expected, Some("/etc/bgp".into())));
        let lines = "peer = \"[2001:db8::1]:1790\"\nlocal_address = \"2001:db8::2\"\nrouter_id = \"192.0.2.2\"\n\
                     hold_time = \"3s\"\naction = \"redirect\"\nredirect_to = \"64500:100\"\nmax_time = \"1m\"\n";
        let config = parse(&[session, lines].concat()).unwrap().unwrap();
        let IsolatorConfig::Flowspec { options, .. } = config.isolator else { panic!("flowspec") };
        assert_eq!((options.peer.port(), options.hold_time), (1_790, 3));
        assert_eq!(options.action.to_string(), "redirect to 64500:100");
        let lines =
            "peer = \"2001:db8::1\"\nrouter_id = \"192.0.2.2\"\naction = \"rate\"\nrate_limit = \"10mbps\"\n";
        let config = parse(&[session, lines].concat()).unwrap().unwrap();
        let IsolatorConfig::Flowspec { options, .. } = config.isolator else { panic!("flowspec") };
        assert_eq!(options.action.to_string(), "limit to 10.0 Mbit/s");
    }

    #[test]
    fn problems_of_a_session_name_the_line_and_the_remedy() {
        let session = "actuator = \"flowspec\"\npeer_as = 64500\nlocal_as = 64501\n";
        let router = &[session, "peer = \"192.0.2.1\"\n"].concat();
        for (lines, expected) in [
            ("actuator = \"flowspec\"", "peer: required by actuator flowspec: the address of the router"),
            ("actuator = \"flowspec\"", "local_as: required by actuator flowspec: the number of"),
            (
                "actuator = \"log\"\npeer = \"192.0.2.1\"",
                "t.toml:6: peer: requires actuator flowspec, not log",
            ),
            ("dscp = 1", "t.toml:5: dscp: requires actuator, one of"),
            (
                &[session, "peer = \"router1\""].concat(),
                "peer: invalid address \"router1\": expected an address",
            ),
            (&[session, "peer = \"192.0.2.1:0\""].concat(), "peer: invalid address \"192.0.2.1:0\""),
            (&[session, "peer = \"2001:db8::1\""].concat(), "router_id: required if peer is an IPv6 address"),
            (&[router, "router_id = \"2001:db8::2\""].concat(), "router_id: expected an IPv4 address"),
            (&[router, "local_address = \"wan0\""].concat(), "local_address: expected an address"),
            (
                &[router, "local_address = \"2001:db8::2\""].concat(),
                "local_address: expected an address of the same IP version as peer",
            ),
            (&[router, "hold_time = \"2s\""].concat(), "hold_time: expected whole seconds, 3s to 65535s"),
            (&[router, "hold_time = \"3500ms\""].concat(), "hold_time: expected whole seconds"),
            (&[router, "hold_time = \"24h\""].concat(), "hold_time: expected whole seconds"),
            (&[router, "dscp = 64"].concat(), "dscp is 64: "),
            (&[router, "rate_limit = \"1mbps\""].concat(), "rate_limit: requires action rate, not mark"),
            (&[router, "action = \"rate\""].concat(), "rate_limit: required by action rate: at least 8bps"),
            (
                &[router, "action = \"rate\"\nrate_limit = \"10mbps\"\ndscp = 1"].concat(),
                "dscp: requires action mark",
            ),
            (&[router, "action = \"redirect\""].concat(), "redirect_to: required by action redirect"),
            (
                &[router, "action = \"redirect\"\nredirect_to = \"vrf1\""].concat(),
                "redirect_to: invalid redirect target \"vrf1\": expected a route target",
            ),
            ("actuator = \"flowspec\"\npeer_as = 4294967296", "peer_as is 4294967296: "),
            (
                &[router, "timeout = \"1s\""].concat(),
                "timeout: requires actuator exec or webhook, not flowspec",
            ),
        ] {
            let error = parse(lines).unwrap_err();
            assert!(error.contains(expected), "{lines}: {error}");
        }
    }

    #[test]
    fn problems_name_the_line_and_the_remedy() {
        let openflow = |lines: &str| {
            let listen = "openflow_listen = \"127.0.0.1:6654\"\n";
            parse(&[OPENFLOW, listen, lines].concat()).unwrap_err()
        };
        for (lines, expected) in [
            ("forward = \"table 0\"", "forward: expected a table after 0, that of the rules"),
            ("forward = \"flood\"", "forward: invalid value \"flood\": expected normal, output or a table"),
            ("idle_timeout = \"16500ms\"", "idle_timeout: expected whole seconds from 16.0 s"),
            ("drain_time = \"30s\"", "drain_time: expected less than release_timeout"),
            ("quiet = \"1s\"", "quiet: expected at least 2s with openflow"),
            (
                "openflow_key = \"k\"",
                "openflow_key: openflow_certificate, openflow_key and openflow_ca_file must be",
            ),
            (
                "openflow_connect = \"127.0.0.1:1\"",
                "openflow requires either openflow_listen or openflow_connect",
            ),
            ("method = \"set_queue\"\ndscp = 1", "dscp: requires method dscp or both, not set_queue"),
            ("link_rate = \"1gbps\"", "link_rate: requires actuator tc, not openflow"),
            ("dscp = 64", "dscp is 64: expected an integer from 0 to 63"),
        ] {
            let error = openflow(lines);
            assert!(error.contains(expected), "{lines}: {error}");
        }
        let tc = "actuator = \"tc\"\ninterface = \"wan0\"\nlink_rate = \"1gbps\"\n";
        for (lines, expected) in [
            (
                "interface = \"wan0\"",
                "t.toml:5: interface: requires actuator, one of tc, openflow, exec, webhook, flowspec, emulated and log",
            ),
            ("actuator = \"tc\"\nlink_rate = \"1gbps\"", "interface: required by actuator tc"),
            ("actuator = \"tc\"\ninterface = \"wan0\"", "link_rate: required by actuator tc"),
            ("actuator = \"exec\"", "command: required by actuator exec"),
            ("actuator = \"openflow\"\nport = \"2\"\nqueue = 1", "switch: required by actuator openflow"),
            ("actuator = \"log\"\nqueue = 1", "queue: requires actuator openflow, not log"),
            (
                "actuator = \"exec\"\nat_stop = \"keep\"",
                "at_stop: requires actuator tc or openflow, not exec",
            ),
            ("actuator = \"webhook\"", "url: required by actuator webhook"),
            (
                "actuator = \"webhook\"\nurl = \"ftp://user:geheim@x\"",
                "t.toml:6: url: invalid URL \"ftp://***@x\": expected http:// or https:// at the start",
            ),
            (
                "actuator = \"webhook\"\nurl = \"https://user:geheim@x:99999/\"",
                "t.toml:6: url: invalid URL \"https://***@x:99999/\": invalid port: expected 1 to 65535",
            ),
            (
                "actuator = \"webhook\"\nurl = \"https://[::1\"",
                "t.toml:6: url: invalid URL \"https://[::1\": expected an IPv6 address in brackets",
            ),
            (
                "actuator = \"webhook\"\nurl = [\"https://user:geheim@x/?geheim\"]",
                "t.toml:6: url is [\"https://***@x/?***\"]: expected a URL, such as",
            ),
            ("actuator = \"log\"\nurl = \"http://x\"", "t.toml:6: url: requires actuator webhook, not log"),
            ("actuator = \"log\"\ntimeout = \"1s\"", "timeout: requires actuator exec or webhook, not log"),
            (&[tc, "expiry = \"10ms\""].concat(), "expiry: expected at least 500ms"),
            (&[tc, "quiet = \"10ms\""].concat(), "quiet: expected at least 300ms"),
            (
                &[tc, "max_time = \"1h\""].concat(),
                "max_time: requires actuator exec, webhook, flowspec or log",
            ),
            (
                &[tc, "queueing = \"strict\"\nscavenger_share = 0.1"].concat(),
                "scavenger_share: requires queueing borrow",
            ),
            (&[tc, "collectors = \"b\""].concat(), "collectors: unknown collector b"),
            (&[tc, "never_prefixes = \"10.0.0.0/33\""].concat(), "never_prefixes: invalid prefix"),
            (
                &[tc, "never_prefixes = \"10.0.0.1/8\""].concat(),
                "never_prefixes: 10.0.0.1/8 has bits after its length: expected 10.0.0.0/8 for all addresses of the prefix",
            ),
            (
                &[tc, "scavenger_share = 1"].concat(),
                "t.toml:8: scavenger_share: 1 leaves nothing to all other flows: expected less than 1",
            ),
            (
                &[tc, "primary_queue = \"1B\""].concat(),
                "t.toml:8: primary_queue: 1 B is too small: expected 1514 bytes, a full frame, to 4294967295, the most that the kernel",
            ),
            (&[tc, "scavenger_queue = \"100TB\""].concat(), "scavenger_queue: 100 TB is too large"),
            (
                &tc.replace("1gbps", "1bps"),
                "link_rate: 1 bit/s is not the rate of a link: expected 8.00 kbit/s to",
            ),
            (&tc.replace("1gbps", "1000tbps"), "is not the rate of a link: expected"),
            (
                &[tc, "never_ports = \"ssh\""].concat(),
                "never_ports: invalid port \"ssh\": expected 0 to 65535",
            ),
        ] {
            let error = parse(lines).unwrap_err();
            assert!(error.contains(expected) && !error.contains("geheim"), "{lines}: {error}");
        }
    }
}
