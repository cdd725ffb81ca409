//! Hosts over a small star: deliveries, speed, retransmissions.

use std::collections::VecDeque;

use proptest::prelude::*;
use thalweg_wire::Nanos;

use super::star::Star;
use super::*;

/// Flows by list, in order of time.
#[derive(Default)]
struct Script {
    starts: VecDeque<FlowStart>,
    completed: Vec<(u32, Timestamp)>,
}

impl Workload for Script {
    fn next_start(&self) -> Option<Timestamp> {
        self.starts.front().map(|start| start.at)
    }

    fn start(&mut self) -> Option<FlowStart> {
        self.starts.pop_front()
    }

    fn completed(&mut self, flow: u32, at: Timestamp) {
        self.completed.push((flow, at));
    }
}

fn flow(at: Nanos, source: u16, destination: u16, bytes: u64) -> FlowStart {
    let (source, destination) = (EndpointId(source), EndpointId(destination));
    FlowStart { at: Timestamp(at.0), source, destination, bytes, dscp: 0 }
}

/// A star with hosts and flows.
struct Bench {
    star: Star,
    hosts: Hosts,
    script: Script,
}

impl Bench {
    fn new(config: HostConfig, endpoints: usize, starts: &[FlowStart]) -> Bench {
        let star = Star::new(endpoints);
        let hosts = Hosts::new(config, endpoints, star.clock()).unwrap();
        Bench {
            star,
            hosts,
            script: Script { starts: starts.iter().copied().collect(), ..Script::default() },
        }
    }

    fn tcp(algorithm: Algorithm, endpoints: usize, starts: &[FlowStart]) -> Bench {
        Bench::new(HostConfig::with(Transport::Tcp(TcpConfig::with(algorithm))), endpoints, starts)
    }

    fn slots(&mut self, slots: u64) {
        (0..slots).for_each(|_| self.hosts.slot(&mut self.star, &mut self.script));
    }

    fn run_for(&mut self, span: Nanos) {
        let slots = self.star.clock().slots_in(span);
        self.slots(slots);
        self.hosts.check_invariants();
    }

    /// Runs until nothing is left to do or `span` is over. Returns the completed flows.
    fn run_out(&mut self, span: Nanos) -> Vec<CompletedFlow> {
        let end = self.star.clock().slot_at(Timestamp(span.0));
        while self.star.now() < end
            && (self.script.next_start().is_some()
                || self.hosts.active_flows() > 0
                || self.hosts.totals().in_flight() > 0)
        {
            self.slots(100);
            self.hosts.check_invariants();
        }
        self.hosts.drain_completed().collect()
    }
}

const SECOND: Nanos = Nanos::from_secs(1);
const MSS: u64 = 1448;

#[test]
fn a_flow_without_loss_is_sent_once_and_acknowledged_every_second_segment() {
    for algorithm in Algorithm::ALL {
        let mut bench = Bench::tcp(algorithm, 2, &[flow(Nanos(5000), 0, 1, 1000 * MSS + 1)]);
        let completed = bench.run_out(SECOND);
        let totals = bench.hosts.totals();
        assert_eq!(completed.len(), 1, "{algorithm:?}");
        assert_eq!((totals.data_sent, totals.retransmissions, totals.timeouts), (1001, 0, 0));
        assert_eq!(totals.bytes_delivered, 1000 * MSS + 1);
        // The first alone, then every second.
        assert_eq!(totals.acks_sent, 501);
        let ended = completed[0];
        assert!(ended.start < ended.end && ended.end < ended.acknowledged);
        assert_eq!(bench.script.completed, [(0, ended.end)]);
    }
}

#[test]
fn a_one_segment_flow_takes_the_latency_of_the_path() {
    let mut bench = Bench::tcp(Algorithm::Cubic, 2, &[flow(Nanos(0), 0, 1, 1000)]);
    let completed = bench.run_out(SECOND);
    // Handed over after slot 0; two queues of one slot, each with two slots of wire; nine slots of the stack.
    assert_eq!(bench.star.clock().slot_at(completed[0].end), Slot(1 + 2 * (1 + 2) + 9));
    let round_trip = bench.star.clock().slot_at(completed[0].acknowledged);
    assert_eq!(round_trip, Slot(1 + 2 * (2 * (1 + 2) + 9)));
}

