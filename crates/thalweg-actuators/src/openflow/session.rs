//! The session with one switch: batches in flight, the role of this daemon, and whether the switch's table is known.
//!
//! Its user tags batches with `T`, and names entries by `K`.

use std::collections::{BTreeMap, BTreeSet};

use crossbeam_channel::{Receiver, Sender, unbounded};
use thalweg_wire::openflow::multipart::{FlowFilter, FlowStats};
use thalweg_wire::openflow::{Body, ErrorMessage, ErrorType, Role, RoleRequest, Xid};
use thalweg_wire::{Nanos, Timestamp};

use super::audit::{Audit, AuditStep};
use super::election::{Beat, Change, Election};
use super::generation::Generation;
use super::{Failure, Outcome, SendError};
use super::{PendingFlows, Switch};

/// OFPRRFC_STALE: the generation id is older than another's.
const STALE: u16 = 0;

/// An established connection.
pub(crate) struct SwitchSession<T, K> {
    switch: Switch,
    /// The entries to read.
    filter: FlowFilter,
    /// Bounded, because unanswered batches are.
    outcomes: (Sender<Outcome>, Receiver<Outcome>),
    /// Batches in flight, with their tags.
    sent: BTreeMap<Xid, Option<T>>,
    table: TableState,
    audit: Audit<K>,
    mastership: Grant,
    /// The latest role request.
    role_request: Option<(Xid, Role)>,
}

/// What the switch has said about the role of this daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    /// Nothing yet.
    Unknown,
    /// It is not the master; whether any controller ever was.
    Denied { had_master: bool },
    /// It is the master.
    Granted,
    /// The switch does not support roles.
    Unsupported,
}

/// The meaning of a switch's error for the role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoleError {
    /// Another daemon is the master.
    Stale,
    /// The switch does not support roles.
    Unsupported,
}

/// Whether the entries of the switch are known.
enum TableState {
    /// It has the entries that were sent.
    Known,
    /// It refused a batch or did not answer; read its entries from this time on, or at once.
    Uncertain(Option<Timestamp>),
    /// Its entries were requested.
    Requested(PendingFlows),
}

/// The outcome of a batch.
pub(crate) struct BatchResult<T> {
    pub(crate) tag: Option<T>,
    pub(crate) outcome: Outcome,
}

/// The result of a step of reading back.
pub(crate) enum ReadBackStep {
    /// Nothing new.
    Pending,
    /// The entries were requested just now.
    Requested,
    /// The switch has answered.
    Read(Result<Vec<FlowStats>, Failure>),
}

impl<T, K: Ord> SwitchSession<T, K> {
    /// Starts the session of an established connection. `filter` selects the entries to read.
    pub(crate) fn new(switch: Switch, filter: FlowFilter) -> SwitchSession<T, K> {
        SwitchSession {
            switch,
            filter,
            outcomes: unbounded(),
            sent: BTreeMap::new(),
            table: TableState::Known,
            audit: Audit::default(),
            mastership: Grant::Unknown,
            role_request: None,
        }
    }

    /// Returns the switch.
    pub(crate) fn switch(&self) -> &Switch {
        &self.switch
    }

    /// Sends a batch, to be carried out within this time.
    pub(crate) fn send(&mut self, messages: &[Body], tag: Option<T>, within: Nanos) -> Result<(), SendError> {
        let xid = self.switch.send_batch_to(messages, within, self.outcomes.0.clone())?;
        self.sent.insert(xid, tag);
        Ok(())
    }

    /// Requests a role, or only the present one. A switch that cannot be reached is reported as disconnected.
    pub(crate) fn request_role(&mut self, role: Role, generation_id: u64) {
        if let Ok(xid) = self.switch.request_role(RoleRequest { role, generation_id }) {
            self.role_request = Some((xid, role));
        }
    }

    /// Sends a heartbeat of the election.
    pub(crate) fn send_beat(&mut self, beat: Beat) {
        match beat {
            Beat::Ask => self.request_role(Role::NO_CHANGE, 0),
            Beat::Claim(generation) => self.request_role(Role::MASTER, generation.number()),
        }
    }

