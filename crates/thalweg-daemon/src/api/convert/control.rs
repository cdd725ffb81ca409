//! The controller: its state, decisions and actions.

use thalweg_api::{
    Action, Alternative, Control, ControlCounts, DampedLink, Decision, FlowMoves, Outcome, PairTree, Paths,
    TreePath, UnresponsiveHost, Verdict,
};
use thalweg_control::decide::{self, Cause};

use crate::control::{self, ActionOutcome, ActionReport, ControlReport, Names, PathsReport};

/// Converts the state of the controller.
pub fn control(control: &control::Control) -> Control {
    let report = control.state().report();
    let ControlReport { now, has_routes, is_frozen, addresses, counters, pins, unresponsive, names, .. } =
        report;
    let pair_tree = |&(pair, tree): &(thalweg_control::Pair, u8)| PairTree {
        src: names.host(pair.source).to_owned(),
        dst: names.host(pair.destination).to_owned(),
        tree,
    };
    let [rerouted, kept, held_down, move_limited, pinned, _] = counters.decisions;
    Control {
        decider: control.config().decider.name().to_owned(),
        actuator: control.config().actuator.name().to_owned(),
        time: now.into(),
        master: report.is_master,
        has_routes,
        dry_run: control.config().options.dry_run,
        frozen: is_frozen,
        trees: addresses,
        pins: pins.iter().map(pair_tree).collect(),
        unresponsive_hosts: unresponsive
            .into_iter()
            .map(|(host, failed_actions)| UnresponsiveHost {
                host: names.host(host).to_owned(),
                failed_actions,
            })
            .collect(),
        failed_links: report.failed_links.iter().map(|&link| names.cable(link).1.to_owned()).collect(),
        damped_links: report
            .held_links
            .iter()
            .map(|&(link, until)| DampedLink { link: names.cable(link).1.to_owned(), until: until.into() })
            .collect(),
        broken_paths: report.broken_paths.iter().map(pair_tree).collect(),
        counts: ControlCounts {
            events: control.events(),
            lost_events: control.events_lost(),
            congestion_events: counters.congestions,
            polls: counters.polls,
            rerouted,
            kept,
            held_down,
            move_limited,
            pinned,
            flow_moves: counters.flow_moves,
            withheld: counters.withheld,
            throttled: counters.throttled,
            refused: counters.refused,
            started: counters.started,
            confirmed: counters.confirmed,
            timed_out: counters.timed_out,
            superseded: counters.superseded,
            reverted: counters.broken_paths,
            repeated_arp_requests: report.refreshed,
            repaired_rules: report.routes.corrected,
            recomputed_routes: report.routes.rerouted,
            left_failed_links: counters.left_failed,
            link_failures: report.links.failures,
            damped_link_failures: report.links.damped,
            link_holds: report.links.holds,
        },
    }
}

/// Converts the paths from one host to another.
pub fn paths(report: PathsReport) -> Paths {
    let PathsReport { pair, pinned, moves, flows, paths, names } = report;
    let path = |path: control::PathInfo| TreePath {
        tree: path.address,
        dst_mac: path.mac.to_string(),
        links: path.links.iter().map(|&link| names.link(link).to_owned()).collect(),
        capacity_bps: path.capacity.0,
    };
    Paths {
        src: names.host(pair.source).to_owned(),
        dst: names.host(pair.destination).to_owned(),
        pinned_tree: pinned,
        reroutes: moves,
        flows: flows
            .into_iter()
            .map(|known| FlowMoves { key: known.flow.to_string(), moves: known.moves })
            .collect(),
        paths: paths.into_iter().map(path).collect(),
    }
}

/// Converts a decision.
pub fn decision(decision: &decide::Decision, names: &Names) -> Decision {
    let alternative = |way: &decide::Alternative| Alternative {
        tree: way.address,
        expected_rate_bps: way.expected.0,
        bottleneck: names.link(way.tightest).to_owned(),
    };
    Decision {
        time: decision.time.into(),
        src: names.host(decision.pair.source).to_owned(),
        dst: names.host(decision.pair.destination).to_owned(),
        verdict: verdict(decision.verdict),
        link: match decision.cause {
            Cause::Congestion(link) => Some(names.link(link).to_owned()),
            Cause::Poll => None,
        },
        rate_bps: decision.rate.0,
        from_tree: decision.from,
        tree: decision.to,
        flow_moves: decision.flow_moves,
        alternatives: decision.alternatives.iter().map(alternative).collect(),
    }
}

/// Converts an action.
pub fn action(report: &ActionReport, names: &Names) -> Action {
    let ActionReport { action, times, outcome } = report;
    let (outcome, decision_to_path_ns, error) = match outcome {
        ActionOutcome::Started => (Outcome::Started, None, None),
        ActionOutcome::Confirmed(after) => (Outcome::Confirmed, Some(after.0), None),
        ActionOutcome::TimedOut => (Outcome::TimedOut, None, None),
        ActionOutcome::Superseded => (Outcome::Superseded, None, None),
        ActionOutcome::Refused(error) => (Outcome::Refused, None, Some(error.clone())),
    };
    Action {
        action: action.id.0,
        src: names.host(action.pair.source).to_owned(),
        dst: names.host(action.pair.destination).to_owned(),
        tree: action.address,
        decided: action.issued.into(),
        handled: times.map(|times| times.handled.into()),
        started: times.map(|times| times.started.into()),
        deadline: action.deadline.into(),
        outcome,
        decision_to_path_ns,
        error,
    }
}

fn verdict(verdict: decide::Verdict) -> Verdict {
    match verdict {
        decide::Verdict::Reroute => Verdict::Reroute,
        decide::Verdict::Keep => Verdict::Keep,
        decide::Verdict::HoldDown => Verdict::HoldDown,
        decide::Verdict::MoveLimit => Verdict::MoveLimit,
        decide::Verdict::Pinned => Verdict::Pinned,
        decide::Verdict::Withheld => Verdict::Withheld,
    }
}
