use proptest::prelude::*;
use thalweg_measure::collector::{Crossing, FlowRate, LinkReport, LinkSide, Progress, Way};
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

fn a_loop(options: ControlOptions) -> ControlLoop {
    ControlLoop::new(options, &network(), greedy(), Timestamp(0)).unwrap()
}

fn addresses(network: &NetworkState, pair: Pair, address: u8) -> EthernetAddresses {
    EthernetAddresses {
        destination: network.topology().mac(pair.destination, address),
        source: network.topology().mac(pair.source, 0),
    }
}

/// What a collector reports of a link that is full.
fn link_event(link: LinkNumber, time: Timestamp, flows: &[(Pair, u8, u64)]) -> Input {
    let network = network();
    let (router, port) = Paths::new(Arc::clone(&network)).port(link);
    let flow = |&(pair, address, rate): &(Pair, u8, u64)| FlowRate {
        key: "tcp 10.0.0.1:1 > 10.0.0.2:2".parse().unwrap(),
        ethernet: addresses(&network, pair, address),
        rate: Estimate::exact(rate as f64),
        basis: Basis::SequenceNumbers,
        span: (Timestamp(0), time),
    };
    let event = LinkEvent {
        crossing: Crossing::Upwards,
        link: LinkReport {
            side: LinkSide { port, way: Way::Output },
            capacity: BitRate(LINE),
            rate: Estimate::exact(LINE as f64),
            smoothed: LINE as f64,
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
    Input::Link { router, event }
}

/// Two pairs whose paths meet at a link.
fn meeting() -> (Pair, Pair, u8, u8, LinkNumber) {
    let (one, other) = (pair(0, 8), pair(1, 9));
    let mut paths = Paths::new(network());
    for (a, b) in (0..4).flat_map(|a| (0..4).map(move |b| (a, b))) {
        let mine = paths.of(one, a).unwrap().to_vec();
        if let Some(&link) = paths.of(other, b).unwrap().iter().find(|link| mine.contains(link)) {
            return (one, other, a, b, link);
        }
    }
    unreachable!("trees of one core meet")
}

fn collision(ms: u64) -> Input {
    let (one, other, a, b, link) = meeting();
    link_event(link, at(ms), &[(one, a, LINE / 2), (other, b, LINE / 2)])
}

fn commands(control: &mut ControlLoop) -> Vec<Command> {
    std::iter::from_fn(|| control.next_command()).collect()
}

/// The action that a collision gives rise to, started.
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
fn a_rerouted_pair_is_observed_at_the_switches_of_both_ends() {
    let mut control = a_loop(ControlOptions::default());
    let (action, commands) = rerouted(&mut control, 1);
    let [Command::Observe { routers, observation }] = &commands[..] else { panic!("{commands:?}") };
    let network = network();
    let topology = network.topology();
    let Pair { source, destination } = action.pair;
    assert_eq!(*routers, [topology.router_of(source), topology.router_of(destination)]);
    assert_eq!(observation.ethernet, addresses(&network, action.pair, action.address));
}

#[test]
fn packets_that_set_out_and_do_not_arrive_bring_the_pair_back() {
    let mut control = a_loop(ControlOptions::default());
    let (action, _) = rerouted(&mut control, 1);
    let awaiting = Progress::Awaiting { since: at(2) };
    control.handle(at(2), arrival(&action, awaiting, 2));
    control.handle(at(3), address_change(&action, 3));
    control.handle(at(4), arrival(&action, Progress::SetOut { first: at(3), packets: 3 }, 4));
    control.handle(at(53), Input::Tick);
    let asked = commands(&mut control);
    assert!(matches!(asked[..], [Command::Observe { .. }]), "the third may be under way: {asked:?}");
    control.handle(at(60), arrival(&action, awaiting, 60));
    control.handle(at(103), Input::Tick);
    let back = commands(&mut control);
    assert!(
        matches!(back[..], [Command::Reroute(back)] if back.pair == action.pair && back.address != action.address),
        "{back:?}"
    );
    assert_eq!(control.take_records().astray, [(action.pair, action.address)]);
}

#[test]
fn packets_that_arrive_leave_the_pair_where_it_is() {
    let mut control = a_loop(ControlOptions::default());
    let (action, _) = rerouted(&mut control, 1);
    control.handle(at(2), arrival(&action, Progress::Awaiting { since: at(2) }, 2));
    control.handle(at(3), address_change(&action, 3));
    control.handle(at(4), arrival(&action, Progress::SetOut { first: at(3), packets: 3 }, 4));
    control.handle(at(5), arrival(&action, Progress::Arrived, 5));
    for ms in [53, 103, 500, 20_000] {
        control.handle(at(ms), Input::Tick);
    }
    let rest = commands(&mut control);
    assert!(rest.iter().all(|command| matches!(command, Command::PollFlows)), "{rest:?}");
    assert_eq!(control.controller().counters().astray, 0);
}

#[test]
fn a_loop_that_begins_looks_once_where_pairs_are_and_holds_them_there() {
    let mut control = a_loop(ControlOptions::default());
    // Time is not known before the first packet.
    control.handle(Timestamp(0), Input::Tick);
    control.handle(at(5_000), Input::Tick);
    assert!(commands(&mut control).is_empty());
    control.handle(at(6_000), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::PollFlows]));
    let found = Observed { pair: pair(0, 8), address: 2, rate: BitRate(1) };
    control.handle(at(6_001), Input::Flows(vec![found, Observed { address: 0, pair: pair(1, 9), ..found }]));
    let held = commands(&mut control);
    assert!(matches!(held[..], [Command::Hold { address: 2, .. }]), "{held:?}");
    control.handle(at(9_000), Input::Tick);
    assert!(commands(&mut control).is_empty());
}

