//! Access log of nginx, of a configured `log_format`.
//!
//! [`DEFAULT_LOG_FORMAT`] has everything that a transfer needs:
//!
//! ```text
//! log_format transfers '$msec $remote_addr $remote_port $server_addr $server_port "$remote_user" "$request" $status '
//!                      '$body_bytes_sent $request_length $request_time "$request_completion"';
//! ```
//!
//! nginx writes the line at the end of a request. The start is the end minus `$request_time`. A format without `$request_time`, such as
//! the predefined `combined`, has no duration: start and end are equal, and no throughput can be derived. A format without
//! `$request_completion` does not show that a download was cut off.
//!
//! nginx ends a request when the last bytes are in the send buffer of the socket, not when they arrived. So the duration of a file that
//! fits into the buffer is much too short; that of a large one is short by the time that a full buffer takes.
//!
//! `GET` sends and has the bytes of `$body_bytes_sent`; `PUT`, `POST` and `PATCH` receive and have those of `$request_length`, headers
//! included; without `$request_length` uploads have no bytes. Other methods and redirects are no transfers. A status from 400 on is an
//! error. The query of a request is left out, since it may hold a secret. Requests over one persistent connection are one line each; the
//! log does not tell connections apart. It has no buffers and no congestion control.

use jiff::tz::TimeZone;
use thalweg_api::TransferDirection;

use super::scanner::Scanner;
use super::{LineError, LogParser, LoggedTransfer, ParserError, Peer, address, time};

/// The `log_format` that is recommended.
pub const DEFAULT_LOG_FORMAT: &str = "$msec $remote_addr $remote_port $server_addr $server_port \"$remote_user\" \
    \"$request\" $status $body_bytes_sent $request_length $request_time \"$request_completion\"";

/// nginx's predefined `log_format`.
pub const COMBINED_LOG_FORMAT: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status \
    $body_bytes_sent \"$http_referer\" \"$http_user_agent\"";

/// Parser of an access log of nginx.
#[derive(Debug)]
pub struct Nginx {
    application: String,
    zone: TimeZone,
    /// The literal before each variable, and the variable.
    variables: Vec<(String, Variable)>,
    /// The literal after the last variable.
    tail: String,
}

/// What a parser needs of a log format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variable {
    RemoteAddress,
    RemotePort,
    ServerAddress,
    ServerPort,
    User,
    TimeLocal,
    TimeIso8601,
    Milliseconds,
    Request,
    Method,
    Uri,
    Status,
    BodyBytesSent,
    BytesSent,
    RequestLength,
    RequestTime,
    Completion,
    Other,
}

impl Variable {
    fn of(name: &str) -> Variable {
        match name {
            "remote_addr" | "realip_remote_addr" => Variable::RemoteAddress,
            "remote_port" | "realip_remote_port" => Variable::RemotePort,
            "server_addr" => Variable::ServerAddress,
            "server_port" => Variable::ServerPort,
            "remote_user" => Variable::User,
            "time_local" => Variable::TimeLocal,
            "time_iso8601" => Variable::TimeIso8601,
            "msec" => Variable::Milliseconds,
            "request" => Variable::Request,
            "request_method" => Variable::Method,
            "request_uri" | "uri" => Variable::Uri,
            "status" => Variable::Status,
            "body_bytes_sent" => Variable::BodyBytesSent,
            "bytes_sent" => Variable::BytesSent,
            "request_length" => Variable::RequestLength,
            "request_time" => Variable::RequestTime,
            "request_completion" => Variable::Completion,
            _ => Variable::Other,
        }
    }
}

