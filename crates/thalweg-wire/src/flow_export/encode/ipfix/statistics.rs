//! Exporter statistics (RFC 7011 section 4): three options templates and their records.

use super::super::session::SAMPLING_TEMPLATE;
use super::super::template::Field;
use super::{OBSERVATION_DOMAIN_ID, ntp};
use crate::Timestamp;

/// The Metering Process Statistics options template (section 4.1).
pub(super) const SENT: u16 = SAMPLING_TEMPLATE + 1;

/// The Metering Process Reliability Statistics options template (section 4.2).
pub(super) const IGNORED: u16 = SAMPLING_TEMPLATE + 2;

/// The Exporting Process Reliability Statistics options template (section 4.3).
pub(super) const NOT_SENT: u16 = SAMPLING_TEMPLATE + 3;

/// `exportingProcessId`, the scope of the exporting process statistics.
const EXPORTING_PROCESS_ID: Field = Field::new(144, 4);

/// The id of the only exporting process.
const EXPORTING_PROCESS: u32 = 1;

/// The number, scope and fields of each template.
pub(super) const TEMPLATES: [(u16, Field, &[Field]); 3] = [
    // exportedMessageTotalCount, exportedFlowRecordTotalCount, exportedOctetTotalCount.
    (SENT, OBSERVATION_DOMAIN_ID, &[Field::new(41, 8), Field::new(42, 8), Field::new(40, 8)]),
    // ignoredPacketTotalCount, ignoredOctetTotalCount, flowStartMicroseconds, flowEndMicroseconds.
    (
        IGNORED,
        OBSERVATION_DOMAIN_ID,
        &[Field::new(164, 8), Field::new(165, 8), Field::new(154, 8), Field::new(155, 8)],
    ),
    // notSentFlowTotalCount, notSentPacketTotalCount, notSentOctetTotalCount, flowStartMicroseconds,
    // flowEndMicroseconds.
    (
        NOT_SENT,
        EXPORTING_PROCESS_ID,
        &[Field::new(166, 8), Field::new(167, 8), Field::new(168, 8), Field::new(154, 8), Field::new(155, 8)],
    ),
];

/// Counters of both processes since their start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Counters of the metering process.
    pub metering: Metering,
    /// Counters of the exporting process.
    pub exporting: Exporting,
}

/// Packets that were observed but not metered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metering {
    /// `ignoredPacketTotalCount`.
    pub ignored_packets: u64,
    /// `ignoredOctetTotalCount`.
    pub ignored_octets: u64,
    /// The start of the period with ignored packets.
    pub from: Timestamp,
    /// The end of the period with ignored packets.
    pub until: Timestamp,
}

/// Sent and unsent records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exporting {
    /// `exportedMessageTotalCount`, without this message.
    pub messages: u64,
    /// `exportedFlowRecordTotalCount`, without this message.
    pub flow_records: u64,
    /// `exportedOctetTotalCount`, without this message.
    pub octets: u64,
    /// `notSentFlowTotalCount`.
    pub not_sent_flow_records: u64,
    /// `notSentPacketTotalCount`: packets of those flows.
    pub not_sent_packets: u64,
    /// `notSentOctetTotalCount`: bytes of those flows.
    pub not_sent_octets: u64,
    /// The start of the period with unsent records.
    pub from: Timestamp,
    /// The end of the period with unsent records.
    pub until: Timestamp,
}

impl Metering {
    pub(super) fn record(&self, domain: u32) -> [u8; 36] {
        scoped(
            domain,
            [self.ignored_packets, self.ignored_octets, microseconds(self.from), microseconds(self.until)],
        )
    }
}

impl Exporting {
    pub(super) fn sent_record(&self, domain: u32) -> [u8; 28] {
        scoped(domain, [self.messages, self.flow_records, self.octets])
    }

    pub(super) fn not_sent_record(&self) -> [u8; 44] {
        let counts = [self.not_sent_flow_records, self.not_sent_packets, self.not_sent_octets];
        let [flow_records, packets, octets] = counts;
        let times = [microseconds(self.from), microseconds(self.until)];
        scoped(EXPORTING_PROCESS, [flow_records, packets, octets, times[0], times[1]])
    }
}

fn microseconds(time: Timestamp) -> u64 {
    ntp(time.0 / 1_000)
}

/// Encodes a scope of four bytes and values of eight bytes each.
fn scoped<const VALUES: usize, const LENGTH: usize>(scope: u32, values: [u64; VALUES]) -> [u8; LENGTH] {
    const { assert!(LENGTH == 4 + 8 * VALUES) };
    let mut bytes = [0; LENGTH];
    bytes[..4].copy_from_slice(&scope.to_be_bytes());
    for (place, value) in bytes[4..].chunks_exact_mut(8).zip(values) {
        place.copy_from_slice(&value.to_be_bytes());
    }
    bytes
}
