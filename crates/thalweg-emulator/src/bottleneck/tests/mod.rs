mod oracle;

use proptest::prelude::*;
use thalweg_network::topology::shapes::rack;
use thalweg_network::topology::{LinkSpec, Topology};
use thalweg_network::{EndpointId, PortIndex, RouterId};
use thalweg_wire::{BitRate, Nanos};

use super::SECOND_PS;
use super::lane::{Lane, NoFlow, PortFlow};
use super::port::{Origin, Port, Queue};
use super::round_flow::RoundFlow;
use super::setup::{LossRow, LossTable, Setup, SetupConfig, SetupError};
use super::tcp_flow::TcpFlow;
use crate::core::blueprint::Blueprint;
use crate::hosts::{Algorithm, HostConfig, Hosts, TcpConfig, Transport};
use crate::network::build;
use crate::outcome::{Fate, Request};
use crate::packet::Packet;
use crate::schemes::Scheme;
use crate::schemes::drop_tail::DropTailConfig;
use crate::schemes::scavenger::{LOWER_EFFORT, ScavengerConfig, scavenger};
use crate::schemes::tests::harness::{Bench, CLOCK, request};
use crate::workloads::burst_process::{Arrival, BurstPackets, BurstProcess, PACKET_BYTES, Rounding};
use crate::workloads::patterns::Schedule;
use crate::workloads::{FlowStart, UNBOUNDED};

const GIGABIT: BitRate = BitRate(1_000_000_000);
/// The time of a full-size packet at 1 Gbit/s.
const SPAN_PS: u64 = 12_000_000;

fn config(primary_packets: u64, scavenger_packets: u64, scavenger_share: f64) -> ScavengerConfig {
    let bytes = |packets| packets * u64::from(PACKET_BYTES);
    ScavengerConfig {
        primary_buffer: bytes(primary_packets),
        scavenger_buffer: bytes(scavenger_packets),
        scavenger_share,
    }
}

/// Full-size packets, evenly spaced.
fn evenly(count: u64, gap_ps: u64) -> Vec<Arrival> {
    (0..count).map(|number| Arrival { at_ps: number * gap_ps, length: PACKET_BYTES }).collect()
}

fn background(seed: u64, bursts_per_second: f64, seconds: u64) -> Vec<Arrival> {
    let process = BurstProcess::of_dissertation(bursts_per_second, BitRate(200_000_000));
    let packets = BurstPackets::new(&process, seed, Rounding::Up).unwrap();
    packets.take_while(|packet| packet.at_ps < seconds * SECOND_PS).collect()
}

/// D/D/1/B: arrivals at 1.25 times the port's rate. The queue fills up and stays full after each arrival, so everything
/// that was neither started before the last arrival nor fits is lost.
#[test]
fn loss_of_a_constant_overload_has_its_closed_form() {
    let (count, buffer, gap_ps) = (10_000, 100, SPAN_PS * 4 / 5);
    let mut lane = Lane::new(Port::new(GIGABIT, &config(buffer, 2, 0.0)).unwrap(), NoFlow, Queue::Primary);
    lane.run(&evenly(count, gap_ps));
    let started = ((count - 1) * gap_ps).div_ceil(SPAN_PS);
    let tally = lane.tally(Origin::Background);
    assert_eq!((tally.sent, tally.dropped), (started, count - started - buffer));
    lane.check_invariants();
}

#[test]
fn a_port_that_keeps_up_loses_nothing() {
    let mut lane = Lane::new(Port::new(GIGABIT, &config(2, 2, 0.0)).unwrap(), NoFlow, Queue::Primary);
    lane.run(&evenly(10_000, SPAN_PS));
    assert_eq!(lane.tally(Origin::Background).dropped, 0);
}

/// A flow that sends at a constant rate and ignores losses.
struct Constant {
    gap_ps: u64,
    next_ps: u64,
}

impl PortFlow for Constant {
    fn next_ps(&self) -> u64 {
        self.next_ps
    }

    fn reaction_ps(&self) -> u64 {
        u64::MAX
    }