impl Nginx {
    /// Creates a parser for a `log_format`; an empty one is [`DEFAULT_LOG_FORMAT`], and `combined` the predefined one.
    ///
    /// # Errors
    /// If the format lacks a time, the request, the status or the bytes, or has two variables without a text between them.
    pub fn new(application: String, zone: TimeZone, log_format: &str) -> Result<Nginx, ParserError> {
        let log_format = match log_format {
            "" => DEFAULT_LOG_FORMAT,
            "combined" => COMBINED_LOG_FORMAT,
            other => other,
        };
        let (variables, tail) = split_format(log_format)?;
        let has = |any: &[Variable]| variables.iter().any(|(_, variable)| any.contains(variable));
        let needed: [(&[Variable], &str); 5] = [
            (
                &[Variable::Milliseconds, Variable::TimeIso8601, Variable::TimeLocal],
                "$msec, $time_iso8601 or $time_local",
            ),
            (&[Variable::Request, Variable::Method], "$request, or $request_method and $request_uri"),
            (&[Variable::Request, Variable::Uri], "$request, or $request_method and $request_uri"),
            (&[Variable::Status], "$status"),
            (
                &[Variable::BodyBytesSent, Variable::BytesSent, Variable::RequestLength],
                "$body_bytes_sent or $request_length",
            ),
        ];
        for (any, names) in needed {
            if !has(any) {
                return Err(ParserError::LogFormat(format!("{names} is missing in {log_format:?}")));
            }
        }
        Ok(Nginx { application, zone, variables, tail })
    }
}

/// Splits a format into literals and variables, and the literal at the end.
fn split_format(log_format: &str) -> Result<(Vec<(String, Variable)>, String), ParserError> {
    let mut variables = Vec::new();
    let mut parts = log_format.split('$');
    let mut literal = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let (name, after) = match part.strip_prefix('{') {
            Some(braced) => braced.split_once('}').unwrap_or((braced, "")),
            None => part
                .split_at(part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(part.len())),
        };
        if name.is_empty() {
            return Err(ParserError::LogFormat(format!(
                "expected the name of a variable after `$`, found {part:?}"
            )));
        }
        if literal.is_empty() && !variables.is_empty() {
            return Err(ParserError::LogFormat(format!(
                "expected a text between `${name}` and the variable before"
            )));
        }
        variables.push((std::mem::take(&mut literal), Variable::of(name)));
        after.clone_into(&mut literal);
    }
    Ok((variables, literal))
}

/// What a line says.
#[derive(Debug, Default)]
struct Request<'a> {
    transfer: LoggedTransfer,
    time_us: Option<i64>,
    duration_us: i64,
    method: &'a str,
    uri: &'a str,
    status: u16,
    body_bytes_sent: Option<u64>,
    bytes_sent: Option<u64>,
    request_length: Option<u64>,
    completion: Option<&'a str>,
}

impl LogParser for Nginx {
    fn line(&mut self, line: &str, _offset: u64, found: &mut Vec<LoggedTransfer>) -> Result<(), LineError> {
        if line.is_empty() {
            return Ok(());
        }
        const LITERAL: &str = "the text that the log_format has between two variables";
        let mut request = Request::default();
        let mut text = Scanner::new(line);
        let mut variables = self.variables.iter().peekable();
        if let Some((first, _)) = variables.peek() {
            text.literal(first, LITERAL)?;
        }
        while let Some((_, variable)) = variables.next() {
            let next = variables.peek().map_or(&self.tail, |(literal, _)| literal);
            let value = match next.is_empty() {
                true => {
                    let rest = text.rest();
                    text = Scanner::new("");
                    rest
                }
                false => text.until(next, LITERAL)?,
            };
            self.variable(*variable, value, &mut request)?;
        }
        found.extend(self.transfer(request)?);
        Ok(())
    }
}

