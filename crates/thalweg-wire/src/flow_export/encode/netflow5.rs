//! NetFlow version 5 (Cisco, "NetFlow Export Datagram Format"): a header of 24 bytes, up to 30 records of 48 bytes,
//! IPv4 only.
//!
//! ICMP type and code are sent as destination port, as routers do.

use super::{
    Contents, DEFAULT_MESSAGE_LENGTH, Encoded, MIN_MESSAGE_LENGTH, Messages, Misfits, OptionsError,
    check_message_length, uptime_ms,
};
use crate::flow_export::{Address, Record, RecordBatch};
use crate::{Protocol, Timestamp};

/// The length of the header in bytes.
pub const HEADER_LENGTH: usize = 24;

/// The length of a record in bytes.
pub const RECORD_LENGTH: usize = 48;

/// The maximum number of records in a message.
pub const MAX_RECORDS: usize = 30;

/// Replaces AS numbers of more than 16 bits (RFC 6793 section 9).
const AS_TRANS: u16 = 23_456;

/// The sampling mode in the upper two bits: deterministic 1-in-N.
const PACKET_INTERVAL_MODE: u16 = 1 << 14;

/// The maximum sampling interval in a header.
const MAX_SAMPLING_INTERVAL: u16 = (1 << 14) - 1;

const _: () =
    assert!(HEADER_LENGTH + RECORD_LENGTH <= MIN_MESSAGE_LENGTH as usize, "a record fits a message");

/// Options of an encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The type of the flow switching engine.
    pub engine_type: u8,
    /// The number of the flow switching engine.
    pub engine_id: u8,
    /// The start time of the device, the origin of its uptime; rounded down to milliseconds.
    pub boot: Timestamp,
    /// The maximum length of a message in bytes, at least 1,024.
    pub message_length: u16,
}

impl Options {
    /// Engine 0 of type 0 and [`DEFAULT_MESSAGE_LENGTH`], for a device that started at `boot`.
    pub fn new(boot: Timestamp) -> Options {
        Options { engine_type: 0, engine_id: 0, boot, message_length: DEFAULT_MESSAGE_LENGTH }
    }
}

/// An encoder of one engine.
#[derive(Clone, Debug)]
pub struct Encoder {
    engine: [u8; 2],
    boot_ms: i64,
    /// The maximum number of records in a message.
    capacity: u64,
    /// The number of flows sent so far.
    flow_sequence: u32,
    encoded: Encoded,
    misfits: Misfits,
}

impl Encoder {
    /// Creates an encoder for a new session.
    ///
    /// # Errors
    /// If the message length is below [`MIN_MESSAGE_LENGTH`].
    pub fn new(options: Options) -> Result<Encoder, OptionsError> {
        let available = check_message_length(options.message_length)? - HEADER_LENGTH;
        Ok(Encoder {
            engine: [options.engine_type, options.engine_id],
            boot_ms: (options.boot.0 / 1_000_000) as i64,
            capacity: (available / RECORD_LENGTH).min(MAX_RECORDS) as u64,
            flow_sequence: 0,
            encoded: Encoded::default(),
            misfits: Misfits::default(),
        })
    }

    /// Encodes all IPv4 rows and appends the messages to `into`; `now` is the export time in their headers.
    pub fn encode(&mut self, rows: &RecordBatch, now: Timestamp, into: &mut Messages) {
        let now_ms = (now.0 / 1_000_000) as i64;
        let mut start = into.bytes.len();
        let (mut contents, mut sampling) = (Contents::default(), 0);
        for row in 0..rows.len() {
            let record = rows.record(row);
            let (Some(source), Some(destination)) =
                (record.source_address.as_v4(), record.destination_address.as_v4())
            else {
                self.misfits.rows += 1;
                continue;
            };
            let row_sampling = self.sampling(record.sampling_interval);
            if contents.flow_records > 0
                && (contents.flow_records == self.capacity || row_sampling != sampling)
            {
                self.finish(start, contents, sampling, now_ms, into);
                (start, contents) = (into.bytes.len(), Contents::default());
            }
            if contents.flow_records == 0 {
                into.bytes.resize(start + HEADER_LENGTH, 0);
                sampling = row_sampling;
            }
            self.misfits.values +=
                u64::from(record.has_inner_packet()) + u64::from(record.has_sparse_values());
            let bytes = self.record(&record, source, destination, now_ms);
            into.bytes.extend_from_slice(&bytes);
            contents.count(&record);
            contents.flow_records += 1;
        }
        if contents.flow_records > 0 {
            self.finish(start, contents, sampling, now_ms, into);
        }
    }

    /// The counters since the encoder was created.
    pub fn encoded(&self) -> Encoded {
        self.encoded
    }

