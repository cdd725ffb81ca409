//! Compiled templates: the bytes of a record for each column of the batch.
//!
//! A template is compiled once, when it arrives. The plan then runs column by column over all records of a set, each
//! column in one branch-free loop without allocation per record.

use super::clock::{ExportTime, from_ntp};
use super::element::{COLUMNS, Column, Role, Unit};
use super::layers::Layers;
use super::matrix::{Matrix, big_endian};
use super::place::{Place, address, is_unspecified};
use super::sampling::{Sampling, SelectedBy};
use super::sparse_columns;
use crate::flow_export::batch::UNKNOWN_DIRECTION;
use crate::flow_export::{Address, Format, RecordBatch};

/// Values of a message header that apply to all records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) received_us: i64,
    pub(super) exporter: Address,
    pub(super) observation_domain_id: u32,
    pub(super) format: Format,
    pub(super) export: ExportTime,
    /// The sampling interval of the header (NetFlow v5) or the configuration; 0: unknown.
    pub(super) sampling_interval: u32,
    /// Whether rows of sampled packets describe the packets in tunnels.
    pub(super) decapsulate: bool,
}

/// The direction of a plan's rows in a biflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlowPart {
    Uniflow,
    Forward,
    Reverse,
}

/// The position of each column in a record.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    places: [Place; COLUMNS],
    /// Alternative positions for unspecified values, in order of preference.
    others: Vec<(Column, Place)>,
    /// All positions of sparse columns, in order of preference.
    sparse: Vec<(Column, Place)>,
    /// The headers of a tunnel and of the packet in it.
    layers: Option<Layers>,
    part: FlowPart,
}

