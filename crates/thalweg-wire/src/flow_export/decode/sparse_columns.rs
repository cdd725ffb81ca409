//! Fills the columns that most exporters do not send.
//!
//! Of a template without such elements, they cost nothing per record.

use super::element::Column;
use super::matrix::{Matrix, big_endian};
use super::place::{Place, address, is_unspecified};
use crate::flow_export::{Address, Mac, RecordBatch, Sparse};

/// Fills a column of the rows from `first` where no element before this one gave a value.
pub(super) fn fill(column: Column, place: Place, first: usize, records: Matrix<'_>, into: &mut RecordBatch) {
    let u8 = |bytes: &[u8]| big_endian(bytes).min(u8::MAX.into()) as u8;
    let u16 = |bytes: &[u8]| big_endian(bytes).min(u16::MAX.into()) as u16;
    let u32 = |bytes: &[u8]| big_endian(bytes).min(u32::MAX.into()) as u32;
    match column {
        Column::SourceMac => each(&mut into.source_mac, first, place, records, mac),
        Column::DestinationMac => each(&mut into.destination_mac, first, place, records, mac),
        Column::PostSourceMac => each(&mut into.post_source_mac, first, place, records, mac),
        Column::PostDestinationMac => each(&mut into.post_destination_mac, first, place, records, mac),
        Column::PostVlanId => each(&mut into.post_vlan_id, first, place, records, u16),
        Column::CustomerVlanId => each(&mut into.customer_vlan_id, first, place, records, u16),
        Column::MinimumTtl => each(&mut into.minimum_ttl, first, place, records, u8),
        Column::MaximumTtl => each(&mut into.maximum_ttl, first, place, records, u8),
        Column::PostClassOfService => each(&mut into.post_class_of_service, first, place, records, u8),
        Column::ForwardingStatus => each(&mut into.forwarding_status, first, place, records, status),
        Column::IngressVrfId => each(&mut into.ingress_vrf_id, first, place, records, u32),
        Column::EgressVrfId => each(&mut into.egress_vrf_id, first, place, records, u32),
        Column::NextAs => each(&mut into.next_as, first, place, records, u32),
        Column::PreviousAs => each(&mut into.previous_as, first, place, records, u32),
        Column::ObservationPointId => {
            each(&mut into.observation_point_id, first, place, records, big_endian);
        }
        Column::BgpNextHop => each(&mut into.bgp_next_hop, first, place, records, next_hop),
        other => match other.label_position() {
            Some(position) => fill_label(position, place, first, records, into),
            None => unreachable!("{other:?} is no sparse column"),
        },
    }
}

fn each<T: Copy + Default + PartialEq>(
    column: &mut Sparse<T>,
    first: usize,
    place: Place,
    records: Matrix<'_>,
    value: impl Fn(&[u8]) -> T,
) {
    for (slot, record) in column.values_mut()[first..].iter_mut().zip(records.records()) {
        if *slot == T::default() {
            *slot = value(place.of(record));
        }
    }
}

fn fill_label(position: usize, place: Place, first: usize, records: Matrix<'_>, into: &mut RecordBatch) {
    for (stack, record) in into.mpls_labels.values_mut()[first..].iter_mut().zip(records.records()) {
        if let Ok(entry) = place.of(record).try_into() {
            stack.0[position] = entry;
        }
    }
}

fn mac(bytes: &[u8]) -> Mac {
    bytes.try_into().map_or(Mac::NONE, Mac)
}

fn next_hop(bytes: &[u8]) -> Address {
    Some(address(bytes)).filter(|&address| !is_unspecified(address)).unwrap_or_default()
}

/// Returns the status in a field of one byte, or of four, whose first or last byte has it: RFC 7270 section 4.12 does not
/// say which.
fn status(bytes: &[u8]) -> u8 {
    let number = big_endian(bytes);
    match number {
        ..=0xFF => number as u8,
        _ if bytes.len() == 4 && number & 0xFF == 0 => bytes[0],
        _ => number as u8,
    }
}
