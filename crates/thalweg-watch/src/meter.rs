//! The metering half of a worker: counts packets per flow and detects cheetah flows.

use thalweg_measure::detect::cfinf::{Cfinf, CfinfCounters, CfinfParameters};
use thalweg_measure::detect::sliding_window::SlidingWindow;
use thalweg_measure::meter::ethernet::FlowEthernet;
use thalweg_measure::meter::flow_table::{FlowTable, FlowTableCounters, Output};
use thalweg_wire::{Bytes, HashSeed, Packet, Timestamp};

use crate::error::WatchError;
use crate::options::{Detector, WatchOptions};

/// A flow table and a detector.
#[derive(Debug)]
pub(crate) struct Meter {
    pub(crate) table: FlowTable,
    /// `None` if MAC addresses are not wanted.
    ethernet: Option<FlowEthernet>,
    cfinf: Option<Cfinf>,
    /// Records and detections; the caller drains them.
    pub(crate) output: Output,
}

/// Counters of one or more meters.
#[derive(Clone, Copy, Debug, Default)]
pub struct MeterCounters {
    /// Counters of the flow table.
    pub table: FlowTableCounters,
    /// Counters of the CFINF detector, if it is in use.
    pub cfinf: Option<CfinfCounters>,
    /// Number of cheetah flows detected.
    pub cheetahs: u64,
    /// Milestones that found no free track. The detector's guarantee holds while this is zero.
    pub untracked: u64,
    /// Directions of ended flows that came within 1/64 of the threshold, and may have exceeded it. The detector's guarantee holds
    /// while this is zero.
    pub undecided: u64,
    /// Maximum memory of flow tables and detectors.
    pub memory: Bytes,
    /// Capacity of the flow tables.
    pub capacity: u64,
    /// Number of live flows.
    pub live: u64,
}

impl Meter {
    /// Creates one of `workers` meters that share the configured capacity. `is_live`: whether packets have the time of this machine's
    /// clock.
    pub(crate) fn new(
        options: &WatchOptions,
        workers: usize,
        seed: u64,
        is_live: bool,
    ) -> Result<Meter, WatchError> {
        let mut flow_table = options.flow_table;
        flow_table.capacity = flow_table.capacity.div_ceil(workers as u32);
        let (sliding_window, cfinf) = match &options.detector {
            Detector::None => (None, None),
            Detector::SlidingWindow { tracks } => {
                (Some(SlidingWindow::new(options.threshold, tracks.div_ceil(workers))?), None)
            }
            Detector::Cfinf(parameters) => {
                let flow_cache_entries = parameters.flow_cache_entries.div_ceil(workers as u32);
                let threshold = options.threshold;
                let parameters = CfinfParameters { threshold, flow_cache_entries, ..parameters.clone() };
                (None, Some(Cfinf::new(parameters, seed)?))
            }
        };
        let ethernet = options.mac_addresses.then(|| FlowEthernet::new(&flow_table)).transpose()?;
        let table = FlowTable::new(flow_table, sliding_window, HashSeed::new(seed))?;
        let table = table.with_live_clock(is_live);
        Ok(Meter { table, ethernet, cfinf, output: Output::default() })
    }

    pub(crate) fn packets(&mut self, packets: &[Packet]) {
        match &mut self.ethernet {
            Some(ethernet) => self.table.update_with(packets, &mut self.output, ethernet),
            None => self.table.update(packets, &mut self.output),
        }
        self.check_clock();
        if let Some(cfinf) = &mut self.cfinf {
            for packet in packets {
                cfinf.handle(packet, &mut self.output.findings);
            }
        }
    }

    pub(crate) fn advance(&mut self, now: Timestamp) {
        match &mut self.ethernet {
            Some(ethernet) => self.table.advance_with(now, &mut self.output, ethernet),
            None => self.table.advance(now, &mut self.output),
        }
        self.check_clock();
    }

    /// If the clock was set back, the flow table has begun anew. So does the other detector.
    fn check_clock(&mut self) {
        if self.output.set_back.take().is_some()
            && let Some(cfinf) = &mut self.cfinf
        {
            cfinf.finish(&mut self.output.findings);
        }
    }

    /// Ends all flows and outputs their records.
    pub(crate) fn finish(&mut self) {
        match &mut self.ethernet {
            Some(ethernet) => self.table.finish_with(&mut self.output, ethernet),
            None => self.table.finish(&mut self.output),
        }
        if let Some(cfinf) = &mut self.cfinf {
            cfinf.finish(&mut self.output.findings);
        }
    }

