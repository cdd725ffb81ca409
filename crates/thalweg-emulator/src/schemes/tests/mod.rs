//! Properties of all schemes. Properties of one are in its own tests.

mod classes;
pub(crate) mod harness;

use std::collections::HashMap;

use proptest::prelude::*;
use thalweg_network::PortIndex;

use self::harness::{Bench, request};
use super::{SCHEMES, Scheme, SchemeError};
use crate::outcome::Request;
use crate::packet::{Ecn, Packet};
use crate::router::Router;
use crate::schemes::{dctcp, drop_tail, drr, fq_codel, hull, p_fabric, pie, priority, red, scavenger};

const PORTS: u16 = 3;

/// One slot: packets arrive, and the link of a port may go down.
type Slot = (Vec<Request>, Option<u16>);

/// Six flows to three ports; half of them use ECN, and each has its own code point.
fn arrivals() -> impl Strategy<Value = Vec<Slot>> {
    let packet = (0..PORTS, 0u32..6, prop_oneof![Just(64u16), Just(1_500), 64u16..9_000], 0u32..100_000);
    let slot = (prop::collection::vec(packet, 0..12), prop::option::weighted(0.05, 0..PORTS));
    prop::collection::vec(slot, 1..60).prop_map(|slots| {
        let mut id = 0;
        let mut number = |(port, flow, length, remaining)| {
            id += 1;
            let ecn = if flow % 2 == 0 { Ecn::Capable0 } else { Ecn::NotCapable };
            let request = request(port, flow, id, length);
            let packet = request.packet.with_traffic_class((flow as u8) << 2 | ecn as u8);
            Request { packet, remaining }
        };
        slots
            .into_iter()
            .map(|(packets, down)| (packets.into_iter().map(&mut number).collect(), down))
            .collect()
    })
}

/// The fate of all packets, collected slot by slot.
#[derive(Default)]
struct Ledger {
    arrived: usize,
    sent: Vec<Packet>,
    /// The id sent last, by port and flow.
    last: HashMap<(usize, u32), u32>,
}

impl Ledger {
    fn enter(&mut self, sent: Vec<Vec<Packet>>) {
        for (port, packets) in sent.into_iter().enumerate() {
            for packet in packets {
                assert_eq!(usize::from(packet.destination().0), port, "sent by its own port");
                let last = self.last.insert((port, packet.flow()), packet.id());
                assert!(last < Some(packet.id()), "a flow's packets leave in the order in which they came");
                self.sent.push(packet);
            }
        }
    }
}

/// Runs a scheme with small buffers over `slots`, and checks the properties of all schemes.
fn keeps_the_books<R: Router>(mut bench: Bench<R>, slots: &[Slot]) {
    let mut ledger = Ledger::default();
    for (requests, down) in slots {
        ledger.arrived += requests.len();
        bench.arrive(requests.iter().copied());
        if let &Some(down) = down {
            bench.with_context(|router, context| router.flush(PortIndex(down), context));
            assert_eq!(bench.router.backlog(PortIndex(down)), Default::default(), "a link that is down");
        }
        let sent = bench.step();
        ledger.enter(sent);
        let known = ledger.sent.len() + bench.dropped.len() + bench.waiting() as usize;
        assert_eq!(known, ledger.arrived, "arrived = sent + dropped + waiting");
    }
    let sent = bench.drain();
    ledger.enter(sent);
    for port in 0..PORTS {
        assert_eq!(
            bench.router.backlog(PortIndex(port)),
            Default::default(),
            "nothing left, nor bytes of it"
        );
    }
    let mut gone = ledger.sent;
    gone.extend(bench.dropped.iter().map(|dropped| dropped.packet));
    gone.sort_unstable_by_key(Packet::id);
    let ids: Vec<u32> = gone.iter().map(Packet::id).collect();
    assert_eq!(ids, (1..=ledger.arrived as u32).collect::<Vec<_>>(), "each once");
    gone.retain(|packet| packet.ecn() == Ecn::Experienced);
    assert!(gone.iter().all(|packet| packet.flow() % 2 == 0), "only who takes part is marked");
    gone.retain(|packet| packet.destination().0 == 0);
    assert_eq!(gone.len() as u64, bench.marked(), "marks are counted");
}

