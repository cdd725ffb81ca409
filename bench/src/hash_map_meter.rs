//! A baseline: flow metering with a plain `HashMap`.
//!
//! It has the same file source, parser and definition of a flow (both directions of a 5-tuple, the same idle and active
//! timeouts and linger), in one thread. It lacks fixed memory, eviction, prefetching, huge pages, a timer per flow
//! (idle flows are swept once per second of packet time), and cheetah detection.

use std::collections::HashMap;
use std::path::Path;

use thalweg_capture::file::FileSource;
use thalweg_measure::meter::flow_table::FlowTableOptions;
use thalweg_measure::meter::intake::Intake;
use thalweg_wire::parse::Parser;
use thalweg_wire::{Direction, FlowKey, HashSeed, Nanos, Packet, Source, TcpFlags, Timestamp};

/// Packet time between two sweeps.
const SWEEP_INTERVAL: Nanos = Nanos::from_secs(1);

/// A flow in progress; arrays are indexed by [`Direction`].
#[derive(Clone, Debug)]
struct Flow {
    first: Timestamp,
    last: Timestamp,
    packets: [u64; 2],
    bytes: [u64; 2],
    tcp_flags: [TcpFlags; 2],
}

/// Totals of a meter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of packets.
    pub packets: u64,
    /// Bytes of the IP layer, summed over the records of ended flows.
    pub bytes: u64,
    /// Number of flows.
    pub flows: u64,
}

/// A flow meter based on a `HashMap`.
#[derive(Debug, Default)]
pub struct HashMapMeter {
    flows: HashMap<FlowKey, Flow>,
    options: FlowTableOptions,
    swept: Timestamp,
    totals: Totals,
}

impl HashMapMeter {
    /// Counts a packet.
    pub fn count(&mut self, packet: &Packet) {
        if packet.time - self.swept >= SWEEP_INTERVAL {
            self.sweep(packet.time);
        }
        let (key, direction) = packet.key.canonical();
        if let Some(flow) = self.flows.get(&key)
            && flow.is_over(packet, &self.options)
        {
            let flow = self.flows.remove(&key);
            flow.iter().for_each(|flow| self.totals.add_flow(flow));
        }
        let flow = self.flows.entry(key).or_insert_with(|| {
            self.totals.flows += 1;
            Flow::new(packet.time)
        });
        flow.add(packet, direction);
        self.totals.packets += 1;
    }

    /// Ends the flows that have been idle for long enough.
    fn sweep(&mut self, now: Timestamp) {
        self.swept = now;
        let (options, totals) = (&self.options, &mut self.totals);
        self.flows.retain(|_, flow| {
            let idle = now - flow.last;
            let over = idle > options.idle_timeout || flow.is_closed() && idle > options.linger;
            if over {
                totals.add_flow(flow);
            }
            !over
        });
    }

    /// Ends all flows and returns the totals.
    pub fn finish(mut self) -> Totals {
        self.flows.values().for_each(|flow| self.totals.add_flow(flow));
        self.totals
    }
}

impl Totals {
    fn add_flow(&mut self, flow: &Flow) {
        self.bytes += flow.bytes.iter().sum::<u64>();
    }
}

impl Flow {
    fn new(now: Timestamp) -> Flow {
        Flow { first: now, last: now, packets: [0; 2], bytes: [0; 2], tcp_flags: [TcpFlags::default(); 2] }
    }

    fn add(&mut self, packet: &Packet, direction: Direction) {
        let index = direction as usize;
        self.last = self.last.max(packet.time);
        self.packets[index] += 1;
        self.bytes[index] += u64::from(packet.ip_length);
        self.tcp_flags[index] |= packet.tcp_flags;
    }

    /// Whether TCP has closed it.
    fn is_closed(&self) -> bool {
        let [one, other] = self.tcp_flags;
        (one | other).contains(TcpFlags::RST) || one.contains(TcpFlags::FIN) && other.contains(TcpFlags::FIN)
    }

    /// Whether `packet` starts the next flow of the same 5-tuple.
    fn is_over(&self, packet: &Packet, options: &FlowTableOptions) -> bool {
        let idle = packet.time - self.last;
        let syn = packet.tcp_flags.contains(TcpFlags::SYN);
        idle > options.idle_timeout
            || packet.time - self.first >= options.active_timeout
            || self.is_closed() && (syn || idle > options.linger)
    }
}

/// Meters a capture file.
///
/// # Errors
/// If the file cannot be read.
pub fn meter_file(path: &Path) -> anyhow::Result<Totals> {
    let mut source = FileSource::open(path)?;
    let mut intake = Intake::new(Parser::default(), HashSeed::new(1));
    let mut meter = HashMapMeter::default();
    let mut packets = Vec::new();
    while let Some(batch) = source.next_batch()? {
        packets.clear();
        intake.take(&batch, &mut packets);
        packets.iter().for_each(|packet| meter.count(packet));
    }
    Ok(meter.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::{TraceInMemory, normal};

    #[test]
    fn totals_match_the_trace() {
        let trace = TraceInMemory::make(&normal(20_000)).unwrap();
        let mut intake = Intake::new(Parser::default(), HashSeed::new(1));
        let (mut packets, mut meter) = (Vec::new(), HashMapMeter::default());
        trace.batches(|batch| {
            intake.take(batch, &mut packets);
        });
        packets.iter().for_each(|packet| meter.count(packet));
        let totals = meter.finish();
        let truth = trace.contents;
        assert_eq!((totals.packets, totals.bytes, totals.flows), (truth.packets, truth.bytes, truth.flows));
    }
}
