//! Collectors: their configuration, state and counters.

use thalweg_api::{BoundKind, Collector, Counts, State, StateName, UtcTime};
use thalweg_watch::json::EstimateBounds;

use crate::collectors::{CollectorCounters, CollectorHandle};
use crate::event::CollectorState;

/// Converts a collector, with its counters if it responded.
pub fn collector(handle: &CollectorHandle, counters: Option<&CollectorCounters>) -> Collector {
    let description = handle.description();
    Collector {
        name: description.name.to_string(),
        switch: description.switch.to_string(),
        source: description.source.clone(),
        live: description.is_live,
        backend: handle.backend(),
        state: state(&handle.state()),
        restarts: handle.restarts(),
        counts: counters.map(counts),
    }
}

fn counts(counters: &CollectorCounters) -> Counts {
    let ratio = counters.sampling_ratio;
    let bounds = ratio.as_ref().map(EstimateBounds::from);
    Counts {
        frames: counters.source.frames,
        packets: counters.intake.ip.packets,
        kernel_drops: counters.source.kernel_drops,
        flows: counters.flows,
        flow_capacity: counters.flow_capacity,
        sampling_ratio: ratio.map(|ratio| ratio.value),
        sampling_ratio_lower: bounds.and_then(|bounds| bounds.lower),
        sampling_ratio_upper: bounds.and_then(|bounds| bounds.upper),
        confidence: bounds.and_then(|bounds| bounds.confidence),
        bounds: bounds.map_or(BoundKind::NotConverged, |bounds| bounds.kind),
        events: counters.collector.events,
        memory_bytes: counters.memory.0,
    }
}

/// Converts the state of a collector.
pub fn state(state: &CollectorState) -> State {
    let (name, failure) = match state {
        CollectorState::Starting => (StateName::Starting, None),
        CollectorState::Running => (StateName::Running, None),
        CollectorState::Dropping => (StateName::Dropping, None),
        CollectorState::Ended => (StateName::Ended, None),
        CollectorState::Failed { error, retry_at } => (StateName::Failed, Some((error, retry_at))),
        CollectorState::Stopped => (StateName::Stopped, None),
    };
    State {
        name,
        error: failure.map(|(error, _)| error.clone()),
        retry_at: failure.and_then(|(_, retry_at)| *retry_at).map(UtcTime::from),
    }
}
