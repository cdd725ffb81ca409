//! Templates: the structure of records (RFC 7011 section 3.4, RFC 3954 sections 5.2 and 6.1).

use super::element::{Column, REVERSE, Role, Unit, roles};
use super::error::DecodeErrorKind;
use super::field::Field;
use super::matrix::Matrix;
use super::names::NameOptions;
use super::packet_header::NoPacket;
use super::packet_section::{PacketSection, join};
use super::place::Place;
use super::plan::{Header, Plan};
use super::reader::Reader;
use super::sampling::{Options, Sampling};
use crate::flow_export::{Format, RecordBatch};
use crate::time::Timestamp;

/// The first template number; smaller numbers identify kinds of sets.
pub(super) const FIRST_TEMPLATE: u16 = 256;

/// The length that marks a variable-length field (RFC 7011 section 7).
const VARIABLE: u16 = 0xFFFF;

/// A decoded template record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Definition<'a> {
    pub(super) id: u16,
    /// Whether it is an options template.
    pub(super) options: bool,
    /// The fields; empty for a withdrawal.
    pub(super) fields: Vec<Field>,
    /// The bytes of the record in the message.
    pub(super) bytes: &'a [u8],
}

/// A compiled template.
#[derive(Debug)]
pub(super) struct Template {
    /// The bytes of its record, to distinguish a refresh from a change.
    definition: Box<[u8]>,
    fields: Box<[Field]>,
    layout: Layout,
    purpose: Purpose,
    /// The time when it was last received.
    pub(super) defined: Timestamp,
    /// The decoder's message number at the last use.
    pub(super) last_used: u64,
}

/// A template as needed after a restart of the collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SavedTemplate {
    pub(super) options: bool,
    /// The time when it was last received.
    pub(super) defined: Timestamp,
    /// Its record.
    pub(super) record: Box<[u8]>,
}

/// The layout of records in a set.
#[derive(Debug)]
enum Layout {
    /// Records of equal length.
    Fixed { length: usize },
    /// Variable-length records: runs of fixed bytes with a variable-length field between two runs. Without these
    /// fields, none of which is used, the records have equal length.
    Variable { minimum: usize, runs: Box<[u16]> },
}

/// The purpose of records.
#[derive(Debug)]
enum Purpose {
    Flows {
        plan: Box<Plan>,
        reverse: Option<Box<Plan>>,
        /// Whether records are of NAT or firewall events, which describe flows only if they have counters.
        events: bool,
    },
    /// Sampled packets.
    Packets {
        plan: Box<Plan>,
        section: Box<PacketSection>,
    },
    Options,
    /// Records that describe neither flows nor options.
    Other,
}

/// The result of decoding a data set.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SetSummary {
    /// Data records in the set, including options records.
    pub(super) data_records: u64,
    pub(super) option_records: u64,
    pub(super) untimed: u64,
    pub(super) no_flow: u64,
    /// Records of NAT and firewall events without counters.
    pub(super) nat_events: u64,
    /// Sampled packets that are not IP.
    pub(super) not_ip: u64,
    /// Malformed sampled packets.
    pub(super) bad_frame: u64,
}

/// Reused buffers.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    rows: Vec<u8>,
    forward: RecordBatch,
    reverse: RecordBatch,
}

/// Iterates over the template records of a set, up to the first error.
pub(super) fn definitions<'a>(
    format: Format,
    options: bool,
    mut set: Reader<'a>,
) -> impl Iterator<Item = Result<Definition<'a>, DecodeErrorKind>> {
    std::iter::from_fn(move || {
        if set.is_padding() {
            return None;
        }
        let definition = match format {
            Format::NetFlow9 => netflow9_definition(options, &mut set),
            _ => ipfix_definition(options, &mut set),
        };
        if definition.is_err() {
            set = Reader::new("", &[]);
        }
        Some(definition)
    })
}