#[test]
fn a_decider_that_polls_is_given_all_flows_when_it_wants_them() {
    let decider = Box::new(FirstFit::new(Nanos::from_millis(100)));
    let options = ControlOptions { learn_after: None, ..ControlOptions::default() };
    let mut control = ControlLoop::new(options, &network(), decider, Timestamp(0)).unwrap();
    control.handle(at(99), Input::Tick);
    assert!(commands(&mut control).is_empty());
    control.handle(at(100), Input::Tick);
    control.handle(at(101), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::PollFlows]), "asked once");
    let flow = |host: u16| Observed { pair: pair(host, host + 8), address: 0, rate: BitRate(LINE) };
    control.handle(at(102), Input::Flows(vec![flow(0), flow(1)]));
    assert_eq!(control.controller().counters().polls, 1);
    assert_eq!(control.take_records().decisions.len(), 2);
}

fn installing(installation: Installation) -> ControlOptions {
    let routes = RouteOptions {
        trees: Some(TreeOptions { seed: 9, ..TreeOptions::default() }),
        settle: Nanos::from_millis(2),
        installation,
        ..RouteOptions::default()
    };
    ControlOptions { routes, learn_after: None, ..ControlOptions::default() }
}

#[test]
fn nothing_is_steered_before_the_routes_are_installed() {
    let mut control = a_loop(installing(Installation::Whole));
    let told = commands(&mut control);
    assert!(
        matches!(&told[..], [Command::Announce { ahead: Nanos(2_000_000), state }] if Arc::ptr_eq(state, control.state()))
    );
    control.handle(at(1), collision(1));
    control.handle(at(1), Input::Announced(at(3)));
    control.handle(at(2), Input::Tick);
    assert!(commands(&mut control).is_empty(), "collectors are to know first");
    control.handle(at(3), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::Install(_)]));
    assert!(!control.has_routes());
    control.handle(at(4), Input::Installed);
    assert!(control.has_routes());
    control.handle(at(5), collision(5));
    assert_eq!(control.controller().counters().congestions, 1);
}

