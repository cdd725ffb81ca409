//! Flows from a file: `start,source,destination,bytes` and optionally `,dscp` on each line.
//!
//! `start` is a time since the start, such as `10ms`, or seconds without a unit. Endpoints are numbers, with or without
//! the prefix `h`. `bytes` is an amount, such as `1460` or `10MB`, or `forever`. Empty lines, comments after `#`, and
//! header lines before the first flow are ignored. Lines may be in any order. Files of other simulators are read too (`foreign`).

use thalweg_network::EndpointId;
use thalweg_wire::{Bytes, Nanos, Timestamp};
use thiserror::Error;

use super::Schedule;
use super::foreign::Foreign;
use crate::workloads::{FlowStart, UNBOUNDED};

/// The largest number of flows in a file.
pub const MAX_FLOWS: usize = 1 << 26;

/// Why a file is invalid.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlowFileError {
    /// Too few fields, or too many.
    #[error("line {line}: {fields} fields: expected start,source,destination,bytes and optionally dscp")]
    Fields {
        /// Line number, from 1.
        line: usize,
        /// Fields on the line.
        fields: usize,
    },
    /// Too few fields, or too many, in a file of another simulator.
    #[error("line {line}: {fields} fields: expected {expected}")]
    ForeignFields {
        /// Line number, from 1.
        line: usize,
        /// Fields on the line.
        fields: usize,
        /// The fields of such files.
        expected: &'static str,
    },
    /// Another number of flows than the file says.
    #[error("line {line}: {found} flows: expected {expected}, as the first line says")]
    Count {
        /// Number of the last line, from 1.
        line: usize,
        /// The number that the file says.
        expected: usize,
        /// The flows.
        found: usize,
    },
    /// A field that cannot be read.
    #[error("line {line}: {field} `{text}`: expected {expected}")]
    Field {
        /// Line number, from 1.
        line: usize,
        /// The field.
        field: &'static str,
        /// Its text, cut to 40 characters.
        text: String,
        /// The expected text.
        expected: String,
    },
    /// A flow to its own source.
    #[error("line {line}: a flow from {endpoint} to itself")]
    ToItself {
        /// Line number, from 1.
        line: usize,
        /// The endpoint.
        endpoint: EndpointId,
    },
    /// Too many flows.
    #[error("line {line}: more than {MAX_FLOWS} flows")]
    TooMany {
        /// Line number, from 1.
        line: usize,
    },
}

impl Schedule {
    /// Reads flows between endpoints `0..endpoints`.
    ///
    /// # Errors
    /// The first invalid line.
    pub fn from_text(text: &str, endpoints: usize) -> Result<Schedule, FlowFileError> {
        if let Some((line, _)) = significant(text).nth(MAX_FLOWS + 2) {
            return Err(FlowFileError::TooMany { line });
        }
        if let Some(foreign) = Foreign::of(text) {
            return Ok(Schedule::new(foreign.flows(text, endpoints)?));
        }
        let mut flows = Vec::new();
        for (number, row) in significant(text) {
            if flows.is_empty() && row.starts_with("start,") {
                continue;
            }
            flows.push(Line { number, endpoints }.flow(row)?);
        }
        Ok(Schedule::new(flows))
    }
}

/// The lines with their numbers, without comments and empty lines.
pub(super) fn significant(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate();
    let rows = lines.map(|(number, line)| (number + 1, line.split('#').next().unwrap_or_default().trim()));
    rows.filter(|(_, row)| !row.is_empty())
}

/// A line, and the range of endpoints.
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) endpoints: usize,
}

impl Line {
    fn flow(&self, row: &str) -> Result<FlowStart, FlowFileError> {
        let fields: Vec<&str> = row.split(',').map(str::trim).collect();
        let (start, from, to, bytes, dscp) = match fields[..] {
            [start, from, to, bytes] => (start, from, to, bytes, "0"),
            [start, from, to, bytes, dscp] => (start, from, to, bytes, dscp),
            _ => return Err(FlowFileError::Fields { line: self.number, fields: fields.len() }),
        };
        let flow = self.start(from, to, Timestamp(0), 1)?;
        let at = self.field("start", start, "seconds, or a length of time as in 10ms", time)?;
        let bytes =
            self.field("bytes", bytes, "an amount of at least 1 as in 1460 or 10MB, or `forever`", size)?;
        let code_point = |text: &str| text.parse().ok().filter(|dscp| *dscp < 64);
        let dscp = self.field("dscp", dscp, "0 to 63", code_point)?;
        Ok(FlowStart { at, bytes, dscp, ..flow })
    }

    /// Returns a flow between two endpoints.
    pub(super) fn start(
        &self,
        from: &str,
        to: &str,
        at: Timestamp,
        bytes: u64,
    ) -> Result<FlowStart, FlowFileError> {
        let source = self.endpoint("source", from)?;
        let destination = self.endpoint("destination", to)?;
        if source == destination {
            return Err(FlowFileError::ToItself { line: self.number, endpoint: source });
        }
        Ok(FlowStart { at, source, destination, bytes, dscp: 0 })
    }

    pub(super) fn foreign_fields(&self, fields: usize, expected: &'static str) -> FlowFileError {
        FlowFileError::ForeignFields { line: self.number, fields, expected }
    }

    fn endpoint(&self, field: &'static str, text: &str) -> Result<EndpointId, FlowFileError> {
        let number = |text: &str| text.strip_prefix('h').unwrap_or(text).parse().ok();
        let known = |text: &str| number(text).map(EndpointId).filter(|known| known.index() < self.endpoints);
        self.field(field, text, &format!("an endpoint below {}", self.endpoints), known)
    }

    pub(super) fn field<T>(
        &self,
        field: &'static str,
        text: &str,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, FlowFileError> {
        read(text).ok_or_else(|| FlowFileError::Field {
            line: self.number,
            field,
            text: text.chars().take(40).collect(),
            expected: expected.to_owned(),
        })
    }
}

fn time(text: &str) -> Option<Timestamp> {
    let nanos: Nanos = text.parse().or_else(|_| format!("{text}s").parse()).ok()?;
    Some(Timestamp(nanos.0))
}

fn size(text: &str) -> Option<u64> {
    match text {
        "forever" => Some(UNBOUNDED),
        _ => text.parse().ok().map(|Bytes(bytes)| bytes).filter(|&bytes| bytes > 0),
    }
}
