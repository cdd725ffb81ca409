//! Collectors.

use thalweg_api::Collectors;
use thalweg_api::problem::Problem;

use super::{Patience, asked};
use crate::serve::api::reply::Reply;
use crate::serve::api::request::Request;
use crate::serve::api::{Api, convert};

/// `GET /v1/collectors`: one that does not answer is shown all the same, as that is what one looks here for.
pub(in crate::serve::api) fn all(api: &Api, request: &Request) -> Result<Reply, Problem> {
    let patience = Patience::new();
    let (mut answered, mut collectors) = (Vec::new(), Vec::new());
    for handle in asked(api, request)? {
        let counters = handle.counters(patience.left());
        answered.push(convert::answered(&handle, &counters));
        collectors.push(convert::collector(&handle, counters.ok().map(|asked| asked.value).as_ref()));
    }
    Reply::json(&Collectors { answered, collectors })
}
