//! All switches of a network, controlled by OpenFlow: routes and rerouted pairs.
//!
//! **Routes** are set by [`Fabric::install`]. It compares the wanted entries of each switch with its present ones and
//! sends only the difference. Entries are read back when a switch connects, and after a refusal or a timeout. In
//! between, they are the entries that were sent. So installing is incremental and idempotent, a restarted controller
//! reuses existing entries, and a restarted switch gets all entries again.
//!
//! **Audits** find entries that others removed, changed or added under Thalweg's cookies: each switch's entries are
//! read at [`Config::audit_interval`], and at once when it reports a removal. Differences are counted, reported as
//! [`FabricEvent::Repaired`] and repaired.
//!
//! **Mastership.** Several daemons may control the same switches. One of them is the master; the others write nothing
//! ([`FabricEvent::Mastership`]). A new master reads all entries first. See the module `election`.
//!
//! **Links.** The port status of both ends of a link says whether it is up ([`FabricEvent::LinkChanged`]). A disconnected
//! switch leaves the state of its links as it was.
//!
//! **A pair is rerouted at its first switch** (Planck, section 6.2). One entry of higher priority than routes writes
//! the shadow address and sends to the port of that address's tree. All further switches use their routes; the pair
//! is not moved until they have them. Deleting the entry moves the pair back to its base address. Hosts are not
//! involved and send to base addresses. If ARP rerouting is used as well, hosts send to addresses that these entries
//! do not match.
//!
//! Nothing here blocks on a switch or starts a thread: call [`Fabric::maintain`] every few milliseconds. Differences
//! go to all switches at once. When trees change under addresses in use, packets may be lost or loop until the last
//! switch is done. New trees under unused addresses, as in section 4.1, avoid this.

mod mastership;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use crossbeam_channel::Receiver;
use thalweg_network::routing::path::follow;
use thalweg_network::{NetworkState, PortIndex, RouterId, Topology};
use thalweg_wire::openflow::{Body, DatapathId, FlowRemoved, Port, PortNumber, PortReason, PortStatus};
use thalweg_wire::{Nanos, Timestamp};

use super::Config;
use super::Event;
use super::Switches;
use super::election::{Election, ElectionOptions};
use super::entries::{self, COOKIES, Entry, EntryKey};
use super::fabric_event::FabricEvent;
use super::generation::Identity;
use super::links::LinkObserver;
use super::ports::{PortReference, SwitchPorts};
use super::report::{FabricCounters, SwitchesReport};
use super::session::{BatchResult, ReadBackStep, SwitchSession};
use super::table::TableContents;
use crate::{Action, ActionId, Actuator, ActuatorError};
use thalweg_control::Pair;
use thalweg_control::routes::{Change, Rule, Rules};

/// Timeout of a batch of routes and of a read-back.
const BATCH_TIMEOUT: Nanos = Nanos::from_secs(5);

/// Delay before the entries of a switch are read back after a refusal or a timeout.
const RETRY_DELAY: Nanos = Nanos::from_secs(1);

/// Maximum messages per batch, so that one write fits into socket buffers.
const MAX_BATCH: usize = 1_000;

/// Maximum number of queued events; beyond that, the oldest are dropped and counted.
const MAX_EVENTS: usize = 1_024;

/// Maps a switch of the topology to its datapath.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The switch of the topology.
    pub router: RouterId,
    /// The OpenFlow datapath id.
    pub datapath: DatapathId,
    /// The monitor port, to which all packets are copied; `None` if the controller does not manage mirroring.
    pub monitor: Option<PortReference>,
}

/// The switches of a network. Dropping it closes the connections; installed entries stay.
pub struct Fabric {
    topology: Arc<Topology>,
    switches: Switches,
    events: Receiver<Event>,
    members: BTreeMap<RouterId, State>,
    routers: BTreeMap<DatapathId, RouterId>,
    /// `None` until routes are installed: no entry is changed before.
    wanted: Option<Rules>,
    installed: Rules,
    rerouted: BTreeMap<Pair, u8>,
    news: VecDeque<FabricEvent>,
    links: LinkObserver,
    counters: FabricCounters,
    audit_interval: Nanos,
    election: Election,
    /// The time of the last [`maintain`](Fabric::maintain).
    now: Timestamp,
}

/// A session whose batches carry out a move, or install routes.
type Session = SwitchSession<Move, EntryKey>;

/// A move of a pair from one address to another.
#[derive(Clone, Copy, Debug)]
struct Move {
    action: ActionId,
    pair: Pair,
    from: u8,
    to: u8,
}

