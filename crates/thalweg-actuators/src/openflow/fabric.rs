//! All switches of a network, told by OpenFlow what to forward where, and which pairs to send another way.
//!
//! **Routes** are set by [`Fabric::install`]: what each switch is to have is compared with what it has, and only the
//! difference is sent. What a switch has is read back when it connects, and once more after something was refused or
//! not answered; in between it is what it was told. So installing is incremental, a second time it does nothing, a
//! controller that restarts takes up what it finds, and a switch that restarts gets all of it again.
//!
//! **A pair is steered at the first switch** on its way (Planck, section 6.2): one entry, more important than routes,
//! that writes the shadow address over the base address and sends by the port of that address's tree. All further
//! switches have the route: until they do, the pair stays. To send the pair home the entry is deleted. Hosts know
//! nothing of it, and send to base addresses: who steers by ARP as well has hosts send to addresses that these entries
//! do not match.
//!
//! Nothing here waits for a switch, and there is no thread of its own: whoever uses it calls [`Fabric::tend`] every few
//! milliseconds. The difference is sent to all switches at once. While trees are exchanged under addresses that are in
//! use, packets may be lost or go in circles until the last switch has done; new trees under addresses that nobody uses
//! yet, as in section 4.1, have no such moment.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use crossbeam_channel::Receiver;
use thalweg_network::routing::path::follow;
use thalweg_network::{NetworkState, RouterId, Topology};
use thalweg_wire::openflow::multipart::FlowStats;
use thalweg_wire::openflow::{Body, DatapathId, PortNumber};
use thalweg_wire::{Nanos, Timestamp};

use super::config::Config;
use super::entries::{self, COOKIES, Entry, Place, Read};
use super::event::Event;
use super::member::{Link, Move, Stock, Told};
use super::news::News;
use super::report::{FabricCounters, SwitchesReport};
use super::switches::Switches;
use crate::{ActError, Action, Actuator};
use thalweg_control::Pair;
use thalweg_control::routes::{Rule, Rules};

/// Longest that a switch may take to carry out a batch of routes, or to say what it has.
const WITHIN: Nanos = Nanos::from_secs(5);

/// How soon a switch is looked at again that refused something, or did not answer.
const RETRY: Nanos = Nanos::from_secs(1);

/// Messages in a batch at most, so that one write stays within what sockets buffer.
const BATCH: usize = 1_000;

/// News that are kept for whoever takes them; of more, the oldest are dropped and counted.
const MAX_NEWS: usize = 1_024;

/// Which switch of a network is which datapath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The switch of the topology.
    pub router: RouterId,
    /// Its number in OpenFlow.
    pub datapath: DatapathId,
    /// The port to which all that it forwards is copied; `None` if that is none of the controller's business.
    pub monitor: Option<PortNumber>,
}

/// The switches of a network. Dropping it ends the connections; what is installed stays.
pub struct Fabric {
    topology: Arc<Topology>,
    switches: Switches,
    events: Receiver<Event>,
    members: BTreeMap<RouterId, State>,
    routers: BTreeMap<DatapathId, RouterId>,
    /// `None` until somebody says: then everything is left as it is.
    wanted: Option<Rules>,
    installed: Rules,
    steered: BTreeMap<Pair, u8>,
    news: VecDeque<News>,
    counters: FabricCounters,
}

/// What is known of a switch.
#[derive(Default)]
struct State {
    monitor: Option<PortNumber>,
    link: Option<Link>,
    /// Entries that steer, installed as far as is known.
    steering: BTreeMap<Place, Rule>,
    /// Whether it has ever been connected. What it was found to steer then is left so.
    is_known: bool,
}

impl Fabric {
    /// The switches of `topology` that are members, spoken to as `config` says; which entries are read back is not for
    /// it to say. Nobody is connected yet: see [`Fabric::switches`].
    pub fn new(topology: Arc<Topology>, members: &[Member], config: Config) -> Fabric {
        let (switches, events) = Switches::new(Config { read_back: COOKIES, ..config });
        let state = |member: &Member| State { monitor: member.monitor, ..State::default() };
        Fabric {
            topology,
            switches,
            events,
            members: members.iter().map(|member| (member.router, state(member))).collect(),
            routers: members.iter().map(|member| (member.datapath, member.router)).collect(),
            wanted: None,
            installed: Rules::new(),
            steered: BTreeMap::new(),
            news: VecDeque::new(),
            counters: FabricCounters::default(),
        }
    }

    /// The connections, to listen and to connect.
    pub fn switches(&self) -> &Switches {
        &self.switches
    }