    pub(crate) fn counters(&self) -> MeterCounters {
        let cfinf = self.cfinf.as_ref();
        let table = self.table.counters();
        MeterCounters {
            table,
            cfinf: cfinf.map(Cfinf::counters),
            cheetahs: table.cheetahs + cfinf.map_or(0, |cfinf| cfinf.counters().cheetahs),
            untracked: self.table.detector().map_or(0, SlidingWindow::untracked),
            undecided: self.table.detector().map_or(0, SlidingWindow::undecided),
            memory: self.table.bytes()
                + self.ethernet.as_ref().map_or(Bytes(0), FlowEthernet::bytes)
                + cfinf.map_or(Bytes(0), Cfinf::bytes),
            capacity: u64::from(self.table.options().capacity),
            live: u64::from(self.table.live()),
        }
    }
}

impl std::ops::AddAssign for MeterCounters {
    fn add_assign(&mut self, other: MeterCounters) {
        self.table += other.table;
        self.cfinf = match (self.cfinf, other.cfinf) {
            (Some(mut sum), Some(part)) => {
                sum += part;
                Some(sum)
            }
            (one, other) => one.or(other),
        };
        self.cheetahs += other.cheetahs;
        self.untracked += other.untracked;
        self.undecided += other.undecided;
        self.memory += other.memory;
        self.capacity += other.capacity;
        self.live += other.live;
    }
}

#[cfg(test)]
mod tests {
    use thalweg_capture::live::LiveOptions;
    use thalweg_measure::detect::CheetahThreshold;
    use thalweg_measure::filter::FlowFilter;
    use thalweg_measure::meter::flow_table::FlowTableOptions;
    use thalweg_wire::{BitRate, FlowKey, Fragment, Nanos, PacketNotes, Protocol, TcpFlags};

    use super::*;
    use crate::options::Show;

    /// A flow of 29 bytes every 5 ms: if all its packets counted for one moment, it would be a cheetah after 43 of them.
    fn packets(start: u64, count: u64) -> Vec<Packet> {
        let packet = |number| Packet {
            time: Timestamp(start + number * 5_000_000),
            key: FlowKey::v4(1, 2, 3, 4, Protocol::UDP),
            ip_length: 29,
            payload_length: 1,
            identification: 0,
            tcp_sequence: 0,
            ethernet: Default::default(),
            tcp_flags: TcpFlags::default(),
            fragment: Fragment::Whole,
            notes: PacketNotes::default(),
        };
        (0..count).map(packet).collect()
    }

    fn options(detector: Detector, threshold: CheetahThreshold) -> WatchOptions {
        WatchOptions {
            sources: Vec::new(),
            show: Show::Summary,
            replay: None,
            workers: None,
            capture_filter: None,
            flow_filter: FlowFilter::default(),
            decapsulate: false,
            duration: None,
            flow_table: FlowTableOptions { capacity: 64, ..FlowTableOptions::default() },
            threshold,
            detector,
            tasks: None,
            table: true,
            save_sketches: None,
            export: None,
            records: None,
            mac_addresses: false,
            live: LiveOptions::new(""),
            backend: None,
            in_kernel: None,
            seed: None,
            top: 10,
            grouping: Default::default(),
            flow_capture: Default::default(),
            names: Default::default(),
            mouse: false,
        }
    }

    #[test]
    fn a_live_clock_that_is_set_back_makes_no_cheetahs() {
        let second = Nanos::from_secs(1).0;
        let threshold =
            CheetahThreshold { flight_duration: Nanos::from_millis(100), rate_threshold: BitRate(100_000) };
        let cfinf =
            Detector::Cfinf(CfinfParameters { sampling_probability: 1.0, ..CfinfParameters::default() });
        for detector in [Detector::SlidingWindow { tracks: 64 }, cfinf] {
            let options = options(detector, threshold);
            for (is_live, flows) in [(true, 2), (false, 1)] {
                let mut meter = Meter::new(&options, 1, 1, is_live).unwrap();
                let start = 1_000 * second;
                for packets in
                    packets(start + 3_600 * second, 40).chunks(8).chain(packets(start, 400).chunks(8))
                {
                    meter.packets(packets);
                    meter.advance(packets[packets.len() - 1].time);
                }
                let counters = meter.counters();
                assert_eq!(counters.table.flows, flows, "{:?}", options.detector);
                let is_window = matches!(options.detector, Detector::SlidingWindow { .. });
                assert_eq!(
                    counters.cheetahs > 0,
                    !is_live && is_window,
                    "{:?}: {counters:?}",
                    options.detector
                );
            }
        }
    }
}
