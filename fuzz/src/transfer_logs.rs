//! Logs of transfer programs.

use thalweg_transfers::logs::mapping::Mapping;
use thalweg_transfers::logs::{Format, ParserOptions, parser};

/// A time after all logs of the corpus: 2026-12-01.
const NOW_US: i64 = 1_796_083_200_000_000;

/// A mapping of CSV without a header.
const CSV: &str = r#"{"input": "csv", "columns": ["size", "begin", "end", "way", "code"], "fields": {
    "direction": {"column": "way", "send": ["get"], "receive": ["put"]}, "bytes": {"column": "size", "scale": 1000},
    "start": {"column": "begin", "time": "epoch_seconds"}, "end": {"column": "end", "time": "iso8601"},
    "error": {"column": "code", "success": ["0"]}}}"#;

/// A mapping of JSON lines.
const JSON: &str = r#"{"input": "json", "fields": {"direction": {"constant": "send"}, "bytes": {"column": "stats.bytes"},
    "end": {"column": "/time", "time": "syslog"}, "duration": {"column": "ms", "scale": 0.001}}}"#;

/// Checks that the lines of any text give transfers that do not end before they start, or errors, for every format; and that what a
/// parser needs again is a line that it got.
///
/// # Panics
/// When the property does not hold.
pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for (format, options) in parsers() {
        let mut parser = parser(format, &options).expect("the options are valid");
        parser.set_now(NOW_US);
        let (mut found, mut offset, mut starts) = (Vec::new(), 0, Vec::new());
        for line in text.split('\n') {
            starts.push(offset);
            let is_header = offset == 0 && parser.header(line);
            if !is_header && let Err(error) = parser.line(line, offset, &mut found) {
                assert!(error.found.chars().count() <= 64, "{error}");
            }
            if let Some(needs_from) = parser.needs_from() {
                assert!(starts.binary_search(&needs_from).is_ok(), "{format:?} needs {needs_from}");
            }
            offset += line.len() as u64 + 1;
        }
        for transfer in found {
            assert!(transfer.start_us <= transfer.end_us, "{transfer:?}");
        }
    }
}

fn parsers() -> Vec<(Format, ParserOptions)> {
    let utc = || ParserOptions { time_zone: "UTC".to_owned(), ..ParserOptions::default() };
    let mapping = |text: &str| {
        let mapping: Mapping = serde_json::from_str(text).expect("the mapping is valid");
        (Format::Mapping, ParserOptions { mapping: Some(mapping), ..utc() })
    };
    let mut parsers: Vec<(Format, ParserOptions)> = Format::ALL
        .into_iter()
        .filter(|format| *format != Format::Mapping)
        .map(|format| (format, utc()))
        .collect();
    parsers.push((Format::Nginx, ParserOptions { log_format: "combined".to_owned(), ..utc() }));
    parsers.push(mapping(CSV));
    parsers.push(mapping(JSON));
    parsers
}
