//! One switch in the emulator, with hosts that send through it, and a monitor port that all its ports are mirrored to.
//!
//! A run gives the samples, each with the time at which the packet itself had passed the switch, and the [`Truth`]:
//! every packet that passed. All that follows is computed from these two.
//!
//! **When a packet has passed** is the beginning of the slot by which its last byte has left the switch's port, so
//! times of the truth are exact to one slot: 1.23 us at 10 Gbit/s.

use anyhow::Context;
use thalweg_emulator::core::blueprint::Blueprint;
use thalweg_emulator::hosts::tcp::{Algorithm, TcpConfig};
use thalweg_emulator::hosts::{HostConfig, Hosts, Segment, Totals, Transport};
use thalweg_emulator::mirror::MirrorFeed;
use thalweg_emulator::ports::monitor::{Mirrored, Monitor, MonitorTally};
use thalweg_emulator::schemes::list::Scheme;
use thalweg_emulator::ticks::Ticks;
use thalweg_emulator::workloads::patterns::Schedule;
use thalweg_emulator::workloads::random::Random;
use thalweg_emulator::workloads::{FlowStart, UNBOUNDED};
use thalweg_emulator::{Fabric, Fate, Network, Outcome, Packet, Request, Slot, SlotClock, network};
use thalweg_measure::meter::intake::Intake;
use thalweg_network::topology::shapes::rack;
use thalweg_network::{EndpointId, LinkSpec, PortIndex, RouterId, Topology};
use thalweg_wire::parse::Parser;
use thalweg_wire::{BitRate, Bytes, HashSeed, Nanos, Timestamp};

use super::truth::Truth;

/// The only switch.
pub(super) const SWITCH: RouterId = RouterId(0);

/// Flows with this bit in their number are no TCP.
const UDP: u32 = 1 << 27;

/// Flows that begin together do so within this.
const WITHIN: Nanos = Nanos::from_micros(20);

/// Bytes of a full-sized packet on a link.
pub(super) const FULL: u16 = 1_538;

/// Buffer of a monitor port that is as small as it can be: two full-sized packets.
pub(super) const MIN_BUFFER: Bytes = Bytes(2 * FULL as u64);

/// The buffer that the paper's switch gave one congested port at 10 Gbit/s: 3.5 ms (Planck, section 5.1 and figure 8).
pub(super) const PAPER_BUFFER: Bytes = Bytes(4_375_000);

/// Congestion control of flows, and the switch's scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    /// CUBIC over DropTail.
    Cubic,
    /// DCTCP with marking.
    Dctcp,
}

impl Control {
    pub(super) const ALL: [Control; 2] = [Control::Cubic, Control::Dctcp];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Control::Cubic => "CUBIC",
            Control::Dctcp => "DCTCP",
        }
    }

    fn scheme(self) -> Scheme {
        let name = match self {
            Control::Cubic => "droptail",
            Control::Dctcp => "dctcp",
        };
        Scheme::default_of(name).expect("a scheme of this name")
    }

    const fn algorithm(self) -> Algorithm {
        match self {
            Control::Cubic => Algorithm::Cubic,
            Control::Dctcp => Algorithm::Dctcp,
        }
    }
}

/// Packets of one length at a constant rate, without congestion control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Constant {
    /// Rate on the wire.
    pub(super) rate: BitRate,
    /// Bytes per packet on the wire.
    pub(super) length: u16,
}

/// The settings of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rack {
    pub(super) control: Control,
    /// Number of receivers of endless TCP flows; each gets `senders` flows, each from its own host.
    pub(super) receivers: u16,
    pub(super) senders: u16,
    /// Start of the last TCP flow; by default with the others, randomly within the first 20 us.
    pub(super) joins: Option<Timestamp>,
    /// Initial window in segments.
    pub(super) initial_window: u32,
    /// UDP flows, each between its own two hosts.
    pub(super) constant: Vec<Constant>,
    /// Rate of all links and of the monitor port.
    pub(super) rate: BitRate,
    /// Delay of a host before it processes a packet. With 90 us the round trip is about 190 us, as in the paper's
    /// network (section 5.4).
    pub(super) stack_delay: Nanos,
    /// Buffer of the monitor port in bytes.
    pub(super) buffer: Bytes,
    pub(super) duration: Nanos,
    pub(super) seed: u64,
}

impl Default for Rack {
    /// One flow at 10 Gbit/s for 20 ms, the smallest buffer.
    fn default() -> Self {
        Rack {
            control: Control::Cubic,
            receivers: 1,
            senders: 1,
            joins: None,
            initial_window: 10,
            constant: Vec::new(),
            rate: BitRate(10_000_000_000),
            stack_delay: Nanos::from_micros(90),
            buffer: MIN_BUFFER,
            duration: Nanos::from_millis(20),
            seed: 1,
        }
    }
}

