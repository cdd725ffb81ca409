//! The protocol between endpoint and arbiter over a simulated network: [`schedules`] of faults, limits and cost.

mod limits;
mod oracle;
mod random;
mod schedules;
mod share;
mod wire;
mod world;
