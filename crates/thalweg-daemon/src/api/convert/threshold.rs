//! Adaptation of the rate threshold.

use thalweg_api::{
    LossCurve, LossPoint, Recording, Simulation, Threshold, ThresholdCounts, ThresholdPeriod,
    ThresholdReason, ThresholdRegulator, UtcTime,
};
use thalweg_control::threshold::period::Period;
use thalweg_control::threshold::{Observation, Reason, loss_curve};
use thalweg_wire::Nanos;

use crate::config::ThresholdConfig;
use crate::threshold::ThresholdReport;

/// Converts a report.
pub fn threshold(config: &ThresholdConfig, report: &ThresholdReport) -> Threshold {
    let length = config.recorder.period;
    let start = |period: Period| UtcTime::from(period.start(length));
    let (reason, days, since) = match report.decision.reason {
        Reason::Days(days) => (ThresholdReason::Days, Some(days as u64), None),
        Reason::Latest(period) => (ThresholdReason::Latest, None, Some(start(period))),
        Reason::Equation(period) => (ThresholdReason::Equation, None, Some(start(period))),
        Reason::Configured => (ThresholdReason::Configured, None, None),
    };
    let counters = report.counters;
    Threshold {
        collector: config.collector.clone(),
        applies_to: config.applies_to.iter().map(ToString::to_string).collect(),
        rate_bps: report.rate.0,
        suggested_bps: report.decision.rate.0,
        reason,
        days,
        since,
        equation_bps: report.decision.equation.map(|rate| rate.0),
        acceptable_loss: config.options.acceptable_loss,
        period: start(report.decision.period),
        period_ns: length.0,
        forecast_error: report.errors.map(|errors| errors.forecast),
        previous_period_error: report.errors.map(|errors| errors.previous),
        recording: report.recording.map(|recording| Recording {
            period: start(recording.period),
            packets: recording.packets,
            trouble: recording.trouble.map(|trouble| trouble.name().to_owned()),
        }),
        simulation: report
            .simulation
            .map(|simulation| Simulation { period: start(simulation.period), progress: simulation.progress }),
        waiting: report.waiting as u64,
        regulator: report.regulator.as_ref().map(|it| ThresholdRegulator {
            poll: it.poll.clone(),
            reduction_bps: it.reduction.0,
            loss: it.loss,
            reason: it.reason.map(str::to_owned),
            explanation: it.explanation.clone(),
            lowered: it.lowered,
            raised: it.raised,
        }),
        error: report.error.clone(),
        periods: report.periods.iter().map(|(period, it)| ended(start(*period), it)).collect(),
        curves: report.curves.iter().map(|(it, used)| curve(it, *used, length)).collect(),
        counts: ThresholdCounts {
            recorded: counters.recorded,
            matched: counters.matched,
            unusable: counters.unusable.iter().sum(),
            simulated: counters.simulated,
            failed: counters.failed,
            skipped: counters.skipped,
        },
    }
}

fn ended(period: UtcTime, observation: &Observation) -> ThresholdPeriod {
    let Observation { outcome, .. } = observation;
    let (tag, threshold) = (outcome.tag(), outcome.threshold());
    ThresholdPeriod {
        period,
        state: outcome.name().to_owned(),
        mean_rate_bps: tag.map(|tag| tag.mean_rate.0),
        burstiness: tag.map(|tag| tag.burstiness),
        threshold_bps: threshold.map(|threshold| threshold.rate.0),
        acceptable: threshold.map(|threshold| threshold.is_acceptable),
        forecast_bps: observation.forecast.map(|rate| rate.0),
    }
}

fn curve(curve: &loss_curve::LossCurve, used: Period, length: Nanos) -> LossCurve {
    let points = curve.points.iter();
    let points =
        points.map(|point| LossPoint { rate_bps: point.rate.0, loss: point.loss, error: point.error });
    LossCurve {
        mean_rate_bps: curve.tag.mean_rate.0,
        burstiness: curve.tag.burstiness,
        seconds: curve.seconds,
        used: used.start(length).into(),
        points: points.collect(),
    }
}
