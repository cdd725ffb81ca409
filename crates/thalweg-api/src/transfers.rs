//! Reports of agents on transfer hosts, and what the daemon knows about them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::UtcTime;

/// Maximum number of rows of a report.
pub const MAX_REPORT_ROWS: usize = 10_000;

/// Whether a text can be the name of a token, and so that of a host: 1 to 64 letters, digits and `-_.@`.
pub fn is_token_name(text: &str) -> bool {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.@".contains(letter);
    (1..=64).contains(&text.len()) && text.chars().all(is_allowed)
}

/// Maximum length of a text in a report, in bytes.
pub const MAX_REPORT_TEXT: usize = 1_024;

/// Rows of one dataset that an agent reports. An agent sends its reports in the order of their numbers, one at a time, and each again until it
/// is acknowledged.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentReport {
    /// Name of the host. If the request has a token, the name of the token.
    pub host: String,
    /// Identifier of the agent's queue, drawn when it was created.
    pub queue: String,
    /// Number of the report in that queue, from 1.
    pub number: u64,
    /// Time at which the report was sent, by the host's clock, in microseconds since 1970.
    pub sent_us: i64,
    /// The rows.
    pub rows: ReportRows,
}

/// The rows of a report, at most 10,000.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReportRows {
    /// Entries of transfer logs.
    Transfers(Vec<Transfer>),
    /// Parameters of the host.
    Hosts(Vec<HostParameters>),
    /// Load of the host.
    HostMetrics(Vec<HostSample>),
    /// TCP connections.
    Connections(Vec<ConnectionSample>),
}

/// The daemon's answer to a report.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct ReportAnswer {
    /// Number of the latest report of this queue that is on the daemon's disk.
    pub acknowledged: u64,
    /// Whether the report had been stored before.
    pub duplicate: bool,
}

/// What a host did in a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TransferDirection {
    /// It sent the data.
    #[default]
    Send,
    /// It received the data.
    Receive,
}

/// A transfer, as a log describes it. Times are in microseconds since 1970 by the host's clock; 0, null and empty texts mean unknown.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Identifier: a digest of host, log and position.
    pub transfer: String,
    /// Program.
    pub application: String,
    /// What the host did.
    pub direction: TransferDirection,
    /// User.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// File.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// Host that sent the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub src: Option<IpAddr>,
    /// Host that received the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst: Option<IpAddr>,
    /// Port of the sender.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub src_port: u16,
    /// Port of the receiver.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dst_port: u16,
    /// Start.
    pub start_us: i64,
    /// End.
    pub end_us: i64,
    /// Payload.
    pub bytes: u64,
    /// Parallel TCP connections.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub streams: u16,
    /// TCP send buffer in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub send_buffer_bytes: u64,
    /// TCP receive buffer in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub receive_buffer_bytes: u64,
    /// Congestion control.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub congestion_control: String,
    /// Why the transfer failed; empty if it succeeded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// Parameters of a host. 0 and empty texts mean unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostParameters {
    /// Time of the observation in microseconds since 1970.
    pub time_us: i64,
    /// IP addresses of the host, without those of the loopback interface.
    pub addresses: Vec<IpAddr>,
    /// Version of the kernel.
    pub kernel: String,
    /// Processors.
    pub cpus: u16,
    /// Memory.
    pub memory_bytes: u64,
    /// Interface of the default route, or the configured one.
    pub interface: String,
    /// Rate of the interface in bits per second.
    pub interface_rate_bps: u64,
    /// MTU of the interface.
    pub mtu_bytes: u32,
    /// Largest automatic receive buffer.
    pub tcp_receive_buffer_max_bytes: u64,
    /// Largest automatic send buffer.
    pub tcp_send_buffer_max_bytes: u64,
    /// Largest receive buffer that a program may request.
    pub socket_receive_buffer_max_bytes: u64,
    /// Largest send buffer that a program may request.
    pub socket_send_buffer_max_bytes: u64,
    /// Default congestion control.
    pub congestion_control: String,
    /// Directory of the data, as configured.
    pub data_directory: String,
    /// Type of its file system.
    pub file_system: String,
    /// Its block device.
    pub disk: String,
    /// Read rate of the disk in bits per second, as configured.
    pub disk_read_bps: u64,
    /// Write rate of the disk in bits per second, as configured.
    pub disk_write_bps: u64,
}

