use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use thalweg_network::routing::{TreeOptions, spanning_trees};
use thalweg_network::topology::shapes::{Tiers, fat_tree};
use thalweg_network::{EndpointId, Forwarding, LinkState, NetworkState};
use thalweg_wire::BitRate;

use super::*;
use crate::decide::first_fit::FirstFit;
use crate::decide::greedy::{Greedy, GreedyOptions};
use crate::routes::LinkNumber;

const MS: u64 = 1_000_000;
const LINE: BitRate = BitRate(10_000_000_000);

/// What was done, for all to see.
#[derive(Clone, Default)]
struct Done(Arc<Mutex<Vec<Action>>>);

impl Actuator for Done {
    fn name(&self) -> &'static str {
        "done"
    }

    fn act(&mut self, action: &Action) -> Result<(), ActError> {
        self.0.lock().unwrap().push(*action);
        Ok(())
    }
}

fn paths() -> Paths {
    let topology = fat_tree(4, Tiers::default()).unwrap();
    let links = LinkState::new(&topology);
    let tables = spanning_trees(&topology, &links, TreeOptions::default());
    Paths::new(Arc::new(NetworkState::new(topology, links, Forwarding::tables(tables)).unwrap()))
}

fn controller(decider: impl Decider + 'static, options: ControllerOptions) -> (Controller, Done) {
    let done = Done::default();
    (Controller::new(options, paths(), Box::new(decider), Box::new(done.clone()), Timestamp(0)), done)
}

fn pair(source: u16, destination: u16) -> Pair {
    Pair { source: EndpointId(source), destination: EndpointId(destination) }
}

/// The addresses by which two pairs have a link in common, and that link.
fn colliding(one: Pair, other: Pair) -> (u8, u8, LinkNumber) {
    let mut paths = paths();
    for (a, b) in (0..4).flat_map(|a| (0..4).map(move |b| (a, b))) {
        let mine = paths.of(one, a).unwrap().to_vec();
        if let Some(&link) = paths.of(other, b).unwrap().iter().find(|link| mine.contains(link)) {
            return (a, b, link);
        }
    }
    unreachable!("trees of one core meet")
}

fn congestion(link: LinkNumber, at: u64, flows: &[(Pair, u8, u64)]) -> Congestion {
    let flows =
        flows.iter().map(|&(pair, address, rate)| Observed { pair, address, rate: BitRate(rate) }).collect();
    Congestion { link, time: Timestamp(at), flows }
}

#[test]
fn of_two_flows_that_collide_one_moves() {
    let (one, other) = (pair(0, 8), pair(1, 9));
    let (a, b, link) = colliding(one, other);
    let (mut controller, done) =
        controller(Greedy::new(GreedyOptions::default()), ControllerOptions::default());
    controller.congested(&congestion(link, MS, &[(one, a, LINE.0 / 2), (other, b, LINE.0 / 2)]));
    let actions = done.0.lock().unwrap().clone();
    assert_eq!(actions.len(), 1, "{:?}", controller.decisions);
    let decision = controller.decisions().next().unwrap();
    assert_eq!((decision.pair, decision.verdict), (one, Verdict::Goes));
    let way = |address| decision.alternatives.iter().find(|way| way.address == address).unwrap();
    assert_eq!(way(a).expected, BitRate(LINE.0 / 2), "half of the link is the other's");
    assert_eq!(way(a).tightest, link);
    assert_eq!(way(actions[0].address).expected, LINE);
    // What it did is seen.
    controller.seen(one, actions[0].address, Timestamp(3 * MS));
    let ended = controller.take_ended();
    assert_eq!(ended[0].outcome, Outcome::Confirmed(Nanos(2 * MS)));
    assert_eq!(controller.counters().confirmed, 1);
}

#[test]
fn what_has_no_effect_expires_and_is_tried_again() {
    let (one, other) = (pair(0, 8), pair(1, 9));
    let (a, b, link) = colliding(one, other);
    let (mut controller, done) =
        controller(Greedy::new(GreedyOptions::default()), ControllerOptions::default());
    let flows = [(one, a, LINE.0 / 2), (other, b, LINE.0 / 2)];
    controller.congested(&congestion(link, MS, &flows));
    controller.advance(Timestamp(51 * MS));
    assert_eq!(controller.take_ended()[0].outcome, Outcome::Expired);
    controller.congested(&congestion(link, 52 * MS, &flows));
    let second = done.0.lock().unwrap()[1];
    assert_eq!(second.pair, other, "the one that did not go settles first");
    controller.advance(Timestamp(103 * MS));
    controller.congested(&congestion(link, 110 * MS, &flows));
    assert_eq!(done.0.lock().unwrap()[2].pair, one, "and is asked again");
}

