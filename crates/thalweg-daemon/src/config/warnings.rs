//! Values that are valid, and probably not meant. `thalweg check` prints these warnings, and the daemon logs them.

use thalweg_config::{Document, Problem, Typed};
use thalweg_wire::{BitRate, Bytes, Nanos};

use super::isolation::{IsolationConfig, emulated_collector, isolated};
use super::table::{Collector, Isolation};
use super::{Config, IsolatorConfig};

/// A packet should not wait for longer in a queue.
const MAX_WAIT: Nanos = Nanos::from_secs(10);

/// The largest segment that the kernel passes to a queue, before it is split into packets.
const LARGEST_SEGMENT: Bytes = Bytes(64 << 10);

/// From this share on, the scavenger queue has more than the primary queue.
const EVEN_SHARE: f64 = 0.5;

/// Returns the warnings about a valid configuration.
pub(super) fn of(document: &Document, config: &Config) -> Vec<Problem> {
    let mut warnings = Vec::new();
    let entry = document.one::<Isolation>();
    match config.isolation.as_ref().map(|isolation| &isolation.isolator) {
        Some(IsolatorConfig::Tc { .. }) => tc(&entry, &mut warnings),
        Some(isolator @ (IsolatorConfig::OpenFlow(_) | IsolatorConfig::Flowspec { .. })) => {
            if let Some(name) = emulated_collector(&entry, &config.collectors) {
                warnings.push(entry.refuse(
                    Isolation::actuator,
                    format!(
                        "collector {name} reads an emulated network, and {} changes a real device: expected emulated or log",
                        isolator.name()
                    ),
                ));
            }
        }
        _ => {}
    }
    if let Some(isolation) = &config.isolation {
        quiet(&entry, isolation, config, &mut warnings);
    }
    thresholds(document, config, &mut warnings);
    warnings
}

/// Warns of flows that are released while their collector still knows them.
fn quiet(
    entry: &Typed<'_, Isolation>,
    isolation: &IsolationConfig,
    config: &Config,
    warnings: &mut Vec<Problem>,
) {
    let collectors = isolated(entry, &config.collectors);
    let Some(longest) = collectors.max_by_key(|collector| collector.flow_table.idle_timeout) else { return };
    let (quiet, idle) = (isolation.options.quiet, longest.flow_table.idle_timeout);
    if isolation.options.reads_counters && quiet <= idle {
        let reason = format!(
            "a flow that pauses for {quiet} to {idle} is released, and not redirected when it sends again: expected more than idle_timeout of \
             collector {}, {idle}",
            longest.name
        );
        warnings.push(entry.refuse(Isolation::quiet, reason));
    }
}

fn tc(entry: &Typed<'_, Isolation>, warnings: &mut Vec<Problem>) {
    if entry.scavenger_share > EVEN_SHARE {
        let reason = format!(
            "{} leaves {:.2} of the link to all other flows: expected at most {EVEN_SHARE}",
            entry.scavenger_share,
            1.0 - entry.scavenger_share
        );
        warnings.push(entry.refuse(Isolation::scavenger_share, reason));
    }
    let Some(rate) = entry.link_rate else { return };
    for (key, size) in
        [(Isolation::primary_queue, entry.primary_queue), (Isolation::scavenger_queue, entry.scavenger_queue)]
    {
        let wait = wait(size, rate);
        if wait > MAX_WAIT {
            let reason = format!("{size} take {wait} at link_rate, {rate}: expected at most {MAX_WAIT}");
            warnings.push(entry.refuse(key, reason));
        }
        if size < LARGEST_SEGMENT {
            let reason = format!(
                "{size} do not hold a segment of {LARGEST_SEGMENT}, into which this host may merge packets: such segments are dropped"
            );
            warnings.push(entry.refuse(key, reason));
        }
    }
}

/// Returns the time that a full queue takes to leave.
fn wait(size: Bytes, rate: BitRate) -> Nanos {
    let nanos = u128::from(size.0) * 8 * 1_000_000_000 / u128::from(rate.0.max(1));
    Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Warns of rate thresholds that no flow can exceed.
fn thresholds(document: &Document, config: &Config, warnings: &mut Vec<Problem>) {
    let isolated = document.one::<Isolation>();
    for entry in document.all::<Collector>().filter(|entry| entry.cheetahs) {
        let is_isolated = config.isolation.is_some()
            && isolated.collectors.as_ref().is_none_or(|names| names.contains(&entry.name));
        let link_rate = isolated.link_rate.filter(|_| is_isolated);
        for (limit, what) in [(entry.monitor_rate, "monitor_rate"), (link_rate, "link_rate of [isolation]")] {
            if let Some(limit) = limit.filter(|limit| entry.rate_threshold >= *limit) {
                let reason = format!(
                    "{} is not below {what}, {limit}: no flow can exceed it, so none is a cheetah flow",
                    entry.rate_threshold
                );
                warnings.push(entry.refuse(Collector::rate_threshold, reason));
            }
        }
    }
}
