//! Metrics of the emulation and of the controller.

use super::{counter, gauge, histogram};
use crate::metrics::Metric;

/// The emulation and the controller.
pub(super) const CONTROL: &[Metric] = &[
    // The emulation.
    counter("thalweg_emulated_seconds_total", &[], "Emulated time. Absent without [emulate].", |s, out| {
        if let Some(emulation) = s.parts.network.emulation() {
            out.put(&[], emulation.now().0 as f64 / 1e9);
        }
    }),
    counter(
        "thalweg_emulation_lag_seconds_total",
        &[],
        "Time by which the emulation fell behind its configured pace.",
        |s, out| {
            if let Some(emulation) = s.parts.network.emulation() {
                out.put(&[], emulation.lag().0 as f64 / 1e9);
            }
        },
    ),
    // The controller.
    gauge("thalweg_control_frozen", &[], "1 if the controller is frozen, else 0.", |s, out| {
        if let Some(control) = &s.parts.control {
            out.put(&[], u8::from(control.state().report().is_frozen));
        }
    }),
    gauge("thalweg_control_pins", &[], "Pairs of hosts that are pinned to a tree.", |s, out| {
        if let Some(control) = &s.parts.control {
            out.put(&[], control.state().report().pins.len());
        }
    }),
    gauge(
        "thalweg_control_unresponsive_hosts",
        &[],
        "Hosts that ignored several reroutes in a row.",
        |s, out| {
            if let Some(control) = &s.parts.control {
                out.put(&[], control.state().report().unresponsive.len());
            }
        },
    ),
    counter(
        "thalweg_control_events_total",
        &[],
        "Events that collectors sent to the controller.",
        |s, out| {
            if let Some(control) = &s.parts.control {
                out.put(&[], control.events());
            }
        },
    ),
    counter(
        "thalweg_control_events_lost_total",
        &[],
        "Events that the controller lost: its queue was full, or an event of a remote daemon was missed or invalid.",
        |s, out| {
            if let Some(control) = &s.parts.control {
                out.put(&[], control.events_lost());
            }
        },
    ),
    counter(
        "thalweg_control_decisions_total",
        &["verdict"],
        "Decisions by verdict: `reroute`; `keep`, no better path; `hold_down`, rerouted a moment ago; `move_limit`, another \
         path is better, but a flow of the pair was rerouted three times; `pinned`; \
         `withheld`, would be rerouted, but the controller is frozen, on a dry run or has too many pending actions.",
        |s, out| {
            if let Some(control) = &s.parts.control {
                let decided = control.state().report().counters.decisions;
                let verdicts = ["reroute", "keep", "hold_down", "move_limit", "pinned", "withheld"];
                for (verdict, count) in verdicts.into_iter().zip(decided) {
                    out.put(&[verdict], count);
                }
            }
        },
    ),
    counter(
        "thalweg_control_flow_moves_total",
        &["number"],
        "Reroutes that the `greedy` decider issued, by their number for that flow of the pair that was rerouted most: `1` to `3`.",
        |s, out| {
            if let Some(control) = &s.parts.control {
                let moves = control.state().report().counters.flow_moves;
                for (number, count) in ["1", "2", "3"].into_iter().zip(moves) {
                    out.put(&[number], count);
                }
            }
        },
    ),
    counter(
        "thalweg_control_actions_total",
        &["outcome"],
        "Actions by outcome. `started` counts all that were started: `confirmed`, a collector saw a packet on the new path; \
         `timed_out`, none was seen in time; `superseded`, replaced by a later action. Not started: `refused` by the actuator; \
         `throttled`, too many were pending; `withheld`, the controller is frozen or on a dry run.",
        |s, out| {
            if let Some(control) = &s.parts.control {
                let counters = control.state().report().counters;
                out.put(&["started"], counters.started);
                out.put(&["confirmed"], counters.confirmed);
                out.put(&["timed_out"], counters.timed_out);
                out.put(&["superseded"], counters.superseded);
                out.put(&["refused"], counters.refused);
                out.put(&["throttled"], counters.throttled);
                out.put(&["withheld"], counters.withheld);
            }
        },
    ),
    gauge(
        "thalweg_control_switches",
        &["state"],
        "OpenFlow switches: `in_sync`, their rules are those that they should have; `out_of_sync`, they differ, or the switch is \
         not connected.",
        |s, out| {
            if let Some(switches) =
                s.parts.control.as_ref().and_then(|control| control.state().report().switches)
            {
                out.put(&["in_sync"], switches.in_sync);
                out.put(&["out_of_sync"], switches.out_of_sync);
            }
        },
    ),
    counter(
        "thalweg_control_rules_total",
        &["change"],
        "Rules that OpenFlow installed in switches, or removed.",
        |s, out| {
            if let Some(switches) =
                s.parts.control.as_ref().and_then(|control| control.state().report().switches)
            {
                out.put(&["installed"], switches.counters.written);
                out.put(&["removed"], switches.counters.removed);
            }
        },
    ),
    counter(
        "thalweg_control_rule_faults_total",
        &["fault"],
        "OpenFlow rules that others removed (`missing`), changed (`changed`) or added under Thalweg's cookies (`foreign`), and that \
         were repaired.",
        |s, out| {
            if let Some(switches) =
                s.parts.control.as_ref().and_then(|control| control.state().report().switches)
            {
                out.put(&["missing"], switches.counters.faults.missing);
                out.put(&["changed"], switches.counters.faults.changed);
                out.put(&["foreign"], switches.counters.faults.foreign);
            }
        },
    ),
    gauge(
        "thalweg_control_master",
        &[],
        "1 if this daemon is the master of the OpenFlow switches, 0 if it is a standby.",
        |s, out| {
            if let Some(switches) =
                s.parts.control.as_ref().and_then(|control| control.state().report().switches)
            {
                out.put(&[], u64::from(switches.is_master));
            }
        },
    ),
    counter(
        "thalweg_control_master_claims_total",
        &[],
        "Times that this daemon became the master of the OpenFlow switches.",
        |s, out| {
            if let Some(switches) =
                s.parts.control.as_ref().and_then(|control| control.state().report().switches)
            {
                out.put(&[], switches.counters.claims);
            }
        },
    ),
    gauge("thalweg_control_failed_links", &[], "Links of the network that are down.", |s, out| {
        if let Some(control) = &s.parts.control {
            out.put(&[], control.state().report().failed_links.len());
        }
    }),
    gauge("thalweg_control_damped_links", &[], "Links that are held down because they flapped.", |s, out| {
        if let Some(control) = &s.parts.control {
            out.put(&[], control.state().report().held_links.len());
        }
    }),
    counter(
        "thalweg_control_link_failures_total",
        &[],
        "Failures of links, according to switches, carriers and reports.",
        |s, out| {
            if let Some(control) = &s.parts.control {
                out.put(&[], control.state().report().links.failures);
            }
        },
    ),
    counter(
        "thalweg_control_link_failures_damped_total",
        &[],
        "Failures of links that were held down because they flapped. They changed nothing.",
        |s, out| {
            if let Some(control) = &s.parts.control {
                out.put(&[], control.state().report().links.damped);
            }
        },
    ),
    counter(
        "thalweg_control_link_holds_total",
        &[],
        "Times that a link was held down because it flapped.",
        |s, out| {
            if let Some(control) = &s.parts.control {
                out.put(&[], control.state().report().links.holds);
            }
        },
    ),
    counter(
        "thalweg_control_route_changes_total",
        &[],
        "Times that the controller recomputed the routes because links went down or came up.",
        |s, out| {
            if let Some(control) = &s.parts.control {
                out.put(&[], control.state().report().routes.rerouted);
            }
        },
    ),
    counter(
        "thalweg_control_audits_total",
        &[],
        "Comparisons of the OpenFlow rules of a connected switch with those that were sent.",
        |s, out| {
            if let Some(switches) =
                s.parts.control.as_ref().and_then(|control| control.state().report().switches)
            {
                out.put(&[], switches.counters.audits);
            }
        },
    ),
    counter(
        "thalweg_control_batches_total",
        &["outcome"],
        "Batches of OpenFlow flow-mods. `failed`: refused, timed out or not sent; the rules of the switch are then read back.",
        |s, out| {
            if let Some(switches) =
                s.parts.control.as_ref().and_then(|control| control.state().report().switches)
            {
                out.put(&["succeeded"], switches.counters.done);
                out.put(&["failed"], switches.counters.failed);
            }
        },
    ),
    histogram(
        "thalweg_control_decision_to_path_seconds",
        &[],
        "Packet time from a decision to the first packet that a collector saw on the new path.",
        |s, out| {
            if let Some(control) = &s.parts.control {
                out.put_latency(&[], &control.decision_to_path());
            }
        },
    ),
];
