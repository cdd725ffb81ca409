//! Flow records with known truth, as the routers of a research network would export them.
//!
//! [`Generator::new`] plans everything from [`Options`] and a seed; [`Generator::fill`] gives the records in order of
//! their reception, [`Generator::truth`] what was planted among them. Like the data of the dissertation's chapter 2:
//! cheetah flows in parallel flowsets and by themselves between data transfer nodes, ordinary transfers of the same
//! hosts, and a background of small flows; one packet in a thousand sampled, by each router of a path for itself.
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
//! # What holds
//! - Records are exactly as many as asked. Records of planted flows are as many as sampling makes them; the background
//!   has the rest.
//! - Each packet is sampled independently at each observation point; what a flow cache with an active and an inactive
//!   time-out makes of the sampled packets is drawn from exactly that process (`flow_cache`). A flow of which no packet
//!   is sampled has no record.
//! - Times in records are milliseconds, rounded down, as NetFlow v9 has them. A record is received within 5 s of
//!   its entry's end, `received_us` never goes back, and which exporter comes when is left to chance.
//! - Planted flows have keys of their own, and two transfers of the same hosts start at least
//!   [`separation`](Options::separation) apart.
//! - The same options and seed give the same records on every machine.
//!
//! # Cost
//! Some 0.5 us a record. Memory: 300 bytes a planted flow, 64 a planted flow and observation point under way, and the
//! records of the background's last few seconds to minutes (200 bytes each): 10 MB at 2,000 records a second.
//!
//! | module | what it has |
//! |---|---|
//! | [`options`] | [`Options`] and how they are checked |
//! | [`truth`] | [`Truth`]: planted flows and transfers, as CSV and JSON |
//! | [`datagrams`] | records to the NetFlow v9 datagrams of their exporters |
//! | [`capture`], [`sender`] | datagrams to a pcap file, or to a collector |
//! | [`hour_files`] | records to Parquet files by hour |
//! | `transfers` | sizes, rates, starts of planted transfers |
//! | `background` | small flows, drawn as far as they are seen |
//! | `network` | sites, hosts, routers, paths |
//! | `pace` | when packets are sent |
//! | `flow_cache` | sampled packets to entries |
//! | `observed` | entries to records |
//! | `calendar` | what happens in which second |
//! | `random`, `binomial` | chance |

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
use background::{Background, Seen};
use binomial::Trials;
use calendar::{Calendar, Waiting};
use flow_cache::FlowCache;
use network::Network;
use observed::{Observed, Packets};
use transfers::{DESTINATION_PORT, Flow, Planner};

const SECOND_NS: u64 = 1_000_000_000;
const SECOND_US: u64 = 1_000_000;

/// A router looks through its cache this often at least: what has ended waits up to so long.
const EXPORT_CYCLE_NS: u64 = 3 * SECOND_NS;

const TCP: u8 = 6;

/// Numbers of streams of chance: transfers, background; planted flows have the numbers after.
const TRANSFERS_STREAM: u64 = 0;
const BACKGROUND_STREAM: u64 = 1;
const FIRST_FLOW_STREAM: u64 = 16;

/// Makes records, in order of reception.
#[derive(Debug)]
pub struct Generator {
    options: Options,
    seed: u64,
    network: Network,
    cache: FlowCache,
    flows: Vec<Flow>,
    /// Planted flows by start; those from `begun` on have not begun.
    by_start: Vec<u32>,
    begun: usize,
    background: Background,
    background_random: Random,
    background_rows: u64,
    background_made: u64,
    calendar: Calendar,
    /// The second that is being given out, and how far.
    exported: Vec<Record>,
    given: usize,
    rows_left: u64,
    truth: Truth,
}

