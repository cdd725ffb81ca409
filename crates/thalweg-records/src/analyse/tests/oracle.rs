//! A naive analysis: sorts, walks, and compares everything with everything.

use std::collections::BTreeMap;

use thalweg_wire::flow_export::{Address, Record};

use crate::analyse::flow::Flow;
use crate::analyse::flowset::Flowset;
use crate::analyse::{Options, Rule};

type Key = (Address, Address, u16, u16, u8);

/// Returns a record with ordered times and scaled counts.
fn scaled(record: &Record) -> Record {
    let interval = u64::from(record.sampling_interval.max(1));
    Record {
        flow_start_us: record.flow_start_us.min(record.flow_end_us),
        flow_end_us: record.flow_start_us.max(record.flow_end_us),
        octets: record.octets * interval,
        packets: record.packets * interval,
        sampling_interval: interval as u32,
        ..*record
    }
}

/// Returns all flows, ordered by key and start.
pub(super) fn flows(records: &[Record], options: &Options) -> Vec<Flow> {
    let mut keys: BTreeMap<Key, Vec<Record>> = BTreeMap::new();
    for record in records.iter().map(scaled) {
        let key = (
            record.source_address,
            record.destination_address,
            record.source_port,
            record.destination_port,
            record.protocol,
        );
        keys.entry(key).or_default().push(record);
    }
    let mut flows = Vec::new();
    for mut records in keys.into_values() {
        records.sort_by_key(|record| (record.flow_start_us, record.flow_end_us));
        let mut members: Vec<Record> = Vec::new();
        for record in records {
            let latest = members.iter().map(|member| member.flow_end_us).max();
            if latest.is_some_and(|latest| record.flow_start_us - latest > options.gap_us) {
                flows.push(flow(&std::mem::take(&mut members), options));
            }
            members.push(record);
        }
        flows.push(flow(&members, options));
    }
    flows
}

fn flow(members: &[Record], options: &Options) -> Flow {
    let mut points: BTreeMap<(String, u32, u8), Vec<Record>> = BTreeMap::new();
    for member in members {
        let point = (member.exporter.to_string(), member.observation_domain_id, member.flow_direction);
        points.entry(point).or_default().push(*member);
    }
    let start = |records: &[Record]| records.iter().map(|record| record.flow_start_us).min().unwrap();
    let end = |records: &[Record]| records.iter().map(|record| record.flow_end_us).max().unwrap();
    let interval = |records: &[Record]| records.iter().map(|record| record.sampling_interval).min().unwrap();
    let (_, chosen) =
        points.iter().min_by_key(|(point, seen)| (start(seen) - end(seen), interval(seen), *point)).unwrap();
    let first = members[0];
    Flow {
        source_address: first.source_address,
        destination_address: first.destination_address,
        source_port: first.source_port,
        destination_port: first.destination_port,
        protocol: first.protocol,
        flow_start_us: start(members),
        flow_end_us: end(members),
        octets: chosen.iter().map(|record| record.octets as i64).sum(),
        packets: chosen.iter().map(|record| record.packets as i64).sum(),
        records: members.len() as i64,
        observation_points: points.len() as i64,
        sampling_interval: interval(chosen),
        source_as: chosen.iter().map(|record| record.source_as).max().unwrap(),
        destination_as: chosen.iter().map(|record| record.destination_as).max().unwrap(),
        tcp_flags: chosen.iter().fold(0, |flags, record| flags | record.tcp_flags),
        elephant: elephant(chosen, options),
    }
}

/// Tests every window that starts at a record's start or ends at a record's end.
fn elephant(records: &[Record], options: &Options) -> bool {
    let window = options.window_us;
    let starts = records.iter().flat_map(|record| [record.flow_start_us, record.flow_end_us - window]);
    starts.into_iter().any(|start| {
        let octets = records.iter().map(|record| {
            let (from, to) = (record.flow_start_us.max(start), record.flow_end_us.min(start + window));
            let length = record.flow_end_us - record.flow_start_us;
            match to - from {
                overlap if overlap < 0 => 0,
                overlap if overlap == length => record.octets as i64,
                overlap => (record.octets as f64 * overlap as f64 / length as f64).floor() as i64,
            }
        });
        octets.sum::<i64>() > options.threshold_bytes
    })
}

/// Returns all flowsets, ordered by pair of hosts and start.
pub(super) fn flowsets(flows: &[Flow], options: &Options) -> Vec<Flowset> {
    let mut pairs: BTreeMap<(Address, Address), Vec<Flow>> = BTreeMap::new();
    for flow in flows.iter().filter(|flow| flow.elephant || !options.elephants_only) {
        pairs.entry((flow.source_address, flow.destination_address)).or_default().push(*flow);
    }
    let mut sets = Vec::new();
    for mut flows in pairs.into_values() {
        flows
            .sort_by_key(|f| (f.flow_start_us, f.flow_end_us, f.source_port, f.destination_port, f.protocol));
        let mut left = &flows[..];
        while let [first, ..] = left {
            let count = match options.rule {
                Rule::Span => {
                    left.iter().filter(|f| f.flow_start_us - first.flow_start_us <= options.tau_us).count()
                }
                Rule::Chain => {
                    1 + left
                        .windows(2)
                        .take_while(|pair| pair[1].flow_start_us - pair[0].flow_start_us <= options.tau_us)
                        .count()
                }
            };
            let (members, rest) = left.split_at(count);
            left = rest;
            sets.push(Flowset {
                source_address: first.source_address,
                destination_address: first.destination_address,
                flow_start_us: first.flow_start_us,
                flow_end_us: members.iter().map(|flow| flow.flow_end_us).max().unwrap(),
                flows: count as i64,
                octets: members.iter().map(|flow| flow.octets).sum(),
                packets: members.iter().map(|flow| flow.packets).sum(),
                source_as: members.iter().map(|flow| flow.source_as).max().unwrap(),
                destination_as: members.iter().map(|flow| flow.destination_as).max().unwrap(),
            });
        }
    }
    sets
}
