//! A whole network in software, on abstract packets and in timeslots (Ousterhout et al., "Flexplane", NSDI
//! 2017, sections 3.1 to 3.4): the core takes batches of abstract packets in and gives batches of outcomes
//! out. In virtual time it runs as fast as the cores allow, and the same seed gives the same bytes; in real
//! time the slot clock comes in as an argument.

#![deny(unsafe_code)]

pub mod build;
pub mod core;
pub mod fabric;
pub mod hosts;
pub mod mirror;
pub mod outcome;
pub mod packet;
pub mod ports;
pub mod queues;
pub mod router;
pub mod schemes;
pub mod slot;
pub mod workloads;

pub use fabric::{Fabric, Network};
pub use outcome::{Dropped, Fate, Outcome, Place, Reason, Request};
pub use packet::{Ecn, Packet};
pub use slot::{Slot, SlotClock};
