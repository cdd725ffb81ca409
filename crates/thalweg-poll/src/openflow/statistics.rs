//! From statistics of a switch to a reading.

use thalweg_wire::openflow::multipart::{PortStats, QueueStats};
use thalweg_wire::openflow::{Port, QueueId};
use thalweg_wire::{BitRate, Nanos, Timestamp};

use super::OpenFlowOptions;
use crate::{Counter, InterfaceReading, PortCounters, QueueCounters, ReadError, Scope};

/// A port or queue that is older has no known age, in seconds: 68 years. Open vSwitch reports such ages, without a meaning, for queues
/// that are requested together.
const MAX_AGE: u32 = 1 << 31;

/// The statistics of a port.
pub(super) struct Answer<'a> {
    pub(super) target: String,
    pub(super) options: &'a OpenFlowOptions,
    pub(super) port: Port,
    pub(super) stats: PortStats,
    pub(super) queues: Vec<QueueStats>,
}

impl Answer<'_> {
    /// Returns the reading. The caller knows the agent.
    ///
    /// # Errors
    /// If a counter or queue is missing that the reading needs.
    pub(super) fn reading(&self, time: Timestamp, time_error: Nanos) -> Result<InterfaceReading, ReadError> {
        let OpenFlowOptions { primary, scavenger, has_one_queue, .. } = self.options;
        let queue = |queue: &Option<QueueId>| queue.map(|queue| self.queue(queue)).transpose();
        let (primary, scavenger) = (queue(primary)?, queue(scavenger)?);
        let scope = match (&primary, has_one_queue) {
            (Some(_), _) => Scope::PrimaryQueue,
            (None, true) => Scope::OneQueue,
            (None, false) => Scope::AllQueues,
        };
        let age = age(self.stats.duration_sec, self.stats.duration_nsec);
        Ok(InterfaceReading {
            time,
            agent: None,
            time_error,
            name: self.port.name.to_string(),
            description: None,
            is_up: self.port.is_up(),
            index: self.port.port_no.0,
            speed: (self.port.curr_speed > 0).then(|| BitRate(u64::from(self.port.curr_speed) * 1_000)),
            // The ticks wrap, as those of an agent do.
            uptime_ticks: age.map(|age| (age.0 / 10_000_000) as u32),
            discontinuity_ticks: None,
            input: self.input()?,
            output: self.output(scope)?,
            primary,
            scavenger,
            scope,
        })
    }

    fn input(&self) -> Result<PortCounters, ReadError> {
        let stats = &self.stats;
        Ok(PortCounters {
            packets: self.needed("rx_packets", stats.rx_packets)?,
            bytes: self.needed("rx_bytes", stats.rx_bytes)?,
            errors: supported(stats.rx_errors),
            discards: supported(stats.rx_dropped),
        })
    }

    /// Returns the output of the port. Its packets include those that it dropped, as in IF-MIB.
    fn output(&self, scope: Scope) -> Result<PortCounters, ReadError> {
        let stats = &self.stats;
        let discards = match scope {
            Scope::OneQueue => Some(self.needed("tx_dropped", stats.tx_dropped)?),
            _ => supported(stats.tx_dropped),
        };
        let sent = self.needed("tx_packets", stats.tx_packets)?;
        Ok(PortCounters {
            packets: discards.map_or(sent, |discards| sent.plus(discards)),
            bytes: self.needed("tx_bytes", stats.tx_bytes)?,
            errors: supported(stats.tx_errors),
            discards,
        })
    }

    fn queue(&self, wanted: QueueId) -> Result<QueueCounters, ReadError> {
        let found = self.queues.iter().find(|queue| queue.queue_id == wanted);
        let queue = found.ok_or_else(|| self.missing(format!("queue {}", wanted.0)))?;
        let counter = |name: &str, value: u64| match value {
            u64::MAX => Err(self.unsupported(&format!("{name} of queue {}", wanted.0))),
            // Open vSwitch reads the packets of a queue from a counter of 32 bits.
            value => Ok(Counter::up_to_64(value)),
        };
        Ok(QueueCounters {
            sent_packets: counter("tx_packets", queue.tx_packets)?,
            sent_bytes: supported(queue.tx_bytes),
            dropped_packets: counter("tx_errors", queue.tx_errors)?,
            age: age(queue.duration_sec, queue.duration_nsec),
        })
    }

    fn needed(&self, name: &str, value: u64) -> Result<Counter, ReadError> {
        supported(value).ok_or_else(|| self.unsupported(name))
    }

    fn unsupported(&self, name: &str) -> ReadError {
        self.missing(format!("{name} (all bits are set: unsupported)"))
    }

    fn missing(&self, object: String) -> ReadError {
        let (target, interface) = (self.target.clone(), self.options.port.clone());
        ReadError::NoCounter { target, object, interface }
    }
}

/// Returns a counter, unless the switch does not support it.
fn supported(value: u64) -> Option<Counter> {
    (value != u64::MAX).then_some(Counter::bits64(value))
}

/// Returns the age of a port or queue, if the switch knows it.
fn age(seconds: u32, nanoseconds: u32) -> Option<Nanos> {
    let age = Nanos::from_secs(seconds.into()).saturating_add(Nanos(nanoseconds.into()));
    (seconds < MAX_AGE && nanoseconds < 1_000_000_000).then_some(age)
}
