//! Collectors.

use thalweg_api::Collectors;
use thalweg_api::problem::Problem;

use super::RequestDeadline;
use crate::api::{Api, convert};
use thalweg_http::output::Json;

/// `GET /v1/collectors`: includes collectors that do not respond, which an operator needs to see.
pub(in crate::api) fn all(api: &Api) -> Result<Json<Collectors>, Problem> {
    let deadline = RequestDeadline::new();
    let (mut responses, mut collectors) = (Vec::new(), Vec::new());
    for handle in api.parts().collectors.all() {
        let counters = handle.counters(deadline.left());
        responses.push(convert::collector_response(&handle, &counters));
        collectors.push(convert::collector(&handle, counters.ok().map(|asked| asked.value).as_ref()));
    }
    Ok(Json(Collectors { responses, collectors }))
}
