//! The common part of v9 and IPFIX: messages of sets, templates before data, the sampling interval.

use super::super::{Record, RecordBatch};
use super::template::{Field, Kind, is_reverse};
use super::{Contents, Encoded, Messages, Misfits, OptionsError, Refresh, check_message_length};
use crate::Timestamp;

/// The length of a set header in bytes: number and length (RFC 7011 section 3.3.2).
pub(super) const SET_HEADER_LENGTH: usize = 4;

/// The number of the options template of the sampling interval: the first after those of all [`Kind`]s.
pub(super) const SAMPLING_TEMPLATE: u16 = Kind::BiflowV6.template_id() + 1;

/// The alignment of sets in bytes (RFC 3954 section 5.2; IPFIX allows it).
const SET_ALIGNMENT: usize = 4;

/// The differences between the two formats.
pub(super) trait Dialect {
    /// The length of a message header in bytes.
    const HEADER_LENGTH: usize;
    /// The number of a template set.
    const TEMPLATE_SET: u16;
    /// The templates.
    const KINDS: &[Kind];
    /// The length of the options record of the sampling interval in bytes.
    const SAMPLING_LENGTH: usize;
    /// Whether the two rows of a biflow become one record.
    const HAS_BIFLOWS: bool;

    /// Returns the fields of the start and end time.
    fn times(&self) -> [Field; 2];

    /// Returns the length of a time in bytes.
    fn time_length(&self) -> usize {
        usize::from(self.times()[0].length)
    }

    /// Writes a time. Returns whether it is representable.
    fn write_time(&self, time_us: i64, now: Timestamp, to: &mut Vec<u8>) -> bool;

    /// Writes the header into its reserved place.
    fn write_header(&self, draft: &Draft, sequence: u32, now: Timestamp, header: &mut [u8]);

    /// Returns the increment of the sequence number for a message.
    fn sequence_step(draft: &Draft) -> u32;

    /// Writes the options template sets.
    fn write_options_templates(&self, draft: &mut Draft, to: &mut Messages);

    /// Writes the options record of the sampling interval, with template [`SAMPLING_TEMPLATE`].
    fn write_sampling(&self, interval: u32, to: &mut Vec<u8>);
}

/// The message under construction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Draft {
    /// Whether a message has been started.
    is_begun: bool,
    /// The start of the message in [`Messages`].
    start: usize,
    /// The open set.
    set_id: Option<u16>,
    /// The start of the open set.
    set_start: usize,
    /// The number of all records, templates included.
    pub records: u16,
    /// The number of data records.
    pub data_records: u16,
    /// The flows in the message.
    contents: Contents,
    /// The length in bytes, once complete.
    pub length: u16,
}

impl Draft {
    /// Opens a set, or continues it.
    pub(super) fn open_set(&mut self, id: u16, to: &mut Messages) {
        if self.set_id != Some(id) {
            self.close_set(to);
            (self.set_id, self.set_start) = (Some(id), to.bytes.len());
            to.bytes.extend_from_slice(&id.to_be_bytes());
            to.bytes.extend_from_slice(&[0; 2]);
        }
    }

    fn close_set(&mut self, to: &mut Messages) {
        if self.set_id.is_none() {
            return;
        }
        let length = (to.bytes.len() - self.set_start).next_multiple_of(SET_ALIGNMENT);
        to.bytes.resize(self.set_start + length, 0);
        to.bytes[self.set_start + 2..][..2].copy_from_slice(&(length as u16).to_be_bytes());
        self.set_id = None;
    }

    /// Whether a record of `length` in set `id` exceeds `limit`.
    #[inline]
    fn overflows(&self, id: u16, length: usize, limit: usize, to: &Messages) -> bool {
        let header = if self.set_id == Some(id) { 0 } else { SET_HEADER_LENGTH + SET_ALIGNMENT - 1 };
        (to.bytes.len() - self.start + header + length).next_multiple_of(SET_ALIGNMENT) > limit
    }
}

