//! What sketches say.

use super::asked;
use crate::serve::api::json::Tasks;
use crate::serve::api::{Api, convert};
use crate::serve::api::problem::Problem;
use crate::serve::api::reply::Reply;
use crate::serve::api::request::Request;

/// `GET /v1/tasks`
pub(in crate::serve::api) fn all(api: &Api, request: &Request) -> Result<Reply, Problem> {
    let collectors = asked(api, request)?.iter().map(convert::tasks).collect();
    Reply::json(&Tasks { collectors })
}
