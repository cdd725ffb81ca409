//! The session with one switch of a fabric: batches in flight, and whether its table is known.

use std::collections::{BTreeMap, BTreeSet};

use crossbeam_channel::{Receiver, Sender, unbounded};
use thalweg_wire::openflow::multipart::FlowStats;
use thalweg_wire::openflow::{Body, ErrorMessage, ErrorType, Role, RoleRequest, Xid};
use thalweg_wire::{Nanos, Timestamp};

use super::audit::{Audit, AuditStep};
use super::entries::{self, EntryKey};
use super::outcome::{Failure, Outcome, SendError};
use super::switch::{PendingFlows, Switch};
use crate::ActionId;
use thalweg_control::Pair;

/// OFPRRFC_STALE: the generation id is older than another's.
const STALE: u16 = 0;

/// An established connection.
pub(super) struct SwitchSession {
    switch: Switch,
    /// Bounded, because unanswered batches are.
    outcomes: (Sender<Outcome>, Receiver<Outcome>),
    /// Batches in flight, with the move that each carries out, if any.
    sent: BTreeMap<Xid, Option<Move>>,
    table: TableState,
    audit: Audit,
    mastership: Grant,
    /// The latest role request.
    role_request: Option<(Xid, Role)>,
}

/// What the switch has said about the role of this daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grant {
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
pub(super) enum RoleError {
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

/// A move of a pair from one address to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) action: ActionId,
    pub(super) pair: Pair,
    pub(super) from: u8,
    pub(super) to: u8,
}

/// The outcome of a batch.
pub(super) struct BatchResult {
    pub(super) moved: Option<Move>,
    pub(super) outcome: Outcome,
}

/// The result of a step of reading back.
pub(super) enum ReadBackStep {
    /// Nothing new.
    Pending,
    /// The entries were requested just now.
    Requested,
    /// The switch has answered.
    Read(Result<Vec<FlowStats>, Failure>),
}

impl SwitchSession {
    pub(super) fn new(switch: Switch) -> SwitchSession {
        SwitchSession {
            switch,
            outcomes: unbounded(),
            sent: BTreeMap::new(),
            table: TableState::Known,
            audit: Audit::default(),
            mastership: Grant::Unknown,
            role_request: None,
        }
    }

    /// Sends a batch, to be carried out within this time.
    pub(super) fn send(
        &mut self,
        messages: &[Body],
        moved: Option<Move>,
        within: Nanos,
    ) -> Result<(), SendError> {
        let xid = self.switch.send_batch_to(messages, within, self.outcomes.0.clone())?;
        self.sent.insert(xid, moved);
        Ok(())
    }

    /// Requests a role, or only the present one. A switch that cannot be reached is reported as disconnected.
    pub(super) fn request_role(&mut self, role: Role, generation_id: u64) {
        if let Ok(xid) = self.switch.request_role(RoleRequest { role, generation_id }) {
            self.role_request = Some((xid, role));
        }
    }

    /// Returns what an error says about the latest role request, if it refers to that.
    pub(super) fn role_error(&self, xid: Xid, error: &ErrorMessage) -> Option<RoleError> {
        let (_, role) = self.role_request.filter(|(request, _)| *request == xid)?;
        match (error.error_type, error.code) {
            (ErrorType::ROLE_REQUEST_FAILED, STALE) => (role == Role::MASTER).then_some(RoleError::Stale),
            _ => Some(RoleError::Unsupported),
        }
    }

    /// Returns what the switch has said about the role.
    pub(super) fn grant(&self) -> Grant {
        self.mastership
    }

    /// Records what the switch has said about the role.
    pub(super) fn set_grant(&mut self, grant: Grant) {
        self.mastership = grant;
    }

    /// Returns the outcomes received since the last call.
    pub(super) fn results(&mut self) -> impl Iterator<Item = BatchResult> + '_ {
        self.outcomes.1.try_iter().map(|outcome| {
            let moved = self.sent.remove(&outcome.xid).flatten();
            BatchResult { moved, outcome }
        })
    }

    /// Marks the entries unknown; they are read back from this time on, or at once.
    pub(super) fn mark_uncertain(&mut self, from: Option<Timestamp>) {
        self.table = TableState::Uncertain(from);
        self.audit.abandon();
    }

    /// Records that an entry was sent.
    pub(super) fn touch(&mut self, key: EntryKey) {
        self.audit.touch(key);
    }

    /// Requests an audit as soon as possible.
    pub(super) fn request_audit(&mut self) {
        self.audit.request();
    }

    /// Reads the entries if an audit is due, and returns the answer with the entries that are not to be compared.
    /// Waits until all batches are done, and while the entries are unknown anyway.
    pub(super) fn audit(
        &mut self,
        now: Timestamp,
        interval: Nanos,
        within: Nanos,
    ) -> Option<(Vec<FlowStats>, BTreeSet<EntryKey>)> {
        if !self.is_known() {
            return None;
        }
        match self.audit.step(now, interval) {
            AuditStep::Read if self.sent.is_empty() => {
                // Disconnected or overloaded: retried later.
                if let Ok(reading) = self.switch.request_flows(entries::all(), within) {
                    self.audit.begin(reading, now, interval);
                }
                None
            }
            AuditStep::Answer(Some(flows), touched) => Some((flows, touched)),
            _ => None,
        }
    }

    /// Returns whether its entries are known, once batches in flight are done.
    pub(super) fn is_known(&self) -> bool {
        matches!(self.table, TableState::Known)
    }

    /// Returns whether all entries are known and installed.
    pub(super) fn is_in_sync(&self) -> bool {
        self.is_known() && self.sent.is_empty()
    }

    /// Returns whether it has all routes.
    pub(super) fn has_routes(&self) -> bool {
        self.is_known() && self.sent.values().all(Option::is_some)
    }

    /// Requests the entries if due, and takes the answer.
    pub(super) fn read_back(&mut self, now: Timestamp, within: Nanos) -> ReadBackStep {
        match &self.table {
            TableState::Uncertain(from) if from.is_none_or(|from| from <= now) => {
                match self.switch.request_flows(entries::all(), within) {
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
