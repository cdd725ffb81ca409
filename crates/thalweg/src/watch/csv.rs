//! CSV (RFC 4180, with `\n` line ends): a header, then a line per row. Documented in `docs/reference/watch-csv.md`.

use std::io::{self, Write};

use thalweg_api::UtcTime;
use thalweg_measure::meter::record::FlowRecord;
use thalweg_watch::groups::Grouping;

use super::groups::GroupLine;

/// Columns of flows.
const FLOW_COLUMNS: [&str; 16] = [
    "src",
    "dst",
    "src_port",
    "dst_port",
    "protocol",
    "flow_start",
    "flow_end",
    "packets",
    "bytes",
    "reverse_packets",
    "reverse_bytes",
    "tcp_flags",
    "reverse_tcp_flags",
    "cheetah",
    "reverse_cheetah",
    "end_reason",
];

/// Columns of hosts; pairs have a peer and its name after the host and its name.
const HOST_COLUMNS: [&str; 13] = [
    "host",
    "host_name",
    "flows",
    "sent_packets",
    "sent_bytes",
    "received_packets",
    "received_bytes",
    "start",
    "end",
    "sent_rate_bps",
    "received_rate_bps",
    "sent_cheetah",
    "received_cheetah",
];

/// Writes rows of one kind, after their header.
pub(super) struct CsvWriter<W: Write> {
    writer: csv::Writer<W>,
    grouping: Grouping,
}

impl<W: Write> CsvWriter<W> {
    /// Writes the header.
    pub(super) fn new(out: W, grouping: Grouping) -> io::Result<CsvWriter<W>> {
        let mut writer = csv::Writer::from_writer(out);
        match grouping {
            Grouping::Flow => writer.write_record(FLOW_COLUMNS)?,
            Grouping::Host => writer.write_record(HOST_COLUMNS)?,
            Grouping::Pair => {
                let (host, rest) = HOST_COLUMNS.split_at(2);
                writer.write_record(host.iter().chain(&["peer", "peer_name"]).chain(rest))?;
            }
        }
        Ok(CsvWriter { writer, grouping })
    }

    /// Writes a flow record.
    pub(super) fn flow(&mut self, record: &FlowRecord) -> io::Result<()> {
        let (key, forward, reverse) = (&record.key, &record.forward, &record.reverse);
        self.writer.write_record([
            key.src().to_string(),
            key.dst().to_string(),
            key.src_port.to_string(),
            key.dst_port.to_string(),
            key.protocol.0.to_string(),
            UtcTime(record.first).to_string(),
            UtcTime(record.last).to_string(),
            forward.packets.to_string(),
            forward.bytes.0.to_string(),
            reverse.packets.to_string(),
            reverse.bytes.0.to_string(),
            forward.tcp_flags.0.to_string(),
            reverse.tcp_flags.0.to_string(),
            forward.cheetah.to_string(),
            reverse.cheetah.to_string(),
            record.end_reason.name().to_owned(),
        ])?;
        Ok(())
    }

    /// Writes a host or pair.
    pub(super) fn group(&mut self, line: &GroupLine<'_>) -> io::Result<()> {
        let name = |name: Option<&str>| name.unwrap_or_default().to_owned();
        let mut fields = vec![line.host.to_string(), name(line.host_name)];
        if self.grouping == Grouping::Pair {
            fields
                .extend([line.peer.map_or_else(String::new, |peer| peer.to_string()), name(line.peer_name)]);
        }
        let numbers =
            [line.flows, line.sent_packets, line.sent_bytes, line.received_packets, line.received_bytes];
        fields.extend(numbers.map(|number| number.to_string()));
        fields.extend([line.start.to_string(), line.end.to_string()]);
        fields.extend([line.sent_rate_bps, line.received_rate_bps].map(|rate| rate.to_string()));
        fields.extend([line.sent_cheetah, line.received_cheetah].map(|cheetah| cheetah.to_string()));
        self.writer.write_record(fields)?;
        Ok(())
    }

    /// Writes what is buffered.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}
