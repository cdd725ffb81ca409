//! Collects with nfcapd, prints with nfdump.

use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use thalweg_records::import::sources::Sources;
use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::encode::Messages;
use thalweg_wire::flow_export::{Record, RecordBatch};
use thalweg_wire::nfcapd::{BlockHeader, Decoder, FileHeader};

/// Deadline of waits that usually end within milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// Times (`%ter` of nfdump 1.7.1 omits a digit), 5-tuple, type of service, packets and bytes in both directions, AS numbers, interfaces.
const COLUMNS: &str = "fmt:%ts|%te|%sa|%da|%sp|%dp|%pr|%tos|%pkt|%byt|%opkt|%obyt|%sas|%das|%in|%out";

/// A running nfcapd.
pub(crate) struct Nfcapd {
    process: Child,
    folder: TempDir,
    port: u16,
}

impl Nfcapd {
    pub(crate) fn start() -> Nfcapd {
        let folder = tempfile::tempdir().unwrap();
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new("nfcapd")
            .args(["-b", "127.0.0.1", "-B", "8000000", "-p", &port.to_string(), "-w"])
            .arg(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let nfcapd = Nfcapd { process, folder, port };
        nfcapd.wait_for("bind its port", |waiting| waiting.is_some());
        nfcapd
    }

    /// Receives messages, and ends nfcapd. Its files are in the folder that this returns.
    pub(crate) fn receive<'a>(&mut self, messages: impl IntoIterator<Item = &'a [u8]>) -> &Path {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for message in messages {
            socket.send_to(message, ("127.0.0.1", self.port)).unwrap();
        }
        self.wait_for("read its socket", |waiting| waiting == Some(0));
        std::thread::sleep(Duration::from_millis(200));
        let asked = Command::new("kill").arg(self.process.id().to_string()).status().unwrap();
        assert!(asked.success());
        self.process.wait().unwrap();
        self.folder.path()
    }

    /// Returns the sorted output of nfdump for these messages.
    pub(crate) fn collect(mut self, messages: &Messages) -> Vec<String> {
        self.receive(messages.iter());
        let output = Command::new("nfdump")
            .args(["-q", "-N", "-6", "-o", COLUMNS, "-R"])
            .arg(self.folder.path())
            .env("TZ", "UTC")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let mut lines: Vec<String> = text.lines().map(|line| line.replace(' ', "")).collect();
        lines.sort();
        let (ours, theirs) = (decoded(self.folder.path()), without_output(&lines));
        let first = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
        assert!(ours.len() == theirs.len() && first.is_none(), "our decoder of its files: {first:?}");
        lines
    }

    /// Waits until the number of bytes in its socket's queue, if it has one, satisfies a condition.
    fn wait_for(&self, what: &str, is_so: impl Fn(Option<u64>) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self.queued()) {
            assert!(Instant::now() < deadline, "nfcapd did not {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns the number of bytes in its socket's receive queue; `None` before it has a socket.
    fn queued(&self) -> Option<u64> {
        let sockets = std::fs::read_to_string("/proc/net/udp").unwrap();
        let local = format!("0100007F:{:04X}", self.port);
        let line = sockets.lines().find(|line| line.split_whitespace().nth(1) == Some(&local))?;
        let (_, received) = line.split_whitespace().nth(4)?.split_once(':')?;
        u64::from_str_radix(received, 16).ok()
    }
}

impl Drop for Nfcapd {
    fn drop(&mut self) {
        // Both fail if the process has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the flows of nfcapd's files as our decoder reads them, in the form of nfdump's lines.
fn decoded(folder: &Path) -> Vec<String> {
    let batch = imported(folder);
    let rows: Vec<Record> = (0..batch.len()).map(|row| batch.record(row)).collect();
    assert!(rows.iter().all(|row| row.received_us > 0), "times of reception");
    expected(&rows)
}

/// Returns the flows of nfcapd's files as our decoder reads them.
pub(crate) fn imported(folder: &Path) -> RecordBatch {
    let (mut decoder, mut batch) = (Decoder::default(), RecordBatch::default());
    for path in Sources::find(&[folder.to_owned()]).unwrap().files {
        let bytes = std::fs::read(path).unwrap();
        let header = FileHeader::read(&bytes).unwrap();
        let mut at = FileHeader::BYTES;
        for _ in 0..header.blocks {
            let block = BlockHeader::read(&bytes[at..], at).unwrap();
            let begin = at + BlockHeader::BYTES;
            at = begin + block.bytes as usize;
            decoder.block(&bytes[begin..at], &mut batch).unwrap();
        }
    }
    batch
}

/// nfdump's lines without the counters of the output, which have no column.
fn without_output(lines: &[String]) -> Vec<String> {
    let without = |line: &String| {
        let mut fields: Vec<&str> = line.split('|').collect();
        (fields[10], fields[11]) = ("0", "0");
        fields.join("|")
    };
    let mut lines: Vec<String> = lines.iter().map(without).collect();
    lines.sort();
    lines
}

/// Returns the expected output of nfdump, sorted; a bidirectional flow is one line.
pub(crate) fn expected(rows: &[Record]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (number, row) in rows.iter().enumerate().filter(|(_, row)| row.biflow_direction != 2) {
        let back = rows.get(number + 1).filter(|_| row.biflow_direction == 1);
        let (start, end) = (day_and_time(row.flow_start_us), day_and_time(row.flow_end_us));
        let Record { source_address: from, destination_address: to, source_port, destination_port, .. } = row;
        let Record { protocol, class_of_service, packets, octets, source_as, destination_as, .. } = row;
        let Record { ingress_interface, egress_interface, .. } = row;
        let (back_packets, back_octets) = back.map_or((0, 0), |back| (back.packets, back.octets));
        lines.push(format!(
            "{start}|{end}|{from}|{to}|{source_port}|{destination_port}|{protocol}|{class_of_service}|\
             {packets}|{octets}|{back_packets}|{back_octets}|{source_as}|{destination_as}|\
             {ingress_interface}|{egress_interface}"
        ));
    }
    lines.sort();
    lines
}

/// Formats a time as nfdump does, without the space.
fn day_and_time(time_us: i64) -> String {
    let time = Timestamp(1_000 * time_us as u64).to_string();
    time[.."2026-11-22T13:00:00.000".len()].replace('T', "")
}
