//! The ground truth about planted transfers, as CSV and JSON.

use std::io::{self, Write};

use serde::Serialize;
use thalweg_wire::flow_export::Address;

use super::network::exporter;

/// The kind of a planted transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Several elephant flows that start together.
    Flowset,
    /// A single elephant flow.
    Single,
    /// A flow between the same hosts that is not an elephant.
    Ordinary,
    /// Elephant flows, each of which starts soon after the previous one; flowset rules disagree about these.
    Chain,
}

impl Kind {
    /// Returns the name in the truth.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Flowset => "flowset",
            Kind::Single => "single",
            Kind::Ordinary => "ordinary",
            Kind::Chain => "chain",
        }
    }
}

/// A planted flow with its true sizes and times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlantedFlow {
    /// Number of the transfer.
    pub transfer: u32,
    /// Kind of the transfer.
    pub kind: Kind,
    /// Source address.
    pub source_address: Address,
    /// Destination address.
    pub destination_address: Address,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// First packet, microseconds since 1970.
    pub flow_start_us: i64,
    /// Last packet, microseconds since 1970.
    pub flow_end_us: i64,
    /// Bytes of the IP layer, sampled or not.
    pub octets: u64,
    /// Packets, sampled or not.
    pub packets: u64,
    /// Autonomous system of the source.
    pub source_as: u32,
    /// Autonomous system of the destination.
    pub destination_as: u32,
    /// Numbers of the routers on its path.
    pub path: Vec<u8>,
    /// Number of records at all observation points.
    pub records: u64,
    /// Number of packets sampled at all observation points.
    pub sampled_packets: u64,
}

/// A planted transfer: all flows with the same transfer number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlantedTransfer {
    /// Its number; transfers are numbered from 0 in order.
    pub transfer: u32,
    /// Its kind.
    pub kind: Kind,
    /// Source address.
    pub source_address: Address,
    /// Destination address.
    pub destination_address: Address,
    /// Number of flows.
    pub flows: u32,
    /// First packet of all, microseconds since 1970.
    pub flow_start_us: i64,
    /// Last packet of all, microseconds since 1970.
    pub flow_end_us: i64,
    /// Bytes of the IP layer.
    pub octets: u64,
    /// Packets.
    pub packets: u64,
    /// Autonomous system of the source.
    pub source_as: u32,
    /// Autonomous system of the destination.
    pub destination_as: u32,
    /// Numbers of the routers on its path.
    pub path: Vec<u8>,
    /// Number of records of all flows at all observation points.
    pub records: u64,
    /// Number of packets of all flows sampled at all observation points.
    pub sampled_packets: u64,
}

/// The ground truth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// Planted flows in order of transfers, and of start within a transfer.
    pub flows: Vec<PlantedFlow>,
}

/// Header of the CSV of flows.
const FLOW_COLUMNS: &str = "transfer,kind,src,dst,src_port,dst_port,protocol,\
    flow_start_us,flow_end_us,bytes,packets,rate_bps,src_as,dst_as,path,records,sampled_packets";

/// Header of the CSV of transfers.
const TRANSFER_COLUMNS: &str = "transfer,kind,src,dst,flows,flow_start_us,flow_end_us,\
    duration_ns,bytes,packets,rate_bps,src_as,dst_as,path,records,sampled_packets";

impl Truth {
    /// Merges flows into transfers.
    pub fn transfers(&self) -> Vec<PlantedTransfer> {
        let transfers = self.flows.chunk_by(|one, next| one.transfer == next.transfer);
        transfers.map(merge).collect()
    }

