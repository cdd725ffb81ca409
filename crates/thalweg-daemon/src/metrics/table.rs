//! All metrics.

use thalweg_api::problem::Code;
use thalweg_measure::collector::{LinkReport, PortDirection};
use thalweg_measure::meter::record::EndReason;
use thalweg_network::Case;
use thalweg_records::export::Reason;
use thalweg_wire::parse::Malformed;

use super::{CollectorSnapshot, Kind, Metric, Samples, Snapshot};
use crate::collectors::CollectorCounters;
use crate::event::CollectorState;

/// Labels of what collectors count.
const COLLECTOR: &[&str] = &["collector"];

/// Labels of links.
const LINK: &[&str] = &["collector", "switch", "port", "way"];

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

/// A number of each collector that answered.
fn each(snapshot: &Snapshot, out: &mut Samples<'_>, read: impl Fn(&CollectorCounters) -> u64) {
    for CollectorSnapshot { handle, counters, .. } in &snapshot.collectors {
        if let Some(counters) = counters {
            out.put(&[handle.name()], read(counters));
        }
    }
}

/// Numbers by a label, of each collector that answered.
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

/// A value of each link.
fn each_link(snapshot: &Snapshot, out: &mut Samples<'_>, read: impl Fn(&LinkReport) -> f64) {
    for CollectorSnapshot { handle, links, .. } in &snapshot.collectors {
        let switch = &handle.description().switch;
        for link in links {
            let port = format!("p{}", link.side.port.0);
            let way = match link.side.direction {
                PortDirection::Input => "in",
                PortDirection::Output => "out",
            };
            out.put(&[handle.name(), switch, &port, way], read(link));
        }
    }
}

