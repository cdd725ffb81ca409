//! The endpoint of one route: access, documentation and handler, independent of the handler's types.

use thalweg_api::problem::{Code, Problem};

use super::handler::Prepared;
use super::request::Request;
use crate::access::Scope;

/// Access and documentation of a route.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// The scope that a token needs; `None` if no token is needed.
    pub scope: Option<Scope>,
    /// Purpose in a few words.
    pub summary: &'static str,
    /// Further documentation.
    pub description: &'static str,
    /// Problems of its handler, in addition to [`COMMON_ERRORS`].
    pub errors: &'static [Code],
    /// Whether the handler may block. If so, it runs on a thread of the pool.
    pub waits: bool,
}

/// Problems of every route.
pub const COMMON_ERRORS: [Code; 10] = [
    Code::BadParameter,
    Code::BadBody,
    Code::BadHeader,
    Code::Unauthorised,
    Code::Forbidden,
    Code::TooLarge,
    Code::SlowRequest,
    Code::TooManyRequests,
    Code::Unavailable,
    Code::Internal,
];

/// The endpoint of a route.
pub(super) struct Endpoint<S> {
    pub(super) path: &'static str,
    pub(super) operation: Operation,
    pub(super) reads_query: bool,
    pub(super) reads_body: bool,
    pub(super) prepare: Prepare<S>,
}

type Prepare<S> = Box<dyn Fn(&Request) -> Result<Prepared<S>, Problem> + Send + Sync>;

impl Operation {
    /// Whether the documentation of the route lists this problem.
    pub fn has(&self, code: Code) -> bool {
        COMMON_ERRORS.contains(&code) || self.errors.contains(&code)
    }
}
