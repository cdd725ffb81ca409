//! A summary of what the daemon would do, for `thalweg check`.

use std::fmt::Write;
use std::path::Path;

use thalweg_actuators::isolation::openflow::OpenFlowOptions;
use thalweg_actuators::isolation::tc::Queueing;
use thalweg_poll::openflow::OpenFlowOptions as PolledPort;

use super::collectors::describe_source;
use super::config::{
    AlertConfig, CollectorConfig, Config, IsolationConfig, IsolatorConfig, PollConfig, PollSource,
    SourceConfig, ThresholdConfig, interfaces_in,
};
use super::file_access;
use super::polls;
use thalweg_http::access::Access;

/// Returns a summary of a configuration: one line per part.
///
/// # Errors
/// If tokens or certificates are invalid, or the user to switch to does not exist.
pub fn describe(config: &Config) -> anyhow::Result<String> {
    let access = Access::new(&config.access)?;
    let mut text = format!("{}: OK\n", config.file);
    let _ = writeln!(text, "api: {}, {}", config.access.listen, access.policy().summary());
    let _ = match &config.network.state {
        Some((path, state)) => writeln!(
            text,
            "network: {}: {} switches, {} hosts, {} links",
            path.display(),
            state.topology().routers().len(),
            state.topology().endpoints().len(),
            state.topology().links().len()
        ),
        None => writeln!(
            text,
            "network: unknown: flows have rates, but their links are unknown, so links have no utilisation"
        ),
    };
    for collector in &config.collectors {
        let _ = writeln!(text, "{}", line(collector, config));
    }
    if let Some(isolation) = &config.isolation {
        let _ = writeln!(text, "{}", isolation_line(isolation));
    }
    if let Some(ThresholdConfig { collector, options, simulation, .. }) = &config.threshold {
        let (loss, rates) = (options.acceptable_loss, simulation.setup.rates.len());
        let _ = writeln!(
            text,
            "threshold: follows the traffic of collector {collector}; loss of at most {loss:e}; simulation of {rates} rates: {simulation}"
        );
    }
    for poll in &config.polls {
        let _ = writeln!(text, "{}", poll_line(poll)?);
    }
    if let Some(folder) = &config.samples.folder {
        let names: Vec<&str> = config.samples.triggers.iter().map(|trigger| trigger.name()).collect();
        let when = if names.is_empty() { String::new() } else { format!(", and on {}", names.join(", ")) };
        let _ = writeln!(text, "samples: written to {} on SIGUSR1 and by the API{when}", folder.display());
    }
    for AlertConfig { name, webhook, .. } in &config.alerts {
        let _ = writeln!(text, "alert {name}: events are sent to {webhook}");
    }
    if let Some(log) = &config.event_log {
        let _ = writeln!(text, "events: logged in {}, at most {}", log.folder.display(), log.max_size);
    }
    if let Some(file) = &config.records {
        let _ = writeln!(text, "records: written to {}", file.display());
    }
    if let (Some(folder), false) = (&config.flow_export.folder, config.polls.is_empty()) {
        let _ = writeln!(text, "interface counters: stored in {}", folder.display());
    }
    if let Some(folder) = &config.flow_export.folder {
        if !config.collectors.is_empty() {
            let _ = writeln!(text, "flows: stored in {}", folder.display());
        }
        if config.transfers.is_some() {
            let _ = writeln!(text, "transfers: reports of agents are stored in {}", folder.display());
        }
    }
    if let Some(export) = &config.flow_export.export {
        let _ = writeln!(text, "flows: sent as IPFIX to {}", export.destination);
    }
    if let Some(folder) = &config.experiments {
        let _ = writeln!(text, "experiments: results are read from {}", folder.display());
    }
    for warning in &config.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    let user = config.process.user.as_deref().unwrap_or("an unprivileged user");
    for problem in file_access::problems(config)? {
        let _ = writeln!(text, "warning: as {user}, the daemon {problem}");
    }
    Ok(text)
}

/// Returns the line of a collector: `tor0: interface eth1 (AF_PACKET, since ...), switch tor0 with 5 ports; ...`.
fn line(collector: &CollectorConfig, config: &Config) -> String {
    let mut text = format!("{}: {} ({})", collector.name, collector.source.description(), how(collector));
    let state = config.network.state.as_ref().map(|(_, state)| &**state);
    // The configuration has been checked against the network.
    if let (Some(state), Ok(options)) = (state, collector.options(state)) {
        let ports = state.topology().ports(options.router);
        let _ = write!(text, ", switch {} with {ports} ports", collector.switch);
        for (rule, config) in options.rules.iter().zip(&collector.rules) {
            let links = rule.links.as_ref().map_or(2 * ports, Vec::len);
            let _ = write!(
                text,
                "; {links} link directions: congested from {} utilisation, clear below {}",
                percent(config.upper),
                percent(config.lower)
            );
        }
    } else {
        let _ = write!(text, ", switch {}", collector.switch);
    }
    if let Some(tasks) = &collector.tasks {
        let names: Vec<String> = tasks.tasks.iter().map(ToString::to_string).collect();
        let _ = write!(text, "; tasks {}", names.join(", "));
    }
    text
}

