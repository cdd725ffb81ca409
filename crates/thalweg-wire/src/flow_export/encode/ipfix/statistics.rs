//! What an exporter tells of itself (RFC 7011 section 4): three options templates and their records.

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

/// `exportingProcessId`, the scope of what was not sent.
const EXPORTING_PROCESS_ID: Field = Field::new(144, 4);

/// Our exporting process is one, and has this number.
const THE_EXPORTING_PROCESS: u32 = 1;

/// Number, scope and fields of each template.
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

/// What both processes have counted since they started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// What was metered.
    pub metering: Metering,
    /// What became of it.
    pub exporting: Exporting,
}

/// Packets that were seen and are in no flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metering {
    /// `ignoredPacketTotalCount`.
    pub ignored_packets: u64,
    /// `ignoredOctetTotalCount`.
    pub ignored_octets: u64,
    /// No packet was ignored before.
    pub from: Timestamp,
    /// No packet was ignored after.
    pub until: Timestamp,
}

/// What was sent, and what was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exporting {
    /// `exportedMessageTotalCount`, this message left out.
    pub messages: u64,
    /// `exportedFlowRecordTotalCount`, this message left out.
    pub flow_records: u64,
    /// `exportedOctetTotalCount`, this message left out.
    pub octets: u64,
    /// `notSentFlowTotalCount`.
    pub not_sent_flow_records: u64,
    /// `notSentPacketTotalCount`: packets of those flows.
    pub not_sent_packets: u64,
    /// `notSentOctetTotalCount`: bytes of those flows.
    pub not_sent_octets: u64,
    /// No record was lost before.
    pub from: Timestamp,
    /// No record was lost after.
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
        scoped(THE_EXPORTING_PROCESS, [flow_records, packets, octets, times[0], times[1]])
    }
}

fn microseconds(time: Timestamp) -> u64 {
    ntp(time.0 / 1_000)
}

/// A scope of four bytes and values of eight.
fn scoped<const VALUES: usize, const LENGTH: usize>(scope: u32, values: [u64; VALUES]) -> [u8; LENGTH] {
    const { assert!(LENGTH == 4 + 8 * VALUES) };
    let mut bytes = [0; LENGTH];
    bytes[..4].copy_from_slice(&scope.to_be_bytes());
    for (place, value) in bytes[4..].chunks_exact_mut(8).zip(values) {
        place.copy_from_slice(&value.to_be_bytes());
    }
    bytes
}