/// The load of a host during an interval. Counts are of the interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostSample {
    /// End of the interval in microseconds since 1970.
    pub time_us: i64,
    /// Length of the interval.
    pub interval_us: u32,
    /// Processors.
    pub cpus: u16,
    /// Time of all processors together that they were busy.
    pub cpu_busy_us: u64,
    /// Time that the busiest processor was busy.
    pub cpu_busiest_us: u64,
    /// Time of all processors together that they were idle and waited for a disk.
    pub cpu_iowait_us: u64,
    /// Time of all processors together that the hypervisor took.
    pub cpu_steal_us: u64,
    /// Memory that programs can get.
    pub memory_available_bytes: u64,
    /// Written data that is not on the disk yet.
    pub memory_dirty_bytes: u64,
    /// The disk of the configured directory, otherwise the busiest one.
    pub disk: String,
    /// Time that the disk had requests.
    pub disk_busy_us: u64,
    /// Read from the disk.
    pub disk_read_bytes: u64,
    /// Written to the disk.
    pub disk_write_bytes: u64,
    /// The interface.
    pub interface: String,
    /// Received.
    pub interface_in_bytes: u64,
    /// Sent.
    pub interface_out_bytes: u64,
    /// Packets dropped on reception.
    pub interface_in_drops: u64,
    /// Packets dropped before they were sent.
    pub interface_out_drops: u64,
}

/// A TCP connection during an interval. Counts are of the interval.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectionSample {
    /// End of the interval in microseconds since 1970.
    pub time_us: i64,
    /// Length of the interval.
    pub interval_us: u32,
    /// The side that sends the data.
    pub src: IpAddr,
    /// The side that receives the data.
    pub dst: IpAddr,
    /// Port of the sender.
    pub src_port: u16,
    /// Port of the receiver.
    pub dst_port: u16,
    /// What the host does.
    pub direction: TransferDirection,
    /// Process; 0 if unknown.
    pub pid: u32,
    /// Name of the process; empty if unknown.
    pub process: String,
    /// Time that the threads of the process used a processor.
    pub process_cpu_us: u64,
    /// Time that its threads were runnable and waited for a processor.
    pub process_wait_us: u64,
    /// Time that its control group had used up its quota of processor time.
    pub process_throttled_us: u64,
    /// Time in uninterruptible sleep, as of a disk: a sampled estimate.
    pub process_blocked_us: u64,
    /// Read from a disk by the process.
    pub process_read_bytes: u64,
    /// Written by the process, for a disk.
    pub process_write_bytes: u64,
    /// Smoothed round-trip time.
    pub rtt_us: u32,
    /// Mean deviation of the round-trip time.
    pub rtt_variation_us: u32,
    /// Minimum round-trip time so far.
    pub min_rtt_us: u32,
    /// Congestion window in segments.
    pub cwnd_segments: u32,
    /// Maximum segment size.
    pub mss_bytes: u32,
    /// Payload sent, retransmissions included.
    pub sent_bytes: u64,
    /// Payload that the peer acknowledged.
    pub acked_bytes: u64,
    /// Payload that arrived in order.
    pub received_bytes: u64,
    /// Payload retransmitted.
    pub retransmitted_bytes: u64,
    /// Segments sent with payload.
    pub sent_segments: u32,
    /// Segments retransmitted.
    pub retransmitted_segments: u32,
    /// Latest sample of the delivery rate in bits per second.
    pub delivery_rate_bps: u64,
    /// Time with data to send.
    pub busy_us: u64,
    /// Time limited by the receive window of the peer.
    pub receive_window_limited_us: u64,
    /// Time limited by the send buffer.
    pub send_buffer_limited_us: u64,
    /// Whether the latest sample of the delivery rate was limited by the application.
    pub application_limited: bool,
    /// Written by the application, not acknowledged yet.
    pub send_queue_bytes: u64,
    /// Arrived, not read by the application yet.
    pub receive_queue_bytes: u64,
    /// Size of the send buffer.
    pub send_buffer_bytes: u64,
    /// Size of the receive buffer.
    pub receive_buffer_bytes: u64,
    /// Congestion control.
    pub congestion_control: String,
}

/// The hosts that report transfers.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct TransferHosts {
    /// All hosts that have reported, by name.
    pub hosts: Vec<TransferHost>,
}

/// A host that reports transfers.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct TransferHost {
    /// Its name.
    pub host: String,
    /// Time of its latest report, by the daemon's clock.
    pub received: UtcTime,
    /// Identifier of the agent's queue.
    pub queue: String,
    /// Number of its latest report.
    pub number: u64,
    /// Time of the daemon's clock minus that of the host's at the latest report, transit included, in microseconds; null before the first
    /// report since the daemon started.
    pub clock_difference_us: Option<i64>,
    /// Counts since the daemon started.
    pub counts: TransferHostCounts,
}