    /// Takes the role and the generation that the switch reports. Returns whether it has granted the role of master just now, and
    /// a change of the standing.
    pub(crate) fn role_reported(
        &mut self,
        election: &mut Election,
        reply: RoleRequest,
        now: Timestamp,
    ) -> (bool, Option<Change>) {
        let generation = Generation::reported(reply.generation_id);
        let change = election.reported(generation, now);
        let is_granted = reply.role == Role::MASTER && election.is_granted_by(generation);
        let is_new = is_granted && self.mastership != Grant::Granted;
        self.mastership = match is_granted {
            true => Grant::Granted,
            false => Grant::Denied { had_master: generation.is_some() },
        };
        match generation {
            // An equal of the master could write.
            Some(latest) if reply.role == Role::EQUAL && !election.is_master() => {
                self.request_role(Role::SLAVE, latest.number());
            }
            _ => {}
        }
        (is_new, change)
    }

    /// Returns what an error says about the latest role request, if it refers to that.
    pub(crate) fn role_error(&self, xid: Xid, error: &ErrorMessage) -> Option<RoleError> {
        let (_, role) = self.role_request.filter(|(request, _)| *request == xid)?;
        match (error.error_type, error.code) {
            (ErrorType::ROLE_REQUEST_FAILED, STALE) => (role == Role::MASTER).then_some(RoleError::Stale),
            _ => Some(RoleError::Unsupported),
        }
    }

    /// Returns what the switch has said about the role.
    pub(crate) fn grant(&self) -> Grant {
        self.mastership
    }

    /// Records what the switch has said about the role.
    pub(crate) fn set_grant(&mut self, grant: Grant) {
        self.mastership = grant;
    }

    /// Returns the outcomes received since the last call.
    pub(crate) fn results(&mut self) -> impl Iterator<Item = BatchResult<T>> + '_ {
        self.outcomes.1.try_iter().map(|outcome| {
            let tag = self.sent.remove(&outcome.xid).flatten();
            BatchResult { tag, outcome }
        })
    }

    /// Marks the entries unknown; they are read back from this time on, or at once.
    pub(crate) fn mark_uncertain(&mut self, from: Option<Timestamp>) {
        self.table = TableState::Uncertain(from);
        self.audit.abandon();
    }

    /// Records that an entry was sent.
    pub(crate) fn touch(&mut self, key: K) {
        self.audit.touch(key);
    }

    /// Requests an audit as soon as possible.
    pub(crate) fn request_audit(&mut self) {
        self.audit.request();
    }

    /// Reads the entries if an audit is due, and returns the answer with the entries that are not to be compared.
    /// Waits until all batches are done, and while the entries are unknown anyway.
    pub(crate) fn audit(
        &mut self,
        now: Timestamp,
        interval: Nanos,
        within: Nanos,
    ) -> Option<(Vec<FlowStats>, BTreeSet<K>)> {
        if !self.is_known() {
            return None;
        }
        match self.audit.step(now, interval) {
            AuditStep::Read if self.sent.is_empty() => {
                // Disconnected or overloaded: retried later.
                if let Ok(reading) = self.switch.request_flows(self.filter.clone(), within) {
                    self.audit.begin(reading, now, interval);
                }
                None
            }
            AuditStep::Answer(Some(flows), touched) => Some((flows, touched)),
            _ => None,
        }
    }

    /// Returns whether its entries are known, once batches in flight are done.
    pub(crate) fn is_known(&self) -> bool {
        matches!(self.table, TableState::Known)
    }

    /// Returns whether all entries are known and installed.
    pub(crate) fn is_in_sync(&self) -> bool {
        self.is_known() && self.sent.is_empty()
    }

    /// Returns whether all batches in flight have a tag, and its entries are known otherwise.
    pub(crate) fn is_known_but_for_tagged(&self) -> bool {
        self.is_known() && self.sent.values().all(Option::is_some)
    }

    /// Requests the entries if due, and takes the answer.
    pub(crate) fn read_back(&mut self, now: Timestamp, within: Nanos) -> ReadBackStep {
        match &self.table {
            TableState::Uncertain(from) if from.is_none_or(|from| from <= now) => {
                match self.switch.request_flows(self.filter.clone(), within) {
                    Ok(answer) => {
                        self.table = TableState::Requested(answer);
                        ReadBackStep::Requested
                    }
                    // Disconnected or overloaded: retried later.
                    Err(_) => ReadBackStep::Pending,
                }
            }
            TableState::Requested(answer) => match answer.take() {
                None => ReadBackStep::Pending,
                Some(flows) => {
                    self.table = TableState::Known;
                    ReadBackStep::Read(flows)
                }
            },
            _ => ReadBackStep::Pending,
        }
    }
}