fn netflow9_definition<'a>(options: bool, set: &mut Reader<'a>) -> Result<Definition<'a>, DecodeErrorKind> {
    set.enter("template record");
    let record = *set;
    let id = template_id(set)?;
    let (scopes, others) = if options {
        // Lengths in bytes (RFC 3954 section 6.1).
        (set.u16()? / 4, set.u16()? / 4)
    } else {
        (0, set.u16()?)
    };
    let mut fields = Vec::new();
    for index in 0..u32::from(scopes) + u32::from(others) {
        let (id, length) = (set.u16()?, set.u16()?);
        let id = if index < u32::from(scopes) { scope_element(id) } else { id };
        fields.push(Field { enterprise: 0, id, length });
    }
    if fields.is_empty() {
        let (structure, offset) = ("template record", record.offset());
        return Err(DecodeErrorKind::Length {
            structure,
            offset,
            claimed: 0,
            expected: "at least one field",
        });
    }
    Ok(Definition { id, options, fields, bytes: record.bytes_until(set) })
}

/// Returns the IANA element equivalent to a NetFlow v9 scope; 0 for unused scopes.
fn scope_element(scope: u16) -> u16 {
    match scope {
        2 => 10,
        _ => 0,
    }
}

fn ipfix_definition<'a>(options: bool, set: &mut Reader<'a>) -> Result<Definition<'a>, DecodeErrorKind> {
    set.enter("template record");
    let record = *set;
    let id = set.u16()?;
    let count = set.u16()?;
    // A withdrawal of all templates has the number of its set (RFC 7011 section 8.1).
    let withdraws_all = count == 0 && id == if options { 3 } else { 2 };
    if id < FIRST_TEMPLATE && !withdraws_all {
        return Err(not_a_template(id, record.offset()));
    }
    if options && count > 0 {
        let offset = set.offset();
        let scopes = set.u16()?;
        if scopes == 0 || scopes > count {
            let expected = "a scope field count from 1 to the number of fields";
            let structure = "options template record";
            return Err(DecodeErrorKind::Length { structure, offset, claimed: scopes.into(), expected });
        }
    }
    let mut fields = Vec::new();
    for _ in 0..count {
        let (id, length) = (set.u16()?, set.u16()?);
        let enterprise = if id & 0x8000 == 0 { 0 } else { set.u32()? };
        fields.push(Field { enterprise, id: id & 0x7FFF, length });
    }
    Ok(Definition { id, options, fields, bytes: record.bytes_until(set) })
}

fn template_id(set: &mut Reader<'_>) -> Result<u16, DecodeErrorKind> {
    let offset = set.offset();
    match set.u16()? {
        id if id < FIRST_TEMPLATE => Err(not_a_template(id, offset)),
        id => Ok(id),
    }
}

fn not_a_template(id: u16, offset: usize) -> DecodeErrorKind {
    DecodeErrorKind::Number {
        structure: "template record",
        offset,
        found: id.into(),
        expected: "256 or more",
    }
}

impl<'a> Reader<'a> {
    /// Returns the bytes up to the position of a later reader of the same bytes.
    fn bytes_until(&self, later: &Reader<'a>) -> &'a [u8] {
        &self.bytes()[..later.offset() - self.offset()]
    }
}

impl Template {
    /// Compiles a definition; `None` if it has too many fields, or records of length zero or longer than a message.
    pub(super) fn new(definition: &Definition<'_>, max_fields: usize, now: Timestamp) -> Option<Template> {
        let Definition { options, ref fields, bytes, .. } = *definition;
        let layout = Layout::of(fields).filter(|_| fields.len() <= max_fields)?;
        let purpose = match options {
            true => Purpose::Options,
            false => {
                let (plan, reverse) = Plan::compile(&sources(fields));
                let plan = Box::new(plan);
                let section = PacketSection::of(fields, is_variable).filter(|_| !plan.has_addresses());
                match section.map(Box::new) {
                    Some(section) => Purpose::Packets { plan, section },
                    None if plan.describes_flows() => {
                        let events = fields.iter().any(is_event);
                        Purpose::Flows { plan, reverse: reverse.map(Box::new), events }
                    }
                    None => Purpose::Other,
                }
            }
        };
        let fields = fields.as_slice().into();
        Some(Template { definition: bytes.into(), fields, layout, purpose, defined: now, last_used: 0 })
    }

