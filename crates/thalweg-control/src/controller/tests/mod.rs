mod arrivals;
mod moves;

use std::sync::Arc;

use proptest::prelude::*;
use thalweg_network::routing::{TreeOptions, spanning_trees};
use thalweg_network::topology::shapes::{Tiers, fat_tree};
use thalweg_network::{EndpointId, Forwarding, LinkState, NetworkState};
use thalweg_wire::BitRate;

use super::*;
use crate::decide::first_fit::FirstFit;
use crate::decide::greedy::{Greedy, GreedyOptions};
use crate::decide::loads::Loads;
use crate::decide::{FlowShare, tcp_flow};
use crate::routes::LinkNumber;

const MS: u64 = 1_000_000;
const LINE: BitRate = BitRate(10_000_000_000);

/// Commands carried out, by an actuator that acts immediately.
#[derive(Clone, Default)]
struct Executed {
    actions: Vec<Action>,
    held: BTreeMap<Pair, u8>,
    abandoned: Vec<(Pair, u8)>,
    /// Refuses all actions.
    refuses: bool,
}

impl Executed {
    /// Carries out all commands.
    fn carry_out(&mut self, controller: &mut Controller, now: u64) {
        while let Some(command) = controller.next_command() {
            match command {
                PairCommand::Reroute(action) if self.refuses => {
                    controller.refused(action.id, "unplugged".to_owned());
                }
                PairCommand::Reroute(action) => {
                    self.actions.push(action);
                    assert_eq!(controller.started(action.id, Timestamp(now)), Some(action));
                }
                PairCommand::Hold { pair, address, .. } => drop(self.held.insert(pair, address)),
                PairCommand::Abandon { action, from } => self.abandoned.push((action.pair, from)),
            }
        }
    }

    /// Pairs that were held, and their addresses.
    fn held(&self) -> Vec<(Pair, u8)> {
        self.held.iter().map(|(&pair, &address)| (pair, address)).collect()
    }

    /// Pairs whose actions had no effect, and their old addresses.
    fn abandoned(&self) -> Vec<(Pair, u8)> {
        self.abandoned.clone()
    }
}

fn paths() -> Paths {
    let topology = fat_tree(4, Tiers::default()).unwrap();
    let links = LinkState::new(&topology);
    let tables = spanning_trees(&topology, &links, TreeOptions::default());
    Paths::new(Arc::new(NetworkState::new(topology, links, Forwarding::tables(tables)).unwrap()))
}

fn controller(decider: impl Decider + 'static, options: ControllerOptions) -> (Controller, Executed) {
    (Controller::new(options, paths(), Box::new(decider), Timestamp(0)), Executed::default())
}

fn pair(source: u16, destination: u16) -> Pair {
    Pair { source: EndpointId(source), destination: EndpointId(destination) }
}

/// Two pairs on the same link, reported to a controller.
struct Collision {
    controller: Controller,
    executed: Executed,
    one: Pair,
    other: Pair,
    /// Their addresses, and the shared link.
    a: u8,
    b: u8,
    link: LinkNumber,
}

impl Collision {
    fn new() -> Collision {
        Collision::with(ControllerOptions::default())
    }

    fn with(options: ControllerOptions) -> Collision {
        let (one, other) = (pair(0, 8), pair(1, 9));
        let (a, b, link) = colliding(one, other);
        let (controller, executed) = controller(Greedy::new(GreedyOptions::default()), options);
        Collision { controller, executed, one, other, a, b, link }
    }

    /// Reports both with these rates.
    fn report(&mut self, at: u64, one: u64, other: u64) {
        let flows = [(self.one, self.a, one), (self.other, self.b, other)];
        self.controller.on_congestion(&congestion(self.link, at, &flows));
        self.carry_out(at);
    }

    fn carry_out(&mut self, at: u64) {
        self.executed.carry_out(&mut self.controller, at);
    }

