//! Counters by class: their sums are those of the port, and they change nothing.

use std::collections::BTreeMap;

use proptest::prelude::*;
use thalweg_network::{EndpointId, PortIndex};
use thalweg_wire::Nanos;

use super::harness::{Bench, ByDestination};
use super::{PORTS, Slot, arrivals};
use crate::ports::queue_span::QueueSpan;
use crate::ports::tally::PortTally;
use crate::queues::backlog::Backlog;
use crate::redirection::FlowDirection;
use crate::router::classes::{ClassCounts, Fixed, counted};
use crate::router::{Router, RouterPorts};
use crate::schemes::drr::{DrrConfig, drr};
use crate::schemes::flow_hash::FlowHash;
use crate::schemes::fq_codel::{FqCodelConfig, fq_codel};
use crate::schemes::priority::{ByDscp, PriorityConfig, priority};
use crate::schemes::scavenger::{ByQueue, ScavengerConfig, scavenger};

/// A router, what its port 0 did since the last reading, and its queue.
struct Watched<R: Router> {
    bench: Bench<R>,
    span: QueueSpan,
    before: PortTally,
}

impl<R: Router> Watched<R> {
    fn new(build: impl FnOnce(ByDestination, RouterPorts<'_>) -> R) -> Self {
        let mut bench = Bench::new(usize::from(PORTS), build);
        if let Some(classes) = bench.router.classes() {
            classes.watch(PORT);
        }
        Watched { bench, span: QueueSpan::default(), before: PortTally::default() }
    }

    /// Runs a slot. Returns the ids of the packets sent, by port, and of those dropped so far.
    fn slot(&mut self, number: usize, (packets, down): &Slot) -> (Vec<Vec<u32>>, Vec<u32>) {
        let flow = |number: usize| FlowDirection {
            source: EndpointId(9),
            destination: EndpointId(0),
            flow: number as u32 % 6,
        };
        if let Some(redirector) = self.bench.router.redirector() {
            // Also while packets of the flow are queued.
            redirector.release(flow(number + 3));
            redirector.redirect(flow(number)).unwrap();
        }
        self.bench.arrive(packets.iter().copied());
        if let Some(port) = *down {
            self.bench.with_context(|router, context| router.flush(PortIndex(port), context));
        }
        let sent = self.bench.step();
        self.span.add(self.bench.router.backlog(PORT));
        if let Some(classes) = self.bench.router.classes() {
            classes.look(PORT);
        }
        let ids = |packets: Vec<crate::packet::Packet>| packets.iter().map(|packet| packet.id()).collect();
        let dropped = self.bench.dropped.iter().map(|dropped| dropped.packet.id()).collect();
        (sent.into_iter().map(ids).collect(), dropped)
    }

    /// Reads the classes of the port, and compares their sums with the port.
    fn compare(&mut self) -> Vec<ClassCounts> {
        let mut classes = Vec::new();
        self.bench.router.classes().unwrap().take(PORT, &mut classes);
        let queue = classes.iter().fold(Backlog::default(), |sum, class| Backlog {
            packets: sum.packets + class.queue.packets,
            bytes: sum.bytes + class.queue.bytes,
        });
        assert_eq!(queue, self.bench.router.backlog(PORT));
        let sum = |of: &dyn Fn(&ClassCounts) -> u64| classes.iter().map(of).sum::<u64>();
        let span = std::mem::take(&mut self.span);
        assert_eq!(
            (sum(&|class| class.span.packets), sum(&|class| class.span.bytes)),
            (span.packets, span.bytes)
        );
        assert!(classes.iter().all(|class| class.span.looks == span.looks));
        assert!(classes.iter().all(|class| class.span.max_packets <= span.max_packets));
        let (tally, before) = (self.bench.tally(0), self.before);
        let sent = tally.sent.packets - before.sent.packets;
        assert_eq!(
            (sum(&|class| class.sent.packets), sum(&|class| class.sent.bytes)),
            (sent, tally.sent.bytes - before.sent.bytes)
        );
        assert_eq!(sum(&|class| class.dropped), tally.verdicts.drops() - before.verdicts.drops());
        assert_eq!(sum(&|class| class.marked), tally.verdicts.marked - before.verdicts.marked);
        assert!(classes.is_sorted_by_key(|class| class.class));
        self.before = tally;
        classes
    }
}

const PORT: PortIndex = PortIndex(0);

/// Runs both routers with the same packets. Returns all that the classes of port 0 did.
fn check<R: Router, C: Router>(
    slots: &[Slot],
    plain: impl FnOnce(ByDestination, RouterPorts<'_>) -> R,
    counting: impl FnOnce(ByDestination, RouterPorts<'_>) -> C,
) -> BTreeMap<u16, ClassCounts> {
    let (mut plain, mut counting) = (Watched::new(plain), Watched::new(counting));
    assert!(plain.bench.router.classes().is_none());
    let mut all: BTreeMap<u16, ClassCounts> = BTreeMap::new();
    // Empty slots at the end, so that the queues drain.
    let empty = (Vec::new(), None);
    for (number, slot) in slots.iter().chain(std::iter::repeat_n(&empty, 200)).enumerate() {
        assert_eq!(counting.slot(number, slot), plain.slot(number, slot), "counting changes nothing");
        if number % 7 == 0 {
            for class in counting.compare() {
                let sum = all.entry(class.class).or_default();
                sum.sent += class.sent;
                (sum.dropped, sum.marked) = (sum.dropped + class.dropped, sum.marked + class.marked);
            }
        }
    }
    counting.compare();
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn sums_over_the_classes_are_those_of_the_port(slots in arrivals()) {
        let config = PriorityConfig { queues: 4, buffer: 5 };
        let class = Fixed(ByDscp { queues: 4 });
        let classes = check(
            &slots,
            |route, ports| priority(route, ports, &config),
            |route, ports| counted(priority(route, ports, &config), class, ports.ports()),
        );
        prop_assert!(classes.keys().all(|class| *class < 4));
        let config = DrrConfig { queues: 3, buffer: 5, ..DrrConfig::default() };
        check(
            &slots,
            |route, ports| drr(route, ports, &config),
            |route, ports| counted(drr(route, ports, &config), Fixed(FlowHash::over(3)), ports.ports()),
        );
        let config = ScavengerConfig { primary_buffer: 20_000, scavenger_buffer: 12_000, scavenger_share: 0.3 };
        let classes = check(
            &slots,
            |route, ports| scavenger(route, ports, &config),
            |route, ports| counted(scavenger(route, ports, &config), ByQueue, ports.ports()),
        );
        prop_assert!(classes.keys().all(|class| *class < 2));
        let (target, interval) = (Nanos(2_000), Nanos(20_000));
        let config = FqCodelConfig { flows: 16, buffer: 20, target, interval, ..FqCodelConfig::default() };
        check(
            &slots,
            |route, ports| fq_codel(route, ports, &config),
            |route, ports| counted(fq_codel(route, ports, &config), Fixed(FlowHash::over(16)), ports.ports()),
        );
    }
}

/// Flow f has code point f, so each flow is a class of its own with strict priority.
#[test]
fn a_class_has_its_own_packets() {
    let packets = |flows: &[u32]| {
        let request = |(&flow, id): (&u32, u32)| {
            let mut request = super::request(0, flow, id, 1_500);
            request.packet = request.packet.with_traffic_class((flow as u8) << 2);
            request
        };
        flows.iter().zip(0..).map(request).collect::<Vec<_>>()
    };
    let config = PriorityConfig { queues: 8, buffer: 2 };
    let slots = [(packets(&[5, 5, 5, 2]), None), (packets(&[2, 5]), None)];
    let build = |route, ports: RouterPorts<'_>| {
        counted(priority(route, ports, &config), Fixed(ByDscp { queues: 8 }), ports.ports())
    };
    let mut watched = Watched::new(build);
    slots.iter().enumerate().for_each(|(number, slot)| drop(watched.slot(number, slot)));
    let classes = watched.compare();
    let found: Vec<(u16, u64, u64, u32, u32)> = classes
        .iter()
        .map(|class| {
            (class.class, class.sent.packets, class.dropped, class.queue.packets, class.span.max_packets)
        })
        .collect();
    // Both slots send a packet of class 2. Of class 5, two find room in the first slot, and none in the second.
    assert_eq!(found, [(2, 2, 0, 0, 0), (5, 0, 2, 2, 2)]);
    assert_eq!(classes[1].span.packets, 4, "two packets at two looks");
}