#[test]
fn routes_that_cannot_be_announced_are_not_steered_by() {
    let mut control = a_loop(installing(Installation::Whole));
    commands(&mut control);
    control.handle(at(1), Input::AnnounceFailed("no such switch".to_owned()));
    control.handle(at(1_000), Input::Tick);
    assert!(commands(&mut control).is_empty() && !control.has_routes());
    assert_eq!(control.take_records().errors, ["no such switch"]);
}

/// Rules that the tables of a loop's state come to.
fn wanted(control: &ControlLoop) -> Rules {
    Rules::of_tables(control.state().topology(), control.state().forwarding().all_tables())
}

fn repairing() -> (ControlLoop, Rules) {
    let interval = Some(Nanos::from_millis(20));
    let mut control = a_loop(installing(Installation::Repair { interval }));
    assert!(commands(&mut control).is_empty());
    control.handle(at(1), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::ReadBack { router: None }]));
    let rules = wanted(&control);
    control.handle(at(1), Input::Tables { router: None, rules: rules.clone() });
    assert!(commands(&mut control).is_empty(), "all is as it should be");
    (control, rules)
}

#[test]
fn what_a_switch_has_forgotten_is_put_right_before_anything_else() {
    let (mut control, mut rules) = repairing();
    control.handle(at(20), Input::Tick);
    assert!(commands(&mut control).is_empty());
    control.handle(at(21), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::ReadBack { router: None }]));
    let lost = RouterId(8);
    let (place, address, _) = rules.iter().find(|(router, ..)| *router == RouterId(0)).unwrap();
    rules.apply(&crate::routes::Change { router: place, address, rule: None });
    let entries: Vec<_> = rules.at(lost).iter().map(|(_, address, _)| address).collect();
    for &address in &entries {
        rules.apply(&crate::routes::Change { router: lost, address, rule: None });
    }
    control.handle(at(22), Input::Tables { router: None, rules: rules.clone() });
    let [Command::Repair(changes)] = &commands(&mut control)[..] else { panic!("nothing is repaired") };
    assert_eq!(changes.len(), entries.len() + 1);
    assert!(changes[..entries.len()].iter().all(|change| change.router == lost), "it has nothing");
    changes.iter().for_each(|change| rules.apply(change));
    assert_eq!(rules, wanted(&control));
    control.handle(at(23), Input::Repaired);
    assert_eq!(control.route_counters().corrected, entries.len() as u64 + 1);
    control.handle(at(43), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::ReadBack { .. }]), "and looks again");
}

#[test]
fn a_link_that_fails_is_routed_around_once_collectors_know() {
    let (mut control, mut rules) = repairing();
    let link = control.state().topology().link_at(RouterId(8), PortIndex(2));
    control.handle(at(10), Input::LinkChanged { link, is_up: false });
    assert!(matches!(commands(&mut control)[..], [Command::Announce { .. }]));
    assert!(!control.has_routes() && !control.state().links().is_up(link));
    control.handle(at(10), Input::Announced(at(12)));
    control.handle(at(12), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::ReadBack { .. }]));
    control.handle(at(12), Input::Links(control.state().links().clone()));
    control.handle(at(12), Input::Tables { router: None, rules: rules.clone() });
    let [Command::Repair(changes)] = &commands(&mut control)[..] else { panic!("nothing is installed") };
    changes.iter().for_each(|change| rules.apply(change));
    control.handle(at(13), Input::Repaired);
    assert!(control.has_routes());
    let links = control.state().links().clone();
    assert_eq!(crate::routes::walk::astray(control.state().topology(), &links, &rules, 4), []);
    control.handle(at(20), Input::LinkChanged { link, is_up: true });
    assert!(matches!(commands(&mut control)[..], [Command::Announce { .. }]), "and it is back");
    assert_eq!(control.route_counters().rerouted, 2);
}

