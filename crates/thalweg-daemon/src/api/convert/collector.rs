//! Collectors: what they are and how they do.

use thalweg_api::{Collector, Counts, Moment, State, StateName};

use super::rate;
use crate::collectors::{CollectorCounters, CollectorHandle};
use crate::event::CollectorState;

/// A collector, with what it counts if it answered.
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
    Counts {
        frames: counters.source.frames,
        packets: counters.intake.ip.packets,
        kernel_drops: counters.source.kernel_drops,
        flows: counters.flows,
        flow_capacity: counters.flow_capacity,
        sampling_ratio: counters.sampling_ratio.map(rate),
        events: counters.collector.events,
        memory_bytes: counters.memory.0,
    }
}

/// What a collector is doing.
pub fn state(state: &CollectorState) -> State {
    let (name, failure) = match state {
        CollectorState::Starting => (StateName::Starting, None),
        CollectorState::Running => (StateName::Running, None),
        CollectorState::Ended => (StateName::Ended, None),
        CollectorState::Failed { error, retry_at } => (StateName::Failed, Some((error, retry_at))),
        CollectorState::Stopped => (StateName::Stopped, None),
    };
    State {
        name,
        error: failure.map(|(error, _)| error.clone()),
        retry_at: failure.and_then(|(_, retry_at)| *retry_at).map(Moment::from),
    }
}
