//! The columns that analyses read, and their ranges.

use std::ops::RangeInclusive;

use thalweg_wire::flow_export::{Address, Format};

use super::value::Value;

/// A column of flow records.
#[derive(Debug)]
pub(crate) struct Field<V: Value> {
    pub(crate) name: &'static str,
    /// Range of its values.
    pub(super) range: V::Range,
    /// Whether it has timestamps.
    pub(super) timestamp: bool,
}

impl<V: Value> Field<V> {
    const fn new(name: &'static str, range: V::Range) -> Field<V> {
        Field { name, range, timestamp: false }
    }
}

const U8_32: RangeInclusive<i32> = 0..=u8::MAX as i32;
const U16_32: RangeInclusive<i32> = 0..=u16::MAX as i32;
const U32_64: RangeInclusive<i64> = 0..=u32::MAX as i64;
const COUNTS: RangeInclusive<i64> = 0..=i64::MAX;
/// Within 73,000 years of 1970, so that differences cannot overflow.
const TIMES: RangeInclusive<i64> = -(1 << 61)..=1 << 61;

pub(crate) const RECEIVED: Field<i64> = Field { name: "received", range: TIMES, timestamp: true };
pub(crate) const EXPORTER: Field<Address> = Field::new("exporter", ());
pub(crate) const OBSERVATION_DOMAIN_ID: Field<i64> = Field::new("observation_domain_id", U32_64);
pub(crate) const FORMAT: Field<Format> = Field::new("format", ());
pub(crate) const SAMPLING_INTERVAL: Field<i64> = Field::new("sampling_interval", U32_64);
pub(crate) const FLOW_START: Field<i64> = Field { name: "flow_start", range: TIMES, timestamp: true };
pub(crate) const FLOW_END: Field<i64> = Field { name: "flow_end", range: TIMES, timestamp: true };
pub(crate) const SRC: Field<Address> = Field::new("src", ());
pub(crate) const DST: Field<Address> = Field::new("dst", ());
pub(crate) const SRC_PORT: Field<i32> = Field::new("src_port", U16_32);
pub(crate) const DST_PORT: Field<i32> = Field::new("dst_port", U16_32);
pub(crate) const PROTOCOL: Field<i32> = Field::new("protocol", U8_32);
pub(crate) const TCP_FLAGS: Field<i32> = Field::new("tcp_flags", U16_32);
pub(crate) const TOS: Field<i32> = Field::new("tos", U8_32);
pub(crate) const ICMP_TYPE_CODE: Field<i32> = Field::new("icmp_type_code", U16_32);
pub(crate) const BYTES: Field<i64> = Field::new("bytes", COUNTS);
pub(crate) const PACKETS: Field<i64> = Field::new("packets", COUNTS);
pub(crate) const INGRESS_INTERFACE: Field<i64> = Field::new("ingress_interface", U32_64);
pub(crate) const EGRESS_INTERFACE: Field<i64> = Field::new("egress_interface", U32_64);
pub(crate) const SRC_AS: Field<i64> = Field::new("src_as", U32_64);
pub(crate) const DST_AS: Field<i64> = Field::new("dst_as", U32_64);
pub(crate) const NEXT_HOP: Field<Address> = Field::new("next_hop", ());
pub(crate) const SRC_PREFIX_LENGTH: Field<i32> = Field::new("src_prefix_length", U8_32);
pub(crate) const DST_PREFIX_LENGTH: Field<i32> = Field::new("dst_prefix_length", U8_32);
pub(crate) const VLAN_ID: Field<i32> = Field::new("vlan_id", U16_32);
pub(crate) const FLOW_DIRECTION: Field<i32> = Field::new("flow_direction", U8_32);