    /// Writes a header and a row per flow. Times are microseconds since 1970; the path is a list of exporter addresses.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write_flows(&self, mut to: impl Write) -> io::Result<()> {
        writeln!(to, "{FLOW_COLUMNS}")?;
        for flow in &self.flows {
            let PlantedFlow { transfer, source_address, destination_address, source_port, .. } = flow;
            let PlantedFlow { destination_port, flow_start_us, flow_end_us, octets, packets, .. } = flow;
            let PlantedFlow { source_as, destination_as, records, sampled_packets, .. } = flow;
            writeln!(
                to,
                "{transfer},{},{source_address},{destination_address},{source_port},{destination_port},6,\
                 {flow_start_us},{flow_end_us},{octets},{packets},{},{source_as},{destination_as},{},{records},\
                 {sampled_packets}",
                flow.kind.name(),
                rate_bps(*octets, flow_end_us - flow_start_us),
                path_text(&flow.path),
            )?;
        }
        to.flush()
    }

    /// Writes a header and a row per transfer, in the format of [`write_flows`](Truth::write_flows).
    ///
    /// # Errors
    /// If writing fails.
    pub fn write_transfers(&self, mut to: impl Write) -> io::Result<()> {
        writeln!(to, "{TRANSFER_COLUMNS}")?;
        for row in self.transfers() {
            let PlantedTransfer { transfer, source_address, destination_address, flows, .. } = &row;
            let PlantedTransfer { flow_start_us, flow_end_us, octets, packets, source_as, .. } = &row;
            let PlantedTransfer { destination_as, records, sampled_packets, .. } = &row;
            let duration_us = flow_end_us - flow_start_us;
            writeln!(
                to,
                "{transfer},{},{source_address},{destination_address},{flows},{flow_start_us},{flow_end_us},\
                 {},{octets},{packets},{},{source_as},{destination_as},{},{records},{sampled_packets}",
                row.kind.name(),
                1_000 * duration_us,
                rate_bps(*octets, duration_us),
                path_text(&row.path),
            )?;
        }
        to.flush()
    }

    /// Writes one JSON object: `{"transfers": [...]}`, each with the keys and sizes of its flows.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write_json(&self, mut to: impl Write) -> io::Result<()> {
        let transfers = self.flows.chunk_by(|one, next| one.transfer == next.transfer);
        let transfers: Vec<serde_json::Value> = transfers.map(in_json).collect();
        serde_json::to_writer(&mut to, &serde_json::json!({ "transfers": transfers }))?;
        writeln!(to)?;
        to.flush()
    }
}

fn in_json(flows: &[PlantedFlow]) -> serde_json::Value {
    let of = merge(flows);
    let duration_us = of.flow_end_us - of.flow_start_us;
    let rows = flows.iter().map(|flow| {
        serde_json::json!({
            "src_port": flow.source_port,
            "dst_port": flow.destination_port,
            "flow_start_us": flow.flow_start_us,
            "flow_end_us": flow.flow_end_us,
            "bytes": flow.octets,
            "packets": flow.packets,
            "records": flow.records,
            "sampled_packets": flow.sampled_packets,
        })
    });
    serde_json::json!({
        "transfer": of.transfer,
        "kind": of.kind,
        "src": of.source_address.to_string(),
        "dst": of.destination_address.to_string(),
        "flow_start_us": of.flow_start_us,
        "flow_end_us": of.flow_end_us,
        "duration_ns": 1_000 * duration_us,
        "bytes": of.octets,
        "packets": of.packets,
        "rate_bps": rate_bps(of.octets, duration_us),
        "src_as": of.source_as,
        "dst_as": of.destination_as,
        "path": of.path.iter().map(|&router| exporter(router).to_string()).collect::<Vec<_>>(),
        "flows": rows.collect::<Vec<_>>(),
    })
}

/// Merges the flows of one transfer.
///
/// # Panics
/// If `flows` is empty.
fn merge(flows: &[PlantedFlow]) -> PlantedTransfer {
    let first = &flows[0];
    let mut transfer = PlantedTransfer {
        transfer: first.transfer,
        kind: first.kind,
        source_address: first.source_address,
        destination_address: first.destination_address,
        flows: flows.len() as u32,
        flow_start_us: first.flow_start_us,
        flow_end_us: first.flow_end_us,
        octets: 0,
        packets: 0,
        source_as: first.source_as,
        destination_as: first.destination_as,
        path: first.path.clone(),
        records: 0,
        sampled_packets: 0,
    };
    for flow in flows {
        transfer.flow_start_us = transfer.flow_start_us.min(flow.flow_start_us);
        transfer.flow_end_us = transfer.flow_end_us.max(flow.flow_end_us);
        transfer.octets += flow.octets;
        transfer.packets += flow.packets;
        transfer.records += flow.records;
        transfer.sampled_packets += flow.sampled_packets;
    }
    transfer
}

/// Returns whole bits per second; 0 without a duration.
fn rate_bps(octets: u64, duration_us: i64) -> u64 {
    match u128::try_from(duration_us) {
        Ok(duration_us @ 1..) => (u128::from(octets) * 8_000_000 / duration_us) as u64,
        _ => 0,
    }
}

/// Joins exporter addresses with spaces.
fn path_text(path: &[u8]) -> String {
    let addresses: Vec<String> = path.iter().map(|&router| exporter(router).to_string()).collect();
    addresses.join(" ")
}
