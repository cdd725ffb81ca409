//! Mastership of a fabric: takes part in the election, and tracks which switches have confirmed this daemon's role.

use thalweg_network::RouterId;
use thalweg_wire::Timestamp;
use thalweg_wire::openflow::{ErrorMessage, Role, RoleRequest, Xid};

use super::{Fabric, Session, State};
use crate::openflow::election::Change;
use crate::openflow::fabric_event::{FabricEvent, MastershipChange};
use crate::openflow::session::{Grant, RoleError};

impl Fabric {
    /// Returns whether this daemon may write to a switch: it is the master, and the switch has confirmed that.
    pub(super) fn may_write(&self, router: RouterId) -> bool {
        let grant = self.members[&router].session.as_ref().map(Session::grant);
        self.election.is_master() && matches!(grant, Some(Grant::Granted | Grant::Unsupported))
    }

    /// Takes part in the election.
    pub(super) fn elect(&mut self, now: Timestamp) {
        let never_had_master = |state: &State| {
            let grant = state.session.as_ref().map(Session::grant);
            matches!(grant, Some(Grant::Denied { had_master: false } | Grant::Unsupported))
        };
        let all_without_master = self.members.values().all(never_had_master);
        let (beat, change) = self.election.step(all_without_master, now);
        if let Some(change) = change {
            self.mastership_changed(change);
        }
        if let Some(beat) = beat {
            let sessions = self.members.values_mut().filter_map(|state| state.session.as_mut());
            sessions.for_each(|session| session.send_beat(beat));
        }
    }

    /// A switch reported the role of this daemon and the latest generation.
    pub(super) fn role_reported(&mut self, router: RouterId, reply: RoleRequest) {
        let state = self.members.get_mut(&router).expect("a member");
        let Some(session) = &mut state.session else { return };
        let (is_new, change) = session.role_reported(&mut self.election, reply, self.now);
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
