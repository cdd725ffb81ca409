//! Flow records with known truth, as the routers of a research network would export them.
//!
//! [`Generator::new`] plans everything from [`Options`] and a seed; [`Generator::fill`] returns the records in order of
//! reception, and [`Generator::truth`] the planted transfers. The data resembles that of the dissertation's chapter 2:
//! elephant flows in parallel flowsets and alone between data transfer nodes, ordinary transfers of the same hosts, and
//! a background of small flows. Each router of a path independently samples one packet in a thousand.
//!
//! ```
//! use thalweg_synth::records::{Generator, Options};
//! use thalweg_wire::flow_export::RecordBatch;
//!
//! let options = Options { records: 50_000, ..Options::default() };
//! let mut generator = Generator::new(options, 1)?;
//! let mut batch = RecordBatch::default();
//! while generator.fill(&mut batch, 10_000) > 0 {
//!     // ... store them, send them ...
//!     batch.clear();
//! }
//! assert_eq!(generator.truth().transfers().len(), 12 + 12 + 12);
//! # Ok::<(), thalweg_synth::records::OptionsError>(())
//! ```
//!
//! # Guarantees
//! - The number of records is exactly the requested one. Sampling determines the number of records of planted flows;
//!   the rest are of background flows.
//! - Each packet is sampled independently at each observation point. Entries are drawn from exactly the process of a
//!   flow cache with an active and an inactive timeout (`flow_cache`). A flow without a sampled packet has no record.
//! - Times in records are milliseconds, rounded down, as in NetFlow v9. A record is received within 5 s of its entry's
//!   end, `received_us` never decreases, and the order of exporters is random.
//! - Planted flows have unique keys, and two transfers of the same hosts start at least
//!   [`separation`](Options::separation) apart.
//! - The same options and seed give the same records on every machine.
//!
//! # Cost
//! About 0.5 us per record. Memory: 300 bytes per planted flow, 64 per active planted flow and observation point, and
//! the background records of the last few seconds to minutes (200 bytes each): 10 MB at 2,000 records per second.
//!
//! | module | contents |
//! |---|---|
//! | [`options`] | [`Options`] and their validation |
//! | [`truth`] | [`Truth`]: planted flows and transfers, as CSV and JSON |
//! | [`datagrams`] | encodes records as NetFlow v9 datagrams per exporter |
//! | [`capture`], [`sender`] | writes datagrams to a pcap file or sends them to a collector |
//! | [`hour_files`] | writes records to Parquet files by hour |
//! | `transfers` | sizes, rates and starts of planted transfers |
//! | `background` | small flows with at least one sampled packet |
//! | `network` | sites, hosts, routers, paths |
//! | `pace` | sending times of packets |
//! | `flow_cache` | turns sampled packets into entries |
//! | `observed` | turns entries into records |
//! | `calendar` | events of each second |
//! | `random`, `binomial` | random numbers |

mod background;
mod binomial;
mod calendar;
pub mod capture;
pub mod datagrams;
mod flow_cache;
pub mod hour_files;
mod network;
mod observed;
pub mod options;
mod pace;
pub mod sender;
#[cfg(test)]
mod tests;
mod transfers;
pub mod truth;

use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::batch::UNKNOWN_DIRECTION;
use thalweg_wire::flow_export::{Record, RecordBatch};

pub use network::exporter;
pub use options::{Options, OptionsError};
pub use truth::{Kind, PlantedFlow, PlantedTransfer, Truth};

use crate::random::Random;
use background::{Background, SampledFlow};
use binomial::Trials;
use calendar::{Calendar, ScheduledFlow};
use flow_cache::FlowCache;
use network::Network;
use observed::{Observed, Packets};
use transfers::{DESTINATION_PORT, Flow, Planner};

const SECOND_NS: u64 = 1_000_000_000;
const SECOND_US: u64 = 1_000_000;

/// Longest time between two scans of a router's cache, so the longest delay of an ended entry.
const EXPORT_CYCLE_NS: u64 = 3 * SECOND_NS;

const TCP: u8 = 6;

/// Numbers of random streams: transfers, background, and from here on planted flows.
const TRANSFERS_STREAM: u64 = 0;
const BACKGROUND_STREAM: u64 = 1;
const FIRST_FLOW_STREAM: u64 = 16;

/// Generates records in order of reception.
#[derive(Debug)]
pub struct Generator {
    options: Options,
    seed: u64,
    network: Network,
    cache: FlowCache,
    flows: Vec<Flow>,
    /// Planted flows by start; those from `started` on have not started.
    by_start: Vec<u32>,
    started: usize,
    background: Background,
    background_random: Random,
    background_rows: u64,
    background_generated: u64,
    calendar: Calendar,
    /// Records of the second that is being returned, and the number returned so far.
    exported: Vec<Record>,
    returned: usize,
    rows_left: u64,
    truth: Truth,
}