/// The exporter side of a session.
#[derive(Clone, Debug)]
pub(super) struct Session<D> {
    pub dialect: D,
    message_length: usize,
    refresh: Option<Refresh>,
    /// The time when templates were last sent, and the number of messages since.
    templates_sent: Option<(Timestamp, u32)>,
    /// Whether a row with details has been sent, and so their templates.
    has_details: bool,
    /// The last sent sampling interval; 0: none.
    sampling_interval: u32,
    sequence: u32,
    draft: Draft,
    pub encoded: Encoded,
    pub misfits: Misfits,
}

impl<D: Dialect> Session<D> {
    /// # Errors
    /// If the message length is too short.
    pub(super) fn new(
        dialect: D,
        message_length: u16,
        refresh: Option<Refresh>,
    ) -> Result<Self, OptionsError> {
        Ok(Session {
            dialect,
            message_length: check_message_length(message_length)?,
            refresh,
            templates_sent: None,
            has_details: false,
            sampling_interval: 0,
            sequence: 0,
            draft: Draft::default(),
            encoded: Encoded::default(),
            misfits: Misfits::default(),
        })
    }

    /// Encodes rows, and completes the last message.
    pub(super) fn encode(&mut self, rows: &RecordBatch, now: Timestamp, into: &mut Messages) {
        let mut row = 0;
        while row < rows.len() {
            let record = rows.record(row);
            let next = if D::HAS_BIFLOWS && record.biflow_direction == 1 { row + 1 } else { rows.len() };
            let reverse =
                (next < rows.len()).then(|| rows.record(next)).filter(|next| is_reverse(&record, next));
            if record.sampling_interval != self.sampling_interval && record.sampling_interval != 0 {
                self.sampling_interval = record.sampling_interval;
                self.send_sampling(now, into);
            }
            self.add(&record, reverse.as_ref(), now, into);
            row += 1 + usize::from(reverse.is_some());
        }
        self.finish(now, into);
    }

    #[inline]
    fn add(&mut self, record: &Record, reverse: Option<&Record>, now: Timestamp, into: &mut Messages) {
        let kind = match reverse {
            Some(_) => Kind::of_biflow(record),
            None => Kind::of(record),
        };
        if kind.is_detailed() && !self.has_details {
            self.introduce_details(now, into);
        }
        let length = kind.record_length(2 * self.dialect.time_length());
        let to = self.reserve(kind.template_id(), length, now, into);
        self.write_times(record, now, to);
        kind.write(record, to);
        if let Some(reverse) = reverse {
            self.write_times(reverse, now, to);
            Kind::write_reverse(reverse, to);
            self.draft.contents.count(reverse);
        }
        self.misfits.values += u64::from(record.has_inner_packet());
        self.draft.contents.count(record);
        self.draft.contents.flow_records += 1;
        self.draft.data_records += 1;
    }

    #[inline]
    fn write_times(&mut self, record: &Record, now: Timestamp, to: &mut Vec<u8>) {
        for time_us in [record.flow_start_us, record.flow_end_us] {
            self.misfits.values += u64::from(!self.dialect.write_time(time_us, now, to));
        }
    }

