//! Differences of readings: packets, bytes and drops of an interval, or why they are unknown.
//!
//! **Wraps.** `ifOutDiscards` and `ifOutErrors` have 32 bits in IF-MIB, always. A lower value of such a counter is a wrap if the
//! difference is possible at the rate of the interface, and otherwise a reset. A lower value of a counter of 64 bits is a reset.
//! Open vSwitch sends the packets of a queue in 64 bits and takes them from a counter of the kernel with 32: [`Width::UpTo64`].
//!
//! **Resets.** `sysUpTime` that is lower than expected says that the agent restarted, `ifCounterDiscontinuityTime` that the
//! counters of the interface were reset. `sysUpTime` wraps after 497 days; the expected time tells a wrap from a restart. A queue
//! that is younger than expected was created again.
//!
//! **Lost polls.** Counters add up, so an interval over a lost poll is longer and loses nothing, unless a counter of 32 bits
//! could have wrapped twice.

use thalweg_wire::{Nanos, Timestamp};

use crate::reading::Width;
use crate::{Counter, InterfaceReading, PortCounters, QueueCounters, Scope};

/// `sysUpTime` may differ from the expected time by this many ticks, and by this share of the interval: clocks drift, and answers
/// take time.
const UPTIME_TOLERANCE_TICKS: u64 = 200;
const UPTIME_TOLERANCE_SHARE: f64 = 0.01;

/// The smallest packet on a link in bytes, with preamble and gap: Ethernet's.
const SMALLEST_FRAME_BYTES: f64 = 84.0;

/// A port can drop more packets than its link carries. The maximum, as a multiple of the packets that fit on the link:
/// this many inputs at the same rate.
const MAX_DROP_FACTOR: f64 = 64.0;

/// The maximum difference of a counter of 32 bits whose interface has an unknown rate.
const MAX_UNKNOWN: f64 = (1_u64 << 31) as f64;

/// A slack for bursts and for the error of reading times.
const SLACK: f64 = 1.25;

/// Traffic of one direction in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// Packets with errors; `None` if they are not counted.
    pub errors: Option<u64>,
    /// Dropped packets; `None` if they are not counted.
    pub discards: Option<u64>,
}

/// What the primary queue received and dropped in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Loss {
    /// Packets that arrived at the queue, including those that it dropped.
    pub packets: u64,
    /// Packets that it dropped, at most `packets`.
    pub drops: u64,
    /// Bytes that it sent; 0 if they are not counted.
    pub bytes: u64,
    /// Length of the interval.
    pub seconds: f64,
}

/// Why an interval has no loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unusable {
    /// There is no earlier reading.
    First,
    /// The agent restarted.
    Restarted,
    /// The counters of the interface were reset, or a queue was created again.
    Reset,
    /// A counter went back.
    WentBack,
    /// The interface has another index: it was deleted and created again, or the router restarted.
    Reindexed,
    /// The interface was renamed: the index now belongs to another port, or the agent shows an interface that is gone.
    Renamed,
    /// The source reads other counters than before.
    ScopeChanged,
    /// The clock did not advance, or a counter of 32 bits could have wrapped twice.
    BadTime,
    /// The drops count all queues, so the loss of the primary queue is unknown.
    SumOfQueues,
    /// The source does not count drops.
    NotCounted,
}

/// The time between two readings.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Its start; equals `end` if there is no earlier reading.
    pub start: Timestamp,
    /// Its end.
    pub end: Timestamp,
    /// Name and index of the interface at the end.
    pub interface: (String, u32),
    /// What the drops of the port count.
    pub scope: Scope,
    /// Received and sent traffic of the port, or why they are unknown.
    pub port: Result<(Traffic, Traffic), Unusable>,
    /// Packets that arrived at the scavenger queue and its drops, if it is read.
    pub scavenger: Option<Loss>,
    /// The primary queue, or why its loss is unknown.
    pub loss: Result<Loss, Unusable>,
}

/// Computes the intervals between readings.
#[derive(Clone, Debug, Default)]
pub struct Differences {
    last: Option<InterfaceReading>,
}

impl Loss {
    /// Returns the share of lost packets, from 0 to 1; `None` without packets.
    pub fn rate(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.drops as f64 / self.packets as f64)
    }
}

impl Unusable {
    /// Returns the name, as in the API: `restarted`.
    pub const fn name(self) -> &'static str {
        match self {
            Unusable::First => "first",
            Unusable::Restarted => "restarted",
            Unusable::Reset => "reset",
            Unusable::WentBack => "went_back",
            Unusable::Reindexed => "reindexed",
            Unusable::Renamed => "renamed",
            Unusable::ScopeChanged => "scope_changed",
            Unusable::BadTime => "bad_time",
            Unusable::SumOfQueues => "sum_of_queues",
            Unusable::NotCounted => "not_counted",
        }
    }
}