#[test]
fn packets_that_drain_from_the_old_way_do_not_tell_where_a_pair_is() {
    let (one, other) = (pair(0, 8), pair(1, 9));
    let (a, b, link) = colliding(one, other);
    let (mut controller, done) =
        controller(Greedy::new(GreedyOptions::default()), ControllerOptions::default());
    let flows = [(one, a, LINE.0 / 2), (other, b, LINE.0 / 2)];
    controller.congested(&congestion(link, MS, &flows));
    let to = done.0.lock().unwrap()[0].address;
    // It has settled, and a queue on the old way still holds packets of both.
    controller.congested(&congestion(link, 8 * MS, &flows));
    let latest = controller.decisions().rev().find(|decision| decision.pair == one).unwrap();
    assert_eq!((latest.from, latest.verdict), (to, Verdict::Stays));
    assert_eq!(done.0.lock().unwrap().len(), 1, "nor has the other a rival any more");
    // Long after, what is seen counts again: somebody else has sent it back.
    controller.congested(&congestion(link, 30 * MS, &flows));
    assert_eq!(done.0.lock().unwrap()[1].pair, one);
}

#[test]
fn acknowledgements_are_nobodys_rivals() {
    let (one, other) = (pair(0, 8), pair(1, 9));
    let (a, b, link) = colliding(one, other);
    let (mut controller, _) = controller(Greedy::new(GreedyOptions::default()), ControllerOptions::default());
    let acks = LINE.0 / 30;
    controller.congested(&congestion(link, MS, &[(one, a, LINE.0 - acks), (other, b, acks)]));
    let expected = |pair, address| {
        let decision = controller.decisions().find(|decision| decision.pair == pair).unwrap();
        decision.alternatives.iter().find(|way| way.address == address).unwrap().expected
    };
    assert_eq!(expected(one, a), BitRate(LINE.0 - acks), "they take what they need, and claim no half");
    assert_eq!(expected(other, b), BitRate(LINE.0 / 2), "a flow that has all leaves half");
}

#[test]
fn when_addresses_lead_other_ways_what_was_known_of_links_is_void() {
    let (one, other) = (pair(0, 8), pair(1, 9));
    let (a, b, link) = colliding(one, other);
    let (mut controller, _) = controller(Greedy::new(GreedyOptions::default()), ControllerOptions::default());
    let flows = [(one, a, LINE.0 / 2), (other, b, LINE.0 / 2)];
    controller.congested(&congestion(link, MS, &flows));
    let topology = fat_tree(4, Tiers::default()).unwrap();
    let mut links = LinkState::new(&topology);
    let (router, port) = controller.paths().port(link);
    links.fail(topology.link_at(router, port)).unwrap();
    let tables = spanning_trees(&topology, &links, TreeOptions::default());
    let state = NetworkState::new(topology, links, Forwarding::tables(tables)).unwrap();
    controller.set_paths(Paths::new(Arc::new(state)));
    // Rates are taken off the links that they were put on, or this would panic.
    controller.congested(&congestion(link, 2 * MS, &flows));
    let decision = controller.decisions().next_back().unwrap();
    assert!(decision.alternatives.iter().all(|way| way.tightest != link), "nobody goes there");
}

#[test]
fn pinned_and_frozen_pairs_stay() {
    let (one, other) = (pair(0, 8), pair(1, 9));
    let (a, b, link) = colliding(one, other);
    let (mut controller, done) =
        controller(Greedy::new(GreedyOptions::default()), ControllerOptions::default());
    let flows = [(one, a, LINE.0 / 2), (other, b, LINE.0 / 2)];
    controller.freeze(true);
    controller.congested(&congestion(link, MS, &flows));
    assert_eq!((controller.counters().withheld, done.0.lock().unwrap().len()), (1, 0));
    controller.freeze(false);
    controller.pin(one, a, Timestamp(20 * MS));
    controller.pin(other, b, Timestamp(20 * MS));
    controller.congested(&congestion(link, 40 * MS, &flows));
    assert_eq!(controller.counters().decisions[Verdict::Pinned as usize], 2, "neither may go");
    assert_eq!(done.0.lock().unwrap().len(), 2, "only the pins were carried out");
    controller.unpin(other);
    controller.congested(&congestion(link, 60 * MS, &flows));
    assert_eq!(done.0.lock().unwrap()[2].pair, other);
}

