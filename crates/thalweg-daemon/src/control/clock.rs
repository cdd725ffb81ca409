//! The time that the controller goes by: that of packets.

use thalweg_wire::Timestamp;

use super::ControlParts;
use crate::clock::wall_clock;
use crate::collectors::CollectorList;
use crate::emulation::Emulation;

/// Where time comes from.
#[derive(Clone, Debug)]
pub(super) enum Clock {
    /// The emulation tells.
    Emulation(Emulation),
    /// Packets of interfaces have the clock of this machine.
    Wall,
    /// The latest packet that something was told of.
    Packets(Timestamp),
}

impl Clock {
    /// The clock of a daemon; whether it reads interfaces is seen later, by [`Clock::use_wall_clock_if_live`]. If it only listens to others it is
    /// that of this machine, until one of them [says otherwise](Clock::use_packet_time).
    pub(super) fn of(parts: &ControlParts, has_remotes: bool) -> Clock {
        match parts.network.emulation() {
            Some(emulation) => Clock::Emulation(emulation.clone()),
            None if parts.collectors.all().is_empty() && has_remotes => Clock::Wall,
            None => Clock::Packets(Timestamp::default()),
        }
    }

    /// Goes by the clock of this machine as soon as one collector does.
    pub(super) fn use_wall_clock_if_live(&mut self, collectors: &CollectorList) {
        let is_live = || collectors.all().iter().any(|collector| collector.description().is_live);
        if matches!(self, Clock::Packets(_)) && is_live() {
            *self = Clock::Wall;
        }
    }

    /// What is told has no clock of any machine.
    pub(super) fn use_packet_time(&mut self) {
        if matches!(self, Clock::Wall) {
            *self = Clock::Packets(Timestamp::default());
        }
    }

    /// Something was told of a packet of this time.
    pub(super) fn observe(&mut self, time: Timestamp) {
        if let Clock::Packets(latest) = self {
            *latest = time.max(*latest);
        }
    }

    /// When something of this time is told: by the clock of this machine if packets go by that.
    pub(super) fn emitted(&self, time: Timestamp) -> Timestamp {
        if matches!(self, Clock::Wall) { wall_clock() } else { time }
    }

    pub(super) fn now(&self) -> Timestamp {
        match self {
            Clock::Emulation(emulation) => emulation.now(),
            Clock::Wall => wall_clock(),
            Clock::Packets(latest) => *latest,
        }
    }
}
