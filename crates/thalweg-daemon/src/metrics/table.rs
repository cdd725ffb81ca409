//! All metrics.

use thalweg_api::problem::Code;
use thalweg_control::threshold::Unusable;
use thalweg_measure::collector::{LinkReport, PortDirection};
use thalweg_measure::meter::record::EndReason;
use thalweg_network::Case;
use thalweg_records::export::Reason;
use thalweg_wire::parse::Malformed;

use super::{CollectorSnapshot, Kind, Metric, Samples, Snapshot};
use crate::collectors::CollectorCounters;
use crate::event::CollectorState;

/// Labels of a collector's metrics.
const COLLECTOR: &[&str] = &["collector"];

/// Labels of a link's metrics.
const LINK: &[&str] = &["collector", "switch", "port", "direction"];

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    read: fn(&Snapshot, &mut Samples<'_>),
) -> Metric {
    Metric { name, kind: Kind::Counter, help, labels, read }
}

const fn gauge(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    read: fn(&Snapshot, &mut Samples<'_>),
) -> Metric {
    Metric { name, kind: Kind::Gauge, help, labels, read }
}

const fn histogram(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    read: fn(&Snapshot, &mut Samples<'_>),
) -> Metric {
    Metric { name, kind: Kind::Histogram, help, labels, read }
}

/// Labels of a poll's metrics.
const POLL: &[&str] = &["poll"];

/// Puts a number of both queues of each poll.
fn each_queue(snapshot: &Snapshot, out: &mut Samples<'_>, read: impl Fn((u64, u64)) -> u64) {
    for (name, report) in &snapshot.polls {
        out.put(&[name, "primary"], read(report.counts.primary));
        if let Some(scavenger) = report.counts.scavenger {
            out.put(&[name, "scavenger"], read(scavenger));
        }
    }
}

/// Puts a number of each collector that answered.
fn each(snapshot: &Snapshot, out: &mut Samples<'_>, read: impl Fn(&CollectorCounters) -> u64) {
    for CollectorSnapshot { handle, counters, .. } in &snapshot.collectors {
        if let Some(counters) = counters {
            out.put(&[handle.name()], read(counters));
        }
    }
}

/// Puts numbers by a second label, of each collector that answered.
fn each_by<const N: usize>(
    snapshot: &Snapshot,
    out: &mut Samples<'_>,
    read: impl Fn(&CollectorCounters) -> [(&'static str, u64); N],
) {
    for CollectorSnapshot { handle, counters, .. } in &snapshot.collectors {
        for (label, count) in counters.iter().flat_map(&read) {
            out.put(&[handle.name(), label], count);
        }
    }
}

/// Puts a value of each link.
fn each_link(snapshot: &Snapshot, out: &mut Samples<'_>, read: impl Fn(&LinkReport) -> f64) {
    for CollectorSnapshot { handle, links, .. } in &snapshot.collectors {
        let switch = &handle.description().switch;
        for link in links {
            let port = format!("p{}", link.side.port.0);
            let direction = match link.side.direction {
                PortDirection::Input => "in",
                PortDirection::Output => "out",
            };
            out.put(&[handle.name(), switch, &port, direction], read(link));
        }
    }
}

/// All metrics, in the order of the reference.
pub const METRICS: &[Metric] = &[
    // The daemon.
    gauge(
        "thalweg_build_info",
        &["version"],
        "Always 1. The label is the version of the program.",
        |s, out| {
            out.put(&[s.parts.version()], 1);
        },
    ),
    gauge(
        "thalweg_start_time_seconds",
        &[],
        "Start time of the daemon, in seconds since 1970-01-01 UTC.",
        |s, out| {
            out.put(&[], s.parts.started.0 as f64 / 1e9);
        },
    ),
    gauge("thalweg_network_version", &[], "Number of the current network version.", |s, out| {
        if let Some(versions) = s.parts.network.versions() {
            out.put(&[], versions.newest().number);
        }
    }),
    // Collectors.
    gauge(
        "thalweg_collector_state",
        &["collector", "switch", "state"],
        "1 for the current state of the collector, 0 for the others.",
        |s, out| {
            for CollectorSnapshot { handle, .. } in &s.collectors {
                let now = handle.state().name();
                for state in CollectorState::NAMES {
                    let is_now = u8::from(state == now);
                    out.put(&[handle.name(), &handle.description().switch, state], is_now);
                }
            }
        },
    ),
    counter(
        "thalweg_collector_restarts_total",
        COLLECTOR,
        "Times the collector's source was reopened after a failure.",
        |s, out| s.collectors.iter().for_each(|it| out.put(&[it.handle.name()], it.handle.restarts())),
    ),
    counter(
        "thalweg_collector_requests_refused_total",
        COLLECTOR,
        "Requests to the collector that were refused because its request queue was full.",
        |s, out| {
            s.collectors.iter().for_each(|it| out.put(&[it.handle.name()], it.handle.requests_refused()))
        },
    ),
    counter(
        "thalweg_collector_requests_timed_out_total",
        COLLECTOR,
        "Requests to the collector that timed out.",
        |s, out| {
            s.collectors.iter().for_each(|it| out.put(&[it.handle.name()], it.handle.requests_timed_out()))
        },
    ),
    gauge(
        "thalweg_collector_memory_bytes",
        COLLECTOR,
        "Memory of the flow table, the rate estimator and the cheetah detector.",
        |s, out| each(s, out, |counters| counters.memory.0),
    ),
    // Frames.
    counter("thalweg_frames_total", COLLECTOR, "Frames read.", |s, out| {
        each(s, out, |counters| counters.source.frames);
    }),
    counter("thalweg_ip_packets_total", COLLECTOR, "IP packets among the frames read.", |s, out| {
        each(s, out, |counters| counters.intake.ip.packets);
    }),
    counter(
        "thalweg_ip_bytes_total",
        COLLECTOR,
        "Bytes of these packets, IP header included, link layer excluded.",
        |s, out| {
            each(s, out, |counters| counters.intake.ip.bytes.0);
        },
    ),
    counter(
        "thalweg_kernel_drops_total",
        COLLECTOR,
        "Frames that the kernel dropped because the capture ring was full.",
        |s, out| each(s, out, |counters| counters.source.kernel_drops),
    ),
    counter(
        "thalweg_kernel_freezes_total",
        COLLECTOR,
        "Times the capture ring was full and the kernel stopped filling it.",
        |s, out| each(s, out, |counters| counters.source.kernel_freezes),
    ),
    counter(
        "thalweg_filtered_frames_total",
        COLLECTOR,
        "Frames that the capture filter rejected in the daemon. Frames rejected in the kernel are not counted.",
        |s, out| each(s, out, |counters| counters.source.filtered),
    ),
    counter(
        "thalweg_capture_records_skipped_total",
        COLLECTOR,
        "Records of a capture file that contain no frame.",
        |s, out| each(s, out, |counters| counters.source.other_records),
    ),
    counter(
        "thalweg_unparsed_frames_total",
        &["collector", "reason"],
        "Frames that could not be parsed, by reason: not IP, an unsupported link type, or malformed headers.",
        |s, out| {
            each_by::<{ Malformed::ALL.len() + 2 }>(s, out, |counters| {
                let intake = &counters.intake;
                std::array::from_fn(|kind| match kind {
                    0 => ("non_ip", intake.non_ip.packets),
                    1 => ("unsupported_link", intake.unsupported_link.packets),
                    _ => (Malformed::ALL[kind - 2].name(), intake.malformed[kind - 2].packets),
                })
            });
        },
    ),
    counter(
        "thalweg_out_of_order_frames_total",
        COLLECTOR,
        "Frames with an earlier timestamp than the frame before.",
        |s, out| each(s, out, |counters| counters.intake.backwards),
    ),
    counter(
        "thalweg_packets_without_ports_total",
        &["collector", "reason"],
        "Packets without source and destination port: later fragments (`fragment`), or cut off by the snap length (`not_captured`).",
        |s, out| {
            each_by(s, out, |counters| {
                [
                    ("fragment", counters.intake.portless_fragments),
                    ("not_captured", counters.intake.ports_not_captured),
                ]
            });
        },
    ),
    // Flows.
    gauge("thalweg_flows", COLLECTOR, "Flows in the flow table.", |s, out| {
        each(s, out, |counters| counters.flows);
    }),
    gauge("thalweg_flow_capacity", COLLECTOR, "Maximum number of flows in the flow table.", |s, out| {
        each(s, out, |counters| counters.flow_capacity);
    }),
    counter("thalweg_flows_started_total", COLLECTOR, "Flows started.", |s, out| {
        each(s, out, |counters| counters.collector.flow_table.flows);
    }),
    counter(
        "thalweg_flow_records_total",
        &["collector", "reason"],
        "Flow records ipfix_export, by end reason. `evicted`: the flow table was full.",
        |s, out| {
            each_by::<{ EndReason::ALL.len() }>(s, out, |counters| {
                EndReason::ALL.map(|reason| (reason.name(), counters.collector.flow_table.ended(reason)))
            });
        },
    ),
    counter(
        "thalweg_flow_records_lost_total",
        &["collector", "reason"],
        "Flow records lost: `queue_full`, the disk was too slow; `write_failed`, the file could not be written.",
        |s, out| {
            for CollectorSnapshot { handle, .. } in &s.collectors {
                let lost = handle.records_lost();
                out.put(&[handle.name(), "queue_full"], lost.queue_full);
                out.put(&[handle.name(), "write_failed"], lost.write_failed);
            }
        },
    ),
    counter("thalweg_ipfix_messages_total", &[], "IPFIX messages sent.", |s, out| {
        if let Some((_, tallies)) = s.ipfix_export() {
            out.put(&[], tallies.sent().messages);
        }
    }),
    counter(
        "thalweg_ipfix_flow_records_total",
        &[],
        "Flow records sent as IPFIX. Both directions of a flow are one record.",
        |s, out| {
            if let Some((_, tallies)) = s.ipfix_export() {
                out.put(&[], tallies.sent().flow_records);
            }
        },
    ),
    counter("thalweg_ipfix_bytes_total", &[], "Bytes of IPFIX messages sent.", |s, out| {
        if let Some((_, tallies)) = s.ipfix_export() {
            out.put(&[], tallies.sent().octets);
        }
    }),
    counter(
        "thalweg_ipfix_flow_records_lost_total",
        &["reason"],
        "Flow records not sent as IPFIX: `queue_full`, the receiver was too slow; `no_session`, there was no connection and \
         the buffer was full; `send_failed`, the transport reported an error.",
        |s, out| {
            if let Some((_, tallies)) = s.ipfix_export() {
                for reason in Reason::ALL {
                    out.put(&[reason.name()], tallies.not_sent(reason).flow_records);
                }
            }
        },
    ),
    gauge("thalweg_ipfix_session_up", &[], "1 if connected to the IPFIX receiver, else 0.", |s, out| {
        if let Some((_, tallies)) = s.ipfix_export() {
            out.put(&[], u64::from(tallies.has_session()));
        }
    }),
    counter(
        "thalweg_ipfix_sessions_total",
        &["outcome"],
        "Attempts to connect to the IPFIX receiver.",
        |s, out| {
            if let Some((_, tallies)) = s.ipfix_export() {
                let (started, failed) = tallies.sessions();
                out.put(&["started"], started);
                out.put(&["failed"], failed);
            }
        },
    ),
    counter("thalweg_store_rows_total", &[], "Flow rows written to Parquet files.", |s, out| {
        if let Some(store) = s.flow_store() {
            out.put(&[], store.written);
        }
    }),
    counter(
        "thalweg_store_rows_lost_total",
        &["reason"],
        "Flow rows not written to Parquet files: `queue_full`, the disk was too slow; `spool_full`, the spool reached its \
         limit; `spool_failed`, the spool could not be written; `spool_damaged`, the spool could not be read back.",
        |s, out| {
            if let Some(store) = s.flow_store() {
                out.put(&["queue_full"], store.lost.queue_full);
                out.put(&["spool_full"], store.lost.spool_full);
                out.put(&["spool_failed"], store.lost.spool_failed);
                out.put(&["spool_damaged"], store.lost.spool_damaged);
            }
        },
    ),
    gauge(
        "thalweg_store_spool_bytes",
        &[],
        "Size of the spool that precedes the Parquet files.",
        |s, out| {
            if let Some(store) = s.flow_store() {
                out.put(&[], store.spool_bytes);
            }
        },
    ),
    counter("thalweg_cheetah_flows_total", COLLECTOR, "Cheetah flows detected, per direction.", |s, out| {
        each(s, out, |counters| counters.collector.flow_table.cheetahs);
    }),
    counter(
        "thalweg_untracked_milestones_total",
        COLLECTOR,
        "Milestones that the cheetah detector had no room to track. Cheetah flows may have been missed.",
        |s, out| each(s, out, |counters| counters.collector.untracked),
    ),
    counter(
        "thalweg_undecided_flows_total",
        COLLECTOR,
        "Flow directions that came within 1/64 of the cheetah threshold, may have exceeded it, and were not reported.",
        |s, out| each(s, out, |counters| counters.collector.undecided),
    ),
    // Rates.
    gauge(
        "thalweg_sampling_ratio",
        COLLECTOR,
        "Share of mirrored packets that arrive. Absent until TCP flows allow an estimate.",
        |s, out| {
            for CollectorSnapshot { handle, counters, .. } in &s.collectors {
                if let Some(ratio) = counters.as_ref().and_then(|counters| counters.sampling_ratio) {
                    out.put(&[handle.name()], ratio.value);
                }
            }
        },
    ),
    counter("thalweg_rate_estimates_total", COLLECTOR, "Rate estimates.", |s, out| {
        each(s, out, |counters| counters.collector.rates.estimates);
    }),
    counter(
        "thalweg_rate_estimates_rejected_total",
        &["collector", "reason"],
        "Rate estimates rejected: `wrapped`, sequence numbers may have wrapped; `implausible`, the rate exceeds that of any link.",
        |s, out| {
            each_by(s, out, |counters| {
                let rates = &counters.collector.rates;
                [("wrapped", rates.wrapped), ("implausible", rates.implausible)]
            });
        },
    ),
    counter(
        "thalweg_retransmitted_samples_total",
        COLLECTOR,
        "Samples of sequence ranges that had been seen before: retransmissions.",
        |s, out| each(s, out, |counters| counters.collector.rates.repeated),
    ),
    counter(
        "thalweg_late_samples_total",
        COLLECTOR,
        "Samples that arrived after later ones of their flow and had not been seen before.",
        |s, out| each(s, out, |counters| counters.collector.rates.late),
    ),
    counter(
        "thalweg_ambiguous_samples_total",
        &["collector", "reason"],
        "Samples whose path is uncertain: `transition`, the network had just changed; `version_expired`, the network version \
         of their time is no longer kept.",
        |s, out| {
            each_by(s, out, |counters| {
                let rates = &counters.collector.rates;
                [("transition", rates.ambiguous), ("version_expired", rates.forgotten)]
            });
        },
    ),
    counter(
        "thalweg_unattributed_samples_total",
        &["collector", "reason"],
        "Samples whose input or output port could not be inferred, by reason.",
        |s, out| {
            // The first case counts samples whose ports could be inferred.
            each_by::<{ Case::COUNT - 1 }>(s, out, |counters| {
                let cases = &counters.collector.rates.cases;
                std::array::from_fn(|place| (Case::ALL[place + 1].name(), cases[place + 1]))
            });
        },
    ),
    // Links.
    gauge("thalweg_link_capacity_bits_per_second", LINK, "Capacity of the link direction.", |s, out| {
        each_link(s, out, |link| link.capacity.0 as f64);
    }),
    gauge(
        "thalweg_link_rate_bits_per_second",
        LINK,
        "Smoothed sum of the rates of the link's flows, on the wire, framing included.",
        |s, out| each_link(s, out, |link| link.smoothed),
    ),
    gauge("thalweg_link_utilisation_ratio", LINK, "Smoothed rate divided by capacity.", |s, out| {
        each_link(s, out, |link| link.utilisation);
    }),
    gauge("thalweg_link_flows", LINK, "Flow directions on the link with a rate above zero.", |s, out| {
        each_link(s, out, |link| f64::from(link.flows));
    }),
    counter("thalweg_congestion_events_total", COLLECTOR, "Congestion events published.", |s, out| {
        each(s, out, |counters| counters.collector.events);
    }),
    counter(
        "thalweg_congestion_events_delayed_total",
        COLLECTOR,
        "Congestion events delayed by the `min_event_interval` of their rule.",
        |s, out| each(s, out, |counters| counters.collector.events_delayed),
    ),
    // Delays of events.
    histogram(
        "thalweg_event_decision_seconds",
        COLLECTOR,
        "Time from a packet in memory to the publication of its event.",
        |s, out| {
            for CollectorSnapshot { handle, .. } in &s.collectors {
                out.put_latency(&[handle.name()], &handle.decision_latency());
            }
        },
    ),
    histogram(
        "thalweg_event_arrival_seconds",
        COLLECTOR,
        "Time from a packet's timestamp to the publication of its event. Live sources only.",
        |s, out| {
            for CollectorSnapshot { handle, .. } in &s.collectors {
                if handle.description().is_live {
                    out.put_latency(&[handle.name()], &handle.arrival_latency());
                }
            }
        },
    ),
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
    // Isolation.
    gauge("thalweg_redirections", &["phase"], "Active redirections of cheetah flows, by phase.", |s, out| {
        if let Some(isolation) = &s.parts.isolation {
            for (phase, count) in isolation.state().phases() {
                out.put(&[phase.name()], count);
            }
        }
    }),
    counter(
        "thalweg_redirection_requests_total",
        &["result"],
        "Cheetah flows and pins: `started`; `repeated`, the flow was redirected already; `excluded` by prefix or port; `refused`, the \
         maximum number of redirections was reached; `withheld`, on a dry run; `lost`, the queue from the collectors was full.",
        |s, out| {
            if let (Some(isolation), Some(report)) = (&s.parts.isolation, &s.isolation) {
                let it = report.counters;
                let others = it.repeated + it.excluded + it.refused + it.withheld;
                out.put(&["started"], it.requests.saturating_sub(others));
                out.put(&["repeated"], it.repeated);
                out.put(&["excluded"], it.excluded);
                out.put(&["refused"], it.refused);
                out.put(&["withheld"], it.withheld);
                out.put(&["lost"], isolation.findings_lost());
            }
        },
    ),
    counter(
        "thalweg_redirection_changes_total",
        &["change"],
        "Changes of redirections: `redirected`; `confirmed` by counters; `released`; `forced`, released although packets may have been \
         queued; `cancelled` before they were redirected; `failed`; `ineffective`, of those: the \
         scavenger queue did not receive the flow; `put_off`, not released because the flow had sent meanwhile; \
         `restored`, others had removed it; `error`, an attempt of the actuator failed.",
        |s, out| {
            if let Some(report) = &s.isolation {
                let it = report.counters;
                for (name, count) in [
                    ("redirected", it.redirected),
                    ("confirmed", it.confirmed),
                    ("released", it.released),
                    ("forced", it.forced),
                    ("cancelled", it.cancelled),
                    ("failed", it.failed),
                    ("ineffective", it.ineffective),
                    ("put_off", it.put_off),
                    ("restored", it.restored),
                    ("error", it.errors),
                ] {
                    out.put(&[name], count);
                }
            }
        },
    ),
    counter(
        "thalweg_redirected_packets_total",
        &["result"],
        "Packets that matched a redirection: `redirected`; `expired`, its time was over; `released`, the flow was being released.",
        |s, out| {
            if let Some(report) = &s.isolation {
                let it = report.isolator;
                out.put(&["redirected"], it.redirected_packets);
                out.put(&["expired"], it.expired_packets);
                out.put(&["released"], it.released_packets);
            }
        },
    ),
    counter(
        "thalweg_isolation_repairs_total",
        &[],
        "Queues, classes, programs and rules that others had changed or removed, and rules that a router had dropped with its session, and \
         that were set again.",
        |s, out| {
            if let Some(report) = &s.isolation {
                out.put(&[], report.isolator.repairs);
            }
        },
    ),
    counter(
        "thalweg_isolation_checks_failed_total",
        &[],
        "Checks of queues, program, switch and BGP session that found something that could not be repaired.",
        |s, out| {
            if let Some(report) = &s.isolation {
                out.put(&[], report.isolator.failed_checks);
            }
        },
    ),
    counter(
        "thalweg_isolation_commands_total",
        &["result"],
        "Runs of the command of actuator exec, requests of actuator webhook, and rules that actuator openflow added or deleted.",
        |s, out| {
            if let Some(report) = &s.isolation {
                let it = report.isolator;
                out.put(&["succeeded"], it.calls.saturating_sub(it.failed_calls));
                out.put(&["failed"], it.failed_calls);
            }
        },
    ),
    gauge(
        "thalweg_isolation_queue_bytes",
        &["queue"],
        "Bytes in the queues of the isolated link, if the actuator can read that.",
        |s, out| {
            if let Some((scavenger, primary)) = s.isolation.as_ref().and_then(|report| report.queues) {
                for (name, queue) in [("primary", primary), ("scavenger", scavenger)] {
                    if let Some(backlog) = queue.backlog {
                        out.put(&[name], backlog.0);
                    }
                }
            }
        },
    ),
    counter(
        "thalweg_isolation_queue_packets_total",
        &["queue", "result"],
        "Packets that the queues of the isolated link sent or dropped. Starts anew when a queue is replaced.",
        |s, out| {
            if let Some((scavenger, primary)) = s.isolation.as_ref().and_then(|report| report.queues) {
                for (name, queue) in [("primary", primary), ("scavenger", scavenger)] {
                    out.put(&[name, "sent"], queue.sent_packets);
                    out.put(&[name, "dropped"], queue.dropped_packets);
                }
            }
        },
    ),
    // Adaptation of the rate threshold.
    gauge("thalweg_rate_threshold_bps", COLLECTOR, "Rate threshold of cheetah flows.", |s, out| {
        for CollectorSnapshot { handle, .. } in &s.collectors {
            if let Some(rate) = handle.rate_threshold() {
                out.put(&[handle.name()], rate.0);
            }
        }
    }),
    gauge(
        "thalweg_threshold_suggested_bps",
        &["method"],
        "Rate threshold that the traffic suggests: by `simulation` and forecast, and by the `equation` R = alpha (C - r).",
        |s, out| {
            if let Some(report) = &s.threshold {
                out.put(&["simulation"], report.decision.rate.0);
                if let Some(rate) = report.decision.equation {
                    out.put(&["equation"], rate.0);
                }
            }
        },
    ),
    gauge(
        "thalweg_threshold_forecast_error",
        &["method"],
        "Mean of |forecast / threshold - 1| over past periods: of the `forecast`, and of the threshold of the `previous` period.",
        |s, out| {
            if let Some(errors) = s.threshold.as_ref().and_then(|report| report.errors) {
                out.put(&["forecast"], errors.forecast);
                out.put(&["previous"], errors.previous);
            }
        },
    ),
    gauge(
        "thalweg_threshold_reduction_bps",
        &[],
        "By how much the rate threshold is lowered because of losses that the router counts.",
        |s, out| {
            if let Some(regulator) = s.threshold.as_ref().and_then(|report| report.regulator.as_ref()) {
                out.put(&[], regulator.reduction.0);
            }
        },
    ),
    counter(
        "thalweg_threshold_regulations_total",
        &["change"],
        "How often the rate threshold was `lowered` because of losses that the router counts, and `raised` again.",
        |s, out| {
            if let Some(regulator) = s.threshold.as_ref().and_then(|report| report.regulator.as_ref()) {
                out.put(&["lowered"], regulator.lowered);
                out.put(&["raised"], regulator.raised);
            }
        },
    ),
    counter(
        "thalweg_threshold_periods_total",
        &["result"],
        "Periods of traffic: `recorded` completely, or of no use: `incomplete`, `dropped`, `lost`, `clock_stepped`, `idle`, `not_written`.",
        |s, out| {
            if let Some(report) = &s.threshold {
                out.put(&["recorded"], report.counters.recorded);
                for (reason, count) in Unusable::ALL.into_iter().zip(report.counters.unusable) {
                    out.put(&[reason.name()], count);
                }
            }
        },
    ),
    counter(
        "thalweg_threshold_simulations_total",
        &["result"],
        "Recorded periods: `finished`; `failed`; `skipped`, too many waited; `matched`, similar traffic had been simulated before.",
        |s, out| {
            if let Some(report) = &s.threshold {
                let it = report.counters;
                for (name, count) in [
                    ("finished", it.simulated),
                    ("failed", it.failed),
                    ("skipped", it.skipped),
                    ("matched", it.matched),
                ] {
                    out.put(&[name], count);
                }
            }
        },
    ),
    // Polls of interface counters.
    gauge(
        "thalweg_poll_up",
        POLL,
        "Whether the latest poll read the counters of the interface: 1 or 0.",
        |s, out| {
            for (name, report) in &s.polls {
                out.put(&[name], u8::from(report.error.is_none() && report.number > 0));
            }
        },
    ),
    counter("thalweg_polls_total", POLL, "Polls that read interface counters.", |s, out| {
        s.polls.iter().for_each(|(name, report)| out.put(&[name], report.counts.succeeded));
    }),
    counter(
        "thalweg_polls_failed_total",
        &["poll", "reason"],
        "Polls that failed: `timeout`; `connection`, there is none; `refused`, the switch refused a request; `credentials`; \
         `interface`, it does not exist; `counter`, it does not exist; `protocol`; `kernel`.",
        |s, out| {
            for (name, report) in &s.polls {
                report.counts.failed.iter().for_each(|(reason, count)| out.put(&[name, reason], count));
            }
        },
    ),
    counter(
        "thalweg_poll_intervals_unusable_total",
        &["poll", "reason"],
        "Intervals without a loss of the primary queue: the agent `restarted`; counters were `reset` or `went_back`; the interface was \
         `reindexed` or `renamed`; `scope_changed`; `bad_time`; `sum_of_queues`, drops count all queues; `not_counted`.",
        |s, out| {
            for (name, report) in &s.polls {
                report.counts.unusable.iter().for_each(|(reason, count)| out.put(&[name, reason], count));
            }
        },
    ),
    counter(
        "thalweg_poll_packets_total",
        &["poll", "queue"],
        "Packets that arrived at the `primary` or `scavenger` queue of the polled interface, in usable intervals.",
        |s, out| each_queue(s, out, |(packets, _)| packets),
    ),
    counter(
        "thalweg_poll_drops_total",
        &["poll", "queue"],
        "Packets that the `primary` or `scavenger` queue of the polled interface dropped, in usable intervals.",
        |s, out| each_queue(s, out, |(_, drops)| drops),
    ),
    gauge(
        "thalweg_poll_loss_ratio",
        POLL,
        "Loss of the primary queue over the latest `average` intervals, from 0 to 1.",
        |s, out| {
            for (name, report) in &s.polls {
                if let Some(loss) = report.average.and_then(|average| average.rate()) {
                    out.put(&[name], loss);
                }
            }
        },
    ),
    counter(
        "thalweg_poll_rows_lost_total",
        POLL,
        "Rows of interface counters that were not stored because the disk was too slow.",
        |s, out| s.polls.iter().for_each(|(name, report)| out.put(&[name], report.counts.rows_lost)),
    ),
    // Sketches.
    counter("thalweg_task_windows_total", COLLECTOR, "Windows of measurement tasks completed.", |s, out| {
        s.collectors.iter().for_each(|it| out.put(&[it.handle.name()], it.handle.windows()));
    }),
    counter(
        "thalweg_task_windows_lost_total",
        COLLECTOR,
        "Windows that were not evaluated because earlier ones took too long.",
        |s, out| s.collectors.iter().for_each(|it| out.put(&[it.handle.name()], it.handle.windows_lost())),
    ),
    // Samples.
    counter(
        "thalweg_samples_kept_total",
        COLLECTOR,
        "Frames written to the sample ring. A full ring overwrites its oldest frame.",
        |s, out| {
            for CollectorSnapshot { handle, .. } in &s.collectors {
                if let Some(kept) = handle.samples_kept() {
                    out.put(&[handle.name()], kept);
                }
            }
        },
    ),
    gauge("thalweg_samples_capacity", COLLECTOR, "Capacity of the sample ring, in frames.", |s, out| {
        for CollectorSnapshot { handle, .. } in &s.collectors {
            if let Some(ring) = handle.samples() {
                out.put(&[handle.name()], ring.capacity());
            }
        }
    }),
    counter("thalweg_sample_files_total", &[], "Capture files of samples written.", |s, out| {
        out.put(&[], s.parts.dumps.counters().written);
    }),
    counter(
        "thalweg_samples_lost_total",
        &[],
        "Samples that were overwritten while a dump copied them.",
        |s, out| {
            out.put(&[], s.parts.dumps.counters().overwritten);
        },
    ),
    counter(
        "thalweg_sample_dumps_lost_total",
        &["reason"],
        "Dumps of samples that were not written: `failed`, a file could not be written; `too_soon`, within `min_dump_interval` of another; \
                 `queue_full`, too many were waiting, or the daemon stopped.",
        |s, out| {
            let dumps = s.parts.dumps.counters();
            out.put(&["failed"], dumps.failed);
            out.put(&["too_soon"], dumps.too_soon);
            out.put(&["queue_full"], dumps.queue_full);
        },
    ),
    // Events and subscribers.
    counter("thalweg_events_total", &[], "Events published, of any type.", |s, out| {
        out.put(&[], s.parts.hub.last_id());
    }),
    counter(
        "thalweg_subscriber_events_lost_total",
        &[],
        "Events overwritten before a subscriber read them, counted once per subscriber.",
        |s, out| out.put(&[], s.parts.hub.lost()),
    ),
    gauge("thalweg_subscribers", &[], "Event subscribers.", |s, out| out.put(&[], s.api.subscribers)),
    // The API.
    counter(
        "thalweg_api_requests_total",
        &["result"],
        "Requests by result: `ok`, or the problem code.",
        |s, out| {
            out.put(&["ok"], s.api.http.answered);
            for (code, count) in Code::ALL.into_iter().zip(s.api.http.problems) {
                out.put(&[code.name()], count);
            }
        },
    ),
    gauge("thalweg_api_connections", &[], "Open connections to the API.", |s, out| {
        out.put(&[], s.api.http.connections)
    }),
    counter(
        "thalweg_api_connections_failed_total",
        &["reason"],
        "Failed connections: `too_many`, the limit was reached, and all others were being answered; `evicted`, it waited for its \
         client, and a new connection took its place at the limit; `handshake`, the TLS handshake failed; `broken`, the request \
         header was truncated, slow or not HTTP.",
        |s, out| {
            out.put(&["too_many"], s.api.http.connections_refused);
            out.put(&["evicted"], s.api.http.connections_evicted);
            out.put(&["handshake"], s.api.http.handshakes_failed);
            out.put(&["broken"], s.api.http.connections_broken);
        },
    ),
    counter(
        "thalweg_log_lines_suppressed_total",
        &[],
        "Log lines suppressed by the rate limit.",
        |s, out| {
            out.put(&[], s.api.log_suppressed);
        },
    ),
];