impl Generator {
    /// Plans transfers and predicts how they are sampled, so the truth is complete before the first record.
    ///
    /// # Errors
    /// If the options contradict each other, or planted flows alone have more records than requested.
    pub fn new(options: Options, seed: u64) -> Result<Generator, OptionsError> {
        let counts = options.check()?;
        let network = Network { routers: options.routers, path_routers: options.path_routers };
        let sampling = Trials::one_in(options.sampling_interval);
        let cache = FlowCache {
            sampling,
            active_timeout_ns: options.active_timeout.0,
            inactive_timeout_ns: options.inactive_timeout.0,
        };
        let flows = Planner::plan(&options, &counts, network, Random::for_item(seed, TRANSFERS_STREAM))?;
        let mut by_start: Vec<u32> = (0..flows.len() as u32).collect();
        by_start.sort_by_key(|&flow| (flows[flow as usize].start_us, flow));
        let Options { sampling_interval, ipv6_share, records, .. } = options;
        let background = Background::new(network, sampling, sampling_interval, options.points(), ipv6_share);
        let mut generator = Generator {
            seed,
            network,
            cache,
            flows,
            by_start,
            started: 0,
            background,
            background_random: Random::for_item(seed, BACKGROUND_STREAM),
            background_rows: 0,
            background_generated: 0,
            calendar: Calendar::default(),
            exported: Vec::new(),
            returned: 0,
            rows_left: records,
            truth: Truth::default(),
            options,
        };
        generator.truth.flows = (0..generator.flows.len()).map(|flow| generator.predict(flow)).collect();
        let planted = generator.truth.flows.iter().map(|flow| flow.records).sum();
        let Some(background_rows) = records.checked_sub(planted) else {
            return Err(OptionsError::TooFewRecords { records, planted });
        };
        generator.background_rows = background_rows;
        Ok(generator)
    }

    /// Appends up to `rows` records, and returns their number; 0 after the last record.
    pub fn fill(&mut self, batch: &mut RecordBatch, rows: usize) -> usize {
        let mut appended = 0;
        while appended < rows && self.rows_left > 0 {
            while self.returned == self.exported.len() {
                self.advance_second();
            }
            let end = self.exported.len().min(self.returned + rows - appended);
            let (start_us, count) = (self.second_start_us(), self.exported.len() as u64);
            for (number, record) in self.exported[self.returned..end].iter_mut().enumerate() {
                let number = (self.returned + number) as u64;
                record.received_us = start_us + (number * SECOND_US / count) as i64;
                batch.push(record);
            }
            appended += end - self.returned;
            self.rows_left -= (end - self.returned) as u64;
            self.returned = end;
        }
        appended
    }

    /// Returns the number of records left.
    pub fn rows_left(&self) -> u64 {
        self.rows_left
    }

    /// Returns the earliest start of a flow.
    pub fn start(&self) -> Timestamp {
        self.options.start
    }

    /// Returns the planted transfers and flows.
    pub fn truth(&self) -> &Truth {
        &self.truth
    }

    /// Returns the start of the second that is being returned, in microseconds since 1970. The calendar is one ahead.
    fn second_start_us(&self) -> i64 {
        self.options.start_us() + ((self.calendar.now() - 1) * SECOND_US) as i64
    }

    /// Generates the events of the current second and collects its records. Flows start `lag` seconds later than their
    /// time, since none of their records can be exported earlier.
    fn advance_second(&mut self) {
        let now = self.calendar.now();
        if let Some(second) = now.checked_sub(self.lag())
            && second < self.options.seconds()
        {
            self.start_transfers(second);
            self.generate_background(second);
        }
        let mut flows = std::mem::take(&mut self.calendar.at(now).flows);
        for flow in flows.drain(..) {
            self.create_entry(flow);
        }
        assert!(
            now < self.lag() + self.options.seconds() || !self.calendar.is_empty(),
            "{} predicted records are missing",
            self.rows_left
        );
        self.exported.clear();
        self.returned = 0;
        self.calendar.next(&mut self.exported);
    }

    /// Returns the least number of whole seconds between a packet and the export of its record.
    fn lag(&self) -> u64 {
        self.options.inactive_timeout.0 / SECOND_NS
    }

    fn start_transfers(&mut self, second: u64) {
        while let Some(&flow) = self.by_start.get(self.started)
            && self.flows[flow as usize].start_us / SECOND_US == second
        {
            self.started += 1;
            for point in 0..self.options.points() {
                if let Some(scheduled) = self.first_entry(flow, point as u8) {
                    self.schedule(scheduled);
                }
            }
        }
    }

    /// Returns a planted flow at an observation point before its first entry, if it has one.
    fn first_entry(&self, flow: u32, point: u8) -> Option<ScheduledFlow> {
        let number = FIRST_FLOW_STREAM * (u64::from(flow) + 1) + u64::from(point);
        let mut random = Random::for_item(self.seed, number);
        let pace = &self.flows[flow as usize].pace;
        let first = self.cache.first_sampled(pace, 0, &mut random)?;
        Some(ScheduledFlow { flow, point, first, random })
    }

