//! JSON of iperf3: `iperf3 --json --logfile FILE`, client or server, one document after the other.
//!
//! A test is one transfer, whatever its number of streams; `--bidir` is two. Its bytes and its duration are those that arrived, if the
//! document has them, otherwise those that were sent. The start has whole seconds. A test that broke off has the bytes of the intervals
//! so far. A document without a start, such as that of a refused connection, is no transfer. Tests of UDP and SCTP are none either.
//!
//! Ports are 0 if the streams have different ones. Buffers are those of this host, as the kernel counts them, and only if `-w` set them:
//! without it the kernel sizes them during the test, and the sizes in the document are those of the start. The congestion control is that
//! of the sender, which a receiving server may not know. The log has no user and no file.
//!
//! Documents are read line by line. `intervals` are summed and not kept, so that memory does not grow with the length of a test. What
//! else a document has is limited to [`MAX_DOCUMENT_BYTES`].

use serde::Deserialize;
use serde_json::Value;
use thalweg_api::TransferDirection;

use super::{LineError, LogParser, LoggedTransfer, Peer, address};

/// Maximum size of a document without its intervals, in bytes.
pub const MAX_DOCUMENT_BYTES: usize = 1 << 20;

const DOCUMENT: &str = "a document of iperf3 --json";

/// Parser of the JSON of iperf3.
#[derive(Debug)]
pub struct Iperf3 {
    application: String,
    document: Option<Partial>,
}

/// A document that has not ended.
#[derive(Debug, Default)]
struct Partial {
    offset: u64,
    text: String,
    /// Open brackets.
    depth: usize,
    in_intervals: bool,
    /// Whether the line before began the `sum` of an interval.
    in_sum: bool,
    interval_bytes: u64,
    interval_seconds: f64,
    too_long: bool,
}

impl Iperf3 {
    /// Creates a parser for transfers of this application.
    pub fn new(application: String) -> Iperf3 {
        Iperf3 { application, document: None }
    }
}

impl LogParser for Iperf3 {
    fn line(&mut self, line: &str, offset: u64, found: &mut Vec<LoggedTransfer>) -> Result<(), LineError> {
        // A document begins in the first column; nothing else of it does, except its end.
        if line.starts_with('{') {
            let cut = self.document.replace(Partial { offset, ..Partial::default() });
            self.document_line(line, found)?;
            return match cut {
                Some(cut) => Err(LineError::new("the end of the document before", last_line(&cut.text))),
                None => Ok(()),
            };
        }
        match self.document {
            Some(_) => self.document_line(line, found),
            None if line.trim().is_empty() => Ok(()),
            None => Err(LineError::new(DOCUMENT, line)),
        }
    }

    fn needs_from(&self) -> Option<u64> {
        self.document.as_ref().map(|document| document.offset)
    }
}

impl Iperf3 {
    fn document_line(&mut self, line: &str, found: &mut Vec<LoggedTransfer>) -> Result<(), LineError> {
        let Some(document) = &mut self.document else { return Ok(()) };
        document.add(line);
        if document.depth > 0 {
            return Ok(());
        }
        let Some(document) = self.document.take() else { return Ok(()) };
        if document.too_long {
            return Err(LineError::new("a document of at most 1 MiB without its intervals", line));
        }
        // iperf3 repeats keys if a test has several streams; a `Value` keeps the last one.
        let parsed = serde_json::from_str::<Value>(&document.text).and_then(Document::deserialize);
        let parsed = parsed.map_err(|_| LineError::new(DOCUMENT, last_line(&document.text)))?;
        parsed.transfers(&self.application, &document, found);
        Ok(())
    }
}

impl Partial {
    fn add(&mut self, line: &str) {
        let trimmed = line.trim_start();
        self.in_intervals |= self.depth == 1 && trimmed.starts_with("\"intervals\":");
        if self.in_intervals {
            self.add_interval(trimmed);
        } else if self.text.len() + line.len() > MAX_DOCUMENT_BYTES {
            self.too_long = true;
        } else {
            self.text.push_str(line);
            self.text.push('\n');
        }
        self.count_brackets(line);
        if self.depth <= 1 {
            self.in_intervals = false;
        }
    }

