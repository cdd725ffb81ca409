//! Merges the flows of a plan into one trace, packet by packet in order of time.
//!
//! Every active flow has one calendar entry, for its next packet. Each type of future flow has one entry for its next
//! flow, so memory holds active flows only.

use thalweg_wire::capture_file::pcap::Precision;
use thalweg_wire::{FlowKey, IpVersion, Protocol, TcpFlags, Timestamp};

use super::address::Addresses;
use super::connection::{Connection, Segment, Side};
use super::options::{Plan, SynthOptions};
use super::planted::Planted;
use super::population::{Arrival, Background, Population, spread};
use super::schedule::Calendar;
use super::summary::{SynthError, SynthSummary};
use super::truth::{Account, Role};
use crate::random::Random;

/// Events for the next flow of a type. The event of an active flow is its index plus `FIRST_FLOW`.
const NEXT_BACKGROUND: u32 = 0;
const NEXT_PLANTED: u32 = 1;
const NEXT_FLOOD: u32 = 2;
const FIRST_FLOW: u32 = 3;

/// Packets between two calls of the progress function.
const PROGRESS_STEP: u64 = 1 << 16;

/// Receives the packets of a trace and its ground truth.
pub(super) trait Sink {
    /// Writes `segment`, sent at `time`; returns its bytes from the IP header on.
    fn packet(
        &mut self,
        connection: &mut Connection,
        segment: &Segment,
        time: Timestamp,
    ) -> Result<u32, SynthError>;

    /// Writes the totals of direction `key` of flow number `flow`.
    fn row(&mut self, flow: u64, key: &FlowKey, account: &Account) -> Result<(), SynthError>;
}

/// An active flow.
struct Flow {
    /// Its number in order of first packets, from the first packet on.
    number: u64,
    connection: Connection,
    script: Script,
    /// The next packet.
    segment: Segment,
    /// Totals of the directions that may need a row; mostly empty.
    accounts: Vec<Account>,
}

enum Script {
    Background(Background),
    /// With its start.
    Planted(Box<Planted>, u64),
}

impl Script {
    /// Returns the next packet and its time, after one of `ip_length` at `now`.
    #[inline]
    fn next(
        &mut self,
        now: u64,
        ip_length: u32,
        connection: &Connection,
        random: &mut Random,
    ) -> Option<(u64, Segment)> {
        match self {
            Script::Background(background) => {
                let segment = background.next(connection, random)?;
                Some((background.due(now, ip_length, random), segment))
            }
            Script::Planted(planted, start) => {
                let (offset, segment) = planted.next(connection)?;
                Some((*start + offset, segment))
            }
        }
    }
}

/// Generates a trace.
pub(super) struct Generator<'a, S> {
    options: &'a SynthOptions,
    plan: &'a Plan,
    random: Random,
    addresses: Addresses,
    population: Option<Population>,
    /// The next background flow.
    next_background: Option<Arrival>,
    admitted_planted: u64,
    sent_flood_packets: u64,
    calendar: Calendar,
    flows: Vec<Flow>,
    free: Vec<u32>,
    sink: &'a mut S,
    first: Timestamp,
    last: Timestamp,
    summary: SynthSummary,
}