    /// Has all switches forward as the tables of a state say: those that are connected at once, others when they are.
    /// Pairs that are steered go on being so, by the ports of the new trees.
    pub fn install(&mut self, state: &NetworkState) {
        self.wanted = Some(Rules::of_tables(state.topology(), state.forwarding().all_tables()));
        for router in self.members.keys().copied().collect::<Vec<_>>() {
            self.send_difference(router);
        }
    }

    /// Hears what switches say, and does what is due.
    pub fn tend(&mut self, now: Timestamp) {
        while let Ok(event) = self.events.try_recv() {
            self.hear(event);
        }
        for router in self.members.keys().copied().collect::<Vec<_>>() {
            self.settle_batches(router, now);
            self.settle_doubts(router, now);
        }
    }

    /// What has happened since this was last asked.
    pub fn take_news(&mut self) -> Vec<News> {
        self.news.drain(..).collect()
    }

    /// What it has done.
    pub fn counters(&self) -> FabricCounters {
        self.counters
    }

    /// The routes of all switches, as far as is known.
    pub fn installed(&self) -> &Rules {
        &self.installed
    }

    /// Pairs that are sent another way, and to which address.
    pub fn steered(&self) -> impl Iterator<Item = (Pair, u8)> + '_ {
        self.steered.iter().map(|(&pair, &address)| (pair, address))
    }

    /// How many switches there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Switches that do not have what they are to have, or are not known to: not connected, or still at it. All of them
    /// until routes were installed.
    pub fn unsettled(&self) -> impl Iterator<Item = RouterId> + '_ {
        let is_settled = |state: &State| state.link.as_ref().is_some_and(Link::is_settled);
        let has_begun = self.wanted.is_some();
        self.members
            .iter()
            .filter(move |(_, state)| !(has_begun && is_settled(state)))
            .map(|(&router, _)| router)
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Up(up) => match self.routers.get(&up.switch.datapath()) {
                None => self.tell(News::Stranger { datapath: up.switch.datapath() }),
                Some(&router) => {
                    let state = self.members.get_mut(&router).expect("every datapath's is there");
                    state.link = Some(Link::new(up.switch));
                    let entries = up.flows.len();
                    self.take_stock(router, &up.flows);
                    self.tell(News::Up { router, entries });
                }
            },
            Event::Down { datapath, reason } => {
                if let Some(&router) = self.routers.get(&datapath) {
                    self.members.get_mut(&router).expect("as above").link = None;
                    self.tell(News::Down { router, reason });
                }
            }
            Event::Refused { peer, error } => self.tell(News::Refused { peer, error }),
            // A second message of a batch was refused, whose first has failed it.
            Event::Error { .. } => {}
            // Nothing that forwarding depends on.
            _ => {}
        }
    }

    /// These are the entries of ours that a switch has.
    fn take_stock(&mut self, router: RouterId, flows: &[FlowStats]) {
        let state = self.members.get_mut(&router).expect("a member");
        let (mut routes, mut strays) = (Rules::new(), Vec::new());
        state.steering.clear();
        for flow in flows {
            match entries::read(flow, state.monitor) {
                Read::Ours(Place::Route(address), rule) => {
                    routes.apply(&thalweg_control::routes::Change { router, address, rule: Some(rule) });
                }
                Read::Ours(place, rule) => {
                    state.steering.insert(place, rule);
                }
                Read::Stray(delete) => strays.push(Body::FlowMod(*delete)),
            }
        }
        if !std::mem::replace(&mut state.is_known, true) {
            let found =
                state.steering.iter().filter_map(|(place, rule)| steered(&self.topology, place, rule));
            self.steered.extend(found.collect::<Vec<_>>());
        }
        for change in self.installed.at(router).changes_to(&routes) {
            self.installed.apply(&change);
        }
        if self.wanted.is_some() {
            // Before what may take their places, and so behind a barrier of their own.
            self.counters.removed += strays.len() as u64;
            self.send(router, &strays);
            self.send_difference(router);
        }
    }

    /// Sends a switch what it is to have and has not, and takes away what it has and is not to have.
    fn send_difference(&mut self, router: RouterId) {
        let Some(wanted) = &self.wanted else { return };
        let state = &self.members[&router];
        if !state.link.as_ref().is_some_and(Link::is_known) {
            // What it has will be read back.
            return;
        }
        let routes = self.installed.at(router).changes_to(&wanted.at(router));
        let steering = self.wanted_steering(router);
        let added = steering.iter().filter(|(place, rule)| state.steering.get(place) != Some(rule));
        let removed = state.steering.keys().filter(|place| !steering.contains_key(place));
        let added = added.map(|(&place, &rule)| Entry { place, rule: Some(rule) });
        let removed = removed.map(|&place| Entry { place, rule: None });
        let entries: Vec<Entry> =
            added.chain(removed).chain(routes.iter().copied().map(Entry::from)).collect();
        let messages: Vec<Body> = entries.iter().map(|entry| entry.flow_mod(state.monitor)).collect();
        if self.send(router, &messages) {
            entries.iter().for_each(|entry| self.note(router, entry));
        }
    }

    /// Sends messages that no action waits for. Whether they were sent.
    fn send(&mut self, router: RouterId, messages: &[Body]) -> bool {
        let Some(link) = self.members.get_mut(&router).and_then(|state| state.link.as_mut()) else {
            return false;
        };
        for batch in messages.chunks(BATCH) {
            if link.send(batch, None, WITHIN).is_err() {
                // Not connected any more, or too busy: it is read back then.
                link.doubt(None);
                self.counters.failed += 1;
                return false;
            }
        }
        true
    }

    /// A switch has been told of an entry.
    fn note(&mut self, router: RouterId, entry: &Entry) {
        let counter =
            if entry.rule.is_some() { &mut self.counters.written } else { &mut self.counters.removed };
        *counter += 1;
        match (entry.place, entry.rule) {
            (Place::Route(address), rule) => {
                self.installed.apply(&thalweg_control::routes::Change { router, address, rule });
            }
            (place, rule) => {
                let steering = &mut self.members.get_mut(&router).expect("a member").steering;
                match rule {
                    Some(rule) => steering.insert(place, rule),
                    None => steering.remove(&place),
                };
            }
        }
    }

    /// The entries by which a switch is to steer.
    fn wanted_steering(&self, router: RouterId) -> BTreeMap<Place, Rule> {
        let here = self.steered().filter(|(pair, _)| self.topology.router_of(pair.source) == router);
        let entry = |(pair, address)| {
            let entry = self.steering_entry(pair, address)?;
            Some((entry.place, entry.rule?))
        };
        here.filter_map(entry).collect()
    }

    /// The entry that sends a pair to an address; `None` if that leads nowhere.
    fn steering_entry(&self, pair: Pair, address: u8) -> Option<Entry> {
        let Pair { source, destination } = pair;
        let router = self.topology.router_of(source);
        let shadow = self.topology.mac(destination, address);
        let route = self.wanted.as_ref()?.get(router, shadow)?;
        let place = Place::Steering {
            port: self.topology.port_of(source),
            source: self.topology.mac(source, 0),
            destination: self.topology.mac(destination, 0),
        };
        // At home there is nothing to write, and at one switch there is one way.
        let is_route = address == 0 || router == self.topology.router_of(destination);
        let rule = (!is_route).then_some(Rule { port: route.port, write_back: Some(shadow) });
        Some(Entry { place, rule })
    }

    /// Learns what came of the batches of a switch.
    fn settle_batches(&mut self, router: RouterId, now: Timestamp) {
        let Some(link) = self.members.get_mut(&router).and_then(|state| state.link.as_mut()) else { return };
        let told: Vec<Told> = link.told().collect();
        for Told { of, outcome } in told {
            let action = of.map(|of| of.action);
            match outcome.result {
                Ok(()) => {
                    self.counters.done += 1;
                    if let Some(action) = action {
                        self.tell(News::Steered { action, took: outcome.took });
                    }
                }
                Err(failure) => {
                    self.counters.failed += 1;
                    if let Some(of) = of {
                        self.take_back(of);
                    }
                    if let Some(link) = self.members.get_mut(&router).and_then(|state| state.link.as_mut()) {
                        link.doubt(Some(now + RETRY));
                    }
                    self.tell(News::Failed { router, action, failure });
                }
            }
        }
    }

    /// Asks a switch that is in doubt what it has, and compares when it has answered.
    fn settle_doubts(&mut self, router: RouterId, now: Timestamp) {
        let Some(link) = self.members.get_mut(&router).and_then(|state| state.link.as_mut()) else { return };
        match link.stock(now, WITHIN) {
            Stock::Asks => self.counters.read_again += 1,
            Stock::Has(Ok(flows)) => self.take_stock(router, &flows),
            Stock::Has(Err(_)) => link.doubt(Some(now + RETRY)),
            Stock::Waits => {}
        }
    }

    fn tell(&mut self, news: News) {
        if self.news.len() == MAX_NEWS {
            self.news.pop_front();
            self.counters.news_dropped += 1;
        }
        self.news.push_back(news);
    }

    fn source_name(&self, pair: Pair) -> String {
        self.topology.endpoints()[pair.source.index()].name.clone()
    }

    fn steer(&mut self, of: Move, within: Nanos) -> Result<(), ActError> {
        let Move { pair, to, .. } = of;
        if self.wanted.is_none() {
            return Err(ActError::Busy("routes have not been installed yet".to_owned()));
        }
        let no_way = || ActError::NoWay { source_name: self.source_name(pair), address: to };
        let entry = self.steering_entry(pair, to).ok_or_else(no_way)?;
        let router = self.topology.router_of(pair.source);
        let source_name = self.source_name(pair);
        let unreachable = |cause| ActError::Unreachable { source_name, cause };
        if self.members.get(&router).is_none_or(|state| state.link.is_none()) {
            let cause = io::Error::new(io::ErrorKind::NotConnected, "its switch is not connected");
            return Err(unreachable(cause));
        }
        if !self.is_laid(pair, to) {
            return Err(ActError::Busy("a switch on the way does not have its routes yet".to_owned()));
        }
        let state = self.members.get_mut(&router).expect("seen above");
        let message = entry.flow_mod(state.monitor);
        let link = state.link.as_mut().expect("seen above");
        if let Err(error) = link.send(&[message], Some(of), within) {
            return Err(unreachable(io::Error::other(error)));
        }
        self.place(pair, to);
        self.note(router, &entry);
        Ok(())
    }

    /// Whether all switches on the way of a pair to this address have the routes for it. Of one that is not connected what was
    /// known last.
    fn is_laid(&self, pair: Pair, address: u8) -> bool {
        let Some(wanted) = &self.wanted else { return false };
        let to = self.topology.mac(pair.destination, address);
        let route = |router| {
            let wanted = wanted.get(router, to)?;
            let link = self.members.get(&router)?.link.as_ref();
            let is_there =
                self.installed.get(router, to) == Some(wanted) && link.is_none_or(Link::has_routes);
            is_there.then_some(wanted.port)
        };
        follow(&self.topology, pair.source, pair.destination, route).is_ok()
    }

    fn place(&mut self, pair: Pair, address: u8) {
        match address {
            0 => self.steered.remove(&pair),
            _ => self.steered.insert(pair, address),
        };
    }

    /// A move has failed. The pair is to be where it was, as the controller takes it to be, unless it has been sent
    /// elsewhere since.
    fn take_back(&mut self, of: Move) {
        if self.address(of.pair) == of.to {
            self.place(of.pair, of.from);
        }
    }

    /// The address that a pair is sent to.
    fn address(&self, pair: Pair) -> u8 {
        self.steered.get(&pair).copied().unwrap_or(0)
    }
}

