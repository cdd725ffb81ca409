//! Reads the columns that the analysis needs, in blocks.

use thalweg_wire::flow_export::Address;

use super::AnalyseError;
use crate::read::{BLOCK, Column, ReadError, RowGroup, Schema, Source, field};

/// Declares the columns to read.
macro_rules! columns {
    ($($name:ident: $type:ty = $field:ident;)*) => {
        /// Checks that all columns exist.
        pub(super) fn check(schema: &Schema<'_>) -> Result<(), ReadError> {
            $(schema.find(&field::$field)?;)*
            Ok(())
        }

        /// The columns of a row group, at a read position.
        struct Columns {
            $($name: Column<$type>,)*
        }

        impl Columns {
            fn open(group: &RowGroup<'_>) -> Result<Columns, ReadError> {
                Ok(Columns { $($name: group.column(&field::$field)?,)* })
            }

            /// Reads the next block.
            fn read(&mut self, block: &mut Block) -> Result<(), ReadError> {
                $(self.$name.read(&mut block.$name[..block.rows])?;)*
                Ok(())
            }
        }

        /// Flow records in columns; only the first `rows` are valid.
        pub(super) struct Block {
            pub(super) rows: usize,
            $(pub(super) $name: Box<[$type]>,)*
        }

        impl Block {
            pub(super) fn new() -> Block {
                Block { rows: 0, $($name: vec![<$type>::default(); BLOCK].into(),)* }
            }
        }
    };
}

columns! {
    exporter: Address = EXPORTER;
    observation_domain_id: i64 = OBSERVATION_DOMAIN_ID;
    sampling_interval: i64 = SAMPLING_INTERVAL;
    flow_start: i64 = FLOW_START;
    flow_end: i64 = FLOW_END;
    source_address: Address = SRC;
    destination_address: Address = DST;
    source_port: i32 = SRC_PORT;
    destination_port: i32 = DST_PORT;
    protocol: i32 = PROTOCOL;
    tcp_flags: i32 = TCP_FLAGS;
    octets: i64 = BYTES;
    packets: i64 = PACKETS;
    source_as: i64 = SRC_AS;
    destination_as: i64 = DST_AS;
    flow_direction: i32 = FLOW_DIRECTION;
}

/// Passes each block of a row group to `each`, which may fail.
pub(super) fn read(
    source: &Source,
    row_group: usize,
    block: &mut Block,
    mut each: impl FnMut(&Block) -> Result<(), AnalyseError>,
) -> Result<(), AnalyseError> {
    let group = source.open(row_group)?;
    let mut columns = Columns::open(&group)?;
    let mut left = group.rows;
    while left > 0 {
        block.rows = left.min(BLOCK as u64) as usize;
        columns.read(block)?;
        each(block)?;
        left -= block.rows as u64;
    }
    Ok(())
}