    fn pin(&mut self, pair: Pair, address: u8, at: u64) {
        self.controller.pin(pair, address, Timestamp(at));
        self.carry_out(at);
    }

    fn advance(&mut self, at: u64) {
        self.controller.advance(Timestamp(at));
        self.carry_out(at);
    }

    fn mark_broken(&mut self, arrival: &PendingArrival, at: u64) {
        self.controller.mark_broken(arrival, Timestamp(at));
        self.carry_out(at);
    }

    /// Reports each with half of the link.
    fn report_halves(&mut self, at: u64) {
        self.report(at, LINE.0 / 2, LINE.0 / 2);
    }

    fn actions(&self) -> Vec<Action> {
        self.executed.actions.clone()
    }
}

/// Returns the addresses by which two pairs share a link, and that link.
fn colliding(one: Pair, other: Pair) -> (u8, u8, LinkNumber) {
    let mut paths = paths();
    for (a, b) in (0..4).flat_map(|a| (0..4).map(move |b| (a, b))) {
        let mine = paths.of(one, a).unwrap().to_vec();
        if let Some(&link) = paths.of(other, b).unwrap().iter().find(|link| mine.contains(link)) {
            return (a, b, link);
        }
    }
    unreachable!("trees through one core share a link")
}

/// Returns the report of a pair with one flow.
fn observed(pair: Pair, address: u8, rate: u64, at: u64) -> PairRate {
    observed_flows(pair, address, &[(1, rate)], at)
}

/// Returns the report of a pair with these flows: source ports and rates, the fastest first.
fn observed_flows(pair: Pair, address: u8, flows: &[(u16, u64)], at: u64) -> PairRate {
    let share = |&(port, rate)| FlowShare { flow: tcp_flow(pair, port), rate: BitRate(rate) };
    let rate = BitRate(flows.iter().map(|flow| flow.1).sum());
    PairRate { pair, address, rate, measured: Timestamp(at), flows: flows.iter().map(share).collect() }
}

fn congestion(link: LinkNumber, at: u64, flows: &[(Pair, u8, u64)]) -> Congestion {
    let flows = flows.iter().map(|&(pair, address, rate)| observed(pair, address, rate, at)).collect();
    Congestion { link, time: Timestamp(at), flows }
}

#[test]
fn one_of_two_colliding_flows_moves() {
    let mut case = Collision::new();
    case.report_halves(MS);
    let actions = case.actions();
    assert_eq!(actions.len(), 1, "{:?}", case.controller.decisions);
    let decision = case.controller.decisions().next().unwrap();
    assert_eq!((decision.pair, decision.verdict), (case.one, Verdict::Reroute));
    let path = |address| decision.alternatives.iter().find(|path| path.address == address).unwrap();
    assert_eq!(path(case.a).expected, BitRate(LINE.0 / 2), "half of the link is the other's");
    assert_eq!(path(case.a).tightest, case.link);
    assert_eq!(path(actions[0].address).expected, LINE);
    // The effect is seen.
    case.controller.address_seen(case.one, actions[0].address, Timestamp(3 * MS));
    let ended = case.controller.take_finished();
    assert_eq!(ended[0].outcome, Outcome::Confirmed(Nanos(2 * MS)));
    assert_eq!(case.controller.counters().confirmed, 1);
}

#[test]
fn an_action_without_effect_times_out_and_is_retried() {
    let mut case = Collision::new();
    case.report_halves(MS);
    case.advance(51 * MS);
    assert_eq!(case.controller.take_finished()[0].outcome, Outcome::TimedOut);
    case.report_halves(52 * MS);
    assert_eq!(case.actions()[1].pair, case.other, "the pair that did not move is first");
    case.advance(103 * MS);
    case.report_halves(110 * MS);
    assert_eq!(case.actions()[2].pair, case.one, "the first pair is retried");
}