impl Actuator for Fabric {
    fn name(&self) -> &'static str {
        "openflow"
    }

    /// One flow-mod with a barrier; what came of it is [`News`].
    fn act(&mut self, action: &Action) -> Result<(), ActError> {
        let from = self.address(action.pair);
        let of = Move { action: action.id, pair: action.pair, from, to: action.address };
        self.steer(of, action.deadline.since(action.issued))
    }

    /// What was installed for it is taken back, unless the pair has been sent elsewhere since.
    fn failed(&mut self, action: &Action, from: u8) {
        if self.address(action.pair) == action.address {
            self.place(action.pair, from);
            self.send_difference(self.topology.router_of(action.pair.source));
        }
    }

    /// Switches that are not connected are told when they are.
    fn install(&mut self, state: &NetworkState) -> Result<(), String> {
        Fabric::install(self, state);
        Ok(())
    }

    fn tend(&mut self, now: Timestamp) -> Result<(), String> {
        Fabric::tend(self, now);
        Ok(())
    }

    fn switches_report(&self) -> Option<SwitchesReport> {
        let unsettled = self.unsettled().count();
        Some(SwitchesReport { settled: self.len() - unsettled, unsettled, counters: self.counters() })
    }
}

/// The pair that an entry steers, and to which address; `None` if these are no hosts of the network.
fn steered(topology: &Topology, place: &Place, rule: &Rule) -> Option<(Pair, u8)> {
    let &Place::Steering { source, destination, .. } = place else { return None };
    let (source, _) = topology.endpoint_with_mac(source)?;
    let (destination, _) = topology.endpoint_with_mac(destination)?;
    let (written, address) = topology.endpoint_with_mac(rule.write_back?)?;
    (written == destination).then_some((Pair { source, destination }, address))
}
