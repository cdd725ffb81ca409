//! Growth of cost with packets and with live flows.
//!
//! Packets are generated in memory, each of a live flow chosen uniformly: the worst order for caches, because real
//! traffic concentrates on a few flows. The cost of generating them is measured separately and subtracted.

use std::path::PathBuf;

use thalweg_measure::meter::flow_table::{FlowTableOptions, Output};
use thalweg_wire::{FlowKey, Fragment, Nanos, Packet, PacketNotes, Protocol, TcpFlags, Timestamp};

use crate::clock::nanos_of;
use crate::results::{Page, Table, grouped, save_page, save_rows};
use crate::row;
use crate::stages::{clear, flow_table};
use crate::statistics::median;
use crate::traces::BATCH_FRAMES;

/// Time between two packets: 633,333 per second, as in the normal trace.
const SPACING: Nanos = Nanos(1_579);

/// Options of the benchmark.
#[derive(Clone, Debug, clap::Args)]
pub struct ScalingOptions {
    /// Numbers of packets
    #[arg(long, value_delimiter = ',', default_value = "1000000,10000000,38000000")]
    pub packets: Vec<u64>,
    /// Numbers of live flows
    #[arg(long, value_delimiter = ',', default_value = "10000,30000,100000,300000,1000000,1500000")]
    pub flows: Vec<u32>,
    /// Runs of each combination
    #[arg(long, default_value_t = 3)]
    pub runs: usize,
    /// Output folder
    #[arg(long, default_value = "bench/results")]
    pub output: PathBuf,
}

/// An endless stream of packets of a fixed number of flows.
#[derive(Clone, Debug)]
struct FlowStream {
    flows: u32,
    state: u64,
    time: Timestamp,
}

impl FlowStream {
    fn new(flows: u32) -> FlowStream {
        FlowStream { flows, state: 1, time: Timestamp::new(1_000_000_000, 0) }
    }

    /// Returns the next packet, of flow `number`.
    fn packet(&mut self, number: u32) -> Packet {
        self.time = self.time + SPACING;
        // Multiplying by an odd number spreads neighbours and keeps addresses unique.
        let address = number.wrapping_mul(0x9E37_79B1);
        Packet {
            time: self.time,
            key: FlowKey::v4(address, 0x0A00_0001, 50_000, 443, Protocol::TCP),
            ip_length: 640,
            payload_length: 600,
            identification: 0,
            tcp_sequence: 0,
            ethernet: Default::default(),
            tcp_flags: TcpFlags::ACK,
            fragment: Fragment::Whole,
            notes: PacketNotes::default(),
        }
    }

    /// Returns the next packet, of a random flow: xorshift64 (Marsaglia 2003), reduced by multiplication.
    fn any(&mut self) -> Packet {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let number = ((self.state >> 32) * u64::from(self.flows)) >> 32;
        self.packet(number as u32)
    }

    /// Calls `each` with `packets` packets of random flows, in batches.
    fn run(&mut self, packets: u64, mut each: impl FnMut(&[Packet])) {
        let mut batch = Vec::with_capacity(BATCH_FRAMES);
        let mut left = packets as usize;
        while left > 0 {
            batch.clear();
            batch.extend((0..left.min(BATCH_FRAMES)).map(|_| self.any()));
            left -= batch.len();
            each(&batch);
        }
    }
}

/// Returns the CPU time in nanoseconds of the table and its detector for `packets` packets of `flows` live flows.
fn measure(packets: u64, flows: u32) -> f64 {
    let idle_timeout = Nanos::from_secs(3600);
    let capacity = FlowTableOptions::default().capacity.max(flows.next_power_of_two());
    let options = FlowTableOptions { capacity, idle_timeout, ..FlowTableOptions::default() };
    let mut table = flow_table(options, true);
    let mut output = Output::default();
    let mut stream = FlowStream::new(flows);
    for number in 0..flows {
        let packet = stream.packet(number);
        table.update(&[packet], &mut output);
    }
    let mut alone = stream.clone();
    let making = nanos_of(|| {
        alone.run(packets, |batch| {
            std::hint::black_box(batch);
        })
    });
    let together = nanos_of(|| {
        stream.run(packets, |batch| {
            table.update(batch, &mut output);
            clear(&mut output);
        });
    });
    assert_eq!(table.counters().flows, u64::from(flows), "every flow stays alive");
    (together - making).max(0.0)
}

/// Runs the benchmark and writes its results.
///
/// # Errors
/// If the results cannot be written.
pub fn run(options: &ScalingOptions) -> anyhow::Result<()> {
    let mut rows = Table::new(["packets", "live_flows", "run", "seconds", "ns_per_packet"]);
    let mut summary = Table::new(["packets", "live flows", "seconds", "ns per packet"]);
    for &flows in &options.flows {
        for &packets in &options.packets {
            eprintln!("{} packets, {} flows", grouped(packets), grouped(flows.into()));
            let times: Vec<f64> = (0..options.runs).map(|_| measure(packets, flows)).collect();
            let per_packet = |nanos: f64| format!("{:.2}", nanos / packets as f64);
            for (run, nanos) in times.iter().enumerate() {
                row!(rows, packets, flows, run + 1, format!("{:.4}", nanos / 1e9), per_packet(*nanos));
            }
            let nanos = median(&times);
            let seconds = format!("{:.3}", nanos / 1e9);
            row!(summary, grouped(packets), grouped(flows.into()), seconds, per_packet(nanos));
        }
    }
    let mut page = Page::new(
        "Cost by packets and live flows",
        &format!("thalweg-bench scaling --runs {}", options.runs),
    );
    page.paragraph(
                "Flow table with the default detector, packets generated in memory, each of a live flow chosen uniformly; \
                 CPU time of one thread without generating the packets, medians over the runs. Cost is linear in packets \
                 where the last column is constant; it grows with live flows because of cache misses.",
    );
    page.table(&summary);
    save_page(&options.output, "scaling", &page)?;
    save_rows(&options.output, "scaling", &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_of_a_stream_are_distinct() {
        let mut stream = FlowStream::new(50_000);
        let keys: std::collections::HashSet<_> = (0..50_000).map(|n| stream.packet(n).key).collect();
        assert_eq!(keys.len(), 50_000);
    }
}