impl Differences {
    /// Returns the interval from the previous reading to this one.
    pub fn next(&mut self, reading: InterfaceReading) -> Interval {
        let interval = match &self.last {
            Some(last) => between(last, &reading),
            None => unusable(&reading, reading.time, Unusable::First),
        };
        self.last = Some(reading);
        interval
    }

    /// Returns the latest reading.
    pub fn last(&self) -> Option<&InterfaceReading> {
        self.last.as_ref()
    }
}

fn unusable(reading: &InterfaceReading, start: Timestamp, reason: Unusable) -> Interval {
    Interval {
        start,
        end: reading.time,
        interface: (reading.name.clone(), reading.index),
        scope: reading.scope,
        port: Err(reason),
        scavenger: None,
        loss: Err(reason),
    }
}

/// Returns the interval between two readings.
pub fn between(earlier: &InterfaceReading, later: &InterfaceReading) -> Interval {
    match differences(earlier, later) {
        Ok(interval) => interval,
        Err(reason) => unusable(later, earlier.time, reason),
    }
}

fn differences(earlier: &InterfaceReading, later: &InterfaceReading) -> Result<Interval, Unusable> {
    check_continuity(earlier, later)?;
    let limits = Limits::new(earlier, later)?;
    let (input, output) =
        (limits.traffic(&earlier.input, &later.input)?, limits.traffic(&earlier.output, &later.output)?);
    let queue = |from: &Option<QueueCounters>, to: &Option<QueueCounters>| match (from, to) {
        (Some(from), Some(to)) => limits.queue(from, to).map(Some),
        (None, None) => Ok(None),
        _ => Err(Unusable::ScopeChanged),
    };
    let primary = queue(&earlier.primary, &later.primary)?;
    let scavenger = queue(&earlier.scavenger, &later.scavenger)?;
    let port = output.discards.map(|drops| Loss {
        packets: output.packets.max(drops),
        drops,
        bytes: output.bytes,
        seconds: limits.seconds,
    });
    let loss = match (later.scope, primary, scavenger) {
        (Scope::PrimaryQueue, Some(primary), _) => Ok(primary),
        (Scope::PortLessScavenger, _, Some(scavenger)) => {
            port.map(|port| port.less(&scavenger)).ok_or(Unusable::NotCounted)
        }
        (Scope::OneQueue, ..) => port.ok_or(Unusable::NotCounted),
        _ => Err(Unusable::SumOfQueues),
    };
    Ok(Interval {
        start: earlier.time,
        end: later.time,
        interface: (later.name.clone(), later.index),
        scope: later.scope,
        port: Ok((input, output)),
        scavenger,
        loss,
    })
}

impl Loss {
    /// Subtracts the scavenger queue. Both are read one after the other, so it may have counted more. The packets of the port must
    /// include dropped ones, as IF-MIB says.
    fn less(&self, scavenger: &Loss) -> Loss {
        let drops = self.drops.saturating_sub(scavenger.drops);
        Loss {
            packets: self.packets.saturating_sub(scavenger.packets).max(drops),
            drops,
            bytes: self.bytes.saturating_sub(scavenger.bytes),
            seconds: self.seconds,
        }
    }
}

/// Checks that both readings are of the same counters, which were not reset in between.
fn check_continuity(earlier: &InterfaceReading, later: &InterfaceReading) -> Result<(), Unusable> {
    if later.time <= earlier.time {
        return Err(Unusable::BadTime);
    }
    if has_restarted(earlier, later) {
        return Err(Unusable::Restarted);
    }
    if earlier.index != later.index {
        return Err(Unusable::Reindexed);
    }
    if earlier.name != later.name || earlier.description != later.description {
        return Err(Unusable::Renamed);
    }
    if earlier.discontinuity_ticks != later.discontinuity_ticks {
        return Err(Unusable::Reset);
    }
    match earlier.scope == later.scope {
        true => Ok(()),
        false => Err(Unusable::ScopeChanged),
    }
}

/// Whether the agent restarted: its time is behind the expected one. A time that is ahead is a slow answer.
fn has_restarted(earlier: &InterfaceReading, later: &InterfaceReading) -> bool {
    let (Some(from), Some(to)) = (earlier.uptime_ticks, later.uptime_ticks) else { return false };
    let elapsed = later.time.since(earlier.time).as_secs_f64() * 100.0;
    let error = (earlier.time_error.as_secs_f64() + later.time_error.as_secs_f64()) * 100.0;
    let tolerance = UPTIME_TOLERANCE_TICKS as f64 + error + elapsed * UPTIME_TOLERANCE_SHARE;
    let advanced = f64::from(to.wrapping_sub(from));
    // A restart within the tolerance still shows as a lower time.
    let went_back = to < from && from < u32::MAX - (elapsed + tolerance).min(f64::from(u32::MAX)) as u32;
    went_back || (advanced - elapsed % 4_294_967_296.0).abs() > tolerance
}

