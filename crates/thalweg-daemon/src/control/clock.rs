//! The controller's clock: packet time.

use thalweg_wire::Timestamp;

use super::ControlParts;
use crate::collectors::CollectorList;
use crate::emulation::Emulation;
use thalweg_linux::clock::realtime;

/// The source of time.
#[derive(Clone, Debug)]
pub(super) enum Clock {
    /// Emulated time.
    Emulation(Emulation),
    /// The clock of this machine, which packets of interfaces have.
    Wall,
    /// The latest packet time of an event.
    Packets(Timestamp),
}

impl Clock {
    /// Creates the clock of a daemon. [`Clock::use_wall_clock_if_live`] detects interfaces later. With remote collectors only, it is the
    /// clock of this machine, until [`Clock::use_packet_time`] is called.
    pub(super) fn of(parts: &ControlParts, has_remotes: bool) -> Clock {
        match parts.network.emulation() {
            Some(emulation) => Clock::Emulation(emulation.clone()),
            None if parts.collectors.all().is_empty() && has_remotes => Clock::Wall,
            None => Clock::Packets(Timestamp::default()),
        }
    }

    /// Switches to the clock of this machine if a collector is live.
    pub(super) fn use_wall_clock_if_live(&mut self, collectors: &CollectorList) {
        let is_live = || collectors.all().iter().any(|collector| collector.description().is_live);
        if matches!(self, Clock::Packets(_)) && is_live() {
            *self = Clock::Wall;
        }
    }

    /// Switches to the packet time of events, which is not the clock of a machine.
    pub(super) fn use_packet_time(&mut self) {
        if matches!(self, Clock::Wall) {
            *self = Clock::Packets(Timestamp::default());
        }
    }

    /// Advances packet time to that of an event.
    pub(super) fn observe(&mut self, time: Timestamp) {
        if let Clock::Packets(latest) = self {
            *latest = time.max(*latest);
        }
    }

    /// Returns the publication time of an event of this time: by the clock of this machine if packets have that.
    pub(super) fn emitted(&self, time: Timestamp) -> Timestamp {
        if matches!(self, Clock::Wall) { realtime() } else { time }
    }

    pub(super) fn now(&self) -> Timestamp {
        match self {
            Clock::Emulation(emulation) => emulation.now(),
            Clock::Wall => realtime(),
            Clock::Packets(latest) => *latest,
        }
    }
}
