//! Metrics of isolation, of the rate threshold and of interface counters.

use thalweg_control::threshold::Unusable;

use super::{COLLECTOR, counter, gauge};
use crate::metrics::{CollectorSnapshot, Metric, Samples, Snapshot};

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

/// Isolation, adaptation of the rate threshold, polls of interface counters.
pub(super) const ISOLATION: &[Metric] = &[
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
         queued; `cancelled` before they were redirected; `failed`; `ineffective`, failed because the \
         scavenger queue did not receive the flow; `renewed`, requested because an earlier redirection of the flow had failed; `put_off`, not released because the flow had sent meanwhile; \
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
                    ("renewed", it.renewed),
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
        "Packets that matched a redirection: `redirected`; `expired`, its time was over; `released`, the flow was being released. With `tc`, since the queues were set up, also while no daemon ran.",
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
];
