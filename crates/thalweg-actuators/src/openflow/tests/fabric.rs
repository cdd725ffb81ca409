//! A fabric with a table switch for each switch of the network.

use std::sync::Arc;
use std::time::Instant;

use thalweg_network::routing::{TreeOptions, spanning_trees};
use thalweg_network::topology::shapes::{Tiers, leaf_spine};
use thalweg_network::{EndpointId, Forwarding, LinkState, NetworkState, RouterId};
use thalweg_wire::Timestamp;
use thalweg_wire::openflow::multipart::FlowStats;
use thalweg_wire::openflow::{Action, Instruction, MatchField};

use super::table_switch::{Table, TableSwitch};
use super::*;
use crate::{self as act, ActionId, Actuator};
use thalweg_control::Pair;
use thalweg_control::routes::Rules;
use thalweg_control::routes::reachability::broken_paths;

const ADDRESSES: u8 = 2;
/// h0 is at leaf0, h3 at leaf1.
const FAR: Pair = Pair { source: EndpointId(0), destination: EndpointId(3) };
const LEAF: usize = 0;

/// A leaf-spine network of two leaves, two spines and four hosts.
struct Network {
    state: NetworkState,
    tables: Vec<Table>,
    up: Vec<Option<TableSwitch>>,
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
        monitor: Some(PortNumber(9).into()),
    };
    state.topology().router_ids().map(member).collect()
}

fn fabric(state: &NetworkState) -> (Fabric, SocketAddr) {
    fabric_of(state, test_config())
}

/// Time passes faster in these tests than messages.
fn test_config() -> Config {
    Config { master_timeout: Nanos::from_secs(36_000), ..Config::default() }
}

fn fabric_of(state: &NetworkState, config: Config) -> (Fabric, SocketAddr) {
    let fabric = Fabric::new(Arc::clone(state.topology()), &members(state), config);
    let address = fabric.switches().listen(local(), None).unwrap();
    (fabric, address)
}