/// The known state of a switch.
#[derive(Default)]
struct State {
    ports: SwitchPorts,
    session: Option<Session>,
    /// Reroute entries, as far as known.
    reroutes: BTreeMap<EntryKey, Rule>,
    /// Whether its entries have been read since this daemon became the master after another, or started. Reroute entries
    /// that are found then are kept.
    is_known: bool,
    /// Whether it had entries that Thalweg would not write when this daemon was not allowed to delete them.
    has_strays: bool,
}

impl Fabric {
    /// Creates a fabric of the member switches, with settings from `config` except `read_back`. No connections exist
    /// yet: see [`Fabric::switches`].
    pub fn new(topology: Arc<Topology>, members: &[Member], config: Config) -> Fabric {
        let Config { audit_interval, priority, instance, master_timeout, .. } = config;
        let identity = Identity { priority, instance };
        let election = Election::new(ElectionOptions { identity, timeout: master_timeout });
        let (switches, events) = Switches::new(Config { read_back: COOKIES, ..config });
        let state = |member: &Member| {
            let ports = SwitchPorts::new(&topology, member.router, member.monitor.clone());
            State { ports, ..State::default() }
        };
        let states = members.iter().map(|member| (member.router, state(member))).collect();
        Fabric {
            links: LinkObserver::new(Arc::clone(&topology)),
            topology,
            switches,
            events,
            members: states,
            routers: members.iter().map(|member| (member.datapath, member.router)).collect(),
            wanted: None,
            installed: Rules::new(),
            rerouted: BTreeMap::new(),
            news: VecDeque::new(),
            counters: FabricCounters::default(),
            audit_interval,
            election,
            now: Timestamp(0),
        }
    }

    /// Returns the connections, for listening and connecting.
    pub fn switches(&self) -> &Switches {
        &self.switches
    }

    /// Installs the tables of a state: at once in connected switches, and in others when they connect. Rerouted pairs
    /// stay rerouted, by the ports of the new trees.
    pub fn install(&mut self, state: &NetworkState) {
        self.wanted = Some(Rules::of_tables(state.topology(), state.forwarding().all_tables()));
        for router in self.members.keys().copied().collect::<Vec<_>>() {
            self.repair(router);
        }
    }

    /// Handles events and due work.
    pub fn maintain(&mut self, now: Timestamp) {
        self.now = now;
        while let Ok(event) = self.events.try_recv() {
            self.handle(event);
        }
        self.elect(now);
        for router in self.members.keys().copied().collect::<Vec<_>>() {
            self.handle_results(router, now);
            self.read_back(router, now);
            self.audit(router, now);
        }
    }

    /// Returns the events since the last call.
    pub fn take_events(&mut self) -> Vec<FabricEvent> {
        self.news.drain(..).collect()
    }

    /// Returns the counters.
    pub fn counters(&self) -> FabricCounters {
        self.counters
    }

    /// Returns the installed routes, as far as known.
    pub fn installed(&self) -> &Rules {
        &self.installed
    }

