//! Records with the headers of two layers: a tunnel, and the packet in it (SRv6, IP in IP, ...).
//!
//! Elements that occur several times follow the order of the headers (RFC 7011 section 8), so the first addresses of a
//! record are those of the outer header. Templates for both IP versions have two pairs of addresses, too, of which a
//! record uses one and sets the other to zeros; such a record has one layer. A pair of source and destination address
//! belongs together by version and occurrence. The other header fields belong to a pair in this order:
//!
//! 1. Prefix lengths belong to the pair of their IP version and occurrence.
//! 2. A field that occurs as often as there are pairs belongs to the pair of the same position.
//! 3. Of a field that occurs several times otherwise, the first is outer and the second inner.
//! 4. A field that occurs once is inner if it follows an address of the inner pair, and otherwise outer. A protocol of
//!    4 or 41 (IPv4, IPv6) is always outer, because it announces the inner header.

use super::element::Column;
use super::matrix::{Matrix, big_endian};
use super::place::{Place, address, is_unspecified};
use crate::flow_export::{Address, RecordBatch};

/// IPv4 and IPv6 in IP (RFC 2003, RFC 2473).
const IP_IN_IP: [u64; 2] = [4, 41];

/// ICMP and ICMPv6.
const ICMP: [u64; 2] = [1, 58];

/// The header fields that occur once for each layer, except addresses and prefix lengths.
const FIELDS: [Column; 5] =
    [Column::SourcePort, Column::DestinationPort, Column::Protocol, Column::TcpFlags, Column::ClassOfService];

/// The index of the protocol in [`FIELDS`].
const PROTOCOL: usize = 2;

/// The address pairs of a template, and its header fields.
#[derive(Clone, Debug)]
pub(super) struct Layers {
    /// By position of the first address.
    pairs: Box<[Pair]>,
    /// The occurrences of each of [`FIELDS`], by position.
    fields: [Box<[Place]>; FIELDS.len()],
}

/// Source and destination address of a header.
#[derive(Clone, Copy, Debug)]
struct Pair {
    addresses: [Place; 2],
    prefix_lengths: [Place; 2],
}

/// The header fields of a layer.
#[derive(Clone, Copy, Debug)]
struct Layer {
    addresses: [Address; 2],
    prefix_lengths: [u8; 2],
    /// The values of [`FIELDS`].
    fields: [u64; FIELDS.len()],
}

impl Layers {
    /// Returns the layers of a template with several pairs of addresses.
    pub(super) fn of(sources: &[(Column, u8, Place)]) -> Option<Layers> {
        let [from, to] = [Column::SourceAddress, Column::DestinationAddress].map(|c| places(sources, c));
        let mut pairs = Vec::new();
        for (length, rank) in [(4, 0), (16, 1)] {
            let of_version = |places: &[Place]| -> Vec<Place> {
                places.iter().copied().filter(|place| place.length == length).collect()
            };
            let prefixes = [Column::SourcePrefixLength, Column::DestinationPrefixLength]
                .map(|column| places_of_rank(sources, column, rank));
            for (number, (from, to)) in of_version(&from).into_iter().zip(of_version(&to)).enumerate() {
                let prefix_lengths =
                    prefixes.each_ref().map(|places| places.get(number).copied().unwrap_or_default());
                pairs.push(Pair { addresses: [from, to], prefix_lengths });
            }
        }
        pairs.sort_by_key(Pair::offset);
        let fields = FIELDS.map(|column| places(sources, column).into_boxed_slice());
        (pairs.len() > 1).then(|| Layers { pairs: pairs.into(), fields })
    }

    /// Sets the header fields of the rows from `first`: both headers of records with two, the addresses of others.
    pub(super) fn apply(&self, first: usize, records: Matrix<'_>, into: &mut RecordBatch) {
        for (index, record) in records.records().enumerate() {
            let row = first + index;
            let mut used = (0..self.pairs.len()).filter(|&pair| self.pairs[pair].is_used(record));
            match (used.next(), used.next()) {
                (Some(outer), Some(inner)) => {
                    let [outer, inner] = self.layers(outer, inner, record);
                    outer.write(row, into);
                    inner.write_inner(row, into);
                }
                (Some(only), None) => {
                    let addresses = self.pairs[only].addresses_in(record);
                    [into.source_address[row], into.destination_address[row]] = addresses;
                }
                (None, _) => {}
            }
        }
    }