proptest! {
    #[test]
    fn every_scheme_sends_drops_or_keeps_each_packet_once_and_flows_in_order(slots in arrivals()) {
        macro_rules! check {
            ($build:path, $config:expr) => {
                keeps_the_books(Bench::new(PORTS.into(), |route, ports| $build(route, ports, &$config)), &slots)
            };
        }
        check!(drop_tail::drop_tail, drop_tail::DropTailConfig { buffer: 9 });
        for ecn in [false, true] {
            let (min_threshold, max_threshold) = (1, 5);
            let config = red::RedConfig {
                min_threshold, max_threshold, max_probability: 0.5, weight: 1, gentle: ecn, ecn, buffer: 8,
            };
            check!(red::red, config);
        }
        check!(dctcp::dctcp, dctcp::DctcpConfig { threshold: 2, buffer: 9 });
        check!(priority::priority, priority::PriorityConfig { queues: 4, buffer: 5 });
        let (primary_buffer, scavenger_buffer) = (9_000, 4_000);
        for scavenger_share in [0.0, 0.3] {
            let config = scavenger::ScavengerConfig { primary_buffer, scavenger_buffer, scavenger_share };
            check!(scavenger::scavenger, config);
        }
        check!(drr::drr, drr::DrrConfig { queues: 5, quantum: 1_500, buffer: 5 });
        check!(hull::hull, hull::HullConfig { gamma: 0.9, threshold: 2_000, buffer: 9 });
        check!(p_fabric::p_fabric, p_fabric::PFabricConfig { buffer: 7 });
        let times = |slots: u64| thalweg_wire::Nanos(slots * 1_200);
        let config = pie::PieConfig {
            target: times(2), update: times(3), alpha: 1e5, beta: 1e6, max_burst: times(2), ecn: true,
            ..Default::default()
        };
        check!(pie::pie, config);
        let config = fq_codel::FqCodelConfig {
            flows: 4, quantum: 300, target: times(2), interval: times(6), buffer: 20, ..Default::default()
        };
        check!(fq_codel::fq_codel, config);
    }
}

#[test]
fn listed_schemes_have_valid_defaults() {
    for listed in SCHEMES {
        let scheme = Scheme::default_of(listed.name).unwrap_or_else(|| panic!("{} is listed", listed.name));
        assert_eq!(scheme.name(), listed.name);
        assert_eq!(scheme.validate(), Ok(()));
        assert!(listed.summary.len() <= 60, "{} fits its line", listed.name);
    }
    assert_eq!(Scheme::default_of("wfq"), None);
}

#[test]
fn a_setting_out_of_range_is_named_with_its_range() {
    let field = |scheme: Scheme| match scheme.validate() {
        Err(SchemeError::Setting { field, .. }) => field,
        Ok(()) => "none",
    };
    use Scheme::{Dctcp, DropTail, Drr, FqCodel, Hull, PFabric, Pie, Priority, Red, Scavenger};
    assert_eq!(field(DropTail(drop_tail::DropTailConfig { buffer: 0 })), "buffer");
    assert_eq!(field(Red(red::RedConfig { min_threshold: 300, ..Default::default() })), "min_threshold");
    assert_eq!(field(Red(red::RedConfig { max_threshold: 1_025, ..Default::default() })), "max_threshold");
    assert_eq!(
        field(Red(red::RedConfig { max_probability: f64::NAN, ..Default::default() })),
        "max_probability"
    );
    assert_eq!(field(Red(red::RedConfig { weight: 17, ..Default::default() })), "weight");
    assert_eq!(field(Dctcp(dctcp::DctcpConfig { threshold: 9, buffer: 9 })), "threshold");
    assert_eq!(field(Priority(priority::PriorityConfig { queues: 65, ..Default::default() })), "queues");
    let config = scavenger::ScavengerConfig { scavenger_buffer: 9, ..Default::default() };
    assert_eq!(field(Scavenger(config)), "scavenger_buffer");
    let config = scavenger::ScavengerConfig { scavenger_share: 1.1, ..Default::default() };
    assert_eq!(field(Scavenger(config)), "scavenger_share");
    assert_eq!(field(Drr(drr::DrrConfig { quantum: 1_499, ..Default::default() })), "quantum");
    assert_eq!(field(Hull(hull::HullConfig { gamma: 1.01, ..Default::default() })), "gamma");
    assert_eq!(field(PFabric(p_fabric::PFabricConfig { buffer: 4_097 })), "buffer");
    assert_eq!(field(Pie(pie::PieConfig { alpha: f64::INFINITY, ..Default::default() })), "alpha");
    assert_eq!(field(FqCodel(fq_codel::FqCodelConfig { flows: 0, ..Default::default() })), "flows");
    let error = DropTail(drop_tail::DropTailConfig { buffer: 0 }).validate().unwrap_err();
    assert_eq!(error.to_string(), "droptail: `buffer` is 0: expected 1 to 1,048,576 packets");
}