    /// Returns the rerouted pairs and their addresses.
    pub fn rerouted(&self) -> impl Iterator<Item = (Pair, u8)> + '_ {
        self.rerouted.iter().map(|(&pair, &address)| (pair, address))
    }

    /// Returns the number of switches.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns whether there are no switches.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns the switches without confirmed wanted entries: disconnected, or still in progress. All switches before
    /// the first installation, and while this daemon is not the master.
    pub fn out_of_sync(&self) -> impl Iterator<Item = RouterId> + '_ {
        let is_in_sync = |state: &State| {
            let has_all_ports = state.ports.missing().next().is_none();
            has_all_ports && state.session.as_ref().is_some_and(Session::is_in_sync)
        };
        let is_started = self.wanted.is_some();
        self.members
            .iter()
            .filter(move |(router, state)| !(is_started && self.may_write(**router) && is_in_sync(state)))
            .map(|(&router, _)| router)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Up(up) => match self.routers.get(&up.switch.datapath()) {
                None => self.publish(FabricEvent::UnknownSwitch { datapath: up.switch.datapath() }),
                Some(&router) => {
                    let state = self.members.get_mut(&router).expect("every datapath has a member");
                    let mut session = Session::new(up.switch, entries::all());
                    session.send_beat(self.election.greeting());
                    state.session = Some(session);
                    let entries = up.flows.len();
                    state.ports.report_all(&up.ports);
                    up.ports.iter().for_each(|port| self.port_changed(router, port.port_no, port.is_up()));
                    self.check_ports(router);
                    self.adopt(router, TableContents::of(&up.flows, &self.members[&router].ports));
                    self.publish(FabricEvent::Up { router, entries });
                }
            },
            Event::Down { datapath, reason } => {
                if let Some(&router) = self.routers.get(&datapath) {
                    self.members.get_mut(&router).expect("every datapath has a member").session = None;
                    self.publish(FabricEvent::Down { router, reason });
                }
            }
            Event::PortStatus { datapath, status: PortStatus { reason, port } } => {
                if let Some(&router) = self.routers.get(&datapath) {
                    self.port_reported(router, reason, &port);
                }
            }
            Event::FlowRemoved { datapath, flow } => self.entry_removed(datapath, &flow),
            Event::Refused { peer, error } => self.publish(FabricEvent::Refused { peer, error }),
            Event::Role { datapath, role } => {
                if let Some(&router) = self.routers.get(&datapath) {
                    self.role_reported(router, role);
                }
            }
            // Either about a role, or a further message of a batch that has already failed.
            Event::Error { datapath, xid, error } => {
                if let Some(&router) = self.routers.get(&datapath) {
                    self.role_refused(router, xid, &error);
                }
            }
            // These do not affect forwarding.
            _ => {}
        }
    }

    /// A port came, went or changed. If ports have other numbers now, the entries are read and written again.
    fn port_reported(&mut self, router: RouterId, reason: PortReason, port: &Port) {
        let exists = reason != PortReason::DELETE;
        // The port that had this number until now.
        if !exists {
            self.port_changed(router, port.port_no, false);
        }
        let state = self.members.get_mut(&router).expect("every datapath has a member");
        let name = port.name.to_string();
        if state.ports.report(port.port_no, exists.then_some(&name)) {
            if let Some(session) = &mut state.session {
                session.mark_uncertain(None);
            }
            self.check_ports(router);
        }
        if exists {
            self.port_changed(router, port.port_no, port.is_up());
        }
    }

    /// Links at missing ports are down.
    fn check_ports(&mut self, router: RouterId) {
        let ports = &self.members[&router].ports;
        let missing: Vec<PortIndex> = ports.missing().collect();
        if let Some(missing) = ports.describe_missing() {
            let known = ports.reported_names().map(str::to_owned).collect();
            self.publish(FabricEvent::MissingPorts { router, missing, known });
        }
        missing.into_iter().for_each(|port| self.set_port(router, port, false));
    }

    /// A switch reported the state of a port.
    fn port_changed(&mut self, router: RouterId, port: PortNumber, is_up: bool) {
        if let Some(port) = self.members[&router].ports.index(port) {
            self.set_port(router, port, is_up);
        }
    }

    fn set_port(&mut self, router: RouterId, port: PortIndex, is_up: bool) {
        if let Some(link) = self.links.set_port(router, port, is_up) {
            self.publish(FabricEvent::LinkChanged { link, is_up: self.links.is_up(link) });
        }
    }

    /// An entry was removed. If it is not one that this fabric has deleted, audits the switch.
    fn entry_removed(&mut self, datapath: DatapathId, flow: &FlowRemoved) {
        let Some(&router) = self.routers.get(&datapath) else { return };
        let is_sent = match entries::removed(flow, &self.members[&router].ports) {
            Some(EntryKey::Route(address)) => self.installed.get(router, address).is_some(),
            Some(key) => self.members[&router].reroutes.contains_key(&key),
            None => false,
        };
        let state = self.members.get_mut(&router).expect("every datapath has a member");
        if let Some(session) = state.session.as_mut().filter(|_| is_sent) {
            session.request_audit();
        }
    }

    /// Returns the entries that were sent to a switch.
    fn sent(&self, router: RouterId) -> BTreeMap<EntryKey, Rule> {
        let routes = self.installed.at(router);
        let routes = routes.iter().map(|(_, address, rule)| (EntryKey::Route(address), rule));
        let reroutes = self.members[&router].reroutes.iter().map(|(&key, &rule)| (key, rule));
        routes.chain(reroutes).collect()
    }

    /// Compares the entries of a switch with those that were sent, if due, and repairs them.
    fn audit(&mut self, router: RouterId, now: Timestamp) {
        let (interval, may_write) = (self.audit_interval, self.may_write(router));
        let state = self.members.get_mut(&router).expect("a member");
        let is_due = may_write && self.wanted.is_some();
        let Some(session) = state.session.as_mut().filter(|_| is_due) else { return };
        let Some((flows, touched)) = session.audit(now, interval, BATCH_TIMEOUT) else { return };
        self.counters.audits += 1;
        let (mut contents, sent) = (TableContents::of(&flows, &state.ports), self.sent(router));
        contents.overlay(&touched, &sent);
        let faults = contents.faults(&sent);
        if faults.total() > 0 {
            self.counters.faults += faults;
            self.publish(FabricEvent::Repaired { router, faults });
            self.adopt(router, contents);
        }
    }

    /// Takes the entries that were read back from a switch as present, and repairs them.
    fn adopt(&mut self, router: RouterId, contents: TableContents) {
        let (mut routes, mut reroutes) = (Rules::new(), BTreeMap::new());
        for (&key, &rule) in &contents.entries {
            match key {
                EntryKey::Route(address) => routes.apply(&Change { router, address, rule: Some(rule) }),
                EntryKey::Reroute { .. } => drop(reroutes.insert(key, rule)),
            }
        }
        let state = self.members.get_mut(&router).expect("a member");
        state.reroutes = reroutes;
        if !std::mem::replace(&mut state.is_known, true) {
            let found = state.reroutes.iter().filter_map(|(key, rule)| rerouted(&self.topology, key, rule));
            self.rerouted.extend(found.collect::<Vec<_>>());
        }
        for change in self.installed.at(router).changes_to(&routes) {
            self.installed.apply(&change);
        }
        let wanted = self.wanted.as_ref().filter(|_| self.may_write(router));
        self.members.get_mut(&router).expect("a member").has_strays =
            wanted.is_none() && contents.has_strays();
        if let Some(wanted) = wanted {
            let (wanted, reroutes) = (wanted.at(router), self.wanted_reroutes(router));
            let ports = &self.members[&router].ports;
            let deletions = contents.deletions(ports, |key| match key {
                EntryKey::Route(address) => wanted.get(router, *address).is_some(),
                EntryKey::Reroute { .. } => reroutes.contains_key(key),
            });
            // Deletions come first, in a batch of their own: later entries may have the same match.
            self.counters.removed += deletions.len() as u64;
            self.send(router, &deletions);
            self.send_difference(router);
        }
    }

    /// Sends the difference, or reads the entries first if some must be deleted that are not known.
    fn repair(&mut self, router: RouterId) {
        let may_write = self.may_write(router);
        let state = self.members.get_mut(&router).expect("a member");
        match &mut state.session {
            Some(session) if may_write && state.has_strays => session.mark_uncertain(None),
            _ => self.send_difference(router),
        }
    }

    /// Sends the difference between wanted and present entries.
    fn send_difference(&mut self, router: RouterId) {
        let Some(wanted) = self.wanted.as_ref().filter(|_| self.may_write(router)) else { return };
        let state = &self.members[&router];
        if !state.session.as_ref().is_some_and(Session::is_known) {
            // A read-back is pending.
            return;
        }
        let routes = self.installed.at(router).changes_to(&wanted.at(router));
        let reroutes = self.wanted_reroutes(router);
        let added = reroutes.iter().filter(|(key, rule)| state.reroutes.get(key) != Some(rule));
        let removed = state.reroutes.keys().filter(|key| !reroutes.contains_key(key));
        let added = added.map(|(&key, &rule)| Entry { key, rule: Some(rule) });
        let removed = removed.map(|&key| Entry { key, rule: None });
        // Entries at missing ports stay unsent.
        let (entries, messages): (Vec<Entry>, Vec<Body>) = added
            .chain(removed)
            .chain(routes.iter().copied().map(Entry::from))
            .filter_map(|entry| Some((entry, entry.flow_mod(&state.ports)?)))
            .unzip();
        if self.send(router, &messages) {
            entries.iter().for_each(|entry| self.record(router, entry));
        }
    }

    /// Sends messages that belong to no action. Returns whether they were sent.
    fn send(&mut self, router: RouterId, messages: &[Body]) -> bool {
        let Some(session) = self.members.get_mut(&router).and_then(|state| state.session.as_mut()) else {
            return false;
        };
        for batch in messages.chunks(MAX_BATCH) {
            if session.send(batch, None, BATCH_TIMEOUT).is_err() {
                // Disconnected or overloaded: read back later.
                session.mark_uncertain(None);
                self.counters.failed += 1;
                return false;
            }
        }
        true
    }

    /// Records an entry that was sent to a switch.
    fn record(&mut self, router: RouterId, entry: &Entry) {
        let counter =
            if entry.rule.is_some() { &mut self.counters.written } else { &mut self.counters.removed };
        *counter += 1;
        if let Some(session) = self.members.get_mut(&router).and_then(|state| state.session.as_mut()) {
            session.touch(entry.key);
        }
        match (entry.key, entry.rule) {
            (EntryKey::Route(address), rule) => {
                self.installed.apply(&Change { router, address, rule });
            }
            (key, rule) => {
                let reroutes = &mut self.members.get_mut(&router).expect("a member").reroutes;
                match rule {
                    Some(rule) => reroutes.insert(key, rule),
                    None => reroutes.remove(&key),
                };
            }
        }
    }

    /// Returns the wanted reroute entries of a switch.
    fn wanted_reroutes(&self, router: RouterId) -> BTreeMap<EntryKey, Rule> {
        let here = self.rerouted().filter(|(pair, _)| self.topology.router_of(pair.source) == router);
        let entry = |(pair, address)| {
            let entry = self.reroute_entry(pair, address)?;
            Some((entry.key, entry.rule?))
        };
        here.filter_map(entry).collect()
    }

    /// Returns the entry that reroutes a pair to an address; `None` if the address has no route.
    fn reroute_entry(&self, pair: Pair, address: u8) -> Option<Entry> {
        let Pair { source, destination } = pair;
        let router = self.topology.router_of(source);
        let shadow = self.topology.mac(destination, address);
        let route = self.wanted.as_ref()?.get(router, shadow)?;
        let key = EntryKey::Reroute {
            port: self.topology.port_of(source),
            source: self.topology.mac(source, 0),
            destination: self.topology.mac(destination, 0),
        };
        // The base address needs no rewrite, and within one switch only one path exists.
        let is_route = address == 0 || router == self.topology.router_of(destination);
        let rule = (!is_route).then_some(Rule { port: route.port, write_back: Some(shadow) });
        Some(Entry { key, rule })
    }

    /// Handles the outcomes of a switch's batches.
    fn handle_results(&mut self, router: RouterId, now: Timestamp) {
        let Some(session) = self.members.get_mut(&router).and_then(|state| state.session.as_mut()) else {
            return;
        };
        let results: Vec<BatchResult<Move>> = session.results().collect();
        for BatchResult { tag: moved, outcome } in results {
            let action = moved.map(|moved| moved.action);
            match outcome.result {
                Ok(()) => {
                    self.counters.done += 1;
                    if let Some(action) = action {
                        self.publish(FabricEvent::Rerouted { action, took: outcome.took });
                    }
                }
                Err(failure) => {
                    self.counters.failed += 1;
                    if failure.is_by_slave() {
                        self.refused();
                    }
                    if let Some(moved) = moved {
                        self.revert(moved);
                    }
                    if let Some(session) =
                        self.members.get_mut(&router).and_then(|state| state.session.as_mut())
                    {
                        session.mark_uncertain(Some(now + RETRY_DELAY));
                    }
                    self.publish(FabricEvent::Failed { router, action, failure });
                }
            }
        }
    }

    /// Reads back a switch with unknown entries, and repairs it.
    fn read_back(&mut self, router: RouterId, now: Timestamp) {
        let Some(session) = self.members.get_mut(&router).and_then(|state| state.session.as_mut()) else {
            return;
        };
        match session.read_back(now, BATCH_TIMEOUT) {
            ReadBackStep::Requested => self.counters.read_backs += 1,
            ReadBackStep::Read(Ok(flows)) => {
                self.adopt(router, TableContents::of(&flows, &self.members[&router].ports));
            }
            ReadBackStep::Read(Err(_)) => session.mark_uncertain(Some(now + RETRY_DELAY)),
            ReadBackStep::Pending => {}
        }
    }

    fn publish(&mut self, news: FabricEvent) {
        if self.news.len() == MAX_EVENTS {
            self.news.pop_front();
            self.counters.events_dropped += 1;
        }
        self.news.push_back(news);
    }

    fn source_name(&self, pair: Pair) -> String {
        self.topology.endpoints()[pair.source.index()].name.clone()
    }

    fn move_pair(&mut self, of: Move, within: Nanos) -> Result<(), ActuatorError> {
        let Move { pair, to, .. } = of;
        if self.wanted.is_none() {
            return Err(ActuatorError::Busy("routes have not been installed yet".to_owned()));
        }
        let no_path = || ActuatorError::NoPath { source_name: self.source_name(pair), address: to };
        let entry = self.reroute_entry(pair, to).ok_or_else(no_path)?;
        let router = self.topology.router_of(pair.source);
        let source_name = self.source_name(pair);
        let unreachable = |cause| ActuatorError::Unreachable { source_name, cause };
        if self.members.get(&router).is_none_or(|state| state.session.is_none()) {
            let cause = io::Error::new(io::ErrorKind::NotConnected, "its switch is not connected");
            return Err(unreachable(cause));
        }
        if !self.may_write(router) {
            return Err(ActuatorError::Busy("this daemon is not the master of the switches".to_owned()));
        }
        if !self.has_route(pair, to) {
            return Err(ActuatorError::Busy("a switch on the path does not have its routes yet".to_owned()));
        }
        let state = self.members.get_mut(&router).expect("checked above");
        let Some(message) = entry.flow_mod(&state.ports) else {
            let cause = io::Error::new(io::ErrorKind::NotFound, "its switch does not have the port");
            return Err(unreachable(cause));
        };
        let session = state.session.as_mut().expect("checked above");
        if let Err(error) = session.send(&[message], Some(of), within) {
            return Err(unreachable(io::Error::other(error)));
        }
        self.set_address(pair, to);
        self.record(router, &entry);
        Ok(())
    }

    /// Returns whether all switches of a pair's path by this address have its routes. For disconnected switches, the
    /// last known routes count.
    fn has_route(&self, pair: Pair, address: u8) -> bool {
        let Some(wanted) = &self.wanted else { return false };
        let to = self.topology.mac(pair.destination, address);
        let route = |router| {
            let wanted = wanted.get(router, to)?;
            let session = self.members.get(&router)?.session.as_ref();
            let is_there = self.installed.get(router, to) == Some(wanted)
                && session.is_none_or(Session::is_known_but_for_tagged);
            is_there.then_some(wanted.port)
        };
        follow(&self.topology, pair.source, pair.destination, route).is_ok()
    }

    fn set_address(&mut self, pair: Pair, address: u8) {
        match address {
            0 => self.rerouted.remove(&pair),
            _ => self.rerouted.insert(pair, address),
        };
    }

    /// Reverts a failed move, as the controller does, unless the pair has moved again since.
    fn revert(&mut self, of: Move) {
        if self.address(of.pair) == of.to {
            self.set_address(of.pair, of.from);
        }
    }

    /// Returns the address that a pair is rerouted to.
    fn address(&self, pair: Pair) -> u8 {
        self.rerouted.get(&pair).copied().unwrap_or(0)
    }
}

