//! Figure 3.4: the share of packets and of flows that the length filter `L` drops, and what remains.

use std::collections::HashMap;
use std::path::Path;

use thalweg_plot::boxes::Boxes;
use thalweg_plot::figure::{self, ALONE, Legend};
use thalweg_plot::page::Heading;
use thalweg_synth::trace::SynthOptions;
use thalweg_wire::{FlowKey, Packet};

use super::Outcome;
use crate::results::{Page, Table, grouped, save};
use crate::row;
use crate::statistics::FiveNumbers;
use crate::traces::{normal, stream};

/// `L`, in bytes of the IP layer.
const LENGTH_THRESHOLDS: [u32; 3] = [600, 700, 800];

/// The most that remains of the packets and of the flows of any of the source's 366 traces with L = 800 B, in percent
/// (section 3.3.3, "left behind"; section 3.7 says of the flows "would remain").
const MAX_REMAINING: [(&str, f64); 2] = [("packets", 68.9), ("flows", 26.6)];

/// Algorithms 1 and 2 with only the length filter, for all `L` at once: a packet that is shorter than `L` is dropped
/// unless its flow has an entry; any other packet creates or finds one. No entry is evicted or deleted.
#[derive(Debug, Default)]
struct LengthFilter {
    /// For each one-way flow, whether it has an entry with each `L`.
    entries: HashMap<FlowKey, [bool; LENGTH_THRESHOLDS.len()]>,
    packets: u64,
    dropped: [u64; LENGTH_THRESHOLDS.len()],
}

impl LengthFilter {
    fn handle(&mut self, packet: &Packet) {
        self.packets += 1;
        let entries = self.entries.entry(packet.key).or_default();
        for ((entry, dropped), threshold) in entries.iter_mut().zip(&mut self.dropped).zip(LENGTH_THRESHOLDS)
        {
            *entry |= packet.ip_length >= threshold;
            *dropped += u64::from(!*entry);
        }
    }

    /// Returns the percentage of packets dropped.
    fn packets_dropped(&self) -> [f64; LENGTH_THRESHOLDS.len()] {
        self.dropped.map(|dropped| 100.0 * dropped as f64 / self.packets.max(1) as f64)
    }

    /// Returns the percentage of flows that never had an entry.
    fn flows_dropped(&self) -> [f64; LENGTH_THRESHOLDS.len()] {
        let flows = self.entries.len().max(1) as f64;
        std::array::from_fn(|number| {
            let without = self.entries.values().filter(|entries| !entries[number]).count();
            100.0 * without as f64 / flows
        })
    }
}

/// Runs the filter over one trace per seed.
pub(super) fn run(packets: u64, seeds: u64, command: &str, plot: &Path) -> anyhow::Result<Outcome> {
    let mut table = Table::new(["seed", "L_bytes", "packets_dropped_percent", "flows_dropped_percent"]);
    let (mut of_packets, mut of_flows) = (vec![Vec::new(); 3], vec![Vec::new(); 3]);
    for seed in 1..=seeds.max(1) {
        let mut filter = LengthFilter::default();
        let options = SynthOptions { seed, ..normal(packets) };
        stream(&options, |packets| packets.iter().for_each(|packet| filter.handle(packet)))?;
        let dropped = filter.packets_dropped().into_iter().zip(filter.flows_dropped());
        for (number, (packets, flows)) in dropped.enumerate() {
            of_packets[number].push(packets);
            of_flows[number].push(flows);
            row!(table, seed, LENGTH_THRESHOLDS[number], format!("{packets:.3}"), format!("{flows:.3}"));
        }
    }
    let mut shown =
        Table::new(["L", "packets dropped, median (min to max)", "flows dropped, median (min to max)"]);
    let mut sample = Vec::new();
    let range =
        |numbers: FiveNumbers| format!("{:.1} % ({:.1} to {:.1})", numbers.median, numbers.min, numbers.max);
    for (unit, all) in [("packets", &of_packets), ("flows", &of_flows)] {
        for (percentages, threshold) in all.iter().zip(LENGTH_THRESHOLDS) {
            sample.push((format!("{unit}, {threshold} B"), FiveNumbers::of(percentages)));
        }
    }
    for (number, threshold) in LENGTH_THRESHOLDS.into_iter().enumerate() {
        let ranges = [&of_packets, &of_flows].map(|all| range(FiveNumbers::of(&all[number])));
        row!(shown, format!("{threshold} B"), ranges[0], ranges[1]);
    }
    let title = format!("Dropped by the length filter, {} packets, {} seeds", grouped(packets), seeds.max(1));
    let boxes = Boxes {
        title: "dropped (percent)".to_owned(),
        x_title: "unit and length threshold L (bytes)".to_owned(),
        boxes: sample.into_iter().map(|(name, numbers)| (name, numbers.in_order())).collect(),
    };
    save(plot, &figure::draw(&Heading::new(title, ""), &Legend::default(), ALONE, &[boxes])?)?;
    let mut page = Page::new("What the length filter drops", command);
    page.paragraph(format_args!("{} traces of {} packets.", seeds.max(1), grouped(packets)));
    page.table(&shown);
    let mut remaining = Table::new(["remaining with L = 800 B", "here, max", "source, max", "claim"]);
    for ((unit, source), dropped) in MAX_REMAINING.into_iter().zip([&of_packets[2], &of_flows[2]]) {
        let here = max_remaining(dropped);
        let verdict = if here <= source { "holds" } else { "does not hold" };
        row!(remaining, unit, format!("{here:.1} %"), format!("{source:.1} %"), verdict);
    }
    page.section("Against the source").table(&remaining);
    Ok(Outcome { page, table })
}

/// Returns the largest percentage that remained in any trace, from the percentages dropped.
fn max_remaining(dropped: &[f64]) -> f64 {
    100.0 - dropped.iter().copied().fold(100.0, f64::min)
}

#[cfg(test)]
mod tests {
    use thalweg_wire::{Fragment, PacketNotes, Protocol, TcpFlags, Timestamp};

    use super::*;

    #[test]
    fn packets_before_the_first_long_one_are_dropped() {
        let mut filter = LengthFilter::default();
        let packet = |port, ip_length| Packet {
            time: Timestamp(0),
            key: FlowKey::v4(1, 2, port, 443, Protocol::TCP),
            ip_length,
            payload_length: 0,
            identification: 0,
            tcp_sequence: 0,
            ethernet: Default::default(),
            tcp_flags: TcpFlags::ACK,
            fragment: Fragment::Whole,
            notes: PacketNotes::default(),
        };
        for (port, ip_length) in [(1, 40), (1, 650), (1, 40), (2, 40)] {
            filter.handle(&packet(port, ip_length));
        }
        assert_eq!(filter.packets_dropped(), [50.0, 100.0, 100.0]);
        assert_eq!(filter.flows_dropped(), [50.0, 100.0, 100.0]);
    }

    #[test]
    fn worst_trace_is_the_one_that_drops_least() {
        assert_eq!(max_remaining(&[92.5, 80.0, 99.0]), 20.0);
        assert_eq!(max_remaining(&[]), 0.0);
    }
}