/// Whether a queue was created again: it is younger than expected.
fn was_created_again(from: Option<Nanos>, to: Option<Nanos>, limits: &Limits) -> bool {
    let (Some(from), Some(to)) = (from, to) else { return false };
    let tolerance =
        UPTIME_TOLERANCE_TICKS as f64 / 100.0 + limits.time_error + limits.seconds * UPTIME_TOLERANCE_SHARE;
    to < from || to.as_secs_f64() - from.as_secs_f64() < limits.seconds - tolerance
}

/// What is possible in an interval.
struct Limits {
    seconds: f64,
    /// Maximum error of `seconds`.
    time_error: f64,
    /// Maximum bytes, packets and drops of one direction; `None` if the rate is unknown.
    of_link: Option<(f64, f64, f64)>,
}

impl Limits {
    fn new(earlier: &InterfaceReading, later: &InterfaceReading) -> Result<Limits, Unusable> {
        let seconds = later.time.since(earlier.time).as_secs_f64();
        let time_error = earlier.time_error.as_secs_f64() + later.time_error.as_secs_f64();
        let longest = seconds + time_error;
        let of_link = later.speed.filter(|speed| speed.0 > 0).map(|speed| {
            let bytes = speed.0 as f64 / 8.0 * longest * SLACK;
            let packets = bytes / SMALLEST_FRAME_BYTES + 1.0;
            (bytes, packets, packets * MAX_DROP_FACTOR)
        });
        let limits = Limits { seconds, time_error, of_link };
        let wraps_twice = |limit: Option<f64>| limit.is_some_and(|limit| limit >= 4_294_967_296.0);
        let counters = [&later.input, &later.output];
        let is_narrow = |counter: fn(&PortCounters) -> Counter| {
            counters.iter().any(|port| counter(port).width == Width::Bits32)
        };
        let bad = is_narrow(|port| port.bytes) && wraps_twice(limits.of_link.map(|limits| limits.0))
            || is_narrow(|port| port.packets) && wraps_twice(limits.of_link.map(|limits| limits.1));
        match bad {
            true => Err(Unusable::BadTime),
            false => Ok(limits),
        }
    }

    fn traffic(&self, from: &PortCounters, to: &PortCounters) -> Result<Traffic, Unusable> {
        let (bytes, packets, drops) = self.split();
        Ok(Traffic {
            packets: advanced(from.packets, to.packets, packets)?,
            bytes: advanced(from.bytes, to.bytes, bytes)?,
            errors: optional(from.errors, to.errors, drops)?,
            discards: optional(from.discards, to.discards, drops)?,
        })
    }

    fn queue(&self, from: &QueueCounters, to: &QueueCounters) -> Result<Loss, Unusable> {
        if was_created_again(from.age, to.age, self) {
            return Err(Unusable::Reset);
        }
        let (bytes_limit, packets, drops) = self.split();
        let sent = advanced(from.sent_packets, to.sent_packets, packets)?;
        let drops = advanced(from.dropped_packets, to.dropped_packets, drops)?;
        let bytes = match (from.sent_bytes, to.sent_bytes) {
            (Some(from), Some(to)) => advanced(from, to, bytes_limit)?,
            _ => 0,
        };
        Ok(Loss { packets: sent + drops, drops, bytes, seconds: self.seconds })
    }

    fn split(&self) -> (Option<f64>, Option<f64>, Option<f64>) {
        let limits = self.of_link;
        (limits.map(|limits| limits.0), limits.map(|limits| limits.1), limits.map(|limits| limits.2))
    }
}

/// Returns by how much a counter advanced that may not be counted.
fn optional(from: Option<Counter>, to: Option<Counter>, limit: Option<f64>) -> Result<Option<u64>, Unusable> {
    match (from, to) {
        (Some(from), Some(to)) => advanced(from, to, limit).map(Some),
        (None, None) => Ok(None),
        _ => Err(Unusable::ScopeChanged),
    }
}

/// Returns by how much a counter advanced. `limit` is the maximum that is possible, if known.
fn advanced(from: Counter, to: Counter, limit: Option<f64>) -> Result<u64, Unusable> {
    if from.width != to.width {
        return Err(Unusable::ScopeChanged);
    }
    if to.value >= from.value {
        return Ok(to.value - from.value);
    }
    let wrapped = u64::from((to.value as u32).wrapping_sub(from.value as u32));
    let may_wrap = match from.width {
        Width::Bits32 => true,
        Width::UpTo64 => from.value <= u64::from(u32::MAX),
        Width::Bits64 => false,
    };
    match may_wrap && wrapped as f64 <= limit.unwrap_or(MAX_UNKNOWN).min(MAX_UNKNOWN) {
        true => Ok(wrapped),
        false => Err(Unusable::WentBack),
    }
}

#[cfg(test)]
mod tests;
