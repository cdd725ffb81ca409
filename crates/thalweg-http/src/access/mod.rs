//! Access control of the API: credentials, host names and rate limit.
//!
//! The defaults are safe. On the loopback interface every local user may read and write. On other interfaces the API requires a token
//! file, or TLS with client certificates, to start. Scripts of web pages have no access: there is no CORS, foreign host names are
//! refused (DNS rebinding), and so are changes by pages of other origins.
//!
//! | file | contents |
//! |---|---|
//! | `options` | listen address, credentials, limits |
//! | `tokens` | the token file; scopes |
//! | `tls` | certificates |
//! | `hosts` | allowed host names |
//! | `rate_limiter` | rate limit per peer |

mod hosts;
mod options;
mod rate_limiter;
mod tls;
mod tokens;

use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::pki_types::CertificateDer;
use thalweg_api::problem::{Code, Problem};
use thiserror::Error;

pub use hosts::Hosts;
pub(super) use hosts::is_same_origin;
pub use options::{AccessOptions, Limits};
pub use rate_limiter::RateLimiter;
pub(super) use rate_limiter::subnet;
pub use tls::{Tls, TlsError};
pub use tokens::{ParseScopeError, Scope, Token, TokenFileError, TokenProblem, Tokens};

/// The access control of a server. Its policy can be replaced at run time.
#[derive(Debug)]
pub struct Access {
    policy: ArcSwap<Policy>,
    /// The listen address, which no reload changes. It decides which hosts can reach the API.
    listen: SocketAddr,
}

/// The current requirements of access.
#[derive(Debug)]
pub struct Policy {
    tokens: Option<Tokens>,
    /// TLS; `None` for unencrypted connections.
    pub tls: Option<Tls>,
    /// Names that requests may be for.
    pub hosts: Hosts,
}

/// The result of a TLS handshake.
#[derive(Clone, Debug, Default)]
pub struct Handshake {
    /// Certificates of the client, leaf first; empty for none.
    pub certificates: Vec<CertificateDer<'static>>,
}

/// What a request may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permit {
    /// Name of its token; `None` without a token file, or if the request needs no token.
    pub token: Option<Arc<str>>,
    /// The scope of its token; `None` if it has no token.
    pub scope: Option<Scope>,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Denied {
    /// The token is missing.
    #[error("missing token: expected the header Authorization: Bearer TOKEN")]
    NoToken,
    /// The token is unknown.
    #[error("unknown token")]
    UnknownToken,
    /// The scope of the token does not suffice.
    #[error("this token has the scope {has}; {wanted} is required")]
    Scope {
        /// Its scope.
        has: Scope,
        /// The required scope.
        wanted: Scope,
    },
    /// The required certificates have changed since the connection was accepted.
    #[error("the required certificates have changed: reconnect")]
    Outdated,
}

/// Why the access options are invalid.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AccessError {
    /// Other hosts would have access without credentials.
    #[error(
        "api.listen {listen} is reachable from other hosts: set api.token_file, or api.client_ca_file with api.tls_certificate and \
         api.tls_key, or listen on 127.0.0.1"
    )]
    Unprotected {
        /// The listen address.
        listen: SocketAddr,
    },
    /// A key requires another.
    #[error("{key} requires {required}")]
    MissingKey {
        /// The key that is set.
        key: &'static str,
        /// The missing key.
        required: &'static str,
    },
    /// The token file is invalid.
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
    /// A certificate or key is invalid.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A limit is out of range.
    #[error("api.{key} is {found}: expected {min} to {max}")]
    Limit {
        /// Key of the limit.
        key: &'static str,
        /// Its value.
        found: u64,
        /// Minimum.
        min: u64,
        /// Maximum.
        max: u64,
    },
}

impl Access {
    /// Creates the access control for `options`.
    ///
    /// # Errors
    /// If other hosts would have access without credentials, or a file is invalid.
    pub fn new(options: &AccessOptions) -> Result<Access, AccessError> {
        Ok(Access { policy: ArcSwap::from_pointee(Policy::load(options)?), listen: options.listen })
    }