#[test]
fn one_flow_fills_its_link() {
    for algorithm in Algorithm::ALL {
        let mut bench = Bench::tcp(algorithm, 2, &[flow(Nanos(0), 0, 1, u64::MAX)]);
        if algorithm == Algorithm::Dctcp {
            bench.star.marking_threshold = 65;
        }
        bench.run_for(Nanos::from_millis(5));
        let before = bench.hosts.flow(0).unwrap().delivered;
        bench.run_for(Nanos::from_millis(20));
        let goodput = (bench.hosts.flow(0).unwrap().delivered - before) as f64 * 8.0 / 0.020;
        let payload_rate = 10e9 * 1448.0 / 1538.0;
        assert!(goodput > 0.95 * payload_rate, "{algorithm:?}: {goodput:.3e} of {payload_rate:.3e}");
        assert!(goodput < 1.001 * payload_rate, "{algorithm:?}: {goodput:.3e} of {payload_rate:.3e}");
    }
}

/// Two flows from two hosts to a third, over a port of 200 packets: a round trip takes about 270 us, and CUBIC reduces
/// its window every 16 ms. Measured for 300 ms after 150 ms. Fixed input, so the outcome is exact.
#[test]
fn two_flows_share_a_link() {
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Dctcp] {
        let starts = [flow(Nanos(0), 0, 2, u64::MAX), flow(Nanos::from_millis(3), 1, 2, u64::MAX)];
        let mut bench = Bench::tcp(algorithm, 3, &starts);
        bench.star.buffer = 200;
        if algorithm == Algorithm::Dctcp {
            bench.star.marking_threshold = 20;
        }
        bench.run_for(Nanos::from_millis(150));
        let delivered = |bench: &Bench| [0, 1].map(|flow| bench.hosts.flow(flow).unwrap().delivered);
        let before = delivered(&bench);
        bench.run_for(Nanos::from_millis(300));
        let after = delivered(&bench);
        let [one, other] = [0, 1].map(|flow| (after[flow] - before[flow]) as f64 * 8.0 / 0.300);
        let payload_rate = 10e9 * 1448.0 / 1538.0;
        assert!(one + other > 0.95 * payload_rate, "{algorithm:?}: {one:.3e} + {other:.3e}");
        assert!((0.8..1.25).contains(&(one / other)), "{algorithm:?}: {one:.3e}, {other:.3e}");
        assert_eq!(bench.hosts.totals().timeouts, 0, "{algorithm:?}");
    }
}

#[test]
fn dctcp_keeps_the_queue_at_its_threshold_without_loss() {
    let starts: Vec<FlowStart> = (0..4).map(|host| flow(Nanos(0), host, 4, u64::MAX)).collect();
    let mut bench = Bench::tcp(Algorithm::Dctcp, 5, &starts);
    bench.star.marking_threshold = 65;
    bench.run_for(Nanos::from_millis(10));
    bench.star.highest_queue = 0;
    bench.run_for(Nanos::from_millis(20));
    let queue = bench.star.highest_queue;
    assert!((65..130).contains(&queue), "{queue}");
    assert!(bench.hosts.totals().marks > 0);
    assert!(bench.star.dropped.is_empty());
}

#[test]
fn ecn_of_rfc_3168_replaces_losses() {
    let config = TcpConfig { ecn: true, ..TcpConfig::with(Algorithm::NewReno) };
    let starts: Vec<FlowStart> = (0..2).map(|host| flow(Nanos(0), host, 2, u64::MAX)).collect();
    let mut bench = Bench::new(HostConfig::with(Transport::Tcp(config)), 3, &starts);
    bench.star.marking_threshold = 100;
    bench.run_for(Nanos::from_millis(30));
    assert!(bench.star.dropped.is_empty());
    let totals = bench.hosts.totals();
    assert!(totals.marks > 0 && totals.retransmissions == 0);
    assert!(totals.bytes_delivered as f64 * 8.0 / 0.030 > 0.9 * 10e9 * 1448.0 / 1538.0);
}

#[test]
fn only_lost_segments_are_retransmitted() {
    for algorithm in Algorithm::ALL {
        let mut bench = Bench::tcp(algorithm, 2, &[flow(Nanos(0), 0, 1, 500 * MSS)]);
        bench.star.losses = [0, 17, 40, 41, 42, 77, 200, 300].into();
        let completed = bench.run_out(Nanos::from_secs(5));
        let totals = bench.hosts.totals();
        assert_eq!(completed[0].retransmissions, 8, "{algorithm:?}");
        assert_eq!((totals.timeouts, totals.spurious), (0, 0), "{algorithm:?}");
        assert_eq!((totals.bytes_delivered, totals.all_dropped()), (500 * MSS, 8));
    }
}