#[test]
fn what_was_read_before_other_routes_were_announced_repairs_nothing() {
    let (mut control, rules) = repairing();
    control.handle(at(21), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::ReadBack { .. }]));
    let link = control.state().topology().link_at(RouterId(8), PortIndex(2));
    let mut links = control.state().links().clone();
    links.fail(link).unwrap();
    control.handle(at(22), Input::Links(links));
    control.handle(at(22), Input::Tables { router: None, rules });
    assert!(matches!(commands(&mut control)[..], [Command::Announce { .. }]));
}

#[test]
fn a_switch_that_connects_is_read_and_given_what_it_lacks() {
    let (mut control, _) = repairing();
    let router = RouterId(3);
    control.handle(at(5), Input::SwitchConnected(router));
    assert!(matches!(commands(&mut control)[..], [Command::ReadBack { router: Some(RouterId(3)) }]));
    control.handle(at(5), Input::Tables { router: Some(router), rules: Rules::new() });
    let [Command::Repair(changes)] = &commands(&mut control)[..] else { panic!("it gets nothing") };
    assert_eq!(changes.len(), wanted(&control).at(router).len());
}

#[test]
fn switches_that_do_not_answer_are_asked_again() {
    let (mut control, _) = repairing();
    control.handle(at(21), Input::Tick);
    commands(&mut control);
    control.handle(at(5_020), Input::Tick);
    assert!(commands(&mut control).is_empty());
    control.handle(at(5_021), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::ReadBack { .. }]));
    assert_eq!(control.route_counters().failed, 1);
}

#[test]
fn frozen_it_leaves_rules_as_they_are_until_it_goes_on() {
    let (mut control, _) = repairing();
    control.handle(at(20), Input::Freeze(true));
    control.handle(at(21), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::ReadBack { .. }]), "looking changes nothing");
    control.handle(at(21), Input::Tables { router: None, rules: Rules::new() });
    assert!(commands(&mut control).is_empty());
    control.handle(at(30), Input::Freeze(false));
    control.handle(at(30), Input::Tick);
    assert!(matches!(commands(&mut control)[..], [Command::ReadBack { .. }]));
    control.handle(at(31), Input::Tables { router: None, rules: Rules::new() });
    assert!(matches!(commands(&mut control)[..], [Command::Repair(_)]));
}

#[test]
fn frozen_it_remembers_which_links_are_down_and_routes_around_them_later() {
    let (mut control, _) = repairing();
    control.handle(at(20), Input::Freeze(true));
    let [one, other] = [2, 3].map(|port| control.state().topology().link_at(RouterId(8), PortIndex(port)));
    for link in [one, other] {
        control.handle(at(22), Input::LinkChanged { link, is_up: false });
    }
    assert!(commands(&mut control).is_empty() && control.state().links().all_up());
    control.handle(at(30), Input::Freeze(false));
    assert!(matches!(commands(&mut control)[..], [Command::Announce { .. }]));
    assert_eq!(control.state().links().failed().collect::<Vec<_>>(), [one, other]);
}

/// What may happen to a loop.
#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Collision(u32, Vec<(u16, u16, u8, u64)>),
    Seen(u16, u16, u8),
    Report(u16, u16, u8, u8),
    Pin(u16, u16, u8),
    Unpin(u16, u16),
    Freeze(bool),
    Flows(Vec<(u16, u16, u8, u64)>),
    Link(u16, bool),
    Tables(u8),
    Connected(u16),
    /// The driver answers the next commands so: starts, refuses, or says nothing.
    Answers(u8),
}

