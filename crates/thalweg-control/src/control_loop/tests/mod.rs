mod links;
mod properties;
mod reconciliation;

use proptest::prelude::*;
use thalweg_measure::collector::{
    CongestionChange, FlowRate, LinkDirection, LinkReport, PortDirection, Progress,
};
use thalweg_measure::rates::Basis;
use thalweg_network::routing::{TreeOptions, spanning_trees};
use thalweg_network::topology::shapes::{Tiers, fat_tree};
use thalweg_network::{EndpointId, Forwarding, LinkState, PortIndex};
use thalweg_sketch::Estimate;
use thalweg_wire::BitRate;

use super::*;
use crate::decide::first_fit::FirstFit;
use crate::decide::greedy::{Greedy, GreedyOptions};
use crate::routes::LinkNumber;

const MS: u64 = 1_000_000;
const LINE: u64 = 10_000_000_000;

fn network() -> Arc<NetworkState> {
    let topology = fat_tree(4, Tiers::default()).unwrap();
    let links = LinkState::new(&topology);
    let tables = spanning_trees(&topology, &links, TreeOptions::default());
    Arc::new(NetworkState::new(topology, links, Forwarding::tables(tables)).unwrap())
}

fn pair(source: u16, destination: u16) -> Pair {
    Pair { source: EndpointId(source), destination: EndpointId(destination) }
}

fn at(ms: u64) -> Timestamp {
    Timestamp(ms * MS)
}

fn greedy() -> Box<Greedy> {
    Box::new(Greedy::new(GreedyOptions::default()))
}

fn new_loop(options: ControlOptions) -> ControlLoop {
    ControlLoop::new(options, &network(), greedy(), Timestamp(0)).unwrap()
}

fn addresses(network: &NetworkState, pair: Pair, address: u8) -> EthernetAddresses {
    EthernetAddresses {
        destination: network.topology().mac(pair.destination, address),
        source: network.topology().mac(pair.source, 0),
    }
}

/// A collector's report of a full link.
fn congestion_event(link: LinkNumber, time: Timestamp, flows: &[(Pair, u8, u64)]) -> Input {
    let network = network();
    let (router, port) = Paths::new(Arc::clone(&network)).port(link);
    let flow = |&(pair, address, rate): &(Pair, u8, u64)| FlowRate {
        key: "tcp 10.0.0.1:1 > 10.0.0.2:2".parse().unwrap(),
        ethernet: addresses(&network, pair, address),
        rate: Estimate::exact(rate as f64),
        basis: Basis::SequenceNumbers,
        span: (Timestamp(0), time),
    };
    let event = CongestionEvent {
        change: CongestionChange::Began,
        link: LinkReport {
            side: LinkDirection { port, direction: PortDirection::Output },
            capacity: BitRate(LINE),
            rate: Estimate::exact(LINE as f64),
            smoothed: LINE as f64,
            peak: LINE as f64,
            utilisation: 1.0,
            flows: flows.len() as u32,
            changed: time,
        },
        rule: 0,
        threshold: 0.9,
        version: 1,
        time,
        flows: flows.iter().map(flow).collect(),
        flows_left_out: 0,
    };
    Input::Congestion { router, event }
}

/// Two pairs whose paths share a link.
fn colliding_pairs() -> (Pair, Pair, u8, u8, LinkNumber) {
    let (one, other) = (pair(0, 8), pair(1, 9));
    let mut paths = Paths::new(network());
    for (a, b) in (0..4).flat_map(|a| (0..4).map(move |b| (a, b))) {
        let mine = paths.of(one, a).unwrap().to_vec();
        if let Some(&link) = paths.of(other, b).unwrap().iter().find(|link| mine.contains(link)) {
            return (one, other, a, b, link);
        }
    }
    unreachable!("trees through one core share a link")
}

fn collision(ms: u64) -> Input {
    let (one, other, a, b, link) = colliding_pairs();
    congestion_event(link, at(ms), &[(one, a, LINE / 2), (other, b, LINE / 2)])
}

fn commands(control: &mut ControlLoop) -> Vec<Command> {
    std::iter::from_fn(|| control.next_command()).collect()
}

/// Starts the action that a collision causes.
fn rerouted(control: &mut ControlLoop, ms: u64) -> (Action, Vec<Command>) {
    control.handle(at(ms), collision(ms));
    let action = commands(control).into_iter().find_map(|command| match command {
        Command::Reroute(action) => Some(action),
        _ => None,
    });
    let action = action.expect("one of the two is rerouted");
    control.handle(at(ms), Input::Started(action.id));
    (action, commands(control))
}

fn address_change(action: &Action, ms: u64) -> Input {
    let network = network();
    let change = thalweg_measure::collector::AddressChange {
        key: "tcp 10.0.0.1:1 > 10.0.0.2:2".parse().unwrap(),
        from: addresses(&network, action.pair, 0),
        to: addresses(&network, action.pair, action.address),
        time: at(ms),
    };
    Input::AddressChange { router: Some(network.topology().router_of(action.pair.source)), change }
}

