//! Events.

use thalweg_api::{CongestionChangeName, Event, EventBody, FlowName, KeyChange};
use thalweg_control::routes::RuleFaults;
use thalweg_measure::collector::{AddressChange, CongestionChange, CongestionEvent};
use thalweg_measure::detect::{Cheetah, CheetahEnd, Finding};
use thalweg_measure::tasks;
use thalweg_sketch::Estimate;
use thalweg_watch::json::EstimateBounds;

use super::{flow_rate, rate};
use crate::event::{EventKind, TrafficChange};
use crate::link_name::link_name;
use crate::{event, hub};

fn change_name(change: CongestionChange) -> CongestionChangeName {
    match change {
        CongestionChange::Began => CongestionChangeName::Began,
        CongestionChange::Cleared => CongestionChangeName::Cleared,
        CongestionChange::Repeated => CongestionChangeName::Repeated,
    }
}

/// Converts an event.
pub fn event(published: &hub::Published) -> Event {
    let event::Event { collector, switch, time, emitted, kind } = &published.event;
    Event {
        id: published.id,
        collector: collector.to_string(),
        switch: switch.to_string(),
        time: (*time).into(),
        emitted: (*emitted).into(),
        body: body(kind, switch),
    }
}

fn body(kind: &EventKind, switch: &str) -> EventBody {
    match kind {
        EventKind::Congestion(event) => congestion(event, switch),
        EventKind::AddressChange(change) => address_change(change),
        EventKind::Cheetah(Finding::Began(cheetah)) => began(cheetah),
        EventKind::Cheetah(Finding::Ended(end)) => ended(end),
        EventKind::State(state) => EventBody::Collector { state: super::state(state) },
        EventKind::Decision(decision, names) => super::decision(decision, names).into(),
        EventKind::Action(report, names) => super::action(report, names).into(),
        EventKind::Redirection(report) => EventBody::Redirection { redirection: super::redirection(report) },
        EventKind::TrafficChange(change) => traffic_change(change),
        EventKind::Mastership(is_master) => EventBody::Mastership { master: *is_master },
        EventKind::Poll { name, error } => {
            EventBody::Poll { poll: name.to_string(), available: error.is_none(), error: error.clone() }
        }
        EventKind::Link { name, is_up } => EventBody::Link { link: name.clone(), up: *is_up },
        EventKind::RuleFaults(RuleFaults { missing, changed, foreign }) => {
            EventBody::RuleFaults { missing: *missing, changed: *changed, foreign: *foreign }
        }
    }
}

fn congestion(event: &CongestionEvent, switch: &str) -> EventBody {
    EventBody::Congestion {
        link: link_name(switch, event.link.side).to_string(),
        change: change_name(event.change),
        threshold: event.threshold,
        rule: event.rule,
        capacity_bps: event.link.capacity.0,
        rate: rate(event.link.rate),
        smoothed_bps: event.link.smoothed,
        utilisation: event.link.utilisation,
        topology_version: event.version,
        flows: event.flows.iter().map(flow_rate).collect(),
        omitted_flows: event.flows_left_out,
    }
}

fn traffic_change(change: &TrafficChange) -> EventBody {
    let TrafficChange { task, period: (start, end), keys, omitted } = change;
    let key = |(name, [change, before, now]): &(tasks::FlowName, [Estimate; 3])| {
        let EstimateBounds { lower, upper, .. } = EstimateBounds::from(change);
        KeyChange {
            key: name.to_string(),
            change: change.value,
            change_lower: lower,
            change_upper: upper,
            before: before.value,
            now: now.value,
        }
    };
    EventBody::TrafficChange {
        task: task.to_string(),
        start: (*start).into(),
        end: (*end).into(),
        keys: keys.iter().map(key).collect(),
        omitted_keys: *omitted as u64,
    }
}

fn address_change(change: &AddressChange) -> EventBody {
    EventBody::AddressChange {
        flow: FlowName::from(&change.key),
        key: change.key.to_string(),
        previous_dst_mac: change.from.destination.to_string(),
        dst_mac: change.to.destination.to_string(),
        src_mac: change.to.source.to_string(),
    }
}

fn began(cheetah: &Cheetah) -> EventBody {
    EventBody::Cheetah {
        flow: FlowName::from(&cheetah.key),
        key: cheetah.key.to_string(),
        flow_start: cheetah.first.into(),
        rate_bps: cheetah.rate.0,
        bytes: cheetah.bytes.0,
    }
}

fn ended(end: &CheetahEnd) -> EventBody {
    EventBody::CheetahEnd {
        flow: FlowName::from(&end.key),
        key: end.key.to_string(),
        flow_start: end.first.into(),
        flow_end: end.last.into(),
        packets: end.packets,
        bytes: end.bytes.0,
    }
}