    /// Sums the bytes and the seconds of the `sum` of an interval.
    fn add_interval(&mut self, trimmed: &str) {
        if trimmed.starts_with("\"sum\":") {
            self.in_sum = true;
        } else if trimmed.starts_with('}') {
            self.in_sum = false;
        }
        let value = |name: &str| trimmed.strip_prefix(name).map(|value| value.trim().trim_end_matches(','));
        if !self.in_sum {
            return;
        }
        if let Some(bytes) = value("\"bytes\":").and_then(|value| value.parse::<u64>().ok()) {
            self.interval_bytes = self.interval_bytes.saturating_add(bytes);
        }
        if let Some(seconds) = value("\"seconds\":").and_then(|value| value.parse::<f64>().ok()) {
            self.interval_seconds += seconds;
        }
    }

    fn count_brackets(&mut self, line: &str) {
        let (mut in_string, mut escaped) = (false, false);
        for byte in line.bytes() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                b'{' | b'[' if !in_string => self.depth += 1,
                b'}' | b']' if !in_string => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }
}

#[derive(Debug, Deserialize)]
struct Document {
    #[serde(default)]
    start: Start,
    #[serde(default)]
    end: End,
    #[serde(default)]
    error: String,
}

#[derive(Debug, Default, Deserialize)]
struct Start {
    #[serde(default)]
    connected: Vec<Connected>,
    timestamp: Option<Timestamp>,
    connecting_to: Option<Host>,
    accepted_connection: Option<Host>,
    #[serde(default)]
    sock_bufsize: u64,
    #[serde(default)]
    sndbuf_actual: u64,
    #[serde(default)]
    rcvbuf_actual: u64,
    test_start: Option<TestStart>,
}

#[derive(Debug, Deserialize)]
struct Connected {
    #[serde(default)]
    local_host: String,
    #[serde(default)]
    local_port: u16,
    #[serde(default)]
    remote_host: String,
    #[serde(default)]
    remote_port: u16,
}

#[derive(Debug, Deserialize)]
struct Timestamp {
    timesecs: i64,
}

#[derive(Debug, Deserialize)]
struct Host {
    #[serde(default)]
    host: String,
}

#[derive(Debug, Deserialize)]
struct TestStart {
    #[serde(default)]
    protocol: String,
    #[serde(default)]
    num_streams: u16,
    #[serde(default)]
    omit: f64,
    #[serde(default)]
    reverse: u8,
}

#[derive(Debug, Default, Deserialize)]
struct End {
    sum_sent: Option<Sum>,
    sum_received: Option<Sum>,
    sum_sent_bidir_reverse: Option<Sum>,
    sum_received_bidir_reverse: Option<Sum>,
    #[serde(default)]
    sender_tcp_congestion: String,
    #[serde(default)]
    receiver_tcp_congestion: String,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Sum {
    #[serde(default)]
    seconds: f64,
    #[serde(default)]
    bytes: u64,
}

impl Document {
    fn transfers(&self, application: &str, partial: &Partial, found: &mut Vec<LoggedTransfer>) {
        let (Some(timestamp), Some(test)) = (&self.start.timestamp, &self.start.test_start) else { return };
        if test.protocol != "TCP" {
            return;
        }
        let is_client = self.start.connecting_to.is_some();
        let direction = match is_client == (test.reverse == 0) {
            true => TransferDirection::Send,
            false => TransferDirection::Receive,
        };
        let start_us = timestamp.timesecs.saturating_add(test.omit as i64).saturating_mul(1_000_000);
        let broke_off = Sum { seconds: partial.interval_seconds, bytes: partial.interval_bytes };
        let sum = arrived(self.end.sum_received, self.end.sum_sent).unwrap_or(broke_off);
        let backward = arrived(self.end.sum_received_bidir_reverse, self.end.sum_sent_bidir_reverse);
        let (own, peers) = (&self.end.sender_tcp_congestion, &self.end.receiver_tcp_congestion);
        // With `--bidir` the sender is this host; what the client sends comes first.
        let (first, second) = match is_client || backward.is_none() {
            true => (own, peers),
            false => (peers, own),
        };
        found.push(self.transfer(application, test, direction, start_us, sum, first));
        if let Some(sum) = backward {
            let direction = match direction {
                TransferDirection::Send => TransferDirection::Receive,
                TransferDirection::Receive => TransferDirection::Send,
            };
            found.push(self.transfer(application, test, direction, start_us, sum, second));
        }
    }

