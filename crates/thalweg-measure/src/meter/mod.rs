//! The metering process: packets in, exact flow records out.
//!
//! The metering process and the flow cache of RFC 5470 (section 5.1) with bidirectional flows (RFC 5103). [`intake`] parses
//! frames and counts those that are no IP packets. [`fragments`] assigns ports to later fragments. [`flow_table`] counts
//! each packet in the entry of its flow, and exports a [`record`] when the flow ends or the active timeout expires.
//!
//! **Guarantee.** Every frame is in exactly one flow record or one counter; nothing is sampled or estimated.
//!
//! **Cost.** A packet costs one look-up in the flow table, which [`observer`]s share for their own state per flow. The table
//! has a fixed size, allocated at the start: about 148 bytes per flow.

pub(crate) mod ages;
mod entry;
pub mod ethernet;
pub mod flow_table;
pub mod fragments;
pub mod intake;
pub mod observer;
pub mod record;
pub mod top;
