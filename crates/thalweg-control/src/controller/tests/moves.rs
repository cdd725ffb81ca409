//! How often pairs and flows move.

use super::*;
use crate::decide::moves::{MAX_FLOWS, MAX_MOVES};

/// Two pairs that always share a link, as if no move had an effect on the collision. The other pair is pinned.
struct Persistent {
    case: Collision,
    now: u64,
}

impl Persistent {
    fn new() -> Persistent {
        let mut case = Collision::new();
        case.pin(case.other, case.b, 0);
        case.executed.actions.clear();
        Persistent { case, now: 0 }
    }

    /// Reports the first pair with these flows (source ports and shares of half of the link) every `interval` for `rounds`.
    fn report(&mut self, flows: &[(u16, u64)], interval: u64, rounds: u64) {
        let Collision { one, other, a, b, link, .. } = self.case;
        let sum: u64 = flows.iter().map(|flow| flow.1).sum();
        let flows: Vec<(u16, u64)> =
            flows.iter().map(|&(port, share)| (port, LINE.0 / 2 * share / sum)).collect();
        for _ in 0..rounds {
            self.now += interval;
            let reported =
                vec![observed_flows(one, a, &flows, self.now), observed(other, b, LINE.0 / 2, self.now)];
            let time = Timestamp(self.now);
            self.case.controller.on_congestion(&Congestion { link, time, flows: reported });
            self.case.carry_out(self.now);
        }
    }

    fn wait(&mut self, time: u64) {
        self.now += time;
    }

    /// Returns the times of the first pair's moves since the last call, in milliseconds.
    fn moves(&mut self) -> Vec<u64> {
        let actions = std::mem::take(&mut self.case.executed.actions);
        actions
            .iter()
            .filter(|action| action.pair == self.case.one)
            .map(|action| action.issued.0 / MS)
            .collect()
    }

    fn flow_moves(&self) -> Vec<(u16, u32)> {
        let flows = self.case.controller.flow_moves(self.case.one);
        flows.iter().map(|known| (known.flow.src_port, known.moves)).collect()
    }

    fn verdicts(&self, verdict: Verdict) -> u64 {
        self.case.controller.counters().decisions[verdict as usize]
    }
}

#[test]
fn a_flow_moves_three_times() {
    let mut pair = Persistent::new();
    pair.report(&[(1, 1)], 20 * MS, 200);
    assert_eq!(pair.moves(), [20, 40, 60]);
    assert_eq!(pair.flow_moves(), [(1, 3)]);
    let counters = pair.case.controller.counters();
    assert_eq!((counters.flow_moves, pair.case.controller.moves(pair.case.one)), ([1, 1, 1], 3));
    // After the third move, reports are ignored until the old path has drained. Then another path is always better.
    assert_eq!(pair.verdicts(Verdict::MoveLimit), 197);
    let decision = pair.case.controller.decisions().rev().find(|decision| decision.pair == pair.case.one);
    assert_eq!(
        decision.map(|decision| (decision.verdict, decision.flow_moves)),
        Some((Verdict::MoveLimit, 3))
    );
}

#[test]
fn pauses_give_a_flow_no_further_moves() {
    let mut pair = Persistent::new();
    for pause in [30, 100, 101, 500, 2_000, 10_000] {
        pair.report(&[(1, 1)], 2 * MS, 100);
        pair.wait(pause * MS);
    }
    assert_eq!(pair.moves().len(), MAX_MOVES as usize);
    // 2,048 hold-down times are 10.24 s.
    pair.wait(300 * MS);
    pair.report(&[(1, 1)], 20 * MS, 2);
    assert_eq!(pair.moves().len(), 2, "the flow is forgotten");
}

#[test]
fn every_short_flow_of_a_pair_moves() {
    for (time, gap) in [(40, 0), (60, 0), (60, 10), (60, 40), (60, 200)] {
        let mut pair = Persistent::new();
        for port in 1..=20 {
            pair.report(&[(port, 1)], 2 * MS, time / 2);
            let moves = pair.moves().len();
            assert!((1..=3).contains(&moves), "flow {port} of {time} ms, gap {gap} ms: {moves} moves");
            pair.wait(gap * MS);
        }
        assert!(pair.flow_moves().len() <= MAX_FLOWS);
    }
}