    fn act(&mut self, now_ps: u64, _primary_bytes: impl FnOnce() -> u64) -> bool {
        self.next_ps = now_ps + self.gap_ps;
        true
    }

    fn was_queued(&mut self, _queued: bool) {}

    fn left(&mut self, _at_ps: u64) {}
}

/// 500 Mbit/s of primary traffic and 800 of a flow on 1 Gbit/s, in the same queue, with strict priority, and with a share
/// of 0.6.
#[test]
fn isolation_protects_the_primary_traffic() {
    let rates = |queue, share| {
        let port = Port::new(GIGABIT, &config(100, 100, share)).unwrap();
        let mut lane = Lane::new(port, Constant { gap_ps: SPAN_PS * 5 / 4, next_ps: 0 }, queue);
        lane.run(&evenly(100_000, 2 * SPAN_PS));
        lane.check_invariants();
        let seconds = 100_000.0 * 2.0 * SPAN_PS as f64 / SECOND_PS as f64;
        let bps = |origin| lane.tally(origin).sent as f64 * 12_000.0 / seconds / 1e6;
        [bps(Origin::Background), bps(Origin::Flow)].map(f64::round)
    };
    let [background, flow] = rates(Queue::Primary, 0.0);
    assert!(background < 480.0 && background + flow == 1_000.0, "{background} {flow}");
    assert_eq!(rates(Queue::Scavenger, 0.0), [500.0, 500.0]);
    assert_eq!(rates(Queue::Scavenger, 0.6), [400.0, 600.0]);
    assert_eq!(rates(Queue::Scavenger, 0.4), [500.0, 500.0], "what the primary leaves is borrowed");
}

proptest! {
    /// Any packets, in both queues, whose lengths both count exactly: a router of the emulator and the port queue and
    /// drop the same packets, and start to send the same number from each queue in each slot.
    #[test]
    fn port_agrees_with_a_router_packet_by_packet(
        share in 0.0f64..=1.0,
        slots in prop::collection::vec(prop::collection::vec((any::<bool>(), 1u16..=4), 0..5), 1..200),
    ) {
        let config = config(6, 4, share);
        let mut bench = Bench::new(1, |route, ports| scavenger(route, ports, &config));
        let mut port = Port::new(CLOCK.rate, &config).unwrap();
        let slot_ps = 1_200_000;
        let (mut id, mut dropped) = (0, Vec::new());
        for (number, packets) in (0u64..).zip(&slots) {
            port.advance(number * slot_ps, |_| ());
            for &(is_scavenger, quarters) in packets {
                let length = 375 * quarters;
                let mut request = request(0, 0, id, length);
                request.packet = request.packet.with_traffic_class((u8::from(is_scavenger) * LOWER_EFFORT) << 2);
                bench.arrive([request]);
                let (queue, origin) = match is_scavenger {
                    true => (Queue::Scavenger, Origin::Flow),
                    false => (Queue::Primary, Origin::Background),
                };
                if !port.arrive(number * slot_ps, queue, origin, length) {
                    dropped.push(id);
                }
                id += 1;
            }
            let before = [Origin::Background, Origin::Flow].map(|origin| port.tally(origin).sent);
            port.advance((number + 1) * slot_ps, |_| ());
            let after = [Origin::Background, Origin::Flow].map(|origin| port.tally(origin).sent);
            let sent = bench.step_one();
            let of_scavenger = sent.iter().filter(|packet| packet.dscp() == LOWER_EFFORT).count() as u64;
            let expected = [sent.len() as u64 - of_scavenger, of_scavenger];
            prop_assert_eq!([after[0] - before[0], after[1] - before[1]], expected, "slot {}", number);
        }
        let by_router: Vec<u32> = bench.dropped.iter().map(|dropped| dropped.packet.id()).collect();
        prop_assert_eq!(dropped, by_router);
        port.check_invariants();
    }
}