fn any_step() -> impl Strategy<Value = Step> {
    let host = || 0u16..16;
    let flow = || (host(), host(), 0u8..4, 1u64..LINE);
    prop_oneof![
        3 => (1u64..30).prop_map(Step::Wait),
        4 => (0u32..80, prop::collection::vec(flow(), 1..4)).prop_map(|(link, flows)| Step::Collision(link, flows)),
        2 => (host(), host(), 0u8..4).prop_map(|(a, b, address)| Step::Seen(a, b, address)),
        2 => (host(), host(), 0u8..4, 0u8..3).prop_map(|(a, b, address, kind)| Step::Report(a, b, address, kind)),
        1 => (host(), host(), 0u8..4).prop_map(|(a, b, address)| Step::Pin(a, b, address)),
        1 => (host(), host()).prop_map(|(a, b)| Step::Unpin(a, b)),
        1 => any::<bool>().prop_map(Step::Freeze),
        1 => prop::collection::vec(flow(), 0..6).prop_map(Step::Flows),
        1 => (0u16..40, any::<bool>()).prop_map(|(link, is_up)| Step::Link(link, is_up)),
        1 => (0u8..4).prop_map(Step::Tables),
        1 => (0u16..20).prop_map(Step::Connected),
        1 => (0u8..3).prop_map(Step::Answers),
    ]
}

/// A loop, and a driver that answers as steps say.
struct Driven {
    control: ControlLoop,
    now: u64,
    answers: u8,
    commanded: Vec<Command>,
}

impl Driven {
    fn new(options: ControlOptions) -> Driven {
        Driven { control: a_loop(options), now: 1, answers: 0, commanded: Vec::new() }
    }

    fn tell(&mut self, input: Input) {
        self.control.handle(at(self.now), input);
        while let Some(command) = self.control.next_command() {
            self.commanded.push(command.clone());
            let answer = match (command, self.answers) {
                (Command::Reroute(action), 0) => Input::Started(action.id),
                (Command::Reroute(action), 1) => Input::Refused(action.id, "no".to_owned()),
                (Command::Announce { ahead, .. }, 0) => Input::Announced(at(self.now) + ahead),
                (Command::Announce { .. }, 1) => Input::AnnounceFailed("no".to_owned()),
                (Command::Install(_), 0) => Input::Installed,
                (Command::Repair(_), 0) => Input::Repaired,
                (Command::Repair(_), 1) => Input::RepairFailed("no".to_owned()),
                (Command::PollFlows, _) => Input::Flows(Vec::new()),
                _ => continue,
            };
            self.control.handle(at(self.now), answer);
        }
    }

    fn step(&mut self, step: &Step) {
        let flows = |flows: &[(u16, u16, u8, u64)]| -> Vec<(Pair, u8, u64)> {
            let flows = flows.iter().filter(|flow| flow.0 != flow.1);
            flows.map(|&(a, b, address, rate)| (pair(a, b), address, rate)).collect()
        };
        let input = match step {
            Step::Wait(ms) => {
                self.now += ms;
                Input::Tick
            }
            Step::Collision(link, on_it) => link_event(LinkNumber(*link), at(self.now), &flows(on_it)),
            Step::Seen(a, b, _) | Step::Report(a, b, ..) | Step::Pin(a, b, _) | Step::Unpin(a, b)
                if a == b =>
            {
                Input::Tick
            }
            Step::Seen(a, b, address) => {
                let (id, issued) = (crate::action::ActionId(0), at(self.now));
                let (pair, address) = (pair(*a, *b), *address);
                address_change(&Action { id, pair, address, issued, deadline: issued }, self.now)
            }
            Step::Report(a, b, address, kind) => {
                let time = at(self.now);
                let progress = [
                    Progress::Awaiting { since: Timestamp(time.0 / 2) },
                    Progress::SetOut { first: time, packets: 3 },
                    Progress::Arrived,
                ][usize::from(*kind)];
                let ethernet = addresses(&network(), pair(*a, *b), *address);
                Input::Arrival(ArrivalReport { ethernet, progress, time })
            }
            Step::Pin(a, b, address) => Input::Pin { pair: pair(*a, *b), address: *address },
            Step::Unpin(a, b) => Input::Unpin(pair(*a, *b)),
            Step::Freeze(is_frozen) => Input::Freeze(*is_frozen),
            Step::Flows(all) => {
                let observed = flows(all).into_iter();
                let observed =
                    observed.map(|(pair, address, rate)| Observed { pair, address, rate: BitRate(rate) });
                Input::Flows(observed.collect())
            }
            Step::Link(link, is_up) => Input::LinkChanged { link: LinkId(u32::from(*link)), is_up: *is_up },
            Step::Tables(kept) => {
                // Some of the rules are missing.
                let mut rules = wanted(&self.control);
                let gone: Vec<_> = rules.iter().skip(usize::from(*kept) * 100).collect();
                for (router, address, _) in gone {
                    rules.apply(&crate::routes::Change { router, address, rule: None });
                }
                Input::Tables { router: None, rules }
            }
            Step::Connected(router) => Input::SwitchConnected(RouterId(*router)),
            Step::Answers(how) => {
                self.answers = *how;
                Input::Tick
            }
        };
        self.tell(input);
    }
}