#[test]
fn a_lost_retransmission_is_detected_without_a_timeout() {
    let mut bench = Bench::tcp(Algorithm::NewReno, 2, &[flow(Nanos(0), 0, 1, 500 * MSS)]);
    bench.star.losses = [20].into();
    let mut sent = 0;
    while bench.hosts.totals().retransmissions == 0 {
        sent = bench.hosts.totals().data_sent;
        bench.slots(1);
    }
    // The first packet of this slot was the retransmission.
    bench.star.losses.insert(sent);
    let completed = bench.run_out(SECOND);
    assert_eq!((completed[0].retransmissions, completed[0].timeouts), (2, 0));
    assert_eq!(bench.hosts.totals().spurious, 0);
}

#[test]
fn a_lost_tail_waits_for_the_timeout() {
    let mut bench = Bench::tcp(Algorithm::Cubic, 2, &[flow(Nanos(0), 0, 1, 10 * MSS)]);
    bench.star.losses = [9].into();
    let completed = bench.run_out(SECOND);
    assert_eq!((completed[0].retransmissions, completed[0].timeouts), (1, 1));
    let milliseconds = completed[0].completion_time().as_secs_f64() * 1e3;
    assert!((200.0..201.0).contains(&milliseconds), "{milliseconds}");
}

#[test]
fn p_fabric_sends_the_shortest_flow_first_and_survives_a_flood() {
    let config = HostConfig::with(Transport::PFabric(PFabricConfig::default()));
    let starts =
        [flow(Nanos(0), 0, 1, 2_000_000), flow(Nanos(0), 0, 1, 100_000), flow(Nanos(0), 0, 1, 20_000)];
    let mut bench = Bench::new(config, 2, &starts);
    let order: Vec<u32> = bench.run_out(SECOND).iter().map(|completed| completed.flow).collect();
    assert_eq!(order, [2, 1, 0]);
    assert_eq!(bench.hosts.totals().spurious, 0);

    let starts: Vec<FlowStart> = (0..20).map(|host| flow(Nanos(0), host, 20, 300_000)).collect();
    let mut bench = Bench::new(config, 21, &starts);
    bench.star.buffer = 20;
    assert_eq!(bench.run_out(SECOND).len(), 20);
    assert!(bench.hosts.totals().timeouts > 0);
    assert_eq!(bench.hosts.totals().bytes_delivered, 20 * 300_000);
}

/// A window of 50 kB is on its way when the timer of the first loss runs out.
#[test]
fn p_fabric_retransmits_only_lost_segments() {
    let config = HostConfig::with(Transport::PFabric(PFabricConfig::default()));
    let mut bench = Bench::new(config, 2, &[flow(Nanos(0), 0, 1, 500 * MSS)]);
    bench.star.losses = [100, 103, 104].into();
    let completed = bench.run_out(SECOND);
    assert_eq!(completed[0].retransmissions, 3);
    assert_eq!(bench.hosts.totals().spurious, 0);
}

#[test]
fn p_fabric_probes_after_five_timeouts_until_an_answer() {
    let config = HostConfig::with(Transport::PFabric(PFabricConfig::default()));
    let mut bench = Bench::new(config, 2, &[flow(Nanos(0), 0, 1, 10 * MSS)]);
    // Ten segments at once, then one at each of four timeouts; the fifth sends a probe, as short as an acknowledgement.
    bench.star.losses = (0..14).collect();
    bench.star.ack_losses = [0, 1].into();
    let completed = bench.run_out(SECOND);
    assert_eq!((completed[0].timeouts, completed[0].retransmissions), (7, 14));
    assert_eq!(bench.hosts.totals().all_dropped(), 16);
}

#[test]
fn invalid_flows_are_refused_and_counted() {
    let good = flow(Nanos(0), 0, 1, 10);
    let starts = [
        flow(Nanos(0), 0, 0, 10),
        flow(Nanos(0), 0, 9, 10),
        flow(Nanos(0), 0, 1, 0),
        FlowStart { dscp: 64, ..good },
        good,
    ];
    let mut bench = Bench::tcp(Algorithm::Cubic, 2, &starts);
    let completed = bench.run_out(SECOND);
    assert_eq!((bench.hosts.totals().flows_refused, completed[0].flow), (4, 4));
}

#[test]
fn a_segment_is_readable_until_many_others_are_freed() {
    let start = FlowStart { dscp: 10, ..flow(Nanos(0), 0, 1, 3 * MSS) };
    let transport = Transport::Tcp(TcpConfig::with(Algorithm::Dctcp));
    let config = HostConfig { segment_history: 10, ..HostConfig::with(transport) };
    let mut bench = Bench::new(config, 2, &[start]);
    bench.star.losses = [1].into();
    bench.slots(100);
    let dropped = bench.star.dropped[0];
    assert_eq!((dropped.dscp(), dropped.ecn(), dropped.length()), (10, Ecn::Capable0, 1538));
    let Some(Segment::Data(data)) = bench.hosts.segment(dropped.id()) else { panic!("not data") };
    assert_eq!((data.sequence, data.length), (MSS, 1448));
}