    /// Returns the buffer for a record of `length` bytes in set `id`. Starts a new message if none is open or the
    /// record does not fit.
    #[inline]
    pub(super) fn reserve<'m>(
        &mut self,
        id: u16,
        length: usize,
        now: Timestamp,
        into: &'m mut Messages,
    ) -> &'m mut Vec<u8> {
        if !self.draft.is_begun || self.draft.overflows(id, length, self.message_length, into) {
            self.finish(now, into);
            // A record fits beside all templates: the minimum message length ensures that.
            self.begin(now, into);
        }
        self.draft.open_set(id, into);
        self.draft.records += 1;
        &mut into.bytes
    }

    /// Starts a message, with templates if they are due. Templates of details are in a message of their own, because not all
    /// templates fit into the shortest message.
    fn begin(&mut self, now: Timestamp, into: &mut Messages) {
        self.start(into);
        if !self.templates_are_due(now) {
            return;
        }
        self.templates_sent = Some((now, 0));
        self.write_templates(D::KINDS, into);
        self.dialect.write_options_templates(&mut self.draft, into);
        if self.sampling_interval != 0 {
            self.draft.open_set(SAMPLING_TEMPLATE, into);
            self.dialect.write_sampling(self.sampling_interval, &mut into.bytes);
            self.draft.records += 1;
            self.draft.data_records += 1;
        }
        if self.has_details {
            self.begin_details(now, into);
        }
    }

    /// Starts an empty message.
    fn start(&mut self, into: &mut Messages) {
        self.draft = Draft { is_begun: true, start: into.bytes.len(), ..Draft::default() };
        into.bytes.resize(self.draft.start + D::HEADER_LENGTH, 0);
    }

    /// Sends the templates of rows with details, now and whenever templates are due.
    #[cold]
    fn introduce_details(&mut self, now: Timestamp, into: &mut Messages) {
        self.has_details = true;
        // Otherwise the next message has all templates.
        if self.templates_sent.is_some() {
            self.begin_details(now, into);
        }
    }

    /// Completes the message, and starts one with the templates of details.
    fn begin_details(&mut self, now: Timestamp, into: &mut Messages) {
        self.finish(now, into);
        self.start(into);
        self.write_templates(&Kind::DETAILED, into);
    }

    fn write_templates(&mut self, kinds: &[Kind], into: &mut Messages) {
        for kind in kinds {
            self.draft.open_set(D::TEMPLATE_SET, into);
            let times = self.dialect.times();
            into.bytes.extend_from_slice(&kind.template_id().to_be_bytes());
            into.bytes.extend_from_slice(&(kind.fields(times).count() as u16).to_be_bytes());
            kind.fields(times).for_each(|field| field.write(&mut into.bytes));
            self.draft.records += 1;
        }
    }

    fn templates_are_due(&self, now: Timestamp) -> bool {
        match (self.templates_sent, self.refresh) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some((sent, messages)), Some(refresh)) => {
                messages >= refresh.messages || now.since(sent) >= refresh.interval
            }
        }
    }

    /// Sends the interval, unless a new message with templates includes it.
    fn send_sampling(&mut self, now: Timestamp, into: &mut Messages) {
        if !self.draft.is_begun && self.templates_are_due(now) {
            return self.begin(now, into);
        }
        self.reserve(SAMPLING_TEMPLATE, D::SAMPLING_LENGTH, now, into);
        self.dialect.write_sampling(self.sampling_interval, &mut into.bytes);
        self.draft.data_records += 1;
    }

    /// Completes the message under construction, if any.
    pub(super) fn finish(&mut self, now: Timestamp, into: &mut Messages) {
        if !self.draft.is_begun {
            return;
        }
        self.draft.close_set(into);
        let message = &mut into.bytes[self.draft.start..];
        debug_assert!(message.len() <= self.message_length, "a message of {} bytes", message.len());
        self.draft.length = message.len() as u16;
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(D::sequence_step(&self.draft));
        self.dialect.write_header(&self.draft, sequence, now, &mut message[..D::HEADER_LENGTH]);
        into.end(self.draft.contents);
        if let Some((_, messages)) = &mut self.templates_sent {
            *messages = messages.saturating_add(1);
        }
        self.encoded.messages += 1;
        self.encoded.octets += u64::from(self.draft.length);
        self.encoded.flow_records += self.draft.contents.flow_records;
        self.draft.is_begun = false;
    }

    /// Adds an options record other than the sampling interval.
    pub(super) fn add_options(&mut self, id: u16, record: &[u8], now: Timestamp, into: &mut Messages) {
        self.reserve(id, record.len(), now, into).extend_from_slice(record);
        self.draft.data_records += 1;
    }
}
