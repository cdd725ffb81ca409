//! Flow records: from routers' exports to what moved through the network.
//!
//! | module | what it has |
//! |---|---|
//! | [`schema`] | what is kept: the columns of each dataset |
//! | [`collect`] | the collecting process: sockets and captures, into the store |
//! | [`store`] | Parquet files by hour, behind a write-ahead spool |
//! | [`analyse`] | flow reconstruction and parallel flowsets over stored records, in bounded memory |
//! | [`read`] | stored records again, column by column |
//! | [`top`] | the largest groups of stored records |
//! | [`kafka`] | flow records to Kafka, from many collectors to one cluster |
//! | [`handoff`] | where flows go that are metered here: to a collector, into the store |
//! | [`metered`] | what our own meter hands on, as rows |
//! | [`export`] | an IPFIX exporting process over UDP, TCP and TLS |

pub mod analyse;
mod by_width;
pub mod collect;
pub mod export;
pub mod handoff;
pub mod kafka;
pub mod metered;
pub mod read;
pub mod schema;
pub mod store;
pub mod top;