/// Returns the line of isolation: `isolation: by tc at eth1, 980 Mbit/s, ...`.
fn isolation_line(isolation: &IsolationConfig) -> String {
    let how = match &isolation.isolator {
        IsolatorConfig::Log => "only logged".to_owned(),
        IsolatorConfig::Emulated => "in the emulated network".to_owned(),
        IsolatorConfig::Exec(options) => {
            let exists = if options.program.exists() { "" } else { "; the program does not exist now" };
            format!("by {}{exists}", options.program.display())
        }
        IsolatorConfig::Webhook { options, .. } => format!("by requests to {}", options.url),
        IsolatorConfig::Flowspec { options, password_file } => {
            let is_missing = password_file.as_ref().is_some_and(|file| !file.exists());
            let missing = if is_missing { "; the password file does not exist now" } else { "" };
            let (peer, peer_as) = (options.peer, options.peer_as);
            format!("by FlowSpec rules for {peer}, AS {peer_as}, {}{missing}", options.action)
        }
        IsolatorConfig::Tc { options, .. } => {
            let queues = match options.queues.queueing {
                Queueing::Borrow { scavenger_share } => {
                    format!("the scavenger queue has {}", percent(scavenger_share))
                }
                Queueing::Strict => "the scavenger queue has what is left".to_owned(),
            };
            format!("by tc at {}, {}, {queues}", options.interface, options.queues.rate)
        }
        IsolatorConfig::OpenFlow(config) => {
            let OpenFlowOptions { switch, port, queue, rules, .. } = &config.options;
            let dscp = rules.dscp.map(|dscp| format!("DSCP {dscp}"));
            let set_queue = rules.queue.map(|_| "set_queue".to_owned());
            let means: Vec<String> = dscp.into_iter().chain(set_queue).collect();
            let means = means.join(" and ");
            format!("by openflow at switch {switch}, queue {} of port {port}, by {means}", queue.0)
        }
    };
    let dry_run = if isolation.options.dry_run { "; dry run" } else { "" };
    let most = isolation.options.max_redirections;
    format!("isolation: cheetah flows {how}; at most {most}{dry_run}")
}

/// Returns the line of a poll: `poll r1: SNMP v3 authPriv of 192.0.2.1:161, ifName wan0, every 10 s, ...`. Reads the credentials.
fn poll_line(poll: &PollConfig) -> anyhow::Result<String> {
    let (what, whose) = match &poll.source {
        PollSource::Snmp(snmp) => {
            let credentials = polls::credentials(&snmp.credentials_file)
                .map_err(|error| anyhow::anyhow!("poll {}: {error}", poll.name))?;
            let whose = match (&snmp.primary, &snmp.scavenger, snmp.has_scavenger) {
                (Some(_), ..) => "of the primary queue",
                (None, Some(_), _) => "of the port without the scavenger queue",
                (None, None, false) => "of the port, which has one queue",
                (None, None, true) => {
                    "of all queues, so the loss of the primary queue is unknown: see primary_oids, scavenger_oids and has_scavenger"
                }
            };
            (format!("SNMP {} of {}, interface {}", credentials.level(), snmp.target, snmp.interface), whose)
        }
        PollSource::OpenFlow { options, endpoint } => {
            if let Some(tls) = &endpoint.tls {
                tls.read().map_err(|error| anyhow::anyhow!("poll {}: {error}", poll.name))?;
            }
            let PolledPort { switch, port, primary, has_one_queue, .. } = options;
            let whose = match (primary, has_one_queue) {
                (Some(_), _) => "of the primary queue",
                (None, true) => "of the port, which has one queue",
                (None, false) => {
                    "of all queues, so the loss of the primary queue is unknown: see primary_queue and has_scavenger"
                }
            };
            let queue = primary.map_or_else(String::new, |queue| format!(", queue {}", queue.0));
            (format!("OpenFlow of switch {switch} ({}), port {port}{queue}", endpoint.peer), whose)
        }
        PollSource::Qdisc { options, .. } => {
            let whose = match options.classes {
                Some(_) => "of the primary class",
                None => "of the queues of [isolation], or of the only queue",
            };
            (format!("queues of interface {}", options.interface), whose)
        }
    };
    Ok(format!(
        "poll {}: {what}, every {}, average over {}; drops {whose}",
        poll.name, poll.interval, poll.average
    ))
}

fn percent(share: f64) -> String {
    format!("{} %", share * 100.0)
}

/// Describes how a source would be read, and whether it exists.
fn how(config: &CollectorConfig) -> String {
    let missing = |path: &Path| if path.exists() { "" } else { "; the file does not exist now" };
    let pace = |speed: &Option<f64>| match speed {
        Some(speed) => format!("at {speed} times real time"),
        None => "as fast as possible".to_owned(),
    };
    match &config.source {
        SourceConfig::Interface { name, namespace, .. } => {
            // If the namespace cannot be entered, the backend description contains the error.
            let known = interfaces_in(namespace.as_ref());
            let is_there = known.map_or(true, |known| known.contains(name));
            match is_there {
                true => describe_source(config),
                false => "the interface does not exist now".to_owned(),
            }
        }
        SourceConfig::Port { .. } => "shared emulation".to_owned(),
        SourceConfig::File { path, speed } if path == Path::new("-") => pace(speed),
        SourceConfig::File { path, speed } => format!("{}{}", pace(speed), missing(path)),
        SourceConfig::Emulation { experiment, speed, .. } => {
            format!("{}{}", pace(speed), missing(experiment))
        }
    }
}
