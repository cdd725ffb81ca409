//! Templates: what the records of a set are made of (RFC 7011 section 3.4, RFC 3954 sections 5.2 and 6.1).

use super::element::{Column, REVERSE, Role, Unit, roles};
use super::error::Fault;
use super::field::Field;
use super::matrix::Matrix;
use super::plan::{Header, Place, Plan};
use super::reader::Reader;
use super::sampling::{Options, Sampling};
use crate::flow_export::{Format, RecordBatch};
use crate::time::Timestamp;

/// The first number that a template can have; those below are of sets.
pub(super) const FIRST_TEMPLATE: u16 = 256;

/// The length of a field whose records say its length themselves (RFC 7011 section 7).
const VARIABLE: u16 = 0xFFFF;

/// What a template record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Definition<'a> {
    pub(super) id: u16,
    /// Whether its records are options.
    pub(super) options: bool,
    /// None is a withdrawal.
    pub(super) fields: Vec<Field>,
    /// The record as it stands in the message.
    pub(super) bytes: &'a [u8],
}

/// A template ready for use.
#[derive(Debug)]
pub(super) struct Template {
    /// The record that defined it, to tell a repetition from a change.
    definition: Box<[u8]>,
    fields: Box<[Field]>,
    layout: Layout,
    purpose: Purpose,
    /// When it came last.
    pub(super) defined: Timestamp,
    /// When it was used last, in messages of the decoder.
    pub(super) last_used: u64,
}

/// How its records lie in a set.
#[derive(Debug)]
enum Layout {
    /// One after the other, all of one length.
    Fixed { length: usize },
    /// Each of its own length: runs of bytes that every record has, with a field of variable length between one run
    /// and the next. Without those fields records are rows of one length, and none of the fields is of use here.
    Variable { minimum: usize, runs: Box<[u16]> },
}

/// What its records are for.
#[derive(Debug)]
enum Purpose {
    Flows {
        plan: Box<Plan>,
        reverse: Option<Box<Plan>>,
    },
    Options,
    /// They tell of something else.
    Other,
}

/// What a set of data gave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Yield {
    /// Data records in the set, options among them.
    pub(super) data_records: u64,
    pub(super) option_records: u64,
    pub(super) untimed: u64,
    pub(super) no_flow: u64,
}

/// Memory that is used again and again.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    rows: Vec<u8>,
    forward: RecordBatch,
    reverse: RecordBatch,
}

/// The template records of a set, to the end or to the first fault.
pub(super) fn definitions<'a>(
    format: Format,
    options: bool,
    mut set: Reader<'a>,
) -> impl Iterator<Item = Result<Definition<'a>, Fault>> {
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

fn netflow9_definition<'a>(options: bool, set: &mut Reader<'a>) -> Result<Definition<'a>, Fault> {
    set.enter("template record");
    let record = *set;
    let id = template_id(set)?;
    let (scopes, others) = if options {
        // In bytes (RFC 3954 section 6.1).
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
        return Err(Fault::Length { structure, offset, claimed: 0, expected: "at least one field" });
    }
    Ok(Definition { id, options, fields, bytes: record.bytes_until(set) })
}

/// The element of IANA that says what a scope of NetFlow v9 says; 0 for those of no use here.
fn scope_element(scope: u16) -> u16 {
    match scope {
        2 => 10,
        _ => 0,
    }
}