/// A packet from the monitor port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// The packet as the collector sees it; its time is that of leaving the monitor port.
    pub(super) packet: thalweg_wire::Packet,
    /// When its host handed it to the network interface.
    pub(super) sent: Timestamp,
    /// When the original packet passed the switch.
    pub(super) passed: Timestamp,
    /// Its flow direction.
    pub(super) pair: Pair,
    /// Bytes on the wire.
    pub(super) length: u16,
}

/// One direction of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Pair {
    pub(super) from: EndpointId,
    pub(super) to: EndpointId,
}

impl Pair {
    pub(super) fn of(packet: &Packet) -> Pair {
        Pair { from: packet.source(), to: packet.destination() }
    }
}

/// The results of a run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) topology: Topology,
    pub(super) clock: SlotClock,
    pub(super) samples: Vec<Sample>,
    pub(super) truth: Truth,
    pub(super) monitor: MonitorTally,
    pub(super) totals: Totals,
}

impl Rack {
    /// Returns the number of hosts: each receiver followed by its senders, then those of constant flows.
    fn hosts(&self) -> u32 {
        let tcp = u32::from(self.receivers) * (1 + u32::from(self.senders));
        tcp + 2 * self.constant.len() as u32
    }

    /// Returns the TCP flows, in the order of receivers.
    pub(super) fn data(&self) -> Vec<Pair> {
        let pairs = (0..self.receivers).flat_map(|receiver| {
            let to = receiver * (1 + self.senders);
            (1..=self.senders).map(move |sender| Pair { from: EndpointId(to + sender), to: EndpointId(to) })
        });
        pairs.collect()
    }

    /// Returns the constant flows.
    pub(super) fn constant_pairs(&self) -> Vec<Pair> {
        let first = self.receivers * (1 + self.senders);
        let pair = |number: u16| Pair {
            from: EndpointId(first + 2 * number + 1),
            to: EndpointId(first + 2 * number),
        };
        (0..self.constant.len() as u16).map(pair).collect()
    }

    /// Returns the start times of TCP flows, in the order of [`data`](Self::data).
    pub(super) fn starts(&self) -> Vec<Timestamp> {
        let mut random = Random::new(self.seed, "starts", 0);
        let mut starts: Vec<Timestamp> =
            self.data().iter().map(|_| Timestamp(random.below(WITHIN.0))).collect();
        if let (Some(last), Some(joins)) = (starts.last_mut(), self.joins) {
            *last = *last + Nanos(joins.0);
        }
        starts
    }

    fn flows(&self) -> Schedule {
        let flow = |(at, Pair { from, to })| FlowStart {
            at,
            source: from,
            destination: to,
            bytes: UNBOUNDED,
            dscp: 0,
        };
        Schedule::new(self.starts().into_iter().zip(self.data()).map(flow).collect())
    }

    /// Runs the emulation.
    pub(super) fn run(&self) -> anyhow::Result<Run> {
        let topology = rack(self.hosts(), LinkSpec { rate: self.rate, ..LinkSpec::default() })?;
        let ports = (0..topology.ports(SWITCH) as u16).map(PortIndex).collect();
        let monitor = [Monitor { router: SWITCH, ports, rate: self.rate, buffer: self.buffer }];
        let blueprint = Blueprint { monitors: &monitor, ..Blueprint::new(&topology, 1_500, self.seed) };
        let clock = blueprint.clock;
        let mut switch = Switch {
            network: network::build(&self.control.scheme(), &blueprint)?,
            constant: self.constant_senders(clock),
            truth: Truth::default(),
            requests: Vec::new(),
            sent: Vec::new(),
        };
        let tcp = TcpConfig {
            algorithm: self.control.algorithm(),
            initial_window: self.initial_window,
            ..TcpConfig::default()
        };
        let config = HostConfig {
            transport: Transport::Tcp(tcp),
            stack_delay: self.stack_delay,
            seed: self.seed,
            ..HostConfig::default()
        };
        let mut hosts = Hosts::new(config, topology.endpoints().len(), clock)?;
        let mut flows = self.flows();
        let mut reader = Reader::new(&topology, clock);
        let mut samples = Vec::new();
        for _ in 0..clock.slots_in(self.duration) {
            hosts.slot(&mut switch, &mut flows);
            reader.read(&mut switch, &hosts, &mut samples);
        }
        let monitor = switch.network.monitor_tally(SWITCH).context("the switch has a monitor port")?;
        let (totals, truth) = (hosts.totals(), switch.truth);
        Ok(Run { topology, clock, samples, truth, monitor, totals })
    }