#[test]
fn queued_packets_keep_the_old_address() {
    let mut bench = Bench::tcp(Algorithm::Cubic, 3, &[flow(Nanos(0), 0, 1, 2000 * MSS)]);
    bench.slots(300);
    let (here, there, third) = (EndpointId(0), EndpointId(1), EndpointId(2));
    assert_eq!(bench.hosts.address(here, there), 0, "the base address, unless told");
    bench.hosts.set_address(here, there, 3);
    let told = |hosts: &Hosts, source, destination| hosts.address(source, destination);
    assert_eq!(told(&bench.hosts, here, there), 3);
    assert_eq!((told(&bench.hosts, there, here), told(&bench.hosts, here, third)), (0, 0), "nobody else is");
    // Lost packets can be inspected: the last before the loss, the first after it, and an acknowledgement.
    let sent = bench.hosts.totals().data_sent;
    bench.star.losses = [sent - 1, sent].into();
    bench.star.ack_losses = [bench.hosts.totals().acks_sent + 10].into();
    assert_eq!(bench.run_out(SECOND).len(), 1);
    let addresses = bench.star.dropped.iter().map(|packet| (packet.source(), packet.address()));
    let mut addresses: Vec<_> = addresses.collect();
    addresses.sort();
    assert_eq!(addresses, [(here, 0), (here, 3), (there, 0)]);
}

#[test]
fn the_last_address_applies() {
    let mut bench = Bench::tcp(Algorithm::Cubic, 2, &[flow(Nanos(0), 0, 1, 10 * MSS)]);
    bench.star.losses = [0].into();
    for address in [2, 1] {
        bench.hosts.set_address(EndpointId(0), EndpointId(1), address);
    }
    bench.run_out(SECOND);
    assert_eq!(bench.star.dropped[0].address(), 1);
    bench.hosts.set_address(EndpointId(0), EndpointId(1), 0);
    assert_eq!(bench.hosts.address(EndpointId(0), EndpointId(1)), 0);
}

#[test]
#[should_panic(expected = "there are such endpoints")]
fn set_address_panics_for_an_unknown_host() {
    let mut bench = Bench::tcp(Algorithm::Cubic, 2, &[]);
    bench.hosts.set_address(EndpointId(0), EndpointId(2), 1);
}

#[test]
fn same_seed_gives_identical_runs() {
    let run = || {
        let starts: Vec<FlowStart> = (0..60u16)
            .map(|n| flow(Nanos::from_micros(10 * u64::from(n)), n % 7, 7, 20_000 * (1 + u64::from(n % 9))))
            .collect();
        let mut bench = Bench::tcp(Algorithm::Cubic, 8, &starts);
        bench.star.buffer = 30;
        (bench.run_out(Nanos::from_secs(20)), bench.hosts.totals())
    };
    let (completed, totals) = run();
    assert_eq!(completed.len(), 60);
    assert!(totals.retransmissions > 0);
    assert_eq!((completed, totals), run());
}

fn algorithms() -> impl Strategy<Value = Algorithm> {
    prop::sample::select(Algorithm::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// For any losses of data or acknowledgements: every byte reaches the application once and in order (the receiver
    /// counts it when it is next), and retransmissions do not exceed what the losses explain.
    #[test]
    fn everything_arrives_for_any_losses(
        algorithm in algorithms(),
        bytes in 1u64..300_000,
        losses in prop::collection::btree_set(0u64..250, 0..60),
        ack_losses in prop::collection::btree_set(0u64..120, 0..20),
    ) {
        let mut config = TcpConfig::with(algorithm);
        config.rto.min = Nanos::from_millis(1);
        config.rto.initial = Nanos::from_millis(1);
        let mut bench = Bench::new(HostConfig::with(Transport::Tcp(config)), 2, &[flow(Nanos(0), 0, 1, bytes)]);
        (bench.star.losses, bench.star.ack_losses) = (losses.clone(), ack_losses.clone());
        let completed = bench.run_out(Nanos::from_secs(300));
        prop_assert_eq!(completed.len(), 1);
        let totals = bench.hosts.totals();
        prop_assert_eq!(totals.bytes_delivered, bytes);
        if losses.is_empty() && ack_losses.is_empty() {
            prop_assert_eq!(totals.retransmissions, 0);
        }
        if totals.timeouts == 0 {
            let lost = bench.star.dropped.len() as u64;
            prop_assert!(totals.retransmissions <= lost);
        }
    }
}