    fn transfer(
        &self,
        application: &str,
        test: &TestStart,
        direction: TransferDirection,
        start_us: i64,
        sum: Sum,
        congestion_control: &str,
    ) -> LoggedTransfer {
        let first = self.start.connected.first();
        let host = self.start.connecting_to.as_ref().or(self.start.accepted_connection.as_ref());
        let sized = self.start.sock_bufsize > 0;
        LoggedTransfer {
            application: application.to_owned(),
            direction,
            local: first.and_then(|first| address(&first.local_host)),
            remote: first
                .and_then(|first| Peer::parse(&first.remote_host))
                .or_else(|| host.and_then(|host| Peer::parse(&host.host))),
            local_port: self.common_port(|connected| connected.local_port),
            remote_port: self.common_port(|connected| connected.remote_port),
            start_us,
            // Saturates.
            end_us: start_us.saturating_add((sum.seconds.max(0.0) * 1e6) as i64),
            bytes: sum.bytes,
            streams: test.num_streams,
            send_buffer_bytes: if sized { self.start.sndbuf_actual } else { 0 },
            receive_buffer_bytes: if sized { self.start.rcvbuf_actual } else { 0 },
            congestion_control: congestion_control.to_owned(),
            error: self.error.clone(),
            ..LoggedTransfer::default()
        }
    }

    /// Returns the port if all connections have the same.
    fn common_port(&self, port: impl Fn(&Connected) -> u16) -> u16 {
        let mut ports = self.start.connected.iter().map(port);
        match ports.next() {
            Some(first) if ports.all(|port| port == first) => first,
            _ => 0,
        }
    }
}

/// Returns what arrived; if the document does not say, what was sent.
fn arrived(received: Option<Sum>, sent: Option<Sum>) -> Option<Sum> {
    received.filter(|sum| sum.bytes > 0).or(sent)
}

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{
	"start":	{
		"connected":	[{
				"socket":	5,
				"local_host":	"192.0.2.1",
				"local_port":	40000,
				"remote_host":	"192.0.2.7",
				"remote_port":	5201
			}],
		"timestamp":	{
			"timesecs":	1795896900
		},
		"connecting_to":	{
			"host":	"dtn2",
			"port":	5201
		},
		"sock_bufsize":	0,
		"sndbuf_actual":	16384,
		"rcvbuf_actual":	131072,
		"test_start":	{
			"protocol":	"TCP",
			"num_streams":	1,
			"reverse":	0
		}
	},
	"intervals":	[{
			"streams":	[{
					"seconds":	1,
					"bytes":	4
				}],
			"sum":	{
				"seconds":	1.5,
				"bytes":	200000
			}
		}],
	"end":	{
		"sum_sent":	{
			"seconds":	2,
			"bytes":	300001
		},
		"sum_received":	{
			"seconds":	2.25,
			"bytes":	300000
		},
		"sender_tcp_congestion":	"cubic",
		"receiver_tcp_congestion":	"bbr"
	}
}
"#;

    fn parse(log: &str) -> (Vec<LoggedTransfer>, Vec<LineError>) {
        let mut parser = Iperf3::new("iperf3".to_owned());
        let (mut found, mut errors) = (Vec::new(), Vec::new());
        for (number, line) in log.lines().enumerate() {
            errors.extend(parser.line(line, number as u64, &mut found).err());
        }
        (found, errors)
    }

    fn one(log: &str) -> LoggedTransfer {
        let (found, errors) = parse(log);
        assert_eq!((found.len(), errors), (1, Vec::new()));
        found.into_iter().next().unwrap()
    }

