//! Whether somebody who reads a stream would still be let in.

use std::sync::Arc;

use crate::access::{Access, Handshake, Policy, Scope};

/// What somebody was let in with who reads a stream.
#[derive(Debug)]
pub struct Admission {
    pub(super) access: Arc<Access>,
    /// What was demanded when this was last looked at.
    pub(super) policy: Arc<Policy>,
    /// The `Authorization` that was shown.
    pub(super) authorization: Option<Vec<u8>>,
    /// What was shown when the connection began, if it is encrypted.
    pub(super) handshake: Option<Arc<Handshake>>,
    pub(super) scope: Option<Scope>,
}

impl Admission {
    /// Whether the reader would be let in now: tokens may have been revoked, and certificates be demanded.
    pub fn holds(&mut self) -> bool {
        let now = self.access.policy();
        if !Arc::ptr_eq(&now, &self.policy) {
            let permitted = |()| match self.scope {
                Some(scope) => now.permit(self.authorization.as_deref(), scope),
                None => Ok(()),
            };
            if now.check_handshake(self.handshake.as_deref()).and_then(permitted).is_err() {
                return false;
            }
            self.policy = now;
        }
        true
    }
}
