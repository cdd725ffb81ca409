//! Interface counters: how many packets a router sent and dropped, as the router counts them.
//!
//! ```text
//!   SNMP agent ──► snmp ─────┐
//!   switch ──────► openflow ─┼──► InterfaceReading ──► Differences ──► Interval ──► LossWindow
//!   this kernel ─► qdisc ────┘
//! ```
//!
//! This is the router query agent (RQA) of Fu, *Heavy-hitter* dissertation, University of Virginia 2018, section 4.2: it
//! requests the discard and packet counters of the port that is monitored, every 10 s for example, and averages over the
//! last N requests.
//!
//! **Where we differ.** The dissertation reads the counters of the port. A port with a scavenger queue drops packets of
//! redirected flows by design, so its sum says nothing about the primary queue. [`Scope`] says what the drops of a reading
//! count, and an interval has a loss only if it is that of the primary queue.
//!
//! | module | contents |
//! |---|---|
//! | [`reading`] | the counters of an interface at one time |
//! | [`source`](mod@source) | the trait of sources, and their errors |
//! | [`snmp`] | a source: IF-MIB (RFC 2863) by SNMP v2c or v3 |
//! | [`openflow`] | a source: port and queue statistics of an OpenFlow switch |
//! | [`qdisc`] | a source: the queues of an interface of this host |
//! | [`interval`] | differences of readings: wraps, resets, changed interfaces |
//! | [`window`] | the loss over the last N intervals |

pub mod interval;
pub mod openflow;
pub mod qdisc;
pub mod reading;
pub mod snmp;
pub mod source;
pub mod window;

pub use interval::{Differences, Interval, Loss, Traffic, Unusable};
pub use reading::{Counter, InterfaceReading, PortCounters, QueueCounters, Scope};
pub use source::{CounterSource, ReadError};
pub use window::LossWindow;
