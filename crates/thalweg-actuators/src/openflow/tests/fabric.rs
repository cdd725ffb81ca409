//! All switches of a network, each played here by one that keeps entries.

use std::sync::Arc;
use std::time::Instant;

use thalweg_network::routing::{TreeOptions, spanning_trees};
use thalweg_network::topology::shapes::{Tiers, leaf_spine};
use thalweg_network::{EndpointId, Forwarding, LinkState, NetworkState, RouterId};
use thalweg_wire::Timestamp;
use thalweg_wire::openflow::multipart::FlowStats;
use thalweg_wire::openflow::{Action, Instruction, MatchField};

use super::keeping::{Keeping, Table};
use super::*;
use crate::{self as act, ActionId, Actuator};
use thalweg_control::Pair;
use thalweg_control::routes::Rules;
use thalweg_control::routes::reachability::broken_paths;

const ADDRESSES: u8 = 2;
/// h0 is at leaf0, h3 at leaf1.
const FAR: Pair = Pair { source: EndpointId(0), destination: EndpointId(3) };
const LEAF: usize = 0;

/// A leaf-spine of two leaves, two spines and four hosts, whose switches are kept here.
struct Network {
    state: NetworkState,
    tables: Vec<Table>,
    up: Vec<Option<Keeping>>,
    address: SocketAddr,
    fabric: Fabric,
    now: Timestamp,
}

fn state(seed: u64) -> NetworkState {
    let topology = Arc::new(leaf_spine(2, 2, 2, Tiers::default()).unwrap());
    let links = LinkState::new(&topology);
    let trees = spanning_trees(&topology, &links, TreeOptions { addresses: ADDRESSES, seed });
    NetworkState::new(topology, links, Forwarding::tables(trees)).unwrap()
}

fn members(state: &NetworkState) -> Vec<Member> {
    let member = |router: RouterId| Member {
        router,
        datapath: DatapathId(u64::from(router.0) + 1),
        monitor: Some(PortNumber(9)),
    };
    state.topology().router_ids().map(member).collect()
}

fn fabric(state: &NetworkState) -> (Fabric, SocketAddr) {
    let fabric = Fabric::new(Arc::clone(state.topology()), &members(state), Config::default());
    let address = fabric.switches().listen(local(), None).unwrap();
    (fabric, address)
}

impl Network {
    /// With all switches up, and nothing installed.
    fn up() -> Network {
        let state = state(1);
        let (fabric, address) = fabric(&state);
        let tables = Vec::new();
        let mut network = Network { state, tables, up: Vec::new(), address, fabric, now: Timestamp(0) };
        for router in 0..4 {
            network.tables.push(Table::default());
            network.up.push(None);
            network.connect(router);
        }
        network
    }

    fn connect(&mut self, router: usize) {
        let datapath = DatapathId(router as u64 + 1);
        self.up[router] = Some(self.tables[router].connect(self.address, datapath));
        self.until(|network| network.fabric.switches().switch(datapath).is_some());
    }

    /// Ends a connection; the switch goes on forwarding.
    fn disconnect(&mut self, router: usize) {
        self.up[router] = None;
        let datapath = DatapathId(router as u64 + 1);
        self.until(|network| network.fabric.switches().switch(datapath).is_none());
        // And the fabric has heard of it.
        self.until(|_| true);
    }

    /// The controller is gone, and another one takes its place.
    fn restart(&mut self) {
        let (fabric, address) = fabric(&self.state);
        (self.fabric, self.address) = (fabric, address);
        (0..4).for_each(|router| self.connect(router));
    }

    fn install(&mut self) {
        self.fabric.install(&self.state);
        self.settle();
    }

    fn settle(&mut self) {
        self.until(|network| network.fabric.unsettled().next().is_none());
    }

