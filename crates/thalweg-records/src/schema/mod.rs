//! The columns of each dataset.
//!
//! The file writer, the spool and the reference page `docs/reference/flow-records.md` all derive from these tables.
//!
//! | module | contents |
//! |---|---|
//! | [`dataset`] | [`Dataset`]: batches of columns that a store can keep |
//! | `flows` | the columns of `flows` |
//! | `interface_counters` | the columns of `interface-counters` |
//! | [`transfers`], [`hosts`], [`host_metrics`], [`connections`] | the columns of what transfer hosts report |
//! | [`nfdump`] | the fields of nfdump, and the columns for them |
//! | [`mod@reference`] | generates the reference page |

pub mod connections;
pub mod dataset;
mod flows;
pub mod host_metrics;
pub mod hosts;
mod interface_counters;
pub mod nfdump;
pub mod reference;
pub mod transfers;

pub use dataset::{Dataset, SparseMut, Values, ValuesMut};

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name in Parquet.
    pub name: &'static str,
    /// Type of the values.
    pub kind: Kind,
    /// IPFIX information elements that it is read from, with their numbers in IANA's registry. Interface counters have none;
    /// their meaning names the objects of RFC 2863.
    pub elements: &'static [(&'static str, u16)],
    /// Unit; empty if it has none.
    pub unit: &'static str,
    /// Meaning, for the reference page.
    pub meaning: &'static str,
    /// Value if the exporter does not send it; empty if it is always present.
    pub if_missing: &'static str,
}

/// Type of a column's values, and thus its type in Parquet. No column has nulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Microseconds since 1970 (UTC): `INT64`, `TIMESTAMP(MICROS, isAdjustedToUTC = true)`.
    Timestamp,
    /// An address as text: `BYTE_ARRAY`, `STRING`.
    Address,
    /// A format's name: `BYTE_ARRAY`, `STRING`.
    Format,
    /// Any text: `BYTE_ARRAY`, `STRING`.
    Text,
    /// A name that many rows share: `BYTE_ARRAY`, `STRING`.
    Name,
    /// A MAC address as text: `BYTE_ARRAY`, `STRING`.
    Mac,
    /// A stack of MPLS labels as text: `BYTE_ARRAY`, `STRING`.
    Labels,
    /// 8 bits: `INT32`.
    U8,
    /// 16 bits: `INT32`.
    U16,
    /// 32 bits: `INT64`.
    U32,
    /// 64 bits: `INT64`; larger values are clamped to its maximum.
    U64,
}

impl Kind {
    /// Returns its Parquet type, as on the reference page.
    pub const fn parquet(self) -> &'static str {
        match self {
            Kind::Timestamp => "timestamp (µs, UTC)",
            Kind::Address | Kind::Format | Kind::Text | Kind::Name | Kind::Mac | Kind::Labels => "string",
            Kind::U8 | Kind::U16 => "int32",
            Kind::U32 | Kind::U64 => "int64",
        }
    }
}