/// Six senders of burst processes, three of them in the scavenger queue, to one receiver through a whole network: the
/// same packets are lost as at the port. Of those that arrive at a queue in the same slot, the network chooses the loser
/// at random, so packets are identified by the slot in which they were sent and by their queue.
#[test]
fn port_agrees_with_a_network_packet_by_packet() {
    let length = 1_538;
    let topology = rack(7, LinkSpec { rate: GIGABIT, delay: Nanos::ZERO, ..LinkSpec::default() }).unwrap();
    let buffers =
        ScavengerConfig { primary_buffer: 40 * 1_538, scavenger_buffer: 20 * 1_538, scavenger_share: 0.2 };
    let blueprint = Blueprint::new(&topology, 1_500, 1);
    let mut network = build(&Scheme::Scavenger(buffers), &blueprint).unwrap();
    let mut port = Port::new(GIGABIT, &buffers).unwrap();
    let slot_ps = 8 * u64::from(length) * 1_000;
    let mut senders: Vec<_> = (1..=6u16)
        .map(|source| {
            let process = BurstProcess::of_dissertation(20.0, BitRate(200_000_000));
            (source, BurstPackets::new(&process, u64::from(source), Rounding::Up).unwrap().peekable())
        })
        .collect();
    let (mut sent, mut outcomes) = (Vec::new(), Vec::new());
    let (mut lost, mut lost_in_network) = (Vec::new(), Vec::new());
    for slot in 0..100_000u64 {
        port.advance(slot * slot_ps, |_| ());
        let mut requests = Vec::new();
        for (source, packets) in &mut senders {
            // At most one packet in a slot, so that none waits at its interface.
            if packets.next_if(|packet| packet.at_ps < slot * slot_ps).is_none() {
                continue;
            }
            let is_scavenger = *source > 3;
            let id = sent.len() as u32;
            sent.push((slot, is_scavenger));
            let packet = Packet::new(EndpointId(*source), EndpointId(0), u32::from(*source), id, length)
                .with_traffic_class((u8::from(is_scavenger) * LOWER_EFFORT) << 2);
            requests.push(Request { packet, remaining: 0 });
            let (queue, origin) = match is_scavenger {
                true => (Queue::Scavenger, Origin::Flow),
                false => (Queue::Primary, Origin::Background),
            };
            if !port.arrive(slot * slot_ps, queue, origin, length) {
                lost.push((slot, is_scavenger));
            }
        }
        network.inject(&requests);
        network.advance(&mut outcomes);
        let dropped = outcomes.drain(..).filter(|outcome| matches!(outcome.fate, Fate::Dropped(..)));
        lost_in_network.extend(dropped.map(|outcome| sent[outcome.packet.id() as usize]));
    }
    // The last packets are under way for a slot.
    lost.retain(|lost| lost.0 < 99_990);
    lost_in_network.retain(|lost| lost.0 < 99_990);
    lost.sort_unstable();
    lost_in_network.sort_unstable();
    assert!(lost.len() > 1_000, "{} of {}", lost.len(), sent.len());
    let differs = lost.iter().zip(&lost_in_network).position(|(one, other)| one != other);
    assert!(differs.is_none() && lost.len() == lost_in_network.len(), "at {differs:?}");
    port.check_invariants();
}

#[test]
fn flow_alone_has_its_rate_and_no_loss() {
    let port = Port::new(GIGABIT, &config(3_333, 3_333, 0.0)).unwrap();
    let rate = BitRate(300_000_000);
    let mut lane = Lane::new(port, TcpFlow::new(rate, Nanos::from_millis(100)), Queue::Primary);
    lane.run_until(2 * SECOND_PS);
    let before = lane.flow().delivered();
    lane.run_until(12 * SECOND_PS);
    let goodput = (lane.flow().delivered() - before) as f64 * 8.0 / 10.0;
    assert!((goodput / (300e6 * 1_448.0 / 1_500.0) - 1.0).abs() < 1e-3, "{goodput}");
    assert_eq!(lane.tally(Origin::Flow).dropped, 0);
    lane.check_invariants();
    lane.flow().sender().check_invariants();
}

