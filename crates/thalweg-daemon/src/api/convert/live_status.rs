//! The state of the daemon in the live stream.

use thalweg_api::{LiveCollector, LiveIsolation, LiveStatus};
use thalweg_wire::Timestamp;

use crate::isolation::Isolation;
use crate::parts::Parts;

/// Returns the state of the daemon. `packet_time` is zero before the first packet.
pub fn live_status(parts: &Parts, now: Timestamp, packet_time: Timestamp) -> LiveStatus {
    let collectors = parts.collectors.all();
    let configured = [
        ("control", parts.control.is_some()),
        ("event_log", parts.event_log.is_some()),
        ("experiments", parts.experiments.is_some()),
        ("flow_store", parts.record_store.is_some()),
        ("interfaces", !parts.polls.all().is_empty()),
        ("isolation", parts.isolation.is_some()),
        ("tasks", collectors.iter().any(|collector| !collector.tasks().tasks.is_empty())),
        ("threshold", parts.threshold.as_ref().is_some_and(|threshold| threshold.report().is_some())),
        ("topology", parts.network.versions().is_some()),
        ("transfers", parts.transfers.is_some()),
    ];
    let configured = configured.into_iter().filter(|(_, is_configured)| *is_configured);
    let collectors = collectors.iter().map(|collector| LiveCollector {
        name: collector.name().to_owned(),
        state: super::state(&collector.state()),
        keeps_samples: collector.samples().is_some(),
    });
    LiveStatus {
        configured: configured.map(|(name, _)| name.into()).collect(),
        time: now.into(),
        packet_time: (packet_time != Timestamp::default()).then(|| packet_time.into()),
        pace: parts.network.emulation().map(|emulation| emulation.pace()),
        collectors: collectors.collect(),
        control: parts.control.as_ref().map(super::control),
        isolation: parts.isolation.as_ref().map(isolation),
    }
}

fn isolation(isolation: &Isolation) -> LiveIsolation {
    let report = super::redirections(isolation, 0, 0, 0);
    LiveIsolation { active: report.active_count, dry_run: report.dry_run, error: report.error }
}
