//! What answers one route: who may use it, what documents it, and its handler, whatever that takes and gives.

use thalweg_api::problem::{Code, Problem};

use super::handler::Prepared;
use super::request::Request;
use crate::access::Scope;

/// Who may use a route, and what documents it.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// What a token must be good for; `None` if nobody needs one.
    pub scope: Option<Scope>,
    /// What it is for, in a few words.
    pub summary: &'static str,
    /// What is to be said beyond that.
    pub description: &'static str,
    /// Problems that its handler has, beside those of every route ([`GENERAL`]).
    pub errors: &'static [Code],
    /// Whether the handler may wait for collectors; else it answers at once.
    pub waits: bool,
}

/// Problems that any route may have.
pub const GENERAL: [Code; 9] = [
    Code::BadParameter,
    Code::BadBody,
    Code::Unauthorised,
    Code::Forbidden,
    Code::TooLarge,
    Code::SlowRequest,
    Code::TooManyRequests,
    Code::Unavailable,
    Code::Internal,
];

/// What answers a route, whatever it takes and gives.
pub(super) struct Endpoint<S> {
    pub(super) path: &'static str,
    pub(super) operation: Operation,
    pub(super) reads_query: bool,
    pub(super) reads_body: bool,
    pub(super) prepare: Prepare<S>,
}

type Prepare<S> = Box<dyn Fn(&Request) -> Result<Prepared<S>, Problem> + Send + Sync>;

impl Operation {
    /// Whether this problem is one that the documentation of the route has.
    pub fn has(&self, code: Code) -> bool {
        GENERAL.contains(&code) || self.errors.contains(&code)
    }
}
