//! Flow records: collection, storage, export and analysis.
//!
//! | module | contents |
//! |---|---|
//! | [`schema`] | columns of the stored datasets |
//! | [`collect`] | the collecting process: from sockets and captures to the store |
//! | [`store`] | hourly Parquet files, behind a write-ahead spool |
//! | [`geo`] | countries and AS numbers of addresses, from local databases |
//! | [`import`] | imports files of nfdump |
//! | [`analyse`] | flow reconstruction and parallel flowsets from stored records, in bounded memory |
//! | [`read`] | reads stored records, column by column |
//! | [`select`] | the records of a store that were received in a time range and match a filter |
//! | [`top`] | the largest groups of stored records, and traffic over time |
//! | [`kafka`] | sends flow records to Kafka |
//! | [`handoff`] | sends locally metered flows to a collector, the store, or both |
//! | [`metered`] | converts locally metered flows to rows |
//! | [`recording`] | time and length of each packet of a link, for simulations |
//! | [`export`] | an IPFIX exporting process over UDP, TCP and TLS |

pub mod analyse;
mod by_width;
pub mod collect;
pub mod export;
pub mod geo;
pub mod handoff;
pub mod import;
pub mod kafka;
mod locked_file;
pub mod metered;
pub mod read;
pub mod recording;
pub mod schema;
pub mod select;
pub mod store;
pub mod top;
