//! The control of the switch at the link: mastership, port numbers, entries and readings of counters.
//!
//! Sends and receives without waiting. `now` is a monotonic clock.

use std::collections::{BTreeMap, BTreeSet};

use crossbeam_channel::Receiver;
use thalweg_control::isolate::message::QueueReading;
use thalweg_control::isolate::{Input, Reading};
use thalweg_wire::openflow::multipart::{FlowStats, QueueFilter, QueueStats};
use thalweg_wire::openflow::{
    Body, DatapathId, ErrorMessage, FlowMod, PortNumber, PortReason, PortStatus, QueueId, Role, RoleRequest,
    Xid,
};
use thalweg_wire::{FlowKey, Nanos, Timestamp};

use super::OpenFlowOptions;
use super::rule::{self, COOKIES};
use super::rules::{Change, Rules};
use crate::openflow::election::{Change as Standing, Election, ElectionOptions};
use crate::openflow::generation::Identity;
use crate::openflow::session::{BatchResult, Grant, ReadBackStep, RoleError, SwitchSession};
use crate::openflow::{Event, PendingQueues, PortReference, SwitchRequestError};

/// Timeout of a batch and of a request.
const TIMEOUT: Nanos = Nanos::from_secs(5);

/// Delay before entries are read again after a failure.
const RETRY_DELAY: Nanos = Nanos::from_secs(1);

/// Maximum messages per batch, so that one write fits into socket buffers.
const MAX_BATCH: usize = 1_000;

type Session = SwitchSession<Vec<Change>, FlowKey>;

/// The switch at the link.
pub(super) struct Control {
    datapath: DatapathId,
    port: PortReference,
    queue: QueueId,
    audit_interval: Nanos,
    events: Receiver<Event>,
    session: Option<Session>,
    election: Election,
    /// The ports that the switch reports.
    ports: BTreeMap<PortNumber, String>,
    pub(super) rules: Rules,
    /// Whether its entries have been read since it granted the role of master.
    is_known: bool,
    queues: QueueState,
    /// The last counters of the scavenger queue and of all others.
    last_queues: Option<(QueueReading, QueueReading)>,
    /// The latest reading, until it is taken.
    reading: Option<Reading>,
    /// The last connection that was refused, and another switch that has connected.
    refused: Option<String>,
    now: Timestamp,
}

/// What is known about the counters of queues.
#[derive(Debug)]
enum QueueState {
    /// They have not been read yet.
    Unknown,
    /// They were requested.
    Requested(PendingQueues, Box<QueueState>),
    /// They are read.
    Known,
    /// They cannot be read.
    Failed(String),
}

impl Control {
    pub(super) fn new(options: &OpenFlowOptions, events: Receiver<Event>) -> Control {
        let connection = &options.connection;
        let identity = Identity { priority: connection.priority, instance: connection.instance };
        let election = Election::new(ElectionOptions { identity, timeout: connection.master_timeout });
        Control {
            datapath: options.switch,
            port: options.port.clone(),
            queue: options.queue,
            audit_interval: connection.audit_interval,
            events,
            session: None,
            election,
            ports: BTreeMap::new(),
            rules: Rules::new(options.rules.clone()),
            is_known: false,
            queues: QueueState::Unknown,
            last_queues: None,
            reading: None,
            refused: None,
            now: Timestamp(0),
        }
    }

    /// Returns why flows cannot be redirected now; `None` if they can.
    pub(super) fn problem(&self) -> Option<String> {
        self.write_problem().or_else(|| match &self.queues {
            QueueState::Known => None,
            QueueState::Requested(_, before) if matches!(**before, QueueState::Known) => None,
            QueueState::Failed(error) => Some(error.clone()),
            QueueState::Requested(_, before) => match &**before {
                QueueState::Failed(error) => Some(error.clone()),
                _ => Some("the counters of the queue have not been read yet".to_owned()),
            },
            QueueState::Unknown => Some("the counters of the queue have not been read yet".to_owned()),
        })
    }

