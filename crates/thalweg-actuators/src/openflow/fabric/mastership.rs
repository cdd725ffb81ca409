//! Mastership of a fabric: takes part in the election, and tracks which switches have confirmed this daemon's role.

use thalweg_network::RouterId;
use thalweg_wire::Timestamp;
use thalweg_wire::openflow::{ErrorMessage, Role, RoleRequest, Xid};

use super::{Fabric, State};
use crate::openflow::election::{Beat, Change};
use crate::openflow::fabric_event::{FabricEvent, MastershipChange};
use crate::openflow::generation::Generation;
use crate::openflow::session::{Grant, RoleError, SwitchSession};

impl Fabric {
    /// Returns whether this daemon may write to a switch: it is the master, and the switch has confirmed that.
    pub(super) fn may_write(&self, router: RouterId) -> bool {
        let grant = self.members[&router].session.as_ref().map(SwitchSession::grant);
        self.election.is_master() && matches!(grant, Some(Grant::Granted | Grant::Unsupported))
    }

    /// Takes part in the election.
    pub(super) fn elect(&mut self, now: Timestamp) {
        let never_had_master = |state: &State| {
            let grant = state.session.as_ref().map(SwitchSession::grant);
            matches!(grant, Some(Grant::Denied { had_master: false } | Grant::Unsupported))
        };
        let all_without_master = self.members.values().all(never_had_master);
        let (beat, change) = self.election.step(all_without_master, now);
        if let Some(change) = change {
            self.mastership_changed(change);
        }
        if let Some(beat) = beat {
            let sessions = self.members.values_mut().filter_map(|state| state.session.as_mut());
            sessions.for_each(|session| send_beat(session, beat));
        }
    }

    /// A switch reported the role of this daemon and the latest generation.
    pub(super) fn role_reported(&mut self, router: RouterId, reply: RoleRequest) {
        let generation = Generation::reported(reply.generation_id);
        let change = self.election.reported(generation, self.now);
        let is_granted = reply.role == Role::MASTER && self.election.is_granted_by(generation);
        let is_master = self.election.is_master();
        let state = self.members.get_mut(&router).expect("a member");
        let Some(session) = &mut state.session else { return };
        let is_new = is_granted && session.grant() != Grant::Granted;
        session.set_grant(match is_granted {
            true => Grant::Granted,
            false => Grant::Denied { had_master: generation.is_some() },
        });
        match generation {
            // An equal of the master could write.
            Some(latest) if reply.role == Role::EQUAL && !is_master => {
                session.request_role(Role::SLAVE, latest.number());
            }
            _ => {}
        }
        if is_new && !state.is_known {
            // Its entries may be those of another master since they were read.
            session.mark_uncertain(None);
        } else if is_new {
            self.repair(router);
        }
        if let Some(change) = change {
            self.mastership_changed(change);
        }
    }

    /// A switch refused a role.
    pub(super) fn role_refused(&mut self, router: RouterId, xid: Xid, error: &ErrorMessage) {
        let state = self.members.get_mut(&router).expect("a member");
        let Some(session) = &mut state.session else { return };
        match session.role_error(xid, error) {
            None => {}
            Some(RoleError::Stale) => self.refused(),
            Some(RoleError::Unsupported) => {
                let is_new = session.grant() != Grant::Unsupported;
                session.set_grant(Grant::Unsupported);
                self.election.confirmed(self.now);
                if is_new {
                    self.repair(router);
                }
            }
        }
    }

    /// A switch refused the role or a write: another daemon is the master.
    pub(super) fn refused(&mut self) {
        if let Some(change) = self.election.refused(self.now) {
            self.mastership_changed(change);
        }
    }

    fn mastership_changed(&mut self, change: Change) {
        let change = match change {
            Change::Claimed { after_other } => {
                self.counters.claims += 1;
                if after_other {
                    self.forget_reroutes();
                }
                MastershipChange::Claimed
            }
            Change::LostToOther => {
                self.wanted = None;
                self.forget_reroutes();
                MastershipChange::LostToOther
            }
            Change::LostTouch => {
                self.wanted = None;
                MastershipChange::LostTouch
            }
        };
        for session in self.members.values_mut().filter_map(|state| state.session.as_mut()) {
            if session.grant() == Grant::Granted {
                session.set_grant(Grant::Denied { had_master: true });
            }
        }
        self.publish(FabricEvent::Mastership(change));
    }

    /// Forgets reroutes: those of another master count, and are read from the switches.
    fn forget_reroutes(&mut self) {
        self.rerouted.clear();
        self.members.values_mut().for_each(|state| state.is_known = false);
    }

    /// Releases the role of master, if this daemon has it, so that a standby need not wait.
    fn release(&mut self) {
        if let Some(released) = self.election.release() {
            let sessions = self.members.values_mut().filter_map(|state| state.session.as_mut());
            sessions.for_each(|session| session.request_role(Role::MASTER, released.number()));
        }
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        self.release();
    }
}

/// Sends a heartbeat of the election.
pub(super) fn send_beat(session: &mut SwitchSession, beat: Beat) {
    match beat {
        Beat::Ask => session.request_role(Role::NO_CHANGE, 0),
        Beat::Claim(generation) => session.request_role(Role::MASTER, generation.number()),
    }
}
