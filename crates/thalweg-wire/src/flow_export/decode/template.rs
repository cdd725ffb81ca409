//! Templates: the structure of records (RFC 7011 section 3.4, RFC 3954 sections 5.2 and 6.1).

use super::element::{Column, REVERSE, Role, Unit, roles};
use super::error::DecodeErrorKind;
use super::field::Field;
use super::matrix::Matrix;
use super::plan::{Header, Place, Plan};
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
                match plan.describes_flows() {
                    true => Purpose::Flows { plan: plan.into(), reverse: reverse.map(Box::new) },
                    false => Purpose::Other,
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
        let Purpose::Flows { plan, reverse } = &self.purpose else { return self.skip_records(set) };
        let Scratch { rows, forward: first, reverse: second } = scratch;
        let records = match &self.layout {
            Layout::Fixed { length } => Matrix::new(set.bytes(), *length),
            Layout::Variable { minimum, runs } => {
                let row_length = Template::copy_rows(&mut set, *minimum, runs, rows)?;
                Matrix::new(rows, row_length)
            }
        };
        let untimed = match reverse {
            None => plan.rows(records, header, sampling, into),
            Some(reverse) => {
                first.clear();
                second.clear();
                let untimed = plan.rows(records, header, sampling, first);
                untimed + reverse.rows(records, header, sampling, second).min(interleave(first, second, into))
            }
        };
        Ok(SetSummary { data_records: records.rows() as u64, untimed, ..SetSummary::default() })
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
        mut learn: impl FnMut(&Options),
    ) -> Result<SetSummary, DecodeErrorKind> {
        let mut found = SetSummary::default();
        let mut options = Options::default();
        while self.record(&mut set, |field, bytes| options.field(field, bytes))? {
            learn(&std::mem::take(&mut options));
            found.data_records += 1;
            found.option_records += 1;
        }
        Ok(found)
    }

    /// Copies variable-length records, without their variable-length fields, to rows of equal length. Returns that
    /// length.
    fn copy_rows(
        set: &mut Reader<'_>,
        minimum: usize,
        runs: &[u16],
        rows: &mut Vec<u8>,
    ) -> Result<usize, DecodeErrorKind> {
        let row_length: usize = runs.iter().map(|&run| usize::from(run)).sum();
        rows.clear();
        set.enter("data record");
        while set.bytes().len() >= minimum {
            for (index, &run) in runs.iter().enumerate() {
                if index > 0 {
                    skip_variable(set)?;
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

impl Layout {
    /// Returns the layout; `None` if records have length zero or are longer than a message.
    fn of(fields: &[Field]) -> Option<Layout> {
        let is_variable = |field: &&Field| field.length == VARIABLE;
        let fixed: usize = fields.iter().filter(|f| !is_variable(f)).map(|f| usize::from(f.length)).sum();
        let minimum = fixed + fields.iter().filter(is_variable).count();
        if minimum == 0 || minimum > usize::from(u16::MAX) {
            return None;
        }
        if fixed == minimum {
            return Some(Layout::Fixed { length: fixed });
        }
        let run = |run: &[Field]| run.iter().map(|field| field.length).sum();
        let runs = fields.split(|field| field.length == VARIABLE).map(run).collect();
        Some(Layout::Variable { minimum, runs })
    }
}

/// Returns the positions of the fields with a role in a record without its variable-length fields.
fn sources(fields: &[Field]) -> Vec<(Role, Place)> {
    let mut sources = Vec::new();
    let mut offset = 0;
    for field in fields.iter().filter(|field| field.length != VARIABLE) {
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

fn skip_variable(set: &mut Reader<'_>) -> Result<(), DecodeErrorKind> {
    let length = variable_length(set)?;
    set.take(length).map(drop)
}

/// Returns the roles of a field, if its length is valid for them.
fn roles_of(field: Field) -> impl Iterator<Item = Role> {
    let id = if matches!(field.enterprise, 0 | REVERSE) { field.id } else { 0 };
    let reverse = field.enterprise == REVERSE;
    let fits = move |role: &Role| match (role.column, role.unit) {
        (Column::Exporter | Column::SourceAddress | Column::DestinationAddress | Column::NextHop, _) => {
            field.length == 4 || field.length == 16
        }
        (_, Unit::Ntp) => field.length == 8,
        // Longer than 8 bytes is beyond RFC 7011, but some exporters pad counters to 16.
        _ => (1..=16).contains(&field.length),
    };
    roles(id).filter(fits).map(move |role| Role { reverse: reverse || role.reverse, ..role })
}

/// Appends the forward rows, each followed by its reverse row if that has packets or octets. Returns the number of
/// reverse rows.
fn interleave(forward: &RecordBatch, reverse: &RecordBatch, into: &mut RecordBatch) -> u64 {
    let mut reverse_rows = 0;
    for row in 0..forward.len() {
        into.push(&forward.record(row));
        if reverse.packets[row] > 0 || reverse.octets[row] > 0 {
            into.push(&reverse.record(row));
            reverse_rows += 1;
        }
    }
    reverse_rows
}