    /// Returns why entries cannot be changed now; `None` if they can.
    pub(super) fn write_problem(&self) -> Option<String> {
        let datapath = self.datapath;
        let Some(session) = &self.session else {
            let refused = self.refused.as_ref().map_or(String::new(), |refused| format!(" ({refused})"));
            return Some(format!("switch {datapath} is not connected{refused}"));
        };
        let is_master = self.election.is_master();
        match session.grant() {
            Grant::Granted | Grant::Unsupported if is_master => {}
            Grant::Denied { had_master: true } if self.election.sees_master() => {
                return Some(format!("another controller is the master of switch {datapath}"));
            }
            _ => return Some(format!("switch {datapath} has not granted the role of master yet")),
        }
        if self.port_number().is_none() {
            let names = self.ports.iter().map(|(number, name)| format!("{} {name}", number.0));
            let names = names.collect::<Vec<_>>().join(", ");
            return Some(format!("switch {datapath} has no port {}: it has {names}", self.port));
        }
        (!self.is_known).then(|| format!("the rules of switch {datapath} have not been read yet"))
    }

    /// Returns the number of the output port, if the switch has it.
    fn port_number(&self) -> Option<PortNumber> {
        match &self.port {
            PortReference::Number(number) => self.ports.contains_key(number).then_some(*number),
            PortReference::Name(name) => {
                self.ports.iter().find(|(_, reported)| *reported == name).map(|(&number, _)| number)
            }
        }
    }