    fn schedule(&mut self, scheduled: ScheduledFlow) {
        let Flow { start_us, pace, .. } = &self.flows[scheduled.flow as usize];
        let second = (start_us * 1_000 + pace.offset_ns(scheduled.first)) / SECOND_NS + self.lag();
        self.calendar.at(second).flows.push(scheduled);
    }

    /// Creates the scheduled entry, and schedules the next.
    fn create_entry(&mut self, mut scheduled: ScheduledFlow) {
        let flow = self.flows[scheduled.flow as usize];
        let (entry, next) = self.cache.entry(&flow.pace, scheduled.first, &mut scheduled.random);
        let (hop, direction) = self.hop_and_direction(scheduled.point.into());
        let record = self.observed(&flow).record(&entry, hop, direction);
        let second = export_second(flow.start_us, entry.expired_ns, &mut scheduled.random);
        self.calendar.at(second).records.push(record);
        if let Some(first) = next {
            self.schedule(ScheduledFlow { first, ..scheduled });
        }
    }

    /// Returns the router on the path, and the direction, of an observation point.
    fn hop_and_direction(&self, point: u64) -> (usize, u8) {
        match self.options.meters_egress {
            true => (point as usize / 2, (point % 2) as u8),
            false => (point as usize, UNKNOWN_DIRECTION),
        }
    }

    fn observed(&self, flow: &Flow) -> Observed {
        let packets = Packets {
            source_port: flow.source_port,
            destination_port: DESTINATION_PORT,
            protocol: TCP,
            is_v6: false,
            octets: self.options.packet_bytes,
            pace: flow.pace,
            start_us: self.options.start_us() + flow.start_us as i64,
        };
        let ends = (flow.source, flow.destination);
        Observed::new(&self.network, self.options.sampling_interval, ends, &packets)
    }

    /// Draws flows that start in `second` until the background has its share of records.
    fn generate_background(&mut self, second: u64) {
        let until = u128::from(self.background_rows) * u128::from(second + 1);
        let until = (until / u128::from(self.options.seconds())) as u64;
        while self.background_generated < until {
            let start_us = second * SECOND_US + self.background_random.below(SECOND_US);
            let since_1970_us = self.options.start_us() + start_us as i64;
            let sampled_flow = self.background.draw(since_1970_us, &mut self.background_random);
            self.observe(&sampled_flow, start_us);
        }
    }

    /// Creates all records of a background flow, at every point from the first that samples it on.
    fn observe(&mut self, sampled_flow: &SampledFlow, start_us: u64) {
        let SampledFlow { observed, point, packet } = sampled_flow;
        let mut first = Some(*packet);
        for point in *point..self.options.points() {
            let (hop, direction) = self.hop_and_direction(point);
            while let Some(packet) = first {
                let random = &mut self.background_random;
                let (entry, next) = self.cache.entry(&observed.pace, packet, random);
                if self.background_generated == self.background_rows {
                    return;
                }
                let second = export_second(start_us, entry.expired_ns, random);
                self.calendar.at(second).records.push(observed.record(&entry, hop, direction));
                self.background_generated += 1;
                first = next;
            }
            first = self.cache.first_sampled(&observed.pace, 0, &mut self.background_random);
        }
    }

    /// Returns the truth about a planted flow, from the same draws as its records.
    fn predict(&self, flow: usize) -> PlantedFlow {
        let (mut records, mut sampled_packets) = (0, 0);
        for point in 0..self.options.points() {
            let mut scheduled = self.first_entry(flow as u32, point as u8);
            while let Some(mut at) = scheduled.take() {
                let (entry, next) = self.cache.entry(&self.flows[flow].pace, at.first, &mut at.random);
                // Drawn as when the record is created.
                export_second(0, entry.expired_ns, &mut at.random);
                records += 1;
                sampled_packets += entry.packets;
                scheduled = next.map(|first| ScheduledFlow { first, ..at });
            }
        }
        let Flow { transfer, kind, source, destination, source_port, start_us, pace } = self.flows[flow];
        let flow_start_us = self.options.start_us() + start_us as i64;
        PlantedFlow {
            transfer,
            kind,
            source_address: network::v4(source),
            destination_address: network::v4(destination),
            source_port,
            destination_port: DESTINATION_PORT,
            flow_start_us,
            flow_end_us: flow_start_us + (pace.span_ns() / 1_000) as i64,
            octets: pace.packets() * u64::from(self.options.packet_bytes),
            packets: pace.packets(),
            source_as: network::autonomous_system(source.site),
            destination_as: network::autonomous_system(destination.site),
            path: self.network.path(source.site, destination.site).routers().to_vec(),
            records,
            sampled_packets,
        }
    }
}

/// Returns the second that receives an entry which expired `expired_ns` after the flow's first packet.
fn export_second(start_us: u64, expired_ns: u64, random: &mut Random) -> u64 {
    (start_us * 1_000 + expired_ns + random.below(EXPORT_CYCLE_NS)).div_ceil(SECOND_NS)
}