impl Generator {
    /// Plans transfers, and finds out what sampling will make of them: the truth is complete before the first record.
    ///
    /// # Errors
    /// If options contradict themselves, or planted flows alone have more records.
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
            begun: 0,
            background,
            background_random: Random::for_item(seed, BACKGROUND_STREAM),
            background_rows: 0,
            background_made: 0,
            calendar: Calendar::default(),
            exported: Vec::new(),
            given: 0,
            rows_left: records,
            truth: Truth::default(),
            options,
        };
        generator.truth.flows = (0..generator.flows.len()).map(|flow| generator.foretell(flow)).collect();
        let planted = generator.truth.flows.iter().map(|flow| flow.records).sum();
        let Some(background_rows) = records.checked_sub(planted) else {
            return Err(OptionsError::TooFewRecords { records, planted });
        };
        generator.background_rows = background_rows;
        Ok(generator)
    }

    /// Appends up to `rows` records, and says how many; 0 when all were given.
    pub fn fill(&mut self, batch: &mut RecordBatch, rows: usize) -> usize {
        let mut appended = 0;
        while appended < rows && self.rows_left > 0 {
            while self.given == self.exported.len() {
                self.pass_a_second();
            }
            let end = self.exported.len().min(self.given + rows - appended);
            let (begin_us, of) = (self.received_from_us(), self.exported.len() as u64);
            for (number, record) in self.exported[self.given..end].iter_mut().enumerate() {
                let number = (self.given + number) as u64;
                record.received_us = begin_us + (number * SECOND_US / of) as i64;
                batch.push(record);
            }
            appended += end - self.given;
            self.rows_left -= (end - self.given) as u64;
            self.given = end;
        }
        appended
    }

    /// Records still to come.
    pub fn rows_left(&self) -> u64 {
        self.rows_left
    }

    /// When the first flow may begin.
    pub fn start(&self) -> Timestamp {
        self.options.start
    }

    /// What was planted.
    pub fn truth(&self) -> &Truth {
        &self.truth
    }

    /// When the second that is given out began, microseconds since 1970: the calendar is one ahead.
    fn received_from_us(&self) -> i64 {
        self.options.start_us() + ((self.calendar.now() - 1) * SECOND_US) as i64
    }

    /// Does what the present second has, and gives out its records. Flows begin as much later than their own
    /// time as no record of theirs can be exported anyway.
    fn pass_a_second(&mut self) {
        let now = self.calendar.now();
        if let Some(second) = now.checked_sub(self.lag())
            && second < self.options.seconds()
        {
            self.begin_transfers(second);
            self.make_background(second);
        }
        let mut waiting = std::mem::take(&mut self.calendar.at(now).waiting);
        for waiting in waiting.drain(..) {
            self.go_on(waiting);
        }
        assert!(
            now < self.lag() + self.options.seconds() || !self.calendar.is_empty(),
            "{} records were foretold that do not come",
            self.rows_left
        );
        self.exported.clear();
        self.given = 0;
        self.calendar.next(&mut self.exported);
    }

    /// Whole seconds that pass between a packet and the export of its record at the least.
    fn lag(&self) -> u64 {
        self.options.inactive_timeout.0 / SECOND_NS
    }

    fn begin_transfers(&mut self, second: u64) {
        while let Some(&flow) = self.by_start.get(self.begun)
            && self.flows[flow as usize].start_us / SECOND_US == second
        {
            self.begun += 1;
            for point in 0..self.options.points() {
                if let Some(waiting) = self.first_entry(flow, point as u8) {
                    self.wait(waiting);
                }
            }
        }
    }

    /// A planted flow at an observation point, before its first entry, if there is one.
    fn first_entry(&self, flow: u32, point: u8) -> Option<Waiting> {
        let number = FIRST_FLOW_STREAM * (u64::from(flow) + 1) + u64::from(point);
        let mut random = Random::for_item(self.seed, number);
        let pace = &self.flows[flow as usize].pace;
        let first = self.cache.first_sampled(pace, 0, &mut random)?;
        Some(Waiting { flow, point, first, random })
    }

    fn wait(&mut self, waiting: Waiting) {
        let Flow { start_us, pace, .. } = &self.flows[waiting.flow as usize];
        let second = (start_us * 1_000 + pace.offset_ns(waiting.first)) / SECOND_NS + self.lag();
        self.calendar.at(second).waiting.push(waiting);
    }

    /// Makes the entry that was waited for, and waits for the next.
    fn go_on(&mut self, mut waiting: Waiting) {
        let flow = self.flows[waiting.flow as usize];
        let (entry, next) = self.cache.entry(&flow.pace, waiting.first, &mut waiting.random);
        let (hop, direction) = self.place(waiting.point.into());
        let record = self.observed(&flow).record(&entry, hop, direction);
        let second = export_second(flow.start_us, entry.expired_ns, &mut waiting.random);
        self.calendar.at(second).records.push(record);
        if let Some(first) = next {
            self.wait(Waiting { first, ..waiting });
        }
    }

    /// The router on the path, and the direction told, of an observation point.
    fn place(&self, point: u64) -> (usize, u8) {
        match self.options.both_directions {
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
            octets: self.options.packet_octets,
            pace: flow.pace,
            start_us: self.options.start_us() + flow.start_us as i64,
        };
        let ends = (flow.source, flow.destination);
        Observed::new(&self.network, self.options.sampling_interval, ends, &packets)
    }

    /// Draws flows that begin in `second` until the background has its share of records.
    fn make_background(&mut self, second: u64) {
        let until = u128::from(self.background_rows) * u128::from(second + 1);
        let until = (until / u128::from(self.options.seconds())) as u64;
        while self.background_made < until {
            let start_us = second * SECOND_US + self.background_random.below(SECOND_US);
            let since_1970_us = self.options.start_us() + start_us as i64;
            let seen = self.background.draw(since_1970_us, &mut self.background_random);
            self.observe(&seen, start_us);
        }
    }

    /// All records of a background flow, at every point from the first that sees it on.
    fn observe(&mut self, seen: &Seen, start_us: u64) {
        let Seen { observed, point, packet } = seen;
        let mut first = Some(*packet);
        for point in *point..self.options.points() {
            let (hop, direction) = self.place(point);
            while let Some(packet) = first {
                let random = &mut self.background_random;
                let (entry, next) = self.cache.entry(&observed.pace, packet, random);
                if self.background_made == self.background_rows {
                    return;
                }
                let second = export_second(start_us, entry.expired_ns, random);
                self.calendar.at(second).records.push(observed.record(&entry, hop, direction));
                self.background_made += 1;
                first = next;
            }
            first = self.cache.first_sampled(&observed.pace, 0, &mut self.background_random);
        }
    }

    /// The truth about a planted flow: draws what sampling will draw.
    fn foretell(&self, flow: usize) -> PlantedFlow {
        let (mut records, mut sampled_packets) = (0, 0);
        for point in 0..self.options.points() {
            let mut waiting = self.first_entry(flow as u32, point as u8);
            while let Some(mut at) = waiting.take() {
                let (entry, next) = self.cache.entry(&self.flows[flow].pace, at.first, &mut at.random);
                // As it is drawn when the record is made.
                export_second(0, entry.expired_ns, &mut at.random);
                records += 1;
                sampled_packets += entry.packets;
                waiting = next.map(|first| Waiting { first, ..at });
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
            octets: pace.packets() * u64::from(self.options.packet_octets),
            packets: pace.packets(),
            source_as: network::autonomous_system(source.site),
            destination_as: network::autonomous_system(destination.site),
            path: self.network.path(source.site, destination.site).routers().to_vec(),
            records,
            sampled_packets,
        }
    }
}

/// The second in which an entry that expired so long after the flow's first packet is received.
fn export_second(start_us: u64, expired_ns: u64, random: &mut Random) -> u64 {
    (start_us * 1_000 + expired_ns + random.below(EXPORT_CYCLE_NS)).div_ceil(SECOND_NS)
}
