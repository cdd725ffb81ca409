//! Any log of CSV or JSON lines, with configured columns.
//!
//! Each field of a transfer comes from a column, from a path into a JSON object, or is constant. Required are `direction`, `bytes`, and
//! two of `start`, `end` and `duration`; or `end` alone, then the transfer has no duration.
//!
//! The first line of a CSV file is its header, unless `columns` names the columns. A file that was truncated by logrotate's
//! `copytruncate` has no header; it needs `columns`. A quoted value must not contain a line feed.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::Value;
use thalweg_api::TransferDirection;

use super::time::TimeFormat;
use super::{LineError, LogParser, LoggedTransfer, ParserError, Peer, address};

/// Where the fields of a transfer are in a log.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// Type of the lines.
    pub input: Input,
    /// For CSV: the delimiter. Default: a comma.
    #[serde(default)]
    pub delimiter: Option<char>,
    /// For CSV: names of the columns, if the files have no header.
    #[serde(default)]
    pub columns: Vec<String>,
    /// Sources of the fields.
    pub fields: BTreeMap<Field, Source>,
}

/// Types of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// Comma-separated values (RFC 4180).
    #[default]
    Csv,
    /// A JSON object in each line.
    Json,
}

/// Fields of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// Program.
    Application,
    /// Whether this host sent or received.
    Direction,
    /// User.
    User,
    /// File.
    File,
    /// Address of this host.
    Local,
    /// Address or name of the peer.
    Remote,
    /// Port of this host.
    LocalPort,
    /// Port of the peer.
    RemotePort,
    /// Start.
    Start,
    /// End.
    End,
    /// Duration; in seconds if `scale` is 1.
    Duration,
    /// Payload bytes.
    Bytes,
    /// Parallel TCP connections.
    Streams,
    /// TCP send buffer.
    SendBufferBytes,
    /// TCP receive buffer.
    ReceiveBufferBytes,
    /// Congestion control.
    CongestionControl,
    /// Why the transfer failed.
    Error,
}

impl Field {
    /// Returns the name of the field in configurations.
    fn name(self) -> String {
        let mut name = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.extend(letter.to_lowercase());
        }
        name
    }
}

/// Where a field comes from, and what its values mean.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Name of the column. For JSON: keys and array indexes separated by points, as in `stats.files.0.size`, or a JSON pointer, as in
    /// `/stats/files/0/size`.
    #[serde(default)]
    pub column: String,
    /// The value, instead of a column.
    #[serde(default)]
    pub constant: String,
    /// For times: how they are written.
    #[serde(default)]
    pub time: Option<TimeFormat>,
    /// For numbers: what to multiply them with. Bytes in kB have 1000; durations in ms have 0.001.
    #[serde(default)]
    pub scale: Option<f64>,
    /// For the direction: values that mean that this host sent. Default: `send`.
    #[serde(default)]
    pub send: Vec<String>,
    /// For the direction: values that mean that this host received. Default: `receive`.
    #[serde(default)]
    pub receive: Vec<String>,
    /// For the direction: values of lines that are no transfers.
    #[serde(default)]
    pub ignore: Vec<String>,
    /// For the error: values that mean success. The empty text always does.
    #[serde(default)]
    pub success: Vec<String>,
}

/// Parser of a log with a mapping.
#[derive(Debug)]
pub struct MappingParser {
    mapping: Mapping,
    application: String,
    zone: TimeZone,
    now_us: i64,
    delimiter: u8,
    /// Names of the columns of CSV; empty until the header was read.
    columns: Vec<String>,
    /// The first line, if it is no header.
    first_line: String,
}

impl MappingParser {
    /// Creates a parser. `application` is that of transfers whose mapping has none; `mapping` if it is empty.
    ///
    /// # Errors
    /// If a required field is missing, or a source does not fit its field.
    pub fn new(mapping: &Mapping, application: String, zone: TimeZone) -> Result<MappingParser, ParserError> {
        check(mapping)?;
        let delimiter = mapping.delimiter.unwrap_or(',');
        let delimiter = u8::try_from(delimiter).ok().filter(u8::is_ascii);
        Ok(MappingParser {
            application: if application.is_empty() { "mapping".to_owned() } else { application },
            zone,
            now_us: 0,
            delimiter: delimiter.ok_or_else(|| invalid("expected a delimiter of one ASCII character"))?,
            columns: mapping.columns.clone(),
            first_line: String::new(),
            mapping: mapping.clone(),
        })
    }
}

