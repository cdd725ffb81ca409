//! Flows from a file: `start,source,destination,bytes` and optionally `,dscp` on each line.
//!
//! `start` is a time since the start, such as `10ms`, or seconds without a unit. Endpoints are numbers, with or without
//! the prefix `h`. `bytes` is an amount, such as `1460` or `10MB`, or `forever`. Empty lines, comments after `#`, and
//! header lines before the first flow are ignored. Lines may be in any order.

use thalweg_network::EndpointId;
use thalweg_wire::{Bytes, Nanos, Timestamp};
use thiserror::Error;

use super::Schedule;
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
        let mut flows = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let row = line.split('#').next().unwrap_or_default().trim();
            if row.is_empty() || (flows.is_empty() && row.starts_with("start,")) {
                continue;
            }
            if flows.len() == MAX_FLOWS {
                return Err(FlowFileError::TooMany { line: number + 1 });
            }
            flows.push(Line { number: number + 1, endpoints }.flow(row)?);
        }
        Ok(Schedule::new(flows))
    }
}

/// A line, and the range of endpoints.
struct Line {
    number: usize,
    endpoints: usize,
}

impl Line {
    fn flow(&self, row: &str) -> Result<FlowStart, FlowFileError> {
        let fields: Vec<&str> = row.split(',').map(str::trim).collect();
        let (start, from, to, bytes, dscp) = match fields[..] {
            [start, from, to, bytes] => (start, from, to, bytes, "0"),
            [start, from, to, bytes, dscp] => (start, from, to, bytes, dscp),
            _ => return Err(FlowFileError::Fields { line: self.number, fields: fields.len() }),
        };
        let source = self.endpoint("source", from)?;
        let destination = self.endpoint("destination", to)?;
        if source == destination {
            return Err(FlowFileError::ToItself { line: self.number, endpoint: source });
        }
        let at = self.field("start", start, "seconds, or a length of time as in 10ms", time)?;
        let bytes =
            self.field("bytes", bytes, "an amount of at least 1 as in 1460 or 10MB, or `forever`", size)?;
        let code_point = |text: &str| text.parse().ok().filter(|dscp| *dscp < 64);
        let dscp = self.field("dscp", dscp, "0 to 63", code_point)?;
        Ok(FlowStart { at, source, destination, bytes, dscp })
    }

    fn endpoint(&self, field: &'static str, text: &str) -> Result<EndpointId, FlowFileError> {
        let number = |text: &str| text.strip_prefix('h').unwrap_or(text).parse().ok();
        let known = |text: &str| number(text).map(EndpointId).filter(|known| known.index() < self.endpoints);
        self.field(field, text, &format!("an endpoint below {}", self.endpoints), known)
    }

    fn field<T>(
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