fn any_options() -> impl Strategy<Value = ControlOptions> {
    let interval = Some(Nanos::from_millis(20));
    let installation = prop_oneof![
        Just(Installation::Never),
        Just(Installation::Whole),
        Just(Installation::Repair { interval })
    ];
    (installation, 1usize..8).prop_map(|(installation, pending)| {
        let controller = ControllerOptions { pending, kept: 10, ..ControllerOptions::default() };
        ControlOptions { controller, ..installing(installation) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_same_inputs_give_the_same_commands(
        options in any_options(),
        steps in prop::collection::vec(any_step(), 0..60),
    ) {
        let run = || {
            let mut driven = Driven::new(options);
            steps.iter().for_each(|step| driven.step(step));
            let records = format!("{:?}", driven.control.take_records());
            (format!("{:?}", driven.commanded), records, driven.control.controller().counters())
        };
        prop_assert_eq!(run(), run());
    }

    /// Whatever happens, and whether or not anybody takes commands, reports what became of them, or takes records.
    #[test]
    fn all_that_it_keeps_is_bounded(
        options in any_options(),
        steps in prop::collection::vec(any_step(), 0..80),
        takes_commands in any::<bool>(),
    ) {
        let mut driven = Driven::new(options);
        for step in steps.iter().cycle().take(steps.len() * 3) {
            if takes_commands {
                driven.step(step);
                driven.commanded.clear();
            } else if let Step::Pin(a, b, address) = step && a != b {
                let pair = pair(*a, *b);
                driven.now += 60;
                driven.control.handle(at(driven.now), Input::Pin { pair, address: *address });
                driven.control.handle(at(driven.now), Input::Tick);
            }
        }
        let pending = options.controller.pending;
        prop_assert!(driven.control.arrivals.len() <= pending);
        prop_assert!(driven.control.commands.len() <= 8, "{:?}", driven.control.commands.len());
        let records = driven.control.take_records();
        // Begun, refused and ended are kept apart.
        prop_assert!(records.actions.len() <= 3 * pending && records.astray.len() <= pending);
        prop_assert!(records.decisions.len() <= 10);
        prop_assert!(driven.control.actions().count() <= 10);
    }

    #[test]
    fn frozen_it_commands_nothing_that_changes_where_packets_go(
        installation in prop_oneof![Just(Installation::Never), Just(Installation::Repair { interval: Some(Nanos::from_millis(20)) })],
        steps in prop::collection::vec(any_step(), 0..60),
    ) {
        let mut driven = Driven::new(installing(installation));
        driven.tell(Input::Freeze(true));
        driven.commanded.clear();
        for step in &steps {
            // Users may pin, and end it.
            if !matches!(step, Step::Pin(..) | Step::Freeze(false)) {
                driven.step(step);
            }
        }
        let harmless = |command: &Command| matches!(
            command,
            Command::Hold { .. } | Command::PollFlows | Command::ReadBack { .. } | Command::Observe { .. }
        );
        prop_assert!(driven.commanded.iter().all(harmless), "{:?}", driven.commanded);
    }
}