impl Actuator for Fabric {
    fn name(&self) -> &'static str {
        "openflow"
    }

    /// Sends one flow-mod with a barrier; reports the outcome as a [`FabricEvent`].
    fn reroute(&mut self, action: &Action) -> Result<(), ActuatorError> {
        let from = self.address(action.pair);
        let of = Move { action: action.id, pair: action.pair, from, to: action.address };
        self.move_pair(of, action.deadline.since(action.issued))
    }

    /// Removes the action's entry, unless the pair has moved again since.
    fn abandon(&mut self, action: &Action, from: u8) {
        if self.address(action.pair) == action.address {
            self.set_address(action.pair, from);
            self.send_difference(self.topology.router_of(action.pair.source));
        }
    }

    /// Disconnected switches get their routes when they connect.
    fn install(&mut self, state: &NetworkState) -> Result<(), String> {
        Fabric::install(self, state);
        Ok(())
    }

    fn maintain(&mut self, now: Timestamp) -> Result<(), String> {
        Fabric::maintain(self, now);
        Ok(())
    }

    fn switches_report(&self) -> Option<SwitchesReport> {
        let (out_of_sync, is_master) = (self.out_of_sync().count(), self.election.is_master());
        let counters = self.counters();
        Some(SwitchesReport { in_sync: self.len() - out_of_sync, out_of_sync, is_master, counters })
    }
}

/// Returns the pair that an entry reroutes and its address; `None` if the hosts are not in the topology.
fn rerouted(topology: &Topology, key: &EntryKey, rule: &Rule) -> Option<(Pair, u8)> {
    let &EntryKey::Reroute { source, destination, .. } = key else { return None };
    let (source, _) = topology.endpoint_with_mac(source)?;
    let (destination, _) = topology.endpoint_with_mac(destination)?;
    let (written, address) = topology.endpoint_with_mac(rule.write_back?)?;
    (written == destination).then_some((Pair { source, destination }, address))
}