    /// Whether it was defined by an identical record.
    pub(super) fn is(&self, definition: &Definition<'_>) -> bool {
        *self.definition == *definition.bytes && self.is_options() == definition.options
    }

    /// Returns it as needed after a restart of the collector.
    pub(super) fn saved(&self) -> SavedTemplate {
        let (options, defined) = (self.is_options(), self.defined);
        SavedTemplate { options, defined, record: self.definition.clone() }
    }

    /// Whether it is an options template.
    pub(super) fn is_options(&self) -> bool {
        matches!(self.purpose, Purpose::Options)
    }

    /// Decodes the flow records of a set to rows.
    ///
    /// # Errors
    /// If a variable-length record exceeds the set.
    pub(super) fn decode_flows(
        &self,
        mut set: Reader<'_>,
        header: &Header,
        sampling: &Sampling,
        into: &mut RecordBatch,
        scratch: &mut Scratch,
    ) -> Result<SetSummary, DecodeErrorKind> {
        let (plan, reverse, events) = match &self.purpose {
            Purpose::Flows { plan, reverse, events } => (plan, reverse, *events),
            Purpose::Packets { plan, section } => {
                return self.decode_packets(set, (plan, section), header, sampling, into, scratch);
            }
            Purpose::Options | Purpose::Other => return self.skip_records(set),
        };
        let Scratch { rows, forward: first, reverse: second } = scratch;
        let records = self.matrix(&mut set, rows, |_| {})?;
        let data_records = records.rows() as u64;
        if reverse.is_none() && !events {
            let untimed = plan.rows(records, header, sampling, into);
            return Ok(SetSummary { data_records, untimed, ..SetSummary::default() });
        }
        first.clear();
        second.clear();
        let mut untimed = plan.rows(records, header, sampling, first);
        let untimed_reverse = match reverse {
            Some(reverse) => reverse.rows(records, header, sampling, second),
            None => 0,
        };
        let appended = interleave(first, second, events, into);
        untimed = untimed.min(appended.forward) + untimed_reverse.min(appended.reverse);
        let nat_events = data_records - appended.forward;
        Ok(SetSummary { data_records, untimed, nat_events, ..SetSummary::default() })
    }

    /// Decodes the sampled packets of a set to rows.
    fn decode_packets(
        &self,
        mut set: Reader<'_>,
        (plan, section): (&Plan, &PacketSection),
        header: &Header,
        sampling: &Sampling,
        into: &mut RecordBatch,
        scratch: &mut Scratch,
    ) -> Result<SetSummary, DecodeErrorKind> {
        let Scratch { rows, forward: others, .. } = scratch;
        let mut variable = Vec::new();
        let records = self.matrix(&mut set, rows, |bytes| variable.push(bytes))?;
        others.clear();
        let untimed = plan.rows(records, header, sampling, others);
        let mut found = SetSummary { data_records: records.rows() as u64, ..SetSummary::default() };
        let fields = variable.len().checked_div(records.rows()).unwrap_or(0);
        let before = into.len();
        for (row, record) in records.records().enumerate() {
            let variable = &variable[row * fields..][..fields];
            match section.packet(record, variable, header.decapsulate) {
                Ok(packet) => into.push(&join(others.record(row), &packet, plan)),
                Err(NoPacket::NotIp) => found.not_ip += 1,
                Err(NoPacket::Malformed) => found.bad_frame += 1,
            }
        }
        found.untimed = untimed.min((into.len() - before) as u64);
        Ok(found)
    }