/// The port never runs ahead of the flow: whenever a lane stops meanwhile, the result is the same.
#[test]
fn results_do_not_depend_on_when_a_lane_stops() {
    let packets = background(3, 10.0, 20);
    let run = |chunk: usize, stops: bool| {
        let port = Port::new(GIGABIT, &config(500, 500, 0.0)).unwrap();
        let flow = TcpFlow::new(BitRate(900_000_000), Nanos::from_millis(10));
        let mut lane = Lane::new(port, flow, Queue::Primary);
        for chunk in packets.chunks(chunk) {
            if stops {
                // At times of their own, most of them between two packets, some of them in the past.
                lane.run_until(chunk[0].at_ps - chunk[0].at_ps % 7_000_001);
            }
            lane.run(chunk);
        }
        lane.check_invariants();
        (lane.tally(Origin::Background), lane.tally(Origin::Flow), lane.flow().delivered())
    };
    let whole = run(usize::MAX, false);
    assert!(whole.0.dropped > 0 && whole.1.dropped > 0, "{whole:?}");
    for (chunk, stops) in [(1, false), (1_000, false), (1, true), (10, true)] {
        assert_eq!(run(chunk, stops), whole, "{chunk} {stops}");
    }
}

/// The whole network with a host's TCP, and the flow at a port alone: one link of half the sender's rate with a buffer
/// of 100 packets, round trips of 10 ms, 20 s. Slots, host stacks and framing differ a little, so goodput and losses do
/// as well: 1 % and a fifth.
#[test]
fn tcp_at_a_port_behaves_as_in_a_network() {
    let seconds = 20;
    let text = "[[router]]\nname = \"s\"\n[[endpoint]]\nname = \"a\"\nrouter = \"s\"\nrate = \"1gbps\"\ndelay = \"2500us\"\n\
                [[endpoint]]\nname = \"b\"\nrouter = \"s\"\nrate = \"500mbps\"\ndelay = \"2500us\"\n";
    let topology = Topology::from_toml(text, "test").unwrap();
    let blueprint = Blueprint::new(&topology, 1_500, 1);
    let clock = blueprint.clock;
    let mut network = build(&Scheme::DropTail(DropTailConfig { buffer: 100 }), &blueprint).unwrap();
    let tcp = TcpConfig::with(Algorithm::HTcp);
    let hosts = HostConfig { receive_window: 1 << 30, ..HostConfig::with(Transport::Tcp(tcp)) };
    let mut hosts = Hosts::new(hosts, 2, clock).unwrap();
    let flow = FlowStart {
        at: thalweg_wire::Timestamp(0),
        source: EndpointId(0),
        destination: EndpointId(1),
        bytes: UNBOUNDED,
        dscp: 0,
    };
    let mut flows = Schedule::new(vec![flow]);
    for _ in 0..clock.slots_in(Nanos::from_secs(seconds)) {
        hosts.slot(network.as_mut(), &mut flows);
    }
    let totals = hosts.totals();
    let port = Port::new(BitRate(500_000_000), &config(100, 2, 0.0)).unwrap();
    let mut lane = Lane::new(port, TcpFlow::new(GIGABIT, Nanos::from_millis(10)), Queue::Primary);
    lane.run_until(seconds * SECOND_PS);
    let dropped = network.port_tally(RouterId(0), PortIndex(1)).verdicts.drops() as f64;
    let goodput = [totals.bytes_delivered as f64 * 1_538.0 / 1_500.0, lane.flow().delivered() as f64];
    let drops = [dropped, lane.tally(Origin::Flow).dropped as f64];
    assert!((goodput[0] / goodput[1] - 1.0).abs() < 0.01, "{goodput:?} {drops:?}");
    assert!(drops[1] > 50.0 && (drops[0] / drops[1] - 1.0).abs() < 0.2, "{goodput:?} {drops:?}");
}