impl Nginx {
    fn variable<'a>(
        &self,
        variable: Variable,
        value: &'a str,
        request: &mut Request<'a>,
    ) -> Result<(), LineError> {
        match variable {
            Variable::RemoteAddress => request.transfer.remote = Peer::parse(value),
            Variable::RemotePort => request.transfer.remote_port = number(value, "a port")?,
            Variable::ServerAddress => request.transfer.local = address(value),
            Variable::ServerPort => request.transfer.local_port = number(value, "a port")?,
            Variable::User if value != "-" => value.clone_into(&mut request.transfer.user),
            Variable::User => {}
            Variable::TimeLocal => request.set_time(time::common_log(&mut Scanner::new(value))?, false),
            Variable::TimeIso8601 => {
                request.set_time(time::iso8601(&mut Scanner::new(value), &self.zone)?, false);
            }
            Variable::Milliseconds => request.set_time(time::epoch(value, 6)?, true),
            Variable::Request => request.set_request(value),
            Variable::Method => request.method = value,
            Variable::Uri => request.uri = value,
            Variable::Status => request.status = number(value, "a status")?,
            Variable::BodyBytesSent => request.body_bytes_sent = Some(number(value, "a number of bytes")?),
            Variable::BytesSent => request.bytes_sent = Some(number(value, "a number of bytes")?),
            Variable::RequestLength => request.request_length = Some(number(value, "a number of bytes")?),
            Variable::RequestTime => {
                let error = || LineError::new("a number of seconds", value);
                request.duration_us = time::seconds_us(value).ok_or_else(error)?;
            }
            Variable::Completion => request.completion = Some(value),
            Variable::Other => {}
        }
        Ok(())
    }

    fn transfer(&self, request: Request<'_>) -> Result<Option<LoggedTransfer>, LineError> {
        let (direction, bytes) = match request.method {
            "GET" => (TransferDirection::Send, request.body_bytes_sent.or(request.bytes_sent)),
            "PUT" | "POST" | "PATCH" => (TransferDirection::Receive, request.request_length),
            _ => return Ok(None),
        };
        let end_us = request.time_us.ok_or_else(|| LineError::new("a time", ""))?;
        let error = match (request.status, request.completion) {
            (300..=399, _) => return Ok(None),
            (0..=299, Some(completion)) if completion != "OK" => "incomplete".to_owned(),
            (0..=299, _) => String::new(),
            (status, _) => format!("HTTP status {status}"),
        };
        Ok(Some(LoggedTransfer {
            application: self.application.clone(),
            direction,
            file: request.uri.split('?').next().unwrap_or("").to_owned(),
            start_us: end_us.saturating_sub(request.duration_us),
            end_us,
            bytes: bytes.unwrap_or(0),
            streams: 1,
            error,
            ..request.transfer
        }))
    }
}

impl<'a> Request<'a> {
    /// Sets the time; a precise one stays.
    fn set_time(&mut self, time_us: i64, precise: bool) {
        if precise || self.time_us.is_none() {
            self.time_us = Some(time_us);
        }
    }

    /// Takes `GET /f HTTP/1.1`. Anything else, such as bytes of TLS, leaves the method empty.
    fn set_request(&mut self, text: &'a str) {
        let mut words = text.split(' ');
        if let (Some(method), Some(uri), Some(protocol)) = (words.next(), words.next(), words.next_back())
            && protocol.starts_with("HTTP/")
        {
            self.method = method;
            self.uri = uri;
        }
    }
}

