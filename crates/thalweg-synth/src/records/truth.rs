//! The truth about what was planted: as CSV, a row each, and as JSON.

use std::io::{self, Write};

use serde::Serialize;
use thalweg_wire::flow_export::Address;

use super::network::exporter;

/// What a planted transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Several cheetah flows that begin together.
    Flowset,
    /// A cheetah flow by itself.
    Single,
    /// A flow between the same hosts as others, which is no cheetah.
    Ordinary,
    /// Cheetah flows, each of which begins soon after the one before; rules for flowsets differ on these.
    Chain,
}

impl Kind {
    /// Name in the truth.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Flowset => "flowset",
            Kind::Single => "single",
            Kind::Ordinary => "ordinary",
            Kind::Chain => "chain",
        }
    }
}

/// A planted flow as it really was, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlantedFlow {
    /// Number of its transfer.
    pub transfer: u32,
    /// What that is.
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
    /// Numbers of the routers that it passes.
    pub path: Vec<u8>,
    /// Records of all observation points.
    pub records: u64,
    /// Packets sampled by all observation points.
    pub sampled_packets: u64,
}

/// A planted transfer: all flows of one number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlantedTransfer {
    /// Its number; transfers are in order of it, from 0.
    pub transfer: u32,
    /// What it is.
    pub kind: Kind,
    /// Source address.
    pub source_address: Address,
    /// Destination address.
    pub destination_address: Address,
    /// Flows.
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
    /// Numbers of the routers that it passes.
    pub path: Vec<u8>,
    /// Records of all flows and observation points.
    pub records: u64,
    /// Packets sampled of all flows by all observation points.
    pub sampled_packets: u64,
}

/// All that was planted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// In order of transfers, those of one in order of their starts.
    pub flows: Vec<PlantedFlow>,
}

/// Header of the CSV of flows.
const FLOW_COLUMNS: &str = "transfer,kind,src,dst,src_port,dst_port,protocol,\
    flow_start_us,flow_end_us,bytes,packets,rate_bps,src_as,dst_as,path,records,sampled_packets";

/// Header of the CSV of transfers.
const TRANSFER_COLUMNS: &str = "transfer,kind,src,dst,flows,flow_start_us,flow_end_us,\
    duration_us,bytes,packets,rate_bps,src_as,dst_as,path,records,sampled_packets";

impl Truth {
    /// Flows put together by transfer.
    pub fn transfers(&self) -> Vec<PlantedTransfer> {
        let transfers = self.flows.chunk_by(|one, next| one.transfer == next.transfer);
        transfers.map(together).collect()
    }

    /// Writes a header and a row for each flow. Times are microseconds since 1970, the path exporters' addresses.
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
                in_words(&flow.path),
            )?;
        }
        to.flush()
    }

    /// Writes a header and a row for each transfer, as [`write_flows`](Truth::write_flows) does.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write_transfers(&self, mut to: impl Write) -> io::Result<()> {
        writeln!(to, "{TRANSFER_COLUMNS}")?;
        for of in self.transfers() {
            let PlantedTransfer { transfer, source_address, destination_address, flows, .. } = &of;
            let PlantedTransfer { flow_start_us, flow_end_us, octets, packets, source_as, .. } = &of;
            let PlantedTransfer { destination_as, records, sampled_packets, .. } = &of;
            let duration_us = flow_end_us - flow_start_us;
            writeln!(
                to,
                "{transfer},{},{source_address},{destination_address},{flows},{flow_start_us},{flow_end_us},\
                 {duration_us},{octets},{packets},{},{source_as},{destination_as},{},{records},{sampled_packets}",
                of.kind.name(),
                rate_bps(*octets, duration_us),
                in_words(&of.path),
            )?;
        }
        to.flush()
    }

    /// Writes one JSON object: `{"transfers": [...]}`, each with its flows' keys and sizes.
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
    let of = together(flows);
    let duration_us = of.flow_end_us - of.flow_start_us;
    let components = flows.iter().map(|flow| {
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
        "duration_us": duration_us,
        "bytes": of.octets,
        "packets": of.packets,
        "rate_bps": rate_bps(of.octets, duration_us),
        "src_as": of.source_as,
        "dst_as": of.destination_as,
        "path": of.path.iter().map(|&router| exporter(router).to_string()).collect::<Vec<_>>(),
        "flows": components.collect::<Vec<_>>(),
    })
}

/// # Panics
/// If there is no flow.
fn together(flows: &[PlantedFlow]) -> PlantedTransfer {
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

/// Whole bits in a second; 0 where there is no duration.
fn rate_bps(octets: u64, duration_us: i64) -> u64 {
    match u128::try_from(duration_us) {
        Ok(duration_us @ 1..) => (u128::from(octets) * 8_000_000 / duration_us) as u64,
        _ => 0,
    }
}

/// Exporters' addresses with a space between.
fn in_words(path: &[u8]) -> String {
    let addresses: Vec<String> = path.iter().map(|&router| exporter(router).to_string()).collect();
    addresses.join(" ")
}