/// All metrics, in the order of the page.
pub const METRICS: &[Metric] = &[
    // The daemon.
    gauge("thalweg_build_info", &["version"], "Always 1; the label is the program's version.", |s, out| {
        out.put(&[s.parts.version()], 1);
    }),
    gauge(
        "thalweg_start_time_seconds",
        &[],
        "When the daemon was started, since 1970-01-01 UTC.",
        |s, out| {
            out.put(&[], s.parts.started.0 as f64 / 1e9);
        },
    ),
    gauge("thalweg_topology_version", &[], "Version of the network that is in force.", |s, out| {
        if let Some(versions) = s.parts.network.versions() {
            out.put(&[], versions.newest().number);
        }
    }),
    // Collectors: how they do.
    gauge(
        "thalweg_collector_state",
        &["collector", "switch", "state"],
        "1 for the state that the collector is in, 0 for the others.",
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
        "Times that the collector's source was opened again after a failure.",
        |s, out| s.collectors.iter().for_each(|it| out.put(&[it.handle.name()], it.handle.restarts())),
    ),
    counter(
        "thalweg_questions_refused_total",
        COLLECTOR,
        "Questions to the collector that found its mailbox full.",
        |s, out| s.collectors.iter().for_each(|it| out.put(&[it.handle.name()], it.handle.refused())),
    ),
    counter(
        "thalweg_questions_late_total",
        COLLECTOR,
        "Questions to the collector that were not answered in time.",
        |s, out| s.collectors.iter().for_each(|it| out.put(&[it.handle.name()], it.handle.late())),
    ),
    gauge(
        "thalweg_collector_memory_bytes",
        COLLECTOR,
        "Memory of the collector's flow table, rates and detector.",
        |s, out| each(s, out, |counters| counters.memory.0),
    ),
    // Frames: what came, and what was lost.
    counter("thalweg_frames_total", COLLECTOR, "Frames read.", |s, out| {
        each(s, out, |counters| counters.source.frames);
    }),
    counter("thalweg_ip_packets_total", COLLECTOR, "IP packets among the frames read.", |s, out| {
        each(s, out, |counters| counters.intake.ip.packets);
    }),
    counter("thalweg_ip_bytes_total", COLLECTOR, "Bytes of those, of the IP layer.", |s, out| {
        each(s, out, |counters| counters.intake.ip.bytes.0);
    }),
    counter(
        "thalweg_kernel_drops_total",
        COLLECTOR,
        "Frames that the kernel dropped for want of room.",
        |s, out| each(s, out, |counters| counters.source.kernel_drops),
    ),
    counter(
        "thalweg_kernel_freezes_total",
        COLLECTOR,
        "Times that the ring shared with the kernel was full.",
        |s, out| each(s, out, |counters| counters.source.kernel_freezes),
    ),
    counter(
        "thalweg_filtered_frames_total",
        COLLECTOR,
        "Frames that the capture filter refused in the daemon; those refused in the kernel are not known.",
        |s, out| each(s, out, |counters| counters.source.filtered),
    ),
    counter(
        "thalweg_capture_records_skipped_total",
        COLLECTOR,
        "Records of a capture file that hold no frame.",
        |s, out| each(s, out, |counters| counters.source.other_records),
    ),
    counter(
        "thalweg_unparsed_frames_total",
        &["collector", "kind"],
        "Frames that gave no packet, by why: no IP, a link type that is not read, headers that break their format.",
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
        "thalweg_backwards_frames_total",
        COLLECTOR,
        "Frames with an earlier time stamp than the one before.",
        |s, out| each(s, out, |counters| counters.intake.backwards),
    ),
    counter(
        "thalweg_portless_packets_total",
        &["collector", "kind"],
        "Packets whose ports are not known: later fragments, or cut off by the snap length.",
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
    gauge("thalweg_flows", COLLECTOR, "Flows in the table.", |s, out| {
        each(s, out, |counters| counters.flows);
    }),
    gauge("thalweg_flow_capacity", COLLECTOR, "Flows that the table has room for.", |s, out| {
        each(s, out, |counters| counters.flow_capacity);
    }),
    counter("thalweg_flows_begun_total", COLLECTOR, "Flows begun.", |s, out| {
        each(s, out, |counters| counters.collector.flow_table.flows);
    }),
    counter(
        "thalweg_flow_records_total",
        &["collector", "reason"],
        "Flow records handed on, by why; `evicted` is for want of room in the table.",
        |s, out| {
            each_by::<{ EndReason::ALL.len() }>(s, out, |counters| {
                EndReason::ALL.map(|reason| (reason.name(), counters.collector.flow_table.ended(reason)))
            });
        },
    ),
    counter(
        "thalweg_flow_records_lost_total",
        &["collector", "reason"],
        "Flow records that were not written: `late` since writing took so long that there was no room for them, `failed` \
         since the file could not be written.",
        |s, out| {
            for CollectorSnapshot { handle, .. } in &s.collectors {
                let lost = handle.records_lost();
                out.put(&[handle.name(), "late"], lost.late);
                out.put(&[handle.name(), "failed"], lost.failed);
            }
        },
    ),
    counter("thalweg_ipfix_messages_total", &[], "Messages of IPFIX sent.", |s, out| {
        if let Some((_, tallies)) = s.exported() {
            out.put(&[], tallies.sent().messages);
        }
    }),
    counter(
        "thalweg_ipfix_flow_records_total",
        &[],
        "Flow records sent as IPFIX; both directions of a flow are one.",
        |s, out| {
            if let Some((_, tallies)) = s.exported() {
                out.put(&[], tallies.sent().flow_records);
            }
        },
    ),
    counter("thalweg_ipfix_bytes_total", &[], "Bytes of the messages of IPFIX sent.", |s, out| {
        if let Some((_, tallies)) = s.exported() {
            out.put(&[], tallies.sent().octets);
        }
    }),
    counter(
        "thalweg_ipfix_flow_records_lost_total",
        &["reason"],
        "Flow records that were not sent as IPFIX: `queue_full` since sending took too long, `no_session` since there was no \
         connection and no room to wait for one, `send_failed` since they were not taken.",
        |s, out| {
            if let Some((_, tallies)) = s.exported() {
                for reason in Reason::ALL {
                    out.put(&[reason.name()], tallies.not_sent(reason).flow_records);
                }
            }
        },
    ),
    gauge("thalweg_ipfix_session", &[], "Whether there is a session with the IPFIX collector.", |s, out| {
        if let Some((_, tallies)) = s.exported() {
            out.put(&[], u64::from(tallies.is_in_session()));
        }
    }),
    counter("thalweg_ipfix_sessions_total", &["outcome"], "Attempts to begin a session.", |s, out| {
        if let Some((_, tallies)) = s.exported() {
            let (begun, failed) = tallies.sessions();
            out.put(&["begun"], begun);
            out.put(&["failed"], failed);
        }
    }),
    counter("thalweg_kept_rows_total", &[], "Rows of flows written to Parquet files.", |s, out| {
        if let Some(store) = s.kept() {
            out.put(&[], store.written);
        }
    }),
    counter(
        "thalweg_kept_rows_lost_total",
        &["reason"],
        "Rows of flows that are in no Parquet file: `queue_full` since the disk was too slow, `spool_full` since the spool \
         had reached its limit, `spool_failed` since it could not be written, `spool_damaged` since it could not be read back.",
        |s, out| {
            if let Some(store) = s.kept() {
                out.put(&["queue_full"], store.lost.queue_full);
                out.put(&["spool_full"], store.lost.spool_full);
                out.put(&["spool_failed"], store.lost.spool_failed);
                out.put(&["spool_damaged"], store.lost.spool_damaged);
            }
        },
    ),
    gauge("thalweg_kept_spool_bytes", &[], "Bytes of the spool in front of the Parquet files.", |s, out| {
        if let Some(store) = s.kept() {
            out.put(&[], store.spool_bytes);
        }
    }),
    counter("thalweg_cheetahs_total", COLLECTOR, "Directions of flows found to be cheetahs.", |s, out| {
        each(s, out, |counters| counters.collector.flow_table.cheetahs);
    }),
    counter(
        "thalweg_untracked_milestones_total",
        COLLECTOR,
        "Milestones that the detector of cheetahs had no room for: some may have been missed.",
        |s, out| each(s, out, |counters| counters.collector.untracked),
    ),
    // Rates.
    gauge(
        "thalweg_sampling_ratio",
        COLLECTOR,
        "Share of mirrored packets that arrive; not there until TCP flows have shown it.",
        |s, out| {
            for CollectorSnapshot { handle, counters, .. } in &s.collectors {
                if let Some(ratio) = counters.as_ref().and_then(|counters| counters.sampling_ratio) {
                    out.put(&[handle.name()], ratio.value);
                }
            }
        },
    ),
    counter("thalweg_rate_estimates_total", COLLECTOR, "Spans of samples that gave a rate.", |s, out| {
        each(s, out, |counters| counters.collector.rates.estimates);
    }),
    counter(
        "thalweg_rate_spans_refused_total",
        &["collector", "reason"],
        "Spans of samples that gave no rate: sequence numbers may have gone round, or the rate would be beyond any link's.",
        |s, out| {
            each_by(s, out, |counters| {
                let rates = &counters.collector.rates;
                [("wrapped", rates.wrapped), ("implausible", rates.implausible)]
            });
        },
    ),
    counter(
        "thalweg_repeated_samples_total",
        COLLECTOR,
        "Samples of sequence ranges that had been seen before: sent again.",
        |s, out| each(s, out, |counters| counters.collector.rates.repeated),
    ),
    counter(
        "thalweg_late_samples_total",
        COLLECTOR,
        "Samples that came after later ones of their flow, and had not been seen before.",
        |s, out| each(s, out, |counters| counters.collector.rates.late),
    ),
    counter(
        "thalweg_ambiguous_samples_total",
        &["collector", "reason"],
        "Samples that may have been forwarded otherwise than inferred: a change was under way, or the version of their \
         time is no longer kept.",
        |s, out| {
            each_by(s, out, |counters| {
                let rates = &counters.collector.rates;
                [("settling", rates.ambiguous), ("forgotten", rates.forgotten)]
            });
        },
    ),
    counter(
        "thalweg_samples_without_ports_total",
        &["collector", "case"],
        "Samples whose input and output port could not both be inferred, by why.",
        |s, out| {
            // The first case is that of samples whose ports could be inferred.
            each_by::<{ Case::COUNT - 1 }>(s, out, |counters| {
                let cases = &counters.collector.rates.cases;
                std::array::from_fn(|place| (Case::ALL[place + 1].name(), cases[place + 1]))
            });
        },
    ),
    // Links.
    gauge("thalweg_link_capacity_bits_per_second", LINK, "What the link can carry this way.", |s, out| {
        each_link(s, out, |link| link.capacity.0 as f64);
    }),
    gauge(
        "thalweg_link_rate_bits_per_second",
        LINK,
        "Sum of the rates of the link's flows, smoothed; on the wire, framing included.",
        |s, out| each_link(s, out, |link| link.smoothed),
    ),
    gauge("thalweg_link_utilisation_ratio", LINK, "The same as a share of the capacity.", |s, out| {
        each_link(s, out, |link| link.utilisation);
    }),
    gauge("thalweg_link_flows", LINK, "Directions of flows on the link with a rate above zero.", |s, out| {
        each_link(s, out, |link| f64::from(link.flows));
    }),
    counter("thalweg_link_events_total", COLLECTOR, "Crossings of thresholds that were told.", |s, out| {
        each(s, out, |counters| counters.collector.events);
    }),
    counter(
        "thalweg_link_events_held_back_total",
        COLLECTOR,
        "Crossings that came too soon after another of the link, and waited.",
        |s, out| each(s, out, |counters| counters.collector.events_held_back),
    ),
    // How long events take.
    histogram(
        "thalweg_event_decision_seconds",
        COLLECTOR,
        "From a packet's being in memory to its event's being told.",
        |s, out| {
            for CollectorSnapshot { handle, .. } in &s.collectors {
                out.put_latency(&[handle.name()], &handle.decision_latency());
            }
        },
    ),
    histogram(
        "thalweg_event_arrival_seconds",
        COLLECTOR,
        "From a packet's time stamp to its event's being told; live sources only.",
        |s, out| {
            for CollectorSnapshot { handle, .. } in &s.collectors {
                if handle.description().is_live {
                    out.put_latency(&[handle.name()], &handle.arrival_latency());
                }
            }
        },
    ),
    // The emulation.
    counter("thalweg_emulated_seconds_total", &[], "Time emulated, if a network is.", |s, out| {
        if let Some(emulation) = s.parts.network.emulation() {
            out.put(&[], emulation.now().0 as f64 / 1e9);
        }
    }),
    counter(
        "thalweg_emulation_behind_seconds_total",
        &[],
        "Time of the clock that the emulation did not keep up with.",
        |s, out| {
            if let Some(emulation) = s.parts.network.emulation() {
                out.put(&[], emulation.behind().0 as f64 / 1e9);
            }
        },
    ),
    // The controller.
    gauge("thalweg_control_frozen", &[], "1 if the controller only watches, else 0.", |s, out| {
        if let Some(control) = &s.parts.control {
            out.put(&[], u8::from(control.state().report().is_frozen));
        }
    }),
    gauge("thalweg_control_pins", &[], "Pairs of hosts that are pinned to an address.", |s, out| {
        if let Some(control) = &s.parts.control {
            out.put(&[], control.state().report().pins.len());
        }
    }),
    gauge(
        "thalweg_control_unresponsive_hosts",
        &[],
        "Hosts of which several actions in a row had no effect.",
        |s, out| {
            if let Some(control) = &s.parts.control {
                out.put(&[], control.state().report().unresponsive.len());
            }
        },
    ),
    counter("thalweg_control_notices_total", &[], "What collectors told the controller.", |s, out| {
        if let Some(control) = &s.parts.control {
            out.put(&[], control.notices());
        }
    }),
    counter(
        "thalweg_control_notices_lost_total",
        &[],
        "What collectors told the controller and it had no room for.",
        |s, out| {
            if let Some(control) = &s.parts.control {
                out.put(&[], control.notices_lost());
            }
        },
    ),
    counter(
        "thalweg_control_decisions_total",
        &["verdict"],
        "Decisions, by whether flows go another way, stay, are left alone since they were moved a moment ago, or are pinned.",
        |s, out| {
            if let Some(control) = &s.parts.control {
                let decided = control.state().report().counters.decisions;
                for (verdict, count) in ["goes", "stays", "settles", "pinned"].into_iter().zip(decided) {
                    out.put(&[verdict], count);
                }
            }
        },
    ),
    counter(
        "thalweg_control_actions_total",
        &["outcome"],
        "Actions, by what came of them: `begun` are all that were, `confirmed` those whose effect a collector saw, `expired` \
         those whose effect nobody saw in time, `superseded` those that another overtook; not begun are those `refused` by the \
         actuator, `crowded` out by others, and `withheld` since the controller is frozen or on a dry run.",
        |s, out| {
            if let Some(control) = &s.parts.control {
                let counters = control.state().report().counters;
                out.put(&["begun"], counters.started);
                out.put(&["confirmed"], counters.confirmed);
                out.put(&["expired"], counters.expired);
                out.put(&["superseded"], counters.superseded);
                out.put(&["refused"], counters.refused);
                out.put(&["crowded"], counters.crowded);
                out.put(&["withheld"], counters.withheld);
            }
        },
    ),
    gauge(
        "thalweg_control_switches",
        &["state"],
        "Switches that are told by OpenFlow: `settled` have the entries that they are to have, `unsettled` have not, or are not \
         connected.",
        |s, out| {
            if let Some(switches) =
                s.parts.control.as_ref().and_then(|control| control.state().report().switches)
            {
                out.put(&["settled"], switches.settled);
                out.put(&["unsettled"], switches.unsettled);
            }
        },
    ),
    counter(
        "thalweg_control_entries_total",
        &["change"],
        "Flow entries that switches were told to have (`written`) and not to have (`removed`) by OpenFlow.",
        |s, out| {
            if let Some(switches) =
                s.parts.control.as_ref().and_then(|control| control.state().report().switches)
            {
                out.put(&["written"], switches.counters.written);
                out.put(&["removed"], switches.counters.removed);
            }
        },
    ),
    counter(
        "thalweg_control_batches_total",
        &["outcome"],
        "Batches of flow-mods: `done` were carried out, `failed` refused, not answered in time, or not sent. After one that \
         failed the switch is asked what it has.",
        |s, out| {
            if let Some(switches) =
                s.parts.control.as_ref().and_then(|control| control.state().report().switches)
            {
                out.put(&["done"], switches.counters.done);
                out.put(&["failed"], switches.counters.failed);
            }
        },
    ),
    histogram(
        "thalweg_control_effect_seconds",
        &[],
        "From a decision to the first packet with the new address that a collector saw, in packet time.",
        |s, out| {
            if let Some(control) = &s.parts.control {
                out.put_latency(&[], &control.effect_latency());
            }
        },
    ),
    // Sketches.
    counter(
        "thalweg_task_windows_total",
        COLLECTOR,
        "Windows of measurement tasks that are over.",
        |s, out| {
            s.collectors.iter().for_each(|it| out.put(&[it.handle.name()], it.handle.windows()));
        },
    ),
    counter(
        "thalweg_task_windows_lost_total",
        COLLECTOR,
        "Windows that were not evaluated, since those before them took too long.",
        |s, out| s.collectors.iter().for_each(|it| out.put(&[it.handle.name()], it.handle.windows_lost())),
    ),
    // Samples.
    counter(
        "thalweg_samples_kept_total",
        COLLECTOR,
        "Frames put into the ring of samples; those beyond its capacity have been overwritten, as is meant.",
        |s, out| {
            for CollectorSnapshot { handle, .. } in &s.collectors {
                if let Some(kept) = handle.samples_kept() {
                    out.put(&[handle.name()], kept);
                }
            }
        },
    ),
    gauge("thalweg_samples_capacity", COLLECTOR, "Frames that fit into the ring of samples.", |s, out| {
        for CollectorSnapshot { handle, .. } in &s.collectors {
            if let Some(ring) = handle.samples() {
                out.put(&[handle.name()], ring.capacity());
            }
        }
    }),
    counter("thalweg_sample_files_total", &[], "Files of samples written.", |s, out| {
        out.put(&[], s.parts.dumps.counters().written);
    }),
    counter(
        "thalweg_samples_lost_total",
        &["reason"],
        "Samples, or dumps of them, that were not written: `overwritten` counts samples overwritten while they were \
         copied, `failed` dumps that failed, `held_back` dumps that would have come too soon after another, `crowded` dumps \
         for which too many waited already, or that the end of the daemon was faster than.",
        |s, out| {
            let dumps = s.parts.dumps.counters();
            out.put(&["overwritten"], dumps.overwritten);
            out.put(&["failed"], dumps.failed);
            out.put(&["held_back"], dumps.held_back);
            out.put(&["crowded"], dumps.crowded);
        },
    ),
    // Events and subscribers.
    counter("thalweg_events_total", &[], "Events told, of any kind.", |s, out| {
        out.put(&[], s.parts.hub.last_id());
    }),
    counter(
        "thalweg_subscriber_events_lost_total",
        &[],
        "Events that were overwritten before a subscriber had read them, once for each subscriber.",
        |s, out| out.put(&[], s.parts.hub.lost()),
    ),
    gauge("thalweg_subscribers", &[], "Subscribers to events.", |s, out| out.put(&[], s.api.subscribers)),
    // The API.
    counter(
        "thalweg_api_requests_total",
        &["result"],
        "Requests, by what became of them: `ok`, or the code of the problem.",
        |s, out| {
            out.put(&["ok"], s.api.http.answered);
            for (code, count) in Code::ALL.into_iter().zip(s.api.http.problems) {
                out.put(&[code.name()], count);
            }
        },
    ),
    gauge("thalweg_api_connections", &[], "Connections to the API.", |s, out| {
        out.put(&[], s.api.http.connections)
    }),
    counter(
        "thalweg_api_connections_lost_total",
        &["reason"],
        "Connections that came to nothing: too many at once, a TLS handshake that failed, a head that broke off, took too \
         long or is no HTTP.",
        |s, out| {
            out.put(&["too_many"], s.api.http.connections_refused);
            out.put(&["handshake"], s.api.http.handshakes_failed);
            out.put(&["broken"], s.api.http.connections_broken);
        },
    ),
    counter("thalweg_log_lines_suppressed_total", &[], "Lines that the log held back.", |s, out| {
        out.put(&[], s.api.log_suppressed);
    }),
];