    fn until(&mut self, condition: impl Fn(&Network) -> bool) {
        let begun = Instant::now();
        while {
            self.now = self.now + Nanos::from_millis(100);
            self.fabric.tend(self.now);
            !condition(self)
        } {
            assert!(begun.elapsed() < PATIENCE, "{:?}", self.fabric.take_news());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn act(&mut self, pair: Pair, address: u8) -> Result<(), act::ActError> {
        let (issued, deadline) = (self.now, self.now + SECOND);
        let result = self.fabric.act(&act::Action { id: ActionId(7), pair, address, issued, deadline });
        self.fabric.tend(self.now);
        result
    }

    fn mods(&self) -> Vec<usize> {
        self.tables.iter().map(Table::take_mods).collect()
    }

    fn steering(&self) -> Vec<FlowStats> {
        let mut flows = self.tables[LEAF].flows();
        flows.retain(|flow| flow.cookie == entries::STEERING);
        flows
    }

    /// What the switches have themselves, not what is believed of them.
    fn check_forwarding(&self) {
        let mut rules = Rules::new();
        for (router, table) in self.state.topology().router_ids().zip(&self.tables) {
            for flow in table.flows() {
                if let entries::Read::Ours(entries::Place::Route(address), rule) =
                    entries::read(&flow, Some(PortNumber(9)))
                {
                    rules.apply(&thalweg_control::routes::Change { router, address, rule: Some(rule) });
                }
            }
        }
        assert_eq!(broken_paths(self.state.topology(), self.state.links(), &rules, ADDRESSES), []);
        assert_eq!(&rules, self.fabric.installed());
    }
}

/// Four switches, four hosts, two addresses.
const ALL: [usize; 4] = [8; 4];
const NOTHING: [usize; 4] = [0; 4];

#[test]
fn all_switches_forward_once_installed_and_a_second_time_nothing_is_sent() {
    let mut network = Network::up();
    assert_eq!(network.mods(), NOTHING, "connecting changes nothing");
    network.install();
    assert_eq!(network.mods(), ALL);
    network.check_forwarding();
    network.install();
    assert_eq!(network.mods(), NOTHING);
    assert_eq!(network.fabric.counters().written, 32);
}

#[test]
fn only_the_difference_is_sent() {
    let mut network = Network::up();
    network.install();
    network.mods();
    let before = network.fabric.installed().clone();
    network.state =
        (2..20).map(state).find(|state| state.forwarding() != network.state.forwarding()).unwrap();
    network.install();
    let wanted = Rules::of_tables(network.state.topology(), network.state.forwarding().all_tables());
    let changes = before.changes_to(&wanted).len();
    assert_eq!(network.mods().iter().sum::<usize>(), changes);
    assert!((1..32).contains(&changes), "{changes}");
    network.check_forwarding();
}

#[test]
fn a_pair_is_steered_by_one_entry_at_its_first_switch_and_goes_home_without() {
    let mut network = Network::up();
    network.install();
    network.mods();
    network.act(FAR, 1).unwrap();
    network.settle();
    assert_eq!(network.mods(), [1, 0, 0, 0]);
    let [flow] = network.steering().try_into().unwrap();
    let topology = network.state.topology();
    let (base, shadow) = (topology.mac(FAR.destination, 0), topology.mac(FAR.destination, 1));
    let fields = [
        MatchField::InPort(PortNumber(1)),
        MatchField::EthDst(base.into()),
        MatchField::EthSrc(topology.mac(FAR.source, 0).into()),
    ];
    assert_eq!(flow.matching.0, fields);
    let route = network.fabric.installed().get(RouterId(0), shadow).unwrap();
    let actions = vec![
        Action::SetField(MatchField::EthDst(shadow.into())),
        Action::output(PortNumber(9)),
        Action::output(entries::port_number(route.port)),
    ];
    assert_eq!(flow.instructions, [Instruction::ApplyActions(actions)]);
    let told = network.fabric.take_news();
    assert!(told.iter().any(|news| matches!(news, News::Steered { action: ActionId(7), .. })), "{told:?}");
    assert_eq!(network.fabric.steered().collect::<Vec<_>>(), [(FAR, 1)]);

    network.act(FAR, 0).unwrap();
    network.settle();
    assert_eq!((network.mods(), network.steering()), (vec![1, 0, 0, 0], vec![]));
    network.check_forwarding();
}

#[test]
fn what_cannot_be_steered_is_refused_and_changes_nothing() {
    let mut network = Network::up();
    let near = Pair { source: EndpointId(0), destination: EndpointId(1) };
    assert!(matches!(network.act(FAR, 1), Err(act::ActError::Busy(_))), "no routes yet");
    network.install();
    network.mods();
    assert!(matches!(network.act(FAR, 7), Err(act::ActError::NoWay { address: 7, .. })));
    network.disconnect(LEAF);
    let error = network.act(FAR, 1).unwrap_err().to_string();
    assert_eq!(error, "h0 cannot be reached: its switch is not connected");
    network.connect(LEAF);
    network.act(near, 1).unwrap();
    network.settle();
    assert_eq!(network.steering(), [], "at one switch there is one way");
}

#[test]
fn a_pair_is_not_sent_where_routes_are_missing() {
    let mut network = Network::up();
    let spines = [2, 3];
    spines.into_iter().for_each(|spine| network.disconnect(spine));
    network.fabric.install(&network.state);
    network.until(|network| network.fabric.unsettled().count() == 2);
    assert!(matches!(network.act(FAR, 1), Err(act::ActError::Busy(_))));
    spines.into_iter().for_each(|spine| network.connect(spine));
    network.settle();
    network.act(FAR, 1).unwrap();
    // A switch that is gone for a moment forwards as it did.
    network.settle();
    spines.into_iter().for_each(|spine| network.disconnect(spine));
    network.act(FAR, 0).unwrap();
    network.act(FAR, 1).unwrap();
}

#[test]
fn a_switch_that_restarts_gets_everything_again_and_one_that_only_lost_its_connection_nothing() {
    let mut network = Network::up();
    network.install();
    network.act(FAR, 1).unwrap();
    network.settle();
    network.mods();
    network.disconnect(LEAF);
    network.connect(LEAF);
    network.settle();
    assert_eq!(network.mods(), NOTHING);
    network.disconnect(LEAF);
    network.tables[LEAF].change(Vec::clear);
    network.connect(LEAF);
    network.settle();
    assert_eq!(network.mods(), [9, 0, 0, 0], "its routes, and the pair");
    assert_eq!(network.steering().len(), 1);
    network.check_forwarding();
}

#[test]
fn a_controller_that_restarts_takes_up_what_it_finds() {
    let mut network = Network::up();
    network.install();
    network.act(FAR, 1).unwrap();
    network.settle();
    network.mods();
    network.restart();
    assert_eq!(network.mods(), NOTHING, "nothing is touched before there are routes");
    network.install();
    assert_eq!(network.mods(), NOTHING, "and nothing after, for all is there");
    assert_eq!(network.fabric.steered().collect::<Vec<_>>(), [(FAR, 1)]);
    network.check_forwarding();
}

#[test]
fn strays_are_removed_and_what_is_somebody_elses_is_left() {
    let mut network = Network::up();
    network.install();
    network.disconnect(LEAF);
    network.tables[LEAF].change(|flows| {
        let mut elsewhere = flows[0].clone();
        elsewhere.cookie = 5;
        elsewhere.priority = 60_000;
        let mut stray = flows[1].clone();
        stray.priority = 3;
        // An entry of ours that somebody has changed.
        flows[2].instructions = vec![];
        flows.extend([elsewhere, stray]);
    });
    network.mods();
    network.connect(LEAF);
    network.settle();
    assert_eq!(network.mods(), [3, 0, 0, 0], "two removed, one written");
    assert_eq!(network.tables[LEAF].flows().len(), 9, "eight of ours, one of somebody else's");
    network.check_forwarding();
}

#[test]
fn what_was_refused_is_read_back_and_sent_again() {
    let mut network = Network::up();
    network.tables[LEAF].refuse(3);
    network.install();
    network.check_forwarding();
    assert_eq!(network.mods(), [11, 8, 8, 8], "three once more");
    let told = network.fabric.take_news();
    let is_failure = |news: &&News| matches!(news, News::Failed { router: RouterId(0), action: None, .. });
    assert_eq!(told.iter().filter(is_failure).count(), 1, "{told:?}");
    let FabricCounters { failed, read_again, .. } = network.fabric.counters();
    assert_eq!((failed, read_again), (1, 1));
}

#[test]
fn a_pair_whose_move_was_refused_is_left_where_it_was() {
    let mut network = Network::up();
    network.install();
    network.tables[LEAF].refuse(1);
    network.act(FAR, 1).unwrap();
    network.until(|network| network.fabric.counters().failed == 1);
    network.settle();
    assert_eq!((network.steering(), network.fabric.steered().count()), (vec![], 0));
    network.act(FAR, 1).unwrap();
    network.settle();
    // It is not sent home either.
    network.tables[LEAF].refuse(1);
    network.act(FAR, 0).unwrap();
    network.until(|network| network.fabric.counters().failed == 2);
    network.settle();
    assert_eq!((network.steering().len(), network.fabric.steered().count()), (1, 1));
    network.check_forwarding();
}

#[test]
fn an_action_without_effect_is_taken_back() {
    let mut network = Network::up();
    network.install();
    let action = |address: u8| act::Action {
        id: ActionId(address.into()),
        pair: FAR,
        address,
        issued: Timestamp(0),
        deadline: Timestamp(0) + SECOND,
    };
    network.fabric.act(&action(1)).unwrap();
    network.fabric.failed(&action(2), 0);
    network.settle();
    assert_eq!(network.steering().len(), 1, "it has been sent elsewhere since");
    network.fabric.failed(&action(1), 0);
    network.settle();
    assert_eq!((network.steering(), network.fabric.steered().count()), (vec![], 0));
}

#[test]
fn a_switch_of_no_network_is_left_alone() {
    let mut network = Network::up();
    let stranger = Table::default();
    let _up = stranger.connect(network.address, DatapathId(0xbad));
    network.until(|network| network.fabric.switches().switch(DatapathId(0xbad)).is_some());
    network.install();
    assert_eq!(stranger.take_mods(), 0);
    let told = network.fabric.take_news();
    assert!(told.contains(&News::Stranger { datapath: DatapathId(0xbad) }), "{told:?}");
}