    #[test]
    fn a_document_is_a_transfer() {
        let expected = LoggedTransfer {
            application: "iperf3".to_owned(),
            direction: TransferDirection::Send,
            local: Some("192.0.2.1".parse().unwrap()),
            remote: Peer::parse("192.0.2.7"),
            local_port: 40_000,
            remote_port: 5_201,
            start_us: 1_795_896_900_000_000,
            end_us: 1_795_896_902_250_000,
            bytes: 300_000,
            streams: 1,
            congestion_control: "cubic".to_owned(),
            ..LoggedTransfer::default()
        };
        assert_eq!(one(DOCUMENT), expected);
    }

    #[test]
    fn a_server_receives_and_a_reverse_test_turns_the_direction() {
        let server = DOCUMENT.replace("connecting_to", "accepted_connection");
        let reverse = |log: &str| log.replace("\"reverse\":\t0", "\"reverse\":\t1");
        assert_eq!(one(&server).direction, TransferDirection::Receive);
        assert_eq!(one(&reverse(DOCUMENT)).direction, TransferDirection::Receive);
        assert_eq!(one(&reverse(&server)).direction, TransferDirection::Send);
    }

    #[test]
    fn buffers_that_the_kernel_sizes_are_unknown() {
        let transfer = one(&DOCUMENT.replace("\"sock_bufsize\":\t0", "\"sock_bufsize\":\t8192"));
        assert_eq!((transfer.send_buffer_bytes, transfer.receive_buffer_bytes), (16_384, 131_072));
    }

    #[test]
    fn repeated_keys_are_accepted() {
        let repeated =
            DOCUMENT.replace("\"sock_bufsize\":\t0,", "\"sock_bufsize\":\t0,\n\"sock_bufsize\":\t0,");
        assert_eq!(one(&repeated), one(DOCUMENT));
    }

    #[test]
    fn documents_follow_each_other() {
        assert_eq!(parse(&DOCUMENT.repeat(3)).0.len(), 3);
    }

    #[test]
    fn a_cut_document_is_an_error_and_the_next_one_a_transfer() {
        let lines: Vec<&str> = DOCUMENT.lines().collect();
        for end in 1..lines.len() {
            let (found, errors) = parse(&format!("{}\n{DOCUMENT}", lines[..end].join("\n")));
            assert_eq!((found.len(), errors.len()), (1, 1), "{end}");
        }
    }

    #[test]
    fn a_test_that_broke_off_has_the_bytes_of_its_intervals() {
        let (begin, _) = DOCUMENT.split_once("\t\"end\":").unwrap();
        let transfer =
            one(&format!("{begin}\t\"end\":\t{{\n\t}},\n\t\"error\":\t\"the server has terminated\"\n}}\n"));
        assert_eq!((transfer.bytes, transfer.end_us - transfer.start_us), (200_000, 1_500_000));
        assert_eq!(transfer.error, "the server has terminated");
    }

    #[test]
    fn a_refused_connection_and_udp_are_no_transfers() {
        let refused = "{\n\t\"start\":\t{\n\t\t\"connected\":\t[]\n\t},\n\t\"intervals\":\t[],\n\t\"end\":\t{\n\t},\n\
            \t\"error\":\t\"unable to connect to server: Connection refused\"\n}\n";
        assert_eq!(parse(refused), (Vec::new(), Vec::new()));
        assert_eq!(parse(&DOCUMENT.replace("TCP", "UDP")), (Vec::new(), Vec::new()));
    }

    #[test]
    fn intervals_are_not_kept() {
        let mut parser = Iperf3::new(String::new());
        let (begin, _) = DOCUMENT.split_once("\t\"end\":").unwrap();
        let (_, interval) = begin.split_once("\"intervals\":\t[").unwrap();
        for line in begin.trim_end().trim_end_matches("],").lines() {
            parser.line(line, 0, &mut Vec::new()).unwrap();
        }
        let length = parser.document.as_ref().unwrap().text.len();
        for line in interval.trim_end().trim_end_matches("],").repeat(1_000).lines() {
            parser.line(&format!("\t\t{}", line.trim()), 0, &mut Vec::new()).unwrap();
        }
        assert_eq!(parser.document.as_ref().unwrap().text.len(), length);
    }

    #[test]
    fn text_outside_of_documents_is_refused() {
        let (found, errors) = parse("-----------\nServer listening on 5201\n");
        assert_eq!((found.len(), errors.len()), (0, 2));
    }
}
