//! The cases of `tests/filter-cases.toml`, which the Python implementation passes too.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;
use thalweg_wire::flow_export::{LabelStack, Mac};
use thalweg_wire::{Bytes, Nanos};

use super::super::*;

const CASES: &str = include_str!("../../../tests/filter-cases.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    default: toml::Table,
    flows: BTreeMap<String, toml::Table>,
    selects: Vec<Selects>,
    refused: Vec<Refused>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Selects {
    filter: String,
    flows: Vec<String>,
    /// Whether nfdump selects the same flows; only the Python tests check this.
    #[serde(default, rename = "nfdump")]
    _nfdump: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refused {
    filter: String,
    line: Option<usize>,
    column: usize,
    kind: String,
    message: String,
}

/// A flow record.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    pub(super) src: IpAddr,
    pub(super) dst: IpAddr,
    pub(super) src_port: u16,
    pub(super) dst_port: u16,
    pub(super) protocol: u8,
    pub(super) tcp_flags: u8,
    pub(super) bytes: u64,
    pub(super) packets: u64,
    pub(super) duration_us: u64,
    pub(super) icmp_type_code: u16,
    pub(super) tos: u8,
    pub(super) src_as: u32,
    pub(super) dst_as: u32,
    pub(super) src_prefix_length: u8,
    pub(super) dst_prefix_length: u8,
    pub(super) ingress_interface: u32,
    pub(super) egress_interface: u32,
    pub(super) vlan_id: u16,
    pub(super) flow_direction: u8,
    pub(super) observation_domain_id: u32,
    /// Empty if there is none.
    pub(super) next_hop: String,
    pub(super) exporter: IpAddr,
    pub(super) post_vlan_id: u16,
    pub(super) customer_vlan_id: u16,
    pub(super) src_mac: String,
    pub(super) dst_mac: String,
    pub(super) post_src_mac: String,
    pub(super) post_dst_mac: String,
    pub(super) min_ttl: u8,
    pub(super) max_ttl: u8,
    pub(super) forwarding_status: u8,
    pub(super) post_tos: u8,
    pub(super) mpls_labels: String,
    pub(super) ingress_vrf_id: u32,
    pub(super) egress_vrf_id: u32,
    pub(super) bgp_next_hop: String,
    pub(super) next_as: u32,
    pub(super) previous_as: u32,
    pub(super) observation_point_id: u64,
    pub(super) exporter_name: String,
    pub(super) ingress_interface_name: String,
    pub(super) egress_interface_name: String,
    pub(super) ingress_vrf_name: String,
    pub(super) egress_vrf_name: String,
    pub(super) src_country: String,
    pub(super) dst_country: String,
}

/// Returns the number of a MAC address; 0 for the empty text.
fn mac(text: &str) -> u64 {
    text.parse().unwrap_or(Mac::NONE).number()
}

/// Returns an address. A flow without one is in no network.
fn address_or_none(text: &str) -> IpAddr {
    text.parse().unwrap_or(IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED))
}

impl FlowFields for Record {
    fn number(&self, field: Field) -> Option<u64> {
        Some(match field {
            Field::SrcPort => self.src_port.into(),
            Field::DstPort => self.dst_port.into(),
            Field::Protocol => self.protocol.into(),
            Field::TcpFlags => self.tcp_flags.into(),
            Field::InBytes => self.bytes,
            Field::InPackets => self.packets,
            Field::Flows => 1,
            Field::IcmpType => (self.icmp_type_code >> 8).into(),
            Field::IcmpCode => (self.icmp_type_code & 0xFF).into(),
            Field::Tos => self.tos.into(),
            Field::SrcAs => self.src_as.into(),
            Field::DstAs => self.dst_as.into(),
            Field::SrcPrefixLength => self.src_prefix_length.into(),
            Field::DstPrefixLength => self.dst_prefix_length.into(),
            Field::IngressInterface => self.ingress_interface.into(),
            Field::EgressInterface => self.egress_interface.into(),
            Field::VlanId => self.vlan_id.into(),
            Field::FlowDirection => self.flow_direction.into(),
            Field::ObservationDomainId => self.observation_domain_id.into(),
            Field::ObservationPointId => self.observation_point_id,
            Field::PostVlanId => self.post_vlan_id.into(),
            Field::CustomerVlanId => self.customer_vlan_id.into(),
            Field::SrcMac => mac(&self.src_mac),
            Field::DstMac => mac(&self.dst_mac),
            Field::PostSrcMac => mac(&self.post_src_mac),
            Field::PostDstMac => mac(&self.post_dst_mac),
            Field::MinTtl => self.min_ttl.into(),
            Field::MaxTtl => self.max_ttl.into(),
            Field::ForwardingStatus => self.forwarding_status.into(),
            Field::PostTos => self.post_tos.into(),
            Field::MplsLabel(position) => self.labels().entry(usize::from(position) - 1).label.into(),
            Field::MplsExperimental(position) => {
                self.labels().entry(usize::from(position) - 1).experimental.into()
            }
            Field::MplsBottom => self.labels().bottom().into(),
            Field::IngressVrfId => self.ingress_vrf_id.into(),
            Field::EgressVrfId => self.egress_vrf_id.into(),
            Field::NextAs => self.next_as.into(),
            Field::PreviousAs => self.previous_as.into(),
            _ => {
                let duration = Nanos::from_micros(self.duration_us);
                return Totals { bytes: Bytes(self.bytes), packets: self.packets, duration }.number(field);
            }
        })
    }

