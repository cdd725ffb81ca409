//! Flow records as routers export them: NetFlow v5, NetFlow v9 (RFC 3954), IPFIX (RFC 7011), sFlow v5.
//!
//! | module | what it has |
//! |---|---|
//! | [`batch`] | [`RecordBatch`]: decoded records, a column for each thing that a record may tell |
//! | [`counters`] | [`CounterBatch`]: interface counters of sFlow in columns |
//! | [`decode`] | [`Decoder`]: export messages of many exporters to rows |
//! | [`address`] | [`Address`]: an IPv4 or IPv6 address, or none, in sixteen bytes |
//! | [`encode`] | records to messages: NetFlow v5, v9 and IPFIX |

pub mod address;
pub mod batch;
mod columns;
pub mod counters;
pub mod decode;
pub mod encode;

pub use address::Address;
pub use batch::{Format, Record, RecordBatch};
pub use counters::{CounterBatch, CounterRecord};
pub use decode::{DecodeError, Decoded, Decoder, Limits};
