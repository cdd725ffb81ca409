//! Collectors.

use super::{Patience, asked};
use crate::serve::api::Api;
use crate::serve::api::json::{Answered, Collector, Collectors};
use crate::serve::api::problem::Problem;
use crate::serve::api::reply::Reply;
use crate::serve::api::request::Request;

/// `GET /v1/collectors`: one that does not answer is shown all the same, as that is what one looks here for.
pub(in crate::serve::api) fn all(api: &Api, request: &Request) -> Result<Reply, Problem> {
    let patience = Patience::new();
    let (mut answered, mut collectors) = (Vec::new(), Vec::new());
    for handle in asked(api, request)? {
        let counters = handle.counters(patience.left());
        answered.push(Answered::of(&handle, &counters));
        collectors.push(Collector::new(&handle, counters.ok().map(|asked| asked.value).as_ref()));
    }
    Reply::json(&Collectors { answered, collectors })
}