fn invalid(problem: impl Into<String>) -> ParserError {
    ParserError::Mapping(problem.into())
}

/// Checks that all required fields are there, and that the options of a source belong to its field.
fn check(mapping: &Mapping) -> Result<(), ParserError> {
    let has = |field: Field| mapping.fields.contains_key(&field);
    for field in [Field::Direction, Field::Bytes] {
        if !has(field) {
            return Err(invalid(format!("field `{}` is missing", field.name())));
        }
    }
    let has_end = has(Field::End) || (has(Field::Start) && has(Field::Duration));
    if !has_end {
        return Err(invalid("expected `end`, or `start` and `duration`"));
    }
    for (field, source) in &mapping.fields {
        let name = field.name();
        if source.column.is_empty() == source.constant.is_empty() {
            return Err(invalid(format!("field `{name}`: expected either `column` or `constant`")));
        }
        let is_time = matches!(field, Field::Start | Field::End);
        let is_number = matches!(
            field,
            Field::Duration
                | Field::Bytes
                | Field::Streams
                | Field::SendBufferBytes
                | Field::ReceiveBufferBytes
        );
        let is_direction = *field == Field::Direction;
        for (given, fits, option) in [
            (source.time.is_some(), is_time, "time"),
            (source.scale.is_some(), is_number, "scale"),
            (!source.send.is_empty(), is_direction, "send"),
            (!source.receive.is_empty(), is_direction, "receive"),
            (!source.ignore.is_empty(), is_direction, "ignore"),
            (!source.success.is_empty(), *field == Field::Error, "success"),
        ] {
            if given && !fits {
                return Err(invalid(format!("field `{name}` has no `{option}`")));
            }
        }
        if !mapping.columns.is_empty()
            && !source.column.is_empty()
            && !mapping.columns.contains(&source.column)
        {
            return Err(invalid(format!("field `{name}`: `columns` has no column {:?}", source.column)));
        }
    }
    Ok(())
}

impl LogParser for MappingParser {
    fn line(&mut self, line: &str, _offset: u64, found: &mut Vec<LoggedTransfer>) -> Result<(), LineError> {
        if line.is_empty() || self.header(line) {
            return Ok(());
        }
        let values = match self.mapping.input {
            Input::Csv => Values::Csv(&self.columns, self.csv(line)?),
            Input::Json => {
                let value: Value =
                    serde_json::from_str(line).map_err(|_| LineError::new("a JSON object", line))?;
                Values::Json(value)
            }
        };
        if let Values::Csv(columns, _) = &values
            && columns.is_empty()
        {
            const HEADER: &str = "a header with the configured columns in the first line";
            return Err(LineError::new(HEADER, &self.first_line));
        }
        if let Values::Csv(columns, values) = &values
            && columns.len() != values.len()
        {
            return Err(LineError::new("as many values as the header has columns", line));
        }
        found.extend(self.transfer(&values)?);
        Ok(())
    }

    fn set_now(&mut self, now_us: i64) {
        self.now_us = now_us;
    }

    fn header(&mut self, line: &str) -> bool {
        if self.mapping.input != Input::Csv || !self.mapping.columns.is_empty() {
            return false;
        }
        let Ok(names) = self.csv(line) else { return false };
        let mut needed = self.mapping.fields.values().filter(|source| !source.column.is_empty());
        let is_header = needed.all(|source| names.contains(&source.column));
        if is_header {
            self.columns = names;
        } else if self.columns.is_empty() && self.first_line.is_empty() {
            line.clone_into(&mut self.first_line);
        }
        is_header
    }
}

/// The values of a line.
enum Values<'a> {
    Csv(&'a [String], Vec<String>),
    Json(Value),
}

impl Values<'_> {
    fn get(&self, column: &str) -> Option<String> {
        match self {
            Values::Csv(columns, values) => {
                let index = columns.iter().position(|name| name == column)?;
                values.get(index).cloned()
            }
            Values::Json(value) => {
                let found = match column.starts_with('/') {
                    true => value.pointer(column),
                    false => value.pointer(&format!("/{}", column.replace('.', "/"))),
                };
                match found? {
                    Value::String(text) => Some(text.clone()),
                    Value::Null => Some(String::new()),
                    other => Some(other.to_string()),
                }
            }
        }
    }
}