    /// Handles what the switch has sent since the last call, and sends changes of entries.
    pub(super) fn exchange(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            self.handle(event);
        }
        self.take_results();
        self.flush();
    }

    /// Takes part in the election, and reads entries and counters that are due. Call it every 100 ms.
    pub(super) fn advance(&mut self, now: Timestamp) {
        self.now = now;
        self.exchange();
        self.elect();
        self.read_back();
        self.audit();
        self.read_queues();
        self.flush();
    }

    /// Returns the latest reading, if there is a new one.
    pub(super) fn take_reading(&mut self) -> Option<Reading> {
        self.reading.take()
    }

    /// Returns the answers since the last call.
    pub(super) fn take_answers(&mut self) -> Vec<Input> {
        self.rules.take_answers()
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Up(up) if up.switch.datapath() == self.datapath => {
                self.disconnected();
                self.refused = None;
                let mut session = Session::new(up.switch, rule::all());
                session.send_beat(self.election.greeting());
                self.session = Some(session);
                self.ports = up.ports.iter().map(|port| (port.port_no, port.name.to_string())).collect();
            }
            Event::Up(up) => {
                self.refused = Some(format!("switch {} at {} is", up.switch.datapath(), up.switch.peer()));
            }
            Event::Refused { peer, error } => self.refused = Some(format!("{peer}: {error}")),
            Event::Down { datapath, .. } if datapath == self.datapath => self.disconnected(),
            Event::PortStatus { datapath, status } if datapath == self.datapath => {
                self.port_changed(&status);
            }
            Event::FlowRemoved { datapath, flow }
                if datapath == self.datapath && self.write_problem().is_none() =>
            {
                self.rules.removed(&flow);
            }
            Event::Role { datapath, role } if datapath == self.datapath => self.role_reported(role),
            Event::Error { datapath, xid, error } if datapath == self.datapath => {
                self.role_refused(xid, &error);
            }
            _ => {}
        }
    }

    fn disconnected(&mut self) {
        self.take_results();
        self.rules.disconnected();
        (self.session, self.is_known, self.queues) = (None, false, QueueState::Unknown);
    }

    fn port_changed(&mut self, PortStatus { reason, port }: &PortStatus) {
        let before = self.port_number();
        match *reason == PortReason::DELETE {
            true => self.ports.remove(&port.port_no),
            false => self.ports.insert(port.port_no, port.name.to_string()),
        };
        if before != self.port_number() {
            self.read_again(None);
            self.queues = QueueState::Unknown;
        }
    }

    /// Reads the entries at once, or from this time on.
    fn read_again(&mut self, from: Option<Timestamp>) {
        if let Some(session) = &mut self.session {
            session.mark_uncertain(from);
        }
    }

    fn elect(&mut self) {
        let grant = self.session.as_ref().map(Session::grant);
        let without_master = matches!(grant, Some(Grant::Denied { had_master: false } | Grant::Unsupported));
        let (beat, change) = self.election.step(without_master, self.now);
        self.standing_changed(change);
        if let (Some(beat), Some(session)) = (beat, &mut self.session) {
            session.send_beat(beat);
        }
    }

    fn role_reported(&mut self, reply: RoleRequest) {
        let Some(session) = &mut self.session else { return };
        let (is_new, change) = session.role_reported(&mut self.election, reply, self.now);
        if is_new {
            // Another master may have changed the entries since the handshake.
            session.mark_uncertain(None);
            self.is_known = false;
        }
        self.standing_changed(change);
    }

    fn role_refused(&mut self, xid: Xid, error: &ErrorMessage) {
        let Some(session) = &mut self.session else { return };
        match session.role_error(xid, error) {
            None => {}
            Some(RoleError::Stale) => {
                let change = self.election.refused(self.now);
                self.standing_changed(change);
            }
            Some(RoleError::Unsupported) => {
                let is_new = session.grant() != Grant::Unsupported;
                session.set_grant(Grant::Unsupported);
                self.election.confirmed(self.now);
                if is_new {
                    session.mark_uncertain(None);
                }
            }
        }
    }

    fn standing_changed(&mut self, change: Option<Standing>) {
        let Some(change) = change else { return };
        match change {
            Standing::Claimed { .. } => self.read_again(None),
            Standing::LostTouch => {}
            Standing::LostToOther => {
                let reason = format!("another controller has become the master of switch {}", self.datapath);
                self.rules.abandon(&reason);
            }
        }
        self.is_known = false;
        if let Some(session) = self.session.as_mut().filter(|session| session.grant() == Grant::Granted) {
            session.set_grant(Grant::Denied { had_master: true });
        }
    }

    fn take_results(&mut self) {
        let Some(session) = &mut self.session else { return };
        let results: Vec<BatchResult<Vec<Change>>> = session.results().collect();
        for BatchResult { tag, outcome } in results {
            let changes = tag.unwrap_or_default();
            match outcome.result {
                Ok(()) => self.rules.done(&changes),
                Err(failure) => {
                    if failure.is_by_slave() {
                        let change = self.election.refused(self.now);
                        self.standing_changed(change);
                    }
                    self.rules.failed(&changes, &failure);
                    self.read_again(Some(self.now + RETRY_DELAY));
                }
            }
        }
    }

    /// Sends the changes of entries that wait.
    fn flush(&mut self) {
        let changes = self.rules.take_changes();
        let problem = self.write_problem();
        let (Some(port), None) = (self.port_number(), &problem) else {
            let problem = problem.unwrap_or_default();
            changes.iter().for_each(|change| self.rules.not_done(change, &problem, false));
            return;
        };
        let strays = self.rules.take_strays();
        self.send(&strays, None);
        let (alone, together): (Vec<Change>, Vec<Change>) =
            changes.into_iter().partition(|change| change.is_alone);
        for batch in together.chunks(MAX_BATCH).chain(alone.chunks(1)) {
            let batch: Vec<(Change, Body)> = batch
                .iter()
                .filter_map(|change| Some((*change, self.rules.message(change, port)?)))
                .collect();
            let (changes, messages): (Vec<Change>, Vec<Body>) = batch.into_iter().unzip();
            self.send(&messages, Some(changes));
        }
    }

    fn send(&mut self, messages: &[Body], changes: Option<Vec<Change>>) {
        let Some(session) = self.session.as_mut().filter(|_| !messages.is_empty()) else { return };
        for change in changes.iter().flatten() {
            session.touch(change.key);
        }
        if let Err(error) = session.send(messages, changes.clone(), TIMEOUT) {
            for change in changes.iter().flatten() {
                self.rules.not_done(change, &error.to_string(), false);
            }
            self.read_again(Some(self.now + RETRY_DELAY));
        }
    }

    fn may_read(&self) -> bool {
        let granted = self.session.as_ref().map(Session::grant);
        self.election.is_master() && matches!(granted, Some(Grant::Granted | Grant::Unsupported))
    }

    /// Reads entries that are unknown, and repairs them.
    fn read_back(&mut self) {
        if !self.may_read() {
            return;
        }
        let Some(session) = &mut self.session else { return };
        match session.read_back(self.now, TIMEOUT) {
            ReadBackStep::Read(Ok(flows)) => {
                let adopts = !std::mem::replace(&mut self.is_known, true);
                self.compare(&flows, &BTreeSet::new(), adopts);
                self.request_queues();
            }
            ReadBackStep::Read(Err(_)) => session.mark_uncertain(Some(self.now + RETRY_DELAY)),
            ReadBackStep::Requested | ReadBackStep::Pending => {}
        }
    }

    /// Reads the counters of entries, and repairs what others have changed.
    fn audit(&mut self) {
        if !self.may_read() || !self.is_known {
            return;
        }
        let Some(session) = &mut self.session else { return };
        if let Some((flows, touched)) = session.audit(self.now, self.audit_interval, TIMEOUT) {
            self.compare(&flows, &touched, false);
            self.request_queues();
        }
    }

    fn compare(&mut self, flows: &[FlowStats], touched: &BTreeSet<FlowKey>, adopts: bool) {
        if let Some(port) = self.port_number() {
            self.rules.read(flows, touched, port, adopts);
        }
    }

    /// Requests the counters of queues; those of entries were read before.
    fn request_queues(&mut self) {
        let (Some(session), Some(port)) = (&self.session, self.port_number()) else { return };
        if matches!(self.queues, QueueState::Requested(..)) {
            return;
        }
        let filter = QueueFilter { port_no: port, queue_id: QueueId::ALL };
        if let Ok(pending) = session.switch().request_queues(filter, TIMEOUT) {
            let before = std::mem::replace(&mut self.queues, QueueState::Unknown);
            self.queues = QueueState::Requested(pending, Box::new(before));
        }
    }

    /// Takes the counters of queues. If they cannot be read, flows are reported with the last ones: the decisions then see that they
    /// stand still.
    fn read_queues(&mut self) {
        let QueueState::Requested(pending, _) = &self.queues else { return };
        let Some(answer) = pending.take() else { return };
        let port = &self.port;
        self.queues = match answer {
            Ok(queues) => match reading(&queues, self.queue) {
                Some(queues) => {
                    self.last_queues = Some(queues);
                    QueueState::Known
                }
                None => {
                    let numbers: Vec<String> = queues.iter().map(|it| it.queue_id.0.to_string()).collect();
                    let found = match numbers.is_empty() {
                        true => "it has none".to_owned(),
                        false => format!("it has {}", numbers.join(", ")),
                    };
                    QueueState::Failed(format!("port {port} has no queue {}: {found}", self.queue.0))
                }
            },
            Err(failure) => QueueState::Failed(format!(
                "cannot read the counters of the queues of port {port}: {failure}"
            )),
        };
        let flows: Vec<_> =
            self.rules.flows().into_iter().map(|(key, counters)| (key, Some(counters))).collect();
        let reading = |(scavenger, primary)| Reading { scavenger, primary, flows };
        self.reading = self.last_queues.map(reading);
    }

    /// Deletes all entries, and releases the role of master. Waits for at most this time.
    ///
    /// # Errors
    /// A message, if entries may remain.
    pub(super) fn remove(&mut self, within: Nanos) -> Result<(), String> {
        self.exchange();
        let removed = match (self.write_problem(), &self.session) {
            (None, Some(session)) => {
                let all = Body::FlowMod(FlowMod::delete_by_cookie(COOKIES.cookie, COOKIES.mask));
                let sent = session.switch().send_batch(&[all], within).map_err(SwitchRequestError::NotSent);
                let outcome = sent.and_then(|batch| batch.wait().result.map_err(SwitchRequestError::Failed));
                outcome.map_err(|error| format!("cannot delete the rules: {error}"))
            }
            (Some(_), _) | (None, None) if self.rules.flows().is_empty() => Ok(()),
            (problem, _) => Err(format!("cannot delete the rules: {}", problem.unwrap_or_default())),
        };
        self.release();
        removed
    }

    /// Releases the role of master, if this daemon has it, so that a standby need not wait.
    pub(super) fn release(&mut self) {
        if let (Some(released), Some(session)) = (self.election.release(), &mut self.session) {
            session.request_role(Role::MASTER, released.number());
        }
    }
}

/// Returns the reading of the scavenger queue and the sum of all other queues of the port.
fn reading(queues: &[QueueStats], scavenger: QueueId) -> Option<(QueueReading, QueueReading)> {
    let of = |queue: &QueueStats| QueueReading {
        sent_packets: queue.tx_packets,
        sent_bytes: queue.tx_bytes,
        dropped_packets: queue.tx_errors,
        backlog: None,
    };
    let add = |sum: QueueReading, queue: QueueReading| QueueReading {
        sent_packets: sum.sent_packets.saturating_add(queue.sent_packets),
        sent_bytes: sum.sent_bytes.saturating_add(queue.sent_bytes),
        dropped_packets: sum.dropped_packets.saturating_add(queue.dropped_packets),
        backlog: None,
    };
    let is_scavenger = |queue: &&QueueStats| queue.queue_id == scavenger;
    let found = queues.iter().find(is_scavenger).map(of)?;
    let others = queues.iter().filter(|queue| !is_scavenger(queue)).map(of);
    Some((found, others.fold(QueueReading::default(), add)))
}
