//! Who may ask the daemon, and how much.
//!
//! Safe unless told otherwise: it listens on the loopback interface, where whoever has an account on the machine may
//! read and write. Anywhere else it refuses to start without a token file or TLS with client certificates. Scripts of
//! web pages get nothing either: there is no CORS, a name that is not the machine's own is refused (DNS rebinding), and
//! so is what another page sends to be changed.
//!
//! | file | what it has |
//! |---|---|
//! | `options` | where to listen, what to demand, limits |
//! | `tokens` | the token file; scopes |
//! | `tls` | certificates |
//! | `hosts` | names that requests may be for |
//! | `allowance` | requests a second by peer |

mod allowance;
mod hosts;
mod options;
mod tls;
mod tokens;

use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::pki_types::CertificateDer;
use thalweg_api::problem::{Code, Problem};
use thiserror::Error;

pub use allowance::Allowance;
pub(super) use allowance::subnet;
pub use hosts::Hosts;
pub(super) use hosts::is_own_page;
pub use options::{AccessOptions, Limits};
pub use tls::{Tls, TlsError};
pub use tokens::{ParseScopeError, Scope, TokenFileError, TokenProblem, Tokens};

/// What is demanded of whoever asks. Can be replaced while the daemon runs.
#[derive(Debug)]
pub struct Access {
    policy: ArcSwap<Policy>,
    /// Where the API listens, and goes on listening whatever is demanded: this decides who can reach it.
    bound: SocketAddr,
}

/// What is demanded at one time.
#[derive(Debug)]
pub struct Policy {
    tokens: Option<Tokens>,
    /// How connections are encrypted, if they are.
    pub tls: Option<Tls>,
    /// Names that requests may be for.
    pub hosts: Hosts,
}

/// What a client has shown when its encrypted connection began.
#[derive(Clone, Debug, Default)]
pub struct Handshake {
    /// Its certificates, its own first; none if it has shown none.
    pub certificates: Vec<CertificateDer<'static>>,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Denied {
    /// There is no token.
    #[error("a token is needed: Authorization: Bearer TOKEN")]
    NoToken,
    /// Nobody has this token.
    #[error("this token is not known")]
    UnknownToken,
    /// The token's scope does not go that far.
    #[error("this token may only read")]
    ReadOnly,
    /// The certificates that are demanded are others since the connection began.
    #[error("what certificates are demanded has changed since this connection began: connect again")]
    Outdated,
}

/// Why the daemon cannot listen.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AccessError {
    /// Anybody could ask it.
    #[error(
        "api.listen is {listen}, which others can reach: it needs api.token_file, or api.client_ca with api.tls_certificate and \
         api.tls_key (or listen on 127.0.0.1)"
    )]
    Open {
        /// Where it was to listen.
        listen: SocketAddr,
    },
    /// One key says what only makes sense with another.
    #[error("{key} needs {needs}")]
    Incomplete {
        /// The key that is there.
        key: &'static str,
        /// What is missing.
        needs: &'static str,
    },
    /// The token file cannot be used.
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
    /// A certificate or key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A limit that nothing could get past, or that limits nothing.
    #[error("api.{key} is {found}: expected {least} to {most}")]
    Limit {
        /// Its key.
        key: &'static str,
        /// What it is.
        found: u64,
        /// The least it can be.
        least: u64,
        /// The most it can be.
        most: u64,
    },
}

impl Access {
    /// What the options demand.
    ///
    /// # Errors
    /// If others could reach it and nothing is demanded of them, or a file that is named cannot be used.
    pub fn new(options: &AccessOptions) -> Result<Access, AccessError> {
        Ok(Access { policy: ArcSwap::from_pointee(Policy::load(options)?), bound: options.listen })
    }

    /// Demands nothing of anybody, under any name of the host: for what everybody may read, such as a collector's metrics.
    pub fn open(listen: SocketAddr) -> Access {
        let policy = Policy { tokens: None, tls: None, hosts: Hosts::any() };
        Access { policy: ArcSwap::from_pointee(policy), bound: listen }
    }

    /// Takes up what the options demand now, tokens and certificates read anew. Where it listens does not change: the
    /// demands have to suffice there, and at the new address, which is for the next start. If it fails, nothing
    /// changes.
    ///
    /// # Errors
    /// As [`Access::new`].
    pub fn reload(&self, options: &AccessOptions) -> Result<(), AccessError> {
        options.check()?;
        let here = AccessOptions { listen: self.bound, ..options.clone() };
        self.policy.store(Arc::new(Policy::load(&here)?));
        Ok(())
    }

    /// What is demanded now.
    pub fn policy(&self) -> Arc<Policy> {
        self.policy.load_full()
    }
}

impl Policy {
    /// Reads all files that the options name.
    ///
    /// # Errors
    /// As [`Access::new`].
    pub fn load(options: &AccessOptions) -> Result<Policy, AccessError> {
        options.check()?;
        let tokens = options.token_file.as_deref().map(Tokens::load).transpose()?;
        let tls = match (&options.tls_certificate, &options.tls_key) {
            (Some(certificate), Some(key)) => {
                Some(Tls::load(certificate, key, options.client_ca.as_deref())?)
            }
            _ => None,
        };
        Ok(Policy { tokens, tls, hosts: Hosts::new(options) })
    }

    /// Whether this request may be answered: `authorization` is its header, `wanted` what the answer needs.
    ///
    /// Without a token file whoever got as far as this may do everything: it has an account on this machine, or a
    /// certificate.
    ///
    /// # Errors
    /// If not, and why.
    pub fn permit(&self, authorization: Option<&[u8]>, wanted: Scope) -> Result<(), Denied> {
        let Some(tokens) = &self.tokens else { return Ok(()) };
        let token = authorization.and_then(bearer).ok_or(Denied::NoToken)?;
        let scope = tokens.scope_of(token).ok_or(Denied::UnknownToken)?;
        if scope >= wanted { Ok(()) } else { Err(Denied::ReadOnly) }
    }

    /// Whether a connection is encrypted as one would be now; `handshake` is that of the connection, if it is.
    pub fn is_current(&self, handshake: Option<&Handshake>) -> bool {
        self.tls.is_some() == handshake.is_some()
    }

    /// Whether requests of a connection may still be answered. Not where certificates are demanded and it has shown
    /// none, or one that would not let it in now: of an authority that is not trusted any more, or out of date.
    ///
    /// # Errors
    /// If not.
    pub fn check_handshake(&self, handshake: Option<&Handshake>) -> Result<(), Denied> {
        let shown = handshake.map_or(&[][..], |handshake| &handshake.certificates);
        match &self.tls {
            Some(tls) if !tls.admits(shown) => Err(Denied::Outdated),
            _ => Ok(()),
        }
    }

    /// One line for `thalweg check` and the log: what is demanded.
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
            Denied::ReadOnly => Code::Forbidden,
            // Over another connection it may well be answered.
            Denied::Outdated => Code::Unavailable,
            _ => Code::Unauthorised,
        };
        Problem::new(code, denied)
    }
}

/// The token of `Bearer TOKEN` (RFC 6750, section 2.1; the scheme's case does not matter, RFC 9110, section 11.1).
fn bearer(authorization: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = authorization.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests;
