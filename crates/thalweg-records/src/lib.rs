//! Flow records: from routers' exports to what moved through the network.
//!
//! | module | what it has |
//! |---|---|
//! | [`schema`] | what is kept: the columns of each dataset |
//! | [`collect`] | the collecting process: sockets and captures, into the store |
//! | [`store`] | Parquet files by hour, behind a write-ahead spool |
//! | [`analyse`] | flow reconstruction and parallel flowsets over stored records, in bounded memory |
//! | [`generator`] | flow records with known truth, as routers would export them |
//! | [`handoff`] | where flows go that are metered here: to a collector, into the store |
//! | [`metered`] | what our own meter hands on, as rows |
//! | [`export`] | an IPFIX exporting process over UDP, TCP and TLS |

pub mod analyse;
pub mod collect;
pub mod export;
pub mod generator;
pub mod handoff;
pub mod metered;
pub mod schema;
pub mod store;
