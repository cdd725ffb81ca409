//! Isolation: redirections of cheetah flows.

use thalweg_api::{
    FlowName, QueueState, Queues, Redirection, RedirectionCause, RedirectionCounts, RedirectionPhase,
    RedirectionReason, Redirections,
};
use thalweg_control::isolate::message::QueueReading;
use thalweg_control::isolate::{EndCause, Phase, Reason, RedirectionId, RedirectionReport};

use crate::isolation::Isolation;

/// Converts the state of isolation, with at most `active` active redirections, those after number `after`, and at most `ended` that
/// have ended.
pub fn redirections(isolation: &Isolation, after: u64, active: usize, ended: usize) -> Redirections {
    let report = isolation.state().report(RedirectionId(after), active, ended);
    let it = report.counters;
    Redirections {
        actuator: isolation.config().isolator.name().to_owned(),
        dry_run: isolation.config().options.dry_run,
        error: report.error,
        active: report.active.iter().map(redirection).collect(),
        active_count: report.active_count as u64,
        ended: report.ended.iter().map(redirection).collect(),
        queues: report
            .queues
            .map(|(scavenger, primary)| Queues { primary: queue(primary), scavenger: queue(scavenger) }),
        counts: RedirectionCounts {
            requests: it.requests,
            repeated: it.repeated,
            excluded: it.excluded,
            refused: it.refused,
            withheld: it.withheld,
            lost: isolation.findings_lost(),
            redirected: it.redirected,
            confirmed: it.confirmed,
            released: it.released,
            forced: it.forced,
            cancelled: it.cancelled,
            failed: it.failed,
            ineffective: it.ineffective,
            renewed: it.renewed,
            errors: it.errors,
            put_off: it.put_off,
            restored: it.restored,
            repairs: report.isolator.repairs,
            expired_packets: report.isolator.expired_packets,
        },
    }
}

/// Converts a redirection.
pub fn redirection(report: &RedirectionReport) -> Redirection {
    let (found_by, rate_bps, detected) = match &report.reason {
        Reason::Cheetah { collector, rate, detected, .. } => {
            (Some(collector.to_string()), Some(rate.0), Some((*detected).into()))
        }
        Reason::Pinned | Reason::Adopted => (None, None, None),
    };
    Redirection {
        id: report.id.0,
        flow: FlowName::from(&report.key),
        key: report.key.to_string(),
        reason: reason(&report.reason),
        found_by,
        rate_bps,
        detected,
        phase: phase(report.phase),
        requested: report.requested.into(),
        redirected: report.redirected.map(Into::into),
        first_packet: report.counters.and_then(|counters| counters.first).map(Into::into),
        confirmed: report.confirmed.map(Into::into),
        ended: report.ended.map(Into::into),
        cause: report.end_cause.map(cause),
        forced: report.is_forced,
        packets: report.counters.map(|counters| counters.packets),
        bytes: report.counters.map(|counters| counters.bytes.0),
        primary_backlog_before: report.primary_backlog_before.map(|bytes| bytes.0),
        primary_backlog_after: report.primary_backlog_after.map(|bytes| bytes.0),
        error: report.error.clone(),
        try_number: report.try_number,
        retry_at: report.retry_at.map(Into::into),
    }
}

fn reason(reason: &Reason) -> RedirectionReason {
    match reason {
        Reason::Cheetah { .. } => RedirectionReason::Cheetah,
        Reason::Pinned => RedirectionReason::Pinned,
        Reason::Adopted => RedirectionReason::Adopted,
    }
}

fn phase(phase: Phase) -> RedirectionPhase {
    match phase {
        Phase::Waiting => RedirectionPhase::Waiting,
        Phase::Requested => RedirectionPhase::Requested,
        Phase::Redirected => RedirectionPhase::Redirected,
        Phase::Confirmed => RedirectionPhase::Confirmed,
        Phase::Draining => RedirectionPhase::Draining,
        Phase::Releasing => RedirectionPhase::Releasing,
        Phase::Released => RedirectionPhase::Released,
        Phase::Failed => RedirectionPhase::Failed,
        Phase::Withheld => RedirectionPhase::Withheld,
    }
}

fn cause(cause: EndCause) -> RedirectionCause {
    match cause {
        EndCause::FlowEnded => RedirectionCause::FlowEnded,
        EndCause::Quiet => RedirectionCause::Quiet,
        EndCause::User => RedirectionCause::User,
        EndCause::MaxTime => RedirectionCause::MaxTime,
        EndCause::Stop => RedirectionCause::Stop,
    }
}

fn queue(reading: QueueReading) -> QueueState {
    QueueState {
        sent_packets: reading.sent_packets,
        sent_bytes: reading.sent_bytes,
        dropped_packets: reading.dropped_packets,
        backlog_bytes: reading.backlog.map(|bytes| bytes.0),
    }
}