#[test]
fn a_host_that_ignores_actions_is_reported() {
    let mut case = Collision::new();
    let mut reports = Vec::new();
    for round in 0..4 {
        case.pin(case.one, 1, round * 100 * MS);
        case.advance((round * 100 + 51) * MS);
        reports.push(case.controller.unresponsive().collect::<Vec<_>>());
    }
    let source = case.one.source;
    assert_eq!(reports, [vec![], vec![], vec![(source, 3)], vec![(source, 4)]]);
    case.pin(case.one, 1, 500 * MS);
    case.controller.address_seen(case.one, 1, Timestamp(502 * MS));
    assert_eq!(case.controller.unresponsive().count(), 0, "the host responds again");
}

#[test]
fn packets_that_drain_from_the_old_path_are_ignored() {
    let mut case = Collision::new();
    case.report_halves(MS);
    let to = case.actions()[0].address;
    // The pair is no longer held down, and a queue on the old path still holds packets of both.
    case.report_halves(8 * MS);
    let latest = case.controller.decisions().rev().find(|decision| decision.pair == case.one).unwrap();
    assert_eq!((latest.time, latest.to), (Timestamp(MS), to), "no second decision");
    assert_eq!(case.actions().len(), 1, "the other pair has no contender");
    // Much later, reports count again: another controller moved it back.
    case.report_halves(30 * MS);
    assert_eq!(case.actions()[1].pair, case.one);
}

#[test]
fn a_slower_flow_on_another_path_does_not_hide_the_fastest() {
    let (pair, mut paths) = (pair(0, 8), paths());
    let mut loads = Loads::new(Nanos::from_millis(3), Nanos::from_millis(5));
    let mut reported = |at, address, rate| {
        loads.observe(&observed(pair, address, rate, at), Timestamp(at), &mut paths);
        loads.get(pair).unwrap().address
    };
    assert_eq!(reported(MS, 0, LINE.0 / 2), 0);
    // Its acknowledgements were on another path once, and a collector there still reports them.
    assert_eq!(reported(2 * MS, 1, 1_000), 0);
    assert_eq!(reported(3 * MS, 1, LINE.0), 1, "faster");
    assert_eq!(reported(2 * MS, 0, LINE.0), 1, "measured earlier");
    assert_eq!(reported(20 * MS, 0, 1_000), 0, "not reported for long elsewhere");
}

#[test]
fn a_rate_measured_long_ago_counts_for_nothing() {
    let mut case = Collision::new();
    let mut congestion =
        congestion(case.link, 40 * MS, &[(case.one, case.a, LINE.0), (case.other, case.b, LINE.0)]);
    congestion.flows[0].measured = Timestamp(30 * MS);
    case.controller.on_congestion(&congestion);
    case.carry_out(40 * MS);
    assert!(case.actions().is_empty(), "the first has left the link, the second is alone");
}

#[test]
fn one_collision_makes_one_decision_to_reroute() {
    let mut case = Collision::new();
    let mut paths = paths();
    let links = paths.of(case.one, case.a).unwrap().to_vec();
    let of_other = paths.of(case.other, case.b).unwrap().to_vec();
    let shared: Vec<LinkNumber> = links.into_iter().filter(|link| of_other.contains(link)).collect();
    let flows = [(case.one, case.a, LINE.0 / 2), (case.other, case.b, LINE.0 / 2)];
    for (number, &link) in (0..).zip(shared.iter().cycle().take(6)) {
        case.controller.on_congestion(&congestion(link, MS + 4_000 * number, &flows));
        case.carry_out(MS);
    }
    let of_one = case.controller.decisions().filter(|decision| decision.pair == case.one);
    assert_eq!(of_one.count(), 1, "the reports of other switches and repeats of this one add nothing");
    assert_eq!(case.actions().len(), 1);
}

