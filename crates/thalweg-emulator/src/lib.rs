//! Emulates a whole network in software, with abstract packets and timeslots (Ousterhout et al., "Flexplane", NSDI 2017,
//! sections 3.1 to 3.4). The core takes batches of requests to send packets and returns batches of outcomes. In virtual time it runs as
//! fast as the cores allow, and the same seed gives the same bytes. In real time the slot clock is an argument.

#![deny(unsafe_code)]

pub mod bottleneck;
pub mod core;
pub mod endpoints;
pub mod fabric;
pub mod hosts;
pub mod mirror;
pub mod network;
pub mod outcome;
pub mod packet;
pub mod ports;
pub mod queues;
pub mod redirection;
pub mod router;
pub mod schemes;
pub mod slot;
pub mod ticks;
pub mod workloads;

pub use fabric::{Fabric, Network};
pub use outcome::{Dropped, Fate, Outcome, Place, Reason, Request};
pub use packet::{Ecn, Packet};
pub use slot::{Slot, SlotClock};