    /// The misfits since the encoder was created.
    pub fn misfits(&self) -> Misfits {
        self.misfits
    }

    /// Returns the sampling mode and interval for the header.
    fn sampling(&mut self, interval: u32) -> u16 {
        match interval {
            0 => 0,
            _ => PACKET_INTERVAL_MODE | self.fit(interval, MAX_SAMPLING_INTERVAL),
        }
    }

    /// Writes the header of a message.
    fn finish(&mut self, start: usize, contents: Contents, sampling: u16, now_ms: i64, into: &mut Messages) {
        let header = &mut into.bytes[start..start + HEADER_LENGTH];
        header[0..2].copy_from_slice(&5u16.to_be_bytes());
        header[2..4].copy_from_slice(&(contents.flow_records as u16).to_be_bytes());
        header[4..8].copy_from_slice(&(now_ms.wrapping_sub(self.boot_ms) as u32).to_be_bytes());
        header[8..12].copy_from_slice(&((now_ms / 1_000) as u32).to_be_bytes());
        header[12..16].copy_from_slice(&((now_ms % 1_000) as u32 * 1_000_000).to_be_bytes());
        header[16..20].copy_from_slice(&self.flow_sequence.to_be_bytes());
        header[20..22].copy_from_slice(&self.engine);
        header[22..24].copy_from_slice(&sampling.to_be_bytes());
        into.end(contents);
        self.flow_sequence = self.flow_sequence.wrapping_add(contents.flow_records as u32);
        self.encoded.messages += 1;
        self.encoded.octets += (into.bytes.len() - start) as u64;
        self.encoded.flow_records += contents.flow_records;
    }

    #[inline]
    fn record(&mut self, record: &Record, source: u32, destination: u32, now_ms: i64) -> [u8; RECORD_LENGTH] {
        let mut bytes = [0; RECORD_LENGTH];
        bytes[0..4].copy_from_slice(&source.to_be_bytes());
        bytes[4..8].copy_from_slice(&destination.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.next_hop(record.next_hop).to_be_bytes());
        bytes[12..14].copy_from_slice(&self.interface(record.ingress_interface).to_be_bytes());
        bytes[14..16].copy_from_slice(&self.interface(record.egress_interface).to_be_bytes());
        bytes[16..20].copy_from_slice(&self.fit(record.packets, u32::MAX).to_be_bytes());
        bytes[20..24].copy_from_slice(&self.fit(record.octets, u32::MAX).to_be_bytes());
        bytes[24..28].copy_from_slice(&self.uptime(record.flow_start_us, now_ms).to_be_bytes());
        bytes[28..32].copy_from_slice(&self.uptime(record.flow_end_us, now_ms).to_be_bytes());
        bytes[32..34].copy_from_slice(&record.source_port.to_be_bytes());
        bytes[34..36].copy_from_slice(&destination_port(record).to_be_bytes());
        // Only IPFIX has more than 8 flags (RFC 7125).
        bytes[37] = record.tcp_flags as u8;
        bytes[38] = record.protocol;
        bytes[39] = record.class_of_service;
        bytes[40..42].copy_from_slice(&autonomous_system(record.source_as).to_be_bytes());
        bytes[42..44].copy_from_slice(&autonomous_system(record.destination_as).to_be_bytes());
        bytes[44] = record.source_prefix_length;
        bytes[45] = record.destination_prefix_length;
        bytes
    }

    fn next_hop(&mut self, address: Address) -> u32 {
        let number = address.as_v4();
        self.misfits.values += u64::from(number.is_none() && address.is_some());
        number.unwrap_or(0)
    }

    /// Returns an interface number; zero (unknown) if it is too large.
    fn interface(&mut self, number: u32) -> u16 {
        u16::try_from(number).unwrap_or_else(|_| {
            self.misfits.values += 1;
            0
        })
    }

    fn uptime(&mut self, time_us: i64, now_ms: i64) -> u32 {
        let (uptime, fits) = uptime_ms(time_us, self.boot_ms, now_ms);
        self.misfits.values += u64::from(!fits);
        uptime
    }

    /// Returns a value, limited to the maximum of its field.
    fn fit<V, T: TryFrom<V> + PartialOrd + Copy>(&mut self, value: V, max: T) -> T {
        match T::try_from(value) {
            Ok(value) if value <= max => value,
            _ => {
                self.misfits.values += 1;
                max
            }
        }
    }
}

fn destination_port(record: &Record) -> u16 {
    match Protocol(record.protocol) {
        Protocol::ICMP => record.icmp_type_code,
        _ => record.destination_port,
    }
}

fn autonomous_system(number: u32) -> u16 {
    u16::try_from(number).unwrap_or(AS_TRANS)
}