    /// Returns the outer and the inner layer of a record that uses two pairs.
    fn layers(&self, outer: usize, inner: usize, record: &[u8]) -> [Layer; 2] {
        let mut layers = [(outer, false), (inner, true)].map(|(pair, is_inner)| Layer {
            addresses: self.pairs[pair].addresses_in(record),
            prefix_lengths: self.pairs[pair].prefix_lengths.map(|place| number(place, record).min(128) as u8),
            fields: self
                .fields
                .each_ref()
                .map(|places| number(self.place_in(places, pair, inner, is_inner), record)),
        });
        let [outer, inner] = &mut layers;
        let [from, to] = [&mut inner.fields[PROTOCOL], &mut outer.fields[PROTOCOL]];
        if *to == 0 && IP_IN_IP.contains(from) {
            std::mem::swap(from, to);
        }
        layers
    }

    /// Returns the position of a header field in a layer.
    fn place_in(&self, places: &[Place], pair: usize, inner: usize, is_inner: bool) -> Place {
        match *places {
            [only] if (only.offset > self.pairs[inner].offset()) == is_inner => only,
            [] | [_] => Place::default(),
            _ if places.len() == self.pairs.len() => places[pair],
            [_, second, ..] if is_inner => second,
            [first, ..] => first,
        }
    }
}

impl Pair {
    /// The offset of the first address.
    fn offset(&self) -> u16 {
        self.addresses[0].offset.min(self.addresses[1].offset)
    }

    fn addresses_in(&self, record: &[u8]) -> [Address; 2] {
        self.addresses.map(|place| address(place.of(record)))
    }

    /// Whether a record has an address of this pair.
    fn is_used(&self, record: &[u8]) -> bool {
        self.addresses_in(record).into_iter().any(|address| !is_unspecified(address))
    }
}

impl Layer {
    fn write(&self, row: usize, into: &mut RecordBatch) {
        let [source_port, destination_port, protocol, tcp_flags, class_of_service] = self.fields;
        [into.source_address[row], into.destination_address[row]] = self.addresses;
        [into.source_prefix_length[row], into.destination_prefix_length[row]] = self.prefix_lengths;
        into.source_port[row] = as_u16(source_port);
        into.destination_port[row] = as_u16(destination_port);
        into.protocol[row] = as_u8(protocol);
        into.tcp_flags[row] = as_u16(tcp_flags);
        into.class_of_service[row] = as_u8(class_of_service);
        if !ICMP.contains(&protocol) {
            into.icmp_type_code[row] = 0;
        }
    }

    fn write_inner(&self, row: usize, into: &mut RecordBatch) {
        let [source_port, destination_port, protocol, tcp_flags, class_of_service] = self.fields;
        [into.inner_source_address[row], into.inner_destination_address[row]] = self.addresses;
        [into.inner_source_prefix_length[row], into.inner_destination_prefix_length[row]] =
            self.prefix_lengths;
        into.inner_source_port[row] = as_u16(source_port);
        into.inner_destination_port[row] = as_u16(destination_port);
        into.inner_protocol[row] = as_u8(protocol);
        into.inner_tcp_flags[row] = as_u16(tcp_flags);
        into.inner_class_of_service[row] = as_u8(class_of_service);
    }
}

/// Returns the occurrences of a column, by position.
fn places(sources: &[(Column, u8, Place)], column: Column) -> Vec<Place> {
    let of_column = sources.iter().filter(|source| source.0 == column);
    let mut places: Vec<Place> = of_column.map(|source| source.2).collect();
    places.sort_by_key(|place| place.offset);
    places
}

/// Returns the occurrences of one element for a column, by position. Values shared by both directions of a biflow have
/// higher ranks.
fn places_of_rank(sources: &[(Column, u8, Place)], column: Column, rank: u8) -> Vec<Place> {
    let of_rank: Vec<_> = sources.iter().copied().filter(|source| source.1 & 0x7F == rank).collect();
    places(&of_rank, column)
}

fn number(place: Place, record: &[u8]) -> u64 {
    big_endian(place.of(record))
}

fn as_u16(number: u64) -> u16 {
    number.min(u16::MAX.into()) as u16
}

fn as_u8(number: u64) -> u8 {
    number.min(u8::MAX.into()) as u8
}
