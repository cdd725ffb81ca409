//! The controller: how it does, what it has decided, what came of that.

use thalweg_api::{
    Action, Alternative, Control, ControlCounts, Decision, Outcome, Pin, Unresponsive, Verdict, Way, Ways,
};
use thalweg_control::decide::{self, Cause};

use crate::control::{self, ActionOutcome, ActionReport, ControlReport, Names, PathsReport};

/// The controller, and how it does.
pub fn control(control: &control::Control) -> Control {
    let report = control.state().report();
    let ControlReport { now, has_routes, is_frozen, addresses, counters, pins, unresponsive, names, .. } =
        report;
    let pin = |&(pair, address): &(thalweg_control::Pair, u8)| Pin {
        source: names.host(pair.source).to_owned(),
        destination: names.host(pair.destination).to_owned(),
        address,
    };
    let [goes, stays, settles, pinned] = counters.decisions;
    Control {
        decider: control.config().decider.name().to_owned(),
        actuator: control.config().actuator.name().to_owned(),
        now: now.into(),
        has_routes,
        dry_run: control.config().options.dry_run,
        frozen: is_frozen,
        addresses,
        pins: pins.iter().map(pin).collect(),
        unresponsive: unresponsive
            .into_iter()
            .map(|(host, actions)| Unresponsive { host: names.host(host).to_owned(), actions })
            .collect(),
        astray: report.broken_paths.iter().map(pin).collect(),
        counts: ControlCounts {
            notices: control.events(),
            notices_lost: control.events_lost(),
            congestions: counters.congestions,
            polls: counters.polls,
            goes,
            stays,
            settles,
            pinned,
            withheld: counters.withheld,
            crowded: counters.crowded,
            refused: counters.refused,
            begun: counters.started,
            confirmed: counters.confirmed,
            expired: counters.expired,
            superseded: counters.superseded,
            astray: counters.astray,
            refreshed: report.refreshed,
            rules_corrected: report.routes.corrected,
        },
    }
}

/// The ways from one host to another.
pub fn ways(report: PathsReport) -> Ways {
    let PathsReport { pair, pinned, paths, names } = report;
    let way = |way: control::PathInfo| Way {
        address: way.address,
        destination_mac: way.mac.to_string(),
        links: way.links.iter().map(|&link| names.link(link).to_owned()).collect(),
        capacity_bps: way.capacity.0,
    };
    Ways {
        source: names.host(pair.source).to_owned(),
        destination: names.host(pair.destination).to_owned(),
        pinned,
        ways: paths.into_iter().map(way).collect(),
    }
}

/// A decision, its numbers called so.
pub fn decision(decision: &decide::Decision, names: &Names) -> Decision {
    let way = |way: &decide::Alternative| Alternative {
        address: way.address,
        expected_bps: way.expected.0,
        tightest: names.link(way.tightest).to_owned(),
    };
    Decision {
        moment: decision.time.into(),
        source: names.host(decision.pair.source).to_owned(),
        destination: names.host(decision.pair.destination).to_owned(),
        verdict: verdict(decision.verdict),
        link: match decision.cause {
            Cause::Congestion(link) => Some(names.link(link).to_owned()),
            Cause::Poll => None,
        },
        rate_bps: decision.rate.0,
        from: decision.from,
        to: decision.to,
        alternatives: decision.alternatives.iter().map(way).collect(),
    }
}

/// An action, its numbers called so.
pub fn action(report: &ActionReport, names: &Names) -> Action {
    let ActionReport { action, times, outcome } = report;
    let (outcome, took_ns, error) = match outcome {
        ActionOutcome::Started => (Outcome::Begun, None, None),
        ActionOutcome::Confirmed(after) => (Outcome::Confirmed, Some(after.0), None),
        ActionOutcome::Expired => (Outcome::Expired, None, None),
        ActionOutcome::Superseded => (Outcome::Superseded, None, None),
        ActionOutcome::Refused(error) => (Outcome::Refused, None, Some(error.clone())),
    };
    Action {
        action: action.id.0,
        source: names.host(action.pair.source).to_owned(),
        destination: names.host(action.pair.destination).to_owned(),
        address: action.address,
        decided: action.issued.into(),
        handled: times.map(|times| times.handled.into()),
        started: times.map(|times| times.started.into()),
        deadline: action.deadline.into(),
        outcome,
        took_ns,
        error,
    }
}

fn verdict(verdict: decide::Verdict) -> Verdict {
    match verdict {
        decide::Verdict::Reroute => Verdict::Goes,
        decide::Verdict::Keep => Verdict::Stays,
        decide::Verdict::Settling => Verdict::Settles,
        decide::Verdict::Pinned => Verdict::Pinned,
    }
}