impl<'a, S: Sink> Generator<'a, S> {
    /// Returns a generator at the start of the trace.
    pub(super) fn new(options: &'a SynthOptions, plan: &'a Plan, sink: &'a mut S) -> Generator<'a, S> {
        Generator {
            options,
            plan,
            random: Random::new(options.seed),
            addresses: Addresses::new(options.seed, plan.flows),
            population: Population::new(plan, options.pareto_shape),
            next_background: None,
            admitted_planted: 0,
            sent_flood_packets: 0,
            calendar: Calendar::new(options.packets, plan.duration_ns),
            flows: Vec::new(),
            free: Vec::new(),
            sink,
            first: Timestamp(u64::MAX),
            last: Timestamp::default(),
            summary: SynthSummary::default(),
        }
    }

    /// Generates the whole trace.
    pub(super) fn run(mut self, progress: &mut dyn FnMut(u64)) -> Result<SynthSummary, SynthError> {
        self.begin();
        while let Some((time, event)) = self.calendar.pop() {
            let before = self.summary.packets;
            match event {
                NEXT_BACKGROUND => self.admit_background(),
                NEXT_PLANTED => self.admit_planted(time),
                NEXT_FLOOD => self.send_flood(time)?,
                flow => self.send_next(time, flow - FIRST_FLOW)?,
            }
            if self.summary.packets / PROGRESS_STEP > before / PROGRESS_STEP {
                progress(self.summary.packets);
            }
        }
        progress(self.summary.packets);
        Ok(self.finish())
    }

    fn begin(&mut self) {
        if let Some(population) = &mut self.population {
            for arrival in population.long_lived(&mut self.random) {
                self.add_background(&arrival);
            }
        }
        self.schedule_background();
        self.schedule_planted();
        self.schedule_flood();
    }

    fn finish(mut self) -> SynthSummary {
        assert_eq!(self.summary.packets, self.options.packets, "every flow sends its allotted packets");
        assert_eq!(self.summary.flows, self.plan.flows, "every flow sends packets");
        self.summary.duration = self.last - self.first;
        self.summary
    }

    fn schedule_background(&mut self) {
        let Some(population) = &mut self.population else { return };
        self.next_background = population.next_arrival(&mut self.random);
        if let Some(arrival) = &self.next_background {
            self.calendar.push(arrival.at, NEXT_BACKGROUND);
        }
    }

    fn admit_background(&mut self) {
        if let Some(arrival) = self.next_background.take() {
            self.add_background(&arrival);
        }
        self.schedule_background();
    }

    fn add_background(&mut self, arrival: &Arrival) {
        let Some(population) = &self.population else { return };
        let is_udp = self.random.chance(self.options.udp_share);
        let protocol = if is_udp { Protocol::UDP } else { Protocol::TCP };
        let mut background = population.flow(arrival, protocol, &mut self.random);
        let connection = self.next_connection(protocol);
        let (window, threshold) = (self.plan.window_ns, self.plan.threshold);
        let watched = background.watched_side(window, threshold).into_iter();
        let accounts = watched.map(|side| Account::new(Role::Background, side, window)).collect();
        let first = background.next(&connection, &mut self.random);
        let segment = first.expect("a flow has at least one packet");
        let script = Script::Background(background);
        self.add_flow(arrival.at, Flow { number: 0, connection, script, segment, accounts });
    }

    fn schedule_planted(&mut self) {
        let flows = self.plan.planting.flows();
        if self.admitted_planted < flows {
            let span = self.plan.duration_ns - self.plan.longest_planted_ns;
            let at = spread(self.admitted_planted, flows, span, &mut self.random);
            self.calendar.push(at, NEXT_PLANTED);
        }
    }

    fn admit_planted(&mut self, at: u64) {
        let mut planted = Box::new(self.plan.planting.flow(self.admitted_planted));
        self.admitted_planted += 1;
        let connection = self.next_connection(Protocol::TCP);
        let (sender, window) = (planted.sender, self.plan.window_ns);
        let accounts = vec![
            Account::new(Role::Planted(planted.kind), sender, window),
            Account::new(Role::Acknowledgements, sender.other(), window),
        ];
        let (_, segment) = planted.next(&connection).expect("a planted flow starts with SYN");
        let script = Script::Planted(planted, at);
        self.add_flow(at, Flow { number: 0, connection, script, segment, accounts });
        self.schedule_planted();
    }

    fn next_connection(&mut self, protocol: Protocol) -> Connection {
        let is_v6 = self.random.chance(self.options.ipv6_share);
        let key = self.addresses.next_key(is_v6, protocol, &mut self.random);
        Connection::new(key, &mut self.random)
    }

    fn add_flow(&mut self, at: u64, flow: Flow) {
        let index = match self.free.pop() {
            Some(index) => {
                self.flows[index as usize] = flow;
                index
            }
            None => {
                self.flows.push(flow);
                self.flows.len() as u32 - 1
            }
        };
        self.calendar.push(at, index + FIRST_FLOW);
    }

    fn schedule_flood(&mut self) {
        if self.sent_flood_packets < self.plan.flood_packets {
            let at = spread(
                self.sent_flood_packets,
                self.plan.flood_packets,
                self.plan.duration_ns,
                &mut self.random,
            );
            self.calendar.push(at, NEXT_FLOOD);
        }
    }

    fn send_flood(&mut self, now: u64) -> Result<(), SynthError> {
        self.sent_flood_packets += 1;
        let key = self.addresses.next_flood_key(&mut self.random);
        let mut connection = Connection::new(key, &mut self.random);
        let payload_length = if key.protocol == Protocol::UDP { self.random.octave(10) as u16 } else { 0 };
        let segment = Segment { from: Side::Client, flags: TcpFlags::SYN, payload_length };
        let time = self.stamp(now);
        let ip_length = self.sink.packet(&mut connection, &segment, time)?;
        self.summary.flows += 1;
        self.count(time, ip_length, &key);
        self.schedule_flood();
        Ok(())
    }

    /// Sends the prepared packet of the flow at `index`, and prepares the next.
    #[inline]
    fn send_next(&mut self, now: u64, index: u32) -> Result<(), SynthError> {
        let time = self.stamp(now);
        let flow = &mut self.flows[index as usize];
        let segment = flow.segment;
        if flow.number == 0 {
            self.summary.flows += 1;
            flow.number = self.summary.flows;
        }
        let ip_length = self.sink.packet(&mut flow.connection, &segment, time)?;
        if let Some(account) = flow.accounts.iter_mut().find(|account| account.side == segment.from) {
            account.add(time, ip_length, self.plan.threshold);
        }
        let key = flow.connection.key;
        match flow.script.next(now, ip_length, &flow.connection, &mut self.random) {
            Some((at, segment)) => {
                flow.segment = segment;
                self.calendar.push(at, index + FIRST_FLOW);
            }
            None => self.retire(index)?,
        }
        self.count(time, ip_length, &key);
        Ok(())
    }

    /// Writes the rows of an ended flow and frees its index.
    fn retire(&mut self, index: u32) -> Result<(), SynthError> {
        let flow = &mut self.flows[index as usize];
        for account in std::mem::take(&mut flow.accounts) {
            assert!(account.is_as_planned(), "{account:?} is not as planned");
            if account.has_row(self.plan.threshold) {
                let key = flow.connection.key_from(account.side);
                let summary = &mut self.summary;
                *if account.is_cheetah() { &mut summary.cheetahs } else { &mut summary.near_misses } += 1;
                self.sink.row(flow.number, &key, &account)?;
            }
        }
        self.free.push(index);
        Ok(())
    }

    /// Returns the timestamp in the file for a time of the trace.
    #[inline]
    fn stamp(&self, now: u64) -> Timestamp {
        let time = self.options.start.0 + now;
        match self.options.precision {
            Precision::Nanos => Timestamp(time),
            Precision::Micros => Timestamp(time - time % 1_000),
        }
    }

    #[inline]
    fn count(&mut self, time: Timestamp, ip_length: u32, key: &FlowKey) {
        self.summary.packets += 1;
        self.summary.bytes += u64::from(ip_length);
        self.summary.ipv6_packets += u64::from(key.version() == IpVersion::V6);
        self.first = self.first.min(time);
        self.last = time;
    }
}
