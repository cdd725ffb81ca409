//! Access of a client that reads a stream.

use std::sync::Arc;

use super::connection_limits::Answering;
use crate::access::{Access, Handshake, Policy, Scope};

/// The credentials with which a client was admitted to a stream.
#[derive(Debug)]
pub struct Admission {
    pub(super) access: Arc<Access>,
    /// The policy at the last check.
    pub(super) policy: Arc<Policy>,
    /// The `Authorization` header.
    pub(super) authorization: Option<Vec<u8>>,
    /// The TLS handshake, if the connection is encrypted.
    pub(super) handshake: Option<Arc<Handshake>>,
    pub(super) scope: Option<Scope>,
    /// Keeps the connection while the stream lasts.
    pub(super) _answering: Answering,
}

impl Admission {
    /// Whether the current policy still admits the client. A reload may have revoked tokens or required certificates.
    pub fn is_valid(&mut self) -> bool {
        let now = self.access.policy();
        if !Arc::ptr_eq(&now, &self.policy) {
            let permitted = |()| match self.scope {
                Some(scope) => now.permit(self.authorization.as_deref(), scope).map(drop),
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
