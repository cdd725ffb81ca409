//! The columns that analyses read, and their ranges.

use std::ops::RangeInclusive;

use thalweg_wire::flow_export::{Address, Format, LabelStack, Mac, Name};

use super::value::Value;

/// A column of flow records.
#[derive(Debug)]
pub(crate) struct Field<V: Value> {
    pub(crate) name: &'static str,
    /// Range of its values.
    pub(super) range: V::Range,
    /// Whether it has timestamps.
    pub(super) timestamp: bool,
    /// Whether files of earlier versions of the columns lack it, whose rows then have the default.
    pub(super) optional: bool,
}

impl<V: Value> Field<V> {
    const fn new(name: &'static str, range: V::Range) -> Field<V> {
        Field { name, range, timestamp: false, optional: false }
    }

    /// Returns a column that came with version 3.
    const fn since_3(name: &'static str, range: V::Range) -> Field<V> {
        Field { name, range, timestamp: false, optional: true }
    }

    const fn times(name: &'static str, range: V::Range) -> Field<V> {
        Field { name, range, timestamp: true, optional: false }
    }
}

const U8_32: RangeInclusive<i32> = 0..=u8::MAX as i32;
const U16_32: RangeInclusive<i32> = 0..=u16::MAX as i32;
const U32_64: RangeInclusive<i64> = 0..=u32::MAX as i64;
const COUNTS: RangeInclusive<i64> = 0..=i64::MAX;
/// Within 73,000 years of 1970, so that differences cannot overflow.
const TIMES: RangeInclusive<i64> = -(1 << 61)..=1 << 61;

pub(crate) const RECEIVED: Field<i64> = Field::times("received", TIMES);
pub(crate) const EXPORTER: Field<Address> = Field::new("exporter", ());
pub(crate) const OBSERVATION_DOMAIN_ID: Field<i64> = Field::new("observation_domain_id", U32_64);
pub(crate) const FORMAT: Field<Format> = Field::new("format", ());
pub(crate) const SAMPLING_INTERVAL: Field<i64> = Field::new("sampling_interval", U32_64);
pub(crate) const FLOW_START: Field<i64> = Field::times("flow_start", TIMES);
pub(crate) const FLOW_END: Field<i64> = Field::times("flow_end", TIMES);
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
pub(crate) const FLOW_END_REASON: Field<i32> = Field::new("flow_end_reason", U8_32);
pub(crate) const SRC_MAC: Field<Mac> = Field::since_3("src_mac", ());
pub(crate) const DST_MAC: Field<Mac> = Field::since_3("dst_mac", ());
pub(crate) const POST_SRC_MAC: Field<Mac> = Field::since_3("post_src_mac", ());
pub(crate) const POST_DST_MAC: Field<Mac> = Field::since_3("post_dst_mac", ());
pub(crate) const POST_VLAN_ID: Field<i32> = Field::since_3("post_vlan_id", U16_32);
pub(crate) const CUSTOMER_VLAN_ID: Field<i32> = Field::since_3("customer_vlan_id", U16_32);
pub(crate) const MIN_TTL: Field<i32> = Field::since_3("min_ttl", U8_32);
pub(crate) const MAX_TTL: Field<i32> = Field::since_3("max_ttl", U8_32);
pub(crate) const FORWARDING_STATUS: Field<i32> = Field::since_3("forwarding_status", U8_32);
pub(crate) const POST_TOS: Field<i32> = Field::since_3("post_tos", U8_32);
pub(crate) const MPLS_LABELS: Field<LabelStack> = Field::since_3("mpls_labels", ());
pub(crate) const INGRESS_VRF_ID: Field<i64> = Field::since_3("ingress_vrf_id", U32_64);
pub(crate) const EGRESS_VRF_ID: Field<i64> = Field::since_3("egress_vrf_id", U32_64);
pub(crate) const BGP_NEXT_HOP: Field<Address> = Field::since_3("bgp_next_hop", ());
pub(crate) const NEXT_AS: Field<i64> = Field::since_3("next_as", U32_64);
pub(crate) const PREVIOUS_AS: Field<i64> = Field::since_3("previous_as", U32_64);
pub(crate) const OBSERVATION_POINT_ID: Field<i64> = Field::since_3("observation_point_id", COUNTS);
pub(crate) const EXPORTER_NAME: Field<Name> = Field::since_3("exporter_name", ());
pub(crate) const INGRESS_INTERFACE_NAME: Field<Name> = Field::since_3("ingress_interface_name", ());
pub(crate) const EGRESS_INTERFACE_NAME: Field<Name> = Field::since_3("egress_interface_name", ());
pub(crate) const INGRESS_VRF_NAME: Field<Name> = Field::since_3("ingress_vrf_name", ());
pub(crate) const EGRESS_VRF_NAME: Field<Name> = Field::since_3("egress_vrf_name", ());
pub(crate) const SRC_COUNTRY: Field<Name> = Field::since_3("src_country", ());
pub(crate) const DST_COUNTRY: Field<Name> = Field::since_3("dst_country", ());
