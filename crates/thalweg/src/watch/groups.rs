//! Hosts and pairs of hosts in the results: a list in the report, lines of JSON.

use std::io::{self, Write};

use serde::Serialize;
use thalweg_api::UtcTime;
use thalweg_watch::groups::{Group, GroupRow, GroupTotals, Grouping};
use thalweg_watch::traffic::Traffic;
use thalweg_wire::{BitRate, Nanos};

use super::result_names::ResultNames;
use crate::figures::grouped;

/// A host, or a pair of hosts, with all of its traffic. `sent` is from `host`, `received` to it.
#[derive(Debug, Serialize)]
pub(super) struct GroupLine<'a> {
    pub(super) host: std::net::IpAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) host_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) peer: Option<std::net::IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) peer_name: Option<&'a str>,
    pub(super) flows: u64,
    pub(super) sent_packets: u64,
    pub(super) sent_bytes: u64,
    pub(super) received_packets: u64,
    pub(super) received_bytes: u64,
    pub(super) start: UtcTime,
    pub(super) end: UtcTime,
    pub(super) sent_rate_bps: u64,
    pub(super) received_rate_bps: u64,
    pub(super) sent_cheetah: bool,
    pub(super) received_cheetah: bool,
}

impl<'a> GroupLine<'a> {
    pub(super) fn new(row: &GroupRow, names: &'a ResultNames) -> GroupLine<'a> {
        let Traffic { first, last, packets, bytes, rate, flows, .. } = row.traffic;
        let (host, peer) = match row.group {
            Group::Host(host) => (host, None),
            Group::Pair(low, high) => (low, Some(high)),
        };
        GroupLine {
            host,
            host_name: names.of(host),
            peer,
            peer_name: peer.and_then(|peer| names.of(peer)),
            flows,
            sent_packets: packets[0],
            sent_bytes: bytes[0],
            received_packets: packets[1],
            received_bytes: bytes[1],
            start: first.into(),
            end: last.into(),
            sent_rate_bps: rate[0].0,
            received_rate_bps: rate[1].0,
            sent_cheetah: row.cheetah[0],
            received_cheetah: row.cheetah[1],
        }
    }
}

/// Counts of the hosts or pairs in the summary line.
#[derive(Debug, Serialize)]
pub(super) struct GroupsSummary {
    rows: u64,
    dropped_rows: u64,
    dropped_bytes: u64,
}

impl GroupsSummary {
    pub(super) fn new(groups: &GroupTotals, rows: &[GroupRow]) -> GroupsSummary {
        let (dropped_rows, dropped) = groups.dropped();
        GroupsSummary { rows: rows.len() as u64, dropped_rows, dropped_bytes: dropped.0 }
    }
}

/// Writes the first `limit` rows.
pub(super) fn report(
    out: &mut impl Write,
    grouping: Grouping,
    rows: &[GroupRow],
    names: &ResultNames,
    limit: usize,
) -> io::Result<()> {
    let title = match grouping {
        Grouping::Flow => return Ok(()),
        Grouping::Host => "host",
        Grouping::Pair => "pair (bytes are sent and received by the first host)",
    };
    writeln!(out, "Largest {}", grouping.plural())?;
    writeln!(
        out,
        "  {:>12} {:>12} {:>8} {:>10} {:>12}  {title}",
        "bytes sent", "received", "flows", "duration", "mean rate"
    )?;
    for row in rows.iter().take(limit) {
        let [sent, received] = row.traffic.bytes.map(|bytes| thalweg_wire::Bytes(bytes).to_string());
        let (duration, rate) = match row.traffic.duration() {
            Nanos::ZERO => ("-".to_owned(), "-".to_owned()),
            span => (span.to_string(), BitRate::of(row.traffic.total_bytes(), span).to_string()),
        };
        let flows = grouped(row.traffic.flows);
        let ends: Vec<String> = row.group.addresses().map(|address| names.with_address(address)).collect();
        let cheetah = if row.cheetah == [false; 2] { "" } else { "  cheetah" };
        let ends = ends.join(" - ");
        writeln!(out, "  {sent:>12} {received:>12} {flows:>8} {duration:>10} {rate:>12}  {ends}{cheetah}")?;
    }
    let more = rows.len().saturating_sub(limit) as u64;
    if more > 0 {
        writeln!(
            out,
            "  and {} more (--limit {} shows more, --json shows all)",
            grouped(more),
            (limit * 10).max(10)
        )?;
    }
    writeln!(out)
}