impl MappingParser {
    fn csv(&self, line: &str) -> Result<Vec<String>, LineError> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .delimiter(self.delimiter)
            .buffer_capacity(1 << 10)
            .from_reader(line.as_bytes());
        let mut record = csv::StringRecord::new();
        match reader.read_record(&mut record) {
            Ok(true) => Ok(record.iter().map(str::to_owned).collect()),
            _ => Err(LineError::new("a line of CSV", line)),
        }
    }

    fn transfer(&self, values: &Values<'_>) -> Result<Option<LoggedTransfer>, LineError> {
        let Some(direction) = self.direction(values)? else { return Ok(None) };
        let text = |field| self.text(values, field).unwrap_or_default();
        let duration_us = self.number(values, Field::Duration)?.map(|seconds| (seconds * 1e6) as i64);
        let (start_us, end_us) = (self.time(values, Field::Start)?, self.time(values, Field::End)?);
        let (start_us, end_us) = match (start_us, end_us, duration_us) {
            (Some(start_us), Some(end_us), _) => (start_us.min(end_us), end_us),
            (None, Some(end_us), duration_us) => (end_us.saturating_sub(duration_us.unwrap_or(0)), end_us),
            (Some(start_us), None, duration_us) => {
                (start_us, start_us.saturating_add(duration_us.unwrap_or(0)))
            }
            (None, None, _) => return Err(LineError::new("a start or an end", "")),
        };
        // Casts saturate.
        let count = |field| -> Result<u64, LineError> {
            Ok(self.number(values, field)?.unwrap_or(0.0).round() as u64)
        };
        let port = |field| -> Result<u16, LineError> {
            let text = text(field);
            match text.is_empty() {
                true => Ok(0),
                false => text.parse().map_err(|_| LineError::new("a port", &text)),
            }
        };
        let application = text(Field::Application);
        let error = text(Field::Error);
        let success = self.source(Field::Error).is_some_and(|source| source.success.contains(&error));
        Ok(Some(LoggedTransfer {
            application: if application.is_empty() { self.application.clone() } else { application },
            direction,
            user: text(Field::User),
            file: text(Field::File),
            local: address(&text(Field::Local)),
            remote: Peer::parse(&text(Field::Remote)),
            local_port: port(Field::LocalPort)?,
            remote_port: port(Field::RemotePort)?,
            start_us,
            end_us,
            bytes: count(Field::Bytes)?,
            streams: count(Field::Streams)?.min(u64::from(u16::MAX)) as u16,
            send_buffer_bytes: count(Field::SendBufferBytes)?,
            receive_buffer_bytes: count(Field::ReceiveBufferBytes)?,
            congestion_control: text(Field::CongestionControl),
            error: if success { String::new() } else { error },
        }))
    }

    fn source(&self, field: Field) -> Option<&Source> {
        self.mapping.fields.get(&field)
    }

    /// Returns the text of a field; `None` if it is not mapped, or if a JSON object does not have it.
    fn text(&self, values: &Values<'_>, field: Field) -> Option<String> {
        let source = self.source(field)?;
        match source.column.is_empty() {
            true => Some(source.constant.clone()),
            false => values.get(&source.column),
        }
    }

    fn time(&self, values: &Values<'_>, field: Field) -> Result<Option<i64>, LineError> {
        let format = self.source(field).and_then(|source| source.time).unwrap_or_default();
        match self.text(values, field).filter(|text| !text.is_empty()) {
            Some(text) => format.parse(&text, &self.zone, self.now_us).map(Some),
            None => Ok(None),
        }
    }

    fn number(&self, values: &Values<'_>, field: Field) -> Result<Option<f64>, LineError> {
        let Some(text) = self.text(values, field).filter(|text| !text.is_empty()) else { return Ok(None) };
        let scale = self.source(field).and_then(|source| source.scale).unwrap_or(1.0);
        match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(Some(number * scale)),
            _ => Err(LineError::new("a number", &text)),
        }
    }

    /// Returns the direction; `None` for a line that is no transfer.
    fn direction(&self, values: &Values<'_>) -> Result<Option<TransferDirection>, LineError> {
        let text = self.text(values, Field::Direction).unwrap_or_default();
        let matches = |values: &[String], default: &str| match values.is_empty() {
            true => text == default,
            false => values.contains(&text),
        };
        match self.source(Field::Direction) {
            Some(source) if matches(&source.send, "send") => Ok(Some(TransferDirection::Send)),
            Some(source) if matches(&source.receive, "receive") => Ok(Some(TransferDirection::Receive)),
            Some(source) if source.ignore.contains(&text) => Ok(None),
            _ => {
                Err(LineError::new("a direction: one of the values of `send`, `receive` or `ignore`", &text))
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
