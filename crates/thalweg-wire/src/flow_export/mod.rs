//! Flow records as routers export them: NetFlow v5, NetFlow v9 (RFC 3954), IPFIX (RFC 7011), sFlow v5.
//!
//! | module | what it has |
//! |---|---|
//! | [`batch`] | [`RecordBatch`]: decoded records, a column for each thing that a record may tell |
//! | [`address`] | [`Address`]: an IPv4 or IPv6 address, or none, in sixteen bytes |

pub mod address;
pub mod batch;

pub use address::Address;
pub use batch::{Format, Record, RecordBatch};