#[test]
fn a_dry_run_says_what_it_would_do() {
    let (one, other) = (pair(0, 8), pair(1, 9));
    let (a, b, link) = colliding(one, other);
    let options = ControllerOptions { dry_run: true, ..ControllerOptions::default() };
    let (mut controller, done) = controller(Greedy::new(GreedyOptions::default()), options);
    controller.congested(&congestion(link, MS, &[(one, a, LINE.0 / 2), (other, b, LINE.0 / 2)]));
    assert_eq!(controller.decisions().filter(|decision| decision.verdict == Verdict::Goes).count(), 1);
    assert!(done.0.lock().unwrap().is_empty());
}

#[test]
fn first_fit_finds_room_for_a_whole_stride() {
    let (mut controller, done) =
        controller(FirstFit::new(Nanos::from_millis(100)), ControllerOptions::default());
    assert_eq!(controller.next_poll(), Some(Timestamp(100 * MS)));
    // All to address 0, whatever that collides with.
    let flows: Vec<Observed> = (0..16)
        .map(|host| Observed { pair: pair(host, (host + 8) % 16), address: 0, rate: BitRate(LINE.0 / 4) })
        .collect();
    controller.polled(&flows, Timestamp(100 * MS));
    let mut addresses = vec![0; 16];
    for action in &*done.0.lock().unwrap() {
        addresses[action.pair.source.index()] = action.address;
    }
    let mut paths = paths();
    let mut uses = vec![0; paths.links()];
    for (flow, address) in flows.iter().zip(addresses) {
        paths.of(flow.pair, address).unwrap().iter().for_each(|link| uses[link.0 as usize] += 1);
    }
    let collisions = uses.iter().filter(|&&uses| uses > 1).count();
    assert!(collisions <= 4, "first fit may fail for a few: {collisions} links have more than one flow");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However often the same congestion is told, and whatever rates are measured meanwhile: once nothing better is to be
    /// had, nobody moves any more.
    #[test]
    fn flows_do_not_swap_for_ever(
        ends in prop::collection::btree_map(0u16..16, 0u16..16, 2..16),
        noise in prop::collection::vec(0.97f64..1.03, 64),
    ) {
        let pairs: Vec<Pair> = ends.into_iter().filter(|(a, b)| a != b).map(|(a, b)| pair(a, b)).collect();
        let (mut controller, done) = controller(Greedy::new(GreedyOptions::default()), ControllerOptions::default());
        let mut addresses = vec![0u8; pairs.len()];
        let mut last_move = 0;
        let rounds = 60u64;
        for round in 0..rounds {
            let now = round * 2 * MS;
            // Every flow has a fair share of its tightest link, as well as anybody can measure.
            let mut uses = vec![0u32; controller.paths.links()];
            for (pair, &address) in pairs.iter().zip(&addresses) {
                controller.paths.of(*pair, address).unwrap().iter().for_each(|link| uses[link.0 as usize] += 1);
            }
            let flows: Vec<(Pair, u8, u64)> = pairs.iter().zip(&addresses).enumerate().map(|(index, (&pair, &address))| {
                let links = controller.paths.of(pair, address).unwrap();
                let most = links.iter().map(|link| uses[link.0 as usize]).max().unwrap();
                let noise = noise[(round as usize * 7 + index) % noise.len()];
                (pair, address, (LINE.0 as f64 / f64::from(most) * noise) as u64)
            }).collect();
            let before = done.0.lock().unwrap().len();
            for link in (0..uses.len()).filter(|&link| uses[link] > 1) {
                let on_it: Vec<_> = flows.iter().filter(|(pair, address, _)| {
                    controller.paths.of(*pair, *address).unwrap().contains(&LinkNumber(link as u32))
                }).copied().collect();
                controller.congested(&congestion(LinkNumber(link as u32), now, &on_it));
            }
            for action in &done.0.lock().unwrap()[before..] {
                let index = pairs.iter().position(|pair| *pair == action.pair).unwrap();
                addresses[index] = action.address;
                last_move = round;
            }
        }
        prop_assert!(last_move < rounds / 2, "still moving in round {last_move} of {rounds}");
    }
}