    fn address(&self, field: Field) -> Option<IpAddr> {
        match field {
            Field::SrcAddress => Some(self.src),
            Field::DstAddress => Some(self.dst),
            Field::Exporter => Some(self.exporter),
            Field::NextHop => Some(address_or_none(&self.next_hop)),
            Field::BgpNextHop => Some(address_or_none(&self.bgp_next_hop)),
            _ => None,
        }
    }

    fn has_mpls_label(&self, label: u64) -> Option<bool> {
        Some(self.labels().has(label as u32))
    }

    fn text(&self, field: Field) -> Option<&str> {
        Some(match field {
            Field::ExporterName => &self.exporter_name,
            Field::IngressInterfaceName => &self.ingress_interface_name,
            Field::EgressInterfaceName => &self.egress_interface_name,
            Field::IngressVrfName => &self.ingress_vrf_name,
            Field::EgressVrfName => &self.egress_vrf_name,
            Field::SrcCountry => &self.src_country,
            Field::DstCountry => &self.dst_country,
            _ => return None,
        })
    }
}

impl Record {
    /// Returns a record without any value.
    pub(super) fn unreported() -> Record {
        let default = cases().default;
        let cleared = default.into_iter().map(|(name, value)| {
            let value = match value {
                toml::Value::Integer(_) => 0.into(),
                toml::Value::String(text) if text.parse::<IpAddr>().is_err() => "".into(),
                address => address,
            };
            (name, value)
        });
        toml::Table::from_iter(cleared).try_into().unwrap()
    }

    fn labels(&self) -> LabelStack {
        self.mpls_labels.parse().unwrap()
    }
}

fn cases() -> Cases {
    toml::from_str(CASES).unwrap()
}

fn record(default: &toml::Table, differences: &toml::Table) -> Record {
    let mut flow = default.clone();
    flow.extend(differences.clone());
    flow.try_into().unwrap()
}

#[test]
fn every_case_of_the_shared_file_selects_its_flows() {
    let cases = cases();
    let flows: Vec<(&String, Record)> =
        cases.flows.iter().map(|(name, flow)| (name, record(&cases.default, flow))).collect();
    for Selects { filter, flows: expected, .. } in &cases.selects {
        let compiled =
            FlowFilter::compile(filter, &RECORDS).unwrap_or_else(|error| panic!("{filter}: {error}"));
        let selected: Vec<&String> =
            flows.iter().filter(|(_, flow)| compiled.matches(flow)).map(|(name, _)| *name).collect();
        let mut expected: Vec<&String> = expected.iter().collect();
        expected.sort();
        assert_eq!(selected, expected, "{filter}");
    }
}

#[test]
fn errors_have_a_position_and_a_message() {
    for Refused { filter, line, column, kind, message } in cases().refused {
        let error = FlowFilter::compile(&filter, &RECORDS).map(|read| read.to_string()).unwrap_err();
        assert_eq!((error.line, error.column, error.kind.name()), (line, column, kind.as_str()), "{filter}");
        assert_eq!(error.kind.to_string(), message, "{filter}");
    }
}