impl Network {
    /// Connects all switches, without entries.
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
        network.until(|network| is_master(&network.fabric));
        network
    }

    fn connect(&mut self, router: usize) {
        let datapath = DatapathId(router as u64 + 1);
        self.up[router] = Some(self.tables[router].connect(self.address, datapath));
        self.until(|network| network.fabric.switches().switch(datapath).is_some());
    }

    /// Ends a connection; the switch keeps forwarding.
    fn disconnect(&mut self, router: usize) {
        self.up[router] = None;
        let datapath = DatapathId(router as u64 + 1);
        self.until(|network| network.fabric.switches().switch(datapath).is_none());
        // Lets the fabric handle the event.
        self.until(|_| true);
    }

    /// Replaces the controller.
    fn restart(&mut self) {
        let (fabric, address) = fabric(&self.state);
        (self.fabric, self.address) = (fabric, address);
        (0..4).for_each(|router| self.connect(router));
        self.until(|network| is_master(&network.fabric));
    }

    fn install(&mut self) {
        self.fabric.install(&self.state);
        self.settle();
    }

    fn settle(&mut self) {
        self.until(|network| network.fabric.out_of_sync().next().is_none());
    }

    fn until(&mut self, condition: impl Fn(&Network) -> bool) {
        let start = Instant::now();
        while {
            self.now = self.now + Nanos::from_millis(100);
            self.fabric.maintain(self.now);
            !condition(self)
        } {
            assert!(start.elapsed() < TEST_TIMEOUT, "{:?}", self.fabric.take_events());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn reroute(&mut self, pair: Pair, address: u8) -> Result<(), act::ActuatorError> {
        let (issued, deadline) = (self.now, self.now + SECOND);
        let result = self.fabric.reroute(&act::Action { id: ActionId(7), pair, address, issued, deadline });
        self.fabric.maintain(self.now);
        result
    }

    fn mods(&self) -> Vec<usize> {
        self.tables.iter().map(Table::take_mods).collect()
    }

    fn reroutes(&self) -> Vec<FlowStats> {
        let mut flows = self.tables[LEAF].flows();
        flows.retain(|flow| flow.cookie == entries::REROUTE);
        flows
    }

    /// Checks the switches' own entries, not the fabric's view of them.
    fn check_forwarding(&self) {
        let mut rules = Rules::new();
        for (router, table) in self.state.topology().router_ids().zip(&self.tables) {
            let monitor = Some(PortNumber(9).into());
            let ports = ports::SwitchPorts::new(self.state.topology(), router, monitor);
            for flow in table.flows() {
                if let entries::ReadEntry::Ours(entries::EntryKey::Route(address), rule) =
                    entries::read(&flow, &ports)
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
fn installing_twice_sends_entries_once() {
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
fn one_entry_at_the_first_switch_reroutes_a_pair() {
    let mut network = Network::up();
    network.install();
    network.mods();
    network.reroute(FAR, 1).unwrap();
    network.settle();
    assert_eq!(network.mods(), [1, 0, 0, 0]);
    let [flow] = network.reroutes().try_into().unwrap();
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
        Action::output(PortNumber(u32::from(route.port.0) + 1)),
    ];
    assert_eq!(flow.instructions, [Instruction::ApplyActions(actions)]);
    let events = network.fabric.take_events();
    assert!(
        events.iter().any(|news| matches!(news, FabricEvent::Rerouted { action: ActionId(7), .. })),
        "{events:?}"
    );
    assert_eq!(network.fabric.rerouted().collect::<Vec<_>>(), [(FAR, 1)]);

    network.reroute(FAR, 0).unwrap();
    network.settle();
    assert_eq!((network.mods(), network.reroutes()), (vec![1, 0, 0, 0], vec![]));
    network.check_forwarding();
}

#[test]
fn the_controller_refuses_impossible_moves_without_changes() {
    let mut network = Network::up();
    let near = Pair { source: EndpointId(0), destination: EndpointId(1) };
    assert!(matches!(network.reroute(FAR, 1), Err(act::ActuatorError::Busy(_))), "no routes yet");
    network.install();
    network.mods();
    assert!(matches!(network.reroute(FAR, 7), Err(act::ActuatorError::NoPath { address: 7, .. })));
    network.disconnect(LEAF);
    let error = network.reroute(FAR, 1).unwrap_err().to_string();
    assert_eq!(error, "cannot reach h0: its switch is not connected");
    network.connect(LEAF);
    network.settle();
    network.reroute(near, 1).unwrap();
    network.settle();
    assert_eq!(network.reroutes(), [], "within one switch only one path exists");
}

#[test]
fn a_pair_is_not_moved_to_a_path_whose_switches_lack_entries() {
    let mut network = Network::up();
    let spines = [2, 3];
    spines.into_iter().for_each(|spine| network.disconnect(spine));
    network.fabric.install(&network.state);
    network.until(|network| network.fabric.out_of_sync().count() == 2);
    assert!(matches!(network.reroute(FAR, 1), Err(act::ActuatorError::Busy(_))));
    spines.into_iter().for_each(|spine| network.connect(spine));
    network.settle();
    network.reroute(FAR, 1).unwrap();
    // A briefly disconnected switch keeps forwarding.
    network.settle();
    spines.into_iter().for_each(|spine| network.disconnect(spine));
    network.reroute(FAR, 0).unwrap();
    network.reroute(FAR, 1).unwrap();
}

#[test]
fn only_a_restarted_switch_gets_its_entries_again() {
    let mut network = Network::up();
    network.install();
    network.reroute(FAR, 1).unwrap();
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
    assert_eq!(network.mods(), [9, 0, 0, 0], "its routes and the reroute entry");
    assert_eq!(network.reroutes().len(), 1);
    network.check_forwarding();
}

#[test]
fn a_restarted_controller_reuses_installed_entries() {
    let mut network = Network::up();
    network.install();
    network.reroute(FAR, 1).unwrap();
    network.settle();
    network.mods();
    network.restart();
    assert_eq!(network.mods(), NOTHING, "no change before routes are installed");
    network.install();
    assert_eq!(network.mods(), NOTHING, "all entries are present");
    assert_eq!(network.fabric.rerouted().collect::<Vec<_>>(), [(FAR, 1)]);
    network.check_forwarding();
}

#[test]
fn modified_entries_are_replaced_and_foreign_ones_kept() {
    let mut network = Network::up();
    network.install();
    network.disconnect(LEAF);
    network.tables[LEAF].change(|flows| {
        let mut elsewhere = flows[0].clone();
        elsewhere.cookie = 5;
        elsewhere.priority = 60_000;
        let mut stray = flows[1].clone();
        stray.priority = 3;
        // A Thalweg entry modified from outside.
        flows[2].instructions = vec![];
        flows.extend([elsewhere, stray]);
    });
    network.mods();
    network.connect(LEAF);
    network.settle();
    assert_eq!(network.mods(), [2, 0, 0, 0], "one removed, one replaced");
    assert_eq!(network.tables[LEAF].flows().len(), 9, "eight own entries, one foreign");
    network.check_forwarding();
}

#[test]
fn refused_entries_are_read_back_and_resent() {
    let mut network = Network::up();
    network.tables[LEAF].refuse(3);
    network.install();
    network.check_forwarding();
    assert_eq!(network.mods(), [11, 8, 8, 8], "three are resent");
    let events = network.fabric.take_events();
    let is_failure =
        |news: &&FabricEvent| matches!(news, FabricEvent::Failed { router: RouterId(0), action: None, .. });
    assert_eq!(events.iter().filter(is_failure).count(), 1, "{events:?}");
    let FabricCounters { failed, read_backs, .. } = network.fabric.counters();
    assert_eq!((failed, read_backs), (1, 1));
}

#[test]
fn a_move_refused_by_a_switch_is_reverted() {
    let mut network = Network::up();
    network.install();
    network.tables[LEAF].refuse(1);
    network.reroute(FAR, 1).unwrap();
    network.until(|network| network.fabric.counters().failed == 1);
    network.settle();
    assert_eq!((network.reroutes(), network.fabric.rerouted().count()), (vec![], 0));
    network.reroute(FAR, 1).unwrap();
    network.settle();
    // A refused move back is also reverted.
    network.tables[LEAF].refuse(1);
    network.reroute(FAR, 0).unwrap();
    network.until(|network| network.fabric.counters().failed == 2);
    network.settle();
    assert_eq!((network.reroutes().len(), network.fabric.rerouted().count()), (1, 1));
    network.check_forwarding();
}

#[test]
fn an_abandoned_action_is_reverted() {
    let mut network = Network::up();
    network.install();
    let action = |address: u8| act::Action {
        id: ActionId(address.into()),
        pair: FAR,
        address,
        issued: Timestamp(0),
        deadline: Timestamp(0) + SECOND,
    };
    network.fabric.reroute(&action(1)).unwrap();
    network.fabric.abandon(&action(2), 0);
    network.settle();
    assert_eq!(network.reroutes().len(), 1, "the pair has moved since");
    network.fabric.abandon(&action(1), 0);
    network.settle();
    assert_eq!((network.reroutes(), network.fabric.rerouted().count()), (vec![], 0));
}

#[test]
fn an_unknown_switch_is_left_alone() {
    let mut network = Network::up();
    let unknown = Table::default();
    let _up = unknown.connect(network.address, DatapathId(0xbad));
    network.until(|network| network.fabric.switches().switch(DatapathId(0xbad)).is_some());
    network.install();
    assert_eq!(unknown.take_mods(), 0);
    let events = network.fabric.take_events();
    assert!(events.contains(&FabricEvent::UnknownSwitch { datapath: DatapathId(0xbad) }), "{events:?}");
}

/// A second daemon for the switches of a network, with its own connections to their tables.
struct Rival {
    fabric: Fabric,
    _up: Vec<TableSwitch>,
}

impl Rival {
    fn new(network: &Network) -> Rival {
        let (fabric, address) = fabric_of(&network.state, Config { instance: 1, ..test_config() });
        let connect = |(table, number): (&Table, u64)| table.connect(address, DatapathId(number));
        let up = network.tables.iter().zip(1..).map(connect).collect();
        Rival { fabric, _up: up }
    }
}

fn is_master(fabric: &Fabric) -> bool {
    fabric.switches_report().unwrap().is_master
}

#[test]
fn only_one_of_two_daemons_writes_and_claims_to_be_in_sync() {
    let mut network = Network::up();
    network.install();
    network.reroute(FAR, 1).unwrap();
    network.settle();
    assert!(is_master(&network.fabric));
    network.mods();
    let mut rival = Rival::new(&network);
    // The rival wants other routes.
    rival.fabric.install(&state(2));
    for _ in 0..200 {
        network.now = network.now + Nanos::from_millis(100);
        network.fabric.maintain(network.now);
        rival.fabric.maintain(network.now);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(network.mods(), NOTHING);
    assert!(!is_master(&rival.fabric) && rival.fabric.out_of_sync().count() == 4);
    let (id, issued) = (ActionId(1), Timestamp(0));
    let action = act::Action { id, pair: FAR, address: 0, issued, deadline: issued + SECOND };
    assert!(matches!(rival.fabric.reroute(&action), Err(act::ActuatorError::Busy(_))));

    // The master ends, and releases its role.
    let (ended, _) = fabric(&network.state);
    drop(std::mem::replace(&mut network.fabric, ended));
    let start = Instant::now();
    while rival.fabric.out_of_sync().next().is_some() {
        // One heartbeat per round.
        network.now = network.now + Nanos::from_secs(4_500);
        rival.fabric.maintain(network.now);
        assert!(start.elapsed() < TEST_TIMEOUT, "{:?}", rival.fabric.take_events());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(is_master(&rival.fabric));
    assert_eq!(rival.fabric.rerouted().collect::<Vec<_>>(), [(FAR, 1)], "its predecessor's reroute stays");
}

#[test]
fn a_master_that_another_replaced_writes_nothing_more() {
    let mut network = Network::up();
    network.install();
    let mut rival = Rival::new(&network);
    rival.fabric.install(&network.state);
    let (start, mut now) = (Instant::now(), network.now);
    while rival.fabric.out_of_sync().next().is_some() {
        // The master is stopped: only the rival's time passes, by one heartbeat per round.
        now = now + Nanos::from_secs(4_500);
        rival.fabric.maintain(now);
        assert!(start.elapsed() < TEST_TIMEOUT, "{:?}", rival.fabric.take_events());
        std::thread::sleep(Duration::from_millis(50));
    }
    network.mods();
    // The old master returns, and wants to move a pair: the switch refuses.
    network.reroute(FAR, 1).unwrap();
    network.until(|network| !is_master(&network.fabric));
    assert_eq!((network.mods(), network.reroutes()), (NOTHING.to_vec(), vec![]));
    assert!(is_master(&rival.fabric) && network.fabric.out_of_sync().count() == 4);
    let events = network.fabric.take_events();
    assert!(events.contains(&FabricEvent::Mastership(MastershipChange::LostToOther)), "{events:?}");
}