#[test]
fn a_long_flow_moves_three_times_whichever_flow_is_the_largest() {
    // Two long flows.
    let mut pair = Persistent::new();
    for _ in 0..50 {
        pair.report(&[(1, 60), (2, 40)], 10 * MS, 1);
        pair.report(&[(2, 60), (1, 40)], 10 * MS, 1);
    }
    assert_eq!(pair.moves().len(), MAX_MOVES as usize);
    assert_eq!(pair.flow_moves(), [(1, 3), (2, 3)]);
    // A long flow and many short ones that are larger. Beside some of them it sends very little.
    let mut pair = Persistent::new();
    pair.report(&[(1, 1)], MS, 1);
    for port in 2..200 {
        pair.report(&[(port, 97), (1, 3)], 5 * MS, 4);
        pair.report(&[(port, 60), (1, 40)], 5 * MS, 4);
    }
    assert_eq!(pair.moves().len(), MAX_MOVES as usize);
    assert!(pair.flow_moves().contains(&(1, 3)));
}

#[test]
fn a_new_flow_moves_once_the_long_flow_has_ended() {
    let mut pair = Persistent::new();
    pair.report(&[(1, 1)], 20 * MS, 10);
    assert_eq!(pair.moves().len(), 3);
    pair.report(&[(1, 50), (2, 50)], 20 * MS, 10);
    assert_eq!(pair.moves().len(), 0, "all flows of a pair follow one path");
    pair.report(&[(2, 1)], 20 * MS, 10);
    assert_eq!(pair.moves().len(), 3);
    assert_eq!(pair.flow_moves(), [(1, 3), (2, 3)]);
}

#[test]
fn a_control_connection_does_not_limit_its_pair() {
    let mut pair = Persistent::new();
    for port in 2..20 {
        pair.report(&[(port, 99), (1, 1)], 20 * MS, 10);
        assert_eq!(pair.moves().len(), 3, "flow {port}");
        pair.report(&[(port, 99), (1, 1)], 20 * MS, 10);
        assert_eq!(pair.moves().len(), 0, "flow {port}");
        pair.wait(30 * MS);
    }
}

#[test]
fn refused_moves_do_not_count_but_are_damped() {
    let mut pair = Persistent::new();
    pair.case.executed.refuses = true;
    pair.report(&[(1, 1)], 2 * MS, 1_000);
    assert_eq!(pair.case.controller.counters().refused, 3, "then it waits for 10 s");
    assert_eq!(pair.flow_moves(), [(1, 0)]);
    pair.case.executed.refuses = false;
    pair.wait(10_240 * MS);
    pair.report(&[(1, 1)], 2 * MS, 100);
    assert_eq!((pair.moves().len(), pair.flow_moves()), (3, vec![(1, 3)]));
}

#[test]
fn frozen_moves_do_not_count() {
    let mut pair = Persistent::new();
    pair.case.controller.freeze(true);
    pair.report(&[(1, 1)], 2 * MS, 100);
    assert_eq!((pair.verdicts(Verdict::Withheld), pair.flow_moves()), (3, vec![(1, 0)]));
    assert_eq!(pair.case.controller.counters().flow_moves, [0; 3]);
    pair.case.controller.freeze(false);
    pair.report(&[(1, 1)], 20 * MS, 100);
    assert_eq!(pair.moves(), [220, 240, 260]);
}

#[test]
fn known_flows_are_bounded_and_a_limited_flow_is_kept() {
    let mut pair = Persistent::new();
    pair.report(&[(1, 1)], 20 * MS, 5);
    assert_eq!(pair.flow_moves(), [(1, 3)]);
    pair.wait(30 * MS);
    // The flow pauses, while 300 others of the pair send, two at a time.
    for port in 2..302 {
        pair.report(&[(port, 50), (port + 1, 50)], 10 * MS, 1);
        assert!(pair.flow_moves().len() <= MAX_FLOWS);
    }
    pair.moves();
    pair.report(&[(1, 1)], 20 * MS, 20);
    assert_eq!(pair.moves().len(), 0, "{:?}", pair.flow_moves());
}

