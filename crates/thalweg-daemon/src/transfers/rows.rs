//! Converts reported rows to those of the store.

use thalweg_api::{
    AgentReport, ConnectionSample, HostParameters, HostSample, MAX_REPORT_ROWS, MAX_REPORT_TEXT, ReportRows,
    Transfer, TransferDirection,
};
use thalweg_records::schema::connections::{ConnectionBatch, ConnectionRow};
use thalweg_records::schema::dataset::Text;
use thalweg_records::schema::host_metrics::{HostMetricBatch, HostMetricRow};
use thalweg_records::schema::hosts::{HostBatch, HostRow};
use thalweg_records::schema::transfers::{TransferBatch, TransferRow};
use thalweg_wire::flow_export::Address;

/// What all rows of a report have in common.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) received_us: i64,
    pub(super) reporter: Text,
    pub(super) queue: Text,
    pub(super) report: u64,
}

/// Returns the number of rows.
pub(super) fn count(rows: &ReportRows) -> usize {
    match rows {
        ReportRows::Transfers(rows) => rows.len(),
        ReportRows::Hosts(rows) => rows.len(),
        ReportRows::HostMetrics(rows) => rows.len(),
        ReportRows::Connections(rows) => rows.len(),
    }
}

/// Returns what is wrong with a report; `None` if nothing is.
pub(super) fn problem(report: &AgentReport) -> Option<String> {
    let AgentReport { queue, number, rows, .. } = report;
    if queue.is_empty() || queue.len() > 64 || *number == 0 {
        return Some("expected a queue of 1 to 64 bytes, and a number from 1".to_owned());
    }
    let count = count(rows);
    if !(1..=MAX_REPORT_ROWS).contains(&count) {
        return Some(format!("{count} rows: expected 1 to {MAX_REPORT_ROWS}"));
    }
    match rows {
        ReportRows::Transfers(rows) => first_problem(rows, |row| {
            let Transfer { transfer, application, user, file, congestion_control, error, .. } = row;
            let texts = [transfer, application, user, file, congestion_control, error];
            let is_reversed = row.end_us < row.start_us;
            too_long(texts).or_else(|| is_reversed.then(|| "the end is before the start".to_owned()))
        }),
        ReportRows::Hosts(rows) => first_problem(rows, |row| {
            let HostParameters {
                kernel,
                interface,
                congestion_control,
                data_directory,
                file_system,
                disk,
                ..
            } = row;
            too_long([kernel, interface, congestion_control, data_directory, file_system, disk])
                .or_else(|| (row.addresses.len() > 20).then(|| "more than 20 addresses".to_owned()))
        }),
        ReportRows::HostMetrics(rows) => {
            first_problem(rows, |HostSample { disk, interface, .. }| too_long([disk, interface]))
        }
        ReportRows::Connections(rows) => {
            first_problem(rows, |ConnectionSample { process, congestion_control, .. }| {
                too_long([process, congestion_control])
            })
        }
    }
}

fn first_problem<R>(rows: &[R], check: impl Fn(&R) -> Option<String>) -> Option<String> {
    let found = rows.iter().enumerate().find_map(|(number, row)| Some((number, check(row)?)));
    found.map(|(number, problem)| format!("row {number}: {problem}"))
}

fn too_long<const N: usize>(texts: [&String; N]) -> Option<String> {
    let found = texts.into_iter().find(|text| text.len() > MAX_REPORT_TEXT)?;
    Some(format!("text of {} bytes: expected at most {MAX_REPORT_TEXT}", found.len()))
}

const fn name(direction: TransferDirection) -> &'static str {
    match direction {
        TransferDirection::Send => "send",
        TransferDirection::Receive => "receive",
    }
}

pub(super) fn transfers(rows: Vec<Transfer>, origin: &Origin) -> TransferBatch {
    let mut batch = TransferBatch::default();
    for row in rows {
        let address = |ip: Option<std::net::IpAddr>| ip.map_or(Address::NONE, Address::from);
        batch.push(TransferRow {
            received_us: origin.received_us,
            reporter: Text::clone(&origin.reporter),
            transfer: row.transfer.into(),
            application: row.application.into(),
            direction: name(row.direction).into(),
            user: row.user.into(),
            file: row.file.into(),
            source_address: address(row.src),
            destination_address: address(row.dst),
            source_port: row.src_port,
            destination_port: row.dst_port,
            start_us: row.start_us,
            end_us: row.end_us,
            octets: row.bytes,
            streams: row.streams,
            send_buffer_bytes: row.send_buffer_bytes,
            receive_buffer_bytes: row.receive_buffer_bytes,
            congestion_control: row.congestion_control.into(),
            error: row.error.into(),
            queue: Text::clone(&origin.queue),
            report: origin.report,
        });
    }
    batch
}