    /// Creates an access control without restrictions, for public data such as metrics.
    pub fn unrestricted(listen: SocketAddr) -> Access {
        let policy = Policy { tokens: None, tls: None, hosts: Hosts::any() };
        Access { policy: ArcSwap::from_pointee(policy), listen }
    }

    /// Applies changed options, and rereads tokens and certificates. The listen address does not change until a restart, so the options
    /// must be valid for both the old and the new address. On an error nothing changes.
    ///
    /// # Errors
    /// As for [`Access::new`].
    pub fn reload(&self, options: &AccessOptions) -> Result<(), AccessError> {
        options.check()?;
        let here = AccessOptions { listen: self.listen, ..options.clone() };
        self.policy.store(Arc::new(Policy::load(&here)?));
        Ok(())
    }

    /// Returns the current policy.
    pub fn policy(&self) -> Arc<Policy> {
        self.policy.load_full()
    }
}

impl Policy {
    /// Reads all files of the options.
    ///
    /// # Errors
    /// As for [`Access::new`].
    pub fn load(options: &AccessOptions) -> Result<Policy, AccessError> {
        options.check()?;
        let tokens = options.token_file.as_deref().map(Tokens::load).transpose()?;
        let tls = match (&options.tls_certificate, &options.tls_key) {
            (Some(certificate), Some(key)) => {
                Some(Tls::load(certificate, key, options.client_ca_file.as_deref())?)
            }
            _ => None,
        };
        Ok(Policy { tokens, tls, hosts: Hosts::new(options) })
    }

    /// Checks the token of a request. `authorization` is its header, `wanted` the required scope.
    ///
    /// Without a token file all requests are permitted: the client is a local user or has a certificate.
    ///
    /// # Errors
    /// If the token is missing, unknown or lacks the scope.
    pub fn permit(&self, authorization: Option<&[u8]>, wanted: Scope) -> Result<Permit, Denied> {
        let Some(tokens) = &self.tokens else { return Ok(Permit::default()) };
        let secret = authorization.and_then(bearer).ok_or(Denied::NoToken)?;
        let token = tokens.find(secret).ok_or(Denied::UnknownToken)?;
        match token.scope.includes(wanted) {
            true => Ok(Permit { token: Some(Arc::clone(&token.name)), scope: Some(token.scope) }),
            false => Err(Denied::Scope { has: token.scope, wanted }),
        }
    }

    /// Whether a connection is encrypted as the policy requires. `handshake` is that of the connection, if encrypted.
    pub fn is_current(&self, handshake: Option<&Handshake>) -> bool {
        self.tls.is_some() == handshake.is_some()
    }

    /// Checks the client certificates of a connection against the policy: they may be missing, expired, or of a CA that is no longer
    /// trusted.
    ///
    /// # Errors
    /// If the certificates do not suffice.
    pub fn check_handshake(&self, handshake: Option<&Handshake>) -> Result<(), Denied> {
        let shown = handshake.map_or(&[][..], |handshake| &handshake.certificates);
        match &self.tls {
            Some(tls) if !tls.admits(shown) => Err(Denied::Outdated),
            _ => Ok(()),
        }
    }

    /// Returns a summary for `thalweg check` and the log.
    pub fn summary(&self) -> String {
        let encryption = match &self.tls {
            Some(_) => "TLS",
            None => "no TLS",
        };
        match &self.tokens {
            Some(tokens) => format!("{encryption}, {} tokens", tokens.len()),
            None => format!("{encryption}, no tokens"),
        }
    }
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Problem {
        let code = match denied {
            Denied::Scope { .. } => Code::Forbidden,
            // A new connection may be admitted.
            Denied::Outdated => Code::Unavailable,
            _ => Code::Unauthorised,
        };
        Problem::new(code, denied)
    }
}

/// Returns the token of `Bearer TOKEN` (RFC 6750, section 2.1; the scheme is case-insensitive, RFC 9110, section 11.1).
fn bearer(authorization: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = authorization.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests;
