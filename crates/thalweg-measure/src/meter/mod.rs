//! Metering: packets in, exact flow records out.

pub(crate) mod ages;
mod entry;
pub mod flow_table;
pub mod fragments;
pub mod intake;
pub mod observer;
pub mod record;
pub mod top;