/// A column of a batch, and its value for unreported fields.
enum Slot<'a> {
    U8(&'a mut Vec<u8>, u8),
    U16(&'a mut Vec<u16>),
    U32(&'a mut Vec<u32>),
    U64(&'a mut Vec<u64>),
    Address(&'a mut Vec<Address>),
    Time(&'a mut Vec<i64>),
}

/// The columns that are copied from records without further rules.
const COPIED: [Column; 22] = {
    use Column::*;
    [
        SourceAddress,
        DestinationAddress,
        NextHop,
        Octets,
        Packets,
        IngressInterface,
        EgressInterface,
        SourceAs,
        DestinationAs,
        SourcePort,
        DestinationPort,
        TcpFlags,
        IcmpTypeCode,
        VlanId,
        Protocol,
        ClassOfService,
        SourcePrefixLength,
        DestinationPrefixLength,
        FlowDirection,
        FlowEndReason,
        FlowStart,
        FlowEnd,
    ]
};

fn slot(column: Column, batch: &mut RecordBatch) -> Option<Slot<'_>> {
    Some(match column {
        Column::Exporter => Slot::Address(&mut batch.exporter),
        Column::SourceAddress => Slot::Address(&mut batch.source_address),
        Column::DestinationAddress => Slot::Address(&mut batch.destination_address),
        Column::NextHop => Slot::Address(&mut batch.next_hop),
        Column::Octets => Slot::U64(&mut batch.octets),
        Column::Packets => Slot::U64(&mut batch.packets),
        Column::IngressInterface => Slot::U32(&mut batch.ingress_interface),
        Column::EgressInterface => Slot::U32(&mut batch.egress_interface),
        Column::SourceAs => Slot::U32(&mut batch.source_as),
        Column::DestinationAs => Slot::U32(&mut batch.destination_as),
        Column::SamplingInterval => Slot::U32(&mut batch.sampling_interval),
        Column::SourcePort => Slot::U16(&mut batch.source_port),
        Column::DestinationPort => Slot::U16(&mut batch.destination_port),
        Column::TcpFlags => Slot::U16(&mut batch.tcp_flags),
        Column::IcmpTypeCode => Slot::U16(&mut batch.icmp_type_code),
        Column::VlanId => Slot::U16(&mut batch.vlan_id),
        Column::Protocol => Slot::U8(&mut batch.protocol, 0),
        Column::ClassOfService => Slot::U8(&mut batch.class_of_service, 0),
        Column::SourcePrefixLength => Slot::U8(&mut batch.source_prefix_length, 0),
        Column::DestinationPrefixLength => Slot::U8(&mut batch.destination_prefix_length, 0),
        Column::FlowDirection => Slot::U8(&mut batch.flow_direction, UNKNOWN_DIRECTION),
        Column::FlowEndReason => Slot::U8(&mut batch.flow_end_reason, 0),
        Column::FlowStart => Slot::Time(&mut batch.flow_start_us),
        Column::FlowEnd => Slot::Time(&mut batch.flow_end_us),
        Column::BiflowDirection
        | Column::Duration
        | Column::SystemInitTime
        | Column::Selector
        | Column::SelectionSequence
        | Column::IcmpType
        | Column::IcmpCode => return None,
        sparse => unreachable!("{sparse:?} is a sparse column"),
    })
}

impl Plan {
    /// Compiles the plan of a template from the positions of its elements, and the plan of the reverse rows if its
    /// records are biflows (RFC 5103).
    pub(super) fn compile(sources: &[(Role, Place)]) -> (Plan, Option<Plan>) {
        let of = |reverse: bool| sources.iter().filter(move |(role, _)| role.reverse == reverse);
        let counts = |(role, _): &(Role, Place)| matches!(role.column, Column::Octets | Column::Packets);
        let forward = of(false).map(|&(role, place)| (role.column, role.rank, place));
        if !of(true).any(counts) {
            return (Plan::of(forward.collect(), FlowPart::Uniflow), None);
        }
        // Reverse elements take precedence over values that both directions share.
        let own = of(true).map(|&(role, place)| (role.column, role.rank, place));
        let shared = of(false).filter_map(|&(role, place)| {
            Some((role.column.reversed()?, role.rank.saturating_add(128), place))
        });
        let reverse = own.chain(shared).collect();
        (Plan::of(forward.collect(), FlowPart::Forward), Some(Plan::of(reverse, FlowPart::Reverse)))
    }

    fn of(mut sources: Vec<(Column, u8, Place)>, part: FlowPart) -> Plan {
        sources.sort_by_key(|&(column, rank, _)| (column, rank));
        let layers = Layers::of(&sources);
        let (sparse, sources): (Vec<_>, Vec<_>) =
            sources.into_iter().partition(|(column, ..)| column.is_sparse());
        let sparse = sparse.into_iter().map(|(column, _, place)| (column, place)).collect();
        let mut plan = Plan { places: [Place::default(); COLUMNS], others: Vec::new(), sparse, layers, part };
        for (column, _, place) in sources {
            match &mut plan.places[column as usize] {
                free if free.length == 0 => *free = place,
                _ => plan.others.push((column, place)),
            }
        }
        plan.join_icmp();
        plan
    }

    /// Reads an ICMP type that is followed by the code as one number.
    fn join_icmp(&mut self) {
        let [kind, code] = [self.place(Column::IcmpType), self.place(Column::IcmpCode)];
        let adjacent = kind.length == 1 && code.length == 1 && code.offset == kind.offset + 1;
        let joined = &mut self.places[Column::IcmpTypeCode as usize];
        if adjacent && joined.length == 0 {
            *joined = Place { length: 2, ..kind };
        }
    }

    fn place(&self, column: Column) -> Place {
        self.places[column as usize]
    }

    /// Whether records have a value for a column.
    pub(super) fn has(&self, column: Column) -> bool {
        self.place(column).length > 0
    }

    /// Whether records describe flows: they have addresses or counters.
    pub(super) fn describes_flows(&self) -> bool {
        self.has_addresses() || self.has(Column::Octets) || self.has(Column::Packets)
    }

    /// Whether records have source or destination addresses.
    pub(super) fn has_addresses(&self) -> bool {
        self.has(Column::SourceAddress) || self.has(Column::DestinationAddress)
    }

    /// Appends a row for each record. Returns the number of rows without their own time.
    pub(super) fn rows(
        &self,
        records: Matrix<'_>,
        header: &Header,
        sampling: &Sampling,
        into: &mut RecordBatch,
    ) -> u64 {
        let first = into.len();
        let rows = first + records.rows();
        into.received_us.resize(rows, header.received_us);
        into.exporter.resize(rows, header.exporter);
        into.observation_domain_id.resize(rows, header.observation_domain_id);
        into.format.resize(rows, header.format);
        into.sampling_interval.resize(rows, sampling.interval(header.sampling_interval));
        for column in COPIED {
            self.extend(column, records, header, into);
        }
        into.resize_inner(rows);
        into.resize_sparse(rows);
        for &(column, place) in &self.sparse {
            sparse_columns::fill(column, place, first, records, into);
        }
        self.extend_biflow_direction(records, &mut into.biflow_direction);
        self.override_constants(first, records, into);
        for &(column, place) in &self.others {
            fill(column, place, first, records, header, into);
        }
        self.apply_sampling(first, records, sampling, into);
        self.clear_zero_next_hops(&mut into.next_hop[first..]);
        self.fill_icmp(first, records, header.format, into);
        if let Some(layers) = &self.layers {
            layers.apply(first, records, into);
        }
        self.fill_missing_times(first, records, header, into)
    }

    /// Appends the values of one column.
    fn extend(&self, column: Column, records: Matrix<'_>, header: &Header, into: &mut RecordBatch) {
        let place = self.place(column);
        let Some(slot) = slot(column, into) else { return };
        let rows = records.rows();
        match slot {
            Slot::U8(values, none) if place.length == 0 => values.resize(values.len() + rows, none),
            Slot::U16(values) if place.length == 0 => values.resize(values.len() + rows, 0),
            Slot::U32(values) if place.length == 0 => values.resize(values.len() + rows, 0),
            Slot::U64(values) if place.length == 0 => values.resize(values.len() + rows, 0),
            Slot::Time(values) if place.length == 0 => values.resize(values.len() + rows, 0),
            Slot::U8(values, _) => append(values, place, records, |n| n.min(u64::from(u8::MAX)) as u8),
            Slot::U16(values) => append(values, place, records, |n| n.min(u64::from(u16::MAX)) as u16),
            Slot::U32(values) => append(values, place, records, |n| n.min(u64::from(u32::MAX)) as u32),
            Slot::U64(values) => append(values, place, records, |n| n),
            Slot::Address(values) => append_addresses(values, place, records),
            Slot::Time(values) => self.append_times(values, place, records, header.export),
        }
    }

    fn append_times(&self, values: &mut Vec<i64>, place: Place, records: Matrix<'_>, export: ExportTime) {
        match place.unit {
            Unit::Uptime if self.has(Column::SystemInitTime) => {
                let Place { offset, length, .. } = self.place(Column::SystemInitTime);
                let started = records.numbers(offset.into(), length.into());
                let uptimes = records.numbers(place.offset.into(), place.length.into());
                let absolute = |(started, uptime)| export.started_at(started as i64).at(uptime as u32);
                values.extend(started.zip(uptimes).map(absolute));
            }
            Unit::Uptime => append(values, place, records, |n| export.at(n as u32)),
            Unit::Milliseconds => append(values, place, records, |n| absolute(Unit::Milliseconds, n, export)),
            Unit::Ntp => append(values, place, records, |n| absolute(Unit::Ntp, n, export)),
            unit => append(values, place, records, |n| absolute(unit, n, export)),
        }
    }

    /// Appends the biflow direction as reported; unreported, the forward rows of a biflow are the initiator's.
    fn extend_biflow_direction(&self, records: Matrix<'_>, values: &mut Vec<u8>) {
        let place = self.place(Column::BiflowDirection);
        let part = self.part;
        let direction = move |reported: u64| match (part, reported) {
            (FlowPart::Uniflow, 1 | 2) => reported as u8,
            (FlowPart::Uniflow, _) => 0,
            (FlowPart::Forward, 2) | (FlowPart::Reverse, 0 | 1 | 3..) => 2,
            (FlowPart::Forward, _) | (FlowPart::Reverse, 2) => 1,
        };
        match place.length {
            0 => values.resize(values.len() + records.rows(), direction(0)),
            _ => append(values, place, records, direction),
        }
    }

    /// Sets the exporter and the sampling interval that records report themselves.
    fn override_constants(&self, first: usize, records: Matrix<'_>, into: &mut RecordBatch) {
        let place = self.place(Column::Exporter);
        if place.length > 0 {
            for (value, record) in into.exporter[first..].iter_mut().zip(records.records()) {
                let reported = address(place.of(record));
                if !is_unspecified(reported) {
                    *value = reported;
                }
            }
        }
        let place = self.place(Column::SamplingInterval);
        if place.length > 0 {
            let reported = records.numbers(place.offset.into(), place.length.into());
            for (value, reported) in into.sampling_interval[first..].iter_mut().zip(reported) {
                if reported > 0 {
                    *value = reported.min(u32::MAX.into()) as u32;
                }
            }
        }
    }

    /// Applies the sampling intervals of the selectors and interfaces that records refer to.
    fn apply_sampling(&self, first: usize, records: Matrix<'_>, sampling: &Sampling, into: &mut RecordBatch) {
        if !sampling.is_per_source() || self.has(Column::SamplingInterval) {
            return;
        }
        let [selector, sequence] = [self.place(Column::Selector), self.place(Column::SelectionSequence)];
        for (index, record) in records.records().enumerate() {
            let row = first + index;
            let number = |place: Place| (place.length > 0).then(|| big_endian(place.of(record)));
            let selectors = SelectedBy { selector: number(selector), sequence: number(sequence) };
            let interfaces = [into.ingress_interface[row], into.egress_interface[row]];
            if let Some(interval) = sampling.interval_of(selectors, interfaces) {
                into.sampling_interval[row] = interval;
            }
        }
    }

    /// Replaces a next hop of zeros by none: the destination is attached to the router.
    fn clear_zero_next_hops(&self, next_hops: &mut [Address]) {
        if self.has(Column::NextHop) {
            next_hops
                .iter_mut()
                .filter(|next_hop| is_unspecified(**next_hop))
                .for_each(|none| *none = Address::NONE);
        }
    }

    /// Fills the ICMP type and code from separate fields, or from the destination port as in NetFlow v5 and v9.
    fn fill_icmp(&self, first: usize, records: Matrix<'_>, format: Format, into: &mut RecordBatch) {
        if self.has(Column::IcmpTypeCode) {
            return;
        }
        let [kind, code] = [self.place(Column::IcmpType), self.place(Column::IcmpCode)];
        if kind.length > 0 {
            for (value, record) in into.icmp_type_code[first..].iter_mut().zip(records.records()) {
                *value = (big_endian(kind.of(record)) << 8 | big_endian(code.of(record)) & 0xFF) as u16;
            }
        } else if matches!(format, Format::NetFlow5 | Format::NetFlow9) {
            let ports = into.source_port[first..].iter().zip(&into.destination_port[first..]);
            let rows = into.icmp_type_code[first..].iter_mut().zip(&into.protocol[first..]).zip(ports);
            for ((value, &protocol), (&source, &destination)) in rows {
                let is_icmp = (protocol == 1 || protocol == 58) && source == 0;
                *value = if is_icmp { destination } else { 0 };
            }
        }
    }

    /// Computes missing times from the other time, the duration or the export time. Returns the number of rows without
    /// times.
    fn fill_missing_times(
        &self,
        first: usize,
        records: Matrix<'_>,
        header: &Header,
        into: &mut RecordBatch,
    ) -> u64 {
        let starts = &mut into.flow_start_us[first..];
        let ends = &mut into.flow_end_us[first..];
        let missing = |(&start, &end): (&i64, &i64)| start == 0 || end == 0;
        if !starts.iter().zip(&*ends).any(missing) {
            return 0;
        }
        let mut untimed = 0;
        for ((start, end), record) in starts.iter_mut().zip(ends).zip(records.records()) {
            match (*start, *end) {
                (0, 0) => {
                    *end = header.export.unix_us;
                    *start = end.saturating_sub(self.duration_us(record));
                    untimed += 1;
                }
                (0, _) => *start = end.saturating_sub(self.duration_us(record)),
                (_, 0) => *end = start.saturating_add(self.duration_us(record)),
                _ => {}
            }
        }
        untimed
    }

    /// Returns the duration of a flow: as reported, or the difference of two uptimes of an exporter with unknown start.
    fn duration_us(&self, record: &[u8]) -> i64 {
        let duration = self.place(Column::Duration);
        let [start, end] = [self.place(Column::FlowStart), self.place(Column::FlowEnd)];
        let number = |place: Place| big_endian(place.of(record));
        if duration.length > 0 {
            let unit_us = if duration.unit == Unit::Milliseconds { 1000 } else { 1 };
            i64::try_from(number(duration)).unwrap_or(i64::MAX).saturating_mul(unit_us)
        } else if [start, end].iter().all(|place| place.length > 0 && place.unit == Unit::Uptime) {
            i64::from((number(end) as u32).wrapping_sub(number(start) as u32)) * 1000
        } else {
            0
        }
    }
}

/// Appends one value per record, with a separate loop for each usual length.
#[inline]
fn append<T>(values: &mut Vec<T>, place: Place, records: Matrix<'_>, value: impl Fn(u64) -> T) {
    let offset = usize::from(place.offset);
    match place.length {
        1 => values.extend(records.fields(offset).map(|[byte]| value(byte.into()))),
        2 => values.extend(records.fields(offset).map(|bytes| value(u16::from_be_bytes(bytes).into()))),
        4 => values.extend(records.fields(offset).map(|bytes| value(u32::from_be_bytes(bytes).into()))),
        8 => values.extend(records.fields(offset).map(|bytes| value(u64::from_be_bytes(bytes)))),
        length => values.extend(records.numbers(offset, length.into()).map(value)),
    }
}

fn append_addresses(values: &mut Vec<Address>, place: Place, records: Matrix<'_>) {
    let offset = usize::from(place.offset);
    match place.length {
        4 => values.extend(records.fields(offset).map(|bytes| Address::v4(u32::from_be_bytes(bytes)))),
        16 => values.extend(records.fields(offset).map(|bytes| Address(u128::from_be_bytes(bytes)))),
        _ => values.resize(values.len() + records.rows(), Address::NONE),
    }
}

/// Converts to microseconds since 1970; 0 for an unknown time. Saturates (in the year 294,000).
#[inline]
fn absolute(unit: Unit, number: u64, export: ExportTime) -> i64 {
    let times = |factor: u64| (number.min(i64::MAX as u64 / factor) * factor) as i64;
    match unit {
        Unit::Seconds => times(1_000_000),
        Unit::Milliseconds => times(1000),
        Unit::Plain | Unit::Microseconds => times(1),
        Unit::Ntp => from_ntp(number),
        Unit::DeltaMicroseconds => export.unix_us.saturating_sub(times(1)),
        Unit::Uptime => export.at(number as u32),
    }
}

/// Fills the unreported values of a column from an alternative position.
fn fill(
    column: Column,
    place: Place,
    first: usize,
    records: Matrix<'_>,
    header: &Header,
    into: &mut RecordBatch,
) {
    fn each<T: Copy + PartialEq>(
        values: &mut [T],
        none: T,
        values_in: impl Iterator<Item = u64>,
        make: impl Fn(u64) -> T,
    ) {
        values.iter_mut().zip(values_in).filter(|(value, _)| **value == none).for_each(|(v, n)| *v = make(n));
    }
    let Some(slot) = slot(column, into) else { return };
    if let Slot::Address(values) = slot {
        let rows = values[first..].iter_mut().zip(records.records());
        return rows
            .filter(|(value, _)| is_unspecified(**value))
            .for_each(|(value, record)| *value = address(place.of(record)));
    }
    let reported = records.numbers(place.offset.into(), place.length.into());
    match slot {
        Slot::Address(_) => {}
        Slot::U8(values, none) => each(&mut values[first..], none, reported, |n| n.min(255) as u8),
        Slot::U16(values) => each(&mut values[first..], 0, reported, |n| n.min(u16::MAX.into()) as u16),
        Slot::U32(values) => each(&mut values[first..], 0, reported, |n| n.min(u32::MAX.into()) as u32),
        Slot::U64(values) => each(&mut values[first..], 0, reported, |n| n),
        Slot::Time(values) => {
            each(&mut values[first..], 0, reported, |n| absolute(place.unit, n, header.export))
        }
    }
}