pub(super) fn hosts(rows: Vec<HostParameters>, origin: &Origin) -> HostBatch {
    let mut batch = HostBatch::default();
    for row in rows {
        let addresses: Vec<String> = row.addresses.iter().map(ToString::to_string).collect();
        batch.push(HostRow {
            received_us: origin.received_us,
            reporter: Text::clone(&origin.reporter),
            time_us: row.time_us,
            addresses: addresses.join(",").into(),
            kernel: row.kernel.into(),
            cpus: row.cpus,
            memory_bytes: row.memory_bytes,
            interface: row.interface.into(),
            interface_rate_bps: row.interface_rate_bps,
            mtu_bytes: row.mtu_bytes,
            tcp_receive_buffer_max_bytes: row.tcp_receive_buffer_max_bytes,
            tcp_send_buffer_max_bytes: row.tcp_send_buffer_max_bytes,
            socket_receive_buffer_max_bytes: row.socket_receive_buffer_max_bytes,
            socket_send_buffer_max_bytes: row.socket_send_buffer_max_bytes,
            congestion_control: row.congestion_control.into(),
            data_directory: row.data_directory.into(),
            file_system: row.file_system.into(),
            disk: row.disk.into(),
            disk_read_bps: row.disk_read_bps,
            disk_write_bps: row.disk_write_bps,
            queue: Text::clone(&origin.queue),
            report: origin.report,
        });
    }
    batch
}

pub(super) fn host_metrics(rows: Vec<HostSample>, origin: &Origin) -> HostMetricBatch {
    let mut batch = HostMetricBatch::default();
    for row in rows {
        batch.push(HostMetricRow {
            received_us: origin.received_us,
            reporter: Text::clone(&origin.reporter),
            time_us: row.time_us,
            interval_us: row.interval_us,
            cpus: row.cpus,
            cpu_busy_us: row.cpu_busy_us,
            cpu_busiest_us: row.cpu_busiest_us,
            cpu_iowait_us: row.cpu_iowait_us,
            cpu_steal_us: row.cpu_steal_us,
            memory_available_bytes: row.memory_available_bytes,
            memory_dirty_bytes: row.memory_dirty_bytes,
            disk: row.disk.into(),
            disk_busy_us: row.disk_busy_us,
            disk_read_bytes: row.disk_read_bytes,
            disk_write_bytes: row.disk_write_bytes,
            interface: row.interface.into(),
            interface_in_bytes: row.interface_in_bytes,
            interface_out_bytes: row.interface_out_bytes,
            interface_in_drops: row.interface_in_drops,
            interface_out_drops: row.interface_out_drops,
            queue: Text::clone(&origin.queue),
            report: origin.report,
        });
    }
    batch
}

pub(super) fn connections(rows: Vec<ConnectionSample>, origin: &Origin) -> ConnectionBatch {
    let mut batch = ConnectionBatch::default();
    for row in rows {
        batch.push(ConnectionRow {
            received_us: origin.received_us,
            reporter: Text::clone(&origin.reporter),
            time_us: row.time_us,
            interval_us: row.interval_us,
            source_address: row.src.into(),
            destination_address: row.dst.into(),
            source_port: row.src_port,
            destination_port: row.dst_port,
            direction: name(row.direction).into(),
            pid: row.pid,
            process: row.process.into(),
            process_cpu_us: row.process_cpu_us,
            process_wait_us: row.process_wait_us,
            process_throttled_us: row.process_throttled_us,
            process_blocked_us: row.process_blocked_us,
            process_read_bytes: row.process_read_bytes,
            process_write_bytes: row.process_write_bytes,
            rtt_us: row.rtt_us,
            rtt_variation_us: row.rtt_variation_us,
            min_rtt_us: row.min_rtt_us,
            cwnd_segments: row.cwnd_segments,
            mss_bytes: row.mss_bytes,
            sent_bytes: row.sent_bytes,
            acked_bytes: row.acked_bytes,
            received_bytes: row.received_bytes,
            retransmitted_bytes: row.retransmitted_bytes,
            sent_segments: row.sent_segments,
            retransmitted_segments: row.retransmitted_segments,
            delivery_rate_bps: row.delivery_rate_bps,
            busy_us: row.busy_us,
            receive_window_limited_us: row.receive_window_limited_us,
            send_buffer_limited_us: row.send_buffer_limited_us,
            application_limited: row.application_limited.into(),
            send_queue_bytes: row.send_queue_bytes,
            receive_queue_bytes: row.receive_queue_bytes,
            send_buffer_bytes: row.send_buffer_bytes,
            receive_buffer_bytes: row.receive_buffer_bytes,
            congestion_control: row.congestion_control.into(),
            queue: Text::clone(&origin.queue),
            report: origin.report,
        });
    }
    batch
}