#[test]
fn acknowledgements_stay_and_displace_nobody() {
    let mut case = Collision::new();
    let opposite = Pair { source: case.one.destination, destination: case.one.source };
    let link = paths().of(opposite, 0).unwrap()[0];
    case.report(MS, LINE.0, LINE.0 / 100);
    let before = case.actions().len();
    let flows = [(pair(9, 1), 0, LINE.0), (opposite, 0, LINE.0 / 50)];
    case.controller.on_congestion(&congestion(link, 2 * MS, &flows));
    case.carry_out(2 * MS);
    assert_eq!(case.actions().len(), before);
    assert!(case.controller.decisions().all(|decision| decision.pair != opposite));
}

#[test]
fn a_pair_on_an_uncongested_link_is_remembered() {
    let mut case = Collision::new();
    case.report_halves(MS);
    let to = case.actions()[0].address;
    // No event has reported the other pair since the first has left: it needs time to fill the link.
    let third = pair(0, 9);
    let link = paths().of(third, to).unwrap()[0];
    case.controller.on_congestion(&congestion(link, 10 * MS, &[(third, to, LINE.0 / 2)]));
    let decision = case.controller.decisions().next_back().unwrap();
    let beside = decision.alternatives.iter().find(|path| path.address == case.b).unwrap();
    assert!(beside.expected.0 <= LINE.0 / 2, "{decision:?}");
}

#[test]
fn no_path_offers_more_than_the_source_s_own_link() {
    let mut case = Collision::new();
    let second = pair(case.one.source.0, 12);
    let link = paths().of(second, 0).unwrap()[0];
    case.controller.on_congestion(&congestion(link, MS, &[(second, 0, LINE.0 / 2)]));
    case.report(MS + 1, LINE.0 / 2, LINE.0 / 2);
    let decision = case.controller.decisions().find(|decision| decision.pair == case.one).unwrap();
    assert_eq!(decision.verdict, Verdict::Keep, "it has its half of the host's link");
    assert!(decision.alternatives.iter().all(|path| path.expected.0 <= LINE.0 / 2), "{decision:?}");
}

#[test]
fn acknowledgements_do_not_contend() {
    let mut case = Collision::new();
    let acks = LINE.0 / 30;
    case.report(MS, LINE.0 - acks, acks);
    let expected = |pair, address| {
        let decision = case.controller.decisions().find(|decision| decision.pair == pair).unwrap();
        decision.alternatives.iter().find(|path| path.address == address).unwrap().expected
    };
    assert_eq!(
        expected(case.one, case.a),
        BitRate(LINE.0 - acks),
        "acknowledgements do not claim half of the link"
    );
    assert_eq!(expected(case.other, case.b), BitRate(LINE.0 / 2), "a flow that fills the link leaves half");
}

#[test]
fn new_routes_clear_known_loads() {
    let mut case = Collision::new();
    case.report_halves(MS);
    let topology = fat_tree(4, Tiers::default()).unwrap();
    let mut links = LinkState::new(&topology);
    let failed = case.link;
    let (router, port) = case.controller.paths().port(failed);
    links.fail(topology.link_at(router, port)).unwrap();
    let tables = spanning_trees(&topology, &links, TreeOptions::default());
    let state = NetworkState::new(topology, links, Forwarding::tables(tables)).unwrap();
    case.controller.set_paths(Paths::new(Arc::new(state)));
    case.link = case.controller.paths.of(case.one, case.a).unwrap()[0];
    // Loads must be removed from the links to which they were added, or this panics.
    case.report_halves(2 * MS);
    let decision = case.controller.decisions().next_back().unwrap();
    assert!(decision.alternatives.iter().all(|path| path.tightest != failed), "no path uses the failed link");
}

