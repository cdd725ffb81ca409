//! Flows and flowsets in columns, as they are written.

use thalweg_wire::flow_export::Address;

use super::flow::Flow;
use super::flowset::Flowset;

/// The values of a column.
pub(super) enum Values<'a> {
    Address(&'a [Address]),
    Number(&'a [i32]),
    Count(&'a [i64]),
    /// Microseconds since 1970 (UTC).
    Time(&'a [i64]),
    Flag(&'a [bool]),
    /// Null for `None`.
    Ratio(&'a [Option<f64>]),
}

/// A table stored by column.
pub(super) trait Table: Default {
    /// Row type.
    type Row;

    /// Appends rows.
    fn extend(&mut self, rows: &[Self::Row]);

    /// Returns the number of rows.
    fn len(&self) -> usize;

    /// Removes all rows.
    fn clear(&mut self);

    /// Moves all rows of another table to this one.
    fn append(&mut self, other: &mut Self);

    /// Returns names and values of all columns, in order.
    fn columns(&self) -> Vec<(&'static str, Values<'_>)>;
}

macro_rules! table {
    ($(#[$doc:meta])* $table:ident of $row:ident; $($name:ident: $type:ty = $kind:ident, $value:expr;)*) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(super) struct $table {
            $($name: Vec<$type>,)*
        }

        impl Table for $table {
            type Row = $row;

            fn extend(&mut self, rows: &[$row]) {
                $(
                    let value: fn(&$row) -> $type = $value;
                    self.$name.extend(rows.iter().map(value));
                )*
            }

            fn len(&self) -> usize {
                self.src.len()
            }

            fn clear(&mut self) {
                $(self.$name.clear();)*
            }

            fn append(&mut self, other: &mut $table) {
                $(self.$name.append(&mut other.$name);)*
            }

            fn columns(&self) -> Vec<(&'static str, Values<'_>)> {
                vec![$((stringify!($name), Values::$kind(&self.$name)),)*]
            }
        }
    };
}

table! {
    /// Flows.
    FlowTable of Flow;
    src: Address = Address, |flow| flow.source_address;
    dst: Address = Address, |flow| flow.destination_address;
    src_port: i32 = Number, |flow| flow.source_port.into();
    dst_port: i32 = Number, |flow| flow.destination_port.into();
    protocol: i32 = Number, |flow| flow.protocol.into();
    flow_start: i64 = Time, |flow| flow.flow_start_us;
    flow_end: i64 = Time, |flow| flow.flow_end_us;
    bytes: i64 = Count, |flow| flow.octets;
    packets: i64 = Count, |flow| flow.packets;
    records: i64 = Count, |flow| flow.records;
    observation_points: i64 = Count, |flow| flow.observation_points;
    sampling_interval: i64 = Count, |flow| flow.sampling_interval.into();
    src_as: i64 = Count, |flow| flow.source_as.into();
    dst_as: i64 = Count, |flow| flow.destination_as.into();
    tcp_flags: i32 = Number, |flow| flow.tcp_flags.into();
    elephant: bool = Flag, |flow| flow.elephant;
}

table! {
    /// FlowsetBuilder.
    FlowsetTable of Flowset;
    src: Address = Address, |set| set.source_address;
    dst: Address = Address, |set| set.destination_address;
    flow_start: i64 = Time, |set| set.flow_start_us;
    flow_end: i64 = Time, |set| set.flow_end_us;
    flows: i64 = Count, |set| set.flows;
    bytes: i64 = Count, |set| set.octets;
    packets: i64 = Count, |set| set.packets;
    duration_ns: i64 = Count, |set| set.duration_us().saturating_mul(1000);
    rate_bps: Option<f64> = Ratio, |set| set.rate_bps();
    src_as: i64 = Count, |set| set.source_as.into();
    dst_as: i64 = Count, |set| set.destination_as.into();
}