fn ipfix_definition<'a>(options: bool, set: &mut Reader<'a>) -> Result<Definition<'a>, Fault> {
    set.enter("template record");
    let record = *set;
    let id = set.u16()?;
    let count = set.u16()?;
    // A withdrawal of all templates has the number of the set that it is in (RFC 7011 section 8.1).
    let withdraws_all = count == 0 && id == if options { 3 } else { 2 };
    if id < FIRST_TEMPLATE && !withdraws_all {
        return Err(not_a_template(id, record.offset()));
    }
    if options && count > 0 {
        let offset = set.offset();
        let scopes = set.u16()?;
        if scopes == 0 || scopes > count {
            let expected = "a scope field count of at least 1 and no more than all fields";
            let structure = "options template record";
            return Err(Fault::Length { structure, offset, claimed: scopes.into(), expected });
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

fn template_id(set: &mut Reader<'_>) -> Result<u16, Fault> {
    let offset = set.offset();
    match set.u16()? {
        id if id < FIRST_TEMPLATE => Err(not_a_template(id, offset)),
        id => Ok(id),
    }
}

fn not_a_template(id: u16, offset: usize) -> Fault {
    Fault::Number { structure: "template record", offset, found: id.into(), expected: "256 or more" }
}

impl<'a> Reader<'a> {
    /// From here to where a later reader of the same bytes stands.
    fn bytes_until(&self, later: &Reader<'a>) -> &'a [u8] {
        &self.bytes()[..later.offset() - self.offset()]
    }
}

impl Template {
    /// Compiles a definition; `None` if it has too many fields, or records of no length or of more than a message.
    pub(super) fn new(definition: &Definition<'_>, most_fields: usize, now: Timestamp) -> Option<Template> {
        let Definition { options, ref fields, bytes, .. } = *definition;
        let layout = Layout::of(fields).filter(|_| fields.len() <= most_fields)?;
        let purpose = match options {
            true => Purpose::Options,
            false => {
                let (plan, reverse) = Plan::compile(&sources(fields));
                match plan.tells_of_flows() {
                    true => Purpose::Flows { plan: plan.into(), reverse: reverse.map(Box::new) },
                    false => Purpose::Other,
                }
            }
        };
        let fields = fields.as_slice().into();
        Some(Template { definition: bytes.into(), fields, layout, purpose, defined: now, last_used: 0 })
    }

    /// Whether it was defined by the very same record.
    pub(super) fn is(&self, definition: &Definition<'_>) -> bool {
        *self.definition == *definition.bytes && self.is_options() == definition.options
    }

    /// Whether its records are options.
    pub(super) fn is_options(&self) -> bool {
        matches!(self.purpose, Purpose::Options)
    }

    /// Decodes the records of a set to rows.
    ///
    /// # Errors
    /// If a record of variable length goes on beyond the set.
    pub(super) fn decode_flows(
        &self,
        mut set: Reader<'_>,
        header: &Header,
        sampling: &Sampling,
        into: &mut RecordBatch,
        scratch: &mut Scratch,
    ) -> Result<Yield, Fault> {
        let Purpose::Flows { plan, reverse } = &self.purpose else { return self.pass_over(set) };
        let Scratch { rows, forward: first, reverse: second } = scratch;
        let records = match &self.layout {
            Layout::Fixed { length } => Matrix::new(set.bytes(), *length),
            Layout::Variable { minimum, runs } => {
                let row_length = Template::straighten(&mut set, *minimum, runs, rows)?;
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
        Ok(Yield { data_records: records.rows() as u64, untimed, ..Yield::default() })
    }

    /// Counts records that tell of something else.
    fn pass_over(&self, mut set: Reader<'_>) -> Result<Yield, Fault> {
        let mut found = Yield::default();
        while self.record(&mut set, |_, _| {})? {
            found.data_records += 1;
            found.no_flow += 1;
        }
        Ok(found)
    }

    /// Decodes the records of a set, one by one, to what they say of sampling and of the exporter's clock.
    ///
    /// # Errors
    /// If a record of variable length goes on beyond the set.
    pub(super) fn decode_options(
        &self,
        mut set: Reader<'_>,
        mut learn: impl FnMut(&Options),
    ) -> Result<Yield, Fault> {
        let mut found = Yield::default();
        let mut options = Options::default();
        while self.record(&mut set, |field, bytes| options.field(field, bytes))? {
            learn(&std::mem::take(&mut options));
            found.data_records += 1;
            found.option_records += 1;
        }
        Ok(found)
    }

    /// Copies records of variable length, without the fields that make them so, to rows of one length; returns that
    /// length.
    fn straighten(
        set: &mut Reader<'_>,
        minimum: usize,
        runs: &[u16],
        rows: &mut Vec<u8>,
    ) -> Result<usize, Fault> {
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
        // Rows that are empty have a byte, so that they can be counted.
        Ok(row_length.max(1))
    }

    /// Reads one record, field by field; false if what is left is too short for one, which makes it padding (RFC 7011
    /// section 3.3.1).
    fn record<'a>(&self, set: &mut Reader<'a>, mut each: impl FnMut(Field, &'a [u8])) -> Result<bool, Fault> {
        if set.bytes().len() < self.shortest_record() {
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

    /// Bytes of its shortest record.
    fn shortest_record(&self) -> usize {
        match self.layout {
            Layout::Fixed { length } => length,
            Layout::Variable { minimum, .. } => minimum,
        }
    }
}

impl Layout {
    /// `None` if records have no length, or more than a message has.
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

/// Where in a record, without its fields of variable length, the fields with a role lie.
fn sources(fields: &[Field]) -> Vec<(Role, Place)> {
    let mut sources = Vec::new();
    let mut offset = 0;
    for field in fields.iter().filter(|field| field.length != VARIABLE) {
        let place = |unit| Place { offset, length: field.length as u8, unit };
        sources.extend(role_of(*field).map(|role| (role, place(role.unit))));
        offset += field.length;
    }
    sources
}

/// The length of a field of variable length, which stands before it in one byte or three.
fn variable_length(set: &mut Reader<'_>) -> Result<usize, Fault> {
    Ok(match set.u8()? {
        255 => set.u16()?.into(),
        length => length.into(),
    })
}

fn skip_variable(set: &mut Reader<'_>) -> Result<(), Fault> {
    let length = variable_length(set)?;
    set.take(length).map(drop)
}

/// What a field is good for, with the length that it has.
fn role_of(field: Field) -> impl Iterator<Item = Role> {
    let id = if matches!(field.enterprise, 0 | REVERSE) { field.id } else { 0 };
    let reverse = field.enterprise == REVERSE;
    let fits = move |role: &Role| match (role.column, role.unit) {
        (Column::Exporter | Column::SourceAddress | Column::DestinationAddress | Column::NextHop, _) => {
            field.length == 4 || field.length == 16
        }
        (_, Unit::Ntp) => field.length == 8,
        _ => (1..=8).contains(&field.length),
    };
    roles(id).filter(fits).map(move |role| Role { reverse: reverse || role.reverse, ..role })
}

/// Adds the rows of one direction, each followed by that of the other direction if it had anything to say; returns how
/// often it had.
fn interleave(forward: &RecordBatch, reverse: &RecordBatch, into: &mut RecordBatch) -> u64 {
    let mut told = 0;
    for row in 0..forward.len() {
        into.push(&forward.record(row));
        if reverse.packets[row] > 0 || reverse.octets[row] > 0 {
            into.push(&reverse.record(row));
            told += 1;
        }
    }
    told
}