fn number<T: std::str::FromStr>(text: &str, expected: &'static str) -> Result<T, LineError> {
    // nginx writes `-` for a value that it does not have.
    let text = if text == "-" { "0" } else { text };
    text.parse().map_err(|_| LineError::new(expected, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "1795896900.500 192.0.2.7 40000 192.0.2.1 443 \"ada\" \"GET /f?token=x HTTP/1.1\" 200 300000 90 \
        2.250 \"OK\"";

    fn parse_with(log_format: &str, line: &str) -> Result<Vec<LoggedTransfer>, LineError> {
        let mut found = Vec::new();
        Nginx::new("nginx".to_owned(), TimeZone::UTC, log_format).unwrap().line(line, 0, &mut found)?;
        Ok(found)
    }

    fn parse(line: &str) -> Result<Vec<LoggedTransfer>, LineError> {
        parse_with("", line)
    }

    #[test]
    fn a_download_is_a_transfer_without_its_query() {
        let expected = LoggedTransfer {
            application: "nginx".to_owned(),
            direction: TransferDirection::Send,
            user: "ada".to_owned(),
            file: "/f".to_owned(),
            local: Some("192.0.2.1".parse().unwrap()),
            remote: Peer::parse("192.0.2.7"),
            local_port: 443,
            remote_port: 40_000,
            start_us: 1_795_896_898_250_000,
            end_us: 1_795_896_900_500_000,
            bytes: 300_000,
            streams: 1,
            ..LoggedTransfer::default()
        };
        assert_eq!(parse(LINE), Ok(vec![expected]));
    }

    #[test]
    fn an_upload_has_the_bytes_of_the_request() {
        let line = LINE.replace("GET", "PUT").replace("200 300000 90", "201 0 300090");
        let found = parse(&line).unwrap();
        assert_eq!((found[0].direction, found[0].bytes), (TransferDirection::Receive, 300_090));
    }

    #[test]
    fn a_download_that_was_cut_off_is_an_error() {
        assert_eq!(parse(&LINE.replace("\"OK\"", "\"\"")).unwrap()[0].error, "incomplete");
        assert_eq!(parse(&LINE.replace("\"OK\"", "\"-\"")).unwrap()[0].error, "incomplete");
        assert_eq!(parse(&LINE.replace("200 300", "404 300")).unwrap()[0].error, "HTTP status 404");
    }

    #[test]
    fn other_requests_are_no_transfers() {
        for line in [
            LINE.replace("GET /f?token=x HTTP/1.1", "\\x16\\x03\\x01"),
            LINE.replace("GET", "HEAD"),
            LINE.replace("200 300000", "304 0"),
            LINE.replace("GET /f?token=x HTTP/1.1", ""),
        ] {
            assert_eq!(parse(&line), Ok(Vec::new()), "{line}");
        }
    }

    #[test]
    fn the_combined_format_has_no_duration() {
        let line =
            "192.0.2.7 - - [28/Nov/2026:21:15:00 +0100] \"GET /f HTTP/1.1\" 200 300000 \"-\" \"curl/7.88.1\"";
        let found = parse_with("combined", line).unwrap();
        assert_eq!((found[0].start_us, found[0].end_us), (1_795_896_900_000_000, 1_795_896_900_000_000));
        assert_eq!((found[0].user.as_str(), found[0].bytes), ("", 300_000));
    }

    #[test]
    fn a_precise_time_wins_over_whole_seconds() {
        let format = "$msec [$time_local] \"$request\" $status $bytes_sent";
        let line = "1795896900.500 [28/Nov/2026:20:15:00 +0000] \"GET /f HTTP/1.1\" 200 300000";
        assert_eq!(parse_with(format, line).unwrap()[0].end_us, 1_795_896_900_500_000);
    }

    #[test]
    fn names_in_braces_are_variables() {
        let format = "${msec}s \"${request}\" ${status}/${bytes_sent}B";
        let found = parse_with(format, "1795896900.500s \"GET /f HTTP/1.1\" 200/7B").unwrap();
        assert_eq!(found[0].bytes, 7);
    }

    #[test]
    fn an_unusable_format_is_refused() {
        for (format, problem) in [
            ("$request $status $bytes_sent", "$msec, $time_iso8601 or $time_local is missing"),
            ("$msec $status $bytes_sent", "$request, or $request_method and $request_uri is missing"),
            ("$msec $request_method $status $bytes_sent", "$request, or $request_method and $request_uri"),
            ("$msec $request $bytes_sent", "$status is missing"),
            ("$msec $request $status", "$body_bytes_sent or $request_length is missing"),
            (
                "$msec$request $status $bytes_sent",
                "expected a text between `$request` and the variable before",
            ),
            ("$msec $ $request", "expected the name of a variable after `$`"),
        ] {
            let error = Nginx::new(String::new(), TimeZone::UTC, format).unwrap_err().to_string();
            assert!(error.contains(problem), "{format}: {error}");
        }
    }

    #[test]
    fn a_cut_line_is_refused() {
        for end in 1..LINE.len() {
            assert!(parse(&LINE[..end]).is_err(), "{}", &LINE[..end]);
        }
    }
}
