//! The protocol between endpoint and arbiter over a simulated network: [`schedules`] of faults, single faults, limits, overhead and cost.

mod faults;
mod limits;
mod oracle;
mod overhead;
mod random;
mod schedules;
mod share;
mod wire;
mod world;