#[test]
fn setup_finds_more_loss_with_faster_flows() {
    let config = SetupConfig {
        port_rate: GIGABIT,
        buffer: 5_000_000,
        rates: [300, 600, 900].map(|rate| BitRate(rate * 1_000_000)).to_vec(),
        round_trips: vec![Nanos::from_millis(10), Nanos::from_millis(100)],
        window: Nanos::from_millis(100),
    };
    let run = || {
        let mut setup = Setup::new(&config, |rate, time| RoundFlow::new(rate, time, GIGABIT)).unwrap();
        background(1, 15.0, 60).chunks(1_000).for_each(|packets| setup.replay(packets).unwrap());
        setup.table(1.0)
    };
    let table = run();
    assert_eq!(table.rows.len(), 6);
    for rows in table.rows.chunks(3) {
        assert!(rows[0].loss() < rows[1].loss() && rows[1].loss() < rows[2].loss(), "{rows:?}");
    }
    assert!((table.mean_rate.0 as f64 / 200e6 - 1.0).abs() < 0.2 && table.burstiness > 0.4, "{table:?}");
    assert_eq!(run(), table, "nothing is random");
    let background_alone = table.rows[0].offered;
    assert!(table.rows.iter().all(|row| row.offered == background_alone));
}

/// Stretches of one second, of which every fourth is replayed: the whole lies within three standard errors, which a normal deviate
/// exceeds once in 370. The seeds are fixed.
#[test]
fn the_error_of_a_sample_covers_the_whole() {
    let config = SetupConfig {
        port_rate: GIGABIT,
        buffer: 1_000_000,
        rates: vec![BitRate(800_000_000)],
        round_trips: vec![Nanos::from_millis(10)],
        window: Nanos::from_millis(100),
    };
    let new = || Setup::new(&config, |_, _| NoFlow).unwrap();
    for seed in 1..=5 {
        let mut packets = background(seed, 3.0, 120);
        // Without a flow, a quarter of the link shows the same losses sooner.
        packets.iter_mut().for_each(|packet| packet.length *= 4);
        let (mut whole, mut sample) = (new(), new());
        whole.replay(&packets).unwrap();
        for stretch in (0..120).step_by(4) {
            let within = |packet: &&Arrival| packet.at_ps / SECOND_PS == stretch;
            let shifted = |packet: &Arrival| Arrival {
                at_ps: packet.at_ps - (stretch - stretch / 4) * SECOND_PS,
                length: packet.length,
            };
            let packets: Vec<Arrival> = packets.iter().filter(within).map(shifted).collect();
            sample.replay(&packets).unwrap();
            sample.end_stretch();
        }
        let (whole, sample) = (whole.table(1.0).rows[0], sample.table(0.25).rows[0]);
        assert!(whole.error == 0.0 && sample.error > 0.0 && whole.loss() > 0.0, "{whole:?} {sample:?}");
        let deviation = (sample.loss() - whole.loss()) / sample.error;
        assert!(deviation.abs() < 3.0, "{deviation} {whole:?} {sample:?}");
    }
}

#[test]
fn thresholds_are_chosen_by_the_longest_round_trip() {
    let row = |rate, millis| LossRow {
        rate: BitRate(rate),
        round_trip: Nanos::from_millis(millis),
        offered: 1_000,
        dropped: 1,
        error: 0.0,
    };
    let rows = vec![row(1, 10), row(2, 10), row(1, 100), row(2, 100)];
    let table = LossTable { mean_rate: BitRate(1), burstiness: 1.0, seconds: 1.0, rows };
    assert_eq!(table.of_longest_round_trip().collect::<Vec<_>>(), [&row(1, 100), &row(2, 100)]);
}

#[test]
fn a_setup_refuses_packets_out_of_order_and_missing_rates() {
    let config = SetupConfig {
        port_rate: GIGABIT,
        buffer: 5_000_000,
        rates: vec![BitRate(1_000_000)],
        round_trips: vec![Nanos::from_millis(10)],
        window: Nanos::from_millis(100),
    };
    let mut setup = Setup::new(&config, |_, _| NoFlow).unwrap();
    let packets = [5, 4].map(|at_ps| Arrival { at_ps, length: 64 });
    assert_eq!(setup.replay(&packets), Err(SetupError::Order { at_ps: 4, last_ps: 5 }));
    assert_eq!(setup.table(1.0).rows[0].offered, 0);
    let without = SetupConfig { rates: Vec::new(), ..config };
    assert_eq!(Setup::new(&without, |_, _| NoFlow).err(), Some(SetupError::Rates));
}
