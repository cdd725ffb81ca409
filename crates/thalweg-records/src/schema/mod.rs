//! What is kept: the columns of each dataset, said once.
//!
//! The file writer, the spool and the reference page `docs/reference/flow-records.md` all follow these tables.
//!
//! | module | what it has |
//! |---|---|
//! | [`dataset`] | [`Dataset`]: batches of columns, whatever they tell |
//! | `flows` | the columns of `flows` |
//! | `interface_counters` | the columns of `interface-counters` |
//! | [`mod@reference`] | the reference page |

pub mod dataset;
mod flows;
mod interface_counters;
pub mod reference;

pub use dataset::{Dataset, Values, ValuesMut};

/// One column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name in Parquet.
    pub name: &'static str,
    /// What its values are.
    pub kind: Kind,
    /// The IPFIX information elements that it is read from, with their numbers (IANA's registry); for interface
    /// counters the objects of RFC 2863, without.
    pub elements: &'static [(&'static str, u16)],
    /// Unit; empty where there is none.
    pub unit: &'static str,
    /// What it tells.
    pub meaning: &'static str,
    /// What stands there if the exporter did not tell; empty where it always tells.
    pub not_told: &'static str,
}

/// What the values of a column are, and so how Parquet has them. No column has nulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Microseconds since 1970 (UTC): `INT64`, `TIMESTAMP(MICROS, isAdjustedToUTC = true)`.
    Timestamp,
    /// An address as text: `BYTE_ARRAY`, `STRING`.
    Address,
    /// A format's name: `BYTE_ARRAY`, `STRING`.
    Format,
    /// Eight bits: `INT32`.
    U8,
    /// Sixteen bits: `INT32`.
    U16,
    /// Thirty-two bits: `INT64`.
    U32,
    /// Sixty-four bits: `INT64`; what is above its range is written as its largest value.
    U64,
}

impl Kind {
    /// Its type in Parquet, as the reference page names it.
    pub const fn parquet(self) -> &'static str {
        match self {
            Kind::Timestamp => "timestamp (µs, UTC)",
            Kind::Address | Kind::Format => "string",
            Kind::U8 | Kind::U16 => "int32",
            Kind::U32 | Kind::U64 => "int64",
        }
    }
}
