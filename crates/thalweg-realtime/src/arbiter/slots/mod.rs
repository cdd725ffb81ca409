//! Who runs the slots of the emulated network: the thread of the arbiter itself, or threads of their own.
//!
//! | module | contents |
//! |---|---|
//! | `one_thread` | slots and socket in turns |
//! | [`shards`] | a thread for each part of the network, which exchanges packets with the arbiter's over rings |

pub(super) mod one_thread;
pub mod shards;

use std::sync::Arc;

use thalweg_emulator::core::events::EventQueue;
use thalweg_emulator::core::pacer::Punctuality;
use thalweg_emulator::{Outcome, Request};
use thalweg_network::{PortIndex, RouterId};
use thalweg_wire::{Nanos, Timestamp};

use super::Report;

/// Called with a packet that left the network: when, and how long it was in it.
pub(super) type Leave<'a> = dyn FnMut(Timestamp, &Outcome, Nanos) + 'a;

/// An emulated network whose slots follow the clock.
pub(super) trait Slots {
    /// Takes packets for the next slot, runs the slots that are due, and says which packets have left. Returns whether a slot has just run.
    fn turn(
        &mut self,
        clock: &mut dyn FnMut() -> Timestamp,
        requests: &mut Vec<Request>,
        leave: &mut Leave<'_>,
    ) -> bool;

    /// When the next turn is due, while packets are in the network.
    fn next_turn(&self, now: Timestamp) -> Timestamp;

    /// How well slots keep time.
    fn punctuality(&self) -> Punctuality;

    /// The queue of events that the network takes at the start of its next slot.
    fn events(&self) -> Arc<EventQueue>;

    /// Keeps the queue lengths of ports over time. Returns false if it cannot.
    fn record_queues(&mut self, ports: Vec<(RouterId, PortIndex)>) -> bool;

    /// Whether it has ended by itself, because a thread failed.
    fn has_failed(&self) -> bool;

    /// Ends the run. No turn follows.
    fn end(&mut self);

    /// Adds what was counted.
    fn report(&self, report: &mut Report);
}