    fn constant_senders(&self, clock: SlotClock) -> Vec<Sender> {
        let sender = |(constant, pair): (&Constant, Pair)| {
            let slot = f64::from(clock.slot_bytes) * constant.rate.0 as f64 / clock.rate.0 as f64;
            Sender { pair, length: constant.length, bytes_a_slot: slot, credit: 0.0 }
        };
        self.constant.iter().zip(self.constant_pairs()).map(sender).collect()
    }
}

/// A sender at a constant rate.
#[derive(Clone, Copy, Debug)]
struct Sender {
    pair: Pair,
    length: u16,
    bytes_a_slot: f64,
    credit: f64,
}

/// The network as TCP's hosts see it, with constant senders and counting of all packets.
struct Switch {
    network: Box<dyn Network>,
    constant: Vec<Sender>,
    truth: Truth,
    requests: Vec<Request>,
    /// Times at which packets of constant flows were handed to network interfaces, by ID.
    sent: Vec<Timestamp>,
}

impl Switch {
    fn send_constant(&mut self) {
        self.requests.clear();
        let now = self.network.clock().start_of(self.network.now());
        for (number, sender) in self.constant.iter_mut().enumerate() {
            sender.credit += sender.bytes_a_slot;
            while sender.credit >= f64::from(sender.length) {
                sender.credit -= f64::from(sender.length);
                let Pair { from, to } = sender.pair;
                let packet =
                    Packet::new(from, to, UDP | number as u32, self.sent.len() as u32, sender.length);
                self.sent.push(now);
                self.requests.push(Request { packet, remaining: 0 });
            }
        }
        self.network.inject(&self.requests);
    }
}

impl Fabric for Switch {
    fn clock(&self) -> SlotClock {
        self.network.clock()
    }

    fn now(&self) -> Slot {
        self.network.now()
    }

    fn inject(&mut self, requests: &[Request]) {
        self.network.inject(requests);
    }

    fn backlog(&self, endpoint: EndpointId) -> u64 {
        self.network.backlog(endpoint)
    }

    fn advance(&mut self, outcomes: &mut Vec<Outcome>) {
        self.send_constant();
        self.network.advance(outcomes);
        let (clock, now) = (self.clock(), Ticks::start_of(self.now()));
        for Outcome { packet, .. } in outcomes.iter().filter(|outcome| outcome.fate == Fate::Delivered) {
            let arrived = now.before(packet.lag()).time(clock);
            let passed = Timestamp(arrived.0.saturating_sub(LinkSpec::default().delay.0));
            self.truth.add(Pair::of(packet), passed, packet.length());
        }
        // Hosts do not know packets of constant flows.
        outcomes.retain(|outcome| outcome.packet.flow() & UDP == 0);
    }
}

/// Reads and parses the frames of the monitor port, as a collector does.
struct Reader<'a> {
    feed: MirrorFeed<'a>,
    intake: Intake,
    /// The emulator's data of the packets: pair, length, and send time.
    known: Vec<(Pair, u16, Timestamp)>,
    packets: Vec<thalweg_wire::Packet>,
}

impl<'a> Reader<'a> {
    fn new(topology: &'a Topology, clock: SlotClock) -> Self {
        Reader {
            feed: MirrorFeed::new(topology, clock, [SWITCH]),
            intake: Intake::new(Parser::default(), HashSeed::new(0)),
            known: Vec::new(),
            packets: Vec::new(),
        }
    }

    /// Reads the frames that the switch mirrored in the last slot.
    fn read(&mut self, switch: &mut Switch, hosts: &Hosts, samples: &mut Vec<Sample>) {
        let Reader { feed, intake, known, packets } = self;
        let Switch { network, sent: sent_at, .. } = switch;
        feed.collect(&mut **network, |Mirrored { packet, .. }| {
            let segment = match packet.flow() & UDP {
                0 => hosts.segment(packet.id()),
                _ => None,
            };
            let sent = match segment {
                Some(Segment::Data(data)) => data.sent_at,
                Some(Segment::Ack(ack)) => ack.sent_at,
                None => sent_at[packet.id() as usize],
            };
            known.push((Pair::of(packet), packet.length(), sent));
            segment
        });
        feed.deliver(|_, batch| {
            intake.take(&batch, packets);
        });
        let passed = switch.clock().start_of(switch.now());
        let seen = known.drain(..).zip(packets.drain(..));
        samples.extend(seen.map(|((pair, length, sent), packet)| Sample {
            packet,
            sent,
            passed,
            pair,
            length,
        }));
    }
}
