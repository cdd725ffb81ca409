//! Metrics of collectors.

use thalweg_measure::collector::LinkReport;
use thalweg_measure::collector::PortDirection;
use thalweg_measure::meter::record::EndReason;
use thalweg_network::Case;
use thalweg_records::export::Reason;
use thalweg_wire::parse::Malformed;

use super::{COLLECTOR, counter, gauge, histogram};
use crate::collectors::CollectorCounters;
use crate::event::CollectorState;
use crate::metrics::{CollectorSnapshot, Metric, Samples, Snapshot};

/// Labels of a link's metrics.
const LINK: &[&str] = &["collector", "switch", "port", "direction"];

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

/// Collectors: frames, flows, rates, links and delays.
pub(super) const COLLECTORS: &[Metric] = &[
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
    gauge(
        "thalweg_link_peak_utilisation_ratio",
        LINK,
        "Greatest smoothed rate within the last one to two minutes of packet time, divided by capacity: bursts of milliseconds remain visible to a reader \
                 who comes once a minute.",
        |s, out| each_link(s, out, |link| link.peak / link.capacity.0 as f64),
    ),
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
];

/// Measurement tasks and sample rings.
pub(super) const TASKS_AND_SAMPLES: &[Metric] = &[
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
];
