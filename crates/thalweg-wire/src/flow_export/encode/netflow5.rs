//! NetFlow version 5, as Cisco documents it ("NetFlow Export Datagram Format"): a header of 24 bytes, up to 30 records of 48 bytes, IPv4 alone.
//!
//! The type and code of ICMP go as destination port, as routers do it.

use super::{
    Contents, Encoded, LEAST_MESSAGE_LENGTH, MESSAGE_LENGTH, Messages, Misfits, OptionsError,
    check_message_length, uptime_ms,
};
use crate::flow_export::{Address, Record, RecordBatch};
use crate::{Protocol, Timestamp};

/// Bytes of the header.
pub const HEADER_LENGTH: usize = 24;

/// Bytes of a record.
pub const RECORD_LENGTH: usize = 48;

/// Most records of a message.
pub const MAX_RECORDS: usize = 30;

/// Stands for an autonomous system whose number takes more than 16 bits (RFC 6793 section 9).
const AS_TRANS: u16 = 23_456;

/// The sampling mode in the header's upper two bits: one packet in every so many.
const PACKET_INTERVAL_MODE: u16 = 1 << 14;

/// The longest sampling interval that a header has room for.
const MAX_SAMPLING_INTERVAL: u16 = (1 << 14) - 1;

const _: () =
    assert!(HEADER_LENGTH + RECORD_LENGTH <= LEAST_MESSAGE_LENGTH as usize, "a record fits a message");

/// What an encoder is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Type of the flow switching engine.
    pub engine_type: u8,
    /// Its number.
    pub engine_id: u8,
    /// When the device started: the zero of up-time, rounded down to milliseconds.
    pub boot: Timestamp,
    /// Most bytes of a message, 1,024 or more.
    pub message_length: u16,
}

impl Options {
    /// Engine 0 of type 0, messages of [`MESSAGE_LENGTH`], for a device that started at `boot`.
    pub fn new(boot: Timestamp) -> Options {
        Options { engine_type: 0, engine_id: 0, boot, message_length: MESSAGE_LENGTH }
    }
}

/// Rows to messages, one engine.
#[derive(Clone, Debug)]
pub struct Encoder {
    engine: [u8; 2],
    boot_ms: i64,
    /// Most records of a message.
    capacity: u64,
    /// Flows sent so far.
    flow_sequence: u32,
    encoded: Encoded,
    misfits: Misfits,
}

impl Encoder {
    /// An encoder at the beginning of a session.
    ///
    /// # Errors
    /// If messages are to be shorter than the other formats could do with.
    pub fn new(options: Options) -> Result<Encoder, OptionsError> {
        let room = check_message_length(options.message_length)? - HEADER_LENGTH;
        Ok(Encoder {
            engine: [options.engine_type, options.engine_id],
            boot_ms: (options.boot.0 / 1_000_000) as i64,
            capacity: (room / RECORD_LENGTH).min(MAX_RECORDS) as u64,
            flow_sequence: 0,
            encoded: Encoded::default(),
            misfits: Misfits::default(),
        })
    }

    /// Puts all rows of IPv4 into messages, added to `into`; `now` is the time that their headers tell.
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
            let told = self.sampling(record.sampling_interval);
            if contents.flow_records > 0 && (contents.flow_records == self.capacity || told != sampling) {
                self.finish(start, contents, sampling, now_ms, into);
                (start, contents) = (into.bytes.len(), Contents::default());
            }
            if contents.flow_records == 0 {
                into.bytes.resize(start + HEADER_LENGTH, 0);
                sampling = told;
            }
            let bytes = self.record(&record, source, destination, now_ms);
            into.bytes.extend_from_slice(&bytes);
            contents.count(&record);
            contents.flow_records += 1;
        }
        if contents.flow_records > 0 {
            self.finish(start, contents, sampling, now_ms, into);
        }
    }

    /// What was encoded since the encoder was made.
    pub fn encoded(&self) -> Encoded {
        self.encoded
    }

    /// What did not fit since the encoder was made.
    pub fn misfits(&self) -> Misfits {
        self.misfits
    }

    /// Mode and interval of sampling as the header has them.
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
        // Only IPFIX has the flags beyond the byte (RFC 7125).
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

    /// An interface; zero, which tells nothing, for one whose number is too large.
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

    /// A value, or the most that there is room for.
    fn fit<V, T: TryFrom<V> + PartialOrd + Copy>(&mut self, value: V, most: T) -> T {
        match T::try_from(value) {
            Ok(value) if value <= most => value,
            _ => {
                self.misfits.values += 1;
                most
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