    /// Returns the records of a set without their variable-length fields, which are passed to `variable` in order.
    fn matrix<'a, 's: 'a>(
        &self,
        set: &mut Reader<'s>,
        rows: &'a mut Vec<u8>,
        variable: impl FnMut(&'s [u8]),
    ) -> Result<Matrix<'a>, DecodeErrorKind> {
        Ok(match &self.layout {
            Layout::Fixed { length } => Matrix::new(set.bytes(), *length),
            Layout::Variable { minimum, runs } => {
                let row_length = Template::copy_rows(set, *minimum, runs, rows, variable)?;
                Matrix::new(rows, row_length)
            }
        })
    }

    /// Counts records that describe no flow.
    fn skip_records(&self, mut set: Reader<'_>) -> Result<SetSummary, DecodeErrorKind> {
        let mut found = SetSummary::default();
        while self.record(&mut set, |_, _| {})? {
            found.data_records += 1;
            found.no_flow += 1;
        }
        Ok(found)
    }

    /// Decodes the options records of a set.
    ///
    /// # Errors
    /// If a variable-length record exceeds the set.
    pub(super) fn decode_options(
        &self,
        mut set: Reader<'_>,
        mut learn: impl FnMut(&Options, &NameOptions<'_>),
    ) -> Result<SetSummary, DecodeErrorKind> {
        let mut found = SetSummary::default();
        let (mut options, mut names) = (Options::default(), NameOptions::default());
        while self.record(&mut set, |field, bytes| {
            options.field(field, bytes);
            names.field(field, bytes);
        })? {
            learn(&std::mem::take(&mut options), &std::mem::take(&mut names));
            found.data_records += 1;
            found.option_records += 1;
        }
        Ok(found)
    }

    /// Copies variable-length records, without their variable-length fields, to rows of equal length. Returns that
    /// length.
    fn copy_rows<'s>(
        set: &mut Reader<'s>,
        minimum: usize,
        runs: &[u16],
        rows: &mut Vec<u8>,
        mut variable: impl FnMut(&'s [u8]),
    ) -> Result<usize, DecodeErrorKind> {
        let row_length: usize = runs.iter().map(|&run| usize::from(run)).sum();
        rows.clear();
        set.enter("data record");
        while set.bytes().len() >= minimum {
            for (index, &run) in runs.iter().enumerate() {
                if index > 0 {
                    let length = variable_length(set)?;
                    variable(set.take(length)?);
                }
                rows.extend_from_slice(set.take(run.into())?);
            }
            if row_length == 0 {
                rows.push(0);
            }
        }
        // Empty rows get one byte, so that they can be counted.
        Ok(row_length.max(1))
    }

    /// Reads one record field by field. Returns `false` if the rest is too short for a record, so it is padding (RFC
    /// 7011 section 3.3.1).
    fn record<'a>(
        &self,
        set: &mut Reader<'a>,
        mut each: impl FnMut(Field, &'a [u8]),
    ) -> Result<bool, DecodeErrorKind> {
        if set.bytes().len() < self.min_record_length() {
            return Ok(false);
        }
        set.enter("data record");
        for &field in &self.fields {
            let length = match field.length {
                VARIABLE => variable_length(set)?,
                length => length.into(),
            };
            each(field, set.take(length)?);
        }
        Ok(true)
    }

    /// The minimum length of a record in bytes.
    fn min_record_length(&self) -> usize {
        match self.layout {
            Layout::Fixed { length } => length,
            Layout::Variable { minimum, .. } => minimum,
        }
    }
}

impl SavedTemplate {
    /// Compiles it, with its number; `None` if it has too many fields or is no template record.
    pub(super) fn compile(&self, format: Format, max_fields: usize) -> Option<(u16, Template)> {
        let record = Reader::new("saved template", &self.record);
        let definition = definitions(format, self.options, record).next()?.ok()?;
        let template = Template::new(&definition, max_fields, self.defined)?;
        (!definition.fields.is_empty()).then_some((definition.id, template))
    }
}

impl Layout {
    /// Returns the layout; `None` if records have length zero or are longer than a message.
    fn of(fields: &[Field]) -> Option<Layout> {
        let fixed: usize = fields.iter().filter(|f| !is_variable(f)).map(|f| usize::from(f.length)).sum();
        let minimum = fixed + fields.iter().filter(|f| is_variable(f)).count();
        if minimum == 0 || minimum > usize::from(u16::MAX) {
            return None;
        }
        if fixed == minimum {
            return Some(Layout::Fixed { length: fixed });
        }
        let run = |run: &[Field]| run.iter().map(|field| field.length).sum();
        let runs = fields.split(is_variable).map(run).collect();
        Some(Layout::Variable { minimum, runs })
    }
}

/// Returns the positions of the fields with a role in a record without its variable-length fields.
fn sources(fields: &[Field]) -> Vec<(Role, Place)> {
    let mut sources = Vec::new();
    let mut offset = 0;
    for field in fields.iter().filter(|field| !is_variable(field)) {
        let place = |unit| Place { offset, length: field.length as u8, unit };
        sources.extend(roles_of(*field).map(|role| (role, place(role.unit))));
        offset += field.length;
    }
    sources
}

/// Reads the length prefix of a variable-length field, one byte or three.
fn variable_length(set: &mut Reader<'_>) -> Result<usize, DecodeErrorKind> {
    Ok(match set.u8()? {
        255 => set.u16()?.into(),
        length => length.into(),
    })
}

/// Whether the length of a field is in each record.
fn is_variable(field: &Field) -> bool {
    field.length == VARIABLE
}

/// Whether a field states the kind of a NAT or firewall event: `natEvent` (230, RFC 8158), `firewallEvent` (233), and
/// `NF_F_FW_EVENT` (40005) of older Cisco ASA.
fn is_event(field: &Field) -> bool {
    field.enterprise == 0 && matches!(field.id, 230 | 233 | 40005)
}

/// Returns the roles of a field, if its length is valid for them.
fn roles_of(field: Field) -> impl Iterator<Item = Role> {
    let id = if matches!(field.enterprise, 0 | REVERSE) { field.id } else { 0 };
    let reverse = field.enterprise == REVERSE;
    let fits = move |role: &Role| match (role.column, role.unit) {
        (Column::Exporter | Column::SourceAddress | Column::DestinationAddress, _)
        | (Column::NextHop | Column::BgpNextHop, _) => field.length == 4 || field.length == 16,
        (Column::SourceMac | Column::DestinationMac, _)
        | (Column::PostSourceMac | Column::PostDestinationMac, _) => field.length == 6,
        (column, _) if column.label_position().is_some() => field.length == 3,
        (_, Unit::Ntp) => field.length == 8,
        // Longer than 8 bytes is beyond RFC 7011, but some exporters pad counters to 16.
        _ => (1..=16).contains(&field.length),
    };
    roles(id).filter(fits).map(move |role| Role { reverse: reverse || role.reverse, ..role })
}

/// The numbers of rows that [`interleave`] appended.
struct Interleaved {
    forward: u64,
    reverse: u64,
}

/// Appends the forward rows, each followed by its reverse row if that has packets or octets. Leaves out events without
/// any.
fn interleave(
    forward: &RecordBatch,
    reverse: &RecordBatch,
    events: bool,
    into: &mut RecordBatch,
) -> Interleaved {
    let has_counts =
        |rows: &RecordBatch, row: usize| row < rows.len() && (rows.packets[row] > 0 || rows.octets[row] > 0);
    let mut appended = Interleaved { forward: 0, reverse: 0 };
    for row in 0..forward.len() {
        let has_reverse = has_counts(reverse, row);
        if events && !has_reverse && !has_counts(forward, row) {
            continue;
        }
        into.push(&forward.record(row));
        appended.forward += 1;
        if has_reverse {
            into.push(&reverse.record(row));
            appended.reverse += 1;
        }
    }
    appended
}