/// Counts of a host's reports since the daemon started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct TransferHostCounts {
    /// Reports stored.
    pub reports: u64,
    /// Rows stored.
    pub rows: u64,
    /// Reports that had been stored before.
    pub duplicates: u64,
    /// Reports whose numbers were skipped: the agent had dropped them because its queue was full.
    pub missing: u64,
    /// Reports refused: invalid, or beyond the limit of rows.
    pub refused: u64,
}

/// The PRCA reports (Performance and Root Cause Analysis) that analyses have written.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct TransferReports {
    /// Time of the latest analysis.
    pub made: UtcTime,
    /// Whether that is longer ago than the daemon's configuration wants (`transfers.report_age`).
    #[serde(default)]
    pub outdated: bool,
    /// Users and hosts with slow transfers that got no report, because there were too many.
    pub left_out: u64,
    /// The reports, by period.
    pub reports: Vec<TransferReportFile>,
}

/// A PRCA report.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct TransferReportFile {
    /// What the report is about.
    pub subject: ReportSubject,
    /// Name of the user, as reported, or of the host; empty if the report is about all transfers.
    pub name: String,
    /// Start of the period, inclusive.
    pub start: UtcTime,
    /// End of the period, exclusive.
    pub end: UtcTime,
    /// Time of the analysis.
    pub made: UtcTime,
    /// Transfers in the report.
    pub transfers: u64,
    /// Of these, slow ones.
    pub slow: u64,
    /// Slow transfers by cause.
    pub causes: BTreeMap<String, u64>,
    /// The report as a page: `transfers/PERIOD/NAME`. `/v1/transfers/reports/PERIOD/NAME` returns it.
    pub html: String,
    /// The report as JSON, likewise.
    pub json: String,
}

/// What a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReportSubject {
    /// All transfers.
    All,
    /// The transfers of a user.
    User,
    /// The transfers of a host.
    Host,
}

/// Subscriptions to reports.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct TransferSubscriptions {
    /// The subscriptions, by subject and name.
    pub subscriptions: Vec<TransferSubscription>,
}

/// A subscription to the reports about a user or a host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct TransferSubscription {
    /// What the reports are about.
    pub subject: ReportSubject,
    /// Name of the user, as reported, or of the host; empty for all transfers.
    pub name: String,
    /// Where to send them.
    #[serde(flatten)]
    pub delivery: Delivery,
    /// Time of the latest delivery; null before the first.
    #[serde(default)]
    pub delivered: Option<UtcTime>,
    /// Time of the analysis whose report was delivered; null before the first.
    #[serde(default)]
    pub made: Option<UtcTime>,
    /// Why the latest attempt failed; empty if it did not.
    #[serde(default)]
    pub failure: String,
}

/// Where to send reports. At least one of both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Delivery {
    /// URL that gets each report as a POST of JSON; null for none.
    #[serde(default)]
    pub webhook: Option<String>,
    /// E-mail address; null for none.
    #[serde(default)]
    pub email: Option<String>,
}

/// Text that is not what a report is about.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("unknown subject: expected all, user or host")]
pub struct ParseReportSubjectError;

impl FromStr for ReportSubject {
    type Err = ParseReportSubjectError;

    fn from_str(text: &str) -> Result<ReportSubject, ParseReportSubjectError> {
        match text {
            "all" => Ok(ReportSubject::All),
            "user" => Ok(ReportSubject::User),
            "host" => Ok(ReportSubject::Host),
            _ => Err(ParseReportSubjectError),
        }
    }
}

fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_its_dataset_and_omits_what_is_unknown() {
        let transfer = Transfer {
            transfer: "t1".to_owned(),
            application: "rsync".to_owned(),
            direction: TransferDirection::Receive,
            user: String::new(),
            file: String::new(),
            src: None,
            dst: Some("192.0.2.1".parse().unwrap()),
            src_port: 0,
            dst_port: 0,
            start_us: 1,
            end_us: 2,
            bytes: 3,
            streams: 1,
            send_buffer_bytes: 0,
            receive_buffer_bytes: 0,
            congestion_control: String::new(),
            error: String::new(),
        };
        let report = AgentReport {
            host: "dtn1".to_owned(),
            queue: "q".to_owned(),
            number: 1,
            sent_us: 4,
            rows: ReportRows::Transfers(vec![transfer]),
        };
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(
            text,
            r#"{"host":"dtn1","queue":"q","number":1,"sent_us":4,"rows":{"transfers":[{"transfer":"t1","application":"rsync","direction":"receive","dst":"192.0.2.1","start_us":1,"end_us":2,"bytes":3,"streams":1}]}}"#
        );
        assert_eq!(serde_json::from_str::<AgentReport>(&text).unwrap(), report);
        let unknown = text.replace("\"streams\"", "\"stream\"");
        assert!(serde_json::from_str::<AgentReport>(&unknown).is_err());
    }
}