#[test]
fn pinned_and_frozen_pairs_keep_their_paths() {
    let mut case = Collision::new();
    case.controller.freeze(true);
    case.report_halves(MS);
    assert_eq!((case.controller.counters().withheld, case.actions().len()), (1, 0));
    case.controller.freeze(false);
    case.pin(case.one, case.a, 20 * MS);
    case.pin(case.other, case.b, 20 * MS);
    case.report_halves(40 * MS);
    assert_eq!(case.controller.counters().decisions[Verdict::Pinned as usize], 2, "neither may move");
    assert_eq!(case.actions().len(), 2, "only the pins were carried out");
    case.controller.unpin(case.other);
    case.report_halves(60 * MS);
    assert_eq!(case.actions()[2].pair, case.other);
}

#[test]
fn a_dry_run_decides_without_acting() {
    let mut case = Collision::with(ControllerOptions { dry_run: true, ..ControllerOptions::default() });
    case.report_halves(MS);
    let withheld = case.controller.decisions().filter(|decision| decision.verdict == Verdict::Withheld);
    assert_eq!(withheld.count(), 1);
    assert_eq!(case.controller.counters().decisions[Verdict::Withheld as usize], 1);
    assert!(case.actions().is_empty());
}

#[test]
fn finished_actions_are_bounded() {
    let mut case = Collision::with(ControllerOptions { pending: 2, ..ControllerOptions::default() });
    for time in 1..6 {
        case.pin(case.one, time as u8 % 2, time * MS);
    }
    let ended: Vec<u64> = case.controller.take_finished().iter().map(|ended| ended.action.id.0).collect();
    assert_eq!(ended, [3, 4], "the latest of four that were superseded");
    assert!(case.controller.take_finished().is_empty());
}

#[test]
fn first_fit_places_a_stride_with_few_collisions() {
    let (mut controller, mut executed) =
        controller(FirstFit::new(Nanos::from_millis(100)), ControllerOptions::default());
    assert_eq!(controller.next_poll(), Some(Timestamp(100 * MS)));
    // All to address 0, with collisions.
    let flows: Vec<PairRate> =
        (0..16).map(|host| observed(pair(host, (host + 8) % 16), 0, LINE.0 / 4, 0)).collect();
    controller.on_poll(&flows, Timestamp(100 * MS));
    executed.carry_out(&mut controller, 100 * MS);
    let mut addresses = vec![0; 16];
    for action in &executed.actions {
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

    /// Pairs do not swap forever, despite noisy rates and unknown traffic on uncongested links.
    #[test]
    fn pairs_do_not_swap_forever(
        ends in prop::collection::btree_map(0u16..16, 0u16..16, 2..16),
        noise in prop::collection::vec(0.97f64..1.03, 64),
    ) {
        let pairs: Vec<Pair> = ends.into_iter().filter(|(a, b)| a != b).map(|(a, b)| pair(a, b)).collect();
        let (mut controller, mut executed) = controller(Greedy::new(GreedyOptions::default()), ControllerOptions::default());
        let mut addresses = vec![0u8; pairs.len()];
        let rounds = 160u64;
        for round in 0..rounds {
            let now = round * 2 * MS;
            // Every flow has a fair share of its tightest link, within the noise of measurement.
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
            let before = executed.actions.len();
            for link in (0..uses.len()).filter(|&link| uses[link] > 1) {
                let on_it: Vec<_> = flows.iter().filter(|(pair, address, _)| {
                    controller.paths.of(*pair, *address).unwrap().contains(&LinkNumber(link as u32))
                }).copied().collect();
                controller.on_congestion(&congestion(LinkNumber(link as u32), now, &on_it));
                executed.carry_out(&mut controller, now);
            }
            for action in &executed.actions[before..] {
                let index = pairs.iter().position(|pair| *pair == action.pair).unwrap();
                addresses[index] = action.address;
            }
        }
        for pair in pairs {
            let moves = executed.actions.iter().filter(|action| action.pair == pair).count();
            prop_assert!(moves <= crate::decide::moves::MAX_MOVES as usize, "{pair:?} moved {moves} times");
        }
    }
}
