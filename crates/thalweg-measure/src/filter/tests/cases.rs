//! The cases of `tests/filter-cases.toml`, which the Python implementation passes too.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;
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
            // A flow without next hop is in no network.
            Field::NextHop => {
                self.next_hop.parse().ok().or(Some(IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED)))
            }
            _ => None,
        }
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
