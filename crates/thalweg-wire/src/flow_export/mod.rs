//! Flow export: decodes and encodes NetFlow v5, NetFlow v9 (RFC 3954) and IPFIX (RFC 7011), and decodes sFlow v5.
//!
//! | module | contents |
//! |---|---|
//! | [`batch`] | [`RecordBatch`]: flow records in columns |
//! | [`counters`] | [`CounterBatch`]: sFlow interface counters in columns |
//! | [`decode`] | [`Decoder`]: export messages to rows |
//! | [`address`] | [`Address`]: an optional IPv4 or IPv6 address in 16 bytes |
//! | [`mac`], [`label_stack`], [`name`] | [`Mac`], [`LabelStack`], [`Name`]: values of columns |
//! | [`sparse`] | [`Sparse`]: a column that most batches have no values for |
//! | [`encode`] | rows to messages of NetFlow v5, v9 and IPFIX |

pub mod address;
pub mod batch;
mod columns;
pub mod counters;
pub mod decode;
pub mod encode;
pub mod label_stack;
pub mod mac;
pub mod name;
pub mod sparse;

pub use address::Address;
pub use batch::{Format, Record, RecordBatch};
pub use counters::{CounterBatch, CounterRecord};
pub use decode::{DecodeError, Decoded, Decoder, Limits};
pub use label_stack::LabelStack;
pub use mac::Mac;
pub use name::Name;
pub use sparse::Sparse;