fn arrival(action: &Action, progress: Progress, ms: u64) -> Input {
    let ethernet = addresses(&network(), action.pair, action.address);
    Input::Arrival(ArrivalReport { ethernet, progress, time: at(ms) })
}

#[test]
fn a_rerouted_pair_is_observed_at_both_ends() {
    let mut control = new_loop(ControlOptions::default());
    let (action, commands) = rerouted(&mut control, 1);
    let [Command::Observe { routers, observation }] = &commands[..] else { panic!("{commands:?}") };
    let network = network();
    let topology = network.topology();
    let Pair { source, destination } = action.pair;
    assert_eq!(*routers, [topology.router_of(source), topology.router_of(destination)]);
    assert_eq!(observation.ethernet, addresses(&network, action.pair, action.address));
}

#[test]
fn a_pair_moves_back_if_its_packets_do_not_arrive() {
    let mut control = new_loop(ControlOptions::default());
    let (action, _) = rerouted(&mut control, 1);
    let awaiting = Progress::Awaiting { since: at(2) };
    control.handle(at(2), arrival(&action, awaiting, 2));
    control.handle(at(3), address_change(&action, 3));
    control.handle(at(4), arrival(&action, Progress::Departed { first: at(3), packets: 3 }, 4));
    control.handle(at(53), Input::Tick);
    let requests = commands(&mut control);
    assert!(matches!(requests[..], [Command::Observe { .. }]), "the third may be in transit: {requests:?}");
    control.handle(at(60), arrival(&action, awaiting, 60));
    control.handle(at(103), Input::Tick);
    let back = commands(&mut control);
    assert!(
        matches!(back[..], [Command::Reroute(back)] if back.pair == action.pair && back.address != action.address),
        "{back:?}"
    );
    assert_eq!(control.take_records().broken_paths, [(action.pair, action.address)]);
}

#[test]
fn a_pair_stays_if_its_packets_arrive() {
    let mut control = new_loop(ControlOptions::default());
    let (action, _) = rerouted(&mut control, 1);
    control.handle(at(2), arrival(&action, Progress::Awaiting { since: at(2) }, 2));
    control.handle(at(3), address_change(&action, 3));
    control.handle(at(4), arrival(&action, Progress::Departed { first: at(3), packets: 3 }, 4));
    control.handle(at(5), arrival(&action, Progress::Arrived, 5));
    for ms in [53, 103, 500, 20_000] {
        control.handle(at(ms), Input::Tick);
    }
    let rest = commands(&mut control);
    assert!(rest.iter().all(|command| matches!(command, Command::PollFlows)), "{rest:?}");
    assert_eq!(control.controller().counters().broken_paths, 0);
}

#[test]
fn a_new_loop_looks_up_pairs_once_and_holds_them() {
    let mut control = new_loop(ControlOptions::default());
    // The time is not known before the first packet.
    control.handle(Timestamp(0), Input::Tick);
    control.handle(at(5_000), Input::Tick);
    assert!(commands(&mut control).is_empty());
    control.handle(at(6_000), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::PollFlows]));
    let flows = Vec::new();
    let found = PairRate { pair: pair(0, 8), address: 2, rate: BitRate(1), measured: at(6_001), flows };
    control.handle(
        at(6_001),
        Input::Flows(vec![found.clone(), PairRate { address: 0, pair: pair(1, 9), ..found }]),
    );
    let held = commands(&mut control);
    assert!(matches!(held[..], [Command::Hold { address: 2, .. }]), "{held:?}");
    control.handle(at(9_000), Input::Tick);
    assert!(commands(&mut control).is_empty());
}

#[test]
fn a_polling_decider_gets_all_flows_at_its_interval() {
    let decider = Box::new(FirstFit::new(Nanos::from_millis(100)));
    let options = ControlOptions { learn_after: None, ..ControlOptions::default() };
    let mut control = ControlLoop::new(options, &network(), decider, Timestamp(0)).unwrap();
    control.handle(at(99), Input::Tick);
    assert!(commands(&mut control).is_empty());
    control.handle(at(100), Input::Tick);
    control.handle(at(101), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::PollFlows]), "requested once");
    let flow = |host: u16| PairRate {
        pair: pair(host, host + 8),
        address: 0,
        rate: BitRate(LINE),
        measured: at(102),
        flows: Vec::new(),
    };
    control.handle(at(102), Input::Flows(vec![flow(0), flow(1)]));
    assert_eq!(control.controller().counters().polls, 1);
    assert_eq!(control.take_records().decisions.len(), 2);
}

fn installing(installation: Installation) -> ControlOptions {
    let routes = RouteOptions {
        trees: Some(TreeOptions { seed: 9, ..TreeOptions::default() }),
        lead_time: Nanos::from_millis(2),
        installation,
        ..RouteOptions::default()
    };
    ControlOptions { routes, learn_after: None, ..ControlOptions::default() }
}

/// Rules that the tables of a loop's state require.
fn wanted(control: &ControlLoop) -> Rules {
    Rules::of_tables(control.state().topology(), control.state().forwarding().all_tables())
}
