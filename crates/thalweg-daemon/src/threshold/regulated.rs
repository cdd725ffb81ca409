//! R as the router's losses allow it: each interval of a poll goes to the regulator once.

use thalweg_control::threshold::regulator::{Change, Regulator, Step};
use thalweg_wire::BitRate;

use crate::config::ThresholdConfig;
use crate::polls::{Poll, Polls};

/// The regulator and its poll.
#[derive(Debug)]
pub(super) struct Regulated {
    regulator: Regulator,
    poll: Poll,
    /// The number of the last poll that was handled.
    seen: u64,
    last: Option<Step>,
    lowered: u64,
    raised: u64,
}

/// What the regulator does.
#[derive(Clone, Debug, PartialEq)]
pub struct RegulatorReport {
    /// The poll.
    pub poll: String,
    /// By how much R is lowered.
    pub reduction: BitRate,
    /// The loss of the last complete window of intervals; `None` before the first.
    pub loss: Option<f64>,
    /// Short name of why R changed or stays; `None` before the first interval.
    pub reason: Option<&'static str>,
    /// The same as a sentence.
    pub explanation: Option<String>,
    /// How often R was lowered.
    pub lowered: u64,
    /// How often R was raised again.
    pub raised: u64,
}

impl Regulated {
    /// Returns the configured regulator. Its poll exists, because the configuration was checked.
    pub(super) fn new(config: &ThresholdConfig, polls: &Polls) -> Option<Regulated> {
        let (name, options) = config.regulator.as_ref()?;
        let regulator = Regulator::new(*options, config.options.fallback).ok()?;
        let poll = polls.named(name)?.clone();
        Some(Regulated { regulator, poll, seen: 0, last: None, lowered: 0, raised: 0 })
    }

    /// Handles what the poll has read since the last call. Returns R for the base that the traffic suggests.
    pub(super) fn advance(&mut self, base: BitRate) -> BitRate {
        self.regulator.set_base(base);
        let (number, measurements) = self.poll.after(self.seen);
        self.seen = number;
        for measurement in measurements {
            let before = self.last.as_ref().and_then(|step| step.loss);
            let step = self.regulator.observe(measurement);
            self.lowered += u64::from(step.change == Change::Lowered);
            self.raised += u64::from(step.change == Change::Raised);
            if step.change != Change::Kept {
                let (rate, loss) = (step.rate_threshold.to_string(), step.loss);
                tracing::info!(rate, loss, poll = self.poll.name(), reason = %step.reason, "rate threshold regulated");
            }
            self.last = Some(Step { loss: step.loss.or(before), ..step });
        }
        self.regulator.rate_threshold()
    }

    pub(super) fn report(&self) -> RegulatorReport {
        RegulatorReport {
            poll: self.poll.name().to_owned(),
            reduction: self.regulator.reduction(),
            loss: self.last.as_ref().and_then(|step| step.loss),
            reason: self.last.as_ref().map(|step| step.reason.name()),
            explanation: self.last.as_ref().map(|step| step.reason.to_string()),
            lowered: self.lowered,
            raised: self.raised,
        }
    }
}