/// One report of a random sequence: the time before it, which link, and the flows of some pairs on it.
type Report = (u64, usize, Vec<(usize, Vec<(u16, u64)>)>);

fn any_report() -> impl Strategy<Value = Report> {
    let flows = prop::collection::vec((1u16..6, 1u64..1_000), 1..4);
    let wait = prop_oneof![4 => 100_000u64..3 * MS, 2 => 3 * MS..30 * MS, 1 => 30 * MS..300 * MS];
    (wait, 0usize..4, prop::collection::vec((0usize..6, flows), 1..5))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever is reported, no flow moves more than three times within 10 s, and known flows are bounded. Flows are
    /// counted here from the reports and the actions alone.
    #[test]
    fn no_flow_moves_more_than_three_times(reports in prop::collection::vec(any_report(), 1..300), seed in any::<u64>()) {
        let pairs: Vec<Pair> = (0..6).map(|host| pair(host, 8 + host)).collect();
        let (mut controller, mut executed) = controller(Greedy::new(GreedyOptions::default()), ControllerOptions::default());
        let mut addresses = [0u8; 6];
        // By pair and port: when last reported, and the number of moves.
        let mut flows: BTreeMap<(usize, u16), (u64, u32)> = BTreeMap::new();
        let mut now = 0;
        let mut noise = seed;
        for (wait, hop, on_it) in reports {
            now += wait;
            let first = on_it[0].0;
            let links = controller.paths.of(pairs[first], addresses[first]).unwrap().to_vec();
            let link = links[hop.min(links.len() - 1)];
            let mut seen = std::collections::BTreeSet::new();
            let mut reported = Vec::new();
            for (index, shares) in on_it {
                // A collector may report the pair where it was.
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let address = if noise >> 60 == 0 { (noise >> 50) as u8 % 4 } else { addresses[index] };
                if !seen.insert(index) || !controller.paths.of(pairs[index], address).unwrap().contains(&link) {
                    continue;
                }
                let shares: BTreeMap<u16, u64> = shares.into_iter().collect();
                let sum: u64 = shares.values().sum();
                let mut shares: Vec<(u16, u64)> =
                    shares.into_iter().map(|(port, share)| (port, LINE.0 / 2 * share / sum)).collect();
                shares.sort_by_key(|share| std::cmp::Reverse(share.1));
                let total: u64 = shares.iter().map(|share| share.1).sum();
                if address == addresses[index] {
                    for &(port, rate) in &shares {
                        let key = (index, port);
                        match flows.get_mut(&key) {
                            // One that has not moved may be forgotten when it is not live, and a small one is not known again.
                            Some((seen, 0)) if rate * 10 < total && now - *seen > 25 * MS => drop(flows.remove(&key)),
                            Some(known) => known.0 = now,
                            None if rate * 10 < total => {}
                            None => drop(flows.insert(key, (now, 0))),
                        }
                    }
                }
                reported.push(observed_flows(pairs[index], address, &shares, now));
            }
            let before = executed.actions.len();
            controller.on_congestion(&Congestion { link, time: Timestamp(now), flows: reported });
            executed.carry_out(&mut controller, now);
            for action in &executed.actions[before..] {
                let index = pairs.iter().position(|&pair| pair == action.pair).unwrap();
                addresses[index] = action.address;
                let live = flows.iter_mut().filter(|(key, known)| key.0 == index && now - known.0 <= 25 * MS);
                live.for_each(|(_, known)| known.1 += 1);
            }
            for pair in &pairs {
                prop_assert!(controller.flow_moves(*pair).len() <= MAX_FLOWS);
                prop_assert!(controller.flow_moves(*pair).iter().all(|flow| flow.moves <= MAX_MOVES));
            }
            if now > 10_000 * MS {
                break;
            }
        }
        for (flow, (_, moves)) in flows {
            prop_assert!(moves <= MAX_MOVES, "{flow:?} moved {moves} times");
        }
    }
}
