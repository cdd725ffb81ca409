//! Metrics of the daemon itself: its build, events and API.

use thalweg_api::problem::Code;

use super::{counter, gauge};
use crate::alerts::AlertCounts;
use crate::event_log::EventLogCounts;
use crate::metrics::{Metric, Samples, Snapshot};

/// The daemon.
pub(super) const ABOUT: &[Metric] = &[
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
];

/// Puts a number of each alert.
fn put_alerts(snapshot: &Snapshot, out: &mut Samples<'_>, number: impl Fn(AlertCounts) -> u64) {
    for alert in &*snapshot.parts.alerts {
        out.put(&[alert.name()], number(alert.counts()));
    }
}

/// Puts a number of the event log, if there is one.
fn put_event_log(snapshot: &Snapshot, out: &mut Samples<'_>, number: impl Fn(EventLogCounts) -> u64) {
    if let Some(log) = &snapshot.parts.event_log {
        out.put(&[], number(log.counts()));
    }
}

/// Events, subscribers and the API.
pub(super) const EVENTS_AND_API: &[Metric] = &[
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
    counter("thalweg_event_log_events_total", &[], "Events written to the event log.", |s, out| {
        put_event_log(s, out, |counts| counts.written);
    }),
    counter(
        "thalweg_event_log_lost_total",
        &[],
        "Events that were not written to the event log, because writing failed for too long.",
        |s, out| put_event_log(s, out, |counts| counts.lost),
    ),
    counter(
        "thalweg_event_log_failures_total",
        &[],
        "Failed attempts to write to the event log. They are repeated.",
        |s, out| put_event_log(s, out, |counts| counts.failures),
    ),
    counter("thalweg_alert_events_total", &["alert"], "Events sent to the webhook of an alert.", |s, out| {
        put_alerts(s, out, |counts| counts.sent);
    }),
    counter(
        "thalweg_alert_events_lost_total",
        &["alert"],
        "Events of an alert that were not sent: more than a request has, or left when the daemon stopped.",
        |s, out| put_alerts(s, out, |counts| counts.lost),
    ),
    counter(
        "thalweg_alert_requests_failed_total",
        &["alert"],
        "Failed requests to the webhook of an alert. They are repeated.",
        |s, out| put_alerts(s, out, |counts| counts.failures),
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
